"""Find run folders, and folders that have tables without records."""

from __future__ import annotations

from pathlib import Path

#: The file that marks a folder as a site and lists its files. Runs inside a site are copies, which
#: are ignored.
SITE = ".svmbench-site"


def run_folders(root: Path) -> list[Path]:
    """Return the folders with a plan at or below `root`, in order."""
    return _holding(root, "plan.json")


def folders_with_tables(root: Path) -> list[Path]:
    """Return the folders at or below `root` with tables, in order."""
    return _holding(root, "tables.md")


def bare_folders(root: Path) -> list[Path]:
    """Return the folders at or below `root` with tables but without a plan, in order."""
    return [path for path in folders_with_tables(root) if not (path / "plan.json").is_file()]


def _holding(root: Path, name: str) -> list[Path]:
    found = (path.parent for path in sorted(root.rglob(name)))
    return [one for one in found if not (_is_hidden(one, root) or _is_of_a_site(one, root))]


def _is_hidden(folder: Path, root: Path) -> bool:
    """Return True for a folder in a hidden one: an unfinished folder, or one left by a kill."""
    return any(part.startswith(".") for part in folder.relative_to(root).parts)


def _is_of_a_site(folder: Path, root: Path) -> bool:
    between = [folder, *folder.parents]
    return any((one / SITE).is_file() for one in between[: between.index(root) + 1])
