"""Weights of samples: the weight of the class times the sample's own, as in scikit-learn.

A weight multiplies C in the loss of its sample: a weight of 3 equals repeating the row three times.
A sample of weight 0 or less takes no part, as in LIBSVM, but keeps its position.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_array, compute_class_weight

from svmbench.core.contract.base import BinaryClassifier, TrainingData
from svmbench.core.contract.checks import are_several

#: Type of the parameter `class_weight`.
ClassWeight = dict[Any, float] | str | None


def class_weights(
    class_weight: ClassWeight, labels: np.ndarray, counted: np.ndarray | None = None
) -> np.ndarray:
    """Return the weight of each sample's class, shape (n_samples,).

    ``"balanced"`` gives every class the same sum of weights, n_samples in all; a sample counts
    there as its entry of `counted`, by default 1. ValueError for an invalid `class_weight`.
    """
    if not (class_weight is None or class_weight == "balanced" or isinstance(class_weight, dict)):
        msg = f"class_weight must be a dict, 'balanced' or None, got class_weight={class_weight!r}"
        raise ValueError(msg)
    classes, codes = np.unique(labels, return_inverse=True)
    if class_weight == "balanced" and counted is not None:
        sums = np.bincount(codes, weights=counted)
        with np.errstate(divide="ignore"):
            return (counted.sum() / (len(classes) * sums))[codes]
    return compute_class_weight(class_weight, classes=classes, y=labels)[codes]


def as_weights(sample_weight: Any, labels: np.ndarray) -> np.ndarray | None:
    """Return a user's weights as float64 (n_samples,), or None; ValueError for another shape."""
    if sample_weight is None:
        return None
    own = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if own.shape != labels.shape:
        msg = f"sample_weight has shape {own.shape}, and there are {len(labels)} samples"
        raise ValueError(msg)
    return own


def effective(weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the weights clipped at 0; ValueError, in LIBSVM's words, if a class has none left."""
    weights = np.maximum(weights, 0.0)
    left = np.unique(labels[weights > 0.0])
    if len(left) == 0:
        msg = "Invalid input - all samples have zero or negative weights."
        raise ValueError(msg)
    if len(left) == 1:
        msg = "Invalid input - all samples with positive weights belong to the same class."
        raise ValueError(msg)
    gone = np.setdiff1d(labels, left)
    if len(gone):
        msg = f"Invalid input - class {gone[0]} has no sample of positive weight."
        raise ValueError(msg)
    return weights


class Weighted(BinaryClassifier):
    """A classifier whose `fit` takes weights of samples; most have the parameter `class_weight`.

    Its `train` reads ``data.weights``: an array, none of it negative, or None.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Factor of C for the samples of a class: by label (1 for classes that are missing), so that
        all classes weigh the same, or 1.
    """

    #: Whether ``"balanced"`` counts a sample by its weight (LinearSVC) or as one (SVC).
    balances_weights: ClassVar[bool] = False

    #: Factor of the weights of a class; solvers may make it a parameter.
    class_weight: ClassWeight = None

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Validate and convert; see the base class, and `fit` for the weights."""
        data = super().prepare(X, y)
        labels = self.classes_[(data.y > 0.0).astype(np.intp)]
        data.weights = self._weigh(labels, sample_weight)
        return data

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of C in the loss of each sample, beside the weight of its class; a sample of 0 or
            less takes no part.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            On NaN or infinite inputs, a single class, a parameter out of range, or weights
            that leave a class without a sample.
        """
        if are_several(y):
            return self._fit_several(X, y, sample_weight)
        data = self.prepare(X, y, sample_weight)
        return self.train(data).finish_fit(data)

    def _weigh(self, labels: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Return each sample's weight times its class's, shape (n_samples,); None if all are 1."""
        own = as_weights(sample_weight, labels)
        if own is None and self.class_weight is None:
            return None
        weights = self._class_weights(labels, own)
        return effective(weights if own is None else weights * own, labels)

    def _class_weights(self, labels: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        return class_weights(self.class_weight, labels, own if self.balances_weights else None)

    def _weigh_against_rest(
        self, labels: np.ndarray, label: Any, sample_weight: Any
    ) -> np.ndarray | None:
        """Return the weights where the rest has class weight 1, as in LIBLINEAR; None if all 1."""
        own = as_weights(sample_weight, labels)
        if own is None and self.class_weight is None:
            return None
        is_one = labels == label
        weights = np.where(is_one, self._class_weights(labels, own), 1.0)
        return effective(weights if own is None else weights * own, is_one)

    def _weights_of(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the given weights, or the weights of classes -1 and +1; for a bare `solve`."""
        return self._weigh(y, None) if weights is None else weights
