"""nu-svc against scikit-learn's (LIBSVM's), its own duality gap and what nu promises."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import NuSVC as Theirs
from small_problems import make_problem, needs_jit

import svmbench
from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.contract.base import warm_up
from svmbench.core.csvc import problem as qp_problem
from svmbench.core.csvc import smo, solver, working_sets
from svmbench.core.csvc.problem import least_gap
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.nu import nu_problem, nu_svc
from svmbench.core.nu.nu_problem import useful_nu
from svmbench.core.nu.nu_svc import NuSVC


def test_two_points_on_paper():
    # alpha is 1/4 for both; w = 1/4 (3 - 1) = 1/2, the margin is half their distance times w.
    model = NuSVC(nu=0.5, kernel="linear").fit([[1.0], [3.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-0.25, 0.25]])
    assert_allclose(model.intercept_, [-1.0])
    assert model.expansion_.rho == pytest.approx(0.5)
    assert model.objective_ == pytest.approx(-0.125)
    assert model.dual_objective_ == pytest.approx(-0.125)


@needs_jit
def test_newton_steps_help_with_many_free_multipliers():
    """Labels at random: 524 multipliers are free, which pair steps alone move slowly.

    Measured: 139,718 steps; 1,015,279 where Newton steps moved at most 512 multipliers.
    """
    rng = np.random.default_rng(0)
    model = NuSVC().fit(rng.random((1300, 5)), np.resize([1, -1], 1300))
    n_free = model.counters_["support_vectors"] - model.counters_["bounded_support_vectors"]
    assert n_free > 512
    assert model.n_iter_ < 400_000
    assert model.objective_ - model.dual_objective_ < 1e-3 * abs(model.objective_)


@needs_jit
def test_warm_up_leaves_nothing_to_compile():
    compiled = [
        value
        for module in (qp_problem, smo, solver, working_sets)
        for value in vars(module).values()
        if hasattr(value, "nopython_signatures")
    ]
    warm_up(NuSVC)
    known = {each.__name__: list(each.signatures) for each in compiled}
    assert len(known["grouped_steps"]) > 1
    for n in (100, 600, 1500, 3000):
        X, y = make_problem(n=n, d=4)
        NuSVC(nu=0.5).fit(X, y)
        NuSVC(nu=0.6, tol=1e-6).fit(np.hstack([X, X, X, X]), y)  # nu with a margin
    assert {each.__name__: list(each.signatures) for each in compiled} == known


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("sets", [False, True])
def test_same_model_as_scikit_learn(kernel, nu, sets, monkeypatch):
    if sets:
        monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 0)
        monkeypatch.setattr(working_sets, "SET_SAMPLES", 24)
    X, y = make_problem(n=150, d=6)
    parameters = {"nu": nu, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    ours = NuSVC(tol=1e-8, **parameters).fit(X, y)
    theirs = Theirs(tol=1e-8, **parameters).fit(X, y)
    rho, f = ours.expansion_.rho, ours.decision_function(X)
    assert ours.stop_reason_ == "converged"
    # Theirs is the C-SVM's solution of the same f / rho, whose multipliers are N alpha / (N rho).
    C = 1.0 / (150 * rho)
    assert np.abs(theirs.dual_coef_).max() == pytest.approx(C, rel=1e-5)
    assert_allclose(f / rho, theirs.decision_function(X), atol=1e-5 * np.abs(f / rho).max())
    scaled = theirs.dual_coef_[0] * rho
    square = scaled @ ours.function.between(*(theirs.support_vectors_,) * 2) @ scaled
    assert ours.dual_objective_ == pytest.approx(-0.5 * square, rel=1e-6)
    assert ours.objective_ - ours.dual_objective_ <= 1e-6 * abs(ours.objective_) + 1e-12
    # The property that nu is named for.
    assert np.sum(y * f < rho * (1 - 1e-6)) / 150 <= nu + 1e-9
    assert len(ours.support_) / 150 >= nu - 1e-9


@needs_jit
def test_the_same_classes_as_the_c_svm_at_its_own_C():
    X, y = make_problem(n=120, d=5)
    ours = NuSVC(nu=0.3, gamma=1.0, tol=1e-8).fit(X, y)
    rho = ours.expansion_.rho
    twin = SVC(C=1.0 / (120 * rho), gamma=1.0, tol=1e-8).fit(X, y)
    assert_allclose(ours.decision_function(X) / rho, twin.decision_function(X), atol=1e-5)


def of_c_svm(pair, X, y, C):
    """Return a pair's violation of the conditions of the C-SVC whose f is its f over rho."""
    rho = pair.expansion_.rho
    alpha = np.zeros(len(y))
    alpha[pair.support_] = pair.dual_coef_[0] * y[pair.support_] / rho
    assert alpha.max() <= C * (1.0 + 1e-12)
    F = y - (pair.decision_function(X) - pair.intercept_[0]) / rho
    up = np.where(y > 0, alpha < C * (1.0 - 1e-12), alpha > 0)
    low = np.where(y > 0, alpha > 0, alpha < C * (1.0 - 1e-12))
    return F[up].max() - F[low].min()


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("times", [1.0, 1e-2, 1e-4, 30.0])
def test_the_tolerance_is_relative_to_rho_whatever_the_scale_of_the_kernel(kernel, times):
    X, y = load_wine(return_X_y=True)
    X = times * StandardScaler().fit_transform(X)
    parameters = {"nu": 0.1, "kernel": kernel, "gamma": 0.1 / times**2}
    model = NuSVC(**parameters).fit(X, y)
    exact = NuSVC(tol=1e-8, **parameters).fit(X, y)
    assert np.array_equal(model.predict(X), exact.predict(X))
    assert model.objective_ == pytest.approx(exact.objective_, rel=2e-2)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for pair, (first, second) in zip(model.estimators_, pairs, strict=True):
        own = np.isin(y, (first, second))
        signs = np.where(y[own] == second, 1, -1)
        C = 1.0 / (own.sum() * pair.expansion_.rho)
        # Each class has its own violation, of at most tol; LIBSVM's one sum allows for both.
        assert of_c_svm(pair, X[own], signs, C) <= 2.5e-3


