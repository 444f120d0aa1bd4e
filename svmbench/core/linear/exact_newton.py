"""Newton's method for the squared hinge on few features: each Hessian exact, one compiled loop.

Problem
    min_w  f(w) = 1/2 ||w||^2 + C sum_i max(0, s_i)^2,   that of ``newton``, where the slack
    s_i = 1 - y_i w'x_i. With A = {i : s_i > 0}, g = w - 2C sum_A y_i s_i x_i and
    H = I + 2C sum_A x_i x_i'.
Given
    Dense rows X (n_samples, d) of few features, y in {-1, +1}, C, and w and s to start from. Rows
    and s may be times the roots of weights.
Returned
    w with ||g(w)|| at most a target, and 1/2 ||g(w)||^2, which bounds the distance to the optimum,
    at most a share of f(w).
Reference
    Keerthi and DeCoste 2005, Algorithm 1: the step goes to the least-squares solution on A, as far
    as an exact line search says. If A stays, that solution is the optimum.
Deviations
    - ``sum_A x_i x_i'`` is kept: rows that enter or leave A change it. At w = 0 A has all rows, so
      that the sum is the same for each C, and for each class against the rest. Where at most half
      of the rows are in A at the start, the sum is that of their squares alone.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.numeric.cholesky import cholesky, solve_cholesky

#: Reasons to end: the two conditions hold; the number of steps; no step is left that float64 can
#: see, or the Hessian is not definite in float64.
CONVERGED, MAX_ITER, STALLED = 0, 1, 2

#: The line search ends when the slope is at most this share of the first slope, or after so many
#: tries.
LINE_SEARCH_SLOPE, LINE_SEARCH_TRIES = 1e-12, 60


@compiled_sums
def slope(slacks: np.ndarray, changes: np.ndarray, step: float) -> tuple[float, float]:
    """Return the sums of ``-s_i dm_i`` and ``dm_i^2`` over the rows with s_i > 0.

    Here dm = changes, and s = slacks - step * dm are the slacks after the step. Times 2C, the sums
    are slope and curvature of the summed losses along the step.
    """
    first, second = 0.0, 0.0
    for i in range(len(slacks)):
        slack = slacks[i] - step * changes[i]
        if slack > 0.0:
            first -= slack * changes[i]
            second += changes[i] * changes[i]
    return first, second


@compiled_sums
def line_search(
    slacks: np.ndarray,  # (n_samples,): ``1 - y_i w'x_i``
    changes: np.ndarray,  # (n_samples,): ``y_i d'x_i``
    along: float,  # ``w'd``
    square: float,  # ``d'd``
    C: float,
) -> float:
    """Return the step that minimises f along a direction d; 0 where f does not fall."""
    first, _ = slope(slacks, changes, 0.0)
    start = along + 2.0 * C * first
    if start >= 0.0:
        return 0.0
    low, high, step = 0.0, np.inf, 1.0
    for _ in range(LINE_SEARCH_TRIES):
        first, second = slope(slacks, changes, step)
        value = along + step * square + 2.0 * C * first
        if abs(value) <= -LINE_SEARCH_SLOPE * start:
            break
        if value < 0.0:
            low = step
        else:
            high = step
        step -= value / (square + 2.0 * C * second)
        if not low < step < high:
            step = 0.5 * (low + high)
    return step


@compiled_sums
def add_squares(X: np.ndarray, rows: np.ndarray, signs: np.ndarray, G: np.ndarray) -> None:
    """Add ``sum_i signs_i x_i x_i'`` over rows to the lower triangle of G."""
    d, i = X.shape[1], 0
    # Four rows at a time: each entry of G is read and written once for them.
    while i + 4 <= len(rows):
        x0, x1, x2, x3 = X[rows[i]], X[rows[i + 1]], X[rows[i + 2]], X[rows[i + 3]]
        for j in range(d):
            a0, a1 = signs[i] * x0[j], signs[i + 1] * x1[j]
            a2, a3 = signs[i + 2] * x2[j], signs[i + 3] * x3[j]
            target = G[j]
            for k in range(j + 1):
                target[k] += (a0 * x0[k] + a1 * x1[k]) + (a2 * x2[k] + a3 * x3[k])
        i += 4
    while i < len(rows):
        x = X[rows[i]]
        for j in range(d):
            a, target = signs[i] * x[j], G[j]
            for k in range(j + 1):
                target[k] += a * x[k]
        i += 1


