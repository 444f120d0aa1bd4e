"""Inputs that float64 or a limit of steps can't do justice to: the right answer, or a word."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from small_problems import make_problem, needs_jit

from svmbench.baselines import catalogue
from svmbench.core.csvc import CSVC
from svmbench.core.kernels.kernels import KernelSource, gamma_scale
from svmbench.core.linear.active_lagrangian import ASVM, LSVM
from svmbench.core.linear.alsvm import ALSVM
from svmbench.core.linear.alsvm_batch import ALSVMBatch
from svmbench.core.linear.cutting_plane import SVMPerf
from svmbench.core.linear.dcd import DCDL1, DCDL2
from svmbench.core.linear.pegasos import Pegasos
from svmbench.core.numeric.qp import STEPS_A_CUT


@needs_jit
@pytest.mark.parametrize("solver", [DCDL1, DCDL2])
def test_passes_that_run_out_are_said(solver):
    X, y = load_breast_cancer(return_X_y=True)
    name = solver.declaration.name
    said = f"{name} stopped at max_iter=50 before the optimality conditions held within tol=0.1"
    with pytest.warns(ConvergenceWarning, match=said):
        model = solver(max_iter=50).fit(X, y)
    assert model.stop_reason_ == "max_iter"


@pytest.mark.parametrize("solver", [DCDL1, ASVM, LSVM, SVMPerf])
def test_every_linear_search_says_where_it_was_stopped(solver):
    X, y = make_problem(n=60, d=5)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=1 before"):
        solver(max_iter=1, tol=1e-9).fit(X, y)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_steps_that_were_all_that_was_asked_for_are_no_failure():
    X, y = make_problem(n=60, d=5)
    assert Pegasos().fit(X, y).stop_reason_ == "max_iter"
    assert DCDL1().fit(X, y).stop_reason_ == "converged"


@needs_jit
def test_the_small_program_of_cutting_planes_is_bounded_with_the_cuts():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="svm-perf stopped at max_iter=100 before"):
        model = SVMPerf(max_iter=100).fit(X, y)
    assert model.counters_["qp_steps"] == 100 * STEPS_A_CUT
    assert model.counters_["cuts"] < 100
    assert model.stop_reason_ == "max_iter"


def least_squares_of(X, y, C):
    """Return weights, the offset last, and the objective, in extended precision."""
    Z = np.column_stack([X, np.ones(len(y))]).astype(np.longdouble)
    size = Z.shape[1]
    M = np.column_stack([Z.T @ Z + np.eye(size) / (2 * C), Z.T @ y])
    for i in range(size):
        M[i + 1 :] -= np.outer(M[i + 1 :, i] / M[i, i], M[i])
    w = np.zeros(size, dtype=np.longdouble)
    for i in reversed(range(size)):
        w[i] = (M[i, -1] - M[i, i + 1 : -1] @ w[i + 1 :]) / M[i, i]
    value = 0.5 * w @ w + C * np.sum((1 - y * (Z @ w)) ** 2)
    return w.astype(float), float(value)


def far_apart(n=300, *, offset=0.0, spread=1e8):
    """Return features of about 1e8, and labels of which the larger part is positive."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 4))
    y = np.where(Z[:, 0] + 0.3 * rng.normal(size=n) > -0.5, 1.0, -1.0)
    return offset + spread * Z, y


@pytest.mark.parametrize("solver", [ALSVM, ALSVMBatch])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1e8), (1e8, 1e3)])
def test_the_constant_feature_is_kept_beside_features_of_1e8(solver, form, offset, spread):
    X, y = far_apart(offset=offset, spread=spread)
    w, value = least_squares_of(X, y, 1.0)
    model = solver().fit(form(X), y)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert_allclose(np.append(model.coef_[0], model.intercept_), w, rtol=1e-4)
    assert model.stop_reason_ == "closed form, by orthogonal reflections of the samples"
    assert model.counters_["refreshes" if solver is ALSVM else "fallbacks"] == 1
    assert solver().fit(form(X / 1e8), y).stop_reason_ == "closed form"


