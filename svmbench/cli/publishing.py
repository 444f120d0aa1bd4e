"""Commands that show results: tables, verdicts, pages. Each imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

import svmbench
from svmbench.base.errors import ConfigError, ResultsError, UnknownNameError
from svmbench.base.paths import PACKAGE, shipped_configs
from svmbench.cli import terminal
from svmbench.cli.options import FOLDER, FRESHNESS, RESULTS, THRESHOLDS, TRUST_CHECKS

if TYPE_CHECKING:
    from svmbench.papers.judging.entries import Claim
    from svmbench.papers.judging.verdict import Verdict
    from svmbench.report.reading.records import Run
    from svmbench.schema.rechecks import Ages
    from svmbench.site.material import FreshnessLookup


@click.command()
@click.argument("results", type=FOLDER)
@click.option(
    "--allow-contended", is_flag=True, help="Use times that were measured while other cells ran."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "latex"]),
    default="markdown",
    show_default=True,
    help="'markdown' writes Markdown, CSV, SVG and PNG into RESULTS; 'latex' writes LaTeX and PDF.",
)
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    metavar="DIR",
    help="Folder for LaTeX and PDF.  [default: the folder latex in RESULTS]",
)
def table(results: Path, allow_contended: bool, form: str, output: Path | None) -> None:
    r"""Rebuild the tables and plots of a results folder from its records alone.

    With --format latex, write tables for papers (booktabs, one unit a column, the best values in
    bold), plots as PDF, and the caption of each plot as a .tex file beside it.

    \b
    Examples:
      svmbench table results/alsvm_table2-quick
      svmbench table results/alsvm/alsvm_table2 --format latex -o thesis/tables
    """
    from svmbench.baselines.catalogue import load_plugins

    console = terminal.console()
    load_plugins()
    if form == "markdown":
        if output is not None:
            raise ConfigError("-o is for --format latex: other files go to the results folder")
        from svmbench.report.reading.folders import origin_of

        rebuild(results, console, allow_contended=allow_contended)
        known = ages_of(results)
        said = filter(None, [origin_of(results, known), known.sentence()])
        terminal.print_on(console, f"results: {', '.join(said)}")
        return
    from svmbench.base.files import make_folder, write_bytes
    from svmbench.report.output.builder import read_content
    from svmbench.report.output.latex import paper_files

    content = read_content(results, allow_contended=allow_contended)
    target = output or results / "latex"
    named = output.as_posix() if output is not None else ""
    made = paper_files(content, allow_contended=allow_contended, folder=named)
    try:
        if output is None:
            make_folder(target)
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
    for name, text in made.items():
        terminal.print_on(console, write_bytes(target / name, text))


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
    """How claims are judged: the options of several commands."""

    file: Path | None
    freshness: bool
    trust: bool


@click.command()
@RESULTS
@THRESHOLDS
@FRESHNESS
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
    type=click.Choice(["terminal", "json", "markdown", "latex"]),
    default="terminal",
    show_default=True,
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

    RESULTS are run folders, or folders that hold some (default: the folder results). The outcome
    of a claim is supported, mixed, contradicted, undecided or not tested. Its scale is full (the
    paper's data and protocol), reduced or stand-in (other data). With --details or --claim, also
    print the measured numbers, the rule, the uncertainty, the CPU, and the command that made the
    records. Results of each CPU model, and runs added from packs, are judged separately. A claim
    then shows the first verdict that decides it, and lists all of them.

    With --printed, the papers' own numbers go through the same rules, where a claim has some. A
    claim that they contradict is one that the paper's table contradicts.

    \b
    Examples:
      svmbench claims --paper smo
      svmbench claims --claim alsvm-4 results/alsvm
      svmbench claims --claim smo-1 --plot smo-1.svg
      svmbench claims --printed
      svmbench claims results/ other/results/
      svmbench claims --format markdown > verdicts.md
    """
    from svmbench.base.paper_folders import papers
    from svmbench.papers import judging
    from svmbench.papers.judging import export

    for paper in only:
        if paper not in papers():
            raise UnknownNameError("paper", paper, list(papers()))
    file, trust = judged["file"], judged["trust"]
    if plot is not None and (len(names) != 1 or plot.suffix != ".svg"):
        raise ConfigError("--plot draws one claim to an SVG file: --claim ID --plot FILE.svg")
    known = judging.read_all_claims(file, metrics=_metrics(file), trust=trust)
    for name in names:
        if name not in [one.id for one in known]:
            raise UnknownNameError("claim", name, [one.id for one in known])
    wanted = [
        one for one in known if (not only or one.paper in only) and (not names or one.id in names)
    ]
    if printed:
        if results:
            raise ConfigError("--printed judges the papers' numbers, and takes no folder")
        verdicts = _printed_verdicts(wanted, trust=trust)
        if not verdicts:
            raise ResultsError("no paper prints numbers that decide these claims")
    else:
        folders = results or (kept_results(),)
        if not results and not Path("results").is_dir():
            terminal.print_error(f"judged from the results that svmbench has kept: {folders[0]}")
        verdicts = _verdicts(wanted, folders, _age(look=judged["freshness"]), trust=trust)
        if not any(verdict.parts for verdict in verdicts):
            _require_results(folders)
    if plot is not None:
        from svmbench.base.files import write_text
        from svmbench.papers.judging.picture import draw_parts

        (drawn,) = _with_printed_values(verdicts, trust=trust)
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
    shown = {"json": export.as_json, "markdown": export.as_markdown, "latex": export.as_latex}
    terminal.write_output(shown[form](verdicts))


