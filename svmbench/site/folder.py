"""Replace the target folder of a site in one step, and never overwrite other files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.base.files import read_text, replaced
from svmbench.report.reading.folders import SITE as MARKER


def check_place(target: Path) -> Path:
    """Return the target folder, if it is new, empty, or holds only an earlier site.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the folder has files that are not part of a site.
    """
    folder = target.resolve()
    if not folder.exists():
        return folder
    if not folder.is_dir():
        raise ResultsError(f"{target} is not a folder: name another one with -o")
    files = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if _is_no_folder(path)
    }
    if not files:
        if any(folder.iterdir()):
            raise ResultsError(
                f"{target} contains folders that are not part of a site: name another one with -o"
            )
        return folder
    if MARKER not in files:
        raise ResultsError(
            f"{target} is not empty and was not made by 'svmbench site': name another one with -o"
        )
    try:
        made = set(read_text(folder / MARKER).splitlines())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ResultsError(f"can't read {target / MARKER}: {why}") from error
    strangers = sorted(files - made - {MARKER})
    if strangers:
        raise ResultsError(
            f"{target} contains {strangers[0]}, which is not part of the site: "
            "move it away, or name another folder with -o"
        )
    return folder


@contextmanager
def placed(target: Path) -> Iterator[Path]:
    """Yield an empty folder, which replaces `target` if the body succeeds.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If `target` has other files, or can't be written.
    """
    folder = check_place(target)
    try:
        with replaced(folder) as made:
            yield made
            files = sorted(p.relative_to(made).as_posix() for p in made.rglob("*") if p.is_file())
            (made / MARKER).write_text("\n".join(files) + "\n", encoding="utf-8")
            # Temporary folders are private, but the site must be readable.
            made.chmod(0o755)
            # Check again: never overwrite files that were added meanwhile.
            check_place(target)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error


def _is_no_folder(path: Path) -> bool:
    return path.is_symlink() or not path.is_dir()
