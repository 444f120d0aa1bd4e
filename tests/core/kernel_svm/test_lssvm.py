"""The direct kernel LS-SVM against an independent solution, the linear solvers, and by hand."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from small_problems import make_problem, needs_jit, solutions

from svmbench.base.errors import BudgetError
from svmbench.core.contract.problems import absorbed
from svmbench.core.kernel_svm import linear_systems, lssvm
from svmbench.core.kernel_svm.linear_systems import (
    Preconditioner,
    is_worth_trying,
    solve_refined,
    solve_shifted,
)
from svmbench.core.kernel_svm.lssvm import LSSVM
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.linear.alsvm_batch import ALSVMBatch


def test_two_samples_by_hand():
    # x = -1 and x = 1, linear kernel, no offset: w = 2 / (2 + 1/(2C)), as ALSVM has it.
    model = LSSVM(C=0.5, kernel="linear", fit_intercept=False).fit([[-1.0], [1.0]], [-1, 1])
    assert model.decision_function([[1.0]])[0] == pytest.approx(2.0 / 3.0)
    assert model.intercept_[0] == 0.0
    assert model.dual_coef_[0] == pytest.approx([-1.0 / 3.0, 1.0 / 3.0])


@pytest.mark.parametrize("C", [2.0**-5, 1.0, 2.0**15])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_equals_the_solution_of_an_independent_solver(kernel, C):
    X, y = make_problem(n=80, d=5, density=1.0, noise=1.0)
    model = LSSVM(C=C, kernel=kernel, gamma=2.0, coef0=1.0).fit(X, y)
    products = X @ X.T
    K = {
        "rbf": np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2)),
        "poly": (2.0 * products + 1.0) ** 3,
        "linear": products,
    }[kernel]
    # The system of the paper, Q alpha = e, by LU.
    Q = np.outer(y, y) * (K + 1.0) + np.eye(80) / (2.0 * C)
    alpha = np.linalg.solve(Q, np.ones(80))
    beta = np.zeros(80)
    beta[model.support_] = model.dual_coef_[0]
    assert_allclose(beta, alpha * y, rtol=0, atol=1e-8 * np.abs(alpha).max())
    if C > 1.0:  # samples far on their own side pull back
        assert (beta * y).min() < 0.0 < (beta * y).max()
    f = K @ (alpha * y) + (alpha @ y)
    value = 0.5 * alpha @ (np.outer(y, y) * (K + 1.0)) @ alpha + C * np.sum((1.0 - y * f) ** 2)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.dual_objective_ == pytest.approx(model.objective_, rel=1e-6)
    assert_allclose(model.decision_function(X), f, atol=1e-6 * np.abs(f).max())


def test_is_the_minimum_of_its_problem():
    X, y = make_problem(n=12, d=2, density=1.0)
    model = LSSVM(C=0.7, gamma=1.0, intercept_scaling=2.0).fit(X, y)
    K = KernelFunction("rbf", 1.0).between(X, X) + 4.0
    found = minimize(
        lambda beta: 0.5 * beta @ K @ beta + 0.7 * np.sum((1.0 - y * (K @ beta)) ** 2),
        np.zeros(12),
        jac=lambda beta: K @ (beta - 1.4 * y * (1.0 - y * (K @ beta))),
        tol=1e-10,
    )
    assert model.objective_ == pytest.approx(found.fun, rel=1e-6)
    assert model.objective_id == ("least-squares", absorbed(2.0))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bias", [0.0, 1.0, 3.0])
def test_with_the_linear_kernel_it_is_the_linear_model(bias, form):
    X, y = make_problem(n=60, d=7)
    offset = {"fit_intercept": bias > 0, "intercept_scaling": bias or 1.0}
    ours = LSSVM(C=0.3, kernel="linear", **offset).fit(form(X), y)
    theirs = ALSVMBatch(C=0.3, **offset).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-9)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-8)
    assert ours.objective_id == theirs.objective_id


def test_a_path_computes_the_matrix_once():
    X, y = make_problem(n=40, d=4)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    points = list(LSSVM(gamma=1.0).path(source, y.astype(float), "C", [4.0, 0.5]))
    assert [point.statistics["kernel_evaluations"] for point in points] == [1600, 0]
    assert source.kernel_evaluations == 1600
    for C, found in zip([4.0, 0.5], solutions(points), strict=True):
        alone = LSSVM(C=C, gamma=1.0).solve(source, y.astype(float))
        assert_allclose(found.coefficients, alone.coefficients, rtol=1e-12)


def test_duplicate_samples_at_a_huge_c_have_a_solution():
    X, y = make_problem(n=20, d=3, density=1.0)
    X, y = np.vstack([X, X]), np.r_[y, y]
    model = LSSVM(C=1e18, gamma=1.0).fit(X, y)
    assert model.counters_["fallbacks"] == 1
    assert_allclose(model.decision_function(X), y, atol=1e-3)
    moderate = LSSVM(C=1.0, gamma=1.0).fit(X, y).counters_
    assert (moderate["fallbacks"], moderate["uncertified"]) == (0, 0)


def test_a_matrix_in_single_precision_is_left_as_it_is_and_solved_in_double():
    X, y = make_problem(n=30, d=3)
    K = KernelFunction("rbf", 1.0).between(X, X).astype(np.float32)
    before = K.copy()
    found = LSSVM(gamma=1.0).solve(KernelSource.precomputed(K), y.astype(float))
    assert np.array_equal(K, before)
    beta = lssvm.solve_directly(K.astype(np.float64), y.astype(float), 0.5, 1.0).beta
    assert_allclose(found.coefficients, beta, rtol=1e-13)


def test_what_does_not_fit_is_refused_before_it_is_made():
    X, y = make_problem(n=300)
    with pytest.raises(BudgetError, match=r"needs 1 MiB .* 300 samples .* cache_mb is 1$"):
        LSSVM(cache_mb=1.0).fit(X, y)
    assert LSSVM(cache_mb=1.4).fit(X, y).counters_["kernel_evaluations"] == 300**2
    with pytest.raises(ValueError, match="positive semidefinite kernel, one of linear, rbf, poly"):
        LSSVM(kernel="sigmoid").fit(X, y)


def test_a_model_survives_pickling():
    X, y = make_problem(n=30, d=3)
    model = LSSVM(gamma=1.0).fit(sp.csr_array(X), y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.expansion_.squared_norm() == model.expansion_.square
    fresh = KernelFunction("rbf", 1.0).between(X, X)
    beta = model.dual_coef_[0]
    assert model.expansion_.square == pytest.approx(beta @ fresh @ beta)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nu", [10.0, 0.5, 1e-3])
def test_single_precision_is_refined_to_double(monkeypatch, dtype, nu):
    X, y = make_problem(n=300, d=5)
    K = KernelFunction("rbf", 0.7).between(X, X).astype(dtype)
    monkeypatch.setattr(lssvm, "REFINED_MIN_SAMPLES", 10)
    found = lssvm.solve_directly(K, y.astype(float), nu, 1.0)
    A = K.astype(np.float64) + 1.0 + nu * np.eye(300)
    assert found.factorisations == 1
    assert 1 <= found.refinements <= linear_systems.MAX_ROUNDS
    assert found.certified
    assert np.linalg.norm(A @ found.beta - y) <= 1.01e-10 * np.linalg.norm(y)
    assert_allclose(found.beta, np.linalg.solve(A, y), atol=1e-6 * np.abs(found.beta).max())


def test_where_single_precision_does_not_suffice_double_takes_over(monkeypatch):
    X, y = make_problem(n=60, d=3, density=1.0)
    K = KernelFunction("rbf", 0.01).between(X, X)
    monkeypatch.setattr(lssvm, "REFINED_MIN_SAMPLES", 10)
    assert not is_worth_trying(K, 1e-9, 1.0)
    assert is_worth_trying(K, 1e-4, 1.0)
    assert solve_refined(K, y.astype(float), 1e-9, 1.0) is None
    found = lssvm.solve_directly(K, y.astype(float), 1e-9, 1.0)
    assert (found.factorisations, found.refinements, found.fell_back) == (1, 0, False)
    assert not found.certified
    A = K + 1.0 + 1e-9 * np.eye(60)
    assert np.linalg.norm(A @ found.beta - y) <= 1e-4 * np.linalg.norm(y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shifts_side_by_side_have_the_residuals_that_were_asked_for(dtype):
    X, y = make_problem(n=400, d=4, density=1.0)
    K = KernelFunction("rbf", 0.3).between(X, X).astype(dtype)
    before, y = K.copy(), y.astype(float)
    nu = np.array([0.05, 30.0, 0.4, 2.0])
    found = solve_shifted(K, y, nu, 4.0, 1e-10)
    assert np.array_equal(K, before)
    for each, shifted in zip(nu, found, strict=True):
        A = K.astype(np.float64) + 4.0 + each * np.eye(400)
        assert shifted.certified
        assert np.linalg.norm(y - A @ shifted.beta) <= 1.01e-10 * np.linalg.norm(y)
        assert_allclose(shifted.beta, np.linalg.solve(A, y), atol=1e-8 * np.abs(y).max() / each)
    assert found[1].steps < found[0].steps < 100


def test_the_preconditioner_is_the_inverse_of_the_approximation():
    X, _ = make_problem(n=60, d=4, density=1.0)
    K = KernelFunction("rbf", 0.3).between(X, X)
    J = np.sort(np.random.default_rng(0).permutation(60)[:6])
    C = K + 2.0
    approximate = C[:, J] @ np.linalg.solve(C[np.ix_(J, J)], C[J])
    made, R = Preconditioner(K, 2.0, 1e-10), np.random.default_rng(1).normal(size=(3, 60))
    made.at(np.array([0.5, 3.0, 70.0]))
    made.keep(np.array([True, False, True]))
    for r, solved, nu in zip(R[[0, 2]], made.solve(R[[0, 2]]), (0.5, 70.0), strict=True):
        assert_allclose(approximate @ solved + nu * solved, r, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [0.02, 5.0])
def test_a_path_shares_its_work_and_equals_single_fits(monkeypatch, dtype, gamma):
    X, y = make_problem(n=300, d=4, density=1.0)
    K = KernelFunction("rbf", gamma).between(X, X).astype(dtype)
    source, y = KernelSource.precomputed(K), y.astype(float)
    monkeypatch.setattr(lssvm, "REFINED_MIN_SAMPLES", 10)
    # Of any size: the forecast leaves the hardest to a factorisation.
    monkeypatch.setattr("svmbench.core.kernel_svm.linear_systems.FACTOR_WORTH", 1.0 / 60.0)
    values = [2.0**13, 2.0**-7, 1.0, 2.0**5]
    found = list(LSSVM().solve_along(source, y, "C", values))
    factorised = [solution.counters["factorisations"] for solution in found]
    assert factorised[1] == 0
    assert any(factorised) == (gamma == 5.0)
    for C, solution in zip(values, found, strict=True):
        alone = LSSVM(C=C).solve(source, y)
        assert (alone.counters["shared_steps"], solution.counters["shared_steps"] > 0) == (0, True)
        f = K.astype(np.float64) @ alone.coefficients + alone.b
        ours = K.astype(np.float64) @ solution.coefficients + solution.b
        assert_allclose(ours, f, atol=1e-9 * max(1.0, C))


@needs_jit
def test_the_way_out_of_a_singular_matrix_keeps_the_budget():
    X, y = make_problem(n=400, d=3, density=1.0)
    X, y = np.vstack([X, X]), np.r_[y, y]
    matrix_mb = 800**2 * 8 / 2**20
    model = LSSVM(C=1e18, gamma=1.0, cache_mb=2.0 * matrix_mb)
    data = model.prepare(X, y)
    # What is loaded once is not what a fit takes.
    LSSVM(C=1e18, gamma=1.0, cache_mb=1.0).fit(X[::10], y[::10])
    tracemalloc.start()
    model.train(data)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert model.counters_["fallbacks"] == 1
    # The rows' inputs and the products that kernel values come from are beside it.
    assert peak < 2.4 * matrix_mb
    roomy = LSSVM(C=1e18, gamma=1.0).fit(X, y)
    # C of 1e18 leaves few digits of the values themselves.
    assert_allclose(roomy.decision_function(X), model.decision_function(X), atol=0.05)
