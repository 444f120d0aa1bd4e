"""Kernels that are handed in, as a matrix or a function, against the same kernels by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC
from small_problems import make_problem

from svmbench import CSVC
from svmbench.baselines import catalogue
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.models.kernel_base import KernelClassifier

KERNEL = [
    name
    for name in catalogue.solvers()
    if issubclass(catalogue.solver_class(name), KernelClassifier)
]
TAKE_IT = [name for name in KERNEL if catalogue.solver_class(name).takes_given_kernel()]

RBF = KernelFunction("rbf", 0.7)


def iris_or_two(n_classes):
    X, y = load_iris(return_X_y=True)
    X, first = np.unique(X, axis=0, return_index=True)
    return (X, y[first]) if n_classes == 3 else (X[y[first] > 0], y[first][y[first] > 0])


def test_who_takes_it():
    assert set(TAKE_IT) == {
        *("csvc", "nu-svc", "lssvm", "lssvm-cg", "mn-svm", "nn-isda"),
        *("nl-sgd", "kernel-pegasos", "svm-light", "osuna"),
    }


@pytest.mark.parametrize("name", TAKE_IT)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_same_model_by_name_by_matrix_and_by_function(name, n_classes):
    X, y = iris_or_two(n_classes)
    X, y, others = X[::2], y[::2], X[1::2]
    params = (
        {} if "random_state" not in catalogue.solver(name).get_params() else {"random_state": 3}
    )
    if name == "svm-light":
        params["tol"] = (
            1e-7  # votes of three classes fork where a pair's decision is within tol of 0
        )
    by_name = catalogue.solver(name, gamma=0.7, **params).fit(X, y)
    by_matrix = catalogue.solver(name, kernel="precomputed", **params).fit(RBF.between(X, X), y)
    by_function = catalogue.solver(name, kernel=RBF.between, **params).fit(X, y)
    f = by_name.decision_function(others)
    # A matrix is taken at its word, and inputs are checked: both are within tol of the optimum.
    near = {"atol": 2e-2 * np.abs(f).max()}
    assert_allclose(by_matrix.decision_function(RBF.between(others, X)), f, **near)
    assert_allclose(by_function.decision_function(others), f, **near)
    assert by_matrix.objective_ == pytest.approx(by_name.objective_, rel=1e-3)
    assert by_function.objective_ == by_matrix.objective_
    assert np.array_equal(by_function.support_, by_matrix.support_)


def test_svc_on_the_same_matrix():
    X, y = iris_or_two(3)
    K = RBF.between(X, X)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    theirs = SVC(kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=weights)
    ours = CSVC(kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=weights)
    assert_allclose(ours.decision_function(K), theirs.decision_function(K), atol=1e-6)
    assert np.array_equal(ours.support_, theirs.support_)
    assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)


def test_cross_validation_cuts_rows_and_columns():
    X, y = iris_or_two(3)
    K = X @ X.T
    by_matrix = cross_val_predict(CSVC(kernel="precomputed"), K, y)
    assert np.array_equal(by_matrix, cross_val_predict(CSVC(kernel="linear"), X, y))


def test_samples_of_a_function_may_be_anything():
    words, y = ["A A", "A", "B", "B B", "A B", "A A A"], [1, 1, 2, 2, 1, 1]

    def shared(some, others):
        return np.array(
            [[sum(a.count(c) * b.count(c) for c in "AB") for b in others] for a in some]
        )

    model = clone(CSVC(kernel=shared)).fit(words, y)
    counts = np.array([[w.count("A"), w.count("B")] for w in words])
    by_name = CSVC(kernel="linear").fit(counts, y)
    assert_allclose(model.decision_function(words), by_name.decision_function(counts), atol=1e-6)
    assert model.predict(["B B B"]).tolist() == [2]


def test_what_is_no_kernel():
    X, y = make_problem(n=20, d=3)
    for fit, error, sentence in (
        (lambda: CSVC(kernel="precomputed").fit(X, y), ValueError, "Input is a 20x3 matrix"),
        (lambda: CSVC(kernel="precomputed").fit(sp.eye_array(20).tocsr(), y), TypeError, "Sparse"),
        (lambda: CSVC(kernel=lambda a, b: a).fit(X, y), ValueError, r"values of shape \(20, 3\)"),
        (lambda: CSVC(kernel="cosine").fit(X, y), ValueError, "kernel must be one of linear"),
        (
            lambda: CSVC(kernel="precomputed").fit(X @ X.T, y).predict(X),
            ValueError,
            "X has 3 features, but CSVC is expecting 20",
        ),
        (
            lambda: list(
                (one := CSVC(kernel="precomputed")).path(one.prepare(X @ X.T, y), None, "C", [1.0])
            ),
            ValueError,
            "a path on a given kernel takes KernelSource.precomputed",
        ),
    ):
        with pytest.raises(error, match=sentence):
            fit()


@pytest.mark.parametrize("name", sorted(set(KERNEL) - set(TAKE_IT)))
@pytest.mark.parametrize("kernel", ["precomputed", RBF.between])
def test_the_others_say_that_they_work_on_inputs(name, kernel):
    X, y = make_problem(n=20, d=3)
    with pytest.raises(ValueError, match="works on inputs, not on a given kernel"):
        catalogue.solver(name, kernel=kernel).fit(X @ X.T, y)
