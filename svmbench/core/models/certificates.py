"""Certificates: how near to its optimum a model is, computed in float64 from what the model shows.

A `Part` is one problem with a model of it: weights w of a linear model, or an expansion over points
of a kernel's space. `certify_part` evaluates the primal value at the model, makes feasible
multipliers, and evaluates the dual value there, which no primal value can be below. So the
difference of the two bounds how far the model's objective is above the optimum, whoever trained the
model. docs/certificates.md has the formulas.

Multipliers
    Of an expansion over training rows: its coefficients times the labels, clipped to their box.
    Where the problem fixes a sum, it is restored: with a free offset, the multipliers of the class
    with the larger sum are scaled down until both sums are equal; of a one-class or nu-SVM,
    multipliers move by shares of the room that they have in the box.
    Of a linear model: -C loss'(m), with the margins m at the best offset. The hinge loss has many
    slopes at a margin of 1, so a quadratic program chooses the multipliers of the samples whose
    margins are nearest to 1, and once more for the new margins, a few times. Weights that are not
    quite optimal lower the dual value much where rows are many, so Newton steps improve them first.
Last step
    In problems with a loss, every multiple t alpha with t in [0, 1] is feasible too, and larger t
    as long as the multiples stay in the box. The t with the largest dual value is taken, so that
    the lower bound of such a problem is at least 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from svmbench.core.contract.problems import FREE, LossProblem, NuSVCProblem, Offset, Problem, Values
from svmbench.core.kernels.kernels import INDEFINITE, KernelFunction
from svmbench.core.kernels.prediction import weighted_sums
from svmbench.core.models.kernel_base import Expansion
from svmbench.core.numeric.conjugate_gradient import conjugate_gradients

#: The kernel of weights, and the parameters that kernels read.
LINEAR = KernelFunction("linear")
KERNEL_PARAMETERS_OF = {
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}

#: A sum of multipliers that is off by this share of the sum of all is right but for rounding.
SUM_ROUNDING = 1e-14

#: Multipliers within this share of a bound are on it.
AT_BOUND = 1e-9

#: Samples whose multipliers the quadratic program of the hinge chooses. It starts with the first
#: number for each feature (200 at least), and doubles up to the second number in all.
NEAR_A_FEATURE, MOST_NEAR = 4, 1500

#: Rows of a sample on which a primal value is estimated, its parts, and the standard errors of
#: their mean that are added.
SAMPLED_ROWS, SAMPLE_PARTS, STANDARD_ERRORS = 20_000, 10, 3.0

#: Newton steps of a search for better weights (of a smoothed hinge: at each width), and products
#: with each Hessian.
NEWTON_STEPS, NEWTON_PRODUCTS = 5, 30

#: Widths of the parabola of a smoothed hinge: the last one, and each over the one before. Steps at
#: a width end when one gains less than this share, or none does after so many halvings.
NARROWEST, NARROWING, NEWTON_GAIN, HALVINGS = 1e-4, 0.3, 1e-7, 10

#: The largest relative gap of a hinge after which better weights are not looked for.
PROGRAMS_SUFFICE = 1e-5

#: Quadratic programs of one search, and the relative gap that ends it.
SEARCHES, SMALL_GAP = 8, 1e-10


@dataclass(frozen=True)
class Part:
    """One two-class or one-class problem, and a model of it.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels ±1; all of them 1 where there is one class.
    problem : Problem
    parameter : float
        Its C or nu, as the problem states it.
    model : Expansion or ndarray
        An expansion, or the normal vector of a linear model.
    b : float
        Offset of a linear model.
    offset : Offset
        Treatment of the offset.
    weights : ndarray of shape (n_samples,) or None
        Weights of the samples; if the parameter is nu, they are scaled to a mean of 1.
    rho : float or None
        The margin of nu-svc and one-class, the squared radius of svdd; None for a ν-SVM of unknown
        scale, whose margin is 1: the best multiple of the model counts.
    """

    X: Any
    y: np.ndarray
    problem: Problem
    parameter: float
    model: Expansion | np.ndarray
    b: float = 0.0
    offset: Offset = FREE
    weights: np.ndarray | None = None
    rho: float | None = 0.0

    @property
    def bias(self) -> float:
        """Value of the constant feature that absorbs the offset; 0 without."""
        return self.offset.value if self.offset.kind == "absorbed" else 0.0

    @property
    def most(self) -> np.ndarray:
        """The largest feasible multiplier of each sample, (n_samples,)."""
        high = self.problem.bounds(self.parameter, len(self.y))[1]
        if self.weights is None:
            return np.full(len(self.y), high)
        # An infinite bound stays infinite, but for a sample that takes no part.
        return np.where(self.weights > 0.0, high if np.isinf(high) else high * self.weights, 0.0)

    @property
    def least(self) -> float:
        """The smallest feasible multiplier."""
        return self.problem.bounds(self.parameter, len(self.y))[0]

    @property
    def identity(self) -> str:
        """What two models must share for a bound of one to hold for the other."""
        kernel = self.model.function if isinstance(self.model, Expansion) else LINEAR
        used = KERNEL_PARAMETERS_OF.get(kernel.name, ())
        settings = [f"{name}={getattr(kernel, name):.10g}" for name in used]
        facts = [str(self.problem.objective_id(self.offset)), f"{self.parameter:.10g}", kernel.name]
        if self.weights is not None:
            facts.append(hashlib.sha256(np.ascontiguousarray(self.weights).tobytes()).hexdigest())
        return " ".join([*facts, *settings])

    def has_sum(self) -> bool:
        """Return True if the sum of the multipliers is fixed."""
        return not isinstance(self.problem, LossProblem)


@dataclass(frozen=True)
class Certificate:
    """What is certain about a model's objective.

    Attributes
    ----------
    problem : str
        The problem and the treatment of its offset.
    n_samples, n_parts : int
        Training rows, and two-class problems of a model of several classes; values are sums over
        them.
    primal : float
        The objective of the model.
    dual : float or None
        A lower bound of the optimum; None if the model shows nothing to make one from.
    gap, relative_gap : float or None
        Primal minus dual value; and this over the smaller size of the two, which is no less than
        the relative excess of the objective over the optimum. None without a bound, or if the
        bound doesn't even have the sign of the objective.
    kkt : float or None
        Largest violation of the optimality conditions, in units of the margin; of a model that
        shows weights alone the largest component of w minus the sum of its multipliers' samples.
    box_violation : float or None
        How far the model's multipliers leave their box at most, as a share of the largest bound
        (of the largest multiplier where there is none); None for a model that shows none.
    sum_violation : float or None
        How far the model's multipliers miss their sum, as a share of the sum of their sizes.
    shows : str
        ``weights``, ``multipliers``, ``points`` (an expansion over points that are no training
        rows) or ``decision values``.
    n_sampled : int or None
        Number of rows from which the primal value was estimated, three standard errors upwards;
        None if it is of all rows.
    """

    problem: str
    n_samples: int
    primal: float
    dual: float | None = None
    kkt: float | None = None
    box_violation: float | None = None
    sum_violation: float | None = None
    shows: str = "weights"
    n_parts: int = 1
    n_sampled: int | None = None

    @property
    def gap(self) -> float | None:
        """Primal minus dual value, at least 0 but for a bound that is no bound."""
        if self.dual is None:
            return None
        gap = self.primal - self.dual
        rounding = 1e-13 * max(abs(self.primal), abs(self.dual))
        return 0.0 if abs(gap) <= rounding else gap

    @property
    def relative_gap(self) -> float | None:
        """The gap over the smaller size of primal and dual value."""
        return relative_gap(self.primal, self.dual)

    def solved_to(self, accuracy: float) -> bool:
        """Return True if the objective is certainly within this share of the optimum."""
        share = self.relative_gap
        return share is not None and share <= accuracy

    def with_bound(self, bound: float | None) -> Certificate:
        """Return the certificate with a lower bound from elsewhere, if that is better."""
        if bound is None or (self.dual is not None and self.dual >= bound):
            return self
        return replace(self, dual=bound)

    def as_dict(self) -> dict[str, Any]:
        """Return all values by their names, as JSON has them."""
        return {**asdict(self), "gap": self.gap, "relative_gap": self.relative_gap}


def relative_gap(primal: float, dual: float | None) -> float | None:
    """Return how far a primal value may be above the optimum, as a share of the optimum.

    None if there is no such bound: the optimum may be 0, or there is no dual value.
    """
    if dual is None:
        return None
    gap, size = primal - dual, min(abs(primal), abs(dual))
    if abs(gap) <= 1e-13 * max(abs(primal), abs(dual)):
        return 0.0
    return gap / size if primal * dual > 0.0 else None


def sum_of(parts: Sequence[Certificate], n_samples: int) -> Certificate:
    """Return the certificate of several problems that one model solves: sums, or the largest."""

    def largest(name: str) -> float | None:
        values = [getattr(part, name) for part in parts]
        return None if None in values else max(values)

    duals = [part.dual for part in parts]
    return replace(
        parts[0],
        n_samples=n_samples,
        primal=float(sum(part.primal for part in parts)),
        dual=None if None in duals else float(sum(duals)),  # type: ignore[arg-type]
        kkt=largest("kkt"),
        box_violation=largest("box_violation"),
        sum_violation=largest("sum_violation"),
        n_parts=len(parts),
        n_sampled=max(part.n_sampled or 0 for part in parts) or None,
    )


def certify_part(part: Part, *, search: bool = True, sample: bool = False) -> Certificate:
    """Return the certificate of one problem.

    Parameters
    ----------
    part : Part
    search : bool, default=True
        Whether quadratic programs and Newton steps improve the bound of a linear model, which takes
        longer than a prediction.
    sample : bool, default=False
        Whether a sample of the rows is enough for the primal value of an expansion over training
        rows. The bound is exact, and takes products of the support vectors alone.
    """
    model = part.model
    certificate = Certificate(
        problem=str(part.problem.objective_id(part.offset)), n_samples=len(part.y), primal=np.nan
    )
    if isinstance(model, Expansion):
        is_large = len(part.y) > SAMPLED_ROWS and part.problem.name != "svdd"
        if sample and is_large and model.rows is not None:
            return _of_sample(part, model, certificate)
        s = weighted_sums(model.function, model.points, model.coefficients, part.X)
        if model.rows is None:
            sums = weighted_sums(model.function, model.points, model.coefficients, model.points)
            values = _values(part, s, float(model.coefficients @ sums))
            return replace(certificate, primal=_primal(part, values), shows="points")
        values = _values(part, s, float(model.coefficients @ s[model.rows]))
        return _of_multipliers(part, model, values, certificate)
    values = _values(part, np.asarray(part.X @ model).ravel(), float(model @ model))
    with_primal = replace(certificate, primal=_primal(part, values))
    if isinstance(part.problem, LossProblem):
        return _of_weights(part, values, with_primal, search=search)
    return with_primal


def _values(part: Part, s: np.ndarray, square: float) -> Values:
    """Return a problem's values from the products ``<w, phi(x_i)>`` and ``||w||^2``."""
    model, rho = part.model, part.rho
    b = model.b if isinstance(model, Expansion) else part.b
    y: np.ndarray | None = part.y
    f, diagonal = s + b, None
    if part.problem.name == "svdd":
        assert isinstance(model, Expansion), "a ball has a centre"
        assert rho is not None, "a ball has a radius"
        diagonal = model.function.diagonal(part.X)
        f = rho - (diagonal - 2.0 * s + square)
    if part.problem.name.startswith(("svdd", "one-class")):
        y = None
    elif part.bias:
        square += (b / part.bias) ** 2
    known = 1.0 if rho is None else rho
    return Values(f=f, square=square, y=y, rho=known, weights=part.weights, diagonal=diagonal)


