"""One-vs-one classification: a two-class problem for every pair of classes, and a vote.

LIBSVM and the other kernel programs of the papers separate more than two classes this way. A pair's
problem is a set of positions in the training rows, so that all pairs can index one kernel matrix
(`pairs.py`). Pairs are trained one by one (`PairsAlone`), or together by a solver that shares work
between them (`PairsTogether`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from svmbench.core.contract.base import (
    BinaryClassifier,
    Solver,
    TrainingData,
    effective,
    reason_of_all,
    require_squares,
    sum_of_counters,
    unfitted,
    validated,
    warn_if_useless,
)
from svmbench.core.contract.problems import Offset, Problem
from svmbench.core.contract.sklearn_bases import ClassifierMixin
from svmbench.core.kernels.kernels import PRECOMPUTED, gamma_value
from svmbench.core.models.ovo_model import JointData, JointSolution, Layout, SharedPoints
from svmbench.core.models.pairs import Pairs, row_blocks, vote


class Objectives(NamedTuple):
    """The sums of the objectives of all pairs; the dual is None if a pair has none."""

    primal: float
    dual: float | None


class PairsAlone:
    """The pairs, each trained by a copy of an unfitted estimator, one after another."""

    # Set by `train`.
    iterations: np.ndarray  # int (n_pairs,): of each pair
    stop_reason: str  # the first that is not "converged"
    counters: dict[str, int]  # sums over the pairs

    def __init__(self, estimator: Any, pairs: Pairs) -> None:
        self.models, self.pairs = [unfitted(estimator) for _ in pairs], pairs
        # A model with the kernel of all pairs.
        self.kernel_model = self.models[0]
        # The models over shared points, set when the objectives are evaluated.
        self.shared: SharedPoints | None = None

    def prepare(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> TrainingData:
        """Return the training data, and in `native` those of each pair."""
        parts = []
        for pair, model in zip(self.pairs, self.models, strict=True):
            pair_weights = None if weights is None else weights[pair.rows]
            is_given = getattr(model, "kernel", None) == PRECOMPUTED
            part = X[np.ix_(pair.rows, pair.rows)] if is_given else X[pair.rows]
            parts.append(prepare_part(model, part, pair.signs, pair_weights))
        return TrainingData(X=X, y=codes.astype(np.float64), native=parts, weights=weights)

    def train(self, data: TrainingData) -> None:
        """Train one pair after another."""
        self.shared = None
        for model, part in zip(self.models, data.native, strict=True):
            model.train(part)
        self.iterations = np.array([int(np.max(model.n_iter_)) for model in self.models])
        self.stop_reason = reason_of_all([model.stop_reason_ for model in self.models])
        self.counters = sum_of_counters(self.models)

    def evaluate_objective(self, data: TrainingData) -> Objectives:
        """Evaluate the objective of every model, and sum up."""
        for model, part in zip(self.models, data.native, strict=True):
            model.evaluate_objective(part)
        return self._sum_up(data)

    def finish_fit(self, data: TrainingData) -> Objectives:
        """End the fit of every model, and sum up."""
        for model, part in zip(self.models, data.native, strict=True):
            model.finish_fit(part)
        return self._sum_up(data)

    def _sum_up(self, data: TrainingData) -> Objectives:
        models, dual = self.models, None
        if all(hasattr(model, "dual_objective_") for model in models):
            dual = float(sum(model.dual_objective_ for model in models))
        expansions = [getattr(model, "expansion_", None) for model in models]
        if all(each is not None and each.rows is not None for each in expansions):
            kind = models[0].shared_points
            self.shared = kind.of(models, self.pairs, data.X, data.y.astype(np.int64))
        return Objectives(float(sum(model.objective_ for model in models)), dual)


class PairsTogether:
    """All pairs, trained at once by an unfitted estimator that shares work between them.

    It has the interface of `PairsAlone`. Models of single pairs are made when they are first read.
    """

    iterations: np.ndarray
    stop_reason: str
    counters: dict[str, int]
    solution: JointSolution

    def __init__(self, estimator: Any, pairs: Pairs) -> None:
        self.kernel_model, self.pairs = estimator, pairs
        self.shared: SharedPoints | None = None
        self._weights: np.ndarray | None = None
        # C or nu of the problem.
        self._parameter = np.nan
        self._models: list[Any] | None = None

    @property
    def models(self) -> list[Any]:
        """The model of each pair."""
        if self._models is None:
            self._models = [self._model_of(p) for p in range(len(self.pairs))]
        return self._models

    def prepare(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> TrainingData:
        """Return the training data, and in `native` the layout of all pairs."""
        model = self.kernel_model
        model.classes_, model.n_features_in_ = np.array([-1.0, 1.0]), X.shape[1]
        model.gamma_ = float(model.gamma)
        layout = Layout.of(codes, self.pairs.negative, self.pairs.positive)
        sorted_weights = None if weights is None else effective(weights, codes)[layout.order]
        joint = JointData(layout, X[layout.order], sorted_weights)
        return TrainingData(X=X, y=codes.astype(np.float64), native=joint, weights=weights)

    def train(self, data: TrainingData) -> None:
        """Train all pairs at once."""
        joint: JointData = data.native
        self.solution = self.kernel_model.train_jointly(joint)
        self._parameter = self.kernel_model._problem_parameter(data)
        self.iterations, self.counters = self.solution.n_iter, self.solution.counters
        self.stop_reason = reason_of_all(self.solution.stop_reasons)
        self._weights, self._models = joint.weights, None
        self.shared = self.solution.shared_points(
            self.kernel_model.function, joint.points, self.pairs
        )

    def evaluate_objective(self, data: TrainingData) -> Objectives:
        """Evaluate the objectives from the models and the samples alone."""
        assert self.shared is not None, "train comes before evaluate_objective"
        joint: JointData = data.native
        decisions = self.shared.decide_own(joint.points, joint.layout.codes)
        self.solution, self._models = self.solution.with_decisions(decisions), None
        return self.finish_fit(data)

    def finish_fit(self, data: TrainingData) -> Objectives:
        """Evaluate the objectives from the search's own gradient.

        The gradient is exact up to 1,000 samples, and beyond that right to about each pair's gap.
        """
        model = self.kernel_model
        primal, dual = self.solution.objectives(model.problem, self._parameter, self._weights)
        if not np.isfinite(primal):
            msg = f"the {model.kernel} kernel overflows on the training samples; scale the features"
            raise FloatingPointError(msg)
        # The warning treats all pairs as one problem.
        model.objective_, model.stop_reason_ = primal, self.stop_reason
        model.dual_objective_ = dual
        warn_if_useless(model, data)
        return Objectives(primal, dual)

    def _model_of(self, p: int) -> Any:
        """Return the model of pair `p`; only all pairs together have counters of the search."""
        assert self.shared is not None, "train comes before models"
        model, values = copy(self.kernel_model), self.solution.values(self._weights, p)
        model.keep_pair(self.shared, p)
        model.expansion_ = replace(model.expansion_, rho=values.rho)
        model.objective_ = model.problem.primal(values, self._parameter)
        model.dual_objective_ = model.problem.dual(values, self._parameter)
        model.n_iter_ = int(self.solution.n_iter[p])
        model.stop_reason_ = self.solution.stop_reasons[p]
        assert values.alpha is not None, "every sample has a multiplier"
        _, upper = model.problem.bounds(self._parameter, len(values.alpha))
        most = upper * (1.0 if values.weights is None else values.weights)
        model.counters_ = {
            "support_vectors": len(model.expansion_.coefficients),
            "bounded_support_vectors": int(np.sum((values.alpha > 0.0) & (values.alpha >= most))),
        }
        return model


def training_of_pairs(estimator: Any, X: Any, codes: np.ndarray) -> PairsAlone | PairsTogether:
    """Return the training of all pairs of classes, by an unfitted estimator (whose gamma is set).

    All pairs have the gamma of the whole problem, as in LIBSVM and scikit-learn.
    """
    is_given = getattr(estimator, "kernel", None) == PRECOMPUTED
    if isinstance(getattr(estimator, "gamma", None), str) and not is_given:
        estimator.gamma = gamma_value(estimator.gamma, X)
    suits = getattr(estimator, "trains_pairs_together", None)
    together = suits is not None and not is_given and suits(np.bincount(codes))
    return (PairsTogether if together else PairsAlone)(estimator, Pairs(codes))


def prepare_part(model: Any, X: Any, signs: np.ndarray, weights: np.ndarray | None) -> TrainingData:
    """Return a solver's training data for a pair, without checking samples and parameters again."""
    model.classes_, model.n_features_in_ = np.array([-1.0, 1.0]), X.shape[1]
    prepared: TrainingData = model._convert(model._two_classes(X, signs, weights))
    return prepared


