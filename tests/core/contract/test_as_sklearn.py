"""What a parameter or method that scikit-learn has means there, it means here: every solver."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn import svm
from sklearn.exceptions import NotFittedError
from small_problems import make_problem

from svmbench.baselines import catalogue
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.linear_base import LinearClassifier

NAMES = sorted(catalogue.solvers())
PARAMETERS = {name: catalogue.solver(name).get_params() for name in NAMES}
WITH_GAMMA = [name for name in NAMES if "gamma" in PARAMETERS[name]]
WITH_KERNEL = [name for name in NAMES if "kernel" in PARAMETERS[name]]
LINEAR = [n for n in NAMES if issubclass(catalogue.solver_class(n), LinearClassifier)]
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
    assert auto.objective_ == pytest.approx(number.objective_, rel=1e-9)
    f = number.decision_function(X)
    assert_allclose(auto.decision_function(X), f, rtol=1e-6, atol=1e-8)


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


#: Solvers and the classes of scikit-learn that they stand for.
STAND_FOR = {
    "csvc": svm.SVC,
    "nu-svc": svm.NuSVC,
    "one-class": svm.OneClassSVM,
    "svdd": svm.OneClassSVM,
}


@pytest.mark.parametrize("name", STAND_FOR)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_limit_to_the_steps_and_gamma_auto_are_taken_as_there(name, n_classes):
    X, y = three_classes()
    y = np.minimum(y, n_classes - 1)
    words = {"max_iter": -1, "gamma": "auto", "tol": 1e-6}
    ours = catalogue.solver(name, **words).fit(X, y)
    theirs = STAND_FOR[name](**words).fit(X, y)
    assert set(np.atleast_1d(ours.stop_reason_)) <= {"converged", "stalled"}
    # A multiplier of nearly 0 may be 0 in one of them.
    assert np.max(np.abs(ours.n_support_ - theirs.n_support_)) <= 2
    assert ours.n_support_.dtype == theirs.n_support_.dtype
    # A detector's free support vectors lie on its boundary.
    clear = np.abs(theirs.decision_function(X).reshape(len(X), -1)).min(axis=1) > 1e-3
    assert np.sum(clear) > 15
    assert np.array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    with pytest.raises(ValueError, match="max_iter must be an integer of at least 1, or -1"):
        ours.set_params(max_iter=-2).fit(X, y)


# The model of liblinear-oneclass is w, which is no training row.
@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if catalogue.solvers()[n].task == "one-class" and n != "liblinear-oneclass"],
)
def test_a_detector_counts_its_support_vectors(name):
    model = catalogue.solver(name).fit(make_problem(n=40, d=3)[0])
    assert model.n_support_.tolist() == [len(model.support_)] == [model.dual_coef_.shape[1]]
    assert model.n_support_.dtype == np.int32


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_weights_predict_as_dense_ones(name, n_classes):
    X, y = three_classes()
    y = np.minimum(y, n_classes - 1)
    with pytest.raises(NotFittedError):
        catalogue.solver(name).sparsify()
    model = catalogue.solver(name).fit(X, y)
    dense = model.decision_function(X)
    theirs = svm.LinearSVC().fit(X, y).sparsify()
    assert sp.issparse(model.sparsify().coef_)
    assert model.coef_.shape == theirs.coef_.shape
    for form in (X, sp.csr_array(X), sp.csr_matrix(X)):
        assert_allclose(model.decision_function(form), dense, rtol=1e-9, atol=1e-9)
        assert model.decision_function(form).shape == theirs.decision_function(form).shape
    pickled = pickle.loads(pickle.dumps(model))
    assert np.array_equal(pickled.predict(X), model.predict(X))
    assert not sp.issparse(model.densify().coef_)
    assert_allclose(model.decision_function(X), dense, rtol=1e-9, atol=1e-9)
    assert not sp.issparse(model.sparsify().fit(X, y).coef_)


@pytest.mark.parametrize("name", [n for n in LINEAR if hasattr(catalogue.solver_class(n), "add")])
@pytest.mark.parametrize("change", ["add", "remove", "partial_fit"])
def test_sparse_weights_are_made_dense_by_what_changes_them(name, change):
    X, y = make_problem(n=40, d=4)
    model, plain = (catalogue.solver(name).fit(X, y) for _ in range(2))
    rows = model.accepted_[:3]
    getattr(model.sparsify(), change)(X[rows], y[rows])
    getattr(plain, change)(X[rows], y[rows])
    assert np.array_equal(model.coef_, plain.coef_)
