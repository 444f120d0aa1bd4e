"""Runs one program and watches it: a script of its own, which imports nothing of this package.

A worker starts it (``launching.py``) and writes what is to be run to its standard input, which
stays open. What happened is said on its standard output, as JSON. It stands between the two since

- the kernel counts what a process held before `exec` to its peak of memory: of a program that a
  worker forks itself, that would be the worker's; of this script it is 10 MiB;
- whatever the program forks becomes this script's child when its own parent ends, however it is
  detached (Linux's PR_SET_CHILD_SUBREAPER), so that nothing outlives it unnoticed;
- the end of its standard input is the end of the worker: it then ends all that it started, and
  itself. If the program stopped it (SIGSTOP), the kernel lets it go on when the worker ends; if the
  program killed it, the kernel ends the program (PR_SET_PDEATHSIG for both).

It reads its children from /proc itself: each fit of a program starts this script anew, and psutil's
import would add 16 ms of CPU time to the 10 ms that its imports take.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time

_SUBREAPER, _DEATH_SIGNAL = 36, 1
#: How much is kept of the end of what a program prints, in bytes.
_KEPT = 1 << 16
#: What a program has forked may end with it, or so many seconds later.
_GRACE_S = 0.2
#: The code that a shell gives for what can't be run.
_NOT_RUN = 127

_prctl = ctypes.CDLL(None).prctl


def main() -> None:
    """Run what standard input says; say on standard output how it ended."""
    _prctl(_SUBREAPER, 1, 0, 0, 0)
    _prctl(_DEATH_SIGNAL, signal.SIGCONT, 0, 0, 0)
    words = json.loads(_line(0))
    start = time.perf_counter()
    program, outputs, failed = _start(words)
    said = _follow(program, outputs)
    _, status, usage = os.wait4(program, 0)
    wall = time.perf_counter() - start
    for pipe in outputs:
        said[pipe] = (said[pipe] + _rest(pipe))[-_KEPT:]
    left = _end_the_rest()
    number = os.read(failed, 16)
    answer = {
        "code": os.waitstatus_to_exitcode(status),
        "not_run": os.strerror(int(number)) if number else "",
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_memory_mb": usage.ru_maxrss / 1024.0,
        "out": said[outputs[0]].decode(errors="replace"),
        "err": said[outputs[1]].decode(errors="replace"),
        "left": left,
    }
    sys.stdout.write(json.dumps(answer))


def _line(descriptor: int) -> bytes:
    """Return what comes before the first end of a line, which is all that comes."""
    read = b""
    while not read.endswith(b"\n"):
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            os._exit(0)
        read += piece
    return read


def _start(words: list[str]) -> tuple[int, list[int], int]:
    """Start a program; return its id, the pipes of its outputs, and that of an error number."""
    pipes = [os.pipe() for _ in range(3)]
    program = os.fork()
    if program == 0:
        _prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for ours, theirs in ((nothing, 0), (pipes[0][1], 1), (pipes[1][1], 2)):
            os.dup2(ours, theirs)
        try:
            os.execv(words[0], words)
        except OSError as error:
            os.write(pipes[2][1], str(error.errno).encode())
        os._exit(_NOT_RUN)
    for _, written in pipes:
        os.close(written)
    return program, [pipes[0][0], pipes[1][0]], pipes[2][0]


def _follow(program: int, outputs: list[int]) -> dict[int, bytes]:
    """Read what a program prints until it ends; return the end of it, by pipe."""
    said = dict.fromkeys(outputs, b"")
    ends = os.pidfd_open(program)
    watched = [0, ends, *outputs]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready:  # nothing is ever written there: the worker is gone
            _end_all()
            os._exit(0)
        for pipe in {*ready} - {ends}:
            piece = os.read(pipe, 1 << 16)
            said[pipe] = (said[pipe] + piece)[-_KEPT:]
            if not piece:
                watched.remove(pipe)
        if ends in ready:
            return said


def _rest(pipe: int) -> bytes:
    """Return what is left in a pipe, which others may hold open."""
    os.set_blocking(pipe, False)
    read = b""
    try:
        while piece := os.read(pipe, 1 << 16):
            read = (read + piece)[-_KEPT:]
    except BlockingIOError:
        pass
    return read


def _end_the_rest() -> int:
    """Return how many processes a program has left behind, after ending them."""
    patience = time.perf_counter() + _GRACE_S
    while _is_any_left() and time.perf_counter() < patience:
        time.sleep(0.005)
    return _end_all()


def _is_any_left() -> bool:
    """Whether this process has a child that has not ended; those that have are seen off."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_all() -> int:
    """End every child of this process, and theirs, which become its own; return how many."""
    ended: set[int] = set()
    while _is_any_left():
        for child in _children():
            os.kill(child, signal.SIGKILL)
            ended.add(child)
        time.sleep(0.001)
    return len(ended)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as listed:  # noqa: PTH123 - no pathlib here
        return [int(number) for number in listed.read().split()]


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