def test_the_samples_of_each_fold_are_factorised_where_sums_are_not_enough():
    X, y = far_apart()
    estimator = ALSVMBatch()
    halves = np.arange(len(y)) % 2 == 0
    splits = [(np.flatnonzero(halves), np.flatnonzero(~halves))]
    splits.append(splits[0][::-1])
    points = list(estimator.path(estimator.prepare(X, y), None, "C", [0.5, 2.0], splits))
    for point, (rows, C) in zip(
        points, [(rows, C) for rows, _ in splits for C in (0.5, 2.0)], strict=True
    ):
        w, _ = least_squares_of(X[rows], y[rows], C)
        found = point.solution
        assert_allclose(np.append(found.coef_[0], found.intercept_), w, rtol=1e-6)


def test_samples_whose_sums_are_not_enough_are_kept():
    X, y = far_apart(offset=1e8, spread=1e3)
    model = ALSVM().fit(X[:200], y[:200]).add(X[200:], y[200:])
    assert model.stop_reason_ == "closed form, by orthogonal reflections of the samples"
    w, _ = least_squares_of(X, y, 1.0)
    f = X @ w[:-1] + w[-1]
    assert_allclose(model.decision_function(X), f, rtol=0, atol=1e-6)


def test_samples_of_1e8_can_be_added_and_removed():
    """The inverse is made of the samples, too, and is exact enough for what follows."""
    X, y = far_apart()
    model = ALSVM().fit(X[:200], y[:200]).add(X[200:], y[200:]).remove(X[:100], y[:100])
    w, _ = least_squares_of(X[100:], y[100:], 1.0)
    assert_allclose(np.append(model.coef_[0], model.intercept_), w, rtol=1e-6)
    assert model.counters_["refreshes"] == 1


