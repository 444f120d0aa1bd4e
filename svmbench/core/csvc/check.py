"""Checks in double precision of what was found in single precision.

Rows in float32 carry errors of some 1e-7, and a gradient summed from them one of some 1e-5. Only
samples near the gap are checked: a sample that is further from it than ten times the largest
error found among those can't matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svmbench.core.csvc.problem import QPProblem, up_low_sets
from svmbench.core.csvc.smo import STALLED
from svmbench.core.kernels.rows import Blocks

#: Samples within so many tolerances of the gap are checked at first.
NEAR = 3.0

#: Exact kernel values held in memory at a time.
AT_ONCE = 1 << 21

#: Rows of a symmetric matrix that are computed from the diagonal on.
STRIP = 256

#: A round must bring the true gap down to this share, or the search goes on in float64 alone.
MIN_PROGRESS = 0.5

#: Safety factor of the error that was found.
SAFETY = 10.0


def near_violation(problem: QPProblem, beta: np.ndarray, v: np.ndarray, width: float) -> np.ndarray:
    """Return which samples could be part of a violation if gradients were wrong by `width`."""
    at = up_low_sets(problem, beta, v)
    rises = at.v_up >= np.minimum(at.m, at.M) - width
    return rises | (at.v_low <= np.maximum(at.m, at.M) + width)


def exact_gradient(
    source: Blocks, linear: np.ndarray, beta: np.ndarray, samples: np.ndarray
) -> np.ndarray:
    """Return ``(linear - K beta)[samples]`` in float64; `samples` are different and ascend."""
    is_support, v = beta != 0.0, linear.copy()
    support, own = np.flatnonzero(is_support), samples[is_support[samples]]
    is_support[own] = False
    others, idle = np.flatnonzero(is_support), samples[beta[samples] == 0.0]
    for rows, columns in ((idle, support), (own, others)):
        height = max(1, AT_ONCE // max(1, len(columns)))
        for top in range(0, len(rows), height):
            part = rows[top : top + height]
            v[part] -= source.block(part, columns) @ beta[columns]
    # Among the samples with a multiplier each value serves for both of its pair.
    height = max(1, min(STRIP, AT_ONCE // max(1, len(own))))
    for top in range(0, len(own), height):
        part, later = own[top : top + height], own[top + height :]
        K = source.block(part, own[top:])
        v[part] -= K @ beta[own[top:]]
        v[later] -= beta[part] @ K[:, len(part) :]
    return v[samples]


def check_in_float64(
    source: Blocks, problem: QPProblem, beta: np.ndarray, v: np.ndarray, tol: float
) -> tuple[float, np.ndarray]:
    """Replace the gradient near the gap by its value in float64; return the true gap.

    Parameters
    ----------
    source : Blocks
    problem : QPProblem
    beta, v : ndarray of shape (n_samples,)
        Variables, and gradient (changed in place).
    tol : float

    Returns
    -------
    gap : float
    checked : ndarray of int
        The samples whose gradient is exact now.
    """
    done = correct_near(
        lambda width: near_violation(problem, beta, v, width),
        lambda at: exact_gradient(source, problem.linear, beta, at),
        v,
        tol,
    )
    return up_low_sets(problem, beta, v).gap, np.flatnonzero(done)


def correct_near(
    near: Callable[[float], np.ndarray],
    exact: Callable[[np.ndarray], np.ndarray],
    v: np.ndarray,
    tol: float,
) -> np.ndarray:
    """Replace the gradient near the gap by its value in float64; return where it was replaced.

    Parameters
    ----------
    near : callable
        Returns which samples could be part of a violation if gradients were wrong by a width.
    exact : callable
        Returns the gradient of some samples in float64.
    v : ndarray of shape (n,)
        Gradient in float32 rows, changed in place.
    tol : float
    """
    done, width, error = np.zeros(len(v), dtype=bool), NEAR * tol, 0.0
    while True:
        at = np.flatnonzero(near(width) & ~done)
        if len(at):
            found = exact(at)
            error = max(error, float(np.max(np.abs(found - v[at]))))
            v[at] = found
            done[at] = True
        # The error of the samples that were not looked at is taken to be at most SAFETY times the
        # largest one found.
        if width >= SAFETY * error:
            return done
        width = 2.0 * SAFETY * error


def is_exhausted(gap: float, last: float, reason: int) -> bool:
    """Return whether float32 gets no further: the search goes on in float64 then.

    `gap` is the true gap at this check, `last` that of the check before; infinite at first.
    """
    return not gap <= MIN_PROGRESS * last or reason == STALLED
