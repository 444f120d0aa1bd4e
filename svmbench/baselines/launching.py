"""Running other people's programs from a worker, in a time of their own.

What a program takes is measured around the program itself (`launcher.py`). Writing its input,
starting the launcher and reading its output are no part of that, so that they are taken out of what
this process believes has gone by: `now` is the clock by which everything is timed that a program
may do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from svmbench.base.errors import ProgramError
from svmbench.base.inert import line

_LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it took.

    Attributes
    ----------
    code : int
        Its exit code; negative for the signal that killed it.
    not_run : str
        Why it could not be started; empty if it was.
    wall_s, cpu_s : float
        From its start to its end; user and system time, with that of the processes it waited for.
    peak_memory_mb : float
        The largest resident memory, MiB, of it or of one that it waited for. What needs less than
        the launcher's 10 MiB has these.
    out, err : str
        The end of what it printed.
    left : int
        How many processes it left behind, which were ended.
    """

    code: int
    not_run: str
    wall_s: float
    cpu_s: float
    peak_memory_mb: float
    out: str
    err: str
    left: int


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
def handing_over() -> Iterator[list[Ended]]:
    """Have what is done inside take the time of the programs that are put into the list, alone."""
    took: list[Ended] = []
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield took
    finally:
        _Aside.wall_s += time.perf_counter() - wall - sum(one.wall_s for one in took)
        _Aside.cpu_s += time.process_time() - cpu - sum(one.cpu_s for one in took)


def launch(words: list[str]) -> Ended:
    """Run a program to its end, in a session of its own; there is no shell.

    Parameters
    ----------
    words : list of str
        The program's path and its arguments.

    Raises
    ------
    svmbench.base.errors.ProgramError
        If it can't be started, ends badly, or leaves processes behind, in a sentence.
    """
    name = Path(words[0]).name
    launcher = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_LAUNCHER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    try:
        launcher.stdin.write(json.dumps(words).encode() + b"\n")
        launcher.stdin.flush()
        answer = launcher.stdout.read()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.stdin.close()
        launcher.stdout.close()
        launcher.wait()
    try:
        ended = Ended(**json.loads(answer))
    except ValueError as error:
        raise ProgramError(f"what watched {name} was killed, and {name} with it") from error
    _judge(name, ended)
    return ended


def _judge(name: str, ended: Ended) -> None:
    """Raise unless a program ended as it should."""
    if ended.not_run:
        raise ProgramError(f"{name} can't be run: {ended.not_run}")
    if ended.code < 0:
        known = {number.value: number.name for number in signal.Signals}
        died = known.get(-ended.code, f"signal {-ended.code}")
        raise ProgramError(f"{name} died of {died}{_last(ended)}")
    if ended.code:
        raise ProgramError(f"{name} ended with exit code {ended.code}{_last(ended)}")
    if ended.left:
        processes = "a process" if ended.left == 1 else f"{ended.left} processes"
        raise ProgramError(
            f"{name} ended and left {processes} running, so that what it took is not known;"
            " they were ended"
        )


def _last(ended: Ended) -> str:
    """Return the last line that a program printed, as the end of a sentence."""
    said = [text for text in (ended.err + "\n").splitlines() if text.strip()]
    said = said or [text for text in ended.out.splitlines() if text.strip()]
    return f": {line(said[-1].strip(), 200)}" if said else ", and said nothing"
