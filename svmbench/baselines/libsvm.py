"""LIBSVM's C-SVC, from the authors' own package.

Problem
    hinge, with a free offset, in the space of a kernel.
Given
    LIBSVM's own nodes, built by `prepare`; `train` is the C function and nothing else. Decision
    values are LIBSVM's, too; the objective is evaluated without it.
Reference
    Chang and Lin 2011; Fan, Chen and Lin 2005 (working set selection).
"""

from __future__ import annotations

import ctypes
import re
import threading
from ctypes import POINTER
from typing import Any, Self

import numpy as np

from svmbench.baselines.kernel_model import KernelBaseline
from svmbench.baselines.libsvm_evaluation import (
    C_SVC,
    KERNEL_NUMBERS,
    NativePoints,
    decision_values,
)
from svmbench.baselines.nodes import node_lists
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare

#: The print function belongs to the whole process: one training at a time.
_ONE_AT_A_TIME = threading.Lock()

_ITERATIONS = re.compile(r"#iter = (\d+)")


def svm_problem(data: TrainingData) -> Any:
    """Return LIBSVM's own structure of prepared samples; it keeps the memory that it points to."""
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
        LIBSVM's own.
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
    said: list[bytes] = []
    listen = svm.PRINT_STRING_FUN(said.append)
    with _ONE_AT_A_TIME:
        svm.libsvm.svm_set_print_string_function(listen)
        try:
            model = svm.toPyModel(svm.libsvm.svm_train(problem, parameter))
        finally:
            svm.libsvm.svm_set_print_string_function(svm.ctypes_print_null)
    text = b"".join(said).decode(errors="replace")
    found = _ITERATIONS.findall(text)
    coefficients = np.zeros(model.l)
    if model.l:
        coefficients = np.array(np.ctypeslib.as_array(model.sv_coef[0], (model.l,)))
    return model, coefficients, int(found[-1]) if found else 1, "reaching max number" not in text


@declare(
    name="libsvm",
    problem="hinge",
    summary="LIBSVM's C-SVC: sequential minimal optimisation with a kernel cache",
    reference="LIBSVM -s 0; Fan, Chen and Lin 2005",
    kernels=KERNELS,
)
class Libsvm(KernelBaseline):
    """LIBSVM's C-SVC.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed hinge losses.
    kernel : {"linear", "rbf", "poly", "sigmoid"}, default="rbf"
    gamma : float, "scale" or "auto", default="scale"
        Width of the kernel; "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        LIBSVM's eps: largest violation of the optimality conditions.
    cache_size : float, default=200.0
        Kernel cache, MB.
    shrinking : bool, default=True

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
    support_vectors_ : ndarray or csr_array of shape (n_support, n_features)
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``.
    intercept_ : ndarray of shape (1,)
    objective_, dual_objective_ : float
        Primal value at the returned offset, and dual value.
    n_iter_ : int
        Pair steps.
    """

    shared_points = NativePoints

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200.0,
        shrinking: bool = True,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.shrinking = shrinking

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and convert to LIBSVM's `svm_problem` structure."""
        data = super().prepare(X, y)
        data.native = svm_problem(data)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call LIBSVM's C function `svm_train`."""
        model, coefficients, n_iter, converged = svm_train(data.native, C_SVC, self)
        # LIBSVM's first label is that of the first sample; f is positive for it.
        sign = 1.0 if model.get_labels()[0] > 0 else -1.0
        return self._keep(
            data,
            np.array(model.get_sv_indices(), dtype=np.int64) - 1,
            sign * coefficients,
            b=-sign * model.rho[0],
            n_iter=n_iter,
            converged=converged,
        )

    def _decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        """Return f of validated inputs by LIBSVM's function, in double precision by one thread."""
        model = self.expansion_
        is_second = model.coefficients > 0.0
        n_support = np.array([np.sum(~is_second), np.sum(is_second)])
        values = decision_values(
            model.function, model.points, model.dual_coef, -model.intercept, n_support, X
        )
        return values[:, 0]
