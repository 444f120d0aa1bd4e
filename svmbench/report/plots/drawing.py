"""Draw plots as SVG and PNG that are readable in greyscale and reproducible byte for byte.

Matplotlib is imported when the first plot is drawn. The figures don't use pyplot, so global state
(backend, style, open figures) is unchanged.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import math
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from svmbench.base import escape
from svmbench.base.paths import PACKAGE
from svmbench.report.plots.axes import plain_ticks, series_styles
from svmbench.report.plots.kinds import kind_of
from svmbench.report.plots.plot_data import PlotData, Series
from svmbench.report.reading.provenance import describe_cpu
from svmbench.report.reading.records import Run, used_environments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Resolution of PNG files in dots per inch.
PNG_DPI = 150
#: Resolution of pictures in SVG files in dots per inch.
_EMBEDDED_DPI = 120
#: Number of colours of pictures in SVG files: a few flat colours and their blends at edges.
_EMBEDDED_COLOURS = 64
#: The default file formats of a plot.
PLOT_ENDINGS = ("svg", "png")
#: Metadata of the files, without dates and programs, so that their bytes depend on the plot only.
#: An SVG still names the version of matplotlib, on which its bytes depend.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
#: Characters of footer text per inch.
_FOOTER_PER_INCH = 17.5
#: Characters of legend text per inch.
_LEGEND_PER_INCH = 12.5

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
    "svg.hashsalt": "svmbench",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def draw_plot(
    run: Run,
    plot: PlotData,
    *,
    allow_contended: bool = False,
    endings: Sequence[str] = PLOT_ENDINGS,
    bare: bool = False,
) -> dict[str, bytes]:
    """Draw a plot.

    Parameters
    ----------
    run : Run
        The run, with the profile and the environments for the footer.
    plot : PlotData
        The data of the plot.
    allow_contended : bool, default False
        True to draw times measured beside other workers like all other times. By default their
        markers are hollow, and the footer explains it.
    endings : sequence of str, default ("svg", "png")
        The file formats; ``pdf`` is possible, too.
    bare : bool, default False
        True to leave out heading and footer, which are in the caption in a paper.

    Returns
    -------
    dict of str to bytes
        Contents of the files by ending; empty if there are no points.
    """
    if not plot.panels:
        return {}
    plot = _escaped(plot)
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    # Start from matplotlib's defaults: a user's style would change the bytes.
    with matplotlib.style.context(["default", _STYLE]):
        hollow = not allow_contended
        footer_text = "" if bare else escape.drawn(footer(run, plot, hollow=hollow))
        figure = _figure(plot, footer_text, hollow=hollow, bare=bare)
        FigureCanvasAgg(figure)
        contents = {}
        for ending in endings:
            out = io.BytesIO()
            dots = _EMBEDDED_DPI if ending == "svg" else PNG_DPI
            figure.savefig(out, format=ending, dpi=dots, metadata=_METADATA[ending])
            contents[ending] = out.getvalue()
    if "svg" in contents:
        contents["svg"] = _EMBEDDED.sub(_with_few_colours, contents["svg"])
    return contents


def drawing_key(run: Run, plot: PlotData) -> str:
    """Return a sha256 of all that decides how a plot is drawn: data, words, code, matplotlib."""
    from matplotlib import __version__ as version

    kind = kind_of(plot.spec)
    modules = {__name__, *(getattr(function, "__module__", "") for function in vars(kind).values())}
    footer_and_code = (footer(run, plot, hollow=True), version, code_digest(frozenset(modules)))
    digest = hashlib.sha256(repr((plot, footer_and_code)).encode())
    for grid in [panel.grid for panel in plot.panels if panel.grid is not None]:
        for array in (grid.x, grid.y, grid.values):  # too long for a repr
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@functools.cache
def code_digest(modules: frozenset[str] = frozenset()) -> str:
    """Return a sha256 of the sources that make plots and tables, and of some modules."""
    sources = {
        path for name in ("base", "report", "schema") for path in (PACKAGE / name).rglob("*.py")
    }
    sources |= {Path(str(sys.modules[name].__file__)) for name in modules if name in sys.modules}
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()


#: A picture in an SVG file of matplotlib.
_EMBEDDED = re.compile(rb'(?<="data:image/png;base64,)[^"]+')


def _with_few_colours(picture: re.Match[bytes]) -> bytes:
    """Return a picture in an SVG with a palette, which takes a quarter of the bytes."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture[0]))) as image:
        reduced = image.quantize(_EMBEDDED_COLOURS, method=Image.Quantize.FASTOCTREE)
    reduced.save(out, "png", optimize=True)
    return base64.b64encode(out.getvalue())


def _escaped(plot: PlotData) -> PlotData:
    """Escape all texts of a plot for matplotlib."""

    def drawn_series(series: Series) -> Series:
        points = (
            replace(point, x=escape.drawn(point.x)) if isinstance(point.x, str) else point
            for point in series.points
        )
        return replace(series, name=escape.drawn(series.name), points=tuple(points))

    return replace(
        plot,
        spec=plot.spec.model_copy(update={"title": escape.drawn(plot.spec.heading)}),
        panels=tuple(
            replace(
                panel,
                title=escape.drawn(panel.title),
                series=tuple(map(drawn_series, panel.series)),
            )
            for panel in plot.panels
        ),
        x_label=escape.drawn(plot.x_label),
        y_label=escape.drawn(plot.y_label),
    )


