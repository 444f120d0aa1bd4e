"""Newton's method in the primal of the squared hinge, preconditioned by a sample of the rows.

Problem
    min_w  f(w) = 1/2 ||w||^2 + C sum_i max(0, 1 - y_i w'x_i)^2
    over samples x with a constant feature ("bias absorbed"). With s_i = 1 - y_i w'x_i and
    A = {i : s_i > 0},   g = w - 2C sum_A y_i s_i x_i   and   H = I + 2C sum_A x_i x_i'.
    A weight c_i of a loss makes the row sqrt(c_i) x_i, and s_i = sqrt(c_i) (1 - y_i w'x_i).
Given
    X (n_samples, d), y in {-1, +1}, C, tol; weights of the samples.
Returned
    w with ||g(w)|| <= tol min(n+, n-) / n ||g(0)||, LIBLINEAR's rule for its -s 2, that is also at
    most tol f(w) above the optimum: the duality gap of the multipliers 2C max(0, 1 - y_i w'x_i)
    is 1/2 ||g||^2. Where many more rows than features are active, the Newton decrement
    1/2 g'H^-1 g of the step before, which is smaller but an estimate, serves as well.
Reference
    Keerthi and DeCoste 2005 (A modified finite Newton method for fast solution of large scale
    linear SVMs), Algorithm 1: the direction is the way to the least-squares solution on A, found
    by conjugate gradients, and its length an exact line search. The preconditioner is that of
    Hsia, Chiang and Lin 2018 (Preconditioned conjugate gradient methods in truncated Newton
    frameworks): the Hessian of a sample of the rows, factorised; the diagonal where it is too big.
Few features (``exact_newton``)
    Rows of up to `EXACT_MAX_FEATURES` features have each Hessian exact, in one compiled loop. The
    rest is for wider rows, and for many sparse ones.
Fewer rows than features (``gram_newton``)
    With w = X'b, K = XX' and E = diag(y), Newton's step leads to the b that is 0 outside A and
    solves (I / 2C + K_AA) b_A = y_A (Chapelle 2007, Training a support vector machine in the
    primal). The lengths ||w||^2 = b'Kb and ||g||^2 = r'Kr, r = b - 2C E max(0, s), need
    no w. Many rows begin with the problem of an eighth of them. The most active ones of the others
    join until none is active: K is made of the rows that joined, and has no other.
Deviations
    - LIBLINEAR's rule alone ends far from the optimum where g(0) is long: features far from zero,
      or C large for data that a plane separates. So the distance to the optimum is bounded, too.
    - The line search finds the zero of the slope, which is piecewise linear and rising, by
      Newton's method within a bracket; the paper sorts the points where it bends.
    - Where there are many more rows than features, the first steps are those of the problem of
      an eighth of the rows. The paper starts with a looser tolerance instead.
    - The sample's Hessian is one of its active rows, weighed by how many rows are active in all,
      and a Cholesky factor in single precision, unless its pivots are rounding there: a
      preconditioner changes no solution. It is made again only after a step that took many
      products, or for the decrement. Of short rows the sample is all of them.
    - For too many features the preconditioner is the root of the diagonal of H, where the paper
      mixes the diagonal with the identity.
    - Conjugate gradients end at three tenths of the residual they start with, in the
      preconditioner's norm; at a tenth where rows are fewer than features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter, process_time
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import check_random_state

from svmbench.core.contract.base import Along, ClassWeight, PathPoint, TrainingData, Weighted
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.registry import declare
from svmbench.core.linear.exact_newton import exact_newton, line_search
from svmbench.core.linear.hessian import (
    GRAM_PRODUCTS_PER_NONZERO,
    Diagonal,
    RowProducts,
    SampleHessian,
    curvature_rows,
    times_rows,
)
from svmbench.core.numeric.arrays import append_bias, raw
from svmbench.core.numeric.conjugate_gradient import conjugate_gradients

#: The start takes this many Newton steps on one row in `START_ROWS_DIVISOR`, if these rows are at
#: least `START_MIN_ROWS_PER_FEATURE` for each feature.
START_STEPS, START_ROWS_DIVISOR, START_MIN_ROWS_PER_FEATURE = 3, 8, 16

#: After a step with more conjugate gradient steps, the preconditioner is made anew.
PATIENCE_CG_STEPS = 16

#: The Newton decrement estimates the distance to the optimum if there are this many active rows for
#: each feature, and at most this share of them has changed since the preconditioner was made.
DECREMENT_ROWS_PER_FEATURE, DECREMENT_MAX_CHANGED = 4, 0.1

#: The distance to the optimum is taken as this many decrements: curvature falls on the way there.
DECREMENT_FACTOR = 2.0

#: Conjugate gradients end at this residual, relative to the first, or after this many steps. Of
#: fewer rows than features, most stay active: there fewer and longer steps take less time.
CG_RESIDUAL, CG_RESIDUAL_FEW_ROWS, CG_MAX_STEPS = 0.3, 0.1, 250

#: Rows of at most so many features, the constant one included, have exact Hessians: dense rows, and
#: sparse rows of at most so many values, zeros included (2 MiB), which are made dense.
EXACT_MAX_FEATURES, EXACT_MAX_SPARSE_VALUES = 200, 1 << 18

#: Narrow rows of so many values start on `EXACT_START_ROWS` random rows for each feature, if these
#: are at most one row in `START_ROWS_DIVISOR`.
EXACT_START_MIN_VALUES, EXACT_START_ROWS = 1 << 19, 8

#: The start is used if the first step leaves at most one row in so many active: then the steps from
#: w = 0 are many, since most rows leave at once and some come back.
EXACT_START_FEW_ACTIVE = 4

#: So few sparse rows, fewer than features, always have a Gram matrix.
GRAM_FEW_ROWS = 300

#: So many rows have a Gram matrix of a part of them, which begins with one row in
#: `START_ROWS_DIVISOR`, and grows by at most this share of itself at a time.
GRAM_PART_MIN_ROWS, GRAM_MAX_GROWTH = 400, 0.5

#: If more than this share of the other rows is active at the first part's solution, all rows join.
GRAM_NEARLY_ALL = 0.99

#: Stop reasons of ``exact_newton``, by their position.
EXACT_REASONS = ("converged", "max_iter", "stalled")


def newton_direction(
    products: RowProducts,
    active: np.ndarray,  # int: positions of the rows in A
    g: np.ndarray,  # (d,)
    C: float,
    preconditioner: SampleHessian | Diagonal,
) -> tuple[np.ndarray, int]:
    """Return d with ``H d = -g`` approximately, and the number of products with H."""
    n, n_features = products.shape
    d, steps, _ = conjugate_gradients(
        lambda p: p + 2.0 * C * products.curvature(active, p),
        -g,
        CG_MAX_STEPS,
        residual=CG_RESIDUAL if n >= n_features else CG_RESIDUAL_FEW_ROWS,
        precondition=preconditioner.solve,
    )
    return d, steps


def objective(w: np.ndarray, slacks: np.ndarray, C: float) -> float:
    """Return f of weights and their slacks."""
    losses = np.maximum(0.0, slacks)
    return 0.5 * float(w @ w) + C * float(losses @ losses)


@dataclass(frozen=True)
class NewtonParameters:
    """Parameters of a descent."""

    C: float  # weight of the losses
    target: float  # norm of the gradient at which it may end
    tol: float  # distance to the optimum at which it may end, relative to f
    max_iter: int  # largest number of Newton steps
    # the preconditioner is made again after a step with more conjugate gradient steps
    patience: int = PATIENCE_CG_STEPS
    trace: bool = False  # whether to record (seconds, steps, f) after each step


@dataclass
class NewtonResult:
    """Result of a descent."""

    w: np.ndarray  # (d,)
    steps: int = 0
    cg_steps: int = 0
    visits: int = 0  # rows read; of exact steps only
    n_active: int = 0  # rows in A at the end
    stop_reason: str = "max_iter"
    trace: list[tuple[float, int, float]] = field(default_factory=list)


def truncated_newton(
    products: RowProducts,  # of samples that carry the constant feature
    y: np.ndarray,  # (n_samples,): labels ±1
    w: np.ndarray,  # (d,): where to start
    slacks: np.ndarray,  # (n_samples,): those at w; changed in place
    preconditioner: SampleHessian | Diagonal,
    parameters: NewtonParameters,
) -> NewtonResult:
    """Take Newton steps from w until gradient and distance to the optimum are small enough."""
    C, way = parameters.C, NewtonResult(w)
    everything = np.arange(len(y), dtype=np.int32)
    begin = process_time()
    cg, decrement = parameters.patience + 1, np.inf
    while True:
        inside = slacks > 0.0
        active = np.flatnonzero(inside).astype(np.int32)
        way.n_active = len(active)
        inner = slacks[active]
        # g = w - 2C sum_A y_i s_i x_i
        g = way.w - products.combine(active, 2.0 * C * y[active] * inner)
        near = parameters.tol * (0.5 * float(way.w @ way.w) + C * float(inner @ inner))
        is_flat = float(np.linalg.norm(g)) <= parameters.target
        changed = preconditioner.n_changed(inside)
        # The decrement is that of the last step, at the w before it: f has only fallen since.
        estimate = np.inf
        if changed <= DECREMENT_MAX_CHANGED * len(active):
            estimate = DECREMENT_FACTOR * decrement
        # f is 1-strongly convex: ||g||^2 / 2 bounds the distance to the optimum.
        if is_flat and min(0.5 * float(g @ g), estimate) <= near:
            way.stop_reason = "converged"
            break
        if way.steps >= parameters.max_iter:
            break
        if cg > parameters.patience or (is_flat and changed):
            preconditioner.make(inside, C)
            changed = 0
        d, cg = newton_direction(products, active, g, C, preconditioner)
        # With the Hessian of other rows, conjugate gradients end before the decrement is accurate.
        # With few active rows it means little, since others become active on the way.
        is_known = (
            isinstance(preconditioner, SampleHessian)
            and changed <= DECREMENT_MAX_CHANGED * len(active)
            and len(active) >= DECREMENT_ROWS_PER_FEATURE * len(g)
            and cg < CG_MAX_STEPS
        )
        decrement = -0.5 * float(g @ d) if is_known else np.inf
        changes = y * products.times(everything, d)
        t = line_search(slacks, changes, float(way.w @ d), float(d @ d), C)
        new = way.w + t * d
        if np.array_equal(new, way.w):
            way.stop_reason = "stalled"
            break
        way.w, way.steps, way.cg_steps = new, way.steps + 1, way.cg_steps + cg
        slacks -= t * changes
        if parameters.trace:
            now = process_time()
            value = objective(new, slacks, C)
            way.trace.append((now - begin, way.steps, value))
            begin += process_time() - now
    return way


class RowGram:
    """``K = XX'`` of some rows, to which others can be added."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.rows = np.arange(0)
        self.K = np.empty((0, 0))
        self.part = X  # the rows
        self._of_all: tuple[float, Any] = (0.0, None)
        self.n_made = 0  # factors

    def add(self, rows: np.ndarray) -> None:
        """Add rows, int positions; if all rows are, K is that of X in its order."""
        if len(rows) == self.X.shape[0]:
            self.rows, self.part, self.K = rows, self.X, np.empty((0, 0))
        else:
            self.rows = np.concatenate([self.rows, rows])
            self.part = self.X[self.rows]
        m, old, others = len(self.K), self.K, self.part.T
        # scipy multiplies a sparse matrix by a small dense one in less time than by a sparse one.
        if sp.issparse(others) and np.prod(others.shape) <= EXACT_MAX_SPARSE_VALUES:
            others = others.toarray()
        block = self.part[m:] @ others
        block = block.toarray() if sp.issparse(block) else block
        self.K = block if not m else np.block([[old, block[:, :m].T], [block]])
        self._of_all = 0.0, None

    def solve(self, inside: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
        """Solve ``(K_AA + ridge I) x = right`` for the rows A, int positions in `rows`.

        The factor of all rows is kept. ``numpy.linalg.LinAlgError`` if the matrix is not positive
        definite in float64.
        """
        is_all = len(inside) == len(self.rows)
        of, factor = self._of_all
        if not (is_all and of == ridge):
            A = self.K.copy() if is_all else self.K[inside][:, inside]
            A.flat[:: len(A) + 1] += ridge
            # The transpose is the same matrix in Fortran's order, which LAPACK wants: no copy.
            factor = cho_factor(A.T, overwrite_a=True, check_finite=False)
            self.n_made += 1
            if is_all:
                self._of_all = ridge, factor
        return cho_solve(factor, right, overwrite_b=True, check_finite=False)


def gram_newton(
    gram: RowGram,
    y: np.ndarray,  # (n_rows,): labels ±1
    roots: np.ndarray,  # (n_rows,): the slacks at w = 0
    b: np.ndarray,  # (n_rows,): where to start, w = X'b
    parameters: NewtonParameters,
) -> tuple[np.ndarray, NewtonResult]:
    """Take Newton steps from X'b until gradient and distance to the optimum are small enough.

    The problem is that of the rows of `gram`. Return b, and the result without w.
    ``numpy.linalg.LinAlgError`` if C is so large that a system is not positive definite in float64.
    """
    C, K, way = parameters.C, gram.K, NewtonResult(np.empty(0))
    values = K @ b  # w'x_i
    begin = process_time()
    while True:
        slacks = roots - y * values
        inside = np.flatnonzero(slacks > 0.0)
        way.n_active = len(inside)
        r = b.copy()
        r[inside] -= 2.0 * C * y[inside] * slacks[inside]
        f = 0.5 * float(b @ values) + C * float(slacks[inside] @ slacks[inside])
        if parameters.trace and way.steps:
            way.trace.append((process_time() - begin, way.steps, f))
        # ||g||^2; f is 1-strongly convex: half of it bounds the distance to the optimum.
        squared = max(0.0, float(r @ (K @ r)))
        if np.sqrt(squared) <= parameters.target and 0.5 * squared <= parameters.tol * f:
            way.stop_reason = "converged"
            break
        if way.steps >= parameters.max_iter:
            break
        change = -b
        change[inside] += gram.solve(inside, 1.0 / (2.0 * C), y[inside] * roots[inside])
        moved = K @ change
        ends = float(b @ moved), float(change @ moved)
        t = line_search(slacks, y * moved, *ends, C)
        new = b + t * change
        if np.array_equal(new, b):
            way.stop_reason = "stalled"
            break
        b, values, way.steps = new, values + t * moved, way.steps + 1
    return b, way


class NewtonSamples:
    """Samples, with the preconditioner and sums that serve every value of C.

    With weights, samples of weight 0 are left out, and rows are times the roots of their weights.
    """

    def __init__(
        self,
        X: Any,  # (n_samples, d): with the constant feature
        y: np.ndarray,  # (n_samples,): labels ±1
        seed: Callable[[], int],  # returns the seed of the sample
        weights: np.ndarray | None = None,  # (n_samples,): of the losses, none below 0; all 1
    ) -> None:
        #: The slacks at w = 0: the roots of the weights.
        self.roots = np.ones(len(y))
        if weights is not None:
            rows = np.flatnonzero(weights)
            self.roots = np.sqrt(weights[rows])
            X, y = times_rows(X[rows], self.roots), y[rows]
        self.X, self.y, self._seed = X, y, seed
        (n, d), is_sparse = X.shape, sp.issparse(X)
        few = d <= EXACT_MAX_FEATURES
        self.is_narrow = few and (not is_sparse or n * d <= EXACT_MAX_SPARSE_VALUES)
        n_values = X.nnz if is_sparse else n * d
        # Of fewer sparse values, conjugate gradients take less time.
        is_cheap = n <= GRAM_FEW_ROWS or n**3 <= GRAM_PRODUCTS_PER_NONZERO * n_values
        self.is_wide = not self.is_narrow and n < d and is_cheap

    def labelled(self, y: np.ndarray) -> NewtonSamples:
        """Return the same samples with other labels, and with the products of these."""
        if self.is_narrow:
            _ = self.squares, self.part  # made here, the copy has them
        elif self.is_wide:
            _ = self.gram
        else:
            _ = self.products, self.preconditioner
        other = copy(self)
        other.y = y
        other.__dict__.pop("half_gradient", None)
        return other

    @cached_property
    def dense(self) -> np.ndarray:
        """The samples as an array."""
        return self.X.toarray() if sp.issparse(self.X) else self.X

    @cached_property
    def squares(self) -> np.ndarray:
        """``X'X``, of shape (d, d), for exact Hessians."""
        return self.dense.T @ self.dense

    @cached_property
    def gram(self) -> RowGram:
        """``XX'`` of all rows, or of the first ones to have it, for fewer rows than features."""
        gram, n = RowGram(self.X), len(self.y)
        is_part = n >= GRAM_PART_MIN_ROWS
        gram.add(np.sort(self.order[: n // START_ROWS_DIVISOR]) if is_part else np.arange(n))
        return gram

    @cached_property
    def part(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions of random rows, the rows P, and P'P; none where no start is worth it."""
        n, d = self.dense.shape
        m = EXACT_START_ROWS * d
        if n * d < EXACT_START_MIN_VALUES or m > n // START_ROWS_DIVISOR:
            return np.arange(0), np.empty((0, d)), np.empty((d, d))
        # Some rows may be drawn twice; a permutation of all rows would take longer.
        rows = np.sort(np.random.default_rng(self._seed()).integers(n, size=m))
        chosen = self.dense[rows]
        return rows, chosen, chosen.T @ chosen

    @cached_property
    def products(self) -> RowProducts:
        """The products with rows."""
        return RowProducts(self.X)

    @cached_property
    def order(self) -> np.ndarray:
        """The rows in random order."""
        return np.random.default_rng(self._seed()).permutation(len(self.y))

    @cached_property
    def preconditioner(self) -> SampleHessian | Diagonal:
        """The Hessian of a sample, or the diagonal if that is too big."""
        n_rows = curvature_rows(self.X)
        return SampleHessian(self.X, self.order, n_rows) if n_rows else Diagonal(self.X)

    @cached_property
    def half_gradient(self) -> float:
        """The norm of ``sum_i y_i s_i x_i`` at w = 0, the gradient there over 2C."""
        return float(np.linalg.norm(self.X.T @ (self.y * self.roots)))

    def slacks(self, w: np.ndarray) -> np.ndarray:
        """Return ``s_i`` of each sample at w, shape (n_samples,)."""
        if not np.any(w):
            return self.roots.copy()
        everything = np.arange(len(self.y), dtype=np.int32)
        return self.roots - self.y * self.products.times(everything, w)

    def target(self, C: float, tol: float) -> float:
        """Return the norm of the gradient at which LIBLINEAR's -s 2 would stop."""
        n_positive = int(np.count_nonzero(self.y > 0.0))
        share = min(n_positive, len(self.y) - n_positive) / len(self.y)
        return tol * share * 2.0 * C * self.half_gradient

    def curvature(self, slacks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``exact_newton``'s curvature: of all rows, or of none if few are active."""
        if 2 * np.count_nonzero(slacks > 0.0) > len(slacks):
            return self.squares.copy(), np.ones(len(slacks), dtype=np.bool_)
        d = self.dense.shape[1]
        return np.zeros((d, d)), np.zeros(len(slacks), dtype=np.bool_)

    def start_exactly(self, C: float) -> NewtonResult:
        """Return the result of some exact steps on the part; w = 0 if they would save none."""
        rows, X, squares = self.part
        way = NewtonResult(np.zeros(self.dense.shape[1]))
        if not len(rows):
            return way
        curvature = squares.copy(), np.ones(len(rows), dtype=np.bool_)
        share, y, slacks = C * len(self.y) / len(rows), self.y[rows], self.roots[rows]
        for n_steps in (1, START_STEPS - 1):
            ends = (0.0, 0.0, n_steps)
            taken, _, read, active = exact_newton(X, y, share, ends, curvature, way.w, slacks)
            way.steps, way.visits = way.steps + taken, way.visits + read
            if EXACT_START_FEW_ACTIVE * active > len(rows):
                way.w[:] = 0.0
                break
        return way

    def start(self, C: float) -> NewtonResult:
        """Return the result of some steps on a share of the rows, or w = 0 if these are too few."""
        n, d = self.X.shape
        m = n // START_ROWS_DIVISOR
        if isinstance(self.preconditioner, Diagonal) or m < START_MIN_ROWS_PER_FEATURE * d:
            return NewtonResult(np.zeros(d))
        rows = np.sort(self.order[:m])
        part = self.X[rows]
        products, exact = RowProducts(part), SampleHessian(part, np.arange(m), m)
        few_steps = NewtonParameters(C * n / m, 0.0, 0.0, START_STEPS, patience=0)
        way = truncated_newton(
            products, self.y[rows], np.zeros(d), self.roots[rows], exact, few_steps
        )
        self.products.visits += products.visits
        self.preconditioner.n_made += exact.n_made
        return way


@declare(
    name="newton-l2",
    problem="squared-hinge",
    promise="gap relative to the objective",
    summary="Newton's method in the primal, squared hinge loss, preconditioned by a sample",
    reference="Keerthi and DeCoste 2005, Algorithm 1; Hsia, Chiang and Lin 2018",
    paths=("C",),
    suits="up to about a thousand features; with thousands of sparse ones dcd-l2 is faster "
    "(the race newton-l2 of perf_linear, to within 0.1 % of the optimum), and on sparse rows that "
    "are fewer than their features (results/perf/made_parameters.csv)",
)
@dataclass(eq=False, repr=False, kw_only=True)
class NewtonL2(Weighted, LinearClassifierWithC):
    """Newton's method for the squared hinge loss: the problem of LIBLINEAR's -s 2.

    :class:`~svmbench.core.linear.dcd.DCDL2` solves the same problem in the dual. It takes less time
    with thousands of sparse features, and on sparse rows that are fewer than their features.

    Parameters
    ----------
    tol : float
        Norm of the gradient at the end, relative to its value at 0, times the smaller class's
        share: LIBLINEAR's eps. The objective, too, ends at most this share above its optimum: by
        the duality gap, or by the Newton decrement where many rows are active.
    random_state : int, RandomState or None
        Seed of the sample whose Hessian is factorised and of the sample for the first steps.

    Attributes
    ----------
    n_iter_ : int
        Newton steps on all samples.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, or ``"stalled"`` where no step changes the weights.
    counters_ : dict
        ``steps`` (Newton's, with the start's), ``conjugate_gradient_steps``
        (products with a Hessian), ``visits`` (rows read), ``passes`` (visits over samples, rounded
        up), ``factorisations`` (of Hessians), ``support_vectors``.

    Examples
    --------
    >>> from svmbench.core.linear.newton import NewtonL2
    >>> NewtonL2().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[4.0]])
    array([1])
    """

    tol: float = 0.01
    max_iter: int = 1000
    random_state: Any = 0
    trace: bool = False
    class_weight: ClassWeight = None

    balances_weights = True
    warm_with = ({}, {"class_weight": "balanced"})

    def train(self, data: TrainingData) -> Self:
        """Step until the gradient is as small as `tol` asks."""
        self._minimise(self._samples(data), None)
        return self

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value; along C start at the last solution, and choose the sample once."""
        over, values, splits = along
        if over != "C":
            yield from super()._path(data, y, along)
            return
        models = [self._sibling(C=C) for C in values]
        for model in models:
            model._check_parameters()
        for _, part in self._parts(data, splits):
            # `prepare` refuses a fold of one class.
            part = data if splits is None else self._sibling().prepare(part.X, part.y)
            samples, w, start = self._samples(part), None, perf_counter()
            for model in models:
                fitted = copy(model)
                w = fitted._minimise(samples, w)
                yield PathPoint(fitted, perf_counter() - start, dict(fitted.counters_))
                start = perf_counter()

    def _fit_several(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one class against the rest, for each class; see :meth:`NewtonSamples.labelled`.

        With weights the classes share nothing.
        """
        if sample_weight is not None or self.class_weight is not None:
            return super()._fit_several(X, y, sample_weight)
        shared = self._samples(TrainingData(X=X, y=y, native=append_bias(X, self.bias)))
        models = []
        for label in self.classes_:
            model, signs = self._alone(), np.where(y == label, 1.0, -1.0)
            model.classes_, model.n_features_in_ = np.array([-1, 1]), X.shape[1]
            model._minimise(shared.labelled(signs), None)
            models.append(model.evaluate_objective(TrainingData(X=X, y=signs)))
        self.objective_ = float(sum(model.objective_ for model in models))
        return self._join(models)

    def _samples(self, data: TrainingData) -> NewtonSamples:
        def seed() -> int:
            return int(check_random_state(self.random_state).randint(1, 2**31 - 1))

        return NewtonSamples(data.native, data.y, seed, data.weights)

    def _minimise(self, samples: NewtonSamples, w: np.ndarray | None) -> np.ndarray:
        """Step from w, or from a start if it is None; store the solution and return its weights."""
        if samples.is_narrow:
            return self._minimise_exactly(samples, w)
        if samples.is_wide:
            with suppress(np.linalg.LinAlgError):
                return self._minimise_on_gram(samples, w)
        C, visits, made = float(self.C), samples.products.visits, samples.preconditioner.n_made
        first = samples.start(C) if w is None else NewtonResult(w)
        tol = float(self.tol)
        parameters = NewtonParameters(
            C, samples.target(C, tol), tol, self.max_iter, trace=self.trace
        )
        slacks = samples.slacks(first.w)
        way = truncated_newton(
            samples.products, samples.y, first.w, slacks, samples.preconditioner, parameters
        )
        visits = samples.products.visits - visits
        self._store_with_bias(
            way.w,
            n_iter=max(1, way.steps),
            stop_reason=way.stop_reason,
            counters={
                "steps": first.steps + way.steps,
                "conjugate_gradient_steps": first.cg_steps + way.cg_steps,
                "visits": visits,
                "passes": -(-visits // len(samples.y)),
                "factorisations": samples.preconditioner.n_made - made,
                "support_vectors": way.n_active,
            },
            trace=way.trace,
        )
        return way.w

    def _minimise_on_gram(self, samples: NewtonSamples, w: np.ndarray | None) -> np.ndarray:
        """Step on ``XX'``, from w or from 0; store the solution and return its weights."""
        X, y, C, n = samples.X, samples.y, float(self.C), len(samples.y)
        gram, roots, tol = samples.gram, samples.roots, float(self.tol)
        target, steps, visits, made = samples.target(C, tol), 0, len(gram.rows), gram.n_made
        b, trace, begin = np.zeros(len(gram.rows)), [], process_time()
        if w is not None:
            b = (2.0 * C * y * np.maximum(0.0, roots - y * (X @ w)))[gram.rows]
            visits += n
        while True:
            rows, left = gram.rows, self.max_iter - steps
            parameters = NewtonParameters(C, target, tol, left, trace=self.trace)
            b, way = gram_newton(gram, y[rows], roots[rows], b, parameters)
            steps += way.steps
            w = np.asarray(gram.part.T @ b)
            if len(rows) == n:
                trace += [(at, steps - way.steps + k, f) for at, k, f in way.trace]
                break
            # The rows outside that are active join: the optimum has none.
            slacks, outside = roots - y * (X @ w), np.ones(n, dtype=bool)
            outside[rows] = False
            new, visits = np.flatnonzero(outside & (slacks > 0.0)), visits + n
            if self.trace:
                trace.append((process_time() - begin, steps, objective(w, slacks, C)))
            if not len(new) or steps >= self.max_iter:
                way.stop_reason = "max_iter" if len(new) else way.stop_reason
                break
            most = int(np.ceil(GRAM_MAX_GROWTH * len(rows)))
            if visits == len(rows) + n and len(new) > GRAM_NEARLY_ALL * (n - len(rows)):
                new, b = np.arange(n), np.zeros(0)
            elif len(new) > most:
                new = np.sort(new[np.argpartition(-slacks[new], most)[:most]])
            gram.add(new)
            b, visits = np.append(b, np.zeros(len(new))), visits + len(new)
        self._store_with_bias(
            w,
            n_iter=max(1, steps),
            stop_reason=way.stop_reason,
            counters={
                "steps": steps,
                "conjugate_gradient_steps": 0,
                "visits": visits,
                "passes": -(-visits // n),
                "factorisations": gram.n_made - made,
                "support_vectors": way.n_active,
            },
            trace=trace,
        )
        return w

    def _minimise_exactly(self, samples: NewtonSamples, w: np.ndarray | None) -> np.ndarray:
        """Step with exact Hessians, from w or from 0; store the solution and return its weights."""
        X, y, C, n = raw(samples.dense), raw(samples.y), float(self.C), len(samples.y)
        target, tol, max_iter = samples.target(C, float(self.tol)), float(self.tol), self.max_iter
        first = samples.start_exactly(C) if w is None else NewtonResult(w.copy())
        w, steps, seconds = first.w, 0, 0.0
        slacks = samples.slacks(w)
        visits = first.visits + (n if np.any(w) else 0)
        curvature = samples.curvature(slacks)
        trace: list[tuple[float, int, float]] = []
        while True:
            # With a trace, one step a call.
            ends, begin = (target, tol, 1 if self.trace else int(max_iter)), process_time()
            taken, reason, read, n_active = exact_newton(X, y, C, ends, curvature, w, slacks)
            steps, visits, seconds = steps + taken, visits + read, seconds + process_time() - begin
            if self.trace and taken:
                trace.append((seconds, steps, objective(w, slacks, C)))
            if EXACT_REASONS[reason] != "max_iter" or steps >= max_iter:
                break
        self._store_with_bias(
            w,
            n_iter=max(1, steps),
            stop_reason=EXACT_REASONS[reason],
            counters={
                "steps": first.steps + steps,
                "conjugate_gradient_steps": 0,
                "visits": visits,
                "passes": -(-visits // n),
                "factorisations": first.steps + steps,
                "support_vectors": n_active,
            },
            trace=trace,
        )
        return w
