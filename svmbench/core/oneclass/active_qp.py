"""The hard-margin one-class QP on a small set that grows: the point of least norm in a hull.

Problem
    min_alpha  1/2 alpha' K alpha,   alpha >= 0,   sum alpha = 1:
    w = sum_i alpha_i phi(x_i) is the point of the convex hull that is nearest to the origin.
    <w, phi(x_i)> = rho = ||w||^2 where alpha_i > 0, and >= rho elsewhere.
Given
    The kernel values of the points so far; the solution before the last of them came.
Returned
    alpha and rho, exact but for rounding: points without weight are at least (1 - HULL_SLACK) rho.
Method
    Wolfe 1976: a corral of affinely independent points whose affine hull's nearest point has
    positive weights only; a point below rho joins, and those whose weight would turn negative
    leave. The corral's matrix K + c 11' is kept as its Cholesky factor, which gains and loses a
    row at a time: on a sum of 1 the term c 11' changes nothing but the matrix's rank.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.numeric.arrays import raw

#: How far below rho a point without weight may be, as a share of rho.
HULL_SLACK = 1e-10

#: A pivot below this share of the diagonal is rounding: the point is in the corral's hull already.
PIVOT = 1e-13

#: Updates of the factor lose digits: weights whose residual is above RESIDUAL_SHARE of HULL_SLACK
#: are corrected, at most REFINEMENTS times.
REFINEMENTS, RESIDUAL_SHARE = 1, 0.01

#: Most linear systems per point. Further steps would only follow rounding errors.
HULL_MAX_STEPS = 50


class Corral(NamedTuple):
    """The corral's points with their factor; only the first `size` entries of each array count."""

    points: np.ndarray  # int (m,): in the order in which they joined
    L: np.ndarray  # (m, m): the Cholesky factor of their K + c 11', a lower triangle
    y: np.ndarray  # (m,): the solution of L y = 1


@compiled_sums
def append_row(
    K: np.ndarray,  # (m, m): kernel values
    shift: float,  # the c of K + c 11'
    corral: Corral,
    size: int,
    point: int,
) -> bool:
    """Append a point to the corral; return False if it is in the affine hull of the others."""
    points, L, y = corral
    values, new_row = K[point], L[size]
    diagonal = values[point] + shift
    # pivot: the square of the factor's new diagonal value; rest: what is left for y's new entry.
    pivot, rest = diagonal, 1.0
    for i in range(size):
        row, total = L[i], 0.0
        for j in range(i):
            total += row[j] * new_row[j]
        total = (values[points[i]] + shift - total) / row[i]
        new_row[i] = total
        pivot -= total * total
        rest -= total * y[i]
    if pivot <= PIVOT * diagonal:
        return False
    new_row[size] = np.sqrt(pivot)
    y[size] = rest / new_row[size]
    points[size] = point
    return True


@compiled
def remove_row(corral: Corral, size: int, at: int) -> None:
    """Remove the point at position `at`; rotate the rows below it, so that L stays triangular."""
    points, L, y = corral
    cosines, sines = np.empty(size), np.empty(size)
    for i in range(at, size - 1):
        points[i] = points[i + 1]
        row, below = L[i], L[i + 1]
        for j in range(at):
            row[j] = below[j]
        carried = below[at]
        for k in range(at, i):
            b = below[k + 1]
            row[k] = cosines[k] * carried + sines[k] * b
            carried = cosines[k] * b - sines[k] * carried
        b = below[i + 1]
        r = np.hypot(carried, b)
        cosines[i], sines[i] = carried / r, b / r
        row[i] = r
    carried = y[at]
    for k in range(at, size - 1):
        b = y[k + 1]
        y[k] = cosines[k] * carried + sines[k] * b
        carried = cosines[k] * b - sines[k] * carried


@compiled_sums
def solve_upper(L: np.ndarray, size: int, b: np.ndarray) -> None:
    """Replace `b` by the solution of L' x = b."""
    for i in range(size - 1, -1, -1):
        row = L[i]
        b[i] /= row[i]
        x = b[i]
        for j in range(i):
            b[j] -= row[j] * x


@compiled_sums
def solve_lower(L: np.ndarray, size: int, b: np.ndarray) -> None:
    """Replace `b` by the solution of L x = b."""
    for i in range(size):
        row, total = L[i], 0.0
        for j in range(i):
            total += row[j] * b[j]
        b[i] = (b[i] - total) / row[i]


@compiled_sums
def leading_dot(values: np.ndarray, weights: np.ndarray, n: int) -> float:
    """Return the sum of the first `n` products of two vectors."""
    total = 0.0
    for j in range(n):
        total += values[j] * weights[j]
    return total


@compiled
def nearest_of_affine_hull(
    K: np.ndarray,
    n: int,
    shift: float,
    corral: Corral,
    size: int,
    near: float,  # the residual of (K + c 11') a = 1 that is small enough
    a: np.ndarray,  # (n,): the weights, by position in the corral
    scratch: tuple[np.ndarray, np.ndarray],  # (n,), each
) -> float:  # the squared norm of the nearest point
    """Write the weights of the affine hull's nearest point, which may be negative, to `a`."""
    points, L, y = corral
    # r: the residual, by position in the corral; spread: the weights, by point.
    r, spread = scratch
    for i in range(size):
        a[i] = y[i]
    solve_upper(L, size, a)
    for p in range(n):
        spread[p] = 0.0
    for again in range(REFINEMENTS + 1):
        total = 0.0
        for i in range(size):
            spread[points[i]] = a[i]
            total += a[i]
        largest, norm_squared = 0.0, 0.0
        for i in range(size):
            value = leading_dot(K[points[i]], spread, n)
            norm_squared += a[i] * value
            r[i] = 1.0 - value - shift * total
            largest = max(largest, abs(r[i]))
        if largest <= near or again == REFINEMENTS:
            break
        solve_lower(L, size, r)
        solve_upper(L, size, r)
        for i in range(size):
            a[i] += r[i]
    for i in range(size):
        a[i] /= total
    return norm_squared / (total * total)


