"""Steps on a kernel matrix in memory, two variables at a time.

Problem
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high,   kept sums as ``box`` has them.
Given
    K (n, n), float32 or float64; a start inside the bounds with its gradient v = p - K beta.
Returned
    beta and v in place, once the conditions hold within tol.
Reference
    Fan, Chen and Lin 2005, WSS 2: i has the largest gradient of those that can go up; j the
    largest (v_i - v_j)^2 / (K_ii + K_jj - 2 K_ij) of those that can go down. Chang and Lin 2001 for
    several sums: both of a pair are of one group. Steinwart, Hush and Scovel 2011 for none: two
    variables, each free to move, since steps of one alone are many times as many (measured: 5 to
    140 times the pair steps of the same problem with an offset).
Deviations
    - In beta, no sign appears in a step or a choice.
    - The scores of j are compared in float32; gradient, gap and step are float64.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.box import Box
from svmbench.core.csvc.passes import (
    TINY,
    best_in_rectangle,
    find_companion,
    find_partner,
    move_and_find_top,
    move_and_find_worst,
    pair_step,
    penalties,
    place,
)
from svmbench.core.kernels.difference_rows import rbf_row
from svmbench.core.numeric.arrays import raw

#: Why a loop or a search ended; the last, since too many rows were asked for.
CONVERGED, MAX_ITER, STALLED, GAP, NO_MARGIN, UNKNOWN = 0, 1, 2, 3, 4, 5

#: The same in words, by those numbers.
REASONS = ("converged", "max_iter", "stalled", "gap", "no margin")


def optimise(
    K: np.ndarray, box: Box, tol: float, max_iter: int, beta: np.ndarray, v: np.ndarray
) -> tuple[int, int]:
    """Take the steps that the kept sums ask for, until the conditions hold within `tol`.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    box : Box
    tol, max_iter : float, int
        Tolerance of the gap, largest number of steps.
    beta, v : ndarray of shape (n,)
        A feasible start and its gradient; changed in place.

    Returns
    -------
    steps : int
    reason : int
        Position in ``REASONS``.
    """
    diag = raw(np.ascontiguousarray(K.diagonal()))
    bounds = (box.low, box.high, tol, max_iter, beta, v)
    if box.n_sums == 1:
        return pair_steps(raw(K), diag, *bounds)
    if box.n_sums == 0:
        return loose_steps(raw(K), diag, *bounds)
    return grouped_steps(raw(K), diag, box.group, box.n_sums, *bounds)


@compiled
def pair_steps(
    K: np.ndarray,
    diag: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    tol: float,
    max_iter: int,
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take steps that keep the sum of all variables.

    Parameters
    ----------
    K, diag : ndarray of shape (n, n), (n,)
        Kernel matrix and its diagonal, of one type.
    low, high : ndarray of shape (n,)
        Bounds.
    tol, max_iter : float, int
        Tolerance of the gap, largest number of steps.
    beta, v : ndarray of shape (n,)
        A feasible start and its gradient ``p - K @ beta``; changed in place.

    Returns
    -------
    steps : int
    reason : int
        Position in ``REASONS``.
    """
    nothing = np.empty((0, 0), dtype=np.float32)
    known = np.ones(len(beta), dtype=np.bool_)
    return steps_on_rows(
        K, diag, known, (nothing, nothing, 0.0), (low, high), (tol, max_iter, 0), beta, v
    )


