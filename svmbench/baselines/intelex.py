"""Intel's C-SVC from scikit-learn-intelex, in single precision: a peer where it is installed.

The package is optional (``pip install svmbench[peers]``). Without it this module declares nothing,
and a config that names the solver is told that there is none of that name.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from svmbench.baselines.kernel_model import KernelBaseline
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare

#: Without this package nothing is declared here; the shell's completion reads it, too.
NEEDS = "sklearnex"


class IntelexBaseline(KernelBaseline):
    """scikit-learn-intelex's SVC on float32 inputs and one thread.

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
        Largest violation of the optimality conditions, as single precision sees it.
    cache_size : float, default=200.0
        Kernel cache, MB.

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
        Working sets.
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
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and round the inputs to float32."""
        data = super().prepare(X, y)
        # It knows scipy's older class of sparse matrices alone.
        X = sp.csr_matrix(data.X) if sp.issparse(data.X) else data.X
        data.native = X.astype(np.float32)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call the `fit` of its SVC."""
        from sklearnex.svm import SVC

        model = SVC(
            C=self.C,
            kernel=self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            tol=self.tol,
            cache_size=self.cache_size,
            n_jobs=1,
        )
        model.fit(data.native, data.y)
        coefficients = model.dual_coef_
        if hasattr(coefficients, "toarray"):
            coefficients = coefficients.toarray()
        return self._keep(
            data,
            np.asarray(model.support_, dtype=np.int64),
            np.ravel(coefficients).astype(np.float64),
            b=float(np.ravel(model.intercept_)[0]),
            n_iter=int(np.ravel(model.n_iter_)[0]),
            converged=True,
        )


if find_spec(NEEDS) is not None:
    declare(
        name="svc-intelex",
        problem="hinge",
        summary="scikit-learn-intelex's SVC in single precision (optional)",
        reference="sklearnex.svm.SVC",
        kernels=KERNELS,
    )(IntelexBaseline)
