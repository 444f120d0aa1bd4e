"""Threads that do one job together, each a part of it; with one thread there is no other.

Also the count that they share.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from svmbench.core.contract.base import require_count

#: Parts of a job for each thread.
SHARES = 4


def require_n_jobs(n_jobs: int) -> None:
    """Raise ValueError unless `n_jobs` is a number of threads, or -1 for one a processor."""
    if n_jobs != -1:
        require_count("n_jobs", n_jobs)


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Counter:
    """A count that several threads add to."""

    def __init__(self) -> None:
        self.total = 0
        self._lock = threading.Lock()

    def add(self, n: int) -> None:
        """Add `n`."""
        with self._lock:
            self.total += n


class ThreadPool:
    """The calling thread and its helpers; a context manager that joins them at its end."""

    def __init__(
        self,
        n_jobs: int,  # threads in all; -1: one a processor that this process may use
    ) -> None:
        self.size = processors() if n_jobs == -1 else int(n_jobs)
        self._helpers = ThreadPoolExecutor(self.size - 1) if self.size > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._helpers:
            self._helpers.shutdown()

    def share(
        self,
        n: int,
        multiple: int,  # parts start at multiples of this, whatever the number of threads
        task: Callable[[int, int], None],  # must not touch what another part does
    ) -> None:
        """Call ``task(start, stop)`` for parts of ``range(n)``, some a thread, and wait for all."""
        pieces = -(-n // multiple)
        share = -(-pieces // (SHARES * self.size)) * multiple
        if self._helpers is None or n <= share:
            task(0, n)
            return
        starts = iter(range(0, n, share))

        def work() -> None:
            # Each thread takes what is next: one that begins late, or is held up, does less.
            for start in starts:
                task(start, min(start + share, n))

        others = [self._helpers.submit(work) for _ in range(self.size - 1)]
        work()
        for other in others:
            other.result()
