"""NN-ISDA and MN-SVM against a QP solver, LIBLINEAR, answers known on paper, and each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from small_problems import make_problem, needs_jit, solutions

from svmbench.base.errors import SvmbenchError
from svmbench.core.kernel_svm import l2svm, mn_svm, nn_isda
from svmbench.core.kernel_svm.mn_svm import MNSVM
from svmbench.core.kernel_svm.nn_isda import NNISDA
from svmbench.core.kernels import source_row_cache
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.numeric.random import generator

#: Each solver with parameters that make it as exact as the comparison needs.
TIGHT = {"nn-isda": (NNISDA, {"tol": 1e-8}), "mn-svm": (MNSVM, {"tol": 1e-9})}


def build(name, **parameters):
    cls, tight = TIGHT[name]
    return cls(**{**tight, **parameters})


def exact(K, y, C):
    """Return the optimal multipliers, by non-negative least squares on a Cholesky factor.

    1/2 a'Qa - e'a = 1/2 ||R a - r||^2 + constant with R'R = Q, R'r = e.
    """
    Q = (K + 1.0) * np.outer(y, y) + np.eye(len(y)) / C
    R = np.linalg.cholesky(Q).T
    return nnls(R, np.linalg.solve(R.T, np.ones(len(y))), maxiter=100 * len(y))[0]


def dual(K, y, C, alpha):
    Q = (K + 1.0) * np.outer(y, y) + np.eye(len(y)) / C
    return alpha.sum() - 0.5 * alpha @ Q @ alpha


def projected_gradient(model, X, y):
    """Return the largest component, from the model's own decision values."""
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    g = y * model.decision_function(X) + alpha / model.C - 1.0
    return np.max(np.where(alpha > 0.0, np.abs(g), -g))


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_same_optimum_as_a_qp_solver(name, kernel, C):
    X, y = make_problem(n=120, d=6)
    model = build(name, C=C, kernel=kernel, gamma=0.7, coef0=1.0).fit(X, y)
    K = KernelFunction(kernel, 0.7, 3, 1.0).between(X, X)
    best = exact(K, y, C)
    value = dual(K, y, C, best)
    assert model.dual_objective_ == pytest.approx(value, rel=1e-6)
    assert model.objective_ == pytest.approx(value, rel=1e-5)
    assert_allclose(model.decision_function(X), K @ (best * y) + best @ y, atol=1e-5)
    assert model.stop_reason_ == {"nn-isda": "converged", "mn-svm": "no violator"}[name]


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
def test_C_is_twice_that_of_liblinear(name):
    X, y = make_problem(n=100, d=5)
    model = build(name, C=3.0, kernel="linear").fit(X, y)
    theirs = LinearSVC(C=1.5, tol=1e-10, max_iter=100_000).fit(X, y)
    assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("name", TIGHT)
def test_two_points_on_paper(name):
    # Q = [[K+1+1/C, -1], [-1, K+1+1/C]] with K = [[4, 0], [0, 4]]: both are 1 / (4 + 1/C).
    X = np.array([[2.0, 0.0], [0.0, 2.0]])
    model = build(name, C=1.0, kernel="linear").fit(X, [-1, 1])
    assert_allclose(model.dual_coef_, [[-0.2, 0.2]], rtol=1e-6)
    assert_allclose(model.intercept_, [0.0], atol=1e-7)
    assert model.dual_objective_ == pytest.approx(0.2)
    assert model.objective_ == pytest.approx(0.2)


@needs_jit
@pytest.mark.parametrize("C", [0.1, 4.0, 500.0])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("small", [source_row_cache.CACHE_MATRIX_MAX_SAMPLES, 0])
def test_isda_stops_at_the_projected_gradient(C, tol, small, monkeypatch):
    monkeypatch.setattr(source_row_cache, "CACHE_MATRIX_MAX_SAMPLES", small)
    X, y = make_problem(n=150, d=5)
    model = NNISDA(C=C, gamma=2.0, tol=tol).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert 0.0 < projected_gradient(model, X, y) <= tol * (1.0 + 1e-6)


