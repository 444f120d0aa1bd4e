"""Interpreters that tests start, as forks of one process that has imported the libraries.

Each would else import for more than a second what the one before it has imported. The package
itself is imported by each: what it knows depends on its plug-ins, and on where it lies.
"""

from __future__ import annotations

import _posixsubprocess
import ast
import atexit
import ctypes
import fcntl
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: What most commands import.
LIBRARIES = ("numba", "sklearn.model_selection", "matplotlib.figure", "pydantic", "rich.console")
RUN_COMMAND = "from svmbench.cli import main; main()"
#: How the statements of ``python -c`` begin that are run in a fork: of commands, of servers of
#: workers, and of workers without a server.
FORKED = (
    RUN_COMMAND,
    "from multiprocessing.forkserver import main; ",
    "from multiprocessing.spawn import spawn_main; ",
)
#: How the names of variables begin that nothing but the package needs while it is imported.
MAY_DIFFER = (
    *("SVMBENCH_", "PYTEST_", "SABOTAGE_", "SLOW_"),
    *("PATH", "PYTHONPATH", "PYTHONSAFEPATH", "TMPDIR", "COLUMNS", "TERM", "NO_COLOR"),
    "NUMBA_CACHE_DIR",  # the package names it to Numba after the import
)
#: Received files have this number or more until they get the numbers that were asked for.
HIGH = 512
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Only there can another process make a child of this one.
IS_LINUX = sys.platform == "linux"
#: A program ``svmbench`` for a shell: it hands its words, folder, variables and streams to a fork.
PROGRAM = """\
#!{python} -SE
import os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
    line.connect({address!r})
    told = {{
        "words": ["-c", {statements!r}, *sys.argv[1:]],
        "folder": os.getcwd(),
        "variables": dict(os.environ),
        "numbers": [0, 1, 2],
    }}
    socket.send_fds(line, [repr(told).encode()], [0, 1, 2])
    sys.exit(int(line.recv(16)))
"""


