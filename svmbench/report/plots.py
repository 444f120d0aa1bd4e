"""Drawing: SVG and PNG that read in greyscale and come out the same from the same records.

Matplotlib is imported when the first plot is drawn; the figures are made without pyplot, so
nothing global (backend, style, open figures) is touched.
"""

from __future__ import annotations

import io
import math
import textwrap
from typing import TYPE_CHECKING, Any

from svmbench.report.curves import Curves, Panel, Series
from svmbench.report.provenance import describe_cpu, used_environments
from svmbench.report.records import Run
from svmbench.report.wording import is_timing, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 150
#: The files of a plot.
ENDINGS = ("svg", "png")
#: Characters of footer text that fit an inch at the footer's size.
_FOOTER_PER_INCH = 17.5
#: Characters of legend text that fit an inch.
_LEGEND_PER_INCH = 12.5

# Okabe and Ito's colours, ordered so that neighbours also differ in lightness; marker, line style
# and hatch change with them.
_COLOURS = ("#000000", "#D55E00", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7F7F7F")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 3)), "-")
_FILLS = ("#404040", "#D9D9D9", "#8C8C8C", "#FFFFFF", "#BFBFBF", "#666666", "#F2F2F2", "#A6A6A6")
_HATCHES = ("", "///", "", "...", "xxx", "\\\\\\", "---", "ooo")

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 5,
    "lines.linewidth": 1.3,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "svmbench",
    "svg.fonttype": "path",
}


def draw(run: Run, curves: Curves, *, allow_contended: bool = False) -> dict[str, bytes]:
    """Draw a plot.

    Parameters
    ----------
    run : Run
        Whose profile and environments the footer names.
    curves : Curves
        What is drawn.
    allow_contended : bool, default False
        Draw times that were measured while other workers ran like any others. By default their
        markers are hollow and the footer says so.

    Returns
    -------
    dict of str to bytes
        The files' contents by their ending, ``svg`` and ``png``; empty where there is no point to
        draw.
    """
    if not curves.panels:
        return {}
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    # On top of matplotlib's defaults: a user's own style would change the bytes.
    with matplotlib.style.context(["default", _STYLE]):
        figure = _figure(run, curves, allow_contended=allow_contended)
        FigureCanvasAgg(figure)
        contents = {}
        for ending, metadata in (
            # An SVG names the version that drew it: its bytes depend on that.
            ("svg", {"Date": None}),
            ("png", {"Software": None}),
        ):
            out = io.BytesIO()
            figure.savefig(out, format=ending, dpi=DPI, metadata=metadata)
            contents[ending] = out.getvalue()
    return contents


def _figure(run: Run, curves: Curves, *, allow_contended: bool) -> Figure:
    from matplotlib.figure import Figure

    spec = curves.spec
    hollow = not allow_contended
    panels = curves.panels
    n_columns = min(len(panels), 3 if spec.kind in {"scaling", "curve"} else 2)
    n_rows = math.ceil(len(panels) / n_columns)
    width = {1: 6.4, 2: 9.6, 3: 12.8}[n_columns]
    footer = textwrap.wrap(
        _footer(run, curves, hollow=hollow), width=int(width * _FOOTER_PER_INCH), max_lines=6
    )
    legend = _shared_legend(curves)
    legend_columns = _legend_columns(legend, width)
    legend_rows = math.ceil(len(legend) / legend_columns) if legend else 0
    head = 0.3 + 0.22 * len(textwrap.wrap(spec.title, width=int(width * 10)))
    foot = 0.12 + 0.155 * len(footer)
    below = foot + 0.2 * legend_rows + (0.12 if legend_rows else 0)
    height = head + below + _panel_height(panels, spec.kind) * n_rows

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(rect=(0.005, below / height, 0.985, 1 - (head + below) / height))  # type: ignore[call-arg]
    figure.text(
        0.012,
        1 - 0.12 / height,
        "\n".join(textwrap.wrap(spec.title, width=int(width * 10))),
        va="top",
        ha="left",
        fontsize=11,
        fontweight="bold",
    )
    figure.text(
        0.012, 0.06 / height, "\n".join(footer), va="bottom", fontsize=7, color="#404040",
        linespacing=1.3,
    )  # fmt: skip
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    draw_panel = {"scaling": _scaling, "curve": _curve, "bars": _bars, "race": _race}[spec.kind]
    styles = {name: index for index, name in enumerate(_series_names(curves))}
    for axes, panel in zip(grid.flat, panels, strict=False):
        draw_panel(axes, curves, panel, styles, hollow)
        axes.set_title(panel.title, loc="left")
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    if legend:
        handles, texts = _handles(grid.flat, legend)
        figure.legend(
            handles,
            texts,
            loc="lower center",
            bbox_to_anchor=(0.5, foot / height),
            ncols=legend_columns,
        )
    return figure


