"""Sequential minimal optimisation on a kernel matrix in memory: steps of two variables.

Problem
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high.
    Steps keep sums of beta fixed: one sum over all variables for the C-SVC (e'beta = 0), none for
    a C-SVC without an offset, one sum for each class for the ν-SVC (a "group" of variables).
Variables
    beta_i = y_i alpha_i, and v = p - K beta, which is -y_i times the gradient in Fan, Chen and
    Lin 2005. A step raises beta_i and lowers beta_j by the same t, where i is in I_up (beta_i below
    its upper bound) and j in I_low (beta_j above its lower bound).
    m(alpha) = max of v over I_up, M(alpha) = min of v over I_low; the violation is m - M.
Given
    K (n, n), float32 or float64; a start inside the bounds with its gradient v.
Returned
    beta and v in place, once the violation is at most tol, or the duality gap at most max_gap.
Phases that ``pair_steps`` and ``grouped_steps`` repeat, until ``why_stop`` returns a reason
    select_working_set  i = argmax of v over I_up; j = argmax of b_ij^2 / a_ij over the j in I_low
                        with b_ij = v_i - v_j > 0, a_ij = K_ii + K_jj - 2 K_ij (WSS 2)
    solve_pair          t = b_ij / a_ij, cut at the bounds
    update_gradient     v -= t (K_i - K_j), in the same pass over v as the next maximum over I_up;
                        ``select_i`` then looks for the sample that has it
    shrink              in ``shrinking_steps`` alone, between calls of the two
    newton_steps        there too, for several groups: all free variables go to their best values
References
    Fan, Chen and Lin 2005: WSS 2. Chang and Lin 2001: with several sums, both variables of a pair
    come from one group. Steinwart, Hush and Scovel 2011: without a fixed sum
    (``steps_without_sum``), two variables, each with its own step; the duality gap as a stopping
    criterion (liquidSVM stops at 1e-3 C n). Joachims 1999 and Chang and Lin 2011, section 5.1:
    shrinking.
Deviations
    - With beta instead of alpha, no label y appears in a step or a choice.
    - The scores of j are compared in float32; gradient, violation and step are float64.
    - I_up and I_low are kept as penalties to add to v: `up` is 0 where beta can be raised, else
      -inf; `down` is the same for lowering. A condition inside a loop would keep the compiler from
      vectorising it.
    - Ties between scores go to the first sample, so the width of SIMD registers changes no result.
    - Shrinking copies the kernel values of the samples that stay to a smaller matrix. It waits
      until the steps have spent as much time on the samples to be shrunk as the copy costs.
From other modules
    ``larger`` is the larger of two numbers that are not NaN, ``wide_vectors`` a hint to use the
    widest registers, ``threshold`` the offset, ``compute_row`` computes a row of a ``LazyMatrix``
    unless that was done before, ``subtract_rows`` does v -= sum_q f_q K_q in a range of v,
    ``copy_part`` copies rows and columns, ``raw`` returns a read-only view: one version to compile.
Measured
    ``steps_without_sum``: the second variable saves 36 % of the CPU time of a fit in the median (25
    data sets of 300 to 5,000 samples; C = 1: 15 %, -1 to 71 %; C = 100: 69 %, 10 to 94 %).
    The inner functions take arrays one by one: a tuple of arrays costs a reference count for each
    array at each call, which takes longer than a short loop. A slice costs one, too, so they take
    whole arrays and where a part of them begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmbench.base.compiled import compiled, wide_vectors
from svmbench.core.contract.base import BY_GAP, NO_MARGIN
from svmbench.core.csvc.problem import (
    QPProblem,
    duality_gap,
    larger,
    threshold,
)
from svmbench.core.kernels.lazy_matrix import LazyMatrix, compute_row
from svmbench.core.kernels.rows import subtract_rows
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.cholesky import cholesky, solve_cholesky
from svmbench.core.numeric.submatrix import copy_part

#: Samples in one piece of a search for the sample that has the best value.
SELECTION_PIECE = 256

#: A candidate j has its score in the upper bits of an integer, and LAST_J - j in the lower ones.
INDEX_BITS, LAST_J = 32, 2**31 - 1

#: LIBSVM's TAU: it replaces the curvature of a pair if that is smaller.
MIN_CURVATURE = 1e-12

#: Stop reasons. ``ROWS_MISSING``: the caller makes kernel values, then steps go on. ``pairs`` needs
#: some runs of rows; ``working_sets`` and a lazy matrix need the full matrix. In ``pairs`` it also
#: marks a pair that has not started, or that goes on after a check; then no run need be missing.
CONVERGED, MAX_ITER, STALLED, GAP, NO_MARGIN_CODE, ROWS_MISSING = 0, 1, 2, 3, 4, 5

#: The stop reasons in words. `NO_MARGIN`: rho may be 0 (``solver``). ``ROWS_MISSING`` has none,
#: since it ends no search.
STOP_REASONS = ("converged", "max_iter", "stalled", BY_GAP, NO_MARGIN)

#: Returned instead of a stop reason: take another step.
NOT_YET = -1

#: The value of `max_gap` with which a search does not test the duality gap.
NO_GAP_TEST = -1.0

#: Problems with fewer samples are not shrunk: a copy costs more than the steps that it saves.
SHRINK_MIN_SAMPLES = 1000

#: Steps between two tests of the duality gap. First: with at least `SHRINK_MIN_SAMPLES` samples; a
#: test may also shrink them. Second: with fewer, which are never shrunk; their fits are shorter.
LOOK_STEPS, LOOK_STEPS_FEW_SAMPLES = 100, 50

#: Shrink only if at most this share of the active samples remains; otherwise a copy doesn't pay.
SHRINK_MAX_SHARE = 0.7

#: Time to add one kernel value's term to a gradient, in units of the time to copy one value.
RECONSTRUCTION_COST = 0.3

#: Newton steps move at most this many free variables.
NEWTON_MAX_FREE = 2048

#: Costs in updates of a gradient by one kernel value: of a Newton step, times the cube of the
#: number of free variables; of a pair step, beside its samples.
NEWTON_COST, PAIR_COST = 0.1, 1000.0

#: Largest number of systems of one Newton step.
NEWTON_PIVOTS = 8

#: With fewer than `SHRINK_MIN_SAMPLES` samples, pair steps before Newton steps may be taken.
NEWTON_LOOK_STEPS = 250

#: The ridge of a Newton step's matrix, in roundings of its trace; tries, each ten times as large.
RIDGE_ROUNDINGS, RIDGE_TRIES = 1.0, 6


class Bounds(NamedTuple):
    """Lower and upper bounds of the variables."""

    low: np.ndarray
    high: np.ndarray


class StoppingCriteria(NamedTuple):
    """The criteria that end a search, or a part of one."""

    tol: float  # largest violation m(alpha) - M(alpha)
    max_iter: int  # largest number of steps
    max_gap: float = NO_GAP_TEST  # largest duality gap


@compiled
def why_stop(violation: float, steps: int, j: int, criteria: StoppingCriteria) -> int:
    """Return the stop reason after the selection of a working set, or ``NOT_YET``.

    `violation` is m - M; j is -1 if no score is above 0: in float32, scores can underflow.
    """
    if violation <= criteria.tol:
        return CONVERGED
    if steps >= criteria.max_iter:
        return MAX_ITER
    return STALLED if j < 0 else NOT_YET


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


def steps_on_matrix(
    K: np.ndarray,
    problem: QPProblem,
    criteria: StoppingCriteria,
    beta: np.ndarray,
    v: np.ndarray,
    lazy: LazyMatrix | None = None,
) -> tuple[int, int]:
    """Take steps that keep the problem's sums, until the violation is at most ``criteria.tol``.

    `beta` and `v`, a feasible start and its gradient, are changed in place. The duality gap is not
    tested. If K is the matrix of `lazy`, a row is computed when a step first reads it; this needs a
    fixed sum. Return the number of steps and the stop reason.
    """
    # A lazy matrix has an RBF kernel: K_ii = 1.
    diag = np.ones(len(v), K.dtype) if lazy is not None else np.ascontiguousarray(K.diagonal())
    diag, K = raw(diag), raw(K)
    bounds = Bounds(problem.low, problem.high)
    if problem.n_sums == 1:
        return pair_steps(K, diag, bounds, criteria, beta, v, lazy)
    if problem.n_sums == 0:
        return steps_without_sum(K, diag, bounds, criteria, beta, v)
    return grouped_steps(K, diag, problem.group, bounds, criteria, beta, v, lazy)


@compiled
def up_low_penalties(
    low: np.ndarray, high: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return `up` (0 in I_up, else -inf) and `down` (the same of I_low), float32 of shape (n,)."""
    n = len(beta)
    up, down = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    for k in range(n):
        up[k] = 0.0 if beta[k] < high[k] else -np.inf
        down[k] = 0.0 if beta[k] > low[k] else -np.inf
    return up, down


