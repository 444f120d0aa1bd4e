"""The closed form of the linear least-squares SVM: sums of outer products and one factorisation.

    G w = q,    G = A + nu I,    A = sum x x',    q = sum y x,    nu = 1 / (2C)

The sums are enough unless G is ill-conditioned. They hold the squares of the samples' singular
values, and float64 sees nothing of squares below 1e-16 times the largest: features of 1e8 hide the
constant feature. The samples' own triangular factor has the singular values themselves.

Letters: X (n_samples, n_features) is dense or CSR; y (n_samples,) holds labels ±1; A (d, d) and q
(d,) are the sums. Samples carry the constant feature already, if there is one. Only functions with
the argument `bias` append it (0 for none; then d = n_features + 1), without a copy of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, qr, svd
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpocon, dpotrf, dpotri, dpotrs

from svmbench.base.compiled import compiled
from svmbench.core.numeric.arrays import csr_parts, raw

#: A Cholesky solution is not trusted if the reciprocal condition number of G is below this. The
#: trace of G is used in place of its norm, so that the number is up to d times too small.
SMALLEST_RCOND = 1e-13

#: Values of `stop_reason_`: the samples themselves were factorised; there were only sums, and these
#: were too ill-conditioned.
BY_SAMPLES = "closed form, by orthogonal reflections of the samples"
BY_POOR_SUMS = "closed form, of sums too ill-conditioned for float64"

#: Bytes of a block of samples that is made triangular at once.
TRIANGLE_BLOCK_BYTES = 4 << 20

#: Below this number of rows one plain product gives the Gram matrix as fast as any other way.
PLAIN_GRAM_MAX_ROWS = 256

#: Bytes of a dense block of rows whose outer products are summed at once: half an L2 cache.
GRAM_BLOCK_BYTES = 512 * 1024

#: A CSR row with more than this share of nonzeros is cheaper as part of a dense block. Scattering
#: costs about 1 ns a product, BLAS about 1/16 of that for every product, zero or not.
DENSE_SHARE = 0.25


@compiled
def accumulate_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    y: np.ndarray,
    folds: np.ndarray,
    A: np.ndarray,
    linear: np.ndarray,
) -> None:
    """Add each row to its fold's sums: x x' to the upper triangle of A, y x and x to `linear`."""
    # Unsigned indices spare the check for negative ones.
    one, two = np.uint32(1), np.uint32(2)
    for i in range(len(y)):
        fold = np.uint32(folds[i])
        p, end = np.uint32(indptr[i]), np.uint32(indptr[i + 1])
        # Two rows of the triangle at a time: each entry of the sample is read half as often.
        while p + one < end:
            x, j = data[p], np.uint32(indices[p])
            x2, j2 = data[p + one], np.uint32(indices[p + one])
            linear[fold, j, 0] += y[i] * x
            linear[fold, j, 1] += x
            linear[fold, j2, 0] += y[i] * x2
            linear[fold, j2, 1] += x2
            A[fold, j, j] += x * x
            for r in range(p + one, end):
                k = np.uint32(indices[r])
                A[fold, j, k] += x * data[r]
                A[fold, j2, k] += x2 * data[r]
            p += two
        if p < end:
            x, j = data[p], np.uint32(indices[p])
            linear[fold, j, 0] += y[i] * x
            linear[fold, j, 1] += x
            A[fold, j, j] += x * x


def fold_moments(
    X: Any, y: np.ndarray, folds: np.ndarray, n_folds: int, bias: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return A (n_folds, d, d), upper triangles over zeros, and q (n_folds, d) of every fold.

    `folds` (n_samples,) has the fold of each row, 0 … n_folds - 1.
    """
    n_samples, n_features = X.shape
    d = n_features + bool(bias)
    A = np.zeros((n_folds, d, d))
    linear = np.zeros((n_folds, n_features, 2))
    if sp.issparse(X) and X.nnz <= DENSE_SHARE * n_samples * n_features:
        accumulate_csr(*csr_parts(X), raw(y), raw(folds), A, linear)
    else:
        _accumulate_blocks(X, y, folds, A, linear)
    q = np.zeros((n_folds, d))
    q[:, :n_features] = linear[:, :, 0]
    # The constant's row and column are sums of features and the number of samples.
    if bias:
        q[:, -1] = bias * np.bincount(folds, weights=y, minlength=n_folds)
        A[:, :n_features, -1] = bias * linear[:, :, 1]
        A[:, -1, -1] = bias * bias * np.bincount(folds, minlength=n_folds)
    return A, q


def gram(X: Any) -> np.ndarray:
    """Return ``X' X`` of a dense or CSR matrix as a full symmetric array of shape (d, d)."""
    if X.shape[0] < PLAIN_GRAM_MAX_ROWS:
        product = X.T @ X
        return np.asarray(product.toarray() if sp.issparse(product) else product)
    n_samples = X.shape[0]
    A, _ = fold_moments(X, np.ones(n_samples), np.zeros(n_samples, dtype=np.int32), 1, 0.0)
    return A[0] + np.triu(A[0], 1).T


