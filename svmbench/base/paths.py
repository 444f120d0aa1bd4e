"""Paths of the user's cache, and of the files that ship with the package."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from svmbench.base.errors import ConfigError
from svmbench.base.escape import line

PACKAGE = Path(__file__).resolve().parents[1]
#: The environment variable that names the cache folder.
CACHE_VARIABLE = "SVMBENCH_CACHE"


def cache_dir() -> Path:
    """Return the cache folder: ``SVMBENCH_CACHE``, else ``svmbench`` in the user's cache.

    Own code: platformdirs names the same folder on Linux, and its import takes 8 ms of CPU time.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return expanded(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else expanded("~/.cache")) / "svmbench"


def expanded(name: str) -> Path:
    """Return a path in which ``~`` and ``~user`` stand for home folders.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If there is no such user, or nobody says where the user's home folder is.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{line(name, 200)}: the home folder is not known; give the whole path"
        ) from None


def asset(name: str) -> Path:
    """Return where ``datasets.toml`` or ``configs`` lies: in a checkout, or in a wheel."""
    installed = PACKAGE / "_assets" / name
    return installed if installed.exists() else PACKAGE.parent / name


def shipped_configs() -> list[Path]:
    """Return the paths of the configs that ship with the package, by name."""
    return sorted(asset("configs").glob("*.yaml"))


#: Names files with entries of data sets of one's own, separated as in ``PATH``.
FURTHER_REGISTRIES = "SVMBENCH_DATASETS"
#: Names folders of further papers, separated as in ``PATH``.
FURTHER_PAPERS = "SVMBENCH_PAPERS"
#: The group of entry points by which an installed package names folders of papers.
PAPERS_ENTRY_POINTS = "svmbench.papers"


def registry_files() -> tuple[Path, ...]:
    """Return the files with entries of data sets: the one that ships, then the user's own."""
    further = filter(None, os.environ.get(FURTHER_REGISTRIES, "").split(os.pathsep))
    return asset("datasets.toml"), *map(expanded, further)


def why_not_private(folder: Path) -> str:
    """Return why other users could put files into a folder, in a sentence's part; empty if not.

    The folder and those above it have to belong to this user or to root, and no one else may write
    there: not its group either, unless that is the user's own (of the user's number). In a folder
    above it, a sticky bit (``/tmp``) keeps others from exchanging it.
    """
    place = folder.resolve()
    for each in (place, *place.parents):
        facts = each.stat()
        kept = each != place and facts.st_mode & stat.S_ISVTX
        if facts.st_uid not in (0, os.geteuid()):
            return f"{each} belongs to another user"
        if facts.st_mode & stat.S_IWOTH and not kept:
            return f"anybody can write to {each}"
        if facts.st_mode & stat.S_IWGRP and not kept and facts.st_gid not in (0, facts.st_uid):
            return f"a group can write to {each}"
    return ""


#: What no name of a file or of a data set may hold: separators, and what a terminal acts on.
_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_FILE_NAME_BYTES = 200


def why_unfit(name: str) -> str:
    """Return why a name can't be that of a file, in a few words; empty if it can.

    Names come from registries, configs and the addresses of downloads; a name that holds a
    separator would put a file outside the folder that it is meant for.
    """
    if name in ("", ".", ".."):
        return "is no name of a file"
    if _UNFIT.search(name):
        return "holds a separator or a control character"
    if len(name.encode()) > MAX_FILE_NAME_BYTES:
        return f"is longer than {MAX_FILE_NAME_BYTES} bytes"
    return ""


def read_regular(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file that holds no more than `most` of them.

    A pipe, a socket or a device under a file's name could make a reader wait, or read, for ever.

    Raises
    ------
    OSError
        If it can't be read, is no regular file, or is larger; `strerror` says so.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with opened_regular(descriptor, path, most) as stream:
        # Not `most`: a reader takes as much memory at once as it asks for.
        return stream.read(os.fstat(stream.fileno()).st_size)


def opened_regular(descriptor: int, path: Path, most: int) -> BinaryIO:
    """Return the stream of a descriptor that was opened without waiting, after looking at its file.

    Raises
    ------
    OSError
        If it is no regular file, or holds more than `most` bytes; the descriptor is then closed.
    """
    facts = os.fstat(descriptor)
    try:
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if facts.st_size > most:
            raise OSError(errno.EFBIG, f"more than the {most:,} allowed bytes", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def is_file(name: str) -> bool:
    """Return True if a text, of any length and of any characters, is the path of a file."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null character
        return False
