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
from itertools import combinations
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
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
from svmbench.core.copies import unfitted
from svmbench.core.given_kernel import PRECOMPUTED
from svmbench.core.joint_pairs import JointData, Layout
from svmbench.core.problems import Offset, Problem
from svmbench.core.shared_points import SharedPoints
from svmbench.core.weights import effective
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
    present = np.unique(codes).tolist()
    is_in = {code: codes == code for code in present}
    pairs = []
    for negative, positive in combinations(present, 2):
        rows = np.flatnonzero(is_in[negative] | is_in[positive])
        signs = np.where(is_in[positive][rows], 1.0, -1.0)
        pairs.append(Pair(negative, positive, rows, signs))
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


def prepare_part(model: BinaryClassifier, X: Any, signs: np.ndarray, **own: Any) -> TrainingData:
    """Return what a solver prepares of a pair: of samples and parameters that were checked."""
    model._comes_validated = True
    part = model.prepare(X, signs, **own)
    del model._comes_validated
    return part


class OneVsOne(ClassifierMixin, Solver):
    """A classifier of any number of classes, from a two-class solver.

    The default gamma of a kernel solver is that of all samples, the same for every pair.

    It keeps the solver's contract: ``prepare``, ``train`` and ``certify`` are those of its pairs,
    one after another, or of all at once where the solver shares work between them
    (``trains_pairs_together``). Not declared as a solver of its own: a run wraps a two-class solver
    in it where a data set has more classes than two.

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
    objective_, dual_objective_ : float
        Sums over the pairs; the second of kernel solvers alone.
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

    #: Whether what `prepare` is handed, and the parameters, were checked before.
    _comes_validated: bool = False

    #: The models of the pairs; None where they were trained together and nobody has asked yet.
    _models: list[Any] | None = None

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
        if not self._comes_validated:
            X, y = self._validated(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            msg = f"one against one needs two classes; the data has one only: {self.classes_[0]}"
            raise ValueError(msg)
        self.pairs_ = pairs_of(codes)
        estimator = unfitted(self.estimator)
        pairwise = getattr(estimator, "kernel", None) == PRECOMPUTED
        if getattr(estimator, "gamma", None) == "scale" and not pairwise:
            # Every pair has the kernel of the whole problem, as in LIBSVM and scikit-learn.
            estimator.gamma = scale(X)
        together = getattr(estimator, "trains_pairs_together", None)
        if not pairwise and together is not None and together(np.bincount(codes)):
            return self._prepare_jointly(X, codes, estimator, sample_weight)
        # What is not fitted has its parameters alone, and a clone would check each of them.
        self._models = [copy(estimator) for _ in self.pairs_]
        parts: list[TrainingData] = []
        for pair, model in zip(self.pairs_, self._models, strict=True):
            own = {} if sample_weight is None else {"sample_weight": sample_weight[pair.rows]}
            part = X[np.ix_(pair.rows, pair.rows)] if pairwise else X[pair.rows]
            parts.append(prepare_part(model, part, pair.signs, **own))
        return TrainingData(X=X, y=codes.astype(np.float64), native=parts)

    def _validated(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Check parameters, inputs and labels; float64 C-ordered or CSR, labels."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self.estimator.declaration.sparse else False,
            dtype=np.float64,
            order="C",
        )
        check_classification_targets(y)
        self.estimator._check_parameters()
        if getattr(self.estimator, "kernel", None) != PRECOMPUTED:
            require_squares(X)
        return canonical_csr(X) if sp.issparse(X) else X, y

    def _prepare_jointly(
        self, X: Any, codes: np.ndarray, estimator: Any, sample_weight: np.ndarray | None
    ) -> TrainingData:
        """Lay the pairs out; the solver prepares the first, and all have the same parameters."""
        pairs, y = self.pairs_, codes.astype(np.float64)
        first = pairs[0]
        prepare_part(estimator, X[first.rows], first.signs)
        self._models, self._first = None, estimator
        negative, positive = [p.negative for p in pairs], [p.positive for p in pairs]
        layout = Layout.of(codes, negative, positive)
        weights = None if sample_weight is None else effective(sample_weight, y)[layout.order]
        joint = JointData(layout, X[layout.order], weights)
        return TrainingData(X=X, y=y, native=joint, weights=sample_weight)

    @property
    def estimators_(self) -> list[Any]:
        """The model of each pair."""
        if not hasattr(self, "n_iter_"):
            msg = "there are no models before fit"
            raise AttributeError(msg)
        if self._models is None:
            self._models = [self._model_of(p) for p in range(len(self.pairs_))]
        return self._models

    @property
    def iterations(self) -> np.ndarray:
        """The iterations of each pair, int of shape (n_pairs,)."""
        if self._models is None:
            return self._found.n_iter
        return np.array([int(np.max(model.n_iter_)) for model in self._models])

    @property
    def gamma_(self) -> float:
        """The width that the kernels of all pairs have, of a kernel solver."""
        return float(self._first.gamma_ if self._models is None else self._models[0].gamma_)

    def _model_of(self, p: int) -> Any:
        """Return the model of a pair that was trained with the others."""
        assert self.shared_ is not None, "pairs that are trained together share their points"
        model, found = copy(self._first), self._found
        model.expansion_ = self.shared_.expansion(p)
        values = found.values(self._weights, p)
        model.objective_ = self.problem.primal(values, model.C)
        model.dual_objective_ = self.problem.dual(values, model.C)
        model.n_iter_, model.stop_reason_ = int(found.n_iter[p]), found.stop_reasons[p]
        model.counters_ = {"support_vectors": len(model.expansion_.coefficients)}
        return model

    def train(self, data: TrainingData) -> Self:
        """Train every pair."""
        if isinstance(data.native, JointData):
            return self._train_jointly(data.native)
        models = self._models or []
        for model, part in zip(models, data.native, strict=True):
            model.train(part)
        self.n_iter_ = sum(int(np.max(model.n_iter_)) for model in models)
        self.stop_reason_ = reason_of_all([model.stop_reason_ for model in models])
        self.counters_ = sum_of_counters(models)
        self.shared_ = None
        return self

    def _train_jointly(self, joint: JointData) -> Self:
        """Train all pairs at once; their models are made when somebody asks for them."""
        joint.found = found = self._first.train_jointly(joint)
        self._models, self._found, self._weights = None, found, joint.weights
        self.n_iter_, self.counters_ = int(found.n_iter.sum()), found.counters
        self.stop_reason_ = reason_of_all(found.stop_reasons)
        self.shared_ = found.shared_points(self._first.function, joint.points, self.pairs_)
        return self

    def certify(self, data: TrainingData) -> Self:
        """Set ``objective_``, the sum of the pairs' objectives."""
        if isinstance(data.native, JointData):
            joint = data.native
            assert self.shared_ is not None, "train comes before certify"
            assert joint.found is not None, "train comes before certify"
            joint.found = joint.found.with_decisions(self.shared_.decide(joint.points))
            return self._appraise(joint)
        for estimator, part in zip(self.estimators_, data.native, strict=True):
            estimator.certify(part)
        return self._sum_up(data)

    def conclude(self, data: TrainingData) -> Self:
        """Set what `certify` sets, as `fit` of every pair does.

        Where all pairs were trained together that is from the search's own gradient, which is
        exact up to 1,000 samples, and beyond them near the gap of each pair.
        """
        if isinstance(data.native, JointData):
            return self._appraise(data.native)
        for estimator, part in zip(self.estimators_, data.native, strict=True):
            estimator.conclude(part)
        return self._sum_up(data)

    def _appraise(self, joint: JointData) -> Self:
        """Set the objectives from what the last training found."""
        assert joint.found is not None, "train comes before certify"
        values, C = joint.found.values(joint.weights), self._first.C
        self.objective_ = self.problem.primal(values, C)
        self.dual_objective_ = self.problem.dual(values, C)
        if not np.isfinite(self.objective_):
            kernel = self._first.kernel
            msg = f"the {kernel} kernel overflows on the training samples; scale the features"
            raise FloatingPointError(msg)
        self._found, self._weights, self._models = joint.found, joint.weights, None
        return self

    def _sum_up(self, data: TrainingData) -> Self:
        models = self.estimators_
        self.objective_ = float(sum(e.objective_ for e in models))
        if all(hasattr(model, "dual_objective_") for model in models):
            self.dual_objective_ = float(sum(model.dual_objective_ for model in models))
        expansions = [getattr(model, "expansion_", None) for model in models]
        if all(each is not None and each.rows is not None for each in expansions):
            kind = models[0].shared_points
            self.shared_ = kind.of(models, self.pairs_, data.X, data.y.astype(np.int64))
        return self

    def pair_decisions(self, X: Any) -> np.ndarray:
        """Return every pair's decision values, shape (n_samples, n_pairs).

        Kernel values are computed once for all pairs that a support vector is part of.
        """
        check_is_fitted(self, "n_iter_")
        if self.shared_ is not None:
            model = self._first if self._models is None else self._models[0]
            return model.decide_together(self.shared_, X)
        return np.column_stack([e.decision_function(X) for e in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X` by the vote of the pairs, shape (n_samples,)."""
        decisions = np.ascontiguousarray(self.pair_decisions(X).T)
        return self.classes_[vote(decisions, self.pairs_, len(self.classes_))]
