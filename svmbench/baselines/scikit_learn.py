"""scikit-learn's own SVC behind the suite's contract.

`train` is scikit-learn's whole `fit`: it validates, and converts to its solver's format, each
time, and there is no way to pay for that apart.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.svm import SVC

from svmbench.baselines.kernel_model import KernelBaseline
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare


@declare(
    name="svc",
    problem="hinge",
    summary="scikit-learn's SVC (its copy of LIBSVM, with dense inputs kept dense)",
    reference="sklearn.svm.SVC",
    kernels=KERNELS,
)
class SVCBaseline(KernelBaseline):
    """scikit-learn's SVC.

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
        Largest violation of the optimality conditions.
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

    def train(self, data: TrainingData) -> Self:
        """Call SVC's `fit`."""
        model = SVC(
            C=self.C,
            kernel=self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            tol=self.tol,
            cache_size=self.cache_size,
            shrinking=self.shrinking,
        )
        model.fit(data.native, data.y)
        coefficients = model.dual_coef_
        if hasattr(coefficients, "toarray"):
            coefficients = coefficients.toarray()
        return self._keep(
            data,
            model.support_.astype(np.int64),
            np.ravel(coefficients),
            b=float(model.intercept_[0]),
            n_iter=int(model.n_iter_[0]),
            converged=model.fit_status_ == 0,
        )
