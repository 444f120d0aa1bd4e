"""A clock that counts external programs by their own times.

`launcher.py` measures the time of a program around the program itself. The time for writing its
input, starting the launcher and reading its output is subtracted: `now` is the clock for
every measurement that may include an external program.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Took(Protocol):
    """The wall and CPU time of a program in seconds."""

    @property
    def wall_s(self) -> float:
        """Wall time from its start to its end."""

    @property
    def cpu_s(self) -> float:
        """User and system time, with its child processes."""


class _Aside:
    """Wall and CPU seconds of this process that are not counted."""

    wall_s = 0.0
    cpu_s = 0.0


def now() -> tuple[float, float]:
    """Return the wall and CPU seconds of this process and of its external programs.

    The time of the transfer between them is left out (`handing_over`).
    """
    return time.perf_counter() - _Aside.wall_s, time.process_time() - _Aside.cpu_s


@contextmanager
def handing_over() -> Iterator[list[Took]]:
    """Count only the times of the programs in the yielded list, instead of the time of the body."""
    took: list[Took] = []
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield took
    finally:
        _Aside.wall_s += time.perf_counter() - wall - sum(one.wall_s for one in took)
        _Aside.cpu_s += time.process_time() - cpu - sum(one.cpu_s for one in took)
