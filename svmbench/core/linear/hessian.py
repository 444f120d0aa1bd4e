"""Products with ``H = I + 2C sum_A x_i x_i'``, where the rows A change, and preconditioners.

Conjugate gradients need ``sum_A x_i (x_i'v)``. One pass over the rows of A computes it, dense or
CSR, without a copy of these rows: a row is still in the first cache when its sum is added.

The preconditioners are two of Hsia, Chiang and Lin 2018: the Hessian of a sample of the rows, and
the diagonal where the Hessian of any sample is too big. A poor preconditioner costs steps of the
conjugate gradients, but changes no solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dtrmv, get_blas_funcs, strmv
from scipy.linalg.lapack import get_lapack_funcs

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.linear.least_squares import gram
from svmbench.core.numeric.arrays import csr_parts, raw

#: The sample has this many rows for each feature.
SAMPLE_ROWS_PER_FEATURE = 4

#: Rows with at most this many nonzeros, on average, are all in the sample: they cost little.
SHORT_ROW_MAX_NONZEROS = 32

#: The sample's Gram matrix may take this many multiplications for each nonzero of the data.
GRAM_PRODUCTS_PER_NONZERO = 2500

#: A pivot of a Cholesky factor below this many units in the last place is rounding.
MIN_PIVOT_ULPS = 16.0

#: In single precision, this many products of dense rows take the time of one of sparse rows.
DENSE_PRODUCTS_PER_SPARSE = 60


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
    """Write ``x_i'v`` of dense rows to `out`; see :func:`times_csr`."""
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
    """Add ``sum_i factors_i x_i`` over dense rows to `out`; see :func:`combine_csr`."""
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
    """Add ``sum_i x_i (x_i'v)`` over dense rows to `out`; see :func:`curvature_csr`."""
    for r in range(len(rows)):
        i = rows[r]
        total = 0.0
        for j in range(len(v)):
            total += X[i, j] * v[j]
        for j in range(len(v)):
            out[j] += total * X[i, j]


_CSR_LOOPS = times_csr, combine_csr, curvature_csr
_DENSE_LOOPS = times_dense, combine_dense, curvature_dense


