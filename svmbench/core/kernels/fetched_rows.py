"""Kernel rows for a compiled loop that asks for what it misses.

The loop reads ``values[slots[i]]``, notes in `last_use` that it did, and returns to its caller
where ``slots[i]`` is negative; `bring` computes that row, with others that are likely to be wanted
next, and the loop goes on. Of a matrix that is there already every row has its slot.

Rows that are computed can be shrunk: samples that play no part for now move to the end, and further
rows end before them. Positions are places in the order that this gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.row_cache import RowCache
from svmbench.core.numeric.arrays import raw

#: Up to so many samples the whole matrix costs less than asking for its rows one by one.
SMALL = 1024

#: Rows that must fit, and how many are brought at a time.
LEAST, BATCH = 32, 16


@compiled
def reorder(values: np.ndarray, n_rows: int, order: np.ndarray, row: np.ndarray) -> None:
    """Bring the first columns of the first rows into an order, in place; `row` is scratch."""
    for m in range(n_rows):
        for k in range(len(order)):
            row[k] = values[m, order[k]]
        for k in range(len(order)):
            values[m, k] = row[k]


def warm_up() -> None:
    """Load or compile what a small fit does not call."""
    for dtype in (np.float32, np.float64):
        reorder(np.zeros((2, 2), dtype), 1, np.arange(2), np.zeros(2, dtype))


class FetchedRows:
    """Rows of one kernel matrix, all of them or in a store within a memory budget.

    Parameters
    ----------
    source : KernelSource
    cache_mb : float
        Budget, MiB.
    single : bool, default=False
        Whether to round values that must be computed to float32, which is half the memory to read
        at each step: relative errors of 2^-24, half a unit of the last place.

    Attributes
    ----------
    K : ndarray of shape (n_samples, n_samples) or None
        The whole matrix, where that is stored.
    values : ndarray of shape (n_slots, n_samples)
        Read-only.
    rounded : bool
        Whether they were rounded here; a float32 matrix that was handed in is taken at its word.
    slots : ndarray of int of shape (n_samples,)
        Where the row of each position is; -1 if nowhere.
    last_use : ndarray of int of shape (n_slots,)
        For the loop to write `clock` and its own steps to: the lowest gives way first.
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
        self.source = source
        self.rounded = single and not source.is_stored
        dtype: Any = np.float32 if self.rounded else np.float64
        self.order, self.n_active = np.arange(n), n
        self.K = source.whole(cache_mb) if source.is_stored or n <= SMALL else None
        if self.K is not None:
            self.K = self.K.astype(dtype) if self.rounded else self.K
            self._store = RowCache.of_matrix(self.K)
        else:
            self._store = RowCache(n, n, cache_mb, least=LEAST, dtype=dtype)
        self.values = raw(self._store.rows)
        self.slots, self.last_use = self._store.slots, self._store.last_use
        # How much of a slot's row is there.
        self._widths = np.zeros(len(self.values), dtype=np.int64)
        self.n_computed = 0 if self.K is None else n
        self._ordered = source

    @property
    def clock(self) -> int:
        """At least as high as every number in `last_use`; the loop's caller adds its steps."""
        return self._store.clock

    @clock.setter
    def clock(self, value: int) -> None:
        self._store.clock = value

    @property
    def batch(self) -> int:
        """How many rows to bring at a time: more cost less each, but may come in vain."""
        return min(BATCH, len(self.slots))

    def bring(self, wanted: np.ndarray) -> None:
        """See to it that rows have slots.

        Parameters
        ----------
        wanted : ndarray of int of shape (m,)
            Different positions, at most `batch`.
        """
        missing = wanted[self._store.find(wanted) < 0]
        if len(missing) == 0:
            return
        places = self._store.place(missing)
        self._store.rows[places, : self.n_active] = self._ordered.block(
            missing, slice(0, self.n_active)
        )
        self._widths[places] = self.n_active
        self.n_computed += len(missing)

    def shrink(self, kept: np.ndarray) -> np.ndarray:
        """Move the other active positions to the end of them, and out of the active ones.

        Parameters
        ----------
        kept : ndarray of bool of shape (n_active,)

        Returns
        -------
        ndarray of int of shape (n_active,)
            The old position at each of the first new ones.
        """
        moved = np.concatenate([np.flatnonzero(kept), np.flatnonzero(~kept)])
        n = len(moved)
        reorder(self._store.rows, self._store.filled, moved, np.empty(n, self.values.dtype))
        self.order[:n] = self.order[moved]
        self._store.rename(moved)
        self.n_active = int(np.count_nonzero(kept))
        self._ordered = self.source.subset(self.order)
        return moved

    def complete(self, wanted: np.ndarray) -> None:
        """See to it that rows have slots, and all of their columns.

        Parameters
        ----------
        wanted : ndarray of int of shape (m,)
            Different positions, at most `batch`.
        """
        self.bring(wanted)
        places = self.slots[wanted]
        widths = self._widths[places]
        n = len(self.slots)
        for width in np.unique(widths[widths < n]):
            short = widths == width
            self._store.rows[places[short], width:] = self._ordered.block(
                wanted[short], slice(int(width), n)
            )
        self._widths[places] = n

    def unshrink(self) -> None:
        """Make all positions active again; rows that are not complete are forgotten."""
        self.n_active = len(self.slots)
        known = np.flatnonzero(self.slots >= 0)
        self._store.forget(known[self._widths[self.slots[known]] < self.n_active])
