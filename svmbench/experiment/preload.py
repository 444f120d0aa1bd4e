"""Imported once by the process that workers are forked from, so that forks start warm.

Numerical libraries are loaded, and the compiled loops of the solvers that the plan needs are
loaded and called once on tiny data. A solver that fails here fails again, and is reported, in its
own cell.
"""

from __future__ import annotations

import contextlib
import gc
import os

import numpy as np  # noqa: F401
import pandas as pd  # noqa: F401
import scipy.sparse as sp  # noqa: F401
import sklearn.model_selection
import sklearn.preprocessing  # noqa: F401
import threadpoolctl  # noqa: F401

import svmbench.data.prepare
import svmbench.experiment.race
import svmbench.experiment.worker
from svmbench.experiment.environment import PRELOAD_VARIABLE
from svmbench.experiment.measure import warm

svmbench.data.names()  # the registry, parsed and checked once instead of in every cell
for _name in filter(None, os.environ.get(PRELOAD_VARIABLE, "").split(",")):
    with contextlib.suppress(Exception):
        warm(_name)

# What is loaded here lives as long as the worker: out of the collector's sight, so that the
# collection before each timed span costs microseconds instead of a tenth of a second.
gc.collect()
gc.freeze()
