"""The active samples of a search, and what the ones that were dropped get back at its end.

Steps inside a working set of several hundred samples: the form for many samples.

Problem
    That of ``problem``.
Given
    A maker of kernel rows, and a start with its gradient v = p - K beta.
Returned
    beta and v in place, once the conditions hold within tol for the samples that are still active.
Reference
    Joachims 1999: working sets from both ends of the gradient, shrinking. Wen et al. 2018
    (ThunderSVM): large sets, half of which is renewed, first in first out.
Deviations
    - The inner problem is solved by the second-order steps of ``smo``, to a tenth of the
      gap.
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
    STALLED,
    StoppingCriteria,
    gather,
    optimise,
)
from svmbench.core.kernels.kernels import MIB
from svmbench.core.kernels.row_cache import SPAN, RowCache, subtract_rows
from svmbench.core.kernels.rows import WIDTH, Rows
from svmbench.core.kernels.thread_pool import ThreadPool

#: Columns of rows that are used once: a block of them stays in the second-level cache. A multiple
#: of the width of the products behind them, so that threads change no product's shape: another
#: shape can have another last bit.
PASSING = WIDTH

#: Samples of a working set; twice as many where more multipliers than that are free, since a set
#: that is small beside them chases them round.
WORKING = 512

#: Once the free multipliers have changed by less than this share over so many sets, sets of this
#: many times their number hold them all; by less than half of it, all that is active is one set.
SETTLED, WATCHED, ROOM = 0.1, 4, 1.3

#: The largest set, and the share of the memory for rows that its kernel values take at most.
LARGEST, BLOCK_SHARE = 4096, 0.25

#: Share of a working set that stays in the next.
KEPT = 0.5

#: Rows are cut once so small a share of their columns is still of interest.
CUT_AT = 0.7

#: The inner problem is solved to this share of the gap, and of the tolerance where it is the last.
INNER, LAST = 0.1, 0.9


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

    if rows.shares:
        pool.share(len(v), PASSING, take_off)
    else:
        take_off(0, len(v))


class ActiveSet:
    """The samples that still take part, with their variables side by side.

    Parameters
    ----------
    members : ndarray of int of shape (n,)
        Positions in the whole problem, ascending.
    problem, beta, v : QPProblem, ndarray of shape (n_samples,), ndarray of shape (n_samples,)
        The whole problem, its variables and their gradient; `finish` brings the last two up to
        date.

    Attributes
    ----------
    members : ndarray of int of shape (n,)
    problem, beta, v : QPProblem, ndarray of shape (n,), ndarray of shape (n,)
        Of the members.
    """

    def __init__(
        self, members: np.ndarray, problem: QPProblem, beta: np.ndarray, v: np.ndarray
    ) -> None:
        self.members = members
        self.problem, self.beta, self.v = problem.take(members), beta[members], v[members]
        self._box, self._beta, self._v = problem, beta, v
        outside = np.ones(len(v), dtype=bool)
        outside[members] = False
        self._shrunk = [(np.flatnonzero(outside), beta.copy())]

    def up_low_sets(self) -> UpLowSets:
        """Return what can go up and down; see :func:`~svmbench.core.csvc.problem.limits`."""
        return up_low_sets(self.problem, self.beta, self.v)

    def duality_gap(self) -> float:
        """Return it for all samples, those that were dropped with the gradient that they had."""
        self._write_back()
        return gap_of_problem(self._box, self._beta, self._v)

    def shrink(self, stays: np.ndarray) -> None:
        """Drop the samples where `stays` is False; their gradient is what it is now."""
        self._write_back()
        self._shrunk.append((self.members[~stays], self._beta.copy()))
        kept = np.flatnonzero(stays)
        self.members, self.problem = self.members[kept], self.problem.take(kept)
        self.beta, self.v = self.beta[kept], self.v[kept]

    def _write_back(self) -> None:
        self._beta[self.members], self._v[self.members] = self.beta, self.v

    def finish(self, rows: Rows, pool: ThreadPool) -> None:
        """Bring the whole problem up to date.

        A sample that was dropped lacks what has changed since: of those that were left, and of
        these only the ones that still moved.
        """
        self._write_back()
        for members, before in self._shrunk:
            change = self._beta - before
            moved = np.flatnonzero(change)
            if not len(members) or not len(moved):
                continue
            v = self._v[members]
            subtract_kernel(rows, moved, change[moved], rows.columns(members), v, pool)
            self._v[members] = v
        self._shrunk.clear()


def least(values: np.ndarray, wanted: int) -> np.ndarray:
    """Return where the `wanted` least values are; those that are not finite don't count."""
    if wanted >= len(values):
        return np.flatnonzero(np.isfinite(values))
    found = np.argpartition(values, wanted)[:wanted]
    return found[np.isfinite(values[found])]