def prctl(what: int, value: int) -> None:
    """Set a property of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {what}")


class WarmPython:
    """The process that is forked; it is started when it is first needed, until `end`.

    Parameters
    ----------
    address : str
        Path of the socket at which it is asked.
    """

    def __init__(self, address: str) -> None:
        # The process itself imports nothing of the package.
        from svmbench.base.loaded_libraries import THREAD_VARIABLES

        self.address = address
        self.one_thread = dict.fromkeys(THREAD_VARIABLES, "1")
        self.variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.variables |= self.one_thread
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start the process, where it has not been started."""
        if self._process is not None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind(self.address)
            door.listen()
            statements = (
                f"import sys; sys.path.insert(0, {str(HERE)!r}); import warm_python\n"
                f"del sys.path[0]; warm_python.run(warm_python.serve({door.fileno()}))"
            )
            self._process = subprocess.Popen(
                [sys.executable, "-c", statements],
                env=self.variables,
                pass_fds=[door.fileno()],
                # Pipes: Python would ask a file for its position, which an output may lack.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )

    def end(self) -> None:
        """End the process, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def write_program(self, path: Path) -> None:
        """Write a program ``svmbench`` whose calls are forks, but not the caller's children."""
        self.begin()
        path.write_text(
            PROGRAM.format(python=sys.executable, address=self.address, statements=RUN_COMMAND)
        )
        path.chmod(0o755)

    def is_like(self, variables: Mapping[str, str]) -> bool:
        """Return True if the libraries of a new process would read what they have read here."""
        read = [
            {k: v for k, v in one.items() if not k.startswith(MAY_DIFFER)}
            # Where a command's variables say nothing of threads, it says one itself.
            for one in (self.one_thread | dict(variables), self.variables)
        ]
        return read[0] == read[1]

    def fork(self, words: Sequence[str], files: Mapping[int, int], **told: Any) -> int:
        """Have a fork as a child of this process.

        Parameters
        ----------
        words : sequence of str
            What follows ``python``.
        files : mapping of int to int
            The child's files by their numbers there.
        told : folder, variables, is_leader

        Returns
        -------
        int
            Its process id.
        """
        signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
        request = {
            "words": words,
            "numbers": [*files],
            "ignored": [int(n) for n, what in signals.items() if what == signal.SIG_IGN],
            "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
            "is_child": True,
            **told,
        }
        with self._lock, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
            self.begin()
            line.connect(self.address)
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(line, [repr(request).encode()], [*files.values()])
                return int(line.recv(16))
            finally:
                prctl(PR_SET_CHILD_SUBREAPER, 0)


@contextmanager
def warm_children(warm: WarmPython) -> Iterator[None]:
    """Have this process's commands and servers of workers be such forks, where they can be."""
    usual = subprocess._fork_exec  # type: ignore[attr-defined]

    def fork_exec(*told: Any) -> int:
        words, _, _, kept, folder, listed, *files = told[:12]
        failed, session, group, *user, before = told[13], *told[15:22]
        variables = dict(os.environ)
        if listed is not None:
            variables = dict(os.fsdecode(one).split("=", 1) for one in listed)
        words = [os.fsdecode(word) for word in words]
        is_plain = IS_LINUX and (group, *user, before) == (-1, None, None, None, -1, None)
        is_forked = words[:2] == [sys.executable, "-c"] and words[2].startswith(FORKED)
        if not (is_plain and is_forked and warm.is_like(variables)):
            return int(usual(*told))
        streams = (files[0], files[3], files[5])
        theirs = {number: number if own < 0 else own for number, own in enumerate(streams)}
        theirs |= {number: number for number in kept if number != failed}
        return warm.fork(
            words[1:],
            theirs,
            folder=str(Path(os.fsdecode(folder or ".")).absolute()),
            variables=variables,
            is_leader=session,
        )

    replaced = (
        (subprocess, "_fork_exec", fork_exec),
        (_posixsubprocess, "fork_exec", fork_exec),
        (subprocess, "_USE_POSIX_SPAWN", False),
    )
    before = [getattr(module, name) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(replaced, before, strict=True):
            setattr(module, name, value)


def serve(descriptor: int) -> str:
    """Fork for each who asks; return in each fork, with the statements that it is to run."""
    if IS_LINUX:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for name in LIBRARIES:
        import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as door:
        while True:
            line, _ = door.accept()
            with line:
                told, files, *_ = socket.recv_fds(line, 2**18, 16)
                request = ast.literal_eval(told.decode())
                if forked(line, is_child=request.pop("is_child", False)):
                    break
            for file in files:
                os.close(file)
    return become(files, **request)


def run(statements: str) -> None:
    """Run statements; end as an interpreter does, which would also free all memory bit by bit."""
    code: object = 0
    try:
        exec(statements, {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            raise
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code & 255)


def forked(line: socket.socket, *, is_child: bool) -> bool:
    """Fork twice, so that the second fork is no child of this process; return True there.

    Whoever asks is told its process id, when the first has ended, and the second is their child; or
    its exit code by the first, when the second has ended.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    named, naming = os.pipe()
    begins, begin = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(begin)
        pid = os.fork()
        if pid == 0:
            os.read(begins, 1)  # it ends when the process that it comes from has closed the pipe
            for end in (begins, named, naming):
                os.close(end)
            return True
        os.write(naming, str(pid).encode())
        if not is_child:
            for end in (begins, named, naming):
                os.close(end)
            line.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    if is_child:
        os.waitpid(between, 0)
    name = os.read(named, 16)
    for end in (begins, begin, named, naming):
        os.close(end)
    if is_child:
        line.send(name)
    return False


def become(
    files: Sequence[int],
    *,
    words: Sequence[str],
    numbers: Sequence[int],
    folder: str,
    variables: Mapping[str, str],
    is_leader: bool = False,
    ignored: Sequence[int] = (signal.SIGPIPE, signal.SIGXFSZ),
    blocked: Iterable[int] = (),
) -> str:
    """Make this fork like an interpreter started with all that; return the statements to run."""
    if is_leader:
        os.setsid()
    kept = [fcntl.fcntl(file, fcntl.F_DUPFD, HIGH) for file in files]
    os.closerange(0, HIGH)
    for file, number in zip(kept, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=stream.isatty())  # type: ignore[union-attr]
    for number in signal.valid_signals():
        if number in ignored:
            signal.signal(number, signal.SIG_IGN)
        elif signal.getsignal(number) == signal.SIG_IGN:  # as it was where this process was begun
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    first = [] if variables.get("PYTHONSAFEPATH") else [""]
    named = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [*first, *named, *(entry for entry in sys.path if entry)]
    tempfile.tempdir = None
    sys.argv = ["-c", *words[2:]]
    statements = words[1]
    if statements == RUN_COMMAND:
        # As if the command had loaded NumPy under its own variables.
        from svmbench.base import loaded_libraries

        numpy = sys.modules.pop("numpy")
        loaded_libraries.load_with_one_thread()
        sys.modules["numpy"] = numpy
    return statements
