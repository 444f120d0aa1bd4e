"""The hard-margin one-class QP on a small set that grows: the point of least norm in a hull.

Problem
    min_alpha  1/2 alpha' K alpha,   alpha >= 0,   sum alpha = 1:
    w = sum_i alpha_i phi(x_i) is the point of the convex hull that is nearest to the origin.
    <w, phi(x_i)> = rho = ||w||^2 where alpha_i > 0, and >= rho elsewhere.
Given
    The kernel values of the points so far; the solution before the last of them came.
Returned
    alpha and rho, exact but for rounding: points without weight are at least (1 - SLACK) rho.
Method
    Wolfe 1976: a corral of affinely independent points whose affine hull's nearest point has
    positive weights only; a point below rho joins, and those whose weight would turn negative
    leave. The corral's matrix K + c 11' is kept as its Cholesky factor, which gains and loses a
    row at a time: on a sum of 1 the term c 11' changes nothing but the matrix's rank.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.arrays import raw
from svmbench.core.compiled import compiled

#: How far below rho a point without weight may be, as a share of rho.
SLACK = 1e-10

#: A pivot below this share of the diagonal is rounding: the point is in the corral's hull already.
PIVOT = 1e-13

#: Corrections of the weights by their residual, against what updates of the factor have lost.
REFINEMENTS = 2

#: Linear systems a point after which rounding alone can be what is left.
MOST_STEPS = 50


@compiled
def append_row(
    K: np.ndarray, shift: float, corral: np.ndarray, size: int, L: np.ndarray, point: int
) -> bool:
    """Let a point join the corral: one more row of the factor; False if it depends on the others.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values.
    shift : float
        The c of K + c 11'.
    corral : ndarray of int of shape (n,)
        Its points, the first `size` of them.
    size : int
    L : ndarray of shape (n, n)
        The factor: lower triangle of its first `size` rows.
    point : int
    """
    own = K[point, point] + shift
    left = own
    for i in range(size):
        total = K[point, corral[i]] + shift
        for j in range(i):
            total -= L[i, j] * L[size, j]
        total /= L[i, i]
        L[size, i] = total
        left -= total * total
    if left <= PIVOT * own:
        return False
    L[size, size] = np.sqrt(left)
    corral[size] = point
    return True


@compiled
def remove_row(corral: np.ndarray, size: int, L: np.ndarray, at: int) -> None:
    """Let the point at place `at` leave; the rows below move up and are rotated into shape."""
    for i in range(at, size - 1):
        corral[i] = corral[i + 1]
        for j in range(i + 2):
            L[i, j] = L[i + 1, j]
    for k in range(at, size - 1):
        a, b = L[k, k], L[k, k + 1]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        for i in range(k, size - 1):
            a, b = L[i, k], L[i, k + 1]
            L[i, k] = c * a + s * b
            L[i, k + 1] = c * b - s * a


@compiled
def solve_factor(L: np.ndarray, size: int, b: np.ndarray) -> None:
    """Replace `b` by the solution of L L' x = b."""
    for i in range(size):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * b[j]
        b[i] = total / L[i, i]
    for i in range(size - 1, -1, -1):
        b[i] /= L[i, i]
        for j in range(i):
            b[j] -= L[i, j] * b[i]


@compiled
def nearest_of_affine_hull(
    K: np.ndarray,
    shift: float,
    corral: np.ndarray,
    size: int,
    L: np.ndarray,
    a: np.ndarray,
    r: np.ndarray,
) -> None:
    """Write the weights, of any sign, of the corral's affine hull's nearest point to `a`.

    Parameters
    ----------
    K, shift, corral, size, L
        As for :func:`append_row`.
    a, r : ndarray of shape (n,)
        Weights by place in the corral, and scratch.
    """
    for i in range(size):
        a[i] = 1.0
    solve_factor(L, size, a)
    for _ in range(REFINEMENTS):
        for i in range(size):
            total = 1.0
            for j in range(size):
                total -= (K[corral[i], corral[j]] + shift) * a[j]
            r[i] = total
        solve_factor(L, size, r)
        for i in range(size):
            a[i] += r[i]
    total = 0.0
    for i in range(size):
        total += a[i]
    for i in range(size):
        a[i] /= total


