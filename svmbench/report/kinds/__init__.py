"""The kinds of plot: one module each, which says what is usual and draws a panel.

A kind is the module of its name in this folder, with a :class:`Kind` called ``KIND``. Nothing else
has to know of it: a config may ask for it once the file is there. A plug-in declares its own with
:func:`declare_kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from svmbench.schema.specs import OTHER_KINDS, PlotSpec, plot_kinds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from svmbench.report.curves import Curves, Panel
    from svmbench.report.records import Run


def _usual_height(_: Sequence[Panel]) -> float:
    return 3.6


@dataclass(frozen=True)
class Kind:
    """A kind of plot.

    Attributes
    ----------
    x, y : str
        What is drawn where the plot doesn't say.
    draw : callable
        ``draw(axes, curves, panel, styles, hollow)`` draws one panel: `styles` is a number for each
        series, and `hollow` whether disturbed times are marked.
    collect : callable or None
        From a run and a plot to its `Curves`; by default a point for each value of `x`.
    height : callable
        Of each row of panels, inches.
    columns : int
        Panels side by side, at most.
    axes : tuple of str or None
        What x may be, of a kind that collects its own points; None where it may be any field or
        metric.
    own_legend : bool
        Whether each panel has its own legend, instead of one for the figure.
    fits : bool
        Whether power laws are fitted, and written as a table of exponents.
    is_sorted : bool
        Whether a curve's points stand in the order of x.
    busy_mark : str
        How disturbed times are marked, for the footer.
    note : str
        What the footer says of every such plot.
    bars : str
        What its bars reach over, for the footer.
    """

    x: str
    y: str
    draw: Callable[[Axes, Curves, Panel, dict[str, int], bool], None]
    collect: Callable[[Run, PlotSpec], Curves] | None = None
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
    """Declare a plug-in's kind of plot under a name.

    Raises
    ------
    ValueError
        If there is a kind of this name.
    """
    if name in plot_kinds():
        raise ValueError(f"there is a kind of plot {name!r} already")
    OTHER_KINDS[name] = kind


def kind_of(spec: PlotSpec) -> Kind:
    """Return the kind that a plot has."""
    if spec.kind in OTHER_KINDS:
        found = OTHER_KINDS[spec.kind]
    else:
        found = import_module(f"{__name__}.{spec.kind}").KIND
    assert isinstance(found, Kind)
    return found
