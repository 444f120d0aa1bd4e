"""The least-squares SVM without sums: the dual form, conjugate gradients, and which is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from small_problems import make_problem, needs_jit

from svmbench.core.linear.alsvm_batch import ALSVMBatch, cheapest, solve_kernel, solve_steps

FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])


def normal_equations(X, y, bias, nu):
    Z = np.column_stack([X, np.full(len(y), bias)]) if bias else X
    return np.linalg.solve(Z.T @ Z + nu * np.eye(Z.shape[1]), Z.T @ y)


@FORMS
@pytest.mark.parametrize("bias", [0.0, 3.0])
@pytest.mark.parametrize("nu", [1e-3, 1.0, 1e3])
def test_both_ways_solve_the_normal_equations(form, bias, nu):
    X, y = make_problem(n=30, d=50)
    y = y.astype(float)
    right = normal_equations(X, y, bias, nu)
    steps, n_steps = solve_steps(form(X), y, bias, nu)
    size = np.abs(right).max()
    assert_allclose(solve_kernel(form(X), y, bias, nu), right, atol=1e-10 * size)
    # Conjugate gradients end at a residual; what it leaves open grows with the condition.
    assert_allclose(steps, right, rtol=0, atol=(1e-6 if nu < 1.0 else 1e-9) * size)
    assert 0 < n_steps < 200


@needs_jit
def test_what_a_way_can_not_do_it_says():
    X, y = make_problem(n=30, d=50)
    # Equal samples, and no weight that would tell them apart in float64.
    assert solve_kernel(np.vstack([X, X]), np.tile(y, 2).astype(float), 0.0, 1e-13) is None
    X, y = make_problem(n=200, d=80)
    w, steps = solve_steps(X * np.logspace(0, 9, 80), y.astype(float), 0.0, 1e-9)
    assert w is None
    assert steps <= 2000


def test_the_way_is_chosen_by_shape_and_density():
    rng = np.random.default_rng(0)
    assert cheapest(np.ones((60, 500))) == "sums"
    assert cheapest(np.ones((100, 3000))) == "kernel"
    assert cheapest(np.ones((20000, 600))) == "sums"
    long = sp.random_array((8000, 8000), density=0.005, rng=rng, format="csr")
    assert cheapest(long) == "steps"


@needs_jit
@pytest.mark.parametrize("shape", [(60, 2000), (3000, 2500)])
def test_a_fit_says_how_it_was_found_and_is_the_closed_form(shape):
    rng = np.random.default_rng(1)
    X = sp.random_array(shape, density=0.01, rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=shape[1]) > 0.0, 1, -1)
    model = ALSVMBatch(C=2.0).fit(X, y)
    right = normal_equations(X.toarray(), y, 1.0, 0.25)
    assert_allclose(np.append(model.coef_[0], model.intercept_), right, atol=1e-8)
    few = shape[0] == 60
    assert model.stop_reason_ == ("closed form, of the dual" if few else "conjugate gradients")
    assert (model.counters_["conjugate_gradient_steps"] == 0) == few
    assert model.counters_["factorisations"] == int(few)
    path = model.path(model.prepare(X, y), None, "C", [1.0, 2.0])
    assert_allclose(list(path)[1].solution.coef_, model.coef_, atol=1e-9)


@needs_jit
def test_where_steps_do_not_end_the_sums_are_taken():
    rng = np.random.default_rng(1)
    X = sp.random_array((900, 600), density=0.003, rng=rng, format="csr") @ sp.diags_array(
        np.logspace(0, 9, 600)
    )
    y = np.where(np.arange(900) % 2, 1, -1)
    assert cheapest(sp.csr_array(X)) == "steps"
    model = ALSVMBatch(C=1e9, fit_intercept=False).fit(X, y)
    assert model.stop_reason_.startswith("closed form")
    assert "conjugate_gradient_steps" not in model.counters_