def _panel_height(panels: tuple[Panel, ...], kind: str) -> float:
    if kind == "scaling":
        # Each panel's legend, with the exponents, stands below its axes.
        entries = (len(p.series) + any(one.printed for one in p.series) for p in panels)
        return 3.5 + 0.19 * max(entries)
    if kind == "race":
        rows = max(
            sum(len(series.points) for series in panel.series) + len(_categories(panel))
            for panel in panels
        )
        return max(2.0, 0.9 + 0.22 * rows)
    return 3.6


def _footer(run: Run, curves: Curves, *, hollow: bool) -> str:
    environments = ", ".join(describe_cpu(run, name) for name in used_environments(curves.cells))
    parts = [f"{run.name}, profile {run.profile or 'none'}"]
    parts.append(f"environment {environments or 'unknown'}")
    if scaling := run.block_scaling(curves.spec.block):
        parts.append(f"scaling {scaling}")
    points = curves.points()
    why = [
        reason
        for reason, found in (
            ("while other workers ran", any(point.contended for point in points)),
            ("under load from other programs", any(point.disturbed for point in points)),
        )
        if found
    ]
    if hollow and why:
        mark = "*" if curves.spec.kind == "bars" else "hollow"
        parts.append(f"{mark}: measured {' or '.join(why)}, no timing to compare")
    if any(point.partial for point in points):
        parts.append("some points lack folds (see tables.md)")
    if curves.spec.kind == "scaling":
        parts.append("exponents with 95 % intervals")
    if any(point.low != point.high for point in points):
        parts.append("bars: ± standard deviation or range")
    parts += [f"crossing: {sentence}" for sentence in curves.crossings]
    parts.append(f"missing: {curves.gaps or 'nothing'}")
    return " · ".join(parts)


def _series_names(curves: Curves) -> list[str]:
    return list(dict.fromkeys(series.name for panel in curves.panels for series in panel.series))


def _shared_legend(curves: Curves) -> list[str]:
    """Return the entries of the figure's legend; a scaling plot has one in each panel instead."""
    names = [
        name
        for name in _series_names(curves)
        if any(s.name == name and s.points for panel in curves.panels for s in panel.series)
    ]
    return names if curves.spec.kind != "scaling" and (curves.spec.series or len(names) > 1) else []


def _legend_columns(names: list[str], width: float) -> int:
    if not names:
        return 1
    # Handle and gaps of an entry take about as much room as six characters.
    longest = max(len(name) for name in names) + 6
    return max(1, min(len(names), int(width * _LEGEND_PER_INCH / longest)))


def _handles(all_axes: Any, names: list[str]) -> tuple[list[Any], list[str]]:
    found: dict[str, Any] = {}
    for axes in all_axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    shown = [name for name in names if name in found]
    return [found[name] for name in shown], shown


def _errors(series: Series) -> list[list[float]] | None:
    if all(point.low == point.high for point in series.points):
        return None
    return [
        [max(0.0, point.y - point.low) for point in series.points],
        [max(0.0, point.high - point.y) for point in series.points],
    ]


