"""LIBSVM's one-class SVM, from the authors' package.

Problem
    one-class, in the space of a kernel; LIBSVM's multipliers are nu N times the suite's.
Given
    LIBSVM's nodes, built by `prepare`; `train` only calls the C function. LIBSVM computes the
    decision values; the suite evaluates the objective.
Reference
    Chang and Lin 2011, Section 2.3; Schölkopf et al. 2001.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from svmbench.baselines.libsvm import svm_problem, svm_train
from svmbench.baselines.libsvm_evaluation import ONE_CLASS, libsvm_decision_values
from svmbench.core.contract.base import TrainingData, require_positive
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.models.kernel_base import KERNEL_PARAMETERS, KernelParameters, KernelSolution
from svmbench.core.models.novelty_base import KernelDetector, require_share


@declare(
    name="libsvm-oneclass",
    problem="one-class",
    summary="LIBSVM's one-class SVM: sequential minimal optimisation with a kernel cache",
    reference="LIBSVM -s 2; Schölkopf et al. 2001; Fan, Chen and Lin 2005",
    kernels=KERNELS,
    task="one-class",
)
@dataclass(eq=False, repr=False)
class LibsvmOneClass(KernelParameters, KernelDetector):
    """LIBSVM's one-class SVM.

    Parameters
    ----------
    tol : float
        LIBSVM's eps: largest violation of the optimality conditions.
    cache_size : float
        Kernel cache, MB.
    shrinking : bool
        Whether samples at their bounds are set aside while they stay there.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        alpha, which sum to 1: LIBSVM's values divided by nu N.
    offset_ : float
        rho, on the same scale.
    n_iter_ : int
        Pair steps.
    """

    nu: float = 0.5
    _: KW_ONLY
    tol: float = 1e-3
    cache_size: float = 200.0
    shrinking: bool = True

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", *KERNEL_PARAMETERS)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("nu", self.nu)
        require_positive("cache_size", self.cache_size)

    def _problem_parameter(self, data: TrainingData) -> float:
        return float(self.nu)

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma, and convert to LIBSVM's `svm_problem` structure."""
        data = super()._convert(data)
        data.native = svm_problem(data)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call LIBSVM's C function `svm_train`."""
        model, coefficients, n_iter, converged = svm_train(data.native, ONE_CLASS, self)
        total = float(self.nu) * len(data.y)
        alpha = np.zeros(len(data.y))
        alpha[np.array(model.get_sv_indices(), dtype=np.int64) - 1] = coefficients / total
        rho = float(model.rho[0]) / total
        reason = "converged" if converged else "max_iter"
        work = {"iterations": max(1, n_iter)}
        return self._store(KernelSolution(alpha, -rho, n_iter, reason, work, rho=rho), data)

    def _decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        """Return f for validated inputs by LIBSVM's function, in double precision on one thread."""
        model = self.expansion_
        n_support = np.array([len(model.coefficients)])
        values = libsvm_decision_values(
            model.function, model.points, model.dual_coef, -model.intercept, n_support, X
        )
        return values[:, 0]
