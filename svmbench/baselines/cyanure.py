"""Cyanure's squared-hinge SVM by MISO and its accelerations, if Cyanure is installed.

The package is optional (``pip install '.[peers]'``).

Problem
    Squared hinge loss; the constant feature that `prepare` appends is regularised.
Given
    The samples in Cyanure's format; `fit_native` calls the `fit` of its ``Classifier``, without the
    scan for NaN, which `prepare` does.
Reference
    Mairal 2019 (Cyanure); Mairal 2015 (MISO); Lin, Mairal and Harchaoui 2019 (QNing).
Deviations
    - Its problem is 1/(2n) sum max(0, 1 - m)^2 + lambda/2 ||w||^2: ours with lambda = 1/(2 n C).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from svmbench.baselines.linear_peer import LinearPeer
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.registry import declare

#: This module declares a solver only if the package is installed; completion reads the name.
CYANURE_REQUIREMENT = "cyanure"

#: Cyanure's solvers for the squared hinge; "auto" chooses one.
CYANURE_SOLVERS = ("auto", "miso", "catalyst-miso", "qning-miso")


@dataclass(eq=False, repr=False, kw_only=True)
class CyanureBaseline(LinearPeer):
    """Cyanure's ``Classifier`` with squared hinge loss, on one thread.

    Parameters
    ----------
    tol : float
        Relative duality gap at which Cyanure stops.
    solver : {"auto", "miso", "catalyst-miso", "qning-miso"}
        One of Cyanure's solvers.
    max_iter : int
        Passes over the samples at most.
    random_state : int
        Seed.

    Attributes
    ----------
    n_iter_ : int
        Passes over the samples.
    """

    tol: float = 1e-3
    solver: str = "auto"
    max_iter: int = 500
    random_state: int = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver not in CYANURE_SOLVERS:
            msg = f"solver must be one of {', '.join(CYANURE_SOLVERS)}, got solver={self.solver!r}"
            raise ValueError(msg)

    def fit_native(self, data: TrainingData) -> tuple[np.ndarray, int]:
        """Call the `fit` of Cyanure's classifier."""
        from cyanure.estimators import Classifier

        model = Classifier(
            loss="sqhinge",
            penalty="l2",
            lambda_1=1.0 / (2.0 * len(data.y) * float(self.C)),
            fit_intercept=False,
            tol=float(self.tol),
            solver=self.solver,
            max_iter=int(self.max_iter),
            random_state=int(self.random_state),
            n_threads=1,
            verbose=False,
            safe=False,
        )
        model.fit(data.native, data.y)
        return model.coef_, int(np.max(model.n_iter_))


if find_spec(CYANURE_REQUIREMENT) is not None:
    declare(
        name="cyanure-l2",
        problem="squared-hinge",
        summary="Cyanure's squared-hinge SVM by MISO (optional)",
        reference="Mairal 2019, cyanure.estimators.Classifier",
    )(CyanureBaseline)
