"""The passes of a step over all samples, written so that they vectorise.

In the problem of ``problem`` with its gradient v = p - K beta, a pair step raises beta_i and lowers
beta_j by the same t, where i can go up and j can go down; where no sum is kept, beta_i and beta_j
move each by its own.

Which bounds a sample is at is kept as a penalty to add: `up` is 0 where beta can be raised and
-inf where it can't, `down` the same for lowering. (A condition inside the loop would keep the
compiler from vectorising it.) Of two samples with equal scores the first is taken, so that a
result does not depend on the width of a vector.


Steps on a kernel matrix in memory, two variables at a time.

Problem
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high,   kept sums as ``problem`` has them.
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


Steps on a kernel matrix in memory, with the samples left out that seem to be settled.

Problem
    That of ``problem`` with one kept sum.
Given
    K (n, n), a start inside the bounds with its gradient v = p - K beta, and what ends the search.
Returned
    beta and v in place, once the conditions hold within tol for all samples; or once the duality
    gap is at most a limit, where there is one.
Reference
    Joachims 1999 (shrinking); Chang and Lin 2011, section 5.1, for which samples are left out.
    Steinwart, Hush and Scovel 2011: the duality gap as what ends a search (liquidSVM stops at
    1e-3 C n).
Deviations
    - The kernel values of the samples that stay are copied next to each other, once the steps have
      spent on the others what the copy costs.
    - The gradient of the samples left out is brought up to date where they are looked at again, by
      the rows of what has moved meanwhile.


Steps on a kernel matrix of which a row is made when a step first needs it.

Problem, given, returned
    Those of ``whole_matrix``, with one kept sum and an RBF kernel of few features.
Reference
    None: what is fast where was measured. Where few samples become support vectors, most rows are
    never looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums, wide_vectors
from svmbench.core.csvc.problem import QPProblem, larger, up_low_extremes
from svmbench.core.kernels.difference_rows import DifferenceRows, points_of, rbf_row
from svmbench.core.kernels.float32_rows import DenseRows, Rows
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.row_store import subtract_rows
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import copy_part

#: Samples between two looks at the best score so far: the winner is searched in one such piece.
PIECE = 256

#: Curvature of a pair that has none, as LIBSVM has it.
TINY = 1e-12

#: Why a loop or a search ended; the last, since too many rows were asked for.
CONVERGED, MAX_ITER, STALLED, GAP, NO_MARGIN, ROWS_MISSING = 0, 1, 2, 3, 4, 5

#: The same in words, by those numbers.
REASONS = ("converged", "max_iter", "stalled", "gap", "no margin")

#: Below so many samples all of them take part throughout: a step costs little beside a copy.
SHRINK_MIN_SAMPLES = 1000

#: Steps between two looks at the gap, and at what may be left out; …
LOOK = 100

#: … and below `SHRINK_MIN_SAMPLES` samples, whose fits are shorter.
SOON = 50

#: At most this share of the samples that take part may stay, or leaving out is not worth a copy.
STAY = 0.7

#: What bringing one gradient up to date by one kernel value costs, beside copying a value.
CATCH_UP = 0.3

#: In place of a limit of the duality gap: it ends nothing.
NO_LIMIT = -1.0

#: A row alone costs more than it does among many. So at most this share of all, and not fewer than
#: this number, is made one by one; who asks for more gets the rest at once.
SHARE, LEAST = 0.125, 120

#: With more features than the first a row alone is dearer still, and the share less; with more than
#: the second nobody makes one.
FEW, MOST_FEATURES = 24, 128


@compiled
def up_low_penalties(
    low: np.ndarray, high: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return `up` and `down` of variables, float32 of shape (n,)."""
    n = len(beta)
    up, down = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for k in range(n):
        up[k] = 0.0 if beta[k] < high[k] else -np.inf
        down[k] = 0.0 if beta[k] > low[k] else -np.inf
    return up, down


