"""One against one, against scikit-learn's and by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC, LinearSVC
from small_problems import needs_jit

from svmbench import CSVC, DCDL1
from svmbench.baselines import catalogue
from svmbench.baselines.libsvm import Libsvm
from svmbench.core.kernel_svm.smo import SMO
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.models.ovo_model import OvoModel
from svmbench.core.models.pairs import Pairs, values_of_classes, vote

IRIS = X, y = load_iris(return_X_y=True)


def test_pairs_index_the_rows_of_two_classes_in_order():
    pairs = Pairs(np.array([2, 0, 1, 0, 2]))
    assert [(p.negative, p.positive, p.rows.tolist()) for p in pairs] == [
        (0, 1, [1, 2, 3]),
        (0, 2, [0, 1, 3, 4]),
        (1, 2, [0, 2, 4]),
    ]
    assert pairs[1].signs.tolist() == [1.0, -1.0, -1.0, 1.0]


def test_values_of_classes_are_votes_and_a_share_of_the_sums():
    # A value of 0 goes to the negative class, as in scikit-learn.
    found = values_of_classes(np.array([[0.0, 2.0, -1.0]]), Pairs(np.arange(3)), 3)
    sums = np.array([-2.0, 1.0, 1.0])
    np.testing.assert_allclose(found[0], [1.0, 1.0, 1.0] + sums / (3.0 * (abs(sums) + 1.0)))


def test_pairs_are_a_sequence_that_is_made_when_asked_for():
    pairs = Pairs(np.array([2, 0, 1, 0, 2]))
    assert len(pairs) == 3
    assert [(p.negative, p.positive) for p in pairs[1:]] == [(0, 2), (1, 2)]
    assert pairs[-1].rows.tolist() == [0, 2, 4]
    assert pairs[-1].signs.tolist() == [1.0, -1.0, 1.0]
    with pytest.raises(IndexError):
        pairs[3]


def test_a_class_without_samples_has_no_pairs_and_no_vote():
    pairs = Pairs(np.array([0, 3, 3]))
    assert [(p.negative, p.positive) for p in pairs] == [(0, 3)]
    assert vote(np.array([[-1.0, 0.0]]), pairs, 4).tolist() == [0, 3]


def test_equal_votes_are_decided_by_the_sum_of_decision_values_then_by_order():
    pairs = Pairs(np.arange(3))
    # 1 beats 0, 0 beats 2, 2 beats 1: a vote each, and sums (-1 + 3, 1 - 2, -3 + 2).
    cycle, even, other = [1.0, -3.0, 2.0], [1.0, -1.0, 1.0], [3.0, -1.0, 2.0]
    decisions = np.array([cycle, even, other]).T
    assert vote(decisions, pairs, 3).tolist() == [0, 0, 1]
    assert vote(decisions, pairs, 3, ties="first").tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="ties must be"):
        vote(decisions, pairs, 3, ties="last")


def test_votes_broadcast_over_trailing_axes():
    pairs = Pairs(np.array([0, 1, 2]))
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
    with pytest.raises(ValueError, match=r"one class only: 1\b"):
        OneVsOne(SMO()).fit(X[:3], [1, 1, 1])


RIGHT = {"tol": 1e-8, "class_weight": {0: 3.0, 2: 0.5}}


@needs_jit
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_csvc_of_three_classes_is_svc(kernel, form):
    # Two equal flowers would leave it open which has which multiplier.
    X, first = np.unique(IRIS[0], axis=0, return_index=True)
    y = IRIS[1][first]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    theirs = SVC(kernel=kernel, **RIGHT).fit(X, y, sample_weight=weights)
    ours = CSVC(kernel=kernel, **RIGHT).fit(form(X), y, sample_weight=weights)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    for shape in ("ovr", "ovo"):
        for model in (ours, theirs):
            model.set_params(decision_function_shape=shape)
        found = ours.decision_function(form(X))
        np.testing.assert_allclose(found, theirs.decision_function(X), atol=1e-4)
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(X @ ours.coef_.T + ours.intercept_, found, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(form(X)), theirs.predict(X))
    assert ours.objective_ - ours.dual_objective_ < 1e-4 * ours.objective_
    assert len(ours.estimators_) == len(ours.n_iter_) == 3


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_what_overflows_is_found_in_every_pair(form):
    # Of the first pair all rows are fine.
    X, y = np.eye(9, 3) + 0.1, np.repeat([0, 1, 2], 3)
    X[8, 0] = 1e200
    for model in (OneVsOne(CSVC()), OneVsOne(DCDL1()), CSVC()):
        with pytest.raises(ValueError, match="scale the features"):
            model.fit(form(X), y)


def test_a_cycle_of_pairs_goes_to_the_first_class_or_to_the_largest_value(monkeypatch):
    model = CSVC(gamma=1.0).fit(np.eye(3), ["a", "b", "c"])
    # 1 beats 0, 0 beats 2, 2 beats 1, and the values of 1 have the largest sum.
    monkeypatch.setattr(OvoModel, "decide", lambda self, X, **options: np.array([[3.0, -1.0, 2.0]]))
    middle = np.full((1, 3), 1 / 3)
    assert model.predict(middle).tolist() == ["a"]
    assert model.set_params(break_ties=True).predict(middle).tolist() == ["b"]
    # A vote each, and sums of -3 + 1, 3 - 2 and -1 + 2 for less than half a vote.
    expected = 1.0 + np.array([-2 / 9, 1 / 6, 1 / 6])
    np.testing.assert_allclose(model.decision_function(middle)[0], expected)


def test_votes_are_scikit_learns_where_all_pairs_are_even():
    # One sample a class, and a kernel so narrow that everywhere else each pair is even: in a cycle.
    corners, names = np.eye(3), np.array(["a", "b", "c"])
    model = CSVC(gamma=1.0).fit(corners, names)
    middle = corners.mean(axis=0, keepdims=True)
    assert model.several_.decide(middle).tolist() == [[0.0, 0.0, 0.0]]
    assert model.predict(middle).tolist() == ["c"]
    far = np.random.default_rng(0).normal(size=(500, 3)) * 3.0
    narrow = CSVC(gamma=1e6).fit(X[::7], y[::7])
    away = np.random.default_rng(0).normal(size=(50, 4)) * 9.0
    theirs = SVC(gamma=1e6).fit(X[::7], y[::7])
    np.testing.assert_array_equal(narrow.predict(away), theirs.predict(away))
    by_value = model.set_params(break_ties=True).predict(far)
    np.testing.assert_array_equal(by_value, names[model.decision_function(far).argmax(axis=1)])
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape"):
        model.set_params(decision_function_shape="ovo").predict(far)
    with pytest.raises(ValueError, match="must be 'ovr' or 'ovo', got 'both'"):
        CSVC(decision_function_shape="both").fit(X, y)


@needs_jit
def test_dcd_of_three_classes_is_linear_svc():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    asked = {**RIGHT, "max_iter": 1_000_000}
    theirs = LinearSVC(loss="hinge", **asked).fit(X, y, sample_weight=weights)
    ours = DCDL1(**asked).fit(X, y, sample_weight=weights)
    assert ours.coef_.shape == (3, 4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    found = ours.decision_function(X)
    np.testing.assert_allclose(found, theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), found.argmax(axis=1))
    assert ours.objective_ == pytest.approx(sum(e.objective_ for e in ours.estimators_))
    assert ours.n_iter_ == max(e.n_iter_ for e in ours.estimators_)


@pytest.mark.parametrize("name", ["csvc", "alsvm", "smo", "nystrom"])
def test_after_three_classes_two_are_fitted_as_ever(name):
    two = y < 2
    model = catalogue.solver(name).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    again = model.fit(X[two], y[two]).decision_function(X)
    alone = catalogue.solver(name).fit(X[two], y[two])
    np.testing.assert_array_equal(again, alone.decision_function(X))
    assert set(model.predict(X)) == {0, 1}


def test_points_that_are_no_rows_have_a_model_for_each_pair():
    model = catalogue.solver("cpsp").fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.intercept_.shape == (3,)
    with pytest.raises(AttributeError, match="the points of this model are no training rows"):
        _ = model.support_


def test_a_class_without_weight_is_told():
    with pytest.raises(ValueError, match="class 1 has no sample of positive weight"):
        CSVC().fit(X, y, sample_weight=np.where(y == 1, 0.0, 1.0))
