"""The command `recheck`: a random sample of kept cells is run again and compared."""

from __future__ import annotations

import re
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from svmbench.base import escape
from svmbench.base.errors import (
    EXIT_FAILED_CELLS,
    EXIT_REGRESSION,
    ConfigError,
    ResultsError,
    SvmbenchError,
)
from svmbench.cli import terminal
from svmbench.cli.options import FOLDER, MIRROR, POSITIVE_NUMBER, RESULTS
from svmbench.cli.publishing import ages_of, kept_results

if TYPE_CHECKING:
    from svmbench.experiment.run.draws import Candidate
    from svmbench.experiment.settings.cells import Cell
    from svmbench.report.gate.sides import KeptCell
    from svmbench.schema.rechecks import Recheck

#: The time limit of a cell is this many times its recorded time, and at least `_MIN_TIMEOUT_S`.
_TIMEOUT_FACTOR = 10.0
_MIN_TIMEOUT_S = 60.0
#: Statuses of a repeated cell that leave nothing to compare.
_NOT_JUDGED = ("not run", "timeout", "unavailable", "skipped")
#: What of a record a recheck keeps.
_KEPT = ("status", "params", "counters", "metrics")
#: A line of a changelog that names results that changed on purpose.
_NAMED_CHANGE = re.compile(r"^\s*[-*] Results change: (?P<names>.*)$")


@click.command()
@RESULTS
@click.option(
    "--budget",
    type=POSITIVE_NUMBER,
    metavar="MINUTES",
    default=5.0,
    show_default=True,
    help="Draw cells until their recorded times add up to MINUTES; stop when MINUTES have passed.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random draw.",
)
@click.option(
    "--samples",
    is_flag=True,
    help="Draw whole samples: for each older run the cells that make it rechecked, the quickest "
    "run first.",
)
@click.option(
    "--changelog",
    type=FOLDER,
    metavar="FILE",
    help="Accept changed results of the solvers and configs named in this file's first section.",
)
@click.option(
    "--keep/--no-keep",
    "keeps",
    default=True,
    show_default=True,
    help="Append the outcome to rechecks.jsonl beside the records.",
)
@click.option("--dry-run", is_flag=True, help="Print the drawn cells; run and write nothing.")
@MIRROR
def recheck(
    results: tuple[Path, ...],
    budget: float,
    seed: int,
    samples: bool,
    changelog: Path | None,
    keeps: bool,
    dry_run: bool,
    mirror: str | None,
) -> None:
    r"""Run a random sample of kept cells again with the present code, and compare the results.

    RESULTS are run folders, or folders that hold some (default: the folder results). Accuracies,
    objectives and counters must be equal. If BLAS, its CPU-specific code or another package differs
    from the recorded run, they may differ within the tolerances of 'svmbench compare'. Times are
    not compared. A cell stopped at its time limit counts as not run. A cell that several of RESULTS
    keep is run once, and compared with each record. The exit code is 4 if a cell disagrees, unless
    a line of the changelog such as "- Results change: `smo`, `csvc`: why" names its solver or
    config. It is 3 if a config can't be run any more.

    \b
    Examples:
      svmbench recheck --budget 5 --seed 1
      svmbench recheck results/smo --budget 30 --samples
    """
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.experiment.run.draws import draw, draw_samples
    from svmbench.schema.rechecks import OLDER, append_recheck

    load_plugins()
    accepted = _named_changes(changelog) if changelog else frozenset()
    deadline = time.monotonic() + 60 * budget
    runs = {run.name: run for run in _kept_runs(results or (kept_results(),))}
    if samples:  # others gain nothing from a sample
        runs = {name: run for name, run in runs.items() if ages_of(run.folder).word == OLDER}
    candidates = [one for run in runs.values() for one in run.candidates]
    drawn: dict[str, list[Candidate]] = {}
    for one in (draw_samples if samples else draw)(candidates, budget * 60, seed):
        drawn.setdefault(one.run, []).append(one)
    n_drawn = sum(map(len, drawn.values()))
    terminal.print_line(
        f"{n_drawn} of {len(candidates)} cells of {len(drawn)} runs drawn (seed {seed})"
    )
    if dry_run:
        terminal.print_columns(
            ((one.run, one.solver, one.dataset, f"{one.seconds:.1f} s"))
            for cells in drawn.values()
            for one in cells
        )
        terminal.check_written()
        return
    found: list[Recheck] = []
    n_failed = 0
    done: set[tuple[str, str]] = set()
    for name, cells in drawn.items():
        left = [one for one in cells if (name, one.key) not in done]
        if not left:
            continue
        if time.monotonic() > deadline:
            terminal.print_line(f"{name}: not run: {budget:g} minutes are over")
            continue
        try:
            for run, again in _run_again(runs[name], runs.values(), left, mirror, seed, deadline):
                _print(run.name, again)
                if keeps:
                    append_recheck(run.folder, again)
                done.add((run.name, again["key"]))
                found.append({**again, "cell": f"{run.name} · {again['cell']}"})
        except SvmbenchError as error:
            n_failed += 1
            terminal.print_line(f"{name}: can't be run again: {error}")
        except KeyboardInterrupt:
            if time.monotonic() < deadline:
                raise
            terminal.print_line(f"{name}: stopped: {budget:g} minutes are over")
    n_missing = sum((name, one.key) not in done for name, cells in drawn.items() for one in cells)
    _say_end(found, n_drawn, n_missing)
    unnamed = _unnamed(found, accepted)
    if unnamed:
        sys.exit(EXIT_REGRESSION)
    if n_failed:
        sys.exit(EXIT_FAILED_CELLS)
    terminal.check_written()