@compiled
def update_gradient_select_i(
    v: np.ndarray, up: np.ndarray, row_i: np.ndarray, row_j: np.ndarray, t: float
) -> int:
    """Take the step t on the pair (i, j) out of the gradient; return where it is largest now.

    Parameters
    ----------
    v : ndarray of shape (n,)
        Gradient, changed in place.
    up : ndarray of shape (n,)
        0 where beta can be raised, else -inf; float32.
    row_i, row_j : ndarray of shape (n,)
        Kernel values of the pair.
    t : float
        Its step; with 0 nothing moves.

    Returns
    -------
    int
        The sample with the largest gradient of those that can go up; -1 if none can.
    """
    wide_vectors()
    n = len(v)
    m, piece = -np.inf, -1
    for start in range(0, n, PIECE):
        values, penalty = v[start : start + PIECE], up[start : start + PIECE]
        first, second = row_i[start : start + PIECE], row_j[start : start + PIECE]
        best = -np.inf
        for k in range(len(values)):
            w = values[k] - t * (np.float64(first[k]) - np.float64(second[k]))
            values[k] = w
            best = larger(best, w + np.float64(penalty[k]))
        if best > m:
            m, piece = best, start
    if piece < 0:
        return -1
    k = piece
    # (The bound matters only where an overflow made a gradient NaN.)
    while k < n - 1 and v[k] + np.float64(up[k]) != m:
        k += 1
    return k


@compiled
def select_j(
    v: np.ndarray,
    down: np.ndarray,
    row: np.ndarray,
    diag: np.ndarray,
    m: float,
    own: float,
    score: np.ndarray,
) -> tuple[int, float]:
    """Choose j for i: the pair whose step gains most if no bound stops it.

    Parameters
    ----------
    v, down : ndarray of shape (n,)
        Gradient; 0 where beta can be lowered, else -inf (float32).
    row, diag : ndarray of shape (n,)
        Kernel values of i with all, and of all with themselves; of one type.
    m, own : float
        Gradient of i, and its kernel value with itself.
    score : ndarray of float32 of shape (n,)
        Scratch.

    Returns
    -------
    j : int
        -1 where no sample that can go down has a smaller gradient.
    gap : float
        By how much `m` exceeds the smallest gradient of those that can go down.
    """
    wide_vectors()
    n = len(v)
    zero, tiny = np.float32(0.0), np.float32(TINY)
    gap, most, piece = -np.inf, zero, -1
    for start in range(0, n, PIECE):
        values, penalty = v[start : start + PIECE], down[start : start + PIECE]
        kernel, others = row[start : start + PIECE], diag[start : start + PIECE]
        scores = score[start : start + PIECE]
        widest, best = -np.inf, zero
        for k in range(len(values)):
            distance = (m - values[k]) + np.float64(penalty[k])
            widest = larger(widest, distance)
            d = larger(np.float32(distance), zero)
            curvature = larger(np.float32(own + others[k] - (kernel[k] + kernel[k])), tiny)
            scores[k] = d * (d / curvature)
            best = larger(best, scores[k])
        gap = max(gap, widest)
        if best > most:
            most, piece = best, start
    if piece < 0:
        return -1, gap
    k = piece
    while k < n - 1 and score[k] != most:
        k += 1
    return k, gap


@compiled
def solve_pair(
    i: int,
    j: int,
    slope: float,
    kernel: tuple[float, float, float],
    beta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
) -> tuple[float, bool]:
    """Raise beta_i and lower beta_j by the best step inside their bounds.

    Parameters
    ----------
    slope : float
        ``v_i - v_j``.
    kernel : tuple of float
        K_ii, K_jj and K_ij; a curvature K_ii + K_jj - 2 K_ij that is not positive counts as TINY.
    beta, low, high, up, down : ndarray of shape (n,)
        Variables with their bounds and up_low_penalties; changed in place.

    Returns
    -------
    t : float
        The step.
    has_moved : bool
        False where it is too short for float64: the search has stalled.
    """
    curvature = np.float64(kernel[0]) + np.float64(kernel[1]) - 2.0 * np.float64(kernel[2])
    t = slope / (curvature if curvature > TINY else TINY)
    before_i, before_j = beta[i], beta[j]
    room_i, room_j = high[i] - before_i, before_j - low[j]
    t = min(t, room_i, room_j)
    beta[i] = high[i] if t == room_i else before_i + t
    beta[j] = low[j] if t == room_j else before_j - t
    for k in (i, j):
        up[k] = 0.0 if beta[k] < high[k] else -np.inf
        down[k] = 0.0 if beta[k] > low[k] else -np.inf
    return t, beta[i] != before_i or beta[j] != before_j


