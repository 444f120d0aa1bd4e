"""Worker processes: one for each function call, with a deadline and a reason for its end.

Workers are forked from a server that has loaded everything once (`preload`), which takes about
50 ms each. The server itself is a fork of the command if that is equivalent (`forked_server`).
A pool that reuses or pre-starts workers was tried and is slower for one task per process: it
notices the end of a worker by polling.

Each worker leads a session of its own, so that its child processes can be killed with it. The
server reports the end of a worker even if a child process keeps the worker's pipe open.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

from svmbench.base import loaded_libraries, paths
from svmbench.base.errors import SvmbenchError
from svmbench.base.interrupts import interrupts_wait
from svmbench.base.parallel_map import ignoring_interrupts, without_unguarded_script
from svmbench.experiment.measuring import environment, measure, proc
from svmbench.experiment.run import forked_server, ipc
from svmbench.schema.record import Reply

#: Number of file descriptors that multiprocessing needs to start a process: a socket, two pipes and
#: a copy of one end.
_DESCRIPTORS_TO_START = 6
#: Environment variable with the id of the process whose end stops the server while it loads.
PARENT_VARIABLE = "SVMBENCH_PARENT"
#: The module that the installed script imports.
_COMMAND_LINE = "svmbench.cli"
#: Seconds within which a worker must describe its machine.
_DESCRIBE_TIMEOUT_S = 300.0
#: Exit code that multiprocessing reports if its server died before it reported the real one.
_UNKNOWN_EXIT_CODE = 255
#: A gap of more than this many seconds between two polls means that this process was stopped.
_MAX_POLL_GAP_S = 2.0
#: Longest wait between two polls in seconds; with a delay by other load, the gap stays below the
#: limit above.
_MAX_WAIT_S = 0.5
#: Longest path of a folder for sockets, in bytes. A socket's path may have 108 bytes, and
#: multiprocessing adds two names to the folder.
_MAX_TEMPORARY_BYTES = 60


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


class ServerDiedError(SvmbenchError):
    """The worker server has ended, so the results of its workers can't be read."""


def describe_exit(exit_code: int) -> str:
    """Return a sentence for a process that ended with an exit code."""
    if exit_code >= 0:
        return f"the worker ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"the worker died of {name}"


