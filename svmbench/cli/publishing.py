"""Commands that show results: tables, verdicts, pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, Unpack

import click

from svmbench.base.errors import ConfigError, ResultsError
from svmbench.cli import terminal
from svmbench.cli.completion import FormatName
from svmbench.cli.options import AGES, ANY_PATH, CLAIMS_FILE, RESULTS, TRUST_CHECKS


@click.command()
@click.argument("results", type=ANY_PATH)
@click.option(
    "--allow-contended", is_flag=True, help="Use times that were measured while other cells ran."
)
@click.option(
    "--format",
    "form",
    type=FormatName(),
    metavar="NAME",
    help="Write the tables and plots in another format: latex, or one of 'svmbench list formats'."
    "  [default: Markdown, CSV, SVG and PNG, into RESULTS]",
)
@click.option(
    "-o",
    "--output",
    type=ANY_PATH,
    metavar="DIR",
    help="Folder for the files of --format.  [default: the folder NAME in RESULTS]",
)
def table(results: Path, allow_contended: bool, form: str | None, output: Path | None) -> None:
    r"""Rebuild the tables and plots of a results folder from its records alone.

    With --format latex, write tables for papers (booktabs, one unit a column, the best values in
    bold), plots as PDF, and the caption of each plot as a .tex file beside it.

    \b
    Examples:
      svmbench table results/alsvm_table2-quick
      svmbench table results/alsvm/alsvm_table2 --format latex -o thesis/tables
    """
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.studies.judging import ages_of

    console = terminal.console()
    load_plugins()
    if form is None:
        if output is not None:
            raise ConfigError("-o is for --format: other files go to the results folder")
        from svmbench.report.reading.folders import origin_of

        rebuild(results, console, allow_contended=allow_contended)
        known = ages_of(results)
        facts = filter(None, [origin_of(results, known), known.sentence()])
        terminal.print_on(console, f"results: {', '.join(facts)}")
        return
    from svmbench.report.output.builder import write_in_format

    for file in write_in_format(results, form, output, allow_contended=allow_contended):
        terminal.print_on(console, file)


def rebuild(
    path: Path,
    console: Any,
    *,
    quiet: bool = False,
    allow_contended: bool = False,
    only_overview: bool = False,
) -> None:
    """Make the tables and plots of a results folder.

    Unless it is quiet, name the files, or print an overview of them.
    """
    from svmbench.report.output.builder import build

    built = build(path, allow_contended=allow_contended)
    if only_overview and not quiet:
        from svmbench.cli.overview import print_overview

        print_overview(built)
    for file in () if quiet or only_overview else built.files:
        terminal.print_on(console, file)


class _Judged(TypedDict):
    """The options of several commands on how claims are judged."""

    file: Path | None
    ages: bool
    trust: bool


@click.command()
@RESULTS
@CLAIMS_FILE
@AGES
@TRUST_CHECKS
@click.option(
    "--paper", "only", multiple=True, metavar="PAPER", help="Judge this paper's claims only."
)
@click.option(
    "--claim", "names", multiple=True, metavar="ID", help="Judge this claim only, with details."
)
@click.option("--details", is_flag=True, help="Show every part of every verdict.")
@click.option(
    "--printed",
    is_flag=True,
    help="Judge the numbers that the papers print, instead of records.",
)
@click.option(
    "--format",
    "form",
    type=FormatName(beside=("terminal", "json")),
    metavar="NAME",
    default="terminal",
    show_default=True,
    help="terminal, json, or one of 'svmbench list formats'.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the parts of the one claim that --claim names to an SVG file.",
)
def claims(
    results: tuple[Path, ...],
    only: tuple[str, ...],
    names: tuple[str, ...],
    details: bool,
    printed: bool,
    form: str,
    plot: Path | None,
    **judged: Unpack[_Judged],
) -> None:
    r"""Judge the papers' claims from kept records alone.

    RESULTS are run folders, or folders that contain some (default: the folder results). The outcome
    of a claim is supported, mixed, contradicted, undecided or not tested. Its scale is full (the
    paper's data and protocol), reduced or stand-in (other data). With --details or --claim, also
    print the measured numbers, the rule, the uncertainty, the CPU, and the command that made the
    records. Results of each CPU model, and runs added from packs, are judged separately. A claim
    then shows the first verdict that decides it, and lists all of them.

    With --printed, claims are judged by the numbers that the papers print, if there are any. A
    claim can be contradicted by its paper's own table.

    \b
    Examples:
      svmbench claims --paper smo
      svmbench claims --claim alsvm-4 results/alsvm
      svmbench claims --claim smo-1 --plot smo-1.svg
      svmbench claims --printed
      svmbench claims results/ other/results/
      svmbench claims --format markdown > verdicts.md
    """
    from svmbench.papers.judging import export
    from svmbench.studies import judging

    file, trust = judged["file"], judged["trust"]
    if plot is not None and (len(names) != 1 or plot.suffix != ".svg"):
        raise ConfigError("--plot draws one claim to an SVG file: --claim ID --plot FILE.svg")
    wanted = judging.claims_named(only, names, file=file, trust=trust)
    if printed:
        if results:
            raise ConfigError("--printed judges the papers' numbers, and takes no folder")
        verdicts = judging.printed_verdicts(wanted, trust=trust)
        if not verdicts:
            raise ResultsError("no paper prints numbers that decide these claims")
    else:
        judging.refuse_claims(results)
        folders = results or (judging.kept_results(),)
        if not results and not Path("results").is_dir():
            terminal.print_stderr(f"judged from the results that svmbench has kept: {folders[0]}")
        lookup = judging.lookup_of_ages() if judged["ages"] else None
        verdicts = judging.judge_folders(wanted, folders, lookup, trust=trust)
        if not any(verdict.parts for verdict in verdicts):
            judging.require_results(folders)
    if plot is not None:
        from svmbench.base.files import write_text
        from svmbench.papers.judging.picture import draw_parts

        (drawn,) = judging.with_printed_values(verdicts, trust=trust)
        terminal.print_line(write_text(plot, draw_parts(drawn.parts, most=None)))
        return
    if form == "terminal":
        if details or names:
            terminal.print_columns(export.as_details(verdicts))
        else:
            width = terminal.table_width(export.TABLE_WIDTH, len(export.VERDICT_COLUMNS))
            terminal.print_columns(
                export.as_rows(verdicts, width), export.VERDICT_COLUMNS, export.OUTCOME_STYLES
            )
        terminal.print_line(export.summary(verdicts))
        terminal.check_written()
        return
    terminal.write_output(export.in_format(form, verdicts))


@click.command()
@RESULTS
@CLAIMS_FILE
@AGES
@TRUST_CHECKS
@click.option(
    "-o",
    "--output",
    type=ANY_PATH,
    metavar="DIR",
    default=Path("site"),
    show_default=True,
    help="Folder of the pages: new, empty, or an earlier site, which is replaced.",
)
def site(
    results: tuple[Path, ...], output: Path, file: Path | None, ages: bool, trust: bool
) -> None:
    r"""Make a static site of results: verdicts, one page per paper, one page per solver.

    RESULTS are run folders, or folders that contain some (default: the folder results).
    The pages are made from the records alone, and link to them.

    \b
    Examples:
      svmbench site
      svmbench site results/alsvm results/smo_adult_rbf-quick -o pages
    """
    from svmbench.cli.progress import Waiting
    from svmbench.studies.judging import make_site

    terminal.print_stderr("judging the claims and writing the pages; the first time takes minutes")
    with Waiting("reading the records") as waiting:
        index, _ = make_site(results, output, file=file, ages=ages, trust=trust, tell=waiting.step)
    terminal.print_line(index)


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (table, claims, site):
        group.add_command(command)
