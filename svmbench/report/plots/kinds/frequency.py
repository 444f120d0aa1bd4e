"""Observed frequencies of hits with intervals, beside claimed and exact frequencies.

A hit is a draw that finds one of the lowest-scoring samples (protocol ``simulate``). The points
have ``hit_pct``, ``hit_low_pct``, ``hit_high_pct``, ``claimed_pct`` and ``expected_pct`` along one
parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svmbench.report.numbers.summary import value_of
from svmbench.report.plots.axes import COLOURS
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import Panel, PlotData, PlotPoint, Series, by_panel
from svmbench.report.reading.records import CellResult, Run
from svmbench.schema.specs import PlotSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Name of the series of observed frequencies; metrics of the other lines by name.
_OBSERVED = "observed"
_LINES = {"claimed": "claimed_pct", "exact": "expected_pct"}


def collect_frequencies(run: Run, spec: PlotSpec) -> PlotData:
    """Collect a panel for each data set and solver, with observed points and two lines."""
    cells = [cell for cell in run.block_cells(spec.block) if spec.dataset in (None, cell.dataset)]
    along = dict.fromkeys(name for cell in cells for name in cell.dimensions if "." in name)
    panels = []
    for title, members in by_panel(cells, set(along)).items():
        known = [
            cell
            for cell in members
            if value_of(cell, "hit_pct") is not None and _places(cell, list(along))
        ]
        if known:
            panels.append(Panel(title, _series(known, list(along))))
    return PlotData(
        spec,
        tuple(panels),
        cells,
        "hit_pct",
        x_label=", ".join(name.rpartition(".")[2].replace("_", " ") for name in along),
        y_label="draws that hit (%)",
        lacking=tuple(
            f"{cell.dataset} ({cell.solver})"
            for cell in cells
            if cell.status == "ok" and cell.dimensions and value_of(cell, "hit_pct") is None
        ),
    )


def _places(cell: CellResult, along: list[str]) -> list[float]:
    """Return the numeric values of a cell along the dimensions."""
    values = [cell.dimensions.get(name) for name in along]
    return [float(value) for value in values if isinstance(value, int | float)]


def _series(cells: list[CellResult], along: list[str]) -> tuple[Series, ...]:
    points: dict[str, list[PlotPoint]] = {name: [] for name in (_OBSERVED, *_LINES)}
    for cell in cells:
        x = _places(cell, along)[0]
        value, low, high = (
            value_of(cell, name) for name in ("hit_pct", "hit_low_pct", "hit_high_pct")
        )
        if value is not None:
            interval = (value if low is None else low, value if high is None else high)
            points[_OBSERVED].append(PlotPoint(x, value, *interval, False, False))
        for name, metric in _LINES.items():
            line = value_of(cell, metric)
            if line is not None:
                points[name].append(PlotPoint(x, line, line, line, False, False))
    return tuple(
        Series(name, tuple(sorted(points_of_series, key=lambda point: point.x)))
        for name, points_of_series in points.items()
    )


def draw_frequency(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel of observed frequencies."""
    for series in panel.series:
        colour = COLOURS[styles[series.name] % len(COLOURS)]
        xs, ys = [point.x for point in series.points], [point.y for point in series.points]
        if series.name == _OBSERVED:
            reach = [
                [point.y - point.low for point in series.points],
                [point.high - point.y for point in series.points],
            ]
            axes.errorbar(
                xs,
                ys,
                yerr=reach,
                fmt="o",
                markersize=4,
                capsize=3,
                color=colour,
                label=series.name,
            )
        else:
            line = "--" if series.name == "claimed" else "-"
            axes.plot(xs, ys, linestyle=line, linewidth=1.1, color=colour, label=series.name)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)


KIND = Kind(
    x="solver.n_candidates",
    y="hit_pct",
    draw=draw_frequency,
    collect=collect_frequencies,
    is_sorted=True,
    axes=(),
    bars="95 % intervals (Clopper and Pearson)",
)
