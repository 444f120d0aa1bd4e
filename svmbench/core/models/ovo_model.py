"""The one-vs-one model of a kernel solver: the decision functions of all pairs of classes.

    d_ab(x) = sum_{k of a} B_bk K(z_k, x) + sum_{k of b} B_ak K(z_k, x) + b_ab

The points z_k are the support vectors of all pairs, each once, so that one kernel value serves all
pairs of its point. As in LIBSVM, points are sorted by class, and each has a coefficient for every
other class. `SharedPoints` has the signs of this package, positive for the second class of a pair;
`OvoModel` has LIBSVM's, positive for the first. `AllPairs` and `OwnPairs` sum over the points.

Pairs that are trained together are one problem (`Layout`, `JointSolution`). Its samples are sorted
by class, so that a pair has two runs of samples; its variables are sorted by pair, with the first
class of a pair before the second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.contract.problems import Problem, Values
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.prediction import KernelSums, add_given_rows, add_up
from svmbench.core.kernels.products import without_empty_columns
from svmbench.core.models.pairs import Pairs, row_blocks, values_of_classes, vote, warm_up_votes
from svmbench.core.numeric.arrays import raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from svmbench.core.models.multiclass import PairsAlone, PairsTogether

#: A smaller decision value counts as 0, a tie: the values of narrow kernels underflow at 1e-308.
SMALLEST_DECISION = 1e-300

#: Sums that are added up at a time (8 MiB): with many classes, blocks have fewer rows; but at least
#: `SUMS_MIN_ROWS`, because products of matrices with fewer rows are slow.
SUMS_AT_A_TIME, SUMS_MIN_ROWS = 1 << 20, 16

#: Classes of a square of pairs.
PAIR_SQUARE = 16


@dataclass(frozen=True)
class SharedPoints:
    """The expansions of all pairs over the support vectors of all pairs."""

    function: Any  # KernelFunction
    points: Any  # dense or CSR (n_points, n_features)
    rows: np.ndarray  # int (n_points,): training samples of the points, sorted by class, ascending
    starts: np.ndarray  # int (n_classes + 1,): first point of each class
    coefficients: np.ndarray  # (n_classes - 1, n_points): signed, one for each other class
    b: np.ndarray  # (n_pairs,)
    pairs: Pairs

    @classmethod
    def of(cls, models: Sequence[Any], pairs: Pairs, X: Any, codes: np.ndarray) -> Self:
        """Return the points of fitted models, one a pair, for samples X with classes `codes`."""
        where = [pair.rows[m.support_] for pair, m in zip(pairs, models, strict=True)]
        rows = np.unique(np.concatenate(where))
        rows = rows[np.argsort(codes[rows], kind="stable")]
        place = np.empty(len(codes), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        n_classes = int(pairs.positive[-1]) + 1
        coefficients = np.zeros((n_classes - 1, len(rows)))
        for pair, at, model in zip(pairs, where, models, strict=True):
            # The pair's other class, numbered without the point's own class.
            other = np.where(codes[at] == pair.negative, pair.positive - 1, pair.negative)
            coefficients[other, place[at]] = model.expansion_.coefficients
        b = np.array([model.expansion_.b for model in models])
        function = models[0].expansion_.function
        starts = np.searchsorted(codes[rows], np.arange(n_classes + 1))
        return cls(function, function.take(X, rows), rows, starts, coefficients, b, pairs)

    def decide(self, X: Any, **options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs).

        Options are those of :func:`~svmbench.core.kernels.prediction.weighted_sums`.
        """
        values = np.empty((X.shape[0], len(self.b)))
        values[:] = self.b
        if self.function.name == "linear":
            points, X = without_empty_columns(self.points, X)
            values += X @ self._normals(points)
        else:
            sums = AllPairs(self.coefficients, self.starts, values)
            add_up(self.function, self.points, X, sums, **options)
        drop_small(values, SMALLEST_DECISION)
        return values

    def decide_own(self, X: Any, codes: np.ndarray) -> np.ndarray:
        """Return the decision values of rows in the pairs of their own class, given by `codes`.

        The shape is (n_samples, n_classes - 1): one value for each other class, in their order.
        """
        n_classes = len(self.starts) - 1
        b = np.empty((n_classes, n_classes - 1))
        negative, positive = self.pairs.negative, self.pairs.positive
        b[negative, positive - 1] = b[positive, negative] = self.b
        values = b[codes]
        if self.function.name == "linear":
            points, X = without_empty_columns(self.points, X)
            normals = self._normals(points)
            for c in np.unique(codes):
                involved, rows = np.flatnonzero((negative == c) | (positive == c)), codes == c
                values[rows] += X[rows] @ normals[:, involved]
        else:
            sums = OwnPairs(self.coefficients, self.starts, codes, values)
            add_up(self.function, self.points, X, sums)
        drop_small(values, SMALLEST_DECISION)
        return values

    def _normals(self, points: Any) -> np.ndarray:
        """Return the normal vectors of a linear kernel, shape (n_features, n_pairs)."""
        columns = points.T
        normals = np.zeros((columns.shape[0], len(self.b)))
        sums = AllPairs(self.coefficients, self.starts, normals)
        add_given_rows(sums, len(normals), lambda rows: columns[rows])
        return normals


