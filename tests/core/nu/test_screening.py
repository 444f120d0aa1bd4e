"""Safe screening: nothing settled is wrong; the rule as printed is; whole paths stay the same."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer
from small_problems import make_problem, needs_jit

import svmbench
from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.nu import c_svm, path, qp_solvers, screening
from svmbench.core.nu.box_qp import UnitProblem
from svmbench.core.nu.path import PathSettings

SAFE = ("srbo", "srbo-descent", "gap-safe")

#: On these, the rule of corollaries 2 and 3 as printed puts multipliers on a bound where they are
#: not: kernel (with the offset absorbed where it is linear), points, labels, two values of nu.
COUNTEREXAMPLES = {
    "linear": (
        KernelFunction("linear"),
        1.0,
        [[-1.3, 0.3], [1.7, -2.2], [0.8, -0.4], [1.3, -0.9], [-1.7, -0.5], [-0.2, 0.2]],
        [1, -1, -1, -1, -1, 1],
        (0.66, 0.67),
    ),
    "rbf": (
        KernelFunction("rbf", 0.5),
        0.0,
        [[0.6, -0.2], [-0.7, -0.5], [-0.5, 0.1], [0.1, 1.0], [0.2, -1.1], [2.6, -0.2], [0.5, 0.3]],
        [1, 1, -1, -1, 1, 1, -1],
        (0.59, 0.591),
    ),
}


def accurate(problem):
    return qp_solvers.solve_by_name(problem, name="dcdm-pairwise", tol=1e-12, max_iter=1_000_000)


def wrong(zero, one, a, tolerance=1e-5):
    return int(np.sum(zero & (a > tolerance)) + np.sum(one & (a < 1.0 - tolerance)))


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_the_printed_rule_is_unsafe_and_ours_is_not(name):
    function, square, X, y, nus = COUNTEREXAMPLES[name]
    X, y = np.array(X), np.array(y, dtype=float)
    assert len(X) <= 12
    Q = (function.between(X, X) + square) * np.outer(y, y)
    before, after = (UnitProblem(Q, nu * len(y)) for nu in nus)
    last, truth = accurate(before), accurate(after)
    assert after.value(truth) > 1e-3
    feasible = path.solve_for_delta(after, last, None, PathSettings(tol=1e-12))
    # The library says the same of the solution, so that nothing here rests on our own solver.
    theirs = qp_solvers.solve_by_name(after, name="qp", tol=1e-9, max_iter=1)
    assert_allclose(theirs.a, truth.a, atol=1e-4)
    printed = screening.corollary_2(after, last, feasible)
    assert wrong(*printed, truth.a, tolerance=0.5) == 1
    ball = screening.srbo_ball(after, last, feasible)
    zero, one = screening.settled(ball, screening.margin_bounds(ball, after.sum))
    assert wrong(zero, one, truth.a) == 0
    assert np.sum(zero | one) >= 4


def test_bounds_of_the_margin_on_paper():
    ball = screening.Ball(np.array([1.0, 4.0, 2.0, 3.0]), np.array([0.5, 1.5, 0.25, 0.125]), 1.0)
    # Of the lower bounds 0.5, 2.5, 1.75, 2.875 and the upper 1.5, 5.5, 2.25, 3.125 the third.
    assert screening.margin_bounds(ball, 1.5) == (1.75, 2.25)
    # Where the sum is an integer: above the second of the upper, below the third of the lower.
    assert screening.margin_bounds(ball, 2.0) == (1.75, 3.125)
    assert screening.margin_bounds(ball, 4.0) == (2.875, np.inf)
    zero, one = screening.settled(ball, (1.75, 2.25))
    assert (zero.tolist(), one.tolist()) == (
        [False, True, False, True],
        [True, False, False, False],
    )


def tiny_problems(number):
    for seed in range(number):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 12))
        X = np.round(rng.normal(size=(n, 2)), 1)
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        kernel = KernelFunction("rbf", float(rng.choice([0.5, 2.0])))
        if seed % 2:
            kernel = KernelFunction("linear")
        Q = (kernel.between(X, X) + float(rng.integers(0, 2))) * np.outer(y, y)
        first = float(np.round(rng.uniform(0.2, 0.9), 2))
        # Steps from nearly nothing to nearly all, and sums that are integers.
        second = min(1.0, first + float(rng.choice([0.001, 0.02, 0.1, 0.3])))
        if seed % 3 == 0:
            first, second = np.floor(first * n) / n, np.ceil(second * n) / n
        if 0.0 < first < second:
            yield UnitProblem(Q, first * n), UnitProblem(Q, second * n), rng


@pytest.mark.parametrize("looseness", [0.0, 1e-2, 1.0])
def test_nothing_settled_is_wrong_even_after_an_inexact_solution(looseness):
    """`looseness` mixes the last solution with another point: the radius must carry its gap."""
    settled, checked = 0, 0
    for before, after, rng in tiny_problems(12 if JIT_DISABLED else 150):
        truth = accurate(after)
        last = accurate(before)
        other = path.lifted(before, before.uniform())
        share = looseness * rng.random()
        last = before.at((1 - share) * last.a + share * other.a)
        feasible = path.lifted(after, last)
        if rng.random() < 0.5:
            feasible = path.solve_for_delta(after, last, None, PathSettings())
        for ball in (
            screening.srbo_ball(after, last, feasible),
            screening.gap_safe_ball(after, feasible),
        ):
            low, high = screening.margin_bounds(ball, after.sum)
            zero, one = screening.settled(ball, (low, high))
            d = -truth.v
            slack = 1e-7 * (1.0 + np.abs(d).max())
            assert np.all(np.abs(d - ball.centre) <= ball.reach + slack)
            if after.value(truth) > 1e-6:
                assert wrong(zero, one, truth.a) == 0
            settled += int(np.sum(zero | one))
            checked += 1
    assert checked > 10
    assert settled > 0


def test_growing_the_radius_by_less_than_the_gap_is_unsafe():
    """What the gap in the radius is for: without it a loose last solution settles wrongly."""
    mistakes = 0
    for before, after, _ in tiny_problems(20 if JIT_DISABLED else 60):
        truth = accurate(after)
        if after.value(truth) < 1e-3:
            continue
        last = path.lifted(before, before.uniform())
        feasible = path.lifted(after, last)
        centre = -0.5 * (last.v + feasible.v)
        square = 0.5 * (last.a + feasible.a) @ centre + last.a @ last.v
        reach = np.sqrt(max(0.0, square)) * np.sqrt(after.diag)
        ball = screening.Ball(centre, reach, 0.0)
        mistakes += wrong(
            *screening.settled(ball, screening.margin_bounds(ball, after.sum)), truth.a
        )
    assert mistakes > 0


@needs_jit
@pytest.mark.parametrize("screen", SAFE)
@pytest.mark.parametrize("solver", ["dcdm-pairwise", "qp"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_screened_path_is_the_unscreened_one(screen, solver, kernel, monkeypatch):
    # So few samples are not worth a test, which is what is looked at here.
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    monkeypatch.setattr(path, "MAX_FORECAST_SHARE", np.inf)
    X, y = make_problem(n=70, d=4)
    K = KernelFunction(kernel, 1.0).between(X, X) + 1.0
    Q = K * np.outer(y, y)
    totals = np.linspace(0.5, 0.95, 12) * 70
    plain = list(path.follow_nu(Q, totals, PathSettings(screen="none", tol=1e-10)))
    steps = list(path.follow_nu(Q, totals, PathSettings(solver=solver, screen=screen, tol=1e-9)))
    assert [step.screening for step in plain] == ["none"] * 12
    assert steps[0].screening == "first"
    for step, truth in zip(steps, plain, strict=True):
        problem = UnitProblem(Q, step.total)
        assert wrong(step.at_zero, step.at_one, truth.point.a) == 0
        assert problem.value(step.point) == pytest.approx(problem.value(truth.point), rel=1e-7)
        assert step.point.a.sum() == pytest.approx(step.total)
        # What the path says of its gradient is that of its multipliers.
        assert_allclose(step.point.v, -Q @ step.point.a, atol=1e-8 * 70)
    assert sum(step.n_screened for step in steps) > 0
    assert all(step.solve_s > 0.0 for step in steps)


def test_the_rest_is_the_whole_problem_with_some_multipliers_fixed():
    n = 30
    X, y = make_problem(n=n, d=3)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    problem = UnitProblem(Q, 0.6 * n)
    truth = accurate(problem)
    zero, one = truth.a == 0.0, truth.a == 1.0
    assert min(zero.sum(), one.sum(), np.sum(~zero & ~one)) >= 2
    # By this rule the whole problem's gap is not looked at again, which would mend any mistake.
    settings = PathSettings(screen="corollary-2", tol=1e-9)
    found = path.solve_remaining(problem, problem.uniform(), zero, one, settings)
    assert found.steps + found.newton_steps > 0
    assert np.all(found.a[zero] == 0.0)
    assert np.all(found.a[one] == 1.0)
    assert found.a.sum() == pytest.approx(problem.sum)
    assert found.gap <= 1e-8 * problem.value(found)
    assert problem.value(found) == pytest.approx(problem.value(truth), rel=1e-9)


@needs_jit
def test_delta_is_chosen_once_and_then_in_part():
    X, y = make_problem(n=60, d=4)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    totals = np.array([0.5, 0.52, 0.54, 0.56]) * 60
    problems = [UnitProblem(Q, total) for total in totals]
    solutions = [accurate(problem) for problem in problems]
    delta, radii = None, []
    for last, problem in zip(solutions, problems[1:], strict=False):
        feasible = path.solve_for_delta(problem, last, delta, PathSettings())
        assert feasible.a.sum() == pytest.approx(problem.sum)
        assert feasible.a.min() >= 0.0
        assert feasible.a.max() <= 1.0
        assert_allclose(feasible.v, -Q @ feasible.a, atol=1e-9 * 60)
        delta = feasible.a - last.a
        radii.append(screening.srbo_ball(problem, last, feasible).radius)
        # Any lift is feasible; the first choice is the best of all.
        lifted = screening.srbo_ball(problem, last, path.lifted(problem, last)).radius
        assert radii[-1] <= lifted * (1 + 1e-6) or len(radii) > 1


@needs_jit
def test_after_a_step_of_another_size_delta_is_chosen_anew():
    """Of neighbours at wide distances as many multipliers are screened as on the whole path."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = (X[:300] - X.min(axis=0)) / np.ptp(X, axis=0), 2.0 * y[:300] - 1.0
    Q = KernelFunction("rbf", 0.5).between(X, X) * np.outer(y, y)
    nus = np.arange(0.4, 0.9, 0.001)
    firsts = np.arange(0, len(nus) - 1, 50)
    pairs = np.sort(np.concatenate([firsts, firsts + 1]))
    settings = PathSettings(screen="srbo", tol=1e-6)
    whole = [step.n_screened for step in path.follow_nu(Q, 300 * nus, settings)]
    apart = [step.n_screened for step in path.follow_nu(Q, 300 * nus[pairs], settings)]
    expected = np.mean([whole[i] for i in firsts[1:] + 1])
    assert expected > 150
    assert np.mean(apart[3::2]) == pytest.approx(expected, rel=0.03)


