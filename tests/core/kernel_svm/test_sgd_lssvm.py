"""SGD-LSSVM: step by step against the printed algorithm, and the direct solution."""

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import make_problem, needs_jit

from svmbench.baselines import catalogue
from svmbench.core.kernel_svm import sgd_lssvm
from svmbench.core.kernel_svm.sgd_lssvm import (
    SGDLSSVM,
    SteepestDescent,
    descend_steepest,
    step_and_select,
)
from svmbench.core.kernels.columns import (
    DifferenceColumns,
    DoubleColumns,
    Float32Columns,
    MatrixColumns,
    ProductColumns,
    RowColumns,
    ScatterColumns,
    columns_of,
    float32_columns,
)
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.models import kernel_base

RBF = KernelFunction("rbf", gamma=0.7)


def source_of(X, function=RBF):
    return KernelSource.from_inputs(X, function)


def dense_Q(X, y, C, function=RBF):
    K = function.between(X, X) + 1.0
    return y[:, None] * K * y + np.eye(len(y)) / (2.0 * C)


def printed(X, y, C, t, n_iterations):
    """Follow Algorithm 2 line by line; yield alpha, g and f after every iteration."""
    K = RBF.between(X, X) + 1.0
    nu, N = 1.0 / (2.0 * C), len(y)
    alpha, g = np.zeros(N), -np.ones(N)
    Q = dense_Q(X, y, C)
    for _ in range(n_iterations):
        B = sorted(range(N), key=lambda i: (-abs(g[i]), i))[:t]
        gg = sum(g[i] ** 2 for i in B)
        a = [sum(g[j] * y[j] * K[j, i] for j in B) for i in range(N)]
        gQg = nu * gg + sum(g[i] * y[i] * a[i] for i in B)
        theta = gg / gQg
        for i in B:
            alpha[i] -= theta * g[i]
        for i in B:
            g[i] *= 1.0 - nu * theta
        for i in range(N):
            g[i] -= theta * y[i] * a[i]
        yield alpha.copy(), g.copy(), 0.5 * alpha @ Q @ alpha - alpha.sum()


@pytest.fixture
def problem():
    X, y = make_problem(n=60, d=5)
    return X, y.astype(float)


@pytest.mark.parametrize("t", [1, 2, 5, 60])
@pytest.mark.parametrize("columns", [DoubleColumns, lambda s: MatrixColumns(s.whole(np.inf))])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_it_is_the_printed_algorithm_iteration_by_iteration(problem, t, columns, form):
    X, y = problem
    made, state = columns(source_of(form(X))), SteepestDescent.from_zero(y)
    previous = 0.0
    for step, (alpha, g, f) in enumerate(printed(X, y, 2.0, t, 25), start=1):
        descend_steepest(state, made, 2.0, t, 1e-12, step)
        assert (state.iterations, state.columns) == (step, step * t)
        assert_allclose(y * state.beta, alpha, atol=1e-10)
        assert_allclose(y * state.u, g, atol=1e-10)
        assert state.f == pytest.approx(f, abs=1e-9)
        assert state.largest == pytest.approx(np.abs(g).max())
        assert state.f < previous
        previous = state.f


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_alpha_is_the_direct_solution(problem, t, C):
    X, y = problem
    state = SteepestDescent.from_zero(y)
    assert descend_steepest(state, columns_of(source_of(X), 1e-9), C, t, 1e-9, 10**6)
    direct = np.linalg.solve(dense_Q(X, y, C), np.ones(len(y)))
    assert_allclose(y * state.beta, direct, atol=1e-6)
    assert state.f == pytest.approx(-0.5 * direct.sum(), rel=1e-9)


