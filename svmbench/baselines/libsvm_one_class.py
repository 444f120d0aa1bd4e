"""LIBSVM's one-class SVM, from the authors' own package.

Problem
    one-class, in the space of a kernel; LIBSVM's multipliers are nu N times the suite's.
Given
    LIBSVM's own nodes, built by `prepare`; `train` is the C function and nothing else. Decision
    values are LIBSVM's, too; the objective is evaluated without it.
Reference
    Chang and Lin 2011, Section 2.3; Schölkopf et al. 2001.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from svmbench.baselines.libsvm import svm_problem, svm_train
from svmbench.baselines.libsvm_evaluation import ONE_CLASS, decision_values
from svmbench.core.contract.base import TrainingData, require_positive
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.models.kernel_base import KERNEL_PARAMETERS, KernelSolution
from svmbench.core.models.novelty_base import KernelDetector, require_share


@declare(
    name="libsvm-oneclass",
    problem="one-class",
    summary="LIBSVM's one-class SVM: sequential minimal optimisation with a kernel cache",
    reference="LIBSVM -s 2; Schölkopf et al. 2001; Fan, Chen and Lin 2005",
    kernels=KERNELS,
    task="one-class",
)
class LibsvmOneClass(KernelDetector):
    """LIBSVM's one-class SVM.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound of the share of training samples that f calls abnormal; above 0 and at most 1.
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
        alpha, which sum up to 1: LIBSVM's over nu N.
    offset_ : float
        rho, in the same scale.
    objective_, dual_objective_ : float
        Primal value at rho, and dual value.
    n_iter_ : int
        Pair steps.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", *KERNEL_PARAMETERS)

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200.0,
        shrinking: bool = True,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.shrinking = shrinking

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("nu", self.nu)
        require_positive("cache_size", self.cache_size)

    def _sum_weight(self, data: TrainingData) -> float:
        return float(self.nu)

    def prepare(self, X: Any, y: Any = None) -> TrainingData:
        """Validate, and convert to LIBSVM's `svm_problem` structure. `y` is not looked at."""
        data = super().prepare(X, y)
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
        """Return f of validated inputs by LIBSVM's function, in double precision by one thread."""
        model = self.expansion_
        n_support = np.array([len(model.coefficients)])
        values = decision_values(
            model.function, model.points, model.dual_coef, -model.intercept, n_support, X
        )
        return values[:, 0]
