"""The settings under which a process has loaded its numerical libraries, which read them once."""

from __future__ import annotations

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

#: The values of these variables when the libraries were loaded; empty where they aren't known.
_loaded_under: dict[str, str | None] = {}


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
