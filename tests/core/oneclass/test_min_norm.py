"""Wolfe's algorithm on reduced convex hulls: a generic QP solver, LIBSVM, conditions per sample."""

import numpy as np
import piqp
import pytest
import scipy.sparse as sp
from sklearn.svm import OneClassSVM

import svmbench
from svmbench.core.csvc.smo import CONVERGED, MAX_ITER, NO_MARGIN_CODE
from svmbench.core.oneclass import min_norm, one_class
from svmbench.core.oneclass.min_norm import lowest, solve_min_norm


def samples(n=120, d=5, seed=0):
    return np.random.default_rng(seed).normal(4.0, 1.0, (n, d))


def least_square(X, total, high):
    """Return the least ||X'beta||^2 over the box of a given sum, by PIQP."""
    n, nothing, scale = len(X), (None, None, None), float(np.abs(X @ X.T).max())
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    box = (np.zeros(n), np.full(n, high / total))
    solver.setup(X @ X.T / scale, np.zeros(n), np.ones((1, n)), np.ones(1), *nothing, *box)
    solver.solve()
    w = total * solver.result.x @ X
    return w @ w


def assert_conditions(X, found, total, high, tol):
    """Check the sum, the bounds, v, and the largest violation of any pair of samples."""
    assert found.beta.sum() == pytest.approx(total)
    assert found.beta.min() >= 0.0
    assert found.beta.max() <= high
    f = X @ (found.beta @ X)
    np.testing.assert_allclose(found.v, -f, atol=1e-9 * np.abs(f).max())
    low = f[found.beta < high].min() if np.any(found.beta < high) else np.inf
    assert f[found.beta > 0.0].max() - low <= tol * min(1.0, abs(low)) + 1e-12 * np.abs(f).max()


def test_three_points_on_paper():
    # The nearest point of a triangle, and of the middles of its sides: no row counts over a half.
    X = np.array([[1.0, 3.0], [1.0, -1.0], [5.0, 1.0]])
    hard = solve_min_norm(X, 1.0, 2.0, tol=1e-9, max_iter=100)
    np.testing.assert_allclose(hard.beta, [0.25, 0.75, 0.0], atol=1e-12)
    reduced = solve_min_norm(X, 2.0, 1.0, tol=1e-9, max_iter=100)
    np.testing.assert_allclose(reduced.beta, [1.0, 1.0, 0.0], atol=1e-12)
    assert reduced.beta @ X @ (reduced.beta @ X) == pytest.approx(least_square(X, 2.0, 1.0))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("share", [0.0, 0.055, 0.305, 0.8, 1.0])
@pytest.mark.parametrize("rows", [12, 2000])
@pytest.mark.parametrize("ties", [False, True])
def test_the_norm_is_least_and_each_sample_meets_its_condition(
    form, share, rows, ties, monkeypatch
):
    monkeypatch.setattr(min_norm, "BAND_ROWS", rows)
    X = samples()
    if ties:
        X = np.round(X) + 1.0
    total, high = (share * len(X), 1.0) if share else (1.0, 2.0)
    found = solve_min_norm(form(X), total, high, tol=1e-6, max_iter=10_000)
    least = least_square(X, total, high)
    w = found.beta @ X
    assert w @ w == pytest.approx(least, rel=1e-6)
    assert found.reason == CONVERGED
    assert_conditions(X, found, total, high, 1e-6)


@pytest.mark.parametrize("rows", [12, 2000])
def test_rows_in_any_order_of_any_scale_have_one_w(rows, monkeypatch):
    monkeypatch.setattr(min_norm, "BAND_ROWS", rows)
    X = samples()
    order = np.random.default_rng(1).permutation(len(X))
    there = solve_min_norm(X, 12.3, 1.0, tol=1e-9, max_iter=10_000)
    back = solve_min_norm(1e3 * X[order], 12.3, 1.0, tol=1e-9, max_iter=10_000)
    np.testing.assert_allclose(back.beta @ X[order], there.beta @ X, rtol=1e-7)


def test_no_margin_where_the_origin_is_inside_and_a_limit_of_steps():
    X = samples() - 4.0
    found = solve_min_norm(X, 60.0, 1.0, tol=1e-3, max_iter=10_000)
    assert found.reason == NO_MARGIN_CODE
    np.testing.assert_allclose(found.beta @ X, 0.0, atol=1e-9)
    assert solve_min_norm(samples(), 12.3, 1.0, tol=1e-9, max_iter=2).reason == MAX_ITER


def test_the_lowest_rows_have_their_sum():
    f = np.array([3.0, 1.0, 2.0, 1.0])
    assert list(lowest(f, 2.5, 1.0)) == [0.0, 1.0, 0.5, 1.0]
    assert list(lowest(f, 4.0, 1.0)) == [1.0] * 4
    assert lowest(f, 1.0, 2.0) @ f == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("nu", [1e-5, 0.0333, 0.3])
def test_a_linear_detector_of_many_samples_is_libsvm_s(form, nu, monkeypatch):
    X = samples(2400, 4)
    ours = svmbench.OneClass(nu=nu, kernel="linear").fit(form(X))
    assert ours.stop_reason_ == "converged"
    assert ours.counters_["updates"] == ours.n_iter_
    assert svmbench.certify(ours, X).gap <= 1e-6 * -ours.objective_
    monkeypatch.setattr(one_class, "MIN_NORM_MAX_FEATURES", 0)
    pairs = svmbench.OneClass(nu=nu, kernel="linear", tol=1e-6).fit(X)
    f = ours.decision_function(X)
    np.testing.assert_allclose(pairs.decision_function(X), f, atol=1e-5 * np.abs(f).max())
    if nu > 1e-3:
        theirs = OneClassSVM(nu=nu, kernel="linear", tol=1e-6).fit(X)
        scaled = theirs.decision_function(X) / (nu * len(X))
        np.testing.assert_allclose(scaled, f, atol=1e-5 * np.abs(f).max())


def test_where_float64_allows_no_more_pairs_of_samples_go_on(monkeypatch):
    X = samples(2400, 4)
    monkeypatch.setattr(min_norm, "PATIENCE", 0)
    monkeypatch.setattr(min_norm, "LEAST_WEIGHT", 1e-3)
    found = svmbench.OneClass(nu=0.1, kernel="linear").fit(X)
    assert found.stop_reason_ == "converged"
    assert svmbench.certify(found, X).gap <= 1e-3 * -found.objective_


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_liblinear_s_one_class_svm_has_the_scale_of_ours(form):
    X = form(samples(300, 4))
    for nu in (0.05, 0.4):
        theirs = svmbench.solver("liblinear-oneclass", nu=nu, tol=1e-6).fit(X)
        ours = svmbench.OneClass(nu=nu, kernel="linear", tol=1e-9).fit(X)
        assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-6)
        np.testing.assert_allclose(theirs.coef_, ours.coef_, rtol=1e-3)
        assert theirs.offset_ == pytest.approx(ours.offset_, rel=1e-4)
