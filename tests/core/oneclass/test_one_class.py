"""one-class, svdd and kde: scikit-learn's models, duality, what nu promises, bad input."""

import os
from pathlib import Path

import numpy as np
import piqp
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.neighbors import KernelDensity
from sklearn.svm import OneClassSVM
from small_problems import needs_jit

from svmbench.base.compiled import JIT_DISABLED
from svmbench.baselines import catalogue
from svmbench.core.contract.problems import Values
from svmbench.core.csvc import solver as csvc_solver
from svmbench.core.csvc import working_sets
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.oneclass.kde import KernelDensityDetector, quantile_of
from svmbench.core.oneclass.one_class import OneClass
from svmbench.core.oneclass.svdd import SVDD

DETECTORS = [name for name, said in catalogue.solvers().items() if said.task == "one-class"]
N = 24 if JIT_DISABLED else 100


def samples(n=N, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, d)) * (rng.random((n, d)) < 0.7)


def test_two_points_on_paper():
    # Both multipliers are at their bound 1/2: w = 2.
    model = OneClass(nu=1.0, kernel="linear").fit([[1.0], [3.0]])
    assert_allclose(model.dual_coef_, [[0.5, 0.5]])
    assert model.dual_objective_ == pytest.approx(-2.0)
    assert model.objective_ == pytest.approx(-2.0)
    # With no bound that binds, all of the weight is on the point that is nearest to the origin.
    hard = OneClass(nu=0.4, kernel="linear").fit([[1.0], [3.0]])
    assert_allclose(hard.offset_, 1.0)
    assert_allclose(hard.decision_function([[1.0], [2.0]]), [0.0, 1.0])
    ball = SVDD(nu=0.5, kernel="linear").fit([[1.0], [3.0]])
    assert_allclose(ball.score_samples([[2.0], [3.0]]), [0.0, -1.0])
    assert ball.objective_ == pytest.approx(1.0)
    assert ball.offset_ == pytest.approx(-1.0)


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
# With shares of the samples that are no integers there is always a free multiplier.
@pytest.mark.parametrize("nu", [0.055, 0.305, 0.805])
@pytest.mark.parametrize("sets", [False, True])
def test_same_model_as_scikit_learn(kernel, nu, sets, monkeypatch):
    if sets:
        monkeypatch.setattr(csvc_solver, "FULL_MATRIX_MAX_SAMPLES", 0)
        monkeypatch.setattr(working_sets, "SET_SAMPLES", 24)
    X = samples()
    parameters = {"nu": nu, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    ours = OneClass(tol=1e-8, **parameters).fit(X)
    theirs = OneClassSVM(tol=1e-8, **parameters).fit(X)
    assert ours.stop_reason_ == "converged"
    f = nu * N * ours.decision_function(X)
    assert_allclose(f, theirs.decision_function(X), atol=1e-5 * np.abs(f).max())
    assert nu * N * ours.offset_ == pytest.approx(theirs.offset_[0], rel=1e-6)
    assert_allclose(nu * N * ours.score_samples(X), theirs.score_samples(X), rtol=1e-5)
    sure = np.abs(f) > 1e-6 * np.abs(f).max()
    assert np.array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])
    assert ours.objective_ - ours.dual_objective_ <= 1e-6 * abs(ours.objective_) + 1e-12
    # The property that nu is named for.
    assert np.mean(f < -1e-6 * np.abs(f).max()) <= nu + 1e-9
    assert len(ours.support_) / N >= nu - 1e-9


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.02, 0.3])
def test_the_ball_is_optimal_and_for_rbf_the_same_model(kernel, nu):
    X = samples()
    parameters = {"nu": nu, "kernel": kernel, "gamma": 0.7, "coef0": 1.0, "tol": 1e-9}
    ball, plane = SVDD(**parameters).fit(X), OneClass(**parameters).fit(X)
    assert ball.objective_ - ball.dual_objective_ <= 1e-6 * ball.objective_
    assert np.sum(ball.decision_function(X) < -1e-8) <= nu * N + 1e-9
    # The score is minus the squared distance from the centre, term by term.
    K = ball.function.between(X, X)
    alpha = np.zeros(N)
    alpha[ball.support_] = ball.dual_coef_[0]
    distances = np.diag(K) - 2.0 * K @ alpha + alpha @ K @ alpha
    assert_allclose(ball.score_samples(X), -distances, atol=1e-9)
    twice = 2.0 * plane.decision_function(X)
    scale = np.abs(twice).max()
    if kernel == "rbf":
        assert_allclose(ball.decision_function(X), twice, atol=1e-6 * scale)
    else:
        assert not np.allclose(ball.decision_function(X), twice, atol=1e-2 * scale)


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("nu", [0.055, 0.305, 0.805])
def test_three_ways_to_the_one_class_svm_end_at_one_model(nu, form):
    X, others = form(samples()), form(samples(seed=1) * 1.2)
    parameters = {"nu": nu, "gamma": 0.7, "tol": 1e-9}
    by_sets, by_pairs, ball = (
        catalogue.solver(name, **parameters).fit(X) for name in ("one-class", "oc-svm", "svdd")
    )
    expected = by_sets.decision_function(others)
    off = 1e-6 * np.abs(expected).max()
    assert np.ptp(expected) > 1e4 * off
    # The same multipliers; the ball's score is -||phi(x) - w||^2, in which <w, phi(x)> is twice.
    assert_allclose(by_pairs.decision_function(others), expected, rtol=0.0, atol=off)
    assert_allclose(0.5 * ball.decision_function(others), expected, rtol=0.0, atol=off)