@dataclass(frozen=True)
class KeptRun:
    """A kept run and those of its cells that have a result."""

    name: str
    folder: Path
    candidates: tuple[Candidate, ...]

    @property
    def is_pinned(self) -> bool:
        """True if its config names OpenBLAS's core type: then all CPU models compute alike."""
        from svmbench.base.files import read_json

        return bool(read_json(self.folder / "plan.json")["config"].get("blas_core"))


def _kept_runs(folders: Sequence[Path]) -> Iterator[KeptRun]:
    from svmbench.report.reading.folders import runs_below

    for run in runs_below(folders).values():
        yield KeptRun(str(run), run, tuple(_candidates(run)))


def _candidates(folder: Path) -> Iterator[Candidate]:
    from svmbench.base.files import read_json
    from svmbench.base.renames import present_name
    from svmbench.experiment.plan.freshness import is_present
    from svmbench.experiment.run.draws import Candidate
    from svmbench.report.reading.records import result_lines
    from svmbench.schema.rechecks import read_rechecks

    try:
        lines = [one for one in result_lines(folder) if one["kind"] == "cell"]
    except ResultsError:
        return
    plan = read_json(folder / "plan.json")
    entries = (plan.get("code") or {}).get("entries") or []
    modules = {
        cell["key"]: [present_name(str(name)) for name in entries[cell["code"]]]
        for cell in plan["cells"]
        if isinstance(cell.get("code"), int) and cell["code"] < len(entries)
    }
    known = {one["key"] for one in read_rechecks(folder, is_present) if not one["differences"]}
    for line in lines:
        # Data that can't be had and cells without a solver have nothing that code decides.
        if line["status"] == "ok" and line.get("solver"):
            yield Candidate(
                run=str(folder),
                key=line["key"],
                solver=line["solver"],
                dataset=str(line["dataset"]),
                seconds=float(line.get("wall_s") or 0.0),
                modules=_solver_modules(line["solver"], modules.get(line["key"])),
                is_known=line["key"] in known,
            )


def _solver_modules(solver: str, entry: Sequence[str] | None) -> tuple[str, ...]:
    """Return the modules of a cell's solvers; their names where an older plan has no modules."""
    from svmbench.baselines.catalogue import modules_of_solvers, solvers

    if entry is not None:
        trained = ("svmbench.core.", "svmbench.baselines.")
        return tuple(name for name in entry if name.startswith(trained) and ".models." not in name)
    # A record may name other people's class: only declared names are looked up, and none imported.
    found = [
        modules_of_solvers(name, "binary")[0] if name in solvers() else name
        for name in solver.split("|")
    ]
    return tuple(dict.fromkeys(found))