def _accumulate_blocks(
    X: Any, y: np.ndarray, folds: np.ndarray, A: np.ndarray, linear: np.ndarray
) -> None:
    """Do what :func:`accumulate_csr` does with BLAS-3 on blocks of rows that fit in the cache."""
    n_samples, n_features = X.shape
    n_folds = len(A)
    sums = [np.zeros((n_features, n_features), order="F") for _ in range(n_folds)]
    height = max(64, GRAM_BLOCK_BYTES // (8 * max(1, n_features)))
    for start in range(0, n_samples, height):
        block = X[start : start + height]
        rows = np.ascontiguousarray(block.toarray() if sp.issparse(block) else block)
        labels = y[start : start + height]
        fold_of = folds[start : start + height]
        for fold in range(n_folds):
            if n_folds == 1:
                part, signs = rows, labels
            else:
                members = np.flatnonzero(fold_of == fold)
                part, signs = rows[members], labels[members]
            if len(signs):
                # The transpose of C-ordered rows is the Fortran matrix that BLAS wants: no copy.
                sums[fold] = dsyrk(1.0, part.T, beta=1.0, c=sums[fold], overwrite_c=1)
                # Two products with vectors: faster than one with a matrix of two columns.
                linear[fold, :, 0] += signs @ part
                linear[fold, :, 1] += np.ones(len(signs)) @ part
    for fold in range(n_folds):
        A[fold, :n_features, :n_features] = sums[fold]


def solve_sums(A: np.ndarray, q: np.ndarray, nu: float) -> np.ndarray | None:
    """Return w with ``(A + nu I) w = q`` by Cholesky; None if the sums don't determine w."""
    factor = cholesky(A, nu)
    if factor is None:
        return None
    w, _ = dpotrs(factor, q, lower=1)
    return w


def triangle(X: Any, y: np.ndarray, bias: float) -> tuple[np.ndarray, np.ndarray]:
    """Return R (k, d), k <= d, and c (k,) with ``R'R = A`` and ``R'c = q``, by reflections."""
    d = X.shape[1] + bool(bias)
    factor = append_to_factor(np.empty((0, d + 1)), X, y, bias)
    return factor[:d, :d], factor[:d, d]


def append_to_factor(factor: np.ndarray, X: Any, y: np.ndarray, bias: float) -> np.ndarray:
    """Return a triangular factor (k, d + 1) of samples and labels, updated by more samples."""
    n_samples, n_features = X.shape
    d = n_features + bool(bias)
    # As many rows again as the triangle has, or else most of the work is done on zeros.
    height = max(d, TRIANGLE_BLOCK_BYTES // (8 * (d + 1)))
    # Each block of rows goes under the triangle so far: the samples are not copied as a whole, and
    # sparse rows are dense in their block alone.
    for start in range(0, n_samples, height):
        part = X[start : start + height]
        columns = [part.toarray() if sp.issparse(part) else part]
        labels = y[start : start + height]
        if bias:
            columns.append(np.full((len(labels), 1), bias))
        rows = np.vstack([factor, np.column_stack([*columns, labels])])
        (factor,) = qr(rows, mode="r", overwrite_a=True, check_finite=False)
        factor = factor[: d + 1]
    return factor


def solve_triangle(
    R: np.ndarray, c: np.ndarray, nu: float, *, with_inverse: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return w with ``(R'R + nu I) w = R'c`` and, if asked for, the inverse of the matrix."""
    # Squares of singular values are never added to each other; values that are rounding count as 0.
    U, s, Vt = svd(R, full_matrices=False, check_finite=False)
    s[s <= max(R.shape) * np.finfo(float).eps * s[0]] = 0.0
    w = Vt.T @ (s / (s * s + nu) * (U.T @ c))
    if not with_inverse:
        return w, None
    # I / nu, less the part of each direction with a singular value above 0.
    directions = Vt[s > 0.0]
    gain = s[s > 0.0] ** 2 / (s[s > 0.0] ** 2 + nu) / nu
    P = np.eye(R.shape[1]) / nu - (directions.T * gain) @ directions
    if len(directions) == R.shape[1]:
        P = (directions.T / (s**2 + nu)) @ directions
    return w, np.ascontiguousarray(P)


def solve(A: np.ndarray, q: np.ndarray, nu: float) -> tuple[np.ndarray, bool]:
    """Return w with ``(A + nu I) w = q``, and whether A was too ill-conditioned for Cholesky.

    Only the upper triangle of A is read, and A is left as it is.
    """
    w = solve_sums(A, q, nu)
    if w is not None:
        return w, False
    # Directions whose eigenvalue is rounding are left out: q has no part in them, nor has w.
    eigenvalues, V = eigh(A, lower=False)
    nonzero = eigenvalues > len(A) * np.finfo(float).eps * eigenvalues[-1]
    V = V[:, nonzero]
    return V @ ((V.T @ q) / (eigenvalues[nonzero] + nu)), True


def inverse(A: np.ndarray, nu: float) -> np.ndarray:
    """Return ``(A + nu I)^-1``; eigenvalues of A that are rounding count as 0."""
    factor = cholesky(A, nu)
    if factor is not None:
        lower, _ = dpotri(factor, lower=1)
        P = np.tril(lower)
        return np.ascontiguousarray(P + np.tril(P, -1).T)
    eigenvalues, V = eigh(A, lower=False)
    floor = len(A) * np.finfo(float).eps * eigenvalues[-1]
    spectrum = np.where(eigenvalues > floor, eigenvalues, 0.0) + nu
    return np.ascontiguousarray((V / spectrum) @ V.T)


def cholesky(A: np.ndarray, nu: float) -> np.ndarray | None:
    """Return the lower Cholesky factor of ``A + nu I``, with any values above the diagonal.

    None if there is none, or if the reciprocal condition number is below `SMALLEST_RCOND`.
    """
    # The upper triangle of rows is the lower triangle of columns: LAPACK's order without a
    # transposition.
    G = A.T.copy(order="F")
    G.flat[:: len(G) + 1] += nu
    norm = float(np.trace(G))
    factor, info = dpotrf(G, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None
    rcond, info = dpocon(factor, norm, uplo="L")
    return factor if info == 0 and rcond >= SMALLEST_RCOND else None