@functools.cache
def _figure_class() -> type[Figure]:
    """Return a class of figures that are laid out without being drawn.

    `savefig` draws a figure twice. The first time is for the layout alone, and its renderer draws
    nothing; the second time the figure has no layout engine.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    class LaidOutFigure(Figure):
        def draw(self, renderer: Any) -> None:
            engine = self.get_layout_engine()
            if engine is None or isinstance(engine, PlaceHolderLayoutEngine):
                super().draw(renderer)
            else:
                engine.execute(self)

    return LaidOutFigure


def _figure(plot: PlotData, footer_text: str, *, hollow: bool, bare: bool) -> Figure:
    """Draw a plot with a footer; a bare plot has no heading."""
    spec = plot.spec
    panels = plot.panels
    kind = kind_of(spec)
    n_columns = min(len(panels), kind.columns)
    n_rows = math.ceil(len(panels) / n_columns)
    width = {1: 6.4, 2: 9.6, 3: 12.8}[n_columns]
    footer_lines = textwrap.wrap(footer_text, width=int(width * _FOOTER_PER_INCH), max_lines=6)
    heading = [] if bare else textwrap.wrap(spec.heading, width=int(width * 10))
    legend = _shared_legend(plot)
    legend_columns = _legend_columns(legend, width)
    legend_rows = math.ceil(len(legend) / legend_columns) if legend else 0
    head = 0.05 if bare else 0.3 + 0.22 * len(heading)
    foot = 0.12 + 0.155 * len(footer_lines)
    below = foot + 0.2 * legend_rows + (0.12 if legend_rows else 0)
    height = head + below + kind.height(panels) * n_rows

    figure = _figure_class()(figsize=(width, height), dpi=PNG_DPI, layout="constrained")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(rect=(0.005, below / height, 0.985, 1 - (head + below) / height))  # type: ignore[call-arg]
    figure.text(
        0.012,
        1 - 0.12 / height,
        "\n".join(heading),
        va="top",
        ha="left",
        fontsize=11,
        fontweight="bold",
    )
    figure.text(
        0.012, 0.06 / height, "\n".join(footer_lines), va="bottom", fontsize=7, color="#404040",
        linespacing=1.3,
    )  # fmt: skip
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    styles = series_styles(_series_names(plot))
    for axes, panel in zip(grid.flat, panels, strict=False):
        kind.draw(axes, plot, panel, styles, hollow)
        plain_ticks(axes)
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


def footer(run: Run, plot: PlotData, *, hollow: bool) -> str:
    """Return the footer of a plot: its source, its marks, its missing values."""
    environments = ", ".join(describe_cpu(run, name) for name in used_environments(plot.cells))
    parts = [f"{run.name}, profile {run.profile or 'none'}"]
    parts.append(f"environment {environments or 'unknown'}")
    if scaling := run.block_scaling(plot.spec.block):
        parts.append(f"scaling {scaling}")
    points = plot.points()
    why = [
        reason
        for reason, applies in (
            ("while other workers ran", any(point.contended for point in points)),
            ("under load from other programs", any(point.disturbed for point in points)),
        )
        if applies
    ]
    if hollow and why:
        mark = kind_of(plot.spec).busy_mark
        parts.append(f"{mark}: measured {' or '.join(why)}, no timing to compare")
    if any(point.partial for point in points):
        parts.append("some points lack folds (see tables.md)")
    if note := kind_of(plot.spec).note:
        parts.append(note)
    if any(point.low != point.high for point in points):
        parts.append(f"bars: {kind_of(plot.spec).bars}")
    parts += [f"crossing: {sentence}" for sentence in plot.crossings]
    parts.append(f"missing: {plot.gaps or 'nothing'}")
    return " · ".join(parts)


def _series_names(plot: PlotData) -> list[str]:
    return list(dict.fromkeys(series.name for panel in plot.panels for series in panel.series))


def _shared_legend(plot: PlotData) -> list[str]:
    """Return the entries of the figure's legend, except for plots with a legend in each panel."""
    names = [
        name
        for name in _series_names(plot)
        if any(s.name == name and s.points for panel in plot.panels for s in panel.series)
    ]
    if kind_of(plot.spec).own_legend:
        return []
    return names if plot.spec.series or len(names) > 1 else []


def _legend_columns(names: list[str], width: float) -> int:
    if not names:
        return 1
    # The handle and the gaps of an entry are about six characters wide.
    longest = max(len(name) for name in names) + 6
    return max(1, min(len(names), int(width * _LEGEND_PER_INCH / longest)))


def _handles(all_axes: Any, names: list[str]) -> tuple[list[Any], list[str]]:
    handle_of: dict[str, Any] = {}
    for axes in all_axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            handle_of.setdefault(text, handle)
    shown = [name for name in names if name in handle_of]
    return [handle_of[name] for name in shown], shown