def hard_margin(K, linear):
    """Return the value and the multipliers of min 1/2 a'Ka - linear'a over the simplex, by PIQP."""
    n = len(K)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    nothing = (None, None, None)
    scale = np.abs(K).max()
    solver.setup(
        K / scale, -linear / scale, np.ones((1, n)), np.ones(1), *nothing, np.zeros(n), np.ones(n)
    )
    solver.solve()
    a = np.maximum(solver.result.x, 0.0)
    a /= a.sum()
    return 0.5 * a @ K @ a - linear @ a, a


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("times", [1.0, 1e-3, 30.0])
@pytest.mark.parametrize("n", [60, 600])
def test_below_one_sample_nu_is_the_hard_margin_whatever_it_is(kernel, times, n):
    X = times * (samples(n=n) + 0.1)
    parameters = {"kernel": kernel, "gamma": 0.7 / times**2}
    for solver in (OneClass, SVDD):
        rejected = []
        for share in (0.99, 0.5, 1e-2, 1e-7):
            model = solver(nu=share / n, **parameters).fit(X)
            assert model.stop_reason_ == "converged"
            K = model.function.between(X, X)
            best, _ = hard_margin(K, 0.5 * np.diag(K) if solver is SVDD else np.zeros(n))
            best = -2.0 * best if solver is SVDD else best
            value = model.dual_objective_ if solver is SVDD else -model.dual_objective_
            alpha = np.zeros(n)
            alpha[model.support_] = model.dual_coef_[0]
            assert alpha.sum() == pytest.approx(1.0)
            assert alpha.min() >= 0.0
            # A duality gap of a hard margin is at most the largest violation, whatever nu.
            unit = model.expansion_.rho
            assert abs(value - best) <= 2e-3 * unit
            assert model.objective_ - model.dual_objective_ <= 4e-3 * unit
            distance = 2.0 * K @ alpha - np.diag(K) if solver is SVDD else K @ alpha
            assert np.min(distance) >= np.max(distance[alpha > 0.0]) - 2.1e-3 * unit
            rejected.append(np.sum(model.decision_function(X) < -1e-9 * unit))
        assert rejected == [0] * 4


@needs_jit
def test_the_density_is_scikit_learn_s():
    X, others = samples(), samples(seed=1)
    model = KernelDensityDetector(nu=0.2, gamma=2.0).fit(X)
    theirs = KernelDensity(bandwidth=0.5).fit(X)
    difference = np.log(model.score_samples(others)) - theirs.score_samples(others)
    assert_allclose(difference, difference[0], atol=1e-9)
    assert np.sum(model.decision_function(X) < 0) == 20
    assert model.objective_ == pytest.approx(model.dual_objective_)
    # At nu = 1 the one-class SVM's w is this one.
    twin = OneClass(nu=1.0, gamma=2.0, tol=1e-9).fit(X)
    assert_allclose(twin.score_samples(others), model.score_samples(others), rtol=1e-9)


def test_the_threshold_leaves_at_most_its_share_outside():
    scores = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    assert [quantile_of(scores, nu) for nu in (0.1, 0.2, 0.4, 0.99, 1.0)] == [1, 2, 3, 5, 5]
    # 0.1 * 30 is 3.0000000000000004, and 0.29 * 100 is 28.999999999999996.
    assert quantile_of(np.arange(100.0), 0.29) == 29.0


@pytest.mark.parametrize("problem", ["one-class", "svdd", "mean-embedding"])
def test_the_value_at_the_solution_is_the_best(problem):
    name = {"mean-embedding": "kde"}.get(problem, problem)
    X = samples(n=20)
    tight = {} if name == "kde" else {"tol": 1e-9}
    model = catalogue.solver(name, nu=0.3, gamma=1.0, **tight).fit(X)
    K = model.function.between(X, X)
    alpha = np.zeros(20)
    alpha[model.support_] = model.dual_coef_[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = alpha + 0.02 * rng.normal(size=20)
        g, square, rho = K @ other, other @ K @ other, model.expansion_.rho * rng.uniform(0.9, 1.1)
        f = g - rho if name != "svdd" else rho - (1.0 - 2.0 * g + square)
        value = model.problem.primal(
            Values(f, square, rho=rho), model._problem_parameter(model.prepare(X))
        )
        assert value >= model.objective_ - 1e-9


@pytest.mark.parametrize("name", DETECTORS)
def test_three_steps_are_fit_and_train_may_be_repeated(name):
    X = samples(n=30)
    model = catalogue.solver(name).fit(X)
    again = catalogue.solver(name)
    data = again.prepare(X, None)
    again.train(data)
    again.train(data)
    again.evaluate_objective(data)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-12)
    f = model.decision_function(X)
    assert_allclose(again.decision_function(X), f, rtol=0.0, atol=1e-12 * np.abs(f).max())
    assert_allclose(model.score_samples(X) - model.offset_, model.decision_function(X), atol=1e-12)
    assert model.n_iter_ >= 1
    assert all(isinstance(count, int) for count in model.counters_.values())
    assert set(model.fit_predict(X)) <= {-1, 1}


