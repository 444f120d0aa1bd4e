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
    """Return the cache folder: ``SVMBENCH_CACHE``, or ``svmbench`` in the user's cache.

    The package platformdirs would return the same folder on Linux, but its import takes 8 ms of CPU
    time.
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return expanded(folder)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else expanded("~/.cache")) / "svmbench"


def expanded(name: str) -> Path:
    """Return a path with ``~`` and ``~user`` replaced by home folders.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If there is no such user, or the home folder is unknown.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{line(name, 200)}: the home folder is not known; give the whole path"
        ) from None


def asset(name: str) -> Path:
    """Return the path of ``datasets.toml`` or ``configs``, in a checkout or an installed wheel."""
    installed = PACKAGE / "_assets" / name
    return installed if installed.exists() else PACKAGE.parent / name


def shipped_configs() -> list[Path]:
    """Return the paths of the configs that ship with the package, sorted by name."""
    return sorted(asset("configs").glob("*.yaml"))


#: The environment variable that names further registries of data sets, separated as in ``PATH``.
FURTHER_REGISTRIES = "SVMBENCH_DATASETS"
#: The environment variable that names folders of further papers, separated as in ``PATH``.
FURTHER_PAPERS = "SVMBENCH_PAPERS"
#: The group of entry points by which an installed package names folders of papers.
PAPERS_ENTRY_POINTS = "svmbench.papers"


def registry_files() -> tuple[Path, ...]:
    """Return the registries of data sets: the file that ships, then the user's files."""
    further = filter(None, os.environ.get(FURTHER_REGISTRIES, "").split(os.pathsep))
    return asset("datasets.toml"), *map(expanded, further)


def why_not_private(folder: Path) -> str:
    """Return why other users could put files into a folder, as part of a sentence; or "".

    The folder and all folders above it must belong to this user or to root, and only their owner
    may write there. Their group may, too, if it is root's or has the user's number. A folder above
    it may be writable for all if it has the sticky bit, as ``/tmp`` has: then others can't replace
    the folder.
    """
    resolved = folder.resolve()
    for each in (resolved, *resolved.parents):
        facts = each.stat()
        is_sticky = each != resolved and facts.st_mode & stat.S_ISVTX
        if facts.st_uid not in (0, os.geteuid()):
            return f"{each} belongs to another user"
        if facts.st_mode & stat.S_IWOTH and not is_sticky:
            return f"anybody can write to {each}"
        if facts.st_mode & stat.S_IWGRP and not is_sticky and facts.st_gid not in (0, facts.st_uid):
            return f"a group can write to {each}"
    return ""


#: Characters that the name of a file or data set must not have: separators, control characters.
_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_FILE_NAME_BYTES = 200


def why_unfit(name: str) -> str:
    """Return why a name can't be the name of a file, as part of a sentence; empty if it can.

    Names come from registries, configs and the addresses of downloads. A name with a separator
    would put a file outside its folder.
    """
    if name in ("", ".", ".."):
        return "is no name of a file"
    if _UNFIT.search(name):
        return "has a separator or a control character"
    if len(name.encode()) > MAX_FILE_NAME_BYTES:
        return f"is longer than {MAX_FILE_NAME_BYTES} bytes"
    return ""


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    A pipe, a socket or a device in place of the file could block a reader, or never end.

    Raises
    ------
    OSError
        If the file can't be read, is not a regular file, or is larger; `strerror` is the reason.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with opened_regular(descriptor, path, most) as stream:
        # Don't read `most` bytes: `read` allocates memory for the requested number of bytes.
        return stream.read(os.fstat(stream.fileno()).st_size)


def opened_regular(descriptor: int, path: Path, most: int) -> BinaryIO:
    """Return the stream of a non-blocking file descriptor, after checking the file.

    Raises
    ------
    OSError
        If it is not a regular file, or has more than `most` bytes; the descriptor is then closed.
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
    """Return True if a text is the path of a file; any text is allowed."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null character
        return False