@needs_jit
@pytest.mark.parametrize(("screen", "anew"), [("srbo", [1, 3, 4]), ("corollary-2", [1])])
def test_the_rule_as_printed_keeps_delta_after_any_step(screen, anew, monkeypatch):
    X, y = make_problem(n=40, d=4)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    chosen, seen = path.solve_for_delta, []

    def watched(problem, last, delta, settings):
        seen.append(delta is None)
        return chosen(problem, last, delta, settings)

    monkeypatch.setattr(path, "solve_for_delta", watched)
    nus = np.array([0.5, 0.51, 0.52, 0.6, 0.61])
    list(path.follow_nu(Q, 40 * nus, PathSettings(screen=screen)))
    assert [i for i, is_anew in enumerate(seen, start=1) if is_anew] == anew


@needs_jit
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_exact_delta_makes_the_ball_smaller_and_changes_no_solution(kernel, monkeypatch):
    X, y = make_problem(n=80, d=4)
    Q = (KernelFunction(kernel, 1.0).between(X, X) + 1.0) * np.outer(y, y)
    totals = np.linspace(0.5, 0.6, 6) * 80
    last = accurate(UnitProblem(Q, totals[0]))
    problem = UnitProblem(Q, totals[1])
    assert path.DELTA_TOL == 1e-3
    radii, values = [], []
    for tol in (1e-3, 1e-9):
        monkeypatch.setattr(path, "DELTA_TOL", tol)
        feasible = path.solve_for_delta(problem, last, None, PathSettings())
        radii.append(screening.srbo_ball(problem, last, feasible).radius)
        steps = path.follow_nu(Q, totals, PathSettings(screen="srbo"))
        values.append([step.point.a @ Q @ step.point.a for step in steps])
    assert radii[1] < radii[0]
    assert_allclose(values[1], values[0], rtol=1e-6)


