"""The cache of prepared data sets: one folder each, with memory-mapped .npy files.

A folder is written under a temporary name and renamed when it is complete. ``meta.json`` has the
size of every file and the sha256 of the arrays' content. If a size or the content differs, the
folder is damaged and the data set is prepared again.

The content of a small data set is hashed (0.9 GB/s) each time it is opened; that of a large one
once in a process. Workers don't hash large data sets, because their parent has hashed them for the
plan.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from svmbench.base import paths
from svmbench.base.errors import CacheError
from svmbench.data.derive import Derived

#: Hint in errors about an unwritable cache.
CACHE_HINT = " (SVMBENCH_CACHE names another place)"

#: Part of every cache key; raise it after a change of the layout or meaning of prepared arrays.
CACHE_FORMAT = 1

#: Data sets with more bytes than this are hashed once in a process.
MAX_BYTES_HASHED_AT_OPENING = 8 << 20

_MAX_META_BYTES = 1 << 24
_REQUIRED_FACTS: dict[str, type | tuple[type, ...]] = {
    "sha256": str,
    "n_samples": int,
    "n_features": int,
    "n_test": int,
    "classes": list,
    "counts": list,
    "density": (int, float),
    "storage": str,
    "task": str,
    "source": str,
    "verified": str,
}

#: States of the large folders whose content this process has hashed.
_hashed: set[tuple[Any, ...]] = set()
_trusts_large = False


def trust_large_sets() -> None:
    """Don't hash large data sets in this process; its parent has hashed them."""
    global _trusts_large
    _trusts_large = True


def write(folder: Path, derived: Derived, facts: dict[str, Any]) -> dict[str, Any]:
    """Write a data set into `folder`; return its facts with the checksum.

    The caller must hold the lock of the data set: two writers would remove each other's files.

    Parameters
    ----------
    folder : Path
        Target folder; an existing folder is replaced.
    derived : Derived
        The arrays.
    facts : dict
        Values that JSON can have; ``"sha256"`` of the arrays' content is added.

    Raises
    ------
    CacheError
        If writing fails (a full disk, a read-only folder); no file is left behind.
    """
    try:
        return _write(folder, derived, facts)
    except OSError as error:
        # NumPy's error for a short write has no errno and no message.
        reason = error.strerror or "the disk is full or a file may not be as large"
        raise CacheError(f"can't write {folder}: {reason}{CACHE_HINT}") from error


def _write(folder: Path, derived: Derived, facts: dict[str, Any]) -> dict[str, Any]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for unfinished in folder.parent.glob(f".{folder.name}-*"):  # left by a killed process
        shutil.rmtree(unfinished, ignore_errors=True)
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
        shapes = {"X": list(derived.X.shape)}
        if derived.X_test is not None:
            shapes["X_test"] = list(derived.X_test.shape)
        for key, array in arrays.items():
            np.save(temporary / f"{key}.npy", array)
        facts = {**facts, "sha256": _identity(arrays, shapes)}
        meta = {
            "facts": facts,
            "shapes": shapes,
            "sizes": {f"{key}.npy": (temporary / f"{key}.npy").stat().st_size for key in arrays},
        }
        (temporary / "meta.json").write_text(json.dumps(meta, indent=1, ensure_ascii=False))
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)
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


def _identity(arrays: dict[str, np.ndarray], shapes: dict[str, list[int]]) -> str:
    """Return the sha256 of the arrays' names, types, shapes and bytes."""
    identity = hashlib.sha256()
    for key, array in arrays.items():
        identity.update(f"{key} {array.dtype.str} {array.shape}".encode())
        identity.update(np.ascontiguousarray(array).data)
    identity.update(json.dumps(shapes).encode())
    return identity.hexdigest()


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Return the facts of a prepared data set, or None if a file is missing.

    The content of the arrays is not checked; see :func:`map_arrays`.
    """
    meta = _meta(folder)
    return None if meta is None else dict(meta["facts"])


def _meta(folder: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads(paths.read_regular(folder / "meta.json", _MAX_META_BYTES))
        facts, shapes, sizes = meta["facts"], meta["shapes"], meta["sizes"]
        has_facts = all(isinstance(facts[name], kind) for name, kind in _REQUIRED_FACTS.items())
        has_shapes = all(
            stem in ("X", "X_test")
            and len(shape) == 2
            and all(isinstance(length, int) and length >= 0 for length in shape)
            for stem, shape in shapes.items()
        )
        has_files = "X" in shapes and all(
            not paths.why_unfit(name) and (folder / name).stat().st_size == size
            for name, size in sizes.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return meta if has_facts and has_shapes and has_files else None


def map_arrays(folder: Path) -> tuple[Derived, dict[str, Any]] | None:
    """Map the arrays of a prepared data set read-only; return None if it is missing or damaged."""
    meta = _meta(folder)
    if meta is None:
        return None
    try:
        arrays = {
            name.removesuffix(".npy"): np.load(folder / name, mmap_mode="r")
            for name in meta["sizes"]
        }
        if not _is_unchanged(folder, arrays, meta):
            return None
        X, y = _assembled("X", arrays, meta["shapes"]), arrays["y"]
        X_test = y_test = None
        if "X_test" in meta["shapes"]:
            X_test, y_test = _assembled("X_test", arrays, meta["shapes"]), arrays["y_test"]
    except Exception:  # any error of a damaged file: prepare again
        return None
    facts = meta["facts"]
    if (len(y), X.shape[1]) != (facts["n_samples"], facts["n_features"]):
        return None
    return Derived(X, y, X_test, y_test, meta["facts"]["classes"]), meta["facts"]


def _is_unchanged(folder: Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> bool:
    """Return True if the content of the arrays agrees with the checksum."""
    large = sum(array.nbytes for array in arrays.values()) > MAX_BYTES_HASHED_AT_OPENING
    if not large:
        return _identity(arrays, meta["shapes"]) == str(meta["facts"]["sha256"])
    if _trusts_large:
        return True
    states = [(folder / name).stat() for name in meta["sizes"]]
    state = (folder, *((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in states))
    if state not in _hashed:
        if _identity(arrays, meta["shapes"]) != str(meta["facts"]["sha256"]):
            return False
        _hashed.add(state)
    return True


def _assembled(
    stem: Literal["X", "X_test"], arrays: dict[str, np.ndarray], shapes: dict[str, list[int]]
) -> Any:
    if stem in arrays:
        return arrays[stem]
    data, indices, indptr = (arrays[f"{stem}.{part}"] for part in ("data", "indices", "indptr"))
    rows, columns = shapes[stem]
    return csr_view(data, indices, indptr, (rows, columns))


def csr_view(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """Return a CSR array over arrays with sorted, unique indices, without a copy."""
    X = sp.csr_array((data, indices, indptr), shape=shape, copy=False)
    # The constructor of scipy would copy a view that is much smaller than its mapped base.
    X.data, X.indices, X.indptr = data, indices, indptr
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def row_range(X: Any, start: int, stop: int) -> Any:
    """Return the rows from `start` to `stop` as views of the mapped arrays."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = int(X.indptr[start]), int(X.indptr[stop])
    indptr = X.indptr[start : stop + 1]
    if first:
        indptr = indptr - X.indptr.dtype.type(first)
    return csr_view(X.data[first:last], X.indices[first:last], indptr, (stop - start, X.shape[1]))
