"""Everything in the catalogue keeps scikit-learn's estimator contract and this project's own."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_problems import make_problem

from svmbench import catalogue
from svmbench.core import base
from svmbench.core.base import append_bias, canonical_csr, declare, warm_up
from svmbench.core.compiled import JIT_DISABLED
from svmbench.core.problems import PROBLEMS
from svmbench.errors import UnknownNameError

#: Estimator checks that a solver is expected to fail, each with its reason; at most three a solver.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}

#: Solvers whose way to the optimum forks on the last bit of a sum: dense and sparse inputs give
#: other models there, of objectives this close to each other (relative).
FORKING = {"sgd-classifier": 0.05, "svm-light": 1e-3, "svm-perf": 0.02}

NAMES = sorted(catalogue.solvers())
BINARY = [name for name in NAMES if catalogue.solvers()[name].task == "binary"]


def expected_failures(estimator):
    return EXPECTED_FAILURES.get(estimator.declaration.name, {})


@pytest.mark.skipif(JIT_DISABLED, reason="the checks' problems are too large for plain Python")
@parametrize_with_checks(
    [catalogue.solver(name) for name in NAMES], expected_failed_checks=expected_failures
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_expected_failures_are_few_and_known():
    assert set(EXPECTED_FAILURES) <= set(NAMES)
    assert all(len(checks) <= 3 for checks in EXPECTED_FAILURES.values())
    assert all(reason for checks in EXPECTED_FAILURES.values() for reason in checks.values())


def small(name, **params):
    """Build a solver that is quick even as plain Python."""
    model = catalogue.solver(name, **params)
    if JIT_DISABLED and "max_iter" in model.get_params():
        model.set_params(max_iter=50)
    return model


@pytest.mark.parametrize("name", BINARY)
def test_objective_is_that_of_the_declared_problem(name):
    X, y = make_problem(n=40, d=4)
    model = small(name).fit(X, y)
    if not hasattr(model, "coef_"):
        pytest.skip("not a linear model")
    problem = PROBLEMS[model.declaration.problem]
    bias = getattr(model, "bias", 0.0)
    value = problem.primal(X, y, model.coef_[0], model.intercept_[0], model.C, bias=bias)
    assert model.objective_ == pytest.approx(value)
    assert model.n_iter_ >= 1
    assert model.stop_reason_
    assert all(isinstance(count, int) for count in model.counters_.values())


@pytest.mark.parametrize("name", BINARY)
def test_three_steps_are_fit_and_train_may_be_repeated(name):
    X, y = make_problem(n=40, d=4)
    model = small(name).fit(X, y)
    again = small(name)
    data = again.prepare(X, y)
    again.train(data)
    again.train(data)
    again.certify(data)
    assert again.objective_ == model.objective_
    assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-12)


@pytest.mark.parametrize("name", BINARY)
def test_dense_and_sparse_agree(name):
    if not catalogue.solvers()[name].sparse:
        pytest.skip("dense only")
    X, y = make_problem(n=40, d=6)
    reference = small(name).fit(X, y)
    dense = reference.decision_function(X)
    scattered = sp.csr_matrix(X)[:, ::-1][:, ::-1]
    scattered.indices = scattered.indices.astype(np.int64)
    scattered.indptr = scattered.indptr.astype(np.int64)
    for form in (sp.csr_array(X), sp.coo_matrix(X), scattered):
        model = small(name).fit(form, y)
        if name in FORKING:
            assert model.objective_ == pytest.approx(reference.objective_, rel=FORKING[name])
        else:
            assert_allclose(model.decision_function(X), dense, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", BINARY)
def test_flipped_labels_flip_the_model(name):
    X, y = make_problem(n=60, d=4)
    there, back = small(name).fit(X, y), small(name).fit(X, -y)
    far = np.abs(there.decision_function(X)) > 0.2
    assert np.any(far)
    assert np.mean(there.predict(X)[far] == -back.predict(X)[far]) > 0.95


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(name, bad):
    X, y = make_problem(n=20, d=3)
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        catalogue.solver(name).fit(X, y)


@pytest.mark.parametrize("name", BINARY)
def test_one_class_is_one_sentence(name):
    with pytest.raises(ValueError, match="needs samples of two classes; the data has one"):
        catalogue.solver(name).fit(np.eye(3), [1, 1, 1])


@pytest.mark.parametrize("name", BINARY)
def test_three_classes_are_refused(name):
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        catalogue.solver(name).fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("name", [n for n in NAMES if "C" in catalogue.solver(n).get_params()])
@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf, "1"])
def test_C_out_of_range(name, C):
    with pytest.raises(ValueError, match="C must be a positive finite number"):
        catalogue.solver(name, C=C).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_alone_even_when_read_only(name):
    X, y = make_problem(n=30, d=4)
    X.flags.writeable = y.flags.writeable = False
    small(name).fit(X, y)
    if catalogue.solvers()[name].sparse:
        S = sp.csr_array(X)
        for part in (S.data, S.indices, S.indptr):
            part.flags.writeable = False
        small(name).fit(S, y)


def test_warm_up_leaves_nothing_to_compile():
    from svmbench.core.linear import rank_one

    if JIT_DISABLED:
        pytest.skip("nothing is compiled")
    warm_up(catalogue.solver_class("alsvm"))
    known = len(rank_one.sweep_csr.signatures), len(rank_one.sweep_dense.signatures)
    X, y = make_problem()
    X.flags.writeable = False
    catalogue.solver("alsvm").fit(X, y)
    catalogue.solver("falsvm").fit(sp.csr_array(X), y)
    assert (len(rank_one.sweep_csr.signatures), len(rank_one.sweep_dense.signatures)) == known
    assert known == (1, 1)


@pytest.mark.parametrize("bias", [1.0, 2.5])
def test_append_bias(bias):
    X, _ = make_problem(n=20, d=5)
    X[4] = 0.0
    expected = np.column_stack([X, np.full(20, bias)])
    assert np.array_equal(append_bias(X, bias), expected)
    extended = append_bias(canonical_csr(sp.csr_array(X)), bias)
    assert np.array_equal(extended.toarray(), expected)
    assert extended.has_canonical_format
    assert append_bias(X, 0.0) is X


def test_declaring_checks_names_and_problems():
    with pytest.raises(ValueError, match="two solvers are declared as 'alsvm'"):
        declare(name="alsvm", problem="hinge", summary="", reference="")(type("Other", (), {}))
    with pytest.raises(ValueError, match="unknown problem 'huber'"):
        declare(name="new", problem="huber", summary="", reference="")(type("Other", (), {}))
    assert "new" not in base.REGISTRY


def test_catalogue_suggests_the_nearest_name():
    with pytest.raises(UnknownNameError, match="unknown solver 'alsmv'; did you mean 'alsvm'"):
        catalogue.solver("alsmv")
    with pytest.raises(UnknownNameError, match="unknown parameter of alsvm 'c'"):
        catalogue.solver("alsvm", c=1)
    declared = catalogue.solvers()["falsvm"]
    assert declared.paper == "alsvm"
    assert declared.reference
