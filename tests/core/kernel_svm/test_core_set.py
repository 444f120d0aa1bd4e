"""CVM and BVM against the L2-SVM's optimum, and their ball updates against naive ones."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from small_problems import make_problem, needs_jit

from svmbench.core.kernel_svm import core_set
from svmbench.core.kernel_svm.core_set import BVM, CVM, precisions
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.numeric.random import generator

BOTH = pytest.mark.parametrize("solver", [CVM, BVM])
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
RBF = KernelFunction("rbf", 0.7)


def gram(X, y, C):
    return (RBF.between(X, X) + 1.0) * np.outer(y, y) + np.eye(len(y)) / C


def optimum(Q):
    """Return the multipliers of min 1/2 a'Qa - e'a over a >= 0, by non-negative least squares."""
    R = np.linalg.cholesky(Q).T
    return nnls(R, np.linalg.solve(R.T, np.ones(len(Q))), maxiter=100 * len(Q))[0]


@needs_jit
@BOTH
@FORMS
@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("eps", [1e-3, 1e-5])
def test_dual_value_is_within_what_eps_allows(solver, form, C, eps, monkeypatch):
    monkeypatch.setattr(core_set, "FIRST_WIDTH", 32)
    X, y = make_problem(n=250, d=6)
    model = solver(C=C, gamma=0.7, tol=eps).fit(form(X), y)
    best = optimum(gram(X, y, C)).sum() / 2.0
    value = model.dual_objective_
    assert model.stop_reason_ == "converged"
    # ||c||^2 = 1 / (2 D).
    allowed = (2.0 * eps + eps**2) * (2.0 + 1.0 / C) * 2.0 * value
    assert -1e-6 <= 1.0 - value / best <= allowed
    # No sample is outside.
    alpha = np.zeros(250)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    g, square = gram(X, y, C) @ alpha, 1.0 / alpha.sum()
    assert (1.0 - g.min()) * square <= (eps + 0.5 * eps**2) * (2.0 + 1.0 / C) * 1.001 + 1e-7
    assert model.intercept_[0] == pytest.approx(model.dual_coef_.sum())


def first_members(y, n):
    order = generator(0).permutation(len(y))
    classes = [order[y[order] > 0], order[y[order] < 0]]
    return [int(classes[k % 2][k // 2]) for k in range(n)]


@needs_jit
def test_core_set_grows_by_the_farthest_sample():
    X, y = make_problem(n=80, d=5, density=1.0)
    C, eps = 2.0, 0.05
    Q, members = gram(X, y, C), first_members(y, 20)
    for precision in precisions(eps):
        while True:
            own = Q[np.ix_(members, members)]
            alpha = optimum(own)
            alpha /= alpha.sum()
            square = alpha @ own @ alpha
            radius = Q[0, 0] - square
            distance = square - 2.0 * Q[:, members] @ alpha + Q[0, 0]
            distance[members] = 0.0
            i = int(np.argmax(distance))
            if distance[i] <= (1.0 + precision) ** 2 * radius:
                break
            members.append(i)
    model = CVM(C=C, gamma=0.7, tol=eps).fit(X, y)
    assert model.counters_["core_set"] == len(members)
    assert set(model.support_) <= set(members)
    found = np.zeros(80)
    found[model.support_] = np.abs(model.dual_coef_[0])
    # The inner problem is solved to a tenth of eps.
    assert_allclose(1.0 / found.sum(), square, rtol=0.1)


@pytest.mark.parametrize("n_moves", [1, 2, 5, 20, 60])
def test_ball_moves_until_the_sample_lies_on_it(n_moves):
    X, y = make_problem(n=40, d=5, density=1.0)
    C, eps = 2.0, 1e-4
    Q = gram(X, y, C)
    q = Q[0, 0]
    alpha = np.zeros(40)
    alpha[first_members(y, 1)] = 1.0
    schedule, moves = iter(precisions(eps)), 0
    precision = next(schedule)
    while moves < n_moves:
        g, square = Q @ alpha, alpha @ Q @ alpha
        away = 2.0 * square - 2.0 * g + q
        # The farthest member first.
        for some in (np.flatnonzero(alpha), np.flatnonzero(alpha == 0.0)):
            i = some[np.argmax(away[some])] if len(some) else 0
            if away[i] > (1.0 + precision) ** 2 * q:
                beta = np.sqrt(q / away[i])
                alpha *= beta
                alpha[i] += 1.0 - beta
                moves += 1
                break
        else:
            precision = next(schedule)
    with pytest.warns(match=f"bvm stopped at max_iter={n_moves} before"):
        model = BVM(C=C, gamma=0.7, tol=eps, max_iter=n_moves).fit(X, y)
    found = np.zeros(40)
    found[model.support_] = np.abs(model.dual_coef_[0])
    assert_allclose(found, alpha / (alpha @ Q @ alpha), atol=1e-4)


def test_precisions_fall_by_halves():
    assert precisions(0.02) == [0.1, 0.05, 0.025, 0.02]
    assert precisions(0.5) == [0.5]


@needs_jit
@BOTH
def test_large_sets_are_sampled(solver):
    X, y = make_problem(n=1000, d=4)
    model = solver(C=1.0, gamma=0.7, tol=1e-5).fit(X, y)
    best = optimum(gram(X, y, 1.0)).sum() / 2.0
    assert 1.0 - model.dual_objective_ / best <= 2.0 * 1e-5 * 3.0 * 2.0 * best
    assert model.counters_["core_set"] < 1000
    other = solver(C=1.0, gamma=0.7, tol=1e-5, random_state=1).fit(X, y)
    assert other.counters_["kernel_evaluations"] != model.counters_["kernel_evaluations"]


@BOTH
def test_a_full_core_set_is_said(solver):
    X, y = make_problem(n=60, d=4)
    model = solver(gamma=0.7, n_basis=10, tol=1e-3).fit(X, y)
    assert model.stop_reason_ == "n_basis"
    assert model.counters_["core_set"] == 10


@BOTH
@FORMS
@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e12, 1e300])
def test_flat_and_steep_kernels_end_in_a_model(solver, form, gamma):
    X, y = make_problem(n=40, d=4)
    X[7] = X[3]
    model = solver(gamma=gamma, tol=1e-3).fit(form(X), y)
    assert np.all(np.isfinite(model.decision_function(X)))


@BOTH
def test_what_can_not_be_asked_is_one_sentence(solver):
    X, y = make_problem(n=20, d=3)
    for wrong, sentence in (
        ({"tol": 0.0}, "tol must be a positive finite number"),
        ({"n_basis": 0}, "n_basis must be an integer of at least 1"),
        ({"kernel": "linear"}, "takes the kernel rbf; got kernel='linear'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            solver(**wrong).fit(X, y)


def test_what_the_base_class_names_is_what_its_subclasses_define():
    summary = core_set.CoreSetMachine.__doc__.partition("Parameters")[0]
    named = re.findall(r"`(\w+)`", summary)
    assert named == ["fixed_radius", "starts", "repeats"]
    for solver in (CVM, BVM):
        assert all(name in vars(solver) for name in named)