@pytest.mark.parametrize("t", [1, 4])
def test_each_step_reduces_the_error_by_no_less_than_corollary_2_says(problem, t):
    X, y = problem
    Q = dense_Q(X, y, 2.0)
    eigenvalues = np.linalg.eigvalsh(Q)
    best = np.linalg.solve(Q, np.ones(len(y)))
    # lambda_max(t) is at most Q's largest sum of t entries of a row; here nu + 2 t bounds it.
    factor = t / len(y) * eigenvalues[0] / (0.25 + 2.0 * t)

    def error(alpha):
        return 0.5 * (alpha - best) @ Q @ (alpha - best)

    before = error(np.zeros(len(y)))
    for alpha, _, _ in printed(X, y, 2.0, t, 25):
        after = error(alpha)
        assert after <= (1.0 - factor) * before
        before = after


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("t", [1, 7, 64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_single_precision_follows_double(t, form):
    X, y = make_problem(n=400, d=6)
    y = y.astype(float)
    one, two = SteepestDescent.from_zero(y), SteepestDescent.from_zero(y)
    columns = float32_columns(form(X), RBF.gamma)
    descend_steepest(one, columns, 2.0, t, 1e-2, 100_000)
    descend_steepest(two, DoubleColumns(source_of(X)), 2.0, t, 1e-2, 100_000)
    assert abs(one.iterations - two.iterations) <= 0.1 * two.iterations
    K = RBF.between(X, X) + 1.0
    assert_allclose(one.u, K @ one.beta + one.beta / 4.0 - y, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_the_heap_holds_the_largest_and_the_first_of_equal_ones(seed):
    rng = np.random.default_rng(seed)
    n, t = int(rng.integers(1, 700)), int(rng.integers(1, 40))
    t = min(t, n)
    u = rng.integers(-9, 9, n).astype(float)
    a, before = rng.normal(size=n), u.copy()
    chosen, size = np.empty(t, dtype=np.int64), np.empty(t)
    largest = step_and_select(u, a, 0.5, 0.0, chosen, size)
    expected = sorted(range(n), key=lambda i: (-abs(u[i]), i))[:t]
    assert sorted(chosen.tolist()) == sorted(expected)
    assert largest == np.abs(u).max()
    assert np.array_equal(np.abs(u[chosen]), size)
    assert np.array_equal(u, before)
    step_and_select(u, a, 0.5, 2.0, chosen, size)
    assert_allclose(u, before - 2.0 * (a + 0.5))
    assert set(chosen.tolist()) == set(np.argsort(-np.abs(u))[:t].tolist())


@needs_jit
@pytest.mark.parametrize("t", [1, 4])
@pytest.mark.parametrize("stored", [False, True])
def test_a_trace_follows_the_same_way(problem, t, stored):
    X, y = problem
    columns = MatrixColumns(RBF.between(X, X)) if stored else DoubleColumns(source_of(X))
    plain, traced = SteepestDescent.from_zero(y), SteepestDescent.from_zero(y)
    descend_steepest(plain, columns, 2.0, t, 1e-6, 10_000)
    descend_steepest(traced, columns, 2.0, t, 1e-6, 10_000, trace=True)
    assert np.array_equal(plain.beta, traced.beta)
    points = traced.trace
    assert points[0] == (points[0].seconds, 0, 0.0, 1.0)
    assert points[-1].iterations == plain.iterations
    assert points[-1].objective == traced.f
    assert all(a.iterations < b.iterations for a, b in itertools.pairwise(points))
    assert all(a.objective > b.objective for a, b in itertools.pairwise(points))
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(points))


@needs_jit
def test_columns_follow_the_inputs_and_the_tolerance():
    X, _ = make_problem(n=1100, d=4)
    assert isinstance(columns_of(source_of(X), 1e-2), Float32Columns)
    assert isinstance(columns_of(source_of(X), 1e-6), DoubleColumns)
    assert isinstance(columns_of(source_of(X, KernelFunction("rbf", 1e300)), 0.1), DoubleColumns)
    assert isinstance(columns_of(source_of(X[:1024]), 1e-2), MatrixColumns)
    assert isinstance(columns_of(source_of(1e30 * X), 1e-2), DoubleColumns)
    assert isinstance(columns_of(source_of(1.0 * (X > 0.5)), 1e-2), RowColumns)
    wide = np.tile(X, (1, 12))
    assert isinstance(columns_of(source_of(wide), 1e-2), Float32Columns)
    assert isinstance(columns_of(source_of(wide), 1e-2, t=8), RowColumns)


@needs_jit
@pytest.mark.parametrize(
    ("maker", "d", "density"),
    [(DifferenceColumns, 7, 0.9), (ProductColumns, 50, 0.9), (ScatterColumns, 50, 0.1)],
)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_float32_columns_are_those_of_double_precision(maker, d, density, offset):
    X, _ = make_problem(n=700, d=d, density=density)
    X = sp.csr_array(X) if maker is ScatterColumns else np.round(X * 64.0) / 64.0 + offset
    made = float32_columns(X, 0.3)
    assert type(made) is maker
    out = np.full(700, np.nan, dtype=np.float32)
    exact = KernelFunction("rbf", 0.3).between(X, X)
    for i in (0, 511, 699):
        made.column(i, out)
        assert_allclose(out, exact[i], atol=2e-6)
    K = np.zeros((3, 700), dtype=np.float32)
    made.block(np.array([5, 0, 698]), 0, 700, K)
    assert_allclose(K, exact[[5, 0, 698]], atol=2e-6)


def test_the_estimator_says_what_the_descent_found(problem):
    X, y = problem
    model = SGDLSSVM(C=2.0, gamma=0.7, tol=1e-8, trace=True).fit(X, y)
    direct = np.linalg.solve(dense_Q(X, y, 2.0), np.ones(len(y)))
    assert_allclose(model.dual_coef_[0], (y * direct)[model.support_], atol=1e-6)
    assert model.intercept_[0] == pytest.approx(y @ direct)
    assert model.dual_objective_ == pytest.approx(0.5 * direct.sum())
    assert model.objective_ == pytest.approx(0.5 * direct.sum())
    assert model.counters_["columns"] == model.n_iter_ == model.trace_[-1][1]
    assert model.trace_[-1][2] == pytest.approx(-model.dual_objective_)
    assert len(model.gradient_trace_) == len(model.trace_)
    assert model.gradient_trace_[-1] == model.gradient_norm_ < 1e-8


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_objective_of_many_samples_comes_from_the_gradient(monkeypatch, form):
    X, y = make_problem(n=1300, d=6)
    exact = SGDLSSVM(C=2.0, gamma=0.7).fit(form(X), y)
    monkeypatch.setattr(kernel_base, "EXACT_OBJECTIVE_MAX_SAMPLES", 100)
    quick = SGDLSSVM(C=2.0, gamma=0.7).fit(form(X), y)
    assert quick.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    assert quick.dual_objective_ == pytest.approx(exact.dual_objective_, rel=1e-5)
    assert quick.counters_["rebuilt"] == 0


@pytest.mark.parametrize("C", [0.5, 3.0])
def test_the_gradient_in_double_precision_is_that_of_the_dual(C, monkeypatch):
    monkeypatch.setattr(sgd_lssvm, "COLUMN_BLOCK_BYTES", 8 * 30 * 2)
    X, y = make_problem(n=30, d=4)
    alpha, rows = np.random.default_rng(0).normal(size=30), np.array([4, 0, 29, 7, 11])
    found = sgd_lssvm.gradient_in_double(source_of(X), y, C, y * alpha, rows)
    assert_allclose(y[rows] * found, (dense_Q(X, y, C) @ alpha - 1.0)[rows], rtol=1e-10)


@needs_jit
def test_where_single_precision_fails_double_takes_over(monkeypatch):
    X, y = make_problem(n=1200, d=50, density=0.1)

    def flawed(X, gamma):
        made = ScatterColumns(X, gamma)
        made._lengths = (1.01 * made._lengths).astype(np.float32)
        return made

    monkeypatch.setattr("svmbench.core.kernels.columns.float32_columns", flawed)
    model = SGDLSSVM(C=2.0, gamma=0.7).fit(sp.csr_array(X), y)
    assert model.counters_["rebuilt"] == 1
    f = model.decision_function(X)
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0] * y[model.support_]
    assert np.abs(y * f + alpha / 4.0 - 1.0).max() < 0.01


def test_more_columns_than_samples_are_said_and_cut():
    X, y = make_problem(n=20, d=4)
    with pytest.warns(UserWarning, match="t=21 is more than there are training samples: all 20"):
        model = SGDLSSVM(t=21, tol=1e-6).fit(X, y)
    assert model.counters_["columns"] == 20 * model.n_iter_


@pytest.mark.parametrize("bad", [0, 1.5, -1, "2"])
def test_a_number_of_columns_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="t must be an integer of at least 1"):
        SGDLSSVM(t=bad).fit(np.eye(4), [0, 1, 0, 1])


def test_a_tolerance_of_zero_is_refused():
    with pytest.raises(ValueError, match="tol must be a positive finite number"):
        SGDLSSVM(tol=0.0).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e12, 1e300])
def test_flat_and_steep_kernels_end_in_a_model(gamma):
    X, y = make_problem(n=60, d=4)
    model = SGDLSSVM(gamma=gamma).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert model.stop_reason_ == "converged"
    assert np.all(np.isfinite(model.decision_function(X)))


@needs_jit
@pytest.mark.parametrize("solver", ["sgd-lssvm", "nystrom"])
def test_memory_grows_with_the_samples_and_not_with_their_square(solver):
    def peak(n):
        X, y = make_problem(n=n, d=6)
        model = catalogue.solver(solver, **settings[solver])
        data = model.prepare(X, y)
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.train(data)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    settings = {
        "sgd-lssvm": {"t": 16, "max_iter": 5},
        "nystrom": {"n_basis": 16, "max_iter": 5},
    }
    small, large = peak(5_000), peak(40_000)
    assert large < 10 * small
    # The whole matrix would be 6,400 MB in single precision.
    assert large < 40_000 * 16 * 8 * 3
