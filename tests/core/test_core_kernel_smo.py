"""Platt's SMO against LIBSVM, answers known on paper, and inputs that break a pair step."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_oracles import assert_same_as_libsvm, residual
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from small_problems import make_problem, needs_jit

from svmbench.core.kernel.smo import SMO
from svmbench.core.kernels import KERNELS


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_same_optimum_as_libsvm(kernel, C, storage):
    X, y = make_problem(n=120, d=6)
    parameters = {"C": C, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    model = SMO(storage=storage, tol=1e-6, **parameters).fit(X, y)
    assert_same_as_libsvm([model], X, y, **parameters)
    assert model.objective_ == pytest.approx(model.dual_objective_, rel=1e-4)


@pytest.mark.mirror
@needs_jit
def test_reference_bed(mirrored):
    X, y = mirrored("a9a")
    X, y = X[:1605], y[:1605]
    model = SMO(gamma=0.05, C=1.0, tol=1e-5).fit(X, y)
    assert model.dual_objective_ == pytest.approx(584.787720, abs=1e-5)
    # A pair of near twins may share one multiplier or not.
    assert len(model.support_) in (706, 707)
    assert residual(model, X, y) <= 2.1e-5


def test_two_points_on_paper():
    # w = 2 / distance along the line, b in the middle; alpha = 2 / distance^2 for both.
    model = SMO(C=10.0, kernel="linear").fit([[1.0], [3.0]], [0, 1])
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    assert_allclose(model.intercept_, [-2.0])
    assert model.objective_ == pytest.approx(0.5)
    assert model.counters_["updates"] == 1


@needs_jit
@pytest.mark.parametrize("kernel", KERNELS)
def test_stored_matrix_dense_and_sparse_take_the_same_way(kernel):
    X, y = make_problem(n=60, d=5)
    models = [
        SMO(kernel=kernel, gamma=0.2, **options).fit(X, y)
        for options in ({"storage": "sparse"}, {"storage": "dense"}, {"cache_mb": 1.0})
    ]
    for model in models:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-3)
    if kernel != "linear":
        assert models[2].counters_["kernel_evaluations"] == 60 * 60


def test_identical_samples_with_opposite_labels():
    X, y = np.array([[1.0], [1.0], [0.0], [2.0]]), np.array([1, -1, -1, 1])
    model = SMO(C=1.0, kernel="linear").fit(X, y)
    assert residual(model, X, y) <= 2e-3
    # Nothing separates the twins: one of them, at least, pays for both.
    assert model.objective_ >= 2.0 - 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_zero_features(kernel):
    y = np.array([1, 1, -1])
    model = SMO(C=2.0, kernel=kernel, gamma=1.0).fit(np.zeros((3, 2)), y)
    assert model.objective_ == pytest.approx(4.0)
    assert model.predict([[0.0, 0.0]])[0] == 1


@needs_jit
@pytest.mark.parametrize("gamma", [1e-12, 1e6])
def test_flat_and_spiked_kernels(gamma):
    X, y = make_problem(n=30, d=3)
    X += 0.01 * np.arange(30)[:, None]
    y[:10] = 1
    model = SMO(gamma=gamma, tol=1e-5).fit(X, y)
    assert residual(model, X, y) <= 2.1e-5
    if gamma > 1.0:
        # K = I: alpha is min(C, 1 -+ b), and y'alpha = 0 settles b; the smaller class is at C.
        few = min(np.sum(y > 0), np.sum(y < 0))
        assert model.dual_objective_ == pytest.approx(
            2 * few - 0.5 * (few + few**2 / (30 - few)), rel=1e-4
        )
    else:
        assert model.objective_ == pytest.approx(2 * min(np.sum(y > 0), np.sum(y < 0)), rel=1e-4)


@needs_jit
@pytest.mark.parametrize("C", [1e-6, 1e8])
def test_extreme_C(C):
    X, y = make_problem(n=40, d=4)
    model = SMO(C=C, gamma=5.0, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert residual(model, X, y) <= 2.1e-4


@needs_jit
def test_one_sample_of_a_class_and_an_indefinite_kernel():
    X, y = make_problem(n=40, d=4)
    alone = np.where(np.arange(40) == 7, 1, -1)
    model = SMO(C=10.0, gamma=1.0).fit(X, alone)
    assert residual(model, X, alone) <= 2.1e-3
    model = SMO(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert residual(model, X, y) <= 2.1e-3 or model.stop_reason_ != "converged"
    assert np.all(np.isfinite(model.decision_function(X)))


def test_max_iter_is_said():
    X, y = make_problem(n=60, d=4)
    with pytest.warns(ConvergenceWarning, match="smo stopped at max_iter=1 before"):
        model = SMO(C=10.0, max_iter=1, tol=1e-5).fit(X, y)
    assert model.stop_reason_ == "max_iter"


@needs_jit
def test_permuted_samples_and_sparse_input():
    X, y = make_problem(n=60, d=5)
    order = np.random.default_rng(0).permutation(60)
    there = SMO(tol=1e-6).fit(X, y)
    back = SMO(tol=1e-6).fit(sp.csr_array(X[order]), y[order])
    assert_allclose(back.decision_function(X), there.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("kernel", "rbff", "kernel must be one of linear, rbf"),
        ("gamma", -1.0, "gamma must be a positive"),
        ("gamma", "auto", "gamma must be a positive number or 'scale'"),
        ("degree", 0, "degree must be an integer"),
        ("coef0", np.nan, "coef0 must be a finite"),
        ("cache_mb", -1, "cache_mb must be a number"),
        ("cache_mb", np.inf, "cache_mb must be a number of MiB, finite"),
        ("storage", "csr", "storage must be 'sparse' or 'dense'"),
    ],
)
def test_parameters_out_of_range(parameter, value, message):
    with pytest.raises(ValueError, match=message):
        SMO(**{parameter: value}).fit(np.eye(2), [0, 1])