def _primal(part: Part, values: Values) -> float:
    """Return the primal value; of a ν-SVM of unknown scale at the best multiple of the model."""
    if part.rho is not None:
        return part.problem.primal(values, part.parameter)
    loss = values.summed(np.maximum(0.0, 1.0 - values.margins)) / len(part.y)
    gain = max(0.0, part.parameter - loss)
    return -0.5 * gain**2 / values.square if gain > 0.0 else 0.0


def _of_multipliers(
    part: Part, model: Expansion, values: Values, certificate: Certificate
) -> Certificate:
    """Return the certificate of an expansion over training rows."""
    alpha, scale = _multipliers_of(part, model)
    outside = float(np.max(np.maximum(part.least - alpha, alpha - part.most), initial=0.0))
    bounds = part.most[np.isfinite(part.most)]
    unit = float(np.max(bounds, initial=0.0)) or float(np.max(np.abs(alpha), initial=0.0)) or 1.0
    dual = _dual_near(part, model, values, alpha, scale)
    return replace(
        certificate,
        primal=_primal(part, values),
        dual=dual,
        kkt=_violation(part, values, alpha),
        box_violation=outside / unit,
        sum_violation=_sum_violation(part, alpha),
        shows="multipliers",
    )


def _dual_near(
    part: Part, model: Expansion, values: Values, alpha: np.ndarray, scale: float
) -> float | None:
    """Return the dual value at feasible multipliers near those of an expansion times `scale`."""
    feasible = _feasible(part, alpha)
    if feasible is None or model.function.name == INDEFINITE:
        # Weak duality needs a kernel without negative eigenvalues.
        return None
    if np.array_equal(feasible, alpha):
        square = scale**2 * float(values.square)
        if part.bias:
            # The offset that belongs to the multipliers, whatever the model's is.
            square -= (scale * model.b / part.bias) ** 2
            square += (part.bias * float(alpha @ part.y)) ** 2
    else:
        square = _square_at(part, model.function, feasible)
    return _dual(part, replace(values, alpha=feasible, square=square))


