"""The server of workers as a fork of the command: what both import is imported once.

An interpreter of its own would import for one to two seconds what the command has imported already.
A fork is the same server only where the libraries were loaded as a worker needs them, with one
thread each (a fork has none of a library's threads, and may wait for them), and where no other
thread of Python could hold a lock. (Allocators have threads of their own, beside which the server
forks workers as well.)
"""

from __future__ import annotations

import gc
import logging
import multiprocessing.util
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any, NoReturn, TextIO

from svmbench.base import loaded_libraries
from svmbench.experiment.measuring import proc

#: The streams of the command in a fork of it, which hold what the command could not write.
_STREAMS_BEFORE: list[Any] = []


def can_be_forked() -> bool:
    """Return True if a fork of this process serves as well as a new interpreter."""
    return (
        loaded_libraries.are_loaded_under(os.environ)
        and loaded_libraries.have_one_thread()
        and proc.open_descriptors() is not None
        and threading.active_count() == 1
    )


@contextmanager
def by_fork() -> Iterator[None]:
    """Have multiprocessing fork its server from this process meanwhile."""
    resource_tracker.ensure_running()  # which is started in the same way, and stays as it is
    usual = multiprocessing.util.spawnv_passfds  # type: ignore[attr-defined]
    multiprocessing.util.spawnv_passfds = _fork  # type: ignore[attr-defined, assignment]
    try:
        yield
    finally:
        multiprocessing.util.spawnv_passfds = usual  # type: ignore[attr-defined]


def _fork(_interpreter: str, words: list[str], descriptors: Iterable[int]) -> int:
    """Do in a fork what an interpreter is told by ``-c``; return the id of the process."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that aren't Python's
        pid = os.fork()
    if pid == 0:
        _serve(words[-1], {0, 1, 2, *descriptors})
    return pid


def _anew(stream: TextIO | None, descriptor: int) -> Any:
    """Return a stream without what the command couldn't write to its own, as on a full disk."""
    if stream is None:
        return None
    encoding, errors = stream.encoding, stream.errors
    return open(descriptor, "w", buffering=1, encoding=encoding, errors=errors, closefd=False)


def _serve(command: str, descriptors: set[int]) -> NoReturn:
    """Leave behind what an interpreter started anew would not have; run the command's statements.

    The caller's frames stay, so that no file that they hold is closed a second time.
    """
    code = 1
    try:
        proc.rename_process("forkserver")
        gc.freeze()  # the first collection would else copy all of the command's memory
        loaded_libraries.collect_as_usual()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        _STREAMS_BEFORE.extend([sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__])
        sys.stdout, sys.stderr = _anew(sys.__stdout__, 1), _anew(sys.__stderr__, 2)
        logging.getLogger("svmbench").handlers[:] = [logging.NullHandler()]
        for descriptor in {*(proc.open_descriptors() or ())} - descriptors:
            with suppress(OSError):  # the list was read through one that is closed
                os.close(descriptor)
        exec(command, {})  # multiprocessing's own statements
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
