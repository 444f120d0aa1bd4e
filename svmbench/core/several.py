"""The model of more than two classes of a kernel solver: the models of all pairs as one.

    d_p(x) = sum_k B_pk K(z_k, x) + b_p,   one row of B for each pair of classes

The points z_k are the support vectors of all pairs, each once, so that a kernel value serves every
pair that its point is part of. As in LIBSVM they stand class by class, and what a user reads has
its layout and its sign: positive for the first class of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.multiclass import OneVsOne, Pair, vote
from svmbench.core.prediction import weighted_sums

#: A decision value below this is 0, and its pair even: values of narrow kernels end at 1e-308.
NOTHING = 1e-300


@dataclass(frozen=True)
class SharedPoints:
    """The expansions of all pairs over the rows that are support vectors of any.

    Attributes
    ----------
    function : KernelFunction
    points : ndarray or csr_array of shape (n_points, n_features)
    rows : ndarray of int of shape (n_points,)
        Positions of the points in the training samples, class by class, ascending.
    codes : ndarray of int of shape (n_points,)
        Their classes, as positions in ``classes_``.
    coefficients : ndarray of shape (n_pairs, n_points)
        Signed, positive for the second class of a pair.
    b : ndarray of shape (n_pairs,)
    """

    function: Any
    points: Any
    rows: np.ndarray
    codes: np.ndarray
    coefficients: np.ndarray
    b: np.ndarray

    @staticmethod
    def of(models: list[Any], pairs: list[Pair], X: Any, codes: np.ndarray) -> SharedPoints:
        """Return the points of several models, each trained on the rows of its pair."""
        where = [pair.rows[m.support_] for pair, m in zip(pairs, models, strict=True)]
        rows = np.unique(np.concatenate(where))
        rows = rows[np.argsort(codes[rows], kind="stable")]
        place = np.empty(len(codes), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        coefficients = np.zeros((len(pairs), len(rows)))
        for own, at, model in zip(coefficients, where, models, strict=True):
            own[place[at]] = model.expansion_.coefficients
        b = np.array([model.expansion_.b for model in models])
        function = models[0].expansion_.function
        return SharedPoints(function, function.take(X, rows), rows, codes[rows], coefficients, b)

    def decide(self, X: Any, **options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs).

        Options are those of :func:`~svmbench.core.prediction.weighted_sums`.
        """
        values = self.b + weighted_sums(
            self.function, self.points, self.coefficients.T, X, **options
        )
        values[np.abs(values) < NOTHING] = 0.0
        return values


class PairModels:
    """What a kernel solver keeps of more than two classes.

    Parameters
    ----------
    fitted : OneVsOne
        Fitted.
    X : ndarray or csr_array of shape (n_samples, n_features)
        What it was fitted on, validated.
    codes : ndarray of int of shape (n_samples,)
        Classes, as positions in ``classes_``.

    Attributes
    ----------
    models : list of KernelClassifier
    pairs : list of Pair
    n_classes : int
    shared : SharedPoints or None
        None where the models' points are no training rows.
    """

    def __init__(self, fitted: OneVsOne, X: Any, codes: np.ndarray) -> None:
        self.models, self.pairs = fitted.estimators_, fitted.pairs_
        self.n_classes = len(fitted.classes_)
        self.shared = None
        if all(model.expansion_.rows is not None for model in self.models):
            self.shared = SharedPoints.of(self.models, self.pairs, X, codes)

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
        codes = self._with_rows().codes
        return np.bincount(codes, minlength=self.n_classes).astype(np.int32)

    @property
    def dual_coef(self) -> np.ndarray:
        """Coefficients as LIBSVM lays them out, shape (n_classes - 1, n_points).

        A point of class c has one with each other class, in the order of these.
        """
        shared = self._with_rows()
        laid_out = np.zeros((self.n_classes - 1, len(shared.rows)))
        for pair, own in zip(self.pairs, shared.coefficients, strict=True):
            first, second = shared.codes == pair.negative, shared.codes == pair.positive
            laid_out[pair.positive - 1, first] = -own[first]
            laid_out[pair.negative, second] = -own[second]
        return laid_out

    @property
    def intercept(self) -> np.ndarray:
        """The offsets, positive for the first class of a pair, shape (n_pairs,)."""
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
        """Return votes and, for less than half a vote, sums of decision values, (n, n_classes)."""
        found = self.decide(X, **options)
        votes = np.zeros((len(found), self.n_classes))
        sums = np.zeros_like(votes)
        for pair, d in zip(self.pairs, found.T, strict=True):
            votes[:, pair.positive] += d > 0.0
            votes[:, pair.negative] += d <= 0.0
            sums[:, pair.positive] += d
            sums[:, pair.negative] -= d
        return votes + sums / (3.0 * (np.abs(sums) + 1.0))

    def elect(self, X: Any, **options: Any) -> np.ndarray:
        """Return the class with most votes, the first of equals, as LIBSVM does, shape (n,)."""
        found = np.ascontiguousarray(self.decide(X, **options).T)
        return vote(found, self.pairs, self.n_classes, ties="first")