def _multipliers_of(part: Part, model: Expansion) -> tuple[np.ndarray, float]:
    """Return the multipliers of all rows, and the factor that gives them their problem's scale."""
    alpha, rows = np.zeros(len(part.y)), np.asarray(model.rows)
    np.add.at(alpha, rows, model.coefficients * part.y[rows])
    if part.rho is not None:
        return alpha, 1.0
    total = float(np.abs(alpha).sum())
    scale = part.parameter / total if total > 0.0 else 1.0
    return scale * alpha, scale


def _of_sample(part: Part, model: Expansion, certificate: Certificate) -> Certificate:
    """Return the certificate of an expansion, with a primal value from a sample of the rows.

    The sample has several parts, each an estimate of the whole problem. Their mean, and standard
    errors upwards, stands for the primal value.
    """
    n = len(part.y)
    sums = weighted_sums(model.function, model.points, model.coefficients, model.points)
    square = float(model.coefficients @ sums)
    drawn = np.random.default_rng(0).permutation(n)[:SAMPLED_ROWS]
    primals = []
    for rows in np.array_split(drawn, SAMPLE_PARTS):
        # A sum over all rows is that over these, times n / len(rows); means need no factor.
        factor = n / len(rows) if isinstance(part.problem, LossProblem) else 1.0
        few = replace(
            part,
            X=part.X[rows],
            y=part.y[rows],
            parameter=part.parameter * factor,
            weights=None if part.weights is None else part.weights[rows],
        )
        s = weighted_sums(model.function, model.points, model.coefficients, few.X)
        primals.append(_primal(few, _values(few, s, square)))
    error = float(np.std(primals, ddof=1)) / np.sqrt(len(primals))
    alpha, scale = _multipliers_of(part, model)
    square += (model.b / part.bias) ** 2 if part.bias else 0.0
    values = Values(f=np.zeros(0), square=square, y=part.y, weights=part.weights)
    return replace(
        certificate,
        primal=float(np.mean(primals)) + STANDARD_ERRORS * error,
        dual=_dual_near(part, model, values, alpha, scale),
        shows="multipliers",
        n_sampled=len(drawn),
    )


