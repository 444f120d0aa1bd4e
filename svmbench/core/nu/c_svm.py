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
    - Coordinate descent needs no pair here, where no sum is fixed: ``dcdm`` converges.
      ``dcdm-pairwise`` takes two variables at a time where that gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.models.kernel_base import KernelClassifier, KernelSolution
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, move_point
from svmbench.core.nu.full_matrix import OWN_COUNTERS, OnFullMatrix
from svmbench.core.nu.path import PathStep
from svmbench.core.nu.qp_solvers import solve_by_name
from svmbench.core.nu.screening import SCREENING_SLACK
from svmbench.core.numeric.submatrix import gather

#: Screening rules along C.
C_SCREENING_RULES = ("none", "dvi")


def dvi(
    problem: UnitProblem,  # at the last C
    last: QPPoint,  # its solution, exact or not, in the scale of a
    before: float,  # the last C
    C: float,  # the next
) -> tuple[np.ndarray, np.ndarray]:  # at_zero, at_one
    """Return masks of the multipliers that are 0, and that are C, for a larger C."""
    # d = Q alpha0, from the gradient Q a - 1/C0.
    d = before * (problem.linear * -1.0 - last.v)
    squared_norm = max(0.0, before * float(last.a @ d))
    gap = before**2 * max(0.0, problem.gap(last))
    ratio = C / before
    size = before**2 * float(problem.diag.max(initial=0.0)) * float(last.a.sum()) ** 2
    radius = np.sqrt(
        0.25 * (ratio - 1.0) ** 2 * squared_norm + ratio * gap + SCREENING_SLACK * size
    )
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
            at_zero = at_one = np.zeros(n, dtype=bool)
            if last is not None and self.screen == "dvi":
                at_zero, at_one = dvi(last, point, before, C)
            tested = perf_counter()
            if last is None:
                point = problem.at(np.zeros(n))
            else:
                # The multipliers keep their size in the scale of alpha where the box allows it.
                point = problem.at(np.where(point.a >= 1.0, 1.0, (before / C) * point.a))
            point = _solve_rest(problem, point, at_zero, at_one, settings)
            last, before = problem, C
            # No sum is fixed: the step has no total.
            step = PathStep(np.nan, at_zero, at_one, "none" if self.screen == "none" else "on")
            step.screening_s, step.solve_s = tested - start, perf_counter() - tested
            step.point = point
            # A multiplier on its bound is exactly C.
            coefficients = C * point.a * y
            # From the gradient of the scale of a, Q a - 1/C.
            squared_norm = C**2 * float(point.a @ (1.0 / C - point.v))
            solution = step.solution(
                coefficients, self.s_squared * float(coefficients.sum()), squared_norm
            )
            solution.n_iter = point.steps
            yield solution


def _solve_rest(
    problem: UnitProblem,
    point: QPPoint,
    at_zero: np.ndarray,
    at_one: np.ndarray,
    settings: dict[str, Any],
) -> QPPoint:
    """Solve for the unscreened multipliers from a feasible point; return the whole solution."""
    rest = np.flatnonzero(~(at_zero | at_one))
    if len(rest) == len(at_zero):
        return solve_by_name(problem, start=point, **settings)
    a = point.a.copy()
    a[at_zero], a[at_one] = 0.0, 1.0
    move_point(problem.Q, point, a)
    if len(rest):
        Q = gather(problem.Q, rest, rest, np.float64)
        part = a[rest]
        linear = -point.v[rest] - Q @ part
        small = UnitProblem(Q, None, linear)
        constant = problem.value(point) - small.value(small.at(part))
        small = UnitProblem(Q, None, linear, constant=constant)
        solved = solve_by_name(small, start=small.at(part), **settings)
        a[rest] = solved.a
        point.steps, point.newton_steps, point.reason = (
            solved.steps, solved.newton_steps, solved.reason)  # fmt: skip
        move_point(problem.Q, point, a)
    point.gap = problem.gap(point)
    return point
