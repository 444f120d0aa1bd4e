"""Bars of values by category, or dots for percentages.

The length of a bar is only meaningful if its axis begins at zero. Percentages far above zero are
drawn as dots on an axis that begins below them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from svmbench.report.plots.axes import COLOURS, MARKERS, categories, errors, log_ticks
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import Panel, PlotData, Series
from svmbench.report.reading.wording import is_timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Lowest beginning of an axis of percentages with dots instead of bars.
LOWEST_DOT_AXIS_PCT = 40.0


def draw_bars(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel of bars or dots."""
    positions = categories(panel)
    shown = [series for series in panel.series if series.points]
    bar = 0.8 / max(1, len(shown))
    values = [point.y for series in shown for point in series.points]
    is_share = plot.y.endswith("_pct") and bool(values)
    begins = max(0.0, math.floor((min(values) - 5) / 10) * 10) if is_share else 0.0
    is_dotted = begins >= LOWEST_DOT_AXIS_PCT
    # Use a logarithmic axis: times of solvers may differ by orders of magnitude.
    if values and min(values) > 0 and is_timing(plot.y) and max(values) > 30 * min(values):
        axes.set_yscale("log", nonpositive="clip")
        highest = max(max(point.y, point.high) for series in shown for point in series.points)
        axes.set_ylim(min(values) / 2, highest * 1.5)
        log_ticks(axes, "y")
    for index, series in enumerate(shown):
        style = styles[series.name]
        colour = COLOURS[style % len(COLOURS)]
        offset = (index - (len(shown) - 1) / 2) * bar
        where = [positions.index(point.x) + offset for point in series.points]
        if is_dotted:
            _draw_dots(axes, series, where, style)
            continue
        axes.bar(
            where,
            [point.y for point in series.points],
            width=bar * 0.94,
            yerr=errors(series),
            # Hollow bars distinguish series after the eighth.
            color=colour if style < len(COLOURS) else "white",
            edgecolor="white" if style < len(COLOURS) else colour,
            linewidth=0.6 if style < len(COLOURS) else 1.2,
            error_kw={"elinewidth": 1.1, "capsize": 2, "ecolor": "#555555"},
            label=series.name,
        )
        for point in series.points:
            if hollow and point.busy:
                axes.annotate(
                    "*", (positions.index(point.x) + offset, point.high),
                    ha="center", xytext=(0, 1), textcoords="offset points",
                )  # fmt: skip
    if is_share:
        axes.set_ylim(begins if is_dotted else 0.0, 101)
    axes.grid(visible=False, axis="x")
    if is_dotted:
        # Lines separate the categories.
        for position in range(1, len(positions)):
            axes.axvline(position - 0.5, color="#DDDDDD", linewidth=0.6, zorder=0)
    texts = [str(category) for category in positions]
    crowded = sum(map(len, texts)) + 2 * len(texts) > 62
    axes.set_xticks(
        range(len(positions)), texts, rotation=30 if crowded else 0,
        ha="right" if crowded else "center", rotation_mode="anchor",
    )  # fmt: skip
    axes.set_ylabel(plot.y_label)


def _draw_dots(axes: Axes, series: Series, where: list[float], style: int) -> None:
    colour = COLOURS[style % len(COLOURS)]
    axes.errorbar(
        where, [point.y for point in series.points], yerr=errors(series),
        color=colour, marker=MARKERS[style % len(MARKERS)], linestyle="none",
        # Hollow dots distinguish series after the eighth; percentages are never disturbed times.
        markerfacecolor=colour if style < len(COLOURS) else "white",
        capsize=2, elinewidth=0.9, label=series.name,
    )  # fmt: skip


KIND = Kind(x="dataset", y="train_time_s", draw=draw_bars, busy_mark="*")
