"""LSSVM-CG and its products against dense algebra, and against the other least-squares solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import make_problem, needs_jit

from svmbench.core.kernel_svm.lssvm_cg import LSSVMCG, solve_system
from svmbench.core.kernel_svm.sgd_lssvm import SGDLSSVM
from svmbench.core.kernels.columns import BLOCK_ROWS, KernelProduct
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

RBF = KernelFunction("rbf", gamma=0.7)


def system(X, C):
    return RBF.between(X, X) + 1.0 + np.eye(len(X)) / (2.0 * C)


@needs_jit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cache_mb", [0.0, 1.5, 100.0])
def test_products_are_those_of_the_matrix(dtype, form, cache_mb):
    n = 2 * BLOCK_ROWS + 77
    X, y = make_problem(n=n, d=5)
    product = KernelProduct(KernelSource.from_inputs(form(X), RBF), cache_mb, dtype)
    K = RBF.between(X, X)
    atol = 1e-3 if dtype is np.float32 else 1e-9
    assert_allclose(product.times(y.astype(float)), K @ y, atol=atol)
    once = product.values_made
    both = np.column_stack([y, np.arange(n) / n])
    assert_allclose(product.times(both), K @ both, atol=atol)
    again = product.values_made - once
    assert once < 0.8 * n * n
    assert again == {0.0: once, 100.0: 0}.get(cache_mb, again)
    assert 0 < again < once or cache_mb != 1.5
    assert product.products == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_that_is_there_is_used(dtype):
    X, y = make_problem(n=50, d=5)
    K = RBF.between(X, X)
    product = KernelProduct(KernelSource.precomputed(K.astype(dtype)), 0.0, np.float32)
    assert_allclose(product.times(y.astype(float)), K @ y, atol=1e-4)
    assert product.values_made == 0


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("C", "tol"), [(0.1, 1e-3), (10.0, 1e-6), (1000.0, 1e-9)])
def test_the_residual_is_what_was_asked_for(form, C, tol):
    X, y = make_problem(n=600, d=6)
    source = KernelSource.from_inputs(form(X), RBF)
    beta, steps, reason, counters = solve_system(source, y, C, tol, 10_000, 100.0)
    assert reason == "converged"
    assert np.linalg.norm(system(X, C) @ beta - y) <= 1.01 * tol * np.linalg.norm(y)
    assert counters["products"] >= steps


@needs_jit
def test_both_iterative_solvers_find_the_same_model():
    X, y = make_problem(n=80, d=5)
    one = LSSVMCG(C=3.0, gamma=0.7, tol=1e-10).fit(X, y)
    two = SGDLSSVM(C=3.0, gamma=0.7, tol=1e-8).fit(X, y)
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-6)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-9)
    assert one.dual_objective_ == pytest.approx(one.objective_, rel=1e-8)
    assert one.intercept_[0] == pytest.approx(one.dual_coef_.sum())


@needs_jit
def test_flat_and_steep_kernels_are_solved():
    X, y = make_problem(n=60, d=4)
    X = np.vstack([X, X])
    y = np.concatenate([y, y])
    for gamma in (1e-300, 1e-12, 1e12, 1e300):
        model = LSSVMCG(C=100.0, gamma=gamma).fit(X, y)
        assert model.stop_reason_ == "converged"
        assert np.all(np.isfinite(model.decision_function(X)))


def test_too_few_iterations_are_said():
    X, y = make_problem(n=60, d=4)
    with pytest.warns(ConvergenceWarning, match="lssvm-cg stopped at max_iter=1"):
        model = LSSVMCG(C=100.0, max_iter=1).fit(X, y)
    assert model.stop_reason_ == "max_iter"