@compiled
def update_gradient_select_first(
    v: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    inverse: np.ndarray,
    rows: np.ndarray,
    i: int,
    j: int,
    ti: float,
    tj: float,
) -> tuple[int, float]:
    """Take the step of two variables out of the gradient; return whose own step gains most now.

    Parameters
    ----------
    v : ndarray of shape (n,)
        Gradient, changed in place.
    up, down : ndarray of float32 of shape (n,)
        0 where beta can be raised (lowered), else -inf.
    inverse : ndarray of shape (n,)
        1 / K_kk.
    rows : ndarray of shape (n, n)
        Kernel matrix.
    i, j, ti, tj
        The two variables and by how much they moved.

    Returns
    -------
    i : int
        -1 where the conditions hold to the last digit.
    gap : float
        Largest gradient of what can go up, or 0, minus the smallest of what can go down, or 0.
    """
    wide_vectors()
    n = len(v)
    m, M, most, piece = 0.0, 0.0, 0.0, -1
    for start in range(0, n, PIECE):
        values, scale = v[start : start + PIECE], inverse[start : start + PIECE]
        first, second = rows[i, start : start + PIECE], rows[j, start : start + PIECE]
        raised, lowered = up[start : start + PIECE], down[start : start + PIECE]
        high, low, best = 0.0, 0.0, 0.0
        for k in range(len(values)):
            w = values[k] - (ti * np.float64(first[k]) + tj * np.float64(second[k]))
            values[k] = w
            rise, fall = w + np.float64(raised[k]), np.float64(lowered[k]) - w
            high, low = larger(high, rise), larger(low, fall)
            d = larger(larger(rise, fall), 0.0)
            best = larger(best, d * (d * scale[k]))
        m, M = max(m, high), max(M, low)
        if best > most:
            most, piece = best, start
    k = piece
    while 0 <= k < n - 1:
        d = max(v[k] + np.float64(up[k]), np.float64(down[k]) - v[k], 0.0)
        if d * (d * inverse[k]) == most:
            break
        k += 1
    return k, m + M


@compiled
def select_second(
    v: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    row: np.ndarray,
    diag: np.ndarray,
    i: int,
    score: np.ndarray,
) -> int:
    """Choose j to move with i: the one that gains most once i has taken its own best step.

    That step leaves r_j = v_j - v_i K_ij / K_ii and the curvature K_jj - K_ij^2 / K_ii.

    Parameters
    ----------
    v, up, down : ndarray of shape (n,)
        Gradient; 0 where beta can be raised (lowered), else -inf (float32).
    row, diag : ndarray of shape (n,)
        Kernel values of i with all, and of all with themselves; of one type.
    i : int
    score : ndarray of float32 of shape (n,)
        Scratch.

    Returns
    -------
    int
        -1 where nobody gains.
    """
    wide_vectors()
    n = len(v)
    zero, tiny = np.float32(0.0), np.float32(TINY)
    inverse = 1.0 / max(np.float64(diag[i]), TINY)
    own, share = v[i] * inverse, np.float32(inverse)
    most, piece = zero, -1
    for start in range(0, n, PIECE):
        values, scores = v[start : start + PIECE], score[start : start + PIECE]
        raised, lowered = up[start : start + PIECE], down[start : start + PIECE]
        kernel, others = row[start : start + PIECE], diag[start : start + PIECE]
        best = zero
        for k in range(len(values)):
            r = np.float32(values[k] - own * np.float64(kernel[k]))
            d = larger(larger(r + raised[k], lowered[k] - r), zero)
            c = np.float32(kernel[k])
            curvature = larger(np.float32(others[k]) - c * (c * share), tiny)
            scores[k] = d * (d / curvature)
            best = larger(best, scores[k])
        if best > most:
            most, piece = best, start
    if piece < 0:
        return -1
    k = piece
    while k < n - 1 and score[k] != most:
        k += 1
    return -1 if k == i else k


