"""Pair steps inside a working set of several hundred samples: the form for many samples.

Problem
    max_beta  y'beta - 1/2 beta'K beta,   low <= beta <= high,   e'beta = 0
    with beta_i = y_i alpha_i and the bounds [0, C] for y_i = 1, [-C, 0] for y_i = -1.
Given
    A maker of kernel rows, and a start with its gradient v = y - K beta.
Returned
    beta and v in place, once max{v_i: beta_i < high_i} - min{v_j: beta_j > low_j} <= tol over the
    samples that are still active.
Reference
    Joachims 1999: working sets from both ends of the gradient, shrinking. Wen et al. 2018
    (ThunderSVM): large sets, half of which is renewed, first in first out.
Deviations
    - The inner problem is solved by the second-order steps of ``row_smo``, to a tenth of the gap.
    - Rows have the columns of active samples alone, and are cut when samples are shrunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.arrays import raw
from svmbench.core.compiled import compiled
from svmbench.core.kernel import row_smo
from svmbench.core.kernel.crew import Crew
from svmbench.core.kernel.row_store import RowStore
from svmbench.core.kernel.single_rows import WIDTH, Rows

#: Samples of a working set; twice as many where more multipliers than that are free, since a set
#: that is small beside them chases them round.
WORKING = 512

#: Share of a working set that stays in the next.
KEPT = 0.5

#: Rows are cut once so small a share of their columns is still of interest.
CUT_AT = 0.7

#: The inner problem is solved to this share of the gap.
INNER = 0.1

#: Columns of rows that are used once: a block of them stays in the second-level cache. A multiple
#: of the width of the products behind them, so that threads change no product's shape: another
#: shape can have another last bit.
PASSING = WIDTH

#: Columns whose gradient stays in the first-level cache while rows pass by.
SPAN = 1024


@compiled
def subtract_rows(
    rows: np.ndarray,
    slots: np.ndarray,
    factors: np.ndarray,
    v: np.ndarray,
    first: int,
    end: int,
) -> None:
    """Take ``factors @ rows[slots]`` off `v`, in float64.

    Parameters
    ----------
    rows : ndarray of shape (any, at least n)
    slots, factors : ndarray of shape (m,)
    v : ndarray of shape (n,)
        Changed in place, from `first` to before `end`.
    """
    m = len(slots)
    for start in range(first, end, SPAN):
        stop = min(start + SPAN, end)
        values = v[start:stop]
        q = 0
        while q + 4 <= m:
            f0, f1, f2, f3 = factors[q], factors[q + 1], factors[q + 2], factors[q + 3]
            r0, r1 = rows[slots[q], start:stop], rows[slots[q + 1], start:stop]
            r2, r3 = rows[slots[q + 2], start:stop], rows[slots[q + 3], start:stop]
            for k in range(len(values)):
                values[k] -= (f0 * np.float64(r0[k]) + f1 * np.float64(r1[k])) + (
                    f2 * np.float64(r2[k]) + f3 * np.float64(r3[k])
                )
            q += 4
        while q < m:
            f0, r0 = factors[q], rows[slots[q], start:stop]
            for k in range(len(values)):
                values[k] -= f0 * np.float64(r0[k])
            q += 1


@compiled
def gather(rows: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``rows[slots][:, columns]``."""
    block = np.empty((len(slots), len(columns)), dtype=rows.dtype)
    for i in range(len(slots)):
        row = rows[slots[i]]
        for k in range(len(columns)):
            block[i, k] = row[columns[k]]
    return block


