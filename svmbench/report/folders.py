"""Finding runs: every folder with a plan, and those that hold tables alone."""

from __future__ import annotations

from pathlib import Path

#: The file that says of a folder that it is a site, and which files are its own. What of runs lies
#: in a site is a copy: the runs themselves count.
SITE = ".svmbench-site"


def run_folders(root: Path) -> list[Path]:
    """Return the folders with a plan at or below `root`, in order."""
    return _holding(root, "plan.json")


def folders_with_tables(root: Path) -> list[Path]:
    """Return the folders at or below `root` that hold tables, in order."""
    return _holding(root, "tables.md")


def bare_folders(root: Path) -> list[Path]:
    """Return the folders at or below `root` that hold tables and no plan, in order."""
    return [path for path in folders_with_tables(root) if not (path / "plan.json").is_file()]


def _holding(root: Path, name: str) -> list[Path]:
    found = (path.parent for path in sorted(root.rglob(name)))
    return [one for one in found if not (_is_hidden(one, root) or _is_of_a_site(one, root))]


def _is_hidden(folder: Path, root: Path) -> bool:
    """Whether a folder lies in a hidden one, as what is being made does, or a kill left behind."""
    return any(part.startswith(".") for part in folder.relative_to(root).parts)


def _is_of_a_site(folder: Path, root: Path) -> bool:
    between = [folder, *folder.parents]
    return any((one / SITE).is_file() for one in between[: between.index(root) + 1])