def test_permuted_and_flipped_samples():
    X, y = make_problem(n=20 if JIT_DISABLED else 80, d=4)
    order = np.random.default_rng(0).permutation(len(y))
    there = NuSVC(nu=0.4, tol=1e-7).fit(X, y)
    back = NuSVC(nu=0.4, tol=1e-7).fit(X[order], -y[order])
    assert_allclose(back.decision_function(X), -there.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_in_any_order_are_solved_sorted_by_class(weighted, monkeypatch):
    X, y = make_problem(n=20 if JIT_DISABLED else 80, d=4)
    weights = 0.5 + np.random.default_rng(1).random(len(y)) if weighted else None
    order, groups = np.argsort(-y, kind="stable"), []

    def listened(source, problem, **options):
        groups.append(problem.group)
        return solver.solve_qp(source, problem, **options)

    monkeypatch.setattr(nu_svc, "solve_qp", listened)
    mixed = NuSVC(nu=0.4, tol=1e-7).fit(X, y, sample_weight=weights)
    ordered = NuSVC(nu=0.4, tol=1e-7).fit(
        X[order], y[order], sample_weight=None if weights is None else weights[order]
    )
    assert np.any(np.diff(y) > 0)
    assert all(np.all(np.diff(group) >= 0) for group in groups)
    assert_allclose(mixed.decision_function(X), ordered.decision_function(X), atol=1e-6)
    # A stored matrix is not sorted, and has the same solution.
    stored = NuSVC(nu=0.4, tol=1e-7, kernel="precomputed")
    K = KernelFunction("rbf", mixed.expansion_.function.gamma).between(X, X)
    stored.fit(K, y, sample_weight=weights)
    assert np.any(np.diff(groups[-1]) < 0)
    assert_allclose(stored.decision_function(K), mixed.decision_function(X), atol=1e-6)


def test_what_nu_can_not_be():
    X, y = make_problem(n=20, d=3)
    with pytest.raises(ValueError, match="nu must be a number above 0 and at most 1, got nu=0"):
        NuSVC(nu=0).fit(X, y)
    few = np.where(np.arange(20) < 4, 1, -1)
    with pytest.raises(ValueError, match=r"nu=0.5 is too large: .* it can be 0.4 at most"):
        NuSVC(nu=0.5).fit(X, few)
    assert NuSVC(nu=0.4, tol=1e-6).fit(X, few).stop_reason_ == "converged"


def smallest_mean_hinge_loss(K, y, offset):
    """Return the least mean hinge loss of any f = K beta + b: a linear program, by HiGHS."""
    n = len(y)
    values, vectors = np.linalg.eigh(K)
    F = vectors[:, values > 1e-10 * values[-1]] * np.sqrt(values[values > 1e-10 * values[-1]])
    left = np.hstack([-y[:, None] * F, -float(offset) * y[:, None], -np.eye(n)])
    cost = np.append(np.zeros(F.shape[1] + 1), np.full(n, 1.0 / n))
    bounds = [(None, None)] * (F.shape[1] + 1) + [(0.0, None)] * n
    return linprog(cost, A_ub=left, b_ub=-np.ones(n), bounds=bounds).fun


def overlapping(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 0.6 * y
    return X, y


@needs_jit
@pytest.mark.parametrize(("name", "offset"), [("nu-svc", True), ("nu-svm", False)])
@pytest.mark.parametrize("times", [1.0, 1e-3])
def test_a_nu_without_a_margin_is_told_with_one_that_has_it(name, offset, times):
    X, y = overlapping()
    X = times * X
    K = X @ X.T + (0.0 if offset else 1.0)
    least = smallest_mean_hinge_loss(K, y, offset)
    assert 0.4 < least < 0.9
    said = "finds no margin at nu=.*, where the model is w = 0: nu=(0[.][0-9]+) has one$"
    for nu in (0.05, 0.9 * least):
        with pytest.warns(ConvergenceWarning, match=f"{name} finds no margin") as told:
            model = svmbench.solver(name, nu=nu, kernel="linear").fit(X, y)
        assert model.stop_reason_ == "no margin"
        useful = float(re.search(said, str(told[0].message)).group(1))
        assert least <= useful <= 1.1 * least
        # Weak duality: the optimum is 0 but for rounding.
        assert -1e-9 * times**2 <= model.dual_objective_ <= 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = svmbench.solver(name, nu=1.05 * least, kernel="linear").fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.objective_ < 0.0
    assert model.objective_ - model.dual_objective_ <= 0.05 * -model.dual_objective_
    if times == 1.0:
        assert svmbench.solver(name, nu=useful, kernel="linear").fit(X, y).objective_ < 0.0


@needs_jit
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_narrow_margin_is_found_in_more_steps_than_came_before(seed):
    X, y = overlapping(60, seed)
    model = NuSVC(nu=0.03, gamma=0.1).fit(X, y)
    assert model.stop_reason_ == "converged"
    # A primal value below 0 proves that there is a margin.
    assert model.objective_ < 0.0
    assert model.objective_ - model.dual_objective_ <= 0.01 * -model.dual_objective_


@needs_jit
@pytest.mark.parametrize("weighted", [False, True])
def test_a_useful_nu_has_a_margin_and_is_hardly_above_the_least(weighted):
    X, y = overlapping()
    # A weight of 2 is a sample twice.
    weights = np.where(np.arange(150) % 3 == 0, 2.0, 1.0) if weighted else np.ones(150)
    twice = np.repeat(np.arange(150), weights.astype(int))
    for kernel in (KernelFunction("linear"), KernelFunction("poly", 0.5, 2, 1.0)):
        K = kernel.between(X, X)
        for offset in (True, False):
            least = smallest_mean_hinge_loss(K[np.ix_(twice, twice)], y[twice], offset)
            # Without a free offset it is asked of Q.
            given = K if offset else K * np.outer(y, y)
            source = KernelSource.precomputed(given)
            found = useful_nu(source, y, weights / weights.mean(), is_signed=not offset)
            assert least - 1e-6 <= found <= 1.2 * least
    of_smaller = 2.0 * min(np.mean(y > 0), np.mean(y < 0))
    assert useful_nu(KernelSource.precomputed(np.ones((150, 150))), y) == of_smaller


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_gap_at_the_best_thresholds_is_a_linear_program_s(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(12) < 0.4, 1.0, -1.0)
    problem, beta = nu_problem.nu_svc_problem(y, 0.3, 0.5 + rng.random(12))
    v = rng.normal(size=12)
    sums = np.array([y > 0, y < 0], dtype=float)
    bounds = np.column_stack([problem.low, problem.high])
    best = linprog(-v, A_eq=sums, b_eq=sums @ beta, bounds=bounds)
    assert least_gap(problem, beta, v) == pytest.approx(-best.fun - v @ beta)


@needs_jit
def test_w_proves_a_margin_only_above_the_smallest_nu():
    X, y = overlapping()
    K = X @ X.T
    least = smallest_mean_hinge_loss(K, y, True)
    above = 1.02 * least
    model = NuSVC(nu=above, kernel="linear", tol=1e-6).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = len(y) * np.abs(model.dual_coef_[0])
    for share, has_one in ((1.0, True), (0.985, True), (0.98, False), (0.97, False)):
        problem, _ = nu_problem.nu_svc_problem(y, share * above)
        beta = share * alpha * y
        v = -K @ beta
        assert solver.has_margin(problem, beta, v) == has_one
    # The last is near: with a larger share of ||w||^2 it would be a proof.
    assert least_gap(problem, beta, v) < 2.0 * beta @ K @ beta


@needs_jit
@pytest.mark.mirror
@pytest.mark.slow
def test_a_narrow_margin_of_real_data_is_found():
    a1a = svmbench.load("a1a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for nu in (0.05, 0.074):
            model = NuSVC(nu=nu, gamma=1.0 / 119.0).fit(a1a.X, a1a.y)
            assert model.objective_ < 0.0


def test_rows_that_are_all_equal_have_no_margin_at_any_nu():
    with pytest.warns(ConvergenceWarning, match="finds no margin at nu=0.5, .* knows of none"):
        NuSVC().fit(np.ones((8, 2)), [0, 1] * 4)


@pytest.mark.parametrize(
    ("useful", "most", "told"),
    [(0.665, 2.0 / 3.0, "0.665"), (0.331, 1.0 / 3.0, "0.331"), (0.4512, 1.0, "0.46")],
)
def test_a_useful_nu_is_told_within_its_limits(useful, most, told):
    sentence = nu_problem.no_margin(0.2, useful, most)
    assert sentence.endswith(f"where the model is w = 0: nu={told} has one")
    assert useful <= float(told) <= most


def test_the_largest_nu_is_feasible_with_equal_weights():
    X, y = make_problem(n=14, d=2)
    y = np.repeat([0, 1], 7)
    # The normalised weights are 1 but for rounding.
    model = NuSVC(nu=1.0).fit(X, y, sample_weight=np.full(14, 0.1))
    assert_allclose(np.abs(model.dual_coef_), 1.0 / 14.0)
    with pytest.raises(ValueError, match="nu=1 is too large"):
        NuSVC(nu=1.0).fit(X, np.repeat([0, 1], [6, 8]))
