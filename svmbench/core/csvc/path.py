"""Ascending values of C on one matrix: each solution starts the next, in one compiled function.

Problem
    The C-SVC with a free offset, for C_1 < C_2 < ...
Given
    K (n, n), y, the values of C.
Returned
    A solution for each C.
Reference
    Chu et al. 2015: a solution is scaled by the ratio of two values of C.
Deviations
    - The factor is the best one for the new objective, not always the ratio.
    - Once no multiplier is at its bound, the bound does not matter: the same multipliers are the
      solution for every larger C, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.problem import label_bounds, threshold
from svmbench.core.csvc.smo import (
    CONVERGED,
    NO_LIMIT,
    REASONS,
    Bounds,
    StoppingCriteria,
    shrinking_steps,
)
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.numeric.arrays import raw


@compiled
def stretch(y: np.ndarray, before: float, C: float, beta: np.ndarray, v: np.ndarray) -> None:
    """Scale the solution at C = `before` towards a larger C, in place, by the best factor.

    Scaling keeps ``e'beta = 0``, and the new gradient needs no kernel values. If most multipliers
    are at their bound it is nearly the next solution; if none is, the best factor is 1.
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
    ends: tuple[float, int, float],
    found: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
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
    ends : (float, int, float)
        Tolerance of the violation, largest number of steps for each C, and the share of C n at
        which the duality gap ends a fit (``smo.NO_LIMIT`` for none).
    found : (ndarray of shape (n_values, n), and three of shape (n_values,))
        Signed multipliers; b, pair steps, and why they ended: positions in
        ``smo.REASONS``.
    """
    n = len(y)
    tol, max_iter, share = ends
    betas, offsets, steps, reasons = found
    beta, v = np.zeros(n), y.copy()
    settled = False
    for c in range(len(values)):
        C = values[c]
        if settled:
            steps[c], reasons[c], offsets[c] = 0, CONVERGED, offsets[c - 1]
        else:
            if c > 0:
                stretch(y, values[c - 1], C, beta, v)
            low, high = label_bounds(y, C)
            own = StoppingCriteria(tol, max_iter, share * C * n)
            steps[c], reasons[c] = shrinking_steps(K, diag, Bounds(low, high), own, beta, v)
            offsets[c] = threshold(low, high, beta, v)
            settled = reasons[c] == CONVERGED
            for k in range(n):
                settled = settled and abs(beta[k]) < C
        betas[c] = beta


def along_c(
    K: np.ndarray,
    y: np.ndarray,
    values: Sequence[float],
    *,
    tol: float,
    max_iter: int,
    gap: float | None = None,
) -> list[KernelSolution]:
    """Solve on a kernel matrix for each C of `values`, ascending; each solution starts the next.

    Once no multiplier is at its bound, the bound does not matter: the same multipliers are the
    solution for every larger C, and cost nothing.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Float32 or float64, C-ordered.
    y : ndarray of shape (n,)
        Labels ±1.
    values : sequence of float
    tol, max_iter : float, int
        Tolerance of the violation, largest number of pair steps for each C.
    gap : float, optional
        Share of C n at which the duality gap ends a fit.
    """
    n_values = len(values)
    betas, offsets = np.empty((n_values, len(y))), np.empty(n_values)
    steps, reasons = np.empty(n_values, dtype=np.int64), np.empty(n_values, dtype=np.int64)
    diag = raw(K.diagonal().copy())
    C = np.array(values, dtype=np.float64)
    found = betas, offsets, steps, reasons
    ends = tol, max_iter, NO_LIMIT if gap is None else gap
    follow(raw(K), diag, raw(y), C, ends, found)
    return [
        KernelSolution(
            coefficients=betas[c],
            b=float(offsets[c]),
            n_iter=int(steps[c]),
            stop_reason=REASONS[reasons[c]],
            counters={"kernel_evaluations": K.size if c == 0 else 0, "updates": int(steps[c])},
        )
        for c in range(n_values)
    ]
