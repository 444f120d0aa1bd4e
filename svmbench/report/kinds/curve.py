"""Values along a dimension, a parameter or a metric, on linear axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svmbench.report.axes import draw_points
from svmbench.report.curves import Curves, Panel
from svmbench.report.kinds import Kind
from svmbench.report.wording import is_timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    """Draw one panel."""
    for series in panel.series:
        if series.points:
            draw_points(
                axes, series, styles[series.name], line=True, hollow=hollow, text=series.name
            )
    if is_timing(curves.y) and any(series.points for series in panel.series):
        axes.set_ylim(bottom=0)
    axes.set_xlabel(curves.x_label)
    axes.set_ylabel(curves.y_label)


KIND = Kind(x="rows", y="train_time_s", draw=draw, columns=3, is_sorted=True)
