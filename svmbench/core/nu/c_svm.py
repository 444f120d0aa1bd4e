"""``c-svm-bounded``: the C-SVM of the SRBO paper, its offset absorbed or left out, along C by DVI.

Problem
    min_alpha  1/2 alpha'Q alpha - e'alpha,   0 <= alpha_i <= C;
    here with a = alpha / C:  min_a  1/2 a'Q a - (1/C) e'a,   0 <= a_i <= 1.
Given
    A kernel source, y in {-1, +1}, C (or several, ascending), an inner solver.
Returned
    alpha and the offset ``s^2 sum_i alpha_i y_i``.
Reference
    Section 2 of the SRBO paper (its rival in tables IV and V); Wang, Wonka and Ye 2014 (DVI).
The rule
    With t = C1/C0 and d = Q alpha0: the two variational inequalities put w1 into the ball around
    (1+t)/2 w0 of squared radius ((t-1)/2)^2 |w0|^2 + C1 g, where g is the duality gap of alpha0 in
    the scale of a, times C0: an inexact solution can't make it unsafe.
Deviations
    - Coordinate descent needs no pair here, where no sum is kept: ``dcdm`` converges.
      ``dcdm-pairwise`` takes two variables at a time where that gains, and goes over to the
      interior-point method of ``interior`` where it has taken a share of the time of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.smo import Bounds, StoppingCriteria, loose_steps
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier
from svmbench.core.nu import dcdm, interior, qp_solvers
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, move_point
from svmbench.core.nu.full_matrix import OWN_COUNTERS, OnFullMatrix
from svmbench.core.nu.pairwise import (
    LEAST_PAIRS,
    LITTLE,
    MOST_PAIRS,
    OF_INTERIOR,
    PATIENCE,
    seconds_of_pairs,
    take_interior,
)
from svmbench.core.nu.path import PathStep
from svmbench.core.nu.screening import SCREENING_SLACK
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import gather

#: Screening rules along C.
C_SCREENING_RULES = ("none", "dvi")

#: The violation asked of the steps falls to this share where the gap is not reached.
C_CLOSER = 0.1


def solve_free(
    problem: UnitProblem,  # with ``total=None``
    point: QPPoint,
    *,
    name: str,  # one of ``qp_solvers.QP_SOLVERS``
    # tol, max_iter: duality gap relative to the objective; largest number of steps
    tol: float,
    max_iter: int,
) -> QPPoint:
    """Solve a problem whose sum is not kept, from a point, which may be changed."""
    if name in qp_solvers.LIBRARIES:
        return qp_solvers.solve_with_library(problem, name=name, tol=tol)
    if name == "dcdm":
        dcdm.solve_dcdm(problem, point, tol=tol, max_iter=max_iter)
        return point
    n = len(point.a)
    bounds = Bounds(np.zeros(n), np.ones(n))
    violation, best, waited = float(np.abs(point.v).max(initial=0.0)), np.inf, 0
    spent, at_most = 0.0, OF_INTERIOR * interior.interior_seconds(n)
    while not problem.reaches(point, target := problem.target(point, tol)):
        if point.steps >= max_iter:
            point.reason = "max_iter"
            return point
        waited = 0 if point.gap < LITTLE * best else waited + 1
        best = min(best, point.gap)
        if waited > PATIENCE and np.isinf(at_most):
            break
        if spent > at_most or waited > PATIENCE:
            at_most, waited = np.inf, 0
            if take_interior(problem, point, 0.1 * target):
                continue
        # At the start the objective is 0, and so is the gap to reach.
        needed = target / max(1, int(np.count_nonzero(point.a))) or np.inf
        violation = min(C_CLOSER * violation, needed)
        steps, _ = loose_steps(
            raw(problem.Q),
            problem.diag,
            bounds,
            StoppingCriteria(
                violation, min(max_iter - point.steps, max(LEAST_PAIRS, MOST_PAIRS * n))
            ),
            point.a,
            point.v,
        )
        point.steps += steps
        spent += steps * seconds_of_pairs(n)
        problem.refresh(point)
    point.reason = problem.reason(point, tol)
    return point


def dvi(
    problem: UnitProblem,  # at the last C
    last: QPPoint,  # its solution, exact or not, in the scale of a
    before: float,  # the last C
    C: float,  # the next
) -> tuple[np.ndarray, np.ndarray]:  # zero, one
    """Return masks of the multipliers that are 0, and that are C, for a larger C."""
    # d = Q alpha0, from the gradient Q a - 1/C0.
    d = before * (problem.linear * -1.0 - last.v)
    square = max(0.0, before * float(last.a @ d))
    gap = before**2 * max(0.0, problem.gap(last))
    ratio = C / before
    size = before**2 * float(problem.diag.max(initial=0.0)) * float(last.a.sum()) ** 2
    radius = np.sqrt(0.25 * (ratio - 1.0) ** 2 * square + ratio * gap + SCREENING_SLACK * size)
    reach = radius * np.sqrt(np.maximum(problem.diag, 0.0))
    centre = 0.5 * (1.0 + ratio) * d
    slack = SCREENING_SLACK * (1.0 + np.abs(centre))
    return centre - reach - slack > 1.0, centre + reach + slack < 1.0


@declare(
    name="c-svm-bounded",
    problem="hinge",
    promise="gap relative to the objective",
    summary="C-SVM without an equality constraint, by the ν-SVM's solvers; DVI screening along C",
    reference="Yang, Chen, Zhang, Xu, Shi and Zhao, section 2; Wang, Wonka and Ye 2014",
    paper="srbo",
    kernels=KERNELS,
    paths=("C",),
    counters=OWN_COUNTERS,
)
@dataclass(eq=False, repr=False)
class CSVMBounded(OnFullMatrix, KernelClassifier):
    """The C-SVM whose offset is absorbed or left out, by an inner solver of choice.

    Parameters
    ----------
    screen : {"none", "dvi"}
        Whether each solution of a path of C settles multipliers of the next.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        ``sum_i alpha_i y_i``, or 0.

    Examples
    --------
    >>> from svmbench.core.nu.c_svm import CSVMBounded
    >>> CSVMBounded(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[9]])
    array([1])
    """

    C: float = 1.0
    _: KW_ONLY
    screen: str = "none"
    fit_intercept: bool = True

    treats_offset: ClassVar[str] = "absorbed"
    along: ClassVar[str] = "C"
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"solver": "dcdm"})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.screen not in C_SCREENING_RULES:
            msg = (
                f"screen must be one of {', '.join(C_SCREENING_RULES)}, got screen={self.screen!r}"
            )
            raise ValueError(msg)

    def follow(
        self, Q: np.ndarray, y: np.ndarray, values: Sequence[float]
    ) -> Iterator[KernelSolution]:
        """Yield the solution at each C."""
        n = len(y)
        point, before, last = QPPoint(np.zeros(n), np.zeros(n)), 0.0, None
        settings = {"name": self.solver, "tol": float(self.tol), "max_iter": int(self.max_iter)}
        for C in values:
            start = perf_counter()
            problem = UnitProblem(Q, None, np.full(n, -1.0 / C))
            zero = one = np.zeros(n, dtype=bool)
            if last is not None and self.screen == "dvi":
                zero, one = dvi(last, point, before, C)
            tested = perf_counter()
            if last is None:
                point = problem.at(np.zeros(n))
            else:
                # The multipliers keep their size in the scale of alpha where the box allows it.
                point = problem.at(np.where(point.a >= 1.0, 1.0, (before / C) * point.a))
            point = _solve_rest(problem, point, zero, one, settings)
            last, before = problem, C
            # No sum is kept: the step has no total.
            step = PathStep(np.nan, zero, one, "none" if self.screen == "none" else "on")
            step.screening_s, step.solve_s = tested - start, perf_counter() - tested
            step.point = point
            # A multiplier on its bound is exactly C.
            coefficients = C * point.a * y
            # From the gradient of the scale of a, Q a - 1/C.
            square = C**2 * float(point.a @ (1.0 / C - point.v))
            found = step.solution(coefficients, self.square * float(coefficients.sum()), square)
            found.n_iter = point.steps
            yield found


def _solve_rest(
    problem: UnitProblem,
    point: QPPoint,
    zero: np.ndarray,
    one: np.ndarray,
    settings: dict[str, Any],
) -> QPPoint:
    """Solve among what was not screened, from a feasible point."""
    rest = np.flatnonzero(~(zero | one))
    if len(rest) == len(zero):
        return solve_free(problem, point, **settings)
    a = point.a.copy()
    a[zero], a[one] = 0.0, 1.0
    move_point(problem.Q, point, a)
    if len(rest):
        Q = gather(problem.Q, rest, rest, np.float64)
        part = a[rest]
        linear = -point.v[rest] - Q @ part
        small = UnitProblem(Q, None, linear)
        constant = problem.value(point) - small.value(small.at(part))
        small = UnitProblem(Q, None, linear, constant=constant)
        found = solve_free(small, small.at(part), **settings)
        a[rest] = found.a
        point.steps, point.newton_steps, point.reason = (
            found.steps, found.newton_steps, found.reason)  # fmt: skip
        move_point(problem.Q, point, a)
    point.gap = problem.gap(point)
    return point