@compiled
def solve_two(
    g: tuple[float, float],
    K: tuple[float, float, float],
    least: tuple[float, float],
    most: tuple[float, float],
) -> tuple[float, float]:
    """Return the maximiser of ``g'x - 1/2 x'Kx`` of two variables within bounds.

    Parameters
    ----------
    g : tuple of float
        Slopes at 0.
    K : tuple of float
        K_11, K_22, both above 0, and K_12.
    least, most : tuple of float
        Bounds, which hold 0.
    """
    a, b, c = K
    determinant = a * b - c * c
    if determinant > TINY * a * b:
        x, y = (g[0] * b - g[1] * c) / determinant, (g[1] * a - g[0] * c) / determinant
        if least[0] <= x <= most[0] and least[1] <= y <= most[1]:
            return x, y
    # Else it is on an edge.
    gain, found_x, found_y = -np.inf, 0.0, 0.0
    for side in range(4):
        if side < 2:
            x = least[0] if side == 0 else most[0]
            y = min(max((g[1] - c * x) / b, least[1]), most[1])
        else:
            y = least[1] if side == 2 else most[1]
            x = min(max((g[0] - c * y) / a, least[0]), most[0])
        value = g[0] * x + g[1] * y - (0.5 * a * x * x + 0.5 * b * y * y + c * x * y)
        if value > gain:
            gain, found_x, found_y = value, x, y
    return found_x, found_y


@compiled
def place(
    i: int,
    step: float,
    beta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
) -> float:
    """Move beta_i by `step`, exactly to a bound that this reaches; return by how much.

    Parameters
    ----------
    beta, low, high, up, down : ndarray of shape (n,)
        Variables with their bounds and up_low_penalties; changed in place.
    """
    before = beta[i]
    moved = min(max(before + step, low[i]), high[i])
    if step >= high[i] - before:
        moved = high[i]
    elif step <= low[i] - before:
        moved = low[i]
    beta[i] = moved
    up[i] = 0.0 if moved < high[i] else -np.inf
    down[i] = 0.0 if moved > low[i] else -np.inf
    return moved - before


