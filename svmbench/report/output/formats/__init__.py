"""The output formats of tables and plots: each module writes one format.

A format has the name of its module in this folder, which defines a :class:`Format` called
``FORMAT``. No other file lists it. A plug-in declares a format with :func:`declare_format`. All
formats write the same grids (`svmbench.report.tables.grids`), which lay out a table once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svmbench.base.errors import ResultsError
from svmbench.base.module_registry import ModuleRegistry
from svmbench.report.plots.drawing import draw_plot
from svmbench.report.tables.grids import TableGrid, grid_of

if TYPE_CHECKING:
    from svmbench.report.output.builder import Content
    from svmbench.report.plots.plot_data import PlotData
    from svmbench.report.reading.records import Run


@dataclass(frozen=True)
class Format:
    """An output format.

    Attributes
    ----------
    what : str
        What it writes, for ``svmbench list formats``.
    ending : str
        Ending of the files of tables, without a dot.
    table : callable
        ``table(grid, label)`` returns the text of a table. `label` names the table among those of
        other runs. The function escapes all texts of the grid.
    plots : tuple of str, default ("svg",)
        Endings of the files of plots: what matplotlib writes.
    figure : callable or None
        ``figure(run, plot, place, hollow)`` returns the text of a file beside each plot, which
        includes the plot and has its footer as caption; the plot itself then has no footer. `place`
        is the path of the plot's file in the document, without ending. None for no such file.
    in_seconds : bool, default False
        True to show all times in seconds and no bold values; otherwise the times of a metric share
        a unit, and the best values are bold.
    """

    what: str
    ending: str
    table: Callable[[TableGrid, str], str]
    plots: tuple[str, ...] = ("svg",)
    figure: Callable[[Run, PlotData, str, bool], str] | None = None
    in_seconds: bool = False


#: All output formats.
FORMATS: ModuleRegistry[Format] = ModuleRegistry("format", "report.output.formats", "FORMAT")


def declare_format(name: str, form: Format) -> None:
    """Declare an output format of a plug-in.

    Raises
    ------
    ValueError
        If the name is taken.
    """
    FORMATS.declare(name, form)


def format_files(
    form: Format, content: Content, *, allow_contended: bool = False, folder: str = ""
) -> dict[str, bytes]:
    """Return the tables and plots of a run in a format, by file name.

    Parameters
    ----------
    form : Format
    content : Content
    allow_contended : bool, default False
        True to use times measured beside other workers like all other times.
    folder : str, default ""
        The folder of the files, as a document names it.

    Raises
    ------
    ResultsError
        If no cell of the run has a result.
    """
    run = content.run
    if not any(cell.status == "ok" for cell in run.cells):
        raise ResultsError(
            f"{run.path}: no cell has a result, so there is no table to write"
            f" ('svmbench run {run.name} --profile {run.profile}' makes the results)"
        )
    files = {}
    for table in content.tables:
        grid = grid_of(run, table, allow_contended=allow_contended, in_seconds=form.in_seconds)
        files[f"{grid.name}.{form.ending}"] = form.table(grid, f"{run.name}-{grid.name}").encode()
    for plot in content.plots:
        drawn = draw_plot(
            run,
            plot,
            allow_contended=allow_contended,
            endings=form.plots,
            bare=form.figure is not None,
        )
        name = plot.spec.name
        files |= {f"{name}.{ending}": drawn[ending] for ending in drawn}
        if drawn and form.figure is not None:
            path = "/".join(filter(None, (folder, name)))
            text = form.figure(run, plot, path, not allow_contended)
            files[f"{name}.{form.ending}"] = text.encode()
    return files
