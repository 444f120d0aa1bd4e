"""A positive definite system, factorised in single precision and solved to double.

A Cholesky factorisation in float32 takes half the time and memory of one in float64. What it lacks
in digits comes back in conjugate gradients in float64 whose preconditioner it is: two or three
rounds where the matrix is well conditioned, more where it is not, each as cheap as two products.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import strsv
from scipy.linalg.lapack import spotrf

from svmbench.core.numeric.conjugate_gradient import ConjugateGradients

#: Residual, relative to the right-hand side, at which a solution is accepted.
RESIDUAL = 1e-10

#: A diagonal smaller than this, relative to the trace, is lost in single precision.
LEAST_SHIFT = 0.5 * 2.0**-24

#: Largest number of rounds: a factorisation in float64 costs as much.
ROUNDS = 25

#: A residual as small as rounding allows, in units of float64's and of what the products add up:
#: that of a stable factorisation in double precision is no smaller.
BACKWARD = 16.0 * float(np.finfo(np.float64).eps)

#: How often the residual may turn out larger than its recurrence has it.
DRIFTS = 2

#: Rows that are multiplied at a time: in double precision they stay in the cache.
HEIGHT = 32


def times(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return ``K @ v`` in float64, whatever the precision of the symmetric matrix `K`."""
    if K.dtype == np.float64:
        return np.asarray(K @ v)
    out = np.empty(len(v))
    for start in range(0, len(K), HEIGHT):
        out[start : start + HEIGHT] = K[start : start + HEIGHT].astype(np.float64) @ v
    return out


def is_worth_trying(K: np.ndarray, nu: float, constant: float) -> bool:
    """Return True if `nu` survives the rounding of ``K + constant`` to single precision."""
    return nu >= LEAST_SHIFT * (float(np.trace(K)) + constant * len(K))


def solve_refined(
    K: np.ndarray,  # (n, n): symmetric, float32 or float64; left as it is
    y: np.ndarray,  # (n,)
    nu: float,
    constant: float,
) -> tuple[np.ndarray, int, bool] | None:
    """Return the solution of ``(K + constant + nu I) beta = y``, and how it was reached.

    Return the solution, the rounds, and whether its residual is at most 1e-10 of `y`; if not, the
    residual is as small as rounding in float64 allows. None where single precision does not suffice
    (nu small beside the rounding of K).
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
        # One right-hand side: LAPACK's solver for many takes five times as long.
        solved = strsv(factor, (r / size).astype(np.float32), lower=1, overwrite_x=1)
        solved = strsv(factor, solved, lower=1, trans=1, overwrite_x=1)
        return size * np.asarray(solved, dtype=np.float64)

    def multiply(v: np.ndarray) -> np.ndarray:
        return np.asarray(times(K, v) + constant * float(v.sum()) + nu * v)

    length, drifts = float(np.linalg.norm(y)), 0
    # Of a matrix without large negative entries, a vector of ones finds the norm.
    aim, norm = RESIDUAL * length, float(np.linalg.norm(multiply(np.ones(len(y))))) / len(y) ** 0.5
    state = ConjugateGradients(multiply, y.astype(np.float64), approximate, flexible=True)
    for n_rounds in range(1, ROUNDS + 1):
        if not state.step():
            return None
        if np.linalg.norm(state.r) <= aim:
            # The recurrence drifts from the residual: this is what counts.
            state.r = y - multiply(state.x)
            rest = float(np.linalg.norm(state.r))
            if rest <= max(aim, BACKWARD * (norm * float(np.linalg.norm(state.x)) + length)):
                return state.x, n_rounds, rest <= aim
            drifts += 1
            if drifts > DRIFTS:
                return None
        state.turn()
        if not state.slope > 0.0:
            return None
    return None
