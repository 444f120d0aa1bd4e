"""Run the cells of a plan, and count their statuses.

Each cell runs in a process of its own with hard limits. Only the parent process writes records,
each before the next cell starts. A cell that hangs or crashes loses only its own result.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from svmbench.base.interrupts import sigterm_as_interrupt
from svmbench.experiment.plan.planner import Plan
from svmbench.experiment.run.loop import Listener, Options, RunLoop, Silent
from svmbench.experiment.run.record_file import RunFolder
from svmbench.experiment.settings.cells import Cell
from svmbench.schema.record import FAILED, CellRecord, PointRecord, is_disturbed

__all__ = ["RETRIED_STATUSES", "Listener", "Options", "RunSummary", "Silent", "due", "execute"]

#: The statuses that each value of ``--retry`` runs again. ``disturbed`` chooses by times, not by
#: status (see `due`).
RETRIED_STATUSES: dict[str, set[str]] = {
    "none": set(),
    "failed": {*FAILED} - {"timeout"},
    "timeout": {"timeout"},
    "all": {*FAILED},
    "disturbed": set(),
}


@dataclass
class RunSummary:
    """The number of cells of each status at the end of a run, and whether it was interrupted."""

    counts: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def failed(self) -> int:
        """The number of cells that ran without a result."""
        return sum(self.counts.get(s, 0) for s in FAILED)


def execute(
    plan: Plan,
    cells: list[Cell],
    folder: RunFolder,
    options: Options,
    listener: Listener | None = None,
) -> RunSummary:
    """Run the cells that are due (see `due`); count all of the plan's cells by status.

    Parameters
    ----------
    plan : Plan
    cells : list of Cell
        The plan's cells to run now (``--only``).
    folder : RunFolder
        The results folder, open for writing.
    options : Options
    listener : Listener, optional
    """
    wanted = due(cells, folder.cells, folder.points, options.retry)
    interrupted = False
    if wanted:
        try:
            with sigterm_as_interrupt():
                run = _kind_of_run(options)(plan, folder, options, listener or Silent())
                run.run_cells(sorted(wanted, key=lambda c: c.cost))
        except KeyboardInterrupt:
            interrupted = True
    counts: dict[str, int] = {}
    for cell in plan.cells:
        status = cell.status
        if status == "planned":
            record = folder.cells.get(cell.key)
            status = "not run" if record is None else record["status"]
        counts[status] = counts.get(status, 0) + 1
    if not interrupted and not counts.get("not run"):
        shutil.rmtree(folder.scratch / "shared", ignore_errors=True)
    return RunSummary(counts=counts, interrupted=interrupted)


def _kind_of_run(options: Options) -> type[RunLoop]:
    if not options.cluster:
        return RunLoop
    from svmbench.experiment.run.cluster import ClusterRun

    return ClusterRun


def due(
    cells: list[Cell],
    records: Mapping[str, CellRecord],
    points: Mapping[str, Mapping[str, PointRecord]],
    retry: str = "none",
) -> list[Cell]:
    """Return the cells without a record or ``not run``, and those that `retry` tries again.

    Of several cells with the same key, which blocks may share, only the first is returned.
    ``disturbed`` adds the cells whose training shared the CPU with other programs, except those
    with recorded points that have `dimensions`, as the points of a parameter path have. Such a
    point is itself a result (see `PointRecord`), and is never timed again. Races are left out, too:
    their records have times of each solver, and none of the cell.

    Parameters
    ----------
    cells : list of Cell
    records : mapping of str to CellRecord
        The newest record of each cell key in the results folder.
    points : mapping of str to mapping of str to PointRecord
        The recorded points of each cell key, by the point's own id.
    retry : str
        A key of `RETRIED_STATUSES`.
    """
    again = {"not run"} | RETRIED_STATUSES[retry]
    chosen: dict[str, Cell] = {}
    for cell in cells:
        record = records.get(cell.key)
        if cell.status == "planned" and (
            record is None
            or record["status"] in again
            or (retry == "disturbed" and _has_disturbed_times(record, points.get(cell.key, {})))
        ):
            chosen.setdefault(cell.key, cell)
    return list(chosen.values())


def _has_disturbed_times(record: CellRecord, points: Mapping[str, PointRecord]) -> bool:
    """Return True if a cell's own training shared the CPU with other programs."""
    if any("dimensions" in point for point in points.values()):
        return False
    return is_disturbed(record.get("metrics", {}), contended=record.get("contended", False))
