"""The row cache with a kernel source that fills it, for compiled loops that ask for rows.

The loop reads ``values[slots[i]]``, notes in `last_use` that it did, and returns to its caller
where ``slots[i]`` is negative; `bring` computes that row, with others that are likely to be wanted
next, and the loop goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.rows import RowCache
from svmbench.core.numeric.arrays import raw

#: Samples up to which a `SourceRowCache` holds the whole matrix, which costs less than rows that
#: are asked for one by one.
CACHE_MATRIX_MAX_SAMPLES = 1024

#: Rows that a `SourceRowCache` must hold, and rows that it computes at a time.
CACHE_MIN_ROWS, CACHE_BATCH_ROWS = 32, 16


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
    further rows end before them. Positions are places in the order that this gives. With `single`,
    values that must be computed are rounded to float32, which is half the memory to read at each
    step: relative errors of 2^-24, half a unit of the last place.

    SvmbenchError if the budget does not hold 32 rows; it says how much does.
    """

    K: np.ndarray | None  # (n_samples, n_samples): the whole matrix, where that is stored
    values: np.ndarray  # (n_slots, n_samples): the rows, read-only
    rounded: bool  # values were rounded here; a float32 matrix that was handed in is not
    n_computed: int  # rows brought so far; all of them, for a whole matrix
    order: np.ndarray  # int (n_samples,): the sample at each position
    n_active: int  # positions from here on are shrunk away

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
