"""The closed form of the linear least-squares SVM: sufficient statistics and one factorisation.

    G w = q,    G = sum x x' + nu I,    q = sum y x,    nu = 1 / (2C)

The sums are enough unless G is ill-conditioned: they hold the squares of the samples' singular
values, of which float64 sees nothing below 1e-16 times the largest. Features of 1e8 hide the
constant one that way. The samples' own triangular factor has the singular values themselves.

Everything here works on samples that already carry the constant feature, if there is one;
:func:`triangle` can append it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, qr, svd
from scipy.linalg.lapack import dpocon, dpotrf, dpotri, dpotrs

#: Below this reciprocal condition number of G (its trace standing for its norm, which is at most
#: d times too strict) a Cholesky solution is not trusted.
SMALLEST_RCOND = 1e-13

#: What `stop_reason_` says where the samples themselves were factorised.
BY_SAMPLES = "closed form, by orthogonal reflections of the samples"

#: Bytes of a block of samples that is made triangular at once.
BLOCK_BYTES = 4 << 20


#: What it says where there was nothing but sums, which were not enough.
BY_POOR_SUMS = "closed form, of sums too ill-conditioned for float64"


def solve_sums(A: np.ndarray, q: np.ndarray, nu: float) -> np.ndarray | None:
    """Return the solution of ``(A + nu I) w = q`` by Cholesky's factorisation.

    None where that fails or its condition estimate is below :data:`SMALLEST_RCOND`: the sums
    don't determine w then. The parameters are those of :func:`solve`.
    """
    factor = cholesky(A, nu)
    if factor is None:
        return None
    w, _ = dpotrs(factor, q, lower=1)
    return w


def triangle(X: Any, y: np.ndarray, bias: float) -> tuple[np.ndarray, np.ndarray]:
    """Return R and c with ``R'R = sum x x'`` and ``R'c = sum y x``, by Householder reflections.

    Block after block of rows goes under the triangle so far, so that no copy of the samples is
    made; sparse rows are dense in their block alone.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    bias : float
        Value of the constant feature that is appended; 0 for none.

    Returns
    -------
    R : ndarray of shape (k, d)
        k is at most d.
    c : ndarray of shape (k,)
    """
    d = X.shape[1] + bool(bias)
    both = stacked(np.empty((0, d + 1)), X, y, bias)
    return both[:d, :d], both[:d, d]


def stacked(both: np.ndarray, X: Any, y: np.ndarray, bias: float) -> np.ndarray:
    """Return the triangular factor of samples with their labels as a last column, with more rows.

    Parameters
    ----------
    both : ndarray of shape (k, d + 1)
        The factor so far, which may have no rows.
    X, y, bias
        As :func:`triangle` takes them.
    """
    n_samples, n_features = X.shape
    d = n_features + bool(bias)
    # As many rows again as the triangle has, or else most of the work is done on zeros.
    height = max(d, BLOCK_BYTES // (8 * (d + 1)))
    for start in range(0, n_samples, height):
        part = X[start : start + height]
        columns = [part.toarray() if sp.issparse(part) else part]
        labels = y[start : start + height]
        if bias:
            columns.append(np.full((len(labels), 1), bias))
        rows = np.vstack([both, np.column_stack([*columns, labels])])
        (both,) = qr(rows, mode="r", overwrite_a=True, check_finite=False)
        both = both[: d + 1]
    return both


def solve_triangle(
    R: np.ndarray, c: np.ndarray, nu: float, *, with_inverse: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the solution of ``(R'R + nu I) w = R'c`` and, where asked for, the inverse matrix.

    By R's singular values, whose squares are never formed beside each other; those that are
    rounding alone count as zero.
    """
    U, s, Vt = svd(R, full_matrices=False, check_finite=False)
    s[s <= max(R.shape) * np.finfo(float).eps * s[0]] = 0.0
    w = Vt.T @ (s / (s * s + nu) * (U.T @ c))
    if not with_inverse:
        return w, None
    # I / nu, less what each direction that is seen takes from it.
    seen = Vt[s > 0.0]
    gain = s[s > 0.0] ** 2 / (s[s > 0.0] ** 2 + nu) / nu
    P = np.eye(R.shape[1]) / nu - (seen.T * gain) @ seen
    if len(seen) == R.shape[1]:
        P = (seen.T / (s**2 + nu)) @ seen
    return w, np.ascontiguousarray(P)


def solve(A: np.ndarray, q: np.ndarray, nu: float) -> tuple[np.ndarray, bool]:
    """Return the solution of ``(A + nu I) w = q`` and whether it took the fallback.

    By :func:`solve_sums`; where that is not to be trusted and the samples are gone, by an
    eigendecomposition without the directions that carry nothing but rounding: where these are rank
    deficient at huge C, q has no part in them, and neither has w.

    Parameters
    ----------
    A : ndarray of shape (d, d)
        Sum of outer products, of which only the upper triangle is read; left as it is.
    q : ndarray of shape (d,)
    nu : float
        Above 0.
    """
    w = solve_sums(A, q, nu)
    if w is not None:
        return w, False
    eigenvalues, V = eigh(A, lower=False)
    seen = eigenvalues > len(A) * np.finfo(float).eps * eigenvalues[-1]
    V = V[:, seen]
    return V @ ((V.T @ q) / (eigenvalues[seen] + nu)), True


def inverse(A: np.ndarray, nu: float) -> np.ndarray:
    """Return ``(A + nu I)^-1``, by the two ways of :func:`solve`; unseen directions get 1/nu."""
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
    """Return the lower Cholesky factor of ``A + nu I`` (upper triangle: leavings).

    None where there is none, or G's reciprocal condition is below :data:`SMALLEST_RCOND`.
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
