"""csvc's stop by the duality gap, and samples left out on a matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_problems import make_problem, needs_jit, solutions

from svmbench.core.contract import problems
from svmbench.core.csvc import CSVC, make_qp, smo
from svmbench.core.csvc.problem import (
    csvc_problem,
    duality_gap,
    gap_of_problem,
    label_bounds,
    threshold,
    up_low_extremes,
)
from svmbench.core.csvc.smo import (
    CONVERGED,
    MAX_ITER,
    Bounds,
    StoppingCriteria,
    pair_steps,
)
from svmbench.core.kernels.kernels import KernelFunction, KernelSource

RBF = KernelFunction("rbf", 2.0)


def labelled(n, d=5, seed=0, flipped=0.1):
    """Return samples of two overlapping classes, with labels ±1 as floats."""
    X, y = make_problem(n=n, d=d, seed=seed)
    wrong = np.random.default_rng(seed + 1).random(n) < flipped
    return X, np.where(wrong, -y, y).astype(float)


def defined_gap(K, y, beta, b, bounds):
    """Return primal minus dual value by their definitions, term by term, in float64."""
    K = np.asarray(K, dtype=np.float64)
    square = sum(beta[i] * beta[j] * K[i, j] for i in np.flatnonzero(beta) for j in range(len(y)))
    f = [float(K[i] @ beta) + b for i in range(len(y))]
    each = zip(bounds, y, f, strict=True)
    losses = sum(C * max(0.0, 1.0 - label * value) for C, label, value in each)
    return (0.5 * square + losses) - (float(np.abs(beta).sum()) - 0.5 * square)


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_gap_is_primal_minus_dual_by_their_definitions(weighted, offset):
    X, y = labelled(20, d=3)
    rng, C = np.random.default_rng(3), 4.0
    weights = rng.uniform(0.5, 2.0, size=20) if weighted else np.ones(20)
    box = csvc_problem(y, C, offset=offset, weights=weights)
    # Far from any solution, with some multipliers at either bound.
    alpha = np.clip(rng.uniform(-0.5, 1.5, size=20), 0.0, 1.0) * C * weights
    w = X.T @ (alpha * y)
    v = y - X @ w
    low, high = box.low < alpha * y, alpha * y < box.high
    b = float(np.mean(v[low & high])) if offset else 0.0
    # The sum of y alpha is not 0 here; the definition of the dual holds where it is, or b is 0.
    if offset:
        alpha[y > 0] *= alpha[y < 0].sum() / alpha[y > 0].sum()
        alpha = np.minimum(alpha, C * weights)
        alpha[y < 0] *= alpha[y > 0].sum() / alpha[y < 0].sum()
        w = X.T @ (alpha * y)
        v = y - X @ w
        free = (alpha > 0) & (alpha < C * weights)
        b = float(np.mean(v[free]))
        assert abs(alpha @ y) < 1e-12
    primal = 0.5 * w @ w + np.sum(C * weights * np.maximum(0.0, 1.0 - y * (X @ w + b)))
    dual = alpha.sum() - 0.5 * w @ w
    assert primal - dual > 1.0
    assert gap_of_problem(box, alpha * y, v) == pytest.approx(primal - dual, rel=1e-12)
    assert defined_gap(X @ X.T, y, alpha * y, b, C * weights) == pytest.approx(primal - dual)
    if offset and not weighted:
        values = problems.linear(X, w, b, y, alpha=alpha)
        assert problems.HINGE.gap(values, C) == pytest.approx(primal - dual, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "parameter"), [("one-class", 0.3), ("svdd", 0.1)], ids=["one-class", "svdd"]
)
def test_the_gap_of_other_boxes_is_that_of_their_problems(kind, parameter):
    X, _ = labelled(20, d=3)
    K = RBF.between(X, X)
    n, zero = 20, np.zeros(20)
    if kind == "one-class":
        box, scale = make_qp(zero, zero, np.ones(n)), parameter * n
        beta = np.full(n, parameter)
        beta[0], beta[1] = 2 * parameter, 0.0
    else:
        box, scale = make_qp(0.5 * np.diag(K), zero, np.full(n, parameter)), 1.0
        beta = np.full(n, 1.0 / n)
        beta[0], beta[1] = 2.0 / n, 0.0
    v = box.linear - K @ beta
    b = float(np.mean(v[(beta > box.low) & (beta < box.high)]))
    if kind == "one-class":
        # In the problem's scale multipliers sum up to 1 and f is w.x - rho.
        rho = -b / scale
        values = problems.Values(
            f=K @ beta / scale - rho, square=beta @ K @ beta / scale**2, alpha=beta / scale, rho=rho
        )
        expected = problems.ONE_CLASS.gap(values, parameter) * scale**2
    else:
        # Half the objective, and b the half of R^2 - |a|^2.
        square = beta @ K @ beta
        radius = 2.0 * b + square
        f = radius - (np.diag(K) - 2.0 * K @ beta + square)
        values = problems.Values(
            f=f, square=square, alpha=beta, rho=radius, diagonal=np.diag(K).copy()
        )
        expected = 0.5 * problems.SVDD_BALL.gap(values, parameter)
    assert expected > 1e-3
    assert gap_of_problem(box, beta, v) == pytest.approx(expected, rel=1e-9)


def gap_of(model_or_solution, K, y, C):
    return defined_gap(
        K, y, model_or_solution.coefficients, model_or_solution.b, np.full(len(y), C)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("share", [1e-1, 1e-3])
def test_a_solution_has_the_gap_that_was_asked_for(share, fit_intercept, dtype):
    n, C = 60, 8.0
    X, y = labelled(n)
    K = RBF.between(X, X).astype(dtype)
    source = KernelSource.precomputed(K)
    model = CSVC(C=C, tol=1e-9, stop="gap", gap=share, fit_intercept=fit_intercept)
    found = model.solve(source, y)
    whole = model.set_params(stop="kkt").solve(source, y)
    assert found.stop_reason == "gap"
    assert whole.stop_reason == "converged"
    assert gap_of(found, K, y, C) <= share * C * n * (1 + 1e-9)
    assert gap_of(whole, K, y, C) <= 1e-6 * C * n
    assert found.n_iter < whole.n_iter
    # No later than at the first look at which it is as small.
    earlier = model.set_params(max_iter=max(0, found.n_iter - smo.steps_between_checks(n))).solve(
        source, y
    )
    assert gap_of(earlier, K, y, C) > share * C * n


@needs_jit
@pytest.mark.parametrize("n", [300, 900, 2300])
def test_fits_from_inputs_end_at_the_gap_too(n):
    X, y = labelled(n, d=4)
    share, C = 1e-2, 4.0
    model = CSVC(C=C, gamma=2.0, stop="gap", gap=share, tol=1e-6).fit(X, y)
    assert model.stop_reason_ == "gap"
    assert model.objective_ - model.dual_objective_ <= share * C * n * (1 + 1e-5)
    assert model.n_iter_ < CSVC(C=C, gamma=2.0, tol=1e-6).fit(X, y).n_iter_


@needs_jit
def test_a_path_has_the_gap_at_every_C():
    X, y = labelled(1200)
    K = RBF.between(X, X).astype(np.float32)
    source, values = KernelSource.precomputed(K), [0.25, 1.0, 4.0, 16.0, 64.0]
    found = solutions(CSVC(tol=1e-6, stop="gap").path(source, y, "C", values))
    whole = solutions(CSVC(tol=1e-6).path(source, y, "C", values))
    exact = K.astype(np.float64)
    for C, one, other in zip(values, found, whole, strict=True):
        f = exact @ one.coefficients + one.b
        square = one.coefficients @ (f - one.b)
        losses = C * np.maximum(0.0, 1.0 - y * f).sum()
        assert square + losses - one.alpha.sum() <= 1e-3 * C * len(y) * (1 + 1e-6)
        assert abs(one.coefficients.sum()) <= 1e-9 * one.alpha.sum()
        assert 0.0 <= (one.coefficients * y).min() <= one.alpha.max() <= C
        assert one.stop_reason == "gap"
        assert other.stop_reason == "converged"
    assert sum(one.n_iter for one in found) < 0.5 * sum(one.n_iter for one in whole)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_stop_that_never_comes_changes_no_bit(fit_intercept):
    X, y = labelled(70)
    source = KernelSource.precomputed(RBF.between(X, X))
    default = CSVC(fit_intercept=fit_intercept)
    expected = default.solve(source, y)
    for settings in ({"stop": "kkt", "gap": 0.5}, {"stop": "gap", "gap": 1e-300}):
        found = CSVC(fit_intercept=fit_intercept, **settings).solve(source, y)
        assert np.array_equal(found.coefficients, expected.coefficients)
        assert (found.b, found.n_iter, found.stop_reason) == (
            expected.b,
            expected.n_iter,
            "converged",
        )


def test_below_a_thousand_samples_a_matrix_is_solved_by_plain_pair_steps():
    X, y = labelled(80)
    K = RBF.between(X, X)
    beta, v = np.zeros(80), y.copy()
    low, high = label_bounds(y, 2.0)
    steps, _ = pair_steps(
        K, K.diagonal().copy(), Bounds(low, high), StoppingCriteria(1e-3, 10**6), beta, v
    )
    found = CSVC(C=2.0).solve(KernelSource.precomputed(K), y)
    assert np.array_equal(found.coefficients, beta)
    assert found.n_iter == steps


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_left_out_samples_are_looked_at_again(dtype):
    n, C, tol = 1500, 100.0, 1e-4
    X, y = labelled(n)
    K = KernelFunction("rbf", 0.5).between(X, X).astype(dtype)
    low, high = label_bounds(y, C)
    beta, v = np.zeros(n), y.copy()
    ends = StoppingCriteria(tol, 10**7)
    diag, one_group = K.diagonal().copy(), np.zeros(n, dtype=np.int64)
    _, reason = smo.shrinking_steps(K, diag, Bounds(low, high), ends, beta, v, one_group)
    assert reason == CONVERGED
    assert_allclose(v, y - K.astype(np.float64) @ beta, atol=1e-8)
    assert v[beta < high].max() - v[beta > low].min() <= tol
    plain, its = np.zeros(n), y.copy()
    pair_steps(K, diag, Bounds(low, high), StoppingCriteria(tol, 10**7), plain, its)
    # Some were left out: the way there was another one, and its end the same.
    assert not np.array_equal(plain, beta)
    values = [b @ y - 0.5 * b @ (y - g) for b, g in ((beta, v), (plain, its))]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    # The number of steps is a limit for all and those that take part alike, with v still right.
    beta, v = np.zeros(n), y.copy()
    ends = StoppingCriteria(tol, 5000)
    found = smo.shrinking_steps(K, diag, Bounds(low, high), ends, beta, v, one_group)
    assert found == (5000, MAX_ITER)
    assert_allclose(v, y - K.astype(np.float64) @ beta, atol=1e-8)


def test_who_stays():
    low, high = np.zeros(6), np.ones(6)
    beta = np.array([0.5, 0.0, 0.0, 1.0, 1.0, 0.25])
    # Free ones between -1 and 1; at 0 one that may rise and one that never will; the same at 1.
    v = np.array([1.0, -0.5, -1.5, 0.5, 1.5, -1.0])
    one_group = np.zeros(6, dtype=np.int64)
    part = smo.ActivePart(np.arange(6), one_group, low, high, beta, v)
    assert smo.not_shrunk(part, 1).tolist() == [True, True, False, True, False, True]
    # In a group of their own, the three at 0, 1 and 1 meet their conditions.
    part = part._replace(group=np.array([0, 0, 1, 1, 1, 0]))
    assert smo.not_shrunk(part, 2).tolist() == [True, True, False, False, False, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_newton_steps_reach_the_best_free_variables(dtype):
    X, y = labelled(40)
    K = RBF.between(X, X).astype(dtype)
    group = (y < 0.0).astype(np.int64)
    beta = np.random.default_rng(3).uniform(0.3, 0.7, 40)
    beta[:10] = 0.0
    sums = np.bincount(group, beta)
    bounds = Bounds(np.zeros(40), np.ones(40))
    v = y - K.astype(np.float64) @ beta
    value = beta @ (y + v)
    variables = beta.copy(), v.copy()
    assert smo.newton_steps(K, group, 2, bounds, variables, 1e9, 1)[0] == 1
    steps, left = smo.newton_steps(K, group, 2, bounds, (beta, v), 1e9, 100)
    # The first steps end at a bound, and the last one at the optimum of those left free.
    assert steps > 1
    assert 0.0 < left < 1e9
    assert beta @ (y + v) > value
    assert_allclose(v, y - K.astype(np.float64) @ beta, atol=1e-12)
    assert_allclose(np.bincount(group, beta), sums, rtol=1e-14)
    assert np.all((beta >= 0.0) & (beta <= 1.0) & ((np.arange(40) >= 10) | (beta == 0.0)))
    is_free = (beta > 0.0) & (beta < 1.0)
    for g in range(2):
        assert np.ptp(v[is_free & (group == g)]) < (1e-3 if dtype == np.float32 else 1e-9)
    # Without work to spend there is no step.
    assert smo.newton_steps(K, group, 2, bounds, (beta, v), 1.0, 100) == (0, 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_a_block_change_gains_at_least_as_much_as_the_step_to_the_first_bound(seed):
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(30, 3)), np.arange(30) % 2
    A, slope = RBF.between(X, X), rng.normal(size=30)
    scale = 10.0 ** (seed % 4)  # the larger, the fewer leave their bounds
    room = -scale * rng.random(30), scale * rng.random(30)
    change, first, work = smo.block_change(A, group, 2, slope, room, np.finfo(float).eps)
    assert work >= smo.NEWTON_COST * 30**3
    assert_allclose(np.bincount(group, change), 0.0, atol=1e-9 * scale)
    assert np.all((room[0] - 1e-9 * scale <= change) & (change <= room[1] + 1e-9 * scale))
    d = smo.newton_direction(A, group, slope, np.zeros(2), np.finfo(float).eps)
    t, limiting = smo.first_bound(d, room)
    assert t == np.min(np.where(d > 0.0, room[1], room[0]) / d, initial=1.0)
    least = smo.gain_of(A, slope, t * d)
    assert smo.gain_of(A, slope, change) >= least > 0.0
    assert least == pytest.approx(t * (slope @ d) - 0.5 * t * t * d @ A @ d)
    if first >= 0:
        assert (first, change[first]) == (limiting, pytest.approx(t * d[limiting]))
        return
    # All that are not on a bound have their best values.
    is_free = (change > room[0]) & (change < room[1])
    for g in range(2):
        assert np.ptp((slope - A @ change)[is_free & (group == g)]) < 1e-6


def test_some_block_changes_put_variables_on_bounds():
    rng, on_bounds = np.random.default_rng(0), 0
    for _ in range(20):
        X, slope = rng.normal(size=(30, 3)), 0.1 * rng.normal(size=30)
        room = -rng.random(30), rng.random(30)
        group, A = np.arange(30) % 2, RBF.between(X, X) + 0.5 * np.eye(30)
        change, first, _ = smo.block_change(A, group, 2, 10.0 * slope, room, np.finfo(float).eps)
        on_bounds += first < 0 and np.any((change == room[0]) | (change == room[1]))
    assert on_bounds


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("place", ["anywhere", "ends", "low", "high"])
def test_the_gap_at_the_threshold_by_its_definition(n, place):
    rng = np.random.default_rng(n)
    low, high = -rng.random(n), rng.random(n)
    at = {
        "anywhere": rng.choice([0.0, 0.3, 1.0], size=n),
        "ends": np.arange(n) % 2.0,
        "low": np.zeros(n),
        "high": np.ones(n),
    }[place]
    beta = np.where(at == 1.0, high, low + at * (high - low))
    v = rng.normal(size=n)
    is_free = (low < beta) & (beta < high)
    raised, lowered = v[beta < high], v[beta > low]
    ends = [raised.max(initial=-np.inf), lowered.min(initial=np.inf)]
    b = v[is_free].mean() if is_free.any() else np.mean([e for e in ends if np.isfinite(e)])
    expected = np.sum(np.maximum(low * (v - b), high * (v - b)) - beta * (v - b))
    found = duality_gap(low, high, beta, v, threshold(low, high, beta, v))
    assert found == pytest.approx(expected, rel=1e-12)
    top, bottom = up_low_extremes(low, high, beta, v)
    assert top == np.max(v[beta < high], initial=-np.inf)
    assert bottom == np.min(v[beta > low], initial=np.inf)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"stop": "primal"}, "stop must be 'kkt' or 'gap', got stop='primal'"),
        ({"stop": "gap", "gap": 0.0}, "gap must be a positive finite number"),
        ({"stop": "gap", "gap": np.nan}, "gap must be a positive finite number"),
    ],
)
def test_other_ends_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        CSVC(**settings).fit([[0.0], [1.0]], [0, 1])
