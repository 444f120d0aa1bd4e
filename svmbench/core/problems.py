"""The optimisation problems: primal and dual value, and the gap between them.

Every solver declares which entry of :data:`PROBLEMS` it minimises, and its ``objective_`` is that
entry's value: one definition, so that two solvers of one problem can be compared to the last digit.

All are stated in the sum form

    min_{w,b}  1/2 ||w||^2 [+ 1/2 (b/s)^2]  +  C * sum_i loss(y_i (w.x_i + b))

where the term in brackets is there when the bias is absorbed as a constant feature of value s
(``bias=s``), and is not when the offset is absent (``bias=0``) or free (``bias=None``: only then
the dual has the constraint ``y·alpha = 0``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

#: Tolerated violation of a dual constraint, relative to the scale of the multipliers.
FEASIBILITY = 1e-9


@dataclass(frozen=True)
class Problem:
    """One loss with its dual.

    Attributes
    ----------
    name : str
        As solvers declare it.
    formula : str
        The loss in words a person can check.
    loss : callable
        Elementwise loss of the margins ``m_i = y_i f(x_i)``.
    multipliers : callable
        Multipliers ``alpha_i`` that the margins imply: ``-C * loss'(m_i)`` (a subgradient).
    conjugate : callable
        ``sum_i C * loss*(-alpha_i / C)``: the dual objective is
        ``-conjugate(alpha, C) - 1/2 ||sum_i alpha_i y_i x_i||^2``.
    upper : callable
        The upper bound of the multipliers at a given C.
    lower : float
        Their lower bound.
    """

    name: str
    formula: str
    loss: Callable[[np.ndarray], np.ndarray]
    multipliers: Callable[[np.ndarray, float], np.ndarray]
    conjugate: Callable[[np.ndarray, float], float]
    upper: Callable[[float], float]
    lower: float

    def primal(
        self, X: Any, y: np.ndarray, w: np.ndarray, b: float, C: float, *, bias: float | None = 1.0
    ) -> float:
        """Return the primal value at (w, b).

        Parameters
        ----------
        X : array or CSR of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels ±1.
        w, b : array of shape (n_features,), float
        C : float
            Weight of the summed losses.
        bias : float
            Value of the constant feature that absorbs the offset; 0 without an offset, None when
            it is free.
        """
        margins = y * (np.asarray(X @ w).ravel() + b)
        regulariser = 0.5 * float(w @ w)
        if bias:
            regulariser += 0.5 * (b / bias) ** 2
        return regulariser + C * float(np.sum(self.loss(margins)))

    def dual(
        self, X: Any, y: np.ndarray, alpha: np.ndarray, C: float, *, bias: float | None = 1.0
    ) -> float:
        """Return the dual value at `alpha` (a lower bound of every primal value).

        Raises
        ------
        ValueError
            If `alpha` leaves its box, or, with a free offset (``bias=None``), ``y·alpha`` is not 0.
        """
        scale = FEASIBILITY * max(1.0, float(np.max(np.abs(alpha), initial=0.0)))
        if np.any(alpha < self.lower - scale) or np.any(alpha > self.upper(C) + scale):
            msg = f"alpha leaves the box [{self.lower}, {self.upper(C)}] of the {self.name} dual"
            raise ValueError(msg)
        signed = y * alpha
        offset = float(np.sum(signed))
        if bias is None and abs(offset) > scale * len(y):
            msg = f"with a free offset the dual needs y·alpha = 0, got {offset:.3g}"
            raise ValueError(msg)
        w = np.asarray(X.T @ signed).ravel()
        return -self.conjugate(alpha, C) - 0.5 * (float(w @ w) + ((bias or 0.0) * offset) ** 2)

    def gap(
        self,
        X: Any,
        y: np.ndarray,
        w: np.ndarray,
        b: float,
        C: float,
        *,
        alpha: np.ndarray | None = None,
        bias: float | None = 1.0,
    ) -> float:
        """Return primal minus dual value: 0 at the optimum, an upper bound of the suboptimality.

        Without `alpha` the multipliers are those that the margins at (w, b) imply.
        """
        if alpha is None:
            margins = y * (np.asarray(X @ w).ravel() + b)
            alpha = self.multipliers(margins, C)
        return self.primal(X, y, w, b, C, bias=bias) - self.dual(X, y, alpha, C, bias=bias)


LEAST_SQUARES = Problem(
    name="least-squares",
    formula="loss(m) = (1 - m)^2, multipliers free (LS-SVM, proximal SVM, ALSVM)",
    loss=lambda m: (1.0 - m) ** 2,
    multipliers=lambda m, C: 2.0 * C * (1.0 - m),
    conjugate=lambda a, C: float(a @ a) / (4.0 * C) - float(np.sum(a)),
    upper=lambda C: np.inf,
    lower=-np.inf,
)

HINGE = Problem(
    name="hinge",
    formula="loss(m) = max(0, 1 - m), 0 <= alpha <= C (L1-SVM, C-SVC)",
    loss=lambda m: np.maximum(0.0, 1.0 - m),
    multipliers=lambda m, C: np.where(m < 1.0, C, 0.0),
    conjugate=lambda a, C: -float(np.sum(a)),
    upper=lambda C: C,
    lower=0.0,
)

SQUARED_HINGE = Problem(
    name="squared-hinge",
    formula="loss(m) = max(0, 1 - m)^2, alpha >= 0 (L2-SVM)",
    loss=lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    multipliers=lambda m, C: 2.0 * C * np.maximum(0.0, 1.0 - m),
    conjugate=lambda a, C: float(a @ a) / (4.0 * C) - float(np.sum(a)),
    upper=lambda C: np.inf,
    lower=0.0,
)

# Pegasos' form lambda/2 ||w||^2 + mean hinge with lambda = 1/C, times C: solvers of it hand in C/N
# as the weight of the sum.
MEAN_HINGE = replace(
    HINGE,
    name="mean-hinge",
    formula="loss(m) = max(0, 1 - m), weighed by C/N: C is 1/lambda of Pegasos' form",
)

# The kernel papers' L2-SVM: its C is twice LIBLINEAR's, which has no 1/2 in the loss.
HALF_SQUARED_HINGE = Problem(
    name="half-squared-hinge",
    formula="loss(m) = max(0, 1 - m)^2 / 2, alpha >= 0 (L2-SVM; C is twice squared-hinge's)",
    loss=lambda m: 0.5 * np.maximum(0.0, 1.0 - m) ** 2,
    multipliers=lambda m, C: C * np.maximum(0.0, 1.0 - m),
    conjugate=lambda a, C: float(a @ a) / (2.0 * C) - float(np.sum(a)),
    upper=lambda C: np.inf,
    lower=0.0,
)

# Another optimum than that of "hinge": f has no offset, and the dual no equality constraint.
HINGE_NO_OFFSET = replace(
    HINGE,
    name="hinge-no-offset",
    formula="loss(m) = max(0, 1 - m), 0 <= alpha <= C, f without an offset",
)

#: The problems by the name under which solvers declare them.
PROBLEMS: dict[str, Problem] = {
    p.name: p
    for p in (
        LEAST_SQUARES,
        HINGE,
        HINGE_NO_OFFSET,
        SQUARED_HINGE,
        MEAN_HINGE,
        HALF_SQUARED_HINGE,
    )
}


def enter(problem: Problem) -> None:
    """Make a problem known under its name, as a solver that brings its own does.

    Raises
    ------
    ValueError
        If the name is that of another problem.
    """
    known = PROBLEMS.setdefault(problem.name, problem)
    if known.formula != problem.formula:
        msg = f"two problems are called {problem.name!r}: {known.formula!r} and {problem.formula!r}"
        raise ValueError(msg)
    # The same problem from a module that was loaded again: the newer one counts.
    PROBLEMS[problem.name] = problem
