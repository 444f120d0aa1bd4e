"""An interior-point method for the unit box, where pairs and Newton steps would take longer.

Problem
    As in ``box_qp``, with multipliers y of the sum (0 where no sum is fixed), z of a >= 0 and w of
    a <= 1.
Given
    The problem.
Returned
    A feasible point near the optimum, and the same with most of the bounds identified: where z (or
    w) is larger than the distance to its bound, the multiplier is put on it.
Reference
    Mehrotra 1992 (predictor and corrector); each iteration is one Cholesky factor of Q + D.
Reason for the method
    Where the margin is nearly 0, hundreds of multipliers are free and Q among them is as good as
    singular: pairs take millions of steps there, and some fifteen factors of Q are cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from svmbench.core.nu.box_qp import QPPoint, UnitProblem, linear_minimum, restore_sum

#: Largest number of iterations; 15 to 30 are usual.
ITERATIONS = 80

#: Share of the way to the nearest bound that a step may go.
SHORT_OF_BOUND = 0.995

#: Added to the diagonal, as a share of its mean.
INTERIOR_RIDGE = 1e-15

#: Iterations in a row that may fail to halve the gap.
INTERIOR_PATIENCE = 8

#: Seconds of a Cholesky factor of n samples, divided by n^3, as measured once. It only decides when
#: the method begins.
FACTOR_SECONDS = 1.5e-11

#: Factors that a solution usually takes.
USUAL_FACTORS = 16


def interior_seconds(n: int) -> float:
    """Return about how long a problem of n samples takes."""
    return USUAL_FACTORS * (FACTOR_SECONDS * n**3 + 6e-9 * n * n + 1e-4)


@dataclass
class _System:
    """The linear equations of one iteration."""

    lower: Any  # Cholesky factor of Q + D, as scipy has it
    ones: np.ndarray | None  # (n,) or None: ``(Q + D)^-1 e``; None where no sum is fixed
    # (n,): the gradient of the Lagrangian, which is 0 at the optimum
    residual: np.ndarray = field(default_factory=lambda: np.zeros(0))
    off: float = 0.0  # the fixed sum minus the sum of x

    def direction(
        self, state: tuple[np.ndarray, ...], lift_z: np.ndarray, lift_w: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        """Return the changes of x, y, z and w.

        `lift_z` and `lift_w` are the wanted changes of the products x z and s w, to first order.
        """
        x, s, z, w = state
        right = lift_z / x - lift_w / s - self.residual
        part = cho_solve(self.lower, right, check_finite=False)
        dy, dx = 0.0, part
        if self.ones is not None:
            dy = (self.off - float(part.sum())) / float(self.ones.sum())
            dx = part + dy * self.ones
        return dx, dy, (lift_z - z * dx) / x, (lift_w + w * dx) / s


def solve_interior(
    problem: UnitProblem,  # of a sum strictly between 0 and n, or of any
    *,
    gap: float,  # duality gap, absolute
) -> tuple[QPPoint, QPPoint]:
    """Return a feasible point whose duality gap is about `gap` or as small as float64 allows.

    Return a point inside the box, whose `newton_steps` counts factors, and the same point with
    multipliers on their bounds, whose gap can be larger.
    """
    n, Q = len(problem.Q), problem.Q
    size = max(float(problem.diag.mean()), np.finfo(np.float64).tiny)
    total = problem.total
    x = np.full(n, 0.5 if total is None else total / n)
    # The distance to 1 is a variable of its own: 1 - x has no digits left where x is near 1.
    s = 1.0 - x
    gradient = Q @ x + problem.linear
    y = 0.0 if total is None else float(np.median(gradient))
    spread = max(float(np.abs(gradient - y).mean()), 1e-8 * size)
    z = np.maximum(gradient - y, 0.0) + spread
    w = np.maximum(y - gradient, 0.0) + spread
    factor = np.empty((n, n))
    best, best_point, waited, factors = np.inf, (x, s, z, w), 0, 0
    for _ in range(ITERATIONS):
        reached = float(x @ gradient) - linear_minimum(gradient, total)
        waited = 0 if reached < 0.5 * best else waited + 1
        if reached < best:
            best, best_point = reached, (x, s, z, w)
        if best <= gap or waited > INTERIOR_PATIENCE:
            break
        factors += 1
        np.copyto(factor, Q)
        factor.flat[:: n + 1] += z / x + w / s + INTERIOR_RIDGE * size
        try:
            lower = cho_factor(factor, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            break
        system = _System(lower, None)
        if total is not None:
            system.ones = cho_solve(lower, np.ones(n), check_finite=False)
            system.off = total - float(x.sum())
        system.residual = gradient - y - z + w
        state = x, s, z, w
        mu = float(x @ z + s @ w) / (2 * n)
        dx, dy, dz, dw = system.direction(state, -x * z, -s * w)
        t = _reach(((x, dx), (s, -dx), (z, dz), (w, dw)), 1.0)
        ahead = float((x + t * dx) @ (z + t * dz) + (s - t * dx) @ (w + t * dw)) / (2 * n)
        centre = (ahead / mu) ** 3 * mu
        lift_z, lift_w = centre - x * z - dx * dz, centre - s * w + dx * dw
        dx, dy, dz, dw = system.direction(state, lift_z, lift_w)
        t = _reach(((x, dx), (s, -dx), (z, dz), (w, dw)), SHORT_OF_BOUND)
        x, s, y, z, w = x + t * dx, s - t * dx, y + t * dy, z + t * dz, w + t * dw
        gradient = Q @ x + problem.linear
    inside = np.clip(best_point[0], 0.0, 1.0)
    if total is not None:
        restore_sum(inside, total)
    centred = problem.at(inside)
    centred.newton_steps = factors
    return centred, _on_bounds(problem, *best_point)


def _on_bounds(
    problem: UnitProblem, x: np.ndarray, s: np.ndarray, z: np.ndarray, w: np.ndarray
) -> QPPoint:
    """Move x_i to a bound if its distance from it is less than the bound's multiplier, scaled."""
    size = max(float(problem.diag.mean()), np.finfo(np.float64).tiny)
    a = np.where(z > size * x, 0.0, np.where(w > size * s, 1.0, np.clip(x, 0.0, 1.0)))
    if problem.total is None:
        return problem.at(a)
    missing, free = problem.total - float(a.sum()), np.count_nonzero((a > 0.0) & (a < 1.0))
    # The free multipliers must restore the sum by small changes; otherwise keep the point inside.
    if abs(missing) > 1e-3 * free:
        a = np.clip(x, 0.0, 1.0)
    restore_sum(a, problem.total)
    return problem.at(a)


def _reach(pairs: tuple[tuple[np.ndarray, np.ndarray], ...], share: float) -> float:
    """Return the longest step, at most 1, that keeps everything positive."""
    t = 1.0
    for value, change in pairs:
        falling = change < 0.0
        if np.any(falling):
            t = min(t, share * float(np.min(-value[falling] / change[falling])))
    return t