def _square_at(part: Part, function: KernelFunction, alpha: np.ndarray) -> float:
    """Return ``||w||^2`` of multipliers, with the offset in it that they make."""
    rows = np.flatnonzero(alpha)
    signed = alpha[rows] * part.y[rows]
    square = 0.0
    if len(rows):
        # A given kernel knows points by their positions.
        points = function.take(part.X, rows)
        square = float(signed @ weighted_sums(function, points, signed, part.X[rows]))
    return square + (part.bias * float(signed.sum())) ** 2


def _sum_violation(part: Part, alpha: np.ndarray) -> float:
    """Return how far multipliers miss the sums of their problem, as a share of the sum of all."""
    total = float(np.abs(alpha).sum()) or 1.0
    missed = (
        abs(float(alpha @ part.y)) if part.offset.kind == "free" and _has_classes(part) else 0.0
    )
    if part.has_sum():
        wanted = _sum_of_all(part)
        short = wanted - float(alpha.sum())
        missed = max(missed, short if isinstance(part.problem, NuSVCProblem) else abs(short))
    return missed / total


def _has_classes(part: Part) -> bool:
    return not part.problem.name.startswith(("svdd", "one-class"))


def _sum_of_all(part: Part) -> float:
    return part.parameter if isinstance(part.problem, NuSVCProblem) else 1.0