def optimise(
    K: np.ndarray, problem: QPProblem, tol: float, max_iter: int, beta: np.ndarray, v: np.ndarray
) -> tuple[int, int]:
    """Take the steps that the kept sums ask for, until the conditions hold within `tol`.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    problem : QPProblem
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
    bounds = (problem.low, problem.high, tol, max_iter, beta, v)
    if problem.n_sums == 1:
        return pair_steps(raw(K), diag, *bounds)
    if problem.n_sums == 0:
        return loose_steps(raw(K), diag, *bounds)
    return grouped_steps(raw(K), diag, problem.group, problem.n_sums, *bounds)


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
        As for :func:`pair_steps`, or ``ROWS_MISSING``: one row more is needed, and with all rows
        the same call goes on from here.
    """
    low, high = bounds
    tol, max_iter, most = ends
    store, columns, gamma = maker
    up, down = up_low_penalties(low, high, beta)
    score = np.empty(len(beta), dtype=np.float32)
    i, j, t, steps, made = 0, 0, 0.0, 0, 0
    while True:
        i = update_gradient_select_i(v, up, K[i], K[j], t)
        if i < 0:
            return steps, CONVERGED
        if not known[i]:
            if made == most:
                return steps, ROWS_MISSING
            rbf_row(columns, i, gamma, store)
            known[i], made = True, made + 1
        j, gap = select_j(v, down, K[i], diag, v[i], diag[i], score)
        if gap <= tol:
            return steps, CONVERGED
        if steps >= max_iter:
            return steps, MAX_ITER
        if j < 0:
            return steps, STALLED
        if not known[j]:
            if made == most:
                return steps, ROWS_MISSING
            rbf_row(columns, j, gamma, store)
            known[j], made = True, made + 1
        kernel = diag[i], diag[j], K[i, j]
        t, has_moved = solve_pair(i, j, v[i] - v[j], kernel, beta, low, high, up, down)
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
            a = update_gradient_select_i(v, up[g], K[last_i], K[last_j], last_t)
            last_t = 0.0
            if a < 0:
                continue
            b, gap = select_j(v, down[g], K[a], diag, v[a], diag[a], score)
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
        t, has_moved = solve_pair(i, j, v[i] - v[j], kernel, beta, low, high, up[g], down[g])
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
    up, down = up_low_penalties(low, high, beta)
    score, inverse = np.empty(n, dtype=np.float32), np.empty(n)
    for k in range(n):
        inverse[k] = 1.0 / max(np.float64(diag[k]), TINY)
    i, j, ti, tj, steps = 0, 0, 0.0, 0.0, 0
    while True:
        i, gap = update_gradient_select_first(v, up, down, inverse, K, i, j, ti, tj)
        if gap <= tol:
            return steps, CONVERGED
        if steps >= max_iter:
            return steps, MAX_ITER
        if i < 0:
            return steps, STALLED
        j = select_second(v, up, down, K[i], diag, i, score)
        before_i = beta[i]
        if j < 0:
            j, tj, before_j = i, 0.0, beta[i]
            ti = place(i, v[i] * inverse[i], beta, low, high, up, down)
        else:
            before_j = beta[j]
            a, b = max(np.float64(diag[i]), TINY), max(np.float64(diag[j]), TINY)
            x, y = solve_two(
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


@compiled
def gather(rows: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``rows[slots][:, columns]``."""
    block = np.empty((len(slots), len(columns)), dtype=rows.dtype)
    copy_part(rows, slots, columns, block)
    return block


class Part(NamedTuple):
    """The samples that take part, side by side.

    Attributes
    ----------
    members : ndarray of int of shape (m,)
        Their positions in the problem.
    low, high, beta, v : ndarray of shape (m,)
        Bounds, variables and gradient.
    """

    members: np.ndarray
    low: np.ndarray
    high: np.ndarray
    beta: np.ndarray
    v: np.ndarray


@compiled
def steps_between_checks(n: int) -> int:
    """Return the steps between two looks at a problem of n samples."""
    return LOOK if n >= SHRINK_MIN_SAMPLES else SOON


@compiled
def not_shrunk(part: Part) -> np.ndarray:
    """Return which samples are free, or at a bound that their gradient may not hold them to."""
    wide_vectors()
    low, high, beta, v = part.low, part.high, part.beta, part.v
    m, M = up_low_extremes(low, high, beta, v)
    stays = np.empty(len(v), dtype=np.bool_)
    for k in range(len(v)):
        rises, falls = beta[k] < high[k], beta[k] > low[k]
        stays[k] = (rises & falls) | (rises & (v[k] >= M)) | (falls & (v[k] <= m))
    return stays


@compiled_sums
def gap_so_far(low: np.ndarray, high: np.ndarray, beta: np.ndarray, v: np.ndarray) -> float:
    """Return ``problem.duality_gap`` at ``problem.threshold``, but for rounding.

    It is looked at often, so its loops are written to vectorise.
    """
    wide_vectors()
    total, free = 0.0, 0.0
    for k in range(len(v)):
        is_free = (beta[k] < high[k]) & (beta[k] > low[k])
        total += v[k] if is_free else 0.0
        free += 1.0 if is_free else 0.0
    if free > 0.0:
        b = total / free
    else:
        m, M = up_low_extremes(low, high, beta, v)
        b = m if np.inf == M else M if m == -np.inf else 0.5 * (m + M)
    gap = 0.0
    for k in range(len(v)):
        u = v[k] - b
        gap += larger(low[k] * u, high[k] * u) - beta[k] * u
    return gap


@compiled
def take(part: Part, kept: np.ndarray) -> Part:
    """Return some of the samples, by their positions in the part, with values of their own."""
    low, high, beta, v = part.low[kept], part.high[kept], part.beta[kept], part.v[kept]
    return Part(part.members[kept], low, high, beta, v)


@compiled
def write_back(part: Part, beta: np.ndarray, v: np.ndarray) -> None:
    """Write the variables and the gradient of a part to where those of all samples are."""
    for k in range(len(part.members)):
        beta[part.members[k]] = part.beta[k]
        v[part.members[k]] = part.v[k]


@compiled
def reconstruct_gradient(
    K: np.ndarray, members: np.ndarray, before: np.ndarray, beta: np.ndarray, v: np.ndarray
) -> None:
    """Bring the gradient of what was left out up to date.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Of all samples.
    members : ndarray of int
        The samples that took part, whose gradient is right.
    before : ndarray of shape (n,)
        The variables that the gradient of the others is of; `beta` is written to it.
    beta, v : ndarray of shape (n,)
        Variables of all samples, and their gradient, which is changed in place.
    """
    right = v[members]
    moved = np.flatnonzero(beta != before)
    subtract_rows(K, moved, beta[moved] - before[moved], v, 0, len(v))
    v[members] = right
    before[:] = beta


@compiled
def shrinking_steps(
    K: np.ndarray,
    diag: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int, float],
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take the steps of pairs, above `SHRINK_MIN_SAMPLES` samples on those that are not settled.

    Parameters
    ----------
    bounds : (ndarray, ndarray)
        Lower and upper.
    ends : (float, int, float)
        Tolerance of the violation, largest number of steps, and the duality gap at which the
        search ends (`NO_LIMIT` for none).
    K, diag, beta, v
        As for :func:`~svmbench.core.csvc.whole_matrix.pair_steps`, which also says what is
        returned.
    """
    low, high = bounds
    tol, max_iter, limit = ends
    n, steps, idle = len(beta), 0, 0.0
    look = steps_between_checks(n) if limit >= 0.0 or n >= SHRINK_MIN_SAMPLES else max_iter
    # All of them, and these are no copies: steps on them act on beta and v.
    whole = Part(np.arange(n), low, high, beta, v)
    part, values, own, is_whole, before = whole, K, diag, True, beta.copy()
    while True:
        reason = ROWS_MISSING
        if limit >= 0.0:
            if not is_whole:
                write_back(part, beta, v)
            if gap_so_far(low, high, beta, v) <= limit:
                reason = GAP
        if reason != GAP:
            most = min(look, max_iter - steps)
            taken, reason = pair_steps(
                values, own, part.low, part.high, tol, most, part.beta, part.v
            )
            steps += taken
        if reason != MAX_ITER or steps >= max_iter:
            if is_whole:
                return steps, reason
            # It is so among those that take part, and has to be seen among all.
            write_back(part, beta, v)
            reconstruct_gradient(K, part.members, before, beta, v)
            part, values, own, is_whole, idle = whole, K, diag, True, 0.0
        elif n >= SHRINK_MIN_SAMPLES:
            stays = not_shrunk(part)
            m = np.count_nonzero(stays)
            idle += taken * (len(stays) - m)
            if m <= STAY * len(stays) and idle >= m * (m + CATCH_UP * n):
                if not is_whole:
                    write_back(part, beta, v)
                    reconstruct_gradient(K, part.members, before, beta, v)
                before[:] = beta
                kept = np.flatnonzero(stays)
                part, values, own = take(part, kept), gather(values, kept, kept), own[kept]
                is_whole, idle = False, 0.0


def can_grow(X: Any, function: KernelFunction, rows: Rows) -> bool:
    """Return whether single rows of a matrix can be made here: RBF, few features, no bits."""
    made_so = isinstance(rows, DenseRows | DifferenceRows)
    return made_so and function.name == "rbf" and X.shape[1] <= MOST_FEATURES


class GrowingMatrix:
    """A kernel matrix that is filled as a search asks for its rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    function : KernelFunction
        RBF.
    rows : Rows
        What makes all rows that are left, once too many have been asked for.
    """

    def __init__(self, X: Any, function: KernelFunction, rows: Rows) -> None:
        n, self.gamma, self.rows = rows.n_samples, function.gamma, rows
        points = rows.X if isinstance(rows, DifferenceRows) else points_of(X)
        self.columns = np.ascontiguousarray(points.T)
        self.most = max(LEAST, int(SHARE * n * min(1.0, FEW / len(self.columns))))
        self.K, self.known = np.empty((n, n), dtype=np.float32), np.zeros(n, dtype=bool)
        self.made = 0
        # A first row that is there keeps what memory happens to hold out of the sums.
        first = np.zeros(1, dtype=np.int64)
        rows.fill(first, rows.columns(None), 0, n, self.K, first)
        self.known[0] = True

    @property
    def evaluations(self) -> int:
        """Values made one row at a time."""
        return self.made * len(self.K)

    def optimise(
        self, problem: QPProblem, tol: float, max_iter: int, beta: np.ndarray, v: np.ndarray
    ) -> tuple[int, int]:
        """Take steps until the conditions hold within `tol`.

        Parameters are those of :func:`~svmbench.core.csvc.whole_matrix.optimise`, which
        also says what is returned.
        """
        bounds, taken = (problem.low, problem.high), 0
        while True:
            before = int(np.count_nonzero(self.known))
            maker = self.K, self.columns, self.gamma
            ends = tol, max_iter - taken, max(0, self.most - before)
            steps, reason = steps_on_rows(
                raw(self.K), raw(self.rows.diagonal), self.known, maker, bounds, ends, beta, v
            )
            taken += steps
            self.made += int(np.count_nonzero(self.known)) - before
            if reason != ROWS_MISSING:
                return taken, reason
            self.K, self.known[:] = self.rows.whole(), True
