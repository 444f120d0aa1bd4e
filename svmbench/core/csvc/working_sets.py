"""Steps inside a working set of several hundred samples: the form for many samples.

Problem
    That of ``box``.
Given
    A maker of kernel rows, and a start with its gradient v = p - K beta.
Returned
    beta and v in place, once the conditions hold within tol for the samples that are still active.
Reference
    Joachims 1999: working sets from both ends of the gradient, shrinking. Wen et al. 2018
    (ThunderSVM): large sets, half of which is renewed, first in first out.
Deviations
    - The inner problem is solved by the second-order steps of ``whole_matrix``, to a tenth of the
      gap.
    - Rows have the columns of active samples alone, and are cut when samples are shrunk.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.active import PASSING, Active, subtract_kernel
from svmbench.core.csvc.box import Limits
from svmbench.core.csvc.whole_matrix import CONVERGED, GAP, MAX_ITER, STALLED, optimise
from svmbench.core.kernels.float32_rows import Rows
from svmbench.core.kernels.kernels import MIB
from svmbench.core.kernels.row_store import SPAN, RowStore, subtract_rows
from svmbench.core.kernels.threads import Crew
from svmbench.core.numeric.submatrix import copy_part

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


@compiled
def gather(rows: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``rows[slots][:, columns]``."""
    block = np.empty((len(slots), len(columns)), dtype=rows.dtype)
    copy_part(rows, slots, columns, block)
    return block


def least(values: np.ndarray, wanted: int) -> np.ndarray:
    """Return where the `wanted` least values are; those that are not finite don't count."""
    if wanted >= len(values):
        return np.flatnonzero(np.isfinite(values))
    found = np.argpartition(values, wanted)[:wanted]
    return found[np.isfinite(values[found])]


def choose(rising: np.ndarray, falling: np.ndarray, kept: np.ndarray, wanted: int) -> np.ndarray:
    """Return new members of a working set: half from each end of the gradient.

    Parameters
    ----------
    rising, falling : ndarray of shape (n,)
        Of `Limits`; overwritten.
    kept : ndarray of int
        Positions that are in the set already.
    wanted : int
        How many more.
    """
    rising[kept], falling[kept] = -np.inf, np.inf
    top = least(-rising, wanted // 2)
    falling[top] = np.inf
    return np.concatenate([top, least(falling, wanted - len(top))])


class BlockSearch:
    """One run over the active samples, which shrinks them on the way.

    Parameters
    ----------
    rows : Rows
    active : Active
        Changed in place; samples that can't change any more, as it seems, are dropped from it.
    tol : float
        Tolerance of the gap.
    cache_mb : float
        Memory for kernel rows, MiB.
    crew : Crew
        The threads that make rows and bring the gradient up to date. The values, and so the steps,
        are the same whatever their number.

    Attributes
    ----------
    steps, sets : int
        Steps, and working sets, so far.
    """

    def __init__(
        self, rows: Rows, active: Active, *, tol: float, cache_mb: float, crew: Crew
    ) -> None:
        self.rows, self.active, self.tol, self.crew = rows, active, tol, crew
        n = len(active.members)
        self.store = RowStore(rows.n_samples, n, cache_mb, dtype=rows.dtype)
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
            at = self.active.limits()
            if at.gap <= self.tol:
                return CONVERGED
            if limit >= 0.0 and self.active.duality_gap() <= limit:
                return GAP
            if self.steps >= max_iter:
                return MAX_ITER
            if self.sets and self._cut(at):
                at = self.active.limits()
            self._renew(at)
            if len(self.working) < len(self.active.members):
                inner_tol = max(INNER * at.gap, 0.5 * self.tol)
            else:
                inner_tol = LAST * self.tol
            if not self._solve(inner_tol, max_iter - self.steps):
                return STALLED

    def _cut(self, at: Limits) -> bool:
        """Drop the samples at a bound that their gradient holds them to, if it pays.

        A dropped sample's gradient must be caught up with at the end, with a kernel value for each
        multiplier that has moved meanwhile. So it is carried along until that has cost as much.
        """
        v = self.active.v
        goes_up, goes_down = np.isfinite(at.rising), np.isfinite(at.falling)
        stays = (goes_up & goes_down) | (goes_up & (v >= at.bottom)) | (goes_down & (v <= at.top))
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
        self.active.shed(stays)
        self.columns = self.rows.columns(self.active.members)

    def _renew(self, at: Limits) -> None:
        """Make the next working set: the younger half of the last one, and new samples."""
        n = len(self.active.members)
        rising, falling = at.rising, at.falling
        self.free.append(self.active.members[np.isfinite(rising) & np.isfinite(falling)])
        if self.active.box.n_sums > 1:
            # What two groups have in common is by how much they violate, not their gradient.
            rising, falling = rising - at.bottom, falling - at.top
        size = min(n, self._size(n))
        first = max(0, len(self.working) - int(size * KEPT)) if size < n else 0
        stay, known = self.working[first:], self.block[first:, first:]
        new = choose(rising, falling, stay, size - len(stay))
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
        box, before, v = active.box.take(chosen), active.beta[chosen], active.v[chosen]
        beta = before.copy()
        steps, _ = optimise(self.block, box, tol, max_iter, beta, v)
        self.steps += steps
        self.sets += 1
        active.beta[chosen] = beta
        is_free = (beta > box.low) & (beta < box.high)
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
        self.crew.share(
            len(v),
            SPAN,
            lambda first, end: subtract_rows(kept, known, change_of_known, v, first, end),
        )
        left = names[moved[passing]]
        subtract_kernel(self.rows, left, change[passing], self.columns, v, self.crew)

    def _fill(self, samples: np.ndarray, columns: Any, out: np.ndarray, at: np.ndarray) -> None:
        """Write whole rows of the active columns, or of the set's, to ``out[at]``."""
        width, rows = out.shape[1], self.rows

        def fill(first: int, end: int) -> None:
            rows.fill(samples, columns, first, end, out, at, first)

        if rows.shares:
            self.crew.share(width, PASSING, fill)
        else:
            fill(0, width)
