"""`validated` does what scikit-learn's `validate_data` does, and calls it for what isn't ready."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from svmbench.core.contract import base

X, Y = np.arange(6.0).reshape(3, 2), np.array([2, 0, 2])

INPUTS = {
    "ready": X,
    "a row": X[0],
    "empty": X[:0],
    "without features": X[:, :0],
    "one feature": X[:, :1],
    "fewer rows": X[:2],
    "integers": X.astype(int),
    "single precision": X.astype(np.float32),
    "complex": X.astype(complex),
    "columns": np.asfortranarray(X),
    "missing": np.where(X == 3.0, np.nan, X),
    "infinite": np.where(X == 3.0, -np.inf, X),
    "list": X.tolist(),
    "masked": np.ma.array(X),
    "sparse": sp.csr_matrix(X),
    "sparse array": sp.csr_array(X),
    "sparse row": sp.csr_array(X[0]),
    "sparse zeros": sp.csr_array((3, 2)),
    "sparse without rows": sp.csr_array((0, 2)),
    "sparse without features": sp.csr_array((3, 0)),
    "sparse columns": sp.csc_array(X),
    "sparse integers": sp.csr_array(X.astype(int)),
    "sparse missing": sp.csr_array(np.where(X == 3.0, np.nan, X)),
    "sparse infinite": sp.csr_array(np.where(X == 3.0, -np.inf, X)),
}
LABELS = {
    "integers": Y,
    "strings": np.array(["b", "a", "b"]),
    "reversed": Y[::-1],
    "numbers": np.array([1.0, -1.0, 1.0]),
    "fractions": np.array([0.5, 1.0, 0.25]),
    "missing": np.array([1.0, np.nan, 1.0]),
    "column": Y[:, None],
    "list": Y.tolist(),
    "none": None,
}


class Classifier(ClassifierMixin, BaseEstimator):
    """An estimator that needs labels."""


def outcome(call):
    """Return the dense results of a call with their types, or the text of its error."""
    estimator = Classifier()
    try:
        found = call(estimator)
    except (ValueError, TypeError) as error:
        return str(error)
    parts = found if isinstance(found, tuple) else (found,)
    seen = [part.toarray() if sp.issparse(part) else part for part in parts]
    return [(type(part), part.dtype, part.tolist()) for part in seen], vars(estimator)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("labels", [*LABELS, "without"])
def test_what_is_ready_is_what_scikit_learn_returns_and_all_else_is_its_own(inputs, labels):
    given = INPUTS[inputs], *([] if labels == "without" else [LABELS[labels]])
    options = {"dtype": np.float64, "order": "C"}
    for sparse, accepted in ((True, "csr"), (False, False)):
        ours = outcome(lambda one, sparse=sparse: base.validated(one, *given, sparse=sparse))
        theirs = outcome(
            lambda one, accepted=accepted: validate_data(
                one, *given, accept_sparse=accepted, **options
            )
        )
        assert ours == theirs


def test_inputs_that_are_ready_are_not_copied_and_not_handed_on(monkeypatch):
    monkeypatch.setattr(base, "validate_data", None)
    estimator = Classifier()
    estimator.feature_names_in_ = np.array(["a", "b", "c"])
    assert base.validated(estimator, X, Y)[0] is X
    assert vars(estimator) == {"n_features_in_": 2}
    assert base.validated(estimator, X, reset=False) is X
    for made in (sp.csr_array, sp.csr_matrix):
        sparse = made(X)
        ready, labels = base.validated(estimator, sparse, Y)
        assert labels is Y
        assert type(ready) is sp.csr_array
        assert np.shares_memory(ready.data, sparse.data)
        assert base.validated(estimator, sparse, reset=False) is sparse


def test_sparse_inputs_of_a_fit_are_made_canonical():
    twice = sp.csr_array((np.ones(3), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2))
    ready = base.validated(Classifier(), twice)
    assert ready.data.tolist() == [1.0, 2.0]
    assert ready.indices.tolist() == [0, 1]
    assert len(twice.data) == 3


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        ({"n_features_in_": 3}, "X has 2 features, but Classifier is expecting 3"),
        ({}, None),
    ],
)
def test_features_are_those_of_fit(seen, message):
    estimator = Classifier()
    vars(estimator).update(seen)
    if message is None:
        assert base.validated(estimator, X, reset=False) is X
        return
    with pytest.raises(ValueError, match=message):
        base.validated(estimator, X, reset=False)


def test_names_of_features_that_are_missing_are_told_of():
    estimator = Classifier()
    estimator.n_features_in_, estimator.feature_names_in_ = 2, np.array(["a", "b"], dtype=object)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        base.validated(estimator, X, reset=False)
