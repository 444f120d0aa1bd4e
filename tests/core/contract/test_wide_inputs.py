"""Memory of fits and predictions follows the columns that occur, not the number of columns."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from small_problems import make_problem, needs_jit

from svmbench import certify
from svmbench.baselines import catalogue
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.models.kernel_base import KernelSolver

#: Columns of the wide matrix. It has at most 30 that occur, in their order.
WIDTH = 4_000_000

#: Bytes a column. Scratch of a fixed size takes 1 MiB.
KERNEL_MOST = 0.5

SAMPLES, LABELS = make_problem(n=60, d=30)
COLUMNS = np.sort(np.random.default_rng(0).choice(WIDTH, 30, replace=False)).astype(np.int32)

KERNEL_SOLVERS = [
    (name, kernel)
    for name, declared in catalogue.solvers().items()
    if declared.sparse and issubclass(catalogue.solver_class(name), KernelSolver)
    # LIBLINEAR's model is w, which has an entry for each column.
    if name != "liblinear-oneclass"
    for kernel in declared.kernels
    if kernel in ("linear", "rbf")
]


def wide(X):
    """Return a sparse matrix with its columns among many that are empty."""
    X = sp.csr_array(X)
    return sp.csr_array((X.data, COLUMNS[X.indices], X.indptr), shape=(X.shape[0], WIDTH))


def peak(call):
    """Return the most memory that a call takes at a time, in bytes a column of the wide matrix."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
        return tracemalloc.get_traced_memory()[1] / WIDTH
    finally:
        tracemalloc.stop()


def built(name, kernel):
    takes = catalogue.solver_class(name)._get_param_names()
    own = {"kernel": kernel, "gamma": 1.0, "random_state": 0}
    return catalogue.solver(name, **{key: own[key] for key in own if key in takes})


@needs_jit
@pytest.mark.parametrize(("name", "kernel"), KERNEL_SOLVERS)
def test_kernel_solvers_take_memory_for_the_columns_that_occur(name, kernel):
    X, narrow = wide(SAMPLES), sp.csr_array(SAMPLES)
    is_binary = catalogue.solvers()[name].task == "binary"
    y = [LABELS] if is_binary else []
    model, same = built(name, kernel), built(name, kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same.fit(narrow, *y).predict(narrow)  # loads compiled code
    assert peak(lambda: model.fit(X, *y)) < KERNEL_MOST
    assert peak(lambda: model.predict(X)) < KERNEL_MOST
    assert_allclose(model.decision_function(X), same.decision_function(narrow), atol=1e-9)
    assert_allclose(model.objective_, same.objective_, rtol=1e-9)
    assert model.n_features_in_ == model.support_vectors_.shape[1] == WIDTH
    if model.problem.name != "mean-embedding":  # which is no optimum
        assert peak(lambda: certify(model, X, *y)) < KERNEL_MOST


@needs_jit
@pytest.mark.parametrize("name", ["csvc", "smo", "libsvm", "cpsp"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pairs_of_classes_take_memory_for_the_columns_that_occur(name, kernel):
    X, narrow, y = wide(SAMPLES), sp.csr_array(SAMPLES), np.arange(60) % 3
    model = built(name, kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = built(name, kernel).fit(narrow, y)
        same.predict(narrow)
    assert peak(lambda: model.fit(X, y)) < KERNEL_MOST
    assert peak(lambda: model.predict(X)) < KERNEL_MOST
    assert_allclose(model.decision_function(X), same.decision_function(narrow), atol=1e-9)


@needs_jit
@pytest.mark.parametrize("name", ["dcd-l1", "dcd-l2", "pegasos", "liblinear-l1", "liblinear-l2"])
def test_linear_solvers_take_a_few_vectors_as_wide_as_the_inputs(name):
    # coef_ has an entry for each column, 8 bytes, and a search keeps up to two vectors beside it.
    # Solvers with a matrix of features by features, and those that keep a vector for each cut or
    # step of conjugate gradients, are for fewer columns.
    X, model = wide(SAMPLES), catalogue.solver(name)
    catalogue.solver(name).fit(sp.csr_array(SAMPLES), LABELS)
    assert 8.0 <= peak(lambda: model.fit(X, LABELS)) < 25.0
    assert peak(lambda: model.predict(X)) < KERNEL_MOST


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_columns_that_only_new_rows_have_count_in_kernel_values(kernel):
    function = KernelFunction(kernel, gamma=0.3, degree=2, coef0=0.5)
    points, rows = SAMPLES[:20].copy(), SAMPLES[20:25].copy()
    points[:, 10:] = 0.0
    expected = function.between(rows, points)
    assert_allclose(function.between(wide(rows), wide(points)), expected, rtol=1e-12)
