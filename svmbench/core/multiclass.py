"""One against one: a two-class problem for every pair of classes, and a vote.

The papers' kernel programs separate more than two classes this way, LIBSVM among them. A pair's
problem is a set of positions in the training rows, so that all pairs can index one kernel matrix.

Ties
    The class with most votes wins; among equals, the one with the largest sum of decision values
    over its pairs; among equals still, the first. (LIBSVM takes the first at once.)
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from svmbench.core.arrays import canonical_csr, raw
from svmbench.core.base import (
    BinaryClassifier,
    Solver,
    TrainingData,
    reason_of_all,
    require_squares,
    sum_of_counters,
)
from svmbench.core.compiled import compiled
from svmbench.core.problems import Offset, Problem
from svmbench.core.shared_points import SharedPoints
from svmbench.core.widths import scale


@dataclass(frozen=True)
class Pair:
    """The two-class problem of two classes.

    Attributes
    ----------
    negative, positive : int
        Codes of the classes; ``negative < positive``.
    rows : ndarray of int of shape (n_pair,)
        Positions of their samples, ascending.
    signs : ndarray of shape (n_pair,)
        -1.0 and +1.0.
    """

    negative: int
    positive: int
    rows: np.ndarray
    signs: np.ndarray


def pairs_of(codes: np.ndarray) -> list[Pair]:
    """Return the problem of every pair of the classes that are present.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Classes as numbers from 0. A class without a sample has no pairs and gets no vote.
    """
    present = np.unique(codes)
    pairs = []
    for i, negative in enumerate(present):
        for positive in present[i + 1 :]:
            rows = np.flatnonzero((codes == negative) | (codes == positive))
            signs = np.where(codes[rows] == positive, 1.0, -1.0)
            pairs.append(Pair(int(negative), int(positive), rows, signs))
    return pairs


def vote(
    decisions: np.ndarray, pairs: list[Pair], n_classes: int, *, ties: str = "sum"
) -> np.ndarray:
    """Return the class that wins most pairs, of each sample.

    Parameters
    ----------
    decisions : ndarray of shape (n_pairs, ...)
        Decision values, in the order of `pairs`; 0 goes to the positive class, as in `predict`.
    pairs : list of Pair
    n_classes : int
    ties : {"sum", "first"}, default="sum"
        Among classes with equal votes: the largest sum of decision values, or the first.

    Returns
    -------
    ndarray of int of shape (...)
    """
    if ties not in ("sum", "first"):
        msg = f"ties must be 'sum' or 'first', got ties={ties!r}"
        raise ValueError(msg)
    shape = decisions.shape[1:]
    winners = np.empty(int(np.prod(shape)), dtype=np.int64)
    _elect(
        raw(decisions.reshape(len(pairs), -1)),
        raw(np.array([pair.negative for pair in pairs])),
        raw(np.array([pair.positive for pair in pairs])),
        n_classes,
        ties == "sum",
        winners,
    )
    return winners.reshape(shape)


@compiled
def _elect(
    decisions: np.ndarray,
    negative: np.ndarray,
    positive: np.ndarray,
    n_classes: int,
    sums_decide: bool,
    winners: np.ndarray,
) -> None:
    votes, sums = np.empty(n_classes, dtype=np.int64), np.empty(n_classes)
    for i in range(len(winners)):
        votes[:] = 0
        sums[:] = 0.0
        for k in range(len(negative)):
            value = decisions[k, i]
            votes[positive[k] if value >= 0.0 else negative[k]] += 1
            sums[positive[k]] += value
            sums[negative[k]] -= value
        best = 0
        for c in range(1, n_classes):
            more = votes[c] > votes[best]
            if more or (sums_decide and votes[c] == votes[best] and sums[c] > sums[best]):
                best = c
        winners[i] = best


class OneVsOne(ClassifierMixin, Solver):
    """A classifier of any number of classes, from a two-class solver.

    The default gamma of a kernel solver is that of all samples, the same for every pair.

    It keeps the solver's contract: ``prepare``, ``train`` and ``certify`` are those of its pairs,
    one after another. Not declared as a solver of its own: a run wraps a two-class solver in it
    where a data set has more classes than two.

    Parameters
    ----------
    estimator : BinaryClassifier
        The two-class solver; cloned for every pair.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of BinaryClassifier
        In the order of `pairs_`.
    pairs_ : list of Pair
    objective_ : float
        Sum over the pairs.
    n_iter_ : int
        Sum over the pairs.
    stop_reason_ : str
        That of all pairs, or the first that is not ``"converged"``.
    counters_ : dict
        Sums over the pairs.
    shared_ : SharedPoints or None
        The pairs' expansions over the support vectors of all, once `certify` or `conclude` has
        run; None of a solver whose model is no expansion over training rows.

    Examples
    --------
    >>> from svmbench.core.kernel.smo import SMO
    >>> from svmbench.core.multiclass import OneVsOne
    >>> X, y = [[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]], ["a", "a", "b", "b", "c", "c"]
    >>> OneVsOne(SMO(C=10.0, gamma=1.0)).fit(X, y).predict([[0.0], [1.0], [2.0]]).tolist()
    ['a', 'b', 'c']
    """

    shared_: SharedPoints | None = None

    def __init__(self, estimator: BinaryClassifier) -> None:
        self.estimator = estimator

    @property
    def problem(self) -> Problem:
        """The problem of every pair."""
        return self.estimator.problem

    @property
    def offset(self) -> Offset:
        """What every pair does with its offset."""
        return self.estimator.offset

    def _pass_on(self, model: Solver) -> None:
        """Also translate the classes of a part: prepared labels are positions in `classes_`."""
        present = getattr(model, "classes_", None)
        super()._pass_on(model)
        if present is not None:
            model.classes_ = self.classes_[present.astype(np.int64)]

    def prepare(self, X: Any, y: Any, sample_weight: np.ndarray | None = None) -> TrainingData:
        """Validate, and prepare every pair's own data; weights where the solver takes them."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self.estimator.declaration.sparse else False,
            dtype=np.float64,
            order="C",
        )
        check_classification_targets(y)
        X = canonical_csr(X) if sp.issparse(X) else X
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            msg = f"one against one needs two classes; the data has one only: {self.classes_[0]}"
            raise ValueError(msg)
        self.pairs_ = pairs_of(codes)
        estimator = clone(self.estimator)
        pairwise = get_tags(estimator).input_tags.pairwise
        if not pairwise:
            require_squares(X)
        if getattr(estimator, "gamma", None) == "scale" and not pairwise:
            # Every pair has the kernel of the whole problem, as in LIBSVM and scikit-learn.
            estimator.set_params(gamma=scale(X))
        # What is not fitted has its parameters alone, and a clone would check each of them.
        self.estimators_ = [copy(estimator) for _ in self.pairs_]
        parts: list[TrainingData] = []
        for pair, model in zip(self.pairs_, self.estimators_, strict=True):
            own = {} if sample_weight is None else {"sample_weight": sample_weight[pair.rows]}
            part = X[np.ix_(pair.rows, pair.rows)] if pairwise else X[pair.rows]
            # The first has its parameters and inputs checked; those of the others are the same.
            model._comes_validated = bool(parts)
            parts.append(model.prepare(part, pair.signs, **own))
            del model._comes_validated
        return TrainingData(X=X, y=codes.astype(np.float64), native=parts)

    def train(self, data: TrainingData) -> Self:
        """Train every pair."""
        for estimator, part in zip(self.estimators_, data.native, strict=True):
            estimator.train(part)
        self.n_iter_ = sum(int(np.max(e.n_iter_)) for e in self.estimators_)
        self.stop_reason_ = reason_of_all(self.estimators_)
        self.counters_ = sum_of_counters(self.estimators_)
        self.shared_ = None
        return self

    def certify(self, data: TrainingData) -> Self:
        """Set ``objective_``, the sum of the pairs' objectives."""
        for estimator, part in zip(self.estimators_, data.native, strict=True):
            estimator.certify(part)
        return self._sum_up(data)

    def conclude(self, data: TrainingData) -> Self:
        """Set what `certify` sets, as `fit` of every pair does."""
        for estimator, part in zip(self.estimators_, data.native, strict=True):
            estimator.conclude(part)
        return self._sum_up(data)

    def _sum_up(self, data: TrainingData) -> Self:
        models = self.estimators_
        self.objective_ = float(sum(e.objective_ for e in models))
        expansions = [getattr(model, "expansion_", None) for model in models]
        if all(each is not None and each.rows is not None for each in expansions):
            kind = models[0].shared_points
            self.shared_ = kind.of(models, self.pairs_, data.X, data.y.astype(np.int64))
        return self

    def pair_decisions(self, X: Any) -> np.ndarray:
        """Return every pair's decision values, shape (n_samples, n_pairs).

        Kernel values are computed once for all pairs that a support vector is part of.
        """
        check_is_fitted(self, "estimators_")
        if self.shared_ is not None:
            return self.estimators_[0].decide_together(self.shared_, X)
        return np.column_stack([e.decision_function(X) for e in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X` by the vote of the pairs, shape (n_samples,)."""
        decisions = np.ascontiguousarray(self.pair_decisions(X).T)
        return self.classes_[vote(decisions, self.pairs_, len(self.classes_))]