@compiled
def update_gradient(
    v: np.ndarray,
    up: np.ndarray,
    begin: int,
    end: int,
    values: np.ndarray,
    row_i: int,
    row_j: int,
    t: float,
) -> float:
    """Do v -= t (K_i - K_j) for the variables from `begin` to `end`; return m: max of v over I_up.

    `row_i` and `row_j` are where their values of the kernel rows of the last pair begin in the flat
    array `values`; t is the step of this pair. With t = 0, v stays. Without I_up, m is -inf.
    """
    wide_vectors()
    m = -np.inf
    at, first, second = np.uint64(begin), np.uint64(row_i), np.uint64(row_j)
    for k in range(np.uint64(end - begin)):
        # v_k for the next step; outside I_up it is -inf for the maximum.
        change = t * (np.float64(values[first + k]) - np.float64(values[second + k]))
        w = v[at + k] - change
        v[at + k] = w
        m = larger(m, w + np.float64(up[at + k]))
    return m


@compiled
def select_i(v: np.ndarray, up: np.ndarray, begin: int, end: int, m: float) -> int:
    """Return the first i in I_up with v_i = m, the result of :func:`update_gradient`."""
    wide_vectors()
    i: Any = end
    start = begin
    while i == end and start < end:
        stop = min(start + SELECTION_PIECE, end)
        at = np.uint64(start)
        for k in range(np.uint64(stop - start)):
            i = min(i, np.int64(at + k) if v[at + k] == m else end)
        start = stop
    # Others with the same v may be outside I_up. (The test matters only if a gradient is NaN.)
    while i < end - 1 and v[i] + np.float64(up[i]) != m:
        i += 1
    return min(i, end - 1)


