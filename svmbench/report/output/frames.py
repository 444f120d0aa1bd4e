"""Tables and plots of the frame that `svmbench.run` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from svmbench.base.errors import UnknownNameError
from svmbench.report.reading.wording import label_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def table(
    frame: pd.DataFrame,
    metrics: Sequence[str] = ("train_time_s", "accuracy_pct"),
    *,
    rows: str = "dataset",
    columns: str = "solver",
) -> pd.DataFrame:
    """Arrange the means over folds as a table.

    Parameters
    ----------
    frame : DataFrame
        Result of :func:`svmbench.run`, or some of its rows.
    metrics : sequence of str, default=("train_time_s", "accuracy_pct")
    rows, columns : str, default="dataset", "solver"
        Columns of `frame` whose values become rows and columns. Select one block first if the
        config has several.

    Returns
    -------
    DataFrame
        One row for each value of `rows`; the columns have two levels, `columns` and the metric.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        If `frame` has no such column; with the nearest one.
    """
    _require(frame, [*metrics, rows, columns])
    made = frame.pivot_table(
        index=rows, columns=columns, values=list(metrics), aggfunc="mean", sort=False
    )
    order = [(name, metric) for name in frame[columns].unique() for metric in metrics]
    made = made.swaplevel(axis="columns")
    return made[[pair for pair in order if pair in made.columns]]


def plot(
    frame: pd.DataFrame,
    kind: str = "bar",
    *,
    y: str = "accuracy_pct",
    x: str = "dataset",
    series: str = "solver",
    **options: Any,
) -> Figure:
    """Plot a metric with one series for each solver.

    Parameters
    ----------
    frame : DataFrame
        Result of :func:`svmbench.run`, or some of its rows.
    kind : str, default="bar"
        A kind of ``DataFrame.plot``: ``bar``, ``barh``, ``line``, ``box`` … Bars have the standard
        deviation over folds.
    y, x, series : str, default="accuracy_pct", "dataset", "solver"
        The metric; the columns of `frame` along the axis and of the series.
    **options
        Further arguments of ``DataFrame.plot``, such as ``logy=True``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        If `frame` has no such column; with the nearest one.
    """
    from matplotlib.figure import Figure

    _require(frame, [y, x, series])
    made: Any
    spread: Any
    made, spread = (
        frame.pivot_table(index=x, columns=series, values=y, aggfunc=how, sort=False)
        for how in ("mean", "std")
    )
    figure = Figure(layout="constrained")
    if kind.startswith("bar") and not spread.empty:
        spread = spread.reindex(index=made.index, columns=made.columns)
        options = {"yerr" if kind == "bar" else "xerr": spread, **options}
    axes = made.plot(kind=kind, ax=figure.add_subplot(), **options)
    (axes.set_xlabel if kind == "barh" else axes.set_ylabel)(label_of(y))
    return figure


def _require(frame: pd.DataFrame, names: Sequence[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise UnknownNameError("column", name, [str(column) for column in frame.columns])