class OvoModel:
    """The trained models of all pairs of a kernel solver, in LIBSVM's layout."""

    def __init__(self, training: PairsAlone | PairsTogether, n_classes: int) -> None:
        self.training, self.pairs, self.n_classes = training, training.pairs, n_classes
        # None if the points of the models are no training rows.
        self.shared = training.shared

    @property
    def models(self) -> list[Any]:
        """The model of each pair."""
        return self.training.models

    def _with_rows(self) -> SharedPoints:
        if self.shared is None:
            msg = "the points of this model are no training rows, and each pair has its own"
            raise AttributeError(msg)
        return self.shared

    @property
    def rows(self) -> np.ndarray | None:
        """Positions of the support vectors, class by class; None where points are no rows."""
        return None if self.shared is None else self.shared.rows

    @property
    def points(self) -> Any:
        """The support vectors of all pairs, each once."""
        return self._with_rows().points

    @property
    def n_support(self) -> np.ndarray:
        """Number of support vectors of each class, int32 of shape (n_classes,)."""
        return np.diff(self._with_rows().starts).astype(np.int32)

    @property
    def dual_coef(self) -> np.ndarray:
        """Coefficients as LIBSVM lays them out, shape (n_classes - 1, n_points).

        A point of class c has one with each other class, in the order of these.
        """
        return -self._with_rows().coefficients

    @property
    def intercept(self) -> np.ndarray:
        """The offsets, positive for the first class of a pair, shape (n_pairs,)."""
        if self.shared is not None:
            return -self.shared.b
        return -np.array([model.expansion_.b for model in self.models])

    def normals(self) -> np.ndarray:
        """Return the normal vectors of a linear kernel, signed like that, (n_pairs, n_features)."""
        return -np.vstack([model.expansion_.normals() for model in self.models])

    def decide(self, X: Any, **options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs)."""
        if self.shared is not None:
            return self.shared.decide(X, **options)
        return np.column_stack([model.expansion_.decide(X, **options) for model in self.models])

    def decide_by_class(self, X: Any, **options: Any) -> np.ndarray:
        """Return votes plus scaled sums of decision values, shape (n, n_classes)."""
        by_class = np.empty((X.shape[0], self.n_classes))
        for rows in row_blocks(X.shape[0], self.pairs):
            decisions = self.decide(X[rows], **options)
            by_class[rows] = values_of_classes(decisions, self.pairs, self.n_classes)
        return by_class

    def elect(self, X: Any, **options: Any) -> np.ndarray:
        """Return the class with most votes, the first if tied, as LIBSVM does, shape (n,)."""
        winners = np.empty(X.shape[0], dtype=np.int64)
        for rows in row_blocks(X.shape[0], self.pairs):
            decisions = self.decide(X[rows], **options).T
            winners[rows] = vote(decisions, self.pairs, self.n_classes, ties="first")
        return winners


class AllPairs(KernelSums):
    """The sums of all pairs at each row; see :class:`KernelSums`."""

    def __init__(
        self,
        coefficients: np.ndarray,  # (n_classes - 1, n_points)
        starts: np.ndarray,  # int (n_classes + 1,): where the points of each class begin
        # (n_rows, n_pairs): what they are added to. Pairs are in the order of
        # ``itertools.combinations``
        out: np.ndarray,
    ) -> None:
        self.values, self.starts, self.out = np.ascontiguousarray(coefficients.T), starts, out
        self.n_classes = len(starts) - 1
        self.tallest = max(SUMS_MIN_ROWS, SUMS_AT_A_TIME // (self.n_classes * (self.n_classes - 1)))

    def begin(self, top: int, bottom: int) -> np.ndarray:
        """Return a place for the sums of some rows; see :class:`KernelSums`."""
        return np.zeros((bottom - top, self.n_classes, self.n_classes - 1))

    def add(self, part: np.ndarray, first: int, K: np.ndarray) -> None:
        """Add those of some points, class by class; see :class:`KernelSums`."""
        K, end, starts = K.astype(np.float64, copy=False), first + K.shape[1], self.starts
        of_first, of_last = np.searchsorted(starts, [first, end - 1], side="right") - 1
        for c in range(of_first, of_last + 1):
            begin, stop = max(starts[c], first), min(starts[c + 1], end)
            part[:, c] += K[:, begin - first : stop - first] @ self.values[begin:stop]

    def end(self, part: np.ndarray, top: int, bottom: int) -> None:
        """Add up the two of each pair; see :class:`KernelSums`."""
        _add_both(part, self.out[top:bottom])


@compiled
def _add_both(sums: np.ndarray, out: np.ndarray) -> None:
    """Add the two sums of each pair to `out`."""
    n = sums.shape[1]
    for i in range(len(out)):
        row_sums, target = sums[i], out[i]
        # By squares: what one column of a row shares a cache line with serves the next columns.
        for top in range(0, n, PAIR_SQUARE):
            for left in range(top, n, PAIR_SQUARE):
                for a in range(top, min(top + PAIR_SQUARE, n)):
                    first = a * (n - 1) - a * (a - 1) // 2 - a - 1
                    for b in range(max(left, a + 1), min(left + PAIR_SQUARE, n)):
                        target[first + b] += row_sums[a, b - 1] + row_sums[b, a]


class OwnPairs(KernelSums):
    """The sums of each row in the pairs of its own class; see :class:`KernelSums`."""

    def __init__(
        self,
        coefficients: np.ndarray,  # as for :class:`AllPairs`
        starts: np.ndarray,
        codes: np.ndarray,  # int (n_rows,): the class of each row
        # (n_rows, n_classes - 1): what they are added to: one for each other class, in the order
        # of these
        out: np.ndarray,
    ) -> None:
        self.coefficients, self.starts = raw(coefficients), raw(starts)
        self.codes, self.out = raw(codes), out

    def begin(self, top: int, bottom: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes of some rows and the place of their sums; see :class:`KernelSums`."""
        return self.codes[top:bottom], self.out[top:bottom]

    def add(self, part: tuple[np.ndarray, np.ndarray], first: int, K: np.ndarray) -> None:
        """Add those of some points; see :class:`KernelSums`."""
        _add_own(K, first, self.coefficients, self.starts, *part)


