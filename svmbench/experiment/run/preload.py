"""Imports and compiled loops that the worker server loads once, before it forks workers.

The module imports the numerical libraries and calls the compiled loops of the plan's solvers once
on tiny data. A solver that fails here is ignored: it fails again in its own cell, which reports it.

multiprocessing's server notices the end of its parent only after it has loaded everything, which
takes up to half a minute if loops must be compiled. Until then, a thread checks for it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from types import TracebackType

_loaded = threading.Event()
gc.disable()  # until everything is loaded, since none of it is garbage


def _end_with(parent: int) -> None:
    while not _loaded.wait(0.2):
        if os.getppid() != parent:
            os._exit(0)


def _report(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print an uncaught error, but not a worker's whose command ended before it sent the work."""
    if kind is not EOFError:
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _report  # workers inherit it

_parent = int(os.environ.get("SVMBENCH_PARENT", "0"))
_watch = threading.Thread(target=_end_with, args=(_parent,), daemon=True)
if _parent:
    _watch.start()

import numpy as np  # noqa: E402, F401
import pandas as pd  # noqa: E402, F401
import scipy.sparse as sp  # noqa: E402, F401
import sklearn.model_selection  # noqa: E402
import sklearn.preprocessing  # noqa: E402, F401

import svmbench.data.prepare  # noqa: E402
from svmbench.experiment.measuring.environment import PRELOAD_VARIABLE, SAFE_PATH  # noqa: E402
from svmbench.experiment.measuring.measure import warm  # noqa: E402
from svmbench.experiment.protocols import protocols  # noqa: E402
from svmbench.experiment.run import worker  # noqa: E402

if os.environ.get(SAFE_PATH[0]) == SAFE_PATH[1]:
    del os.environ[SAFE_PATH[0]]  # programs that workers start import modules as usual
with contextlib.suppress(Exception):  # a plug-in that fails is reported by the cell that needs it
    protocols()
svmbench.data.names()  # the registry, parsed and checked once instead of in every cell
for _name in filter(None, os.environ.get(PRELOAD_VARIABLE, "").split(",")):
    with contextlib.suppress(Exception):
        warm(_name)

worker.thread_pools()

# Objects loaded here live as long as the workers. Exclude them from garbage collection, so that the
# collection before each timed call takes microseconds instead of a tenth of a second.
gc.freeze()
gc.enable()

_loaded.set()
if _parent:
    _watch.join()  # the server must have a single thread when it forks
