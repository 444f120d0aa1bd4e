"""Compare two versions in turn: a commit and the working tree, or two Python environments.

``svmbench race --base`` and ``scripts/regress.py`` share these functions. A commit and the working
tree run in processes of the same Python, whose ``PYTHONPATH`` begins with the version's folder.
``svmbench race --base-python`` runs the same files with another Python.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svmbench.base.errors import EXIT_FAILED_CELLS, ConfigError, SvmbenchError
from svmbench.experiment.config.yaml_source import yaml_of_value
from svmbench.report.gate.race_times import WALL_GROWTH
from svmbench.report.reading.records import result_lines
from svmbench.studies.racing import (
    Racer,
    RaceResult,
    SolverResult,
    formatted,
    notes_on,
)

SVMBENCH = [sys.executable, "-c", "from svmbench.cli import main; main()"]
#: A program that runs many commands in one process, which imports and loads compiled code once.
#: Each line of its input has the words of a command as JSON. After a command it prints a line with
#: a zero byte and the exit code.
COMMAND_LOOP = """
import json, sys
from svmbench.cli import main
for line in sys.stdin:
    sys.argv = ["svmbench", *json.loads(line)]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    print(f"\\n\\0{code or 0}", flush=True)
"""
#: Blocks of the config with which two versions are compared.
VERSIONS, CERTIFICATES = "versions", "certificates"
#: After this number of rounds each side gets a new process, because the addresses of arrays and
#: code, which differ from process to process, change times by some percent.
ROUNDS_OF_A_PROCESS = 3
#: Seconds after SIGTERM within which a command must end; then it is killed.
TIME_TO_END_S = 20.0
#: How many percentage points of accuracy a version may lose before a gate fails.
ACCURACY_POINTS = 1.0
#: Largest allowed increase of the objective, as a share of the base's objective.
OBJECTIVE_SHARE = 0.01
#: Smallest number of rounds from which wall times can fail a gate.
MIN_JUDGED_ROUNDS = 3
#: Results that a comparison of versions shows: the name in records, its head, the format.
SHOWN = (
    ("accuracy_pct", "accuracy (%)", ".2f"),
    ("objective", "objective", ".7g"),
    ("certified_gap", "certified gap", ".1e"),
)


def version_config(
    datasets: list[dict[str, Any]], racers: Sequence[Racer], rows: int, scaling: str
) -> dict[str, Any]:
    """Return the config that both versions of a solver run: a fit, and its accuracy on a fifth.

    Other people's classes that declare a problem have a second block, `CERTIFICATES`, which finds
    their objectives.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If a racer has several values of a parameter.
    """
    for racer in racers:
        if racer.ladder:
            raise ConfigError(f"{racer.label}: --base takes one value of each parameter")
    block = {
        "name": VERSIONS,
        "protocol": "holdout",
        "max_samples": rows,
        "scaling": scaling,
        "test": 0.2,
        "multiclass": "one-vs-one",
    }
    blocks = [block]
    certified = [racer.entry() for racer in racers if racer.is_class and racer.problem is not None]
    if certified:
        shared = {key: block[key] for key in ("max_samples", "scaling", "multiclass")}
        race_block = {"name": CERTIFICATES, "protocol": "race", "repeats": 1, "tolerance": None}
        blocks.append({**race_block, "solvers": certified, **shared})
    return {
        "title": "Two versions of a solver",
        "seed": 1,
        "datasets": datasets,
        "solvers": [racer.entry() for racer in racers],
        "blocks": blocks,
        "profiles": {"quick": {}},
    }


def git(root: Path, *words: str) -> bytes:
    """Return the output of a git command.

    Raises
    ------
    SvmbenchError
        If git is missing or fails; with its message.
    """
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, check=False)
    except OSError as error:
        raise SvmbenchError(f"git can't be started: {error.strerror}") from error
    if done.returncode:
        raise SvmbenchError(f"git {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


def short_commit(root: Path, reference: str) -> str:
    """Return the short hash of the commit that a reference names."""
    return git(root, "rev-parse", "--short", f"{reference}^{{commit}}").decode().strip()


def unpack(root: Path, commit: str, folder: Path) -> None:
    """Write a commit's files to a folder, without changes to the repository."""
    content = git(root, "archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        # Python 3.11 has the filter from its fourth bug-fix release on.
        safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)


