"""LIBLINEAR's linear one-class SVM, from the authors' package.

Problem
    one-class with the linear kernel; LIBLINEAR's w and rho are nu N times the suite's.
Given
    LIBLINEAR's nodes, built by `prepare`; `train` only calls the C function.
Reference
    LIBLINEAR -s 21; Chou, Lin and Lin 2020 (dual coordinate descent on two variables).
Deviations
    - LIBLINEAR returns w, not the multipliers: there is no dual value.
    - It draws from the C library's `rand`, which is seeded before each run.
"""

from __future__ import annotations

import ctypes
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from svmbench.baselines import liblinear
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.registry import declare
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.novelty_base import KernelDetector, require_share


@declare(
    name="liblinear-oneclass",
    problem="one-class",
    summary="LIBLINEAR's linear one-class SVM: dual coordinate descent on pairs",
    reference="LIBLINEAR -s 21; Chou, Lin and Lin 2020",
    kernels=("linear",),
    task="one-class",
)
@dataclass(eq=False, repr=False)
class LiblinearOneClass(KernelDetector):
    """LIBLINEAR -s 21: the linear one-class SVM.

    Parameters
    ----------
    tol : float
        LIBLINEAR's eps: largest violation of the optimality conditions.
    random_state : int
        Seed of the C library's random numbers; 1 is what a new process has.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, 1)
        1, the coefficient of the only point, w.
    offset_ : float
        rho.
    n_iter_ : int
        LIBLINEAR's outer iterations.
    """

    nu: float = 0.5
    _: KW_ONLY
    tol: float = 0.01
    random_state: int = 1

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu",)

    kernel = "linear"
    gamma = 1.0
    degree = 1
    coef0 = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("nu", self.nu)

    def _sum_weight(self, data: TrainingData) -> float:
        return float(self.nu)

    def _convert(self, data: TrainingData) -> TrainingData:
        """Convert to LIBLINEAR's `problem` structure."""
        from liblinear import liblinear as ll

        data = super()._convert(data)
        data.native = ll.problem(data.y, sp.csr_matrix(data.X), bias=-1)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call LIBLINEAR's C function `train`."""
        from liblinear import liblinear as ll

        settings = ["-s", "21", "-n", repr(float(self.nu)), "-e", repr(float(self.tol)), "-q"]
        parameter = ll.parameter(settings)
        said: list[bytes] = []
        listen = ll.PRINT_STRING_FUN(said.append)
        with liblinear._ONE_AT_A_TIME:
            ll.liblinear.set_print_string_function(listen)
            ctypes.CDLL(None).srand(int(self.random_state))
            try:
                model = ll.toPyModel(ll.liblinear.train(data.native, parameter))
            finally:
                ll.liblinear.set_print_string_function(ll.ctypes_print_null)
        total = float(self.nu) * len(data.y)
        w = np.ctypeslib.as_array(model.w, (data.native.n,)).copy() / total
        point = np.zeros((1, data.X.shape[1]))
        point[0, : len(w)] = w
        text = b"".join(said).decode(errors="replace")
        n_iter = liblinear.iterations_of(text)
        rho = float(model.rho) / total
        found = KernelSolution(
            np.ones(1),
            b=-rho,
            rho=rho,
            n_iter=n_iter,
            stop_reason="max_iter" if "reaching max number" in text else "converged",
            counters={"iterations": n_iter},
            points=point,
        )
        return self._store(found, data)
