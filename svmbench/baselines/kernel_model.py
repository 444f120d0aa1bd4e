"""What the kernel baselines share: parameters, decision function, and the objective.

The programs train; predicting and certifying is done here, on the support vectors they return,
in one way for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from svmbench.core.base import BinaryClassifier, TrainingData, require_positive
from svmbench.core.problems import PROBLEMS

#: Names of the kernels, as both programs have them.
KERNELS = ("linear", "rbf", "poly", "sigmoid")

#: Kernel values held in memory at a time.
BLOCK_VALUES = 1 << 23


@dataclass
class KernelSolution:
    """What a kernel solver returns.

    Attributes
    ----------
    support : ndarray of int of shape (n_support,)
        Positions of the support vectors.
    coefficients : ndarray of shape (n_support,)
        ``alpha_i y_i``.
    b : float
        Offset: f(x) = sum_i alpha_i y_i K(x_i, x) + b.
    n_iter : int
    stop_reason : str
    """

    support: np.ndarray
    coefficients: np.ndarray
    b: float
    n_iter: int
    stop_reason: str


class KernelBaseline(BinaryClassifier):
    """A C-SVC with a free offset, trained by another program."""

    C: float
    kernel: str
    gamma: float | str
    degree: int
    coef0: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel not in KERNELS:
            msg = f"kernel must be one of {', '.join(KERNELS)}, got kernel={self.kernel!r}"
            raise ValueError(msg)
        if self.gamma != "scale":
            require_positive("gamma", self.gamma)
        require_positive("cache_size", getattr(self, "cache_size", 1.0))

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and settle gamma: ``"scale"`` is 1 / (n_features * variance of X)."""
        data = self._validate(X, y)
        if self.gamma == "scale":
            mean = data.X.mean()
            square = (data.X.multiply(data.X) if hasattr(data.X, "multiply") else data.X**2).mean()
            variance = float(square - mean**2)
            self.gamma_ = 1.0 / (data.X.shape[1] * variance) if variance > 0.0 else 1.0
        else:
            self.gamma_ = float(self.gamma)
        data.native = data.X
        return data

    def _store(self, solution: KernelSolution, data: TrainingData) -> Self:
        if not (np.all(np.isfinite(solution.coefficients)) and np.isfinite(solution.b)):
            msg = f"{type(self).__name__} produced a solution with NaN or infinite coefficients"
            raise FloatingPointError(msg)
        self.support_ = solution.support
        self.support_vectors_ = data.X[solution.support]
        self.dual_coef_ = solution.coefficients.reshape(1, -1)
        self.intercept_ = np.array([solution.b])
        self.n_iter_ = max(1, solution.n_iter)
        self.stop_reason_ = solution.stop_reason
        at_bound = int(np.sum(np.abs(solution.coefficients) >= self.C * (1.0 - 1e-12)))
        self.counters_ = {
            "iterations": self.n_iter_,
            "support_vectors": len(solution.support),
            "bounded_support_vectors": at_bound,
        }
        return self

    def certify(self, data: TrainingData) -> Self:
        """Set ``objective_`` (primal, at the returned offset) and ``dual_objective_``."""
        f = self._decide(data.X)
        coefficients = self.dual_coef_[0]
        square = float(coefficients @ (f[self.support_] - self.intercept_[0]))
        problem = PROBLEMS[self.declaration.problem]
        losses = float(np.sum(problem.loss(data.y * f)))
        self.objective_ = 0.5 * square + self.C * losses
        self.dual_objective_ = float(np.sum(np.abs(coefficients))) - 0.5 * square
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for each row of `X`, shape (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        return self._decide(X)

    def _decide(self, X: Any) -> np.ndarray:
        values = np.full(X.shape[0], self.intercept_[0])
        height = max(1, BLOCK_VALUES // max(1, len(self.support_)))
        for start in range(0, X.shape[0] if len(self.support_) else 0, height):
            rows = slice(start, start + height)
            values[rows] += self._kernel(X[rows]) @ self.dual_coef_[0]
        return values

    def _kernel(self, X: Any) -> np.ndarray:
        parameters = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(
            pairwise_kernels(
                X, self.support_vectors_, metric=self.kernel, filter_params=True, **parameters
            )
        )