@needs_jit
def test_screening_switches_itself_off_and_says_so(monkeypatch):
    X, y = make_problem(n=70, d=4)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    totals = np.linspace(0.5, 0.9, 30) * 70

    def said(solver="dcdm-pairwise"):
        settings = PathSettings(screen="srbo-descent", solver=solver)
        return [step.screening for step in path.follow_nu(Q, totals, settings)]

    # A problem of 70 is solved before it is tested; a library takes longer, so that it is.
    assert said() == ["first"] + ["off"] * 29
    assert "on" in said("qp")
    # Tested all the same, and never forecast to gain: the rests get longer.
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    monkeypatch.setattr(path, "MAX_FORECAST_SHARE", 0.0)
    rests = "".join("x" if word == "tested" else "." for word in said()[1:])
    assert rests == "x..x....x........x..........."


def test_a_path_on_which_screening_never_pays_is_the_path_without(monkeypatch):
    # Step by step, so that what it takes longer is the tests and nothing else.
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    monkeypatch.setattr(path, "MAX_FORECAST_SHARE", 0.0)
    n = 60 if JIT_DISABLED else 120
    X, y = make_problem(n=n, d=4)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    totals = np.linspace(0.2, 0.9, 8) * n
    plain = list(path.follow_nu(Q, totals, PathSettings(screen="none")))
    steps = list(path.follow_nu(Q, totals, PathSettings(screen="srbo-descent")))
    assert "tested" in [step.screening for step in steps]
    for step, same in zip(steps, plain, strict=True):
        assert np.array_equal(step.point.a, same.point.a)
        assert step.point.steps == same.point.steps
        assert step.point.newton_steps == same.point.newton_steps


