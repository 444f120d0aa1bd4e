"""All values of C one after another, each solution the start of the next, as one compiled function.

Problem
    The C-SVC with a free offset, for C_1 < C_2 < …
Given
    K (n, n), y, the values of C.
Returned
    A solution for each C.
Reference
    Warm starts along C: Chu et al. 2015 (scaling a solution by the ratio of two values of C).
Deviations
    - The factor is the best one for the new objective, not always the ratio.
    - Once no multiplier is at its bound, the bound does not matter: the same multipliers are the
      solution for every larger C, and cost nothing.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.compiled import compiled
from svmbench.core.kernel.csvc.box import label_bounds, threshold
from svmbench.core.kernel.csvc.whole_matrix import CONVERGED, pair_steps


@compiled
def stretch(y: np.ndarray, before: float, C: float, beta: np.ndarray, v: np.ndarray) -> None:
    """Scale the solution at C = `before` towards a larger C, in place, by the best factor.

    Scaling keeps ``e'beta = 0``, and the new gradient needs no kernel values. If most multipliers
    are at their bound it is nearly the next solution; if none is, the best factor is 1.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels ±1.
    before, C : float
        The present bound and the next.
    beta, v : ndarray of shape (n,)
        Signed multipliers and gradient ``y - K @ beta``.
    """
    linear, square = 0.0, 0.0
    for k in range(len(beta)):
        linear += y[k] * beta[k]
        square += beta[k] * (y[k] - v[k])
    largest = C / before
    factor = min(largest, max(1.0, linear / square)) if square > 0.0 else largest
    for k in range(len(beta)):
        at_bound = abs(beta[k]) >= before
        beta[k] *= factor
        if at_bound and factor == largest:
            beta[k] = C * y[k]
        v[k] += (1.0 - factor) * (y[k] - v[k])


@compiled
def follow(
    K: np.ndarray,
    diag: np.ndarray,
    y: np.ndarray,
    values: np.ndarray,
    tol: float,
    max_iter: int,
    betas: np.ndarray,
    offsets: np.ndarray,
    steps: np.ndarray,
    reasons: np.ndarray,
) -> None:
    """Solve for every value of C, ascending, and write what was found to the last four.

    Parameters
    ----------
    K, diag : ndarray of shape (n, n), (n,)
        Kernel matrix and its diagonal, of one type.
    y : ndarray of shape (n,)
        Labels ±1.
    values : ndarray of shape (n_values,)
        C, ascending.
    tol, max_iter : float, int
        Tolerance of the gap, largest number of steps for each C.
    betas : ndarray of shape (n_values, n)
        Signed multipliers.
    offsets, steps, reasons : ndarray of shape (n_values,)
        b, pair steps, and why they ended: positions in ``whole_matrix.REASONS``.
    """
    n = len(y)
    beta, v = np.zeros(n), y.copy()
    settled = False
    for c in range(len(values)):
        if settled:
            steps[c], reasons[c], offsets[c] = 0, CONVERGED, offsets[c - 1]
        else:
            if c > 0:
                stretch(y, values[c - 1], values[c], beta, v)
            low, high = label_bounds(y, values[c])
            steps[c], reasons[c] = pair_steps(K, diag, low, high, tol, max_iter, beta, v)
            offsets[c] = threshold(low, high, beta, v)
            settled = reasons[c] == CONVERGED
            for k in range(n):
                settled = settled and abs(beta[k]) < values[c]
        for k in range(n):
            betas[c, k] = beta[k]
