"""How far solvers are above the best objective, against CPU seconds or work.

A solver with a trace (``"trace": [[CPU seconds, work, objective], …]`` in its record) is a curve;
one without is a point for each of its cells, so that a ladder of tolerances is a curve too. Of a
solver that has a trace at every rung of a ladder the last rung's is drawn: the others are parts of
it. The best objective is the lowest of the panel, in a trace or at a solution: it has no place on
the logarithmic axis itself. All solvers of the block have to minimise the same function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from svmbench.base.errors import DamagedResultsError
from svmbench.report.axes import COLOURS, draw_points, log_ticks
from svmbench.report.curves import Curves, Panel, Point, Series, by_panel
from svmbench.report.kinds import Kind
from svmbench.report.records import Cell, Run
from svmbench.report.summary import measured
from svmbench.schema.specs import PlotSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Columns of a trace by the name of the axis; beside them, what a cell without one has instead.
_AXES = {"cpu_time_s": (0, "cpu_time_s"), "work": (1, "n_iter")}


#: A curve of more points is a line without markers, which would hide it and what lies below.
MOST_MARKED = 40


def collect(run: Run, spec: PlotSpec) -> Curves:
    """Return a curve for each solver of each panel, of what is above the panel's best objective."""
    if spec.x not in _AXES:
        raise DamagedResultsError(f"plot {spec.name!r}: x of a convergence is {' or '.join(_AXES)}")
    cells = [cell for cell in run.block_cells(spec.block) if spec.dataset in (None, cell.dataset)]
    # A solver's own parameters tell the rungs of its ladder apart, not panels.
    placed = {spec.series, *(n for cell in cells for n in cell.dimensions if "." in n)}
    panels = []
    for title, members in by_panel(cells, placed).items():
        folds = dict.fromkeys(cell.fold for cell in members)
        for fold in folds:
            panel = _panel(spec, title, [cell for cell in members if cell.fold == fold])
            if panel.series:
                name = f"{title}, fold {fold}".removeprefix(", ") if len(folds) > 1 else title
                panels.append(Panel(name, panel.series))
    lacking = [
        f"{cell.dataset} ({cell.solver})"
        for cell in cells
        if cell.status == "ok" and not _path(spec, cell)
    ]
    return Curves(
        spec,
        tuple(panels),
        cells,
        str(spec.y),
        x_label=run.label(str(spec.x)),
        y_label=run.label(str(spec.y)),
        lacking=tuple(dict.fromkeys(lacking)),
    )


def _panel(spec: PlotSpec, title: str, cells: Sequence[Cell]) -> Panel:
    lowest = [value for cell in cells for _, value in _path(spec, cell)]
    lowest += [v for cell in cells if (v := measured(cell, "objective")) is not None]
    best = min(lowest, default=0.0)
    scale = abs(best) or 1.0
    curves: dict[str, list[Point]] = {}
    last = {_name(spec, cell): cell for cell in cells if cell.trace}
    for cell in cells:
        name = _name(spec, cell)
        if name in last and last[name] is not cell:
            continue
        for x, value in _path(spec, cell):
            excess = (value - best) / scale
            if x > 0.0 and excess > 0.0:
                # Work is the same on a busy machine.
                timed = spec.x == "cpu_time_s"
                busy = (timed and cell.contended, False, timed and cell.disturbed)
                curves.setdefault(name, []).append(Point(x, excess, excess, excess, *busy))
    series = [
        Series(name, tuple(sorted(points, key=lambda p: p.x))) for name, points in curves.items()
    ]
    return Panel(title, tuple(series))


def _name(spec: PlotSpec, cell: Cell) -> str:
    return str(cell.value(spec.series)) if spec.series else str(cell.solver)


def _path(spec: PlotSpec, cell: Cell) -> list[tuple[float, float]]:
    """Return (seconds or work, objective) along a cell's way; one pair without a trace."""
    column, instead = _AXES[str(spec.x)]
    if cell.status != "ok":
        return []
    if cell.trace:
        pairs = [(float(row[column]), float(row[2])) for row in cell.trace]
        return [(x, value) for x, value in pairs if math.isfinite(value)]
    x, value = measured(cell, instead), measured(cell, "objective")
    return [(x, value)] if x is not None and value is not None else []


def draw(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    """Draw one panel."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for series in panel.series:
        style = styles[series.name]
        if len(series.points) > MOST_MARKED:
            xs, ys = [p.x for p in series.points], [p.y for p in series.points]
            axes.plot(xs, ys, color=COLOURS[style % len(COLOURS)], label=series.name)
            continue
        draw_points(axes, series, style, line=True, hollow=hollow, text=series.name)
    log_ticks(axes, "x")
    log_ticks(axes, "y")
    axes.set_xlabel(curves.x_label)
    axes.set_ylabel(curves.y_label)


KIND = Kind(
    x="cpu_time_s",
    y="excess_objective",
    draw=draw,
    collect=collect,
    axes=tuple(_AXES),
    note="above the lowest objective of each panel, which is not on the axis",
)