def _feasible(part: Part, alpha: np.ndarray) -> np.ndarray | None:
    """Return feasible multipliers near the given ones; None if there are none."""
    most = part.most
    mended = np.clip(alpha, part.least, most)
    is_free = part.offset.kind == "free" and _has_classes(part)
    if not part.has_sum():
        if not is_free:
            return mended
        excess = float(mended @ part.y)
        if abs(excess) <= SUM_ROUNDING * float(np.abs(mended).sum()):
            return mended
        if part.least < 0.0:
            moved = np.flatnonzero(mended)
            return _added(mended, moved, -part.y[moved] * excess / len(moved))
        larger = part.y > 0.0 if excess > 0.0 else part.y < 0.0
        sums = float(mended[larger].sum())
        mended[larger] *= (sums - abs(excess)) / sums
        return mended
    groups = [np.ones(len(alpha), dtype=bool)]
    if is_free:
        groups = [part.y > 0.0, part.y < 0.0]
    for group in groups:
        wanted = _sum_of_all(part) / len(groups)
        repaired = _with_sum(mended[group], most[group], wanted)
        if repaired is None:
            return None
        mended[group] = repaired
    return mended


def _added(alpha: np.ndarray, rows: np.ndarray, step: np.ndarray) -> np.ndarray:
    alpha = alpha.copy()
    alpha[rows] += step
    return alpha


def _with_sum(alpha: np.ndarray, most: np.ndarray, total: float) -> np.ndarray | None:
    """Return multipliers with this sum, each moved by its share of the room; None if none have it.

    Multipliers of 0 move only if the others have too little room.
    """
    missing = total - float(alpha.sum())
    if abs(missing) <= SUM_ROUNDING * total:
        return alpha
    if missing < 0.0:
        return alpha * (total / float(alpha.sum()))
    finite = np.where(np.isinf(most), np.maximum(total, alpha), most)
    for room in (np.where(alpha > 0.0, finite - alpha, 0.0), finite - alpha):
        if float(room.sum()) >= missing:
            return alpha + missing / float(room.sum()) * room
    return None


def _dual(part: Part, values: Values) -> float:
    """Return the dual value at feasible multipliers, or at a better multiple of them."""
    problem, C = part.problem, part.parameter
    if not isinstance(problem, LossProblem):
        return problem.dual(values, C)
    alpha = values.multipliers()
    weighted = C if part.weights is None else C * part.weights
    linear = float(alpha.sum())
    curved = 2.0 * (problem.conjugate(alpha, weighted) + linear) + values.square
    if curved <= 0.0 or linear <= 0.0:
        return max(0.0, linear - 0.5 * curved)
    most, used = part.most, alpha > 0.0
    longest = float(np.min(most[used] / alpha[used], initial=np.inf))
    t = min(linear / curved, max(1.0, longest))
    return t * linear - 0.5 * t * t * curved


