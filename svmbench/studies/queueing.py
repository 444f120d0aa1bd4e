"""The queue of `svmbench reproduce --order value`: missing cells, the most decisive first.

A config is in the queue if a cell of its plan has no kept result of any age. All of its cells
without a kept result by the present code then run, so that its folder is complete. Configs that may
decide more claims in a forecast hour come first (:mod:`svmbench.report.numbers.cell_times`).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.base.errors import SvmbenchError
from svmbench.base.files import exists_in_results
from svmbench.experiment.run.session import ignore_text
from svmbench.report.reading.newest import COMPRESSED_RECORDS, RECORDS
from svmbench.studies.batches import BatchInterruptedError, run_batch
from svmbench.studies.forecasting import planned_work
from svmbench.studies.refreshing import has_result, n_lost, results_in, solvers_in_results
from svmbench.studies.reproducing import kept_by_config

if TYPE_CHECKING:
    from svmbench.experiment.run.batch import ConfigOutcome, Hooks
    from svmbench.experiment.run.session import Request
    from svmbench.experiment.settings.cells import Cell
    from svmbench.papers.judging import Evidence

#: A machine is idle if fewer processes than this run or wait for a core on average.
IDLE_LOAD = 0.3
#: Seconds between two readings of the load.
_LOAD_INTERVAL_S = 20.0
#: Shorter forecasts count as this many hours, because starting a config takes seconds.
_MIN_HOURS = 0.01


@dataclass(frozen=True)
class QueueEntry:
    """A config of the queue.

    Attributes
    ----------
    config, paper, profile : str
    cells : dict of str to float or None
        The forecast seconds of each cell to run, by its key; None without a record to forecast
        from.
    n_missing : int
        Number of planned cells without a kept result of any age; those in the folder of the
        unfinished run count too.
    is_race : bool
        True if solvers race in some of the cells.
    claims : tuple of str
        The claims without a decision that name the config.
    """

    config: str
    paper: str
    profile: str
    cells: Mapping[str, float | None]
    n_missing: int
    is_race: bool
    claims: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """The forecast seconds of all cells that have a forecast."""
        return sum(seconds for seconds in self.cells.values() if seconds is not None)

    @property
    def value(self) -> float:
        """The number of claims that the config may decide for each forecast hour."""
        return len(self.claims) / max(self.seconds / 3600.0, _MIN_HOURS)

    def sentence(self) -> str:
        """Return a sentence on the cells to run and the time that they take."""
        from svmbench.experiment.run.session import amount_text
        from svmbench.schema.record import duration_text

        n_cells = len(self.cells)
        n_unknown = sum(seconds is None for seconds in self.cells.values())
        kind = ", races, when the machine is idle" if self.is_race else ""
        phrases = [
            f"{self.config} (profile {self.profile}{kind}): {amount_text(n_cells, 'cell')} "
            f"to run, {self.n_missing:,} without a kept result"
        ]
        phrases.append(duration_text(self.seconds) if n_unknown < n_cells else "")
        phrases.append(f"no record tells how long {n_unknown:,} of them take" if n_unknown else "")
        phrases.append(f"may decide {', '.join(self.claims)}" if self.claims else "")
        return "; ".join(filter(None, phrases))


def run_queue(
    requests: Sequence[Request],
    root: Path,
    *,
    minutes: float | None = None,
    keep: bool = False,
    dry_run: bool = False,
    hooks: Hooks | None = None,
    print_line: Callable[[str], None] = ignore_text,
) -> list[ConfigOutcome]:
    """Run the missing cells of some configs in the order of their value.

    The process has a low priority from then on.

    Parameters
    ----------
    requests : sequence of Request
    root : Path
        Where results are kept.
    minutes : float, optional
        Start no new cell after so many minutes, and stop the running ones.
    keep : bool, default False
        Copy each complete run to the kept results.
    dry_run : bool, default False
        Prepare data sets and print what would run; run nothing.
    hooks : Hooks, optional
        Functions that show the progress; by default none.
    print_line : callable, optional
        Called with a sentence on what each config runs, its forecast time and its actual time.

    Returns
    -------
    list of ConfigOutcome
        Of each config of the queue; one that didn't start is unfinished.

    Raises
    ------
    svmbench.studies.batches.BatchInterruptedError
        If Ctrl-C ended it.
    """
    from svmbench.experiment.run.batch import ConfigOutcome, Job
    from svmbench.papers import judging

    evidence = judging.gather_evidence([root])
    claims = claims_to_decide(evidence)
    end = time.monotonic() + (float("inf") if minutes is None else minutes * 60)
    outcomes: list[ConfigOutcome] = []
    with tempfile.TemporaryDirectory(prefix="svmbench-queue-") as scratch:
        requested: dict[str, tuple[QueueEntry, Request]] = {}
        print_once = _once(print_line)
        for request in requests:
            pair = _plan_entry(request, claims, evidence, (root, Path(scratch)), print_once)
            if pair is not None:
                requested[pair[0].config] = pair
        ordered = in_order([entry for entry, _ in requested.values()])
        for text in queue_lines(ordered):
            print_line(text)
        if dry_run or not ordered:
            return outcomes
        give_way()
        for is_race in (False, True):
            part = [entry for entry in ordered if entry.is_race == is_race]
            jobs = [Job(requested[entry.config][1], entry.seconds) for entry in part]
            if not jobs:
                continue
            is_possible = not is_race or wait_for_idle(end, print_line)
            minutes_left = None if minutes is None else (end - time.monotonic()) / 60.0
            if not is_possible or (minutes_left is not None and minutes_left <= 0):
                outcomes += [ConfigOutcome(job) for job in jobs]
                continue
            interrupted = None
            try:
                ended = run_batch(jobs, minutes_left, hooks, shared=False)
            except BatchInterruptedError as error:
                interrupted, ended = error, error.outcomes
            for entry, outcome in zip(part, ended, strict=True):
                outcomes.append(outcome)
                for text in _lines_after_run(entry, outcome, root, keep=keep):
                    print_line(text)
            if interrupted:
                raise interrupted
    return outcomes


def _once(print_line: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that prints each line once; configs may lack the same data sets."""
    printed: set[str] = set()

    def print_once(line: str) -> None:
        if line not in printed:
            printed.add(line)
            print_line(line)

    return print_once


