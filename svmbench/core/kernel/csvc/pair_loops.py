"""Compiled loops over all pairs of classes on shared kernel rows: steps, thresholds, checks.

Problem, given, returned
    Those of ``all_pairs``, whose loops these are.
Reference
    As ``whole_matrix``: the steps are the same, on two runs of a row in place of a whole one.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.compiled import compiled
from svmbench.core.kernel.csvc.box import threshold
from svmbench.core.kernel.csvc.passes import (
    find_partner,
    move_and_find_top,
    pair_step,
    penalties,
)
from svmbench.core.kernel.csvc.whole_matrix import CONVERGED, MAX_ITER, STALLED, UNKNOWN


@compiled
def want(
    v: np.ndarray, penalty: np.ndarray, sign: float, slots: np.ndarray, wanted: np.ndarray
) -> None:
    """Set `wanted` where ``sign * v + penalty`` is largest, of samples whose row is not there."""
    best, at = -np.inf, -1
    for k in range(len(v)):
        value = sign * v[k] + penalty[k]
        if value > best and slots[k] < 0:
            best, at = value, k
    if at >= 0:
        wanted[at] = True


@compiled
def steps_of_pair(
    rows: np.ndarray,
    slots: np.ndarray,
    diag: np.ndarray,
    ranges: tuple[int, int, int, int],
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int],
    variables: tuple[np.ndarray, np.ndarray],
    wanted: np.ndarray,
) -> tuple[int, int]:
    """Take the steps of one pair until it has converged or needs a row that is not there.

    With the row that is needed those of its largest gradients upwards and of its smallest downwards
    are wanted, one of each class: what it would ask for soon.

    Parameters
    ----------
    rows : ndarray of shape (any, n_samples)
        Kernel rows; the first is filled.
    slots : ndarray of int of shape (n_samples,)
        Where the row of each sample is; -1 where it is not there.
    diag : ndarray of shape (n_samples,)
        Kernel values of the samples with themselves, of the type of `rows`.
    ranges : tuple of int
        Begin and end of the first class among the samples, and of the second.
    bounds, ends, variables
        Lower and upper bounds; tolerance and largest number of steps; beta and its gradient, which
        are changed in place.
    wanted : ndarray of bool of shape (n_samples,)
        Set for the rows that are asked for.

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
    m = a1 - a0
    up, down = penalties(low, high, beta)
    score = np.empty(len(beta), dtype=np.float32)
    row_i, row_j, t, steps = 0, 0, 0.0, 0
    while True:
        i = move_and_find_top(v[:m], up[:m], rows[row_i, a0:a1], rows[row_j, a0:a1], t)
        k = move_and_find_top(v[m:], up[m:], rows[row_i, b0:b1], rows[row_j, b0:b1], t)
        if k >= 0 and (i < 0 or v[m + k] > v[i]):
            i = m + k
        if i < 0:
            return steps, CONVERGED
        at = a0 + i if i < m else b0 + i - m
        row_i, j = slots[at], -1
        if row_i >= 0:
            top, own = v[i], diag[at]
            row = rows[row_i]
            j, gap = find_partner(v[:m], down[:m], row[a0:a1], diag[a0:a1], top, own, score[:m])
            k, wide = find_partner(v[m:], down[m:], row[b0:b1], diag[b0:b1], top, own, score[m:])
            if k >= 0 and (j < 0 or score[m + k] > score[j]):
                j = m + k
            if max(gap, wide) <= tol:
                return steps, CONVERGED
            if steps >= max_iter:
                return steps, MAX_ITER
            if j < 0:
                return steps, STALLED
            at = a0 + j if j < m else b0 + j - m
            row_j = slots[at]
        if row_i < 0 or row_j < 0:
            wanted[at] = True
            for penalty, sign in ((up, 1.0), (down, -1.0)):
                want(v[:m], penalty[:m], sign, slots[a0:a1], wanted[a0:a1])
                want(v[m:], penalty[m:], sign, slots[b0:b1], wanted[b0:b1])
            return steps, UNKNOWN
        kernel = own, diag[at], rows[row_i, at]
        t, has_moved = pair_step(i, j, v[i] - v[j], kernel, beta, low, high, up, down)
        if not has_moved:
            return steps, STALLED
        steps += 1


