"""Steps of many multipliers at once: the free ones, and those at a bound that want to leave it.

Problem
    As in ``box_qp``, with a fixed sum or without.
Given
    The problem, a feasible point, the duality gap to reach.
Returned
    The point, moved in place, never to a larger objective.
One step
    Minimise 1/2 s'H s - v's + ridge/2 |s|^2 over s, the change of those multipliers, which keeps
    their sum if the problem fixes it; H is their part of Q. Put all that leave the box on the
    bounds that they crossed, and minimise over the others, until none leaves it. The objective
    decides whether the step is taken.
Reference
    Júdice and Pires 1994 (block pivoting), on the proximal problem (Rockafellar 1976).
Reason for the ridge
    Where the margin is nearly 0, Q among the free multipliers is as good as singular, and without
    a ridge most of them leave their box at once. It is raised where a step fails and lowered where
    one succeeds, so that the last steps are Newton's.
Reason for selecting
    With many samples and a margin of nearly 0, pair steps leave thousands of multipliers at a bound
    beyond the margin, of which few are free in the solution. A step of the free ones and of some
    of these puts most of them on a bound again, so that after some steps one can move all. The free
    ones move together: with a part of them, steps gain little where Q is as good as singular.
Measured
    On abalone and wine-quality, 1,000 rows, RBF kernels of gamma 0.5 to 8, nu = 0.1: from
    10,000 pair steps, 2 to 17 such steps reach gaps of 1e-8, and cost 0.2 to 4 Cholesky factors of
    Q, where an interior-point method needs 18 to 25.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from svmbench.core.nu.box_qp import QPPoint, UnitProblem, restore_sum, subtract_chosen_rows
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import gather

#: The ridge, as a share of the mean diagonal of Q: the least, and the one above which a step gains
#: less than pairs do.
LEAST_RIDGE, LARGEST_RIDGE = 1e-13, 1e-2

#: The first ridge if the margin is nearly 0, which a gap above the objective shows.
FIRST_RIDGE = 1e-6

#: Factors of the ridge: after a step that fails, and after a step that succeeds.
UP, DOWN = 100.0, 0.1

#: Largest number of steps, and of Cholesky factors in one step.
STEPS, PIVOTS = 40, 8

#: A step makes progress if its gap is at most LITTLE times the best so far. The steps end after
#: PATIENCE steps in a row without progress.
LITTLE, PATIENCE = 0.9, 4

#: A multiplier stays at its bound if its gradient is beyond the margin by at most this share of the
#: largest gradient.
INDIFFERENT = 1e-13

#: If more than MOST multipliers are movable, a step moves the free ones and SELECTED of those at a
#: bound, MOST in all: the part of Q of all would be a second matrix, and each factor would take
#: seconds.
MOST, SELECTED = 5000, 1250


def run_block_pivoting(
    problem: UnitProblem,
    point: QPPoint,  # feasible; changed in place. Its ``newton_steps`` counts factors
    tol: float,  # duality gap, relative to the objective of each new point
) -> float:  # factors of all of Q that would have taken as long
    """Take steps until the gap is reached or they gain nothing more."""
    work, waited, best = 0.0, 0, problem.gap(point)
    ridge = LEAST_RIDGE if best < abs(problem.value(point)) else FIRST_RIDGE
    for _ in range(STEPS):
        taken, cubes, factors = step(problem, point, ridge)
        work += cubes
        if not taken:
            ridge *= UP
            if ridge > LARGEST_RIDGE or not factors:
                break
            continue
        if problem.reaches(point, problem.target(point, tol)):
            break
        waited = 0 if point.gap < LITTLE * best or ridge > LEAST_RIDGE else waited + 1
        best = min(best, point.gap)
        if waited >= PATIENCE:
            break
        ridge = max(DOWN * ridge, LEAST_RIDGE)
    return work / float(len(point.a)) ** 3


def step(
    problem: UnitProblem,
    point: QPPoint,  # changed in place
    ridge: float,
    missing: float = 0.0,  # the change of the sum; if there is one, the objective may rise
) -> tuple[bool, float, int]:
    """Take one step if it lowers the objective, or changes the sum.

    Return whether it was taken, the sum of the cubed sizes of the systems that were solved, and the
    number of these systems, which the point counts, too.
    """
    chosen = movable(problem, point)
    selects = len(chosen) > MOST
    if selects:
        chosen = select(problem, point, chosen)
    taken, cubes, factors = _move(problem, point, chosen, ridge, missing)
    point.newton_steps += factors
    point.selected_steps += factors if selects else 0
    return taken, cubes, factors


def _move(
    problem: UnitProblem, point: QPPoint, chosen: np.ndarray, ridge: float, missing: float
) -> tuple[bool, float, int]:
    """Take one step of the chosen multipliers; return as `step`."""
    if len(chosen) < 2:
        return False, 0.0, 0
    H = gather(problem.Q, chosen, chosen, np.float64)
    added = ridge * max(float(np.trace(H)) / len(chosen), np.finfo(np.float64).tiny)
    before, v = point.a[chosen], point.v[chosen]
    x, inside, cubes = before.copy(), np.arange(len(chosen)), 0.0
    for factors in range(1, PIVOTS + 1):
        change = x - before
        cubes += float(len(inside)) ** 3
        right = (v - H @ change - added * change)[inside] if factors > 1 else v
        shift = None if problem.total is None else missing - float(change.sum())
        moved = _direction(H, inside, added, right, shift)
        if moved is None:
            return False, cubes, factors
        after = x[inside] + moved
        leaves = (after < 0.0) | (after > 1.0)
        x[inside] = np.clip(after, 0.0, 1.0)
        inside = inside[~leaves]
        if not np.any(leaves):
            break
        if len(inside) < 2:
            return False, cubes, factors
    else:
        return False, cubes, PIVOTS
    change = x - before
    if not missing and not 0.5 * float(change @ (H @ change)) - float(v @ change) < 0.0:
        return False, cubes, factors
    subtract_chosen_rows(raw(problem.Q), chosen, change, point.v)
    point.a[chosen] = x
    point.drift += len(chosen)
    if problem.total is not None:
        restore_sum(point.a, problem.sum)
    return True, cubes, factors


def movable(problem: UnitProblem, point: QPPoint) -> np.ndarray:
    """Return the free multipliers, and those at a bound whose gradient is beyond the margin."""
    d = -point.v
    free, margin = _free_and_margin(problem, point)
    slack = INDIFFERENT * float(np.abs(d).max(initial=0.0))
    up = (point.a <= 0.0) & (d < margin - slack)
    down = (point.a >= 1.0) & (d > margin + slack)
    return np.flatnonzero(free | up | down)


def select(problem: UnitProblem, point: QPPoint, chosen: np.ndarray) -> np.ndarray:
    """Return the free multipliers, and the `SELECTED` ones at bounds farthest off the margin.

    If there are more than `MOST` free ones, `SELECTED` of these are taken, at equal distances.
    """
    free, margin = _free_and_margin(problem, point)
    among, at_bound = np.flatnonzero(free), chosen[~free[chosen]]
    if len(among) >= MOST:
        return among[np.linspace(0, len(among) - 1, SELECTED).round().astype(np.int64)]
    # The gradient's distance from the margin is |-v - margin|.
    farthest = np.argsort(-np.abs(point.v[at_bound] + margin), kind="stable")
    return np.sort(np.append(among, at_bound[farthest[: min(SELECTED, MOST - len(among))]]))


def _free_and_margin(problem: UnitProblem, point: QPPoint) -> tuple[np.ndarray, float]:
    """Return which multipliers are free, and the median of their gradients, for the margin.

    Where no sum is kept, the gradients of free multipliers are 0 at the optimum, and so is this.
    """
    free = (point.a > 0.0) & (point.a < 1.0)
    if problem.total is None:
        return free, 0.0
    return free, -float(np.median(point.v[free] if np.any(free) else point.v))


def _direction(
    H: np.ndarray, inside: np.ndarray, added: float, right: np.ndarray, shift: float | None
) -> np.ndarray | None:
    """Solve ``(H + added) s = right - y e`` among `inside`, with the sum `shift`; y = 0 without."""
    part = H.copy() if len(inside) == len(H) else gather(H, inside, inside, np.float64)
    part.flat[:: len(inside) + 1] += added
    try:
        factor = cho_factor(part, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    if shift is None:
        direction = cho_solve(factor, right, check_finite=False)
    else:
        direction = solve_with_sum(factor, right, shift)
    return direction if direction is not None and np.all(np.isfinite(direction)) else None


def solve_with_sum(factor: Any, right: np.ndarray, shift: float) -> np.ndarray | None:
    """Solve ``H s = right - y e`` with the sum `shift` by H's Cholesky factor; None if singular."""
    both = np.column_stack([right, np.ones(len(right))])
    toward, spread = cho_solve(factor, both, check_finite=False).T
    total = float(spread.sum())
    if not np.isfinite(total) or total <= 0.0:
        return None
    return np.asarray(toward - ((float(toward.sum()) - shift) / total) * spread)
