"""The contract of novelty detectors: trained on one class, without labels; +1 normal, -1 not.

As in scikit-learn, ``decision_function`` is ``score_samples`` minus ``offset_``, and ``predict``
returns +1 where it is not negative. A detector is a solver like any other, whose training data have
the label +1 everywhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags

from svmbench.core.contract.base import (
    NO_MARGIN,
    Along,
    PathPoint,
    Solver,
    TrainingData,
    require_squares,
    validated,
)
from svmbench.core.contract.sklearn_bases import OutlierMixin
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KERNEL_PARAMETERS, KernelSolver


class NoveltyDetector(OutlierMixin, Solver):
    """A solver that is trained on normal samples only.

    Subclasses define `train`, `evaluate_objective`, `decision_function` and ``offset_``.

    Parameters
    ----------
    nu : float
        Upper bound of the share of abnormal training samples, with f(x) < 0; above 0, at most 1.

    Attributes
    ----------
    offset_ : float
        The smallest score of a normal sample.
    """

    offset_: float

    def _validate(self, X: Any, y: Any = None) -> TrainingData:
        """Check the inputs; return them as float64, C-ordered or CSR; `y` is ignored."""
        self._check_parameters()
        X = validated(self, X, sparse=self.declaration.sparse)
        require_squares(X)
        return TrainingData(X=X, y=np.ones(X.shape[0]))

    def prepare(self, X: Any, y: Any = None) -> TrainingData:
        """Validate and convert; see the base class. `y` is ignored."""
        return super().prepare(X, y)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Normal samples; finite.
        y : ignored
            For scikit-learn's pipelines.

        Raises
        ------
        ValueError
            On NaN or infinite inputs, or a parameter out of range.
        """
        return super().fit(X, y)

    @abstractmethod
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for each row of `X`, shape (n_samples,): at least 0 for normal ones."""
        raise AssertionError("a detector defines decision_function")

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the score of each row of `X`, shape (n_samples,): the higher the more normal."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return +1 (normal) or -1 for each row of `X`, shape (n_samples,); f = 0 is normal."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.declaration.sparse
        return tags


class KernelDetector(KernelSolver, NoveltyDetector):
    """A novelty detector whose model is an expansion over samples: f(x) = <w, phi(x)> - rho.

    Subclasses have the parameters of the kernel and define `solve`, whose labels are all +1, or
    `train`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        alpha, which sums up to 1.
    offset_ : float
        rho, the smallest score <w, phi(x)> of a normal sample.
    objective_, dual_objective_ : float
        Primal value at rho, and dual value.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = KERNEL_PARAMETERS

    @property
    def offset_(self) -> float:  # type: ignore[override]
        """rho, the smallest score <w, phi(x)> of a normal sample."""
        return float(self.expansion_.rho)

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors, int32 of shape (1,)."""
        return np.array([len(self.expansion_.coefficients)], dtype=np.int32)

    def no_margin_warning(self, data: TrainingData) -> str:
        """Return the predicate of a warning if there is no margin, else ""."""
        if self.stop_reason_ != NO_MARGIN:
            return ""
        given, wider = "", ""
        if hasattr(self, "nu"):
            given, wider = f" at nu={self.nu:g}", "a larger nu or "
        return (
            f"finds no margin{given}: no plane separates the samples from the origin, and the model"
            f" is w = 0; take {wider}a kernel whose values are all positive, like RBF"
        )

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value of a parameter. No labels are needed."""
        if y is None and isinstance(data, KernelSource):
            y = np.ones(data.n_samples)
        return super()._path(data, y, along)

    def predict(
        self, X: Any, *, precision: str = "double", n_jobs: int | None = None
    ) -> np.ndarray:
        """Return +1 (normal) or -1 for each row of `X`, shape (n_samples,); f = 0 is normal.

        Parameters
        ----------
        X, precision, n_jobs
            As for :meth:`decision_function`, with the same errors.
        """
        f = self.decision_function(X, precision=precision, n_jobs=n_jobs)
        return np.where(f >= 0.0, 1, -1)


def require_share(name: str, value: Any, *, below_one: bool = False) -> None:
    """Raise ValueError unless `value` is above 0 and at most 1 (below 1 with `below_one`)."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and 0.0 < float(value) <= 1.0 and not (below_one and float(value) == 1.0):
        return
    end = "below 1" if below_one else "at most 1"
    msg = f"{name} must be a number above 0 and {end}, got {name}={value!r}"
    raise ValueError(msg)