@dataclass(eq=False)
class WorkerProcess:
    """A worker process; its result can be read once `check` returns True."""

    process: BaseProcess
    connection: Connection
    deadline: float
    inbox: ipc.Inbox
    _outcome: list[Any] = field(default_factory=list)

    def check(self) -> bool:
        """Read the result, or kill the worker at its deadline; return True if it has ended."""
        if self._outcome:
            return True
        # Check for the end first: then the pipe has all that the worker wrote.
        has_ended = bool(wait([self.process.sentinel], timeout=0))
        try:
            answer = self.inbox.take()
        except ipc.BadAnswerError as error:
            self._outcome = [error]
        else:
            if answer is not None:
                self._outcome = [answer]
            elif has_ended:
                self._outcome = [self._end()]
            elif time.monotonic() > self.deadline:
                self._outcome = [TimedOutError()]
        if self._outcome:
            self.stop()
        return bool(self._outcome)

    def _end(self) -> Exception:
        self.process.join(timeout=10)
        code = self.process.exitcode
        if code == _UNKNOWN_EXIT_CODE and _server_ends():
            return ServerDiedError("the process that starts workers died")
        return DiedError(code if code is not None else -signal.SIGKILL)

    def result(self) -> Reply:
        """Return the function's result; only after `check` has returned True.

        Raises
        ------
        TimedOutError, DiedError, ServerDiedError, svmbench.experiment.run.ipc.BadAnswerError
            If the worker ended without a valid result.
        """
        outcome = self._outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        return cast(Reply, outcome)

    def reply(self, timeout_s: float) -> Reply:
        """Return the fields for the record: the result, or a status with the reason for the end.

        Parameters
        ----------
        timeout_s : float
            The time limit in seconds, for the reason.

        Raises
        ------
        ServerDiedError
            If the worker server has died.
        """
        try:
            return self.result()
        except TimedOutError:
            return {"status": "timeout", "reason": f"stopped after {timeout_s:g} s"}
        except ipc.BadAnswerError as error:
            return {"status": "failed", "reason": str(error)}
        except DiedError as error:
            return {"status": "crashed", "reason": str(error)}

    def stop(self) -> None:
        """Kill the worker and its child processes, and wait for the worker's end."""
        has_answered = bool(self._outcome) and isinstance(self._outcome[0], dict)
        self.process.join(timeout=1.0 if has_answered else 0.0)
        if self.process.is_alive():
            # The programs' launcher kills them, too, unless a program stops the launcher.
            self._signal_programs(signal.SIGKILL)
        self.signal(signal.SIGKILL)
        if self.process.is_alive():
            self.process.kill()  # it had no process group yet
            self.process.join(timeout=10)
        self.connection.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker and its child processes."""
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def stop_for_now(self) -> None:
        """Stop the worker, its child processes and the programs that it runs until `go_on`."""
        self.signal(signal.SIGSTOP)
        self._signal_programs(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue the processes that `stop_for_now` has stopped."""
        self._signal_programs(signal.SIGCONT)
        self.signal(signal.SIGCONT)

    def _signal_programs(self, number: int) -> None:
        """Send a signal to the external programs that the worker runs, but not to their launchers.

        A launcher (`svmbench.baselines.launcher`) leads a session of its own, in which a program
        runs. It must go on, because it watches for the worker's end.
        """
        for pid in proc.descendants(self.process.pid or 0):
            with contextlib.suppress(OSError):
                if os.getsid(pid) not in (pid, self.process.pid):
                    os.kill(pid, number)


