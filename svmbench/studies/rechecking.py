"""Run a random sample of kept cells again with the present code, and compare the results.

``recheck(draw_kept(["results/smo"], minutes=5))`` does what ``svmbench recheck results/smo`` does.
"""

from __future__ import annotations

import re
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.base import escape
from svmbench.base.errors import ConfigError, ResultsError, SvmbenchError
from svmbench.base.interrupts import handled, raise_interrupt
from svmbench.experiment.run.session import ignore_text
from svmbench.studies.judging import ages_of

if TYPE_CHECKING:
    from svmbench.experiment.run.draws import Candidate
    from svmbench.experiment.settings.cells import Cell
    from svmbench.report.gate.sides import ComparedCell
    from svmbench.schema.rechecks import Recheck


#: All cells drawn from a run have one time limit: this many times the longest recorded time, at
#: least `_MIN_TIMEOUT_S`, and at most the time left.
_TIMEOUT_FACTOR = 10.0
_MIN_TIMEOUT_S = 60.0
#: Statuses of a repeated cell that has no result to compare.
_NOT_JUDGED = ("not run", "timeout", "unavailable", "skipped")
#: The fields of both records that a comparison contains.
_COMPARED_FIELDS = ("status", "params", "counters", "metrics")
#: A line of a changelog that names results that changed on purpose.
_NAMED_CHANGE = re.compile(r"^\s*[-*] Results change: (?P<names>.*)$")


@dataclass(frozen=True)
class KeptRun:
    """A kept run, with its cells that have a result."""

    name: str
    folder: Path
    candidates: tuple[Candidate, ...]

    @property
    def is_pinned(self) -> bool:
        """True if its config names OpenBLAS's core type, so that all CPU models compute alike."""
        from svmbench.base.files import read_json

        return bool(read_json(self.folder / "plan.json")["config"].get("blas_core"))


@dataclass(frozen=True)
class RecheckSample:
    """A random sample of kept cells, which a recheck runs again.

    Attributes
    ----------
    runs : dict of str to KeptRun
        The kept runs, by the name of their folder.
    cells : dict of str to list of Candidate
        The drawn cells of each run.
    seed : int
    minutes : float
        Recorded time of the drawn cells, and the time from the draw until the recheck stops.
    deadline : float
        The time at which the recheck stops, on the clock of `time.monotonic`.
    """

    runs: Mapping[str, KeptRun]
    cells: Mapping[str, list[Candidate]]
    seed: int
    minutes: float
    deadline: float

    @property
    def n_candidates(self) -> int:
        """Number of cells that could be drawn."""
        return sum(len(run.candidates) for run in self.runs.values())

    @property
    def n_drawn(self) -> int:
        """Number of drawn cells."""
        return sum(map(len, self.cells.values()))


@dataclass
class RecheckOutcome:
    """The outcome of a recheck.

    Attributes
    ----------
    compared : list of Recheck
        A comparison for each kept record whose cell was run again; ``differences`` is empty if they
        agree.
    n_drawn : int
        Number of drawn cells.
    n_missing : int
        Number of drawn cells that were not run.
    n_failed : int
        Number of runs whose config can't be run any more.
    """

    compared: list[Recheck] = field(default_factory=list)
    n_drawn: int = 0
    n_missing: int = 0
    n_failed: int = 0

    @property
    def changed(self) -> list[Recheck]:
        """The comparisons that found a difference."""
        return [comparison for comparison in self.compared if comparison["differences"]]

    def sentence(self) -> str:
        """Return how many cells agree, how many were not run, and how many timings differ."""
        n_compared, n_changed = len(self.compared), len(self.changed)
        n_exact = sum(comparison["arithmetic"] == "equal" for comparison in self.compared)
        n_equal = sum(
            comparison["n_equal"] == comparison["n_compared"] for comparison in self.compared
        )
        overlaps = [
            time["within"]
            for comparison in self.compared
            for time in comparison["times"].values()
            if time["within"] is not None
        ]
        return (
            f"{n_compared - n_changed} of {n_compared} cells agree ({n_exact} by equal arithmetic,"
            f" {n_equal} in every number), {n_changed} changed;"
            f" {self.n_missing} of {self.n_drawn} drawn were not run;"
            f" of {len(overlaps)} times {overlaps.count(False)} differ (the old and the new repeats"
            " don't overlap)"
        )