def near_each_other(n, d, k=2, *, apart=0.0):
    """Return inputs of a spread of 1 that lose no digit when 2^27 is added, and `k` classes.

    Every second pair of samples is moved by `apart` along all features.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.4 * y
    return np.round(1024.0 * X) / 1024.0 + apart * (np.arange(n) // 2 % 2)[:, None], y


FAR = 2.0**27


@needs_jit
@pytest.mark.parametrize("name", ["csvc", "svm-light", "osuna"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gamma", ["scale", 0.02])
@pytest.mark.parametrize(("n", "d"), [(120, 3), (700, 60)])
def test_where_rbf_inputs_stand_changes_nothing(name, form, gamma, n, d):
    X, y = near_each_other(n, d)
    near = catalogue.solver(name, gamma=gamma, tol=1e-6).fit(form(X), y)
    far = catalogue.solver(name, gamma=gamma, tol=1e-6).fit(form(X + FAR), y)
    assert far.stop_reason_ == near.stop_reason_ == "converged"
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)
    assert far.dual_objective_ == pytest.approx(near.dual_objective_, rel=1e-6)
    decisions = near.decision_function(form(X))
    assert_allclose(far.decision_function(form(X + FAR)), decisions, atol=1e-4)


@needs_jit
@pytest.mark.parametrize("name", ["smo", "smo-fixed-threshold", "lasvm", "cvm", "bvm"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_steps_on_single_kernel_values_keep_the_digits_of_distances(name, form):
    X, y = near_each_other(150, 4)
    near, far = (catalogue.solver(name, gamma=0.1).fit(form(each), y) for each in (X, X + FAR))
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-2)
    assert far.dual_objective_ == pytest.approx(near.dual_objective_, rel=1e-2)


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n", "d", "k"), [(2100, 60, 2), (150, 3, 3), (700, 3, 3)])
def test_working_sets_and_pairs_of_classes_keep_the_digits_of_distances(form, n, d, k):
    X, y = near_each_other(n, d, k)
    near, far = (CSVC(gamma=0.02, tol=1e-5).fit(form(each), y) for each in (X, X + FAR))
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)
    assert far.dual_objective_ == pytest.approx(near.dual_objective_, rel=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("place", [0.0, FAR])
def test_samples_near_each_other_in_places_far_apart(form, place):
    X, y = near_each_other(80, 3, apart=FAR)
    K = np.exp(-0.3 * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    labels = np.where(y == 1, 1.0, -1.0)
    expected = CSVC(tol=1e-8).solve(KernelSource.precomputed(K), labels).coefficients
    model = CSVC(gamma=0.3, tol=1e-8).fit(form(X + place), y)
    assert model.dual_objective_ == pytest.approx(
        labels @ expected - 0.5 * expected @ K @ expected, rel=1e-9
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_gamma_by_scale_does_not_cancel(form, offset):
    X, _ = make_problem(n=60, d=4)
    X[:, 0] = np.where(X[:, 0] > 0, X[:, 0], -offset)
    expected = 1.0 / (4 * np.var((X + offset).astype(np.longdouble)))
    assert gamma_scale(form(X + offset)) == pytest.approx(float(expected), rel=1e-7)
    assert SVC(gamma="scale").fit(X + offset, X[:, 1] > 0)._gamma == pytest.approx(
        gamma_scale(form(X + offset)), rel=1e-6
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3.0])
def test_gamma_of_flat_inputs_is_one(form, value):
    assert gamma_scale(form(np.full((7, 3), value))) == 1.0


@pytest.mark.parametrize("name", ["csvc", "smo", "dcd-l1", "dcd-l2", "alsvm", "one-class"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_squares_that_overflow_are_one_sentence(name, form):
    X, y = make_problem(n=40, d=4)
    said = r"X has values of up to 1e\+308, whose squares overflow float64 .* scale the features"
    X[3, 1] = -1e308
    with pytest.raises(ValueError, match=said):
        catalogue.solver(name).fit(form(X), y)
    with pytest.raises(ValueError, match="squares overflow float64"):
        catalogue.solver(name).fit(form(X / 1e308 * 1e154), y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("factor", [1e12, 1e25, 1e150])
def test_large_squares_that_do_not_overflow_are_taken(form, factor):
    X, y = make_problem(n=40, d=4)
    near = CSVC(gamma=1.0).fit(X, y)
    far = CSVC(gamma=1.0 / factor**2).fit(form(factor * X), y)
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-3)


@needs_jit
@pytest.mark.parametrize("several", [False, True])
def test_csvc_says_that_its_tolerance_leaves_the_objective_far_from_the_optimum(several):
    X, y = load_iris(return_X_y=True) if several else load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    C = 1e8
    with pytest.warns(
        ConvergenceWarning, match="csvc converged within tol=0.001, which allows"
    ) as w:
        model = CSVC(C=C).fit(X, y)
    assert model.stop_reason_ == "converged"
    # The largest violation is within tol; each costs C times as much.
    exact = CSVC(C=C, tol=1e-10).fit(X, y)
    assert model.objective_ > 10.0 * exact.objective_
    assert exact.objective_ == pytest.approx(exact.dual_objective_, rel=0.1)
    assert model.dual_objective_ <= exact.objective_ * (1.0 + 1e-9)
    better = float(re.search("set tol=(.*)$", str(w[0].message)).group(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        closer = CSVC(C=C, tol=better).fit(X, y)
    assert closer.objective_ <= 2.0 * exact.objective_


@needs_jit
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_csvc_says_nothing_of_ordinary_problems(C, kernel):
    for X, y in (load_digits(return_X_y=True), make_problem(), make_problem(noise=0.0)):
        assert CSVC(C=C, kernel=kernel).fit(X[:900], y[:900]).stop_reason_ == "converged"
