"""ASVM and LSVM: the squared hinge by an active set, and by a fixed-point iteration.

Problem
    min_u  1/2 u'Qu - e'u,   u >= 0,   Q = I / nu + H H',   nu = 2C,
    H = diag(y) X over samples with a constant feature ("bias absorbed"): the dual of
    1/2 ||w||^2 + C sum_i max(0, 1 - y_i w'x_i)^2,   with w = H'u.
Given
    X (n_samples, d), y in {-1, +1}, C, tol, max_iter.
Returned
    ASVM: u and w = H'u, once no component of the projected gradient of the dual is above tol.
    LSVM: u >= 0 and w, once the optimality conditions u >= 0, Qu - e >= 0 and u'(Qu - e) = 0 are
    violated by at most tol (in units of the margin) and the duality gap is at most tol times the
    objective.
Reference of ASVM
    Mangasarian and Musicant 2001, Algorithm 3.1. Its steps: (1) B = {u > 0}; (2) the minimum
    on the face of B without its bounds, v_B = (Q_BB)^-1 e_B, clipped at zero; (4a) where that
    does not lower f, the way from u to v as far as it is feasible; (4b) from a minimum on a face,
    a gradient projection step with an exact line search, which lets samples back into B.
Deviations of ASVM
    - (Q_BB)^-1 e_B is nu (e_B - H_B w_B) with (I / nu + H_B'H_B) w_B = H_B'e_B (Sherman, Morrison
      and Woodbury): w_B is the least-squares SVM of the samples in B.
    - Step 4a tries 1/2, 1/4 … of the way, clipped at zero, before it stops at the first bound:
      where thousands of samples leave B, one a step takes thousands of steps.
    - H_B'H_B follows B by the rows that enter and leave it, where these are the fewer.
    - Stopping is a tolerance on the optimality conditions in units of the margin, not on the
      change of u.
Reference of LSVM
    Mangasarian and Musicant 2001 (Lagrangian Support Vector Machines), equation 15 and
    Algorithm 1:
        u <- Q^-1 (e + ((Qu - e) - a u)_+),   0 < a < 2 / nu,   from u = Q^-1 e;
    Q^-1 = nu (I - H (I / nu + H'H)^-1 H') by Sherman, Morrison and Woodbury.
Deviations of LSVM
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


class FaceGram:
    """The Gram matrix ``X_B' X_B`` of rows B that change little from call to call."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows = 0  # outer products summed so far
        self._inside = np.zeros(X.shape[0], dtype=bool)
        self._sum = np.zeros((X.shape[1], X.shape[1]))

    def of(self, inside: np.ndarray) -> np.ndarray:
        """Return the sum of outer products of the rows marked in `inside`."""
        entering, leaving = inside & ~self._inside, self._inside & ~inside
        n_changed = int(np.sum(entering) + np.sum(leaving))
        if 2 * n_changed < np.count_nonzero(inside):
            self._sum = self._sum + gram(self.X[entering]) - gram(self.X[leaving])
            self.n_rows += n_changed
        else:
            self._sum = gram(self.X[inside])
            self.n_rows += int(np.sum(inside))
        self._inside = inside
        return self._sum


