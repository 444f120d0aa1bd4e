"""Intel's C-SVC from scikit-learn-intelex in single precision, if it is installed.

The package is optional (``pip install '.[peers]'``). Without it this module declares no
solver, and the name is unknown in configs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Self

import numpy as np
import scipy.sparse as sp

from svmbench.baselines.kernel_model import KernelBaseline
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare

#: This module declares a solver only if the package is installed; completion reads the name.
INTELEX_REQUIREMENT = "sklearnex"


@dataclass(eq=False, repr=False, kw_only=True)
class IntelexBaseline(KernelBaseline):
    """scikit-learn-intelex's SVC on float32 inputs and one thread.

    Parameters
    ----------
    tol : float
        Largest violation of the optimality conditions, as single precision sees it.

    Attributes
    ----------
    n_iter_ : int
        Working sets.
    """

    tol: float = 1e-3
    cache_size: float = 200.0

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma, and round the inputs to float32."""
        data = super()._convert(data)
        # The SVC accepts only scipy's older class of sparse matrices.
        X = sp.csr_matrix(data.X) if sp.issparse(data.X) else data.X
        data.native = X.astype(np.float32)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call the `fit` of Intel's SVC."""
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
        return self._store_result(
            data,
            np.asarray(model.support_, dtype=np.int64),
            np.ravel(coefficients).astype(np.float64),
            b=float(np.ravel(model.intercept_)[0]),
            n_iter=int(np.ravel(model.n_iter_)[0]),
            converged=True,
        )


if find_spec(INTELEX_REQUIREMENT) is not None:
    declare(
        name="svc-intelex",
        problem="hinge",
        summary="scikit-learn-intelex's SVC in single precision (optional)",
        reference="sklearnex.svm.SVC",
        kernels=KERNELS,
    )(IntelexBaseline)
