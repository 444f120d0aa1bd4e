"""Kernel rows for a compiled loop that asks for what it misses.

The loop reads ``values[slots[i]]``, notes in `last_use` that it did, and returns to its caller
where ``slots[i]`` is negative; `bring` computes that row, with others that are likely to be wanted
next, and the loop goes on. Of a matrix that is there already every row has its slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.base import raw
from svmbench.core.kernels import MIB, KernelSource
from svmbench.errors import SvmbenchError

#: Up to so many samples the whole matrix costs less than asking for its rows one by one.
SMALL = 1024

#: Rows that must fit, and how many are brought at a time.
LEAST, BATCH = 32, 16


class FetchedRows:
    """Rows of one kernel matrix within a memory budget; the least recently used give way first.

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
        Where each sample's row is; -1 if nowhere.
    last_use : ndarray of int of shape (n_slots,)
        For the loop to write `clock` and its own steps to: the lowest gives way first.
    clock : int
        At least as high as every number in `last_use`; the loop's caller adds its steps.
    n_computed : int
        Rows brought so far; all of them, for a whole matrix.

    Raises
    ------
    svmbench.errors.SvmbenchError
        If the budget does not hold 32 rows; says how much does.
    """

    def __init__(self, source: KernelSource, cache_mb: float, *, single: bool = False) -> None:
        n = source.n_samples
        self.source, self.clock = source, 0
        self.rounded = single and not source.is_stored
        dtype: Any = np.float32 if self.rounded else np.float64
        self.K = source.whole(cache_mb) if source.is_stored or n <= SMALL else None
        if self.K is not None:
            self.K = self.K.astype(dtype) if self.rounded else self.K
            self.values, self.slots = raw(self.K), np.arange(n)
            self.last_use = np.zeros(n, dtype=np.int64)
            self.n_computed = n
            return
        width = n * np.dtype(dtype).itemsize
        n_slots = min(n, int(cache_mb * MIB // width))
        if n_slots < min(LEAST, n):
            needed = int(np.ceil(min(LEAST, n) * width / MIB))
            msg = (
                f"cache_mb={cache_mb:g} holds {n_slots} kernel rows of {n} samples; "
                f"{LEAST} are needed: give cache_mb={needed} or more"
            )
            raise SvmbenchError(msg)
        # Pages that no row has reached yet cost nothing.
        self._written = np.empty((n_slots, n), dtype=dtype)
        self.values = raw(self._written)
        self.slots = np.full(n, -1)
        self.last_use = np.zeros(n_slots, dtype=np.int64)
        self._owners = np.empty(n_slots, dtype=np.int64)
        self._used = 0
        self.n_computed = 0

    @property
    def batch(self) -> int:
        """How many rows to bring at a time: more cost less each, but may come in vain."""
        return min(BATCH, len(self.slots))

    def bring(self, wanted: np.ndarray) -> None:
        """See to it that rows have slots.

        Parameters
        ----------
        wanted : ndarray of int of shape (m,)
            Different samples, at most `batch`.
        """
        self.clock += 1
        known = self.slots[wanted] >= 0
        self.last_use[self.slots[wanted[known]]] = self.clock
        missing = wanted[~known]
        m = len(missing)
        if m == 0:
            return
        if self._used + m <= len(self.values):
            places = np.arange(self._used, self._used + m)
            self._used += m
        else:
            # The few slots that no row has reached are left so.
            places = np.argpartition(self.last_use[: self._used], m - 1)[:m]
            self.slots[self._owners[places]] = -1
        self._written[places] = self.source.rows(missing)
        self._owners[places] = missing
        self.slots[missing] = places
        self.last_use[places] = self.clock
        self.n_computed += m