def active_set(
    X: Any,  # (n_samples, d)
    y: np.ndarray,  # (n_samples,): labels ±1
    C: float,  # weight of the summed losses
    tol: float,  # largest component of the projected gradient at the end
    max_iter: int,  # largest number of faces
) -> tuple[np.ndarray, np.ndarray, str, dict[str, int]]:
    """Minimise the dual on samples with the constant feature; return u, w, reason, counters."""
    nu = 2.0 * C
    face_gram = FaceGram(X)
    n_faces = n_projections = 0

    def minimum_of_face(inside: np.ndarray) -> np.ndarray:
        # Step 2, by the least-squares SVM of the samples in B.
        w, _ = least_squares.solve(face_gram.of(inside), X[inside].T @ y[inside], 1.0 / nu)
        return np.where(inside, nu * (1.0 - y * (X @ w)), 0.0)

    def gradient(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        w = np.asarray(X.T @ (y * u))
        Qu = u / nu + y * (X @ w)
        return w, Qu - 1.0, float(u @ (0.5 * Qu - 1.0))

    u = np.maximum(minimum_of_face(np.ones(len(y), dtype=bool)), 0.0)
    w, g, f = gradient(u)
    while np.max(np.abs(np.where(u > 0.0, g, np.minimum(g, 0.0)))) > tol and n_faces < max_iter:
        B = u > 0.0
        v = minimum_of_face(B)
        n_faces += 1
        new = np.maximum(v, 0.0)
        w_new, g_new, f_new = gradient(new)
        at_minimum = bool(np.all(v >= 0.0))
        if f_new >= f and not at_minimum:
            # Step 4a. The way is feasible up to `bound`; there at least one sample leaves B.
            down = B & (v < 0.0)
            ratios = u[down] / (u[down] - v[down])
            bound, share = float(np.min(ratios)), 0.5
            while f_new >= f:
                new = np.maximum(u + max(share, bound) * (v - u), 0.0)
                new[np.flatnonzero(down)[np.argmin(ratios)]] = 0.0
                w_new, g_new, f_new = gradient(new)
                if share <= bound:
                    break
                share *= 0.5
        u, w, g, f = new, w_new, g_new, f_new
        if at_minimum:
            # Step 4b: projected gradient with an exact line search, up to the projected point. The
            # curvature is 0 only where the direction is.
            direction = np.maximum(u - g, 0.0) - u
            along = np.asarray(X.T @ (y * direction))
            curvature = float(direction @ direction) / nu + float(along @ along)
            if curvature <= 0.0:
                break
            u = u + min(1.0, -float(g @ direction) / curvature) * direction
            w, g, f = gradient(u)
            n_projections += 1
    worst = np.max(np.abs(np.where(u > 0.0, g, np.minimum(g, 0.0))))
    counters = {
        "faces": n_faces + 1,
        "projections": n_projections,
        "gram_rows": face_gram.n_rows,
        "support_vectors": int(np.count_nonzero(u)),
    }
    return u, w, "converged" if worst <= tol else "max_iter", counters


@declare(
    name="asvm",
    problem="squared-hinge",
    promise="violation",
    paper="alsvm",
    summary="active set on the dual of the linear L2-SVM",
    reference="Mangasarian and Musicant 2001 (Active SVM), Algorithm 3.1",
)
@dataclass(eq=False, repr=False, kw_only=True)
class ASVM(LinearClassifierWithC):
    """Active SVM: the linear L2-SVM by a few least-squares problems on subsets of the samples.

    It needs few iterations, each with a matrix of shape (n_features, n_features): made for many
    samples and few features. :class:`LSVM` solves the same problem with one factorisation and
    many more, cheaper iterations.

    Parameters
    ----------
    tol : float
        Largest component of the projected gradient of the dual, in units of the margin.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_samples,)
        The dual solution u.
    n_iter_ : int
        Faces.
    counters_ : dict
        ``faces``, ``projections``, ``gram_rows``, ``support_vectors``.

    Examples
    --------
    >>> from svmbench.core.linear.active_lagrangian import ASVM
    >>> ASVM().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[4.0]])
    array([1])
    """

    tol: float = 1e-5
    max_iter: int = 1000

    def train(self, data: TrainingData) -> Self:
        """Go from face to face until the optimality conditions hold."""
        self.alpha_, w, reason, counters = active_set(
            data.native, data.y, float(self.C), float(self.tol), int(self.max_iter)
        )
        return self._store_with_bias(
            w,
            n_iter=counters["faces"],
            stop_reason=reason,
            counters=counters,
        )


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
            w_settled = np.asarray(transposed @ (y * settled))
            values = Values(
                f=np.asarray(X @ w_settled), square=float(w_settled @ w_settled), y=y, alpha=settled
            )
            primal = SQUARED_HINGE.primal(values, C)
            if primal - SQUARED_HINGE.dual(values, C) <= tol * primal:
                return settled, w_settled, step, "converged"
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
    :class:`ASVM` solves the same problem in few iterations with a factorisation each.

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
    >>> from svmbench.core.linear.active_lagrangian import LSVM
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
