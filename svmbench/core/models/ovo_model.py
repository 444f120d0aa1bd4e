"""The one-vs-one model of a kernel solver: the decision functions of all pairs of classes.

    d_ab(x) = sum_{k of a} B_bk K(z_k, x) + sum_{k of b} B_ak K(z_k, x) + b_ab

The points z_k are the support vectors of all pairs, each once, so that one kernel value serves all
pairs of its point. As in LIBSVM, points are sorted by class, and each has a coefficient for every
other class. `SharedPoints` has the signs of this package, positive for the second class of a pair;
`OvoModel` has LIBSVM's, positive for the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.pair_sums import AllPairs, OwnPairs, drop_small
from svmbench.core.kernels.prediction import add_given_rows, add_up
from svmbench.core.models.kernel_base import Expansion
from svmbench.core.models.pairs import Pairs, row_blocks, values_of_classes, vote, warm_up_votes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from svmbench.core.models.multiclass import OneVsOne

#: A smaller decision value counts as 0, a tie: the values of narrow kernels underflow at 1e-308.
SMALLEST_DECISION = 1e-300


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

    def expansion(self, p: int) -> Expansion:
        """Return the model of pair `p`, over rows of the pair's samples."""
        pair, starts = self.pairs[p], self.starts
        a, b = pair.negative, pair.positive
        places = np.r_[starts[a] : starts[a + 1], starts[b] : starts[b + 1]]
        other = np.repeat([b - 1, a], [starts[a + 1] - starts[a], starts[b + 1] - starts[b]])
        coefficients = self.coefficients[other, places]
        used = np.flatnonzero(coefficients)
        used = used[np.argsort(self.rows[places[used]])]
        return Expansion(
            self.function,
            self.function.take(self.points, places[used]),
            coefficients[used],
            float(self.b[p]),
            rows=np.searchsorted(pair.rows, self.rows[places[used]]),
        )

    def decide(self, X: Any, **options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs).

        Options are those of :func:`~svmbench.core.kernels.prediction.weighted_sums`.
        """
        values = np.empty((X.shape[0], len(self.b)))
        values[:] = self.b
        if self.function.name == "linear":
            values += X @ self._normals()
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
            normals = self._normals()
            for c in np.unique(codes):
                own, rows = np.flatnonzero((negative == c) | (positive == c)), codes == c
                values[rows] += X[rows] @ normals[:, own]
        else:
            sums = OwnPairs(self.coefficients, self.starts, codes, values)
            add_up(self.function, self.points, X, sums)
        drop_small(values, SMALLEST_DECISION)
        return values

    def _normals(self) -> np.ndarray:
        """Return the normal vectors of a linear kernel, shape (n_features, n_pairs)."""
        columns = self.points.T
        normals = np.zeros((columns.shape[0], len(self.b)))
        sums = AllPairs(self.coefficients, self.starts, normals)
        add_given_rows(sums, len(normals), lambda rows: columns[rows])
        return normals


class OvoModel:
    """The models of all pairs of a fitted `OneVsOne` of a kernel solver, in LIBSVM's layout."""

    def __init__(self, fitted: OneVsOne) -> None:
        self.fitted, self.pairs = fitted, fitted.pairs_
        self.n_classes = len(fitted.classes_)
        # None if the points of the models are no training rows.
        self.shared = fitted.shared_

    @property
    def models(self) -> list[Any]:
        """The model of each pair."""
        return self.fitted.estimators_

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
        found = np.empty((X.shape[0], self.n_classes))
        for rows in row_blocks(X.shape[0], self.pairs):
            decisions = self.decide(X[rows], **options)
            found[rows] = values_of_classes(decisions, self.pairs, self.n_classes)
        return found

    def elect(self, X: Any, **options: Any) -> np.ndarray:
        """Return the class with most votes, the first if tied, as LIBSVM does, shape (n,)."""
        winners = np.empty(X.shape[0], dtype=np.int64)
        for rows in row_blocks(X.shape[0], self.pairs):
            decisions = self.decide(X[rows], **options).T
            winners[rows] = vote(decisions, self.pairs, self.n_classes, ties="first")
        return winners


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
