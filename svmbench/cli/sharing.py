"""The commands `pack`, `add` and `archive`, which take runs to other machines and to registers."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from svmbench.base.errors import DamagedResultsError, DataError, ResultsError, UnknownNameError
from svmbench.base.escape import line
from svmbench.cli import terminal
from svmbench.cli.options import FOLDER, MIRROR, RESULTS

if TYPE_CHECKING:
    from svmbench.report.output.packs import Manifest

#: The folder of added runs, in a folder of results.
_CONTRIBUTED = "contributed"


@click.command("pack")
@click.argument("run", type=FOLDER)
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    metavar="FILE",
    help="The file to write.  [default: RUN's name with .svmbench.zip, here]",
)
def pack_run(run: Path, output: Path | None) -> None:
    r"""Pack a run into one file, to be added on another machine.

    The file holds the plan, the records, their environments, and the sha256 of each file and data
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
@click.argument("file", type=FOLDER)
@click.option(
    "--results",
    type=FOLDER,
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    help="The folder of results, below whose folder 'contributed' the run goes.",
)
@MIRROR
def add(file: Path, results: Path, mirror: str | None) -> None:
    r"""Check a pack from another machine, and put its run below results/contributed.

    Checked are the schema, the sha256 of each file, the version of svmbench, the shape of plan and
    records, and the sha256 of each data set against the data here, which are prepared if need be.
    Nothing of a pack is executed. Whether its numbers are right is not known until 'svmbench
    recheck' has run some of its cells again: until then tables, verdicts and pages call them "from
    elsewhere".

    \b
    Examples:
      svmbench add smo_variants-epyc.zip
      svmbench recheck results/contributed --budget 5
    """
    from svmbench.base.files import exists_in_results, replaced
    from svmbench.baselines.catalogue import load_plugins
    from svmbench.report.output.builder import build
    from svmbench.report.output.packs import unpack_pack

    load_plugins()
    with tempfile.TemporaryDirectory(prefix="svmbench-add-") as scratch:
        manifest = unpack_pack(file, Path(scratch))
    _check_data(file, manifest, mirror)
    target = results / _CONTRIBUTED / manifest.folder_name
    if exists_in_results(target):
        terminal.print_line(f"{target} is there already, with the same results")
        return
    try:
        with replaced(target) as made:
            # Read again, not moved: whatever happens meanwhile, only checked bytes are placed.
            if unpack_pack(file, made) != manifest:
                raise DamagedResultsError(f"{file} is refused: it changed while it was read")
            build(made)
            made.chmod(0o755)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
    terminal.print_line(f"{target}: from elsewhere; 'svmbench recheck {target}' confirms it here")


@click.command()
@RESULTS
@click.option(
    "-o",
    "--output",
    type=FOLDER,
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

    RESULTS are run folders, or folders that hold some (default: the folder results). The archive
    has a pack of each run, the site of all, and metadata: CITATION.cff, ro-crate-metadata.json
    (RO-Crate 1.1), and codecheck.yml, which lists the tables and plots of a paper; of several
    papers, each has a codecheck-PAPER.yml. Runs that were added from packs are left out.

    \b
    Examples:
      svmbench archive results/smo -o smo-archive --author "J. Doe"
      svmbench archive -o archive --title "Our SVM results" --date 2026-11-30
    """
    import svmbench
    from svmbench.base.files import exists_in_results, replaced
    from svmbench.cli.publishing import kept_results, make_site, repository
    from svmbench.report.output.archives import PACKS, SITE, About, write_metadata
    from svmbench.report.output.packs import write_pack
    from svmbench.report.reading.folders import is_contributed, runs_below
    from svmbench.report.reading.records import read_run

    folders = results or (kept_results(),)
    own = [path for path in runs_below(folders).values() if not is_contributed(path)]
    if not own:
        raise ResultsError("there is no run of this machine to archive")
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
    terminal.print_error("packing the runs and writing the pages; the first time takes minutes")
    with replaced(output) as made:
        (made / PACKS).mkdir()
        for path in own:
            write_pack(path, made / PACKS / f"{'-'.join(path.resolve().parts[-2:])}.svmbench.zip")
        make_site(tuple(own), made / SITE)
        written = write_metadata(made, [read_run(path) for path in own], about)
        names = [path.name for path in written]
        made.chmod(0o755)
    terminal.print_line(
        f"{output}: {len(own)} {'pack' if len(own) == 1 else 'packs'}, the site, {', '.join(names)}"
    )


def _check_data(file: Path, manifest: Manifest, mirror: str | None) -> None:
    """Refuse a pack whose data sets are unknown here or have other content."""
    from svmbench import data

    for name, stated in manifest.datasets.items():
        shown = line(repr(name), 80)
        try:
            known = _known_contents(manifest, name, mirror) or {
                data.load(name, mirror=mirror).sha256
            }
        except UnknownNameError as error:
            raise DamagedResultsError(
                f"{file} is refused: its data set {shown} is not registered here"
            ) from error
        except DataError as error:
            raise ResultsError(
                f"{file} can't be checked: its data set {shown} is not available here: {error}"
            ) from error
        if other := sorted(set(stated) - known):
            raise DamagedResultsError(
                f"{file} is refused: its results rest on other data than {shown} here: sha256"
                f" {line(other[0], 64) or 'unknown'}, not {min(known)}"
            )


def _known_contents(manifest: Manifest, dataset: str, mirror: str | None) -> set[str]:
    """Return the sha256 of a data set in a shipped config's plan, where novelty sets are made."""
    from svmbench.base.paths import shipped_configs
    from svmbench.experiment.plan.planner import prepare_plan

    if manifest.config not in [path.stem for path in shipped_configs()]:
        return set()
    plan = prepare_plan(
        manifest.config, manifest.profile, mirror=mirror, only={"dataset": [dataset]}
    )
    return {
        cell.spec["data_sha256"]
        for cell in plan.cells
        if cell.shown.get("dataset") == dataset and cell.spec.get("data_sha256")
    }


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (pack_run, add, archive):
        group.add_command(command)
