"""Running other people's programs from a worker; `clock` has the time that they take."""

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
