"""Rows of a cell and their scaling, fixed by the seed alone.

The same data set, size, seed and fold give the same rows whatever the solver, the order of the
cells or the number of workers, so that solvers are compared on equal terms.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from svmbench.experiment.settings.cells import NodeSpec

Index = np.ndarray


def _everything(_spec: NodeSpec, _y: np.ndarray) -> None:
    return None


@dataclass(frozen=True)
class Scaled:
    """The meaning of a scaling to a protocol.

    Attributes
    ----------
    before : bool
        True if inputs are scaled before the protocol's function gets them, so that cells can share
        the scaled arrays. Otherwise the function scales them, or they are not scaled.
    rows : callable
        Takes a cell's specification and the labels of its rows, and returns the rows on which the
        scaler is fitted; None for all.
    by : tuple of str
        The settings on which those rows depend.
    """

    before: bool = True
    rows: Callable[[NodeSpec, np.ndarray], np.ndarray | None] = _everything
    by: tuple[str, ...] = ()


#: Scaled before anything is split, on all rows.
ALL_ROWS = Scaled()
#: Scaled by the protocol's own function.
ITSELF = Scaled(before=False)
#: Not scaled at all; equal to `ITSELF`, since in both cases nothing is scaled before.
UNSCALED = Scaled(before=False)


def derive_seed(base: int, *parts: object) -> int:
    """Return a seed in [0, 2**31) that depends on `base` and `parts` and on nothing else."""
    text = json.dumps([base, *parts], sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def subset_rows(y: np.ndarray, n_rows: int | None, seed: int, kind: str = "stratified") -> Index:
    """Return sorted row numbers of a subset.

    Subsets are nested: the rows of a smaller size are among those of a larger one.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Class labels.
    n_rows : int or None
        How many rows; None, or as many as there are, for all.
    seed : int
        Decides which.
    kind : {"stratified", "first"}, default="stratified"
        Drawn with every class in proportion, or the first rows.
    """
    n_samples = len(y)
    if n_rows is None or n_rows >= n_samples:
        return np.arange(n_samples)
    if kind == "first":
        return np.arange(n_rows)
    rng = np.random.default_rng(seed)
    # A random place inside its class, as a share of the class: the first n_rows of these shares
    # have every class in proportion, for any n_rows.
    share = np.empty(n_samples)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        share[rng.permutation(members)] = (np.arange(len(members)) + 0.5) / len(members)
    tie_break = rng.permutation(n_samples)
    return np.sort(np.lexsort((tie_break, share))[:n_rows])


def subset_features(X: Any, n_kept: int | None) -> Index | None:
    """Return sorted column numbers: the `n_kept` most often nonzero ones, or None for all.

    The papers that vary the dimension do not say which features they keep; on text, the first
    columns would leave most rows empty.
    """
    if n_kept is None or n_kept >= X.shape[1]:
        return None
    if sp.issparse(X):
        counts = np.bincount(X.indices, minlength=X.shape[1])
    else:
        counts = np.count_nonzero(X, axis=0)
    return np.sort(np.argsort(-counts, kind="stable")[:n_kept])


def outer_splits(y: np.ndarray, n_folds: int, seed: int) -> list[tuple[Index, Index]]:
    """Return (training rows, test rows) of each stratified fold, both sorted."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return [(train, test) for train, test in splitter.split(np.zeros(len(y)), y)]


def holdout_split(y: np.ndarray, share: float, seed: int) -> tuple[Index, Index]:
    """Return sorted (kept rows, held-out rows) with every class in proportion."""
    splitter = StratifiedShuffleSplit(1, test_size=share, random_state=seed)
    kept, held_out = next(splitter.split(np.zeros(len(y)), y))
    return np.sort(kept), np.sort(held_out)


def take(X: Any, rows: Index) -> Any:
    """Return the rows as a new float64 array in memory: dense C-ordered, or CSR."""
    part = X[rows]
    if sp.issparse(part):
        part = sp.csr_array(part)
        return part if part.dtype == np.float64 else part.astype(np.float64)
    return np.ascontiguousarray(part, dtype=np.float64)


def dense(X: Any) -> np.ndarray:
    """Return inputs as a dense C-ordered array."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)


def make_scaler(kind: str, sparse: bool) -> Any:
    """Return the scikit-learn scaler of a config's name.

    CSR inputs must stay sparse: there ``minmax`` divides by the largest magnitude, which for
    non-negative features with zeros among them is the same scaling to [0, 1].
    """
    if kind == "standard":
        return StandardScaler(with_mean=not sparse)
    if kind == "maxabs" or sparse:
        return MaxAbsScaler()
    return MinMaxScaler()


def scale(X: Any, kind: str, fitted_on: Index | None = None) -> Any:
    """Return `X` scaled, the scaler fitted on some of its rows (None: on all)."""
    scaler = make_scaler(kind, sp.issparse(X))
    scaler.fit(X if fitted_on is None else X[fitted_on])
    scaled = scaler.transform(X)
    return sp.csr_array(scaled) if sp.issparse(scaled) else np.ascontiguousarray(scaled)


def distance_type(spec: NodeSpec) -> np.dtype[Any]:
    """Return the type of the distances that a cell's fits share: float32 unless it asks."""
    return np.dtype(np.float64 if spec.get("precision") == "double" else np.float32)


def distance_bytes(spec: NodeSpec) -> int:
    """Return the bytes of the distances of all pairs of a cell's rows."""
    return distance_type(spec).itemsize * int(spec["n_rows"]) ** 2


def open_distances(folder: Path) -> tuple[np.ndarray, float] | None:
    """Return the mapped squared distances and the CPU seconds they took, if they were made."""
    path = folder / "distances.npy"
    if not path.exists():
        return None
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return np.load(path, mmap_mode="r"), float(meta["distances_cpu_s"])


def open_arrays(folder: Path) -> tuple[Any, float]:
    """Return mapped inputs and the seconds of scaling; see `worker.save_shared_arrays`.

    Raises
    ------
    OSError
        If the folder is not there.
    """
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    if (folder / "dense.npy").exists():
        return np.load(folder / "dense.npy", mmap_mode="r"), meta["seconds"]
    parts = [np.load(folder / f"{n}.npy", mmap_mode="r") for n in ("data", "indices", "indptr")]
    return sp.csr_array(tuple(parts), shape=tuple(meta["shape"]), copy=False), meta["seconds"]
