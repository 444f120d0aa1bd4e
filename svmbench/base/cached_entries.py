"""Computed values in the user's cache, as JSON, for later processes.

An entry has a key, a hash of everything that the entry was computed from. :func:`surroundings` is
the part of such a key that covers this package and the installed packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from svmbench.base import files, paths
from svmbench.base.errors import SvmbenchError

#: A file with this many entries or more is replaced, not extended.
MAX_CACHED_ENTRIES = 5_000


class CachedEntries:
    """Entries by key, in a file of the user's cache that all processes share.

    Parameters
    ----------
    name : str
        The file's name, without its suffix.
    code : str
        The path of the module that computes the entries. If its content or Python's version
        changes, another file is used.
    """

    def __init__(self, name: str, code: str) -> None:
        self._name = name
        self._code = Path(code)
        #: The entries that this process has computed.
        self.new: dict[str, Any] = {}

    def place(self) -> Path:
        """Return the path of the file, which may be missing."""
        return paths.cache_dir() / "parsed" / _version(self._code) / f"{self._name}.json"

    def find(self, key: str) -> Any:
        """Return an entry, or None. It is not checked: the file may be damaged."""
        return self.new[key] if key in self.new else _read(self.place()).get(key)

    def write(self, path: Path | None = None) -> None:
        """Add the entries that this process has computed to the file, or to another file.

        An error of writing is ignored.
        """
        if not self.new:
            return
        path = path or self.place()
        _read.cache_clear()  # another process may have written meanwhile
        earlier = _read(path)
        entries = {**earlier, **self.new} if len(earlier) < MAX_CACHED_ENTRIES else self.new
        with suppress(OSError, SvmbenchError):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(path, json.dumps(entries))
        _read.cache_clear()


@cache
def _version(code: Path) -> str:
    """Return a hash of a module's file and of Python's version."""
    return hashlib.sha256(code.read_bytes() + sys.version.encode()).hexdigest()[:16]


@cache
def _read(path: Path) -> Mapping[str, Any]:
    """Return the entries of a file; empty if it is missing or damaged."""
    try:
        entries = files.read_json(path)
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def surroundings() -> str:
    """Return a hash of this package's files, the registry of data sets and the installed packages.

    An installed package is represented by its name and version. The hash takes 15 ms of CPU time.

    Returns
    -------
    str
        The hash. It is empty if an environment variable or an installed package names plug-ins,
        registries or papers, whose content the hash wouldn't cover; if a file can't be read; or if
        other users can write to the cache.
    """
    from importlib.metadata import entry_points

    from svmbench.base.plugin_names import PLUGINS_ENTRY_POINTS, VARIABLE

    further = (VARIABLE, paths.FURTHER_REGISTRIES, paths.FURTHER_PAPERS)
    groups = (PLUGINS_ENTRY_POINTS, paths.PAPERS_ENTRY_POINTS)
    if any(map(os.environ.get, further)) or any(entry_points(group=group) for group in groups):
        return ""
    digest = hashlib.sha256(sys.version.encode())
    try:
        cache_folder = paths.cache_dir()
        if cache_folder.exists() and paths.why_not_private(cache_folder):
            return ""
        for folder in sys.path:
            # The names of installed packages, and of their folders of metadata with the versions.
            root = Path(folder)
            names = [entry.name for entry in root.iterdir()] if root.is_dir() else []
            packages = sorted(name for name in names if not name.startswith((".", "__pycache__")))
            digest.update(repr((folder, packages)).encode())
        for path in (paths.asset("datasets.toml"), *_files_below(paths.PACKAGE)):
            content = path.read_bytes()
            digest.update(f"{path}\0{len(content)}\0".encode())
            digest.update(content)
    except OSError:
        return ""
    return digest.hexdigest()


def _files_below(folder: Path | str) -> list[Path]:
    """Return all files below a folder, without compiled modules."""
    paths_below: list[Path] = []
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        if entry.is_dir():
            paths_below += _files_below(entry.path) if entry.name != "__pycache__" else []
        else:
            paths_below.append(Path(entry.path))
    return paths_below
