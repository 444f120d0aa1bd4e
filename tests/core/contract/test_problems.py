"""The problems' primal, dual and gap against hand-solved cases, weak duality and a QP solver."""

import clarabel
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csc_matrix
from small_problems import make_problem

from svmbench.baselines import catalogue
from svmbench.core.contract.problems import (
    FREE,
    HINGE,
    LEAST_SQUARES,
    NO_OFFSET,
    PROBLEMS,
    SQUARED_HINGE,
    LossProblem,
    Values,
    absorbed,
    linear,
)
from svmbench.core.models.multiclass import OneVsOne

LOSSES = sorted(name for name, problem in PROBLEMS.items() if isinstance(problem, LossProblem))


def test_one_pair_by_hand():
    # x = 1 with y = +1 and x = -1 with y = -1, w = 1/2, no offset: margins 1/2 and 1/2.
    X, y, w = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.array([0.5])
    assert HINGE.primal(linear(X, w, 0.0, y), 2.0) == pytest.approx(0.125 + 2 * 1.0)
    assert LEAST_SQUARES.primal(linear(X, w, 0.0, y), 2.0) == pytest.approx(0.125 + 2 * 0.5)
    assert SQUARED_HINGE.primal(linear(X, 4 * w, 0.0, y), 2.0) == pytest.approx(2.0)


def test_absorbed_offset_counts_in_units_of_its_feature():
    X, y, w = np.zeros((1, 1)), np.array([1.0]), np.array([0.0])
    assert HINGE.primal(linear(X, w, 3.0, y, bias=2.0), 1.0) == pytest.approx(0.5 * 1.5**2)
    assert HINGE.primal(linear(X, w, 3.0, y), 1.0) == 0.0


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_dual_never_exceeds_primal_and_meets_it_at_the_optimum(name, weighted):
    problem = PROBLEMS[name]
    X, labels = make_problem(seed=3, n=60, d=4)
    X, y = with_constant(X), labels.astype(float)
    C = 0.7
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, size=60) if weighted else None

    def primal(w):
        return problem.primal(Values(X @ w, w @ w, y, weights=weights), C)

    def at(alpha):
        w = X.T @ (y * alpha)
        return Values(X @ w, w @ w, y, alpha=alpha, weights=weights)

    options = {"maxiter": 20000, "xtol": 1e-9, "ftol": 1e-14}
    best = minimize(primal, np.zeros(5), method="Powell", options=options)
    own = 1.0 if weights is None else weights
    for _ in range(20):
        alpha = own * rng.uniform(0, min(problem.upper(C), 2 * C), size=60)
        problem.check(at(alpha), C, NO_OFFSET)
        assert problem.dual(at(alpha), C) <= best.fun + 1e-9
    if problem.loss is not HINGE.loss:  # the hinge's multipliers are not determined at its kink
        alpha = own * problem.multipliers(y * (X @ best.x), C)
        gap = primal(best.x) - problem.dual(at(alpha), C)
        assert gap + 1e-9 >= 0
        assert gap < 1e-5 * best.fun


@pytest.mark.parametrize("name", LOSSES)
def test_a_sample_of_weight_0_is_not_there(name):
    problem, y = PROBLEMS[name], np.array([1.0, -1.0, 1.0])
    f, alpha = np.array([0.2, -0.4, -5.0]), np.array([0.3, 0.1, 0.0])
    weights = np.array([2.0, 1.0, 0.0])
    all_of_it = Values(f, 0.1, y, alpha=alpha, weights=weights)
    rest = Values(f[:2], 0.1, y[:2], alpha=alpha[:2], weights=weights[:2])
    assert problem.primal(all_of_it, 0.7) == pytest.approx(problem.primal(rest, 0.7))
    assert problem.dual(all_of_it, 0.7) == pytest.approx(problem.dual(rest, 0.7))


def test_dual_refuses_what_is_not_feasible():
    y = np.array([1.0, -1.0])

    def at(*alpha, weights=None):
        return Values(np.zeros(2), 0.0, y, alpha=np.array(alpha), weights=weights)

    with pytest.raises(ValueError, match="leaves the box"):
        HINGE.gap(at(3.0, 0.0), 1.0)
    HINGE.check(at(3.0, 0.0, weights=np.array([4.0, 1.0])), 1.0, NO_OFFSET)
    with pytest.raises(ValueError, match="y·alpha = 0"):
        HINGE.gap(at(1.0, 0.0), 1.0)
    with pytest.raises(ValueError, match="needs multipliers"):
        HINGE.gap(Values(np.zeros(2), 0.0, y), 1.0)
    for name, parameter, alpha, wrong in (
        ("nu-svc", 0.5, (0.2, 0.2), "at least nu"),
        ("nu-svc", 0.5, (0.5, 0.3), "y·alpha = 0"),
        ("nu-svc", 0.5, (0.6, 0.6), "leaves the box"),
        ("one-class", 0.8, (0.3, 0.3), "sum up to 1"),
        ("one-class", 0.8, (0.3, 0.7), "leaves the box"),
        ("svdd", 0.7, (0.3, 0.3), "sum up to 1"),
        ("svdd", 0.6, (0.3, 0.7), "leaves the box"),
    ):
        with pytest.raises(ValueError, match=wrong):
            PROBLEMS[name].check(at(*alpha), parameter)
        PROBLEMS[name].check(at(0.5, 0.5), parameter)
    # The bounds themselves are feasible.
    PROBLEMS["one-class"].check(at(0.375, 0.625), 0.8)
    PROBLEMS["svdd"].check(at(0.4, 0.6), 0.6)


