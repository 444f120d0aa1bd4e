"""Values along a dimension, a parameter or a metric.

The axis along is logarithmic where its values grow by factors (1e-6, 1e-5 … or 1, 2, 4 …): on a
linear one all but the last few of them would lie on each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svmbench.report.axes import draw_crossings, draw_points, log_ticks
from svmbench.report.curves import Curves, Panel
from svmbench.report.kinds import Kind
from svmbench.report.wording import is_timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Values grow by factors where the largest is so many times the smallest, and their middle one is
#: nearer to the middle of the two by ratio than by difference.
MANY_TIMES = 50.0


def grows_by_factors(values: list[Any]) -> bool:
    """Return whether values are better told apart by their ratios than by their differences."""
    if len(values) < 3 or not all(isinstance(v, int | float) and v > 0 for v in values):
        return False
    low, middle, high = min(values), sorted(values)[len(values) // 2], max(values)
    return high >= MANY_TIMES * low and middle < 0.25 * (low + high)


def draw(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    """Draw one panel."""
    for series in panel.series:
        if series.points:
            draw_points(
                axes, series, styles[series.name], line=True, hollow=hollow, text=series.name
            )
    draw_crossings(axes, panel)
    if is_timing(curves.y) and any(series.points for series in panel.series):
        axes.set_ylim(bottom=0)
    if grows_by_factors([point.x for series in panel.series for point in series.points]):
        axes.set_xscale("log")
        log_ticks(axes, "x")
    axes.set_xlabel(curves.x_label)
    axes.set_ylabel(curves.y_label)


KIND = Kind(x="rows", y="train_time_s", draw=draw, columns=3, is_sorted=True)
