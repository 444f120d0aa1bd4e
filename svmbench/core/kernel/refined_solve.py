"""A positive definite system, factorised in single precision and solved to double.

A Cholesky factorisation in float32 takes half the time and memory of one in float64. What it lacks
in digits comes back in conjugate gradients in float64 whose preconditioner it is: two or three
rounds where the matrix is well conditioned, more where it is not, each as cheap as two products.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import spotrf, spotrs

#: Residual, relative to the right-hand side, at which a solution is accepted.
RESIDUAL = 1e-10

#: Largest number of rounds: a factorisation in float64 costs as much.
ROUNDS = 25

#: Rows that are multiplied at a time.
HEIGHT = 512


def times(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return ``K @ v`` in float64, whatever the precision of the symmetric matrix `K`."""
    if K.dtype == np.float64:
        return np.asarray(K @ v)
    out = np.empty(len(v))
    for start in range(0, len(K), HEIGHT):
        out[start : start + HEIGHT] = K[start : start + HEIGHT].astype(np.float64) @ v
    return out


def solve_refined(
    K: np.ndarray, y: np.ndarray, nu: float, constant: float
) -> tuple[np.ndarray, int] | None:
    """Return the solution of ``(K + constant + nu I) beta = y`` and the rounds that it took.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric, float32 or float64; left as it is.
    y : ndarray of shape (n,)
    nu, constant : float

    Returns
    -------
    (ndarray, int) or None
        None where single precision does not suffice (nu small beside the rounding of K).
    """
    # Of a symmetric matrix rows are columns: LAPACK's order costs no transposition.
    A = np.array(K.T, dtype=np.float32, order="F")
    A += np.float32(constant)
    A.flat[:: len(A) + 1] += np.float32(nu)
    factor, info = spotrf(A, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None

    def approximate(r: np.ndarray) -> np.ndarray:
        # Tiny residuals are brought to where float32 has all of its digits.
        size = float(np.abs(r).max()) or 1.0
        solved, _ = spotrs(factor, (r / size).astype(np.float32), lower=1)
        return size * np.asarray(solved, dtype=np.float64)

    beta, r = np.zeros(len(y)), y.astype(np.float64)
    aim = RESIDUAL * float(np.linalg.norm(r))
    z = approximate(r)
    p, slope = z, float(r @ z)
    for n_rounds in range(1, ROUNDS + 1):
        Ap = times(K, p) + constant * float(p.sum()) + nu * p
        curvature = float(p @ Ap)
        if not curvature > 0.0:
            return None
        beta += (slope / curvature) * p
        before, r = r, r - (slope / curvature) * Ap
        if np.linalg.norm(r) <= aim:
            return beta, n_rounds
        z = approximate(r)
        # Polak and Ribiere's form: rounding makes the preconditioner another one every round.
        p = z + (float(z @ (r - before)) / slope) * p
        slope = float(r @ z)
        if not slope > 0.0:
            return None
    return None