def qp(quadratic, linear_term, high, total, at_least, y=None):
    """Return the minimiser of 1/2 a'Qa + q'a in a box under a bound of the sum, by Clarabel."""
    n = len(linear_term)
    # In units in which the box is [0, 1].
    quadratic, linear_term, total = high * quadratic, np.asarray(linear_term), total / high
    # Rows A and bounds b of A a + s = b: s = 0 first, s >= 0 after it.
    equalities = [] if y is None else [y]
    A = np.vstack([*equalities, -np.ones(n), np.eye(n), -np.eye(n)])
    b = np.concatenate([[0.0] * len(equalities), [-total], np.ones(n), np.zeros(n)])
    n_equal = len(equalities) + (0 if at_least else 1)
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(len(b) - n_equal)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    found = clarabel.DefaultSolver(
        csc_matrix(np.triu(quadratic)),
        linear_term,
        csc_matrix(A),
        b,
        cones,
        settings,
    ).solve()
    return high * np.clip(found.x, 0.0, 1.0)


def kernel_matrix(n):
    X, labels = make_problem(seed=5, n=n, d=3, density=1.0)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-2.0 * distances), labels.astype(float)


@pytest.mark.parametrize("free", [True, False])
def test_nu_svc_has_no_gap_at_its_optimum(free):
    K, y = kernel_matrix(24)
    nu, Q = 0.4, K * np.outer(y, y)
    alpha = qp(Q, np.zeros(24), 1.0 / 24, nu, at_least=True, y=y if free else None)
    inner = np.where((alpha > 1e-5) & (alpha < 1.0 / 24 - 1e-5))[0]
    g = K @ (y * alpha)
    # y_i (g_i + b) = rho on the margin: two unknowns, or one.
    columns = np.column_stack([np.ones(len(inner)), -y[inner]])[:, : 2 if free else 1]
    found = np.linalg.lstsq(columns, y[inner] * g[inner], rcond=None)[0]
    rho, b = found[0], found[1] if free else 0.0
    problem = PROBLEMS["nu-svc"]
    values = Values(g + b, float(alpha @ Q @ alpha), y, alpha=alpha, rho=float(rho))
    offset = FREE if free else NO_OFFSET
    scale = abs(problem.dual(values, nu))
    assert rho > 0.0
    primal, dual = problem.primal(values, nu), problem.dual(values, nu)
    assert abs(primal - dual) <= 1e-6 * scale
    assert problem.objective_id(offset) == ("nu-svc", offset)
    for change in (0.9, 1.1):
        worse = Values(g + b, values.square, y, rho=change * float(rho))
        assert problem.primal(worse, nu) > primal - 1e-9


def test_one_class_and_svdd_have_no_gap_and_are_one_model_for_a_constant_diagonal():
    K, _ = kernel_matrix(24)
    nu, C = 0.3, 1.0 / (0.3 * 24)
    alpha = qp(K, np.zeros(24), C, 1.0, at_least=False)
    inner = (alpha > 1e-5) & (alpha < C - 1e-5)
    g, square = K @ alpha, float(alpha @ K @ alpha)
    rho = float(np.mean(g[inner]))
    one_class = PROBLEMS["one-class"]
    values = Values(g - rho, square, alpha=alpha, rho=rho)
    scale = abs(one_class.dual(values, nu))
    assert abs(one_class.primal(values, nu) - one_class.dual(values, nu)) <= 1e-6 * scale
    svdd = PROBLEMS["svdd"]
    radius = 1.0 - 2.0 * rho + square
    distances = 1.0 - 2.0 * g + square
    ball = Values(radius - distances, square, alpha=alpha, rho=radius, diagonal=np.ones(len(g)))
    assert abs(svdd.primal(ball, C) - svdd.dual(ball, C)) <= 1e-6 * scale
    other = qp(2.0 * K, -np.ones(24), C, 1.0, at_least=False)
    assert np.abs(other - alpha).max() < 1e-3
    with pytest.raises(ValueError, match="needs the kernel's diagonal"):
        svdd.dual(values, C)


def test_solvers_of_one_aim_are_comparable_and_no_others():
    def objective_id(name, **params):
        return catalogue.solver(name, **params).objective_id

    assert objective_id("csvc") == objective_id("libsvm") == ("hinge", FREE)
    assert objective_id("liblinear-l1") == objective_id("svm-perf") == ("hinge", absorbed(1.0))
    assert objective_id("svm-perf", intercept_scaling=2.0) == ("hinge", absorbed(2.0))
    assert objective_id("svm-perf") != objective_id("csvc")
    assert objective_id("mn-svm") == ("half-squared-hinge", absorbed(1.0))
    assert objective_id("nl-sgd") == ("mean-hinge", NO_OFFSET)
    # hinge-no-offset is the hinge without an offset.
    assert objective_id("smo-fixed-threshold") == objective_id("svm-perf", fit_intercept=False)
    assert str(objective_id("smo-fixed-threshold")) == "hinge, offset none"
    assert str(objective_id("dcd-l2")) == "squared-hinge, offset absorbed (1)"
    assert OneVsOne(catalogue.solver("csvc")).objective_id == objective_id("csvc")
