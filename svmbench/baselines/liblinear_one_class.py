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

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from svmbench.baselines.liblinear import liblinear_train
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

    def _problem_parameter(self, data: TrainingData) -> float:
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
        model, n_iter, stop_reason = liblinear_train(data.native, parameter, self.random_state)
        total = float(self.nu) * len(data.y)
        w = np.ctypeslib.as_array(model.w, (data.native.n,)).copy() / total
        point = np.zeros((1, data.X.shape[1]))
        point[0, : len(w)] = w
        rho = float(model.rho) / total
        solution = KernelSolution(
            np.ones(1),
            b=-rho,
            rho=rho,
            n_iter=n_iter,
            stop_reason=stop_reason,
            counters={"iterations": n_iter},
            points=point,
        )
        return self._store(solution, data)
