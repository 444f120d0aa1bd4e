"""Solve a positive definite system to double precision with a factor in single precision.

A Cholesky factorisation in float32 takes half the time and memory of one in float64. Conjugate
gradients in float64 with that factor as preconditioner restore the digits: two or three rounds for
a well-conditioned matrix, more for others, each at the cost of two products.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import strsv
from scipy.linalg.lapack import spotrf

from svmbench.core.numeric.conjugate_gradient import ConjugateGradients

#: Residual, relative to the right-hand side, at which a solution is accepted.
RELATIVE_RESIDUAL = 1e-10

#: Least diagonal shift, relative to the trace, that survives single precision.
LEAST_SHIFT = 0.5 * 2.0**-24

#: Largest number of rounds: as many cost as much as a factorisation in float64.
MAX_ROUNDS = 25

#: Factor from float64's rounding of the terms of a residual to the least residual to be expected:
#: a stable factorisation in double precision leaves no smaller one.
BACKWARD_ERROR = 16.0 * float(np.finfo(np.float64).eps)

#: Number of times that the residual may turn out larger than its recurrence says.
MAX_DRIFTS = 2

#: Rows that are multiplied at a time: in double precision they stay in the cache.
CACHED_ROWS = 32


def float64_product(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return ``K @ v`` in float64 for a matrix in float32 or float64."""
    if K.dtype == np.float64:
        return np.asarray(K @ v)
    out = np.empty(len(v))
    for start in range(0, len(K), CACHED_ROWS):
        out[start : start + CACHED_ROWS] = K[start : start + CACHED_ROWS].astype(np.float64) @ v
    return out


def is_worth_trying(K: np.ndarray, nu: float, constant: float) -> bool:
    """Return True if `nu` survives the rounding of ``K + constant`` to single precision."""
    return nu >= LEAST_SHIFT * (float(np.trace(K)) + constant * len(K))


def solve_refined(
    K: np.ndarray,  # (n, n): symmetric, float32 or float64; not changed
    y: np.ndarray,  # (n,)
    nu: float,
    constant: float,
) -> tuple[np.ndarray, int, bool] | None:
    """Solve ``(K + constant + nu I) beta = y``; None where single precision does not suffice.

    Return beta, the number of rounds, and whether the residual is at most 1e-10 of `y`; otherwise
    the residual is as small as rounding in float64 allows.
    """
    # Of a symmetric matrix rows are columns: LAPACK's order costs no transposition.
    A = np.array(K.T, dtype=np.float32, order="F")
    A += np.float32(constant)
    A.flat[:: len(A) + 1] += np.float32(nu)
    factor, info = spotrf(A, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None

    def approximate(r: np.ndarray) -> np.ndarray:
        # Scale tiny residuals into the range where float32 has all of its digits.
        size = float(np.abs(r).max()) or 1.0
        # One right-hand side: LAPACK's solver for many takes five times as long.
        solved = strsv(factor, (r / size).astype(np.float32), lower=1, overwrite_x=1)
        solved = strsv(factor, solved, lower=1, trans=1, overwrite_x=1)
        return size * np.asarray(solved, dtype=np.float64)

    def multiply(v: np.ndarray) -> np.ndarray:
        return np.asarray(float64_product(K, v) + constant * float(v.sum()) + nu * v)

    length, drifts = float(np.linalg.norm(y)), 0
    # ||A 1|| / ||1|| is near the norm of a matrix without large negative entries.
    target, norm = (
        RELATIVE_RESIDUAL * length,
        float(np.linalg.norm(multiply(np.ones(len(y))))) / len(y) ** 0.5,
    )
    state = ConjugateGradients(multiply, y.astype(np.float64), approximate, flexible=True)
    for n_rounds in range(1, MAX_ROUNDS + 1):
        if not state.step():
            return None
        if np.linalg.norm(state.r) <= target:
            # The recurrence drifts from the residual: compute that anew.
            state.r = y - multiply(state.x)
            rest = float(np.linalg.norm(state.r))
            if rest <= max(
                target, BACKWARD_ERROR * (norm * float(np.linalg.norm(state.x)) + length)
            ):
                return state.x, n_rounds, rest <= target
            drifts += 1
            if drifts > MAX_DRIFTS:
                return None
        state.turn()
        if not state.slope > 0.0:
            return None
    return None
