"""skglm's hinge-loss SVM: coordinate descent on working sets, if skglm is installed.

The package is optional (``pip install '.[peers]'``).

Problem
    Hinge loss; the constant feature that `prepare` appends is regularised.
Given
    The samples, dense or CSR; `fit_native` calls the `fit` of skglm's ``LinearSVC``.
Reference
    Bertrand, Klopfenstein, Bannier, Gidel and Massias 2022 (skglm).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from svmbench.baselines.linear_peer import LinearPeer
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.registry import declare

#: This module declares a solver only if the package is installed; completion reads the name.
SKGLM_REQUIREMENT = "skglm"


@dataclass(eq=False, repr=False, kw_only=True)
class SkglmBaseline(LinearPeer):
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
    iteration_counter: ClassVar[str] = "working_sets"

    def fit_native(self, data: TrainingData) -> tuple[np.ndarray, int]:
        """Call the `fit` of skglm's classifier."""
        from skglm.estimators import LinearSVC

        model = LinearSVC(
            C=float(self.C), tol=float(self.tol), max_iter=int(self.max_iter), fit_intercept=False
        )
        model.fit(data.native, data.y)
        return model.coef_, int(np.max(model.n_iter_))


if find_spec(SKGLM_REQUIREMENT) is not None:
    declare(
        name="skglm-l1",
        problem="hinge",
        summary="skglm's hinge-loss SVM: coordinate descent on working sets (optional)",
        reference="Bertrand et al. 2022, skglm.estimators.LinearSVC",
    )(SkglmBaseline)