@needs_jit
def test_a_value_that_is_solved_whole_has_no_screened_multipliers(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = (X[:300] - X.min(axis=0)) / np.ptp(X, axis=0), 2.0 * y[:300] - 1.0
    Q = KernelFunction("rbf", 0.5).between(X, X) * np.outer(y, y)
    totals = 300 * np.arange(0.5, 0.51, 0.001)
    settings = PathSettings(screen="srbo-descent", tol=1e-6)
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    for share, done in ((np.inf, "on"), (0.0, "tested")):
        monkeypatch.setattr(path, "MAX_FORECAST_SHARE", share)
        steps = list(path.follow_nu(Q, totals, settings))
        screened = [step.n_screened for step in steps if step.screening == done]
        assert screened
        assert all(screened) if done == "on" else not any(screened)


def test_dvi_settles_nothing_wrongly_and_much():
    X, y = make_problem(n=20 if JIT_DISABLED else 60, d=4)
    y = y.astype(float)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    settled = 0
    for C, next_C in pairwise([0.02, 0.022, 0.05, 0.3, 0.31, 4.0, 4.04]):
        problems = [UnitProblem(Q, None, np.full(len(y), -1.0 / c)) for c in (C, next_C)]
        exact, truth = (
            qp_solvers.solve_by_name(p, name="qp", tol=1e-10, max_iter=1) for p in problems
        )
        # Any point of the box will do for a last solution: the radius carries its gap.
        other = np.random.default_rng(0).random(len(y))
        for share in (0.0, 0.03, 0.3, 1.0):
            last = problems[0].at((1.0 - share) * exact.a + share * other)
            zero, one = c_svm.dvi(problems[0], last, C, next_C)
            assert wrong(zero, one, truth.a) == 0
            settled += int(np.sum(zero | one))
    assert settled > 20


@needs_jit
def test_a_path_of_C_with_dvi_is_the_one_without():
    X, y = make_problem(n=60, d=4)
    values = [0.02, 0.021, 0.022, 0.05, 0.5, 0.55]
    plain, screened = (
        svmbench.solver("c-svm-bounded", gamma=1.0, tol=1e-9, screen=screen)
        for screen in ("none", "dvi")
    )
    data = plain.prepare(X, y)
    pairs = zip(
        plain.path(data, None, "C", values),
        screened.path(screened.prepare(X, y), None, "C", values),
        strict=True,
    )
    total = 0
    for one, other in pairs:
        settled = other.statistics["screened_one"], other.statistics["screened_zero"]
        total += sum(settled)
        marks = other.solution.screened_
        assert (np.count_nonzero(marks > 0), np.count_nonzero(marks < 0)) == settled
        alpha = np.zeros(60)
        alpha[other.solution.support_] = np.abs(other.solution.dual_coef_[0])
        assert_allclose(alpha[marks < 0], 0.0)
        assert_allclose(alpha[marks > 0], other.solution.C)
        w = alpha * np.where(y > 0, 1.0, -1.0)
        square = w @ KernelFunction("rbf", 1.0).between(X, X) @ w + w.sum() ** 2
        assert other.solution.squared_norm_ == pytest.approx(square)
        value = one.solution.evaluate_objective(data).objective_
        assert other.solution.evaluate_objective(data).objective_ == pytest.approx(value, rel=1e-7)
    assert total > 60


def test_nu_path_is_in_the_papers_scale():
    X, y = make_problem(n=16 if JIT_DISABLED else 40, d=3)
    n, nus = len(y), [0.5, 0.6, 0.61]
    labels = np.where(y > 0, "yes", "no")
    whole = svmbench.NuPath(nu=nus, gamma=0.7, screen="srbo", tol=1e-9).fit(X, labels)
    K = KernelFunction("rbf", 0.7).between(X, X)
    for k, nu in enumerate(nus):
        alpha = whole.alpha_[k]
        assert alpha.sum() == pytest.approx(nu)
        assert alpha.max() <= 1.0 / n + 1e-15
        f = K @ (alpha * y) + whole.intercept_[k]
        assert_allclose(whole.decision_function(X)[:, k], f, atol=1e-10)
        # Objective and gap by the primal problem (2) itself, at the margin that is returned.
        square = alpha @ (y * f)
        assert whole.objective_[k] == pytest.approx(0.5 * square)
        primal = 0.5 * square - nu * whole.rho_[k] + np.mean(np.maximum(0, whole.rho_[k] - y * f))
        assert primal + 0.5 * square == pytest.approx(whole.gap_[k], abs=1e-10)
        assert whole.gap_[k] <= 1e-8 * whole.objective_[k] + 1e-14
    assert whole.times_.shape == (3, 3)
    assert len(whole.screening_) == len(whole.n_screened_) == 3
    said = whole.predict_path(X)
    assert said.shape == (n, 3)
    assert np.array_equal(said == "yes", whole.decision_function(X) >= 0.0)


@pytest.mark.parametrize(
    ("nu", "sentence"),
    [
        ([0.5, 0.4], "must ascend"),
        ([0.5, 0.5], "must ascend"),
        ([], "at least one value"),
        ([0.5, 1.2], "at most 1"),
    ],
)
def test_what_a_path_of_nu_can_not_be(nu, sentence):
    X, y = make_problem(n=20, d=3)
    with pytest.raises(ValueError, match=sentence):
        svmbench.NuPath(nu=nu).fit(X, y)


def test_a_path_whose_sums_are_integers_and_all_of_them():
    X, y = make_problem(n=12, d=3)
    whole = svmbench.NuPath(nu=[3 / 12, 6 / 12, 9 / 12, 1.0], gamma=1.0, screen="srbo").fit(X, y)
    assert_allclose(whole.alpha_[-1], 1 / 12)
    assert [round(float(alpha.sum()) * 12) for alpha in whole.alpha_] == [3, 6, 9, 12]


@pytest.mark.parametrize("screen", SAFE)
@pytest.mark.parametrize("settings", [{"tol": 0.5}, {"tol": 1e-2}, {"solver": "dcdm"}])
def test_a_path_of_inexact_solutions_settles_nothing_wrongly(screen, settings, monkeypatch):
    """A loose tolerance, or DCDM's stall, leaves every last solution inexact."""
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    monkeypatch.setattr(path, "MAX_FORECAST_SHARE", np.inf)
    n = 12 if JIT_DISABLED else 40
    X, y = make_problem(n=n, d=3)
    Q = (KernelFunction("rbf", 1.0).between(X, X) + 1.0) * np.outer(y, y)
    totals = np.linspace(0.5, 0.95, 10) * n
    settled, gaps = 0, []
    for step in path.follow_nu(Q, totals, PathSettings(screen=screen, **settings)):
        problem = UnitProblem(Q, step.total)
        assert wrong(step.at_zero, step.at_one, accurate(problem).a) == 0
        gaps.append(problem.gap(step.point) / problem.value(step.point))
        settled += step.n_screened
    assert settled > 0
    assert max(gaps) > 1e-4


@pytest.mark.parametrize("screen", SAFE)
def test_where_the_margin_is_zero_nothing_is_settled(screen, monkeypatch):
    """Both classes at one point: w is 0 up to nu = 1, and every multiplier is free to differ."""
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    monkeypatch.setattr(path, "MAX_FORECAST_SHARE", np.inf)
    X, y = np.zeros((8, 2)), np.tile([1, -1], 4)
    whole = svmbench.NuPath(nu=[0.25, 0.3, 0.5, 0.75, 0.9], gamma=1.0, screen=screen).fit(X, y)
    assert_allclose(whole.rho_, 0.0, atol=1e-12)
    assert_allclose(whole.objective_, 0.0, atol=1e-15)
    assert not whole.n_screened_.any()
    assert [alpha.sum() for alpha in whole.alpha_] == pytest.approx([0.25, 0.3, 0.5, 0.75, 0.9])


@pytest.mark.parametrize("screen", SAFE)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_repeated_points_and_sums_that_are_integers(screen, kernel, monkeypatch):
    """Q is singular, the margin lies between two order statistics, and multipliers are not unique.

    What is settled must be so in *some* solution: the problem among the others has the same value.
    """
    monkeypatch.setattr(path, "MIN_SOLUTION_OVER_TEST", 0.0)
    monkeypatch.setattr(path, "MAX_FORECAST_SHARE", np.inf)
    X, y = make_problem(n=8, d=2)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    Q = (KernelFunction(kernel, 1.0).between(X, X) + 1.0) * np.outer(y, y)
    totals = [10.0, 11.0, 12.0, 12.5, 15.0, 18.0, 21.0, 22.0, 24.0]
    settled = 0
    for step in path.follow_nu(Q, totals, PathSettings(screen=screen, tol=1e-10)):
        problem = UnitProblem(Q, step.total)
        best = problem.value(accurate(problem))
        assert problem.value(step.point) == pytest.approx(best, rel=1e-7, abs=1e-9)
        assert step.point.a.sum() == pytest.approx(step.total)
        settled += step.n_screened
    assert settled > 0


@pytest.mark.parametrize("name", ["srbo-nu-svm", "srbo-oc-svm"])
@pytest.mark.parametrize("values", [[0.5, 0.4], [0.3, 0.3]])
def test_solvers_refuse_a_path_that_does_not_ascend(name, values):
    X, y = make_problem(n=12, d=2)
    model = svmbench.solver(name)
    labels = () if name == "srbo-oc-svm" else (y,)
    with pytest.raises(ValueError, match="values of nu must ascend"):
        list(model.path(model.prepare(X, *labels), None, "nu", values))


@pytest.mark.parametrize(
    ("total", "left_the_box", "expected"),
    [
        (2.0, [1], [1]),  # the one that left makes up for the sum
        (2.5, [], [2, 3]),  # none left: half of the coordinates, those of the largest v
        (3.9, [], [0, 1, 2, 3]),  # half can't reach the sum: the whole problem
        (0.5, [1], [0, 1, 2, 3]),  # the others alone have a larger sum: the whole problem
    ],
)
def test_enough_is_what_left_the_box_or_half_or_the_whole_problem(total, left_the_box, expected):
    problem = UnitProblem(np.eye(4), total)
    last = problem.at(np.full(4, total / 4))
    last.v[:] = [1.0, 2.0, 3.0, 4.0]
    leaves = np.isin(np.arange(4), left_the_box)
    found = path._coordinates_to_solve_for(problem, leaves, np.full(4, 0.5), last)
    assert found.tolist() == expected
