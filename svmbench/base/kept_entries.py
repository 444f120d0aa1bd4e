"""Results that later processes need not compute again, kept in the user's cache as JSON.

An entry has a key, which hashes all that the entry was computed from. :func:`surroundings` is the
part of such a key that covers this package and the installed ones.
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

#: Largest number of entries of a file. Beyond it, a process replaces them by those that it computed
#: itself.
MOST_KEPT_ENTRIES = 5_000


class KeptEntries:
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
        #: The entries that this process computed.
        self.own: dict[str, Any] = {}

    def place(self) -> Path:
        """Return the path of the file, which need not be there."""
        return paths.cache_dir() / "parsed" / _version(self._code) / f"{self._name}.json"

    def find(self, key: str) -> Any:
        """Return an entry, unchecked: the file may be damaged. None if there is no such entry."""
        return self.own[key] if key in self.own else _read(self.place()).get(key)

    def keep(self, path: Path | None = None) -> None:
        """Add the entries that this process computed to the file, or to another one.

        Nothing is kept if it can't be written.
        """
        if not self.own:
            return
        path = path or self.place()
        _read.cache_clear()  # another process may have written meanwhile
        kept = _read(path)
        entries = {**kept, **self.own} if len(kept) < MOST_KEPT_ENTRIES else self.own
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
    """Return the entries of a file; none if it is missing or damaged."""
    try:
        found = files.read_json(path)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def surroundings() -> str:
    """Return a hash of this package's files, of the data sets' registry and of what is installed.

    An installed package counts by its name and version. The hash takes 15 ms of CPU time.

    Returns
    -------
    str
        Empty if other code or other entries than those of this package may take part: plug-ins,
        registries or papers that an environment variable or an installed package names. It is also
        empty if a file can't be read, or if other users can write to the cache.
    """
    from importlib.metadata import entry_points

    from svmbench.base.plugin_names import PLUGINS_ENTRY_POINTS, VARIABLE

    further = (VARIABLE, paths.FURTHER_REGISTRIES, paths.FURTHER_PAPERS)
    groups = (PLUGINS_ENTRY_POINTS, paths.PAPERS_ENTRY_POINTS)
    if any(map(os.environ.get, further)) or any(entry_points(group=one) for one in groups):
        return ""
    digest = hashlib.sha256(sys.version.encode())
    try:
        cache_folder = paths.cache_dir()
        if cache_folder.exists() and paths.why_not_private(cache_folder):
            return ""
        for folder in sys.path:
            # The names of installed packages, and of the folders that have their versions.
            place = Path(folder)
            names = [one.name for one in place.iterdir()] if place.is_dir() else []
            packages = sorted(one for one in names if not one.startswith((".", "__pycache__")))
            digest.update(repr((folder, packages)).encode())
        for path in (paths.asset("datasets.toml"), *_files_below(paths.PACKAGE)):
            content = path.read_bytes()
            digest.update(f"{path}\0{len(content)}\0".encode())
            digest.update(content)
    except OSError:
        return ""
    return digest.hexdigest()


def _files_below(folder: Path | str) -> list[Path]:
    """Return the files of a folder and of those below it, without compiled modules."""
    found: list[Path] = []
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.is_dir():
            found += _files_below(entry.path) if entry.name != "__pycache__" else []
        else:
            found.append(Path(entry.path))
    return found
