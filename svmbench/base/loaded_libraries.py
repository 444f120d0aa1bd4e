"""The settings under which a process loads its numerical libraries, which read them once."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping

#: The variables that decide how many threads a numerical library starts.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

#: Has OpenBLAS compute as on a CPU of another type.
CORE_VARIABLE = "OPENBLAS_CORETYPE"

#: The collector's thresholds for each generation: new objects, and collections of the one before.
_RARE = (50_000, 10, 10)
#: The same as they are in a process that sets none.
_usual = gc.get_threshold()

#: The values of these variables when the libraries were loaded; empty where they aren't known.
_loaded_under: dict[str, str | None] = {}


def collect_rarely() -> None:
    """Have the collector of reference cycles run seldom, and not at the end of the interpreter.

    What an import makes stays, so that a collection finds little there and costs time.
    """
    gc.set_threshold(*_RARE)
    atexit.register(gc.freeze)


def collect_as_usual() -> None:
    """Give the collector the thresholds that it had when this module was imported."""
    gc.set_threshold(*_usual)


def load_with_one_thread() -> None:
    """Have this process load the libraries with one thread each, as most workers have them.

    What the user's environment says of threads stays. Nothing is done where NumPy is loaded.
    """
    if "numpy" in sys.modules:
        return
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
    _loaded_under.update(
        {name: os.environ.get(name) for name in (*THREAD_VARIABLES, CORE_VARIABLE)}
    )


def are_loaded_under(environment: Mapping[str, str]) -> bool:
    """Return True if a new process with these variables would load the libraries as this one has.

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
