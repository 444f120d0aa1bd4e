"""The optimisation problems: primal and dual value, and the gap between them.

Every solver declares an entry of :data:`PROBLEMS`, and its ``objective_`` is the primal value of
that entry: two solvers of one problem can be compared to the last digit.

A problem is evaluated from :class:`Values`: decision values, a squared norm, multipliers. It needs
neither inputs nor kernels, so that one entry serves linear and kernel solvers.

The problems with a loss have the sum form

    min_{w,b}  1/2 ||w||^2 [+ 1/2 (b/s)^2]  +  C * sum_i v_i loss(y_i f(x_i)),  f(x) = w.x + b,

where v_i are weights of the samples, 1 by default, and the term in brackets is there if the offset
is absorbed as a constant feature of value s. :class:`Offset` is the treatment of the offset.
Objectives are comparable if their :class:`ObjectiveId`, problem and offset, is equal.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

#: Tolerated violation of a dual constraint, relative to the scale of the multipliers.
FEASIBILITY = 1e-9


@dataclass(frozen=True)
class Offset:
    """The treatment of the offset b of f(x) = w.x + b.

    Attributes
    ----------
    kind : {"free", "absorbed", "none"}
        Not regularised, so that the dual has the constraint ``y·alpha = 0``; regularised as the
        weight of a constant feature; or missing.
    value : float
        Value of the constant feature if the offset is absorbed, else 0.
    """

    kind: str
    value: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} ({self.value:g})" if self.kind == "absorbed" else self.kind


FREE, NO_OFFSET = Offset("free"), Offset("none")


def absorbed(value: float) -> Offset:
    """Return the treatment by a constant feature; value 0 means no offset."""
    return Offset("absorbed", float(value)) if value else NO_OFFSET


class ObjectiveId(NamedTuple):
    """Problem and offset of a configured solver: objectives are comparable if both are equal."""

    problem: str  # the name of the problem with an offset, if there are two names
    offset: Offset

    def __str__(self) -> str:
        return f"{self.problem}, offset {self.offset}"


@dataclass(frozen=True)
class Values:
    """The numbers that a problem is evaluated from; all arrays have the shape (n_samples,)."""

    f: np.ndarray  # decision values of the training samples, with the offset in them
    square: float  # ``||w||^2``, plus ``(b/s)^2`` if the offset b is absorbed with value s
    y: np.ndarray | None = None  # labels ±1; None for one-class problems
    # multipliers, for the dual: w is sum_i alpha_i y_i x_i; svdd's centre is sum_i alpha_i x_i
    alpha: np.ndarray | None = None
    rho: float = 0.0  # the margin of nu-svc and one-class, the squared radius of svdd
    weights: np.ndarray | None = None  # of the samples' losses; None for 1 each
    diagonal: np.ndarray | None = None  # ``K(x_i, x_i)``, for svdd's dual

    @property
    def margins(self) -> np.ndarray:
        """Decision values times labels."""
        return self.f if self.y is None else self.y * self.f

    def summed(self, losses: np.ndarray) -> float:
        """Return the weighted sum of losses of the samples."""
        return float(np.sum(losses if self.weights is None else self.weights * losses))

    def multipliers(self) -> np.ndarray:
        """Return `alpha`; ValueError if it is None."""
        if self.alpha is None:
            msg = "a dual value needs multipliers"
            raise ValueError(msg)
        return self.alpha


@dataclass(frozen=True)
class Problem:
    """One problem with its dual; `parameter` below is its C or nu."""

    name: str  # as solvers declare it
    formula: str  # the problem, for readers

    @abstractmethod
    def primal(self, values: Values, parameter: float) -> float:
        """Return the primal value."""

    @abstractmethod
    def dual(self, values: Values, parameter: float) -> float:
        """Return the dual value: at feasible multipliers a lower bound of every primal value."""

    @abstractmethod
    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return the bounds of the multipliers of samples of weight 1."""

    def sum_violation(self, values: Values, parameter: float, offset: Offset) -> str:
        """Return a sentence if a sum of the multipliers violates its constraint, else ""."""
        alpha = values.multipliers()
        total = float(np.sum(alpha if values.y is None else values.y * alpha))
        if offset.kind == "free" and abs(total) > _slack(alpha) * len(alpha):
            return f"with a free offset the dual needs y·alpha = 0, got {total:.3g}"
        return ""

    def check(self, values: Values, parameter: float, offset: Offset = FREE) -> None:
        """Raise ValueError, with the violated constraint, unless `alpha` is feasible."""
        alpha = values.multipliers()
        low, high = self.bounds(parameter, len(alpha))
        weights = 1.0 if values.weights is None else values.weights
        slack = _slack(alpha)
        # An infinite bound stays infinite, whatever the weight.
        low_i = low * weights if np.isfinite(low) else low
        high_i = high * weights if np.isfinite(high) else high
        if np.any(alpha < low_i - slack) or np.any(alpha > high_i + slack):
            msg = f"alpha leaves the box [{low}, {high}] of the {self.name} dual"
            raise ValueError(msg)
        wrong = self.sum_violation(values, parameter, offset)
        if wrong:
            raise ValueError(wrong)

    def gap(self, values: Values, parameter: float, offset: Offset = FREE) -> float:
        """Return primal minus dual value, a bound of the suboptimality; ValueError as `check`."""
        self.check(values, parameter, offset)
        return self.primal(values, parameter) - self.dual(values, parameter)

    def objective_id(self, offset: Offset) -> ObjectiveId:
        """Return the identity of this problem's objective with an offset."""
        return ObjectiveId(self.name, offset)


