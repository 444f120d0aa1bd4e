"""Products with ``H = I + 2C sum_A x_i x_i'``, where the rows A change, and preconditioners.

Conjugate gradients ask for ``sum_A x_i (x_i'v)``. One pass over the rows of A does it, dense or CSR
and without a copy of these rows: a row is still in the first cache when its sum is added.

Hsia, Chiang and Lin 2018 compare preconditioners for Newton's method: the Hessian of a sample of
the rows, and the diagonal where the Hessian of any sample is too big. How far they are from H costs
steps of the conjugate gradients, and changes nothing that these find.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dtrmv, get_blas_funcs, strmv
from scipy.linalg.lapack import get_lapack_funcs

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.linear.least_squares import gram
from svmbench.core.numeric.arrays import csr_parts, raw

#: The curvature is that of so many rows a feature; of all rows where these have no more nonzeros
#: than that, so that their outer products cost little.
ROWS_A_FEATURE, SHORT = 4, 32

#: Products of numbers that its Gram matrix may take, for each nonzero of the data.
GRAM_A_NONZERO = 2500

#: A pivot of a Cholesky factor below so many units in the last place is rounding.
ROUNDING = 16.0

#: Products of sparse rows that take the time of one of dense rows, in single precision.
DENSE_PAYS = 60


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


def upper_gram(X: Any, dtype: Any = np.float32) -> np.ndarray:
    """Return the upper triangle of ``X'X`` in Fortran's order.

    Sparse rows with many nonzeros are cheaper as dense ones, whose products cost a sixtieth.
    """
    n, d = X.shape
    if not sp.issparse(X):
        rows = X
    elif DENSE_PAYS * X.nnz**2 > n**2 * d**2:
        rows = X.toarray()
    else:
        return np.asarray(gram(X), dtype=dtype, order="F")
    # The transpose of C-ordered rows is the Fortran matrix that BLAS wants: no copy.
    rows = np.asarray(rows, dtype=dtype, order="C").T
    return get_blas_funcs("syrk", (rows,))(1.0, rows)


def factorise(
    rows: Any, weight: float, ridge: float, dtype: type[np.floating[Any]]
) -> tuple[np.ndarray, bool]:
    """Return U with ``U'U = weight * X'X + ridge * I``, and whether the precision was enough.

    It is not where a pivot is rounding: a pivot is what earlier columns leave of a diagonal entry,
    so that it is compared with that entry. Where no pivot can be had the ridge grows.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (m, d)
        X.
    weight, ridge : float
    dtype : type
        float32 or float64.
    """
    with np.errstate(over="ignore"):
        G = upper_gram(rows, dtype)
        G *= dtype(weight)
    unit = float(np.finfo(dtype).eps)
    floor, enough = unit * float(np.trace(G)), True
    if not np.isfinite(floor):
        return G, False
    while True:
        H = G.copy(order="F")
        H.flat[:: len(H) + 1] += dtype(ridge)
        diagonal = H.diagonal().copy()
        U, info = get_lapack_funcs("potrf", (H,))(H, lower=0, overwrite_a=1)
        if not info:
            left = float(np.min(U.diagonal() ** 2 / diagonal))
            return U, enough and left >= ROUNDING * unit
        ridge, enough = 10.0 * max(ridge, floor), False


class SampleHessian:
    """The Hessian of a sample of the rows, factorised, as a preconditioner.

    Single precision is used unless its pivots are rounding: where features are far from zero, or
    depend on each other and C is large.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, d)
    order : ndarray of int of shape (n_samples,)
        A random permutation of the rows: the sample is of the first active ones.
    n_rows : int
        Largest number of rows in the sample.
    """

    def __init__(self, X: Any, order: np.ndarray, n_rows: int) -> None:
        self._X, self._order, self._n_rows = X, order, n_rows
        self._active = np.zeros(X.shape[0], dtype=bool)
        self._root = np.zeros((0, 0), dtype=np.float32)
        self.n_made = 0

    def n_changed(self, active: np.ndarray) -> int:
        """Return how many rows have become active or inactive since the factorisation."""
        return int(np.count_nonzero(active != self._active))

    def make(self, active: np.ndarray, C: float) -> None:
        """Factorise for the rows marked in `active`, shape (n_samples,)."""
        self._active = active
        rows, n_active = active, int(np.count_nonzero(active))
        if n_active > self._n_rows:
            rows = np.sort(self._order[active[self._order]][: self._n_rows])
        # Multiples of H serve as well: this is H / 2C of m rows that stand for all active ones.
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
        # Single precision has a smaller range, too.
        size = float(np.max(np.abs(r))) or 1.0
        times = strmv if self._root.dtype == np.float32 else dtrmv
        half = times(self._root, (r / size).astype(self._root.dtype), trans=1)
        return size * times(self._root, half, overwrite_x=1).astype(np.float64)


class Diagonal:
    """The square root of the Hessian's diagonal as a preconditioner; parameters as above.

    The diagonal itself does harm where it has little to do with the eigenvalues.
    """

    def __init__(self, X: Any) -> None:
        self._squares = X.multiply(X).tocsr() if sp.issparse(X) else X * X
        self._inverse = np.ones(X.shape[1])
        self.n_made = 0

    def n_changed(self, active: np.ndarray) -> int:
        """Return 0: no rows are few enough to make a diagonal again for them."""
        return 0

    def make(self, active: np.ndarray, C: float) -> None:
        """Take the rows marked in `active`, shape (n_samples,)."""
        diagonal = 1.0 + 2.0 * C * np.asarray(self._squares.T @ active.astype(np.float64))
        self._inverse = 1.0 / np.sqrt(diagonal)
        self.n_made += 1

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return `r` over the root of the diagonal."""
        return r * self._inverse


def curvature_rows(X: Any) -> int:
    """Return of how many rows the Hessian is worth factorising; 0 where it never is."""
    n, d = X.shape
    n_values = X.nnz if sp.issparse(X) else n * d
    m = n if n_values <= SHORT * n else min(n, ROWS_A_FEATURE * d)
    return m if min(m, ROWS_A_FEATURE * d) * d * d <= GRAM_A_NONZERO * n_values else 0