class RowProducts:
    """Products of vectors with some rows of a dense or CSR X; `rows` holds their positions."""

    def __init__(self, X: Any) -> None:
        self.shape: tuple[int, int] = X.shape
        #: Rows read so far; a row that is read for both of its products counts once.
        self.visits = 0
        self._parts = csr_parts(X) if sp.issparse(X) else (raw(X),)
        dense, sparse = _DENSE_LOOPS, _CSR_LOOPS
        self._times, self._combine, self._curvature = sparse if sp.issparse(X) else dense

    def times(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ``x_i'v`` of the rows, shape (len(rows),)."""
        return self._run(self._times, rows, v, np.empty(len(rows)))

    def combine(self, rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return ``sum_i factors_i x_i`` over the rows, shape (n_features,)."""
        return self._run(self._combine, rows, factors, np.zeros(self.shape[1]))

    def curvature(self, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ``sum_i x_i (x_i'v)`` over the rows, shape (n_features,)."""
        return self._run(self._curvature, rows, v, np.zeros(self.shape[1]))

    def _run(
        self, loop: Callable[..., None], rows: np.ndarray, factors: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        loop(*self._parts, raw(rows), raw(factors), out)
        self.visits += len(rows)
        return out


def times_rows(X: Any, factors: np.ndarray) -> Any:
    """Return a dense or CSR X with each row times its factor, as a new array."""
    if not sp.issparse(X):
        return X * factors[:, None]
    data = X.data * np.repeat(factors, np.diff(X.indptr))
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)


def upper_gram(X: Any, dtype: Any = np.float32) -> np.ndarray:
    """Return the upper triangle of ``X'X`` in Fortran's order."""
    n, d = X.shape
    if not sp.issparse(X):
        rows = X
    elif DENSE_PRODUCTS_PER_SPARSE * X.nnz**2 > n**2 * d**2:
        rows = X.toarray()
    else:
        return np.asarray(gram(X), dtype=dtype, order="F")
    # The transpose of C-ordered rows is the Fortran matrix that BLAS wants: no copy.
    rows = np.asarray(rows, dtype=dtype, order="C").T
    return get_blas_funcs("syrk", (rows,))(1.0, rows)


def factorise(
    rows: Any, weight: float, ridge: float, dtype: type[np.floating[Any]]
) -> tuple[np.ndarray, bool]:
    """Return U with ``U'U = weight * X'X + ridge * I`` and whether `dtype` is precise enough."""
    with np.errstate(over="ignore"):
        G = upper_gram(rows, dtype)
        G *= dtype(weight)
    unit = float(np.finfo(dtype).eps)
    floor, enough = unit * float(np.trace(G)), True
    if not np.isfinite(floor):
        return G, False
    # Without a positive pivot the ridge grows.
    while True:
        H = G.copy(order="F")
        H.flat[:: len(H) + 1] += dtype(ridge)
        diagonal = H.diagonal().copy()
        U, info = get_lapack_funcs("potrf", (H,))(H, lower=0, overwrite_a=1)
        if not info:
            # A pivot is the rest of a diagonal entry after the columns before: if it is tiny beside
            # that entry, it is rounding.
            left = float(np.min(U.diagonal() ** 2 / diagonal))
            return U, enough and left >= MIN_PIVOT_ULPS * unit
        ridge, enough = 10.0 * max(ridge, floor), False


class SampleHessian:
    """The Hessian of a sample of the rows, factorised, as a preconditioner.

    Single precision is used unless its pivots are rounding: where features are far from zero, or
    depend on each other and C is large.
    """

    def __init__(
        self,
        X: Any,  # (n_samples, d)
        order: np.ndarray,  # int (n_samples,): a random permutation of the rows
        n_rows: int,  # largest number of rows in the sample: the first active ones in this order
    ) -> None:
        self._X, self._order, self._n_rows = X, order, n_rows
        self._active = np.zeros(X.shape[0], dtype=bool)
        self._root = np.zeros((0, 0), dtype=np.float32)
        self.n_made = 0

    def n_changed(self, active: np.ndarray) -> int:
        """Return the number of rows that have become active or inactive since `make`."""
        return int(np.count_nonzero(active != self._active))

    def make(self, active: np.ndarray, C: float) -> None:
        """Factorise for the rows marked in `active`, shape (n_samples,)."""
        self._active = active
        rows, n_active = active, int(np.count_nonzero(active))
        if n_active > self._n_rows:
            rows = np.sort(self._order[active[self._order]][: self._n_rows])
        # A multiple of H serves as well: this is H / 2C, the sample's rows weighted to represent
        # all active ones.
        part, weight = self._X[rows], n_active / max(1, min(n_active, self._n_rows))
        U, enough = factorise(part, weight, 1.0 / (2.0 * C), np.float32)
        if not enough:
            U, _ = factorise(part, weight, 1.0 / (2.0 * C), np.float64)
        # H^-1 = U^-1 U^-T: products with triangles, which stay a positive definite matrix in
        # either precision and take less time than solving with them.
        self._root, _ = get_lapack_funcs("trtri", (U,))(U, lower=0, overwrite_c=1)
        self.n_made += 1

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return about a multiple of ``H^-1 r``, float64 of shape (d,)."""
        # Scaled, since single precision has a smaller range.
        size = float(np.max(np.abs(r))) or 1.0
        times = strmv if self._root.dtype == np.float32 else dtrmv
        half = times(self._root, (r / size).astype(self._root.dtype), trans=1)
        return size * times(self._root, half, overwrite_x=1).astype(np.float64)


class Diagonal:
    """The square root of the Hessian's diagonal as a preconditioner.

    The diagonal itself slows the steps down where it is far from the eigenvalues.
    """

    def __init__(self, X: Any) -> None:
        self._squares = X.multiply(X).tocsr() if sp.issparse(X) else X * X
        self._inverse = np.ones(X.shape[1])
        self.n_made = 0

    def n_changed(self, active: np.ndarray) -> int:
        """Return 0: the diagonal is not made again for changes of the active rows."""
        return 0

    def make(self, active: np.ndarray, C: float) -> None:
        """Set the diagonal of the rows marked in `active`, shape (n_samples,)."""
        diagonal = 1.0 + 2.0 * C * np.asarray(self._squares.T @ active.astype(np.float64))
        self._inverse = 1.0 / np.sqrt(diagonal)
        self.n_made += 1

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return `r` over the root of the diagonal."""
        return r * self._inverse


def curvature_rows(X: Any) -> int:
    """Return the number of rows whose Hessian is worth factorising; 0 if none is."""
    n, d = X.shape
    n_values = X.nnz if sp.issparse(X) else n * d
    most = SAMPLE_ROWS_PER_FEATURE * d
    m = n if n_values <= SHORT_ROW_MAX_NONZEROS * n else min(n, most)
    return m if min(m, most) * d * d <= GRAM_PRODUCTS_PER_NONZERO * n_values else 0
