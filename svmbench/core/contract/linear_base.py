"""The estimator contract of linear solvers: one normal vector and an offset."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from svmbench.core.contract import problems
from svmbench.core.contract.base import (
    BinaryClassifier,
    TrainingData,
    reason_of_all,
    sum_of_counters,
    validated,
    warn_if_loose,
)
from svmbench.core.contract.problems import Offset
from svmbench.core.numeric.arrays import append_bias


@dataclass
class LinearSolution:
    """Result of a linear solver's inner function.

    Attributes
    ----------
    w, b : ndarray of shape (n_features,), float
        ``f(x) = w·x + b``.
    n_iter : int
        Iterations in the solver's own unit.
    stop_reason : str
        ``"converged"``, ``"max_iter"``, ``"closed form"`` …
    counters : dict of str to int
        Work done.
    trace : list of (float, int, float)
        Seconds, iterations, objective; empty unless asked for.
    dual : float
        A lower bound of the optimum, from the solver's multipliers; -inf without.
    """

    w: np.ndarray
    b: float
    n_iter: int
    stop_reason: str
    counters: dict[str, int] = field(default_factory=dict)
    trace: list[tuple[float, int, float]] = field(default_factory=list)
    dual: float = -np.inf


class LinearClassifier(BinaryClassifier):
    """A two-class solver whose model is one normal vector and an offset.

    Subclasses have the parameters `fit_intercept` and `intercept_scaling`: with an intercept a
    constant feature of that value is appended to every sample ("bias absorbed"), so the offset is
    regularised like any other weight, as in LIBLINEAR's option -B and scikit-learn's LinearSVC.
    More than two classes are fitted one against the rest.

    Parameters
    ----------
    fit_intercept : bool
        Whether a constant feature is appended.
    intercept_scaling : float
        Value of the constant feature.

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Normal vector; of more than two classes one for each.
    intercept_ : ndarray of shape (1 or n_classes,)
        Offset.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("C", "fit_intercept")

    fit_intercept: bool
    intercept_scaling: float
    coef_: np.ndarray
    intercept_: np.ndarray
    objective_: float
    #: The last search's lower bound of the optimum.
    _dual: float = -np.inf

    @property
    def bias(self) -> float:
        """The value of the appended constant feature; 0 without an intercept."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    @property
    def offset(self) -> Offset:
        """Absorbed, or none: as the parameters say."""
        return problems.absorbed(self.bias)

    def _convert(self, data: TrainingData) -> TrainingData:
        """Append the constant feature."""
        data.native = append_bias(data.X, self.bias)
        return data

    def _fit_several(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one class against the rest, for each class, as LIBLINEAR does."""
        models = []
        for label in self.classes_:
            signs = np.where(y == label, 1, -1)
            weights = self._weigh_against_rest(y, label, sample_weight)
            weighted = {} if weights is None else {"sample_weight": weights}
            models.append(self._alone().fit(X, signs, **weighted))
        self.objective_ = float(sum(model.objective_ for model in models))
        return self._join(models)

    def _join(self, models: list[Any]) -> Self:
        """Store the models of one class against the rest, in the order of ``classes_``."""
        self.estimators_ = self.several_ = models
        self.coef_ = np.vstack([model.coef_ for model in models])
        self.intercept_ = np.concatenate([model.intercept_ for model in models])
        self.n_iter_ = max(int(model.n_iter_) for model in models)
        self.stop_reason_ = reason_of_all([model.stop_reason_ for model in models])
        self.counters_ = sum_of_counters(models)
        return self

    def _store_with_bias(
        self,
        w: np.ndarray,
        n_iter: int,
        stop_reason: str,
        counters: dict[str, int],
        trace: list[tuple[float, int, float]] | None = None,
    ) -> Self:
        """Store a solution whose last weight is that of the constant feature, if there is one."""
        weights, b = (w[:-1], float(w[-1] * self.bias)) if self.bias else (w, 0.0)
        return self._store(LinearSolution(weights, b, n_iter, stop_reason, counters, trace or []))

    def _store(self, solution: LinearSolution) -> Self:
        if not (np.all(np.isfinite(solution.w)) and np.isfinite(solution.b)):
            msg = f"{type(self).__name__} produced a solution with NaN or infinite weights"
            raise FloatingPointError(msg)
        self.coef_ = solution.w.reshape(1, -1)
        self.intercept_ = np.array([solution.b])
        self.n_iter_ = solution.n_iter
        self.stop_reason_ = solution.stop_reason
        self.counters_ = solution.counters
        self._dual = solution.dual
        # A solver without a tolerance takes the number of steps that was asked for.
        if getattr(self, "tol", None) is not None:
            self._warn_unless_finished(solution.stop_reason)
        if solution.trace:
            self.trace_ = solution.trace
        return self

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Set ``objective_``: the primal value of the declared problem at (w, b)."""
        w, b = self.coef_[0], float(self.intercept_[0])
        values = problems.linear(data.X, w, b, data.y, bias=self.bias, weights=data.weights)
        self.objective_ = self.problem.primal(values, self._problem_parameter(data))
        warn_if_loose(self, self._dual)
        return self

    def _problem_parameter(self, data: TrainingData) -> float:
        """Return the problem's parameter, the weight of the summed losses: C, unless overridden."""
        return float(self.C)  # type: ignore[attr-defined]

    def sparsify(self) -> Self:
        """Make ``coef_`` a CSR array, if most weights are 0; `fit` makes it dense again."""
        check_is_fitted(self)
        self.coef_ = sp.csr_array(self.coef_)  # type: ignore[assignment]
        return self

    def densify(self) -> Self:
        """Make ``coef_`` an ndarray, as it is after `fit`."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()  # type: ignore[attr-defined]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return ``X @ w + b``, shape (n_samples,); of several classes (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        if sp.issparse(self.coef_):
            values = X @ self.coef_.T
            values = (values.toarray() if sp.issparse(values) else values) + self.intercept_
            return values if self.several_ is not None else values[:, 0]
        if self.several_ is not None:
            return np.asarray(X @ self.coef_.T) + self.intercept_
        return np.asarray(X @ self.coef_[0]).ravel() + self.intercept_[0]


@dataclass(eq=False, repr=False)
class LinearClassifierWithC(LinearClassifier):
    """A linear classifier with the parameters `C`, by position too, and those of the offset."""

    C: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
