"""ALSVM, FALSVM and the batch form against the closed form, by hand, and after changes."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import linear_gap, make_problem, needs_jit

from svmbench.core.contract.problems import LEAST_SQUARES
from svmbench.core.linear import rank_one
from svmbench.core.linear.alsvm import ALSVM, FALSVM
from svmbench.core.linear.alsvm_batch import ALSVMBatch, folds_of


def closed_form(X, y, C, bias=1.0):
    """Return (w, b) by numpy's general solver, on a matrix built in the plainest way."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    if bias:
        X = np.column_stack([X, np.full(len(X), bias)])
    w = np.linalg.solve(X.T @ X + np.eye(X.shape[1]) / (2 * C), X.T @ y)
    return (w[:-1], w[-1] * bias) if bias else (w, 0.0)


def weights(model):
    return np.append(model.coef_[0], model.intercept_)


def difference(model, other):
    return np.linalg.norm(weights(model) - weights(other)) / np.linalg.norm(weights(other))


def test_two_samples_by_hand():
    # x = 1, 1 after folding in the labels: w = 2 / (2 + 1/(2C)) = 2/3 at C = 1/2.
    model = ALSVM(C=0.5, fit_intercept=False).fit([[1.0], [-1.0]], [1, -1])
    assert model.coef_[0, 0] == pytest.approx(2 / 3)
    assert model.objective_ == pytest.approx(0.5 * (2 / 3) ** 2 + 0.5 * 2 * (1 / 3) ** 2)
    assert model.P_[0, 0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("C", [2.0**-15, 1.0, 32.0])
@pytest.mark.parametrize("bias", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("solver", [ALSVM, ALSVMBatch])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_equals_closed_form(solver, C, bias, form):
    X, y = make_problem(n=80, d=7)
    model = solver(C=C, fit_intercept=bias > 0, intercept_scaling=bias).fit(form(X), y)
    w, b = closed_form(X, y, C, bias)
    assert_allclose(model.coef_[0], w, rtol=1e-9, atol=1e-12)
    assert_allclose(model.intercept_[0], b, rtol=1e-9, atol=1e-12)
    gap = linear_gap(LEAST_SQUARES, X, y, model.coef_[0], model.intercept_[0], C, bias=bias)
    assert abs(gap) <= 1e-9 * model.objective_


@pytest.mark.parametrize("solver", [ALSVM, ALSVMBatch])
def test_neither_order_nor_names_of_labels_matter(solver):
    X, y = make_problem()
    model = solver().fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    assert difference(solver().fit(X[order], y[order]), model) < 1e-10
    assert_allclose(weights(solver().fit(X, -y)), -weights(model), rtol=1e-9)
    named = solver().fit(X, np.where(y > 0, "yes", "no"))
    assert_allclose(weights(named), weights(model), rtol=1e-12)
    assert set(named.predict(X)) == {"yes", "no"}


def test_duplicated_samples_weigh_twice():
    X, y = make_problem(n=50)
    twice = ALSVM(C=1.0).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert difference(twice, ALSVM(C=2.0).fit(X, y)) < 1e-10


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_falsvm_is_the_closed_form_of_what_it_accepted(form):
    X, y = make_problem(n=300, noise=1.0)
    model = FALSVM(C=2.0, random_state=5).fit(form(X), y)
    taken = model.accepted_
    assert 1 <= len(taken) < 300
    assert len(set(taken.tolist())) == len(taken) == model.counters_["updates"]
    w, b = closed_form(X[taken], y[taken], 2.0)
    assert_allclose(weights(model), np.append(w, b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_falsvm_accepts_what_algorithm_2_accepts(form):
    X, y = make_problem(n=60, d=5, noise=1.0)
    model = FALSVM(C=1.0, random_state=3).fit(form(X), y)
    expected: list[int] = []
    for i in np.random.RandomState(3).permutation(60):
        if expected:
            w, b = closed_form(X[expected], y[expected], 1.0)
            if y[i] * (X[i] @ w + b) >= 0:
                continue
        expected.append(i)
    assert model.accepted_.tolist() == expected


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_removing_what_was_added_restores_the_model(form, size):
    X, y = make_problem(n=400)
    model = ALSVM().fit(form(X[:100]), y[:100])
    before, P = weights(model), model.P_.copy()
    more, labels = form(X[100 : 100 + size]), y[100 : 100 + size]
    model.add(more, labels)
    assert difference(model, ALSVM().fit(X[: 100 + size], y[: 100 + size])) < 1e-9
    model.remove(more, labels)
    assert_allclose(weights(model), before, rtol=1e-8)
    assert_allclose(model.P_, P, rtol=1e-8, atol=1e-10)


def test_one_sample_may_come_as_a_vector():
    X, y = make_problem(n=50)
    model = ALSVM().fit(X[:49], y[:49]).add(X[49], y[49])
    assert difference(model, ALSVM().fit(X, y)) < 1e-10


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 39), max_size=30), st.sampled_from([0.01, 1.0, 100.0]))
def test_any_sequence_of_adds_and_removes(moves, C):
    """Each position toggles a sample: in the end w is the closed form of those present."""
    X, y = make_problem(n=40, d=4)
    present = set(range(10))
    model = ALSVM(C=C).fit(X[:10], y[:10])
    for i in moves:
        (model.remove if i in present else model.add)(X[i], y[i])
        present ^= {i}
    rows = sorted(present)
    w, b = closed_form(X[rows], y[rows], C)
    assert_allclose(weights(model), np.append(w, b), rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@needs_jit
def test_two_thousand_random_changes_drift_less_than_1e_6():
    X, y = make_problem(n=1000, d=30)
    present = set(range(500))
    model = ALSVM(C=1.0).fit(X[:500], y[:500])
    for i in np.random.default_rng(0).integers(0, 1000, size=2000):
        (model.remove if i in present else model.add)(X[i], y[i])
        present ^= {int(i)}
    rows = sorted(present)
    assert difference(model, ALSVMBatch(C=1.0).fit(X[rows], y[rows])) < 1e-6
    assert model.drift_ < 1e-9


def test_drift_is_noticed_and_mended():
    """At C = 1e10 the updates alone lose all digits that the refreshed model has."""
    X, y = make_problem(n=300, d=8)
    model = ALSVM(C=1e10).fit(X[:12], y[:12])
    for i in range(12, 300):
        model.add(X[i], y[i])
    for i in range(100):
        model.remove(X[i], y[i])
    assert model.counters_["refreshes"] >= 1
    w, b = closed_form(X[100:], y[100:], 1e10)
    assert_allclose(weights(model), np.append(w, b), rtol=1e-7)


def test_more_sparse_samples_than_updates_that_wait(monkeypatch):
    X, y = make_problem(n=100, d=9)
    expected = weights(ALSVM().fit(X, y))
    for waiting in (1, 7, 99, 100, 101):
        monkeypatch.setattr(rank_one, "MAX_WAITING_UPDATES", waiting)
        assert_allclose(weights(ALSVM().fit(sp.csr_array(X), y)), expected, rtol=1e-10)


def test_removing_a_stranger_is_refused_and_changes_nothing():
    X, y = make_problem(n=60)
    model = ALSVM().fit(X[:50], y[:50])
    before = weights(model)
    with pytest.raises(ValueError, match="1 of the 2 samples to remove are not in the model"):
        model.remove(X[49:51], y[49:51])
    with pytest.raises(ValueError, match="not in the model with that label"):
        model.remove(X[0], -y[0])
    model.remove(X[0], y[0])
    with pytest.raises(ValueError, match="removed already"):
        model.remove(X[0], y[0])
    model.add(X[0], y[0])
    assert_allclose(weights(model), before, rtol=1e-10)


@pytest.mark.parametrize("change", ["add", "remove"])
@pytest.mark.parametrize("factor", [-30.0, 30.0])
def test_where_rounding_has_spoilt_the_inverse_the_sums_make_it_anew(change, factor):
    """1 - a <= 0, or 1 + a <= 0: no update of that inverse is possible."""
    X, y = make_problem(n=60, d=4)
    model = ALSVM().fit(X[:50], y[:50])
    model.P_ *= factor
    rows = slice(50, 60) if change == "add" else slice(0, 10)
    getattr(model, change)(X[rows], y[rows])
    left = slice(0, 60) if change == "add" else slice(10, 50)
    assert_allclose(weights(model), np.append(*closed_form(X[left], y[left], 1.0)), rtol=1e-8)


def scaled(factor=1e8, n=300):
    """Return samples of which one feature is of another size: their sums have few digits left."""
    X, y = make_problem(n=n, d=6)
    Z = X.copy()
    Z[:, 2] *= factor
    return X, Z, y


def agrees(model, X, y):
    """Whether a model decides as one that is fitted on all samples at once, but for rounding.

    Even by reflections both lose as many digits as the largest feature is larger than the others.
    """
    f, exact = model.decision_function(X), ALSVMBatch(C=model.C).fit(X, y).decision_function(X)
    rounding = 100.0 * np.finfo(float).eps * np.abs(X).max()
    return np.abs(f - exact).max() <= max(1e-6, rounding) * np.abs(exact).max()


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("factor", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_batches_whose_sums_are_not_enough_are_added_and_removed_as_if_fitted(form, factor, begin):
    _, Z, y = scaled(factor)
    model = ALSVM()
    if begin == "fit":
        model.fit(form(Z[:120]), y[:120])
    else:
        model.partial_fit(form(Z[:120]), y[:120], classes=[-1, 1])
    for start in range(120, 300, 60):
        model.add(form(Z[start : start + 60]), y[start : start + 60])
        assert agrees(model, Z[: start + 60], y[: start + 60])
    for start in range(0, 150, 50):
        model.remove(form(Z[start : start + 50]), y[start : start + 50])
        assert agrees(model, Z[start + 50 :], y[start + 50 :])
    assert model.remove(Z[200], y[200]).add(Z[200], y[200]).score(Z[150:], y[150:]) > 0.8
    assert agrees(model, Z[150:], y[150:])


@needs_jit
@pytest.mark.parametrize("n_before", [0, 3, 100])
def test_samples_that_spoil_the_sums_are_kept_until_they_are_gone(n_before):
    X, Z, y = scaled()
    model = ALSVM().fit(X[:150], y[:150])
    if n_before:
        model.remove(X[:n_before], y[:n_before])
    model.add(Z[150:], y[150:])
    rows, labels = np.vstack([X[n_before:150], Z[150:]]), y[n_before:]
    assert agrees(model, rows, labels)
    assert "reflections of the samples" in model.stop_reason_
    # Twice the same sample, of which one is removed: of those kept, and of those in the sums.
    model.add(Z[200], y[200]).remove(Z[200], y[200])
    model.add(X[140], y[140]).remove(np.vstack([X[140], X[140]]), [y[140], y[140]])
    model.add(X[140], y[140])
    assert agrees(model, rows, labels)
    with pytest.raises(ValueError, match="not in the model"):
        model.remove(Z[0], y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.remove(Z[150:], y[150:]).remove(X[140], y[140]).add(X[140], y[140])
    assert model.stop_reason_ == "closed form"
    assert agrees(model, X[n_before:150], y[n_before:150])


@needs_jit
def test_sums_that_removals_have_cost_their_digits_are_told_of():
    X, y = make_problem(n=80, d=3)
    X[:5] *= 1e9
    model = ALSVM(fit_intercept=False).fit(X, y)
    assert model.stop_reason_ == "closed form"
    with pytest.warns(ConvergenceWarning, match="alsvm has the sums of its samples alone, and"):
        model.remove(X[:5], y[:5])


def test_a_sample_that_falsvm_did_not_accept_can_not_be_removed():
    X, y = make_problem(n=100)
    model = FALSVM().fit(X, y)
    outside = next(i for i in range(100) if i not in model.accepted_)
    with pytest.raises(ValueError, match="not accepted"):
        model.remove(X[outside], y[outside])
    inside = model.accepted_[0]
    model.remove(X[inside], y[inside])
    rest = model.accepted_[1:]
    assert_allclose(weights(model), np.append(*closed_form(X[rest], y[rest], 1.0)), rtol=1e-8)


def test_falsvm_adds_only_what_it_misclassifies():
    X, y = make_problem(n=300, noise=0.0)
    model = FALSVM(C=10.0).fit(X[:200], y[:200])
    n = model.counters_["updates"]
    right = np.flatnonzero(model.predict(X[200:]) == y[200:])[0] + 200
    model.add(X[right], y[right])
    assert model.counters_["updates"] == n
    model.add(X[right], -y[right])
    assert model.counters_["updates"] == n + 1


def test_unknown_labels_and_shapes_are_refused():
    X, y = make_problem(n=50)
    model = ALSVM().fit(X, y)
    with pytest.raises(ValueError, match="label 7 is not one of"):
        model.add(X[0], 7)
    with pytest.raises(ValueError, match="2 samples and y has shape"):
        model.add(X[:2], y[:1])
    with pytest.raises(ValueError, match="NaN"):
        model.add(np.full(X.shape[1], np.nan), y[0])


def one_hot(n=120, seed=0):
    """Return one-hot samples: with a constant feature their Gram matrix is singular."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.eye(4)[rng.integers(0, 4, n)], np.eye(3)[rng.integers(0, 3, n)]])
    y = np.where(X @ rng.normal(size=7) + 0.3 * rng.normal(size=n) > 0, 1, -1)
    return X, y


@pytest.mark.parametrize("solver", [ALSVM, ALSVMBatch])
@pytest.mark.parametrize("C", [1e6, 1e12, 1e15])
def test_singular_samples_at_huge_C_give_the_least_norm_solution(solver, C):
    X, y = one_hot()
    model = solver(C=C).fit(X, y)
    extended = np.column_stack([X, np.ones(len(X))])
    expected = np.linalg.pinv(extended) @ y
    assert_allclose(weights(model), expected, rtol=1e-6, atol=1e-6)
    if solver is ALSVM and C >= 1e12:
        assert model.counters_["refreshes"] == 1
    if solver is ALSVMBatch and C >= 1e15:
        assert model.counters_["fallbacks"] == 1


def test_more_features_than_samples():
    X, y = make_problem(n=10, d=40)
    w, b = closed_form(X, y, 1.0)
    for solver in (ALSVM, ALSVMBatch):
        assert_allclose(weights(solver().fit(X, y)), np.append(w, b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("density", [0.1, 0.9])
def test_a_whole_cross_validation_is_one_pass(form, density):
    X, y = make_problem(density=density)
    folds = np.random.default_rng(0).integers(-1, 4, len(y))
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(4)]
    batch, values = ALSVMBatch(), [2.0**-15, 1.0, 32.0]
    data = batch.prepare(form(X), y)
    points = list(batch.path(data, None, "C", values, splits))
    assert [point.statistics["passes"] for point in points] == [1] + 11 * [0]
    assert sum(point.statistics["factorisations"] for point in points) == 12
    for position, (model, cost, _) in enumerate(points):
        fold, k = divmod(position, 3)
        train = splits[fold][0]
        alone = ALSVMBatch(C=values[k]).fit(X[train], y[train])
        assert difference(model, alone) < 1e-10
        assert values[k] == model.C
        assert cost > 0


def test_splits_that_are_no_partition_are_summed_fold_by_fold():
    X, y = make_problem(n=30)
    folds = np.arange(30) % 3
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    assert folds_of(splits, 30).tolist() == folds.tolist()
    assert folds_of(splits[:1], 30).tolist() == np.where(folds == 0, 0, 1).tolist()
    assert folds_of([(splits[0][0][1:], splits[0][1])], 30) is None
    assert folds_of([splits[0], splits[0]], 30) is None
    batch = ALSVMBatch()
    data = batch.prepare(X, y)
    overlapping = [(train[1:], test) for train, test in splits]
    points = list(batch.path(data, None, "C", [0.5, 1.0], overlapping))
    assert [point.statistics["passes"] for point in points] == [1, 0] * 3
    for position, (model, _, _) in enumerate(points):
        train = overlapping[position // 2][0]
        assert difference(model, ALSVMBatch(C=model.C).fit(X[train], y[train])) < 1e-10


def test_a_path_refuses_what_a_fit_refuses():
    X, y = make_problem(n=30)
    batch = ALSVMBatch()
    data = batch.prepare(X, y)
    positive = [(np.flatnonzero(y > 0), np.flatnonzero(y < 0))]
    for splits, sentence in (
        (positive, "training part of fold 0 has samples of one class only"),
        ([(positive[0][0][1:], positive[0][1])], "needs samples of two classes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            next(batch.path(data, None, "C", [1.0], splits))
    with pytest.raises(ValueError, match="C must be"):
        next(batch.path(data, None, "C", [0.0]))


@pytest.mark.mirror
@needs_jit
@pytest.mark.parametrize("C", [2.0**-15, 1.0, 32.0])
def test_alsvm_equals_batch_on_a9a(mirrored, C):
    X, y = mirrored("a9a")
    assert difference(ALSVM(C=C).fit(X, y), ALSVMBatch(C=C).fit(X, y)) < 1e-8


@pytest.mark.slow
@pytest.mark.mirror
@needs_jit
def test_changes_on_a9a(mirrored):
    X, y = mirrored("a9a")
    present = np.arange(X.shape[0]) < 16000
    model = ALSVM(C=1.0).fit(X[present], y[present])
    before = weights(model)
    model.add(X[20000:20100], y[20000:20100]).remove(X[20000:20100], y[20000:20100])
    assert_allclose(weights(model), before, rtol=1e-8)
    for i in np.random.default_rng(0).integers(0, X.shape[0], size=2000):
        (model.remove if present[i] else model.add)(X[[i]], y[i])
        present[i] = not present[i]
    assert difference(model, ALSVMBatch(C=1.0).fit(X[present], y[present])) < 1e-6


@pytest.mark.mirror
@needs_jit
def test_falsvm_on_a9a(mirrored):
    X, y = mirrored("a9a")
    model = FALSVM(C=1.0).fit(X, y)
    taken = model.accepted_
    assert 1000 < len(taken) < 16000
    assert difference(model, ALSVMBatch(C=1.0).fit(X[taken], y[taken])) < 1e-8


BATCHES = [slice(0, 7), slice(7, 8), slice(8, 60), slice(60, 200)]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_partial_fits_are_one_fit(form, n_classes, fit_intercept):
    X, _ = make_problem()
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :n_classes], axis=1)]
    # The first batches lack a class.
    order = np.argsort(y[:60], kind="stable")
    X[:60], y[:60] = X[:60][order], y[:60][order]
    whole = ALSVM(C=3.0, fit_intercept=fit_intercept).fit(form(X), y)
    parts = ALSVM(C=3.0, fit_intercept=fit_intercept)
    for rows in BATCHES:
        parts.partial_fit(form(X[rows]), y[rows], classes=np.unique(y))
        assert not hasattr(parts, "objective_")
    assert_allclose(parts.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-8, atol=1e-10)
    assert np.array_equal(parts.predict(form(X)), whole.predict(form(X)))
    assert len(parts.classes_) == n_classes


def test_a_partial_fit_goes_on_from_a_fit_and_can_be_undone():
    X, y = make_problem()
    model = ALSVM().fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    assert_allclose(model.coef_, ALSVM().fit(X, y).coef_, rtol=1e-8, atol=1e-10)
    model.remove(X[:50], y[:50])
    assert_allclose(model.coef_, ALSVM().fit(X[50:], y[50:]).coef_, rtol=1e-8, atol=1e-10)


def test_partial_fits_of_falsvm_are_a_fit_in_their_order():
    X, y = make_problem()
    whole = FALSVM(random_state=3).fit(X, y)
    order = whole._order(len(y))
    parts = FALSVM()
    for rows in BATCHES:
        parts.partial_fit(X[order][rows], y[order][rows], classes=[-1, 1])
    assert parts.counters_["updates"] == len(whole.accepted_) < 200
    assert parts.counters_["samples"] == 200
    assert_allclose(parts.coef_, whole.coef_, rtol=1e-8, atol=1e-10)


def test_partial_fits_that_are_none():
    X, y = make_problem()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        ALSVM().partial_fit(X, y)
    with pytest.raises(ValueError, match="ALSVM needs two classes"):
        ALSVM().partial_fit(X, y, classes=[1])
    model = ALSVM().partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(ValueError, match="are not those of the first call"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="label 5 is not one of the model"):
        model.partial_fit(X[:1], [5])
    with pytest.raises(ValueError, match="X has 3 features, but ALSVM is expecting 12"):
        model.partial_fit(X[:, :3], y)
    three = ALSVM().partial_fit(X, np.arange(200) % 3, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="label 3 is not one of the model"):
        three.partial_fit(X[:1], [3])
    with pytest.raises(ValueError, match="remove is there for two classes"):
        three.remove(X[:1], [0])


def streamed(solver, X, y, size):
    """Return a model of batches, and the sentences of its warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            solver.partial_fit(X[rows], y[rows], classes=np.unique(y))
    return solver, [str(w.message) for w in said if issubclass(w.category, ConvergenceWarning)]


@pytest.mark.parametrize("size", [pytest.param(1, marks=[pytest.mark.slow, needs_jit]), 25, 300])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_falsvm_says_of_rows_sorted_by_class_that_it_learns_little(size, n_classes):
    """Sorted within a batch or over all of them; shuffled, alternating: nothing is said."""
    n = 120 if size == 1 else 300
    X, _ = make_problem(n=n, d=12)
    y = np.argmax(X[:, :n_classes] + 1e-9 * np.arange(n_classes), axis=1)
    order = np.argsort(y, kind="stable")
    _, said = streamed(FALSVM(), X[order], y[order], size)
    assert said
    assert all("these rows come class by class" in sentence for sentence in said)
    for seed in range(2 if size == 1 else 5):
        order = np.random.default_rng(seed).permutation(n)
        assert not streamed(FALSVM(), X[order], y[order], size)[1]
    turns = np.arange(n) % n_classes
    assert not streamed(FALSVM(), X, turns, size)[1]
    order = np.argsort(y, kind="stable")
    assert not streamed(ALSVM(), X[order], y[order], size)[1]


def test_what_falsvm_saw_before_a_fit_is_forgotten():
    X, y = make_problem(n=200)
    order = np.argsort(y, kind="stable")
    model, said = streamed(FALSVM(), X[order], y[order], 50)
    assert said
    model.fit(X, y)
    assert not streamed(model, X, y, 50)[1]