@compiled
def steps_on_rows(
    K: np.ndarray,
    diag: np.ndarray,
    known: np.ndarray,
    maker: tuple[np.ndarray, np.ndarray, float],
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int, int],
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take the steps of :func:`pair_steps`; make a row of an RBF kernel when a step needs it.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix, of which some rows are filled, the first among them.
    known : ndarray of bool of shape (n,)
        Which; changed in place.
    maker : (ndarray, ndarray, float)
        The same matrix to write to, the points as columns (see :func:`rbf_row`), and gamma.
    bounds : (ndarray, ndarray)
        Lower and upper.
    ends : (float, int, int)
        Tolerance of the gap, largest number of steps, and of rows that are made.
    diag, beta, v
        As for :func:`pair_steps`.

    Returns
    -------
    steps : int
    reason : int
        As for :func:`pair_steps`, or ``UNKNOWN``: one row more is needed, and with all rows the
        same call goes on from here.
    """
    low, high = bounds
    tol, max_iter, most = ends
    store, columns, gamma = maker
    up, down = penalties(low, high, beta)
    score = np.empty(len(beta), dtype=np.float32)
    i, j, t, steps, made = 0, 0, 0.0, 0, 0
    while True:
        i = move_and_find_top(v, up, K[i], K[j], t)
        if i < 0:
            return steps, CONVERGED
        if not known[i]:
            if made == most:
                return steps, UNKNOWN
            rbf_row(columns, i, gamma, store)
            known[i], made = True, made + 1
        j, gap = find_partner(v, down, K[i], diag, v[i], diag[i], score)
        if gap <= tol:
            return steps, CONVERGED
        if steps >= max_iter:
            return steps, MAX_ITER
        if j < 0:
            return steps, STALLED
        if not known[j]:
            if made == most:
                return steps, UNKNOWN
            rbf_row(columns, j, gamma, store)
            known[j], made = True, made + 1
        kernel = diag[i], diag[j], K[i, j]
        t, has_moved = pair_step(i, j, v[i] - v[j], kernel, beta, low, high, up, down)
        if not has_moved:
            return steps, STALLED
        steps += 1


@compiled
def grouped_steps(
    K: np.ndarray,
    diag: np.ndarray,
    group: np.ndarray,
    n_sums: int,
    low: np.ndarray,
    high: np.ndarray,
    tol: float,
    max_iter: int,
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take steps that keep the sum of each group: the best pair of the best group.

    Parameters
    ----------
    group, n_sums : ndarray of int of shape (n,), int
        The group of each variable, counted from 0, and how many there are.
    K, diag, low, high, tol, max_iter, beta, v
        As for :func:`pair_steps`, which also says what is returned.
    """
    n = len(beta)
    up, down = np.empty((n_sums, n), dtype=np.float32), np.empty((n_sums, n), dtype=np.float32)
    score = np.empty(n, dtype=np.float32)
    up[:], down[:] = -np.inf, -np.inf
    for k in range(n):
        up[group[k], k] = 0.0 if beta[k] < high[k] else -np.inf
        down[group[k], k] = 0.0 if beta[k] > low[k] else -np.inf
    i, j, t, steps = 0, 0, 0.0, 0
    while True:
        last_i, last_j, last_t = i, j, t
        i, j, t = -1, -1, 0.0
        widest, most = -np.inf, np.float32(0.0)
        for g in range(n_sums):
            # The last step is taken out of the gradient once.
            a = move_and_find_top(v, up[g], K[last_i], K[last_j], last_t)
            last_t = 0.0
            if a < 0:
                continue
            b, gap = find_partner(v, down[g], K[a], diag, v[a], diag[a], score)
            widest = max(widest, gap)
            if b >= 0 and score[b] > most:
                i, j, most = a, b, score[b]
        if widest <= tol:
            return steps, CONVERGED
        if steps >= max_iter:
            return steps, MAX_ITER
        if j < 0:
            return steps, STALLED
        kernel, g = (diag[i], diag[j], K[i, j]), group[i]
        t, has_moved = pair_step(i, j, v[i] - v[j], kernel, beta, low, high, up[g], down[g])
        if not has_moved:
            return steps, STALLED
        steps += 1


@compiled
def loose_steps(
    K: np.ndarray,
    diag: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    tol: float,
    max_iter: int,
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take steps where no sum is kept: of one variable and, if it gains, a second one with it.

    Parameters are those of :func:`pair_steps`, which also says what is returned.
    """
    n = len(beta)
    up, down = penalties(low, high, beta)
    score, inverse = np.empty(n, dtype=np.float32), np.empty(n)
    for k in range(n):
        inverse[k] = 1.0 / max(np.float64(diag[k]), TINY)
    i, j, ti, tj, steps = 0, 0, 0.0, 0.0, 0
    while True:
        i, gap = move_and_find_worst(v, up, down, inverse, K, i, j, ti, tj)
        if gap <= tol:
            return steps, CONVERGED
        if steps >= max_iter:
            return steps, MAX_ITER
        if i < 0:
            return steps, STALLED
        j = find_companion(v, up, down, K[i], diag, i, score)
        before_i = beta[i]
        if j < 0:
            j, tj, before_j = i, 0.0, beta[i]
            ti = place(i, v[i] * inverse[i], beta, low, high, up, down)
        else:
            before_j = beta[j]
            a, b = max(np.float64(diag[i]), TINY), max(np.float64(diag[j]), TINY)
            x, y = best_in_rectangle(
                (v[i], v[j]),
                (a, b, np.float64(K[i, j])),
                (low[i] - beta[i], low[j] - beta[j]),
                (high[i] - beta[i], high[j] - beta[j]),
            )
            ti = place(i, x, beta, low, high, up, down)
            tj = place(j, y, beta, low, high, up, down)
        if beta[i] == before_i and beta[j] == before_j:
            return steps, STALLED
        steps += 1


@compiled
def gradient(K: np.ndarray, linear: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return ``linear - K @ beta``, summed in float64 over the non-zero beta; K is symmetric."""
    v = linear.copy()
    for j in range(len(beta)):
        if beta[j] != 0.0:
            row, factor = K[j], beta[j]
            for k in range(len(v)):
                v[k] -= factor * np.float64(row[k])
    return v
