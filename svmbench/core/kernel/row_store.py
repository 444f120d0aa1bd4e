"""A store of kernel rows within a memory budget, whose columns can be cut while it is full.

Rows that have waited longest for a use give way first. When columns are dropped, the rows move
together, so that the same memory then holds more of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.compiled import compiled
from svmbench.core.kernels import MIB
from svmbench.errors import SvmbenchError

#: More slots than this are never made: looking for the oldest would cost more than a row.
MOST_SLOTS = 1 << 16


@compiled
def move_together(memory: np.ndarray, width: int, rows: np.ndarray, columns: np.ndarray) -> None:
    """Keep some rows and columns of the rows of length `width`, from the memory's start on.

    Parameters
    ----------
    memory : ndarray of shape (size,)
    width : int
    rows, columns : ndarray of int
        What is kept, ascending.
    """
    n = len(columns)
    for m in range(len(rows)):
        # Never to the right of where it is read from, as rows and columns ascend.
        source, target = rows[m] * width, m * n
        for k in range(n):
            memory[target + k] = memory[source + columns[k]]


class RowStore:
    """Slots for kernel rows of the active samples.

    Parameters
    ----------
    n_samples : int
        Length of a row at first, and number of different rows.
    budget_mb : float
        MiB for all rows.
    least : int
        Rows that must fit at the same time; may be 0.
    dtype : type

    Attributes
    ----------
    rows : ndarray of shape (n_slots, width)
        Row of a slot.

    Raises
    ------
    svmbench.errors.SvmbenchError
        If the budget does not hold `least` rows; says how much does.
    """

    def __init__(self, n_samples: int, budget_mb: float, least: int, dtype: Any) -> None:
        itemsize = np.dtype(dtype).itemsize
        least = min(least, n_samples)
        size = int(budget_mb * MIB // itemsize)
        if size < least * n_samples:
            needed = int(np.ceil(least * n_samples * itemsize / MIB))
            msg = (
                f"cache_mb={budget_mb:g} holds {size // n_samples} kernel rows of {n_samples} "
                f"samples; {least} are needed at a time: give cache_mb={needed} or more"
            )
            raise SvmbenchError(msg)
        # Pages that no row has reached yet cost nothing.
        self._memory = np.empty(min(size, n_samples**2), dtype=dtype)
        self._slot = np.full(n_samples, -1, dtype=np.int64)
        self._clock = 0
        self._shape(n_samples, np.empty(0, dtype=np.int64))

    def _shape(self, width: int, owners: np.ndarray) -> None:
        """Lay the memory out in rows of `width`, of which the first belong to `owners`."""
        n_slots = min(len(self._memory) // max(1, width), len(self._slot), MOST_SLOTS)
        self.rows = self._memory[: n_slots * width].reshape(n_slots, width)
        self._owner = np.full(n_slots, -1, dtype=np.int64)
        self._used = np.zeros(n_slots, dtype=np.int64)
        self._filled = len(owners)
        self._owner[: len(owners)] = owners

    def find(self, samples: np.ndarray) -> np.ndarray:
        """Return the slot of each sample's row, -1 where there is none; it is used just now.

        Parameters
        ----------
        samples : ndarray of int of shape (m,)
        """
        self._clock += 1
        slots = self._slot[samples]
        self._used[slots[slots >= 0]] = self._clock
        return slots

    def claim(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give every sample of `wanted` a slot.

        Parameters
        ----------
        wanted : ndarray of int of shape (m,)
            Different samples, at most as many as there are slots.

        Returns
        -------
        slots : ndarray of int of shape (m,)
        missing : ndarray of bool of shape (m,)
            Where the caller must now write the row into its slot.
        """
        slots = self.find(wanted)
        missing = slots < 0
        slots[missing] = self.place(wanted[missing])
        return slots, missing

    def place(self, samples: np.ndarray) -> np.ndarray:
        """Make room for rows that `find` did not find; the rows that it did find stay.

        Parameters
        ----------
        samples : ndarray of int of shape (m,)
            Different samples without a slot.

        Returns
        -------
        slots : ndarray of int of shape (at most m,)
            For the first of the samples, as many as there is room for; the caller writes the rows.
        """
        fresh = min(len(samples), len(self.rows) - self._filled)
        slots = np.arange(self._filled, self._filled + fresh)
        old = self._used[: self._filled]
        short = min(len(samples) - fresh, int(np.count_nonzero(old < self._clock)))
        if short > 0:
            oldest = np.argpartition(old, short - 1)[:short]
            self._slot[self._owner[oldest]] = -1
            slots = np.concatenate([slots, oldest])
        self._filled += fresh
        self._slot[samples[: len(slots)]] = slots
        self._owner[slots] = samples[: len(slots)]
        self._used[slots] = self._clock
        return slots

    def cut(self, keep: np.ndarray, is_kept: np.ndarray) -> None:
        """Drop columns, and the rows of samples that are no longer active.

        Parameters
        ----------
        keep : ndarray of int
            Columns that stay, ascending.
        is_kept : ndarray of bool of shape (n_samples,)
            Which samples stay active.
        """
        owners = self._owner[: self._filled]
        stays = is_kept[owners]
        rows, kept = np.flatnonzero(stays), owners[stays]
        move_together(self._memory, self.rows.shape[1], rows, keep)
        used = self._used[rows]
        self._slot.fill(-1)
        self._slot[kept] = np.arange(len(kept))
        self._shape(len(keep), kept)
        self._used[: len(kept)] = used
