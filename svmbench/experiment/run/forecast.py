"""Forecast of a run: its cells, the data sets to fetch, and the time of all cells together.

The time of a cell is that of similar cells in the run's own folder, else the one that the caller
knows from records of other runs. A forecast fetches, prepares and writes nothing.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from svmbench import data
from svmbench.base.errors import SvmbenchError
from svmbench.base.files import exists_in_results
from svmbench.experiment.run.execute import due
from svmbench.experiment.run.record_file import RUNS, check_reusable, records_of
from svmbench.experiment.run.session import ABSENT_CELLS, RunPlan, amount_text
from svmbench.experiment.settings.cells import Cell, protocol_settings
from svmbench.schema.record import (
    CELL_OVERHEAD_S,
    CellRecord,
    Identity,
    PointRecord,
    duration_text,
)

#: Seconds of one pass of a linear solver per value of the inputs. It sets a config's share of a
#: budget if no record tells its time, and is far too small for kernel solvers.
SECONDS_PER_VALUE = 1e-6

_NOWHERE = "not available here, and without an official address"
#: What must be done to have a data set, by its status.
_SOURCES = {
    "built-in": "to prepare first, generated here or scikit-learn's",
    "mirror": "to prepare first, from the mirror",
    "official": "to fetch first, from the official addresses, by 'svmbench fetch'",
    "nowhere": _NOWHERE,
}


@dataclass(frozen=True)
class Forecast:
    """What a run would do, and how long it takes.

    Attributes
    ----------
    lines : tuple of str
        The cells, the missing data sets and the time, as sentences.
    n_cells : int
        Number of cells that would run.
    seconds : float
        Expected wall time of the cells that would run and whose time is known from records; a
        cell counts at most its time limit.
    n_unknown : int
        Number of cells that would run and whose time no record tells.
    """

    lines: tuple[str, ...]
    n_cells: int = 0
    seconds: float = 0.0
    n_unknown: int = 0


def in_all(forecasts: Sequence[Forecast]) -> str:
    """Return the cells and the time of several runs, one after another, in a sentence."""
    n_cells = sum(run.n_cells for run in forecasts)
    seconds = sum(run.seconds for run in forecasts)
    n_unknown = sum(run.n_unknown for run in forecasts)
    text = (
        f"in all {amount_text(len(forecasts), 'config')} with {amount_text(n_cells, 'cell')} to run"
    )
    if n_cells > n_unknown:
        text += f": {duration_text(seconds)} by recorded times"
    return f"{text}; no record tells how long {n_unknown:,} of them take" if n_unknown else text


def unrecorded(_cell: Cell) -> None:
    """Return None: no record tells how long a cell takes."""


def forecast(
    run_plan: RunPlan, *, recorded: Callable[[Cell], float | None] = unrecorded
) -> Forecast:
    """Return the forecast of a run.

    Parameters
    ----------
    run_plan : RunPlan
        Its plan is made without preparing data sets.
    recorded : callable, optional
        Returns the seconds of a cell according to records of other runs, or None if they don't
        tell. Default: it returns None.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If a folder can't be reused.
    """
    request, plan, cells, folder = run_plan.request, run_plan.plan, run_plan.cells, run_plan.path
    options = request.options(plan)
    of_folder, points = _records(folder)
    records = {} if request.fresh else dict(of_folder)
    points = {} if request.fresh else points
    for other in request.reuse:
        check_reusable(other, folder)
        reused, reused_points = _records(other)
        for cell in due(cells, records, points, "all"):
            if cell.key in reused and reused[cell.key]["status"] == "ok":
                records[cell.key] = reused[cell.key]
                points[cell.key] = reused_points.get(cell.key, {}) | points.get(cell.key, {})
    done = {key for key, record in records.items() if record["status"] != "not run"}
    absent = _by_source([cell for cell in cells if cell.status == "not run"], request.mirror)
    nowhere = absent.get(_NOWHERE, ())
    awaited = [
        cell
        for cell in cells
        if cell.status == "not run" and cell.spec and cell.identity["dataset"] not in nowhere
    ]
    here = due(cells, records, points, options.retry)
    todo = here + awaited
    lines = [
        f"{plan.name} ({plan.profile}): {amount_text(len(cells), 'cell')}, {len(todo):,} to run,"
        f" {sum(cell.key in done for cell in cells):,} with a record"
    ]
    if awaited:
        lines[0] += (
            f"; {len(awaited):,} of them, of data sets to fetch or prepare first, are counted by"
            f" registered sizes (a run counts {ABSENT_CELLS})"
        )
    lines += [f"  {line}" for line in _counted(cells, nowhere)]
    lines += [f"{source}: {', '.join(names)}" for source, names in absent.items()]
    unplanned = {c.identity["dataset"] for c in cells if c.status == "not run" and not c.spec}
    if unplanned:
        lines.append(
            f"the cells of {', '.join(unplanned)} are counted once for each solver, until their"
            " rows are known"
        )
    if not todo:
        return Forecast((*lines, "nothing to run" if absent else "nothing left to run"))
    timeout_s = options.timeout_s
    times = _seconds(todo, _medians((of_folder | records).values()), recorded)
    known = [min(seconds, timeout_s) for seconds in times if seconds is not None]
    seconds = sum(known) / options.jobs
    clauses = [f"{duration_text(seconds)} by recorded times"] if known else []
    if len(known) < len(times):
        rest = f"{len(times) - len(known):,} of them take" if known else "they take"
        clauses.append(f"no record tells how long {rest}")
    if awaited:
        which = f"{len(awaited):,} of them wait" if here else "they wait"
        later = [min(seconds, timeout_s) for seconds in times[len(here) :] if seconds is not None]
        of_it = f" ({duration_text(sum(later) / options.jobs)} of it)" if here and later else ""
        clauses.append(f"{which} for data sets that must be fetched or prepared first{of_it}")
    if left_out := [*nowhere, *unplanned.difference(nowhere)]:
        clauses.append(f"without {amount_text(len(left_out), 'data set')} ({', '.join(left_out)})")
    clauses.append(f"a cell ends after {timeout_s:,g} s at the latest")
    lines.append(f"{amount_text(len(todo), 'cell')} to run: {'; '.join(clauses)}")
    return Forecast(tuple(lines), len(todo), seconds, len(times) - len(known))


def expected_seconds_of(
    cells: list[Cell],
    folder: Path,
    *,
    jobs: int = 1,
    retry: str = "none",
    older_records: Iterable[CellRecord] = (),
) -> float:
    """Return the expected seconds of the cells that are due.

    Parameters
    ----------
    cells : list of Cell
    folder : Path
        The results folder.
    jobs : int, default=1
        Number of cells that run at the same time.
    retry : str, default="none"
        Which recorded cells run again: a key of `RETRIED_STATUSES`.
    older_records : iterable of dict, optional
        Kept records of the same config and profile. Their times are used for cells without a
        similar cell in `folder`.
    """
    records, points = _records(folder)
    todo = due(cells, records, points, retry)
    times = _seconds(todo, _medians(older_records) | _medians(records.values()), unrecorded)
    return (
        sum(
            CELL_OVERHEAD_S + cell.cost * SECONDS_PER_VALUE if seconds is None else seconds
            for cell, seconds in zip(todo, times, strict=True)
        )
        / jobs
    )


def _seconds(
    cells: list[Cell], measured: dict[str, float], recorded: Callable[[Cell], float | None]
) -> list[float | None]:
    """Return the seconds of each cell: of similar cells, or of other runs; None if unknown."""
    similar = [measured.get(_like(cell.identity)) for cell in cells]
    return [
        recorded(cell) if seconds is None else CELL_OVERHEAD_S + seconds
        for cell, seconds in zip(cells, similar, strict=True)
    ]


def _records(folder: Path) -> tuple[dict[str, CellRecord], dict[str, dict[str, PointRecord]]]:
    """Return the newest record and the recorded points of each cell key; nothing is written."""
    cells: dict[str, CellRecord] = {}
    points: dict[str, dict[str, PointRecord]] = {}
    for record in records_of(folder) if exists_in_results(folder / RUNS) else ():
        if record["kind"] == "point":
            points.setdefault(record["key"], {})[record["point"]] = record
        else:
            cells[record["key"]] = record
    return cells, points


def _counted(cells: list[Cell], nowhere: Container[str]) -> Iterator[str]:
    """Yield a line for each block, data set and status: the number of cells and the solvers."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for cell in cells:
        group = (cell.identity["block"], cell.identity["dataset"], cell.status)
        solver = str(cell.identity["solver"]).replace("|", " / ")
        chooser = protocol_settings(cell.spec).get("choose_with", {}).get(solver)
        solver += f" at the point that {chooser} chooses" if chooser else ""
        counts.setdefault(group, Counter())[solver] += 1
    for (block, dataset, status), solvers in counts.items():
        absent = "no data" if dataset in nowhere else "data not here yet"
        suffix = {"planned": "", "not run": f", {absent}"}.get(status, f", {status}")
        names = f" ({', '.join(filter(None, solvers))})" if any(solvers) else ""
        number = amount_text(sum(solvers.values()), "cell")
        yield f"{block} · {dataset}: {number}{suffix}{names}"


