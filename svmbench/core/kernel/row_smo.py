"""Sequential minimal optimisation on a kernel matrix in memory, second-order choice of the pair.

Problem
    max_beta  y'beta - 1/2 beta'K beta,   low <= beta <= high,   e'beta = 0
    with beta_i = y_i alpha_i and the bounds [0, C] for y_i = 1, [-C, 0] for y_i = -1.
Given
    K (n, n), float32 or float64; a start inside the bounds with its gradient v = y - K beta.
Returned
    beta and v in place, once max{v_i: beta_i < high_i} - min{v_j: beta_j > low_j} <= tol.
Reference
    Fan, Chen and Lin 2005, WSS 2: i has the largest gradient of those that can go up; j the
    largest (v_i - v_j)^2 / (K_ii + K_jj - 2 K_ij) of those that can go down.
Deviations
    - In beta, no sign appears in a step or a choice.
    - The scores of j are compared in float32; gradient, gap and step are float64.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.compiled import compiled
from svmbench.core.kernel.selection import find_partner, move_and_find_top, pair_step

#: Why a loop ended.
CONVERGED, MAX_ITER, STALLED = 0, 1, 2

#: The same in words, by those numbers.
REASONS = ("converged", "max_iter", "stalled")


@compiled
def optimise(
    K: np.ndarray,
    diag: np.ndarray,
    y: np.ndarray,
    C: float,
    tol: float,
    max_iter: int,
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take pair steps until the optimality conditions hold within `tol`.

    Parameters
    ----------
    K, diag : ndarray of shape (n, n), (n,)
        Kernel matrix and its diagonal, of one type.
    y : ndarray of shape (n,)
        Labels ±1.
    C, tol, max_iter : float, float, int
        Bound of the multipliers, tolerance of the gap, largest number of steps.
    beta, v : ndarray of shape (n,)
        A feasible start and its gradient ``y - K @ beta``; changed in place.

    Returns
    -------
    steps : int
    reason : int
        Position in ``REASONS``.
    """
    n = len(beta)
    low, high = np.empty(n), np.empty(n)
    up, down = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    score = np.empty(n, dtype=np.float32)
    for k in range(n):
        low[k], high[k] = min(0.0, y[k] * C), max(0.0, y[k] * C)
        up[k] = 0.0 if beta[k] < high[k] else -np.inf
        down[k] = 0.0 if beta[k] > low[k] else -np.inf
    i, j, t, steps = 0, 0, 0.0, 0
    while True:
        i = move_and_find_top(v, up, K, i, j, t)
        if i < 0:
            return steps, CONVERGED
        j, gap = find_partner(v, down, K[i], diag, i, score)
        if gap <= tol:
            return steps, CONVERGED
        if steps >= max_iter:
            return steps, MAX_ITER
        if j < 0:
            return steps, STALLED
        curvature = np.float64(diag[i]) + np.float64(diag[j]) - 2.0 * np.float64(K[i, j])
        before_i, before_j = beta[i], beta[j]
        t = pair_step(i, j, v[i] - v[j], curvature, beta, low, high, up, down)
        if beta[i] == before_i and beta[j] == before_j:
            return steps, STALLED
        steps += 1


@compiled
def gradient(K: np.ndarray, y: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return ``y - K @ beta``, summed in float64 over the non-zero beta alone; K is symmetric."""
    v = y.copy()
    for j in range(len(beta)):
        if beta[j] != 0.0:
            row, factor = K[j], beta[j]
            for k in range(len(v)):
                v[k] -= factor * np.float64(row[k])
    return v


@compiled
def offset(y: np.ndarray, C: float, beta: np.ndarray, v: np.ndarray) -> float:
    """Return b: the mean gradient of the free samples, else the middle of what the bounds allow.

    Parameters
    ----------
    y, C, beta, v
        As for :func:`optimise`, at its end.
    """
    total, free = 0.0, 0
    top, bottom = -np.inf, np.inf
    for k in range(len(beta)):
        low, high = min(0.0, y[k] * C), max(0.0, y[k] * C)
        if low < beta[k] < high:
            total += v[k]
            free += 1
        if beta[k] < high:
            top = max(top, v[k])
        if beta[k] > low:
            bottom = min(bottom, v[k])
    return total / free if free else 0.5 * (top + bottom)
