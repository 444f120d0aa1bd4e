"""The row cache: kernel rows in memory, within a budget that the caller sets.

`RowCache` has slots for rows; its `rule` (`forget_oldest` or `forget_none`) says which rows give
way to new ones. A compiled loop may read ``rows[slots[i]]`` itself and note in `last_use` that it
did. Columns can be cut while the cache is full: the rows then move together, so that the same
memory holds more of them.

`SourceRowCache` is the same cache with a `KernelSource` to fill it, for compiled loops that return
to their caller where ``slots[i]`` is negative; `bring` computes that row, with others that are
likely to be wanted next, and the loop goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.base.errors import SvmbenchError
from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.numeric.arrays import raw

#: The most slots: among more of them, finding the oldest would cost more than a row.
MAX_SLOTS = 1 << 16

#: Columns whose sums stay in the first-level cache while rows pass by.
SPAN = 1024

#: Samples up to which a `SourceRowCache` holds the whole matrix, which costs less than rows that
#: are asked for one by one.
CACHE_MATRIX_MAX_SAMPLES = 1024

#: Rows that a `SourceRowCache` must hold, and rows that it computes at a time.
CACHE_MIN_ROWS, CACHE_BATCH_ROWS = 32, 16


@compiled
def move_together(
    memory: np.ndarray,  # (size,)
    width: int,
    rows: np.ndarray,  # int: the rows that are kept, ascending
    columns: np.ndarray,  # int: the same of columns
) -> None:
    """Keep some rows and columns of the rows of length `width`, from the memory's start on."""
    n = len(columns)
    for m in range(len(rows)):
        # Never to the right of where it is read from, as rows and columns ascend.
        source, target = rows[m] * width, m * n
        for k in range(n):
            memory[target + k] = memory[source + columns[k]]


@compiled
def subtract_rows(
    rows: np.ndarray,  # (any, at least n)
    slots: np.ndarray,  # (m,)
    factors: np.ndarray,  # (m,)
    v: np.ndarray,  # (n,): changed in place, from `first` to before `end`
    first: int,
    end: int,
) -> None:
    """Take ``factors @ rows[slots]`` off `v`, in float64."""
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


def forget_oldest(last_use: np.ndarray, clock: int, wanted: int) -> np.ndarray:
    """Return up to `wanted` slots, those unused for longest, and none that was used just now."""
    wanted = min(wanted, int(np.count_nonzero(last_use < clock)))
    return np.argpartition(last_use, wanted - 1)[:wanted] if wanted > 0 else np.arange(0)


def forget_none(last_use: np.ndarray, clock: int, wanted: int) -> np.ndarray:
    """Return no slot: rows that came first stay.

    In a cyclic order the row that was used last is the one that is needed latest, so that
    forgetting the oldest would forget each just before it is asked for.
    """
    return np.arange(0)


