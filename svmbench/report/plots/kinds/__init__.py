"""The kinds of plot: each module draws the panels of one kind and declares its defaults.

The kind has the name of its module in this folder, which defines a :class:`Kind` called ``KIND``.
No other file lists it. A plug-in declares a kind with :func:`declare_kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svmbench.schema.specs import PLOT_KINDS, PlotSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from svmbench.report.plots.plot_data import Panel, PlotData
    from svmbench.report.reading.records import Run


def _usual_height(_: Sequence[Panel]) -> float:
    return 3.6


@dataclass(frozen=True)
class Kind:
    """A kind of plot.

    Attributes
    ----------
    x, y : str
        Default axes of a plot of this kind.
    draw : callable
        ``draw(axes, plot, panel, styles, hollow)`` draws one panel. `styles` has a number for
        each series; `hollow` is True if disturbed times are marked.
    collect : callable or None
        Function from a run and a plot to its `PlotData`; by default, a point for each value of `x`.
    height : callable
        Height of each row of panels in inches.
    columns : int
        Largest number of panels side by side.
    axes : tuple of str or None
        What a config may set as `x` (not matplotlib's axes), for a kind with its own `collect`;
        None for any field or metric.
    own_legend : bool
        True if each panel has a legend, instead of one for the figure.
    fits : bool
        True to fit power laws and write a table of exponents.
    is_sorted : bool
        True if the points of a curve are sorted by x.
    busy_mark : str
        Description of the mark of disturbed times, for the footer.
    note : str
        Additional text of the footer.
    bars : str
        Meaning of the error bars, for the footer.
    """

    x: str
    y: str
    draw: Callable[[Axes, PlotData, Panel, dict[str, int], bool], None]
    collect: Callable[[Run, PlotSpec], PlotData] | None = None
    height: Callable[[Sequence[Panel]], float] = _usual_height
    columns: int = 2
    axes: tuple[str, ...] | None = None
    own_legend: bool = False
    fits: bool = False
    is_sorted: bool = False
    busy_mark: str = "hollow"
    note: str = ""
    bars: str = "± standard deviation or range"


def declare_kind(name: str, kind: Kind) -> None:
    """Declare a kind of plot of a plug-in.

    Raises
    ------
    ValueError
        If the name is taken.
    """
    PLOT_KINDS.declare(name, kind)


def kind_of(spec: PlotSpec) -> Kind:
    """Return the kind of a plot."""
    kind: Kind = PLOT_KINDS.named(spec.kind)
    return kind