@compiled
def select_j(
    v: np.ndarray,
    down: np.ndarray,
    begin: int,
    end: int,
    values: np.ndarray,
    row: int,
    diag: np.ndarray,
    place: int,
    m: float,
    square: float,
) -> tuple[int, float]:
    """Return the best of the variables from `begin` to `end` by WSS 2; and the violation m - M.

    It has the upper 32 bits of its score, 0 if no j in I_low violates with i; :func:`chosen_j`
    reads j from it. The values of row i of K begin at ``values[row]``, and those of the diagonal,
    of the same type, at ``diag[place]``; m is v_i, `square` is K_ii.
    """
    wide_vectors()
    zero, tiny = np.float32(0.0), np.float32(MIN_CURVATURE)
    best: Any = np.int64(0)
    widest, last = -np.inf, np.int64(LAST_J - begin)
    at, kernel, others = np.uint64(begin), np.uint64(row), np.uint64(place)
    for k in range(np.uint64(end - begin)):
        # b_ij = m - v_j; -inf outside I_low.
        distance = (m - v[at + k]) + np.float64(down[at + k])
        widest = larger(widest, distance)
        d = larger(np.float32(distance), zero)
        # a_ij = K_ii + K_jj - 2 K_ij; the score is b_ij^2 / a_ij.
        K_ij = values[kernel + k]
        curvature = larger(np.float32(square + diag[others + k] - (K_ij + K_ij)), tiny)
        score = np.float32(d * (d / curvature))
        # Bits of numbers from 0 on have their order; of equal scores the first j is the largest.
        best = max(best, (np.int64(score.view(np.int32)) << INDEX_BITS) | (last - np.int64(k)))
    return best, widest


@compiled
def chosen_j(best: int) -> int:
    """Return j of :func:`select_j`, or -1 if no score is above 0."""
    return LAST_J - (best & LAST_J) if best >> INDEX_BITS > 0 else -1


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
    """Raise beta_i and lower beta_j by the best step t inside their bounds; return t.

    `slope` is v_i - v_j, `kernel` is (K_ii, K_jj, K_ij); `up` and `down` are updated. The second
    return value is False if t is so short that neither beta changes: the search has stalled.
    """
    # t = b_ij / a_ij; a curvature that is not positive counts as MIN_CURVATURE, as in LIBSVM.
    curvature = np.float64(kernel[0]) + np.float64(kernel[1]) - 2.0 * np.float64(kernel[2])
    t = slope / (curvature if curvature > MIN_CURVATURE else MIN_CURVATURE)
    before_i, before_j = beta[i], beta[j]
    # Cut t where the first variable reaches its bound, and set that variable exactly to the bound.
    room_i, room_j = high[i] - before_i, before_j - low[j]
    t = min(t, room_i, room_j)
    beta[i] = high[i] if t == room_i else before_i + t
    beta[j] = low[j] if t == room_j else before_j - t
    # Both may have entered or left I_up and I_low.
    for k in (i, j):
        up[k] = 0.0 if beta[k] < high[k] else -np.inf
        down[k] = 0.0 if beta[k] > low[k] else -np.inf
    return t, beta[i] != before_i or beta[j] != before_j


