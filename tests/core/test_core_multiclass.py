"""One against one, against scikit-learn's and by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC

from svmbench.baselines.libsvm import Libsvm
from svmbench.core.kernel.smo import SMO
from svmbench.core.multiclass import OneVsOne, Pair, pairs_of, vote

X, y = load_iris(return_X_y=True)


def test_pairs_index_the_rows_of_two_classes_in_order():
    pairs = pairs_of(np.array([2, 0, 1, 0, 2]))
    assert [(p.negative, p.positive, p.rows.tolist()) for p in pairs] == [
        (0, 1, [1, 2, 3]),
        (0, 2, [0, 1, 3, 4]),
        (1, 2, [0, 2, 4]),
    ]
    assert pairs[1].signs.tolist() == [1.0, -1.0, -1.0, 1.0]


def test_a_class_without_samples_has_no_pairs_and_no_vote():
    pairs = pairs_of(np.array([0, 3, 3]))
    assert [(p.negative, p.positive) for p in pairs] == [(0, 3)]
    assert vote(np.array([[-1.0, 0.0]]), pairs, 4).tolist() == [0, 3]


def test_equal_votes_are_decided_by_the_sum_of_decision_values_then_by_order():
    none = np.empty(0)
    pairs = [Pair(0, 1, none, none), Pair(0, 2, none, none), Pair(1, 2, none, none)]
    # 1 beats 0, 0 beats 2, 2 beats 1: a vote each, and sums (-1 + 3, 1 - 2, -3 + 2).
    cycle, even, other = [1.0, -3.0, 2.0], [1.0, -1.0, 1.0], [3.0, -1.0, 2.0]
    decisions = np.array([cycle, even, other]).T
    assert vote(decisions, pairs, 3).tolist() == [0, 0, 1]
    assert vote(decisions, pairs, 3, ties="first").tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="ties must be"):
        vote(decisions, pairs, 3, ties="last")


def test_votes_broadcast_over_trailing_axes():
    pairs = pairs_of(np.array([0, 1, 2]))
    decisions = np.random.default_rng(0).normal(size=(3, 4, 5))
    expected = [[vote(decisions[:, i, j], pairs, 3) for j in range(5)] for i in range(4)]
    np.testing.assert_array_equal(vote(decisions, pairs, 3), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("solver", [SMO, Libsvm])
def test_the_same_pairs_as_scikit_learn(form, solver):
    ours = OneVsOne(solver(C=1.0, gamma=0.5, tol=1e-6)).fit(form(X), y)
    theirs = SVC(C=1.0, gamma=0.5, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    # scikit-learn's sign is positive for the first class of a pair.
    np.testing.assert_allclose(
        ours.pair_decisions(form(X)), -theirs.decision_function(X), atol=2e-5
    )
    np.testing.assert_array_equal(ours.predict(form(X)), theirs.predict(X))
    assert ours.stop_reason_ == "converged"
    assert ours.counters_["support_vectors"] == sum(len(e.support_) for e in ours.estimators_)
    assert ours.objective_ == pytest.approx(sum(e.objective_ for e in ours.estimators_))


def test_labels_may_be_text_and_a_class_may_have_one_sample():
    names = np.array(["setosa", "versicolor", "virginica"])[y[:101]]
    model = OneVsOne(SMO(C=100.0, gamma=0.5)).fit(X[:101], names)
    assert model.predict(X[[0, 60, 100]]).tolist() == ["setosa", "versicolor", "virginica"]


def test_every_pair_has_the_gamma_of_the_whole_problem():
    X, y = load_wine(return_X_y=True)
    model = OneVsOne(Libsvm(C=10.0)).fit(X, y)
    widths = [estimator.gamma_ for estimator in model.estimators_]
    assert widths == pytest.approx([1.0 / (X.shape[1] * X.var())] * 3)
    assert model.estimator.gamma == "scale"
    agree = model.predict(X) == SVC(C=10.0).fit(X, y).predict(X)
    assert agree.mean() > 0.98


def test_one_class_only_is_one_sentence():
    with pytest.raises(ValueError, match=r"one only: 1\b"):
        OneVsOne(SMO()).fit(X[:3], [1, 1, 1])
