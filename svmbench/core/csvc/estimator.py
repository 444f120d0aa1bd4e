"""``CSVC``, the estimator: parameters in, model out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from svmbench.core.contract.base import (
    ClassWeight,
    TrainingData,
    Weighted,
    most_iterations,
    reason_of_all,
    require_n_jobs,
    require_positive,
)
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.problems import Values
from svmbench.core.contract.registry import declare
from svmbench.core.csvc import pairs, solver
from svmbench.core.csvc.path import along_c
from svmbench.core.csvc.problem import QPProblem, csvc_problem, thresholds
from svmbench.core.csvc.smo import CONVERGED, STOP_REASONS
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution
from svmbench.core.models.ovo_model import JointData, JointSolution


@declare(
    name="csvc",
    problem="hinge",
    promise="violation",
    summary="C-SVC for everyday use: SMO with second-order pairs, a row cache, warm starts along C",
    reference="Fan, Chen and Lin 2005; Joachims 1999",
    paper="",
    kernels=KERNELS,
    paths=("C",),
)
@dataclass(eq=False, repr=False, kw_only=True)
class CSVC(Weighted, ClassifierWithC):
    """C-SVC with a free offset, as LIBSVM's, and faster; or without an offset.

    Parameters
    ----------
    C : float
        Weight of the summed hinge losses; above 0.
    tol : float
        Largest violation of the optimality conditions (LIBSVM's eps): margins are right within it.
        The objective is then right within about C tol for each support vector. A warning is given
        if the duality gap is more than 20 times the dual value.
    max_iter : int
        Largest number of steps; -1 for no limit.
    stop : {"kkt", "gap"}
        What ends a search: only a violation of at most `tol`; or also a small duality gap. The gap
        suits the many fits of a grid search whose best point is then fitted to `tol`.
    gap : float
        With ``stop="gap"``: primal minus dual value, as a share of C n_samples (with weights, of
        the sum of all bounds), above 0. The primal value is taken at the present offset, and both
        values are computed from the search's own kernel values.
    cache_mb : float
        Memory for kernel rows, MiB; any amount will do, and more saves work. Beside it there are
        a copy of the inputs in float32, some 20 MiB of scratch and, while optimality is checked,
        a copy of the support vectors.
    fit_intercept : bool
        Whether f has an offset. Without one the dual has no equality constraint.
    n_jobs : int
        Threads that make kernel rows and update the gradient of problems of more than 2,000
        samples, and that share the pairs of several classes; -1: one a processor. The model is the
        same whatever their number. Sparse inputs of less than 3 % non-zeros that are not binary,
        and stored matrices, stay on one thread.
    class_weight : dict, "balanced" or None
        Factor of C for the samples of each class. A dict has the factors by label, and classes that
        it lacks have 1; "balanced" gives all classes the same total weight; None means 1 for all.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        0 without an offset.
    n_iter_ : int
        Steps of two multipliers.
    stop_reason_ : str
        ``"converged"``, ``"gap"`` (by ``stop="gap"``), ``"max_iter"`` or ``"stalled"`` (no step
        is left that float64 can see).
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (steps), ``checks`` (of the gradient in float64),
        ``support_vectors``, ``bounded_support_vectors``; of several classes sums over the pairs.
    estimators_ : list of CSVC
        The model of each pair of more than two classes. Pairs of up to 4,000 samples are solved
        together; their ``counters_`` have only the numbers of support vectors, since the work is
        counted for all pairs together.

    Examples
    --------
    >>> from svmbench.core.csvc import CSVC
    >>> CSVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    max_iter_may_be_unlimited: ClassVar[bool] = True

    tol: float = 1e-3
    max_iter: int = 10_000_000
    stop: str = "kkt"
    gap: float = 1e-3
    cache_mb: float = 1024.0
    fit_intercept: bool = True
    n_jobs: int = 1
    class_weight: ClassWeight = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_n_jobs(self.n_jobs)
        if self.stop not in ("kkt", "gap"):
            msg = f"stop must be 'kkt' or 'gap', got stop={self.stop!r}"
            raise ValueError(msg)
        require_positive("gap", self.gap)

    @property
    def _gap(self) -> float | None:
        """The share of C n at which the duality gap ends a search; None if it does not."""
        return float(self.gap) if self.stop == "gap" else None

    @classmethod
    def warm_up_rest(cls) -> None:
        """Run the compiled code of larger problems and of precomputed matrices."""
        super().warm_up_rest()
        solver.warm_up_solver()
        pairs.warm_up_pairs()
        y = np.array([1.0, -1.0])
        for dtype in (np.float32, np.float64):
            source = KernelSource.precomputed(np.eye(2, dtype=dtype))
            for fit_intercept in (True, False):
                model = cls(fit_intercept=fit_intercept)
                model.solve(source, y, start=np.zeros(2))
                model.solve_along(source, y, "C", [1.0, 2.0])

    def solve(
        self,
        source: KernelSource,
        y: np.ndarray,
        start: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> KernelSolution:
        """Solve on one kernel matrix; see the base class.

        `weights` (n_samples,) are factors of C. Without them, `class_weight` has the factors of the
        classes -1 and +1.
        """
        weights = self._weights_of(y, weights)
        problem = csvc_problem(y, float(self.C), offset=bool(self.fit_intercept), weights=weights)
        return self._solve(source, problem, None if start is None else start * y)

    def _solve(
        self, source: KernelSource, problem: QPProblem, start: np.ndarray | None
    ) -> KernelSolution:
        """Solve from signed multipliers, or from zero."""
        result = solver.solve_qp(
            source,
            problem,
            start=start,
            tol=float(self.tol),
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
            n_jobs=self.n_jobs,
            gap=self._gap,
        )
        # Without an offset there is no threshold, and the sum is 0.
        b = float(thresholds(problem, result.beta, result.v).sum())
        return KernelSolution(
            coefficients=result.beta,
            b=b,
            n_iter=result.steps,
            stop_reason=result.stop_reason,
            counters=result.counters,
            # v = p - K beta.
            decisions=problem.linear - result.v + b,
            decisions_error=result.error,
        )

    def _known_values(self, data: TrainingData) -> Values | None:
        """Return the values from known decisions, those of support vectors evaluated if necessary.

        Only support vectors have a loss: the search has checked in double precision which samples
        violate their margin.
        """
        known = super()._known_values(data)
        is_done = self.stop_reason_ == STOP_REASONS[CONVERGED]
        if known is not None or data.decisions is None or not is_done:
            return known
        if self.kernel == "linear":
            return None
        rows, f = self.support_, data.decisions.copy()
        beta = np.zeros(len(f))
        beta[rows] = self.expansion_.coefficients
        f[rows] = self.expansion_.b - solver.exact_gradient(self._source(data), 0.0 * f, beta, rows)
        return self._values(data, f)

    def trains_pairs_together(self, sizes: np.ndarray) -> bool:
        """Return True if all pairs of classes can be solved on rows that they share."""
        asked = bool(self.fit_intercept) and self.stop == "kkt" and self.class_weight is None
        return asked and pairs.suits_joint_training(sizes)

    def train_jointly(self, joint: JointData) -> JointSolution:
        """Solve the problems of all pairs of classes on the rows of one kernel matrix."""
        source = KernelSource.from_inputs(joint.points, self.function)
        solution = pairs.solve_pairs(
            source,
            joint.layout,
            float(self.C),
            joint.weights,
            tol=float(self.tol),
            max_iter=most_iterations(self.max_iter),
            cache_mb=float(self.cache_mb),
            n_jobs=self.n_jobs,
        )
        self._warn_unless_finished(reason_of_all(solution.stop_reasons))
        return solution

    def solve_along(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterable[KernelSolution]:
        """Along ascending C each solution starts from the last, if the matrix fits `cache_mb`."""
        ascends = all(before < C for before, C in pairwise(values))
        shares = over == "C" and ascends and self.class_weight is None
        K = source.whole(float(self.cache_mb)) if shares else None
        if K is None:
            return super().solve_along(source, y, over, values)
        if self.fit_intercept:
            tol, max_iter = float(self.tol), most_iterations(self.max_iter)
            solutions = along_c(K, y, values, tol=tol, max_iter=max_iter, gap=self._gap)
        else:
            solutions = []
            for C in values:
                start = solutions[-1].coefficients.copy() if solutions else None
                problem = csvc_problem(y, float(C), offset=False)
                solutions.append(self._solve(KernelSource.precomputed(K), problem, start))
        for place, solution in enumerate(solutions):
            # The matrix was computed for the first.
            solution.counters["kernel_evaluations"] = K.size if place == 0 else 0
        return solutions
