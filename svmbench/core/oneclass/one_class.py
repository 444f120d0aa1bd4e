"""The one-class SVM: a quadratic program with bounds and one fixed sum.

Problem
    min_alpha  1/2 alpha' K alpha,   0 <= alpha_i <= 1/(nu N),   sum alpha = 1;
    f(x) = sum_i alpha_i K(x_i, x) - rho:
    the dual of 1/2 ||w||^2 - rho + 1/(nu N) sum_i max(0, rho - <w, phi(x_i)>).
Given
    A kernel source, nu, tol.
The method
    The pair and block solver; with the linear kernel and few features, Wolfe's algorithm on
    reduced convex hulls (``min_norm``).
Returned
    alpha and rho, once the conditions hold within tol for the problem times nu N (LIBSVM's scale,
    in which a multiplier is at most 1 and f is nu N times as large), or within tol times rho in
    that scale, where rho is below 1 there; see ``csvc/solver``.
Hard margin
    With nu N < 1 no multiplier can reach its bound, which is above their sum: the solution is that
    of the hard margin, whatever nu. Its scale is that of nu N = 1, and rho is the smallest
    <w, phi(x_i)>, which is best for any w at such a nu.
Reference
    Schölkopf, Platt, Shawe-Taylor, Smola and Williamson 2001; Chang and Lin 2011, Section 2.3.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from svmbench.core.contract.base import TrainingData, most_iterations
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.problem import QPProblem, make_qp, start_of_sum, thresholds
from svmbench.core.csvc.smo import STALLED
from svmbench.core.csvc.solver import QPResult, RelativeTolerance, solve_qp, warm_up_solver
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KERNEL_PARAMETERS, KernelParameters, KernelSolution
from svmbench.core.models.novelty_base import KernelDetector, require_share
from svmbench.core.oneclass.min_norm import solve_min_norm

#: A linear kernel is solved by ``min_norm`` above so many samples, and up to so many features.
#: With more features, Wolfe's algorithm may take more time than working sets.
MIN_NORM_MIN_SAMPLES, MIN_NORM_MAX_FEATURES = 2000, 128

#: Upper bound of the multipliers of a hard margin, which sum up to 1: it is never reached.
BEYOND_THE_SUM = 2.0


def scale_of(n: int, nu: float) -> float:
    """Return the sum of the multipliers in the problem's scale: nu N, or 1 for a hard margin."""
    return max(1.0, nu * n)


def one_class_problem(
    n: int,  # number of samples
    nu: float,
    linear: np.ndarray | None = None,  # (n,): linear term in this scale; zero if not given
) -> tuple[QPProblem, np.ndarray]:
    """Return the problem in the variables ``scale_of(n, nu) * alpha_i``, and a feasible start."""
    high = np.full(n, 1.0 if nu * n >= 1.0 else BEYOND_THE_SUM)
    problem = make_qp(np.zeros(n) if linear is None else linear, np.zeros(n), high)
    return problem, start_of_sum(scale_of(n, nu), high)


@dataclass(eq=False, repr=False)
class BoxDetector(KernelParameters, KernelDetector):
    """Base class of the detectors with the parameter `nu` that `solve_qp` solves.

    Parameters
    ----------
    max_iter : int
        Largest number of steps; -1 for no limit.

    Attributes
    ----------
    n_iter_ : int
        Pair steps.
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (pair steps), ``checks`` (of the gradient in float64),
        ``support_vectors``, ``bounded_support_vectors``.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", *KERNEL_PARAMETERS)

    max_iter_may_be_unlimited: ClassVar[bool] = True

    nu: float = 0.5
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 10_000_000
    cache_mb: float = 1024.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("nu", self.nu)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Run the compiled code of larger problems and of precomputed matrices."""
        super().warm_up_rest()
        warm_up_solver()
        for dtype in (np.float32, np.float64):
            cls().solve(KernelSource.precomputed(np.eye(2, dtype=dtype)), np.ones(2))

    def _threshold(self, problem: QPProblem, result: QPResult) -> float:
        """Return the gradient that separates what is inside from what is outside."""
        # Below nu N = 1 a sample that is outside costs more than any margin gains.
        is_hard = float(self.nu) * len(result.v) < 1.0
        return float(result.v.max() if is_hard else thresholds(problem, result.beta, result.v)[0])

    def _search(
        self,
        source: KernelSource,
        problem: QPProblem,
        start: np.ndarray,
        tolerance: RelativeTolerance,
    ) -> QPResult:
        return solve_qp(
            source,
            problem,
            start=start,
            tol=tolerance,
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
        )


