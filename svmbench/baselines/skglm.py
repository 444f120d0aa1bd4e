"""skglm's hinge-loss SVM: coordinate descent on working sets, if skglm is installed.

The package is optional (``pip install '.[peers]'``).

Problem
    Hinge loss; the constant feature that `prepare` appends is regularised.
Given
    The samples, dense or CSR; `train` calls the `fit` of skglm's ``LinearSVC``.
Reference
    Bertrand, Klopfenstein, Bannier, Gidel and Massias 2022 (skglm).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.registry import declare
from svmbench.core.numeric.arrays import append_bias

#: This module declares a solver only if the package is installed; completion reads the name.
SKGLM_REQUIREMENT = "skglm"


@dataclass(eq=False, repr=False, kw_only=True)
class SkglmBaseline(LinearClassifierWithC):
    """skglm's ``LinearSVC``, on one thread.

    Parameters
    ----------
    tol : float
        Largest violation of the dual's optimality at which skglm stops.
    max_iter : int
        Working sets at most.

    Attributes
    ----------
    n_iter_ : int
        Working sets.
    """

    tol: float = 1e-4
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("max_iter", self.max_iter)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and append the constant feature."""
        data = self._validate(X, y)
        native = append_bias(data.X, self.bias)
        data.native = sp.csr_matrix(native) if sp.issparse(native) else native
        return data

    def train(self, data: TrainingData) -> Self:
        """Call the `fit` of skglm's classifier."""
        from skglm.estimators import LinearSVC

        model = LinearSVC(
            C=float(self.C), tol=float(self.tol), max_iter=int(self.max_iter), fit_intercept=False
        )
        with warnings.catch_warnings():
            # `_store` warns about the iteration limit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(data.native, data.y)
        w, n_iter = np.ravel(model.coef_).astype(np.float64), int(np.max(model.n_iter_))
        return self._store_with_bias(
            w,
            n_iter=max(1, n_iter),
            stop_reason="max_iter" if n_iter >= self.max_iter else "converged",
            counters={"working_sets": n_iter},
        )


if find_spec(SKGLM_REQUIREMENT) is not None:
    declare(
        name="skglm-l1",
        problem="hinge",
        summary="skglm's hinge-loss SVM: coordinate descent on working sets (optional)",
        reference="Bertrand et al. 2022, skglm.estimators.LinearSVC",
    )(SkglmBaseline)