@compiled_sums
def products(X: np.ndarray, y: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Write ``y_i w'x_i`` of all rows to `out`."""
    for i in range(len(out)):
        total = 0.0
        for j in range(len(w)):
            total += X[i, j] * w[j]
        out[i] = y[i] * total


@compiled_sums
def losses_and_gradient(
    X: np.ndarray, y: np.ndarray, C: float, slacks: np.ndarray, w: np.ndarray, g: np.ndarray
) -> tuple[float, int]:
    """Write the gradient at w to g; return the sum of squared losses and the size of A."""
    losses, active = 0.0, 0
    g[:] = w
    for i in range(len(y)):
        if slacks[i] > 0.0:
            active += 1
            losses += slacks[i] * slacks[i]
            factor = 2.0 * C * y[i] * slacks[i]
            for j in range(len(g)):
                g[j] -= factor * X[i, j]
    return losses, active


@compiled
def follow_active(
    X: np.ndarray, slacks: np.ndarray, active: int, is_inside: np.ndarray, G: np.ndarray
) -> int:
    """Change G from the sum of ``x_i x_i'`` over the rows marked to that over A; mark A.

    Return the number of rows read. `is_inside` has the marks; `active` is the size of A.
    """
    rows, signs = np.empty(len(slacks), dtype=np.int64), np.empty(len(slacks))
    moved = 0
    for i in range(len(slacks)):
        if (slacks[i] > 0.0) != is_inside[i]:
            is_inside[i] = not is_inside[i]
            rows[moved], signs[moved] = i, 1.0 if is_inside[i] else -1.0
            moved += 1
    if moved > active:
        moved, G[:] = active, 0.0
        rows[:active], signs[:active] = np.flatnonzero(is_inside), 1.0
    add_squares(X, rows[:moved], signs[:moved], G)
    return moved


@compiled
def hessian_factor(G: np.ndarray, C: float, L: np.ndarray) -> bool:
    """Write the Cholesky factor of ``I + 2C G`` to L; return False if there is none in float64."""
    L[:] = 2.0 * C * G
    for j in range(len(L)):
        L[j, j] += 1.0
    return cholesky(L)


@compiled_sums
def exact_newton(
    X: np.ndarray,  # (n_samples, d): with the constant feature
    y: np.ndarray,  # (n_samples,): labels ±1
    C: float,
    ends: tuple[float, float, int],  # norm of the gradient, share of f, largest number of steps
    # sum of x_i x_i' over rows, (d, d), at least its lower triangle; their marks, bool (n_samples,)
    curvature: tuple[np.ndarray, np.ndarray],
    w: np.ndarray,  # (d,): where to start; changed in place
    slacks: np.ndarray,  # (n_samples,): those at w; changed in place
) -> tuple[int, int, int, int]:
    """Take Newton steps; return their number, the reason to end, rows read, and rows in A."""
    (n, d), (target, share, max_iter), (G, is_inside) = X.shape, ends, curvature
    changes, g, direction, L = np.empty(n), np.empty(d), np.empty(d), np.empty((d, d))
    steps, visits = 0, 0
    while True:
        losses, active = losses_and_gradient(X, y, C, slacks, w, g)
        visits += active
        # f is 1-strongly convex: ||g||^2 / 2 bounds the distance to the optimum.
        distance, value = 0.5 * np.dot(g, g), 0.5 * np.dot(w, w) + C * losses
        if np.sqrt(2.0 * distance) <= target and distance <= share * value:
            return steps, CONVERGED, visits, active
        if steps >= max_iter:
            return steps, MAX_ITER, visits, active
        # H d = -g with H = I + 2C G.
        visits += follow_active(X, slacks, active, is_inside, G) + n
        if not hessian_factor(G, C, L):
            # Long rows that left A leave rounding in G.
            G[:] = 0.0
            add_squares(X, np.flatnonzero(is_inside), np.ones(active), G)
            visits += active
            if not hessian_factor(G, C, L):
                return steps, STALLED, visits, active
        direction[:] = -g
        solve_cholesky(L, direction)
        products(X, y, direction, changes)
        along, length = np.dot(w, direction), np.dot(direction, direction)
        t = line_search(slacks, changes, along, length, C)
        after = w + t * direction
        if np.all(after == w):
            return steps, STALLED, visits, active
        w[:] = after
        slacks -= t * changes
        steps += 1
