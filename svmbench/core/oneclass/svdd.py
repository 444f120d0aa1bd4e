"""Support vector data description: the smallest ball, on the solver of the one-class SVM.

Problem
    max_alpha  sum_i alpha_i K_ii - alpha' K alpha,   0 <= alpha_i <= C,   sum alpha = 1;
    a = sum_i alpha_i phi(x_i),   f(x) = R^2 - ||phi(x) - a||^2:
    the dual of R^2 + C sum_i max(0, ||phi(x_i) - a||^2 - R^2), with C = 1/(nu N).
Given
    A kernel source, nu, tol.
Returned
    alpha and R^2, once the conditions hold within tol for the problem times nu N / 2, or within tol
    times R^2 in that scale, where R^2 is below 1 there; see ``csvc/solver``. For a kernel
    of constant diagonal the scale and the model are those of the one-class SVM.
Hard margin
    With nu N < 1 no sample is outside and C does not matter: the smallest ball that holds all. Its
    scale is that of nu N = 1, and R is the largest distance from its centre.
Reference
    Tax and Duin 2004.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.problems import Values
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.problem import thresholds
from svmbench.core.csvc.solver import RelativeTolerance
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.oneclass.one_class import BoxDetector, one_class_problem, scale_of


@declare(
    name="svdd",
    problem="svdd",
    promise="violation relative to rho",
    summary="support vector data description: the smallest ball; for RBF the one-class SVM",
    reference="Tax and Duin 2004",
    paper="",
    kernels=KERNELS,
    task="one-class",
)
class SVDD(BoxDetector):
    """The smallest ball that holds the samples but for a share `nu`.

    With a kernel of constant diagonal (RBF) f is twice that of
    :class:`~svmbench.core.oneclass.one_class.OneClass`; with others it is another model.

    Parameters
    ----------
    nu : float
        Upper bound of the share of training samples outside the ball; its C is 1/(nu N). Above 0
        and at most 1.
    tol : float
        Largest violation of the optimality conditions: as a share of R^2, and in the scale of
        LIBSVM's one-class SVM where R^2 is above 1 in that scale. Rounding of the kernel values is
        allowed for.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        alpha: the centre's coefficients, which sum up to 1.
    offset_ : float
        -R^2; ``score_samples`` is minus the squared distance from the centre.
    intercept_ : ndarray of shape (1,)
        Half of ``R^2 - ||a||^2``: f(x) is twice (the expansion plus this) minus K(x, x).
    objective_, dual_objective_ : float
        Primal value at R^2, and dual value.

    Examples
    --------
    The ball around two points of a line:

    >>> from svmbench.core.oneclass.svdd import SVDD
    >>> SVDD(kernel="linear").fit([[1.0], [3.0]]).decision_function([[2.0], [3.0], [4.0]])
    array([ 1.,  0., -3.])
    """

    @property
    def offset_(self) -> float:  # type: ignore[override]
        """-R^2."""
        return -float(self.expansion_.rho)

    def _problem_parameter(self, data: TrainingData) -> float:
        return 1.0 / (float(self.nu) * len(data.y))

    def solve(
        self, source: KernelSource, y: np.ndarray | None = None, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; `start` is ignored, since it fits one nu alone."""
        n, nu = source.n_samples, float(self.nu)
        scale = scale_of(n, nu)
        diagonal = source.diag()
        problem, first = one_class_problem(n, nu, 0.5 * scale * diagonal)

        def radius(beta: np.ndarray, v: np.ndarray) -> float:
            # v is scale (K_ii / 2 - <a, phi(x_i)>): the squared distance is 2v / scale + ||a||^2.
            return float(
                thresholds(problem, beta, v)[0] + 0.5 * beta @ (0.5 * diagonal - v / scale)
            )

        tolerance = RelativeTolerance(float(self.tol), radius, can_vanish=False)
        result = self._search(source, problem, first, tolerance)
        alpha = result.beta / scale
        half = self._threshold(problem, result) / scale
        square = float(alpha @ (0.5 * diagonal - result.v / scale))
        return KernelSolution(
            alpha,
            b=half,
            rho=2.0 * half + square,
            n_iter=result.steps,
            stop_reason=result.stop_reason,
            counters=result.counters,
        )

    def _decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        g = super()._decide(X, precision=precision, n_jobs=n_jobs)
        return 2.0 * g - self.expansion_.function.diagonal(X)

    def _values(self, data: TrainingData, f: np.ndarray | None = None) -> Values:
        """Return the values, with R^2 from ``||a||^2`` in double precision."""
        f = self._decide(data.X) if f is None else f
        model = self.expansion_
        assert model.rows is not None
        diagonal = model.function.diagonal(data.X)
        g, alpha = 0.5 * (f + diagonal), np.zeros(len(data.y))
        alpha[model.rows] = model.coefficients
        square = float(model.coefficients @ (g[model.rows] - model.b))
        radius = 2.0 * model.b + square
        self.expansion_ = replace(model, square=square, rho=radius)
        return Values(f=f, square=square, alpha=alpha, rho=radius, diagonal=diagonal)
