"""Run one program and watch it, as a script that imports nothing from this package.

A worker starts this script (``launching.py``) and writes the command to its standard input, which
stays open. The script prints the result as JSON. The script is a separate process for three
reasons:

- The kernel counts the memory that a process had before `exec` in its peak. If a worker forked the
  program, this would be the worker's memory; for this script it is 10 MiB.
- A process that the program forks becomes a child of this script when its parent ends, even if it
  is detached (Linux's PR_SET_CHILD_SUBREAPER). So no process outlives the program unnoticed.
- Standard input ends when the worker ends. The script then ends all processes that it started, and
  itself. If the program has stopped the script (SIGSTOP), the kernel resumes it when the worker
  ends; if the program has killed it, the kernel ends the program (PR_SET_PDEATHSIG for both).

The script reads its children from /proc, without psutil: it starts for each fit of a program, and
importing psutil would add 16 ms of CPU time to the 10 ms of its own imports.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time

#: Options of `prctl` (linux/prctl.h).
PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG = 36, 1
#: Number of bytes kept from the end of a program's output.
_KEPT_OUTPUT_BYTES = 1 << 16
#: Seconds after the program's end within which its child processes may end.
_GRACE_S = 0.2
#: A shell's exit code for a command that can't be run.
_NOT_RUN = 127

_prctl = ctypes.CDLL(None).prctl


def main() -> None:
    """Run the command from standard input; print its result on standard output."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    words = json.loads(_line(0))
    start = time.perf_counter()
    program, outputs, failed = _start(words)
    output = _follow(program, outputs)
    _, status, usage = os.wait4(program, 0)
    wall = time.perf_counter() - start
    for pipe in outputs:
        output[pipe] = (output[pipe] + _rest(pipe))[-_KEPT_OUTPUT_BYTES:]
    n_left = _end_the_rest()
    number = os.read(failed, 16)
    answer = {
        "code": os.waitstatus_to_exitcode(status),
        "not_run": os.strerror(int(number)) if number else "",
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_memory_mb": usage.ru_maxrss / 1024.0,
        "out": output[outputs[0]].decode(errors="replace"),
        "err": output[outputs[1]].decode(errors="replace"),
        "left": n_left,
    }
    sys.stdout.write(json.dumps(answer))


def _line(descriptor: int) -> bytes:
    """Read one line from a file descriptor."""
    read = b""
    while not read.endswith(b"\n"):
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            os._exit(0)
        read += piece
    return read


def _start(words: list[str]) -> tuple[int, list[int], int]:
    """Start a program; return its id, the pipes of its outputs, and a pipe for an error number."""
    pipes = [os.pipe() for _ in range(3)]
    program = os.fork()
    if program == 0:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
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
    """Read the output of a program until it ends; return the last bytes by pipe."""
    read = dict.fromkeys(outputs, b"")
    ends = os.pidfd_open(program)
    watched = [0, ends, *outputs]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready:  # end of standard input: the worker has ended
            _end_all()
            os._exit(0)
        for pipe in {*ready} - {ends}:
            piece = os.read(pipe, 1 << 16)
            read[pipe] = (read[pipe] + piece)[-_KEPT_OUTPUT_BYTES:]
            if not piece:
                watched.remove(pipe)
        if ends in ready:
            return read


def _rest(pipe: int) -> bytes:
    """Return the bytes left in a pipe, which other processes may hold open."""
    os.set_blocking(pipe, False)
    read = b""
    try:
        while piece := os.read(pipe, 1 << 16):
            read = (read + piece)[-_KEPT_OUTPUT_BYTES:]
    except BlockingIOError:
        pass
    return read


def _end_the_rest() -> int:
    """End the processes that a program has left behind; return their number."""
    patience = time.perf_counter() + _GRACE_S
    while _is_any_left() and time.perf_counter() < patience:
        time.sleep(0.005)
    return _end_all()


def _is_any_left() -> bool:
    """Reap ended children; return True if another child is still running."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_all() -> int:
    """End all descendants of this process; return their number."""
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