def _draw_points(
    axes: Axes, series: Series, style: int, *, line: bool, hollow: bool, text: str
) -> None:
    """Draw a series' points with their spread; those of a busy machine are hollow."""
    style %= len(_COLOURS)
    xs, ys = [p.x for p in series.points], [p.y for p in series.points]
    colour = _COLOURS[style]
    # A spread down to zero or below has no place on a logarithmic axis: it is cut there.
    axes.errorbar(
        xs,
        ys,
        yerr=_errors(series),
        color=colour,
        marker=_MARKERS[style],
        linestyle=_LINES[style] if line else "none",
        capsize=2,
        elinewidth=0.9,
        label=text,
        markerfacecolor=colour,
    )
    blank = [p for p in series.points if p.busy] if hollow else []
    if blank:
        axes.plot(
            [p.x for p in blank], [p.y for p in blank], linestyle="none", color=colour,
            marker=_MARKERS[style], markerfacecolor="white", zorder=3,
        )  # fmt: skip


def _scaling(
    axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool
) -> None:
    from matplotlib.lines import Line2D

    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="clip")
    handles = []
    for series in panel.series:
        style = styles[series.name] % len(_COLOURS)
        if not series.points:
            continue
        busy = hollow and any(point.busy for point in series.points)
        text = f"{series.name}: exponent {series.fit}" if series.fit else f"{series.name}: one size"
        text += "*" if busy and series.fit else ""
        if series.printed_exponent is not None:
            text += f"; paper {series.printed_exponent:g}"
        _draw_points(axes, series, style, line=False, hollow=hollow, text=text)
        handles.append(
            Line2D(
                [],
                [],
                color=_COLOURS[style],
                linestyle=_LINES[style] if series.fit else "none",
                marker=_MARKERS[style],
                markerfacecolor="white" if busy else _COLOURS[style],
                label=text,
            )
        )
        if series.fit:
            ends = [series.points[0].x, series.points[-1].x]
            axes.plot(
                ends, [series.fit.at(x) for x in ends],
                color=_COLOURS[style], linestyle=_LINES[style], linewidth=1.1,
            )  # fmt: skip
        if series.printed:
            axes.plot(
                *zip(*series.printed, strict=True), color=_COLOURS[style], linestyle="none",
                marker=_MARKERS[style], markersize=3, markerfacecolor="white", alpha=0.6,
            )  # fmt: skip
    if any(series.printed for series in panel.series):
        handles.append(
            Line2D(
                [],
                [],
                color="#7F7F7F",
                linestyle="none",
                marker="o",
                markersize=3,
                markerfacecolor="white",
                label="small and hollow: what the paper prints",
            )
        )
    _log_ticks(axes, "x")
    _log_ticks(axes, "y")
    axes.set_xlabel(label(curves.spec.x))
    axes.set_ylabel(label(curves.y))
    if handles:
        axes.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.17),
            handlelength=3,
            borderaxespad=0,
        )


