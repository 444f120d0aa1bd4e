"""Safe screening: a ball that holds w, and which multipliers are at a bound whatever w is in it.

Problem
    As in ``box_qp`` with q = 0; w1 is the solution's w, d_i = <Z_i, w1>, Z_i = y_i phi(x_i).
Given
    The problem at the new sum, points of it, Q's diagonal.
Returned
    Which multipliers are 0 and which are 1 in the solution.
Reference
    Theorem 1, corollaries 1 to 4 of the SRBO paper; Fercoq, Gramfort and Salmon 2015 (gap-safe).
The balls
    srbo      centre (w0 + w_b)/2, radius^2 = |(w0 + w_b)/2|^2 - min <Q a0, s>, where a0 is any
              point (the last solution), b any feasible one (a0 + delta), s runs over what is
              feasible: from <w1, w_b - w1> >= 0 and <w0, w1> >= min <Q a0, s>. For an exact a0 the
              minimum is at least |w0|^2, which is the paper's r; the difference is the gap of an
              inexact one, so that it can't make the rule unsafe, and shrinks the ball of an exact.
    gap-safe  the same with a0 = b: centre w_b, radius^2 = the duality gap of b.
Deviations from corollary 2
    - The margin's bounds are order statistics of the bounds of all d, not the bounds of the sample
      whose index sorts Z c: the print is unsafe (``corollary_2`` keeps it, to show where).
    - Each bound has a slack for rounding; the paper's program has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmbench.core.nu.box_qp import QPPoint, UnitProblem, kth_largest, least, order_of_margin

#: Rounding of d, and of squares, as a share of what they are summed from.
SCREENING_SLACK = 32.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Ball:
    """Bounds of every d_i: within ``reach`` of the centre."""

    centre: np.ndarray  # (n,): ``<Z_i, c>``
    reach: np.ndarray  # (n,): radius times ``|Z_i|``, and what rounding asks for
    radius: float


def _ball(problem: UnitProblem, centre: np.ndarray, square: float) -> Ball:
    """Return a ball of a squared radius, with slack for the rounding in it and in the centre."""
    largest = float(problem.diag.max(initial=0.0))
    square = max(0.0, square) + SCREENING_SLACK * problem.sum**2 * largest
    norms = np.sqrt(np.maximum(problem.diag, 0.0))
    radius = float(np.sqrt(square))
    rounding = SCREENING_SLACK * problem.sum * np.sqrt(largest) * norms
    return Ball(centre, radius * norms * (1.0 + SCREENING_SLACK) + rounding, radius)


def srbo_ball(
    problem: UnitProblem,  # at the new sum
    last: QPPoint,  # the solution at the last sum, exact or not
    feasible: QPPoint,  # ``last.a + delta``: feasible at the new sum
) -> Ball:
    """Return the paper's ball, with the gap of an inexact last solution in its radius."""
    centre = -0.5 * (last.v + feasible.v)
    square = 0.5 * float((last.a + feasible.a) @ centre)
    return _ball(problem, centre, square - least(-last.v, problem.sum))


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


def settled(ball: Ball, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:  # zero, one
    """Return masks of the multipliers that are 0, and that are 1, by bounds of the margin."""
    low, high = bounds
    return ball.centre - ball.reach > high, ball.centre + ball.reach < low


def corollary_2(
    problem: UnitProblem, last: QPPoint, feasible: QPPoint
) -> tuple[np.ndarray, np.ndarray]:  # zero, one (what the print takes for settled)
    """Screen by corollaries 2 and 3 as they are printed: unsafe; see the module's text.

    The margin's two bounds are those of the one sample at position floor(l - nu l) in the
    descending order of ``Z c``, the radius is that of an exact solution, and there is no slack.
    """
    centre = -0.5 * (last.v + feasible.v)
    square = 0.5 * float((last.a + feasible.a) @ centre) + float(last.a @ last.v)
    reach = np.sqrt(abs(square)) * np.sqrt(np.maximum(problem.diag, 0.0))
    i = int(np.floor(len(centre) - problem.sum + 1e-12))
    at = np.argsort(-centre, kind="stable")[max(1, i) - 1]
    low, high = centre[at] - reach[at], centre[at] + reach[at]
    return centre - reach > high, centre + reach < low
