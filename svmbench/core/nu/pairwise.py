"""Algorithm 2 of the SRBO paper: ``dcdm`` as printed, and ``dcdm-pairwise``, which converges.

Problem
    As in ``box_qp``; ``dcdm`` has ``e'a >= total``, as the paper has it.
Given
    The problem, a feasible point with its gradient, a tolerance.
Returned
    The point, moved in place: by ``dcdm-pairwise`` once its duality gap is at most tol times the
    objective; by ``dcdm`` where a sweep changes nothing any more, maybe short of the optimum.
Erratum of ``dcdm``
    From a point with e'a = total no multiplier can go down unless another goes up first. One with a
    positive gradient wants to go down and can't, one with a negative gradient wants to go up: once
    all gradients are positive nothing moves, whatever the differences between them. With the
    objective 1/2 a'Qa they usually are, so the method stalls; ``dcdm-pairwise`` converges.
What the print leaves open
    - The step s: 1/Q_ii, which solves for the multiplier, as the text says it does.
    - The start: all multipliers equal with the least sum. From the other end, all of them 1, the
      sum is used up by the first samples of the file.
    - epsilon, which the paper uses and gives no value: min(1, 100 tol) times 1e-4, this suite's
      choice. It is 1e-8 at tol = 1e-6, which the configs of the paper's tables have.
    - Where the middle of three cases is meant: both bounds are tested in the scale 0 … 1.
Reference of ``dcdm-pairwise``
    Algorithm 2, made convergent: a single multiplier can't move where the sum is fixed, so that two
    do (Fan, Chen and Lin 2005, WSS 2; the steps are those of ``csvc``), and all free ones where
    that is cheaper.
Deviations
    - Once pairs have taken as long as a step of many multipliers would (``block_pivoting``), such
      steps are taken: with an ill-conditioned Q pairs alone need hundreds of thousands of steps for
      the gap that interior-point methods reach.
    - Once both have taken most of the time of an interior-point method, it is used (``interior``).
    - Where no sum is fixed (the C-SVM), one multiplier moves, or two where that gains; many at once
      only after `MOST_PAIRS` steps for each sample.
    - It stops by the duality gap, which says how far the objective is from the optimum, and not by
      the largest violation, which doesn't.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.smo import (
    CONVERGED,
    Bounds,
    StoppingCriteria,
    pair_steps,
    steps_without_sum,
)
from svmbench.core.nu import block_pivoting, interior
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, restore_sum
from svmbench.core.numeric.arrays import raw

#: If the gap is not reached, the next round's tolerance is this share of the last: with a kept
#: sum, and without.
CLOSER, CLOSER_WITHOUT_SUM = 0.2, 0.1

#: A round makes progress if its gap is at most LITTLE times the best so far. The search ends after
#: PATIENCE rounds in a row without progress.
LITTLE, PATIENCE = 0.9, 6

#: Pair steps of a round: at least the first number in all; at most the second for each sample.
LEAST_PAIRS, MOST_PAIRS = 50, 10

#: Seconds, as measured once. A pair step takes PAIR + PAIR_SAMPLE n; a Newton step of f free
#: multipliers NEWTON + NEWTON_PAIR f^2 + NEWTON_ROW n f + NEWTON_TRIPLE f^3. They only say when to
#: change methods.
PAIR, PAIR_SAMPLE = 3e-7, 1.5e-9
NEWTON, NEWTON_PAIR, NEWTON_ROW, NEWTON_TRIPLE = 8e-5, 3e-9, 1e-9, 4e-11

#: The interior-point method takes over once other steps have taken this share of its expected time.
OF_INTERIOR = 0.7


def seconds_of_a_newton_step(n: int, n_free: int) -> float:
    """Return about how many seconds a step of all free multipliers takes."""
    squares = NEWTON_PAIR * n_free * n_free + NEWTON_ROW * n * n_free
    return NEWTON + squares + NEWTON_TRIPLE * n_free**3


def seconds_of_newton_steps(
    n: int,
    n_free: int,
    steps: int,  # Newton steps in all
    # selected_steps: those of them that moved a selection of too many multipliers
    selected_steps: int,
) -> float:
    """Return about how many seconds Newton steps take that moved all free multipliers, or some.

    A step of a selection counts as one of `block_pivoting.SELECTED` multipliers, which it has at
    least: how many were free then is not known.
    """
    seconds = (steps - selected_steps) * seconds_of_a_newton_step(n, n_free)
    if selected_steps:
        size = min(n, block_pivoting.SELECTED)
        seconds += selected_steps * seconds_of_a_newton_step(n, size)
    return seconds


def seconds_of_pairs(n: int) -> float:
    """Return about how many seconds one pair step among n samples takes."""
    return PAIR + PAIR_SAMPLE * n


def pairs_for_a_newton_step(n: int, n_free: int) -> int:
    """Return the number of pair steps that take as long as one step of all free multipliers."""
    return int(seconds_of_a_newton_step(n, n_free) / seconds_of_pairs(n))


def solve_pairwise(
    problem: UnitProblem,
    point: QPPoint,
    *,
    tol: float,  # duality gap, relative to the objective; not below what rounding makes of it
    max_iter: int,  # largest number of steps in all
) -> None:
    """Move a feasible point to the optimum, in place."""
    n = len(point.a)
    take_round, violation = _round_of_pairs, np.inf
    if problem.total is None:
        take_round, violation = _round_without_sum, float(np.abs(point.v).max(initial=0.0))
    best, waited = np.inf, 0
    spent, at_most = 0.0, OF_INTERIOR * interior.interior_seconds(n)
    while not problem.reaches(point, problem.target(point, tol)):
        if point.steps + point.newton_steps >= max_iter:
            point.reason = "max_iter"
            return
        waited = 0 if point.gap < LITTLE * best else waited + 1
        best = min(best, point.gap)
        if waited > PATIENCE and np.isinf(at_most):
            break
        if spent > at_most or waited > PATIENCE:
            at_most, waited = np.inf, 0
            if take_interior(problem, point, 0.1 * tol):
                continue
        violation, seconds = take_round(problem, point, tol, violation, max_iter)
        spent += seconds
    point.reason = problem.reason(point, tol)


def _round_of_pairs(
    problem: UnitProblem, point: QPPoint, tol: float, violation: float, max_iter: int
) -> tuple[float, float]:
    """Take pair steps, and many multipliers at once if these were not enough.

    Return the violation that was asked for, and about how many seconds the steps have taken.
    """
    n, n_free = len(point.a), int(np.count_nonzero((point.a > 0.0) & (point.a < 1.0)))
    target = problem.target(point, tol)
    # A gap is at most the violation times what moves, which is at most half of what is free.
    violation = min(CLOSER * violation, target / max(1.0, 0.5 * n_free))
    budget = min(MOST_PAIRS * n, max(n // 4, pairs_for_a_newton_step(n, n_free)))
    criteria = StoppingCriteria(violation, min(max_iter - point.steps, max(LEAST_PAIRS, budget)))
    bounds = Bounds(np.zeros(n), np.ones(n))
    steps, reason = pair_steps(raw(problem.Q), problem.diag, bounds, criteria, point.a, point.v)
    point.steps += steps
    seconds = steps * seconds_of_pairs(n)
    point.drift += steps
    restore_sum(point.a, problem.sum)
    if reason != CONVERGED:
        work = block_pivoting.run_block_pivoting(problem, point, tol)
        seconds += work * NEWTON_TRIPLE * n**3
    return violation, seconds


def _round_without_sum(
    problem: UnitProblem, point: QPPoint, tol: float, violation: float, max_iter: int
) -> tuple[float, float]:
    """Take steps of one multiplier, or of two where that gains, and many at once after that.

    Return as `_round_of_pairs`.
    """
    n = len(point.a)
    # At the start the objective is 0, and so is the gap to reach.
    needed = problem.target(point, tol) / max(1, int(np.count_nonzero(point.a))) or np.inf
    violation = min(CLOSER_WITHOUT_SUM * violation, needed)
    most = min(max_iter - point.steps, max(LEAST_PAIRS, MOST_PAIRS * n))
    criteria, bounds = StoppingCriteria(violation, most), Bounds(np.zeros(n), np.ones(n))
    Q = raw(problem.Q)
    steps, reason = steps_without_sum(Q, problem.diag, bounds, criteria, point.a, point.v)
    point.steps += steps
    problem.refresh(point)
    seconds = steps * seconds_of_pairs(n)
    if reason != CONVERGED and not problem.reaches(point, problem.target(point, tol)):
        work = block_pivoting.run_block_pivoting(problem, point, tol)
        seconds += work * NEWTON_TRIPLE * n**3
    return violation, seconds


def take_interior(
    problem: UnitProblem,
    point: QPPoint,  # changed in place
    tol: float,  # the duality gap that the method is to reach, relative to the objective
) -> bool:  # whether the point was changed
    """Go to the solution of the interior-point method, if its objective is lower."""
    gap = problem.target(point, tol)
    centred, on_bounds = interior.solve_interior(problem, gap=gap)
    point.newton_steps += centred.newton_steps
    # Moving multipliers to their bounds has changed the point a little, so the free ones are solved
    # for again. If that fails, take the point inside the box: float64 allows no better one.
    if problem.total is not None:
        block_pivoting.run_block_pivoting(problem, on_bounds, tol)
    point.newton_steps += on_bounds.newton_steps
    point.selected_steps += on_bounds.selected_steps
    if problem.gap(on_bounds) > max(10.0 * gap, problem.gap(centred)):
        on_bounds = centred
    if not problem.value(on_bounds) < problem.value(point):
        return False
    point.a[:], point.v[:], point.drift = on_bounds.a, on_bounds.v, 0
    return True


#: This suite's largest value of epsilon, which the paper leaves open: of gradients relative to the
#: mean diagonal and of distances to bounds. Below tol = 0.01 epsilon falls in proportion to tol.
EPSILON = 1e-4


def solve_dcdm(
    problem: UnitProblem,
    point: QPPoint,
    *,
    # Relative duality gap that counts as converged. The sweeps end by epsilon, which below
    # tol = 0.01 is in proportion to tol.
    tol: float,
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
    near: float,  # multipliers within this distance of a bound count as at the bound
    epsilon: float,  # gradients up to this size count as 0
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
