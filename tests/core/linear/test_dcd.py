"""Dual coordinate descent against LIBLINEAR, the duality gap, and by hand."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import (
    assert_stops_when_interrupted,
    linear_gap,
    make_problem,
    needs_jit,
)

from svmbench.baselines.liblinear import LiblinearL1, LiblinearL2, LiblinearL2Dual
from svmbench.core.linear.dcd import DCDL1, DCDL2, next_pass, shuffle


@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_several_classes_are_fits_against_the_rest_on_inputs_converted_once(
    solver, form, monkeypatch
):
    """Each class has the weights, offset and multipliers of a fit of its own, with weights too."""
    rng = np.random.default_rng(0)
    X, y, given = form(rng.random((60, 5))), np.resize([0, 1, 2], 60), rng.random(60)
    signs = [np.where(y == label, 1, -1) for label in range(3)]
    calls = []
    convert = solver._convert
    monkeypatch.setattr(solver, "_convert", lambda *own: calls.append(1) or convert(*own))
    for class_weight, weights in ((None, None), ({0: 3.0}, None), (None, given)):
        calls.clear()
        model = solver(class_weight=class_weight).fit(X, y, weights)
        assert len(calls) == 1
        for label in range(3):
            factor = {1: 3.0} if class_weight and label == 0 else None
            alone = solver(class_weight=factor).fit(X, signs[label], weights)
            np.testing.assert_array_equal(model.coef_[label], alone.coef_[0])
            np.testing.assert_array_equal(model.intercept_[label], alone.intercept_[0])
            np.testing.assert_array_equal(model.estimators_[label].alpha_, alone.alpha_)
            assert model.estimators_[label].objective_ == alone.objective_


def test_two_samples_by_hand():
    # x = 1, 1 after folding in the labels, no offset. Hinge: w = min(1, 2C).
    X, y = [[1.0], [-1.0]], [1, -1]
    assert DCDL1(C=0.2, tol=1e-9, fit_intercept=False).fit(X, y).coef_[0, 0] == pytest.approx(0.4)
    assert DCDL1(C=5.0, tol=1e-9, fit_intercept=False).fit(X, y).coef_[0, 0] == pytest.approx(1.0)
    # Squared hinge: w = 4C / (1 + 4C).
    model = DCDL2(C=0.5, tol=1e-9, fit_intercept=False).fit(X, y)
    assert model.coef_[0, 0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_closes_the_duality_gap(solver, form, bias):
    X, y = make_problem(n=60, d=6)
    X[7] = 0.0
    C = 0.5
    model = solver(
        C=C, tol=1e-8, max_iter=20000, fit_intercept=bias > 0, intercept_scaling=bias
    ).fit(form(X), y)
    w, b = model.coef_[0], model.intercept_[0]
    gap = linear_gap(model.problem, X, y, w, b, C, alpha=model.alpha_, bias=bias)
    assert abs(gap) < 1e-6 * model.objective_
    assert_allclose(X.T @ (y * model.alpha_), w, atol=1e-9)
    assert model.stop_reason_ == "converged"


@pytest.mark.parametrize(
    ("solver", "oracle"), [(DCDL1, LiblinearL1), (DCDL2, LiblinearL2Dual), (DCDL2, LiblinearL2)]
)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_objective_is_liblinear_s(solver, oracle, C):
    X, y = make_problem(n=120, d=8)
    ours = solver(C=C, tol=1e-6, max_iter=5000).fit(X, y).objective_
    assert ours == pytest.approx(oracle(C=C, tol=1e-6).fit(X, y).objective_, rel=1e-4)


@pytest.mark.mirror
@needs_jit
@pytest.mark.parametrize(("solver", "oracle"), [(DCDL1, LiblinearL1), (DCDL2, LiblinearL2)])
@pytest.mark.parametrize("name", ["a9a", "ijcnn1"])
def test_objective_is_liblinear_s_on_real_data(mirrored, solver, oracle, name):
    X, y = mirrored(name)
    ours = solver(C=0.1, tol=1e-6, max_iter=5000).fit(X, y)
    assert ours.objective_ == pytest.approx(oracle(C=0.1, tol=1e-6).fit(X, y).objective_, rel=1e-4)


@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
def test_order_labels_and_form_do_not_matter(solver):
    X, y = make_problem(n=80, d=5)
    strict = {"tol": 1e-9, "max_iter": 20000}
    model = solver(**strict).fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    assert_allclose(solver(**strict).fit(X[order], y[order]).coef_, model.coef_, atol=1e-6)
    assert_allclose(solver(**strict).fit(X, -y).coef_, -model.coef_, atol=1e-6)
    assert_allclose(solver(**strict).fit(sp.csr_array(X), y).coef_, model.coef_, atol=1e-6)


def test_duplicated_samples_weigh_twice():
    X, y = make_problem(n=50, d=5)
    twice = DCDL2(C=1.0, tol=1e-9, max_iter=20000).fit(np.vstack([X, X]), np.tile(y, 2))
    once = DCDL2(C=2.0, tol=1e-9, max_iter=20000).fit(X, y)
    assert_allclose(twice.coef_, once.coef_, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_shrinking_saves_visits_and_seeds_change_only_the_way(form):
    X, y = make_problem(n=100, d=5)
    model = DCDL1(tol=1e-6, max_iter=20000).fit(form(X), y)
    counters = model.counters_
    assert counters["updates"] <= counters["visits"] < 100 * counters["passes"]
    other = DCDL1(tol=1e-6, max_iter=20000, random_state=5).fit(form(X), y)
    assert other.counters_ != counters
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_trace_follows_the_same_way(form):
    X, y = make_problem(n=60, d=5)
    plain = DCDL1(tol=1e-3, max_iter=3000).fit(form(X), y)
    traced = DCDL1(tol=1e-3, max_iter=3000, trace=True).fit(form(X), y)
    assert np.array_equal(plain.coef_, traced.coef_)
    assert len(traced.trace_) == traced.n_iter_ == plain.n_iter_
    assert traced.trace_[-1][2] == pytest.approx(plain.objective_)


def test_too_few_passes_are_said():
    X, y = make_problem()
    model = DCDL1(tol=1e-9, max_iter=2).fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (2, "max_iter")


def test_shuffle_is_a_permutation_that_every_position_takes_part_in():
    active = np.arange(50, dtype=np.int32)
    seed = 12345
    firsts = set()
    for _ in range(300):
        seed = shuffle(active, 50, seed)
        firsts.add(int(active[0]))
        assert sorted(active.tolist()) == list(range(50))
    assert len(firsts) > 40


def test_a_pass_that_agrees_on_the_rest_brings_everything_back():
    active = np.array([3, 1, 0, 2], dtype=np.int32)
    limits, state = np.array([0.5, -0.5]), np.zeros(6, dtype=np.int64)
    assert next_pass(active, 2, 0.01, -0.01, 0.1, limits, state) == 4
    assert active.tolist() == [0, 1, 2, 3]
    assert limits.tolist() == [np.inf, -np.inf]
    assert state[2] == 0
    assert next_pass(active, 4, 0.01, -0.01, 0.1, limits, state) == 4
    assert state[2] == 1


def with_long_row(seed, ratio):
    """Return 20 samples, one of them `ratio` times as long as the others, and random labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2))
    X[rng.integers(20)] *= ratio
    return X, np.where(np.arange(20) < 10, 1.0, -1.0)


