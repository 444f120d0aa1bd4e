"""A map over several items in worker processes that end with the command."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from svmbench.base.errors import SvmbenchError

Item = TypeVar("Item")
_Result = TypeVar("_Result")

#: fcntl's command to choose the signal that a pipe sends; the module has no name for it.
_F_SETSIG = 10


def parallel_map(
    function: Callable[[Item], _Result], items: Iterable[Item], jobs: int
) -> Iterator[_Result]:
    """Call a function with each item, in up to `jobs` processes.

    If the loop over the results ends (Ctrl-C, an error in one of the calls), or this process does
    (SIGTERM, SIGHUP, SIGKILL), the workers are killed at once; their output must tolerate this.
    Pipes alone connect the processes: named semaphores, which an executor takes, would stay behind
    where a signal ends all processes of a terminal.

    Parameters
    ----------
    function : callable
        Can be pickled; so can what it takes and returns.
    items : iterable
    jobs : int

    Yields
    ------
    result : object
        As soon as there is one, in no order.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If one of the processes dies.
    """
    waiting = list(items)[::-1]
    # Not forked: a parent that has BLAS or Numba threads can't be forked safely.
    context = multiprocessing.get_context("spawn")
    others: dict[Connection, Any] = {}
    try:
        with ignoring_interrupts():
            for _ in range(min(max(jobs, 1), len(waiting))):
                ours, theirs = context.Pipe()
                others[ours] = context.Process(target=_work, args=(theirs, function), daemon=True)
                with without_unguarded_script():
                    others[ours].start()
                theirs.close()
        for pipe in others:
            pipe.send(waiting.pop())
        busy = set(others)
        while busy:
            ready = wait([*busy])
            for pipe in [each for each in busy if each in ready]:
                try:
                    result, error = pipe.recv()
                except (EOFError, ConnectionError):
                    others[pipe].join()
                    code = others[pipe].exitcode
                    raise SvmbenchError(f"a process of this command died (code {code})") from None
                if error is not None:
                    raise error
                if waiting:
                    pipe.send(waiting.pop())
                else:
                    busy.remove(pipe)
                yield result
    finally:
        for pipe, process in others.items():
            pipe.close()
            if process.pid is not None:
                process.kill()
                process.join()


def _work(pipe: Connection, function: Callable[[Any], Any]) -> None:
    """Call a function with each item that comes through a pipe; send results or errors back."""
    end_with_parent()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            item = pipe.recv()
            try:
                pipe.send((function(item), None))
            except Exception as error:
                error.add_note(traceback.format_exc())
                pipe.send((None, error))


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Ignore SIGINT while a process is started, which inherits that: Ctrl-C is the parent's."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread, which alone may say what a signal does
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


#: The line of a script below which it is not run in processes that import it.
_GUARD = re.compile(rb"^[ \t]*if\b[^\n]*\b__name__\b", re.MULTILINE)


@contextlib.contextmanager
def without_unguarded_script() -> Iterator[None]:
    """Keep a script without ``if __name__ == "__main__":`` out of processes started meanwhile.

    A script on standard input, which no other process can read, is kept out too.

    multiprocessing runs the script again in each new process. Without that line the script would
    try to start processes there, which multiprocessing refuses: the new process dies.
    """
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    if script is None or main.__spec__ is not None or _has_guard(script):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = script


@cache
def _has_guard(script: str) -> bool:
    try:
        return _GUARD.search(Path(script).read_bytes()) is not None
    except OSError:  # on standard input, say: no process can run it again
        return False


def end_with_parent() -> None:
    """Have this process end once its parent has, with what it forked where it leads a group.

    The kernel sends a signal when the pipe from the parent closes, so that a call that holds the
    GIL for ever is ended too. Where a pipe sends no signals, a thread does the same.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    group = -os.getpid() if os.getpgrp() == os.getpid() else os.getpid()
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, group)
        fcntl.fcntl(parent.sentinel, _F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)

    def watch(seconds: float | None = None) -> None:
        if wait([parent.sentinel], seconds):
            if group < 0:
                os.killpg(-group, signal.SIGKILL)
            os._exit(1)

    watch(0.0)  # a pipe that closed before sends no signal
    threading.Thread(target=watch, daemon=True).start()