def draw_kept(
    folders: Sequence[Path | str], *, minutes: float = 5.0, seed: int = 0
) -> RecheckSample:
    """Draw kept cells until their recorded times add up to some minutes.

    First one cell of each solver is drawn. Then, for each run older than the code, as many cells as
    it still needs to count as rechecked. Then any others. See
    :mod:`svmbench.experiment.run.draws`.

    Parameters
    ----------
    folders : sequence of Path or str
        Run folders, or folders that contain some.
    minutes : float, default 5
        Recorded time of the drawn cells, and the time from this call until :func:`recheck` stops.
    seed : int, default 0
    """
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.experiment.run.draws import draw

    deadline = time.monotonic() + 60 * minutes
    load_plugins()
    runs = {run.name: run for run in kept_runs([Path(folder) for folder in folders])}
    candidates = [cell for run in runs.values() for cell in run.candidates]
    cells: dict[str, list[Candidate]] = {}
    for cell in draw(candidates, minutes * 60, seed):
        cells.setdefault(cell.run, []).append(cell)
    return RecheckSample(runs, cells, seed, minutes, deadline)


def recheck(
    drawn: RecheckSample,
    *,
    keep: bool = False,
    mirror: str | None = None,
    print_line: Callable[[str], None] = ignore_text,
) -> RecheckOutcome:
    """Run drawn cells again with the present code, and compare them with their kept records.

    A cell that several kept runs have is run once, and compared with each record.

    Parameters
    ----------
    drawn : RecheckSample
        What :func:`draw_kept` returned.
    keep : bool, default False
        Append each comparison to ``rechecks.jsonl`` beside the records.
    mirror : str, optional
        As for :func:`svmbench.data.ensure`.
    print_line : callable, optional
        Called with a sentence for each comparison and for each cell that could not be run.

    Returns
    -------
    RecheckOutcome

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended the recheck before its minutes were over.
    """
    from svmbench.schema.rechecks import append_recheck

    outcome = RecheckOutcome(n_drawn=drawn.n_drawn)
    done: set[tuple[str, str]] = set()
    for name, cells in drawn.cells.items():
        to_run = [cell for cell in cells if (name, cell.key) not in done]
        if not to_run:
            continue
        if time.monotonic() > drawn.deadline:
            print_line(f"{name}: not run: {drawn.minutes:g} minutes are over")
            continue
        try:
            for run, comparison in _run_again(drawn, name, to_run, mirror, print_line):
                for sentence in _sentences(run.name, comparison):
                    print_line(sentence)
                if keep:
                    append_recheck(run.folder, comparison)
                done.add((run.name, comparison["key"]))
                where = f"{run.name} · {comparison['cell']}"
                outcome.compared.append({**comparison, "cell": where})
        except SvmbenchError as error:
            outcome.n_failed += 1
            print_line(f"{name}: can't be run again: {error}")
        except KeyboardInterrupt:
            if time.monotonic() < drawn.deadline:
                raise
            print_line(f"{name}: stopped: {drawn.minutes:g} minutes are over")
    outcome.n_missing = sum(
        (name, cell.key) not in done for name, cells in drawn.cells.items() for cell in cells
    )
    return outcome


def _sentences(name: str, comparison: Recheck) -> Iterator[str]:
    """Yield a sentence for each difference of a comparison, or one if there is none."""
    if not comparison["differences"]:
        yield f"agrees   {name} · {comparison['cell']}"
    for difference in comparison["differences"]:
        change = f"{difference['what']} was {difference['base']}, is {difference['new']}"
        yield f"changed  {name} · {comparison['cell']}: {change}"


def kept_runs(folders: Sequence[Path]) -> Iterator[KeptRun]:
    """Yield the runs below some folders."""
    from svmbench.report.reading.folders import runs_below

    for run in runs_below(folders).values():
        yield KeptRun(str(run), run, tuple(_candidates(run)))


