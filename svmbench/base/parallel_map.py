"""A map of a function over items, in worker processes that end with the command."""

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

#: The command F_SETSIG of fcntl, which sets the signal that a pipe sends.
_F_SETSIG = 10


def parallel_map(
    function: Callable[[Item], _Result], items: Iterable[Item], jobs: int
) -> Iterator[_Result]:
    """Call a function with each item, in up to `jobs` processes.

    If the loop over the results ends (Ctrl-C, an error in one of the calls), or this process ends
    (SIGTERM, SIGHUP, SIGKILL), the workers are killed at once; their output must tolerate this.
    Only pipes connect the processes. An executor of the standard library uses named semaphores,
    which would stay behind if a signal ended all processes of a terminal.

    Parameters
    ----------
    function : callable
        It must be picklable, and so must its argument and its result.
    items : iterable
    jobs : int
        Largest number of processes.

    Yields
    ------
    result : object
        The results as soon as they are ready, in any order.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If one of the processes dies.
    """
    waiting = list(items)[::-1]
    # Spawn the workers: a process with threads of BLAS or Numba can't be forked safely.
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, Any] = {}
    try:
        with ignoring_interrupts():
            for _ in range(min(max(jobs, 1), len(waiting))):
                parent_end, worker_end = context.Pipe()
                workers[parent_end] = context.Process(
                    target=_work, args=(worker_end, function), daemon=True
                )
                with without_unguarded_script():
                    workers[parent_end].start()
                worker_end.close()
        for pipe in workers:
            pipe.send(waiting.pop())
        busy = set(workers)
        while busy:
            ready = wait([*busy])
            for pipe in [each for each in busy if each in ready]:
                try:
                    result, error = pipe.recv()
                except (EOFError, ConnectionError):
                    workers[pipe].join()
                    code = workers[pipe].exitcode
                    raise SvmbenchError(f"a process of this command died (code {code})") from None
                if error is not None:
                    raise error
                if waiting:
                    pipe.send(waiting.pop())
                else:
                    busy.remove(pipe)
                yield result
    finally:
        for pipe, process in workers.items():
            pipe.close()
            if process.pid is not None:
                process.kill()
                process.join()


def _work(pipe: Connection, function: Callable[[Any], Any]) -> None:
    """Call a function with each item that a pipe delivers; send back the results or errors."""
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
    """Ignore SIGINT in this context, so that processes started in it leave Ctrl-C to the parent."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # only the main thread can set signal handlers
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


#: The line of a script that guards its statements from running on import.
_GUARD = re.compile(rb"^[ \t]*if\b[^\n]*\b__name__\b", re.MULTILINE)


@contextlib.contextmanager
def without_unguarded_script() -> Iterator[None]:
    """Start processes in this context without the main script, if the script has no guard.

    multiprocessing imports the script again in each new process. Without the line
    ``if __name__ == "__main__":``, the script would try to start processes there, which
    multiprocessing refuses: the new process dies. A script on standard input, which no other
    process can read, isn't imported either.
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
    except OSError:  # such as a script on standard input
        return False


def end_with_parent() -> None:
    """Kill this process when its parent ends; if it leads a process group, kill the group.

    The kernel sends a signal when the pipe from the parent closes, which also ends a call that
    never releases the GIL. If the system's pipes send no signals, a thread waits for the end.
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

    watch(0.0)  # a pipe that has closed already sends no signal
    threading.Thread(target=watch, daemon=True).start()
