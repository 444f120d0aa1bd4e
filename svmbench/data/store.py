"""The prepared cache: a folder a data set, arrays as .npy that are mapped, never read.

A folder is written under a temporary name and renamed when it is whole, so that it is there
completely or not at all. ``meta.json`` holds every file's size; a folder whose files have other
sizes was damaged, and is prepared again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from svmbench.data.derive import Derived
from svmbench.errors import CacheError

#: What to do about a cache that can't be written.
ELSEWHERE = " (SVMBENCH_CACHE names another place)"

#: Part of every key: raise it when the layout or the meaning of prepared arrays changes.
FORMAT = 1


def write(folder: Path, derived: Derived, facts: dict[str, Any]) -> dict[str, Any]:
    """Write a data set into `folder` and return its facts, completed.

    The caller holds the data set's lock: two writers would remove each other's work.

    Parameters
    ----------
    folder : Path
        Must not exist, or is replaced.
    derived : Derived
        The arrays.
    facts : dict
        What JSON can hold; ``"sha256"`` is added, the identity of the arrays' content.

    Raises
    ------
    CacheError
        If it can't be written (a full disk, a read-only folder); nothing is left behind.
    """
    try:
        return _write(folder, derived, facts)
    except OSError as error:
        # NumPy's error for a short write has no number, and so no text of its own.
        why = error.strerror or "the disk is full or a file may not be as large"
        raise CacheError(f"can't write {folder}: {why}{ELSEWHERE}") from error


def _write(folder: Path, derived: Derived, facts: dict[str, Any]) -> dict[str, Any]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f".{folder.name}-*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    temporary = folder.with_name(f".{folder.name}-{os.getpid()}-{uuid4().hex[:8]}")
    temporary.mkdir()
    try:
        arrays: dict[str, np.ndarray] = {}
        for stem, value in (
            ("X", derived.X),
            ("y", derived.y),
            ("X_test", derived.X_test),
            ("y_test", derived.y_test),
        ):
            arrays |= _arrays(stem, value)
        identity = hashlib.sha256()
        shapes = {"X": derived.X.shape}
        if derived.X_test is not None:
            shapes["X_test"] = derived.X_test.shape
        for key, array in arrays.items():
            identity.update(f"{key} {array.dtype.str} {array.shape}".encode())
            identity.update(np.ascontiguousarray(array).data)
            np.save(temporary / f"{key}.npy", array)
        identity.update(json.dumps({key: list(shape) for key, shape in shapes.items()}).encode())
        facts = {**facts, "sha256": identity.hexdigest()}
        meta = {
            "facts": facts,
            "shapes": {key: list(shape) for key, shape in shapes.items()},
            "sizes": {f"{key}.npy": (temporary / f"{key}.npy").stat().st_size for key in arrays},
        }
        (temporary / "meta.json").write_text(json.dumps(meta, indent=1, ensure_ascii=False))
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return facts


def _arrays(stem: str, value: Any) -> dict[str, np.ndarray]:
    if value is None:
        return {}
    if sp.issparse(value):
        return {
            f"{stem}.data": value.data,
            f"{stem}.indices": value.indices,
            f"{stem}.indptr": value.indptr,
        }
    return {stem: value}


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Return the facts of a prepared data set, or None if it isn't there or is damaged."""
    meta = _meta(folder)
    return None if meta is None else meta["facts"]


def _meta(folder: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads((folder / "meta.json").read_text())
        whole = all((folder / name).stat().st_size == size for name, size in meta["sizes"].items())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return meta if whole else None


def read(folder: Path) -> tuple[Derived, dict[str, Any]] | None:
    """Map a prepared data set's arrays read-only; None if it isn't there or is damaged."""
    meta = _meta(folder)
    if meta is None:
        return None
    try:
        X, y = _mapped(folder, "X", meta), np.load(folder / "y.npy", mmap_mode="r")
        X_test = y_test = None
        if "X_test" in meta["shapes"]:
            X_test = _mapped(folder, "X_test", meta)
            y_test = np.load(folder / "y_test.npy", mmap_mode="r")
    except (OSError, ValueError):
        return None
    return Derived(X, y, X_test, y_test, meta["facts"]["classes"]), meta["facts"]


def _mapped(folder: Path, stem: str, meta: dict[str, Any]) -> Any:
    if f"{stem}.npy" in meta["sizes"]:
        return np.load(folder / f"{stem}.npy", mmap_mode="r")
    data, indices, indptr = (
        np.load(folder / f"{stem}.{part}.npy", mmap_mode="r")
        for part in ("data", "indices", "indptr")
    )
    return csr_view(data, indices, indptr, tuple(meta["shapes"][stem]))


def csr_view(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """Return CSR over the given arrays without copying; their indices are sorted and unique."""
    X = sp.csr_array((data, indices, indptr), shape=shape, copy=False)
    # scipy copies a view that is much smaller than what it is a view of; these shall stay mapped.
    X.data, X.indices, X.indptr = data, indices, indptr
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def rows_of(X: Any, start: int, stop: int) -> Any:
    """Return rows `start` up to `stop`, as views of the mapped arrays."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = int(X.indptr[start]), int(X.indptr[stop])
    indptr = X.indptr[start : stop + 1]
    if first:
        indptr = indptr - X.indptr.dtype.type(first)
    return csr_view(X.data[first:last], X.indices[first:last], indptr, (stop - start, X.shape[1]))