@compiled
def pair_steps(
    K: np.ndarray,
    diag: np.ndarray,
    bounds: Bounds,
    criteria: StoppingCriteria,
    beta: np.ndarray,
    v: np.ndarray,
    lazy: LazyMatrix | None = None,
) -> tuple[int, int]:
    """Take steps of two variables that keep the sum of all; return their number and the reason.

    `diag` is the diagonal of K, with K's dtype; `beta` and `v` are changed in place. If K is the
    matrix of `lazy`, a row is computed when a step first reads it.
    """
    low, high = bounds.low, bounds.high
    up, down = up_low_penalties(low, high, beta)
    n, values = len(beta), K.reshape(K.size)
    # A step of length 0 leaves the gradient as it is.
    i, j, t, steps = 0, 0, 0.0, 0
    while True:
        # update_gradient by the last step; select_working_set: i = argmax of v over I_up.
        m = update_gradient(v, up, 0, n, values, i * n, j * n, t)
        if m == -np.inf:
            return steps, CONVERGED
        i = select_i(v, up, 0, n, m)
        if lazy is not None:
            compute_row(lazy, i)
        # j = argmax of b_ij^2 / a_ij over the violating j of I_low; violation = m - M.
        best, violation = select_j(v, down, 0, n, values, i * n, diag, 0, m, diag[i])
        j = chosen_j(best)
        reason = why_stop(violation, steps, j, criteria)
        if reason != NOT_YET:
            return steps, reason
        if lazy is not None:
            compute_row(lazy, j)
        # solve_pair: the best step of beta_i and beta_j that keeps their sum.
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
    bounds: Bounds,
    criteria: StoppingCriteria,
    beta: np.ndarray,
    v: np.ndarray,
    lazy: LazyMatrix | None = None,
) -> tuple[int, int]:
    """Take steps that keep the sum of each group: each step takes the best pair of all groups.

    If samples are sorted by group, the loops of a group read its own run of samples only.
    """
    low, high = bounds.low, bounds.high
    n, n_sums = len(beta), np.max(group) + 1
    up, down = np.empty((n_sums, n), dtype=np.float32), np.empty((n_sums, n), dtype=np.float32)
    values = K.reshape(K.size)
    up[:], down[:] = -np.inf, -np.inf
    for k in range(n):
        up[group[k], k] = 0.0 if beta[k] < high[k] else -np.inf
        down[group[k], k] = 0.0 if beta[k] > low[k] else -np.inf
    # Where the samples of each group begin and end; of 0 and n, if they are not sorted.
    is_sorted = np.all(group[:-1] <= group[1:])
    begins, ends = np.zeros(n_sums, dtype=np.int64), np.full(n_sums, n)
    if is_sorted:
        begins = np.searchsorted(group, np.arange(n_sums))
        ends[:-1] = begins[1:]
    i, j, t, steps = 0, 0, 0.0, 0
    while True:
        last_i, last_j, last_t = i, j, t
        i, j, t = -1, -1, 0.0
        widest, most = -np.inf, 0
        for g in range(n_sums):
            # update_gradient by the last step, once for each sample; i, j of group g by WSS 2.
            begin, end = begins[g], ends[g]
            rows = last_i * n + begin, last_j * n + begin
            m = update_gradient(v, up[g], begin, end, values, rows[0], rows[1], last_t)
            if not is_sorted:
                last_t = 0.0
            if m == -np.inf:
                continue
            a = select_i(v, up[g], begin, end, m)
            if lazy is not None:
                compute_row(lazy, a)
            row = a * n + begin
            best, violation = select_j(v, down[g], begin, end, values, row, diag, begin, m, diag[a])
            widest = max(widest, violation)
            if best >> INDEX_BITS > most >> INDEX_BITS:
                i, j, most = a, chosen_j(best), best
        reason = why_stop(widest, steps, j, criteria)
        if reason != NOT_YET:
            return steps, reason
        if lazy is not None:
            compute_row(lazy, j)
        # solve_pair, inside one group.
        kernel, g = (diag[i], diag[j], K[i, j]), group[i]
        t, has_moved = solve_pair(i, j, v[i] - v[j], kernel, beta, low, high, up[g], down[g])
        if not has_moved:
            return steps, STALLED
        steps += 1


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
    """Do v -= ti K_i + tj K_j; return the variable that gains most by its own step; the violation.

    `inverse` has 1 / K_kk. The violation is max(m, 0) - min(M, 0): without a fixed sum, v = 0 is
    optimal for a free variable. The variable is -1 if no step of one variable gains anything.
    """
    wide_vectors()
    n = len(v)
    most_rise, most_fall, most, piece = 0.0, 0.0, 0.0, -1  # max(m, 0), -min(M, 0)
    for start in range(0, n, SELECTION_PIECE):
        stop = start + SELECTION_PIECE
        values, scale = v[start:stop], inverse[start:stop]
        first, second = rows[i, start:stop], rows[j, start:stop]
        raised, lowered = up[start:stop], down[start:stop]
        rise_here, fall_here, best = 0.0, 0.0, 0.0
        for k in range(len(values)):
            w = values[k] - (ti * np.float64(first[k]) + tj * np.float64(second[k]))
            values[k] = w
            rise, fall = w + np.float64(raised[k]), np.float64(lowered[k]) - w
            rise_here, fall_here = larger(rise_here, rise), larger(fall_here, fall)
            # The own best step of k, v_k / K_kk, gains v_k^2 / (2 K_kk); 0 where a bound stops it.
            d = larger(larger(rise, fall), 0.0)
            best = larger(best, d * (d * scale[k]))
        most_rise, most_fall = max(most_rise, rise_here), max(most_fall, fall_here)
        if best > most:
            most, piece = best, start
    if piece < 0:
        return -1, most_rise + most_fall
    # Find the variable that has the best value. (If a gradient is NaN, there may be none.)
    found, stop = n - 1, piece + SELECTION_PIECE
    values, scale = v[piece:stop], inverse[piece:stop]
    raised, lowered = up[piece:stop], down[piece:stop]
    for k in range(len(values)):
        rise, fall = values[k] + np.float64(raised[k]), np.float64(lowered[k]) - values[k]
        d = larger(larger(rise, fall), 0.0)
        found = min(found, piece + k if d * (d * scale[k]) == most else n - 1)
    return found, most_rise + most_fall