def choose(v_up: np.ndarray, v_low: np.ndarray, kept: np.ndarray, wanted: int) -> np.ndarray:
    """Return `wanted` members beside `kept`, half from each end; v_up and v_low are overwritten."""
    v_up[kept], v_low[kept] = -np.inf, np.inf
    top = least(-v_up, wanted // 2)
    v_low[top] = np.inf
    return np.concatenate([top, least(v_low, wanted - len(top))])


class WorkingSetSearch:
    """One run over the active samples, which shrinks them on the way.

    Parameters
    ----------
    rows : Rows
    active : ActiveSet
        Changed in place; samples that can't change any more, as it seems, are dropped from it.
    tol : float
        Tolerance of the gap.
    cache_mb : float
        Memory for kernel rows, MiB.
    pool : ThreadPool
        The threads that make rows and bring the gradient up to date. The values, and so the steps,
        are the same whatever their number.

    Attributes
    ----------
    steps, sets : int
        Steps, and working sets, so far.
    """

    def __init__(
        self, rows: Rows, active: ActiveSet, *, tol: float, cache_mb: float, pool: ThreadPool
    ) -> None:
        self.rows, self.active, self.tol, self.pool = rows, active, tol, pool
        n = len(active.members)
        self.store = RowCache(rows.n_samples, n, cache_mb, dtype=rows.dtype)
        self.columns = rows.columns(None if n == rows.n_samples else active.members)
        #: The working set, as positions among the active samples, and its kernel values.
        self.working = np.empty(0, dtype=np.int64)
        self.block = np.empty((0, 0), dtype=rows.dtype)
        held = math.isqrt(int(BLOCK_SHARE * cache_mb * MIB / rows.diagonal.itemsize))
        self.largest = max(2 * WORKING, min(LARGEST, held))
        self.steps = self.sets = 0
        #: Multipliers that moved in the last set; what it cost, a column, to carry idle samples
        #: along, in units of reading a stored value.
        self.moved, self.carried = 0, 0.0
        #: The samples whose multipliers were free before the last sets, the oldest first.
        self.free: deque[np.ndarray] = deque(maxlen=WATCHED + 1)

    def run(self, max_iter: int, limit: float = -1.0) -> int:
        """Solve working sets until the gap is at most `tol`; return a position in ``REASONS``.

        Or until the duality gap, by gradients that those of dropped samples may not be, is at most
        `limit`, if that is not negative.
        """
        while True:
            at = self.active.up_low_sets()
            if at.gap <= self.tol:
                return CONVERGED
            if limit >= 0.0 and self.active.duality_gap() <= limit:
                return GAP
            if self.steps >= max_iter:
                return MAX_ITER
            if self.sets and self._cut(at):
                at = self.active.up_low_sets()
            self._renew(at)
            if len(self.working) < len(self.active.members):
                inner_tol = max(INNER * at.gap, 0.5 * self.tol)
            else:
                inner_tol = LAST * self.tol
            if not self._solve(inner_tol, max_iter - self.steps):
                return STALLED

    def _cut(self, at: UpLowSets) -> bool:
        """Drop the samples at a bound that their gradient holds them to, if it pays.

        A dropped sample's gradient must be caught up with at the end, with a kernel value for each
        multiplier that has moved meanwhile. So it is carried along until that has cost as much.
        """
        v = self.active.v
        goes_up, goes_down = np.isfinite(at.v_up), np.isfinite(at.v_low)
        stays = (goes_up & goes_down) | (goes_up & (v >= at.M)) | (goes_down & (v <= at.m))
        if np.count_nonzero(stays) > CUT_AT * len(stays):
            self.carried = 0.0
            return False
        restless = np.count_nonzero(goes_up & goes_down) + self.moved
        if self.carried < self.rows.effort * restless:
            return False
        self.drop(stays)
        self.carried = 0.0
        return True

    def drop(self, stays: np.ndarray) -> None:
        """Go on without the active samples where `stays` is False."""
        is_kept = np.zeros(self.rows.n_samples, dtype=bool)
        is_kept[self.active.members[stays]] = True
        self.store.cut(np.flatnonzero(stays), is_kept)
        left = np.flatnonzero(stays[self.working])
        self.block = self.block[np.ix_(left, left)]
        self.working = (np.cumsum(stays) - 1)[self.working[left]]
        self.active.shrink(stays)
        self.columns = self.rows.columns(self.active.members)

    def _renew(self, at: UpLowSets) -> None:
        """Make the next working set: the younger half of the last one, and new samples."""
        n = len(self.active.members)
        v_up, v_low = at.v_up, at.v_low
        self.free.append(self.active.members[np.isfinite(v_up) & np.isfinite(v_low)])
        if self.active.problem.n_sums > 1:
            # What two groups have in common is by how much they violate, not their gradient.
            v_up, v_low = v_up - at.M, v_low - at.m
        size = min(n, self._size(n))
        first = max(0, len(self.working) - int(size * KEPT)) if size < n else 0
        stay, known = self.working[first:], self.block[first:, first:]
        new = choose(v_up, v_low, stay, size - len(stay))
        self.working = np.concatenate([stay, new])
        old = len(stay)
        self.block = np.empty((len(self.working), len(self.working)), dtype=self.rows.dtype)
        self.block[:old, :old] = known
        names = self.active.members
        slots = self.store.find(names[new])
        stored = np.flatnonzero(slots >= 0)
        self.block[old + stored] = gather(self.store.rows, slots[stored], self.working)
        unknown = np.flatnonzero(slots < 0)
        columns = self.rows.columns(names[self.working])
        self._fill(names[new[unknown]], columns, self.block, old + unknown)
        self.block[:old, old:] = self.block[old:, :old].T

    def _size(self, n: int) -> int:
        """Return how large the next set should be, of `n` active samples."""
        free, before = self.free[-1], self.free[0]
        changed = len(np.setxor1d(free, before, assume_unique=True)) / max(1, len(free))
        if len(self.free) <= WATCHED or changed >= SETTLED:
            return WORKING if len(free) <= WORKING else 2 * WORKING
        if n <= self.largest and changed < 0.5 * SETTLED:
            return n
        return min(self.largest, max(2 * WORKING, int(ROOM * len(free))))

    def _solve(self, tol: float, max_iter: int) -> bool:
        """Take steps inside the set, and all that follows; return whether there was one."""
        active, chosen = self.active, self.working
        problem, before, v = active.problem.take(chosen), active.beta[chosen], active.v[chosen]
        beta = before.copy()
        steps, _ = optimise(self.block, problem, StoppingCriteria(tol, max_iter), beta, v)
        self.steps += steps
        self.sets += 1
        active.beta[chosen] = beta
        is_free = (beta > problem.low) & (beta < problem.high)
        moved = np.flatnonzero(beta != before)
        self._subtract(chosen[moved], (beta - before)[moved], is_free[moved])
        return steps > 0

    def _subtract(self, moved: np.ndarray, change: np.ndarray, is_free: np.ndarray) -> None:
        """Bring the gradient up to date.

        A free multiplier will move again, so its row is stored. One at a bound may well stay there;
        its row is computed and used while in the cache of the processor, which costs less than to
        write it to memory.
        """
        v, names = self.active.v, self.active.members
        slots = self.store.find(names[moved])
        wanted = np.flatnonzero((slots < 0) & is_free)
        new = self.store.place(names[moved[wanted]])
        wanted = wanted[: len(new)]
        self._fill(names[moved[wanted]], self.columns, self.store.rows, new)
        slots[wanted] = new
        stored, passing = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        self.moved = len(moved)
        self.carried += len(stored) + self.rows.effort * (len(new) + len(passing))
        known, change_of_known, kept = slots[stored], change[stored], self.store.rows
        self.pool.share(
            len(v),
            SPAN,
            lambda first, end: subtract_rows(kept, known, change_of_known, v, first, end),
        )
        left = names[moved[passing]]
        subtract_kernel(self.rows, left, change[passing], self.columns, v, self.pool)

    def _fill(self, samples: np.ndarray, columns: Any, out: np.ndarray, at: np.ndarray) -> None:
        """Write whole rows of the active columns, or of the set's, to ``out[at]``."""
        width, rows = out.shape[1], self.rows

        def fill(first: int, end: int) -> None:
            rows.fill(samples, columns, first, end, out, at, first)

        if rows.shares:
            self.pool.share(width, PASSING, fill)
        else:
            fill(0, width)
