"""``dcdm``: the paper's coordinate descent, as printed; it can stop short of the optimum.

Problem
    As in ``box_qp``, with ``e'a >= total`` as the paper has it.
Given
    The problem, a tolerance.
Returned
    Where a sweep changes nothing any more.
Reference
    Algorithm 2 of the SRBO paper.
Erratum
    From a point with e'a = total no multiplier can go down unless another goes up first. One with a
    positive gradient wants to go down and can't, one with a negative gradient wants to go up: once
    all gradients are positive nothing moves, whatever the differences between them. Minimising
    1/2 a'Qa that is the rule, so that the method stalls; ``dcdm-pairwise`` is the cure.
What the print leaves open
    - The step s: 1/Q_ii, which solves for the multiplier, as the text says it does.
    - The start: all multipliers equal with the least sum. From the other end, all of them 1, the
      sum is used up by the first samples of the file.
    - epsilon, which the paper uses and gives no value: 1e-4, this suite's choice.
    - Where the middle of three cases is meant: both bounds are tested in the scale 0 … 1.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.nu.box_qp import QPPoint, UnitProblem
from svmbench.core.numeric.arrays import raw

#: This suite's value of epsilon, which the paper leaves open: of gradients relative to the mean
#: diagonal and of distances to bounds.
EPSILON = 1e-4


def solve_dcdm(
    problem: UnitProblem,
    point: QPPoint,
    *,
    tol: float,  # duality gap, relative to the objective, that counts as converged; it ends nothing
    max_iter: int,  # largest number of updates, rounded up to whole sweeps
) -> None:
    """Sweep until nothing moves; changes the point in place."""
    size = float(problem.diag.mean()) if len(problem.diag) else 1.0
    sweeps = max(1, -(-max_iter // max(1, len(point.a))))
    moves, ended = dcdm_sweeps(
        raw(problem.Q),
        problem.diag,
        problem.total or 0.0,
        EPSILON * min(1.0, 1e2 * tol),
        EPSILON * size * min(1.0, 1e2 * tol),
        sweeps,
        point.a,
        point.v,
    )
    point.steps += moves
    problem.refresh(point)
    # The sum may be above `total`: the gap is then to the best point of that sum or of `total`.
    d = -point.v
    point.gap = float(point.a @ d) - _least_of_half_space(d, problem.total or 0.0)
    point.reason = "max_iter"
    if ended:
        point.reason = problem.reason(point, tol)


def _least_of_half_space(d: np.ndarray, total: float) -> float:
    """Return ``min <d, s>`` over 0 <= s <= 1 of sum at least `total`."""
    whole = min(int(total), len(d))
    ordered = np.sort(d)
    rest = (total - whole) * ordered[whole] if whole < len(d) else 0.0
    smallest = float(ordered[:whole].sum() + rest)
    # Beyond `total` only what is negative still lowers it.
    more = np.minimum(ordered[whole:], 0.0)
    if len(more):
        more[0] *= 1.0 - (total - whole)
    return smallest + float(more.sum())


@compiled
def dcdm_sweeps(
    Q: np.ndarray,  # (n, n)
    diag: np.ndarray,  # (n,)
    total: float,  # least sum
    near: float,  # what counts as at a bound
    epsilon: float,  # as a gradient of 0
    max_sweeps: int,
    a: np.ndarray,  # (n,)
    v: np.ndarray,  # (n,)
) -> tuple[int, bool]:  # updates, ended (whether a sweep moved nothing)
    """Take sweeps of single multipliers, in place."""
    n = len(a)
    summed = 0.0
    for i in range(n):
        summed += a[i]
    updates = 0
    for _ in range(max_sweeps):
        still = True
        for i in range(n):
            G = -v[i]
            least = max(0.0, total - (summed - a[i]))
            if a[i] - least < near:
                projected = min(G, 0.0)
            elif 1.0 - a[i] < near:
                projected = max(G, 0.0)
            else:
                projected = G
            if abs(projected) <= epsilon:
                continue
            s = 1.0 / diag[i] if diag[i] > 0.0 else 1.0
            after = min(1.0, max(a[i] - projected * s, least))
            change = after - a[i]
            if change == 0.0:
                continue
            still = False
            updates += 1
            summed += change
            a[i] = after
            row = Q[i]
            for k in range(n):
                v[k] -= change * row[k]
        if still:
            return updates, True
    return updates, False