@compiled
def nearest_of_hull(
    K: np.ndarray,
    n: int,
    shift: float,
    alpha: np.ndarray,
    corral: np.ndarray,
    size: int,
    L: np.ndarray,
) -> tuple[int, float, int]:
    """Solve among the first `n` points from the solution of fewer; change everything in place.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel values of the points; the first `n` rows and columns count.
    n : int
    shift : float
        The c of K + c 11'; above 0.
    alpha : ndarray of shape (m,)
        Weights: 0 outside the corral.
    corral : ndarray of int of shape (m,)
    size : int
        Points in the corral; at least one.
    L : ndarray of shape (m, m)

    Returns
    -------
    size : int
    rho : float
    steps : int
        Solutions of a linear system.
    """
    a, r = np.empty(n), np.empty(n)
    inside = np.zeros(n, dtype=np.bool_)
    for i in range(size):
        inside[corral[i]] = True
    steps = 0
    while True:
        # The weights of a corral are those of its affine hull; here rho is exact.
        rho = 0.0
        for i in range(size):
            for j in range(size):
                rho += alpha[corral[i]] * K[corral[i], corral[j]] * alpha[corral[j]]
        lowest, worst = -1, rho - SLACK * abs(rho)
        for p in range(n):
            if inside[p]:
                continue
            score = 0.0
            for i in range(size):
                score += K[p, corral[i]] * alpha[corral[i]]
            if score < worst:
                lowest, worst = p, score
        # What rounding can't tell from the corral's own points makes no progress.
        too_many = steps > MOST_STEPS * n
        if lowest < 0 or too_many or not append_row(K, shift, corral, size, L, lowest):
            return size, rho, steps
        size += 1
        inside[lowest] = True
        while True:
            nearest_of_affine_hull(K, shift, corral, size, L, a, r)
            steps += 1
            reach, at = 1.0, -1
            for i in range(size):
                if a[i] <= 0.0:
                    here = alpha[corral[i]] / (alpha[corral[i]] - a[i]) if a[i] < 0.0 else 0.0
                    if here < reach:
                        reach, at = here, i
            for i in range(size):
                p = corral[i]
                alpha[p] += reach * (a[i] - alpha[p])
            if at < 0:
                break
            alpha[corral[at]] = 0.0
            inside[corral[at]] = False
            if corral[at] == lowest:
                # It came to lower the norm, and rounding says that it can't.
                remove_row(corral, size, L, at)
                return size - 1, rho, steps
            remove_row(corral, size, L, at)
            size -= 1


class ActiveSet:
    """Points that come one by one, with the weights of their hull's nearest point.

    Parameters
    ----------
    first : float
        Kernel value of the first point with itself.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        Weights of the points so far.
    rho : float
        The squared norm of the nearest point.
    steps : int
        Linear systems solved so far.
    """

    def __init__(self, first: float) -> None:
        room = 16
        self._K, self._L = np.zeros((room, room)), np.zeros((room, room))
        self._alpha, self._corral = np.zeros(room), np.zeros(room, dtype=np.int64)
        self._shift = abs(first) or 1.0
        self._K[0, 0], self._alpha[0] = first, 1.0
        self._L[0, 0] = np.sqrt(first + self._shift)
        self.n, self._size, self.rho, self.steps = 1, 1, first, 0

    @property
    def alpha(self) -> np.ndarray:
        """Weights of the points so far."""
        return self._alpha[: self.n]

    @property
    def support(self) -> np.ndarray:
        """The points that have weight, in the order in which they came."""
        return np.sort(self._corral[: self._size])

    def add(self, row: np.ndarray) -> None:
        """Add a point and solve.

        Parameters
        ----------
        row : ndarray of shape (n + 1,)
            Its kernel values with the points so far, and with itself.
        """
        n = self.n
        if n == len(self._alpha):
            self._grow()
        self._K[n, : n + 1] = self._K[: n + 1, n] = row
        self.n = n + 1
        self._size, self.rho, steps = nearest_of_hull(
            raw(self._K), self.n, self._shift, self._alpha, self._corral, self._size, self._L
        )
        self.steps += steps

    def _grow(self) -> None:
        room = 2 * len(self._alpha)
        self._K, self._L = _wider(self._K, room), _wider(self._L, room)
        self._alpha = np.pad(self._alpha, (0, room - len(self._alpha)))
        self._corral = np.pad(self._corral, (0, room - len(self._corral)))


def _wider(matrix: np.ndarray, room: int) -> np.ndarray:
    wide = np.zeros((room, room))
    wide[: len(matrix), : len(matrix)] = matrix
    return wide


def hard_margin(K: np.ndarray) -> tuple[np.ndarray, float]:
    """Solve the hard-margin one-class problem of a whole kernel matrix; return alpha and rho.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Positive semidefinite.
    """
    K = np.asarray(K, dtype=np.float64)
    n = len(K)
    shift = float(np.max(np.abs(K.diagonal()), initial=0.0)) or 1.0
    alpha, corral, L = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros((n, n))
    first = int(np.argmin(K.diagonal()))
    alpha[first], corral[0], L[0, 0] = 1.0, first, np.sqrt(K[first, first] + shift)
    _, rho, _ = nearest_of_hull(raw(K), n, shift, alpha, corral, 1, L)
    return alpha, rho
