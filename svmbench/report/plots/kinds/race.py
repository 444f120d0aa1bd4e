"""Ratios of a race on an axis with a line at 1, which means equal speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from svmbench.report.plots.axes import COLOURS, MARKERS, categories, errors, log_ticks
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import Panel, PlotData

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_race(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel of ratios."""
    names = categories(panel)
    shown = [series for series in panel.series if series.points]
    step = 0.7 / max(1, len(shown))
    values = [end for s in shown for p in s.points for end in (p.low, p.y, p.high) if end > 0]
    axes.axvline(1.0, color="black", linewidth=1.1, linestyle=(0, (4, 2)))
    if values and max(values) > 4 * min(*values, 1.0):
        axes.set_xscale("log")
    for index, series in enumerate(shown):
        style = styles[series.name] % len(COLOURS)
        offset = (index - (len(shown) - 1) / 2) * step
        ys = [names.index(point.x) + offset for point in series.points]
        axes.errorbar(
            [point.y for point in series.points], ys, xerr=errors(series),
            color=COLOURS[style], marker=MARKERS[style], linestyle="none",
            capsize=2, elinewidth=0.9, label=series.name,
        )  # fmt: skip
        for point, y in zip(series.points, ys, strict=True):
            if hollow and point.busy:
                axes.plot(
                    [point.y], [y], color=COLOURS[style], marker=MARKERS[style],
                    markerfacecolor="white", zorder=3,
                )  # fmt: skip
    if axes.get_xscale() == "log":
        low, high = min(*values, 1.0), max(*values, 1.0)
        axes.set_xlim(low / 1.4, high * 1.4)
        log_ticks(axes, "x")
    elif values:
        axes.set_xlim(0, max(*values, 1.0) * 1.1)
    axes.set_yticks(range(len(names)), [str(category) for category in names])
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    unit = " (log scale; 1 = equal)" if axes.get_xscale() == "log" else " (1 = equal)"
    axes.set_xlabel(plot.y_label + unit)


def _height(panels: Sequence[Panel]) -> float:
    rows = max(
        sum(len(series.points) for series in panel.series) + len(categories(panel))
        for panel in panels
    )
    return max(2.0, 0.9 + 0.22 * rows)


KIND = Kind(x="dataset", y="ratio", draw=draw_race, height=_height)