def _run_again(
    run: KeptRun,
    runs: Collection[KeptRun],
    drawn: Sequence[Candidate],
    mirror: str | None,
    seed: int,
    deadline: float,
) -> Iterator[tuple[KeptRun, Recheck]]:
    """Run some cells of a kept run again, each in its own process.

    Yields each comparison with a kept record, that of this run or of another of `runs` that has the
    cell.
    """
    from svmbench.experiment.plan.freshness import place_of
    from svmbench.experiment.run.session import Request, RunPlan, execute_run, plan_run
    from svmbench.report.gate.sides import judged_scores
    from svmbench.report.reading.records import read_run, result_lines

    content = read_run(run.folder)
    wanted = {one.key for one in drawn}
    kept = _lines_of(run, wanted)
    places = {place_of(lines[-1]): key for key, lines in kept.items()}
    with tempfile.TemporaryDirectory(prefix="svmbench-recheck-") as scratch:
        request = Request(
            config=content.name,
            profile=content.profile,
            output=Path(scratch) / "run",
            mirror=mirror,
            only={"dataset": sorted({one.dataset for one in drawn})},
        )
        with _interrupted_at(deadline):
            planned = plan_run(request)
        cells = {
            places[place]: cell
            for cell in planned.cells
            if cell.status == "planned" and (place := place_of(cell.shown)) in places
        }
        for key in wanted - cells.keys():
            line = kept[key][-1]
            shown = f"{line['block']} · {line['dataset']} · {line['solver']}"
            terminal.print_line(
                f"{run.name} · {shown}: its config has no such cell now, or its data are not here"
            )
        if not cells:
            return
        # Preparing data has taken some of the time.
        left_s = max(deadline - time.monotonic(), 1.0)
        longest_s = max(_MIN_TIMEOUT_S, *(_TIMEOUT_FACTOR * one.seconds for one in drawn))
        request = replace(request, budget_s=left_s, timeout_s=min(longest_s, left_s))
        chosen = RunPlan(request, planned.plan, list(cells.values()), planned.path)
        with _interrupted_at(deadline):
            interrupted = execute_run(chosen).summary.interrupted
        # The newest record of every key, whatever became of it.
        made: dict[str, list[Any]] = {}
        for line in result_lines(planned.path):
            made.setdefault(line["key"], []).append(line)
        again = read_run(planned.path)
        for one in runs:
            shared = cells.keys() & {cell.key for cell in one.candidates}
            if not shared:
                continue
            kept_run, kept = read_run(one.folder), _lines_of(one, shared)
            judged = judged_scores(kept_run.scores)
            for key, old in kept.items():
                new = made.get(cells[key].key, [])
                # A time limit says more of the machine's load than of the result.
                if new and new[-1]["kind"] == "cell" and new[-1]["status"] not in _NOT_JUDGED:
                    facts = (
                        kept_run.environments.get(str(old[-1].get("environment")), {}),
                        again.environments.get(str(new[-1].get("environment")), {}),
                    )
                    yield one, _compared(cells[key], old, new, facts, judged, seed, one.is_pinned)
        if interrupted:
            raise KeyboardInterrupt


def _lines_of(run: KeptRun, keys: Collection[str]) -> dict[str, list[Any]]:
    """Return the kept lines of some cells, by key."""
    from svmbench.report.reading.records import result_lines

    kept: dict[str, list[Any]] = {}
    for line in result_lines(run.folder):
        if line["key"] in keys:
            kept.setdefault(line["key"], []).append(line)
    return kept


