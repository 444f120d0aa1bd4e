"""The estimator contract of kernel solvers: a C-SVC whose model is a sum over support vectors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from svmbench.core.base import BinaryClassifier, TrainingData, require_count, require_positive
from svmbench.core.kernels import KERNELS, KernelFunction, KernelSource
from svmbench.core.problems import PROBLEMS, Problem

#: Kernel values held in memory at a time when a model is evaluated.
BLOCK_VALUES = 1 << 23


@dataclass
class KernelSolution:
    """What a kernel solver's inner function returns.

    Attributes
    ----------
    alpha : ndarray of shape (n_samples,)
        Multipliers, not negative, and at most the problem's upper bound.
    b : float
        Offset: f(x) = sum_i alpha_i y_i K(x_i, x) + b.
    n_iter : int
        Iterations in the solver's own unit.
    stop_reason : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"``; ``"epochs"`` where a number of steps was
        all that was asked for.
    counters : dict of str to int
        Work done.
    """

    alpha: np.ndarray
    b: float
    n_iter: int
    stop_reason: str
    counters: dict[str, int] = field(default_factory=dict)


def scale(X: Any) -> float:
    """Return the gamma that is called ``"scale"``: 1 / (n_features * variance of X); 1 if flat.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    """
    # Summed over the same numbers in the same order, dense or sparse: a last bit of gamma can fork
    # a solver's way.
    values = X.data if sp.issparse(X) else X.ravel()
    values = values[values != 0.0]
    size = X.shape[0] * X.shape[1]
    variance = float(values @ values / size - (values.sum() / size) ** 2)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


class KernelClassifier(BinaryClassifier):
    """A two-class solver of a dual problem with a kernel.

    Subclasses have the parameters `C`, `kernel`, `gamma`, `degree`, `coef0`, `tol`, `max_iter` and
    `cache_mb`, and define `solve`; one that works on the inputs themselves defines `train` instead.
    """

    #: Whether 1 is added to the kernel, so that the offset is regularised; if not, it is free or 0.
    absorbs_bias: ClassVar[bool] = False

    needs_parameters: ClassVar[tuple[str, ...]] = ("C", "kernel", "gamma", "degree", "coef0")

    C: float
    kernel: str
    gamma: float | str
    degree: int
    coef0: float
    tol: float
    max_iter: int
    cache_mb: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel not in KERNELS:
            msg = f"kernel must be one of {', '.join(KERNELS)}, got kernel={self.kernel!r}"
            raise ValueError(msg)
        if isinstance(self.gamma, str) and self.gamma != "scale":
            msg = f"gamma must be a positive number or 'scale', got gamma={self.gamma!r}"
            raise ValueError(msg)
        if self.gamma != "scale":
            require_positive("gamma", self.gamma)
        require_count("degree", self.degree)
        if not (isinstance(self.coef0, Real) and np.isfinite(float(self.coef0))):
            msg = f"coef0 must be a finite number, got coef0={self.coef0!r}"
            raise ValueError(msg)
        budget = getattr(self, "cache_mb", 0.0)
        if not (isinstance(budget, Real) and 0.0 <= float(budget) < np.inf):
            msg = (
                f"cache_mb must be a number of MiB, finite and at least 0, got cache_mb={budget!r}"
            )
            raise ValueError(msg)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and settle gamma: ``"scale"`` is 1 / (n_features * variance of X)."""
        data = self._validate(X, y)
        self.gamma_ = scale(data.X) if self.gamma == "scale" else float(self.gamma)
        data.native = data.X
        return data

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Run the algorithm on one kernel matrix, wherever it comes from.

        Nothing is validated, so that a protocol can call it for thousands of small problems.

        Parameters
        ----------
        source : KernelSource
        y : ndarray of shape (source.n_samples,)
            Labels ±1, both present.
        start : ndarray of shape (source.n_samples,), optional
            Multipliers to start from, feasible for this C; a solver without a warm start ignores
            them.
        """
        msg = f"{self.declaration.name} works on inputs, not on a kernel matrix"
        raise NotImplementedError(msg)

    def solve_path(
        self, source: KernelSource, y: np.ndarray, values: Sequence[float]
    ) -> list[KernelSolution]:
        """Return the solution at each C of `values` (ascending); as `solve`, one after another."""
        return [clone(self).set_params(C=C).solve(source, y) for C in values]

    @classmethod
    def open_methods(cls) -> list[str]:
        """Return what nobody has defined: `solve` or a `train` of its own is needed."""
        open_ones = super().open_methods()
        if cls.train is KernelClassifier.train and not cls.takes_kernel_matrix():
            open_ones.append("solve")
        return open_ones

    @classmethod
    def takes_kernel_matrix(cls) -> bool:
        """Whether `solve` is there, so that a protocol may hand in a shared kernel matrix."""
        return cls.solve is not KernelClassifier.solve

    def train(self, data: TrainingData) -> Self:
        """Solve on the kernel matrix of the samples, and store the model."""
        source = KernelSource.from_inputs(data.X, self.function)
        return self._store(self.solve(source, data.y), data)

    @property
    def function(self) -> KernelFunction:
        """The kernel with its settled parameters."""
        return KernelFunction(self.kernel, self.gamma_, int(self.degree), float(self.coef0))

    def _store(self, solution: KernelSolution, data: TrainingData) -> Self:
        if not (np.all(np.isfinite(solution.alpha)) and np.isfinite(solution.b)):
            msg = f"{type(self).__name__} produced a solution with NaN or infinite coefficients"
            raise FloatingPointError(msg)
        self.support_ = np.flatnonzero(solution.alpha)
        self.support_vectors_ = data.X[self.support_]
        self.dual_coef_ = (solution.alpha * data.y)[self.support_].reshape(1, -1)
        self.intercept_ = np.array([solution.b])
        self.n_iter_ = max(1, solution.n_iter)
        self.stop_reason_ = solution.stop_reason
        self.counters_ = {
            **solution.counters,
            "support_vectors": len(self.support_),
            "bounded_support_vectors": int(
                np.sum(solution.alpha >= self._problem.upper(self._sum_weight(data)))
            ),
        }
        if solution.stop_reason in ("max_iter", "stalled"):
            # A baseline's program may have a limit that is no parameter.
            limit = f"max_iter={self.max_iter}" if hasattr(self, "max_iter") else "a limit"
            why = (
                f"stopped at {limit}"
                if solution.stop_reason == "max_iter"
                else "can make no more progress in float64"
            )
            warnings.warn(
                f"{self.declaration.name} {why} before the optimality conditions held within "
                f"tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def certify(self, data: TrainingData) -> Self:
        """Set ``objective_`` (primal, at the returned offset) and ``dual_objective_``."""
        f = self._decide(data.X)
        coefficients = self.dual_coef_[0]
        b = float(self.intercept_[0])
        square = float(coefficients @ (f[self.support_] - b))
        if self.absorbs_bias:
            square += b * b
        weight = self._sum_weight(data)
        losses = float(np.sum(self._problem.loss(data.y * f)))
        self.objective_ = 0.5 * square + weight * losses
        conjugate = self._problem.conjugate(np.abs(coefficients), weight)
        self.dual_objective_ = -conjugate - 0.5 * square
        if not np.isfinite(self.objective_):
            msg = (
                f"{type(self).__name__} has decision values that are NaN or infinite on its own "
                f"training samples: the {self.kernel} kernel overflows there"
            )
            raise FloatingPointError(msg)
        return self

    @property
    def _problem(self) -> Problem:
        return PROBLEMS[self.declaration.problem]

    def _sum_weight(self, data: TrainingData) -> float:
        """Return the weight of the summed losses; a solver with another parameter converts it."""
        return float(self.C)

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
            K = self.function.between(X[rows], self.support_vectors_)
            values[rows] += K @ self.dual_coef_[0]
        return values
