"""csvc against LIBSVM, a generic QP solver and answers on paper; inputs that break solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_oracles import box_qp
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from small_problems import make_problem, needs_jit, solutions

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.csvc import CSVC
from svmbench.core.kernels.kernels import KernelFunction, KernelSource


def true_gap(model, X, y):
    """Return the violation of the optimality conditions, from a decision function in float64."""
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert alpha.min() >= 0.0
    assert alpha.max() <= model.C
    assert abs(alpha @ y) <= 1e-9 * max(1.0, alpha.sum())
    v = y - (model.decision_function(X) - model.intercept_[0])
    up = np.where(y > 0, alpha < model.C, alpha > 0)
    down = np.where(y > 0, alpha > 0, alpha < model.C)
    return v[up].max() - v[down].min()


def dual_value(model, X):
    coefficients = model.dual_coef_[0]
    f = model.decision_function(X)[model.support_] - model.intercept_[0]
    return np.abs(coefficients).sum() - 0.5 * coefficients @ f


def same_as_libsvm(X, y, **parameters):
    ours = CSVC(tol=1e-6, **parameters).fit(X, y)
    theirs = SVC(tol=1e-6, **parameters).fit(X, y)
    assert ours.dual_objective_ == pytest.approx(dual_value(theirs, X), rel=1e-6)
    assert true_gap(ours, X, y) <= 1e-6 * (1 + 1e-6)
    assert ours.stop_reason_ == "converged"
    f, g = ours.decision_function(X), theirs.decision_function(X)
    far = np.abs(g) > 1e-5
    assert np.array_equal(np.sign(f[far]), np.sign(g[far]))


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_same_optimum_as_libsvm(kernel, C):
    X, y = make_problem(n=150, d=6)
    same_as_libsvm(X, y, C=C, kernel=kernel, gamma=0.7, coef0=1.0)


@pytest.mark.mirror
@needs_jit
@pytest.mark.parametrize("name", ["a1a", "w1a", "heart_scale", "sonar_scale"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_same_optimum_as_libsvm_on_real_data(mirrored, name, kernel):
    X, y = mirrored(name)
    X = X.toarray()
    for C in (0.1, 2.0):
        same_as_libsvm(X, y, C=C, kernel=kernel, gamma=1.0 / X.shape[1])


@pytest.mark.mirror
@needs_jit
def test_reference_bed(mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    model = CSVC(gamma=0.05, C=1.0, tol=1e-6).fit(X, y)
    assert model.dual_objective_ == pytest.approx(584.787720, rel=1e-8)
    assert len(model.support_) == 706
    assert model.counters_["bounded_support_vectors"] == pytest.approx(598, abs=1)


def test_same_optimum_as_a_generic_qp_solver():
    X, y = make_problem(n=12, d=3)
    K = KernelFunction("rbf", 0.8).between(X, X)
    Q = K * np.outer(y, y)
    answer = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.full(12, 0.5),
        jac=lambda a: Q @ a - 1.0,
        bounds=[(0.0, 2.0)] * 12,
        constraints=LinearConstraint(y.astype(float), 0.0, 0.0),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    model = CSVC(C=2.0, gamma=0.8, tol=1e-8).fit(X, y)
    assert model.dual_objective_ == pytest.approx(-answer.fun, rel=1e-7)


def test_two_points_on_paper():
    # w = 2 / distance along the line, b in the middle; alpha = 2 / distance^2 for both.
    model = CSVC(C=10.0, kernel="linear").fit([[1.0], [3.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    assert_allclose(model.intercept_, [-2.0])
    assert model.counters_["updates"] == 1


def test_identical_samples_with_opposite_labels():
    X, y = np.array([[1.0], [1.0], [0.0], [2.0]]), np.array([1, -1, -1, 1])
    model = CSVC(C=1.0, kernel="linear").fit(X, y)
    assert true_gap(model, X, y) <= 1e-3
    # Nothing separates the twins: one of them, at least, pays for both.
    assert model.objective_ >= 2.0 - 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_zero_features(kernel):
    y = np.array([1, 1, -1])
    model = CSVC(C=2.0, kernel=kernel, gamma=1.0).fit(np.zeros((3, 2)), y)
    assert model.objective_ == pytest.approx(4.0)
    assert model.predict([[0.0, 0.0]])[0] == 1


@needs_jit
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
def test_flat_and_spiked_kernels(gamma):
    X, y = make_problem(n=30, d=3)
    X += 0.01 * np.arange(30)[:, None]
    y[:10] = 1
    model = CSVC(gamma=gamma, tol=1e-6).fit(X, y)
    assert true_gap(model, X, y) <= 1.1e-6
    few = min(np.sum(y > 0), np.sum(y < 0))
    if gamma > 1.0:
        # K = I: alpha is min(C, 1 -+ b), and y'alpha = 0 settles b; the smaller class is at C.
        expected = 2 * few - 0.5 * (few + few**2 / (30 - few))
        assert model.dual_objective_ == pytest.approx(expected, rel=1e-6)
    else:
        assert model.dual_objective_ == pytest.approx(2 * few, rel=1e-6)


@needs_jit
@pytest.mark.parametrize("C", [1e-6, 1e8])
def test_extreme_C(C):
    X, y = make_problem(n=40, d=4)
    model = CSVC(C=C, gamma=5.0, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert true_gap(model, X, y) <= 1e-4 * (1 + 1e-3)


@needs_jit
def test_one_sample_of_a_class_and_an_indefinite_kernel():
    X, y = make_problem(n=40, d=4)
    alone = np.where(np.arange(40) == 7, 1, -1)
    model = CSVC(C=10.0, gamma=1.0).fit(X, alone)
    assert true_gap(model, X, alone) <= 1e-3
    model = CSVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert np.linalg.eigvalsh(model.function.between(X, X)).min() < 0.0
    assert true_gap(model, X, y) <= 1e-3


def test_max_iter_is_said():
    X, y = make_problem(n=60, d=4)
    with pytest.warns(ConvergenceWarning, match="csvc stopped at max_iter=3 before"):
        model = CSVC(C=10.0, max_iter=3, tol=1e-5).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert model.n_iter_ == 3


@needs_jit
def test_permuted_and_sparse_samples():
    X, y = make_problem(n=60, d=5)
    order = np.random.default_rng(0).permutation(60)
    there = CSVC(tol=1e-6).fit(X, y)
    back = CSVC(tol=1e-6).fit(sp.csr_array(X[order]), y[order])
    assert_allclose(back.decision_function(X), there.decision_function(X), atol=1e-5)


@needs_jit
def test_duplicated_samples_share_one_multiplier():
    X, y = make_problem(n=50, d=4)
    once = CSVC(C=2.0, gamma=1.0, tol=1e-7).fit(X, y)
    twice = CSVC(C=1.0, gamma=1.0, tol=1e-7).fit(np.vstack([X, X]), np.r_[y, y])
    assert twice.dual_objective_ == pytest.approx(once.dual_objective_, rel=1e-7)


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_path_gives_what_single_solves_give(dtype):
    X, y = make_problem(n=120, d=5, density=1.0)
    K = KernelFunction("rbf", 10.0).between(X, X).astype(dtype)
    y = y.astype(float)
    values = [0.01, 0.1, 1.0, 3.0, 1000.0, 1e5]
    path = solutions(CSVC(tol=1e-7).path(KernelSource.precomputed(K), y, "C", values))
    for C, found in zip(values, path, strict=True):
        alone = CSVC(C=C, tol=1e-7).solve(KernelSource.precomputed(K), y)
        assert found.alpha.max() <= C
        assert abs(found.alpha @ y) <= 1e-9 * found.alpha.sum()
        assert np.sum(found.alpha == C) == np.sum(alone.alpha == C)
        f, g = (K.astype(np.float64) @ (s.alpha * y) + s.b for s in (found, alone))
        assert_allclose(f, g, atol=1e-5)
    # No multiplier is at its bound any more: nothing is left to do.
    assert path[-1].n_iter == path[-1].counters["updates"] == 0
    assert path[-1].alpha.max() < 1000.0
    assert path[0].n_iter > 0


@needs_jit
def test_a_good_start_is_used_and_a_bad_one_does_no_harm():
    X, y = make_problem(n=120, d=5)
    source = KernelSource.precomputed(KernelFunction("rbf", 3.0).between(X, X))
    y = y.astype(float)
    cold = CSVC(tol=1e-6).solve(source, y)
    warm = CSVC(tol=1e-6).solve(source, y, start=cold.alpha)
    assert warm.n_iter == 0
    assert_allclose(warm.alpha, cold.alpha)
    bad = CSVC(tol=1e-6).solve(source, y, start=np.ones(120))
    assert_allclose(source.rows(np.arange(120)) @ (bad.alpha * y) + bad.b,
                    source.rows(np.arange(120)) @ (cold.alpha * y) + cold.b, atol=1e-5)  # fmt: skip


def test_a_shared_matrix_is_left_alone():
    X, y = make_problem(n=30, d=3)
    K = KernelFunction("rbf", 1.0).between(X, X)
    K.flags.writeable = False
    kept = K.copy()
    part = KernelSource.precomputed(K).subset(np.arange(5, 25))
    CSVC().solve(part, y[5:25].astype(float))
    assert np.array_equal(K, kept)


def test_no_offset_on_paper():
    # f(x) = w x, margins 1 at x = 1 and x = -2: w = 1, and only the first is on its margin.
    model = CSVC(C=10.0, kernel="linear", fit_intercept=False).fit([[1.0], [-2.0]], [1, -1])
    assert_allclose(model.dual_coef_, [[1.0]])
    assert model.intercept_ == [0.0]
    assert model.counters_["updates"] == 1
    # Both of one class: without an offset that is a problem as well as any other.
    source = KernelSource.precomputed(np.array([[1.0, 0.5], [0.5, 1.0]]))
    found = CSVC(C=10.0, fit_intercept=False).solve(source, np.ones(2))
    assert_allclose(found.alpha, [2.0 / 3.0, 2.0 / 3.0])


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_no_offset_as_bounded_least_squares_finds_it(kernel, C):
    X, y = make_problem(n=60, d=5, density=1.0)
    parameters = {"C": C, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    model = CSVC(tol=1e-8, fit_intercept=False, **parameters).fit(X, y)
    Q = model.function.between(X, X) * np.outer(y, y)
    alpha = np.zeros(60)
    alpha[model.support_] = model.dual_coef_[0] * y[model.support_]
    expected = box_qp(Q + 1e-9 * np.eye(60), C)
    best = expected.sum() - 0.5 * expected @ Q @ expected
    assert model.stop_reason_ == "converged"
    assert model.dual_objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ - model.dual_objective_ <= 1e-6 * model.objective_
    slack = y * model.decision_function(X) - 1.0
    assert np.max(-slack[alpha < C], initial=0.0) <= 1e-8 * (1 + 1e-3)
    assert np.max(slack[alpha > 0], initial=0.0) <= 1e-8 * (1 + 1e-3)


@pytest.mark.mirror
@needs_jit
def test_no_offset_on_the_reference_bed(mirrored):
    # SVM-light without an offset: primal 585.283, 715 support vectors.
    X, y = mirrored("a9a")
    model = CSVC(gamma=0.05, C=1.0, tol=1e-6, fit_intercept=False).fit(X[:1605], y[:1605])
    assert model.objective_ == pytest.approx(585.283, abs=1e-3)
    assert len(model.support_) == pytest.approx(715, abs=2)


@needs_jit
def test_a_path_without_an_offset_starts_from_the_last_solution():
    X, y = make_problem(n=120, d=5, density=1.0)
    y = y.astype(float)
    K = KernelFunction("rbf", 10.0).between(X, X)
    model, values = CSVC(tol=1e-7, fit_intercept=False), [0.1, 1.0, 1.5, 3.0, 1e5, 1e6]
    path = solutions(model.path(KernelSource.precomputed(K), y, "C", values))
    alone = [CSVC(C=C, tol=1e-7, fit_intercept=False).solve(KernelSource.precomputed(K), y)
             for C in values]  # fmt: skip
    for found, single in zip(path, alone, strict=True):
        assert found.b == single.b == 0.0
        assert_allclose(K @ (found.alpha * y), K @ (single.alpha * y), atol=1e-5)
    assert path[-1].n_iter == 0
    assert [found.counters["kernel_evaluations"] for found in path] == [K.size, 0, 0, 0, 0, 0]
    assert sum(found.n_iter for found in path) < sum(single.n_iter for single in alone)


@needs_jit
def test_a_flipped_sample_and_a_duplicated_one_without_an_offset():
    X, y = make_problem(n=50, d=4)
    settings = {"gamma": 1.0, "tol": 1e-7, "fit_intercept": False}
    once = CSVC(C=2.0, **settings).fit(X, y)
    twice = CSVC(C=1.0, **settings).fit(np.vstack([X, X]), np.r_[y, y])
    assert twice.dual_objective_ == pytest.approx(once.dual_objective_, rel=1e-7)
    # A constant large enough beside the kernel stands for a free offset.
    K = KernelFunction("rbf", 1.0).between(X, X)
    free = CSVC(C=2.0, tol=1e-7).solve(KernelSource.precomputed(K), y.astype(float))
    absorbed = CSVC(C=2.0, tol=1e-7, fit_intercept=False).solve(
        KernelSource.precomputed(K + 1e4), y.astype(float)
    )
    f, g = K @ (free.alpha * y) + free.b, (K + 1e4) @ (absorbed.alpha * y)
    assert_allclose(f, g, atol=1e-3)
