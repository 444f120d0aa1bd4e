"""SVM-perf for linear classification: cutting planes on the 1-slack form of the SVM.

Problem
    min_{w, xi}  1/2 ||w||^2 + C' xi   over xi >= 0 and, for every c in {0, 1}^N,
        <w, delta_c> >= Delta_c - xi,   delta_c = 1/N sum_i c_i y_i x_i,   Delta_c = 1/N sum_i c_i
    over samples x with a constant feature ("bias absorbed"). With C' = N C this is the hinge
    problem with sum of losses and the same w.
Given
    X (N, d), y in {-1, +1}, C, eps (mean hinge loss).
Returned
    w = sum_k alpha_k delta_k of the cuts found so far; its primal value is at most N C eps above
    the optimum.
Reference
    Joachims 2006, Algorithm 2; Joachims, Finley and Yu 2009; the CPSP paper, Section 2.
Deviations
    - The cut c = 0 (xi >= 0) is always in the working set: the dual's sum is then N C exactly.
    - It stops when the duality gap, not the new cut's violation, is at most N C eps: the same in
      the limit of an exact QP, and a certificate with an inexact one.
    - SVM-perf has no offset by default; here it is absorbed, as in every other linear solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifierWithC, LinearSolution
from svmbench.core.contract.registry import declare
from svmbench.core.numeric.qp import STEPS_A_CUT, CutSet


def cutting_planes(
    X: Any,  # (N, d)
    y: np.ndarray,  # (N,): labels ±1
    *,
    C: float,  # weight of the summed losses; the 1-slack problem's is N C
    eps: float,  # precision in units of the mean hinge loss
    # largest number of cuts; `STEPS_A_CUT` times it is the largest number of pair steps
    max_iter: int,
    bias: float,  # value of the constant feature; 0 for none
    trace: bool = False,  # whether to record (seconds, cuts, objective)
) -> LinearSolution:
    """Solve the 1-slack problem on samples that carry the constant feature."""
    N, d = X.shape
    total = N * C
    transposed = X.T
    cuts = CutSet(total, n_coordinates=d)
    points: list[tuple[float, int, float]] = []
    n_cuts, n_steps, most_steps = 0, 0, STEPS_A_CUT * max_iter
    start = perf_counter()
    while True:
        w = cuts.w
        # The most violated cut has c_i = 1 where y_i f(x_i) < 1.
        margins = y * np.asarray(X @ w)
        violated = margins < 1.0
        delta = np.asarray(transposed @ np.where(violated, y, 0.0)) / N
        Delta = float(np.count_nonzero(violated)) / N
        loss = Delta - float(w @ delta)
        primal = 0.5 * float(w @ w) + total * loss
        dual = float(cuts.Deltas @ cuts.alpha) - 0.5 * float(w @ w)
        gap = primal - dual
        if trace:
            points.append((perf_counter() - start, n_cuts, primal))
        if gap <= total * eps or n_cuts >= max_iter or n_steps >= most_steps:
            break
        cuts.add(delta, Delta)
        n_cuts += 1
        n_steps += cuts.optimise(gap, most_steps - n_steps)
    return LinearSolution(
        w=w[:-1] if bias else w,
        b=float(w[-1] * bias) if bias else 0.0,
        n_iter=max(1, n_cuts),
        stop_reason="converged" if gap <= total * eps else "max_iter",
        counters={
            "cuts": n_cuts,
            "dropped": cuts.n_dropped,
            "qp_steps": n_steps,
            "passes": n_cuts + 1,
        },
        trace=points,
        dual=dual,
    )


@declare(
    name="svm-perf",
    problem="hinge",
    promise="gap relative to C n",
    paper="cpsp",
    summary="linear 1-slack cutting planes",
    reference="Joachims 2006, Algorithm 2; CPSP paper, Section 2",
)
@dataclass(eq=False, repr=False, kw_only=True)
class SVMPerf(LinearClassifierWithC):
    """Linear SVM by 1-slack cutting planes: its number of cuts does not grow with the samples.

    Parameters
    ----------
    C : float
        Weight of the summed hinge losses (N times this weighs the one slack).
    tol : float
        eps: precision in units of the mean hinge loss; the objective ends at most N C eps above
        its optimum. SVM-perf's own default, 0.1 percentage points.
    max_iter : int
        Largest number of cuts, and 500 times it the largest number of pair steps in the small
        programs over them, which features of very different sizes make hard.

    Attributes
    ----------
    n_iter_ : int
        Cuts.
    counters_ : dict
        ``cuts``, ``dropped`` ones, ``qp_steps``, ``passes`` over the data (two products each).

    Examples
    --------
    >>> from svmbench.core.linear.cutting_plane import SVMPerf
    >>> SVMPerf().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[4.0]])
    array([1])
    """

    tol: float = 1e-3
    max_iter: int = 5000
    trace: bool = False

    def train(self, data: TrainingData) -> Self:
        """Add cuts until the duality gap is small enough."""
        return self._store(
            cutting_planes(
                data.native,
                data.y,
                C=float(self.C),
                eps=float(self.tol),
                max_iter=self.max_iter,
                bias=self.bias,
                trace=self.trace,
            )
        )
