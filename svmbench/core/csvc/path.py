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
from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.problem import label_bounds, settle_at_bounds, threshold
from svmbench.core.csvc.smo import (
    CONVERGED,
    NO_GAP_TEST,
    STOP_REASONS,
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


class CPath(NamedTuple):
    """The solutions along C."""

    betas: np.ndarray  # (n_values, n): signed multipliers
    offsets: np.ndarray  # (n_values,): b
    steps: np.ndarray  # int (n_values,)
    reasons: np.ndarray  # int (n_values,): positions in ``smo.STOP_REASONS``


@compiled
def follow_c(
    K: np.ndarray,
    diag: np.ndarray,
    y: np.ndarray,
    values: np.ndarray,
    criteria: StoppingCriteria,
    path: CPath,
) -> None:
    """Solve for every value of C, ascending, and write the solutions to `path`.

    The `max_gap` of `criteria`, if not negative, is a share of C n.
    """
    n = len(y)
    betas, offsets, steps, reasons = path.betas, path.offsets, path.steps, path.reasons
    beta, v = np.zeros(n), y.copy()
    one_group, settled = np.zeros(n, dtype=np.int64), False
    for c in range(len(values)):
        C = values[c]
        if settled:
            steps[c], reasons[c], offsets[c] = 0, CONVERGED, offsets[c - 1]
        else:
            # Start from the last solution, stretched.
            if c > 0:
                stretch(y, values[c - 1], C, beta, v)
            low, high = label_bounds(y, C)
            at_c = StoppingCriteria(criteria.tol, criteria.max_iter, criteria.max_gap * C * n)
            steps[c], reasons[c] = shrinking_steps(
                K, diag, Bounds(low, high), at_c, beta, v, one_group
            )
            settle_at_bounds(low, high, beta)
            offsets[c] = threshold(low, high, beta, v)
            # With no multiplier at its bound the solution is that of every larger C.
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
    """Solve on a C-ordered kernel matrix for each C of `values`, ascending.

    `tol` and `max_iter` hold for each C; `gap` is the share of C n at which the duality gap ends a
    fit.
    """
    m = len(values)
    counts = np.empty((2, m), dtype=np.int64)
    path = CPath(np.empty((m, len(y))), np.empty(m), counts[0], counts[1])
    criteria = StoppingCriteria(tol, max_iter, NO_GAP_TEST if gap is None else gap)
    C = np.array(values, dtype=np.float64)
    follow_c(raw(K), raw(K.diagonal().copy()), raw(y), C, criteria, path)
    return [
        KernelSolution(
            coefficients=beta,
            b=float(b),
            n_iter=int(steps),
            stop_reason=STOP_REASONS[reason],
            counters={"kernel_evaluations": 0, "updates": int(steps)},
        )
        for beta, b, steps, reason in zip(*path, strict=True)
    ]
