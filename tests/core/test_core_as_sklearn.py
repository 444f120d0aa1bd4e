"""What a parameter or method that scikit-learn has means there, it means here: every solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from small_problems import make_problem

from svmbench import catalogue
from svmbench.core.kernels import KERNELS

NAMES = sorted(catalogue.solvers())
PARAMETERS = {name: catalogue.solver(name).get_params() for name in NAMES}
WITH_GAMMA = [name for name in NAMES if "gamma" in PARAMETERS[name]]
WITH_KERNEL = [name for name in NAMES if "kernel" in PARAMETERS[name]]
GIVEN = [
    name
    for name in WITH_KERNEL
    if getattr(catalogue.solver_class(name), "takes_given_kernel", lambda: False)()
]


def three_classes(n=45):
    X, _ = make_problem(n=n, d=4)
    y = np.arange(n) % 3
    X[np.arange(n), y] += 3.0
    X[np.abs(X) < 0.4] = 0.0
    return X, y


@pytest.mark.parametrize("name", WITH_GAMMA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gamma_auto_is_one_over_the_number_of_features(name, n_classes):
    X, y = three_classes(30)
    y = np.minimum(y, n_classes - 1)
    auto, number = (catalogue.solver(name, gamma=gamma).fit(X, y) for gamma in ("auto", 0.25))
    assert auto.objective_ == number.objective_
    assert_allclose(auto.decision_function(X), number.decision_function(X), rtol=1e-12)


@pytest.mark.parametrize("name", WITH_GAMMA)
def test_another_word_for_gamma_is_refused(name):
    with pytest.raises(ValueError, match=r"gamma must be|gamma.*wide"):
        catalogue.solver(name, gamma="wide").fit(*make_problem(n=20, d=3))


@pytest.mark.parametrize(
    ("name", "kernel"),
    [(n, k) for n in WITH_KERNEL for k in KERNELS if k not in catalogue.solvers()[n].kernels],
)
def test_a_kernel_that_is_not_declared_is_refused_in_a_sentence(name, kernel):
    said = r" (needs a positive semidefinite kernel, one of|takes the kernels? ).*; got kernel="
    with pytest.raises(ValueError, match=name + said):
        catalogue.solver(name, kernel=kernel).fit(*make_problem(n=20, d=3))


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize(("n_classes", "form"), [(2, sp.csr_matrix), (3, sp.csr_array)])
def test_a_function_of_sparse_samples_may_return_a_sparse_matrix(name, n_classes, form):
    X, y = three_classes()
    y, S = np.minimum(y, n_classes - 1), form(X)
    sparse, dense = (
        catalogue.solver(name, kernel=lambda A, B: A @ B.T).fit(each, y) for each in (S, X)
    )
    # Products of sparse rows are summed in another order, on which some solvers' way forks.
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=0.02)
    assert np.mean(sparse.predict(S) == dense.predict(X)) > 0.9
    assert np.array_equal(sparse.predict(S[:7]), sparse.predict(S)[:7])
