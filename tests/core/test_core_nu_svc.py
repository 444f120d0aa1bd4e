"""nu-svc against scikit-learn's (LIBSVM's), its own duality gap and what nu promises."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import NuSVC as Theirs
from small_problems import make_problem, needs_jit

from svmbench.core.compiled import JIT_DISABLED
from svmbench.core.kernel.csvc import driver, working_sets
from svmbench.core.kernel.nu_svc import NuSVC


def test_two_points_on_paper():
    # alpha is 1/4 for both; w = 1/4 (3 - 1) = 1/2, the margin is half their distance times w.
    model = NuSVC(nu=0.5, kernel="linear").fit([[1.0], [3.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-0.25, 0.25]])
    assert_allclose(model.intercept_, [-1.0])
    assert model.expansion_.rho == pytest.approx(0.5)
    assert model.objective_ == pytest.approx(-0.125)
    assert model.dual_objective_ == pytest.approx(-0.125)


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("sets", [False, True])
def test_same_model_as_scikit_learn(kernel, nu, sets, monkeypatch):
    if sets:
        monkeypatch.setattr(driver, "WHOLE", 0)
        monkeypatch.setattr(working_sets, "WORKING", 24)
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


def test_what_nu_can_not_be():
    X, y = make_problem(n=20, d=3)
    with pytest.raises(ValueError, match="nu must be a number above 0 and at most 1, got nu=0"):
        NuSVC(nu=0).fit(X, y)
    few = np.where(np.arange(20) < 4, 1, -1)
    with pytest.raises(ValueError, match=r"nu=0.5 is too large: .* it can be 0.4 at most"):
        NuSVC(nu=0.5).fit(X, few)
    assert NuSVC(nu=0.4, tol=1e-6).fit(X, few).stop_reason_ == "converged"
