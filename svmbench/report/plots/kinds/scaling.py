"""Times against sizes in log–log, with fitted and printed exponents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from svmbench.report.plots.axes import (
    COLOURS,
    LINES,
    MARKERS,
    draw_crossings,
    draw_points,
    log_ticks,
)
from svmbench.report.plots.kinds import Kind
from svmbench.report.plots.plot_data import Panel, PlotData, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


def _draw_series(axes: Axes, series: Series, style: int, *, hollow: bool) -> Line2D:
    """Draw a series with its fitted line and the printed points; return its legend entry."""
    from matplotlib.lines import Line2D

    style %= len(COLOURS)
    busy = hollow and any(point.busy for point in series.points)
    text = f"{series.name}: exponent {series.fit}" if series.fit else f"{series.name}: one size"
    text += "*" if busy and series.fit else ""
    if series.printed_exponent is not None:
        text += f"; paper {series.printed_exponent:g}"
    draw_points(axes, series, style, line=False, hollow=hollow, text=text)
    if series.fit:
        ends = [series.points[0].x, series.points[-1].x]
        axes.plot(
            ends, [series.fit.at(x) for x in ends],
            color=COLOURS[style], linestyle=LINES[style], linewidth=1.1,
        )  # fmt: skip
    if series.printed:
        axes.plot(
            *zip(*series.printed, strict=True), color=COLOURS[style], linestyle="-", linewidth=0.5,
            marker=MARKERS[style], markersize=3, markerfacecolor="white", alpha=0.6,
        )  # fmt: skip
    return Line2D(
        [],
        [],
        color=COLOURS[style],
        linestyle=LINES[style] if series.fit else "none",
        marker=MARKERS[style],
        markerfacecolor="white" if busy else COLOURS[style],
        label=text,
    )


def draw_scaling(
    axes: Axes, plot: PlotData, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    """Draw one panel in log–log, with fitted lines."""
    from matplotlib.lines import Line2D

    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="clip")
    handles = [
        _draw_series(axes, series, styles[series.name], hollow=hollow)
        for series in panel.series
        if series.points
    ]
    draw_crossings(axes, panel)
    if any(series.printed for series in panel.series):
        handles.append(
            Line2D(
                [],
                [],
                color="#7F7F7F",
                linestyle="-",
                linewidth=0.5,
                marker="o",
                markersize=3,
                markerfacecolor="white",
                label="small, hollow, thin lines: what the paper prints",
            )
        )
    log_ticks(axes, "x")
    log_ticks(axes, "y")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    if handles:
        axes.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.17),
            handlelength=3,
            borderaxespad=0,
        )


def _height(panels: Sequence[Panel]) -> float:
    # The legend of each panel, with the exponents, is below its axes.
    entries = (len(p.series) + any(series.printed for series in p.series) for p in panels)
    return 3.5 + 0.19 * max(entries)


KIND = Kind(
    x="rows",
    y="train_time_s",
    draw=draw_scaling,
    height=_height,
    columns=3,
    own_legend=True,
    fits=True,
    note="exponents with 95 % intervals",
)