@compiled
def squared_norm(K: np.ndarray, n: int, alpha: np.ndarray) -> float:
    """Return the squared norm of the point with weights `alpha` (n,)."""
    total = 0.0
    for p in range(n):
        if alpha[p] != 0.0:
            total += alpha[p] * leading_dot(K[p], alpha, n)
    return total


@compiled
def nearest_of_hull(
    K: np.ndarray,  # (m, m): kernel values of the points; the first `n` rows and columns count
    n: int,
    shift: float,  # the c of K + c 11'; above 0
    alpha: np.ndarray,  # (m,): weights: 0 outside the corral
    rho: float,  # its squared norm
    corral: Corral,
    size: int,  # points in the corral; at least one
) -> tuple[int, float, int]:  # size, rho, steps (solutions of a linear system)
    """Solve among the first `n` points from the solution of fewer; change everything in place."""
    points = corral.points
    a, scratch = np.empty(n), (np.empty(n), np.empty(n))
    inside = np.zeros(n, dtype=np.bool_)
    for i in range(size):
        inside[points[i]] = True
    steps = 0
    while True:
        # The point outside the corral with the lowest score below rho joins.
        lowest, lowest_score = -1, rho - HULL_SLACK * abs(rho)
        for p in range(n):
            if inside[p]:
                continue
            score = leading_dot(K[p], alpha, n)
            if score < lowest_score:
                lowest, lowest_score = p, score
        # append_row refuses a point that rounding can't tell from the corral's own points.
        too_many = steps > HULL_MAX_STEPS * n
        if lowest < 0 or too_many or not append_row(K, shift, corral, size, lowest):
            return size, rho, steps
        size += 1
        inside[lowest] = True
        while True:
            near = RESIDUAL_SHARE * HULL_SLACK * abs(rho) / (abs(rho) + shift)
            norm_squared = nearest_of_affine_hull(K, n, shift, corral, size, near, a, scratch)
            steps += 1
            # Go from alpha to a, or as far as no weight turns negative: then the point whose weight
            # is 0 first, at position `at`, leaves.
            step, at = 1.0, -1
            for i in range(size):
                if a[i] <= 0.0:
                    to_zero = alpha[points[i]] / (alpha[points[i]] - a[i]) if a[i] < 0.0 else 0.0
                    if to_zero < step:
                        step, at = to_zero, i
            for i in range(size):
                p = points[i]
                alpha[p] += step * (a[i] - alpha[p])
            if at < 0:
                # The weights of a corral are those of its affine hull; here rho is exact.
                rho = norm_squared
                break
            leaving = points[at]
            alpha[leaving] = 0.0
            inside[leaving] = False
            remove_row(corral, size, at)
            size -= 1
            if leaving == lowest:
                # The new point leaves at once: within rounding it doesn't lower the norm.
                return size, squared_norm(K, n, alpha), steps


class ActiveSet:
    """Points that come one by one, with the weights of their hull's nearest point."""

    def __init__(self, first: float) -> None:
        # `first`: kernel value of the first point with itself
        room = 16
        self._K, self._alpha = np.zeros((room, room)), np.zeros(room)
        L, y = np.zeros((room, room)), np.zeros(room)
        self._shift = abs(first) or 1.0
        self._K[0, 0], self._alpha[0] = first, 1.0
        L[0, 0] = np.sqrt(first + self._shift)
        y[0] = 1.0 / L[0, 0]
        self._corral = Corral(np.zeros(room, dtype=np.int64), L, y)
        self.n, self._size = 1, 1
        self.rho = first  # the squared norm of the nearest point
        self.steps = 0  # linear systems solved so far

    @property
    def alpha(self) -> np.ndarray:
        """Weights of the points so far."""
        return self._alpha[: self.n]

    @property
    def support(self) -> np.ndarray:
        """The points that have weight, in the order in which they came."""
        return np.sort(self._corral.points[: self._size])

    def add(
        self,
        row: np.ndarray,  # (n + 1,): its kernel values with the points so far, and with itself
    ) -> None:
        """Add a point and solve."""
        n = self.n
        if n == len(self._alpha):
            self._grow()
        self._K[n, : n + 1] = self._K[: n + 1, n] = row
        self.n = n + 1
        self._size, self.rho, steps = nearest_of_hull(
            raw(self._K),
            self.n,
            self._shift,
            self._alpha,
            self.rho,
            self._corral,
            self._size,
        )
        self.steps += steps

    def _grow(self) -> None:
        room = 2 * len(self._alpha)
        self._K, self._alpha = _padded(self._K, room), _padded(self._alpha, room)
        self._corral = Corral(*(_padded(array, room) for array in self._corral))


def _padded(array: np.ndarray, room: int) -> np.ndarray:
    return np.pad(array, (0, room - len(array)))
