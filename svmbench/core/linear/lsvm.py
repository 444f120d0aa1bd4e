"""LSVM: the squared hinge by a fixed-point iteration with one factorisation.

Problem
    min_u  1/2 u'Qu - e'u,   u >= 0,   Q = I / nu + H H',   nu = 2C,
    H = diag(y) X over samples with a constant feature ("bias absorbed"): the dual of
    1/2 ||w||^2 + C sum_i max(0, 1 - y_i w'x_i)^2,   with w = H'u.
Given
    X (n_samples, d), y in {-1, +1}, C, tol, max_iter.
Returned
    u >= 0 and w, once the optimality conditions u >= 0, Qu - e >= 0 and u'(Qu - e) = 0 are violated
    by at most tol (in units of the margin) and the duality gap is at most tol times the objective.
Reference
    Mangasarian and Musicant 2001 (Lagrangian Support Vector Machines), equation 15 and
    Algorithm 1:
        u <- Q^-1 (e + ((Qu - e) - a u)_+),   0 < a < 2 / nu,   from u = Q^-1 e;
    Q^-1 = nu (I - H (I / nu + H'H)^-1 H') by Sherman, Morrison and Woodbury.
Deviations
    - Qu - e is not computed: after the step u = Q^-1 (e + s), it is s. So an iteration takes one
      product with H' and one with H.
    - The iteration stops on the optimality conditions, not on the change of u, which is also small
      if the iteration is slow. Its u may be negative, or positive where Qu - e is positive. The
      returned u is 0 there, and its duality gap is a second stopping criterion.
    - The stop reason is "stalled" if the inverse has lost digits and the iteration diverges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.problems import SQUARED_HINGE, Values
from svmbench.core.contract.registry import declare
from svmbench.core.linear import least_squares
from svmbench.core.linear.least_squares import gram

#: The step a, in units of 1 / nu: the iteration converges below 2, the authors' choice is 1.9.
STEP = 1.9

#: The iteration has diverged if a violation is this many times the smallest so far.
DIVERGED_FACTOR = 1e6


def lagrangian(
    X: Any,  # (n_samples, d)
    y: np.ndarray,  # (n_samples,): labels ±1
    C: float,  # weight of the summed losses
    tol: float,  # largest violation of the optimality conditions at the end
    max_iter: int,  # largest number of steps
) -> tuple[np.ndarray, np.ndarray, int, str]:  # u, w (``X'(y u)``), n_iter, stop_reason
    """Iterate to the dual solution; X includes the constant feature."""
    nu = 2.0 * C
    inverse = least_squares.inverse(gram(X), 1.0 / nu)
    transposed = X.T
    slack = np.zeros(len(y))
    least, best = np.inf, (slack, np.zeros(X.shape[1]))
    for step in range(max_iter + 1):
        right = 1.0 + slack
        w = inverse @ np.asarray(transposed @ (y * right))
        u = nu * (right - y * (X @ w))
        # Here Qu - e = slack >= 0 holds exactly; u >= 0 and complementarity remain to be checked.
        violation = float(np.max(np.abs(np.minimum(u / nu, slack))))
        if not violation < DIVERGED_FACTOR * least:
            return *best, step, "stalled"
        if violation < least:
            least, best = violation, (u, w)
        if violation <= tol:
            # Setting small or negative multipliers to 0 can matter much: test the gap without them.
            settled = np.where(slack > 0.0, 0.0, np.maximum(u, 0.0))
            own = np.asarray(transposed @ (y * settled))
            values = Values(f=np.asarray(X @ own), square=float(own @ own), y=y, alpha=settled)
            primal = SQUARED_HINGE.primal(values, C)
            if primal - SQUARED_HINGE.dual(values, C) <= tol * primal:
                return settled, own, step, "converged"
        if step < max_iter:
            slack = np.maximum(slack - (STEP / nu) * u, 0.0)
    return u, w, max_iter, "max_iter"


@declare(
    name="lsvm",
    problem="squared-hinge",
    promise="gap relative to the objective",
    paper="alsvm",
    summary="Lagrangian fixed-point iteration on the dual of the linear L2-SVM",
    reference="Mangasarian and Musicant 2001 (Lagrangian SVM), Algorithm 1",
)
@dataclass(eq=False, repr=False, kw_only=True)
class LSVM(LinearClassifierWithC):
    """Lagrangian SVM: the linear L2-SVM by one factorisation and a simple iteration.

    It converges linearly from any start, and slowly if C times the samples' scale is large.
    :class:`~svmbench.core.linear.asvm.ASVM` solves the same problem in few iterations with a
    factorisation each.

    Parameters
    ----------
    tol : float
        Largest violation of the optimality conditions, in units of the margin, and largest duality
        gap, relative to the objective.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_samples,)
        The dual solution u.
    n_iter_ : int
        Steps.
    counters_ : dict
        ``passes`` (two products with the samples each).

    Examples
    --------
    >>> from svmbench.core.linear.lsvm import LSVM
    >>> LSVM().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[4.0]])
    array([1])
    """

    tol: float = 1e-5
    max_iter: int = 10000

    def train(self, data: TrainingData) -> Self:
        """Iterate until the optimality conditions hold."""
        self.alpha_, w, steps, reason = lagrangian(
            data.native, data.y, float(self.C), float(self.tol), int(self.max_iter)
        )
        return self._store_with_bias(
            w,
            n_iter=max(1, steps),
            stop_reason=reason,
            counters={"passes": steps + 1},
        )