@click.command()
@RESULTS
@THRESHOLDS
@FRESHNESS
@TRUST_CHECKS
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    metavar="DIR",
    default=Path("site"),
    show_default=True,
    help="Folder of the pages: new, empty, or an earlier site, which is replaced.",
)
def site(
    results: tuple[Path, ...], output: Path, file: Path | None, freshness: bool, trust: bool
) -> None:
    r"""Make a static site of results: verdicts, one page per paper, one page per solver.

    RESULTS are run folders, or folders that hold some (default: the folder results).
    The pages are made from the records alone, and link to them.

    \b
    Examples:
      svmbench site
      svmbench site results/alsvm results/smo_adult_rbf-quick -o pages
    """
    terminal.print_error("judging the claims and writing the pages; the first time takes minutes")
    index, _ = make_site(results, output, file=file, freshness=freshness, trust=trust)
    terminal.print_line(index)


def make_site(
    results: tuple[Path, ...],
    output: Path,
    *,
    file: Path | None = None,
    freshness: bool = True,
    beside: Path | None = None,
    trust: bool = False,
) -> tuple[Path, str]:
    """Make a site of some results; return its first page, and the verdicts in a sentence.

    Parameters
    ----------
    results : tuple of Path
        Folders; none for those that are kept.
    output : Path
    file : Path, optional
        The claims; those that ship with the package by default.
    freshness : bool, default=True
        Whether to say which results are fresh, rechecked, changed or older.
    beside : Path, optional
        A folder of kept records, which decide where `results` leave a claim open.
    trust : bool, default=False
        Whether the checks of papers run that don't ship with this package.
    """
    from svmbench.base.paper_folders import papers
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.cli.solver_cards import solver_cards
    from svmbench.papers import judging
    from svmbench.papers.judging.export import summary
    from svmbench.site import Material, PaperFacts, SolverFacts, build_site, check_place

    folders = results or (kept_results(),)
    check_place(output)
    load_plugins()
    cards = solver_cards()
    known = judging.read_all_claims(file, metrics=_metrics(file), trust=trust)
    age = _age(look=freshness)
    verdicts = _verdicts(known, folders, age, trust=trust)
    if beside is not None:
        verdicts = judging.completed(verdicts, _verdicts(known, [beside], age, trust=trust))
    made = build_site(
        Material(
            folders=tuple(folders),
            verdicts=tuple(_with_printed_values(verdicts, trust=trust)),
            papers={
                key: PaperFacts(
                    paper.title, paper.citation, paper.configs, paper.claimed, paper.url
                )
                for key, paper in papers().items()
            },
            solvers={
                name: SolverFacts(facts, tuple(deviations)) for name, facts, deviations in cards
            },
            variants=_variants(),
            datasets=_dataset_facts(),
            repository=repository(),
            freshness=age,
            version=svmbench.__version__,
        ),
        output,
    )
    return made.index, summary(verdicts)


def ages_of(folder: Path, run: Run | None = None) -> Ages:
    """Return which results of a run folder are fresh, rechecked, changed or older.

    A caller that has read the folder's run passes it, so that it isn't read again.
    """
    from svmbench.experiment.plan.freshness import changes, is_present
    from svmbench.report.reading.records import read_run
    from svmbench.schema.rechecks import KeptResult, ages, read_rechecks

    said = changes(folder)
    cells = (run or read_run(folder)).cells
    # An unfinished cell has no result, though its finished points stand beside it.
    without = {cell.key for cell in cells if cell.status != "ok"}
    results = {
        cell.key: KeptResult(
            cell.key, str(cell.solver), str(cell.dataset), is_fresh=said.get(cell.key) == ""
        )
        for cell in cells
        if cell.key not in without
    }
    return ages(results.values(), read_rechecks(folder, is_present))