def _candidates(folder: Path) -> Iterator[Candidate]:
    from svmbench.base.files import read_json
    from svmbench.experiment.plan.present_code import has_present_code
    from svmbench.experiment.run.draws import Candidate
    from svmbench.report.reading.records import result_lines
    from svmbench.schema.rechecks import FRESH, read_rechecks

    try:
        lines = [line for line in result_lines(folder) if line["kind"] == "cell"]
    except ResultsError:
        return
    plan = read_json(folder / "plan.json")
    entries = (plan.get("code") or {}).get("entries") or []
    modules = {
        cell["key"]: [str(name) for name in entries[cell["code"]]]
        for cell in plan["cells"]
        if isinstance(cell.get("code"), int) and cell["code"] < len(entries)
    }
    agreed = {
        comparison["key"]
        for comparison in read_rechecks(folder, has_present_code)
        if not comparison["differences"]
    }
    ages = ages_of(folder).words  # a word for each key
    for line in lines:
        # Other cells have no result, or one that no solver's code decides.
        if line["status"] == "ok" and line.get("solver"):
            yield Candidate(
                run=str(folder),
                key=line["key"],
                solver=line["solver"],
                dataset=str(line["dataset"]),
                seconds=float(line.get("wall_s") or 0.0),
                modules=_solver_modules(line["solver"], modules.get(line["key"])),
                has_agreed=line["key"] in agreed,
                is_fresh=ages.get(line["key"]) == FRESH,
            )


def _solver_modules(solver: str, entry: Sequence[str] | None) -> tuple[str, ...]:
    """Return the modules of a cell's solvers, found by name if an older plan has none."""
    from svmbench.baselines.catalogue import modules_of_solvers, solvers

    if entry is not None:
        trained = ("svmbench.core.", "svmbench.baselines.")
        return tuple(name for name in entry if name.startswith(trained) and ".models." not in name)
    # A record may name other people's class: look up declared names only, and import nothing.
    modules = [
        modules_of_solvers(name, "binary")[0] if name in solvers() else name
        for name in solver.split("|")
    ]
    return tuple(dict.fromkeys(modules))


def _run_again(
    drawn: RecheckSample,
    name: str,
    to_run: Sequence[Candidate],
    mirror: str | None,
    print_line: Callable[[str], None],
) -> Iterator[tuple[KeptRun, Recheck]]:
    """Run some cells of a kept run again, each in its own process.

    Yields each comparison with a kept record of this run, or of another run that has the cell.
    """
    from svmbench.experiment.plan.planner import prepare_plan
    from svmbench.experiment.plan.present_code import identity_of
    from svmbench.experiment.run.session import Request, RunPlan, execute_run
    from svmbench.report.gate.sides import judged_scores
    from svmbench.report.reading.records import read_run, result_lines

    run, deadline = drawn.runs[name], drawn.deadline
    recorded = read_run(run.folder)
    wanted = {candidate.key for candidate in to_run}
    old_lines = _lines_of(run, wanted)
    identities = {identity_of(lines[-1]): key for key, lines in old_lines.items()}
    with tempfile.TemporaryDirectory(prefix="svmbench-recheck-") as scratch:
        path = Path(scratch) / "run"
        with _interrupted_at(deadline):
            plan = prepare_plan(
                recorded.name,
                recorded.profile,
                mirror=mirror,
                only={"dataset": sorted({candidate.dataset for candidate in to_run})},
            )
        cells = {
            identities[identity]: cell
            for cell in plan.cells
            if cell.status == "planned" and (identity := identity_of(cell.identity)) in identities
        }
        for key in wanted - cells.keys():
            line = old_lines[key][-1]
            shown = f"{line['block']} · {line['dataset']} · {line['solver']}"
            print_line(
                f"{run.name} · {shown}: its config has no such cell now, or its data are not here"
            )
        if not cells:
            return
        # Preparing data has taken some of the time.
        left_s = max(deadline - time.monotonic(), 1.0)
        longest_s = max(
            _MIN_TIMEOUT_S, *(_TIMEOUT_FACTOR * candidate.seconds for candidate in to_run)
        )
        request = Request(
            config=recorded.name,
            profile=recorded.profile,
            output=path,
            budget_s=left_s,
            timeout_s=min(longest_s, left_s),
        )
        with _interrupted_at(deadline):
            ended = execute_run(RunPlan(request, plan, list(cells.values()), path))
        new_lines: dict[str, list[Any]] = {}
        for line in result_lines(path):
            new_lines.setdefault(line["key"], []).append(line)
        new_run = read_run(path)
        for other in drawn.runs.values():
            shared = cells.keys() & {cell.key for cell in other.candidates}
            if not shared:
                continue
            other_run, kept_lines = read_run(other.folder), _lines_of(other, shared)
            judged = judged_scores(other_run.scores)
            for key, old in kept_lines.items():
                new = new_lines.get(cells[key].key, [])
                # A missed time limit shows the load of the machine, not a changed result.
                if new and new[-1]["kind"] == "cell" and new[-1]["status"] not in _NOT_JUDGED:
                    environments = (
                        other_run.environments.get(str(old[-1].get("environment")), {}),
                        new_run.environments.get(str(new[-1].get("environment")), {}),
                    )
                    yield (
                        other,
                        _compared(
                            cells[key], old, new, environments, judged, drawn.seed, other.is_pinned
                        ),
                    )
        if ended.summary.interrupted:
            raise KeyboardInterrupt


