"""MN-SVM's compiled loop: weight that moves between two samples, until none is worth it.

The problem, the rules and where they come from stand in ``mn_svm.py``; here are the draw of a
violator, one step with the search of the extremes after it, and the loop over both, which ends
early for want of a kernel row.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.problem import larger
from svmbench.core.kernel_svm.l2svm import TINY
from svmbench.core.numeric.random import below

#: Draws of a full search.
DRAWS = 600

#: How a run of the loop can end.
CONVERGED, MAX_ITER, STALLED, MISSING = 0, 1, 2, 3

#: Entries of the integers that change: steps, draws, searches that failed, the state of the random
#: numbers, the violator to be used next (-1: to be drawn) and whether it was drawn, the support
#: vectors with the largest and the smallest g.
STEPS, DRAWN, FAILED, SEED, NEXT, FRESH, HIGH, LOW = range(8)

#: Entries of the other numbers that change: w^2, the present eps, the smallest g of all samples.
SQUARE, EPS, LEAST = range(3)

#: Samples between two looks at the up_low_extremes so far: an extreme is searched in one piece.
PIECE = 256


@compiled
def draw_violator(
    members: np.ndarray,  # int (n,): the `n_first` samples of one class, then those of the other
    n_first: int,
    g: np.ndarray,  # (n,)
    limit: float,
    state: np.ndarray,  # int
) -> int:
    """Return the first drawn sample with ``g < limit``, or -1 after a full search."""
    for _ in range(DRAWS):
        state[DRAWN] += 1
        if below(state, SEED, 2) == 0:
            v = members[below(state, SEED, n_first)]
        else:
            v = members[n_first + below(state, SEED, len(members) - n_first)]
        if g[v] < limit:
            return v
    return -1


@compiled
def add_and_find_extremes(
    # g, y (n,): gradient, changed in place, and labels
    g: np.ndarray,
    y: np.ndarray,
    # row_u, row_v (n,): kernel values of the two samples that moved
    row_u: np.ndarray,
    row_v: np.ndarray,
    # fro, to: the weight that moved, times the label of u and of v
    fro: float,
    to: float,
    idle: np.ndarray,  # float32 (n,): 0 for support vectors, else -inf
) -> tuple[int, int, float]:
    """Take a step out of g; find the support vectors where it is largest and smallest now.

    Return these two, and the smallest g of all samples.
    """
    n, most = len(g), -np.inf
    high, high_piece, low, low_piece = -np.inf, 0, -np.inf, 0
    for start in range(0, n, PIECE):
        values, labels = g[start : start + PIECE], y[start : start + PIECE]
        first, second = row_u[start : start + PIECE], row_v[start : start + PIECE]
        penalty = idle[start : start + PIECE]
        up, down, deepest = -np.inf, -np.inf, -np.inf
        for k in range(len(values)):
            change = to * (np.float64(second[k]) + 1.0) - fro * (np.float64(first[k]) + 1.0)
            w = values[k] + labels[k] * change
            values[k] = w
            up = larger(up, np.float64(penalty[k]) + w)
            down = larger(down, np.float64(penalty[k]) - w)
            deepest = larger(deepest, -w)
        most = max(most, deepest)
        if up > high:
            high, high_piece = up, start
        if down > low:
            low, low_piece = down, start
    i, j = high_piece, low_piece
    while i < n - 1 and np.float64(idle[i]) + g[i] != high:
        i += 1
    while j < n - 1 and np.float64(idle[j]) - g[j] != low:
        j += 1
    return i, j, -most


@compiled
def move(
    row_u: np.ndarray,
    row_v: np.ndarray,
    u: int,
    v: int,
    y: np.ndarray,
    curvature: np.ndarray,
    C: float,
    a: np.ndarray,
    g: np.ndarray,
    idle: np.ndarray,
    state: np.ndarray,
    numbers: np.ndarray,
) -> bool:
    """Move the best weight from u to v; return whether there was any to move."""
    between = y[u] * y[v] * (np.float64(row_u[v]) + 1.0)
    eta = max(curvature[u] + curvature[v] - 2.0 * between, TINY)
    slope = g[u] - g[v]
    t = slope / eta
    if t >= a[u]:
        t = a[u]
        a[u] = 0.0
        idle[u] = -np.inf
    else:
        a[u] -= t
    if t <= 0.0 or a[v] + t == a[v]:
        return False
    a[v] += t
    idle[v] = 0.0
    numbers[SQUARE] += t * (t * eta - 2.0 * slope)
    g[u] -= t / C
    g[v] += t / C
    high, low, least = add_and_find_extremes(g, y, row_u, row_v, t * y[u], t * y[v], idle)
    state[HIGH], state[LOW], numbers[LEAST] = high, low, least
    state[STEPS] += 1
    return True


@compiled
def approach(
    # values, slots, last_use, clock: rows, as `SourceRowCache` has them
    values: np.ndarray,
    slots: np.ndarray,
    last_use: np.ndarray,
    clock: int,
    curvature: np.ndarray,  # (n,): Q_ii
    y: np.ndarray,  # (n,): labels ±1
    members: np.ndarray,
    n_first: int,
    C: float,
    eps: float,
    max_iter: int,
    # a, g (n,): weights and gradient, changed in place
    a: np.ndarray,
    g: np.ndarray,
    idle: np.ndarray,  # float32 (n,): 0 for support vectors, else -inf; changed in place
    state: np.ndarray,  # (8,): what changes
    numbers: np.ndarray,  # (3,): as the entries' names say
) -> int:
    """Take steps until the last search fails or a row is missing; return how it ended."""
    widest = curvature.max()
    while True:
        square = numbers[SQUARE]
        limit = square - numbers[EPS] * np.sqrt(square * widest)
        if state[NEXT] < 0:
            v = -1
            if numbers[LEAST] < limit:
                v = draw_violator(members, n_first, g, limit, state)
            if v < 0:
                state[FAILED] += 1
                numbers[SQUARE] = np.dot(a, g)
                if numbers[EPS] <= eps:
                    return CONVERGED
                numbers[EPS] = max(0.5 * numbers[EPS], eps)
                continue
            state[NEXT], state[FRESH] = v, 1
        if state[STEPS] >= max_iter:
            return MAX_ITER
        u, v = state[HIGH], state[NEXT]
        if slots[u] < 0 or slots[v] < 0:
            return MISSING
        last_use[slots[u]] = last_use[slots[v]] = clock + state[STEPS]
        rows = values[slots[u]], values[slots[v]]
        if not move(*rows, u, v, y, curvature, C, a, g, idle, state, numbers):
            return STALLED
        square = numbers[SQUARE]
        limit = square - numbers[EPS] * np.sqrt(square * widest)
        # A step between support vectors follows one with a drawn violator.
        state[NEXT] = state[LOW] if state[FRESH] and g[state[LOW]] < limit else -1
        state[FRESH] = 0
