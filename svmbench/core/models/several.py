"""What a kernel solver keeps of more than two classes: the models of all pairs.

What a user reads has LIBSVM's layout and its sign: positive for the first class of a pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.models import pairs, shared_points
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.models.pairs import row_blocks, values_of_classes, vote
from svmbench.core.models.shared_points import SharedPoints


class PairModels:
    """What a kernel solver keeps of more than two classes.

    Parameters
    ----------
    fitted : OneVsOne
        Fitted, of a kernel solver.

    Attributes
    ----------
    pairs : Pairs
    n_classes : int
    shared : SharedPoints or None
        None where the models' points are no training rows.
    """

    def __init__(self, fitted: OneVsOne) -> None:
        self.fitted, self.pairs = fitted, fitted.pairs_
        self.n_classes = len(fitted.classes_)
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
        """Return votes and, for less than half a vote, sums of decision values, (n, n_classes)."""
        found = np.empty((X.shape[0], self.n_classes))
        for rows in row_blocks(X.shape[0], self.pairs):
            decisions = self.decide(X[rows], **options)
            found[rows] = values_of_classes(decisions, self.pairs, self.n_classes)
        return found

    def elect(self, X: Any, **options: Any) -> np.ndarray:
        """Return the class with most votes, the first of equals, as LIBSVM does, shape (n,)."""
        winners = np.empty(X.shape[0], dtype=np.int64)
        for rows in row_blocks(X.shape[0], self.pairs):
            decisions = self.decide(X[rows], **options).T
            winners[rows] = vote(decisions, self.pairs, self.n_classes, ties="first")
        return winners


def warm_up() -> None:
    """Evaluate the models of pairs, and count their votes."""
    pairs.warm_up()
    shared_points.warm_up()
