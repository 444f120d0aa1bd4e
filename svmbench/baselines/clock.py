"""The clock of external programs: only the time of the program itself counts.

`launcher.py` measures the time from the start of a program to its end. The time for writing its
input, starting the launcher and reading its output doesn't count: `now` of the solver contract, by
which every measurement is made, leaves it out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from svmbench.core.contract.base import UntimedSeconds


class ProgramTime(Protocol):
    """The wall and CPU time of a program in seconds."""

    @property
    def wall_s(self) -> float:
        """Wall time from its start to its end."""

    @property
    def cpu_s(self) -> float:
        """User and system time, with its child processes."""


@contextmanager
def count_programs_only() -> Iterator[list[ProgramTime]]:
    """Count the times that the body adds to the yielded list, in place of the time of the body."""
    program_times: list[ProgramTime] = []
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield program_times
    finally:
        UntimedSeconds.wall_s += (
            time.perf_counter() - wall - sum(program.wall_s for program in program_times)
        )
        UntimedSeconds.cpu_s += (
            time.process_time() - cpu - sum(program.cpu_s for program in program_times)
        )
