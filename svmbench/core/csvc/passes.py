"""The passes of a step over all samples, written so that they vectorise.

In the problem of ``box`` with its gradient v = p - K beta, a pair step raises beta_i and lowers
beta_j by the same t, where i can go up and j can go down; where no sum is kept, beta_i and beta_j
move each by its own.

Which bounds a sample is at is kept as a penalty to add: `up` is 0 where beta can be raised and
-inf where it can't, `down` the same for lowering. (A condition inside the loop would keep the
compiler from vectorising it.) Of two samples with equal scores the first is taken, so that a
result does not depend on the width of a vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.base.compiled import JIT_DISABLED, compiled, wide_vectors

#: Samples between two looks at the best score so far: the winner is searched in one such piece.
PIECE = 256

#: Curvature of a pair that has none, as LIBSVM has it.
TINY = 1e-12


def _python_larger(a: float, b: float) -> float:
    """Return the larger of two numbers, neither of them NaN."""
    return a if a > b else b


def _make_larger() -> Any:
    from numba.extending import intrinsic

    @intrinsic
    def larger(typing_context: Any, a: Any, b: Any) -> Any:
        """Return the larger of two numbers of one type, neither of them NaN."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Without NaN and signed zero the order of a maximum is free, so it vectorises.
            flags = ("nnan", "nsz")
            return builder.select(builder.fcmp_ordered(">", *args, flags=flags), *args, flags=flags)

        return a(a, a), emit

    return larger


larger: Any = _python_larger if JIT_DISABLED else _make_larger()


@compiled
def penalties(low: np.ndarray, high: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `up` and `down` of variables, float32 of shape (n,)."""
    n = len(beta)
    up, down = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for k in range(n):
        up[k] = 0.0 if beta[k] < high[k] else -np.inf
        down[k] = 0.0 if beta[k] > low[k] else -np.inf
    return up, down


@compiled
def extremes(
    low: np.ndarray, high: np.ndarray, beta: np.ndarray, v: np.ndarray
) -> tuple[float, float]:
    """Return the largest gradient of what can go up, and the smallest of what can go down.

    -inf and inf where nothing can. No gradient may be NaN.
    """
    wide_vectors()
    top, bottom = -np.inf, -np.inf
    for k in range(len(v)):
        top = larger(top, v[k] if beta[k] < high[k] else -np.inf)
        bottom = larger(bottom, -v[k] if beta[k] > low[k] else -np.inf)
    return top, -bottom


@compiled
def move_and_find_top(
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
    top, piece = -np.inf, -1
    for start in range(0, n, PIECE):
        values, penalty = v[start : start + PIECE], up[start : start + PIECE]
        first, second = row_i[start : start + PIECE], row_j[start : start + PIECE]
        best = -np.inf
        for k in range(len(values)):
            w = values[k] - t * (np.float64(first[k]) - np.float64(second[k]))
            values[k] = w
            best = larger(best, w + np.float64(penalty[k]))
        if best > top:
            top, piece = best, start
    if piece < 0:
        return -1
    k = piece
    # (The bound matters only where an overflow made a gradient NaN.)
    while k < n - 1 and v[k] + np.float64(up[k]) != top:
        k += 1
    return k


@compiled
def find_partner(
    v: np.ndarray,
    down: np.ndarray,
    row: np.ndarray,
    diag: np.ndarray,
    top: float,
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
    top, own : float
        Gradient of i, and its kernel value with itself.
    score : ndarray of float32 of shape (n,)
        Scratch.

    Returns
    -------
    j : int
        -1 where no sample that can go down has a smaller gradient.
    gap : float
        By how much `top` exceeds the smallest gradient of those that can go down.
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
            distance = (top - values[k]) + np.float64(penalty[k])
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
def pair_step(
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
        Variables with their bounds and penalties; changed in place.

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
def move_and_find_worst(
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
    top, bottom, most, piece = 0.0, 0.0, 0.0, -1
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
        top, bottom = max(top, high), max(bottom, low)
        if best > most:
            most, piece = best, start
    k = piece
    while 0 <= k < n - 1:
        d = max(v[k] + np.float64(up[k]), np.float64(down[k]) - v[k], 0.0)
        if d * (d * inverse[k]) == most:
            break
        k += 1
    return k, top + bottom


@compiled
def find_companion(
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
def best_in_rectangle(
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
        Variables with their bounds and penalties; changed in place.
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