def claims_to_decide(evidence: Evidence) -> dict[str, list[str]]:
    """Return the claims that kept records don't decide, by the configs that they name.

    Claims are left out if no cell of their own solvers and data is missing.

    Parameters
    ----------
    evidence : Evidence
    """
    from svmbench.papers import judging

    by_config: dict[str, list[str]] = {}
    for verdict in judging.judge(judging.read_all_claims(), evidence):
        if not verdict.is_decided and verdict.missing_cells != 0:
            for config in verdict.claim.configs:
                by_config.setdefault(config, []).append(verdict.claim.id)
    return by_config


def _plan_entry(
    request: Request,
    claims: Mapping[str, list[str]],
    evidence: Evidence,
    folders: tuple[Path, Path],
    print_line: Callable[[str], None],
) -> tuple[QueueEntry, Request] | None:
    """Return the entry of a config, with a request that reuses its kept results.

    `folders` are the folder of kept results, and one for decompressed copies of them.
    """
    from svmbench.experiment.run.session import plan_run
    from svmbench.report.output import kept

    try:
        run_plan = plan_run(request, print_line=print_line)
    except SvmbenchError as error:
        print_line(f"{Path(request.config).stem}: {error}")
        return None
    name = run_plan.plan.name
    root, scratch = folders
    kept_solvers: dict[str, list[frozenset[str]]] = {}
    done: set[str] = set()
    reuse: list[Path] = []
    for (config, profile), kept_folders in kept_by_config(root).items():
        for folder in kept_folders if config == name else ():
            if profile == request.profile:
                for identity, solvers in solvers_in_results(folder).items():
                    kept_solvers.setdefault(identity, []).extend(solvers)
            keys = {line["key"] for line in results_in(folder)}
            planned = keys & {cell.key for cell in run_plan.cells}
            done |= planned
            if planned and folder.resolve() != run_plan.path.resolve():
                copy = scratch / f"{name}-{len(reuse)}"
                reuse.append(kept.decompress(folder, copy, without=keys - planned))
    if not run_plan.cells:
        return None
    is_begun = exists_in_results(run_plan.path / RECORDS)
    here = {line["key"] for line in results_in(run_plan.path)} if is_begun else set()
    timeout_s = run_plan.plan.config.timeout_s

    def forecast(cell: Cell) -> float | None:
        seconds = evidence.forecaster.seconds(planned_work(cell, name))
        return None if seconds is None else min(seconds, timeout_s)

    entry = queue_entry(
        name, run_plan.cells, kept_solvers, done, here, claims.get(name, ()), forecast
    )
    return None if entry is None else (entry, replace(request, reuse=tuple(reuse)))