def _violation(part: Part, values: Values, alpha: np.ndarray) -> float:
    """Return the largest violation of the conditions between margins and multipliers."""
    problem, most = part.problem, part.most
    takes_part = most > part.least
    if isinstance(problem, LossProblem):
        slope = 1.0 - values.margins
        if np.isinf(problem.upper(part.parameter)):
            # alpha_i = k_i (1 - m_i) of a quadratic loss.
            each = float(problem.multipliers(np.zeros(1), part.parameter)[0])
            k = each if part.weights is None else np.where(takes_part, each * part.weights, 1.0)
            slope = slope - alpha / k
    else:
        unit = abs(values.rho) or 1.0
        slope = (values.rho - values.margins if _has_classes(part) else -values.f) / unit
    scale = np.where(np.isfinite(most), most, float(np.max(np.abs(alpha), initial=0.0)))
    can_grow, can_fall = alpha < most - AT_BOUND * scale, alpha > part.least + AT_BOUND * scale
    violations = np.maximum(np.where(can_grow, slope, 0.0), np.where(can_fall, -slope, 0.0))
    worst = float(np.max(violations[takes_part], initial=0.0))
    if part.bias and isinstance(part.model, Expansion):
        b = part.bias**2 * float(alpha @ part.y)
        worst = max(worst, abs(b - part.model.b) / (abs(values.rho) or 1.0))
    return worst


def _of_weights(
    part: Part, values: Values, certificate: Certificate, *, search: bool
) -> Certificate:
    """Return the certificate of a linear model, whose multipliers follow from its margins."""
    problem = part.problem
    assert isinstance(problem, LossProblem), "other problems have a margin of their own"
    is_quadratic = bool(np.isinf(problem.upper(part.parameter)))
    b = _best_offset(part, values.f - part.b) if part.offset.kind == "free" else part.b
    margins = part.y * (values.f - part.b + b)
    alpha = _from_margins(part, margins)
    best, kkt = _bound_at(part, alpha)
    if search and not is_quadratic:
        best, kkt = _bound_of_hinge(part, margins, certificate.primal, (best, kkt))
    elif search and part.offset.kind != "free":
        best = _after_newton_steps(part, margins, certificate.primal, best)
    return replace(certificate, dual=best, kkt=kkt)


def _from_margins(part: Part, margins: np.ndarray) -> np.ndarray:
    """Return the multipliers that the loss has at these margins."""
    problem = part.problem
    assert isinstance(problem, LossProblem), "only losses have slopes"
    C = part.parameter if part.weights is None else part.parameter * part.weights
    return np.asarray(problem.multipliers(margins, C), dtype=np.float64)  # type: ignore[arg-type]


def _best_offset(part: Part, s: np.ndarray) -> float:
    """Return the free offset at which the slope of the summed loss is 0, or changes its sign."""

    def slope(b: float) -> float:
        return float(part.y @ _from_margins(part, part.y * (s + b)))

    far = float(np.max(np.abs(s))) + 1.0
    if slope(-far) <= 0.0 or slope(far) >= 0.0:
        return 0.0
    return float(brentq(slope, -far, far, xtol=1e-15, rtol=8.9e-16))


def _bound_at(part: Part, alpha: np.ndarray) -> tuple[float, float]:
    """Return the dual value near multipliers of a linear model, and how far their w is from it."""
    feasible = _feasible(part, alpha)
    assert feasible is not None, "a problem without a fixed sum has feasible multipliers"
    signed = feasible * part.y
    w, b = _weights_of(part, signed)
    square = float(w @ w) + (b / part.bias) ** 2 if part.bias else float(w @ w)
    values = Values(f=np.zeros(0), square=square, y=part.y, alpha=feasible, weights=part.weights)
    away = float(np.max(np.abs(w - part.model), initial=0.0))
    if part.bias:
        away = max(away, abs(b - part.b) / part.bias)
    return _dual(part, values), away