def start(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> WorkerProcess:
    """Call a function in a new worker process.

    Parameters
    ----------
    function : callable
        A function of a module; its result must be a dict of JSON values with a ``status``.
    args : tuple
        Its arguments.
    timeout_s : float
        Seconds until the worker is killed.

    Raises
    ------
    ServerDiedError
        If the worker server has died.
    """
    context = multiprocessing.get_context("forkserver")
    reading_end, writing_end = context.Pipe(duplex=False)
    call_args = (writing_end, os.environ.get(paths.CACHE_VARIABLE), function, args)
    process = context.Process(target=_call, args=call_args, daemon=True)
    try:
        _check_room_for_descriptors(writing_end.fileno())
        with without_unguarded_script():
            process.start()
    except (EOFError, ConnectionError) as error:
        reading_end.close()
        raise ServerDiedError("the process that starts workers died") from error
    finally:
        writing_end.close()
    return WorkerProcess(
        process, reading_end, time.monotonic() + timeout_s, ipc.Inbox(reading_end.fileno())
    )


def _check_room_for_descriptors(descriptor: int) -> None:
    """Raise OSError if too few file descriptors are free to start a process.

    If multiprocessing ran out of descriptors halfway, the new process would print a traceback.
    """
    copies: list[int] = []
    try:
        copies.extend(os.dup(descriptor) for _ in range(_DESCRIPTORS_TO_START))
    finally:
        for copy in copies:
            os.close(copy)


class SuspensionClock:
    """A clock of the time during which this process was stopped (Ctrl-Z).

    It must be read at least every `_MAX_POLL_GAP_S`: it takes a longer gap for a stop.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()

    def suspended_s(self) -> float:
        """Return the seconds since the last call if they are too many for a poll; otherwise 0."""
        before, self._last = self._last, time.monotonic()
        return self._last - before if self._last - before > _MAX_POLL_GAP_S else 0.0


def wait_for(
    works: Iterable[WorkerProcess], timeout_s: float, clock: SuspensionClock
) -> list[WorkerProcess]:
    """Wait until a worker ends, at most `timeout_s`; return all workers that have ended.

    If this process was stopped meanwhile, the workers' deadlines move by the same time. A wait
    lasts at most `_MAX_WAIT_S`, so that the clock doesn't take the wait itself for a stop.
    """
    works = list(works)
    nearest = min((w.deadline for w in works), default=float("inf")) - time.monotonic()
    watched: list[Any] = [w.process.sentinel for w in works]
    watched += [w.connection for w in works if not w.inbox.is_closed]
    wait(watched, timeout=max(0.0, min(timeout_s, nearest, _MAX_WAIT_S)))
    suspended_s = clock.suspended_s()
    for work in works:
        work.deadline += suspended_s
    return [work for work in works if work.check()]


def describe_worker(threads: int) -> dict[str, Any]:
    """Return a worker's description of its machine and its libraries.

    The libraries of a worker may have other settings than those of this process.

    Parameters
    ----------
    threads : int
        Number of threads of a worker.

    Returns
    -------
    dict
        See :func:`svmbench.experiment.measuring.environment.environment_facts`.

    Raises
    ------
    ServerDiedError
        If the worker server has died.
    svmbench.base.errors.SvmbenchError
        If the worker dies, as on a CPU without the instructions of the BLAS core type.
    """
    work = start(_describe, (threads,), _DESCRIBE_TIMEOUT_S)
    clock = SuspensionClock()
    try:
        while not wait_for([work], _MAX_WAIT_S, clock):
            pass
    except KeyboardInterrupt:
        work.stop()
        raise
    try:
        return dict(cast(dict[str, Any], work.result())["facts"])
    except (TimedOutError, DiedError, ipc.BadAnswerError) as error:
        core = os.environ.get(loaded_libraries.CORE_VARIABLE)
        under = f" under OpenBLAS's core type {core}" if core else ""
        raise SvmbenchError(
            f"no worker can multiply two matrices{under} ({str(error) or 'it takes too long'})"
            + (": does this CPU have its instructions?" if core else "")
        ) from error


def _describe(threads: int) -> dict[str, Any]:
    import numpy as np

    # This call kills the process if the CPU lacks the instructions of the BLAS core type.
    np.ones((64, 64)) @ np.ones((64, 64))
    return {"status": "ok", "facts": environment.environment_facts(threads)}


@contextmanager
def warm_server(threads: int, solvers: Iterable[str], blas_core: str | None) -> Iterator[None]:
    """Start the worker server, with libraries and compiled code loaded.

    Parameters
    ----------
    threads : int
        Number of threads of a worker.
    solvers : iterable of str
        Names of the solvers whose compiled code is loaded.
    blas_core : str or None
        OpenBLAS's core type; None for OpenBLAS's own choice.
    """
    settings = {name: str(threads) for name in loaded_libraries.THREAD_VARIABLES}
    settings[environment.PRELOAD_VARIABLE] = ",".join(solvers)
    settings[PARENT_VARIABLE] = str(os.getpid())
    if blas_core is not None:
        settings[loaded_libraries.CORE_VARIABLE] = blas_core
    context = multiprocessing.get_context("forkserver")
    # A worker imports the parent's main script again. If that is svmbench's command line, the
    # server imports it once for all workers.
    command_line = [_COMMAND_LINE] if _COMMAND_LINE in sys.modules else []
    context.set_forkserver_preload([*command_line, "svmbench.experiment.run.preload"])
    with _variables(settings):
        _ensure_server()
        yield


@contextmanager
def _variables(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and restore them at the end."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def start_server_again() -> None:
    """Start another server after one has died.

    The new server calls no solver while it loads, since a solver may have killed the first one.
    """
    os.environ[environment.PRELOAD_VARIABLE] = ""
    _server_ends()  # otherwise, multiprocessing would take the ending server for a running one
    _ensure_server(by_fork=False)


def server_is_there() -> bool:
    """Return True if the worker server is running."""
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if pid is None:
        return False
    try:
        # Don't reap the process: multiprocessing does when it starts another.
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _server_ends() -> bool:
    """Return True if the server has ended or ends within a second; its pipes close earlier."""
    deadline = time.monotonic() + 1.0
    while server_is_there() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not server_is_there()


#: OpenBLAS's core type in the environment of the running server.
_core_of_server: str | None = None


def _ensure_server(*, by_fork: bool = True) -> None:
    global _core_of_server
    core = os.environ.get(loaded_libraries.CORE_VARIABLE)
    if server_is_there():
        if core == _core_of_server:
            return
        stop_server()
    _core_of_server = core
    # Otherwise, the server would look for this package in the current folder first.
    name, value = environment.SAFE_PATH
    safe_path = _variables({name: os.environ.get(name) or value})
    forks = by_fork and forked_server.can_be_forked()
    start_method = forked_server.by_fork() if forks else nullcontext()
    # A new interpreter ignores Ctrl-C if this process does when it starts; a fork by itself.
    no_interrupts = interrupts_wait() if forks else ignoring_interrupts()
    with no_interrupts, _room_for_a_socket(), _nameless_socket(), safe_path, start_method:
        forkserver.ensure_running()


def stop_server() -> None:
    """Stop the worker server, if there is one, and wait for its end."""
    if _address().startswith(_descriptors()):
        _set_address("\0")  # for such an address, multiprocessing removes no file
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


#: A file descriptor of the server's socket; -1 without a server.
_socket = -1


@contextmanager
def _nameless_socket() -> Iterator[None]:
    """Remove the socket file of a server that starts in this context; keep a descriptor of it.

    multiprocessing removes the file only when this process ends normally, not if it is killed.
    """
    global _socket
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if not Path(_descriptors()).is_dir():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="svmbench-") as folder:
        before, config["tempdir"] = config.get("tempdir"), folder
        try:
            yield
            address = _address()
            if address.startswith(folder):
                if _socket >= 0:
                    os.close(_socket)
                _socket = os.open(address, os.O_PATH | os.O_CLOEXEC)
                _set_address(f"{_descriptors()}{_socket}")
        finally:
            config["tempdir"] = before


def _descriptors() -> str:
    """Return Linux's folder of this process's file descriptors."""
    return f"{measure.PROC}/self/fd/"


def _address() -> str:
    return str(forkserver._forkserver._forkserver_address or "")  # type: ignore[attr-defined]


def _set_address(address: str) -> None:
    forkserver._forkserver._forkserver_address = address  # type: ignore[attr-defined]


@contextmanager
def _room_for_a_socket() -> Iterator[None]:
    """Give multiprocessing a temporary folder whose path is short enough for a socket.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If there is no such folder.
    """
    before, usual = tempfile.tempdir, tempfile.gettempdir()
    if len(os.fsencode(usual)) > _MAX_TEMPORARY_BYTES:
        short = [folder for folder in ("/tmp", "/var/tmp") if os.access(folder, os.W_OK)]
        if not short:
            raise SvmbenchError(
                f"the path of the temporary folder is too long for a socket ({usual}): let TMPDIR"
                f" name a folder of at most {_MAX_TEMPORARY_BYTES} bytes"
            )
        tempfile.tempdir = short[0]
    try:
        yield
    finally:
        tempfile.tempdir = before


#: In a worker, the pipe to the parent; -1 elsewhere.
_to_parent = -1


def send_result(result: Reply) -> None:
    """Send a result from a worker to its parent, which reads only the first one."""
    if _to_parent >= 0:
        with contextlib.suppress(BrokenPipeError):
            ipc.send(_to_parent, ipc.encode(result))


def _call(
    connection: Connection,
    cache: str | None,  # the command's; the server may have been started with another
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    global _to_parent
    os.setsid()
    if cache is None:
        os.environ.pop(paths.CACHE_VARIABLE, None)
    else:
        os.environ[paths.CACHE_VARIABLE] = cache
    _to_parent = connection.fileno()
    send_result(function(*args))
    connection.close()
