"""LIBLINEAR's linear SVMs, from the authors' package.

Problem
    -s 3  hinge, -s 1 and -s 2 squared hinge; the constant feature of option -B is regularised.
Given
    LIBLINEAR's nodes, built by `prepare`; `train` only calls the C function.
Reference
    Fan et al. 2008; Hsieh et al. 2008 (dual solvers); Lin et al. 2008, Galli and Lin 2021 (primal).
Deviations
    - A dual solver of the package stops after 300 outer iterations, whatever its eps; -s 1 then
      continues with the primal solver. stop_reason_ is "max_iter" for -s 3.
    - The dual solvers draw from the C library's `rand`, which is seeded before each run, so
      that a model doesn't depend on earlier runs.
"""

from __future__ import annotations

import ctypes
import re
import threading
from ctypes import POINTER, c_double
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from svmbench.baselines.nodes import node_lists
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.registry import declare

#: The print function and the random numbers are global: only one thread may train.
_ONE_AT_A_TIME = threading.Lock()

_ITERATIONS = re.compile(r"#iter = (\d+)|^iter\s+(\d+)", re.MULTILINE)


def iterations_of(printed: str) -> int:
    """Return the last printed number of iterations, or 1."""
    numbers = [int(a or b) for a, b in _ITERATIONS.findall(printed)]
    return max(1, numbers[-1]) if numbers else 1


def liblinear_train(problem: Any, parameter: Any, random_state: int) -> tuple[Any, int, str]:
    """Call LIBLINEAR's C function `train`.

    Parameters
    ----------
    problem : problem
    parameter : parameter
    random_state : int
        Seed of the C library's random numbers.

    Returns
    -------
    model : model
    n_iter : int
    stop_reason : str
    """
    from liblinear import liblinear as ll

    pieces: list[bytes] = []
    print_function = ll.PRINT_STRING_FUN(pieces.append)
    with _ONE_AT_A_TIME:
        ll.liblinear.set_print_string_function(print_function)
        ctypes.CDLL(None).srand(int(random_state))
        try:
            model = ll.toPyModel(ll.liblinear.train(problem, parameter))
        finally:
            ll.liblinear.set_print_string_function(ll.ctypes_print_null)
    printed = b"".join(pieces).decode(errors="replace")
    stop_reason = "max_iter" if "reaching max number" in printed else "converged"
    return model, iterations_of(printed), stop_reason


class _Liblinear(LinearClassifierWithC):
    """One of LIBLINEAR's solvers, wrapped in the contract of the suite."""

    C: float
    tol: float
    random_state: int
    _solver: ClassVar[int]

    def _convert(self, data: TrainingData) -> TrainingData:
        """Convert to LIBLINEAR's `problem` structure."""
        from liblinear import liblinear as ll

        nodes, addresses = node_lists(data.X, bias=self.bias)
        # LIBLINEAR's __init__ converts row by row; fill the structure directly instead.
        problem = ll.problem.__new__(ll.problem)
        problem.l = len(data.y)
        problem.n = data.X.shape[1] + bool(self.bias)
        problem.y = data.y.ctypes.data_as(POINTER(c_double))
        problem.x = ctypes.cast(addresses.ctypes.data, POINTER(POINTER(ll.feature_node)))
        problem.bias = self.bias if self.bias else -1.0
        problem.kept = (nodes, addresses, data.y)
        data.native = problem
        return data

    def train(self, data: TrainingData) -> Self:
        """Call LIBLINEAR's C function `train`."""
        from liblinear import liblinear as ll

        parameter = ll.parameter(
            ["-s", str(self._solver), "-c", repr(float(self.C)), "-e", repr(float(self.tol)), "-q"]
        )
        parameter.bias = data.native.bias
        model, n_iter, stop_reason = liblinear_train(data.native, parameter, self.random_state)
        # LIBLINEAR orders +1 before -1, whichever label comes first: w points to the positive
        # class.
        w = np.ctypeslib.as_array(model.w, (data.native.n,)).copy()
        return self._store_with_bias(
            w,
            n_iter=n_iter,
            stop_reason=stop_reason,
            counters={"iterations": n_iter},
        )


@dataclass(eq=False, repr=False, kw_only=True)
class _LiblinearParameters(_Liblinear):
    """A dual solver of LIBLINEAR.

    Parameters
    ----------
    tol : float
        LIBLINEAR's eps: largest violation of the dual's optimality.
    fit_intercept : bool
        Whether a constant feature is appended (option -B).
    random_state : int
        Seed of the C library's random numbers; 1 is what a new process has.

    Attributes
    ----------
    n_iter_ : int
        LIBLINEAR's outer iterations.
    """

    tol: float = 0.1
    random_state: int = 1


@declare(
    name="liblinear-l1",
    problem="hinge",
    summary="LIBLINEAR's dual coordinate descent for the hinge loss",
    reference="LIBLINEAR -s 3 -B 1; Hsieh et al. 2008",
)
class LiblinearL1(_LiblinearParameters):
    """LIBLINEAR -s 3: L2-regularised L1-loss SVM, dual coordinate descent."""

    _solver = 3


@declare(
    name="liblinear-l2-dual",
    problem="squared-hinge",
    summary="LIBLINEAR's dual coordinate descent for the squared hinge loss",
    reference="LIBLINEAR -s 1 -B 1; Hsieh et al. 2008",
)
class LiblinearL2Dual(_LiblinearParameters):
    """LIBLINEAR -s 1: L2-regularised L2-loss SVM, dual coordinate descent."""

    _solver = 1


@declare(
    name="liblinear-l2",
    problem="squared-hinge",
    summary="LIBLINEAR's primal Newton method for the squared hinge loss",
    reference="LIBLINEAR -s 2 -B 1; Lin et al. 2008, Galli and Lin 2021",
)
@dataclass(eq=False, repr=False, kw_only=True)
class LiblinearL2(_Liblinear):
    """LIBLINEAR -s 2: L2-regularised L2-loss SVM, truncated Newton in the primal.

    Parameters
    ----------
    tol : float
        LIBLINEAR's eps: norm of the gradient relative to its initial value, times the smaller
        class's share.

    Attributes
    ----------
    n_iter_ : int
        Newton steps.
    """

    tol: float = 0.01

    _solver = 2
    random_state = 1  # draws nothing