def queue_entry(
    config: str, cells: Sequence[Cell], solvers_by_identity: Mapping[str, list[frozenset[str]]],
    done: Iterable[str], here: Iterable[str], claims: Sequence[str],
    forecast: Callable[[Cell], float | None],
) -> QueueEntry | None:  # fmt: skip
    """Return the entry of a config; None if every cell has a kept result.

    Parameters
    ----------
    config : str
    cells : sequence of Cell
        The cells of its plan.
    solvers_by_identity : dict of str to list of frozenset of str
        For each cell's identity without solvers: the solver sets with a kept result, of any age.
    done : iterable of str
        Keys of cells that have a kept result by today's code.
    here : iterable of str
        Keys of cells whose results an earlier run of the queue has left in the run folder.
    claims : sequence of str
        The claims without a decision that name the config.
    forecast : callable
        Returns the forecast seconds of a cell; None without a record to forecast from.
    """
    finished = set(done)
    todo = [cell for cell in cells if cell.status == "planned" and cell.key not in finished]
    # Blocks may share a cell, whose record names one of them.
    kept = {cell.key for cell in todo if has_result(cell, solvers_by_identity)}
    missing = {cell.key for cell in todo} - kept
    if not missing:
        return None
    shown, begun = cells[0].identity, set(here)
    todo = [cell for cell in todo if cell.key not in begun]
    return QueueEntry(
        config=config,
        paper=shown["paper"],
        profile=shown["profile"],
        cells={cell.key: forecast(cell) for cell in todo},
        n_missing=len(missing),
        is_race=any("racers" in cell.spec for cell in todo),
        claims=tuple(claims),
    )


def in_order(entries: Sequence[QueueEntry]) -> list[QueueEntry]:
    """Sort configs: without races first, then by the claims that an hour may decide.

    Parameters
    ----------
    entries : sequence of QueueEntry
    """
    return sorted(
        entries, key=lambda entry: (entry.is_race, -entry.value, entry.seconds, entry.config)
    )


def queue_lines(entries: Sequence[QueueEntry]) -> list[str]:
    """Return a line for each config of the queue, and one with the total time.

    Parameters
    ----------
    entries : sequence of QueueEntry
        In order.
    """
    from svmbench.experiment.run.session import amount_text
    from svmbench.schema.record import duration_text

    if not entries:
        return ["no cell is missing"]
    total: Any = sum(entry.seconds for entry in entries)
    n_cells = sum(len(entry.cells) for entry in entries)
    return [
        *(entry.sentence() for entry in entries),
        f"together {amount_text(n_cells, 'cell')}, {duration_text(total)}",
    ]


