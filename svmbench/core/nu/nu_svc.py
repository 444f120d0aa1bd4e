"""The ν-SVC with a free offset: the pair solver with two fixed sums.

Problem
    min_alpha  1/2 alpha' Q alpha,   0 <= alpha_i <= 1/N,   e'alpha >= nu,   y'alpha = 0,
    Q_ij = y_i y_j K(x_i, x_j);   f(x) = sum_j alpha_j y_j K(x_j, x) + b:
    the dual of 1/2 ||w||^2 - nu rho + 1/N sum_i max(0, rho - y_i f(x_i)).
Given
    A kernel source, y in {-1, +1}, nu, tol.
Returned
    alpha, b and rho, once the violation is at most tol min(1, rho). Here violation and rho are
    those of the problem times N (LIBSVM's scale: multipliers are at most 1, f and rho N times as
    large). Divided by rho, the conditions are those of the C-SVC with the same f / rho, whose C is
    1 / (N rho); see ``csvc/solver``.
Reference
    Schölkopf, Smola, Williamson and Bartlett 2000; Chang and Lin 2001 (e'alpha = nu at an optimum,
    so that each class has the sum nu/2; pairs of one class; the range of nu).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from svmbench.core.contract.base import (
    NO_MARGIN,
    UNFINISHED,
    TrainingData,
    Weighted,
    most_iterations,
    reason_of_all,
)
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.pairs import suits_joint_training
from svmbench.core.csvc.problem import thresholds
from svmbench.core.csvc.solver import (
    FULL_MATRIX_MAX_SAMPLES,
    RelativeTolerance,
    solve_qp,
    warm_up_solver,
)
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.models.kernel_base import KernelClassifier, KernelParameters, KernelSolution
from svmbench.core.models.ovo_model import JointData, JointSolution
from svmbench.core.nu.nu_pairs import solve_nu_pairs, warm_up_nu_pairs
from svmbench.core.nu.nu_problem import largest_nu, no_margin, nu_svc_problem, useful_nu


@declare(
    name="nu-svc",
    problem="nu-svc",
    promise="violation relative to rho",
    summary="ν-SVC with a free offset: pairs within a class, on csvc's rows and blocks",
    reference="Schölkopf, Smola, Williamson and Bartlett 2000; Chang and Lin 2001",
    paper="",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False)
class NuSVC(KernelParameters, Weighted, KernelClassifier):
    """ν-SVC, as LIBSVM's but for the scale of f, which is the paper's.

    On the margin y f(x) = rho; LIBSVM divides f by rho. Weights of samples count relative to their
    mean, so that nu is a share of their sum; there are none of classes, which would leave nu no
    room.

    Parameters
    ----------
    nu : float
        Upper bound of the share of samples within the margin, and lower bound of the share of
        support vectors; above 0, and at most twice the share of the smaller class.
    tol : float
        Largest violation of the optimality conditions: as a share of rho, and in LIBSVM's scale
        (its eps) where rho is above 1 in that scale. Rounding of kernel values is allowed for.
    max_iter : int
        Largest number of steps; -1 for no limit.

    Attributes
    ----------
    expansion_ : Expansion
        The model; its `rho` is the value of y f(x) on the margin.
    objective_, dual_objective_ : float
        Primal value at b and rho, and dual value.
    n_iter_ : int
        Pair steps, and on a matrix in memory Newton steps of all free multipliers.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, ``"stalled"`` (no step is left that float64 can see) or
        ``"no margin"``: none was found. Mostly nu is too small for the data, and the model is
        w = 0; a warning names a nu that has a margin, of several classes in every pair.
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (steps), ``checks`` (of the gradient in float64),
        ``support_vectors``, ``bounded_support_vectors``; of several classes sums over the pairs.
    estimators_ : list of NuSVC
        The model of each pair of more than two classes. Pairs of up to 4,000 samples are solved
        together; their ``counters_`` have only the numbers of support vectors, since the work is
        counted for all pairs together.

    Raises
    ------
    ValueError
        If `nu` is too large for the smaller class.

    Examples
    --------
    >>> from svmbench.core.nu.nu_svc import NuSVC
    >>> NuSVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[1.9]])
    array([0])
    """

    nu: float = 0.5
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 10_000_000
    cache_mb: float = 1024.0
    decision_function_shape: str = "ovr"
    break_ties: bool = False

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", "kernel", "gamma", "degree", "coef0")

    max_iter_may_be_unlimited: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.nu, Real) and 0.0 < float(self.nu) <= 1.0):
            msg = f"nu must be a number above 0 and at most 1, got nu={self.nu!r}"
            raise ValueError(msg)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Run the compiled code of larger problems and of precomputed matrices."""
        super().warm_up_rest()
        warm_up_solver(np.array([0, 0, 1, 1]))
        warm_up_nu_pairs()
        # Working sets on groups: steps from zero would move nothing, since no multiplier can fall.
        samples = np.linspace(0.0, 1.0, FULL_MATRIX_MAX_SAMPLES + 2)[:, None]
        inputs = KernelSource.from_inputs(samples, KernelFunction("rbf", 1.0))
        cls().solve(inputs, np.resize([1.0, -1.0], len(samples)))
        for dtype in (np.float32, np.float64):
            source = KernelSource.precomputed(np.eye(2, dtype=dtype))
            cls().solve(source, np.array([1.0, -1.0]))

    def _problem_parameter(self, data: TrainingData) -> float:
        return float(self.nu)

    def _weigh(self, labels: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        weights = super()._weigh(labels, sample_weight)
        return None if weights is None else weights / weights.mean()

    def no_margin_warning(self, data: TrainingData) -> str:
        """Return what a warning says after the solver's name if there is no margin, else ""."""
        if isinstance(data.native, JointData):
            return self._no_margin_of_pairs(data.native)
        if self.stop_reason_ != NO_MARGIN:
            return ""
        source, y, weights = self._source(data), data.y, data.weights
        if data.matrix is not None:
            order = by_class(y)
            source, y = KernelSource.precomputed(data.matrix), y[order]
            weights = None if weights is None else weights[order]
        useful = useful_nu(source, y, weights)
        return no_margin(self.nu, useful, largest_nu(data.y, data.weights))

    def _no_margin_of_pairs(self, joint: JointData) -> str:
        """Return the same for pairs that were trained together: a nu that serves them all."""
        if not self._without_margin:
            return ""
        layout, largest = joint.layout, np.inf
        source, useful = KernelSource.from_inputs(joint.points, self.function), 0.0
        for p in range(len(layout.first)):
            chosen = layout.variables(p)
            places, signs = layout.places[chosen], layout.signs[chosen]
            weights = None if joint.weights is None else joint.weights[places]
            weights = None if weights is None else weights / weights.mean()
            # The pairs that have a margin limit nu, too.
            largest = min(largest, largest_nu(signs, weights))
            if p in self._without_margin:
                useful = max(useful, useful_nu(source.subset(places), signs, weights))
        return no_margin(self.nu, useful, largest)

    def trains_pairs_together(self, sizes: np.ndarray) -> bool:
        """Return True if all pairs of classes can be solved on rows that they share."""
        return suits_joint_training(sizes)

    def train_jointly(self, joint: JointData) -> JointSolution:
        """Solve the problems of all pairs of classes on the rows of one kernel matrix."""
        solution = solve_nu_pairs(
            KernelSource.from_inputs(joint.points, self.function),
            joint.layout,
            float(self.nu),
            joint.weights,
            tol=float(self.tol),
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
        )
        reasons = solution.stop_reasons
        self._without_margin = [p for p, reason in enumerate(reasons) if reason == NO_MARGIN]
        unfinished = [reason for reason in reasons if reason in UNFINISHED]
        self._warn_unless_finished(reason_of_all(unfinished or reasons))
        return solution

    def solve(
        self,
        source: KernelSource,
        y: np.ndarray,
        start: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> KernelSolution:
        """Solve on one kernel matrix; `start` is ignored, since it fits one nu alone.

        The mean of `weights` (n_samples,) is 1, and so is each of them by default.
        """
        n = len(y)
        # Sorted by class, so that steps in a class read one run of a kernel row. A stored matrix
        # stays as it is: sorting would copy it.
        order = np.arange(n) if source.is_stored else by_class(y)
        sorted_weights = None if weights is None else weights[order]
        problem, first = nu_svc_problem(y[order], float(self.nu), sorted_weights)

        def rho(beta: np.ndarray, v: np.ndarray) -> float:
            # The positive class is first; in ``nu_pairs`` the negative one is.
            positive, negative = thresholds(problem, beta, v)
            return 0.5 * float(negative - positive)

        result = solve_qp(
            source if source.is_stored else source.subset(order),
            problem,
            start=first,
            tol=RelativeTolerance(float(self.tol), rho),
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
        )
        # On the margin of a class, -v = sum_j beta_j K_ij is +-rho - b, in this scale.
        positive, negative = thresholds(problem, result.beta, result.v)
        b = 0.5 * float(positive + negative) / n
        beta, v = np.empty(n), np.empty(n)
        beta[order], v[order] = result.beta, result.v
        return KernelSolution(
            beta * (1.0 / n),
            b=b,
            rho=0.5 * float(negative - positive) / n,
            n_iter=result.steps,
            stop_reason=result.stop_reason,
            counters=result.counters,
            decisions=b - v / n,
            decisions_error=result.error / n,
            matrix=None if source.is_stored else result.matrix,
        )


def by_class(y: np.ndarray) -> np.ndarray:
    """Return the order of a search: the positive class first, each class in its own order."""
    return np.argsort(-y, kind="stable")
