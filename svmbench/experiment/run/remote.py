"""The part of a run inside a Dask worker: it passes cells to a process beside the worker.

The process (``host.py``) belongs to one run, and is started by that run's first call. If Dask
cancels a task, or forgets its run, the waiting thread ends the cell.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from svmbench.base.paths import PACKAGE

#: Seconds between two checks of a waiting thread that its task still exists.
REMOTE_POLL_S = 0.25
#: Starts the host from this worker's package, whatever lies in the worker's current folder.
_MAIN = (
    f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r});"
    " from svmbench.base import loaded_libraries as libraries; libraries.collect_rarely();"
    " libraries.load_with_one_thread(); from svmbench.experiment.run.host import main; main()"
)


class HostDiedError(Exception):
    """The process that runs cells beside a Dask worker ended."""


class UnwantedError(Exception):
    """Nobody waits for the answer any more."""


class _Host:
    """The process beside this worker, for one run."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.run = setup["run"]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._held = b""
        self.send(setup)
        self.facts: dict[str, Any] | None = None

    def send(self, value: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(value).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise HostDiedError("it takes nothing any more") from error

    def hear(self) -> Any:
        """Return the next thing it says; None if that takes longer than a moment."""
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        while b"\n" not in self._held:
            if not select.select([pipe], [], [], REMOTE_POLL_S)[0]:
                return None
            piece = os.read(pipe, 1 << 20)
            if not piece:
                raise HostDiedError(f"it ended with code {self.process.wait()}")
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return json.loads(line)

    def is_there(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """End it, and its cells with it."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        self.process.kill()
        self.process.wait()


class _Beside:
    """State of one Dask worker; several may be threads of one process."""

    def __init__(self) -> None:
        self.one_at_a_time = threading.Lock()
        self.host: _Host | None = None


_beside: dict[str, _Beside] = {}


def greet(setup: dict[str, Any]) -> str:
    """Start a run's process beside this worker; return what it says of its machine and code.

    Parameters
    ----------
    setup : dict
        ``run`` (its name), ``threads``, ``blas_core``, ``solvers`` (to be warmed) and ``codes``.

    Returns
    -------
    told : str
        As JSON: ``environment``, ``machine`` and ``codes``; or ``error``.
    """
    return _as_text(_greet, setup)


def run_beside(setup: dict[str, Any], request: dict[str, Any]) -> str:
    """Run a cell beside this worker; return its answer.

    Parameters
    ----------
    setup : dict
        As for `greet`.
    request : dict
        What the process is told of the cell. Its points go to the run's topic as they come.

    Returns
    -------
    told : str
        As JSON: ``answer``, ``points`` and ``artifact``; ``unfit``; or ``error``.
    """
    return _as_text(_run, setup, request)


async def end_run(run_name: str, dask_worker: Any) -> None:
    """End a run's process beside a worker, whatever it does."""
    beside = _beside.get(dask_worker.address)
    if beside is not None and beside.host is not None and beside.host.run == run_name:
        await asyncio.to_thread(beside.host.end)


def _as_text(function: Callable[..., Any], *args: Any) -> str:
    """Call a function; return what it returns, or how it failed, as JSON: the run reads no more."""
    try:
        return json.dumps(function(*args))
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def _greet(setup: dict[str, Any]) -> dict[str, Any]:
    with _turn() as beside:
        return _started(beside, setup)[1]


def _run(setup: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    from distributed import get_worker

    with _turn() as beside:
        host, _ = _started(beside, setup)
        host.send(request)
        while True:
            heard = _heard(host)
            if "point" not in heard:
                return heard
            event = {"key": request["key"], "point": heard["point"]}
            get_worker().log_event(setup["run"], event)


@contextlib.contextmanager
def _turn() -> Iterator[_Beside]:
    """Wait for this worker's other cells: one at a time, however many threads it has."""
    from distributed import get_worker

    beside = _beside.setdefault(get_worker().address, _Beside())
    while not beside.one_at_a_time.acquire(timeout=REMOTE_POLL_S):
        if not _is_wanted():
            raise UnwantedError("the task was cancelled while it waited")
    try:
        yield beside
    finally:
        beside.one_at_a_time.release()


def _started(beside: _Beside, setup: dict[str, Any]) -> tuple[_Host, dict[str, Any]]:
    """Return the run's process beside a worker, and its facts; start it where there is none."""
    host = beside.host
    if host is not None and (host.run != setup["run"] or not host.is_there()):
        host.end()
        host = None
    if host is None:
        host = beside.host = _Host(setup)
    if host.facts is None:
        host.facts = _heard(host)
    return host, host.facts


def _heard(host: _Host) -> dict[str, Any]:
    """Return the next thing that the process says, as long as anybody wants to know."""
    while True:
        heard = host.hear()
        if heard is not None:
            return dict(heard)
        if not _is_wanted():
            host.end()
            raise UnwantedError("the task was cancelled")


def _is_wanted() -> bool:
    """Return True if the scheduler still wants the task of this thread."""
    from distributed import get_worker
    from distributed.worker import thread_state

    task = get_worker().state.tasks.get(thread_state.key)
    return task is not None and task.state in ("executing", "long-running")
