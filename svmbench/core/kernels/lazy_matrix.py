"""A matrix of RBF values of which a row is computed when a step of SMO first reads it.

`difference_column` sums squared differences of dense inputs of few features, in float32, so that
nothing cancels. `LazyMatrix` has room for all rows; `compute_row` computes a row if it is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.kernels.products import gauss_of_squares, single_factor
from svmbench.core.kernels.rows import DenseRows, DifferenceRows, Rows

#: Columns of a piece: sums and exponents of it stay in the first-level cache.
COLUMN_PIECE = 512


@compiled_sums
def difference_column(X: np.ndarray, i: int, factor: np.float32, out: np.ndarray) -> None:
    """Write kernel row `i` from squared differences; `X` is float32 (d, n), one feature a row."""
    d, n = X.shape
    squares, power = (
        np.empty(COLUMN_PIECE, dtype=np.float32),
        np.empty(COLUMN_PIECE, dtype=np.int32),
    )
    for first in range(0, n, COLUMN_PIECE):
        m = min(COLUMN_PIECE, n - first)
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


class LazyMatrix(NamedTuple):
    """A float32 matrix of which a row is computed, from differences, when a step first reads it."""

    K: np.ndarray  # (n, n)
    is_computed: np.ndarray  # bool (n,), of each row
    X: np.ndarray  # (d, n): features by rows
    factor: np.float32

    @classmethod
    def of(cls, rows: Rows, max_features: int) -> LazyMatrix | None:
        """Return a matrix without any row; None for a kernel other than RBF, or more features."""
        if not isinstance(rows, DenseRows | DifferenceRows):
            return None
        is_rbf = isinstance(rows, DifferenceRows) or rows.function.name == "rbf"
        if not is_rbf or rows.points.inputs.shape[1] > max_features:
            return None
        n, X = rows.n_samples, np.ascontiguousarray(rows.points.inputs.T)
        K, factor = np.empty((n, n), dtype=np.float32), single_factor(rows.rule.gamma)
        K[0] = 0.0  # The first step has the length 0, and reads this row.
        return cls(K, np.zeros(n, dtype=bool), X, factor)


@compiled
def compute_row(lazy: LazyMatrix, i: int) -> None:
    """Compute row i, unless that was done before."""
    if not lazy.is_computed[i]:
        difference_column(lazy.X, i, lazy.factor, lazy.K[i])
        lazy.is_computed[i] = True