def _lines_of(run: KeptRun, keys: Collection[str]) -> dict[str, list[Any]]:
    """Return the kept lines of some cells, by key."""
    from svmbench.report.reading.records import result_lines

    by_key: dict[str, list[Any]] = {}
    for line in result_lines(run.folder):
        if line["key"] in keys:
            by_key.setdefault(line["key"], []).append(line)
    return by_key


@contextmanager
def _interrupted_at(deadline: float) -> Iterator[None]:
    """Interrupt the body at a time of the monotonic clock, as Ctrl-C does; finished cells stay."""
    with handled(signal.SIGALRM, raise_interrupt):
        signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 0.001))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


def _compared(
    cell: Cell,
    old: list[Any],
    new: list[Any],
    environments: tuple[Any, Any],
    judged: Any,
    seed: int,
    is_pinned: bool,
) -> Recheck:
    """Compare the kept lines of a cell with its new ones; the cell's own line is the last."""
    from svmbench.experiment.plan.keys import code_hash, modules_of
    from svmbench.report.gate.compare import compare_cell
    from svmbench.report.gate.sides import arithmetic_of, at_fold, group_of, where_of
    from svmbench.schema.rechecks import RECHECK_SCHEMA

    # Compiled code depends on the CPU model, which the versions of libraries don't show.
    is_exact = arithmetic_of(environments[0]) == arithmetic_of(environments[1]) and (
        is_pinned or environments[0].get("cpu") == environments[1].get("cpu")
    )
    before, after = _by_point(old), _by_point(new)
    differences, n_compared, n_equal = [], 0, 0
    # If the cell failed now, none of its points exists: compare the cell's own line alone.
    points = before if new[-1]["status"] == "ok" else [None]
    for point in points:
        both = before[point], after.get(point) or _absent(before[point])
        changes, n_numbers = compare_cell(*both, judged, is_exact=is_exact)
        n_compared += n_numbers
        unequal = changes if is_exact else compare_cell(*both, judged, is_exact=True)[0]
        n_equal += max(n_numbers - len(unequal), 0)
        differences += [
            {name: getattr(change, name) for name in ("kind", "what", "base", "new")}
            for change in changes
        ]
    if new[-1]["status"] != "ok" and (reason := new[-1].get("reason")):
        differences = [
            {**difference, "new": f"{difference['new']} ({escape.line(reason, 200)})"}
            for difference in differences
        ]
    same_data = old[-1].get("data_sha256") in (None, new[-1].get("data_sha256"))
    if not same_data:
        differences.insert(
            0,
            {
                "kind": "data",
                "what": "content of the data set",
                "base": old[-1]["data_sha256"],
                "new": new[-1].get("data_sha256"),
            },
        )
    modules = modules_of(cell.spec)
    fold = old[-1].get("fold")
    shown = at_fold(where_of(group_of(before[None])), fold)
    return {
        "schema": RECHECK_SCHEMA,
        "key": old[-1]["key"],
        "cell": shown,
        "solver": old[-1]["solver"],
        "dataset": str(old[-1]["dataset"]),
        "modules": list(modules),
        "code": code_hash(*modules),
        "old": {name: old[-1].get(name) for name in _COMPARED_FIELDS},
        "new": {name: new[-1].get(name) for name in _COMPARED_FIELDS},
        "arithmetic": "equal" if is_exact else "other",
        "n_compared": n_compared,
        "n_equal": n_equal,
        "differences": differences,
        "times": _times(old[-1], new[-1], environments),
        "environment": {
            name: environments[1].get(name) for name in ("id", "cpu", "blas", "packages", "python")
        },
        "seed": seed,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _by_point(lines: list[Any]) -> dict[Any, ComparedCell]:
    """Return the values of a cell, and of each point that is a separate result."""
    return {line.get("point"): _values(lines[-1], line) for line in lines}


def _values(cell: Any, line: Any) -> ComparedCell:
    def numbers(name: str) -> dict[str, Any]:
        values = line.get(name) or {}
        return {key: value for key, value in values.items() if isinstance(value, int | float)}

    return {
        "block": cell["block"],
        "dataset": cell["dataset"],
        "solver": cell["solver"],
        "kernel": cell["kernel"],
        "fold": cell.get("fold"),
        "status": line.get("status", "ok"),
        "contended": False,
        "dimensions": line.get("dimensions") or cell.get("dimensions") or {},
        "params": line.get("params") or {},
        "counters": numbers("counters"),
        "metrics": numbers("metrics"),
    }


def _absent(cell: ComparedCell) -> ComparedCell:
    return {**cell, "status": "none"}


def _times(old: Any, new: Any, environments: tuple[Any, Any]) -> dict[str, Any]:
    """Return the change of each time and each ratio, and whether the ranges of repeats overlap."""
    same_cpu = environments[0].get("cpu") == environments[1].get("cpu")
    changes: dict[str, Any] = {}
    for name, before in (old.get("metrics") or {}).items():
        after = (new.get("metrics") or {}).get(name)
        is_time = name.startswith(("ratio:", "cpu_time_s"))
        if is_time and before and after:
            ranges = _range(old, name, before), _range(new, name, after)
            overlap = max(low for low, _ in ranges) <= min(high for _, high in ranges)
            changes[name] = {"ratio": after / before, "within": overlap if same_cpu else None}
    return changes


def _range(record: Any, name: str, value: float) -> tuple[float, float]:
    """Return the smallest and the largest value of a metric over its repeats."""
    spread = (record.get("spread") or {}).get(name)
    if isinstance(spread, list):
        return float(spread[0]), float(spread[-1])
    half = float(spread or 0.0)
    return value - half, value + half


def named_changes(changelog: Path) -> frozenset[str]:
    """Return the solvers and runs whose changed results a changelog's first section names."""
    from svmbench.base.files import read_text

    try:
        lines = read_text(changelog).splitlines()
    except OSError as error:
        raise ConfigError(f"can't read {changelog}: {error.strerror or error}") from error
    names: set[str] = set()
    n_sections = 0
    for line in lines:
        n_sections += line.startswith("## ")
        if n_sections < 2 and (match := _NAMED_CHANGE.match(line)):
            names.update(re.findall(r"`([^`]+)`", match["names"]))
    return frozenset(names)


def is_named(comparison: Recheck, accepted: frozenset[str]) -> bool:
    """Return True if a changelog names one of a comparison's solvers, or the folder of its run."""
    solvers = comparison["solver"].split("|")
    run = Path(comparison["cell"].partition(" · ")[0]).name
    return bool(accepted & {*solvers, run})