def _by_source(cells: list[Cell], mirror: str | None) -> dict[str, list[str]]:
    """Return the data sets of some cells, by a phrase that says where they come from.

    A file of the user's own is left out, since there is nothing to fetch.
    """
    names_by_source: dict[str, list[str]] = {}
    for name in dict.fromkeys(cell.identity["dataset"] for cell in cells):
        if name.startswith("openml:"):
            source = "to download from OpenML first, by 'svmbench describe' or the run itself"
        else:
            try:
                source = _SOURCES.get(data.status(name, mirror), "")
            except SvmbenchError:
                continue
        if source:
            names_by_source.setdefault(source, []).append(name)
    return names_by_source


def _like(fields: Identity) -> str:
    """Return the identity of a cell without its fold; similar cells share it."""
    names = ("block", "dataset", "solver", "kernel", "size", "n_features_kept", "dimensions")
    return json.dumps([fields.get(name) for name in names], sort_keys=True)


def _medians(records: Iterable[CellRecord]) -> dict[str, float]:
    """Return the median seconds of similar cells, by the identity that they share."""
    walls: dict[str, list[float]] = {}
    for record in records:
        if isinstance(record.get("wall_s"), int | float):
            walls.setdefault(_like(record), []).append(float(record["wall_s"]))
    return {like: statistics.median(each) for like, each in walls.items()}