@pytest.mark.parametrize("name", DETECTORS)
def test_dense_and_sparse_agree(name):
    if not catalogue.solvers()[name].sparse:
        pytest.skip("dense only")
    X = samples(n=30)
    dense = catalogue.solver(name).fit(X).decision_function(X)
    for form in (sp.csr_array(X), sp.coo_matrix(X)):
        f = catalogue.solver(name).fit(form).decision_function(form)
        assert_allclose(f, dense, rtol=1e-6, atol=1e-7 * np.abs(dense).max())


@pytest.mark.parametrize("name", DETECTORS)
def test_one_sample_and_identical_samples_are_a_model(name):
    for X in ([[1.0, 2.0]], np.ones((6, 2))):
        model = catalogue.solver(name).fit(X)
        assert_allclose(model.decision_function(X), 0.0, atol=1e-9)
        near, far = model.score_samples([[1.0, 2.0], [-40.0, -30.0]])
        assert near > far


@pytest.mark.parametrize("name", [n for n in DETECTORS if "nu" in catalogue.solver(n).get_params()])
@pytest.mark.parametrize("nu", [0.0, -0.1, 1.5, np.nan, "0.1", True])
def test_nu_out_of_range_is_one_sentence(name, nu):
    with pytest.raises(ValueError, match="nu must be a number above 0 and at most 1, got nu="):
        catalogue.solver(name, nu=nu).fit(samples(n=10))


def test_a_path_needs_no_labels():
    X = samples(n=20)
    source = KernelSource.precomputed(KernelFunction("rbf", 1.0).between(X, X))
    splits = [(np.arange(10), np.arange(10, 20)), (np.arange(10, 20), np.arange(10))]
    for given in (source, OneClass(gamma=1.0).prepare(X)):
        model = OneClass(gamma=1.0)
        model.gamma_ = 1.0
        points = list(model.path(given, None, "nu", [0.2, 0.5], splits))
        assert len(points) == 4
        rows, alone = splits[1][0], OneClass(nu=0.5, gamma=1.0).fit(X[splits[1][0]])
        coefficients = np.zeros(10)
        coefficients[alone.support_] = alone.dual_coef_[0]
        last = points[3].solution
        found = (
            last.coefficients
            if given is source
            else np.bincount(last.support_, last.dual_coef_[0], 10)
        )
        assert_allclose(found, coefficients, atol=1e-3)
        assert len(rows) == 10


@pytest.mark.mirror
@needs_jit
def test_known_values_on_a9a_s_first_rows():
    import io
    import lzma

    from sklearn.datasets import load_svmlight_file

    mirror = os.environ.get("SVMBENCH_MIRROR")
    if not mirror or not Path(mirror).is_dir():
        pytest.skip("SVMBENCH_MIRROR names no folder with the real data files")
    content = lzma.decompress(Path(mirror, "libsvm/a9a.xz").read_bytes())
    X, _ = load_svmlight_file(io.BytesIO(content))
    # LIBSVM 3.37 prints obj = 4996.3294 and rho = 63.505649 for its multipliers: nu N times these.
    model = OneClass(nu=0.1, gamma=0.05, tol=1e-3).fit(X[:1605])
    assert -model.dual_objective_ * 160.5**2 == pytest.approx(4996.3294, rel=1e-6)
    assert model.offset_ * 160.5 == pytest.approx(63.505649, rel=1e-5)
    assert abs(model.counters_["support_vectors"] - 181) <= 2


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_libsvm_s_one_class_svm_is_ours(kernel):
    X = samples()
    parameters = {"nu": 0.205, "kernel": kernel, "gamma": 0.7, "tol": 1e-8}
    ours = OneClass(**parameters).fit(X)
    for form in (X, sp.csr_array(X)):
        theirs = catalogue.solver("libsvm-oneclass", **parameters).fit(form)
        assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-6)
        assert theirs.objective_id == ours.objective_id
        f = ours.decision_function(X)
        assert_allclose(theirs.decision_function(X), f, atol=1e-6 * np.abs(f).max())
    assert theirs.counters_["bounded_support_vectors"] == ours.counters_["bounded_support_vectors"]