@compiled_sums
def _add_own(
    K: np.ndarray,
    first: int,
    coefficients: np.ndarray,
    starts: np.ndarray,
    codes: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the products of kernel values, of rows and the points from `first` on, to `out`."""
    n_classes, last = len(starts) - 1, first + K.shape[1]
    for i in range(len(out)):
        row, c = K[i], codes[i]
        for d in range(n_classes):
            begin, end = max(starts[d], first), min(starts[d + 1], last)
            if begin >= end:
                continue
            values = row[begin - first : end - first]
            # A point of the row's class has a part in all pairs of that, another in one of them.
            these = range(n_classes - 1) if d == c else range(c - (c > d), c - (c > d) + 1)
            for e in these:
                weights, total = coefficients[e, begin:end], 0.0
                for k in range(len(values)):
                    total += weights[k] * values[k]
                out[i, e if d == c else d - (d > c)] += total


@compiled
def drop_small(values: np.ndarray, least: float) -> None:
    """Make 0 of values (m, n) that are smaller than `least`, in place."""
    for i in range(len(values)):
        row = values[i]
        for j in range(len(row)):
            row[j] = 0.0 if abs(row[j]) < least else row[j]


@compiled
def lay_out(
    starts: np.ndarray, offsets: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `places`, `others` and `signs` of a `Layout`."""
    places, signs = np.empty(offsets[-1], dtype=np.int64), np.empty(offsets[-1])
    others = np.empty(offsets[-1], dtype=np.int16)
    for p in range(len(first)):
        a, b, k = first[p], second[p], offsets[p]
        for this, other, sign in ((a, b - 1, -1.0), (b, a, 1.0)):
            for place in range(starts[this], starts[this + 1]):
                places[k], others[k], signs[k] = place, other, sign
                k += 1
    return places, others, signs


@compiled
def gather_support(
    coefficients: np.ndarray, places: np.ndarray, others: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the support vectors of all pairs; see `Layout.gather`."""
    position = np.full(starts[-1], -1)
    for k in range(len(places)):
        if coefficients[k] != 0.0:
            position[places[k]] = 0
    used = np.flatnonzero(position == 0)
    position[used] = np.arange(len(used))
    matrix = np.zeros((len(starts) - 2, len(used)))
    for k in range(len(places)):
        if coefficients[k] != 0.0:
            matrix[others[k], position[places[k]]] = coefficients[k]
    return used, np.searchsorted(used, starts), matrix


@dataclass(frozen=True)
class Layout:
    """The positions of the samples of each class and of the variables of each pair."""

    order: np.ndarray  # int (n_samples,): samples sorted by class; a place is a position in it
    starts: np.ndarray  # int (n_classes + 1,): first place of each class
    first: np.ndarray  # int (n_pairs,): negative class of each pair
    second: np.ndarray  # int (n_pairs,): positive class of each pair
    offsets: np.ndarray  # int (n_pairs + 1,): first variable of each pair
    places: np.ndarray  # int (n_variables,): place of each variable's sample
    # int16 (n_variables,): the other class of the pair, numbered without the sample's own class
    others: np.ndarray
    signs: np.ndarray  # (n_variables,): label of the sample in the pair, -1.0 or 1.0

    @staticmethod
    def of(
        codes: np.ndarray,  # int (n_samples,): classes, numbered from 0
        first: ArrayLike,  # int (n_pairs,): negative classes
        second: ArrayLike,  # int (n_pairs,): positive classes, of the higher numbers
    ) -> Layout:
        """Return the layout of pairs of classes."""
        a, b = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        sizes = np.bincount(codes)
        starts, offsets = (np.append(0, np.cumsum(each)) for each in (sizes, sizes[a] + sizes[b]))
        places, others, signs = lay_out(starts, offsets, a, b)
        order = np.argsort(codes, kind="stable")
        return Layout(order, starts, a, b, offsets, places, others, signs)

    def gather(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the support vectors of all pairs, from coefficients (n_variables,).

        These are their places (n_used,), ascending; the first of each class (n_classes + 1,); and
        the coefficients (n_classes - 1, n_used) in the order of `SharedPoints`.
        """
        support: tuple[np.ndarray, np.ndarray, np.ndarray] = gather_support(
            coefficients, self.places, self.others, self.starts
        )
        return support

    @property
    def codes(self) -> np.ndarray:
        """The class of each place, int of shape (n_samples,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def variables(self, p: int) -> slice:
        """Return the positions of the variables of pair `p`."""
        return slice(int(self.offsets[p]), int(self.offsets[p + 1]))


@dataclass
class JointData:
    """The samples of all pairs, for a solver that trains all pairs together."""

    layout: Layout
    points: Any  # dense or CSR (n_samples, n_features), sorted by class
    weights: np.ndarray | None = None  # (n_samples,): in the same order


@dataclass
class JointSolution:
    """The solution of all pairs."""

    layout: Layout
    coefficients: np.ndarray  # (n_variables,), signed: alpha_i y_i
    b: np.ndarray  # (n_pairs,): offsets
    decisions: np.ndarray  # (n_variables,): decision values that the search has kept, for `fit`
    n_iter: np.ndarray  # int (n_pairs,)
    stop_reasons: list[str]  # one a pair
    counters: dict[str, int]  # of all pairs together

    def shared_points(self, function: Any, points: Any, pairs: Pairs) -> SharedPoints:
        """Return the models over the support vectors of all pairs; `points` as in `JointData`."""
        layout = self.layout
        used, starts, coefficients = layout.gather(self.coefficients)
        taken, rows = function.take(points, used), layout.order[used]
        return SharedPoints(function, taken, rows, starts, coefficients, self.b, pairs)

    def with_decisions(self, decisions: np.ndarray) -> JointSolution:
        """Return the solution with the decision values of `SharedPoints.decide_own`."""
        return replace(self, decisions=decisions[self.layout.places, self.layout.others])

    def values(self, weights: np.ndarray | None, p: int | None = None) -> Values:
        """Return the values of the problem of pair `p`, by default of the sum of all problems.

        `weights` (n_samples,) are sorted by class. The sum of the problems is one problem on the
        samples of all pairs.
        """
        layout, beta = self.layout, self.coefficients
        chosen = slice(None) if p is None else layout.variables(p)
        b = np.repeat(self.b, np.diff(layout.offsets)) if p is None else self.b[p]
        f, y = self.decisions[chosen], layout.signs[chosen]
        square = float(beta[chosen] @ (f - b))
        weighted = None if weights is None else weights[layout.places[chosen]]
        return Values(f=f, square=square, y=y, alpha=beta[chosen] * y, weights=weighted)

    def objectives(
        self, problem: Problem, parameter: float, weights: np.ndarray | None
    ) -> tuple[float, float]:
        """Return the primal and the dual value, summed over the pairs."""
        values = self.values(weights)
        return problem.primal(values, parameter), problem.dual(values, parameter)


def warm_up_ovo() -> None:
    """Evaluate the models of three classes, a point of each, and count their votes."""
    warm_up_votes()
    X, codes = np.array([[0.0, 0.1], [1.0, 1.2], [0.0, 2.0]]), np.arange(3)
    shared = SharedPoints(
        function=KernelFunction("rbf", 1.0),
        points=X,
        rows=np.arange(3),
        starts=np.arange(4),
        coefficients=np.ones((2, 3)),
        b=np.zeros(3),
        pairs=Pairs(codes),
    )
    shared.decide(X)
    shared.decide_own(X, codes)
