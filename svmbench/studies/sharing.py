"""Add runs from packs, and write archives of results."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from svmbench.base.errors import DamagedResultsError, DataError, ResultsError, UnknownNameError
from svmbench.base.escape import line

if TYPE_CHECKING:
    from svmbench.report.output.archives import About
    from svmbench.report.output.packs import Manifest


#: The folder of added runs, in a folder of results.
_CONTRIBUTED = "contributed"


def add_pack(file: Path, results: Path, *, mirror: str | None = None) -> tuple[Path, bool]:
    """Check a pack, and put its run below the folder ``contributed`` of the results.

    Nothing of a pack is executed.

    Parameters
    ----------
    file : Path
    results : Path
        The folder of results.
    mirror : str, optional
        As for :func:`svmbench.data.ensure`.

    Returns
    -------
    target : Path
        The folder of the run.
    is_new : bool
        False if the folder was there already, with the same results.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If the pack is refused; with the reason.
    svmbench.base.errors.ResultsError
        If its data sets are not available here, or the folder can't be written.
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
        return target, False
    try:
        with replaced(target) as folder:
            # The pack is read and checked again, because moved files may have changed meanwhile.
            if unpack_pack(file, folder) != manifest:
                raise DamagedResultsError(f"{file} is refused: it changed while it was read")
            build(folder)
            folder.chmod(0o755)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
    return target, True


def runs_to_archive(folders: Sequence[Path]) -> list[Path]:
    """Return the runs of this machine below some folders.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If there are none.
    """
    from svmbench.report.reading.folders import is_contributed, runs_below

    runs = [path for path in runs_below(folders).values() if not is_contributed(path)]
    if not runs:
        raise ResultsError("there is no run of this machine to archive")
    return runs


def write_archive(runs: Sequence[Path], output: Path, about: About) -> list[str]:
    """Write an archive: a pack of each run, the site of all, and metadata for registers.

    Parameters
    ----------
    runs : sequence of Path
        Run folders.
    output : Path
        A new folder.
    about : About
        Title, authors and date of the archive.

    Returns
    -------
    list of str
        The names of the files with metadata.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the folder is there already.
    """
    from svmbench.base.files import exists_in_results, replaced
    from svmbench.report.output.archives import PACKS, SITE, write_metadata
    from svmbench.report.output.packs import write_pack
    from svmbench.report.reading.records import read_run
    from svmbench.studies.judging import make_site

    if exists_in_results(output):
        raise ResultsError(f"{output} is there already: name another folder with -o")
    with replaced(output) as folder:
        (folder / PACKS).mkdir()
        for path in runs:
            write_pack(path, folder / PACKS / f"{'-'.join(path.resolve().parts[-2:])}.svmbench.zip")
        make_site(tuple(runs), folder / SITE)
        written = write_metadata(folder, [read_run(path) for path in runs], about)
        folder.chmod(0o755)
    return [path.name for path in written]


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
    """Return the hashes of a data set in the plan of a shipped config.

    Planning makes the sets for novelty detection, which no registry has.
    """
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
        if cell.identity.get("dataset") == dataset and cell.spec.get("data_sha256")
    }