@declare(
    name="one-class",
    problem="one-class",
    promise="violation relative to rho",
    summary="one-class SVM: second-order pairs and working sets, on csvc's kernel rows",
    reference="Schölkopf, Platt, Shawe-Taylor, Smola and Williamson 2001; Chang and Lin 2011",
    paper="",
    kernels=KERNELS,
    task="one-class",
)
class OneClass(BoxDetector):
    """One-class SVM, as LIBSVM's but for the scale: here that of its paper.

    Multipliers sum up to 1, so that LIBSVM's decision values are nu N times these.
    :class:`~svmbench.core.oneclass.svdd.SVDD` is the same model for a kernel of constant diagonal.

    Parameters
    ----------
    nu : float
        Upper bound of the share of training samples that f calls abnormal, and lower bound of the
        share of support vectors; above 0 and at most 1.
    tol : float
        Largest violation of the optimality conditions: as a share of rho, and in LIBSVM's scale
        (its eps) where rho is above 1 in that scale. Rounding of kernel values is allowed for.

    Attributes
    ----------
    n_iter_ : int
        Pair steps; with the linear kernel on more than 2,000 samples of at most 128 features,
        vertices that Wolfe's algorithm adds.
    intercept_ : ndarray of shape (1,)
        -rho.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, ``"stalled"`` (no step is left that float64 can see) or
        ``"no margin"``: no plane was found between the origin and as many samples as nu asks for.

    Examples
    --------
    >>> from svmbench.core.oneclass.one_class import OneClass
    >>> OneClass(nu=0.5, gamma=1.0).fit([[0.0], [0.1], [0.2], [5.0]]).predict([[0.1], [9.0]])
    array([ 1, -1])
    """

    def _problem_parameter(self, data: TrainingData) -> float:
        return float(self.nu)

    def solve(
        self, source: KernelSource, y: np.ndarray | None = None, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; `start` is ignored, since it fits one nu alone."""
        n, nu = source.n_samples, float(self.nu)
        scale = scale_of(n, nu)
        problem, first = one_class_problem(n, nu)
        tolerance = RelativeTolerance(
            float(self.tol), lambda beta, v: -float(thresholds(problem, beta, v)[0])
        )
        result = self._solve_linear(source, scale, problem)
        if result is None or result.reason == STALLED:
            result = self._search(
                source, problem, first if result is None else result.beta, tolerance
            )
        # On the boundary -v is <w, phi(x)> in this scale; -v is larger where alpha is 0.
        rho = -self._threshold(problem, result) / scale
        return KernelSolution(
            result.beta / scale,
            b=-rho,
            rho=rho,
            n_iter=result.steps,
            stop_reason=result.stop_reason,
            counters=result.counters,
            decisions=-result.v / scale - rho,
            decisions_error=result.error / scale,
        )

    def _solve_linear(
        self, source: KernelSource, scale: float, problem: QPProblem
    ) -> QPResult | None:
        """Return the solution for a linear kernel on many samples of few features, else None."""
        inputs = source.inputs()
        if inputs is None or inputs[1].name != "linear":
            return None
        X = inputs[0]
        if X.shape[0] <= MIN_NORM_MIN_SAMPLES or X.shape[1] > MIN_NORM_MAX_FEATURES:
            return None
        most = most_iterations(self.max_iter)
        return solve_min_norm(X, scale, float(problem.high[0]), tol=float(self.tol), max_iter=most)