def largest_violation(model, X, y):
    """Return how far a sample is from its optimality condition, from weights and multipliers."""
    upper, ridge = (model.C, 0.0) if isinstance(model, DCDL1) else (np.inf, 0.5 / model.C)
    short = 1.0 - y * (X @ model.coef_[0] + model.intercept_[0]) - ridge * model.alpha_
    rises, falls = model.alpha_ < upper, model.alpha_ > 0.0
    return max(0.0, short[rises].max(initial=0.0), -short[falls].min(initial=0.0))


@needs_jit
@pytest.mark.parametrize("tol", [0.1, 1e-4])
@pytest.mark.parametrize("ratio", [100.0, 1e4])
@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
def test_a_long_row_leaves_no_violation_unsaid(solver, ratio, tol):
    for seed in range(20):
        X, y = with_long_row(seed, ratio)
        for form in (np.asarray, sp.csr_array):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", ConvergenceWarning)
                model = solver(C=30.0, tol=tol).fit(form(X), y)
            assert told or largest_violation(model, X, y) <= tol * (1.0 + 1e-6)


@needs_jit
def test_a_path_over_a_long_row_leaves_no_violation_unsaid():
    for seed in range(10):
        X, y = with_long_row(seed, 1e4)
        model = DCDL2()
        points = model.path(model.prepare(X, y), None, "C", [1e-3, 0.1, 10.0, 1e3])
        for _ in range(4):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", ConvergenceWarning)
                own = next(points).solution
            assert told or largest_violation(own, X, y) <= model.tol * (1.0 + 1e-6)


@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
def test_weights_leave_no_violation_unsaid(solver):
    X, y = with_long_row(0, 100.0)
    weights = np.where(y > 0, 5.0, 0.1)
    model = solver(C=0.01, tol=1e-3, max_iter=20_000).fit(X, y, sample_weight=weights)
    assert model.stop_reason_ == "converged"
    repeated = solver(C=0.001, tol=1e-3, max_iter=20_000).fit(
        np.repeat(X, np.where(y > 0, 50, 1), axis=0), np.repeat(y, np.where(y > 0, 50, 1))
    )
    assert model.objective_ == pytest.approx(repeated.objective_, rel=1e-3)


@needs_jit
@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_ctrl_c_is_heard_within_a_fit(solver, form):
    assert_stops_when_interrupted(
        lambda X, y, C: solver(C=C, tol=1e-9, max_iter=10**6).fit(form(X), y)
    )
