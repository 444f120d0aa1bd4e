"""External programs are counted by their own times.

`launcher.py` measures the time of a program around the program itself. The time for writing its
input, starting the launcher and reading its output is uncounted: `now` of the solver contract, by
which every measurement is made, leaves it out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from svmbench.core.contract.base import Uncounted


class Took(Protocol):
    """The wall and CPU time of a program in seconds."""

    @property
    def wall_s(self) -> float:
        """Wall time from its start to its end."""

    @property
    def cpu_s(self) -> float:
        """User and system time, with its child processes."""


@contextmanager
def handing_over() -> Iterator[list[Took]]:
    """Count only the times of the programs in the yielded list, instead of the time of the body."""
    took: list[Took] = []
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield took
    finally:
        Uncounted.wall_s += time.perf_counter() - wall - sum(one.wall_s for one in took)
        Uncounted.cpu_s += time.process_time() - cpu - sum(one.cpu_s for one in took)