class OneVsOne(ClassifierMixin, Solver):
    """A classifier of any number of classes, from a two-class solver.

    Every pair of a kernel solver has the same gamma: the default is computed from all samples.

    It keeps the solver's contract: ``prepare``, ``train`` and ``evaluate_objective`` go over its
    pairs one after another, or over all together if the solver shares work between them
    (``trains_pairs_together``). It is no declared solver: for a data set of more than two classes,
    a run wraps a two-class solver in it.

    Parameters
    ----------
    estimator : BinaryClassifier
        The two-class solver; cloned for every pair.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of BinaryClassifier
        In the order of `pairs_`.
    pairs_ : Pairs
    objective_, dual_objective_ : float
        Sums over the pairs; the dual only for kernel solvers.
    n_iter_ : int
        Sum over the pairs.
    stop_reason_ : str
        The first of a pair that is not ``"converged"``, or ``"converged"``.
    counters_ : dict
        Sums over the pairs.
    shared_ : SharedPoints or None
        The pairs' expansions over the support vectors of all, set by `evaluate_objective` and
        `finish_fit`; None of a solver whose models are no expansions over training rows.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.smo import SMO
    >>> from svmbench.core.models.multiclass import OneVsOne
    >>> X, y = [[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]], ["a", "a", "b", "b", "c", "c"]
    >>> OneVsOne(SMO(C=10.0, gamma=1.0)).fit(X, y).predict([[0.0], [1.0], [2.0]]).tolist()
    ['a', 'b', 'c']
    """

    #: The training of the pairs, with their models; chosen by `prepare`.
    _training: PairsAlone | PairsTogether | None = None

    def __init__(self, estimator: BinaryClassifier) -> None:
        self.estimator = estimator

    @property
    def problem(self) -> Problem:
        """The problem of every pair."""
        return self.estimator.problem

    @property
    def offset(self) -> Offset:
        """The treatment of the offset by every pair."""
        return self.estimator.offset

    def _pass_on(self, model: Any) -> None:
        """Also translate the classes of a part, whose labels are positions in `classes_`."""
        present = getattr(model, "classes_", None)
        super()._pass_on(model)
        if present is not None:
            model.classes_ = self.classes_[present.astype(np.int64)]

    def prepare(self, X: Any, y: Any, sample_weight: np.ndarray | None = None) -> TrainingData:
        """Validate, and prepare the data of every pair; weights need a solver that takes them."""
        X, y = self._validated(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            msg = (
                "one against one needs samples of two classes; the data has one class only: "
                f"{self.classes_[0]}"
            )
            raise ValueError(msg)
        self._training = training_of_pairs(unfitted(self.estimator), X, codes)
        self.pairs_ = self._training.pairs
        return self._training.prepare(X, codes, sample_weight)

    def _validated(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Check parameters, inputs and labels; return float64 C-ordered or CSR, and labels."""
        X, y = validated(self, X, y, sparse=self.estimator.declaration.sparse)
        check_classification_targets(y)
        self.estimator._check_parameters()
        if getattr(self.estimator, "kernel", None) != PRECOMPUTED:
            require_squares(X)
        return X, y

    @property
    def _trained(self) -> PairsAlone | PairsTogether:
        """The models of the pairs; AttributeError before `train`."""
        if self._training is None or not hasattr(self, "n_iter_"):
            msg = "there are no models before fit"
            raise AttributeError(msg)
        return self._training

    @property
    def estimators_(self) -> list[Any]:
        """The model of each pair."""
        return self._trained.models

    @property
    def gamma_(self) -> float:
        """The gamma of the kernels of all pairs, of a kernel solver."""
        return float(self._trained.kernel_model.gamma_)

    @property
    def shared_(self) -> SharedPoints | None:
        """The pairs' expansions over the support vectors of all, or None."""
        return self._trained.shared

    def train(self, data: TrainingData) -> Self:
        """Train every pair."""
        assert self._training is not None, "prepare comes before train"
        self._training.train(data)
        self.n_iter_ = int(self._training.iterations.sum())
        self.stop_reason_ = self._training.stop_reason
        self.counters_ = self._training.counters
        return self

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Set ``objective_``, the sum of the pairs' objectives."""
        return self._store_objectives(self._trained.evaluate_objective(data))

    def finish_fit(self, data: TrainingData) -> Self:
        """End `fit`: as `evaluate_objective`, from the search's decision values if it kept them."""
        return self._store_objectives(self._trained.finish_fit(data))

    def _store_objectives(self, objectives: Objectives) -> Self:
        self.objective_ = objectives.primal
        if objectives.dual is not None:
            self.dual_objective_ = objectives.dual
        return self

    def pair_decisions(self, X: Any) -> np.ndarray:
        """Return the decision values of every pair, shape (n_samples, n_pairs)."""
        check_is_fitted(self, "n_iter_")
        if self.shared_ is not None:
            return self._trained.kernel_model.decide_together(self.shared_, X)
        return np.column_stack([e.decision_function(X) for e in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X` by the vote of the pairs, shape (n_samples,)."""
        check_is_fitted(self, "n_iter_")
        X = validated(self, X, reset=False)
        winners = np.empty(X.shape[0], dtype=np.int64)
        for rows in row_blocks(len(winners), self.pairs_):
            decisions = self.pair_decisions(X[rows]).T
            winners[rows] = vote(decisions, self.pairs_, len(self.classes_))
        return self.classes_[winners]

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), self.estimator.__sklearn_tags__().input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        return tags
