"""One against one: a two-class problem for every pair of classes, and a vote.

The papers' kernel programs separate more than two classes this way, LIBSVM among them. A pair's
problem is a set of positions in the training rows, so that all pairs can index one kernel matrix.
`pairs` has these, and the vote.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from svmbench.core.contract.base import (
    BinaryClassifier,
    Solver,
    TrainingData,
    require_squares,
    unfitted,
)
from svmbench.core.contract.problems import Offset, Problem
from svmbench.core.contract.sklearn_bases import ClassifierMixin
from svmbench.core.kernels.gamma_scale import gamma_value
from svmbench.core.kernels.given_kernel import PRECOMPUTED
from svmbench.core.models.pair_training import Objectives, PairsAlone, PairsTogether, PairTraining
from svmbench.core.models.pairs import Pairs, row_blocks, vote
from svmbench.core.models.shared_points import SharedPoints
from svmbench.core.numeric.arrays import canonical_csr


class OneVsOne(ClassifierMixin, Solver):
    """A classifier of any number of classes, from a two-class solver.

    The default gamma of a kernel solver is that of all samples, the same for every pair.

    It keeps the solver's contract: ``prepare``, ``train`` and ``certify`` are those of its pairs,
    one after another, or of all together where the solver shares work between them
    (``trains_pairs_together``); `pair_training` has both. Not declared as a solver of its own: a
    run wraps a two-class solver in it where a data set has more classes than two.

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
        Sums over the pairs; the second of kernel solvers alone.
    n_iter_ : int
        Sum over the pairs.
    stop_reason_ : str
        That of all pairs, or the first that is not ``"converged"``.
    counters_ : dict
        Sums over the pairs.
    shared_ : SharedPoints or None
        The pairs' expansions over the support vectors of all, once `certify` or `conclude` has
        run; None of a solver whose models are no expansions over training rows.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.smo import SMO
    >>> from svmbench.core.models.multiclass import OneVsOne
    >>> X, y = [[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]], ["a", "a", "b", "b", "c", "c"]
    >>> OneVsOne(SMO(C=10.0, gamma=1.0)).fit(X, y).predict([[0.0], [1.0], [2.0]]).tolist()
    ['a', 'b', 'c']
    """

    #: How the pairs are trained, and their models; chosen by `prepare`.
    _training: PairTraining | None = None

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

    def _pass_on(self, model: Any) -> None:
        """Also translate the classes of a part: prepared labels are positions in `classes_`."""
        present = getattr(model, "classes_", None)
        super()._pass_on(model)
        if present is not None:
            model.classes_ = self.classes_[present.astype(np.int64)]

    def prepare(self, X: Any, y: Any, sample_weight: np.ndarray | None = None) -> TrainingData:
        """Validate, and prepare every pair's own data; weights where the solver takes them."""
        X, y = self._validated(X, y)
        return self.prepare_validated(X, y, sample_weight)

    def prepare_validated(
        self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> TrainingData:
        """Return what `prepare` returns of samples and parameters that were checked before.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Float64; or a kernel matrix, where the solver takes one.
        y : ndarray of shape (n_samples,)
            Labels.
        sample_weight : ndarray of shape (n_samples,), optional
        """
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            msg = (
                "one against one needs samples of two classes; the data has one class only: "
                f"{self.classes_[0]}"
            )
            raise ValueError(msg)
        self.pairs_ = Pairs(codes)
        estimator = unfitted(self.estimator)
        is_given = getattr(estimator, "kernel", None) == PRECOMPUTED
        if isinstance(getattr(estimator, "gamma", None), str) and not is_given:
            # Every pair has the kernel of the whole problem, as in LIBSVM and scikit-learn.
            estimator.gamma = gamma_value(estimator.gamma, X)
        suits = getattr(estimator, "trains_pairs_together", None)
        together = suits is not None and not is_given and suits(np.bincount(codes))
        self._training = (PairsTogether if together else PairsAlone)(estimator, self.pairs_)
        native = self._training.prepare(X, codes, sample_weight)
        return TrainingData(X=X, y=codes.astype(np.float64), native=native, weights=sample_weight)

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

    @property
    def _trained(self) -> PairTraining:
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
    def iterations(self) -> np.ndarray:
        """The iterations of each pair, int of shape (n_pairs,)."""
        return self._trained.iterations

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

    def certify(self, data: TrainingData) -> Self:
        """Set ``objective_``, the sum of the pairs' objectives."""
        return self._keep(self._trained.certify(data))

    def conclude(self, data: TrainingData) -> Self:
        """Set what `certify` sets, from what the search has at hand; see :mod:`.pair_training`."""
        return self._keep(self._trained.conclude(data))

    def _keep(self, found: Objectives) -> Self:
        self.objective_ = found.primal
        if found.dual is not None:
            self.dual_objective_ = found.dual
        return self

    def pair_decisions(self, X: Any) -> np.ndarray:
        """Return every pair's decision values, shape (n_samples, n_pairs).

        Kernel values are computed once for all pairs that a support vector is part of.
        """
        check_is_fitted(self, "n_iter_")
        if self.shared_ is not None:
            return self._trained.kernel_model.decide_together(self.shared_, X)
        return np.column_stack([e.decision_function(X) for e in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row of `X` by the vote of the pairs, shape (n_samples,)."""
        check_is_fitted(self, "n_iter_")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        winners = np.empty(X.shape[0], dtype=np.int64)
        for rows in row_blocks(len(winners), self.pairs_):
            decisions = self.pair_decisions(X[rows]).T
            winners[rows] = vote(decisions, self.pairs_, len(self.classes_))
        return self.classes_[winners]

    def __sklearn_tags__(self) -> Tags:
        tags, own = super().__sklearn_tags__(), self.estimator.__sklearn_tags__().input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = own.sparse, own.pairwise
        return tags
