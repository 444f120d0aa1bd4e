"""Matrices whose rows are computed when a step first reads them: the same solution, less work."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.csvc import make_qp, solve_qp, solver, start_of_sum
from svmbench.core.csvc.problem import csvc_problem, thresholds
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.lazy_matrix import LazyMatrix, compute_row
from svmbench.core.kernels.rows import DenseRows, DifferenceRows

N = 40 if JIT_DISABLED else 80
FUNCTION = KernelFunction("rbf", 0.05)


@pytest.fixture(autouse=True)
def few_samples_do(monkeypatch):
    """Take the way of 500 to 2,000 samples with fewer."""
    monkeypatch.setattr(solver, "FLOAT32_MIN_SAMPLES", 0)
    monkeypatch.setattr(solver, "LAZY_FIRST_STEPS", 6)


def blobs(distance, n=N):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, 3)) + distance * y[:, np.newaxis], y


def problems(y):
    n = len(y)
    groups = (y > 0).astype(np.int64)
    share = np.zeros(n)
    for sign in (-1.0, 1.0):
        share[y == sign] = sign * start_of_sum(4.0, np.ones(np.count_nonzero(y == sign)))
    return {
        "c-svc": (csvc_problem(y, 1.0), None),
        "one-class": (make_qp(np.zeros(n), np.zeros(n), np.ones(n)), start_of_sum(5.0, np.ones(n))),
        "nu-svc": (make_qp(np.zeros(n), np.minimum(y, 0), np.maximum(y, 0), groups), share),
        "no offset": (csvc_problem(y, 1.0, offset=False), None),
    }


def solve(X, problem, start, **settings):
    return solve_qp(
        KernelSource.from_inputs(X, FUNCTION), problem, start=start, tol=1e-5, **settings
    )


def dual(X, problem, beta):
    return problem.linear @ beta - 0.5 * beta @ FUNCTION.between(X, X) @ beta


@pytest.mark.parametrize("name", ["c-svc", "one-class", "nu-svc", "no offset"])
@pytest.mark.parametrize("distance", [0.0, 2.5])
def test_the_solution_is_that_of_the_full_matrix(monkeypatch, name, distance):
    X, y = blobs(distance)
    problem, start = problems(y)[name]
    found = solve(X, problem, start)
    monkeypatch.setattr(solver, "LAZY_MAX_FEATURES", 2)
    full = solve(X, problem, start)
    assert found.stop_reason == full.stop_reason == "converged"
    assert dual(X, problem, found.beta) == pytest.approx(
        dual(X, problem, full.beta), rel=1e-6, abs=2e-5
    )
    v = problem.linear - FUNCTION.between(X, X) @ found.beta
    assert solver.up_low_sets(problem, found.beta, v).violation <= 1e-5 + 1e-12


@pytest.fixture
def made(monkeypatch):
    """Return a list to which each matrix of lazy rows is appended."""
    make, found = LazyMatrix.of, []

    def of(rows, most):
        found.append(make(rows, most))
        return found[-1]

    monkeypatch.setattr(LazyMatrix, "of", of)
    return found


def test_few_rows_are_made_of_an_easy_problem_and_counted(made):
    X, y = blobs(2.5)
    source = KernelSource.from_inputs(X, FUNCTION)
    found = solve_qp(source, csvc_problem(y, 1.0), tol=1e-3)
    rows = int(np.count_nonzero(made[0].is_computed))
    assert 0 < np.count_nonzero(found.beta) <= rows < 0.5 * N
    # The rest are values of the check, in double precision.
    assert found.evaluations == rows * N + source.kernel_evaluations


@pytest.mark.parametrize(("name", "value"), [("LAZY_MANY_ROWS", 9.0), ("LAZY_MAX_ROWS", 9.0)])
def test_all_rows_of_a_hard_problem_are_made_by_either_rule(made, monkeypatch, name, value):
    monkeypatch.setattr(solver, name, value)  # The other rule asks for all rows.
    X, y = blobs(0.0)
    source = KernelSource.from_inputs(X, FUNCTION)
    found = solve_qp(source, csvc_problem(y, 1.0), tol=1e-3)
    rows = int(np.count_nonzero(made[0].is_computed))
    assert 9 < rows < 0.7 * N
    # These rows, the full matrix, and the check.
    assert found.evaluations == rows * N + N * N + source.kernel_evaluations


def test_all_rows_are_made_after_many_steps_where_several_sums_are_fixed(made, monkeypatch):
    monkeypatch.setattr(solver, "LAZY_MAX_ROWS", 9.0)
    monkeypatch.setattr(solver, "LAZY_MAX_STEPS", 0.2)
    X, y = blobs(0.0)
    problem, start = problems(y)["nu-svc"]
    source = KernelSource.from_inputs(X, FUNCTION)
    found = solve_qp(source, problem, start=start, tol=1e-3)
    rows = int(np.count_nonzero(made[0].is_computed))
    assert found.steps > 0.2 * N
    # The rows of the start count once.
    assert found.evaluations == rows * N + N * N + source.kernel_evaluations


@pytest.mark.parametrize("waits", [True, False])
def test_a_check_waits_for_the_tolerance_that_the_margin_asks_for(monkeypatch, waits):
    if not waits:
        monkeypatch.setattr(solver.Tolerance, "tightens", lambda self, beta, v: False)
    X, y = blobs(1.0)
    problem, start = problems(y)["nu-svc"]

    def rho(beta, v):
        negative, positive = thresholds(problem, beta, v)
        return 0.05 * abs(float(negative - positive))  # a margin well below 1

    tol = solver.RelativeTolerance(1e-2, rho)
    found = solve_qp(KernelSource.from_inputs(X, FUNCTION), problem, start=start, tol=tol)
    assert found.stop_reason == "converged"
    assert (found.checks == 1) == waits
    v = problem.linear - FUNCTION.between(X, X) @ found.beta
    assert solver.up_low_sets(problem, found.beta, v).violation <= 1e-2 * rho(found.beta, v) + 1e-12


@pytest.mark.parametrize("max_iter", [1, 6, 7, 20])
def test_the_number_of_steps_is_a_limit(max_iter):
    X, y = blobs(1.0)
    found = solve(X, csvc_problem(y, 1.0), None, max_iter=max_iter)
    assert (found.steps, found.stop_reason) == (max_iter, "max_iter")
    assert_allclose(found.v, y - FUNCTION.between(X, X) @ found.beta, atol=1e-5)


def is_tried(X, problem, start=None, cache_mb=1024.0, max_gap=-1.0, function=FUNCTION):
    source = KernelSource.from_inputs(X, function)
    rows = solver.float32_rows(source)
    search = solver.Refinement(source, problem, solver.ThreadPool(1), cache_mb)
    return isinstance(search.choose_matrix(rows, start, max_gap), LazyMatrix)


def test_where_a_lazy_matrix_is_tried():
    X, y = blobs(2.5, n=80)
    problem, start = problems(y)["one-class"]
    assert is_tried(X, csvc_problem(y, 1.0))
    assert is_tried(X, problem, start)
    assert is_tried(np.tile(X, 4), csvc_problem(y, 1.0))
    # Not: many features, much of the start used, a largest gap, no sum, no memory, no RBF.
    assert not is_tried(np.tile(X, 5), csvc_problem(y, 1.0))
    assert not is_tried(X, problem, start_of_sum(0.3 * 80, np.ones(80)))
    assert not is_tried(X, csvc_problem(y, 1.0), max_gap=0.1)
    assert not is_tried(X, csvc_problem(y, 1.0, offset=False))
    assert not is_tried(X, csvc_problem(y, 1.0), cache_mb=0.02)
    assert not is_tried(X, csvc_problem(y, 1.0), function=KernelFunction("linear"))


@pytest.mark.parametrize("maker", [DenseRows, DifferenceRows])
def test_a_row_is_made_once_and_no_other_is_touched(maker):
    X, _ = blobs(1.0)
    lazy = LazyMatrix.of(maker(X, FUNCTION), 4)
    lazy.K[:] = 7.0
    compute_row(lazy, 5)
    assert_allclose(lazy.K[5], FUNCTION.between(X[5:6], X)[0], rtol=2e-6)
    assert np.flatnonzero(lazy.is_computed).tolist() == [5]
    assert np.all(np.delete(lazy.K, 5, axis=0) == 7.0)
    lazy.K[5] = 3.0
    compute_row(lazy, 5)
    assert np.all(lazy.K[5] == 3.0)
