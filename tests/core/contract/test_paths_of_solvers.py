"""Paths: every one that is declared, and the loop that the others have, equal single fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from small_problems import make_problem, solutions

from svmbench.base.compiled import JIT_DISABLED
from svmbench.baselines import catalogue
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.models.kernel_base import KernelClassifier
from svmbench.core.models.multiclass import OneVsOne

#: Values of each parameter along which a solver may declare that it shares work.
VALUES = {"C": [0.25, 1.0, 4.0], "nu": [0.55, 0.7, 0.85]}

NU_WING = ("nu-svm", "srbo-nu-svm", "oc-svm", "srbo-oc-svm", "c-svm-bounded")

DECLARED = [
    (name, over) for name, said in sorted(catalogue.solvers().items()) for over in said.paths
]

#: Settings under which single fits and paths of an iterative solver end at the same solution.
EXACT = {
    "csvc": {"tol": 1e-9},
    "mn-svm": {"tol": 1e-6},
    "newton-l2": {"tol": 1e-9},
    "nn-isda": {"tol": 1e-9},
    **{name: {"tol": 1e-12} for name in NU_WING},
}

#: How far decision values of a path may be from those of single fits; 1e-9 for all others.
NEAR = {
    "csvc": 1e-6,
    "mn-svm": 1e-4,
    "newton-l2": 1e-7,
    "nn-isda": 1e-6,
    **dict.fromkeys(NU_WING, 1e-5),
}

FORMS = [np.asarray, sp.csr_array]


def problem():
    X, y = make_problem(n=24 if JIT_DISABLED else 90, d=5, density=0.7)
    folds = np.arange(len(y)) % 3
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    return X, y, splits


def test_every_declared_path_has_values_here():
    assert {over for _, over in DECLARED} <= set(VALUES)
    assert {"alsvm-batch", "csvc", "lssvm", "mn-svm", "nn-isda", "nl-sgd", "kernel-pegasos"} <= {
        name for name, _ in DECLARED
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("name", "over"), DECLARED)
def test_a_declared_path_equals_the_loop(name, over, split, form):
    X, y, splits = problem()
    model = catalogue.solver(name, **EXACT.get(name, {}))
    labels = np.where(y > 0, "yes", "no")
    data = model.prepare(form(X), labels)
    points = list(model.path(data, None, over, VALUES[over], splits if split else None))
    rows = [train for train, _ in splits] if split else [np.arange(len(y))]
    assert len(points) == len(rows) * len(VALUES[over])
    for position, point in enumerate(points):
        f, p = divmod(position, len(VALUES[over]))
        found, alone = point.solution, catalogue.solver(name, **EXACT.get(name, {}))
        alone.set_params(**{over: VALUES[over][p]}).fit(X[rows[f]], labels[rows[f]])
        assert getattr(found, over) == VALUES[over][p]
        f_found, f_alone = found.decision_function(X), alone.decision_function(X)
        near = NEAR.get(name, 1e-9)
        assert_allclose(f_found, f_alone, atol=near * np.abs(f_alone).max(), rtol=0)
        assert set(found.predict(X)) <= (
            {"yes", "no"} if model.declaration.task == "binary" else {1, -1}
        )
        part = model.prepare(form(X)[rows[f]], labels[rows[f]])
        assert found.evaluate_objective(part).objective_ == pytest.approx(
            alone.objective_, rel=1e-6
        )
        assert point.own_cost_s > 0.0
        assert all(isinstance(count, int) for count in point.statistics.values())


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    ("name", "over"),
    [pair for pair in DECLARED if issubclass(catalogue.solver_class(pair[0]), KernelClassifier)],
)
def test_a_declared_path_on_a_kernel_matrix_equals_the_loop(name, over, split):
    X, y, splits = problem()
    y = y.astype(np.float64)
    source = KernelSource.precomputed(KernelFunction("rbf", 2.0).between(X, X))
    model = catalogue.solver(name, gamma=2.0, **EXACT.get(name, {}))
    found = solutions(model.path(source, y, over, VALUES[over], splits if split else None))
    parts = [train for train, _ in splits] if split else [np.arange(len(y))]
    for position, solution in enumerate(found):
        f, p = divmod(position, len(VALUES[over]))
        model.set_params(**{over: VALUES[over][p]})
        alone = model.solve(source.subset(parts[f]), y[parts[f]])
        scale = np.abs(alone.coefficients).max()
        near = 30 * NEAR.get(name, 1e-9)
        assert_allclose(solution.coefficients, alone.coefficients, atol=near * scale, rtol=0)


def test_shared_work_counts_once():
    X, y, _ = problem()
    K = KernelFunction("rbf", 2.0).between(X, X)
    for name in ("csvc", "nl-sgd", "kernel-pegasos"):
        source = KernelSource.precomputed(K)
        points = catalogue.solver(name).path(source, y.astype(float), "C", [0.25, 1.0, 4.0])
        counts = [point.statistics["kernel_evaluations"] for point in points]
        assert counts == [source.kernel_evaluations, 0, 0]


def test_values_in_any_order_have_their_own_solutions():
    X, y, _ = problem()
    source = KernelSource.precomputed(KernelFunction("rbf", 2.0).between(X, X))
    for name in ("csvc", "nn-isda", "nl-sgd"):
        model = catalogue.solver(name, **EXACT.get(name, {}))
        up = solutions(model.path(source, y.astype(float), "C", [0.25, 4.0]))
        down = solutions(model.path(source, y.astype(float), "C", [4.0, 0.25]))
        for one, other in zip(up, down[::-1], strict=True):
            scale = np.abs(one.coefficients).max()
            assert_allclose(one.coefficients, other.coefficients, atol=1e-5 * scale)


@pytest.mark.parametrize(
    ("name", "over", "values"),
    [
        ("liblinear-l1", "C", [0.5, 2.0]),
        ("dcd-l2", "intercept_scaling", [1.0, 3.0]),
        ("alsvm-batch", "intercept_scaling", [1.0, 3.0]),
        ("smo", "C", [0.5, 2.0]),
        ("csvc", "gamma", [0.5, "scale"]),
        ("csvc", "tol", [1e-2, 1e-4]),
        ("osuna", "C", [0.5, 2.0]),
        ("nystrom", "C", [0.5, 2.0]),
        ("nystrom", "n_basis", [5, 20]),
        ("icf", "C", [0.5, 2.0]),
        ("sgd-lssvm", "C", [0.5, 2.0]),
    ],
)
@pytest.mark.parametrize("split", [False, True])
def test_what_is_not_shared_is_a_loop(name, over, values, split):
    X, y, splits = problem()
    model = catalogue.solver(name)
    data = model.prepare(X, y)
    points = list(model.path(data, None, over, values, splits if split else None))
    rows = [train for train, _ in splits] if split else [np.arange(len(y))]
    for position, point in enumerate(points):
        f, p = divmod(position, len(values))
        alone = catalogue.solver(name, **{over: values[p]}).fit(X[rows[f]], y[rows[f]])
        assert_allclose(
            point.solution.decision_function(X), alone.decision_function(X), rtol=1e-12, atol=1e-12
        )
        # All that a fit leaves behind, and no dual value where there are no multipliers.
        part = model.prepare(X[rows[f]], y[rows[f]])
        found = point.solution.evaluate_objective(part)
        assert set(vars(found)) == set(vars(alone))
        for value in ("objective_", "dual_objective_"):
            if hasattr(alone, value):
                assert getattr(found, value) == pytest.approx(getattr(alone, value), rel=1e-12)
    assert len(points) == len(rows) * len(values)


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan])
def test_values_are_checked_before_anything_is_solved(C, monkeypatch):
    X, y, splits = problem()
    model = catalogue.solver("csvc")
    data = model.prepare(X, y)
    monkeypatch.setattr(type(model), "solve_along", lambda *_: pytest.fail("it was solved"))
    with pytest.raises(ValueError, match="C must be a positive finite number"):
        next(iter(model.path(data, None, "C", [1.0, C], splits)))


def test_a_kernel_matrix_has_no_path_of_its_kernel():
    source = KernelSource.precomputed(np.eye(4))
    y = np.array([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match="a kernel matrix has one gamma"):
        next(catalogue.solver("csvc").path(source, y, "gamma", [1.0, 2.0]))


def test_pairs_of_classes_have_the_path_of_their_solver():
    X, _, _ = problem()
    labels = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    model = OneVsOne(catalogue.solver("alsvm-batch"))
    data = model.prepare(X, labels)
    # The first class is missing in the fold's training part.
    train = np.flatnonzero(labels != "a")
    splits = [(train, np.flatnonzero(labels == "a"))]
    (found,) = solutions(model.path(data, None, "estimator__C", [0.5], splits))
    alone = OneVsOne(catalogue.solver("alsvm-batch", C=0.5)).fit(X[train], labels[train])
    assert found.predict(X).tolist() == alone.predict(X).tolist()
