"""The projected conjugate gradient of chunking: a dense quadratic program with box and equality.

Problem
    max_beta  y'beta - 1/2 beta'K beta,   low <= beta <= high,   e'beta = constant.
Given
    K (n, n), a feasible start with its gradient v = y - K beta, a threshold.
Returned
    beta and v in place, once a step improves the objective by less than the threshold, relative,
    and no variable at a bound would gain by leaving it.
Reference
    Platt 1998 (MSR-TR-98-14), section 3, for its use and its stopping rule; Gill, Murray and
    Wright 1981 for the method: conjugate directions among the free variables, projected on the
    equality constraint.
Deviations
    - The report does not say how a step that meets bounds ends. Here the end of the step is
      projected on the feasible set, and the best point on the way to the projection is taken, so
      that many variables reach their bounds at once. If that improves the objective by less than
      a stop at the first bound, the step stops at the first bound.
    - Once a step among the free variables improves by less than the threshold, all variables that
      would gain by leaving their bounds are freed. The program ends if there are none, or if the
      last step has freed some.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.kernel_svm.working_set import BOUND_SHARE
from svmbench.core.numeric.submatrix import leading_product

#: Share of the tolerance below which the gradient among the free variables is rounding.
SOLVED_TOL_SHARE = 0.01

#: Largest length of a step whose end is projected, in widths of the box.
MAX_STEP_WIDTHS = 100.0

#: Bisections for the shift that restores the sum.
BISECTIONS = 100


@compiled
def project_on_sum(
    x: np.ndarray, low: np.ndarray, high: np.ndarray, free: np.ndarray, s: float
) -> None:
    """Replace the free entries of x by the nearest between their bounds whose sum is s."""
    # The nearest point is x - shift, clipped; its sum falls with the shift: bisect.
    left, right = -1.0, 1.0
    for k in range(len(x)):
        if free[k]:
            left = min(left, x[k] - high[k])
            right = max(right, x[k] - low[k])
    for _ in range(BISECTIONS):
        middle = 0.5 * (left + right)
        total = 0.0
        for k in range(len(x)):
            if free[k]:
                total += min(max(x[k] - middle, low[k]), high[k])
        if total > s:
            left = middle
        else:
            right = middle
    shift = 0.5 * (left + right)
    for k in range(len(x)):
        if free[k]:
            x[k] = min(max(x[k] - shift, low[k]), high[k])


@compiled
def free_mean(v: np.ndarray, free: np.ndarray) -> float:
    """Return the mean of `v` over the free variables; 0 without any."""
    total, n_free = 0.0, 0
    for k in range(len(v)):
        if free[k]:
            total += v[k]
            n_free += 1
    return total / n_free if n_free else 0.0


@compiled
def release(
    beta: np.ndarray, v: np.ndarray, low: np.ndarray, high: np.ndarray, tol: float, free: np.ndarray
) -> int:
    """Free the variables at bounds that would gain by more than `tol`; return their number."""
    n = len(beta)
    # The threshold: the mean gradient of the free variables, or halfway between m and M.
    b = free_mean(v, free)
    if not np.any(free):
        top, bottom = -np.inf, np.inf
        for k in range(n):
            if beta[k] < high[k]:
                top = max(top, v[k])
            if beta[k] > low[k]:
                bottom = min(bottom, v[k])
        b = 0.5 * (top + bottom)
    n_released = 0
    for k in range(n):
        gains = (beta[k] <= low[k] and v[k] > b + tol) or (beta[k] >= high[k] and v[k] < b - tol)
        if gains and not free[k]:
            free[k] = True
            n_released += 1
    return n_released


@compiled
def bind(beta: np.ndarray, low: np.ndarray, high: np.ndarray, free: np.ndarray) -> bool:
    """Bind the free variables that are at a bound, but for rounding; return whether any was."""
    is_bound = False
    for k in range(len(beta)):
        if free[k]:
            margin = BOUND_SHARE * (high[k] - low[k])
            if beta[k] <= low[k] + margin:
                beta[k], free[k], is_bound = low[k], False, True
            elif beta[k] >= high[k] - margin:
                beta[k], free[k], is_bound = high[k], False, True
    return is_bound


@compiled
def next_direction(
    v: np.ndarray, mean: float, conjugate: float, free: np.ndarray, p: np.ndarray
) -> float:
    """Turn the last direction `p` into the next one; return the slope along it."""
    n = len(v)
    for k in range(n):
        p[k] = v[k] - mean + conjugate * p[k] if free[k] else 0.0
    # Take the sum off once more: rounding errors in it would leave the constraint.
    rest = free_mean(p, free)
    slope = 0.0
    for k in range(n):
        if free[k]:
            p[k] -= rest
            slope += p[k] * v[k]
    return slope


@compiled
def maximise(
    K: np.ndarray,  # (>= n, >= n): kernel values in the first n rows and columns; C-ordered
    y: np.ndarray,
    beta: np.ndarray,
    v: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    threshold: float,  # least relative improvement of a step
    tol: float,  # violation from which a variable is freed from its bound
    max_steps: int,
) -> int:
    """Run the method, changing `beta` and its gradient `v` in place; return the number of steps."""
    n = len(beta)
    free = (beta > low) & (beta < high)
    p, Kp, target = np.zeros(n), np.empty(n), np.empty(n)
    value = 0.0
    for k in range(n):
        value += 0.5 * beta[k] * (y[k] + v[k])
    if release(beta, v, low, high, tol, free) == 0 and not np.any(free):
        return 0
    square_before, since_release = 0.0, 0
    for step in range(max_steps):
        # The next direction: the projected gradient, conjugate to the last one if there is one.
        mean, square, largest = free_mean(v, free), 0.0, 0.0
        for k in range(n):
            if free[k]:
                square += (v[k] - mean) ** 2
                largest = max(largest, abs(v[k] - mean))
        conjugate = square / square_before if square_before > 0.0 else 0.0
        slope = next_direction(v, mean, conjugate, free, p)
        if slope <= 0.0:
            # Rounding has spoilt the direction: restart with the gradient.
            slope = next_direction(v, mean, 0.0, free, p)
        square_before = square
        improvement = 0.0
        if slope > 0.0 and largest > SOLVED_TOL_SHARE * tol:
            leading_product(K, n, p, Kp)
            curvature, room = 0.0, np.inf
            for k in range(n):
                curvature += p[k] * Kp[k]
                if p[k] > 0.0:
                    room = min(room, (high[k] - beta[k]) / p[k])
                elif p[k] < 0.0:
                    room = min(room, (low[k] - beta[k]) / p[k])
            # The best step if it is feasible; else along the projection, or to the first bound.
            t = slope / curvature if curvature > 0.0 else np.inf
            if t <= room:
                improvement = 0.5 * t * slope
                for k in range(n):
                    beta[k] += t * p[k]
                    v[k] -= t * Kp[k]
            else:
                improvement = room * (slope - 0.5 * room * curvature)
                if t < np.inf:
                    gained = bend(K, beta, v, p, t, low, high, free, improvement, target)
                else:
                    gained = 0.0
                if gained > 0.0:
                    improvement = gained
                else:
                    for k in range(n):
                        beta[k] += room * p[k]
                        v[k] -= room * Kp[k]
            if bind(beta, low, high, free):
                square_before = 0.0
        value += improvement
        since_release += 1
        if improvement <= threshold * abs(value):
            released = release(beta, v, low, high, tol, free)
            if released == 0 or since_release == 1:
                return step + 1
            square_before, since_release = 0.0, 0
    return max_steps


@compiled
def bend(
    K: np.ndarray,
    beta: np.ndarray,
    v: np.ndarray,
    p: np.ndarray,
    t: float,
    low: np.ndarray,
    high: np.ndarray,
    free: np.ndarray,
    least: float,
    d: np.ndarray,
) -> float:
    """Go towards the projection of ``beta + t p`` as far as is best; return the gain.

    Nothing is done, and 0 returned, unless the gain is above `least`. `d` is scratch.
    """
    n = len(beta)
    # Far outside the box the projection would lose the digits that matter.
    t = min(t, MAX_STEP_WIDTHS * np.max(high - low) / np.max(np.abs(p)))
    total = 0.0
    for k in range(n):
        d[k] = beta[k] + t * p[k]
        if free[k]:
            total += beta[k]
    project_on_sum(d, low, high, free, total)
    slope = 0.0
    for k in range(n):
        d[k] = d[k] - beta[k] if free[k] else 0.0
        slope += d[k] * v[k]
    if slope <= 0.0:
        return 0.0
    Kd = np.empty(n)
    leading_product(K, n, d, Kd)
    curvature = 0.0
    for k in range(n):
        curvature += d[k] * Kd[k]
    share = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
    gain = share * (slope - 0.5 * share * curvature)
    if gain <= least:
        return 0.0
    for k in range(n):
        beta[k] += share * d[k]
        v[k] -= share * Kd[k]
    return gain