@compiled
def select_second(
    v: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    row: np.ndarray,
    diag: np.ndarray,
    i: int,
) -> int:
    """Return j that gains most after i's own best step; -1 if none gains, or if it is i (rounding).

    After that step, j has the gradient r_j = v_j - v_i K_ij / K_ii; with i at its best for every
    value of beta_j, the curvature for j is K_jj - K_ij^2 / K_ii.
    """
    wide_vectors()
    n = len(v)
    zero, tiny = np.float32(0.0), np.float32(MIN_CURVATURE)
    inverse = 1.0 / max(np.float64(diag[i]), MIN_CURVATURE)
    scaled, inverse_float32 = v[i] * inverse, np.float32(inverse)
    best = np.int64(0)
    for k in range(n):
        r = np.float32(v[k] - scaled * np.float64(row[k]))
        d = larger(larger(r + up[k], down[k] - r), zero)
        c = np.float32(row[k])
        curvature = larger(np.float32(diag[k]) - c * (c * inverse_float32), tiny)
        score = np.float32(d * (d / curvature))
        best = max(best, (np.int64(score.view(np.int32)) << INDEX_BITS) | (LAST_J - np.int64(k)))
    j = chosen_j(best)
    return -1 if j == i else j


@compiled
def solve_two(
    g: tuple[float, float],
    K: tuple[float, float, float],
    least: tuple[float, float],
    most: tuple[float, float],
) -> tuple[float, float]:
    """Return the maximiser of ``g'x - 1/2 x'Kx`` in a box of two variables that contains 0.

    K is (K_11, K_22, K_12), the first two above 0; the box is `least` <= x <= `most`.
    """
    a, b, c = K
    determinant = a * b - c * c
    if determinant > MIN_CURVATURE * a * b:
        x, y = (g[0] * b - g[1] * c) / determinant, (g[1] * a - g[0] * c) / determinant
        if least[0] <= x <= most[0] and least[1] <= y <= most[1]:
            return x, y
    # Otherwise the maximiser is on one of the four edges of the box.
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
def move_variable(
    i: int,
    step: float,
    beta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
) -> float:
    """Move beta_i by `step`, or to the bound if the step reaches it; return the change."""
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


