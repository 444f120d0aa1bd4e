"""List and remove the cache's folders: prepared data sets, downloads, compiled loops, sources."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from svmbench.base import paths
from svmbench.base.errors import CacheError
from svmbench.data.store import CACHE_HINT

PREPARED, DOWNLOADED, COMPILED, PARSED = "prepared", "downloads", "numba", "parsed"
OPENML = "openml"
#: The names that this package gives to folders of each kind; other files are ignored. The first
#: group is the data set of prepared arrays.
_NAMES = {
    PREPARED: re.compile(r"(.+)-[0-9a-f]{16}|(file)-[0-9a-f]{24}"),
    DOWNLOADED: re.compile(r"(?:mirror|official)-[0-9a-f]{12}"),
    COMPILED: re.compile(r"[0-9a-f]{16}"),
    PARSED: re.compile(r"[0-9a-f]{16}"),
    OPENML: re.compile(r"([1-9][0-9]{0,8})"),
}
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True)
class CacheEntry:
    """A folder of the cache.

    Attributes
    ----------
    kind : str
        ``prepared``, ``downloads``, ``numba`` (compiled loops), ``parsed`` (hashes of the code
        that keys cover, outlines of valid configs, cards of solvers) or ``openml``.
    dataset : str
        The data set of prepared arrays or its number, the names of the downloaded files, or empty.
    path : Path
    n_bytes : int
    used : float
        The time at which one of its files was last written, or read as far as the file system
        notes reads, in seconds since the epoch.
    """

    kind: str
    dataset: str
    path: Path
    n_bytes: int
    used: float

    def is_older_than(self, days: float) -> bool:
        """Return True if the entry was not used for so many days."""
        return time.time() - self.used > days * SECONDS_PER_DAY


def cache_entries() -> Iterator[CacheEntry]:
    """Yield the folders of the cache by kind and name, without following links."""
    for kind, pattern in _NAMES.items():
        root = paths.cache_dir() / kind
        if root.is_symlink() or not root.is_dir():
            continue
        for folder in sorted(root.iterdir()):
            match = pattern.fullmatch(folder.name)
            if match is None or folder.is_symlink() or not folder.is_dir():
                continue
            facts = [(path, path.lstat()) for path in folder.rglob("*")]
            files = [(path, status) for path, status in facts if stat.S_ISREG(status.st_mode)]
            dataset = next(filter(None, match.groups()), "") if match.groups() else ""
            if kind == DOWNLOADED:
                names = sorted(
                    path.name for path, _ in files if path.suffix not in (".lock", ".version")
                )
                dataset = ", ".join(names) or "unfinished"
            yield CacheEntry(
                kind=kind,
                dataset="files of one's own" if dataset == "file" else dataset,
                path=folder,
                n_bytes=sum(status.st_size for _, status in files),
                used=max(
                    (max(status.st_mtime, status.st_atime) for _, status in files),
                    default=folder.stat().st_mtime,
                ),
            )


def remove_entry(entry: CacheEntry) -> bool:
    """Remove a folder of the cache; return False if another process is writing the data set.

    The folder is renamed first, so that a killed removal leaves no incomplete folder under its
    name. Processes that have its arrays open keep them.

    Raises
    ------
    CacheError
        If it can't be removed.
    """
    try:
        with ExitStack() as locks:
            for lock in _locks(entry):
                lock.parent.mkdir(parents=True, exist_ok=True)
                locks.enter_context(FileLock(lock, timeout=0))
            renamed = entry.path.with_name(f".{entry.path.name}-{os.getpid()}-removed")
            entry.path.rename(renamed)
            shutil.rmtree(renamed)
    except Timeout:
        return False
    except OSError as error:
        reason = error.strerror or str(error)
        raise CacheError(f"can't remove {entry.path}: {reason}{CACHE_HINT}") from error
    return True


def clean_cache(
    *, days: float | None = None, prepared: bool = False, dry_run: bool = False
) -> tuple[list[CacheEntry], list[CacheEntry]]:
    """Remove folders of the cache, and return them, and those that other processes are writing.

    Parameters
    ----------
    days : float, optional
        Leave folders that were used within so many days.
    prepared : bool, default False
        True to remove prepared data sets alone.
    dry_run : bool, default False
        True to remove nothing.

    Raises
    ------
    CacheError
        If one can't be removed.
    """
    removed: list[CacheEntry] = []
    busy: list[CacheEntry] = []
    for entry in list(cache_entries()):
        if (entry.kind == PREPARED or not prepared) and (days is None or entry.is_older_than(days)):
            (removed if dry_run or remove_entry(entry) else busy).append(entry)
    return removed, busy


def sizes_of(entries: Iterable[CacheEntry]) -> list[tuple[str, str, int]]:
    """Return the bytes of each kind and data set, the largest of each kind first."""
    sizes: dict[tuple[str, str], int] = {}
    for entry in entries:
        other = "facts about code and configs" if entry.kind == PARSED else "compiled loops"
        kind_and_name = entry.kind, entry.dataset or other
        sizes[kind_and_name] = sizes.get(kind_and_name, 0) + entry.n_bytes
    return sorted(
        ((kind, name, size) for (kind, name), size in sizes.items()),
        key=lambda row: (row[0], -row[2], row[1]),
    )


def _locks(entry: CacheEntry) -> list[Path]:
    """Return the locks that writers of a folder hold; compiled loops have none."""
    if entry.kind == DOWNLOADED:
        return sorted(entry.path.glob("*.lock"))
    if entry.kind == OPENML:
        return [paths.cache_dir() / "locks" / f"openml-{entry.path.name}.lock"]
    is_own_file = re.fullmatch(r"file-[0-9a-f]{24}", entry.path.name)
    name = entry.path.name if is_own_file else entry.dataset.removesuffix("+test")
    return [paths.cache_dir() / "locks" / f"{name}.lock"] if entry.kind == PREPARED else []
