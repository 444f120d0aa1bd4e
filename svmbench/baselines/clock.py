"""The clock of this process and of the programs that it runs, in a time of their own.

What a program takes is measured around the program itself (`launcher.py`). Writing its input,
starting the launcher and reading its output are no part of that, so that they are taken out of what
this process believes has gone by: `now` is the clock by which everything is timed that a program
may do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Took(Protocol):
    """What a program took: wall and CPU time, seconds."""

    @property
    def wall_s(self) -> float:
        """From its start to its end."""

    @property
    def cpu_s(self) -> float:
        """User and system time, with that of the processes it waited for."""


class _Aside:
    """Seconds of this process that count for nobody: wall, CPU."""

    wall_s = 0.0
    cpu_s = 0.0


def now() -> tuple[float, float]:
    """Return wall and CPU seconds, of this process and of the programs that it ran.

    What lay between the two is left out (`handing_over`).
    """
    return time.perf_counter() - _Aside.wall_s, time.process_time() - _Aside.cpu_s


@contextmanager
def handing_over() -> Iterator[list[Took]]:
    """Have what is done inside take the time of the programs that are put into the list, alone."""
    took: list[Took] = []
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield took
    finally:
        _Aside.wall_s += time.perf_counter() - wall - sum(one.wall_s for one in took)
        _Aside.cpu_s += time.process_time() - cpu - sum(one.cpu_s for one in took)
