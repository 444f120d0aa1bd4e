"""Inner products of a few CSR rows with others, by position.

A search that asks for one row and a growing set of others an iteration spends its time in making
sparse matrices of them: many times what the products cost. Here nothing is made but the products.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled
from svmbench.core.numeric.arrays import csr_parts, raw

#: Up to so many rows at a time are multiplied one by one; of more, matrices are worth making.
FEW_ROWS = 4

#: Up to so many products of two numbers take less time than making the matrices does.
FEW_PRODUCTS = 300_000


@compiled
def multiply(
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the inner products of rows with others.

    Parameters
    ----------
    data, indices, starts : ndarray
        CSR.
    rows, others : ndarray of int64 of shape (m,), (n,)
        Positions.
    scratch : ndarray of shape (n_features,)
        Zeros; zeros again afterwards.
    out : ndarray of shape (m, n)
    """
    for a in range(len(rows)):
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            scratch[indices[p]] += data[p]
        for b in range(len(others)):
            product = 0.0
            for p in range(np.uint32(starts[others[b]]), np.uint32(starts[others[b] + 1])):
                product += data[p] * scratch[np.uint32(indices[p])]
            out[a, b] = product
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            scratch[indices[p]] = 0.0


@compiled
def square(
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    rows: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the squared lengths of rows to `out`, shape (len(rows),); see :func:`multiply`."""
    for a in range(len(rows)):
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            scratch[indices[p]] += data[p]
        total = 0.0
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            total += data[p] * scratch[indices[p]]
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            scratch[indices[p]] = 0.0
        out[a] = total


class SparseProducts:
    """Inner products and squared lengths of rows of a matrix by position.

    Parameters
    ----------
    X : csr_array of shape (n_samples, n_features)
    """

    def __init__(self, X: sp.csr_array) -> None:
        self.n_samples = X.shape[0]
        self._parts = csr_parts(X)
        self._scratch = np.zeros(X.shape[1])
        self._a_row = len(X.data) / max(1, X.shape[0])
        self._lengths: np.ndarray | None = None

    def pays_for(self, n_rows: int, n_others: int) -> bool:
        """Return whether products of so many rows and others cost less here than as matrices."""
        return n_rows <= FEW_ROWS or n_rows * n_others * self._a_row <= FEW_PRODUCTS

    def between(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the inner products of rows with others, float64 of shape (m, n)."""
        out = np.empty((len(rows), len(others)))
        multiply(*self._parts, raw(rows), raw(others), self._scratch, out)
        return out

    def squared_lengths(self, rows: np.ndarray) -> np.ndarray:
        """Return the squared lengths of rows; those of all are computed once."""
        if len(rows) < self.n_samples:
            return self._square(rows)
        if self._lengths is None:
            self._lengths = self._square(np.arange(self.n_samples))
        return self._lengths[rows]

    def _square(self, rows: np.ndarray) -> np.ndarray:
        lengths = np.empty(len(rows))
        square(*self._parts, raw(rows), self._scratch, lengths)
        return lengths


def warm_up() -> None:
    """Load or compile what is here."""
    products = SparseProducts(sp.csr_array(np.eye(2)))
    both = np.arange(2)
    products.between(both, both)
    products.squared_lengths(both)