class Active:
    """The samples that still take part, with their variables side by side.

    Parameters
    ----------
    members : ndarray of int of shape (n,)
        Positions in the whole problem, ascending.
    y, beta, v : ndarray of shape (n_samples,)
        Labels ±1, signed multipliers and gradient of the whole problem; `finish` brings the last
        two up to date.
    C : float

    Attributes
    ----------
    members : ndarray of int of shape (n,)
    y, beta, v, low, high : ndarray of shape (n,)
        Of the members.
    """

    def __init__(
        self, members: np.ndarray, y: np.ndarray, C: float, beta: np.ndarray, v: np.ndarray
    ) -> None:
        self.members = members
        self.y, self.beta, self.v = y[members], beta[members], v[members]
        self.low, self.high = np.minimum(0.0, C * self.y), np.maximum(0.0, C * self.y)
        self._beta, self._v = beta, v
        outside = np.ones(len(y), dtype=bool)
        outside[members] = False
        self._shed = [(np.flatnonzero(outside), beta.copy())]

    def limits(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return `v` of what can go up (else -inf) and down (else inf), and their extremes."""
        rising = np.where(self.beta < self.high, self.v, -np.inf)
        falling = np.where(self.beta > self.low, self.v, np.inf)
        return rising, falling, float(rising.max()), float(falling.min())

    def shed(self, stays: np.ndarray) -> None:
        """Drop the samples where `stays` is False; their gradient is what it is now."""
        self._write_back()
        self._shed.append((self.members[~stays], self._beta.copy()))
        for name in ("members", "y", "beta", "v", "low", "high"):
            setattr(self, name, getattr(self, name)[stays])

    def _write_back(self) -> None:
        self._beta[self.members], self._v[self.members] = self.beta, self.v

    def finish(self, rows: Rows, crew: Crew) -> None:
        """Bring the whole problem up to date.

        A sample that was dropped lacks what has changed since: of those that were left, and of
        these only the ones that still moved.
        """
        self._write_back()
        for members, before in self._shed:
            change = self._beta - before
            moved = np.flatnonzero(change)
            if not len(members) or not len(moved):
                continue
            v = self._v[members]
            subtract_kernel(rows, moved, change[moved], rows.columns(members), v, crew)
            self._v[members] = v
        self._shed.clear()


def subtract_kernel(
    rows: Rows, samples: np.ndarray, factors: np.ndarray, columns: Any, v: np.ndarray, crew: Crew
) -> None:
    """Take ``factors @ K[samples][:, columns]`` off `v`, by rows that are never written out.

    Parameters
    ----------
    rows : Rows
    samples, factors : ndarray of shape (m,)
    columns : object
        From ``rows.columns``.
    v : ndarray of shape (n,)
        One value a column; changed in place.
    crew : Crew
        Each of its threads takes some of the columns.
    """
    height, places = rows.height, np.arange(rows.height)

    def take_off(first: int, end: int) -> None:
        scratch = np.empty((height, PASSING), dtype=rows.dtype)
        for start in range(first, end, PASSING):
            stop = min(start + PASSING, end)
            for top in range(0, len(samples), height):
                some, change = samples[top : top + height], factors[top : top + height]
                rows.fill(some, columns, start, stop, scratch, places[: len(some)])
                subtract_rows(scratch, places[: len(some)], change, v[start:stop], 0, stop - start)

    if rows.shares:
        crew.share(len(v), PASSING, take_off)
    else:
        take_off(0, len(v))


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
        As `Active.limits` returns them; overwritten.
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
    C, tol : float
        Bound of the multipliers, tolerance of the gap.
    cache_mb : float
        Memory for kernel rows, MiB.
    crew : Crew
        The threads that make rows and bring the gradient up to date. The values, and so the steps,
        are the same whatever their number.

    Attributes
    ----------
    steps, sets : int
        Pair steps, and working sets, so far.
    """

    def __init__(
        self, rows: Rows, active: Active, *, C: float, tol: float, cache_mb: float, crew: Crew
    ) -> None:
        self.rows, self.active, self.C, self.tol, self.crew = rows, active, C, tol, crew
        self.names = active.members
        n = len(self.names)
        self.store = RowStore(n, cache_mb, 0, rows.dtype)
        self.columns = rows.columns(None if n == rows.n_samples else self.names)
        #: Where the active samples stand among `names`.
        self.own = np.arange(n)
        #: The working set among the active samples, and its kernel values.
        self.queue = np.empty(0, dtype=np.int64)
        self.block = np.empty((0, 0), dtype=rows.dtype)
        self.steps = self.sets = 0
        #: Multipliers that moved in the last set; what it cost, a column, to carry idle samples
        #: along, in units of reading a stored value.
        self.moved, self.carried = 0, 0.0

    def run(self, max_iter: int) -> int:
        """Solve working sets until the gap is at most `tol`; return a position in ``REASONS``."""
        while True:
            rising, falling, top, bottom = self.active.limits()
            if top - bottom <= self.tol:
                return row_smo.CONVERGED
            if self.steps >= max_iter:
                return row_smo.MAX_ITER
            if self.sets and self._cut(rising, falling, top, bottom):
                rising, falling, top, bottom = self.active.limits()
            self._renew(rising, falling)
            share = INNER if len(self.queue) < len(self.own) else 0.0
            inner_tol = max(share * (top - bottom), 0.5 * self.tol)
            if not self._solve(inner_tol, max_iter - self.steps):
                return row_smo.STALLED

    def _cut(self, rising: np.ndarray, falling: np.ndarray, top: float, bottom: float) -> bool:
        """Drop the samples at a bound that their gradient holds them to, if it pays.

        A dropped sample's gradient must be caught up with at the end, with a kernel value for each
        multiplier that has moved meanwhile. So it is carried along until that has cost as much.
        """
        v = self.active.v
        goes_up, goes_down = np.isfinite(rising), np.isfinite(falling)
        stays = (goes_up & goes_down) | (goes_up & (v >= bottom)) | (goes_down & (v <= top))
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
        is_kept = np.zeros(len(self.names), dtype=bool)
        is_kept[self.own[stays]] = True
        self.store.cut(np.flatnonzero(stays), is_kept)
        left = np.flatnonzero(stays[self.queue])
        self.block = self.block[np.ix_(left, left)]
        self.queue = (np.cumsum(stays) - 1)[self.queue[left]]
        self.own = self.own[stays]
        self.active.shed(stays)
        self.columns = self.rows.columns(self.active.members)

    def _renew(self, rising: np.ndarray, falling: np.ndarray) -> None:
        """Make the next working set: the younger half of the last one, and new samples."""
        n = len(self.own)
        n_free = np.count_nonzero(np.isfinite(rising) & np.isfinite(falling))
        size = min(n, WORKING if n_free <= WORKING else 2 * WORKING)
        first = max(0, len(self.queue) - int(size * KEPT)) if size < n else 0
        stay, known = self.queue[first:], self.block[first:, first:]
        new = choose(rising, falling, stay, size - len(stay))
        self.queue = np.concatenate([stay, new])
        old = len(stay)
        self.block = np.empty((len(self.queue), len(self.queue)), dtype=self.rows.dtype)
        self.block[:old, :old] = known
        slots = self.store.find(self.own[new])
        stored = np.flatnonzero(slots >= 0)
        self.block[old + stored] = gather(self.store.rows, slots[stored], self.queue)
        unknown = np.flatnonzero(slots < 0)
        names = self.active.members
        columns = self.rows.columns(names[self.queue])
        self._fill(names[new[unknown]], columns, self.block, old + unknown)
        self.block[:old, old:] = self.block[old:, :old].T

    def _solve(self, tol: float, max_iter: int) -> bool:
        """Take pair steps inside the set, and all that follows; return whether there was one."""
        active, chosen = self.active, self.queue
        diag = np.ascontiguousarray(self.block.diagonal())
        before, v = active.beta[chosen], active.v[chosen]
        beta = before.copy()
        steps, _ = row_smo.optimise(
            raw(self.block), raw(diag), raw(active.y[chosen]), self.C, tol, max_iter, beta, v
        )
        self.steps += steps
        self.sets += 1
        active.beta[chosen] = beta
        is_free = (beta > active.low[chosen]) & (beta < active.high[chosen])
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
        slots = self.store.find(self.own[moved])
        wanted = np.flatnonzero((slots < 0) & is_free)
        new = self.store.place(self.own[moved[wanted]])
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
