"""Compiled loops over all pairs of classes on shared kernel rows: steps, thresholds, checks.

Problem, given, returned
    Those of ``all_pairs``, whose loops these are.
Reference
    As ``whole_matrix``: the steps are the same, on two runs of a row in place of a whole one.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.box import threshold
from svmbench.core.csvc.passes import (
    extremes,
    find_partner,
    move_and_find_top,
    pair_step,
    penalties,
)
from svmbench.core.csvc.whole_matrix import CONVERGED, MAX_ITER, STALLED, UNKNOWN, pair_steps

#: Up to so many samples a pair's matrix is copied to where it stays in the cache.
SMALL = 128


@compiled
def ask_ahead(
    ranges: tuple[int, int, int, int],
    v: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
    needed: int,
) -> None:
    """Ask for the runs of the variable that a step waits for, and of what would be asked for soon.

    That is, of each class, the largest gradient of what can go up and the smallest of what can go
    down, of samples that lack a run. What other pairs have asked for has no part in it: the order
    of pairs must not.

    Parameters
    ----------
    ranges : tuple of int
        Begin and end of the first class among the samples, and of the second.
    v, up, down : ndarray of shape (n,)
        Gradient and penalties of the pair.
    slots : tuple of ndarray of int of shape (n_samples,)
        Where the two runs of each sample are; -1 where one is not there.
    wanted : tuple of ndarray of bool of shape (n_samples,)
        Set for the runs that are asked for.
    needed : int
        A variable of the pair.
    """
    a0, a1, b0, _ = ranges
    m = a1 - a0
    ask(a0 + needed if needed < m else b0 + needed - m, slots, wanted)
    for begin, end, place in ((0, m, a0), (m, len(v), b0)):
        top, bottom, highest, lowest = -np.inf, np.inf, -1, -1
        for k in range(begin, end):
            at = place + k - begin
            if k != needed and (slots[0][at] < 0 or slots[1][at] < 0):
                if v[k] + up[k] > top:
                    top, highest = v[k], at
                if v[k] - down[k] < bottom:
                    bottom, lowest = v[k], at
        if highest >= 0:
            ask(highest, slots, wanted)
        if lowest >= 0:
            ask(lowest, slots, wanted)


@compiled
def ask(
    at: int, slots: tuple[np.ndarray, np.ndarray], wanted: tuple[np.ndarray, np.ndarray]
) -> None:
    """Set `wanted` for the runs that the sample `at` lacks."""
    for each in range(2):
        if slots[each][at] < 0:
            wanted[each][at] = True


@compiled
def steps_of_pair(
    values: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    diag: np.ndarray,
    ranges: tuple[int, int, int, int],
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int],
    variables: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """Take the steps of one pair until it has converged or needs a run that is not there.

    With what is needed those of its largest gradients upwards and of its smallest downwards are
    asked for, of each class: what it would ask for soon.

    Parameters
    ----------
    values : ndarray of shape (any,)
        Runs of kernel rows, one after another; no NaN where the longest of them would begin at 0.
    slots : tuple of ndarray of int of shape (n_samples,)
        Where the run of each sample at the first class begins, and that at the second; -1 where it
        is not there.
    diag : ndarray of shape (n_samples,)
        Kernel values of the samples with themselves, of the type of `values`.
    ranges : tuple of int
        Begin and end of the first class among the samples, and of the second.
    bounds, ends, variables
        Lower and upper bounds; tolerance and largest number of steps; beta and its gradient, which
        are changed in place.
    wanted : tuple of ndarray of bool of shape (n_samples,)
        Set for the runs that are asked for, at the first class and at the second.

    Returns
    -------
    steps : int
    reason : int
        Position in ``REASONS``, or ``UNKNOWN``.
    """
    low, high = bounds
    tol, max_iter = ends
    beta, v = variables
    a0, a1, b0, b1 = ranges
    m, w = a1 - a0, b1 - b0
    up, down = penalties(low, high, beta)
    score = np.empty(len(beta), dtype=np.float32)
    ia, ib, ja, jb, t, steps = 0, 0, 0, 0, 0.0, 0
    while True:
        i = move_and_find_top(v[:m], up[:m], values[ia : ia + m], values[ja : ja + m], t)
        k = move_and_find_top(v[m:], up[m:], values[ib : ib + w], values[jb : jb + w], t)
        if k >= 0 and (i < 0 or v[m + k] > v[i]):
            i = m + k
        if i < 0:
            return steps, CONVERGED
        at = a0 + i if i < m else b0 + i - m
        ia, ib = slots[0][at], slots[1][at]
        is_there, j = ia >= 0 and ib >= 0, -1
        if is_there:
            top, own = v[i], diag[at]
            a, b = values[ia : ia + m], values[ib : ib + w]
            j, gap = find_partner(v[:m], down[:m], a, diag[a0:a1], top, own, score[:m])
            k, wide = find_partner(v[m:], down[m:], b, diag[b0:b1], top, own, score[m:])
            if k >= 0 and (j < 0 or score[m + k] > score[j]):
                j = m + k
            if max(gap, wide) <= tol:
                return steps, CONVERGED
            if steps >= max_iter:
                return steps, MAX_ITER
            if j < 0:
                return steps, STALLED
            at = a0 + j if j < m else b0 + j - m
            ja, jb = slots[0][at], slots[1][at]
            is_there = ja >= 0 and jb >= 0
        if not is_there:
            ask_ahead(ranges, v, up, down, slots, wanted, j if j >= 0 else i)
            return steps, UNKNOWN
        kernel = own, diag[at], a[j] if j < m else b[j - m]
        t, has_moved = pair_step(i, j, v[i] - v[j], kernel, beta, low, high, up, down)
        if not has_moved:
            return steps, STALLED
        steps += 1


@compiled
def steps_of_small_pair(
    values: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    diag: np.ndarray,
    ranges: tuple[int, int, int, int],
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int],
    variables: tuple[np.ndarray, np.ndarray],
    scratch: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """Take the same steps on a copy of the pair's matrix, whose rows are whole.

    Parameters
    ----------
    scratch : tuple of ndarray of shape (at least n ** 2,) and (at least n,)
        Of the type of `values`, for the matrix and its diagonal.
    values, slots, diag, ranges, bounds, ends, variables
        As for :func:`steps_of_pair`, which also says what is returned; all runs are there.
    """
    a0, a1, b0, b1 = ranges
    m, w = a1 - a0, b1 - b0
    n = m + w
    K, own = scratch[0][: n * n].reshape(n, n), scratch[1][:n]
    for k in range(n):
        at = a0 + k if k < m else b0 + k - m
        first, second, row = slots[0][at], slots[1][at], K[k]
        for j in range(m):
            row[j] = values[first + j]
        for j in range(w):
            row[m + j] = values[second + j]
        own[k] = diag[at]
    return pair_steps(K, own, *bounds, *ends, *variables)


@compiled
def steps_of_all(
    values: np.ndarray,
    slots: np.ndarray,
    diag: np.ndarray,
    layout: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int],
    variables: tuple[np.ndarray, np.ndarray],
    so_far: tuple[np.ndarray, np.ndarray, np.ndarray],
    all_there: bool,
) -> None:
    """Take the steps of every pair whose reason is ``UNKNOWN``; see :func:`steps_of_pair`.

    Parameters
    ----------
    slots : ndarray of int of shape (n_classes, n_samples)
        Where the run of each sample at each class begins.
    layout : tuple of ndarray
        ``starts``, ``first``, ``second`` and ``offsets``.
    so_far : tuple of ndarray
        Steps and reason of each pair, and the runs that are wanted, of the shape of `slots`;
        changed in place.
    all_there : bool
        Whether no run is missing.
    values, diag, bounds, ends, variables
        As for :func:`steps_of_pair`; bounds and variables those of all pairs.
    """
    starts, first, second, offsets = layout
    tol, max_iter = ends
    steps, reasons, wanted = so_far
    scratch = np.empty(SMALL**2, dtype=values.dtype), np.empty(SMALL, dtype=values.dtype)
    for p in range(len(first)):
        if reasons[p] == UNKNOWN:
            a, b = first[p], second[p]
            ranges = starts[a], starts[a + 1], starts[b], starts[b + 1]
            begin, end = offsets[p], offsets[p + 1]
            own = bounds[0][begin:end], bounds[1][begin:end]
            its = variables[0][begin:end], variables[1][begin:end]
            where, asked = (slots[a], slots[b]), (wanted[a], wanted[b])
            left = tol, max_iter - steps[p]
            if all_there and end - begin <= SMALL:
                taken, reason = steps_of_small_pair(
                    values, where, diag, ranges, own, left, its, scratch
                )
            else:
                taken, reason = steps_of_pair(values, where, diag, ranges, own, left, its, asked)
            steps[p] += taken
            reasons[p] = reason


#: Rows that are mirrored side by side: their values, in float64, are a line of the cache.
LINE = 8


@compiled
def put_blocks(
    strip: np.ndarray, first: int, last: int, starts: np.ndarray, values: np.ndarray
) -> None:
    """Write the kernel values of some classes by blocks of two classes, and mirror them.

    Parameters
    ----------
    strip : ndarray of shape (m, n_samples - starts[first])
        Rows of the classes from `first` to `last`, from the diagonal on.
    first, last : int
    starts : ndarray of int of shape (n_classes + 1,)
        Where each class begins.
    values : ndarray of shape (n_samples ** 2,)
        Gets the block of classes a and c, row after row, from ``starts[a] * n_samples +
        (starts[a + 1] - starts[a]) * starts[c]`` on.
    """
    n, top = starts[-1], starts[first]
    for a in range(first, last):
        begin, size = starts[a], starts[a + 1] - starts[a]
        for c in range(first, len(starts) - 1):
            width, left = starts[c + 1] - starts[c], starts[c] - top
            at, mirrored = begin * n + size * starts[c], starts[c] * n + width * begin
            for i in range(size):
                row = strip[begin - top + i, left : left + width]
                out = values[at + i * width : at + (i + 1) * width]
                for j in range(width):
                    out[j] = row[j]
            if c < last:
                continue
            for some in range(0, size, LINE):
                rows = strip[begin - top + some : begin - top + min(some + LINE, size)]
                for j in range(width):
                    to = mirrored + j * size + some
                    for i in range(len(rows)):
                        values[to + i] = rows[i, left + j]


@compiled
def thresholds_of_all(
    offsets: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    variables: tuple[np.ndarray, np.ndarray],
    out: np.ndarray,
) -> None:
    """Write the offset of each pair."""
    for p in range(len(out)):
        begin, end = offsets[p], offsets[p + 1]
        low, high = bounds[0][begin:end], bounds[1][begin:end]
        out[p] = threshold(low, high, variables[0][begin:end], variables[1][begin:end])


@compiled
def is_near(
    begin: int,
    end: int,
    bounds: tuple[np.ndarray, np.ndarray],
    variables: tuple[np.ndarray, np.ndarray],
    width: float,
) -> np.ndarray:
    """Return which variables of a pair could be part of a violation; see ``exact.near_gap``.

    Parameters
    ----------
    begin, end : int
        Where its variables are.
    bounds, variables
        Of all pairs.
    width : float
        By how much gradients may be wrong.
    """
    low, high = bounds[0][begin:end], bounds[1][begin:end]
    beta, v = variables[0][begin:end], variables[1][begin:end]
    top, bottom = extremes(low, high, beta, v)
    least, most = min(top, bottom) - width, max(top, bottom) + width
    near = np.empty(len(v), dtype=np.bool_)
    for k in range(len(v)):
        rises = beta[k] < high[k] and v[k] >= least
        near[k] = rises or (beta[k] > low[k] and v[k] <= most)
    return near
