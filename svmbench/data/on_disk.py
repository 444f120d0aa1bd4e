"""A user's own file that stays on disk: what a plan has to know of it, from one pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from svmbench.base.errors import DataError
from svmbench.data import archives
from svmbench.data.blocks import open_blocks
from svmbench.data.prepare import Dataset
from svmbench.data.userfile import ending_of

#: Labels of so many kinds are no classes: another column was taken for them.
MOST_CLASSES = 1000

#: How many bytes of text a byte of a compressed file stands for, where memory is estimated.
UNPACKED = 5

#: While a file is loaded, its text is in memory beside its arrays, each of about the text's size.
LOADED = 2


@dataclass(frozen=True)
class OnDisk:
    """The inputs of a file that is read in blocks: their shape is known, and nothing else."""

    shape: tuple[int, int]


def does_not_fit(path: str | Path, memory_gb: float) -> bool:
    """Whether a file is to be read in blocks, since its arrays don't fit, or are never made.

    Parameters
    ----------
    path : str or Path
        One that is not there fits: that it is missing is said elsewhere.
    memory_gb : float
        What a process may hold, GiB.
    """
    place = Path(path)
    if not place.is_file():
        return False
    size = place.stat().st_size * (1 if place.suffix == ending_of(place) else UNPACKED)
    too_large = LOADED * size > memory_gb * 2**30 or size > archives.CEILING
    return too_large or ending_of(place) == ".parquet"


def scan(path: str | Path, label_column: int | str | None = None) -> Dataset:
    """Return a file as a data set whose inputs stay on disk, after a pass that checks all rows.

    A file that has not changed is gone over once a process.

    Parameters
    ----------
    path, label_column
        As :func:`svmbench.data.open_blocks` takes them.

    Returns
    -------
    Dataset
        With `OnDisk` inputs; labels coded as those of any data set.

    Raises
    ------
    DataError
        As the blocks do; if there is one class only, or there are too many.
    """
    place = open_blocks(path, label_column=label_column).path.resolve()
    size, changed = place.stat().st_size, place.stat().st_mtime_ns
    X, y, classes, digest = _scanned(place, label_column, size, changed)
    facts = {
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "task": "binary" if len(classes) == 2 else "multiclass",
        "classes": classes,
        "storage": "on disk, read in blocks",
        "source": "file",
        "verified": "user's own",
    }
    return Dataset(str(path), X, y, None, None, facts, digest)


@lru_cache(maxsize=8)
def _scanned(
    place: Path, label_column: int | str | None, _size: int, _changed: int
) -> tuple[OnDisk, np.ndarray, list[str], str]:
    """Return shape, labels, classes and identity of a file as it is now."""
    blocks = open_blocks(place, label_column=label_column)
    found: dict[Any, int] = {}
    codes, width = [], 0
    for X, labels in blocks:
        words, places = np.unique(labels, return_inverse=True)
        own = [found.setdefault(word, len(found)) for word in words.tolist()]
        codes.append(np.array(own, dtype=np.int32)[places])
        width = max(width, X.shape[1])
        if len(found) > MOST_CLASSES:
            raise DataError(f"{place.name}: more than {MOST_CLASSES:,} different labels")
    if len(found) < 2:
        raise DataError(f"{place.name} has one class only: {next(iter(found))}")
    with place.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    digest.update(repr((blocks.reading, blocks.label_column)).encode())
    order = sorted(found, key=lambda label: (isinstance(label, str), label))
    code_of = np.empty(len(order), dtype=np.int64)
    for code, label in enumerate(order):
        code_of[found[label]] = 2 * code - 1 if len(order) == 2 else code
    y = code_of[np.concatenate(codes)]
    names = [str(label) for label in order]
    return OnDisk((len(y), width)), y, names, digest.hexdigest()
