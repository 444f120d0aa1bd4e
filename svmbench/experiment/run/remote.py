"""The part of a run inside a Dask worker: it passes cells to a process beside the worker.

The process, the host (``host.py``), belongs to one run, and is started by that run's first call. If
Dask cancels a task, or forgets its run, the waiting thread ends the host and its cell.
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
#: Code that starts the host from this worker's package, not from the worker's current folder.
_MAIN = (
    f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r});"
    " from svmbench.base import loaded_libraries as libraries; libraries.collect_rarely();"
    " libraries.load_with_one_thread(); from svmbench.experiment.run.host import main; main()"
)


class HostDiedError(Exception):
    """The host has ended."""


class UnwantedError(Exception):
    """The task was cancelled, so nobody waits for its reply."""


class _Host:
    """The host of this worker, for one run."""

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
            raise HostDiedError("its standard input is closed") from error

    def read_message(self) -> Any:
        """Return the host's next message; None if there is none within `REMOTE_POLL_S`."""
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

    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """End the host and its cells."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        self.process.kill()
        self.process.wait()


class _WorkerState:
    """The state of one Dask worker; a process may have several workers, in threads."""

    def __init__(self) -> None:
        self.one_at_a_time = threading.Lock()
        self.host: _Host | None = None


_states: dict[str, _WorkerState] = {}


def start_host(setup: dict[str, Any]) -> str:
    """Start a run's host beside this worker; return its description of machine and code.

    Parameters
    ----------
    setup : dict
        ``run`` (the run's name), ``threads``, ``blas_core``, ``solvers`` (to load in advance) and
        ``kinds`` (for each kind of cell, the arguments of `keys.code_of`).

    Returns
    -------
    str
        JSON with ``environment``, ``machine`` and ``code_hashes`` (what `keys.code_of` returns for
        each of the ``kinds``); or with ``unfit`` (why this machine can't run cells) or ``error``.
    """
    return _as_text(_start_host, setup)


def run_in_host(setup: dict[str, Any], request: dict[str, Any]) -> str:
    """Run a cell in the host; send its points to the run's topic, and return its reply.

    Parameters
    ----------
    setup : dict
        See `start_host`.
    request : dict
        The host's request: the cell's key, specification, limits and earlier points.

    Returns
    -------
    str
        JSON with ``answer``, ``points`` and ``artifact``; or with ``unfit`` (why this machine can't
        run the cell) or ``error``.
    """
    return _as_text(_run, setup, request)


async def end_run(run_name: str, dask_worker: Any) -> None:
    """End a run's host beside a worker, and the cell that it runs."""
    state = _states.get(dask_worker.address)
    if state is not None and state.host is not None and state.host.run == run_name:
        await asyncio.to_thread(state.host.end)


def _as_text(function: Callable[..., Any], *args: Any) -> str:
    """Call a function; return its result, or its error, as JSON, since the run reads no pickles."""
    try:
        return json.dumps(function(*args))
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def _start_host(setup: dict[str, Any]) -> dict[str, Any]:
    with _turn() as state:
        return _running_host(state, setup)[1]


def _run(setup: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    from distributed import get_worker

    with _turn() as state:
        host, _ = _running_host(state, setup)
        host.send(request)
        while True:
            message = _next_message(host)
            if "point" not in message:
                return message
            event = {"key": request["key"], "point": message["point"]}
            get_worker().log_event(setup["run"], event)


@contextlib.contextmanager
def _turn() -> Iterator[_WorkerState]:
    """Wait for this worker's other cells: it runs one at a time, even with several threads."""
    from distributed import get_worker

    state = _states.setdefault(get_worker().address, _WorkerState())
    while not state.one_at_a_time.acquire(timeout=REMOTE_POLL_S):
        if not _is_wanted():
            raise UnwantedError("the task was cancelled while it waited")
    try:
        yield state
    finally:
        state.one_at_a_time.release()


def _running_host(state: _WorkerState, setup: dict[str, Any]) -> tuple[_Host, dict[str, Any]]:
    """Return the run's host and its facts; start the host if it is not running."""
    host = state.host
    if host is not None and (host.run != setup["run"] or not host.is_running()):
        host.end()
        host = None
    if host is None:
        host = state.host = _Host(setup)
    if host.facts is None:
        host.facts = _next_message(host)
    return host, host.facts


def _next_message(host: _Host) -> dict[str, Any]:
    """Wait for the host's next message; end the host if the task is cancelled meanwhile."""
    while True:
        message = host.read_message()
        if message is not None:
            return dict(message)
        if not _is_wanted():
            host.end()
            raise UnwantedError("the task was cancelled")


def _is_wanted() -> bool:
    """Return True if the scheduler still wants the task of this thread."""
    from distributed import get_worker
    from distributed.worker import thread_state

    task = get_worker().state.tasks.get(thread_state.key)
    return task is not None and task.state in ("executing", "long-running")
