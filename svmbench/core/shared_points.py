"""The models of all pairs of classes as one, over points that they share.

    d_p(x) = sum_k B_pk K(z_k, x) + b_p,   one row of B for each pair of classes

The points z_k are the support vectors of all pairs, each once, so that a kernel value serves every
pair that its point is part of. As in LIBSVM they stand class by class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from svmbench.core.models import Expansion
from svmbench.core.prediction import weighted_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from svmbench.core.multiclass import Pair

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
    pairs : sequence of Pair
    """

    function: Any
    points: Any
    rows: np.ndarray
    codes: np.ndarray
    coefficients: np.ndarray
    b: np.ndarray
    pairs: Sequence[Pair]

    @classmethod
    def of(cls, models: Sequence[Any], pairs: Sequence[Pair], X: Any, codes: np.ndarray) -> Self:
        """Return the points of several models, each trained on the rows of its pair.

        Parameters
        ----------
        models : sequence of KernelClassifier
            Fitted, over training rows.
        pairs : sequence of Pair
        X : ndarray or csr_array of shape (n_samples, n_features)
        codes : ndarray of int of shape (n_samples,)
            Classes, as positions in ``classes_``.
        """
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
        points = function.take(X, rows)
        return cls(function, points, rows, codes[rows], coefficients, b, pairs)

    def expansion(self, p: int) -> Expansion:
        """Return the model of pair `p` alone, over rows of its own samples."""
        used = np.flatnonzero(self.coefficients[p])
        used = used[np.argsort(self.rows[used])]
        return Expansion(
            self.function,
            self.function.take(self.points, used),
            self.coefficients[p, used],
            float(self.b[p]),
            rows=np.searchsorted(self.pairs[p].rows, self.rows[used]),
        )

    def decide(self, X: Any, **options: Any) -> np.ndarray:
        """Return the decision values of each row of `X` for each pair, (n_samples, n_pairs).

        Options are those of :func:`~svmbench.core.prediction.weighted_sums`.
        """
        values = self.b + weighted_sums(
            self.function, self.points, self.coefficients.T, X, **options
        )
        values[np.abs(values) < NOTHING] = 0.0
        return values

    def laid_out(self, n_classes: int) -> np.ndarray:
        """Return the coefficients as LIBSVM lays them out, shape (n_classes - 1, n_points).

        A point of class c has one with each other class, in the order of these.
        """
        laid_out = np.zeros((n_classes - 1, len(self.rows)))
        for pair, own in zip(self.pairs, self.coefficients, strict=True):
            first, second = self.codes == pair.negative, self.codes == pair.positive
            laid_out[pair.positive - 1, first] = -own[first]
            laid_out[pair.negative, second] = -own[second]
        return laid_out
