"""Curves of values along a dimension, a parameter or a metric.

The x axis is logarithmic if its values grow by factors (1e-6, 1e-5 … or 1, 2, 4 …): on a linear
axis, nearly all of them would overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svmbench.report.plots.axes import draw_crossings, draw_points, log_ticks
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import Panel, PlotData
from svmbench.report.reading.wording import is_time_ratio, is_timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Smallest ratio of the largest to the smallest value for a logarithmic axis. The median must also
#: be below a quarter of their sum, so that it isn't near the middle of a linear axis.
LOG_AXIS_RATIO = 50.0


def grows_by_factors(values: list[Any]) -> bool:
    """Return True if a logarithmic axis separates the values better than a linear one."""
    if len(values) < 3 or not all(isinstance(v, int | float) and v > 0 for v in values):
        return False
    low, middle, high = min(values), sorted(values)[len(values) // 2], max(values)
    return high >= LOG_AXIS_RATIO * low and middle < 0.25 * (low + high)


def draw_curve(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel of curves."""
    for series in panel.series:
        if series.points:
            draw_points(
                axes, series, styles[series.name], line=True, hollow=hollow, text=series.name
            )
    draw_crossings(axes, panel)
    if is_time_ratio(plot.y):
        axes.axhline(1.0, color="black", linewidth=1.1, linestyle=(0, (4, 2)))
    if is_timing(plot.y) and any(series.points for series in panel.series):
        axes.set_ylim(bottom=0)
    if grows_by_factors([point.x for series in panel.series for point in series.points]):
        axes.set_xscale("log")
        log_ticks(axes, "x")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)


KIND = Kind(x="rows", y="train_time_s", draw=draw_curve, columns=3, is_sorted=True)
