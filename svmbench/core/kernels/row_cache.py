"""The row cache: kernel rows in memory, within a budget that the caller sets.

`RowCache` has slots for rows; its `rule` (`forget_oldest` or `forget_none`) says which rows give
way to new ones. A compiled loop may read ``rows[slots[i]]`` itself and note in `last_use` that it
did. `cut` drops columns (shrinking): rows become shorter and move together, so that the same memory
has slots for more rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.base.errors import SvmbenchError
from svmbench.core.kernels.kernels import MIB

#: Largest number of slots. With more, finding the oldest slot would cost more than computing a row.
MAX_SLOTS = 1 << 16

#: Columns that `subtract_rows` takes at a time: their part of `v` stays in the first-level cache.
SPAN = 1024


@compiled
def move_together(
    memory: np.ndarray,  # (size,)
    width: int,
    rows: np.ndarray,  # int: the rows that are kept, ascending
    columns: np.ndarray,  # int: the columns that are kept, ascending
) -> None:
    """Move the kept values of rows of length `width` to the start of the memory."""
    n = len(columns)
    for m in range(len(rows)):
        # In place: rows and columns ascend, so no value is overwritten before it is read.
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

    If a solver goes through all rows in the same order again and again, the oldest row is always
    the next one that it needs. `forget_oldest` would then remove each row just before its use.
    """
    return np.arange(0)


class RowCache:
    """Slots for kernel rows; samples are known by their numbers.

    SvmbenchError if the budget is too small for `least` rows; the message states one that suffices.
    """

    rows: np.ndarray  # (n_slots, width): the row of a slot
    slots: np.ndarray  # int (n_names,): the slot of each sample's row; -1 if it has none
    last_use: np.ndarray  # int (n_slots,): the value of `clock` at the last use of each slot
    clock: int  # at least as high as every number in `last_use`
    filled: int  # number of slots that have had a row: the first ones

    def __init__(
        self,
        n_names: int,  # number of all samples, active or not: their numbers are 0 to n_names - 1
        width: int,  # active samples at first: the length of a row, and the largest number of rows
        budget_mb: float,  # MiB for all rows
        *,
        least: int = 0,  # number of rows that must fit at once; above `width`, it means `width`
        dtype: Any = np.float64,
        # rule(last_use, clock, wanted) returns the slots, at most `wanted`, that give way
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
        # The operating system provides memory only when a row is written to it.
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
        """Return the slot of each sample's row, -1 where there is none, and note the use."""
        self.clock += 1
        slots = self.slots[samples]
        self.last_use[slots[slots >= 0]] = self.clock
        return slots

    def claim(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a slot for each of the samples, and a mask of the slots whose row is missing.

        The samples must be distinct, and no more than the slots. The caller writes missing rows.
        """
        slots = self.find(wanted)
        missing = slots < 0
        slots[missing] = self.place(wanted[missing])
        return slots, missing

    def place(self, samples: np.ndarray) -> np.ndarray:
        """Assign slots to samples for which `find` returned -1; the caller writes the rows.

        Return slots for the first of the samples, as many as there is room for. The rows that the
        last call of `find` returned stay.
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
        """Free the slots of samples that each have one; `forget_oldest` returns these first."""
        slots = self.slots[samples]
        self.last_use[slots], self._owner[slots], self.slots[samples] = -1, -1, -1

    def rename(self, before: np.ndarray) -> None:
        """Renumber the first samples: ``before[m]`` becomes m; `before` is a permutation."""
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
