"""A fresh process for each piece of work, with a deadline, whose every end is told apart.

Processes are forked from a server that has loaded everything once (`preload`), about 50 ms each.
A pool that reuses or pre-starts workers was tried and is slower for one task a process: it notices
the end of a worker by polling.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from svmbench.experiment import environment


class TimedOutError(Exception):
    """The work was stopped at its deadline."""


class DiedError(Exception):
    """The process ended without a result.

    Attributes
    ----------
    exit_code : int
        Negative for the signal that killed it.
    """

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(describe_exit(exit_code))


def describe_exit(exit_code: int) -> str:
    """Return how a process ended, in words."""
    if exit_code >= 0:
        return f"the worker ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"the worker died of {name}"


@dataclass(eq=False)
class Work:
    """One running process; `result` is there once `is_over` is true."""

    process: BaseProcess
    connection: Connection
    deadline: float
    _outcome: list[Any] = field(default_factory=list)

    def check(self) -> bool:
        """Take the result if it is there, or end the process at its deadline; true when over."""
        if self._outcome:
            return True
        if self.connection.poll():
            try:
                self._outcome = [self.connection.recv()]
            except (EOFError, OSError):
                self.process.join(timeout=10)
                code = self.process.exitcode
                self._outcome = [DiedError(code if code is not None else -signal.SIGKILL)]
        elif time.monotonic() > self.deadline:
            self._outcome = [TimedOutError()]
        if self._outcome:
            self.stop()
        return bool(self._outcome)

    def result(self) -> Any:
        """Return what the function returned.

        Raises
        ------
        TimedOutError, DiedError
            If it returned nothing.
        """
        outcome = self._outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def stop(self) -> None:
        """End the process if it is still there, and wait for it."""
        self.process.join(timeout=1.0 if self._outcome else 0.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def start(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Work:
    """Call a function in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(theirs, function, args), daemon=True)
    process.start()
    theirs.close()
    return Work(process, ours, time.monotonic() + timeout_s)


def wait_for(works: Iterable[Work], timeout_s: float) -> list[Work]:
    """Wait until one of the processes is over, or for so long; return those that are."""
    works = list(works)
    nearest = min((w.deadline for w in works), default=float("inf")) - time.monotonic()
    wait([w.connection for w in works], timeout=max(0.0, min(timeout_s, nearest)))
    return [work for work in works if work.check()]


@contextmanager
def warm_server(threads: int, solvers: Iterable[str]) -> Iterator[None]:
    """Have processes forked from a server that is loaded, warm, and bound to so many threads."""
    settings = {name: str(threads) for name in environment.THREAD_VARIABLES}
    settings[environment.PRELOAD_VARIABLE] = ",".join(solvers)
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["svmbench.experiment.preload"])
    try:
        with _deaf_to_interrupts():
            forkserver.ensure_running()
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ignore SIGINT while a process is started, which inherits that: Ctrl-C is the parent's."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread: the server ignores it once it is up
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _call(connection: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    connection.send(function(*args))
    connection.close()
