"""scikit-learn's SVC, wrapped in the contract of the suite.

`train` calls scikit-learn's `fit`, which also validates and converts the inputs; this cost can't be
measured separately.
"""

from __future__ import annotations

from dataclasses import dataclass
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
@dataclass(eq=False, repr=False, kw_only=True)
class SVCBaseline(KernelBaseline):
    """scikit-learn's SVC.

    Parameters
    ----------
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
        return self._store_result(
            data,
            model.support_.astype(np.int64),
            np.ravel(coefficients),
            b=float(model.intercept_[0]),
            n_iter=int(model.n_iter_[0]),
            converged=model.fit_status_ == 0,
        )
