"""Build all tables and plots in the plan of a run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from svmbench.base import escape
from svmbench.base.errors import DamagedResultsError, ResultsError
from svmbench.base.files import exists_in_results, make_folder, remove, write_bytes, write_text
from svmbench.report.output.formats import FORMATS, format_files
from svmbench.report.output.formats.markdown import markdown_table
from svmbench.report.plots.drawing import PLOT_ENDINGS, draw_plot
from svmbench.report.plots.kinds import kind_of
from svmbench.report.plots.plot_data import PlotData, exponents_csv, read_plot, read_plot_data
from svmbench.report.reading.provenance import describe_environment
from svmbench.report.reading.records import Run, read_run, used_environments
from svmbench.report.reading.wording import quantity
from svmbench.report.tables.grids import grid_of
from svmbench.report.tables.layout import Table, lay_out, read_spec, wide_csv
from svmbench.report.tables.tidy import tidy_lines
from svmbench.schema.rechecks import MANIFEST


@dataclass(frozen=True)
class BuiltReport:
    """The files that `build` wrote.

    Attributes
    ----------
    tidy : Path
        ``table.csv``.
    all_tables : Path
        ``tables.md``: all tables with captions and notes.
    tables : dict of str to tuple of Path
        CSV and Markdown file of each table, by name.
    plots : dict of str to tuple of Path
        SVG and PNG file of each plot with points, by name.
    exponents : dict of str to Path
        CSV file of the fitted exponents of each scaling plot, by name.
    notes : tuple of str
        Irregularities of the records, one sentence each; also in ``tables.md``.
    content : Content
        What the files were made from.
    """

    tidy: Path
    all_tables: Path
    tables: Mapping[str, tuple[Path, ...]]
    plots: Mapping[str, tuple[Path, ...]]
    exponents: Mapping[str, Path]
    notes: tuple[str, ...]
    content: Content

    @property
    def files(self) -> list[Path]:
        """All written files."""
        several = [*self.tables.values(), *self.plots.values()]
        tables_and_plots = (path for paths in several for path in paths)
        return [self.tidy, self.all_tables, *tables_and_plots, *self.exponents.values()]


@dataclass(frozen=True)
class Content:
    """The contents of a run folder, arranged as tables and plots.

    Attributes
    ----------
    run : Run
    tables : list of Table
    plots : list of PlotData
    """

    run: Run
    tables: list[Table]
    plots: list[PlotData]


def read_content(run_dir: Path, *, allow_contended: bool = False) -> Content:
    """Read a run folder and arrange its tables and plots.

    Raises
    ------
    ResultsError
        If the folder isn't a run folder, or its plan can't be fulfilled.
    """
    run = read_run(run_dir)
    plan_name = str(run.path / "plan.json")
    table_specs = [read_spec(raw, plan_name) for raw in run.tables]
    plot_specs = [read_plot(raw, plan_name) for raw in run.plots]
    names = [spec.name for spec in table_specs] + [spec.name for spec in plot_specs]
    for name in names:
        if names.count(name) > 1 or name in {"table", "tables"}:
            raise DamagedResultsError(
                f"{plan_name}: the name {name!r} is taken; each table and plot needs its own"
            )
    return Content(
        run=run,
        tables=[lay_out(run, spec, allow_contended=allow_contended) for spec in table_specs],
        plots=[read_plot_data(run, spec) for spec in plot_specs],
    )


def build(
    run_dir: Path | str, *, allow_contended: bool = False, endings: Sequence[str] = PLOT_ENDINGS
) -> BuiltReport:
    """Write the tables and plots of a run folder from its plan and records.

    The same records give the same bytes; every file is replaced in one step.

    Parameters
    ----------
    run_dir : Path or str
        Folder with ``plan.json``, ``runs.jsonl`` and ``environment-<id>.json``.
    allow_contended : bool, default False
        True to use times measured beside other workers like all other times. By default they are
        marked, and not compared with printed times.
    endings : sequence of str, default ("svg", "png")
        The file formats of each plot.

    Returns
    -------
    BuiltReport

    Raises
    ------
    ResultsError
        If the folder isn't a run folder, can't be written, or its plan can't be fulfilled.
    """
    content = read_content(Path(run_dir), allow_contended=allow_contended)
    run, tables, plots = content.run, content.tables, content.plots
    grids = (grid_of(run, t, allow_contended=allow_contended, in_seconds=True) for t in tables)
    sections = [markdown_table(grid) for grid in grids]

    written: dict[str, tuple[Path, ...]] = {}
    for table, section in zip(tables, sections, strict=True):
        name = table.spec.name
        written[name] = (
            write_text(run.path / f"{name}.csv", wide_csv(run, table)),
            write_text(run.path / f"{name}.md", section),
        )
    drawn: dict[str, tuple[Path, ...]] = {}
    fitted: dict[str, Path] = {}
    for plot in plots:
        name = plot.spec.name
        fits = run.path / f"{name}-exponents.csv"
        contents = draw_plot(run, plot, allow_contended=allow_contended, endings=endings)
        if not contents:
            # Remove the plot of an earlier run: a plot without points is not drawn.
            remove(fits, *(run.path / f"{name}.{ending}" for ending in PLOT_ENDINGS))
            continue
        drawn[name] = tuple(
            write_bytes(run.path / f"{name}.{ending}", content)
            for ending, content in contents.items()
        )
        if kind_of(plot.spec).fits:
            fitted[name] = write_text(fits, exponents_csv(plot))
    return BuiltReport(
        tidy=write_text(
            run.path / "table.csv", tidy_lines(run, tables, allow_contended=allow_contended)
        ),
        all_tables=write_text(run.path / "tables.md", _tables_md(run, tables, sections, plots)),
        tables=written,
        plots=drawn,
        exponents=fitted,
        notes=run.notes,
        content=content,
    )


def write_in_format(
    run_dir: Path, name: str, target: Path | None = None, *, allow_contended: bool = False
) -> list[Path]:
    """Write the tables and plots of a run folder in another format, and return the files.

    Parameters
    ----------
    run_dir : Path
    name : str
        The name of a format: a module of :mod:`svmbench.report.output.formats`, or of a plug-in.
    target : Path, optional
        The folder of the files; by default the folder `name` in `run_dir`.
    allow_contended : bool, default False
        True to use times that were measured while other cells ran.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the records can't be read, or the files can't be written.
    """
    content = read_content(run_dir, allow_contended=allow_contended)
    folder = target.as_posix() if target is not None else ""
    made = format_files(
        FORMATS.named(name), content, allow_contended=allow_contended, folder=folder
    )
    destination = target or run_dir / name
    try:
        if target is None:
            make_folder(destination)
        destination.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"can't write {destination}: {error.strerror or error}") from error
    return [write_bytes(destination / file, text) for file, text in made.items()]


def _tables_md(
    run: Run, tables: Sequence[Table], sections: Sequence[str], plots: Sequence[PlotData]
) -> str:
    """Return the content of ``tables.md``."""
    done = sum(cell.status == "ok" for cell in run.cells)
    environments = used_environments(run.cells)
    lines = [f"# {escape.markdown(run.title)}", ""]
    lines.append(
        f"Config {escape.markdown_code(run.name)}"
        + (f", paper {escape.markdown_code(run.paper)}" if run.paper else "")
        + f", profile **{escape.markdown(run.profile or 'none')}**;"
        f" {done} of {len(run.cells)} cells have results."
    )
    lines.append("")
    if exists_in_results(run.path / MANIFEST):
        lines += ["**From elsewhere**: these records were added from a pack.", ""]
    described = [describe_environment(run, name) for name in environments]
    lines += [f"- Environment {escape.markdown(environment)}" for environment in described]
    lines += [f"- {escape.markdown(note)}" for note in run.notes]
    if lines[-1]:
        lines.append("")
    lines += sections
    if not tables:
        lines += ["This config asks for no tables; `table.csv` has every number.", ""]
    for plot in plots:
        lines += [f"## {escape.markdown(plot.spec.heading)}", ""]
        if not plot.panels:
            lines += [f"Not drawn, there is no point: {escape.markdown(plot.gaps)}.", ""]
            continue
        lines += [f"![{escape.markdown_label(plot.spec.heading)}]({plot.spec.name}.svg)", ""]
        lines += [f"- {escape.markdown(sentence)}" for sentence in exponents(plot)]
        lines += [f"- Crossing: {escape.markdown(sentence)}." for sentence in plot.crossings]
        if lines[-1]:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def exponents(plot: PlotData) -> list[str]:
    """Return a sentence for each fitted exponent of a plot."""
    lines = []
    for panel in plot.panels:
        for series in panel.series:
            if series.fit is None:
                continue
            where = f"{panel.title}, {series.name}" if panel.title else series.name
            paper = ""
            if series.printed_exponent is not None:
                paper = f"; the paper prints {series.printed_exponent:g}"
            if series.printed_fit is not None:
                paper += (
                    f"; the same fit to its {series.printed_fit.n_points} printed points gives "
                    f"{series.printed_fit}"
                )
            lines.append(
                f"{where}: exponent {series.fit} from {series.fit.n_points} points of "
                f"{quantity(plot.y)}{paper}."
            )
    return lines
