"""Safe screening: fix multipliers that are at one bound whichever w of a ball is the optimum.

Problem
    As in ``box_qp`` with q = 0; w1 is the solution's w, d_i = <Z_i, w1>, Z_i = y_i phi(x_i).
Given
    The problem at the new sum of the multipliers (a larger nu), feasible points, Q's diagonal.
Returned
    Which multipliers are 0 and which are 1 in the solution.
Reference
    Theorem 1, corollaries 1 to 4 of the SRBO paper; Fercoq, Gramfort and Salmon 2015 (gap-safe).
The balls
    srbo      centre (w0 + w_b)/2, radius^2 = |(w0 + w_b)/2|^2 - min <Q a0, s>, where a0 is any
              point (the last solution), b is any feasible point (a0 + delta), and s runs over all
              feasible points. Proof: <w1, w_b - w1> >= 0 and <w0, w1> >= min <Q a0, s>. The
              paper's r has |w0|^2 in place of the minimum, and gives the larger ball if a0 is
              exact. If a0 is inexact, its duality gap enlarges this ball, which stays safe.
    gap-safe  the same with a0 = b: the centre is w_b, radius^2 is the duality gap of b.
Deviations from corollary 2
    - The margin's two bounds are order statistics of the bounds of all d_i. The paper takes both
      from one sample, by its rank in Z c, which is unsafe (``corollary_2``, for the tests).
    - Each bound has a slack for rounding; the paper's program has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmbench.core.nu.box_qp import (
    QPPoint,
    UnitProblem,
    kth_largest,
    linear_minimum,
    order_of_margin,
)

#: Bound of the rounding error of d and of squares, relative to the size of their terms.
SCREENING_SLACK = 32.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Ball:
    """Bounds of every d_i: within ``reach`` of the centre."""

    centre: np.ndarray  # (n,): ``<Z_i, c>``
    reach: np.ndarray  # (n,): radius times ``|Z_i|``, plus a slack for rounding
    radius: float


def _ball(problem: UnitProblem, centre: np.ndarray, squared_radius: float) -> Ball:
    """Return the ball of a squared radius, enlarged by rounding of the radius and the centre."""
    largest = float(problem.diag.max(initial=0.0))
    squared_radius = max(0.0, squared_radius) + SCREENING_SLACK * problem.sum**2 * largest
    norms = np.sqrt(np.maximum(problem.diag, 0.0))
    radius = float(np.sqrt(squared_radius))
    rounding = SCREENING_SLACK * problem.sum * np.sqrt(largest) * norms
    return Ball(centre, radius * norms * (1.0 + SCREENING_SLACK) + rounding, radius)


def srbo_ball(
    problem: UnitProblem,  # at the new sum
    last: QPPoint,  # the solution at the last sum, exact or not
    feasible: QPPoint,  # ``last.a + delta``: feasible at the new sum
) -> Ball:
    """Return the paper's ball, with the gap of an inexact last solution in its radius."""
    centre = -0.5 * (last.v + feasible.v)
    squared_radius = 0.5 * float((last.a + feasible.a) @ centre)
    return _ball(problem, centre, squared_radius - linear_minimum(-last.v, problem.sum))


def gap_safe_ball(problem: UnitProblem, feasible: QPPoint) -> Ball:
    """Return the ball around a feasible point whose squared radius is its duality gap."""
    return _ball(problem, -feasible.v, problem.gap(feasible))


def margin_bounds(ball: Ball, total: float) -> tuple[float, float]:
    """Return a lower and an upper bound of the margin: order statistics of the bounds of d."""
    above, below = order_of_margin(len(ball.centre), total)
    return (
        kth_largest(ball.centre - ball.reach, below),
        kth_largest(ball.centre + ball.reach, above),
    )


def settled(
    ball: Ball, bounds: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:  # at_zero, at_one
    """Return two masks: which multipliers must be 0, and which must be 1, given margin bounds."""
    low, high = bounds
    return ball.centre - ball.reach > high, ball.centre + ball.reach < low


def corollary_2(
    problem: UnitProblem, last: QPPoint, feasible: QPPoint
) -> tuple[np.ndarray, np.ndarray]:  # at_zero, at_one: masks of what the paper screens
    """Screen by corollaries 2 and 3 as printed, which is unsafe (see the module's docstring).

    Both bounds of the margin come from one sample, at position floor(l - nu l) in the descending
    order of ``Z c``. The radius assumes an exact last solution. There is no slack for rounding.
    """
    centre = -0.5 * (last.v + feasible.v)
    square = 0.5 * float((last.a + feasible.a) @ centre) + float(last.a @ last.v)
    reach = np.sqrt(abs(square)) * np.sqrt(np.maximum(problem.diag, 0.0))
    i = int(np.floor(len(centre) - problem.sum + 1e-12))
    at = np.argsort(-centre, kind="stable")[max(1, i) - 1]
    low, high = centre[at] - reach[at], centre[at] + reach[at]
    return centre - reach > high, centre + reach < low
