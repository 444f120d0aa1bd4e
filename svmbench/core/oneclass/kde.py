"""Kernel density estimation as a novelty detector: the Gaussian Parzen window with a threshold.

Problem
    min_w  1/2 ||w||^2 - 1/N sum_i <w, phi(x_i)>,  which is solved by the mean of the phi(x_i):
    f(x) = 1/N sum_i K(x_i, x) - rho,   K(x, z) = exp(-gamma ||x - z||^2).
Given
    Samples, gamma = 1 / (2 h^2) for a bandwidth h, nu.
Returned
    The samples themselves, and rho: the smallest score of a training sample below which there are
    at most nu N of them.
Reference
    Parzen 1962; Schölkopf et al. 2001, Section 3: the one-class SVM at nu = 1 has the same w.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.problems import Problem, Values, not_one
from svmbench.core.contract.registry import declare
from svmbench.core.models.kernel_base import Expansion, KernelSolution
from svmbench.core.models.novelty_base import KernelDetector, require_share


@dataclass(frozen=True)
class MeanEmbedding(Problem):
    """The mean of the samples in feature space, as a minimum: every multiplier is 1/N.

    min  1/2 ||w||^2 - 1/N sum_i <w, phi(x_i)>,   f(x) = <w, phi(x)> - rho;
    max  -1/2 ||w||^2   at  w = 1/N sum_i phi(x_i).

    It has no parameter.
    """

    def primal(self, values: Values, parameter: float = 0.0) -> float:
        """Return the primal value at w; f has -rho in it."""
        return 0.5 * values.square - float(np.mean(values.f)) - values.rho

    def dual(self, values: Values, parameter: float = 0.0) -> float:
        """Return -1/2 square."""
        return -0.5 * values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return 1/N twice."""
        return 1.0 / n_samples, 1.0 / n_samples

    def sum_violation(self, values: Values, parameter: float, offset: Any) -> str:
        """Return a sentence if the multipliers do not sum up to 1, else ""."""
        return not_one(values, self.name)


MEAN_EMBEDDING = MeanEmbedding(
    name="mean-embedding",
    formula="1/2 ||w||^2 - mean of <w, phi(x_i)>, alpha = 1/N",
)


def quantile_of(scores: np.ndarray, nu: float) -> float:
    """Return the smallest score below which there are at most nu N of them."""
    # Rounding must not turn 0.1 * 30 into one sample less.
    outside = min(int(nu * len(scores) * (1.0 + 1e-12)), len(scores) - 1)
    return float(np.partition(scores, outside)[outside])


@declare(
    name="kde",
    problem=MEAN_EMBEDDING,
    promise="rounding",
    summary="kernel density estimation: the Gaussian Parzen window, normal above a quantile",
    reference="Parzen 1962; sklearn.neighbors.KernelDensity's density but for a constant factor",
    paper="",
    kernels=("rbf",),
    task="one-class",
)
@dataclass(eq=False, repr=False)
class KernelDensityDetector(KernelDetector):
    """Gaussian kernel density with a threshold.

    ``score_samples`` is the density without its constant factor; its logarithm is scikit-learn's
    ``KernelDensity(bandwidth=(2 * gamma) ** -0.5).score_samples`` plus a constant. Its training
    time is that of the scores of its own N samples, which the threshold needs: N^2 kernel values.

    Parameters
    ----------
    nu : float
        Largest share of training samples that lie below the threshold; above 0 and at most 1.
    gamma : float, "scale" or "auto"
        1 / (2 h^2) for a bandwidth h; "scale" is 1 / (n_features * variance of X), "auto"
        1 / n_features.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_samples,)
        Every sample.
    dual_coef_ : ndarray of shape (1, n_samples)
        1/N.
    offset_ : float
        The threshold rho.
    objective_, dual_objective_ : float
        Value of the problem whose solution the mean is, and of its dual: the same.
    n_iter_ : int
        1.
    stop_reason_ : str
        ``"closed form"``.
    counters_ : dict
        ``kernel_evaluations``, ``support_vectors``, ``bounded_support_vectors``.

    Examples
    --------
    >>> from svmbench.core.oneclass.kde import KernelDensityDetector
    >>> model = KernelDensityDetector(nu=0.25, gamma=1.0).fit([[0.0], [0.1], [0.2], [5.0]])
    >>> model.predict([[0.1], [5.0]])
    array([ 1, -1])
    """

    nu: float = 0.1
    _: KW_ONLY
    gamma: float | str = "scale"

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", "gamma")

    kernel = "rbf"
    degree = 1
    coef0 = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("nu", self.nu)

    def _problem_parameter(self, data: TrainingData) -> float:
        return 0.0

    def train(self, data: TrainingData) -> Self:
        """Evaluate the density at the samples, and store samples and threshold."""
        n = len(data.y)
        weights = np.full(n, 1.0 / n)
        rows = np.arange(n)
        scores = Expansion(self.function, data.X, weights, 0.0, rows=rows).decide(data.X)
        rho = quantile_of(scores, float(self.nu))
        counters = {"kernel_evaluations": n * n}
        return self._store(KernelSolution(weights, -rho, 1, "closed form", counters, rho=rho), data)