@compiled
def steps_of_all(
    rows: np.ndarray,
    slots: np.ndarray,
    diag: np.ndarray,
    layout: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int],
    variables: tuple[np.ndarray, np.ndarray],
    so_far: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Take the steps of every pair whose reason is ``UNKNOWN``; see :func:`steps_of_pair`.

    Parameters
    ----------
    layout : tuple of ndarray
        ``starts``, ``first``, ``second`` and ``offsets``.
    so_far : tuple of ndarray
        Steps and reason of each pair, and the rows that are wanted; changed in place.
    rows, slots, diag, bounds, ends, variables
        As for :func:`steps_of_pair`; bounds and variables those of all pairs.
    """
    starts, first, second, offsets = layout
    tol, max_iter = ends
    steps, reasons, wanted = so_far
    for p in range(len(first)):
        if reasons[p] == UNKNOWN:
            a, b = first[p], second[p]
            ranges = starts[a], starts[a + 1], starts[b], starts[b + 1]
            begin, end = offsets[p], offsets[p + 1]
            own = bounds[0][begin:end], bounds[1][begin:end]
            its = variables[0][begin:end], variables[1][begin:end]
            left = tol, max_iter - steps[p]
            taken, reason = steps_of_pair(rows, slots, diag, ranges, own, left, its, wanted)
            steps[p] += taken
            reasons[p] = reason


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
def find_near(
    offsets: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    variables: tuple[np.ndarray, np.ndarray],
    widths: np.ndarray,
    near: np.ndarray,
) -> None:
    """Set `near` of every variable that could be part of a violation; see ``exact.near_gap``.

    Parameters
    ----------
    offsets, bounds, variables
        Of all pairs.
    widths : ndarray of shape (n_pairs,)
        By how much gradients may be wrong; negative for a pair that is not looked at.
    near : ndarray of bool of shape (n_variables,)
        Changed in place.
    """
    low, high = bounds
    beta, v = variables
    for p in range(len(widths)):
        if widths[p] < 0.0:
            continue
        top, bottom = extremes(offsets[p], offsets[p + 1], bounds, variables)
        least, most = min(top, bottom) - widths[p], max(top, bottom) + widths[p]
        for k in range(offsets[p], offsets[p + 1]):
            rises = beta[k] < high[k] and v[k] >= least
            near[k] = rises or (beta[k] > low[k] and v[k] <= most)


@compiled
def extremes(
    begin: int,
    end: int,
    bounds: tuple[np.ndarray, np.ndarray],
    variables: tuple[np.ndarray, np.ndarray],
) -> tuple[float, float]:
    """Return the largest gradient of what can go up, and the smallest of what can go down."""
    low, high = bounds
    beta, v = variables
    top, bottom = -np.inf, np.inf
    for k in range(begin, end):
        if beta[k] < high[k]:
            top = max(top, v[k])
        if beta[k] > low[k]:
            bottom = min(bottom, v[k])
    return top, bottom


@compiled
def put_exact(
    offsets: np.ndarray,
    linear: np.ndarray,
    places: np.ndarray,
    sums: np.ndarray,
    at: np.ndarray,
    near: np.ndarray,
    v: np.ndarray,
    errors: np.ndarray,
) -> None:
    """Replace gradients by their values in float64, and keep the largest error of each pair.

    Parameters
    ----------
    offsets, linear, places
        As `Layout` has them; the linear term is the sign.
    sums : ndarray of shape (any, n_pairs)
        ``K beta`` of some samples, for each pair.
    at : ndarray of int of shape (n_samples,)
        The row of `sums` that a sample has.
    near : ndarray of bool of shape (n_variables,)
        Which gradients.
    v, errors : ndarray of shape (n_variables,), (n_pairs,)
        Changed in place.
    """
    for p in range(len(errors)):
        for k in range(offsets[p], offsets[p + 1]):
            if near[k]:
                found = linear[k] - sums[at[places[k]], p]
                errors[p] = max(errors[p], abs(found - v[k]))
                v[k] = found
