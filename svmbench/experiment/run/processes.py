"""A new process for each piece of work, with a deadline; every kind of end is distinguished.

Processes are forked from a server that has loaded everything once (`preload`), about 50 ms each.
The server is itself a fork of the command where that is the same (`forked_server`).
A pool that reuses or pre-starts workers was tried and is slower for one task a process: it notices
the end of a worker by polling.

Each worker leads a session of its own, so that its child processes can be ended with it. The server
reports the end of a worker, even if a child process keeps the worker's pipe open.
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
from svmbench.base.parallel_map import ignoring_interrupts, without_unguarded_script
from svmbench.experiment.measuring import environment, measure, proc
from svmbench.experiment.run import forked_server, ipc
from svmbench.schema.record import Reply

#: Number of open files that multiprocessing needs while it starts a process: a socket, two pipes
#: and a copy of one end.
_DESCRIPTORS_TO_START = 6
#: Environment variable with the process whose end stops the server of workers while it loads.
PARENT_VARIABLE = "SVMBENCH_PARENT"
#: The module that the installed script imports.
_COMMAND_LINE = "svmbench.cli"
#: Seconds within which a worker must describe its machine.
_DESCRIBE_TIMEOUT_S = 300.0
#: Exit code that multiprocessing reports if its server died before it passed the real one on.
_UNKNOWN_EXIT_CODE = 255
#: If two polls of the workers are further apart than this many seconds, this process was stopped
#: in between.
_MAX_POLL_GAP_S = 2.0
#: Longest path of a folder for sockets in bytes. A socket's path may have 108 bytes, and
#: multiprocessing adds two names to the folder.
_LONGEST_TEMPORARY_BYTES = 60


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
    """The process that workers are forked from is gone, and with it the news of its workers."""


def describe_exit(exit_code: int) -> str:
    """Return a sentence for the end of a process."""
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
    inbox: ipc.Inbox
    _outcome: list[Any] = field(default_factory=list)

    def check(self) -> bool:
        """Take the result if it is there, or end the process at its deadline; true when over."""
        if self._outcome:
            return True
        # In this order: a worker that has ended has written all that it ever will.
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
        if code == _UNKNOWN_EXIT_CODE and _server_goes():
            return ServerDiedError("the process that starts workers died")
        return DiedError(code if code is not None else -signal.SIGKILL)

    def result(self) -> Reply:
        """Wait for the function; return its result.

        Raises
        ------
        TimedOutError, DiedError, ServerDiedError, svmbench.experiment.run.ipc.BadAnswerError
            If it returned nothing.
        """
        outcome = self._outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        return cast(Reply, outcome)

    def answer(self, timeout_s: float) -> Reply:
        """Return the answer for the record: the result, or the reason for the end.

        Parameters
        ----------
        timeout_s : float
            Its limit, for the reason.

        Raises
        ------
        ServerDiedError
            With the server no result can be had.
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
        """End the process and whatever it forked, and wait for it."""
        has_answered = bool(self._outcome) and isinstance(self._outcome[0], dict)
        self.process.join(timeout=1.0 if has_answered else 0.0)
        if self.process.is_alive():
            # Their launcher ends them too, unless one of them keeps stopping it.
            self._signal_programs(signal.SIGKILL)
        self.signal(signal.SIGKILL)
        if self.process.is_alive():
            self.process.kill()  # before it had a group of its own
            self.process.join(timeout=10)
        self.connection.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker and to what it forked."""
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def stop_for_now(self) -> None:
        """Stop the worker, what it forked, and the programs that it runs, until `go_on`."""
        self.signal(signal.SIGSTOP)
        self._signal_programs(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let all go on that `stop_for_now` has stopped."""
        self._signal_programs(signal.SIGCONT)
        self.signal(signal.SIGCONT)

    def _signal_programs(self, number: int) -> None:
        """Send a signal to descendants in other sessions, but to their leaders.

        Those watch for the worker's end, which they would miss.
        """
        for pid in proc.descendants(self.process.pid or 0):
            with contextlib.suppress(OSError):
                if os.getsid(pid) not in (pid, self.process.pid):
                    os.kill(pid, number)


