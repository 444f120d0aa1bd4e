"""The worker server as a fork of the command, which has imported most modules already.

A new interpreter would need one to two seconds for the imports. A fork is equivalent only if

- the libraries were loaded with the settings of a worker, one thread each: a fork doesn't have the
  threads of a library, and may wait for them forever;
- Python has no other thread, which could hold a lock.

Threads of memory allocators do no harm; a new interpreter has them, too, when it forks workers.
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

#: In a fork, the command's output streams, kept only so that Python doesn't close them: that
#: would write text that the command could not write.
_STREAMS_BEFORE: list[Any] = []


def can_be_forked() -> bool:
    """Return True if a fork of this process is equivalent to a new interpreter."""
    return (
        loaded_libraries.are_loaded_under(os.environ)
        and loaded_libraries.have_one_thread()
        and proc.open_descriptors() is not None
        and threading.active_count() == 1
    )


@contextmanager
def by_fork() -> Iterator[None]:
    """Make multiprocessing fork its server from this process."""
    resource_tracker.ensure_running()  # start it before: it must not be a fork
    usual = multiprocessing.util.spawnv_passfds  # type: ignore[attr-defined]
    multiprocessing.util.spawnv_passfds = _fork  # type: ignore[attr-defined, assignment]
    try:
        yield
    finally:
        multiprocessing.util.spawnv_passfds = usual  # type: ignore[attr-defined]


def _fork(_interpreter: str, words: list[str], descriptors: Iterable[int]) -> int:
    """Run the code of an interpreter's option ``-c`` in a fork; return the process's id.

    It replaces multiprocessing's `spawnv_passfds`; the last word is the code.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for threads that aren't Python's
        pid = os.fork()
    if pid == 0:
        _serve(words[-1], {0, 1, 2, *descriptors})
    return pid


def _anew(stream: TextIO | None, descriptor: int) -> Any:
    """Return a new stream without the unwritten text of an old one, as left by a full disk."""
    if stream is None:
        return None
    encoding, errors = stream.encoding, stream.errors
    return open(descriptor, "w", buffering=1, encoding=encoding, errors=errors, closefd=False)


def _serve(command: str, descriptors: set[int]) -> NoReturn:
    """Reset the state that a new interpreter wouldn't have, and run the server's code.

    The function doesn't return: leaving the caller's frames would close their files a second time.
    """
    code = 1
    try:
        proc.rename_process("forkserver")
        gc.freeze()  # otherwise, the first collection would copy all of the command's memory
        loaded_libraries.collect_as_usual()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        _STREAMS_BEFORE.extend([sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__])
        sys.stdout, sys.stderr = _anew(sys.__stdout__, 1), _anew(sys.__stderr__, 2)
        logging.getLogger("svmbench").handlers[:] = [logging.NullHandler()]
        for descriptor in {*(proc.open_descriptors() or ())} - descriptors:
            with suppress(OSError):  # the descriptor that read the list is closed already
                os.close(descriptor)
        exec(command, {})  # multiprocessing's code
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
