"""Steps inside working sets of several hundred samples: the form for many samples.

Problem
    That of ``problem``.
Given
    A maker of kernel rows, and a start with its gradient v = p - K beta.
Returned
    beta and v in place, and why it stopped: m(alpha) - M(alpha) <= tol for active samples, or else.
Each loop (``WorkingSetSearch.run``) calls
    shrink              drop samples that can't change any more, where that pays
    select_working_set  half of the last set, and samples from both ends of v
    compute_block       the kernel values between the samples of the set
    solve_working_set   steps of ``smo`` inside the set, on its block
    update_gradient     v -= sum_q t_q K_q over the samples of the set that moved
Reference
    Joachims 1999: working sets from both ends of the gradient, shrinking. Wen et al. 2018
    (ThunderSVM): large sets, half of which is renewed, first in first out.
Deviations
    - The inner problem is solved by the second-order steps of ``smo``, to a tenth of the violation.
    - Rows have the columns of active samples alone, and are cut when samples are shrunk.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from svmbench.core.csvc.problem import QPProblem, UpLowSets, gap_of_problem, up_low_sets
from svmbench.core.csvc.smo import (
    CONVERGED,
    GAP,
    MAX_ITER,
    NO_GAP_TEST,
    NOT_YET,
    ROWS_MISSING,
    STALLED,
    StoppingCriteria,
    block_of,
    steps_on_matrix,
)
from svmbench.core.kernels.kernels import MIB, ThreadPool
from svmbench.core.kernels.rows import PIECE_COLUMNS, SPAN, RowCache, Rows, subtract_rows

#: Columns of rows that are used once: a block of them stays in the second-level cache. A multiple
#: of the width of the products behind them, so that threads change no product's shape: another
#: shape can have another last bit.
PASSING_COLUMNS = PIECE_COLUMNS

#: Samples of a working set; twice as many if more multipliers than that are free. The steps in a
#: small set undo those of free multipliers in the last one.
SET_SAMPLES = 512

#: The free multipliers are settled once less than SETTLED_CHANGE of them changed over SETTLED_SETS
#: working sets. The next set then has SETTLED_ROOM times their number of samples, so that it holds
#: them all; if less than half of SETTLED_CHANGE changed, it has all active samples.
SETTLED_CHANGE, SETTLED_SETS, SETTLED_ROOM = 0.1, 4, 1.3

#: Samples of the largest set; share of `cache_mb` for its kernel values, or for a full matrix.
SET_MAX_SAMPLES, SET_MAX_MEMORY = 4096, 0.25

#: Once more than this share of all samples is free, ask for the full matrix, up to so many samples:
#: working sets would compute and copy most of its values several times.
MATRIX_MIN_FREE, MATRIX_MAX_SAMPLES = 0.5, 8192

#: Share of a working set that stays in the next.
SET_KEPT = 0.5

#: Rows are cut once at most this share of their columns is still active.
CUT_MAX_SHARE = 0.7

#: Tolerance of the inner problem: this share of the violation, and of the tolerance where the inner
#: problem is the last.
INNER_TOL, LAST_TOL = 0.1, 0.9


def subtract_kernel(
    rows: Rows,
    samples: np.ndarray,
    factors: np.ndarray,
    columns: Any,
    v: np.ndarray,
    pool: ThreadPool,
) -> None:
    """Take ``factors @ K[samples][:, columns]`` off `v`, by rows that are never written out."""

    def take_off(first: int, end: int) -> None:
        rows.take_off(samples, factors, columns, (first, end), v)

    rows.share(pool, len(v), PASSING_COLUMNS, take_off)


class ActiveSamples:
    """The samples that still take part, with their problem, beta and v side by side.

    `members` are their positions in the whole problem, ascending; `finish` brings the beta and v of
    the whole problem, which are handed in, up to date.
    """

    def __init__(
        self, members: np.ndarray, problem: QPProblem, beta: np.ndarray, v: np.ndarray
    ) -> None:
        self.members = members
        self.problem, self.beta, self.v = problem.take(members), beta[members], v[members]
        self._whole_problem, self._whole_beta, self._whole_v = problem, beta, v
        outside = np.ones(len(v), dtype=bool)
        outside[members] = False
        self._shrunk = [(np.flatnonzero(outside), beta.copy())]

    def up_low_sets(self) -> UpLowSets:
        """Return I_up and I_low with their gradient, m(alpha) and M(alpha)."""
        return up_low_sets(self.problem, self.beta, self.v)

    def duality_gap(self) -> float:
        """Return the duality gap of all samples; v of shrunk ones may be out of date."""
        self._write_back()
        return gap_of_problem(self._whole_problem, self._whole_beta, self._whole_v)

    def shrink(self, stays: np.ndarray) -> None:
        """Drop the samples where `stays` is False; their gradient is no longer updated."""
        self._write_back()
        self._shrunk.append((self.members[~stays], self._whole_beta.copy()))
        kept = np.flatnonzero(stays)
        self.members, self.problem = self.members[kept], self.problem.take(kept)
        self.beta, self.v = self.beta[kept], self.v[kept]

    def _write_back(self) -> None:
        self._whole_beta[self.members], self._whole_v[self.members] = self.beta, self.v

    def finish(self, rows: Rows, pool: ThreadPool) -> None:
        """Write beta and v back, and reconstruct the gradient of the samples that were shrunk."""
        self._write_back()
        for members, before in self._shrunk:
            # v -= sum_q (beta_q - before_q) K_q over the samples that moved since.
            change = self._whole_beta - before
            moved = np.flatnonzero(change)
            if not len(members) or not len(moved):
                continue
            v = self._whole_v[members]
            subtract_kernel(rows, moved, change[moved], rows.columns(members), v, pool)
            self._whole_v[members] = v
        self._shrunk.clear()


def least_finite(values: np.ndarray, wanted: int) -> np.ndarray:
    """Return the positions of the `wanted` least finite values."""
    if wanted >= len(values):
        return np.flatnonzero(np.isfinite(values))
    least = np.argpartition(values, wanted)[:wanted]
    return least[np.isfinite(values[least])]


def from_both_ends(
    v_up: np.ndarray, v_low: np.ndarray, kept: np.ndarray, wanted: int
) -> np.ndarray:
    """Return `wanted` members beside `kept`, half from each end; v_up and v_low are overwritten."""
    v_up[kept], v_low[kept] = -np.inf, np.inf
    top = least_finite(-v_up, wanted // 2)
    v_low[top] = np.inf
    return np.concatenate([top, least_finite(v_low, wanted - len(top))])


class WorkingSetSearch:
    """One run over the active samples, which shrinks them on the way.

    Values, and so steps, are the same whatever the number of threads.
    """

    def __init__(
        self, rows: Rows, active: ActiveSamples, tol: float, cache_mb: float, pool: ThreadPool
    ) -> None:
        self.rows, self.active, self.tol, self.pool = rows, active, tol, pool
        n = len(active.members)
        self.row_cache = RowCache(rows.n_samples, n, cache_mb, dtype=rows.dtype)
        self.columns = rows.columns(None if n == rows.n_samples else active.members)
        # The working set, as positions among the active samples, and its kernel values.
        self.working = np.empty(0, dtype=np.int64)
        self.block = np.empty((0, 0), dtype=rows.dtype)
        held = math.isqrt(int(SET_MAX_MEMORY * cache_mb * MIB / rows.diagonal.itemsize))
        self.largest = max(2 * SET_SAMPLES, min(SET_MAX_SAMPLES, held))
        self.may_end_on_matrix = rows.n_samples <= min(MATRIX_MAX_SAMPLES, held)
        self.steps = self.sets = 0
        # Why the steps inside the last set stopped. After no step at all: ``CONVERGED`` if the set
        # has no pair that violates, else float32 gets no further.
        self.inner_reason = CONVERGED
        # The number of multipliers that moved in the last set. The cost per column of updating
        # samples that could be shrunk, in units of reading a stored value.
        self.moved, self.carried = 0, 0.0
        # The samples whose multipliers were free before the last sets, the oldest first.
        self.free: deque[np.ndarray] = deque(maxlen=SETTLED_SETS + 1)

    def run(self, max_iter: int, max_gap: float = NO_GAP_TEST) -> int:
        """Solve working sets until the violation is at most `tol`; return the stop reason.

        ``ROWS_MISSING`` asks for the full matrix. If `max_gap` is not negative, the search ends
        once the duality gap, with gradients of shrunk samples maybe out of date, is at most that.
        """
        while True:
            at = self.active.up_low_sets()
            reason = self.why_stop(at, max_iter, max_gap)
            if reason != NOT_YET:
                return reason
            if self.sets and self.shrink(at):
                at = self.active.up_low_sets()
            n_stay = self.select_working_set(at)
            self.compute_block(n_stay)
            steps, before = self.steps, self.active.beta[self.working]
            self.inner_reason = self.solve_working_set(at.violation, max_iter - steps)
            self.update_gradient(before)
            if self.steps == steps:
                return STALLED

    def why_stop(self, at: UpLowSets, max_iter: int, max_gap: float) -> int:
        """Return the reason to end the search before the next set, or ``NOT_YET``."""
        if at.violation <= self.tol:
            return CONVERGED
        if max_gap >= 0.0 and self.active.duality_gap() <= max_gap:
            return GAP
        if self.steps >= max_iter:
            return MAX_ITER
        n_free = np.count_nonzero(np.isfinite(at.v_up) & np.isfinite(at.v_low))
        if self.may_end_on_matrix and n_free > MATRIX_MIN_FREE * self.rows.n_samples:
            # The full matrix is wanted.
            return ROWS_MISSING
        return NOT_YET

    def shrink(self, at: UpLowSets) -> bool:
        """Drop samples at a bound with a gradient outside [M, m], if it pays; return True if so.

        The gradient of a shrunk sample must be reconstructed at the end, with a kernel value for
        each multiplier that has moved meanwhile. So the sample is carried until that cost as much.
        """
        v = self.active.v
        goes_up, goes_down = np.isfinite(at.v_up), np.isfinite(at.v_low)
        stays = (goes_up & goes_down) | (goes_up & (v >= at.M)) | (goes_down & (v <= at.m))
        if np.count_nonzero(stays) > CUT_MAX_SHARE * len(stays):
            self.carried = 0.0
            return False
        if self.carried < self.rows.effort * (np.count_nonzero(goes_up & goes_down) + self.moved):
            return False
        self.drop(stays)
        self.carried = 0.0
        return True

    def drop(self, stays: np.ndarray) -> None:
        """Shrink the active samples where `stays` is False: cut rows, block and working set."""
        is_kept = np.zeros(self.rows.n_samples, dtype=bool)
        is_kept[self.active.members[stays]] = True
        self.row_cache.cut(np.flatnonzero(stays), is_kept)
        left = np.flatnonzero(stays[self.working])
        self.block = self.block[np.ix_(left, left)]
        self.working = (np.cumsum(stays) - 1)[self.working[left]]
        self.active.shrink(stays)
        self.columns = self.rows.columns(self.active.members)

    def select_working_set(self, at: UpLowSets) -> int:
        """Select the younger half of the last working set, and new samples from both ends of v.

        Return how many stay from the last set: they are the first ones.
        """
        n = len(self.active.members)
        v_up, v_low = at.v_up, at.v_low
        self.free.append(self.active.members[np.isfinite(v_up) & np.isfinite(v_low)])
        if self.active.problem.n_sums > 1:
            # Of several groups compare violations: gradients differ by the groups' thresholds.
            v_up, v_low = v_up - at.M, v_low - at.m
        size = min(n, self.next_size(n))
        n_leave = max(0, len(self.working) - int(size * SET_KEPT)) if size < n else 0
        stay = self.working[n_leave:]
        new = from_both_ends(v_up, v_low, stay, size - len(stay))
        if size == n:
            # The set has all active samples: add those that neither end has chosen.
            new = np.concatenate([new, np.setdiff1d(np.arange(n), np.concatenate([stay, new]))])
        self.working = np.concatenate([stay, new])
        return len(stay)

    def next_size(self, n: int) -> int:
        """Return the size of the next set, of `n` active samples."""
        free, before = self.free[-1], self.free[0]
        changed = len(np.setxor1d(free, before, assume_unique=True)) / max(1, len(free))
        if len(self.free) <= SETTLED_SETS or changed >= SETTLED_CHANGE:
            return SET_SAMPLES if len(free) <= SET_SAMPLES else 2 * SET_SAMPLES
        if n <= self.largest and changed < 0.5 * SETTLED_CHANGE:
            return n
        return min(self.largest, max(2 * SET_SAMPLES, int(SETTLED_ROOM * len(free))))

    def compute_block(self, n_stay: int) -> None:
        """Compute the kernel values between the samples of the set.

        The first `n_stay` samples stay from the last set, where they were the last: copy their
        values. Rows of the other samples are copied from the row cache if it has them.
        """
        n, n_gone = len(self.working), len(self.block) - n_stay
        known, members = self.block[n_gone:, n_gone:], self.active.members
        self.block = np.empty((n, n), dtype=self.rows.dtype)
        self.block[:n_stay, :n_stay] = known
        new = members[self.working[n_stay:]]
        slots = self.row_cache.find(new)
        stored, unknown = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        self.block[n_stay + stored] = block_of(self.row_cache.rows, slots[stored], self.working)
        columns = self.rows.columns(members[self.working])
        self._fill(new[unknown], columns, self.block, n_stay + unknown)
        self.block[:n_stay, n_stay:] = self.block[n_stay:, :n_stay].T

    def solve_working_set(self, violation: float, max_iter: int) -> int:
        """Take steps inside the set, to a share of `violation`; return why they stopped."""
        active, chosen = self.active, self.working
        if len(chosen) < len(active.members):
            tol = max(INNER_TOL * violation, 0.5 * self.tol)
        else:
            tol = LAST_TOL * self.tol
        problem, beta, v = active.problem.take(chosen), active.beta[chosen], active.v[chosen]
        criteria = StoppingCriteria(tol, max_iter)
        steps, reason = steps_on_matrix(self.block, problem, criteria, beta, v)
        self.steps += steps
        self.sets += 1
        active.beta[chosen] = beta
        return reason

    def update_gradient(self, before: np.ndarray) -> None:
        """Do v -= sum_q t_q K_q over the set's multipliers that moved from `before` by t_q.

        A free multiplier will move again, so its row is stored. One at a bound may well stay there;
        its row is computed and used while in the cache of the processor, which costs less than to
        write it to memory.
        """
        active, chosen = self.active, self.working
        beta = active.beta[chosen]
        at = np.flatnonzero(beta != before)
        moved, change = chosen[at], (beta - before)[at]
        low, high = active.problem.low[moved], active.problem.high[moved]
        is_free = (beta[at] > low) & (beta[at] < high)
        v, members = active.v, active.members
        slots = self.row_cache.find(members[moved])
        wanted = np.flatnonzero((slots < 0) & is_free)
        new = self.row_cache.place(members[moved[wanted]])
        wanted = wanted[: len(new)]
        self._fill(members[moved[wanted]], self.columns, self.row_cache.rows, new)
        slots[wanted] = new
        stored, passing = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        self.moved = len(moved)
        self.carried += len(stored) + self.rows.effort * (len(new) + len(passing))
        known, change_of_known, kept = slots[stored], change[stored], self.row_cache.rows
        self.pool.share(
            len(v),
            SPAN,
            lambda first, end: subtract_rows(kept, known, change_of_known, v, first, end),
        )
        left = members[moved[passing]]
        subtract_kernel(self.rows, left, change[passing], self.columns, v, self.pool)

    def _fill(self, samples: np.ndarray, columns: Any, out: np.ndarray, at: np.ndarray) -> None:
        """Write whole rows of the active columns, or of the set's, to ``out[at]``."""
        width, rows = out.shape[1], self.rows

        def fill(first: int, end: int) -> None:
            rows.fill(samples, columns, first, end, out, at, first)

        rows.share(self.pool, width, PASSING_COLUMNS, fill)
