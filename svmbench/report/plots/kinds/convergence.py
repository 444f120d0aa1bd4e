"""Distance of solvers from the best objective, against CPU seconds or work.

A solver with a trace (``"trace": [[CPU seconds, work, objective], …]`` in its record) is drawn as a
curve. A solver without a trace is drawn as a point for each cell, so that a series of tolerances
gives a curve, too. If each tolerance has a trace, only the last trace is drawn, because it contains
the others. The best objective is the lowest value of the panel; it isn't on the logarithmic axis.
All solvers of the block must minimise the same function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from svmbench.base.errors import DamagedResultsError
from svmbench.report.numbers.summary import value_of
from svmbench.report.plots.axes import COLOURS, draw_points, log_ticks
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import Panel, PlotData, PlotPoint, Series, by_panel
from svmbench.report.reading.records import CellResult, Run
from svmbench.schema.specs import PlotSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: For each axis: the column of a trace, and the metric of a cell without a trace.
_AXES = {"cpu_time_s": (0, "cpu_time_s"), "work": (1, "n_iter")}


#: A curve with more points has no markers, which would hide the lines.
MAX_MARKED_POINTS = 40


def collect_traces(run: Run, spec: PlotSpec) -> PlotData:
    """Collect a curve for each solver: the distance from the best objective of its panel."""
    if spec.x not in _AXES:
        raise DamagedResultsError(f"plot {spec.name!r}: x of a convergence is {' or '.join(_AXES)}")
    cells = [cell for cell in run.block_cells(spec.block) if spec.dataset in (None, cell.dataset)]
    # Parameters of a solver distinguish points of a curve, not panels.
    placed = {spec.series, *(n for cell in cells for n in cell.dimensions if "." in n)}
    panels = []
    for title, members in by_panel(cells, placed).items():
        folds = dict.fromkeys(cell.fold for cell in members)
        for fold in folds:
            panel = _panel(spec, title, [cell for cell in members if cell.fold == fold])
            if panel.series:
                name = (
                    f"{title}, fold {(fold or 0) + 1}".removeprefix(", ")
                    if len(folds) > 1
                    else title
                )
                panels.append(Panel(name, panel.series))
    lacking = [
        f"{cell.dataset} ({cell.solver})"
        for cell in cells
        if cell.status == "ok" and not _path(spec, cell)
    ]
    return PlotData(
        spec,
        tuple(panels),
        cells,
        str(spec.y),
        x_label=run.label(str(spec.x)),
        y_label=run.label(str(spec.y)),
        lacking=tuple(dict.fromkeys(lacking)),
    )


def _panel(spec: PlotSpec, title: str, cells: Sequence[CellResult]) -> Panel:
    lowest = [value for cell in cells for _, value in _path(spec, cell)]
    lowest += [v for cell in cells if (v := value_of(cell, "objective")) is not None]
    best = min(lowest, default=0.0)
    scale = abs(best) or 1.0
    curves: dict[str, list[PlotPoint]] = {}
    last = {_name(spec, cell): cell for cell in cells if cell.trace}
    for cell in cells:
        name = _name(spec, cell)
        if name in last and last[name] is not cell:
            continue
        for x, value in _path(spec, cell):
            excess = (value - best) / scale
            if x > 0.0 and excess > 0.0:
                # Other programs disturb times, but not work.
                timed = spec.x == "cpu_time_s"
                busy = (timed and cell.contended, False, timed and cell.disturbed)
                curves.setdefault(name, []).append(PlotPoint(x, excess, excess, excess, *busy))
    series = [
        Series(name, tuple(sorted(points, key=lambda p: p.x))) for name, points in curves.items()
    ]
    return Panel(title, tuple(series))


def _name(spec: PlotSpec, cell: CellResult) -> str:
    return str(cell.value(spec.series)) if spec.series else str(cell.solver)


def _path(spec: PlotSpec, cell: CellResult) -> list[tuple[float, float]]:
    """Return the pairs (seconds or work, objective) of a trace; one pair without a trace."""
    column, instead = _AXES[str(spec.x)]
    if cell.status != "ok":
        return []
    if cell.trace:
        pairs = [(float(row[column]), float(row[2])) for row in cell.trace]
        return [(x, value) for x, value in pairs if math.isfinite(value)]
    x, value = value_of(cell, instead), value_of(cell, "objective")
    return [(x, value)] if x is not None and value is not None else []


def draw_convergence(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel of curves over time or work."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for series in panel.series:
        style = styles[series.name]
        if len(series.points) > MAX_MARKED_POINTS:
            xs, ys = [p.x for p in series.points], [p.y for p in series.points]
            axes.plot(xs, ys, color=COLOURS[style % len(COLOURS)], label=series.name)
            continue
        draw_points(axes, series, style, line=True, hollow=hollow, text=series.name)
    log_ticks(axes, "x")
    log_ticks(axes, "y")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)


KIND = Kind(
    x="cpu_time_s",
    y="excess_objective",
    draw=draw_convergence,
    collect=collect_traces,
    axes=tuple(_AXES),
    note="above the lowest objective of each panel, which is not on the axis",
)
