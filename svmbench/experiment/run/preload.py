"""Imports and compiled loops that are loaded once, in the process that workers are forked from.

Numerical libraries are loaded, and the compiled loops of the solvers that the plan needs are
loaded and called once on tiny data. A solver that fails here fails again, and is reported, in its
own cell.

multiprocessing's server watches for the end of its parent only after it has loaded everything,
which takes up to half a minute if loops must be compiled. Until then, a thread watches.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading

_loaded = threading.Event()
gc.disable()  # until everything is loaded, which stays


def _end_with(parent: int) -> None:
    while not _loaded.wait(0.2):
        if os.getppid() != parent:
            os._exit(0)


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
    del os.environ[SAFE_PATH[0]]  # the programs that workers start find their modules as usual
with contextlib.suppress(Exception):  # a plug-in that fails is reported by the cell that needs it
    protocols()
svmbench.data.names()  # the registry, parsed and checked once instead of in every cell
for _name in filter(None, os.environ.get(PRELOAD_VARIABLE, "").split(",")):
    with contextlib.suppress(Exception):
        warm(_name)

worker.thread_pools()

# What is loaded here lives as long as the worker: out of the collector's sight, so that the
# collection before each timed span costs microseconds instead of a tenth of a second.
gc.freeze()
gc.enable()

_loaded.set()
if _parent:
    _watch.join()  # forks are made by a process of one thread
