"""Scan a user's file that stays on disk: its shape, labels and identity, from one pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from svmbench.base.errors import DataError
from svmbench.data import archives
from svmbench.data.archives import ending_of
from svmbench.data.blocks import open_blocks
from svmbench.data.dataset import Dataset
from svmbench.data.derive import MAX_RANGES, class_order, label_words, ranges, why_not_scaled

#: A column with more different values than this can't be the column of labels.
MAX_LABEL_VALUES = 1000

#: Estimated bytes of text for each byte of a compressed file.
TEXT_BYTES_PER_COMPRESSED_BYTE = 5

#: Estimated memory for loading a file, in bytes for each byte of text: the text and its arrays.
LOADING_MEMORY_FACTOR = 2


@dataclass(frozen=True)
class OnDisk:
    """The inputs of a file that is read in blocks; only their shape is known."""

    shape: tuple[int, int]
    unscalable: str = ""


def does_not_fit(path: str | Path, memory_gb: float) -> bool:
    """Return True if a file must be read in blocks: it doesn't fit the memory, or is Parquet.

    Parameters
    ----------
    path : str or Path
        The file. A missing file counts as small; another check reports it.
    memory_gb : float
        Memory limit of a process in GiB.
    """
    file = Path(path)
    if not file.is_file():
        return False
    size = file.stat().st_size * (
        1 if file.suffix.lower() == ending_of(file) else TEXT_BYTES_PER_COMPRESSED_BYTE
    )
    too_large = (
        LOADING_MEMORY_FACTOR * size > memory_gb * 2**30 or size > archives.MAX_UNPACKED_BYTES
    )
    return too_large or ending_of(file) == ".parquet"


def scan(path: str | Path, label_column: int | str | None = None) -> Dataset:
    """Read all rows of a file once, and return a data set whose inputs stay on disk.

    A process reads an unchanged file only once.

    Parameters
    ----------
    path, label_column
        As for :func:`svmbench.data.open_blocks`.

    Returns
    -------
    Dataset
        Data set with `OnDisk` inputs and coded labels.

    Raises
    ------
    DataError
        If the file is malformed, or has one class only or too many.
    """
    file = open_blocks(path, label_column=label_column).path.resolve()
    size, changed = file.stat().st_size, file.stat().st_mtime_ns
    X, y, classes, digest, sha256 = _scanned(file, label_column, size, changed)
    facts = {
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "task": "binary" if len(classes) == 2 else "multiclass",
        "classes": classes,
        "storage": "on disk, read in blocks",
        "source": "file",
        "verified": "user's own",
        "files": {file.name: sha256},
    }
    if X.unscalable:
        facts["unscalable"] = f"{file.name}: {X.unscalable}"
    return Dataset(str(path), X, y, None, None, facts, digest)


@lru_cache(maxsize=8)
def _scanned(
    path: Path, label_column: int | str | None, _size: int, _changed: int
) -> tuple[OnDisk, np.ndarray, list[str], str, str]:
    """Return a file's shape, labels, classes, identity and sha256 in its present state."""
    blocks = replace(open_blocks(path, label_column=label_column), as_words=True)
    code_of_label: dict[Any, int] = {}
    low = high = np.empty(0)
    codes, width = [], 0
    for X, labels in blocks:
        places, words = pd.factorize(labels)
        codes_of_block = [
            code_of_label.setdefault(word, len(code_of_label)) for word in words.tolist()
        ]
        codes.append(np.array(codes_of_block, dtype=np.int32)[places])
        width = max(width, X.shape[1])
        if width <= MAX_RANGES:
            bounds = (low, high) if codes[1:] else (np.full(width, np.inf), np.full(width, -np.inf))
            # A feature that sparse rows lacked so far is 0 in them.
            low, high = (np.pad(bound, (0, width - len(bound))) for bound in bounds)
            least, largest = (np.pad(bound, (0, width - len(bound))) for bound in ranges(X))
            low, high = np.minimum(low, least), np.maximum(high, largest)
        if len(code_of_label) > MAX_LABEL_VALUES:
            raise DataError(f"{path.name}: more than {MAX_LABEL_VALUES:,} different labels")
    is_text = any(isinstance(label, str) for label in code_of_label)
    words = label_words(np.array(list(code_of_label), dtype=object if is_text else np.float64))
    order = class_order(set(words))
    if len(order) < 2:
        raise DataError(f"{path.name} has one class only: {order[0]}")
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    sha256 = digest.hexdigest()
    digest.update(repr((blocks.reading, blocks.label_column)).encode())
    code_of = np.array([order.index(word) for word in words], dtype=np.int64)
    y = (2 * code_of - 1 if len(order) == 2 else code_of)[np.concatenate(codes)]
    return OnDisk((len(y), width), why_not_scaled(low, high)), y, order, digest.hexdigest(), sha256