def _weights_of(part: Part, signed: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the w of signed multipliers, and the offset that they make if it is absorbed."""
    return np.asarray(part.X.T @ signed).ravel(), part.bias**2 * float(signed.sum())


def _searched(
    part: Part, margins: np.ndarray, primal: float, best: tuple[float, float]
) -> tuple[float, float]:
    """Improve the bound of a hinge model: a program chooses the multipliers near a margin of 1."""
    n, most = len(part.y), part.most
    takes_part = np.flatnonzero(most > 0.0)
    size = min(len(takes_part), MOST_NEAR, max(200, NEAR_A_FEATURE * part.X.shape[1]))
    for _ in range(SEARCHES):
        gap = relative_gap(primal, best[0])
        if gap is not None and gap <= SMALL_GAP:
            break
        order = np.argpartition(np.abs(1.0 - margins[takes_part]), size - 1)[:size]
        near = np.sort(takes_part[order])
        alpha = np.where(margins < 1.0, most, 0.0)
        alpha[near] = 0.0
        chosen = _program(part, alpha, near)
        if chosen is None:
            break
        alpha[near] = chosen
        bound = _bound_at(part, alpha)
        if bound[0] > best[0]:
            best = bound
        elif size >= min(len(takes_part), MOST_NEAR):
            break
        else:
            size = min(len(takes_part), MOST_NEAR, 2 * size)
        if len(near) == n:
            break
        w, b = _weights_of(part, alpha * part.y)
        s = np.asarray(part.X @ w).ravel()
        b = _offset_of_hinge(part, s, alpha) if part.offset.kind == "free" else b
        margins = part.y * (s + b)
    return best


def _after_newton_steps(part: Part, margins: np.ndarray, primal: float, bound: float) -> float:
    """Improve the bound of a quadratic loss: multipliers follow from weights nearer to the optimum.

    At weights with the gradient g the bound is about |g|^2 / 2 too low, which is much where many
    rows make a large Hessian. Newton steps shorten g.
    """
    v = 1.0 if part.weights is None else part.weights
    w = _extended_weights(part)
    for _ in range(NEWTON_STEPS):
        gap = relative_gap(primal, bound)
        if gap is not None and gap <= SMALL_GAP:
            break
        alpha = _from_margins(part, margins)
        curvatures = np.where(alpha != 0.0, 2.0 * part.parameter * v, 0.0)
        w = w + _newton_step(part, w, alpha, curvatures)
        margins = _margins_at(part, w)
        better = _bound_at(part, _from_margins(part, margins))[0]
        if not better > bound:
            break
        bound = better
    return bound


def _extended_weights(part: Part) -> np.ndarray:
    """Return the weights of a linear model and that of the constant feature, 0 without one."""
    return np.append(np.asarray(part.model), part.b / part.bias if part.bias else 0.0)


def _margins_at(part: Part, w: np.ndarray) -> np.ndarray:
    """Return the margins of all rows at extended weights."""
    return part.y * (np.asarray(part.X @ w[:-1]).ravel() + part.bias * w[-1])


def _newton_step(
    part: Part, w: np.ndarray, alpha: np.ndarray, curvatures: np.ndarray
) -> np.ndarray:
    """Return the step of extended weights that conjugate gradients find.

    `alpha` and `curvatures` are the negative slopes of the loss at the margins of w, and its second
    derivatives. Rows whose second derivative is 0 make no Hessian.
    """
    rows, bias = np.flatnonzero(curvatures), part.bias
    X, k = part.X[rows], curvatures[rows]

    def product(p: np.ndarray) -> np.ndarray:
        s = k * (np.asarray(X @ p[:-1]).ravel() + bias * p[-1])
        return p + np.append(X.T @ s, bias * float(s.sum()))

    nearer, b = _weights_of(part, alpha * part.y)
    down = np.append(nearer, b / bias if bias else 0.0) - w
    return conjugate_gradients(product, down, NEWTON_PRODUCTS, residual=1e-3)[0]


def _bound_of_hinge(
    part: Part, margins: np.ndarray, primal: float, bound: tuple[float, float]
) -> tuple[float, float]:
    """Improve the bound of a hinge model by programs, which choose the multipliers of few rows.

    Where many rows are near a margin of 1 at these weights, programs begin at better weights.
    """
    can_move = part.offset.kind != "free"
    if not can_move or len(part.y) <= SAMPLED_ROWS:
        bound = _searched(part, margins, primal, bound)
    gap = relative_gap(primal, bound[0])
    if can_move and (gap is None or gap > PROGRAMS_SUFFICE):
        margins = _margins_of_smoothed_hinge(part)
        bound = max(bound, _bound_at(part, _from_smoothed(part, margins, NARROWEST)[0]))
        bound = _searched(part, margins, primal, bound)
    return bound


def _from_smoothed(
    part: Part, margins: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return multipliers, curvatures and the sum of a hinge that is a parabola about margin 1."""
    most, inside = part.most, np.abs(1.0 - margins) < 0.5 * width
    share = np.clip((1.0 - margins) / width + 0.5, 0.0, 1.0)
    loss = np.where(inside, 0.5 * width * share**2, np.maximum(0.0, 1.0 - margins))
    return most * share, np.where(inside, most / width, 0.0), float(most @ loss)


def _margins_of_smoothed_hinge(part: Part) -> np.ndarray:
    """Return the margins of weights nearer to the optimum than the model's.

    Newton steps minimise the objective with a smoothed hinge, again and again with a narrower
    parabola. Only the rows in the parabola make a Hessian, and they become few.
    """
    w, width = _extended_weights(part), 1.0
    margins = _margins_at(part, w)
    while width >= NARROWEST:
        alpha, curvatures, loss = _from_smoothed(part, margins, width)
        value = 0.5 * float(w @ w) + loss
        for _ in range(NEWTON_STEPS):
            step = _newton_step(part, w, alpha, curvatures)
            for _ in range(HALVINGS):
                tried = w + step
                margins_there = _margins_at(part, tried)
                there = _from_smoothed(part, margins_there, width)
                reached = 0.5 * float(tried @ tried) + there[2]
                if reached < value:
                    break
                step = 0.5 * step
            else:
                break
            gained, value, w, margins = value - reached, reached, tried, margins_there
            alpha, curvatures, _ = there
            if gained <= NEWTON_GAIN * value:
                break
        width *= NARROWING
    return margins


def _offset_of_hinge(part: Part, s: np.ndarray, alpha: np.ndarray) -> float:
    """Return the offset at which the multipliers strictly inside their box have a margin of 1."""
    most = part.most
    inside = (alpha > 1e-6 * most) & (alpha < (1.0 - 1e-6) * most)
    return float(np.median((part.y - s)[inside])) if inside.any() else _best_offset(part, s)


def _program(part: Part, fixed: np.ndarray, near: np.ndarray) -> np.ndarray | None:
    """Return the multipliers of some samples that maximise the dual, the others given.

    With u = w, it is  min 1/2 ||u||^2 - sum a,  u = w_0 + A a,  0 <= a <= C, and y·a as the others
    need it where the offset is free. None if there is no solution.
    """
    import piqp

    signed = fixed * part.y
    w, _ = _weights_of(part, signed)
    columns = sp.csr_array(part.X)[near].multiply(part.y[near][:, None]).T.tocsr()
    if part.bias:
        w = np.append(w, part.bias * float(signed.sum()))
        columns = sp.vstack([columns, sp.csr_array(part.bias * part.y[near][None, :])]).tocsr()
    met = np.flatnonzero(np.diff(columns.indptr))
    columns, w = columns[met], w[met]
    d, m = len(met), len(near)
    rows, right = [sp.hstack([sp.eye_array(d), -columns])], [w]
    if part.offset.kind == "free":
        sums = sp.csr_array(part.y[near][None, :])
        rows.append(sp.hstack([sp.csr_array((1, d)), sums]))
        right.append(np.array([-float(signed.sum())]))
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.max_iter = 100
    P = sp.csc_matrix(sp.diags_array(np.concatenate([np.ones(d), np.zeros(m)])))
    c = np.concatenate([np.zeros(d), -np.ones(m)])
    low = np.concatenate([np.full(d, -np.inf), np.zeros(m)])
    high = np.concatenate([np.full(d, np.inf), part.most[near]])
    A = sp.csc_matrix(sp.vstack(rows))
    solver.setup(P, c, A, np.concatenate(right), None, None, None, low, high)
    solver.solve()
    chosen = np.asarray(solver.result.x)[d:]
    if not np.all(np.isfinite(chosen)):
        return None
    return np.clip(chosen, 0.0, part.most[near])