def _slack(alpha: np.ndarray) -> float:
    return FEASIBILITY * max(1.0, float(np.max(np.abs(alpha), initial=0.0)))


@dataclass(frozen=True)
class LossProblem(Problem):
    """A loss of the margins with its dual; the parameter is C, the weight of the summed losses.

    The dual is  max  -conjugate(alpha, C) - 1/2 ||sum_i alpha_i y_i x_i||^2  over the box, with
    ``y·alpha = 0`` where the offset is free.

    Attributes
    ----------
    loss : callable
        Elementwise loss of the margins ``m_i = y_i f(x_i)``.
    multipliers : callable
        Multipliers ``alpha_i`` for given margins: ``-C * loss'(m_i)`` (a subgradient).
    conjugate : callable
        ``sum_i C_i * loss*(-alpha_i / C_i)``, where C_i is C times the sample's weight.
    upper : callable
        The upper bound of the multipliers as a function of C.
    lower : float
        The lower bound of the multipliers.
    without_offset : str
        Empty, or the name of the problem that this one is without its offset: ``"hinge"`` for
        ``hinge-no-offset``. `objective_id` then names that problem.
    """

    loss: Callable[[np.ndarray], np.ndarray]
    multipliers: Callable[[np.ndarray, float], np.ndarray]
    conjugate: Callable[[np.ndarray, Any], float]
    upper: Callable[[float], float]
    lower: float
    without_offset: str = ""

    def primal(self, values: Values, parameter: float) -> float:
        """Return 1/2 square + C times the weighted sum of the losses."""
        return 0.5 * values.square + parameter * values.summed(self.loss(values.margins))

    def dual(self, values: Values, parameter: float) -> float:
        """Return minus the conjugate minus 1/2 square, where `square` belongs to `alpha`'s w."""
        C = parameter if values.weights is None else parameter * values.weights
        return -self.conjugate(values.multipliers(), C) - 0.5 * values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return `lower` and `upper` at this C."""
        return self.lower, self.upper(parameter)

    def objective_id(self, offset: Offset) -> ObjectiveId:
        """Return the identity; `without_offset` names the problem that is meant, if it is set."""
        return (
            ObjectiveId(self.without_offset, NO_OFFSET)
            if self.without_offset
            else ObjectiveId(self.name, offset)
        )


@dataclass(frozen=True)
class NuSVCProblem(Problem):
    """The ν-SVM in the scale of its paper: the losses are a mean, and multipliers at most 1/N.

    min  1/2 ||w||^2 - nu rho + 1/N sum_i v_i max(0, rho - y_i f(x_i)),   rho >= 0;
    max  -1/2 alpha' Q alpha,   0 <= alpha_i <= v_i/N,  sum alpha >= nu,  y·alpha = 0 where the
    offset is free.

    The parameter is nu. LIBSVM's multipliers are N times these before it divides its model by
    rho. The C-SVM with the same f/rho has these multipliers over rho, at C = 1/(N rho).
    """

    def primal(self, values: Values, parameter: float) -> float:
        """Return the primal value at (w, b, rho)."""
        slack = np.maximum(0.0, values.rho - values.margins)
        return 0.5 * values.square - parameter * values.rho + values.summed(slack) / len(slack)

    def dual(self, values: Values, parameter: float) -> float:
        """Return -1/2 square."""
        return -0.5 * values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return 0 and 1/N."""
        return 0.0, 1.0 / n_samples

    def sum_violation(self, values: Values, parameter: float, offset: Offset) -> str:
        """Return a sentence if the multipliers sum up to less than nu, or as the base class."""
        total = float(values.multipliers().sum())
        if total < parameter - FEASIBILITY:
            return f"the dual of nu-svc needs a sum of alpha of at least nu, got {total:.6g}"
        return super().sum_violation(values, parameter, offset)


