"""ALSVM's answer in one go: sums of outer products, then one factorisation for each C.

Problem
    min_w  1/2 ||w||^2 + C sum_i (1 - y_i w'x_i)^2
    over samples x with a constant feature ("bias absorbed"); no constraints.
Given
    X (n_samples, d), y in {-1, +1}, C; nu = 1 / (2C).
Returned
    w with G w = q,  G = sum_i x_i x_i' + nu I,  q = sum_i y_i x_i.
Reference
    ALSVM paper, equations 1 and 2 (the linear system its Algorithm 1 solves one sample at a time;
    the linear proximal SVM).
Deviations
    - Where G is numerically singular (rank-deficient samples at huge C), an eigendecomposition
      takes the place of Cholesky's factorisation; counters_["fallbacks"] counts it.
    - Neither G nor q depends on C, and both are sums over samples: one pass over the data serves
      every C of a grid (fit_path), and the sums of single folds serve every fold of a
      cross-validation (cv_path), a training set's sum being the total minus the fold's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from svmbench.core.base import TrainingData
from svmbench.core.linear import least_squares
from svmbench.core.linear.moments import fold_moments
from svmbench.core.linear_base import LinearClassifier, LinearSolution
from svmbench.core.registry import declare


@dataclass
class CrossValidation:
    """The fitted models of a cross-validation and their out-of-fold decision values.

    Attributes
    ----------
    models : list of list of ALSVMBatch
        ``models[fold][k]`` was trained without `fold` at the k-th value of C.
    decisions : ndarray of shape (n_samples, n_values)
        f(x) of every sample from the models that did not see it; NaN for a sample in no fold.
    counters : dict of str to int
        ``passes`` over the data, and ``factorisations``.
    seconds : float
        Wall time of everything together.
    """

    models: list[list[ALSVMBatch]]
    decisions: np.ndarray
    counters: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@declare(
    name="alsvm-batch",
    problem="least-squares",
    paper="alsvm",
    summary="ALSVM's closed form: one pass, one factorisation; whole C grids and CVs at once",
    reference="ALSVM paper, equations 1 and 2",
    shares="C",
)
class ALSVMBatch(LinearClassifier):
    """The least-squares SVM in closed form.

    Gives the model of :class:`~svmbench.core.linear.alsvm.ALSVM` without visiting the samples one
    by one; can't add or remove samples afterwards.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed squared losses; above 0.
    fit_intercept : bool, default=True
        Whether there is a constant feature.
    intercept_scaling : float, default=1.0
        Its value.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    counters_ : dict
        ``passes`` over the data, ``factorisations``, ``fallbacks`` to an eigendecomposition.
    train_time_ : float
        Only on models of :meth:`fit_path` and :meth:`cv_path`: the seconds that this model would
        have cost alone, by the rule stated there.

    Examples
    --------
    >>> from svmbench.core.linear.alsvm_batch import ALSVMBatch
    >>> models = ALSVMBatch(fit_intercept=False).fit_path([[1.0], [-1.0]], [1, -1], [0.5, 1.0])
    >>> [round(float(model.coef_[0, 0]), 6) for model in models]  # 2 / (2 + 1 / (2C))
    [0.666667, 0.8]
    """

    def __init__(
        self, C: float = 1.0, *, fit_intercept: bool = True, intercept_scaling: float = 1.0
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate; the constant feature is never written out."""
        data = self._validate(X, y)
        data.native = data.X
        return data

    def train(self, data: TrainingData) -> Self:
        """Accumulate the sums and solve once."""
        everything = np.zeros(len(data.y), dtype=np.int32)
        A, q = fold_moments(data.native, data.y, everything, 1, self.bias)
        return self._solve(A[0], q[0])

    def fit_path(self, X: Any, y: Any, values: Sequence[float]) -> list[ALSVMBatch]:
        """Fit one model for each value of C from one pass over the data.

        Parameters
        ----------
        X, y
            As for `fit`.
        values : sequence of float
            Values of C, in any order.

        Returns
        -------
        list of ALSVMBatch
            In the order of `values`. Each one's ``train_time_`` is what it would have cost alone:
            the measured time of the shared sums plus that of its own factorisation.
        """
        data = self.prepare(X, y)
        return [model.certify(data) for model in self.train_path(data, values)]

    def train_path(self, data: TrainingData, values: Sequence[float]) -> list[ALSVMBatch]:
        """Train one model for each C on prepared data: `fit_path` without the objectives."""
        models = [self._sibling(C, data) for C in values]
        start = perf_counter()
        everything = np.zeros(len(data.y), dtype=np.int32)
        A, q = fold_moments(data.native, data.y, everything, 1, self.bias)
        shared = perf_counter() - start
        for model in models:
            start = perf_counter()
            model._solve(A[0], q[0])
            model.train_time_ = shared + perf_counter() - start
        return models

    def cv_path(
        self, X: Any, y: Any, folds: Any, values: Sequence[float], *, certify: bool = False
    ) -> CrossValidation:
        """Cross-validate a whole grid of C in two passes: one to train, one to predict.

        Parameters
        ----------
        X, y
            As for `fit`.
        folds : array-like of int of shape (n_samples,), or sequence of (train, test) positions
            The fold of each sample (-1: in the training set of every fold), or the splits; the
            splits must be a partition: every training part the complement of its test part.
        values : sequence of float
            Values of C.
        certify : bool, default=False
            Also evaluate every model's objective, which takes further passes outside the count.

        Returns
        -------
        CrossValidation
            Each model's ``train_time_`` is what it would have cost alone: the time of the sums, in
            proportion to the fold's share of training rows, plus its own factorisation.

        Raises
        ------
        ValueError
            If the folds don't match the data or aren't a partition, or a fold's training part
            lacks a class.
        """
        data = self.prepare(X, y)
        fold_of, n_folds = fold_labels(folds, len(data.y))
        models = [[self._sibling(C, data) for C in values] for _ in range(n_folds)]
        for fold in range(n_folds):
            if len(np.unique(data.y[fold_of != fold])) < 2:
                msg = f"the training part of fold {fold} has samples of one class only"
                raise ValueError(msg)
        begin = perf_counter()
        # Rows that are never tested are summed as a last group of their own.
        group = np.where(fold_of < 0, n_folds, fold_of).astype(np.int32)
        A, q = fold_moments(data.native, data.y, group, n_folds + 1, self.bias)
        total_A, total_q = A.sum(axis=0), q.sum(axis=0)
        per_row = (perf_counter() - begin) / len(data.y)
        decisions = np.full((len(data.y), len(values)), np.nan)
        for fold, row in enumerate(models):
            test = np.flatnonzero(fold_of == fold)
            shared = per_row * (len(data.y) - len(test))
            A_train, q_train = total_A - A[fold], total_q - q[fold]
            for model in row:
                start = perf_counter()
                model._solve(A_train, q_train)
                model.train_time_ = shared + perf_counter() - start
            W = np.column_stack([model.coef_[0] for model in row])
            offsets = np.array([model.intercept_[0] for model in row])
            decisions[test] = data.X[test] @ W + offsets
        seconds = perf_counter() - begin
        if certify:
            for fold, row in enumerate(models):
                train = np.flatnonzero(fold_of != fold)
                part = TrainingData(X=data.X[train], y=data.y[train])
                for model in row:
                    model.certify(part)
        return CrossValidation(
            models=models,
            decisions=decisions,
            counters={"passes": 2, "factorisations": n_folds * len(values)},
            seconds=seconds,
        )

    def _solve(self, A: np.ndarray, q: np.ndarray) -> Self:
        w, fell_back = least_squares.solve(A, q, 1.0 / (2.0 * self.C))
        n_features = len(w) - bool(self.bias)
        return self._store(
            LinearSolution(
                w=w[:n_features],
                b=float(w[-1] * self.bias) if self.bias else 0.0,
                n_iter=1,
                stop_reason="closed form",
                counters={"passes": 1, "factorisations": 1, "fallbacks": int(fell_back)},
            )
        )

    def _sibling(self, C: float, data: TrainingData) -> ALSVMBatch:
        model = clone(self).set_params(C=float(C))
        model._check_parameters()
        model.classes_ = self.classes_
        model.n_features_in_ = data.X.shape[1]
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model


