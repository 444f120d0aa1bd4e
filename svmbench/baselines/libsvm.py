"""LIBSVM's C-SVC, from the authors' package.

Problem
    hinge, with a free offset, in the space of a kernel.
Given
    LIBSVM's nodes, built by `prepare`; `train` only calls the C function. LIBSVM computes the
    decision values; the suite evaluates the objective.
Reference
    Chang and Lin 2011; Fan, Chen and Lin 2005 (working set selection).
"""

from __future__ import annotations

import ctypes
import re
import threading
from ctypes import POINTER
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from svmbench.baselines.kernel_model import KernelBaseline
from svmbench.baselines.libsvm_evaluation import (
    C_SVC,
    KERNEL_NUMBERS,
    NativePoints,
    libsvm_decision_values,
)
from svmbench.baselines.nodes import node_lists
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare

#: The print function is global: only one thread may train.
_ONE_AT_A_TIME = threading.Lock()

_ITERATIONS = re.compile(r"#iter = (\d+)")


def svm_problem(data: TrainingData) -> Any:
    """Return LIBSVM's structure for prepared samples; it keeps the memory that it points to."""
    from libsvm import svm

    nodes, addresses = node_lists(data.X)
    problem = svm.svm_problem.__new__(svm.svm_problem)
    problem.l = len(data.y)
    problem.y = data.y.ctypes.data_as(POINTER(ctypes.c_double))
    problem.x = ctypes.cast(addresses.ctypes.data, POINTER(POINTER(svm.svm_node)))
    problem.n = data.X.shape[1]
    problem.kept = (nodes, addresses, data.y)
    return problem


def svm_train(problem: Any, kind: int, settings: Any) -> tuple[Any, np.ndarray, int, bool]:
    """Call LIBSVM's C function `svm_train`.

    Parameters
    ----------
    problem : svm_problem
    kind : int
        Number of LIBSVM's option -s.
    settings : object
        An estimator with the kernel's parameters, ``gamma_``, ``tol``, ``cache_size``,
        ``shrinking``, and ``C`` or ``nu``.

    Returns
    -------
    model : svm_model
    coefficients : ndarray of shape (n_support,)
        LIBSVM's coefficients.
    n_iter : int
    converged : bool
    """
    from libsvm import svm

    parameter = svm.svm_parameter("-q")
    parameter.svm_type, parameter.kernel_type = kind, KERNEL_NUMBERS[settings.kernel]
    parameter.C = float(getattr(settings, "C", parameter.C))
    parameter.nu = float(getattr(settings, "nu", parameter.nu))
    parameter.eps = float(settings.tol)
    parameter.gamma, parameter.coef0 = settings.gamma_, float(settings.coef0)
    parameter.degree = int(settings.degree)
    parameter.cache_size = float(settings.cache_size)
    parameter.shrinking = int(settings.shrinking)
    pieces: list[bytes] = []
    print_function = svm.PRINT_STRING_FUN(pieces.append)
    with _ONE_AT_A_TIME:
        svm.libsvm.svm_set_print_string_function(print_function)
        try:
            model = svm.toPyModel(svm.libsvm.svm_train(problem, parameter))
        finally:
            svm.libsvm.svm_set_print_string_function(svm.ctypes_print_null)
    printed = b"".join(pieces).decode(errors="replace")
    iterations = _ITERATIONS.findall(printed)
    coefficients = np.zeros(model.l)
    if model.l:
        coefficients = np.array(np.ctypeslib.as_array(model.sv_coef[0], (model.l,)))
    n_iter = int(iterations[-1]) if iterations else 1
    return model, coefficients, n_iter, "reaching max number" not in printed


@declare(
    name="libsvm",
    problem="hinge",
    summary="LIBSVM's C-SVC: sequential minimal optimisation with a kernel cache",
    reference="LIBSVM -s 0; Fan, Chen and Lin 2005",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False, kw_only=True)
class Libsvm(KernelBaseline):
    """LIBSVM's C-SVC.

    Parameters
    ----------
    tol : float
        LIBSVM's eps: largest violation of the optimality conditions.
    shrinking : bool
        Whether samples at their bounds are set aside while they stay there.

    Attributes
    ----------
    n_iter_ : int
        Pair steps.
    """

    tol: float = 1e-3
    cache_size: float = 200.0
    shrinking: bool = True

    shared_points = NativePoints

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma, and convert to LIBSVM's `svm_problem` structure."""
        data = super()._convert(data)
        data.native = svm_problem(data)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call LIBSVM's C function `svm_train`."""
        model, coefficients, n_iter, converged = svm_train(data.native, C_SVC, self)
        # f is positive for LIBSVM's first label, which is the label of the first sample.
        sign = 1.0 if model.get_labels()[0] > 0 else -1.0
        return self._store_result(
            data,
            np.array(model.get_sv_indices(), dtype=np.int64) - 1,
            sign * coefficients,
            b=-sign * model.rho[0],
            n_iter=n_iter,
            converged=converged,
        )

    def _decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        """Return f for validated inputs by LIBSVM's function, in double precision on one thread."""
        model = self.expansion_
        is_second = model.coefficients > 0.0
        # The points are not sorted by class, but of two classes LIBSVM adds up all in any order.
        n_support = np.array([np.sum(~is_second), np.sum(is_second)])
        values = libsvm_decision_values(
            model.function, model.points, model.dual_coef, -model.intercept, n_support, X
        )
        return values[:, 0]
