"""The objective that `finish_fit` reuses equals the one that `evaluate_objective` computes anew."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from small_problems import make_problem, needs_jit

from svmbench.core.csvc import CSVC
from svmbench.core.csvc import solver as csvc_solver
from svmbench.core.kernel_svm.sgd_lssvm import SGDLSSVM
from svmbench.core.models import kernel_base
from svmbench.core.models.kernel_base import Expansion
from svmbench.core.models.multiclass import OneVsOne
from svmbench.core.nu.nu_svc import NuSVC
from svmbench.core.oneclass.one_class import OneClass

SOLVERS = [
    CSVC(C=3.0, gamma=0.7),
    CSVC(C=3.0, gamma=0.7, fit_intercept=False),
    CSVC(C=3.0, kernel="poly", gamma=0.7, coef0=1.0),
    NuSVC(nu=0.3, gamma=0.7),
    OneClass(nu=0.3, gamma=0.7),
    SGDLSSVM(C=3.0, gamma=0.7),
]


@pytest.fixture
def of_many(monkeypatch):
    """Make some hundred samples many, for the objective and for the search."""
    monkeypatch.setattr(kernel_base, "EXACT_OBJECTIVE_MAX_SAMPLES", 50)
    monkeypatch.setattr(csvc_solver, "FLOAT32_MIN_SAMPLES", 0)
    monkeypatch.setattr(csvc_solver, "FULL_MATRIX_MAX_SAMPLES", 100)


def certified(solver, X, y):
    data = solver.prepare(X, y)
    return solver.train(data).evaluate_objective(data), data


def forbid(monkeypatch):
    def refuse(self, X, **options):
        assert X.shape[0] <= kernel_base.COMPARED_DECISIONS, "the model was evaluated"
        return decide(self, X, **options)

    decide = Expansion.decide
    monkeypatch.setattr(Expansion, "decide", refuse)


@needs_jit
@pytest.mark.parametrize(
    "solver", SOLVERS, ids=lambda each: f"{each.declaration.name}-{each.kernel}"
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_fit_takes_the_objective_from_the_gradient(solver, form, of_many, monkeypatch):
    X, y = make_problem(n=300, d=6)
    anew, data = certified(pickle.loads(pickle.dumps(solver)), form(X), y)
    assert data.decisions == pytest.approx(anew.decision_function(X), abs=1e-4)
    with monkeypatch.context() as patch:
        forbid(patch)
        fitted = pickle.loads(pickle.dumps(solver)).fit(form(X), y)
    assert fitted.objective_ == pytest.approx(anew.objective_, rel=1e-6)
    assert fitted.dual_objective_ == pytest.approx(anew.dual_objective_, rel=1e-6)
    assert fitted.expansion_.square == pytest.approx(anew.expansion_.square, rel=1e-6)
    # Nothing of the samples is left but the support vectors.
    assert len(pickle.dumps(fitted)) == len(pickle.dumps(anew))


def test_few_samples_are_evaluated_in_double():
    X, y = make_problem(n=40, d=4)
    for solver in SOLVERS[:1]:
        anew, _ = certified(pickle.loads(pickle.dumps(solver)), X, y)
        # Kernel values in single precision would make a difference of about 1e-7.
        assert solver.fit(X, y).objective_ == pytest.approx(anew.objective_, rel=1e-12)


@needs_jit
@pytest.mark.parametrize("n", [300, 800])
@pytest.mark.parametrize("C", [0.05, 30.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_support_vectors_alone_are_evaluated_in_double(n, C, form, fit_intercept, monkeypatch):
    X, y = make_problem(n=n, d=6)
    model = CSVC(C=C, gamma=0.7, fit_intercept=fit_intercept)
    data = model.prepare(form(X), y, np.linspace(0.5, 2.0, n))
    model.train(data)
    # A matrix in float64 leaves nothing to check, and says so: all that the search knew counts.
    assert (model.counters_["checks"] == 0) == (n < csvc_solver.FLOAT32_MIN_SAMPLES)
    # Some at their bound, and some that are no support vectors: neither was checked by the search.
    assert 0 < model.counters_["bounded_support_vectors"] < len(model.support_) < n
    own, is_double = data.decisions.copy(), n < csvc_solver.FLOAT32_MIN_SAMPLES
    assert (data.decisions_error == 0.0) == is_double
    # The search's gradient is good enough, unless its errors may not change the objective at all.
    reused = model.finish_fit(data).objective_
    monkeypatch.setattr(kernel_base, "WORST_OBJECTIVE_ERROR", 0.0)
    found = model.finish_fit(data).objective_, model.dual_objective_, model.expansion_.square
    model.evaluate_objective(data)
    expected = model.objective_, model.dual_objective_, model.expansion_.square
    assert found == pytest.approx(expected, rel=1e-12)
    assert reused == pytest.approx(found[0], rel=1e-12 if is_double else 1e-5)
    assert is_double or reused != found[0]
    if is_double:
        return
    # What a search in single precision knew of the support vectors does not count.
    data.decisions = own
    data.decisions[model.support_] += 1.0
    assert model.finish_fit(data).objective_ == found[0]


def test_a_search_that_was_cut_short_is_evaluated_whole():
    X, y = make_problem(n=300, d=6)
    model = CSVC(C=30.0, gamma=0.7, max_iter=20)
    data = model.prepare(X, y)
    with pytest.warns(ConvergenceWarning):
        model.train(data)
    data.decisions[:] = 0.0
    found = model.finish_fit(data).objective_
    assert found == model.evaluate_objective(data).objective_


def test_what_is_certified_is_no_bookkeeping(of_many):
    X, y = make_problem(n=120, d=4)
    model, data = certified(CSVC(C=3.0, gamma=0.7), X, y)
    objective = model.objective_
    data.decisions[:] = 0.0
    assert model.evaluate_objective(data).objective_ == objective
    assert model.finish_fit(data).objective_ != objective


def test_a_solver_without_decisions_is_evaluated(of_many):
    X, y = make_problem(n=120, d=4)
    model = CSVC(C=3.0, gamma=0.7)
    data = model.prepare(X, y)
    model.train(data)
    data.decisions = None
    assert model.finish_fit(data).objective_ == model.evaluate_objective(data).objective_


@needs_jit
def test_every_pair_of_classes_concludes(of_many, monkeypatch):
    X, _ = make_problem(n=300, d=6)
    y = np.digitize(X[:, 0] + X[:, 1], [0.3, 0.7])
    anew, _ = certified(OneVsOne(CSVC(C=3.0, gamma=0.7)), X, y)
    with monkeypatch.context() as patch:
        forbid(patch)
        fitted = OneVsOne(CSVC(C=3.0, gamma=0.7)).fit(X, y)
    assert fitted.objective_ == pytest.approx(anew.objective_, rel=1e-6)


@needs_jit
@pytest.mark.parametrize(
    "solver",
    [
        CSVC(kernel="linear", tol=1e-5),
        CSVC(kernel="poly", degree=2, gamma=1.0, max_iter=20_000),
        OneClass(kernel="linear", nu=0.1),
    ],
    ids=["linear", "poly", "one-class"],
)
def test_rows_far_from_zero_leave_the_objective_its_digits(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2001, 5))
    y = np.where(X @ rng.normal(size=5) + rng.normal(size=2001) > 0.0, 1, -1)
    model, data = certified(solver, X + 100.0, y)
    anew = model.objective_, model.dual_objective_
    model.finish_fit(data)
    assert (model.objective_, model.dual_objective_) == pytest.approx(anew, rel=1e-5)
