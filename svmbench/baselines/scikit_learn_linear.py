"""scikit-learn's linear solvers, wrapped in the contract of the suite.

`train` calls scikit-learn's `fit`, which also validates and converts the inputs; this cost can't be
measured separately.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from svmbench.baselines.linear_peer import LinearPeer
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifierWithC, LinearSolution
from svmbench.core.contract.registry import declare


@declare(
    name="linear-svc",
    problem="hinge",
    summary="scikit-learn's LinearSVC (its copy of LIBLINEAR) with the hinge loss",
    reference="sklearn.svm.LinearSVC(loss='hinge')",
)
@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVCBaseline(LinearClassifierWithC):
    """scikit-learn's LinearSVC.

    Parameters
    ----------
    tol : float
        As scikit-learn has it: a thousandth of LIBLINEAR's own default.
    max_iter : int
        Largest number of outer iterations.
    random_state : int, RandomState or None
        Seed of the coordinate order.
    """

    tol: float = 1e-4
    max_iter: int = 1000
    random_state: Any = 0

    def _convert(self, data: TrainingData) -> TrainingData:
        """Take the inputs as they are: scikit-learn needs no conversion."""
        data.native = data.X
        return data

    def train(self, data: TrainingData) -> Self:
        """Call LinearSVC's `fit`."""
        model = LinearSVC(
            C=self.C,
            loss="hinge",
            dual=True,
            tol=self.tol,
            max_iter=self.max_iter,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            random_state=self.random_state,
        )
        # stop_reason_ shows that it did not converge.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(data.native, data.y)
        n_iter = int(model.n_iter_)
        return self._store(
            LinearSolution(
                w=model.coef_[0].copy(),
                b=float(model.intercept_[0]) if self.fit_intercept else 0.0,
                n_iter=n_iter,
                stop_reason="max_iter" if n_iter >= self.max_iter else "converged",
                counters={"iterations": n_iter},
            )
        )


@declare(
    name="sgd-classifier",
    problem="hinge",
    summary="scikit-learn's SGDClassifier with the hinge loss",
    reference="sklearn.linear_model.SGDClassifier(loss='hinge', alpha=1/(N C)); Bottou's steps",
)
@dataclass(eq=False, repr=False, kw_only=True)
class SGDBaseline(LinearPeer):
    """scikit-learn's SGDClassifier with an absorbed offset.

    Its own offset is not regularised, so a constant feature replaces it.

    Parameters
    ----------
    C : float
        Weight of the summed hinge losses; scikit-learn's alpha is 1 / (N C).
    max_iter : int
        Largest number of epochs.
    tol : float or None
        It stops once the mean loss has not improved by this for five epochs; None to run them all.
    average : bool
        Whether the model is the mean of the iterates.
    random_state : int, RandomState or None
        Seed of the order.

    Attributes
    ----------
    n_iter_ : int
        Epochs.
    """

    max_iter: int = 1000
    tol: float | None = 1e-3
    average: bool = False
    random_state: Any = 0

    iteration_counter: ClassVar[str] = "epochs"

    optional = ("tol",)

    def fit_native(self, data: TrainingData) -> tuple[np.ndarray, int]:
        """Call SGDClassifier's `fit`."""
        model = SGDClassifier(
            loss="hinge",
            alpha=1.0 / (len(data.y) * self.C),
            max_iter=self.max_iter,
            tol=self.tol,
            average=self.average,
            fit_intercept=False,
            random_state=self.random_state,
        )
        model.fit(data.native, data.y)
        return model.coef_, int(model.n_iter_)