@dataclass(frozen=True)
class OneClassProblem(Problem):
    """The one-class SVM in the scale of its paper: multipliers sum up to 1.

    min  1/2 ||w||^2 - rho + 1/(nu N) sum_i v_i max(0, rho - w.x_i),   f(x) = w.x - rho;
    max  -1/2 alpha' K alpha,   0 <= alpha_i <= v_i/(nu N),  sum alpha = 1.

    The parameter is nu; there are no labels. LIBSVM's multipliers are nu N times these.
    """

    def primal(self, values: Values, parameter: float) -> float:
        """Return the primal value at (w, rho); f has -rho in it."""
        slack = np.maximum(0.0, -values.f)
        return 0.5 * values.square - values.rho + values.summed(slack) / (parameter * len(slack))

    def dual(self, values: Values, parameter: float) -> float:
        """Return -1/2 square."""
        return -0.5 * values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return 0 and 1/(nu N)."""
        return 0.0, 1.0 / (parameter * n_samples)

    def sum_violation(self, values: Values, parameter: float, offset: Offset) -> str:
        """Return a sentence unless the multipliers sum up to 1, else ""."""
        return not_one(values, self.name)


@dataclass(frozen=True)
class SVDDProblem(Problem):
    """The smallest ball around the samples: multipliers sum up to 1, C weighs the losses.

    min  R^2 + C sum_i v_i max(0, ||x_i - a||^2 - R^2),   f(x) = R^2 - ||x - a||^2;
    max  sum_i alpha_i K_ii - alpha' K alpha,   0 <= alpha_i <= C v_i,  sum alpha = 1.

    The parameter is C, at least 1/N; there are no labels; `rho` is R^2 and `square` ||a||^2. With
    a kernel of constant diagonal and C = 1/(nu N) its multipliers are those of ``one-class``.
    """

    def primal(self, values: Values, parameter: float) -> float:
        """Return the primal value at (a, R^2)."""
        return values.rho + parameter * values.summed(np.maximum(0.0, -values.f))

    def dual(self, values: Values, parameter: float) -> float:
        """Return the dual value, which needs the kernel's diagonal."""
        if values.diagonal is None:
            msg = "the dual of svdd needs the kernel's diagonal"
            raise ValueError(msg)
        return float(values.multipliers() @ values.diagonal) - values.square

    def bounds(self, parameter: float, n_samples: int) -> tuple[float, float]:
        """Return 0 and C."""
        return 0.0, parameter

    def sum_violation(self, values: Values, parameter: float, offset: Offset) -> str:
        """Return a sentence unless the multipliers sum up to 1, else ""."""
        return not_one(values, self.name)


def not_one(values: Values, name: str) -> str:
    """Return a sentence unless the multipliers sum up to 1, as in one-class problems."""
    total = float(values.multipliers().sum())
    if abs(total - 1.0) <= FEASIBILITY * len(values.f):
        return ""
    return f"the dual of {name} needs multipliers that sum up to 1, got {total:.6g}"