def fold_labels(folds: Any, n_samples: int) -> tuple[np.ndarray, int]:
    """Return the fold of each sample and the number of folds, from labels or from splits.

    Raises
    ------
    ValueError
        If there is nothing to test, a label is missing, or the splits aren't a partition.
    """
    if isinstance(folds, np.ndarray) or np.isscalar(folds[0]):
        labels = np.asarray(folds)
        if labels.shape != (n_samples,) or not np.issubdtype(labels.dtype, np.integer):
            msg = f"folds must be one integer a sample ({n_samples}), got shape {labels.shape}"
            raise ValueError(msg)
        n_folds = int(labels.max()) + 1
        if set(range(n_folds)) - set(labels.tolist()) or n_folds < 1:
            msg = "folds must be numbered from 0 without a gap"
            raise ValueError(msg)
        return labels.astype(np.int64), n_folds
    labels = np.full(n_samples, -1, dtype=np.int64)
    for fold, (train, test) in enumerate(folds):
        rest = np.ones(n_samples, dtype=bool)
        rest[test] = False
        if np.any(labels[test] >= 0) or not np.array_equal(np.flatnonzero(rest), np.sort(train)):
            msg = f"split {fold} is not part of a partition: train must be all rows outside test"
            raise ValueError(msg)
        labels[test] = fold
    return labels, len(folds)