@contextmanager
def _interrupted_at(deadline: float) -> Iterator[None]:
    """Interrupt the body at a time of the monotonic clock, as Ctrl-C does: finished cells stay."""
    from svmbench.experiment.run.loop import handled

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with handled(signal.SIGALRM, interrupt):
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
    """Return the lines that compare a cell's record with a new one; the last is the cell's own."""
    from svmbench.experiment.plan.keys import code_hash
    from svmbench.experiment.plan.planner import modules_of
    from svmbench.report.gate.compare import compare_cell
    from svmbench.report.gate.sides import arithmetic_of, group_of, where_of
    from svmbench.schema.rechecks import RECHECK_SCHEMA

    # Compiled code is of the CPU model, which no library's version tells.
    is_exact = arithmetic_of(environments[0]) == arithmetic_of(environments[1]) and (
        is_pinned or environments[0].get("cpu") == environments[1].get("cpu")
    )
    before, after = _by_point(old), _by_point(new)
    differences, n_compared, n_equal = [], 0, 0
    # A cell without a result has none of its points, too.
    points = before if new[-1]["status"] == "ok" else [None]
    for point in points:
        both = before[point], after.get(point) or _absent(before[point])
        moved, number = compare_cell(*both, judged, is_exact=is_exact)
        n_compared += number
        unequal = moved if is_exact else compare_cell(*both, judged, is_exact=True)[0]
        n_equal += max(number - len(unequal), 0)
        differences += [
            {name: getattr(one, name) for name in ("kind", "what", "base", "new")} for one in moved
        ]
    if new[-1]["status"] != "ok" and (reason := new[-1].get("reason")):
        differences = [
            {**one, "new": f"{one['new']} ({escape.line(reason, 200)})"} for one in differences
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
    named = where_of(group_of(before[None])) + ("" if fold is None else f" · fold {fold}")
    return {
        "schema": RECHECK_SCHEMA,
        "key": old[-1]["key"],
        "cell": named,
        "solver": old[-1]["solver"],
        "dataset": str(old[-1]["dataset"]),
        "modules": list(modules),
        "code": code_hash(*modules),
        "old": {name: old[-1].get(name) for name in _KEPT},
        "new": {name: new[-1].get(name) for name in _KEPT},
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


def _by_point(lines: list[Any]) -> dict[Any, KeptCell]:
    """Return the values of a cell and of those of its points that are results of their own."""
    return {line.get("point"): _values(lines[-1], line) for line in lines}


def _values(cell: Any, line: Any) -> KeptCell:
    def numbers(name: str) -> dict[str, Any]:
        found = line.get(name) or {}
        return {key: value for key, value in found.items() if isinstance(value, int | float)}

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


def _absent(cell: KeptCell) -> KeptCell:
    return {**cell, "status": "none"}


def _times(old: Any, new: Any, environments: tuple[Any, Any]) -> dict[str, Any]:
    """Return of each time and each ratio of a race how it moved, and whether repeats overlap."""
    same_cpu = environments[0].get("cpu") == environments[1].get("cpu")
    found: dict[str, Any] = {}
    for name, before in (old.get("metrics") or {}).items():
        after = (new.get("metrics") or {}).get(name)
        is_time = name.startswith(("ratio:", "cpu_time_s"))
        if is_time and before and after:
            ranges = _range(old, name, before), _range(new, name, after)
            overlap = max(low for low, _ in ranges) <= min(high for _, high in ranges)
            found[name] = {"ratio": after / before, "within": overlap if same_cpu else None}
    return found


def _range(record: Any, name: str, value: float) -> tuple[float, float]:
    """Return the smallest and the largest value that repeats of a metric showed."""
    spread = (record.get("spread") or {}).get(name)
    if isinstance(spread, list):
        return float(spread[0]), float(spread[-1])
    half = float(spread or 0.0)
    return value - half, value + half


def _print(name: str, one: Recheck) -> None:
    if not one["differences"]:
        terminal.print_line(f"agrees   {name} · {one['cell']}")
        return
    for moved in one["differences"]:
        said = f"{moved['what']} was {moved['base']}, is {moved['new']}"
        terminal.print_line(f"changed  {name} · {one['cell']}: {said}")


def _say_end(found: Sequence[Recheck], n_drawn: int, n_missing: int) -> None:
    """Print the number of cells that agreed."""
    changed = [one for one in found if one["differences"]]
    judged = [time for one in found for time in one["times"].values() if time["within"] is not None]
    outside = sum(not time["within"] for time in judged)
    n_exact = sum(one["arithmetic"] == "equal" for one in found)
    n_equal = sum(one["n_equal"] == one["n_compared"] for one in found)
    terminal.print_line(
        f"{len(found) - len(changed)} of {len(found)} cells agree ({n_exact} by equal arithmetic,"
        f" {n_equal} in every number), {len(changed)} changed;"
        f" {n_missing} of {n_drawn} drawn were not run; {outside} of {len(judged)} times"
        " lie outside of what repeats showed"
    )


def _unnamed(found: Sequence[Recheck], accepted: frozenset[str]) -> list[Recheck]:
    """Return the changed cells that the changelog does not name; say how many it names."""
    changed = [one for one in found if one["differences"]]
    left = [one for one in changed if not _is_named(one, accepted)]
    if accepted and changed:
        terminal.print_line(
            f"the changelog names {len(changed) - len(left)} of {len(changed)} changes"
        )
    return left


def _named_changes(changelog: Path) -> frozenset[str]:
    """Return the solvers and configs whose changed results a changelog's first section names."""
    from svmbench.base.files import read_text

    try:
        lines = read_text(changelog).splitlines()
    except OSError as error:
        raise ConfigError(f"can't read {changelog}: {error.strerror or error}") from error
    names: set[str] = set()
    n_sections = 0
    for line in lines:
        n_sections += line.startswith("## ")
        if n_sections < 2 and (found := _NAMED_CHANGE.match(line)):
            names.update(re.findall(r"`([^`]+)`", found["names"]))
    return frozenset(names)


def _is_named(one: Recheck, accepted: frozenset[str]) -> bool:
    solvers = one["solver"].split("|")
    run = Path(one["cell"].partition(" · ")[0]).name
    return bool(accepted & {*solvers, run})


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    group.add_command(recheck)