def start(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Work:
    """Call a function, which returns what JSON can hold, in a process of its own.

    Raises
    ------
    ServerDiedError
        If there is no server to fork it from.
    """
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    given = (theirs, os.environ.get(paths.CACHE_VARIABLE), function, args)
    process = context.Process(target=_call, args=given, daemon=True)
    try:
        _check_room_for_descriptors(theirs.fileno())
        with without_unguarded_script():
            process.start()
    except (EOFError, ConnectionError) as error:
        ours.close()
        raise ServerDiedError("the process that starts workers died") from error
    finally:
        theirs.close()
    return Work(process, ours, time.monotonic() + timeout_s, ipc.Inbox(ours.fileno()))


def _check_room_for_descriptors(one: int) -> None:
    """Raise the OSError of too many open files before a process is begun, rather than halfway.

    A process that was begun and is told nothing prints a traceback.
    """
    held: list[int] = []
    try:
        held.extend(os.dup(one) for _ in range(_DESCRIPTORS_TO_START))
    finally:
        for descriptor in held:
            os.close(descriptor)


class Absence:
    """Clock of the time that this process was stopped (Ctrl-Z), from gaps between calls."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def ended(self) -> float:
        """Return the seconds stopped since the last call; 0 if there was no stop."""
        before, self._last = self._last, time.monotonic()
        return self._last - before if self._last - before > _MAX_POLL_GAP_S else 0.0


def wait_for(works: Iterable[Work], timeout_s: float, absence: Absence) -> list[Work]:
    """Wait until one of the processes is over, or for so long; return those that are.

    What this process missed while it was stopped costs none of them its result: their deadlines
    are put off by as much.
    """
    works = list(works)
    nearest = min((w.deadline for w in works), default=float("inf")) - time.monotonic()
    ends: list[Any] = [w.process.sentinel for w in works]
    ends += [w.connection for w in works if not w.inbox.is_closed]
    wait(ends, timeout=max(0.0, min(timeout_s, nearest)))
    missed = absence.ended()
    for work in works:
        work.deadline += missed
    return [work for work in works if work.check()]


def describe_worker(threads: int) -> dict[str, Any]:
    """Have a worker describe its machine and its libraries, which may be set up other than ours.

    Parameters
    ----------
    threads : int
        How many threads a worker has.

    Returns
    -------
    dict
        As of :func:`svmbench.experiment.measuring.environment.environment_facts`.

    Raises
    ------
    ServerDiedError
        If there is no server to fork the worker from.
    svmbench.base.errors.SvmbenchError
        If the worker dies, as it does on a CPU that lacks the instructions of the core type.
    """
    work = start(_describe, (threads,), _DESCRIBE_TIMEOUT_S)
    absence = Absence()
    try:
        while not wait_for([work], _DESCRIBE_TIMEOUT_S, absence):
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

    # A CPU without the instructions of the core type ends the process here.
    np.ones((64, 64)) @ np.ones((64, 64))
    return {"status": "ok", "facts": environment.environment_facts(threads)}


@contextmanager
def warm_server(threads: int, solvers: Iterable[str], blas_core: str | None) -> Iterator[None]:
    """Have processes forked from a server that is loaded, warm, and bound to so many threads.

    Parameters
    ----------
    threads : int
    solvers : iterable of str
        The solvers whose compiled code is loaded.
    blas_core : str or None
        OpenBLAS's core type; None for its own choice.
    """
    settings = {name: str(threads) for name in loaded_libraries.THREAD_VARIABLES}
    settings[environment.PRELOAD_VARIABLE] = ",".join(solvers)
    settings[PARENT_VARIABLE] = str(os.getpid())
    if blas_core is not None:
        settings[loaded_libraries.CORE_VARIABLE] = blas_core
    context = multiprocessing.get_context("forkserver")
    # A worker imports the parent's main script again. Where that is svmbench's, its imports are
    # made once, in the server.
    command_line = [_COMMAND_LINE] if _COMMAND_LINE in sys.modules else []
    context.set_forkserver_preload([*command_line, "svmbench.experiment.run.preload"])
    with _variables(settings):
        _ensure_server()
        yield


@contextmanager
def _variables(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
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
    """Start another server in the place of one that died.

    It calls no solver while it loads: were one to end the server there, it would do so again.
    """
    os.environ[environment.PRELOAD_VARIABLE] = ""
    _server_goes()  # multiprocessing takes one that is still ending for one that runs
    _ensure_server(by_fork=False)


def server_is_there() -> bool:
    """Return True if the server of workers is running."""
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if pid is None:
        return False
    try:
        # It is only looked at: multiprocessing reaps it when it starts another.
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _server_goes() -> bool:
    """Return True if the server has ended, or ends within a second: its pipes close first."""
    patience = time.monotonic() + 1.0
    while server_is_there() and time.monotonic() < patience:
        time.sleep(0.01)
    return not server_is_there()


#: The core type of OpenBLAS in the server's environment, which it keeps as long as it runs.
_core_of_server: str | None = None


def _ensure_server(*, by_fork: bool = True) -> None:
    global _core_of_server
    core = os.environ.get(loaded_libraries.CORE_VARIABLE)
    if core != _core_of_server and server_is_there():
        stop_server()
    _core_of_server = core
    # The server would else look for this package in the current folder first.
    name, value = environment.SAFE_PATH
    own = _variables({name: os.environ.get(name) or value})
    how = forked_server.by_fork() if by_fork and forked_server.can_be_forked() else nullcontext()
    with ignoring_interrupts(), _room_for_a_socket(), _nameless_socket(), own, how:
        forkserver.ensure_running()


def stop_server() -> None:
    """Stop the server of workers, if there is one, and wait for its end."""
    if _address().startswith(_descriptors()):
        _set_address("\0")  # there is no file that multiprocessing could remove
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


#: The descriptor that leads to the server's socket; -1 without one.
_socket = -1


@contextmanager
def _nameless_socket() -> Iterator[None]:
    """Remove the socket of a server that is started meanwhile; an open descriptor leads to it.

    multiprocessing removes the folder of its socket when this process ends, which a process that
    is killed does not do.
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
    """Return Linux's folder of the files that this process has open."""
    return f"{measure.PROC}/self/fd/"


def _address() -> str:
    return str(forkserver._forkserver._forkserver_address or "")  # type: ignore[attr-defined]


def _set_address(address: str) -> None:
    forkserver._forkserver._forkserver_address = address  # type: ignore[attr-defined]


@contextmanager
def _room_for_a_socket() -> Iterator[None]:
    """Have multiprocessing choose its temporary folder where the path of a socket fits.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If no such folder can be written.
    """
    before, usual = tempfile.tempdir, tempfile.gettempdir()
    if len(os.fsencode(usual)) > _LONGEST_TEMPORARY_BYTES:
        short = [folder for folder in ("/tmp", "/var/tmp") if os.access(folder, os.W_OK)]
        if not short:
            raise SvmbenchError(
                f"the path of the temporary folder is too long for a socket ({usual}): let TMPDIR"
                f" name a folder of at most {_LONGEST_TEMPORARY_BYTES} bytes"
            )
        tempfile.tempdir = short[0]
    try:
        yield
    finally:
        tempfile.tempdir = before


#: The pipe to the parent, in a worker.
_to_parent = -1


def send_result(result: Reply) -> None:
    """Send a result from a worker to its parent, who takes the first alone, if it still waits."""
    if _to_parent >= 0:
        with contextlib.suppress(BrokenPipeError):
            ipc.send(_to_parent, ipc.encode(result))


def _call(
    connection: Connection,
    cache: str | None,  # of the command now; the server's may be that of an earlier run
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
