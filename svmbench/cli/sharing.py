"""The commands `pack`, `add` and `archive`, which take runs to other machines and to registers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from svmbench.base.errors import ResultsError
from svmbench.cli import terminal
from svmbench.cli.options import ANY_PATH, MIRROR, RESULTS


@click.command("pack")
@click.argument("run", type=ANY_PATH)
@click.option(
    "-o",
    "--output",
    type=ANY_PATH,
    metavar="FILE",
    help="The file to write.  [default: RUN's name with .svmbench.zip, here]",
)
def pack_run(run: Path, output: Path | None) -> None:
    r"""Pack a run into one file, to be added on another machine.

    The file has the plan, the records, their environments, and the sha256 of each file and data
    set: no name of a user or host, and no plot. The same run gives the same bytes.

    \b
    Examples:
      svmbench pack results/smo_variants-paper
      svmbench pack results/smo/smo_variants -o smo_variants-epyc.zip
    """
    from svmbench.report.output.packs import write_pack

    target = output or Path(f"{run.resolve().name}.svmbench.zip")
    write_pack(run, target)
    terminal.print_line(f"{target}: {target.stat().st_size:,} bytes; 'svmbench add' takes it")


@click.command()
@click.argument("file", type=ANY_PATH)
@click.option(
    "--results",
    type=ANY_PATH,
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    help="The folder of results, below whose folder 'contributed' the run goes.",
)
@MIRROR
def add(file: Path, results: Path, mirror: str | None) -> None:
    r"""Check a pack from another machine, and put its run below results/contributed.

    It checks the schema, the sha256 of each file, the version of svmbench, the shape of plan and
    records, and the sha256 of each data set against the data here, which are prepared if need be.
    Nothing of a pack is executed. Tables, verdicts and pages call its numbers "from elsewhere"
    until 'svmbench recheck' has run some of its cells again and confirmed them.

    \b
    Examples:
      svmbench add smo_variants-epyc.zip
      svmbench recheck results/contributed --budget 5
    """
    from svmbench.studies.sharing import add_pack

    target, is_new = add_pack(file, results, mirror=mirror)
    if not is_new:
        terminal.print_line(f"{target} is there already, with the same results")
        return
    terminal.print_line(f"{target}: from elsewhere; 'svmbench recheck {target}' confirms it here")


@click.command()
@RESULTS
@click.option(
    "-o",
    "--output",
    type=ANY_PATH,
    metavar="DIR",
    default=Path("archive"),
    show_default=True,
    help="A new folder.",
)
@click.option(
    "--title", default="Results of svmbench", show_default=True, help="Title of the archive."
)
@click.option(
    "--author",
    "authors",
    multiple=True,
    default=("the svmbench maintainers",),
    show_default=True,
    metavar="NAME",
    help="Who made the results; may be given several times.",
)
@click.option(
    "--checker", default="", metavar="NAME", help="Who checked the results, for codecheck.yml."
)
@click.option(
    "--date",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="Day of publication.  [default: today]",
)
def archive(
    results: tuple[Path, ...],
    output: Path,
    title: str,
    authors: tuple[str, ...],
    checker: str,
    date: datetime | None,
) -> None:
    r"""Write an archive of results that a register can take.

    RESULTS are run folders, or folders that contain some (default: the folder results). The archive
    has a pack of each run, the site of all, and metadata: CITATION.cff, ro-crate-metadata.json
    (RO-Crate 1.1), and codecheck.yml, which lists the tables and plots of a paper; of several
    papers, each has a codecheck-PAPER.yml. Runs that were added from packs are left out.

    \b
    Examples:
      svmbench archive results/smo -o smo-archive --author "J. Doe"
      svmbench archive -o archive --title "Our SVM results" --date 2026-11-30
    """
    import svmbench
    from svmbench.base.files import exists_in_results
    from svmbench.report.output.archives import About
    from svmbench.studies.judging import kept_results, repository
    from svmbench.studies.sharing import runs_to_archive, write_archive

    runs = runs_to_archive(results or (kept_results(),))
    if exists_in_results(output):
        raise ResultsError(f"{output} is there already: name another folder with -o")
    about = About(
        title=title,
        version=svmbench.__version__,
        license="BSD-3-Clause",
        authors=authors,
        date=(date or datetime.now(UTC)).strftime("%Y-%m-%d"),
        repository=repository(),
        checker=checker,
    )
    terminal.print_stderr("packing the runs and writing the pages; the first time takes minutes")
    names = write_archive(runs, output, about)
    packs = f"{len(runs)} {'pack' if len(runs) == 1 else 'packs'}"
    terminal.print_line(f"{output}: {packs}, the site, {', '.join(names)}")


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (pack_run, add, archive):
        group.add_command(command)
