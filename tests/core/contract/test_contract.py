"""Everything in the catalogue keeps scikit-learn's estimator contract and this project's own."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_problems import make_problem

from svmbench import CSVC, DCDL2, NuPath, OneVsOne
from svmbench.base.compiled import JIT_DISABLED
from svmbench.base.errors import UnknownNameError
from svmbench.baselines import catalogue
from svmbench.core.contract import problems
from svmbench.core.contract.base import BinaryClassifier, warm_up
from svmbench.core.contract.declaration import COUNTERS
from svmbench.core.contract.linear_base import LinearClassifier
from svmbench.core.contract.problems import HINGE, PROBLEMS, linear
from svmbench.core.contract.registry import REGISTRY, declare
from svmbench.core.models.kernel_base import KernelClassifier
from svmbench.core.numeric.arrays import append_bias, canonical_csr

#: The checks of weights, as scikit-learn's own solvers fail them.
REPEATED = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "equal to seven digits needs a tolerance that is no default; test_core_weights has one",
)

#: Checks that a solver passes or fails as the CPU orders its sums, by solver.
BY_ROUNDING = {
    (name, "check_methods_subset_invariance"): "a free support vector has f = 0 but for rounding, "
    "and a batch of another height is summed in another order"
    for name in ("oc-svm", "srbo-oc-svm")
}

#: Estimator checks that a solver is expected to fail, each with its reason; at most three a solver.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("csvc", "dcd-l1", "dcd-l2"), REPEATED),
    "nu-svc": dict.fromkeys(
        REPEATED, "the weights leave the smaller class of a pair less than half of the default nu"
    ),
}

#: Solvers whose way to the optimum forks on the last bit of a sum: dense and sparse inputs give
#: other models there, of objectives this close to each other (relative).
FORKING = {
    "cpsp": 0.02,
    "cpsp-tr": 0.02,
    "sgd-classifier": 0.05,
    "svm-light": 1e-3,
    "svm-perf": 0.02,
}

NAMES = sorted(catalogue.solvers())
BINARY = [name for name in NAMES if catalogue.solvers()[name].task == "binary"]


def expected_failures(estimator):
    return EXPECTED_FAILURES.get(estimator.declaration.name, {})


@pytest.mark.skipif(JIT_DISABLED, reason="the checks' problems are too large for plain Python")
@parametrize_with_checks(
    [catalogue.solver(name) for name in NAMES], expected_failed_checks=expected_failures
)
def test_estimator_checks(estimator, check):
    reason = BY_ROUNDING.get((estimator.declaration.name, check.func.__name__))
    try:
        check(estimator)
    except AssertionError:
        if reason is None:
            raise
        pytest.xfail(reason)


#: Estimators that are no solvers of the catalogue.
OTHERS = [OneVsOne(CSVC()), OneVsOne(DCDL2()), NuPath()]


@pytest.mark.skipif(JIT_DISABLED, reason="the checks' problems are too large for plain Python")
@parametrize_with_checks(OTHERS)
def test_estimator_checks_of_what_is_no_solver(estimator, check):
    check(estimator)


def test_expected_failures_are_few_and_known():
    assert set(EXPECTED_FAILURES) <= set(NAMES)
    assert all(len(checks) <= 3 for checks in EXPECTED_FAILURES.values())
    assert all(reason for checks in EXPECTED_FAILURES.values() for reason in checks.values())
    assert {name for name, _ in BY_ROUNDING} <= set(NAMES)


def small(name, **params):
    """Build a solver that is quick even as plain Python."""
    model = catalogue.solver(name, **params)
    if JIT_DISABLED and "max_iter" in model.get_params():
        # Where steps are counted on a polished point, fifty leave each run at a point of its own.
        model.set_params(max_iter=5000 if "solver" in model.get_params() else 50)
    return model


@pytest.mark.parametrize("name", BINARY)
def test_objective_is_that_of_the_declared_problem(name):
    X, y = make_problem(n=40, d=4)
    model = small(name).fit(X, y)
    if not hasattr(model, "coef_"):
        pytest.skip("not a linear model")
    if not model.declaration.problem:
        pytest.skip("it minimises no objective")
    bias = getattr(model, "bias", 0.0)
    values = linear(X, model.coef_[0], model.intercept_[0], y, bias=bias)
    assert model.objective_ == pytest.approx(model.problem.primal(values, model.C))
    assert model.n_iter_ >= 1
    assert model.stop_reason_
    assert all(isinstance(count, int) for count in model.counters_.values())


@pytest.mark.parametrize("name", BINARY)
def test_what_is_counted_is_declared(name):
    X, y = make_problem(n=40, d=4)
    declared = catalogue.solver_class(name).declaration
    assert set(small(name).fit(X, y).counters_) <= {*COUNTERS, *declared.counters}


@pytest.mark.parametrize("name", BINARY)
def test_three_steps_are_fit_and_train_may_be_repeated(name):
    X, y = make_problem(n=40, d=4)
    model = small(name).fit(X, y)
    again = small(name)
    data = again.prepare(X, y)
    again.train(data)
    again.train(data)
    again.evaluate_objective(data)
    if hasattr(model, "objective_"):
        assert again.objective_ == pytest.approx(model.objective_, rel=1e-12)
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
    # Margins are 1, or rho where the problem has one.
    margin = getattr(getattr(there, "expansion_", None), "rho", 0.0) or 1.0
    far = np.abs(there.decision_function(X)) > 0.2 * margin
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
def test_three_classes_are_fitted_and_not_prepared(name):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 12)
    X = rng.normal(size=(36, 3)) + 6.0 * np.repeat(np.eye(3), 12, axis=0)
    model = small(name).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.decision_function(X).shape == (36, 3)
    assert model.score(X, y) > 0.9
    assert np.all(model.n_iter_ >= 1)
    assert model.objective_ == pytest.approx(sum(e.objective_ for e in model.estimators_))
    assert model.stop_reason_
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        catalogue.solver(name).prepare(X, y)


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


@pytest.mark.parametrize("name", ["csvc", "newton-l2", "one-class"])
def test_entries_of_sparse_inputs_may_be_in_any_order_and_come_twice(name):
    X, y = make_problem(n=20, d=5)
    model = catalogue.solver(name).fit(X, y)
    # Each row has all of its halved values twice, from the last column to the first.
    values, columns = np.tile(0.5 * X[:, ::-1], 2).ravel(), np.tile(np.arange(5)[::-1], 2 * 20)
    given = sp.csr_array((values, columns, 10 * np.arange(21)), shape=X.shape)
    assert not given.has_canonical_format
    assert_allclose(model.decision_function(given), model.decision_function(X), atol=1e-12)


def entry(name="new", problem="hinge", **what):
    return declare(name=name, problem=problem, summary="for a test", reference="none", **what)


def test_declaring_checks_what_is_said():
    other = type("Other", (), {})
    for wrong, sentence in (
        (entry(name="alsvm"), "two solvers are declared as 'alsvm'"),
        (entry(problem="huber"), "'new' declares the unknown problem 'huber'"),
        (entry(name="New_Solver"), "'New_Solver' needs a name in kebab case"),
        (entry(task="ranking"), "unknown task 'ranking'; known are binary, one-class"),
        (entry(kernels=("rbf", "cosine")), "unknown kernel 'cosine'; known are linear, rbf"),
        (entry(reads=("tapes",)), "declares to read 'tapes'; known are arrays, kernel, blocks, fi"),
        (entry(reads=()), "declares to read nothing"),
        (entry(reads=(), task="ranking"), "unknown task .*; .* to read nothing; .* lacks the base"),
    ):
        with pytest.raises(ValueError, match=sentence):
            wrong(other)
    assert not {"new", "New_Solver"} & set(REGISTRY)


class HalfLinear(LinearClassifier):
    def __init__(self, fit_intercept=True):
        self.fit_intercept = fit_intercept


class HalfKernel(KernelClassifier):
    def __init__(self, C=1.0, *, kernel="rbf", gamma="scale", degree=3):
        self.C, self.kernel, self.gamma, self.degree = C, kernel, gamma, degree


@pytest.mark.parametrize(
    ("half", "sentence"),
    [
        (type("Other", (), {}), "lacks the base class `Solver`"),
        (HalfLinear, "HalfLinear lacks the method train and the parameter C$"),
        (HalfKernel, "HalfKernel lacks the method solve and the parameter coef0$"),
        (
            type("Bare", (BinaryClassifier,), {}),
            "Bare lacks the method decision_function and the method e",
        ),
    ],
)
def test_declaring_says_what_a_class_lacks(half, sentence):
    with pytest.raises(ValueError, match=sentence):
        entry()(half)
    assert "new" not in REGISTRY


def test_what_a_solver_reads_it_has_the_methods_for():
    whole = catalogue.solver_class("dcd-l1")
    with pytest.raises(ValueError, match="lacks the method fit_blocks and the method path_blocks"):
        entry(reads=("arrays", "blocks"))(type("Mine", (whole,), {}))
    said = {name: declared.reads for name, declared in catalogue.solvers().items()}
    assert said["alsvm-batch"] == ("arrays", "blocks")
    assert said["dcd-l1"] == said["cpsp"] == ("arrays",)
    assert said["csvc"] == said["nu-svm"] == ("arrays", "kernel")


def test_a_solver_may_bring_its_own_problem(monkeypatch):
    monkeypatch.setattr("svmbench.core.contract.registry.REGISTRY", {})
    monkeypatch.setattr("svmbench.core.contract.problems.PROBLEMS", dict(PROBLEMS))
    mild = replace(HINGE, name="mild-hinge", formula="half of it", loss=lambda m: 0.5 * m)
    entry(problem=mild)(type("Mine", (catalogue.solver_class("dcd-l1"),), {}))
    assert problems.PROBLEMS["mild-hinge"] is mild
    entry(problem="mild-hinge")(type("Mine", (catalogue.solver_class("dcd-l1"),), {}))
    with pytest.raises(ValueError, match="two problems are called 'hinge'"):
        entry(problem=replace(mild, name="hinge"))(type("Mine", (), {}))


def test_a_refused_declaration_leaves_no_problem_behind(monkeypatch):
    monkeypatch.setattr("svmbench.core.contract.problems.PROBLEMS", dict(PROBLEMS))
    new = replace(HINGE, name="mild-hinge", formula="half of it")
    for refused in (entry(problem=new), entry(problem=new, name="New_Solver")):
        with pytest.raises(ValueError, match=r"lacks|kebab case"):
            refused(type("Other", (), {}))
        assert "mild-hinge" not in problems.PROBLEMS


def test_catalogue_suggests_the_nearest_name():
    with pytest.raises(UnknownNameError, match="unknown solver 'alsmv'; did you mean 'alsvm'"):
        catalogue.solver("alsmv")
    with pytest.raises(UnknownNameError, match="unknown parameter of alsvm 'c'"):
        catalogue.solver("alsvm", c=1)
    declared = catalogue.solvers()["falsvm"]
    assert declared.paper == "alsvm"
    assert declared.reference


@pytest.mark.parametrize(
    "name", [n for n in BINARY if issubclass(catalogue.solver_class(n), LinearClassifier)]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_search_that_is_cut_short_is_warned_of(name, n_classes):
    model = catalogue.solver(name)
    asked = model.get_params()
    if "max_iter" not in asked or asked.get("tol") is None:
        pytest.skip("has no tolerance, or no limit to its steps")
    X, y = make_problem(n=60, d=5)
    y = y if n_classes == 2 else np.arange(60) % 3
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.set_params(max_iter=1, tol=1e-8).fit(X, y)
    sentences = [str(w.message) for w in told if issubclass(w.category, ConvergenceWarning)]
    reasons = [e.stop_reason_ for e in (model.estimators_ if n_classes == 3 else [model])]
    assert len(sentences) == sum(reason in ("max_iter", "stalled") for reason in reasons)
    assert all(name in sentence for sentence in sentences)