def give_way() -> None:
    """Run at low priority, with all processes that are started from here on."""
    os.nice(max(0, 10 - os.nice(0)))


def wait_for_idle(end: float, print_line: Callable[[str], None] = ignore_text) -> bool:
    """Wait until nothing else runs on this machine; return False if the end comes first.

    Parameters
    ----------
    end : float
        On the clock of `time.monotonic`.
    print_line : callable, optional
        Called once with a sentence that races wait.
    """
    is_printed = False
    while os.getloadavg()[0] >= IDLE_LOAD:
        if not is_printed:
            print_line("races wait until nothing else runs on this machine")
            is_printed = True
        if time.monotonic() + _LOAD_INTERVAL_S >= end:
            return False
        time.sleep(_LOAD_INTERVAL_S)
    return time.monotonic() < end


def _lines_after_run(
    entry: QueueEntry, outcome: ConfigOutcome, root: Path, *, keep: bool
) -> Iterator[str]:
    """Yield how long a config took beside its forecast; keep its folder if asked for."""
    yield from filter(None, [time_beside_forecast(entry, outcome)])
    if keep and outcome.path is not None:
        losses = {
            folder: n_lost(solvers_in_results(folder), outcome.path)
            for folder in kept_by_config(root).get((entry.config, entry.profile), [])
            if folder.resolve() != outcome.path.resolve()
            and (folder / COMPRESSED_RECORDS).is_file()
        }
        yield from filter(None, [keep_complete(outcome, entry, root, losses)])


def time_beside_forecast(entry: QueueEntry, outcome: ConfigOutcome) -> str:
    """Return how long the cells of a config took beside their forecast; "" if none has run.

    Parameters
    ----------
    entry : QueueEntry
    outcome : ConfigOutcome
    """
    from svmbench.experiment.run.session import amount_text
    from svmbench.report.reading.records import result_lines
    from svmbench.schema.record import duration_text

    if outcome.path is None:
        return ""
    took = {
        line["key"]: float(line.get("wall_s") or 0.0)
        for line in result_lines(outcome.path)
        if line["kind"] == "cell" and line["status"] == "ok" and line["key"] in entry.cells
    }
    known = {key: seconds for key in took if (seconds := entry.cells[key]) is not None}
    if not took:
        return ""
    measured, expected = sum(took[key] for key in known), sum(known.values())
    factor = f", {measured / expected:.2f} times the forecast" if expected > 0 else ""
    return (
        f"{entry.config}: {amount_text(len(took), 'cell')} took "
        f"{duration_text(sum(took.values()))}; forecast for {len(known):,} "
        f"of them {duration_text(expected)}{factor}"
    )


def keep_complete(
    outcome: ConfigOutcome, entry: QueueEntry, root: Path, losses: Mapping[Path, int]
) -> str:
    """Copy the folder of a complete config to the kept results; return a sentence about it.

    The copy replaces a kept folder of the same config and profile if none of its results is lost. A
    folder of another profile stays; the copy then gets the profile in its name.

    Parameters
    ----------
    outcome : ConfigOutcome
    entry : QueueEntry
    root : Path
        Where results are kept.
    losses : dict of Path to int
        The kept folders of the config and profile, and how many results of each would be lost.
    """
    from svmbench.report.output import kept

    if outcome.path is None or outcome.error:
        return ""
    if outcome.is_unfinished:
        return f"{outcome.path}: not complete, so it is not kept yet"
    for folder, lost in losses.items():
        if lost:
            return f"{folder}: stays as it is, {lost} of its results are not in {outcome.path}"
    target = next(iter(losses)) if losses else root / entry.paper / entry.config
    if not losses and target.exists():
        target = target.with_name(f"{entry.config}-{entry.profile}")
    try:
        kept.keep_run(outcome.path, target)
    except SvmbenchError as error:
        return str(error)
    return f"{target}: kept"