class RowCache:
    """Slots for the kernel rows of named samples.

    Parameters
    ----------
    n_names : int
        Samples are named by the numbers below this.
    width : int
        Length of a row at first, and largest number of different rows.
    budget_mb : float
        MiB for all rows.
    least : int, default=0
        Rows that must fit at the same time, if there are so many.
    dtype : type, default=float64
    rule : callable, default=forget_oldest
        ``rule(last_use, clock, wanted)`` returns the slots, at most `wanted`, that give way.

    Attributes
    ----------
    rows : ndarray of shape (n_slots, width)
        Row of a slot.
    slots : ndarray of int of shape (n_names,)
        Slot of each sample's row; -1 if it has none.
    last_use : ndarray of int of shape (n_slots,)
        When each slot was used last, as `clock` counts.
    clock : int
        At least as high as every number in `last_use`.
    filled : int
        Slots that have had a row; the others come after them.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the budget does not hold `least` rows; says how much does.
    """

    def __init__(
        self,
        n_names: int,
        width: int,
        budget_mb: float,
        *,
        least: int = 0,
        dtype: Any = np.float64,
        rule: Callable[[np.ndarray, int, int], np.ndarray] = forget_oldest,
    ) -> None:
        itemsize = np.dtype(dtype).itemsize
        least = min(least, width)
        size = int(budget_mb * MIB // itemsize)
        if size < least * width:
            needed = int(np.ceil(least * width * itemsize / MIB))
            msg = (
                f"cache_mb={budget_mb:g} holds {size // width} kernel rows of {width} "
                f"samples; {least} are needed at a time: give cache_mb={needed} or more"
            )
            raise SvmbenchError(msg)
        self.rule, self.clock = rule, 0
        self.slots = np.full(n_names, -1, dtype=np.int64)
        self._most = min(width, MAX_SLOTS)
        # Pages that no row has reached yet cost nothing.
        self._memory = np.empty(min(size, width**2), dtype=dtype)
        self._shape(width, np.empty(0, dtype=np.int64))

    def _shape(self, width: int, owners: np.ndarray) -> None:
        """Lay the memory out in rows of `width`, of which the first belong to `owners`."""
        n_slots = min(len(self._memory) // max(1, width), self._most)
        self.rows = self._memory[: n_slots * width].reshape(n_slots, width)
        self._owner = np.full(n_slots, -1, dtype=np.int64)
        self.last_use = np.zeros(n_slots, dtype=np.int64)
        self.filled = len(owners)
        self._owner[: len(owners)] = owners

    def find(self, samples: np.ndarray) -> np.ndarray:
        """Return the slot of each sample's row, -1 where there is none; it is used just now."""
        self.clock += 1
        slots = self.slots[samples]
        self.last_use[slots[slots >= 0]] = self.clock
        return slots

    def claim(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give different samples, no more than there are slots, a slot each.

        Return the slots, and a mask of those that the caller must now write the row to.
        """
        slots = self.find(wanted)
        missing = slots < 0
        slots[missing] = self.place(wanted[missing])
        return slots, missing

    def place(self, samples: np.ndarray) -> np.ndarray:
        """Make room for rows that `find` did not find; the rows that it did find stay.

        Return slots for the first of the samples, as many as there is room for; the caller writes
        the rows.
        """
        fresh = min(len(samples), len(self.rows) - self.filled)
        gone = self.rule(self.last_use[: self.filled], self.clock, len(samples) - fresh)
        owners = self._owner[gone]
        self.slots[owners[owners >= 0]] = -1
        slots = np.concatenate([np.arange(self.filled, self.filled + fresh), gone])
        self.filled += fresh
        self.slots[samples[: len(slots)]] = slots
        self._owner[slots] = samples[: len(slots)]
        self.last_use[slots] = self.clock
        return slots

    def forget(self, samples: np.ndarray) -> None:
        """Give up the slots of samples that have one; they are the first to be used again."""
        slots = self.slots[samples]
        self.last_use[slots], self._owner[slots], self.slots[samples] = -1, -1, -1

    def rename(self, before: np.ndarray) -> None:
        """Call sample ``before[m]`` m from now on; `before` permutes the first names."""
        slots = self.slots[before]
        self.slots[: len(before)] = slots
        known = np.flatnonzero(slots >= 0)
        self._owner[slots[known]] = known

    def cut(
        self,
        keep: np.ndarray,  # int: columns that stay, ascending
        is_kept: np.ndarray,  # bool (n_names,): which samples stay active
    ) -> None:
        """Drop columns, and the rows of samples that are no longer active."""
        owners = self._owner[: self.filled]
        stays = (owners >= 0) & is_kept[owners]
        rows, kept = np.flatnonzero(stays), owners[stays]
        move_together(self._memory, self.rows.shape[1], rows, keep)
        last_use = self.last_use[rows]
        self.slots.fill(-1)
        self.slots[kept] = np.arange(len(kept))
        self._shape(len(keep), kept)
        self.last_use[: len(kept)] = last_use


@compiled
def reorder_columns(values: np.ndarray, n_rows: int, order: np.ndarray, row: np.ndarray) -> None:
    """Bring the first columns of the first rows into an order, in place; `row` is scratch."""
    for m in range(n_rows):
        for k in range(len(order)):
            row[k] = values[m, order[k]]
        for k in range(len(order)):
            values[m, k] = row[k]


def warm_up_row_cache() -> None:
    """Load or compile what a small fit does not call."""
    for dtype in (np.float32, np.float64):
        reorder_columns(np.zeros((2, 2), dtype), 1, np.arange(2), np.zeros(2, dtype))


class SourceRowCache(RowCache):
    """A row cache that computes missing rows of one kernel matrix, or holds all of it.

    Rows that are computed can be shrunk: samples that play no part for now move to the end, and
    further rows end before them. Positions are places in the order that this gives.

    Parameters
    ----------
    source : KernelSource
    cache_mb : float
        Budget, MiB.
    single : bool, default=False
        Round values that must be computed to float32, which is half the memory to read at each
        step: relative errors of 2^-24, half a unit of the last place.

    Attributes
    ----------
    K : ndarray of shape (n_samples, n_samples) or None
        The whole matrix, where that is stored.
    values : ndarray of shape (n_slots, n_samples)
        The rows, read-only.
    rounded : bool
        True if values were rounded here; a float32 matrix that was handed in is not.
    n_computed : int
        Rows brought so far; all of them, for a whole matrix.
    order : ndarray of int of shape (n_samples,)
        The sample at each position.
    n_active : int
        Positions from here on are shrunk away.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the budget does not hold 32 rows; says how much does.
    """

    def __init__(self, source: KernelSource, cache_mb: float, *, single: bool = False) -> None:
        n = source.n_samples
        self.source = self._ordered = source
        self.rounded = single and not source.is_stored
        dtype: Any = np.float32 if self.rounded else np.float64
        self.order, self.n_active = np.arange(n), n
        is_whole = source.is_stored or n <= CACHE_MATRIX_MAX_SAMPLES
        self.K = source.whole(cache_mb) if is_whole else None
        if self.K is None:
            super().__init__(n, n, cache_mb, least=CACHE_MIN_ROWS, dtype=dtype)
        else:
            self.K = self.K.astype(dtype) if self.rounded else self.K
            super().__init__(n, n, 0.0, dtype=self.K.dtype)
            # Every row has its slot already.
            self.rows, self.filled = raw(self.K), n
            self.slots, self.last_use = np.arange(n), np.zeros(n, dtype=np.int64)
        self.values = raw(self.rows)
        # The columns of each slot's row that are there.
        self._widths = np.zeros(len(self.values), dtype=np.int64)
        self.n_computed = 0 if self.K is None else n

    @property
    def batch(self) -> int:
        """The number of rows to bring at a time: more cost less each, but may come in vain."""
        return min(CACHE_BATCH_ROWS, len(self.slots))

    def bring(self, wanted: np.ndarray) -> None:
        """Compute the missing rows of up to `batch` different positions."""
        missing = wanted[self.find(wanted) < 0]
        if len(missing) == 0:
            return
        places = self.place(missing)
        self.rows[places, : self.n_active] = self._ordered.block(missing, slice(0, self.n_active))
        self._widths[places] = self.n_active
        self.n_computed += len(missing)

    def shrink(self, kept: np.ndarray) -> np.ndarray:
        """Move active positions where `kept` is False to the end, and out of the active ones.

        Return the old position at each of the first new ones, shape (n_active,).
        """
        moved = np.concatenate([np.flatnonzero(kept), np.flatnonzero(~kept)])
        n = len(moved)
        reorder_columns(self.rows, self.filled, moved, np.empty(n, self.values.dtype))
        self.order[:n] = self.order[moved]
        self.rename(moved)
        self.n_active = int(np.count_nonzero(kept))
        self._ordered = self.source.subset(self.order)
        return moved

    def complete(self, wanted: np.ndarray) -> None:
        """Compute all columns of the rows of up to `batch` different positions."""
        self.bring(wanted)
        places = self.slots[wanted]
        widths = self._widths[places]
        n = len(self.slots)
        for width in np.unique(widths[widths < n]):
            short = widths == width
            self.rows[places[short], width:] = self._ordered.block(
                wanted[short], slice(int(width), n)
            )
        self._widths[places] = n

    def unshrink(self) -> None:
        """Make all positions active again; rows that are not complete are forgotten."""
        self.n_active = len(self.slots)
        known = np.flatnonzero(self.slots >= 0)
        self.forget(known[self._widths[self.slots[known]] < self.n_active])