@needs_jit
def test_an_end_by_the_rule_is_no_optimum_and_the_gap_certifies_one():
    """On these classes the rule ends a sixth short of the optimum."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    signs, C = np.where(y == 2, 1.0, -1.0), 100.0
    best = dual(X @ X.T, signs, C, exact(X @ X.T, signs, C))
    ruled = MNSVM(C=C, kernel="linear").fit(X, y)
    assert ruled.dual_objective_ < 0.9 * best
    assert ruled.stop_reason_ == "no violator"
    certified = MNSVM(C=C, kernel="linear", gap=1e-4).fit(X, y)
    assert certified.stop_reason_ == "converged"
    assert (1.0 - 1e-4) * best <= certified.dual_objective_ <= best * (1.0 + 1e-9)
    assert best * (1.0 - 1e-9) <= certified.objective_ <= (1.0 + 2e-4) * best
    with pytest.warns(ConvergenceWarning, match="mn-svm stopped at max_iter=30000 before"):
        stopped = MNSVM(C=C, kernel="linear", gap=1e-4, max_iter=30_000).fit(X, y)
    assert stopped.counters_["updates"] == 30_000
    with pytest.raises(ValueError, match="gap must be a positive finite number"):
        MNSVM(gap=0.0).fit(X, y)


@needs_jit
def test_isda_takes_the_worst_violator_each_step():
    X, y = make_problem(n=60, d=4)
    C, n_steps = 5.0, 200
    Q = (KernelFunction("rbf", 2.0).between(X, X) + 1.0) * np.outer(y, y) + np.eye(60) / C
    alpha, g = np.zeros(60), -np.ones(60)
    for _ in range(n_steps):
        i = np.argmax(np.where(alpha > 0.0, np.abs(g), -g))
        step = max(0.0, alpha[i] - g[i] / Q[i, i]) - alpha[i]
        alpha[i] += step
        g += step * Q[i]
    with pytest.warns(ConvergenceWarning, match="nn-isda stopped at max_iter=200 before"):
        model = NNISDA(C=C, gamma=2.0, tol=1e-9, max_iter=n_steps).fit(X, y)
    found = np.zeros(60)
    found[model.support_] = np.abs(model.dual_coef_[0])
    assert model.stop_reason_ == "max_iter"
    assert_allclose(found, alpha, atol=1e-9)


@needs_jit
@pytest.mark.parametrize("C", [0.1, 4.0, 500.0])
@pytest.mark.parametrize("eps", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("small", [source_row_cache.CACHE_MATRIX_MAX_SAMPLES, 0])
def test_mn_svm_stops_where_a_full_search_fails(C, eps, small, monkeypatch):
    monkeypatch.setattr(source_row_cache, "CACHE_MATRIX_MAX_SAMPLES", small)
    X, y = make_problem(n=100, d=5)
    model = MNSVM(C=C, gamma=2.0, tol=eps).fit(X, y)
    alpha = np.abs(model.dual_coef_[0])
    margins = y * model.decision_function(X)
    margins[model.support_] += alpha / C
    # Its rule, divided by w^2 = 1 / sum alpha; 600 draws miss one of 100 samples once in 300.
    assert margins.min() >= 1.0 - eps * np.sqrt((2.0 + 1.0 / C) * alpha.sum()) - 1e-9
    assert margins.min() < 1.0
    assert model.dual_objective_ == pytest.approx(0.5 * alpha.sum(), rel=1e-5)
    # eps = 1/2, 1/4 ... and the one asked for; each ends with a search that fails.
    rounds = 1 + int(np.ceil(np.log2(0.5 / eps)))
    assert model.counters_["searches_failed"] == rounds
    assert model.counters_["draws"] >= model.counters_["updates"] / 2


@needs_jit
def test_mn_svm_takes_the_steps_of_its_description():
    X, y = make_problem(n=60, d=4)
    C, n_steps, seed = 5.0, 60, 4
    Q = (KernelFunction("rbf", 2.0).between(X, X) + 1.0) * np.outer(y, y) + np.eye(60) / C
    state = np.zeros(8, dtype=np.int64)
    state[mn_svm.SEED] = 1 + int(generator(seed).random() * 2**31)
    classes = np.flatnonzero(y == y[0]), np.flatnonzero(y != y[0])
    a = np.zeros(60)
    a[[members[0] for members in classes]] = 0.5
    eps, steps, failed = 0.5, 0, 0

    def move(v):
        g = Q @ a
        u = np.argmax(np.where(a > 0.0, g, -np.inf))
        t = min(a[u], (g[u] - g[v]) / (Q[u, u] + Q[v, v] - 2.0 * Q[u, v]))
        a[u] -= t
        a[v] += t

    def limit():
        square = a @ Q @ a
        return square - eps * np.sqrt(square * Q.diagonal().max())

    while steps < n_steps:
        for _ in range(600 if (Q @ a).min() < limit() else 0):
            members = classes[mn_svm.below(state, mn_svm.SEED, 2)]
            v = members[mn_svm.below(state, mn_svm.SEED, len(members))]
            if (Q @ a)[v] < limit():
                break
        else:
            eps, failed = 0.5 * eps, failed + 1
            continue
        move(v)
        steps += 1
        low = np.argmin(np.where(a > 0.0, Q @ a, np.inf))
        if steps < n_steps and (Q @ a)[low] < limit():
            move(low)
            steps += 1
    with pytest.warns(ConvergenceWarning, match="mn-svm stopped at max_iter=60 before"):
        model = MNSVM(C=C, gamma=2.0, tol=1e-5, max_iter=n_steps, random_state=seed).fit(X, y)
    assert failed >= 1
    assert model.counters_["searches_failed"] == failed
    assert np.array_equal(model.support_, np.flatnonzero(a > 1e-12))
    expected = (a / (a @ Q @ a))[model.support_]
    assert_allclose(np.abs(model.dual_coef_[0]), expected, rtol=1e-4)


def test_mn_svm_depends_on_its_seed_within_its_tolerance():
    X, y = make_problem(n=60, d=4)
    first, second, other = (
        MNSVM(gamma=2.0, tol=1e-2, random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.dual_coef_, second.dual_coef_)
    assert first.counters_["draws"] != other.counters_["draws"]
    assert first.dual_objective_ == pytest.approx(other.dual_objective_, rel=0.05)


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
def test_rows_on_demand_whatever_the_memory(name, monkeypatch):
    X, y = make_problem(n=150, d=5)
    whole = build(name, C=5.0, gamma=2.0).fit(X, y)
    monkeypatch.setattr(source_row_cache, "CACHE_MATRIX_MAX_SAMPLES", 0)
    rows = []
    for cache_mb in (1.0, 40 * 150 * 8 / 2**20):
        model = build(name, C=5.0, gamma=2.0, cache_mb=cache_mb).fit(X, y)
        assert model.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-7)
        rows.append(model.counters_["kernel_rows"])
    assert rows[0] <= 150 < rows[1]
    with pytest.raises(SvmbenchError, match=r"holds 0 kernel rows of 150 samples; 32 are needed"):
        build(name, cache_mb=0.0).fit(X, y)


@needs_jit
@pytest.mark.parametrize("cache_mb", [1.0, 100 * 200 * 8 / 2**20])
@pytest.mark.parametrize("wrongly", [False, True])
def test_isda_looks_again_at_what_it_left_out(cache_mb, wrongly, monkeypatch):
    monkeypatch.setattr(source_row_cache, "CACHE_MATRIX_MAX_SAMPLES", 0)
    monkeypatch.setattr(nn_isda, "SHRINK_EVERY_STEPS", 10)
    monkeypatch.setattr(nn_isda, "SHRUNK_MAX_SHARE", 1.0)
    left, violated = [], []
    take_in = nn_isda.unshrink

    def watched(store, samples, state):
        left.append(len(samples.y) - store.n_active)
        take_in(store, samples, state)
        violated.append(samples.violations().max())

    def leave_out_all_at_zero(store, samples, state):
        active = samples.first(store.n_active)
        moved = store.shrink(active.beta != 0.0)
        for array in active:
            array[:] = array[moved]
        state[nn_isda.NEXT] = np.argmax(active.first(store.n_active).violations())

    monkeypatch.setattr(nn_isda, "unshrink", watched)
    if wrongly:
        monkeypatch.setattr(nn_isda, "shrink", leave_out_all_at_zero)
    X, y = make_problem(n=200, d=5)
    y = y.astype(np.float64)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 2.0))
    K = source.rows(np.arange(200))
    for tol in (1e-3, 1e-5):
        C = [0.5, 4.0]
        path = solutions(NNISDA(gamma=2.0, tol=tol, cache_mb=cache_mb).path(source, y, "C", C))
        for value, found in zip(C, path, strict=True):
            g = y * (K @ (found.alpha * y) + found.b) + found.alpha / value - 1.0
            assert np.max(np.where(found.alpha > 0.0, np.abs(g), -g)) <= tol * (1.0 + 1e-6)
            assert found.b == pytest.approx(found.alpha @ y)
    assert max(left) > 50
    assert (max(violated) > 0.1) == wrongly


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
def test_stored_matrices_of_both_precisions(name):
    X, y = make_problem(n=80, d=4)
    y = y.astype(np.float64)
    K = KernelFunction("rbf", 2.0).between(X, X)
    model = build(name, C=10.0, gamma=2.0)
    kept = np.arange(0, 80, 2)
    for precision, error in ((np.float64, 1e-6), (np.float32, 1e-4)):
        source = KernelSource.precomputed(K.astype(precision))
        for rows, part in ((np.arange(80), source), (kept, source.subset(kept))):
            found = model.solve(part, y[rows])
            best = exact(K[np.ix_(rows, rows)], y[rows], 10.0)
            assert_allclose(found.alpha, best, atol=error)
            assert found.b == pytest.approx(best @ y[rows], abs=10 * error)


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
def test_path_and_start_end_where_a_cold_start_does(name):
    X = np.random.default_rng(0).random((100, 5))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0.7, 1.0, -1.0)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 50.0))
    C = [0.0625, 0.25, 1.0, 4.0, 16.0]
    path = solutions(build(name).path(source, y, "C", C))
    for value, solution in zip(C, path, strict=True):
        model = build(name, C=value)
        alone = model.solve(source, y)
        assert_allclose(solution.alpha, alone.alpha, atol=1e-5 * alone.alpha.max())
        again = model.solve(source, y, start=alone.alpha)
        assert_allclose(again.alpha, alone.alpha, atol=1e-5 * alone.alpha.max())
        assert again.n_iter < alone.n_iter
    # With the tolerance of every day the starts are good ones.
    cold = [NNISDA(C=value).solve(source, y).n_iter for value in C]
    warm = [solution.n_iter for solution in solutions(NNISDA().path(source, y, "C", C))]
    assert warm[0] == cold[0]
    assert sum(warm) < 0.8 * sum(cold)


@needs_jit
@pytest.mark.parametrize("small", [source_row_cache.CACHE_MATRIX_MAX_SAMPLES, 0])
def test_rounded_rows_give_way_where_they_do_not_suffice(small, monkeypatch):
    monkeypatch.setattr(source_row_cache, "CACHE_MATRIX_MAX_SAMPLES", small)
    X, y = make_problem(n=150, d=5)
    errors = []
    measured = l2svm.L2State.rounding_error
    monkeypatch.setattr(
        l2svm.L2State,
        "rounding_error",
        lambda *parts: errors.append(measured(*parts)) or errors[-1],
    )
    for C, tol, suffice in ((1.0, 1e-3, True), (100.0, 1e-4, False)):
        model = NNISDA(C=C, gamma=2.0, tol=tol).fit(X, y)
        assert (l2svm.UNCHECKED_FACTOR * errors[-1] <= l2svm.ROUNDING_TOL_SHARE * tol) == suffice
        assert projected_gradient(model, X, y) <= tol * (1.0 + 1e-6)
    assert len(errors) == 2


@pytest.mark.parametrize("name", TIGHT)
def test_inputs_that_say_nothing(name):
    y = np.array([1, 1, -1])
    model = build(name, C=2.0, gamma=1.0).fit(np.zeros((3, 2)), y)
    best = exact(np.ones((3, 3)), y, 2.0)
    assert_allclose(model.decision_function(np.zeros((1, 2))), 2.0 * (best @ y), atol=1e-6)
    assert model.predict(np.zeros((1, 2)))[0] == 1


@pytest.mark.parametrize("name", TIGHT)
def test_identical_samples_with_opposite_labels(name):
    X, y = np.array([[1.0], [1.0], [0.0], [2.0]]), np.array([1, -1, -1, 1])
    model = build(name, C=10.0, kernel="linear").fit(X, y)
    K = X @ X.T
    assert model.dual_objective_ == pytest.approx(dual(K, y, 10.0, exact(K, y, 10.0)), rel=1e-6)


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
def test_flat_and_spiked_kernels_and_a_class_of_one(name, gamma):
    X, y = make_problem(n=30, d=3)
    X += 0.01 * np.arange(30)[:, None]
    alone = np.where(np.arange(30) == 7, 1, -1)
    K = KernelFunction("rbf", gamma).between(X, X)
    for labels in (y, alone):
        for C in (1e-6, 1.0, 100.0):
            model = build(name, C=C, gamma=gamma).fit(X, labels)
            value = dual(K, labels, C, exact(K, labels, C))
            assert model.dual_objective_ == pytest.approx(value, rel=1e-6)


@needs_jit
@pytest.mark.parametrize("name", TIGHT)
def test_permuted_samples_and_sparse_input(name):
    X, y = make_problem(n=60, d=5)
    order = np.random.default_rng(0).permutation(60)
    there = build(name, C=3.0).fit(X, y)
    back = build(name, C=3.0).fit(sp.csr_array(X[order]), y[order])
    assert_allclose(back.decision_function(X), there.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("name", TIGHT)
def test_a_kernel_without_an_optimum_is_refused(name):
    with pytest.raises(ValueError, match="needs a positive semidefinite kernel, one of linear"):
        build(name, kernel="sigmoid").fit(np.eye(2), [0, 1])


@pytest.mark.mirror
@needs_jit
def test_agrees_with_liblinear_on_the_reference_bed(mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    model = NNISDA(kernel="linear", C=2.0, tol=1e-4).fit(X, y)
    assert model.dual_objective_ == pytest.approx(663.515962, rel=1e-6)


def test_mn_svm_stalls_where_no_eps_leads_to_the_gap(monkeypatch):
    tried = []

    def without_effect(_state, rules):
        tried.append(rules.eps)
        return "no violator", {"updates": 1}

    monkeypatch.setattr(mn_svm, "approach_origin", without_effect)
    monkeypatch.setattr(mn_svm, "relative_gap", lambda _state: 1.0)
    rules = mn_svm.DrawRules(eps=1e-3, max_iter=1000, seed=1)
    reason, counters = mn_svm.approach_to_gap(None, rules, 0.1)
    assert (reason, counters["updates"]) == ("stalled", len(tried))
    assert tried[-2] >= mn_svm.LEAST_EPS > tried[-1]
