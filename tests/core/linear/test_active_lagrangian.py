"""ASVM and LSVM: step by step against the printed algorithms, and LIBLINEAR's optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from small_problems import linear_gap, make_problem, needs_jit

from svmbench.baselines.liblinear import LiblinearL2
from svmbench.core.contract.problems import SQUARED_HINGE
from svmbench.core.linear.active_lagrangian import ASVM, LSVM, FaceGram, active_set, lagrangian

BOTH = pytest.mark.parametrize("solver", [ASVM, LSVM])


def dense_Q(X, y, C):
    H = y[:, None] * X
    return H @ H.T + np.eye(len(y)) / (2.0 * C)


def printed_lagrangian(X, y, C, n_steps):
    """Follow the iteration of the LSVM paper with Q as a matrix; yield every u."""
    Q, a = dense_Q(X, y, C), 1.9 / (2.0 * C)
    u = np.linalg.solve(Q, np.ones(len(y)))
    for _ in range(n_steps):
        yield u
        u = np.linalg.solve(Q, 1.0 + np.maximum(Q @ u - 1.0 - a * u, 0.0))


def printed_active_set(X, y, C, n_steps):
    """Follow the steps of the ASVM paper with Q as a matrix; yield u after every face."""
    Q = dense_Q(X, y, C)

    def f(u):
        return 0.5 * u @ Q @ u - u.sum()

    def face(B):
        v = np.zeros(len(y))
        v[B] = np.linalg.solve(Q[np.ix_(B, B)], np.ones(len(B)))
        return v

    u = np.maximum(face(np.arange(len(y))), 0.0)
    for _ in range(n_steps):
        v = face(np.flatnonzero(u > 0.0))
        new = np.maximum(v, 0.0)
        if f(new) >= f(u) and np.any(v < 0.0):
            bound = min(u[j] / (u[j] - v[j]) for j in range(len(y)) if v[j] < 0.0)
            share = 0.5
            new = np.maximum(u + max(share, bound) * (v - u), 0.0)
            while f(new) >= f(u) and share > bound:
                share /= 2.0
                new = np.maximum(u + max(share, bound) * (v - u), 0.0)
        u = new
        if np.all(v >= 0.0):
            g = Q @ u - 1.0
            d = np.maximum(u - g, 0.0) - u
            if np.any(np.abs(d) > 1e-12):
                u = u + min(1.0, -(g @ d) / (d @ Q @ d)) * d
        yield u


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_lsvm_is_the_printed_iteration(form):
    X, y = make_problem(n=40, d=4)
    y = y.astype(float)
    for step, u in enumerate(printed_lagrangian(X, y, 5.0, 12)):
        ours, w, _, _ = lagrangian(form(X), y, 5.0, 1e-300, max(step, 1)) if step else (u,) * 4
        assert_allclose(ours, u, atol=1e-9)
        if step:
            assert_allclose(w, X.T @ (y * ours), atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("C", "scale"), [(0.5, 1.0), (50.0, 1.0), (50.0, 8.0)])
def test_asvm_goes_from_face_to_face_as_printed(form, C, scale):
    X, y = make_problem(n=60, d=8, noise=0.05)
    X, y = scale * X, y.astype(float)
    previous = np.inf
    for n_faces, u in enumerate(printed_active_set(X, y, C, 8), start=1):
        ours, w, reason, counters = active_set(form(X), y, C, 1e-9, n_faces)
        assert_allclose(ours, u, atol=1e-7 * C)
        value = 0.5 * u @ dense_Q(X, y, C) @ u - u.sum()
        assert value <= previous + 1e-9 * abs(value)
        previous = value
        assert_allclose(w, X.T @ (y * ours), atol=1e-8 * C)
        if reason == "converged":
            return
        assert counters["faces"] == n_faces + 1


@BOTH
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_closes_the_duality_gap(solver, bias, form):
    X, y = make_problem(n=80, d=6)
    X[7] = 0.0
    model = solver(C=0.7, tol=1e-9, fit_intercept=bias > 0, intercept_scaling=bias).fit(form(X), y)
    w, b = model.coef_[0], model.intercept_[0]
    alpha = np.maximum(model.alpha_, 0.0)
    gap = linear_gap(SQUARED_HINGE, X, y, w, b, 0.7, alpha=alpha, bias=bias)
    assert abs(gap) < 1e-7 * model.objective_
    assert model.stop_reason_ == "converged"
    assert_allclose(X.T @ (y * model.alpha_), w, atol=1e-7)


@BOTH
def test_two_samples_by_hand(solver):
    # x = 1, 1 after folding in the labels, no offset: w = 4C / (1 + 4C).
    model = solver(C=0.5, tol=1e-12, fit_intercept=False).fit([[1.0], [-1.0]], [1, -1])
    assert model.coef_[0, 0] == pytest.approx(2 / 3)


@pytest.mark.mirror
@needs_jit
@BOTH
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize(
    "name", ["heart", "australian", "german.numer", "svmguide3", "splice", "diabetes", "a1a"]
)
def test_the_optimum_is_that_of_liblinear(mirrored, solver, C, name):
    X, y = mirrored(name)
    X = sp.csr_array(X.multiply(1.0 / np.maximum(abs(X).max(axis=0).toarray(), 1e-12)))
    ours = solver(C=C, tol=1e-7, max_iter=100_000).fit(X, y)
    best = LiblinearL2(C=C, tol=1e-9).fit(X, y).objective_
    assert ours.stop_reason_ == "converged"
    assert ours.objective_ == pytest.approx(best, rel=1e-6)


@BOTH
def test_samples_that_come_twice_weigh_twice(solver):
    X, y = make_problem(n=50, d=5)
    twice = solver(C=1.0, tol=1e-9).fit(np.vstack([X, X]), np.tile(y, 2))
    once = solver(C=2.0, tol=1e-9).fit(X, y)
    assert_allclose(twice.coef_, once.coef_, atol=1e-6)


@BOTH
def test_too_few_iterations_are_said(solver):
    X, y = make_problem(n=100, d=8)
    assert solver(C=100.0, tol=1e-10, max_iter=1).fit(X, y).stop_reason_ == "max_iter"


def test_asvm_ends_where_thousands_of_samples_leave_at_once():
    # Far from the margin, hardly any sample is a support vector, and no step may drop one alone.
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], 400)
    X = np.column_stack([y * rng.uniform(1.0, 9.0, 800), rng.normal(size=800)])
    model = ASVM(C=1.0, tol=1e-9).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.n_iter_ < 60
    assert np.count_nonzero(model.alpha_) < 400


def test_a_face_s_sum_follows_the_rows_that_come_and_go():
    X, _ = make_problem(n=30, d=4)
    face, inside = FaceGram(X), np.ones(30, dtype=bool)
    for gone in ([], [3, 4], [3], list(range(20))):
        inside = np.ones(30, dtype=bool)
        inside[gone] = False
        assert_allclose(face.of(inside), X[inside].T @ X[inside], atol=1e-12)
    assert face.n_rows == 30 + 2 + 1 + 10
