"""Find run folders, and folders that have tables without records; tell whose runs they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.base.files import exists_in_results
from svmbench.schema.rechecks import MANIFEST, RECHECKS, Ages

#: The file that marks a folder as a site and lists its files. Runs inside a site are copies, which
#: are ignored.
SITE = ".svmbench-site"
#: What the files beside the records of a run are.
BESIDE_RECORDS = {RECHECKS: "rechecks (one JSON line each)", MANIFEST: "manifest of a pack (JSON)"}
#: Where the results of a run come from.
OURS, CONFIRMED, ELSEWHERE = "ours", "confirmed here", "from elsewhere"


def run_folders(root: Path) -> list[Path]:
    """Return the folders with a plan at or below `root`, in order."""
    return _folders_with(root, "plan.json")


def runs_below(folders: Iterable[Path]) -> dict[Path, Path]:
    """Return the run folders at or below some folders, each once, by their resolved paths.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If one of the folders is missing.
    """
    by_real_path: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise ResultsError(f"{folder} is no folder of results")
        for run in run_folders(folder):
            by_real_path.setdefault(run.resolve(), run)
    return by_real_path


def our_runs(folders: Iterable[Path]) -> list[Path]:
    """Return the run folders at or below some folders that were not added from a pack."""
    return [run for run in runs_below(folders).values() if not is_contributed(run)]


def folders_with_tables(root: Path) -> list[Path]:
    """Return the folders at or below `root` with tables, in order."""
    return _folders_with(root, "tables.md")


def bare_folders(root: Path) -> list[Path]:
    """Return the folders at or below `root` with tables but without a plan, in order."""
    return [path for path in folders_with_tables(root) if not (path / "plan.json").is_file()]


def _folders_with(root: Path, name: str) -> list[Path]:
    folders = (path.parent for path in sorted(root.rglob(name)))
    return [
        folder
        for folder in folders
        if not (_is_hidden(folder, root) or _is_of_a_site(folder, root))
    ]


def _is_hidden(folder: Path, root: Path) -> bool:
    """Return True for a folder in a hidden one: an unfinished folder, or one left by a kill."""
    return any(part.startswith(".") for part in folder.relative_to(root).parts)


def _is_of_a_site(folder: Path, root: Path) -> bool:
    between = [folder, *folder.parents]
    return any((folder / SITE).is_file() for folder in between[: between.index(root) + 1])


def origin_of(folder: Path, known: Ages | None) -> str:
    """Return the origin of a run: ours, confirmed here, or from elsewhere.

    Parameters
    ----------
    folder : Path
        A run folder.
    known : Ages or None
        A contributed run is confirmed if a recheck on this machine drew a whole sample of it, and
        all of the sample agreed.
    """
    if not is_contributed(folder):
        return OURS
    return CONFIRMED if known is not None and known.is_sampled else ELSEWHERE


def is_contributed(folder: Path) -> bool:
    """Return True if a run folder was added from a pack."""
    return exists_in_results(folder / MANIFEST)
