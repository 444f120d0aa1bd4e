"""Weights of classes and samples: scikit-learn's solutions, repeated rows, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import has_fit_parameter
from small_problems import make_problem, needs_jit

from svmbench import CSVC, DCDL1, DCDL2
from svmbench.baselines import catalogue
from svmbench.core.contract.base import Weighted, class_weights
from svmbench.core.contract.problems import FREE
from svmbench.core.csvc import solver
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

WEIGHTED = [
    name for name in catalogue.solvers() if issubclass(catalogue.solver_class(name), Weighted)
]

RBF = {"gamma": 1.3, "tol": 1e-8}


def weights_of(n, seed=0):
    """Return random weights, some of them zero."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 3.0, n) * (rng.random(n) < 0.9)


@needs_jit
@pytest.mark.parametrize("class_weight", [None, {1: 4.0}, {-1: 0.5, 1: 2.0}, "balanced"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_csvc_as_svc(class_weight, own, whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 0)
    X, y = make_problem(n=150, d=6)
    keep = np.arange(150)[(y > 0) | (np.arange(150) % 3 == 0)]
    X, y = X[keep], y[keep]
    weights = weights_of(len(y)) if own else None
    theirs = SVC(C=2.0, class_weight=class_weight, **RBF).fit(X, y, sample_weight=weights)
    ours = CSVC(C=2.0, class_weight=class_weight, **RBF).fit(X, y, sample_weight=weights)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    # Their multipliers have the same value of the dual, and ours has no gap to it.
    v = 2.0 * class_weights(class_weight, y) * (1.0 if weights is None else weights)
    # Their positions are those among the samples whose weight is not 0.
    support = np.flatnonzero(v)[theirs.support_]
    alpha = np.zeros(len(y))
    alpha[support] = theirs.dual_coef_[0]
    f = KernelFunction("rbf", 1.3).between(X, X) @ alpha
    assert ours.dual_objective_ == pytest.approx(np.abs(alpha).sum() - 0.5 * alpha @ f, rel=1e-6)
    losses = v @ np.maximum(0.0, 1.0 - y * theirs.decision_function(X))
    assert ours.objective_ == pytest.approx(0.5 * alpha @ f + losses, rel=1e-6)
    data = ours.prepare(X, y, weights)
    assert ours.problem.gap(ours._values(data), 2.0, FREE) <= 1e-5
    bounded = np.abs(alpha[support]) >= v[support] * (1 - 1e-9)
    assert ours.counters_["bounded_support_vectors"] == bounded.sum()


@needs_jit
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("class_weight", [None, {1: 4.0}, "balanced"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_dcd_as_linear_svc(loss, class_weight, form):
    X, y = make_problem(n=150, d=6)
    weights = weights_of(150)
    asked = {"C": 0.7, "class_weight": class_weight, "tol": 1e-9, "max_iter": 100_000}
    theirs = LinearSVC(loss=loss, dual=True, **asked).fit(X, y, sample_weight=weights)
    cls = DCDL1 if loss == "hinge" else DCDL2
    ours = cls(**asked).fit(form(X), y, sample_weight=weights)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    # The dual value at alpha_ certifies that this is the optimum of the weighted problem.
    v = 0.7 * class_weights(class_weight, y, weights) * weights
    m = y * ours.decision_function(X)
    w = np.append(ours.coef_[0], ours.intercept_[0])
    losses = np.maximum(0.0, 1.0 - m) ** (1 if loss == "hinge" else 2)
    assert ours.objective_ == pytest.approx(0.5 * w @ w + v @ losses, rel=1e-9)
    on = v > 0.0
    square = 0.0 if loss == "hinge" else np.sum(ours.alpha_[on] ** 2 / (4.0 * v[on]))
    dual = ours.alpha_.sum() - 0.5 * w @ w - square
    assert 0.0 <= ours.objective_ - dual + 1e-10 <= 1e-5
    assert np.all(ours.alpha_[~on] == 0.0)


@needs_jit
@pytest.mark.parametrize("name", WEIGHTED)
def test_whole_weights_are_repeated_rows(name):
    X, y = make_problem(n=80, d=5)
    counts = np.random.default_rng(1).integers(0, 4, 80)
    model = catalogue.solver(name, tol=1e-9)
    model.set_params(max_iter=1_000_000)
    if "gamma" in model.get_params():
        model.set_params(gamma=0.8)
    if "nu" in model.get_params():
        model.set_params(nu=0.3)
    weighted = model.fit(X, y, sample_weight=counts).decision_function(X)
    objective = model.objective_
    repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted, repeated.decision_function(X), atol=1e-6)
    assert objective == pytest.approx(repeated.objective_, rel=1e-7)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_one_change_nothing(name):
    X, y = make_problem(n=40, d=4)
    model = catalogue.solver(name)
    plain = model.fit(X, y).decision_function(X)
    assert np.array_equal(plain, model.fit(X, y, sample_weight=np.ones(40)).decision_function(X))
    if "class_weight" in model.get_params():
        model.set_params(class_weight={-1: 1.0, 1: 1.0})
    assert np.array_equal(plain, model.fit(X, y).decision_function(X))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_that_are_none(name):
    X, y = make_problem(n=20, d=3)
    model = catalogue.solver(name)
    for weights, sentence in (
        (np.zeros(20), "all samples have zero or negative weights"),
        (-np.ones(20), "all samples have zero or negative weights"),
        (np.where(y > 0, 1.0, 0.0), "with positive weights belong to the same class"),
        (np.full(20, np.nan), "NaN"),
        (np.ones(19), r"sample_weight has shape \(19,\), and there are 20 samples"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, y, sample_weight=weights)
    if "class_weight" not in model.get_params():
        return
    with pytest.raises(ValueError, match="class_weight must be a dict, 'balanced' or None"):
        model.set_params(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="are not in class_weight"):
        model.set_params(class_weight={5: 2.0}).fit(X, y)


def test_a_negative_weight_is_none():
    X, y = make_problem(n=60, d=4)
    weights = weights_of(60)
    one = CSVC().fit(X, y, sample_weight=weights).decision_function(X)
    other = CSVC().fit(X, y, sample_weight=np.where(weights > 0, weights, -3.0))
    assert np.array_equal(one, other.decision_function(X))


def test_a_solver_without_weights_says_so_as_scikit_learn_does():
    others = [name for name in catalogue.solvers() if name not in WEIGHTED]
    assert len(others) > 20
    X, y = make_problem(n=20, d=3)
    for name in others:
        assert not has_fit_parameter(catalogue.solver_class(name), "sample_weight")
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            catalogue.solver(name).fit(X, y, sample_weight=np.ones(20))


def test_class_weights_by_hand():
    labels = np.array(["a", "b", "b", "b"])
    assert class_weights({"a": 2.0}, labels).tolist() == [2.0, 1.0, 1.0, 1.0]
    assert_allclose(class_weights("balanced", labels), [2.0, 2 / 3, 2 / 3, 2 / 3])
    counted = np.array([3.0, 1.0, 1.0, 1.0])
    assert class_weights("balanced", labels, counted).tolist() == [1.0] * 4


def test_a_path_with_weights_is_refused_on_samples_and_right_on_a_matrix():
    X, y = make_problem(n=40, d=4)
    model = CSVC(class_weight={1: 3.0}, tol=1e-8, gamma=1.0)
    with pytest.raises(ValueError, match="a path of csvc takes no weights of samples or classes"):
        list(model.path(model.prepare(X, y), None, "C", [1.0, 2.0]))
    y = y.astype(float)
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    for C, point in zip([1.0, 2.0], model.path(source, y, "C", [1.0, 2.0]), strict=True):
        alone = CSVC(C, class_weight={1: 3.0}, tol=1e-8, gamma=1.0).fit(X, y)
        assert_allclose(
            point.solution.alpha[alone.support_], np.abs(alone.dual_coef_[0]), atol=1e-6
        )


@needs_jit
@pytest.mark.parametrize("n", [30, 520])
def test_balanced_multipliers_within_rounding_are_at_their_bound(n):
    for seed in range(20 if n == 30 else 3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        y = np.where(rng.random(n) < 0.3, 1, -1)
        y[:2] = 1, -1
        model = CSVC(C=1e-4, kernel="linear", class_weight="balanced").fit(X, y)
        beta = 1e-4 * class_weights("balanced", y) * y
        v = y - X @ (X.T @ beta)
        m, M = v[y < 0].max(), v[y > 0].min()
        assert m < M
        assert model.intercept_[0] == pytest.approx(0.5 * (m + M), abs=1e-9)
        assert model.counters_["bounded_support_vectors"] == n


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 9.0, 2: 0.2}, "balanced"])
def test_one_against_the_rest_weighs_its_class(weights):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(90, 3)), np.repeat([0, 1, 2], [20, 30, 40])
    model = DCDL2(C=0.5, tol=1e-9, class_weight=weights).fit(X, y)
    plain = DCDL2(C=0.5, tol=1e-9).fit(X, y)
    for row, label in enumerate((0, 1, 2)):
        factor = weights[label] if weights != "balanced" else 30.0 / np.sum(y == label)
        own = DCDL2(C=0.5, tol=1e-9, class_weight={True: factor}).fit(X, y == label)
        assert_allclose(model.coef_[row], own.coef_[0], atol=1e-5)
        if factor != 1.0:
            assert not np.allclose(plain.coef_[row], own.coef_[0], atol=1e-3)