@compiled
def steps_without_sum(
    K: np.ndarray,
    diag: np.ndarray,
    bounds: Bounds,
    criteria: StoppingCriteria,
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take steps where no sum is fixed: of one variable, or of two if the second gains, too."""
    low, high = bounds.low, bounds.high
    n = len(beta)
    up, down = up_low_penalties(low, high, beta)
    inverse = np.empty(n)
    for k in range(n):
        inverse[k] = 1.0 / max(np.float64(diag[k]), MIN_CURVATURE)
    i, j, ti, tj, steps = 0, 0, 0.0, 0.0, 0
    while True:
        # update_gradient by the last step; i = the variable whose own best step gains most.
        i, violation = update_gradient_select_first(v, up, down, inverse, K, i, j, ti, tj)
        reason = why_stop(violation, steps, i, criteria)
        if reason != NOT_YET:
            return steps, reason
        # j = the variable that gains most once i has taken its step.
        j = select_second(v, up, down, K[i], diag, i)
        before_i = beta[i]
        if j < 0:
            # i alone: t_i = v_i / K_ii.
            j, tj, before_j = i, 0.0, beta[i]
            ti = move_variable(i, v[i] * inverse[i], beta, low, high, up, down)
        else:
            before_j = beta[j]
            a, b = max(np.float64(diag[i]), MIN_CURVATURE), max(np.float64(diag[j]), MIN_CURVATURE)
            # Both variables' best step together, inside their bounds.
            x, y = solve_two(
                (v[i], v[j]),
                (a, b, np.float64(K[i, j])),
                (low[i] - beta[i], low[j] - beta[j]),
                (high[i] - beta[i], high[j] - beta[j]),
            )
            ti = move_variable(i, x, beta, low, high, up, down)
            tj = move_variable(j, y, beta, low, high, up, down)
        if beta[i] == before_i and beta[j] == before_j:
            return steps, STALLED
        steps += 1


@compiled
def newton_direction(
    A: np.ndarray, group: np.ndarray, slope: np.ndarray, sums: np.ndarray, rounding: float
) -> np.ndarray:
    """Return the step d of some variables to their best values, bounds left aside.

    It maximises ``slope'd - 1/2 d'A d`` where d has the given sum over each group: A d + E mu =
    slope, E'd = sums (E marks the groups). Without a definite A, or a variable of each group that
    has to move, d is empty. `rounding` is that of A's values, relative.
    """
    m, n_sums = len(slope), len(sums)
    L, d = np.empty((m, m)), slope.copy()
    # Kernel values are rounded, and the matrix may be singular: a ridge makes it definite.
    ridge = RIDGE_ROUNDINGS * rounding * np.trace(A)
    for _ in range(RIDGE_TRIES):
        L[:] = A
        for a in range(m):
            L[a, a] += ridge
        if cholesky(L):
            break
        ridge *= 10.0
    else:
        return np.empty(0)
    solve_cholesky(L, d)
    # S mu = E' A^-1 slope - sums with S = E' A^-1 E; a group without a variable has mu = 0.
    E, S, mu, counts = np.zeros((n_sums, m)), np.zeros((n_sums, n_sums)), -sums, np.zeros(n_sums)
    for a in range(m):
        E[group[a], a] = 1.0
        mu[group[a]] += d[a]
        counts[group[a]] += 1.0
    for g in range(n_sums):
        solve_cholesky(L, E[g])
        for a in range(m):
            S[group[a], g] += E[g, a]
        if S[g, g] == 0.0:
            S[g, g] = 1.0
            if sums[g] != 0.0:
                return np.empty(0)
    if not cholesky(S):
        return np.empty(0)
    solve_cholesky(S, mu)
    off = sums.copy()
    for a in range(m):
        for g in range(n_sums):
            d[a] -= mu[g] * E[g, a]
        off[group[a]] -= d[a]
    for a in range(m):
        # The sums are right but for rounding.
        d[a] += off[group[a]] / counts[group[a]]
    return d


@compiled
def first_bound(d: np.ndarray, room: tuple[np.ndarray, np.ndarray]) -> tuple[float, int]:
    """Return the longest step along d, at most 1, and the variable that limits it, or -1."""
    t, first = 1.0, -1
    for a in range(len(d)):
        if d[a] != 0.0:
            most = (room[1][a] if d[a] > 0.0 else room[0][a]) / d[a]
            if most < t:
                t, first = most, a
    return t, first


@compiled
def gain_of(A: np.ndarray, slope: np.ndarray, change: np.ndarray) -> float:
    """Return the increase of the objective by a change of the free variables."""
    curvature = 0.0
    for a in range(len(change)):
        if change[a] != 0.0:
            curvature += change[a] * np.dot(A[a], change)
    return np.dot(slope, change) - 0.5 * curvature


@compiled
def block_change(
    A: np.ndarray,
    group: np.ndarray,
    n_sums: int,
    slope: np.ndarray,
    room: tuple[np.ndarray, np.ndarray],
    rounding: float,
) -> tuple[np.ndarray, int, float]:
    """Return a change of the free variables, the one that cuts it short (-1: none), and its cost.

    Variables that would cross a bound are fixed there, and the rest is solved again until none
    crosses (block pivoting, Júdice and Pires 1994). The step to the first bound is returned instead
    if it gains at least as much, if half or more of the variables are fixed, if a later system
    can't be solved, or after `NEWTON_PIVOTS` systems; the second value is then the variable that
    reaches its bound. The change is empty if the first system can't be solved. `room` has the least
    and the largest change of each variable; the cost is in the unit of `NEWTON_COST`.
    """
    m, work, step, first = len(slope), 0.0, np.empty(0), -1
    change, inside = np.zeros(m), np.arange(m)
    for pivot in range(NEWTON_PIVOTS):
        work += NEWTON_COST * len(inside) ** 3
        sums, right = np.zeros(n_sums), slope[inside]
        if pivot > 0:
            for a in range(m):
                sums[group[a]] -= change[a]
            for a in range(len(inside)):
                right[a] -= np.dot(A[inside[a]], change)
        part = A if pivot == 0 else block_of(A, inside, inside)
        d = newton_direction(part, group[inside], right, sums, rounding)
        if len(d) == 0:
            break
        if pivot == 0:
            t, first = first_bound(d, room)
            step = t * d
            if first < 0:
                break
        stays = np.ones(len(inside), dtype=np.bool_)
        for a in range(len(inside)):
            k = inside[a]
            moved = min(max(d[a], room[0][k]), room[1][k])
            if moved != d[a]:
                stays[a], change[k] = False, moved
        if np.all(stays):
            change[inside] = d
            if gain_of(A, slope, change) > gain_of(A, slope, step):
                return change, -1, work
            break
        inside = inside[stays]
        if 2 * len(inside) <= m:
            break
    return step, first, work


@compiled
def newton_steps(
    K: np.ndarray,
    group: np.ndarray,
    n_sums: int,
    bounds: Bounds,
    variables: tuple[np.ndarray, np.ndarray],
    work: float,
    most_steps: int,
) -> tuple[int, float]:
    """Take Newton steps of all free variables; return their number and the work that is left.

    The last step is one that no single bound cuts short (`block_change`): it puts each free
    variable on a bound or on its best value. After a step cut at the first bound, the next one is
    over the variables still free. Steps end earlier if the next one would cost more than the work
    that is left, has too many or too few variables, or would not raise the objective. `variables`
    are beta and v, changed in place; `work`, the cost that steps may have, is in updates of a
    gradient by a kernel value.
    """
    (beta, v), low, high, steps = variables, bounds.low, bounds.high, 0
    while steps < most_steps:
        free = np.flatnonzero((low < beta) & (beta < high))
        m = len(free)
        if m <= n_sums or m > NEWTON_MAX_FREE or NEWTON_COST * m * m * m + m * len(v) > work:
            return steps, work
        A, slope = np.empty((m, m)), v[free]
        for a in range(m):
            row = K[free[a]]
            for b in range(m):
                A[a, b] = row[free[b]]
        room, rounding = (low[free] - beta[free], high[free] - beta[free]), np.finfo(K.dtype).eps
        change, first, cost = block_change(A, group[free], n_sums, slope, room, rounding)
        work -= cost + m * len(v)
        if len(change) == 0 or not np.dot(slope, change) > 0.0:
            return steps, work
        for a in range(m):
            k, before = free[a], beta[free[a]]
            beta[k] = min(max(before + change[a], low[k]), high[k])
            if a == first or (first < 0 and change[a] in (room[0][a], room[1][a])):
                beta[k] = high[k] if change[a] > 0.0 else low[k]
            moved, row = beta[k] - before, K[k]
            for q in range(len(v)):
                v[q] -= moved * np.float64(row[q])
        steps += 1
        if first < 0:
            break
    return steps, work


class ActivePart(NamedTuple):
    """The active samples: copies of their values; views if all samples are active."""

    members: np.ndarray  # int (m,): positions of the active samples in the problem
    group: np.ndarray  # int (m,): the fixed sum that each is part of
    low: np.ndarray  # (m,), like high, beta and v
    high: np.ndarray
    beta: np.ndarray
    v: np.ndarray


@compiled
def steps_between_checks(n: int) -> int:
    """Return the number of steps between two tests of the duality gap or shrinking, n samples."""
    return LOOK_STEPS if n >= SHRINK_MIN_SAMPLES else LOOK_STEPS_FEW_SAMPLES


@compiled
def shrinking_steps(
    K: np.ndarray,
    diag: np.ndarray,
    bounds: Bounds,
    criteria: StoppingCriteria,
    beta: np.ndarray,
    v: np.ndarray,
    group: np.ndarray,
) -> tuple[int, int]:
    """Take :func:`pair_steps`; with `SHRINK_MIN_SAMPLES` samples or more, shrink on the way.

    Stop once the duality gap is at most ``criteria.max_gap``, which needs exactly one fixed sum. If
    `group` (n,) numbers several, take :func:`grouped_steps` and, where pair steps have taken as
    long, Newton steps of the free variables.
    """
    low, high = bounds.low, bounds.high
    n_sums = np.max(group) + 1 if len(group) else 1
    tol, max_iter, max_gap = criteria.tol, criteria.max_iter, criteria.max_gap
    n, steps, wasted_updates = len(beta), 0, 0.0
    look, work = steps_between_checks(n), 0.0
    if max_gap < 0.0 and n < SHRINK_MIN_SAMPLES:
        look = max_iter if n_sums == 1 else NEWTON_LOOK_STEPS
    # All samples, as views: steps on them act on beta and v.
    whole = ActivePart(np.arange(n), group, low, high, beta, v)
    # values, diagonal: those of the part's matrix. before: beta when v of all was last up to date.
    # wasted_updates: updates of v at samples to shrink since the last copy; each costs as much as
    # copying a value.
    part, values, diagonal, is_whole, before = whole, K, diag, True, beta.copy()
    while True:
        reason = NOT_YET
        # Test the duality gap, if asked to; v of shrunk samples may be out of date.
        if max_gap >= 0.0:
            if not is_whole:
                write_back(part, beta, v)
            if duality_gap(low, high, beta, v, threshold(low, high, beta, v)) <= max_gap:
                reason = GAP
        if reason != GAP:
            # Steps among the active samples, until the next test.
            some = StoppingCriteria(tol, min(look, max_iter - steps), max_gap)
            part_bounds = Bounds(part.low, part.high)
            if n_sums == 1:
                taken, reason = pair_steps(values, diagonal, part_bounds, some, part.beta, part.v)
            else:
                taken, reason = grouped_steps(
                    values, diagonal, part.group, part_bounds, some, part.beta, part.v
                )
            steps += taken
            if n_sums > 1 and reason == MAX_ITER and steps < max_iter:
                work += taken * (2.0 * len(part.v) + PAIR_COST)
                variables = part.beta, part.v
                more, work = newton_steps(
                    values, part.group, n_sums, part_bounds, variables, work, max_iter - steps
                )
                steps += more
        if reason != MAX_ITER or steps >= max_iter:
            if is_whole:
                return steps, reason
            # Steps on the active samples ended: reconstruct v, and go on with all samples.
            write_back(part, beta, v)
            reconstruct_gradient(K, part.members, before, beta, v)
            part, values, diagonal, is_whole, wasted_updates = whole, K, diag, True, 0.0
        elif n >= SHRINK_MIN_SAMPLES:
            # shrink, once wasted_updates cost as much as the copy (m x m values) and a later
            # reconstruction of v. If some are shrunk already, reconstruct their v first: all shrunk
            # samples share `before`.
            stays = not_shrunk(part, n_sums)
            m = np.count_nonzero(stays)
            wasted_updates += taken * (len(stays) - m)
            if m <= SHRINK_MAX_SHARE * len(stays) and wasted_updates >= m * (
                m + RECONSTRUCTION_COST * n
            ):
                if not is_whole:
                    write_back(part, beta, v)
                    reconstruct_gradient(K, part.members, before, beta, v)
                before[:] = beta
                kept = np.flatnonzero(stays)
                values, diagonal, is_whole, wasted_updates = (
                    block_of(values, kept, kept),
                    diagonal[kept],
                    False,
                    0.0,
                )
                low_kept, high_kept = part.low[kept], part.high[kept]
                beta_kept, v_kept = part.beta[kept], part.v[kept]
                places, group_kept = part.members[kept], part.group[kept]
                part = ActivePart(places, group_kept, low_kept, high_kept, beta_kept, v_kept)


@compiled
def not_shrunk(part: ActivePart, n_sums: int) -> np.ndarray:
    """Mark the samples to keep: free, or at a bound with v inside [M, m] of their group.

    As in Chang and Lin 2011, section 5.1, a sample is shrunk if it is only in I_up and v < M, or
    only in I_low and v > m.
    """
    low, high, beta, v = part.low, part.high, part.beta, part.v
    ms, Ms = np.full(n_sums, -np.inf), np.full(n_sums, np.inf)
    for k in range(len(v)):
        g = part.group[k]
        ms[g] = max(ms[g], v[k] if beta[k] < high[k] else -np.inf)
        Ms[g] = min(Ms[g], v[k] if beta[k] > low[k] else np.inf)
    stays = np.empty(len(v), dtype=np.bool_)
    for k in range(len(v)):
        m, M = ms[part.group[k]], Ms[part.group[k]]
        rises, falls = beta[k] < high[k], beta[k] > low[k]  # in I_up, in I_low
        stays[k] = (rises & falls) | (rises & (v[k] >= M)) | (falls & (v[k] <= m))
    return stays


@compiled
def block_of(rows: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``rows[slots][:, columns]``."""
    block = np.empty((len(slots), len(columns)), dtype=rows.dtype)
    copy_part(rows, slots, columns, block)
    return block


@compiled
def write_back(part: ActivePart, beta: np.ndarray, v: np.ndarray) -> None:
    """Write beta and v of a part to the arrays of all samples."""
    for k in range(len(part.members)):
        beta[part.members[k]] = part.beta[k]
        v[part.members[k]] = part.v[k]


@compiled
def reconstruct_gradient(
    K: np.ndarray, members: np.ndarray, before: np.ndarray, beta: np.ndarray, v: np.ndarray
) -> None:
    """Reconstruct the gradient of shrunk samples: v -= K (beta - before).

    `members`, the active samples, have their gradient already. `beta` is copied to `before`.
    """
    right = v[members]  # up to date already: put back below
    moved = np.flatnonzero(beta != before)
    subtract_rows(K, moved, beta[moved] - before[moved], v, 0, len(v))
    v[members] = right
    before[:] = beta
