"""Run external programs from a worker; `clock` counts their time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from svmbench.base.errors import ProgramError
from svmbench.base.escape import line

_LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True)
class Ended:
    """The end of a program: its exit code, its costs and its output.

    Attributes
    ----------
    code : int
        Exit code; the negative number of the signal that killed it.
    not_run : str
        Reason why it could not be started, or empty.
    wall_s, cpu_s : float
        Wall time from start to end; user and system time with child processes.
    peak_memory_mb : float
        Largest resident memory in MiB of the program or of a child process; at least the 10 MiB of
        the launcher.
    out, err : str
        Last bytes of its output.
    left : int
        Number of processes that the program left running; the launcher ended them.
    """

    code: int
    not_run: str
    wall_s: float
    cpu_s: float
    peak_memory_mb: float
    out: str
    err: str
    left: int


def launch(words: list[str]) -> Ended:
    """Run a program to its end in its own session, without a shell.

    Parameters
    ----------
    words : list of str
        The program's path and its arguments.

    Raises
    ------
    svmbench.base.errors.ProgramError
        If it can't be started, fails, or leaves processes behind.
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
        raise ProgramError(f"the launcher of {name} was killed, and {name} with it") from error
    _judge(name, ended)
    return ended


def _judge(name: str, ended: Ended) -> None:
    """Raise an error if a program failed or left processes behind."""
    if ended.not_run:
        raise ProgramError(f"{name} can't be run: {ended.not_run}")
    if ended.code < 0:
        known = {number.value: number.name for number in signal.Signals}
        died = known.get(-ended.code, f"signal {-ended.code}")
        raise ProgramError(f"{name} was killed by {died}{_last(ended)}")
    if ended.code:
        raise ProgramError(f"{name} ended with exit code {ended.code}{_last(ended)}")
    if ended.left:
        processes = "a process" if ended.left == 1 else f"{ended.left} processes"
        raise ProgramError(
            f"{name} ended and left {processes} running; they were ended, and its costs are unknown"
        )


def _last(ended: Ended) -> str:
    """Return the last line of a program's output, as the end of a sentence."""
    lines = [text for text in (ended.err + "\n").splitlines() if text.strip()]
    lines = lines or [text for text in ended.out.splitlines() if text.strip()]
    return f": {line(lines[-1].strip(), 200)}" if lines else ", without output"
