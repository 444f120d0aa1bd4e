"""Writing a file, or a folder, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svmbench.errors import ResultsError


def write_bytes(path: Path, content: bytes) -> Path:
    """Replace `path` by `content` in one step; return `path`.

    A reader (or a killed writer) never leaves half a file behind: the bytes go to a temporary file
    in the same folder, which is then renamed.

    Raises
    ------
    ResultsError
        If the folder can't be written.
    """
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
        # mkstemp makes files private; tables are for everybody whom the folder lets in.
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)  # noqa: PTH105 - the one call that says what it promises
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise ResultsError(f"can't write {path}: {error.strerror or error}") from error
    return path


def remove(*paths: Path) -> None:
    """Remove the files that are there.

    Raises
    ------
    ResultsError
        If one can't be removed.
    """
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ResultsError(f"can't remove {path}: {error.strerror or error}") from error


def write_text(path: Path, content: str) -> Path:
    """Replace `path` by `content` (UTF-8, line ends as given) in one step; return `path`."""
    return write_bytes(path, content.encode("utf-8"))


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Hand out an empty folder that takes the place of `target`, unless something goes wrong."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        made, former = Path(scratch) / "made", Path(scratch) / "former"
        made.mkdir()
        yield made
        if target.exists():
            target.rename(former)
        try:
            made.rename(target)
        except BaseException:
            if former.exists():
                former.rename(target)
            raise
