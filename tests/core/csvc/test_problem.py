"""Any box: the five problems of the pair solver against a QP solver, scikit-learn and the rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import SVC, NuSVC, OneClassSVM
from small_problems import make_problem, needs_jit

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.csvc import (
    CSVC,
    make_qp,
    solve_qp,
    solver,
    start_of_sum,
    thresholds,
    working_sets,
)
from svmbench.core.csvc.problem import up_low_sets
from svmbench.core.csvc.smo import move_variable, solve_two
from svmbench.core.csvc.solver import near_violation
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

KINDS = ("c-svc", "weighted c-svc", "one-class", "nu-svc", "no offset", "svdd")
RBF = KernelFunction("rbf", 1.3)


def box_of(kind, K, y):
    """Return the box of a problem and a feasible start."""
    n, low, high = len(y), np.minimum(y, 0.0), np.maximum(y, 0.0)
    zero = np.zeros(n)
    if kind == "c-svc":
        return make_qp(y, 3.0 * low, 3.0 * high), zero
    if kind == "weighted c-svc":
        weights = np.linspace(0.2, 5.0, n)
        return make_qp(y, weights * low, weights * high), zero
    if kind == "no offset":
        return make_qp(y, 3.0 * low, 3.0 * high, "none"), zero
    if kind == "one-class":
        return make_qp(zero, zero, np.ones(n)), start_of_sum(0.3 * n, np.ones(n))
    if kind == "svdd":
        high = np.full(n, 0.1)
        return make_qp(0.5 * np.diag(K), zero, high), start_of_sum(1.0, high)
    share = 0.4 * n / 2.0
    start = start_of_sum(share, high) - start_of_sum(share, -low)
    return make_qp(zero, low, high, (y < 0).astype(int)), start


def rules(box):
    """Return the fixed sums as rows of a matrix."""
    return np.array([(box.group == g).astype(float) for g in range(box.n_sums)]).reshape(
        box.n_sums, len(box.low)
    )


def qp(K, box, start):
    """Solve by SLSQP; what it finds free then follows from a linear system, to the last digits."""
    A = rules(box)
    answer = minimize(
        lambda b: 0.5 * b @ K @ b - box.linear @ b,
        start,
        jac=lambda b: K @ b - box.linear,
        bounds=list(zip(box.low, box.high, strict=True)),
        constraints=[LinearConstraint(A, A @ start, A @ start)] if box.n_sums else [],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    ).x
    answer = np.where(answer < box.low + 1e-6, box.low, answer)
    answer = np.where(answer > box.high - 1e-6, box.high, answer)
    free = (answer > box.low) & (answer < box.high)
    m = free.sum()
    system = np.block(
        [[K[np.ix_(free, free)], A[:, free].T], [A[:, free], np.zeros((len(A),) * 2)]]
    )
    held = np.where(free, 0.0, answer)
    right = np.concatenate([(box.linear - K @ held)[free], A @ start - A @ held])
    answer[free] = np.linalg.lstsq(system, right, rcond=None)[0][:m]
    assert np.all(answer >= box.low)
    assert np.all(answer <= box.high)
    assert violation(K, box, answer) <= 1e-9
    return answer


def violation(K, box, beta):
    """Return the largest violation of the conditions, by going through all pairs."""
    v = box.linear - K @ beta
    up, down = np.flatnonzero(beta < box.high), np.flatnonzero(beta > box.low)
    if box.n_sums == 0:
        return max(0.0, v[up].max(initial=0.0)) + max(0.0, (-v[down]).max(initial=0.0))
    return max((v[i] - v[j] for i in up for j in down if box.group[i] == box.group[j]), default=0.0)


def value(K, box, beta):
    return 0.5 * beta @ K @ beta - box.linear @ beta


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["stored", "whole", "sets"])
def test_same_solution_as_a_qp_solver(kind, way, monkeypatch):
    X, y = make_problem(n=24, d=4, density=1.0)
    y = y.astype(float)
    K = RBF.between(X, X)
    box, start = box_of(kind, K, y)
    if way == "sets":
        monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 0)
        monkeypatch.setattr(working_sets, "SET_SAMPLES", 8)
    source = KernelSource.precomputed(K) if way == "stored" else KernelSource.from_inputs(X, RBF)
    found = solve_qp(source, box, start=start, tol=1e-10)
    expected = qp(K, box, start)
    assert found.stop_reason == "converged"
    assert found.steps > 5
    assert_allclose(found.beta, expected, rtol=1e-6, atol=1e-8)
    # Where no sample can violate, the gradient may be that of float32 rows.
    exact = np.abs(found.v - (box.linear - K @ found.beta))
    free = (found.beta > box.low) & (found.beta < box.high)
    assert exact[free].max() <= 1e-9
    assert exact.max() <= (1e-9 if way == "stored" else 1e-5)
    assert_allclose(rules(box) @ found.beta, rules(box) @ start, atol=1e-12)
    assert violation(K, box, found.beta) <= 1.01e-10
    assert found.counters["updates"] == found.steps


@needs_jit
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_working_sets_shrink_to_the_same_solution(kind, tol, monkeypatch):
    X, y = make_problem(n=300, d=8)
    K = RBF.between(X, X)
    box, start = box_of(kind, K, y.astype(float))
    whole = solve_qp(KernelSource.precomputed(K), box, start=start, tol=1e-9)
    monkeypatch.setattr(solver, "FULL_MATRIX_MAX_SAMPLES", 0)
    monkeypatch.setattr(working_sets, "SET_SAMPLES", 24)
    monkeypatch.setattr(working_sets, "CUT_MAX_SHARE", 1.0)
    found = solve_qp(KernelSource.from_inputs(X, RBF), box, start=start, tol=tol, cache_mb=0.2)
    assert found.stop_reason == "converged"
    assert violation(K, box, found.beta) <= tol * (1 + 1e-6)
    excess = value(K, box, found.beta) - value(K, box, whole.beta)
    assert -1e-12 <= excess <= tol * np.abs(found.beta).sum()


@needs_jit
def test_sample_weights_as_scikit_learn_has_them():
    X, y = make_problem(n=150, d=6)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 150)
    theirs = SVC(C=2.0, gamma=1.3, tol=1e-8).fit(X, y, sample_weight=weights)
    box = make_qp(y, 2.0 * weights * np.minimum(y, 0), 2.0 * weights * np.maximum(y, 0))
    found = solve_qp(KernelSource.from_inputs(X, RBF), box, tol=1e-8)
    f = RBF.between(X, X) @ found.beta + thresholds(box, found.beta, found.v)[0]
    assert_allclose(f, theirs.decision_function(X), atol=1e-6)


@needs_jit
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class_as_scikit_learn_has_it(nu):
    X, _ = make_problem(n=150, d=6)
    theirs = OneClassSVM(nu=nu, gamma=1.3, tol=1e-8).fit(X)
    box = make_qp(np.zeros(150), np.zeros(150), np.ones(150))
    found = solve_qp(
        KernelSource.from_inputs(X, RBF), box, start=start_of_sum(nu * 150, np.ones(150)), tol=1e-8
    )
    K = RBF.between(X, X)
    ours = K @ found.beta + thresholds(box, found.beta, found.v)[0]
    assert_allclose(ours, theirs.decision_function(X), atol=1e-6 * 150)
    alpha = np.zeros(150)
    alpha[theirs.support_] = theirs.dual_coef_[0]
    assert value(K, box, found.beta) == pytest.approx(value(K, box, alpha), rel=1e-6)


@needs_jit
@pytest.mark.parametrize("nu", [0.2, 0.6])
def test_nu_svc_as_scikit_learn_has_it(nu):
    X, y = make_problem(n=150, d=6)
    theirs = NuSVC(nu=nu, gamma=1.3, tol=1e-8).fit(X, y)
    low, high = np.minimum(y, 0.0), np.maximum(y, 0.0)
    box = make_qp(np.zeros(150), low, high, (y < 0).astype(int))
    start = start_of_sum(nu * 75, high) - start_of_sum(nu * 75, -low)
    found = solve_qp(KernelSource.from_inputs(X, RBF), box, start=start, tol=1e-8)
    one, other = thresholds(box, found.beta, found.v)
    # v = -K beta is rho - b on the positive margin with its sign turned, and rho + b on the other.
    margin, b = 0.5 * (other - one), 0.5 * (one + other)
    f = (RBF.between(X, X) @ found.beta + b) / margin
    assert_allclose(f, theirs.decision_function(X), atol=1e-5)


@needs_jit
def test_bounded_nu_svm_on_a_signed_kernel():
    # min 1/2 a'Qa over sum a = nu, 0 <= a <= 1/n, with the offset absorbed: Q = yy'(K + 1).
    X, y = make_problem(n=120, d=5)
    Q = np.outer(y, y) * (RBF.between(X, X) + 1.0)
    high = np.full(120, 1.0 / 120)
    box = make_qp(np.zeros(120), np.zeros(120), high)
    found = solve_qp(KernelSource.precomputed(Q), box, start=start_of_sum(0.4, high), tol=1e-11)
    assert violation(Q, box, found.beta) <= 1.01e-11
    assert found.beta.sum() == pytest.approx(0.4, rel=1e-12)


@st.composite
def problems(draw):
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    A = rng.normal(size=(n, draw(st.integers(1, n))))
    K = A @ A.T + draw(st.sampled_from([0.0, 1e-3, 1.0])) * np.eye(n)
    low = rng.integers(-2, 1, n).astype(float)
    high = low + rng.integers(0, 3, n) * rng.random(n)
    kept = draw(st.sampled_from(["sum", "none", rng.integers(0, 3, n)]))
    box = make_qp(rng.normal(size=n), low, high, kept)
    return K, box, low + rng.random(n) * (high - low)


@settings(max_examples=20 if JIT_DISABLED else 200, deadline=None)
@given(problems())
def test_the_rules_of_every_box_hold(problem):
    K, box, start = problem
    found = solve_qp(KernelSource.precomputed(K), box, start=start, tol=1e-6, max_iter=20_000)
    assert found.stop_reason == "converged"
    assert np.all(found.beta >= box.low)
    assert np.all(found.beta <= box.high)
    assert_allclose(rules(box) @ found.beta, rules(box) @ start, atol=1e-10)
    assert violation(K, box, found.beta) <= 1.1e-6
    assert value(K, box, found.beta) <= value(K, box, start) + 1e-9


def test_boxes_that_are_none():
    zero, one = np.zeros(3), np.ones(3)
    with pytest.raises(ValueError, match=r"linear has shape \(3,\), high has shape \(2,\)"):
        make_qp(zero, zero, np.ones(2))
    with pytest.raises(ValueError, match="a lower bound is above its upper bound"):
        make_qp(zero, one, zero)
    with pytest.raises(ValueError, match="fixed must be 'sum', 'none' or an array"):
        make_qp(zero, zero, one, "all")
    with pytest.raises(ValueError, match="groups must be"):
        make_qp(zero, zero, one, np.array([0, -1, 1]))
    with pytest.raises(ValueError, match="upper bounds add up to 3, less than the fixed sum 4"):
        start_of_sum(4.0, one)


def test_filling_goes_from_the_first_on():
    assert start_of_sum(2.5, np.ones(4)).tolist() == [1.0, 1.0, 0.5, 0.0]
    assert start_of_sum(0.0, np.ones(2)).tolist() == [0.0, 0.0]
    assert start_of_sum(3.0, np.array([2.0, 0.0, 1.0])).tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_two_variables_in_a_rectangle(seed):
    rng = np.random.default_rng(seed)
    root, g = rng.normal(size=(2, 2)), rng.normal(size=2)
    K = root @ root.T + 0.1 * np.eye(2)
    least, most = -rng.random(2) * 2.0, rng.random(2) * 2.0
    if seed % 4 == 0:
        # Inside, the gradient vanishes.
        least, most = np.full(2, -100.0), np.full(2, 100.0)
    found = np.array(solve_two(tuple(g), (K[0, 0], K[1, 1], K[0, 1]), tuple(least), tuple(most)))
    assert np.all(found >= least)
    assert np.all(found <= most)
    # A projected step along the gradient leads back to the optimum, and from nowhere else.
    assert_allclose(np.clip(found + g - K @ found, least, most), found, atol=1e-12)


def test_a_step_to_a_bound_ends_exactly_there():
    beta, low, high = np.array([0.1, 0.7]), np.array([-0.3, -0.2]), np.array([0.8, 0.9])
    up, down = np.zeros((2, 2), dtype=np.float32)
    assert beta[0] + (high[0] - beta[0]) != high[0] or beta[1] + (low[1] - beta[1]) != low[1]
    move_variable(0, high[0] - beta[0], beta, low, high, up, down)
    move_variable(1, low[1] - beta[1], beta, low, high, up, down)
    assert beta.tolist() == [0.8, -0.2]
    assert up.tolist() == [-np.inf, 0.0]
    assert down.tolist() == [0.0, -np.inf]


def test_limits_of_one_sum_of_none_and_of_several():
    v, beta = np.array([3.0, 1.0, -1.0, -2.0]), np.array([1.0, 0.5, 0.0, 0.5])
    low, high = np.zeros(4), np.ones(4)
    # The first can only go down, the third only up.
    one = up_low_sets(make_qp(v, low, high), beta, v)
    assert (one.m, one.M, one.violation) == (1.0, -2.0, 3.0)
    none = up_low_sets(make_qp(v, low, high, "none"), beta, v - 2.0)
    assert (none.m, none.M, none.violation) == (0.0, -4.0, 4.0)
    none = up_low_sets(make_qp(v, low, high, "none"), beta, v + 3.0)
    assert (none.m, none.M, none.violation) == (4.0, 0.0, 4.0)
    two = up_low_sets(make_qp(v, low, high, np.array([0, 0, 1, 1])), beta, v)
    assert np.array_equal(two.m, [1.0, 1.0, -1.0, -1.0])
    assert np.array_equal(two.M, [1.0, 1.0, -2.0, -2.0])
    assert two.violation == 1.0


def test_only_samples_near_the_gap_are_checked():
    box = make_qp(np.zeros(5), np.zeros(5), np.ones(5))
    beta, v = np.array([0.0, 0.0, 0.5, 1.0, 1.0]), np.array([-5.0, -1.05, -1.0, -0.95, 5.0])
    assert near_violation(box, beta, v, 0.01).tolist() == [False, False, True, False, False]
    assert near_violation(box, beta, v, 0.1).tolist() == [False, True, True, True, False]


@needs_jit
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_without_a_sum_there_are_not_many_more_steps(C):
    # Of one variable alone there would be 5 to 140 times as many.
    X, y = make_problem(n=300, d=8)
    K = KernelSource.precomputed(RBF.between(X, X))
    y = y.astype(float)
    loose, tied = (
        CSVC(C=C, fit_intercept=fit_intercept).solve(K, y) for fit_intercept in (False, True)
    )
    assert loose.n_iter <= 2 * tied.n_iter
