"""The closed form of the linear least-squares SVM: sufficient statistics and one factorisation.

    G w = q,    G = sum x x' + nu I,    q = sum y x,    nu = 1 / (2C)

Everything here works on samples that already carry the constant feature, if there is one.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpocon, dpotrf, dpotri, dpotrs

#: Below this reciprocal condition number of G (its trace standing for its norm, which is at most
#: d times too strict) a Cholesky solution is not trusted.
SMALLEST_RCOND = 1e-13


def solve(A: np.ndarray, q: np.ndarray, nu: float) -> tuple[np.ndarray, bool]:
    """Return the solution of ``(A + nu I) w = q`` and whether it took the fallback.

    A Cholesky factorisation; where that fails or its condition estimate is below
    :data:`SMALLEST_RCOND` (rank-deficient samples at huge C), an eigendecomposition without the
    directions that carry nothing but rounding: q has no part in them, and neither has w.

    Parameters
    ----------
    A : ndarray of shape (d, d)
        Sum of outer products, of which only the upper triangle is read; left as it is.
    q : ndarray of shape (d,)
    nu : float
        Above 0.
    """
    factor = _cholesky(A, nu)
    if factor is not None:
        w, _ = dpotrs(factor, q, lower=1)
        return w, False
    eigenvalues, V = eigh(A, lower=False)
    seen = eigenvalues > len(A) * np.finfo(float).eps * eigenvalues[-1]
    V = V[:, seen]
    return V @ ((V.T @ q) / (eigenvalues[seen] + nu)), True


def inverse(A: np.ndarray, nu: float) -> np.ndarray:
    """Return ``(A + nu I)^-1``, by the two ways of :func:`solve`; unseen directions get 1/nu."""
    factor = _cholesky(A, nu)
    if factor is not None:
        lower, _ = dpotri(factor, lower=1)
        P = np.tril(lower)
        return np.ascontiguousarray(P + np.tril(P, -1).T)
    eigenvalues, V = eigh(A, lower=False)
    floor = len(A) * np.finfo(float).eps * eigenvalues[-1]
    spectrum = np.where(eigenvalues > floor, eigenvalues, 0.0) + nu
    return np.ascontiguousarray((V / spectrum) @ V.T)


def _cholesky(A: np.ndarray, nu: float) -> np.ndarray | None:
    """Return the lower Cholesky factor of ``A + nu I`` (upper triangle: leavings), or None."""
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