def environment_of(tree: Path, root: Path) -> dict[str, str]:
    """Return the environment that imports a version's modules from its folder.

    Parameters
    ----------
    tree : Path
        The folder of the version.
    root : Path
        The repository. Folders of ``PYTHONPATH`` inside it are replaced by their copies in `tree`.
    """
    folders = [tree, *([tree / "src"] if (tree / "src").is_dir() else [])]
    for given in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        path = Path(given).resolve()
        folders.append(tree / path.relative_to(root) if path.is_relative_to(root) else path)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, dict.fromkeys(folders)))}


def place_of(module: str, cwd: Path, environment: dict[str, str]) -> Path | None:
    """Return the file from which a process imports a top-level module, or None."""
    code = (
        f"import importlib.util as u; s = u.find_spec({module!r});"
        " print(s and (s.origin or [*s.submodule_search_locations][0]) or '')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    path = done.stdout.strip()
    return Path(path).resolve() if path else None


def run_config(config: Path, output: Path, environment: dict[str, str], *options: str) -> None:
    """Run a config with the version that this Python imports in an environment.

    Raises
    ------
    SvmbenchError
        If the command could not run the config. Failed cells are no error.
    """
    command = [*SVMBENCH, "run", str(config), "--output", str(output), *options]
    done = subprocess.run(command, cwd=output.parent, env=environment, check=False)
    if done.returncode not in (0, EXIT_FAILED_CELLS):
        raise SvmbenchError(f"it ended with {done.returncode}")


def compare_versions(
    config: dict[str, Any],
    racers: list[Racer],
    reference: str,
    *,
    rounds: int,
    options: list[str],
    tell: Any,
) -> dict[str, Any]:
    """Run a config at a commit of the present repository and in its working tree, in turn.

    Parameters
    ----------
    config : dict
        What :func:`version_config` returns: the block `VERSIONS`, and `CERTIFICATES` for classes
        that declare a problem.
    racers : list of Racer
        The solvers of the config.
    reference : str
        What git takes for a commit: a hash, a tag, ``HEAD~1``.
    rounds : int
        Runs of each version.
    options : list of str
        More words for ``svmbench run``.
    tell : callable
        Called with a line about each step.

    Returns
    -------
    result : dict
        ``base`` (the commit), ``new``, ``rounds``, and ``results``: for each data set and solver,
        the CPU time of the working tree over that of the base (``ratio``, the median over rounds,
        and its ``range``), the ratio of the median wall times (``wall_ratio``), and ``base`` and
        ``new`` with ``cpu_time_s``, ``wall_range_s``, ``accuracy_pct``, ``objective``,
        ``certified_gap`` and ``reason`` (empty for a cell without failure).

    Raises
    ------
    SvmbenchError
        If there is no repository or no such commit, if a solver's code is not in the repository,
        or if a version can't run the config.
    """
    root = Path(git(Path.cwd(), "rev-parse", "--show-toplevel").decode().strip()).resolve()
    commit = short_commit(root, reference)
    with tempfile.TemporaryDirectory(prefix="svmbench-versions-") as made:
        work = Path(made).resolve()
        before = work / "tree"
        unpack(root, commit, before)
        sides = {"base": before, "new": root}
        environments = {side: environment_of(tree, root) for side, tree in sides.items()}
        for module in {_module_of(racer) for racer in racers}:
            for side, tree in sides.items():
                imported = place_of(module, work, environments[side])
                if imported is None or not imported.is_relative_to(tree):
                    where = f"of {commit}" if side == "base" else root
                    raise SvmbenchError(
                        f"{module} is not among the files {where}; --base compares code that the"
                        " repository of the present folder has"
                    )
        base = Version(commit, environments["base"])
        new = Version("the working tree", environments["new"])
        return _in_turn(config, base, new, work, rounds=rounds, options=options, tell=tell)


def compare_environments(
    config: dict[str, Any], python: str, *, rounds: int, options: list[str], tell: Any
) -> dict[str, Any]:
    """Run a config with another Python and with this one, in turn, on the same ``PYTHONPATH``.

    Parameters
    ----------
    config, rounds, options, tell
        As for :func:`compare_versions`.
    python : str
        Path of the other Python, whose environment has svmbench.

    Returns
    -------
    result : dict
        As :func:`compare_versions` returns it.

    Raises
    ------
    SvmbenchError
        If the other Python can't import svmbench, or if one of the two can't run the config.
    """
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(str(Path(path).resolve()) for path in given)
    # Each Python chooses the folder of its own versions' compiled code.
    environment.pop("NUMBA_CACHE_DIR", None)
    # Links are not resolved: they decide the environment.
    other = str(Path(shutil.which(python) or python).absolute())
    with tempfile.TemporaryDirectory(prefix="svmbench-versions-") as made:
        work = Path(made).resolve()
        base, new = (
            Version(f"{path} ({_installed(path, work, environment)})", environment, path)
            for path in (other, sys.executable)
        )
        return _in_turn(config, base, new, work, rounds=rounds, options=options, tell=tell)


def _installed(python: str, work: Path, environment: dict[str, str]) -> str:
    """Return the versions of Python and svmbench in an environment, seen from the folder `work`."""
    code = (
        "import platform; from svmbench.base.version import __version__ as v;"
        " print(f'Python {platform.python_version()}, svmbench {v}')"
    )
    words = [python, "-c", code]
    try:
        done = subprocess.run(
            words, cwd=work, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise SvmbenchError(f"{python} can't be started: {error.strerror}") from error
    if done.returncode:
        *_, last = ["it failed", *done.stderr.splitlines()]
        raise SvmbenchError(f"{python} can't import svmbench: {last}")
    return done.stdout.strip()


@dataclass
class Version:
    """One of the two versions: its name, the environment of its processes, and their Python."""

    name: str
    environment: dict[str, str]
    python: str = sys.executable
    process: subprocess.Popen[str] | None = None
    is_running: bool = False

    def run(self, words: list[str], work: Path) -> None:
        """Run a command of svmbench in the side's process, which is started if there is none.

        Raises
        ------
        SvmbenchError
            If the command failed; with its error message. Failed cells are no error.
        """
        errors = work / f"errors-{id(self)}"
        if self.process is None:
            with errors.open("a") as stream:
                self.process = subprocess.Popen(
                    [self.python, "-c", COMMAND_LOOP],
                    cwd=work,
                    env=self.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stream,
                    text=True,
                )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        begin, self.is_running, code = errors.stat().st_size, True, ""
        with contextlib.suppress(BrokenPipeError):  # the process ended without an exit code
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()
            code = next((line[1:].strip() for line in self.process.stdout if line[0] == "\0"), "")
        self.is_running = False
        if code not in ("0", str(EXIT_FAILED_CELLS)):
            message = errors.read_bytes()[begin:].decode().strip().removeprefix("svmbench: ")
            raise SvmbenchError(f"at {self.name}: {message or 'it ended without a result'}")

    def end(self) -> None:
        """End the process, if there is one; a running command gets SIGTERM."""
        if self.process is None:
            return
        if self.is_running:
            self.process.terminate()
        try:
            # The loop of commands ends at the end of its input.
            self.process.communicate(timeout=TIME_TO_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process = None


def _in_turn(
    config: dict[str, Any],
    base: Version,
    new: Version,
    work: Path,
    *,
    rounds: int,
    options: list[str],
    tell: Any,
) -> dict[str, Any]:
    """Run a config with both sides in turn, and return the result of :func:`compare_versions`."""
    file = work / "race.yaml"
    file.write_text(yaml_of_value(config), encoding="utf-8")
    sides = {"base": base, "new": new}
    records: dict[str, list[dict[tuple[str, str], Any]]] = {name: [] for name in sides}
    try:
        for number in range(rounds):
            for name, side in sides.items():
                tell(f"round {number + 1} of {rounds}: {name}")
                output = work / f"{name}-{number}"
                words = ["run", str(file), "--output", str(output), "--quiet", *options]
                # The models of one round are certified.
                side.run([*words, "--only", f"block={VERSIONS}"] if number else words, work)
                records[name].append(_records(output))
                if number % ROUNDS_OF_A_PROCESS == ROUNDS_OF_A_PROCESS - 1:
                    side.end()
    finally:
        for side in sides.values():
            side.end()
    results = [_compared(key, records) for key in records["new"][0]]
    return {"base": base.name, "new": new.name, "rounds": rounds, "results": results}


def _module_of(racer: Racer) -> str:
    if "program" in racer.entry():
        raise ConfigError(f"{racer.label}: --base compares Python code, not programs")
    return racer.name.partition(".")[0] if "." in racer.name else "svmbench"


def _records(output: Path) -> dict[tuple[str, str], Any]:
    """Return a run's records by data set and solver, with the metrics of certificates."""
    cells = [record for record in result_lines(output) if record["kind"] == "cell"]
    records = {
        (str(cell["dataset"]), cell["solver"]): cell for cell in cells if cell["block"] == VERSIONS
    }
    for cell in cells:
        if cell["block"] != CERTIFICATES or cell["status"] != "ok":
            continue
        for name, value in cell["metrics"].items():
            metric, _, solver = name.partition(":")
            if metric in ("certified_objective", "certified_gap"):
                key = str(cell["dataset"]), solver
                records[key]["metrics"][metric.replace("certified_objective", "objective")] = value
    return records


def _compared(key: tuple[str, str], records: dict[str, list[dict[tuple[str, str], Any]]]) -> Any:
    """Return the results of both versions for a data set and a solver."""
    row: dict[str, Any] = {"dataset": key[0], "solver": key[1], "ratio": None, "range": None}
    seconds: dict[str, list[float | None]] = {}
    walls: dict[str, list[float]] = {}
    for side, rounds in records.items():
        cells = [
            of_round.get(key, {"status": "", "reason": "it has no such cell"})
            for of_round in rounds
        ]
        metrics = [cell.get("metrics") or {} for cell in cells]
        seconds[side] = [of_round.get("cpu_time_s") for of_round in metrics]
        known = [s for s in seconds[side] if s is not None]
        walls[side] = [
            of_round["train_time_s"] for of_round in metrics if of_round.get("train_time_s")
        ]
        failed = [cell for cell in cells if cell["status"] != "ok"]
        row[side] = {
            "cpu_time_s": statistics.median(known) if known else None,
            "wall_range_s": [min(walls[side]), max(walls[side])] if walls[side] else None,
            **{name: metrics[0].get(name) for name, _, _ in SHOWN},
            "reason": (failed[0].get("reason") or failed[0]["status"]) if failed else "",
        }
    ratios = [
        new / base
        for base, new in zip(seconds["base"], seconds["new"], strict=True)
        if base and new is not None
    ]
    if ratios:
        row |= {"ratio": statistics.median(ratios), "range": [min(ratios), max(ratios)]}
    medians = [
        statistics.median(side_walls) if side_walls else 0.0 for side_walls in walls.values()
    ]
    return {**row, "wall_ratio": medians[1] / medians[0] if all(medians) else None}


def version_rows(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table of a comparison of versions."""
    heads = [head for _, head, _ in SHOWN]
    yield ("data set", "solver", "CPU time, new / base (above 1: new is slower)", *heads)
    for row in result["results"]:
        low, high = row["range"] or (0, 0)
        ratio = f"{row['ratio']:.3g} ({low:.3g} to {high:.3g})" if row["range"] else "-"
        changes = (_change(row["base"][name], row["new"][name], form) for name, _, form in SHOWN)
        yield (row["dataset"], row["solver"], ratio, *changes)


def version_failures(result: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each solver that has no result on one side, with the reason."""
    for row in result["results"]:
        for side in ("base", "new"):
            if row[side]["reason"]:
                yield f"{row['solver']} on {row['dataset']}, {side}: {row[side]['reason']}"


def _change(base: float | None, new: float | None, form: str) -> str:
    """Return the value of both versions, as one text if they agree."""
    texts = [formatted(value, form) for value in (base, new)]
    return texts[0] if texts[0] == texts[1] else " → ".join(texts)


def notes_on_versions(racers: list[Racer], result: dict[str, Any]) -> list[str]:
    """Return notes on the objectives and wall times of a comparison of versions."""
    known = {row["solver"] for row in result["results"] if row["new"]["objective"] is not None}
    notes = [*notes_on(racers, lambda racer: racer.label in known)]
    for row in result["results"]:
        walls = [row[side]["wall_range_s"] for side in ("base", "new")]
        if row["ratio"] and row["wall_ratio"] and row["wall_ratio"] > WALL_GROWTH * row["ratio"]:
            base, new = (f"{low:.3g} to {high:.3g} s" for low, high in walls)
            notes.append(
                f"{row['solver']} on {row['dataset']}: its wall time is {row['wall_ratio']:.3g}"
                f" times the base's, its CPU time {row['ratio']:.3g} times ({new}, base {base}): it"
                " may sleep or wait, or other programs ran beside it"
            )
    return notes


def nothing_worse(result: dict[str, Any], fail_above: float) -> str:
    """Return the sentence of a gate that found no regression, with what it could not compare.

    Parameters
    ----------
    result : dict
        What :func:`compare_versions` or :func:`compare_environments` returned.
    fail_above : float
        The largest allowed ratio of CPU times.
    """
    sides = ("base", "new")
    unknown = {
        row["solver"]
        for row in result["results"]
        if any(row[side].get("objective") is None for side in sides)
    }
    exact = "" if unknown else " or exact"
    sentence = (
        f"no solver takes more than {fail_above:g} times the CPU time of the base,"
        f" or is less accurate{exact}"
    )
    if unknown:
        sentence += f"; objectives of {', '.join(sorted(unknown))} were not compared"
    return sentence


def regressions(result: dict[str, Any], limit: float) -> list[str]:
    """Return a sentence for each solver that has become slower, less accurate or less exact.

    A solver fails if one of these holds:

    - its CPU time, in the median over the rounds, is more than `limit` times the base's;
    - with `MIN_JUDGED_ROUNDS` rounds or more, each of its wall times is more than `limit` times the
      longest one of the base;
    - its accuracy is more than `ACCURACY_POINTS` lower;
    - its objective is more than `OBJECTIVE_SHARE` higher.

    Parameters
    ----------
    result : dict
        What :func:`compare_versions` or :func:`compare_environments` returned, or ``rounds`` and
        ``results`` with rows of :func:`_race_row`: accuracies on training rows, no wall times.
    limit : float
    """
    sentences = []
    for row in result["results"]:
        rows, of = row.get("rows", "test rows"), row.get("of", "the base")
        solver = f"{row['solver']} on {row['dataset']}"
        if row["ratio"] is not None and row["ratio"] > limit:
            sentences.append(
                f"slower: {solver} takes {row['ratio']:.3g} times the CPU time of {of};"
                f" {limit:g} times are allowed"
            )
        walls = [row[side].get("wall_range_s") for side in ("base", "new")]
        if (
            all(walls)
            and result["rounds"] >= MIN_JUDGED_ROUNDS
            and walls[1][0] > limit * walls[0][1]
        ):
            sentences.append(
                f"waits longer: {solver} takes at least {walls[1][0]:.3g} s of wall time in every"
                f" round, {of} at most {walls[0][1]:.3g} s; {limit:g} times are allowed"
            )
        base, new = (row[side]["accuracy_pct"] for side in ("base", "new"))
        if base is not None and new is not None and base - new > ACCURACY_POINTS:
            sentences.append(
                f"less accurate: {solver} has {new:.2f} % on the {rows}, {of} {base:.2f} %;"
                f" {ACCURACY_POINTS:g} point less is allowed"
            )
        base, new = (row[side].get("objective") for side in ("base", "new"))
        if base is not None and new is not None and new - base > OBJECTIVE_SHARE * abs(base):
            sentences.append(
                f"less exact: {solver} stops at the objective {new:.7g}, {of} at {base:.7g};"
                f" {100 * OBJECTIVE_SHARE:g} % more is allowed"
            )
    return sentences


def race_outcome(results: Sequence[RaceResult], limit: float | None) -> tuple[Sequence[str], bool]:
    """Judge the first solver of races against each of the others, as a gate for a new build.

    Parameters
    ----------
    results : sequence of RaceResult
    limit : float or None
        As for :func:`regressions`; without it nothing is judged.

    Returns
    -------
    list of str
        A sentence for each regression and for each pair without a ratio, or one that says that
        there is none.
    bool
        Whether the gate fails: a solver is worse, or a pair has no ratio.
    """
    if limit is None:
        return [], False
    rows, missed = [], []
    for result in results:
        first, *others = result["solvers"]
        for other, ratio in zip(others, result["ratios"], strict=True):
            if ratio["ratio"]:
                rows.append(_race_row(result["dataset"], first, other, 1.0 / ratio["ratio"]))
            else:
                missed.append(
                    f"not compared: {first['solver']} and {other['solver']} on {result['dataset']}"
                    " have no ratio (see the note)"
                )
    judged = {"results": rows, "rounds": results[0]["rounds"]}
    worse = [*regressions(judged, limit), *missed]
    unknown = any(row["new"]["objective"] is None for row in rows)
    nothing = (
        f"{results[0]['solvers'][0]['solver']} takes no more than {limit:g} times the CPU time of"
        f" another solver, and is not less accurate{'' if unknown else ' or exact'}"
    )
    nothing += "; objectives were not compared everywhere" if unknown else ""
    return (worse, True) if worse else ([nothing], False)


def _race_row(dataset: str, new: SolverResult, base: SolverResult, ratio: float) -> dict[str, Any]:
    """Return two solvers of a race as :func:`regressions` takes two versions.

    Objectives are left out if the solvers minimise different problems.
    """
    is_same = (new["problem"], new["offset"]) == (base["problem"], base["offset"])
    row: dict[str, Any] = {"dataset": dataset, "solver": new["solver"], "ratio": ratio}
    for side, racer in (("base", base), ("new", new)):
        row[side] = {
            "accuracy_pct": racer["train_accuracy_pct"],
            "objective": racer["objective"] if is_same else None,
        }
    return {**row, "rows": "training rows", "of": base["solver"]}
