"""newton-l2: its pieces one by one, its steps beside Newton's with dense matrices, the optimum."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from small_problems import linear_gap, make_problem, needs_jit

from svmbench.baselines.liblinear import LiblinearL2, LiblinearL2Dual
from svmbench.core.contract.base import class_weights
from svmbench.core.contract.problems import SQUARED_HINGE
from svmbench.core.linear import newton
from svmbench.core.linear.dcd import DCDL2
from svmbench.core.linear.exact_newton import CONVERGED, MAX_ITER, STALLED, exact_newton
from svmbench.core.linear.hessian import (
    Diagonal,
    RowProducts,
    SampleHessian,
    curvature_rows,
    upper_gram,
)
from svmbench.core.linear.newton import (
    NewtonL2,
    NewtonParameters,
    NewtonSamples,
    line_search,
    newton_direction,
    truncated_newton,
)
from svmbench.studies.listing import card_of

FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])


def value(X, y, w, C):
    return 0.5 * w @ w + C * np.sum(np.maximum(0.0, 1.0 - y * (X @ w)) ** 2)


def gradient(X, y, w, C):
    return w - 2.0 * C * X.T @ (y * np.maximum(0.0, 1.0 - y * (X @ w)))


def without_gram(monkeypatch):
    """Let no problem be solved on its Gram matrix."""
    monkeypatch.setattr(newton, "GRAM_PRODUCTS_PER_NONZERO", 0)
    monkeypatch.setattr(newton, "GRAM_FEW_ROWS", 0)


def wide(n=40, d=400):
    """Return a problem of which no Hessian is worth factorising."""
    rng = np.random.default_rng(5)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.02)
    return X, np.where(np.arange(n) % 2, 1.0, -1.0)


@pytest.fixture(params=["exact Hessians", "conjugate gradients"])
def by_either_hessian(request, monkeypatch):
    """Let rows of few features have either kind of Hessian."""
    if request.param != "exact Hessians":
        monkeypatch.setattr(newton, "EXACT_MAX_FEATURES", 0)


EITHER_HESSIAN = pytest.mark.usefixtures("by_either_hessian")


@FORMS
def test_products_with_rows_are_those_of_matrices(form):
    rng = np.random.default_rng(0)
    # Rows of 0 to 11 nonzeros: whatever is left over after the groups of four.
    X = np.tril(rng.normal(size=(12, 11)), -1)
    products, v = RowProducts(form(X)), rng.normal(size=11)
    for rows in (np.arange(12), np.array([3, 4, 9]), np.array([], dtype=int)):
        rows, part = rows.astype(np.int32), X[rows]
        factors = rng.normal(size=len(rows))
        assert_allclose(products.times(rows, v), part @ v, atol=1e-14)
        assert_allclose(products.combine(rows, factors), part.T @ factors, atol=1e-14)
        assert_allclose(products.curvature(rows, v), part.T @ (part @ v), atol=1e-13)
    assert products.visits == 3 * (12 + 3)


@FORMS
@pytest.mark.parametrize("density", [0.02, 0.9])
def test_the_gram_matrix_is_the_same_by_either_way(form, density):
    X, _ = make_problem(n=300, d=40, density=density)
    assert_allclose(np.triu(upper_gram(form(X))), np.triu(X.T @ X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_line_search_finds_the_minimum_along_the_way(C):
    rng = np.random.default_rng(1)
    X, y = make_problem(n=70, d=5)
    for _ in range(10):
        w = rng.normal(size=5)
        d = -gradient(X, y, w, C) * 10.0 ** rng.uniform(-6, 1)
        slacks = 1.0 - y * (X @ w)
        t = line_search(slacks, y * (X @ d), float(w @ d), float(d @ d), C)
        slope = gradient(X, y, w + t * d, C) @ d
        assert abs(slope) <= 1e-9 * abs(gradient(X, y, w, C) @ d)
        assert line_search(slacks, -y * (X @ d), float(-w @ d), float(d @ d), C) == 0.0


@FORMS
def test_a_direction_solves_newton_s_equation_and_the_preconditioner_only_saves_steps(form):
    X, y = make_problem(n=200, d=9)
    C, inside = 3.0, np.arange(200) % 3 > 0
    active = np.flatnonzero(inside).astype(np.int32)
    H = np.eye(9) + 2.0 * C * X[inside].T @ X[inside]
    g = gradient(X, y, np.zeros(9), C)
    exact, partly = (SampleHessian(form(X), np.arange(200), m) for m in (200, 40))
    taken = []
    for preconditioner in (exact, partly, Diagonal(form(X))):
        preconditioner.make(inside, C)
        d, steps = newton_direction(RowProducts(form(X)), active, g, C, preconditioner)
        assert (H @ d + g) @ np.linalg.solve(H, H @ d + g) < 0.3 * (g @ np.linalg.solve(H, g))
        taken.append(steps)
    assert taken[0] == 1
    assert taken == sorted(taken)
    exact.make(inside, C)
    d, _ = newton_direction(RowProducts(form(X)), active, g, C, exact)
    assert_allclose(d, -np.linalg.solve(H, g), rtol=1e-3, atol=1e-4 * np.abs(d).max())


@FORMS
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_steps_are_those_of_newton_with_an_exact_line_search(form, C):
    X, y = make_problem(n=90, d=6)
    y, w = y.astype(float), np.zeros(6)
    for n_steps in range(1, 4):
        A = y * (X @ w) < 1.0
        d = -np.linalg.solve(np.eye(6) + 2.0 * C * X[A].T @ X[A], gradient(X, y, w, C))
        best = minimize_scalar(lambda t, w=w, d=d: value(X, y, w + t * d, C), bracket=(0.0, 1.0))
        w = w + best.x * d
        hessian = SampleHessian(form(X), np.arange(90), 90)
        course = NewtonParameters(C, 0.0, 0.0, n_steps, patience=0)
        slacks = np.ones(90)
        ours = truncated_newton(RowProducts(form(X)), y, np.zeros(6), slacks, hessian, course)
        assert_allclose(slacks, 1.0 - y * (X @ ours.w), atol=1e-12)
        assert ours.steps == n_steps
        assert_allclose(ours.w, w, atol=1e-3 * np.abs(w).max())


@EITHER_HESSIAN
@pytest.mark.parametrize("data", [make_problem(n=150, d=8), wide()])
def test_every_step_lowers_f(data):
    X, y = data
    model = NewtonL2(C=5.0, tol=1e-8, trace=True).fit(X, y)
    values = [point[2] for point in model.trace_]
    assert all(after < before for before, after in itertools.pairwise(values))
    assert values[0] < 5.0 * len(y)
    assert values[-1] == pytest.approx(model.objective_, rel=1e-12)
    assert [point[1] for point in model.trace_] == list(range(1, model.n_iter_ + 1))
    # A trace changes no step.
    assert NewtonL2(C=5.0, tol=1e-8).fit(X, y).n_iter_ == model.n_iter_


@EITHER_HESSIAN
@FORMS
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_closes_the_duality_gap(bias, form):
    X, y = make_problem(n=80, d=6)
    X[7] = 0.0
    parameters = {"fit_intercept": bias > 0, "intercept_scaling": bias}
    model = NewtonL2(C=0.7, tol=1e-10, **parameters).fit(form(X), y)
    w, b = model.coef_[0], model.intercept_[0]
    assert linear_gap(SQUARED_HINGE, X, y, w, b, 0.7, bias=bias) < 1e-9 * model.objective_
    assert model.stop_reason_ == "converged"


@FORMS
def test_many_features_go_without_a_factorised_hessian(form, monkeypatch):
    without_gram(monkeypatch)
    X, y = wide()
    assert curvature_rows(sp.csr_array(X)) == 0
    assert curvature_rows(np.ones((500, 40))) == 160
    assert curvature_rows(np.ones((500, 9))) == 500
    model = NewtonL2(C=3.0, tol=1e-9).fit(form(X), y)
    best = LiblinearL2Dual(C=3.0, tol=1e-9).fit(X, y).objective_
    assert model.objective_ == pytest.approx(best, rel=1e-8)


@EITHER_HESSIAN
def test_tol_is_the_gradient_s_norm_relative_to_the_first():
    X, y = make_problem(n=120, d=7)
    y = np.where(np.arange(120) < 30, 1.0, -1.0)
    Z = np.column_stack([X, np.ones(120)])
    for tol in (0.1, 1e-3, 1e-6):
        model = NewtonL2(C=2.0, tol=tol).fit(X, y)
        w = np.append(model.coef_[0], model.intercept_)
        ratio = np.linalg.norm(gradient(Z, y, w, 2.0)) / np.linalg.norm(
            gradient(Z, y, 0.0 * w, 2.0)
        )
        assert ratio <= tol * 0.25 * (1 + 1e-9)


def optimum(X, y, C):
    """Return the optimal value, by Newton's method on centred features with the same regulariser.

    With z = x - c, f(x) = w'z + beta, the intercept is b = beta - w'c.
    """
    c = X.mean(axis=0)
    Z, T = np.column_stack([X - c, np.ones(len(y))]), np.eye(X.shape[1] + 1)
    T[-1, :-1] = -c
    R, u = T.T @ T, np.zeros(len(T))

    def f(u):
        return 0.5 * np.sum((T @ u) ** 2) + C * np.sum(np.maximum(0.0, 1.0 - y * (Z @ u)) ** 2)

    for _ in range(300):
        A = y * (Z @ u) < 1.0
        g = R @ u - 2.0 * C * Z[A].T @ (y[A] - Z[A] @ u)
        d = -np.linalg.solve(R + 2.0 * C * Z[A].T @ Z[A], g)
        t = 1.0
        while f(u + t * d) > f(u) + 1e-4 * t * (g @ d) and t > 1e-12:
            t /= 2.0
        if t <= 1e-12:
            break
        u = u + t * d
    return f(u)


HOSTILE = {
    "as drawn": lambda X: X,
    "+ 1e3": lambda X: X + 1e3,
    "+ 1e4": lambda X: X + 1e4,
    "+ 1e6": lambda X: X + 1e6,
    "times 1e3": lambda X: 1e3 * X,
    "times 1e-3": lambda X: 1e-3 * X,
    "one feature times 1e4": lambda X: X * np.append(1e4, np.ones(X.shape[1] - 1)),
    "a constant feature": lambda X: np.column_stack([X, np.full(len(X), 5.0)]),
}


@EITHER_HESSIAN
@FORMS
@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("share", [0.5, 0.15])
def test_ends_within_tol_of_the_optimum_wherever_the_start_is(form, hostile, C, share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    scores = X[:, 0] + 0.4 * X[:, 1] + 0.3 * rng.normal(size=200)
    y = np.where(scores > np.quantile(scores, 1.0 - share), 1.0, -1.0)
    X = HOSTILE[hostile](X)
    best = optimum(X, y, C)
    model = NewtonL2(C=C).fit(form(X), y)
    assert model.stop_reason_ == "converged"
    assert -1e-4 <= model.objective_ / best - 1.0 <= 0.01


@EITHER_HESSIAN
@FORMS
@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_ends_within_tol_where_a_plane_separates_the_classes(form, C):
    X, labels = load_wine(return_X_y=True)
    X, y = scale(X), np.where(labels == 0, 1.0, -1.0)
    for each in (X, X + 1e4, 1e3 * X):
        model = NewtonL2(C=C).fit(form(each), y)
        assert model.objective_ <= 1.01 * optimum(each, y, C)


def test_the_bound_of_the_gap_is_half_the_gradient_s_square():
    X, y = make_problem(n=60, d=5)
    w, C = np.random.default_rng(2).normal(size=5), 0.8
    g = gradient(X, y, w, C)
    gap = linear_gap(SQUARED_HINGE, X, y, w, 0.0, C, bias=0.0)
    assert gap == pytest.approx(0.5 * g @ g)


def test_a_hessian_whose_pivots_are_rounding_is_factorised_in_double_precision():
    X, _ = make_problem(n=200, d=6)
    for shift, dtype in ((0.0, np.float32), (1e4, np.float64)):
        hessian = SampleHessian(X + shift, np.arange(200), 200)
        hessian.make(np.ones(200, dtype=bool), 5.0)
        H = np.eye(6) / 10.0 + (X + shift).T @ (X + shift)
        r = np.random.default_rng(3).normal(size=6)
        assert hessian.solve(r).dtype == np.float64
        assert hessian._root.dtype == dtype
        assert_allclose(hessian.solve(r), np.linalg.solve(H, r), rtol=1e-3, atol=1e-3)


@needs_jit
def test_the_start_is_the_problem_of_an_eighth_of_the_rows(monkeypatch):
    monkeypatch.setattr(newton, "EXACT_MAX_FEATURES", 0)
    X, y = make_problem(n=4000, d=6)
    samples = NewtonSamples(X, y.astype(float), seed=lambda: 3)
    way = samples.start(1.0)
    rows = np.sort(samples.order[:500])
    assert way.steps == 3
    assert value(X[rows], y[rows], way.w, 8.0) == pytest.approx(
        LiblinearL2(C=8.0, tol=1e-9, fit_intercept=False).fit(X[rows], y[rows]).objective_, rel=1e-3
    )
    # A start that is near takes fewer passes over all samples than one from zero.
    model = NewtonL2(tol=1e-3).fit(X, y)
    cold = truncated_newton(
        RowProducts(X),
        y.astype(float),
        np.zeros(6),
        np.ones(4000),
        samples.preconditioner,
        NewtonParameters(1.0, 1.0, 1.0, 99),
    )
    assert model.n_iter_ < cold.steps + 1
    assert NewtonSamples(X[:500], y[:500].astype(float), seed=lambda: 3).start(1.0).steps == 0


@EITHER_HESSIAN
@needs_jit
@FORMS
@pytest.mark.parametrize("C", [1e-3, 1e5])
def test_single_precision_of_the_preconditioner_changes_no_solution(form, C):
    X, y = make_problem(n=300, d=10)
    # Two equal features, and one of another magnitude.
    X = np.column_stack([X, X[:, 0], 1e3 * X[:, 1]])
    model = NewtonL2(C=C, tol=1e-9).fit(form(X), y)
    w, b = model.coef_[0], model.intercept_[0]
    assert linear_gap(SQUARED_HINGE, X, y, w, b, C, bias=1.0) < 1e-6 * model.objective_


@EITHER_HESSIAN
def test_two_samples_by_hand():
    # x = 1, 1 after folding in the labels, no offset: w = 4C / (1 + 4C).
    model = NewtonL2(C=0.5, tol=1e-12, fit_intercept=False).fit([[1.0], [-1.0]], [1, -1])
    assert model.coef_[0, 0] == pytest.approx(2 / 3)


@EITHER_HESSIAN
def test_samples_that_come_twice_weigh_twice():
    X, y = make_problem(n=50, d=5)
    twice = NewtonL2(C=1.0, tol=1e-10).fit(np.vstack([X, X]), np.tile(y, 2))
    once = NewtonL2(C=2.0, tol=1e-10).fit(X, y)
    assert_allclose(twice.coef_, once.coef_, atol=1e-6)


@EITHER_HESSIAN
def test_too_few_steps_are_said():
    X, y = make_problem(n=100, d=8)
    with pytest.warns(ConvergenceWarning, match="newton-l2 stopped at max_iter=1 before"):
        assert NewtonL2(C=100.0, tol=1e-10, max_iter=1).fit(X, y).stop_reason_ == "max_iter"


@EITHER_HESSIAN
def test_what_float64_does_not_reach_is_said():
    X, y = make_problem(n=100, d=8)
    with pytest.warns(ConvergenceWarning, match="newton-l2 can make no more progress"):
        assert NewtonL2(C=1.0, tol=1e-30).fit(X, y).stop_reason_ == "stalled"


@EITHER_HESSIAN
def test_a_path_starts_each_solution_at_the_last():
    X, y = make_problem(n=200, d=8)
    values = [0.5, 0.6, 0.7]
    model = NewtonL2(tol=1e-6)
    points = list(model.path(model.prepare(X, y), None, "C", values))
    alone = [NewtonL2(C=C, tol=1e-6).fit(X, y).counters_["visits"] for C in values]
    assert points[0].statistics["visits"] == alone[0]
    assert all(p.statistics["visits"] < cold for p, cold in zip(points[1:], alone[1:], strict=True))


@EITHER_HESSIAN
@pytest.mark.mirror
@needs_jit
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", ["heart", "german.numer", "svmguide3", "splice", "a1a", "ijcnn1"])
def test_the_optimum_is_that_of_liblinear(mirrored, C, name):
    X, y = mirrored(name)
    X = sp.csr_array(X)
    X = sp.csr_array(X.multiply(1.0 / np.maximum(abs(X).max(axis=0).toarray(), 1e-12)))
    ours = NewtonL2(C=C, tol=1e-7).fit(X, y)
    assert ours.stop_reason_ == "converged"
    best = LiblinearL2(C=C, tol=1e-9).fit(X, y).objective_
    assert ours.objective_ == pytest.approx(best, rel=1e-6)
    dual = LiblinearL2Dual(C=C, tol=1e-3).fit(X, y).objective_
    assert ours.objective_ <= dual * (1 + 1e-6)


@pytest.mark.parametrize("name", ["newton-l2", "dcd-l2"])
def test_describe_says_which_of_the_two_suits_what(name):
    said = card_of(name)["suits"]
    assert "thousand" in said
    assert ({"newton-l2", "dcd-l2"} - {name}).pop() in said
    assert "suits" not in card_of("asvm")


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_exact_steps_are_those_of_newton_with_an_exact_line_search(C):
    X, y = make_problem(n=90, d=6)
    y, w, squares = y.astype(float), np.zeros(6), X.T @ X
    for n_steps in range(1, 5):
        A = y * (X @ w) < 1.0
        d = -np.linalg.solve(np.eye(6) + 2.0 * C * X[A].T @ X[A], gradient(X, y, w, C))
        best = minimize_scalar(lambda t, w=w, d=d: value(X, y, w + t * d, C), bracket=(0.0, 1.0))
        w, ours = w + best.x * d, np.zeros(6)
        slacks, curvature = np.ones(90), (squares.copy(), np.ones(90, dtype=np.bool_))
        found = exact_newton(X, y, C, (0.0, 0.0, n_steps), curvature, ours, slacks)
        assert_allclose(slacks, 1.0 - y * (X @ ours), atol=1e-12)
        # It may be at the optimum before, where no step changes w.
        assert found[:2] == (n_steps, MAX_ITER) or (n_steps > 2 and found[1] == STALLED)
        assert found[3] == np.count_nonzero(y * (X @ ours) < 1.0)
        assert_allclose(ours, w, atol=1e-6 * np.abs(w).max())
    # The end is the optimum, wherever it starts, and whichever rows the squares are of.
    for start, G, has_all in (
        (np.zeros(6), squares, True),
        (np.full(6, 3.0), 0.0 * squares, False),
    ):
        slacks, curvature = 1.0 - y * (X @ start), (G.copy(), np.full(90, has_all))
        steps, reason, _, _ = exact_newton(X, y, C, (1e-9, 1e-9, 50), curvature, start, slacks)
        assert (steps < 20, reason) == (True, CONVERGED)
        assert np.linalg.norm(gradient(X, y, start, C)) <= 1e-9


def test_narrow_samples_with_other_labels_share_their_squares():
    X, y = make_problem(n=40, d=3)
    samples = NewtonSamples(X, y, lambda: 0)
    ones = [samples.labelled(labels) for labels in (y, -y)]
    assert ones[0].squares is ones[1].squares
    assert ones[1].target(1.0, 0.1) == pytest.approx(ones[0].target(1.0, 0.1))
    assert np.array_equal(ones[1].y, -y)


def test_narrow_rows_start_on_a_part_of_them_if_few_stay_active(monkeypatch):
    monkeypatch.setattr(newton, "EXACT_START_MIN_VALUES", 0)
    X = np.random.default_rng(0).normal(size=(400, 5))
    for y, begins in (
        (np.where(X[:, 0] > 0.0, 1.0, -1.0), True),
        (np.resize([-1.0, 1.0], 400), False),
    ):
        samples = NewtonSamples(X, y, lambda: 0)
        way = samples.start_exactly(10.0)
        assert (way.steps > 1, bool(np.any(way.w))) == (begins, begins)
        model = NewtonL2(C=10.0, tol=1e-6).fit(X, y)
        monkeypatch.setattr(newton, "EXACT_START_MIN_VALUES", X.size + 1000)
        other = NewtonL2(C=10.0, tol=1e-6).fit(X, y)
        monkeypatch.setattr(newton, "EXACT_START_MIN_VALUES", 0)
        assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
        assert model.counters_["steps"] == model.n_iter_ + way.steps


@EITHER_HESSIAN
def test_classes_against_the_rest_are_problems_of_two_classes():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    model = NewtonL2(tol=1e-6).fit(X, y)
    for form in (np.asarray, sp.csr_array):
        ones = [NewtonL2(tol=1e-6).fit(form(X), y == c) for c in range(3)]
        assert_allclose(model.coef_, np.vstack([one.coef_ for one in ones]), atol=1e-4)
        assert model.objective_ == pytest.approx(sum(one.objective_ for one in ones), rel=1e-6)
    assert np.array_equal(
        model.predict(X), model.classes_[np.argmax(model.decision_function(X), 1)]
    )


@EITHER_HESSIAN
@FORMS
@pytest.mark.parametrize("class_weight", [None, {1: 4.0}, "balanced"])
@pytest.mark.parametrize("data", [make_problem(n=400, d=6), wide()])
def test_weights_are_those_of_linear_svc(form, class_weight, data):
    X, y = data
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.1, 3.0, len(y)) * (rng.random(len(y)) < 0.9)
    asked = {"C": 0.7, "class_weight": class_weight, "tol": 1e-10}
    ours = NewtonL2(**asked).fit(form(X), y, sample_weight=weights)
    theirs = LinearSVC(dual=True, max_iter=100_000, **asked).fit(X, y, sample_weight=weights)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    # The gradient of the weighted problem is 0, and the objective is its value.
    v = 0.7 * class_weights(class_weight, y, weights) * weights
    w, Z = np.append(ours.coef_[0], ours.intercept_[0]), np.column_stack([X, np.ones(len(y))])
    slacks = np.maximum(0.0, 1.0 - y * (Z @ w))
    assert np.linalg.norm(w - 2.0 * Z.T @ (v * y * slacks)) <= 1e-6
    assert ours.objective_ == pytest.approx(0.5 * w @ w + v @ slacks**2, rel=1e-9)
    assert ours.counters_["support_vectors"] == np.count_nonzero(slacks[v > 0.0])


@EITHER_HESSIAN
def test_a_trace_has_the_objective_of_the_weighted_problem():
    X, y = make_problem(n=150, d=8)
    model = NewtonL2(C=5.0, tol=1e-8, trace=True, class_weight={1: 3.0}).fit(X, y)
    assert model.trace_[-1][2] == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 9.0, 2: 0.2}, "balanced"])
def test_classes_against_the_rest_have_their_own_weights(weights):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    model = NewtonL2(tol=1e-8, class_weight=weights).fit(X, y)
    theirs = DCDL2(tol=1e-8, max_iter=100_000, class_weight=weights).fit(X, y)
    assert_allclose(model.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_long_rows_that_are_no_longer_active_leave_no_rounding(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 1.0, size=(30, 2))
    X[0, 0], X[1, 1] = 1e9 * rng.uniform(0.5, 1.5), -1e9 * rng.uniform(0.5, 1.5)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    model = NewtonL2(tol=1e-3).fit(X, y)
    assert model.stop_reason_ == "converged"
    w, Z = np.append(model.coef_[0], model.intercept_[0]), np.column_stack([X, np.ones(30)])
    start = np.linalg.norm(gradient(Z, y, np.zeros(3), 1.0))
    assert np.linalg.norm(gradient(Z, y, w, 1.0)) <= 1e-3 * start


def few_rows(form, seed=0):
    """Return 40 samples of three classes and 300 features, too many for exact Hessians."""
    rng = np.random.default_rng(seed)
    y = np.resize([0, 1, 2], 40)
    return form(rng.normal(size=(40, 300)) + 0.2 * rng.normal(size=(3, 300))[y]), y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
def test_fewer_rows_than_features_are_solved_on_their_gram_matrix(form, C, monkeypatch):
    """The optimum is that of the primal steps, with weights and for several classes, too."""
    X, y = few_rows(form)
    for labels in (y, y > 0):
        for weights in (None, np.linspace(0.0, 2.0, 40)):
            model = NewtonL2(C=C, tol=1e-8).fit(X, labels, weights)
            assert model.counters_["conjugate_gradient_steps"] == 0
            with monkeypatch.context() as patch:
                without_gram(patch)
                slow = NewtonL2(C=C, tol=1e-8).fit(X, labels, weights)
            assert slow.counters_["conjugate_gradient_steps"] > 0
            # f is 1-strongly convex: ||w - w*||^2 / 2 is at most the distance of f, tol f.
            most = 2.0 * np.sqrt(2.0 * 1e-8 * model.objective_)
            assert np.all(np.linalg.norm(model.coef_ - slow.coef_, axis=1) <= most)
            assert model.objective_ == pytest.approx(slow.objective_, rel=1e-7)


def test_steps_on_the_gram_matrix_begin_at_a_solution_and_are_traced():
    X, y = few_rows(np.asarray)
    model = NewtonL2()
    points = list(model.path(model.prepare(X, y > 0), None, "C", [1.0, 1.0]))
    first, again = (point.statistics["steps"] for point in points)
    assert first > again == 0
    model = NewtonL2(trace=True).fit(X, y > 0)
    assert [steps for _, steps, _ in model.trace_] == list(range(1, first + 1))
    values = [value for _, _, value in model.trace_]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(model.objective_)


def test_a_system_that_float64_cannot_factorise_is_left_to_the_primal_steps(monkeypatch):
    X, y = few_rows(np.asarray)
    X[20:] = X[:20]

    def fail(*_, **__):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(newton, "cho_factor", fail)
    model = NewtonL2().fit(X, y > 0)
    assert model.counters_["conjugate_gradient_steps"] > 0
    assert model.stop_reason_ == "converged"


@FORMS
@pytest.mark.parametrize("C", [pytest.param(1e-5, marks=needs_jit), 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_gram_matrix_of_many_rows_has_those_that_are_active_on_the_way(form, C, weighted):
    """At a small C all rows are, and are told so by the first part; the optimum is the same."""
    rng = np.random.default_rng(0)
    y = np.resize([-1.0, 1.0], 600)
    X = rng.normal(size=(600, 1200)) + 0.3 * y[:, None]
    weights = np.linspace(0.0, 2.0, 600) if weighted else None
    model = NewtonL2(C=C, tol=1e-6)
    data = model.prepare(form(X), y, weights)
    samples = model._samples(data)
    model._minimise(samples, None)
    n, gram = len(samples.y), samples.gram
    assert model.stop_reason_ == "converged"
    part = X[np.flatnonzero(weights != 0.0)[gram.rows]] if weighted else X[gram.rows]
    part = np.column_stack([part, np.ones(len(part))]) * samples.roots[gram.rows, None]
    assert_allclose(gram.K, part @ part.T, rtol=1e-9, atol=1e-9)
    if C == 1.0:
        assert len(set(gram.rows)) == len(gram.rows) < 0.7 * n
        # Other labels begin with the rows that have a Gram matrix.
        visits = model.counters_["visits"]
        model._minimise(samples.labelled(samples.y), None)
        assert model.counters_["visits"] == len(gram.rows) + n < visits
    else:
        assert np.array_equal(gram.rows, np.arange(n))
        assert model.counters_["visits"] == n // 8 + n + n
    best = DCDL2(C=C, tol=1e-8, max_iter=10_000).fit(X, y, weights).objective_
    assert model.evaluate_objective(data).objective_ == pytest.approx(best, rel=1e-5)


def test_a_part_with_a_gram_matrix_keeps_to_max_iter_and_traces_all_rows():
    rng = np.random.default_rng(0)
    y = np.resize([-1.0, 1.0], 600)
    X = rng.normal(size=(600, 1200)) + 0.3 * y[:, None]
    model = NewtonL2(tol=1e-6, trace=True).fit(X, y)
    steps = [point[1] for point in model.trace_]
    assert steps == sorted(steps)
    assert steps[-1] == model.n_iter_
    assert model.trace_[-1][2] == pytest.approx(model.objective_)
    for max_iter in range(1, model.n_iter_):
        with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
            short = NewtonL2(tol=1e-6, max_iter=max_iter).fit(X, y)
        assert short.n_iter_ == max_iter
        assert short.objective_ >= model.objective_


def test_classes_share_the_factor_of_all_rows():
    X, y = few_rows(np.asarray)
    model = NewtonL2(C=1e-6).fit(X, y)
    assert model.counters_["steps"] == 3
    assert model.counters_["factorisations"] == 1


@needs_jit
def test_few_sparse_rows_have_a_gram_matrix_and_more_take_long_steps(monkeypatch):
    rng = np.random.default_rng(0)
    for n in (200, 400):
        X = sp.random_array((n, 10 * n), density=2 / n, format="csr", rng=rng)
        y = np.where(X @ rng.normal(size=10 * n) > 0.0, 1.0, -1.0)
        model = NewtonL2(C=100.0, tol=1e-4).fit(X, y)
        if n == 200:
            assert model.counters_["conjugate_gradient_steps"] == 0
            continue
        monkeypatch.setattr(newton, "CG_RESIDUAL_FEW_ROWS", newton.CG_RESIDUAL)
        before = NewtonL2(C=100.0, tol=1e-4).fit(X, y)
        for counter in ("steps", "conjugate_gradient_steps", "visits"):
            assert 1.5 * model.counters_[counter] < before.counters_[counter]
        assert model.objective_ == pytest.approx(before.objective_, rel=2e-4)
