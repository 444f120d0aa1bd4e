"""Shared parts of the kinds of plot: colours for greyscale, points with spreads, log ticks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from svmbench.report.plots.plot_data import Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, ordered so that neighbours also differ in lightness. Markers and line
# styles change with the colours.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 3)), "-")

#: The place in :data:`COLOURS` of each solver that appears in several plots. Solvers that share a
#: plot have different places; the baselines of other projects are black or grey.
SOLVER_STYLES = {
    **dict.fromkeys(("libsvm", "liblinear-l1", "libsvm-oneclass", "svm-train"), 0),
    **dict.fromkeys(("alsvm", "fosvm1", "nl-sgd", "sgd-lssvm", "smo", "cvm"), 1),
    **dict.fromkeys(("chunking", "cpsp", "falsvm", "fosvm2", "mn-svm"), 2),
    **dict.fromkeys(("alsvm-batch", "nn-isda", "nystrom", "osuna", "pegasos", "svdd"), 3),
    **dict.fromkeys(("csvc", "icf", "one-class", "dcd-l1"), 4),
    **dict.fromkeys(("lasvm", "svm-light", "dcd-l2"), 5),
    **dict.fromkeys(("cpsp-tr", "nl-sgd-picked", "smo-fixed-threshold", "newton-l2"), 6),
    **dict.fromkeys(("SVC", "bvm", "liblinear-l2"), 7),
}


def series_styles(names: Sequence[str]) -> dict[str, int]:
    """Return a number for each series of a plot: a solver's own, or the lowest that is free."""
    styles: dict[str, int] = {}
    for name in [known for known in names if known in SOLVER_STYLES]:
        if SOLVER_STYLES[name] not in styles.values():
            styles[name] = SOLVER_STYLES[name]
    free = (number for number in itertools.count() if number not in styles.values())
    for name in names:
        if name not in styles:
            styles[name] = next(free)
    return styles


def errors(series: Series) -> list[list[float]] | None:
    """Return the lengths of all error bars, down and up; None if no point has a spread."""
    if all(point.low == point.high for point in series.points):
        return None
    return [
        [max(0.0, point.y - point.low) for point in series.points],
        [max(0.0, point.high - point.y) for point in series.points],
    ]


def draw_points(
    axes: Axes, series: Series, style: int, *, line: bool, hollow: bool, text: str
) -> None:
    """Draw the points of a series with error bars; hollow markers show disturbed times."""
    style %= len(COLOURS)
    xs, ys = [p.x for p in series.points], [p.y for p in series.points]
    colour = COLOURS[style]
    # An error bar down to 0 is cut at the edge of a logarithmic axis.
    axes.errorbar(
        xs,
        ys,
        yerr=errors(series),
        color=colour,
        marker=MARKERS[style],
        linestyle=LINES[style] if line else "none",
        capsize=2,
        elinewidth=0.9,
        label=text,
        markerfacecolor=colour,
    )
    blank = [p for p in series.points if p.busy] if hollow else []
    if blank:
        axes.plot(
            [p.x for p in blank], [p.y for p in blank], linestyle="none", color=colour,
            marker=MARKERS[style], markerfacecolor="white", zorder=3,
        )  # fmt: skip


def draw_crossings(axes: Axes, panel: Panel) -> None:
    """Draw a ring around each crossing of two series, with its x beside it."""
    for x, y in panel.crossed:
        axes.plot(
            [x], [y], linestyle="none", marker="o", markersize=11, markerfacecolor="none",
            markeredgecolor="#B3006B", markeredgewidth=1.4, zorder=4,
        )  # fmt: skip
        axes.annotate(
            f"crossing at {x:.4g}", (x, y), xytext=(-9, 9), textcoords="offset points",
            ha="right", va="bottom", fontsize=8, color="#B3006B", zorder=5,
        )  # fmt: skip


def categories(panel: Panel) -> list[Any]:
    """Return the categories of the points of a panel, in their order."""
    return list(dict.fromkeys(point.x for series in panel.series for point in series.points))


def log_ticks(axes: Axes, which: str) -> None:
    """Label a logarithmic axis with plain numbers that don't overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    decades = math.log10(high / low)
    steps: tuple[float, ...] = (1.0,)
    if decades < 0.8:
        steps = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0) if decades < 0.4 else (1.0, 2.0, 3.0, 5.0)
    elif decades < 1.0 and which == "y":
        steps = (1.0, 2.0, 3.0, 5.0)
    elif decades < 2.2:
        steps = (1.0, 2.0, 5.0) if which == "y" or decades < 1.5 else (1.0, 3.0)
    axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain_tick(value)))
    axis.set_minor_locator(LogLocator(base=10, subs=range(1, 10), numticks=12))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", axis=which)  # type: ignore[arg-type]


def plain_ticks(axes: Axes) -> None:
    """Label linear axes as logarithmic ones are labelled."""
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    for axis in (axes.xaxis, axes.yaxis):
        if type(axis.get_major_formatter()) is ScalarFormatter:
            axis.set_major_formatter(FuncFormatter(lambda value, _: _plain_tick(value)))


def _plain_tick(value: float) -> str:
    if value < 0:
        return f"−{_plain_tick(-value)}"
    if abs(value) < 1e-12:  # a linear axis computes its 0
        return "0"
    if value >= 1e6 or value < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        power = f"10$^{{{int(exponent)}}}$"
        return power if mantissa == "1" else f"{mantissa}·{power}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