def linear(
    X: Any,
    w: np.ndarray,
    b: float,
    y: np.ndarray,
    *,
    bias: float = 0.0,
    alpha: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Values:
    """Return the values of a linear model w, b on samples X with labels y of ±1.

    `bias` is the value of the constant feature that absorbs the offset, 0 if it is free or missing;
    `alpha` are multipliers whose w is this one; `weights` are 1 by default.
    """
    square = float(w @ w)
    if bias:
        square += (b / bias) ** 2
    f = np.asarray(X @ w).ravel() + b
    return Values(f=f, square=square, y=y, alpha=alpha, weights=weights)


def _squares_over(a: np.ndarray, C: Any) -> float:
    """Return the sum of ``a_i^2 / C_i``; a sample of weight 0 adds nothing at a_i = 0."""
    return float(np.sum(np.divide(a * a, C, out=np.zeros_like(a), where=a != 0.0)))


# The multipliers 2C(1 - m) of this loss may have either sign, so that the dual has no bounds.
LEAST_SQUARES = LossProblem(
    name="least-squares",
    formula="loss(m) = (1 - m)^2, multipliers free (LS-SVM, proximal SVM, ALSVM)",
    loss=lambda m: (1.0 - m) ** 2,
    multipliers=lambda m, C: 2.0 * C * (1.0 - m),
    conjugate=lambda a, C: _squares_over(a, 4.0 * C) - float(np.sum(a)),
    upper=lambda C: np.inf,
    lower=-np.inf,
)

HINGE = LossProblem(
    name="hinge",
    formula="loss(m) = max(0, 1 - m), 0 <= alpha <= C (L1-SVM, C-SVC)",
    loss=lambda m: np.maximum(0.0, 1.0 - m),
    multipliers=lambda m, C: np.where(m < 1.0, C, 0.0),
    conjugate=lambda a, C: -float(np.sum(a)),
    upper=lambda C: C,
    lower=0.0,
)

SQUARED_HINGE = LossProblem(
    name="squared-hinge",
    formula="loss(m) = max(0, 1 - m)^2, alpha >= 0 (L2-SVM)",
    loss=lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    multipliers=lambda m, C: 2.0 * C * np.maximum(0.0, 1.0 - m),
    conjugate=lambda a, C: _squares_over(a, 4.0 * C) - float(np.sum(a)),
    upper=lambda C: np.inf,
    lower=0.0,
)

# Pegasos' form is lambda/2 ||w||^2 + mean hinge. With lambda = 1/C, C times this form is
# 1/2 ||w||^2 + C/N times the sum of losses: its solvers pass C/N as `parameter`.
MEAN_HINGE = replace(
    HINGE,
    name="mean-hinge",
    formula="loss(m) = max(0, 1 - m), weighed by C/N: C is 1/lambda of Pegasos' form",
)

# The kernel papers' L2-SVM: its C is twice LIBLINEAR's, which has no 1/2 in the loss.
HALF_SQUARED_HINGE = replace(
    SQUARED_HINGE,
    name="half-squared-hinge",
    formula="loss(m) = max(0, 1 - m)^2 / 2, alpha >= 0 (L2-SVM; C is twice squared-hinge's)",
    loss=lambda m: 0.5 * np.maximum(0.0, 1.0 - m) ** 2,
    multipliers=lambda m, C: C * np.maximum(0.0, 1.0 - m),
    conjugate=lambda a, C: _squares_over(a, 2.0 * C) - float(np.sum(a)),
)

# Its optimum differs from "hinge" with a free offset: the dual has no equality constraint.
HINGE_NO_OFFSET = replace(
    HINGE,
    name="hinge-no-offset",
    formula="loss(m) = max(0, 1 - m), 0 <= alpha <= C, f without an offset",
    without_offset="hinge",
)

NU_SVC = NuSVCProblem(
    name="nu-svc",
    formula="1/2 ||w||^2 - nu rho + mean of max(0, rho - m), 0 <= alpha <= 1/N, sum alpha >= nu",
)

ONE_CLASS = OneClassProblem(
    name="one-class",
    formula="1/2 ||w||^2 - rho + mean of max(0, -f) / nu, 0 <= alpha <= 1/(nu N), sum alpha = 1",
)

SVDD_BALL = SVDDProblem(
    name="svdd",
    formula="R^2 + C sum of max(0, -f), f = R^2 - ||x - a||^2, 0 <= alpha <= C, sum alpha = 1",
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
        NU_SVC,
        ONE_CLASS,
        SVDD_BALL,
    )
}


def check_name(problem: Problem) -> None:
    """Raise ValueError if another problem has the same name."""
    known = PROBLEMS.get(problem.name, problem)
    if known.formula != problem.formula:
        msg = f"two problems are called {problem.name!r}: {known.formula!r} and {problem.formula!r}"
        raise ValueError(msg)


def enter(problem: Problem) -> None:
    """Enter the problem of a solver into `PROBLEMS`; ValueError if its name is taken."""
    check_name(problem)
    # If a module is loaded again, the newer object counts.
    PROBLEMS[problem.name] = problem