def _curve(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    for series in panel.series:
        if series.points:
            _draw_points(
                axes, series, styles[series.name], line=True, hollow=hollow, text=series.name
            )
    if is_timing(curves.y) and any(series.points for series in panel.series):
        axes.set_ylim(bottom=0)
    axes.set_xlabel(label(curves.spec.x))
    axes.set_ylabel(label(curves.y))


def _categories(panel: Panel) -> list[Any]:
    return list(dict.fromkeys(point.x for series in panel.series for point in series.points))


def _bars(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    categories = _categories(panel)
    shown = [series for series in panel.series if series.points]
    bar = 0.8 / max(1, len(shown))
    values = [point.y for series in shown for point in series.points]
    # Times of fast and slow solvers differ by orders of magnitude.
    if values and min(values) > 0 and is_timing(curves.y) and max(values) > 30 * min(values):
        axes.set_yscale("log", nonpositive="clip")
        highest = max(max(point.y, point.high) for series in shown for point in series.points)
        axes.set_ylim(min(values) / 2, highest * 1.5)
        _log_ticks(axes, "y")
    for index, series in enumerate(shown):
        style = styles[series.name] % len(_FILLS)
        offset = (index - (len(shown) - 1) / 2) * bar
        axes.bar(
            [categories.index(point.x) + offset for point in series.points],
            [point.y for point in series.points],
            width=bar * 0.94,
            yerr=_errors(series),
            color=_FILLS[style],
            hatch=_HATCHES[style],
            edgecolor="black",
            linewidth=0.6,
            error_kw={"elinewidth": 0.9, "capsize": 2, "ecolor": "#D55E00"},
            label=series.name,
        )
        for point in series.points:
            if hollow and point.busy:
                axes.annotate(
                    "*", (categories.index(point.x) + offset, point.high),
                    ha="center", xytext=(0, 1), textcoords="offset points",
                )  # fmt: skip
    if curves.y.endswith("_pct") and values:
        # Accuracies live near the top; the axis says where it starts.
        axes.set_ylim(max(0.0, math.floor((min(values) - 5) / 10) * 10), 101)
    axes.grid(visible=False, axis="x")
    texts = [str(category) for category in categories]
    crowded = sum(map(len, texts)) + 2 * len(texts) > 62
    axes.set_xticks(
        range(len(categories)), texts, rotation=30 if crowded else 0,
        ha="right" if crowded else "center", rotation_mode="anchor",
    )  # fmt: skip
    axes.set_ylabel(label(curves.y))


def _race(axes: Axes, curves: Curves, panel: Panel, styles: dict[str, int], hollow: bool) -> None:
    categories = _categories(panel)
    shown = [series for series in panel.series if series.points]
    step = 0.7 / max(1, len(shown))
    values = [end for s in shown for p in s.points for end in (p.low, p.y, p.high) if end > 0]
    axes.axvline(1.0, color="black", linewidth=1.1, linestyle=(0, (4, 2)))
    if values and max(values) > 4 * min(*values, 1.0):
        axes.set_xscale("log")
    for index, series in enumerate(shown):
        style = styles[series.name] % len(_COLOURS)
        offset = (index - (len(shown) - 1) / 2) * step
        ys = [categories.index(point.x) + offset for point in series.points]
        axes.errorbar(
            [point.y for point in series.points], ys, xerr=_errors(series),
            color=_COLOURS[style], marker=_MARKERS[style], linestyle="none",
            capsize=2, elinewidth=0.9, label=series.name,
        )  # fmt: skip
        for point, y in zip(series.points, ys, strict=True):
            if hollow and point.busy:
                axes.plot(
                    [point.y], [y], color=_COLOURS[style], marker=_MARKERS[style],
                    markerfacecolor="white", zorder=3,
                )  # fmt: skip
    if axes.get_xscale() == "log":
        low, high = min(*values, 1.0), max(*values, 1.0)
        axes.set_xlim(low / 1.4, high * 1.4)
        _log_ticks(axes, "x")
    elif values:
        axes.set_xlim(0, max(*values, 1.0) * 1.1)
    axes.set_yticks(range(len(categories)), [str(category) for category in categories])
    axes.set_ylim(max(1, len(categories)) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    unit = " (log scale; 1 = equal)" if axes.get_xscale() == "log" else " (1 = equal)"
    axes.set_xlabel(label(curves.y) + unit)


def _log_ticks(axes: Axes, which: str) -> None:
    """Label a logarithmic axis in plain numbers, few enough not to collide."""
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


def _plain_tick(value: float) -> str:
    if value >= 1e6 or value < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        power = f"10$^{{{int(exponent)}}}$"
        return power if mantissa == "1" else f"{mantissa}·{power}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