def kept_results() -> Path:
    """Return where results are kept: here, or in the checkout that this program runs from."""
    here = Path("results")
    found = here if here.is_dir() else PACKAGE.parent / "results"
    if not found.is_dir():
        raise ResultsError("there is no folder results here: name the folders to judge from")
    return found


def _age(*, look: bool) -> FreshnessLookup | None:
    """Return a cached lookup of the ages of a run folder's results, or None if `look` is False."""
    if not look:
        return None
    found: dict[Path, Ages] = {}

    def age(folder: Path, run: Run | None = None) -> Ages:
        place = folder.resolve()
        if place not in found:
            found[place] = ages_of(place, run)
        return found[place]

    return age


def _metrics(file: Path | None) -> list[str]:
    """Return the metrics that a file of claims may name."""
    if file is None:
        return []
    from svmbench.experiment.config.requested_metrics import reported_metrics

    return reported_metrics()


def _verdicts(
    known: Sequence[Claim], folders: Sequence[Path], age: FreshnessLookup | None, *, trust: bool
) -> list[Verdict]:
    """Judge some claims from some folders, each machine apart and all together."""
    from svmbench.papers import judging
    from svmbench.report.reading.folders import CONFIRMED, ELSEWHERE, OURS, origin_of

    look: judging.Freshness | None = (
        None if age is None else lambda source: age(source.run.path, source.run)
    )

    def origin(verdict: Verdict) -> str:
        places = [Path(folder) for folder, _, _ in verdict.sources]
        found = {origin_of(place, None if age is None else age(place)) for place in places}
        return next((one for one in (ELSEWHERE, CONFIRMED) if one in found), OURS)

    apart = {
        machine: judging.judge(known, kept, look, trust=trust)
        for machine, kept in judging.gather_by_machine(list(folders)).items()
    }
    return judging.judge_together(apart, origin)


def _printed_verdicts(known: Sequence[Claim], *, trust: bool) -> list[Verdict]:
    """Judge claims by the numbers that their papers print; leave out those without such numbers."""
    from svmbench.base.paper_folders import papers
    from svmbench.papers import judging
    from svmbench.papers.judging.printed import printed_evidence

    return [
        verdict
        for key, paper in papers().items()
        if (own := [claim for claim in known if claim.paper == key])
        for verdict in judging.judge(own, printed_evidence(paper), trust=trust)
        if any(part.cells for part in verdict.parts)
    ]


def _with_printed_values(verdicts: Sequence[Verdict], *, trust: bool) -> list[Verdict]:
    """Return verdicts with what the same rules make of the printed numbers."""
    from svmbench.papers.judging.printed import beside_printed

    claims = [verdict.claim for verdict in verdicts]
    return beside_printed(verdicts, _printed_verdicts(claims, trust=trust))


def _require_results(folders: Sequence[Path]) -> None:
    """Raise a ResultsError if no folder holds a run or tables: probably another one was meant."""
    from svmbench.report.reading.folders import folders_with_tables, run_folders

    if not any(run_folders(folder) or folders_with_tables(folder) for folder in folders):
        verb = "holds" if len(folders) == 1 else "hold"
        raise ResultsError(
            f"{', '.join(map(str, folders))} {verb} no results: name run folders, or a folder that "
            "has some; 'svmbench run CONFIG' makes them"
        )


def _dataset_facts() -> dict[str, dict[str, Any]]:
    """Return the facts about each data set of the registry, by name."""
    from svmbench import data

    left_out = ("dataset", "where")
    return {
        row["dataset"]: {key: value for key, value in row.items() if key not in left_out}
        for row in data.list_rows()
    }


def repository() -> str:
    """Return the address of the repository from the project's metadata, or ''."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("svmbench").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(str(url).split(", ", 1) for url in urls if ", " in str(url))
    return next((named[key] for key in ("Repository", "Source") if key in named), "")


def _variants() -> dict[tuple[str, str], str]:
    """Return the solver's name for each label in a config that ships, by config and label."""
    from svmbench.report.numbers.forecasts import shipped_config

    found: dict[tuple[str, str], str] = {}

    def look(part: Any, config: str) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("name"), str) and isinstance(part.get("label"), str):
                found[config, part["label"]] = part["name"]
            part = list(part.values())
        if isinstance(part, list):
            for one in part:
                look(one, config)

    for path in shipped_configs():
        look(shipped_config(path.stem), path.stem)
    return found


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (table, claims, site):
        group.add_command(command)
