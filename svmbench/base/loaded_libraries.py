"""Settings of numerical libraries, which read them from the environment once, while they load."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping

#: Environment variables with the number of threads of a numerical library.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

#: Environment variable with the type of CPU for which OpenBLAS chooses its code.
CORE_VARIABLE = "OPENBLAS_CORETYPE"

#: High thresholds of the garbage collector: new objects, then collections of younger generations.
_RARE = (50_000, 10, 10)
#: The default thresholds of the garbage collector.
_usual = gc.get_threshold()

#: The values of `THREAD_VARIABLES` and `CORE_VARIABLE` when the libraries were loaded; empty if
#: unknown.
_loaded_under: dict[str, str | None] = {}


def collect_rarely() -> None:
    """Make the garbage collector run rarely, and not at the end of the interpreter.

    Objects that imports create live until the end, so that collections find little and cost time.
    """
    gc.set_threshold(*_RARE)
    atexit.register(gc.freeze)


def collect_as_usual() -> None:
    """Reset the garbage collector to its default thresholds."""
    gc.set_threshold(*_usual)


def load_with_one_thread() -> None:
    """Make this process load the libraries with one thread each, like most workers.

    Variables that the user has set stay. If NumPy is loaded already, nothing happens.
    """
    if "numpy" in sys.modules:
        return
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
    _loaded_under.update(
        {name: os.environ.get(name) for name in (*THREAD_VARIABLES, CORE_VARIABLE)}
    )


def are_loaded_under(environment: Mapping[str, str]) -> bool:
    """Return True if a new process with these variables would load the libraries like this one.

    Parameters
    ----------
    environment : mapping of str to str
        All environment variables.
    """
    return bool(_loaded_under) and all(
        environment.get(name) == value for name, value in _loaded_under.items()
    )


def have_one_thread() -> bool:
    """Return True if the libraries of this process are known to have one thread each."""
    return bool(_loaded_under) and all(
        _loaded_under.get(name, "1") == "1" for name in THREAD_VARIABLES
    )
