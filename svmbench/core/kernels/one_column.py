"""One column of an RBF kernel matrix at a time, in float32.

What is fast for hundreds of rows at a time (``csvc/float32_rows.py``) is slow for one: there is no
product of matrices to win by. Here are the forms in which a single column is cheapest; which of
them serves a problem follows from its inputs:

- `DifferenceColumn`, dense inputs of few features: sums of squared differences, feature by feature,
  and the exponential while they are in the cache. Nothing cancels, whatever the features' scale;
- `ProductColumn`, dense inputs of more features: one product of a matrix and a vector;
- `ScatterColumn`, sparse inputs: the products of the features that the sample has.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.kernels.exponential import gauss_of_squares, single_factor
from svmbench.core.kernels.kernels import squared_lengths
from svmbench.core.numeric.arrays import csr_parts, raw

#: Columns of a piece: sums and exponents of it stay in the first-level cache.
PIECE = 512

#: Up to so many dense features differences are faster than a product.
FEW_FEATURES = 40

#: Sparse inputs with a larger share of nonzeros are treated as dense.
SPARSE_BELOW = 0.2

#: Squares of larger numbers overflow in single precision.
LARGEST_INPUT = 1e15


class OneColumn(Protocol):
    """What makes single columns of one kernel matrix."""

    def fill(self, i: int, out: np.ndarray) -> None:
        """Write the kernel values of sample `i` with all to `out`, float32 (n_samples,)."""


@compiled_sums
def fill_differences(X: np.ndarray, i: int, factor: np.float32, out: np.ndarray) -> None:
    """Write the column of sample `i` from features by rows, float32 of shape (d, n)."""
    d, n = X.shape
    squares, power = np.empty(PIECE, dtype=np.float32), np.empty(PIECE, dtype=np.int32)
    for first in range(0, n, PIECE):
        m = min(PIECE, n - first)
        for k in range(m):
            squares[k] = np.float32(0.0)
        j = 0
        while j + 3 < d:
            z0, z1, z2, z3 = X[j, i], X[j + 1, i], X[j + 2, i], X[j + 3, i]
            x0, x1 = X[j, first : first + m], X[j + 1, first : first + m]
            x2, x3 = X[j + 2, first : first + m], X[j + 3, first : first + m]
            for k in range(m):
                e0, e1, e2, e3 = x0[k] - z0, x1[k] - z1, x2[k] - z2, x3[k] - z3
                squares[k] += (e0 * e0 + e1 * e1) + (e2 * e2 + e3 * e3)
            j += 4
        while j < d:
            z0, x0 = X[j, i], X[j, first : first + m]
            for k in range(m):
                squares[k] += (x0[k] - z0) * (x0[k] - z0)
            j += 1
        gauss_of_squares(squares[:m], factor, power[:m], out[first : first + m])


@compiled_sums
def from_products(lengths: np.ndarray, i: int, factor: np.float32, out: np.ndarray) -> None:
    """Turn inner products with sample `i` into its column, in place, float32 of shape (n,)."""
    n = len(out)
    squares, power = np.empty(PIECE, dtype=np.float32), np.empty(PIECE, dtype=np.int32)
    two, own = np.float32(2.0), lengths[i]
    for first in range(0, n, PIECE):
        m = min(PIECE, n - first)
        products, others = out[first : first + m], lengths[first : first + m]
        for k in range(m):
            squares[k] = own + others[k] - two * products[k]
        gauss_of_squares(squares[:m], factor, power[:m], products)


@compiled
def scatter(
    row_data: np.ndarray,
    row_indices: np.ndarray,
    row_starts: np.ndarray,
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    i: int,
    out: np.ndarray,
) -> None:
    """Write the inner products of sample `i` with all.

    Parameters
    ----------
    row_data, row_indices, row_starts : ndarray
        The samples by rows (CSR).
    data, indices, starts : ndarray
        The same by features (CSC).
    i : int
    out : ndarray of float32 of shape (n_samples,)
    """
    for k in range(len(out)):
        out[k] = np.float32(0.0)
    for p in range(row_starts[i], row_starts[i + 1]):
        x, feature = row_data[p], row_indices[p]
        for q in range(np.uint32(starts[feature]), np.uint32(starts[feature + 1])):
            out[np.uint32(indices[q])] += x * data[q]


def central_row(X: np.ndarray) -> np.ndarray:
    """Return the sample nearest to the mean: shifted by it, integers stay exact."""
    mean = X.mean(axis=0)
    # Of a few: any of them serves.
    some = X[:: max(1, len(X) // 256)]
    return np.asarray(some[np.argmin(np.sum((some - mean) ** 2, axis=1))])


class DifferenceColumn:
    """Columns by squared differences; see :class:`OneColumn`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    gamma : float
    """

    def __init__(self, X: np.ndarray, gamma: float) -> None:
        self._X = np.empty(X.shape[::-1], dtype=np.float32)
        np.subtract(X.T, central_row(X)[:, np.newaxis], out=self._X, casting="same_kind")
        self._factor = single_factor(gamma)

    def fill(self, i: int, out: np.ndarray) -> None:
        """Compute."""
        fill_differences(self._X, i, self._factor, out)


class ProductColumn:
    """Columns by one product of a matrix and a vector; see :class:`OneColumn`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    gamma : float
    """

    def __init__(self, X: np.ndarray, gamma: float) -> None:
        self._X = np.empty(X.shape, dtype=np.float32)
        np.subtract(X, central_row(X), out=self._X, casting="same_kind")
        self._lengths = raw(squared_lengths(self._X))
        self._factor = single_factor(gamma)

    def fill(self, i: int, out: np.ndarray) -> None:
        """Multiply and transform."""
        np.matmul(self._X, self._X[i], out=out)
        from_products(self._lengths, i, self._factor, out)


class ScatterColumn:
    """Columns from sparse inputs; see :class:`OneColumn`.

    Parameters
    ----------
    X : csr_array of shape (n_samples, n_features)
    gamma : float
    """

    def __init__(self, X: sp.csr_array, gamma: float) -> None:
        rows = sp.csr_array(X, dtype=np.float32)
        features = rows.tocsc()
        self._parts = (
            *csr_parts(rows),
            raw(features.data),
            raw(features.indices),
            raw(features.indptr),
        )
        self._lengths = raw(squared_lengths(rows))
        self._factor = single_factor(gamma)

    def fill(self, i: int, out: np.ndarray) -> None:
        """Scatter and transform."""
        scatter(*self._parts, i, out)
        from_products(self._lengths, i, self._factor, out)


def one_column(X: Any, gamma: float) -> OneColumn | None:
    """Return the fastest maker of single RBF columns; None where float32 can't hold the inputs.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    gamma : float
    """
    n, d = X.shape
    if sp.issparse(X):
        if X.nnz < SPARSE_BELOW * n * d:
            large = np.abs(X.data).max(initial=0.0) > LARGEST_INPUT
            return None if large else ScatterColumn(X, gamma)
        X = X.toarray()
    if np.abs(X).max(initial=0.0) > LARGEST_INPUT:
        return None
    return DifferenceColumn(X, gamma) if d <= FEW_FEATURES else ProductColumn(X, gamma)
