"""Products with some rows of a matrix, dense or CSR, without a copy of these rows.

Methods of conjugate gradients ask for ``sum_i x_i (x_i'v)`` over a set of rows that changes from
step to step. One pass does it: a row is still in the first cache when its sum is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.numeric.arrays import csr_parts, raw


@compiled
def row_times(data: np.ndarray, indices: np.ndarray, start: int, end: int, v: np.ndarray) -> float:
    """Return the inner product of one CSR row with a dense vector."""
    one, two, three, four = np.uint32(1), np.uint32(2), np.uint32(3), np.uint32(4)
    # Four sums at a time: one alone would wait for its own last addition.
    f, f1, f2, f3 = 0.0, 0.0, 0.0, 0.0
    p: Any = np.uint32(start)
    while p + three < end:
        f += data[p] * v[np.uint32(indices[p])]
        f1 += data[p + one] * v[np.uint32(indices[p + one])]
        f2 += data[p + two] * v[np.uint32(indices[p + two])]
        f3 += data[p + three] * v[np.uint32(indices[p + three])]
        p += four
    while p < end:
        f += data[p] * v[np.uint32(indices[p])]
        p += one
    return (f + f1) + (f2 + f3)


@compiled
def times_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write ``x_i'v`` of the rows to `out`, shape (len(rows),)."""
    for r in range(len(rows)):
        out[r] = row_times(data, indices, indptr[rows[r]], indptr[rows[r] + 1], v)


@compiled_sums
def times_dense(X: np.ndarray, rows: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Do what :func:`times_csr` does on dense rows."""
    for r in range(len(rows)):
        i = rows[r]
        total = 0.0
        for j in range(len(v)):
            total += X[i, j] * v[j]
        out[r] = total


@compiled
def combine_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    factors: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add ``sum_i factors_i x_i`` over the rows to `out`, shape (n_features,)."""
    for r in range(len(rows)):
        factor = factors[r]
        for p in range(np.uint32(indptr[rows[r]]), np.uint32(indptr[rows[r] + 1])):
            out[np.uint32(indices[p])] += factor * data[p]


@compiled
def combine_dense(X: np.ndarray, rows: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Do what :func:`combine_csr` does on dense rows."""
    for r in range(len(rows)):
        i, factor = rows[r], factors[r]
        for j in range(len(out)):
            out[j] += factor * X[i, j]


@compiled
def curvature_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add ``sum_i x_i (x_i'v)`` over the rows to `out`, shape (n_features,)."""
    for r in range(len(rows)):
        total = row_times(data, indices, indptr[rows[r]], indptr[rows[r] + 1], v)
        for p in range(np.uint32(indptr[rows[r]]), np.uint32(indptr[rows[r] + 1])):
            out[np.uint32(indices[p])] += total * data[p]


@compiled_sums
def curvature_dense(X: np.ndarray, rows: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Do what :func:`curvature_csr` does on dense rows."""
    for r in range(len(rows)):
        i = rows[r]
        total = 0.0
        for j in range(len(v)):
            total += X[i, j] * v[j]
        for j in range(len(v)):
            out[j] += total * X[i, j]


class RowProducts:
    """Products of vectors with rows of a matrix that are named by their positions.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)

    Attributes
    ----------
    shape : tuple of int
    visits : int
        Rows read so far; a row that is read for both of its products counts once.
    """

    def __init__(self, X: Any) -> None:
        self.shape: tuple[int, int] = X.shape
        self.visits = 0
        self._sparse = sp.issparse(X)
        self._parts: tuple[np.ndarray, ...] = csr_parts(X) if self._sparse else (raw(X),)

    def times(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ``x_i'v`` of the rows, shape (len(rows),)."""
        out = np.empty(len(rows))
        run = times_csr if self._sparse else times_dense
        run(*self._parts, raw(rows), raw(v), out)
        self.visits += len(rows)
        return out

    def combine(self, rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return ``sum_i factors_i x_i`` over the rows, shape (n_features,)."""
        out = np.zeros(self.shape[1])
        run = combine_csr if self._sparse else combine_dense
        run(*self._parts, raw(rows), raw(factors), out)
        self.visits += len(rows)
        return out

    def curvature(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ``sum_i x_i (x_i'v)`` over the rows, shape (n_features,)."""
        out = np.zeros(self.shape[1])
        run = curvature_csr if self._sparse else curvature_dense
        run(*self._parts, raw(rows), raw(v), out)
        self.visits += len(rows)
        return out
