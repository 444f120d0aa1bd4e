"""A file system of 512 kB that tests and ``scripts/fuzz.py`` fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(place: Path) -> Iterator[Path]:
    """Mount a file system of 512 kB at a new folder.

    Raises
    ------
    PermissionError
        If this user may not: only root may.
    """
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PermissionError(f"can't mount a file system at {place}") from error
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, *, leave: int) -> None:
    """Write a file that leaves so many bytes of a disk free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filling").write_bytes(bytes(max(0, free - leave)))


def make_room(disk: Path) -> None:
    """Remove the file that fills a disk, and let the disk have 8 MB."""
    (disk / "filling").unlink()
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)


def is_one_sentence(complained: str) -> bool:
    """Return whether a command said one line on standard error, without a traceback."""
    return len(complained.splitlines()) == 1 and "--debug" not in complained
