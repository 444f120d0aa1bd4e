"""The ν-SVM's wing against libraries for QPs, scikit-learn, and problems solved on paper."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, OneClassSVM
from small_problems import make_problem, needs_jit

import svmbench
from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.nu import block_pivoting, interior, pairwise, qp_solvers
from svmbench.core.nu.box_qp import (
    UnitProblem,
    kth_largest,
    linear_minimum,
    margin,
    order_of_margin,
    restore_sum,
)
from svmbench.core.nu.path import PathSettings, _State, follow_nu, lifted

N = 20 if JIT_DISABLED else 90


def matrix(n=N, seed=0, gamma=1.0, square=1.0):
    X, y = make_problem(seed=seed, n=n, d=5)
    K = KernelFunction("rbf", gamma).between(X, X) + square
    return K * np.outer(y, y), X, y.astype(float)


def solved(problem, name="dcdm-pairwise", tol=1e-10):
    return qp_solvers.solve_by_name(problem, name=name, tol=tol, max_iter=1_000_000)


def linear_programme(d, total):
    """Minimise <d, s> by filling the smallest first, one at a time."""
    best, left = 0.0, total
    for value in sorted(d):
        best += min(1.0, left) * value
        left -= min(1.0, left)
    return best


def test_two_points_on_paper():
    # Q = [[1, 0], [0, 1]]: alpha is nu/2 each, w = (nu/2)(x1 - x2), rho = nu/2.
    model = svmbench.solver("nu-svm", nu=0.8, kernel="linear", fit_intercept=False)
    model.fit([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    assert_allclose(np.abs(model.dual_coef_), [[0.4, 0.4]])
    assert model.expansion_.rho == pytest.approx(0.4)
    assert model.objective_ == pytest.approx(-0.16)
    # At nu = 1 both are at their bound, 1/2.
    assert_allclose(
        np.abs(model.set_params(nu=1.0).fit([[1.0, 0], [0, 1]], [1, 0]).dual_coef_), 0.5
    )


def test_linear_minimum_and_order_statistics():
    rng = np.random.default_rng(0)
    for total in (0.0, 0.3, 1.0, 4.7, 9.0, 10.0):
        d = rng.normal(size=10)
        assert linear_minimum(d, total) == pytest.approx(linear_programme(d, total))
    assert linear_minimum(np.array([-1.0, 2.0, -3.0]), None) == -4.0
    assert order_of_margin(10, 4.5) == (6, 6)
    # A sum that misses an integer by a rounding is one.
    assert order_of_margin(10, 0.3 * 10) == order_of_margin(10, 3.0) == (7, 8)
    assert kth_largest(np.array([3.0, 1.0, 2.0]), 2) == 2.0
    assert kth_largest(np.zeros(3), 0) == np.inf
    assert kth_largest(np.zeros(3), 4) == -np.inf


def test_a_sum_that_rounding_moved_is_mended():
    a = np.array([0.0, 0.5, 1.0, 0.25])
    restore_sum(a, 1.8)
    assert a.sum() == pytest.approx(1.8, abs=1e-15)
    assert (a[0], a[2]) == (0.0, 1.0)


@pytest.mark.parametrize("total", [0.5, 0.12 * N, 0.5 * N, 0.77 * N, N])
@pytest.mark.parametrize("square", [0.0, 1.0])
def test_pairs_and_a_library_find_the_same_optimum(total, square):
    Q, _, _ = matrix(square=square)
    problem = UnitProblem(Q, total)
    ours, theirs = solved(problem), solved(problem, "qp")
    # At so small a sum the hulls of the classes meet, and w is 0: rounding says whether it is told.
    assert ours.reason in (("no margin", "converged") if total == 0.5 else ("converged",))
    assert problem.value(ours) == pytest.approx(problem.value(theirs), rel=1e-7, abs=1e-10)
    # The conditions themselves, by a gradient of its own.
    d, a = Q @ ours.a, ours.a
    rho = margin(ours, total)
    slack = 1e-5 * (1.0 + np.abs(d).max())
    assert a.sum() == pytest.approx(total)
    assert a.min() >= 0.0
    assert a.max() <= 1.0
    assert np.all(a[d > rho + slack] == 0.0)
    assert np.all(a[d < rho - slack] == 1.0)
    # No objective is below 0, so that the value, too, is a bound of the distance to the optimum.
    distance = min(problem.gap(ours), problem.value(ours))
    assert distance <= 1e-9 * problem.value(ours) + problem.rounding_gap()


@needs_jit
@pytest.mark.parametrize("name", ["qp-clarabel", "qp-cvxopt"])
def test_other_libraries_find_it_too(name):
    if not qp_solvers.is_library_there(name):
        pytest.skip(f"{name} is not installed")
    problem = UnitProblem(matrix()[0], 0.6 * N)
    found = solved(problem, name, tol=1e-8)
    assert problem.value(found) == pytest.approx(problem.value(solved(problem)), rel=1e-6)
    free = UnitProblem(problem.Q, None, np.full(N, -0.5))
    best = free.value(solved(free, "qp"))
    assert free.value(solved(free, name, tol=1e-8)) == pytest.approx(best, rel=1e-6)


def test_the_interior_point_method_and_newton_steps_find_it():
    for total in (0.4 * N, 0.6 * N):
        problem = UnitProblem(matrix(gamma=2.0)[0], total)
        best = problem.value(solved(problem, "qp"))
        for found in interior.solve_interior(problem, gap=1e-9):
            assert problem.value(found) == pytest.approx(best, rel=1e-4, abs=problem.rounding_gap())
            pairwise.solve_pairwise(problem, found, tol=1e-9, max_iter=100_000)
            assert problem.value(found) == pytest.approx(best, rel=1e-6, abs=problem.rounding_gap())


@pytest.mark.parametrize("gamma", [0.02, 2.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_many_at_once_reach_the_optimum_and_never_rise(gamma, share):
    """With gamma 0.02 the margin is nearly 0: most multipliers leave their box without a ridge."""
    problem = UnitProblem(matrix(gamma=gamma, square=0.0)[0], share * N)
    best = problem.value(solved(problem, "qp"))
    point = problem.uniform()
    value, taken = problem.value(point), []
    for ridge in (1e-13, 1e-6, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10):
        before = point.copy()
        taken.append(block_pivoting.step(problem, point, ridge)[0])
        after = problem.value(point)
        assert after <= value + problem.rounding_gap()
        assert taken[-1] or np.array_equal(before.a, point.a)
        value = after
        assert point.a.sum() == pytest.approx(problem.sum)
        assert 0.0 <= point.a.min() <= point.a.max() <= 1.0
        assert_allclose(point.v, -problem.Q @ point.a, atol=1e-9 * N)
    work = block_pivoting.run_block_pivoting(problem, point, 1e-8)
    assert 0.0 <= work <= block_pivoting.STEPS * block_pivoting.PIVOTS
    # Where the margin is nearly 0 they need nothing else; at a corner a few pairs lead on.
    assert share > 0.2 or (any(taken) and problem.value(point) <= best + problem.rounding_gap())
    pairwise.solve_pairwise(problem, point, tol=1e-9, max_iter=point.newton_steps + 50 * N)
    # Where the optimum is nearly 0 the library does not come as near to it.
    assert problem.value(point) <= (1 + 1e-6) * best + problem.rounding_gap()
    distance = min(problem.gap(point), problem.value(point))
    assert distance <= max(2e-9 * problem.value(point), 2 * problem.rounding_gap())


def test_a_step_of_many_on_paper():
    """min 1/2 |a|^2 of sum 1.5: from (1, 0.5, 0) both bounds are left, and all get 1/2."""
    problem = UnitProblem(np.eye(3), 1.5)
    point = problem.at(np.array([1.0, 0.5, 0.0]))
    assert list(block_pivoting.movable(problem, point)) == [0, 1, 2]
    assert block_pivoting.step(problem, point, 1e-13)[0]
    assert_allclose(point.a, 0.5)
    # A ridge of the mean diagonal halves the way.
    point = problem.at(np.array([1.0, 0.5, 0.0]))
    assert block_pivoting.step(problem, point, 1.0)[0]
    assert_allclose(point.a, [0.75, 0.5, 0.25])
    # What crosses a bound is put on it, and the others take what it leaves.
    problem = UnitProblem(np.diag([0.1, 1.0, 1.0]), 2.0)
    point = problem.at(np.array([0.8, 0.7, 0.5]))
    assert block_pivoting.step(problem, point, 1e-13)[0]
    assert_allclose(point.a, [1.0, 0.5, 0.5])
    # At the optimum nothing moves.
    block_pivoting.step(problem, point, 1e-13)
    assert_allclose(point.a, [1.0, 0.5, 0.5])
    # A change of the sum raises the objective here, and the step is taken.
    problem = UnitProblem(np.diag([0.1, 1.0, 1.0]), 2.4)
    assert block_pivoting.step(problem, point, 1e-13, 0.4)[0]
    assert_allclose(point.a, [1.0, 0.7, 0.7])


def test_a_step_of_many_without_a_sum_on_paper():
    """min 1/2 a'Qa + q'a: Q a = -q among the free ones, and 1 where that leaves the box."""
    Q = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    problem = UnitProblem(Q, None, np.array([-1.0, -1.0, -3.0]))
    point = problem.at(np.array([0.9, 0.1, 0.5]))
    assert list(block_pivoting.movable(problem, point)) == [0, 1, 2]
    assert block_pivoting.step(problem, point, 1e-13)[0]
    assert_allclose(point.a, [1 / 3, 1 / 3, 1.0])
    assert_allclose(point.v, [0.0, 0.0, 2.0], atol=1e-12)
    # The margin is 0: a multiplier of 0 moves only if its gradient is below 0.
    problem = UnitProblem(np.eye(3), None, np.array([-0.5, 0.5, -0.2]))
    point = problem.at(np.array([0.0, 0.0, 0.4]))
    assert list(block_pivoting.movable(problem, point)) == [0, 2]


def test_of_too_many_the_free_ones_and_the_farthest_are_selected(monkeypatch):
    monkeypatch.setattr(block_pivoting, "SELECTED", 1)
    # d = (0.5, 0.5, 0.1, 0.3, 0.9): the margin is 0.5.
    problem = UnitProblem(np.eye(5), 2.0, np.array([0.0, 0.0, 0.1, 0.3, -0.1]))
    point = problem.at(np.array([0.5, 0.5, 0.0, 0.0, 1.0]))
    chosen = block_pivoting.movable(problem, point)
    assert list(chosen) == [0, 1, 2, 3, 4]
    assert list(block_pivoting.select(problem, point, chosen)) == [0, 1, 2]
    # Where no sum is kept the margin is 0, and the last one is the farthest from it.
    free_sum = UnitProblem(np.eye(5), None, problem.linear)
    assert list(block_pivoting.select(free_sum, point, chosen)) == [0, 1, 4]
    # All of them have room for one more only, whatever `SELECTED` is.
    monkeypatch.setattr(block_pivoting, "SELECTED", 3)
    monkeypatch.setattr(block_pivoting, "MOST", 3)
    assert list(block_pivoting.select(free_sum, point, chosen)) == [0, 1, 4]
    # Of more free ones than a step can move, those at equal distances.
    point = problem.at(np.array([0.5, 0.5, 0.4, 0.4, 0.2]))
    assert list(block_pivoting.select(problem, point, chosen)) == [0, 2, 4]


@needs_jit
@pytest.mark.parametrize(("n", "most", "selected"), [(200, 60, 40), (400, 150, 10)])
def test_more_multipliers_than_fit_in_a_step_are_moved_in_part(monkeypatch, n, most, selected):
    """Steps of a part of the movable ones need no interior-point method, and few pairs.

    In the second case the solution has some 75 free ones, many more than are selected at bounds:
    they must move together.
    """

    def refuse(*args, **kwargs):
        raise AssertionError("not needed here")

    problem = UnitProblem(matrix(n=n, gamma=0.02, square=0.0)[0], 0.1 * n)
    best = problem.value(solved(problem, tol=1e-8))
    monkeypatch.setattr(interior, "solve_interior", refuse)
    monkeypatch.setattr(block_pivoting, "MOST", most)
    monkeypatch.setattr(block_pivoting, "SELECTED", selected)
    sizes, theirs = [], block_pivoting._direction
    monkeypatch.setattr(
        block_pivoting, "_direction", lambda H, *rest: sizes.append(len(H)) or theirs(H, *rest)
    )
    found = solved(problem, tol=1e-8)
    assert found.gap <= max(1e-8 * problem.value(found), problem.rounding_gap())
    assert problem.value(found) == pytest.approx(best, rel=1e-6, abs=problem.rounding_gap())
    assert found.steps <= 30 * n
    assert found.selected_steps > 0
    assert max(sizes) <= most


@needs_jit
def test_a_c_svm_whose_pairs_do_not_converge_moves_many_at_once(monkeypatch):
    """With a large C and a wide kernel, pairs alone would end in the interior-point method."""

    def refuse(*args, **kwargs):
        raise AssertionError("not needed here")

    monkeypatch.setattr(interior, "solve_interior", refuse)
    n = 200
    problem = UnitProblem(matrix(n=n, gamma=0.02, square=0.0)[0], None, np.full(n, -1e-4))
    found = solved(problem, tol=1e-8)
    assert found.reason == "converged"
    assert problem.gap(problem.at(found.a)) <= 2e-8 * abs(problem.value(found))
    assert 0 < found.newton_steps <= 250
    assert found.steps <= 3 * pairwise.MOST_PAIRS * n


@needs_jit
def test_many_at_once_stop_by_the_objective_that_they_reach():
    problem = UnitProblem(matrix(n=200, gamma=0.2, square=0.0)[0], 20.0)
    point = problem.uniform()
    first = problem.value(point)
    block_pivoting.run_block_pivoting(problem, point, 1e-6)
    # The gap that the first objective allows would leave it far from the optimum.
    assert problem.value(point) < 1e-4 * first
    assert problem.gap(point) <= max(1e-6 * problem.value(point), problem.rounding_gap())


@needs_jit
def test_hard_problems_need_neither_a_million_pairs_nor_an_interior_point_method(monkeypatch):
    """Where the margin is nearly 0 and Q nearly singular, pairs alone would take millions."""

    def refuse(*args, **kwargs):
        raise AssertionError("not needed here")

    monkeypatch.setattr(interior, "solve_interior", refuse)
    for gamma in (0.02, 0.2, 2.0):
        problem = UnitProblem(matrix(n=200, gamma=gamma, square=0.0)[0], 20.0)
        found = solved(problem, tol=1e-8)
        assert found.gap <= max(1e-8 * problem.value(found), problem.rounding_gap())
        assert found.steps <= 20 * 200
        assert 0 < found.newton_steps <= 250


@needs_jit
def test_hard_problems_fall_back_on_it(monkeypatch):
    """Where steps of many don't reach the gap, the interior-point method does."""
    monkeypatch.setattr(pairwise.block_pivoting, "run_block_pivoting", lambda *args: 1e9)
    asked = []
    theirs = interior.solve_interior
    monkeypatch.setattr(
        interior, "solve_interior", lambda *a, **k: asked.append(k) or theirs(*a, **k)
    )
    problem = UnitProblem(matrix(n=200, gamma=0.02, square=0.0)[0], 12.0)
    found = solved(problem, tol=1e-8)
    assert asked
    assert found.gap <= max(1e-8 * problem.value(found), problem.rounding_gap())
    assert found.newton_steps > 0
    assert problem.gap(problem.at(found.a)) <= max(
        1e-7 * problem.value(found), 2 * problem.rounding_gap()
    )


def printed_dcdm(Q, total, near, epsilon, sweeps):
    """Algorithm 2 step by step, in the scale 0 … 1, from equal multipliers."""
    n = len(Q)
    a = np.full(n, total / n)
    for _ in range(sweeps):
        before = a.copy()
        for i in range(n):
            G = Q[i] @ a
            least_of_i = max(0.0, total - (a.sum() - a[i]))
            if a[i] - least_of_i < near:
                projected = min(G, 0.0)
            elif 1.0 - a[i] < near:
                projected = max(G, 0.0)
            else:
                projected = G
            if abs(projected) > epsilon:
                a[i] = min(1.0, max(a[i] - projected / Q[i, i], 0.0, least_of_i))
        if np.array_equal(a, before):
            break
    return a


@pytest.mark.parametrize(
    ("tol", "epsilon", "sweeps"),
    [(1e-2, 1e-4, 1), (1e-2, 1e-4, 3), (1e-2, 1e-4, 500), (1e-6, 1e-8, 500)],
)
def test_dcdm_is_the_printed_one_step_by_step(tol, epsilon, sweeps):
    Q, _, _ = matrix(n=30 if not JIT_DISABLED else 12, square=0.0)
    n = len(Q)
    problem = UnitProblem(Q, 0.4 * n)
    point = problem.uniform()
    pairwise.solve_dcdm(problem, point, tol=tol, max_iter=sweeps * n)
    theirs = printed_dcdm(Q, 0.4 * n, epsilon, epsilon, sweeps)
    assert_allclose(point.a, theirs, atol=min(1e-9, 0.01 * epsilon))


def test_dcdm_moves_on_where_epsilon_is_smaller():
    Q, _, _ = matrix(n=30 if not JIT_DISABLED else 12, square=0.0)
    n = len(Q)
    coarse, fine = (printed_dcdm(Q, 0.4 * n, epsilon, epsilon, 500) for epsilon in (1e-4, 1e-8))
    assert not np.allclose(coarse, fine, atol=1e-6)


def test_an_objective_of_no_more_than_rounding_ends_the_search():
    # One point with both labels: w = 0 at (1/2, 1/2). Beside it the gap is linear in w, 2e-9, and
    # the objective quadratic, 2e-18.
    problem = UnitProblem(np.array([[1.0, -1.0], [-1.0, 1.0]]), 1.0)
    point = problem.at(np.array([0.5 + 1e-9, 0.5 - 1e-9]))
    assert problem.reaches(point, problem.target(point, 1e-6))
    assert point.gap > 1e6 * problem.rounding_gap()
    assert problem.reason(point, 1e-6) == "no margin"
    # With a linear term the optimum may be below 0, and the gap alone says how far.
    with_term = UnitProblem(problem.Q, 1.0, np.array([1e-9, -1e-9]))
    point = with_term.at(point.a)
    assert not with_term.reaches(point, with_term.rounding_gap())


@needs_jit
def test_a_path_scales_solutions_without_a_margin():
    rng = np.random.default_rng(0)
    X, y = rng.random((120, 2)), np.repeat([1.0, -1.0, 1.0], 40)
    X[40:80] = X[:40]
    # Two thirds of the samples are points with both labels: they fill any nu up to 2/3 with w = 0.
    Q = np.ascontiguousarray(KernelFunction("rbf", 1.0).between(X, X) * np.outer(y, y))
    # Below a sum of 1 nothing that is scaled leaves the box, whichever of the solutions is found.
    totals = [0.5, 0.7, 0.95, 36.0, 96.0]
    settings = PathSettings(screen="none", tol=1e-6)
    found = [step.point for step in follow_nu(Q, totals, settings)]
    assert [point.reason for point in found] == 4 * ["no margin"] + ["converged"]
    for point, total in zip(found, totals, strict=True):
        assert point.a.sum() == pytest.approx(total)
        assert 0.0 <= point.a.min() <= point.a.max() <= 1.0
    for point in found[:4]:
        assert 0.5 * point.a @ Q @ point.a <= 1e-14 * point.a.sum() ** 2
    assert [point.steps + point.newton_steps for point in found[1:3]] == [0, 0]
    best = solved(UnitProblem(Q, totals[-1]), "qp")
    assert 0.5 * found[-1].a @ Q @ found[-1].a == pytest.approx(-0.5 * best.a @ best.v, rel=2e-6)


@needs_jit
def test_steps_of_a_selection_do_not_pay_for_a_step_of_all(monkeypatch):
    """The step to the next sum moves all only where that takes no longer than the last solution."""
    Q = matrix(n=1000, gamma=100.0, square=0.0)[0]
    point, counts = UnitProblem(Q, 300.0).uniform(), []
    for most, selected in ((500, 50), (5000, 1250)):
        monkeypatch.setattr(block_pivoting, "MOST", most)
        monkeypatch.setattr(block_pivoting, "SELECTED", selected)
        monkeypatch.setattr(block_pivoting, "STEPS", 2)
        solution = point.copy()
        block_pivoting.run_block_pivoting(UnitProblem(Q, 300.0), solution, 1e-6)
        assert solution.newton_steps > 0
        solution.a[:], solution.v[:] = point.a, point.v  # all of them free
        state = _State(solution)
        state.store(solution)
        next_point = lifted(UnitProblem(Q, 301.0), solution, state.forecast_s(1000))
        assert next_point.a.sum() == pytest.approx(301.0)
        counts.append(next_point.newton_steps)
    assert counts[0] == 0
    assert counts[1] > 0


@needs_jit
@pytest.mark.parametrize("screen", ["none", "srbo", "srbo-descent"])
def test_a_path_looks_ahead_where_w_is_0(screen):
    rng = np.random.default_rng(1)
    X, y = rng.random((120, 2)), np.repeat([1.0, -1.0, 1.0], 40)
    X[40:80] = X[:40]
    # 40 points with both labels fill sums up to 80 with w = 0; no other samples are equal.
    Q = np.ascontiguousarray(KernelFunction("rbf", 200.0).between(X, X) * np.outer(y, y))
    totals = [0.5, *range(2, 80, 2), 80.0, 80.5, 90.0]
    steps = list(follow_nu(Q, totals, PathSettings(screen=screen, tol=1e-8)))
    assert [step.point.reason for step in steps] == 41 * ["no margin"] + 2 * ["converged"]
    counts = [step.point.steps + step.point.newton_steps for step in steps]
    # All but a few sums take no step at all; the others count those of lifts to later sums.
    assert counts[0] > 0
    assert sum(count > 0 for count in counts[:41]) <= 8
    for total, step in list(zip(totals, steps, strict=True))[1::6]:
        point, problem = step.point, UnitProblem(Q, total)
        assert point.a.sum() == pytest.approx(total)
        assert 0.0 <= point.a.min() <= point.a.max() <= 1.0
        assert_allclose(point.v, -Q @ point.a, atol=1e-12 * len(y))
        whole = solved(problem, tol=1e-8)
        best = solved(problem, "qp", tol=1e-8)
        value = problem.value(point)
        assert value == pytest.approx(
            problem.value(whole), rel=2e-8, abs=2 * problem.rounding_gap()
        )
        assert value <= (1 + 1e-7) * problem.value(best) + problem.rounding_gap()
        assert step.point.reason == whole.reason


@needs_jit
def test_dcdm_stalls_where_pairs_go_on():
    Q, X, y = matrix()
    problem = UnitProblem(Q, 0.5 * N)
    stalled, best = solved(problem, "dcdm"), solved(problem)
    assert stalled.reason == "stalled"
    assert problem.value(stalled) > 1.05 * problem.value(best)
    with pytest.warns(ConvergenceWarning, match="as Algorithm 2 is printed"):
        svmbench.solver("nu-svm", nu=0.5, gamma=1.0, solver="dcdm").fit(X, y)
    # The one-class problem starts where nothing can move at all: all gradients are positive.
    kernel = KernelFunction("rbf", 1.0).between(X, X)
    still = solved(UnitProblem(kernel, 0.5 * N), "dcdm")
    assert (still.steps, still.reason) == (0, "stalled")


@needs_jit
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_c_svm_bounded_is_the_svc_without_an_equality_constraint(kernel):
    X, y = make_problem(n=80, d=4)
    parameters = {"C": 3.0, "kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    for fit_intercept in (True, False):
        models = [
            svmbench.solver("c-svm-bounded", tol=1e-8, solver=solver, **parameters).set_params(
                fit_intercept=fit_intercept, max_iter=1_000_000
            )
            for solver in ("dcdm-pairwise", "dcdm", "qp")
        ]
        values = [model.fit(X, y).objective_ for model in models]
        assert_allclose(values, values[0], rtol=1e-5)
        assert models[0].dual_objective_ == pytest.approx(values[0], rel=1e-6)
    twin = svmbench.solver("csvc", fit_intercept=False, **parameters, tol=1e-8).fit(X, y)
    assert values[0] == pytest.approx(twin.objective_, rel=1e-6)


@needs_jit
@pytest.mark.parametrize("apart", [0.8, 4.0])
@pytest.mark.parametrize(
    ("kernel", "C"),
    [("linear", 1e-4), ("linear", 1e8), ("rbf", 1e4), ("rbf", 1e8), ("poly", 1e4), ("poly", 1e8)],
)
@pytest.mark.parametrize("solver", ["dcdm-pairwise", "dcdm", "qp"])
def test_c_svm_bounded_ends_within_its_gap_or_says_that_it_does_not(kernel, C, solver, apart):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(160) < 0.5, 1, -1)
    X = rng.normal(size=(160, 5))
    X[:, 0] += apart * y
    model = svmbench.solver(
        "c-svm-bounded", C=C, kernel=kernel, degree=5, coef0=1.0, solver=solver, max_iter=200_000
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    # Weak duality: the optimum is between the two, and neither is taken from the solver.
    alpha = np.zeros(160)
    alpha[model.support_] = model.dual_coef_[0] * y[model.support_]
    assert 0.0 <= alpha.min() <= alpha.max() <= C
    Q = (model.function.between(X, X) + 1.0) * np.outer(y, y)
    d = Q @ alpha
    dual = alpha.sum() - 0.5 * alpha @ d
    primal = 0.5 * alpha @ d + C * np.maximum(0.0, 1.0 - d).sum()
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-6, abs=1e-9 * primal)
    if model.stop_reason_ == "converged":
        # A library is allowed ten times the gap; see ``quadratic``.
        tol = model.tol if solver != "qp" else 10.0 * model.tol
        assert primal - dual <= 1.5 * tol * dual
    else:
        assert any(issubclass(w.category, ConvergenceWarning) for w in said)
    if solver == "dcdm-pairwise":
        assert primal - dual <= 1e-3 * dual


@needs_jit
def test_oc_svm_is_scikit_learns():
    X, _ = make_problem(n=100, d=4)
    for nu in (0.1, 0.505, 0.9):
        ours = svmbench.solver("oc-svm", nu=nu, gamma=0.7, tol=1e-10).fit(X)
        theirs = OneClassSVM(nu=nu, gamma=0.7, tol=1e-10).fit(X)
        scale = np.abs(ours.decision_function(X)).max()
        assert_allclose(
            ours.decision_function(X), theirs.decision_function(X) / (nu * 100), atol=1e-5 * scale
        )
        assert ours.objective_ == pytest.approx(ours.dual_objective_, rel=1e-8)
        by_library = svmbench.solver("oc-svm", nu=nu, gamma=0.7, solver="qp", tol=1e-8).fit(X)
        assert by_library.objective_ == pytest.approx(ours.objective_, rel=1e-6)


@needs_jit
def test_nu_svm_classifies_as_the_c_svm_at_its_own_C():
    X, y = make_problem(n=80, d=4)
    ours = svmbench.solver("nu-svm", nu=0.4, gamma=1.0, tol=1e-10, fit_intercept=False).fit(X, y)
    rho = ours.expansion_.rho
    twin = svmbench.solver("csvc", C=1 / (80 * rho), gamma=1.0, tol=1e-9, fit_intercept=False)
    assert_allclose(ours.decision_function(X) / rho, twin.fit(X, y).decision_function(X), atol=1e-4)
    # A free offset is another model.
    assert not np.allclose(SVC(gamma=1.0).fit(X, y).intercept_, 0.0)


def test_a_permuted_and_a_flipped_problem():
    X, y = make_problem(n=24, d=4)
    order = np.random.default_rng(0).permutation(24)
    there = svmbench.solver("nu-svm", nu=0.4, tol=1e-9).fit(X, y)
    back = svmbench.solver("nu-svm", nu=0.4, tol=1e-9).fit(X[order], -y[order])
    scale = np.abs(there.decision_function(X)).max()
    assert_allclose(back.decision_function(X), -there.decision_function(X), atol=1e-4 * scale)


def test_identical_points_a_singular_matrix_and_a_margin_of_zero():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    y = np.array([1, 1, 1, -1, -1, -1])
    model = svmbench.solver("nu-svm", nu=0.5, kernel="linear", tol=1e-9).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.objective_ == pytest.approx(model.dual_objective_, abs=1e-12)
    # The same point in both classes: w is 0 as long as nu allows it, and so is rho.
    twice = svmbench.solver("nu-svm", nu=0.5, kernel="rbf", gamma=1.0)
    twice.fit(np.zeros((4, 1)), [1, -1, 1, -1])
    assert twice.expansion_.rho == 0.0
    assert twice.objective_ == pytest.approx(0.0, abs=1e-15)
    assert_allclose(twice.decision_function([[3.0]]), 0.0, atol=1e-15)


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.5, np.nan, "half"])
@pytest.mark.parametrize("name", ["nu-svm", "srbo-nu-svm", "oc-svm"])
def test_what_nu_can_not_be(name, nu):
    X, y = make_problem(n=20, d=3)
    with pytest.raises(ValueError, match="nu must be a number above 0 and at most 1"):
        svmbench.solver(name, nu=nu).fit(X, y)


def test_a_library_is_looked_for_once():
    qp_solvers._find_spec.cache_clear()
    for _ in range(3):
        qp_solvers.is_library_there("qp")
    assert qp_solvers._find_spec.cache_info().misses == 1


def test_what_else_is_refused(monkeypatch):
    X, y = make_problem(n=20, d=3)
    with pytest.raises(ValueError, match="solver must be one of dcdm-pairwise"):
        svmbench.solver("nu-svm", solver="quadprog").fit(X, y)
    with pytest.raises(ValueError, match="screen must be one of none, srbo"):
        svmbench.solver("srbo-nu-svm", screen="safe").fit(X, y)
    with pytest.raises(ValueError, match="screen must be one of none, dvi"):
        svmbench.solver("c-svm-bounded", screen="srbo").fit(X, y)
    with pytest.raises(ValueError, match="can't have the sum 30"):
        UnitProblem(np.eye(20), 30.0)
    monkeypatch.setattr(qp_solvers, "is_library_there", lambda _: False)
    with pytest.raises(ValueError, match=r"needs the package piqp.*'\.\[qp\]'"):
        svmbench.solver("nu-svm", solver="qp").fit(X, y)


@pytest.mark.parametrize("name", ["nu-svm", "c-svm-bounded", "oc-svm", "srbo-nu-svm"])
def test_a_matrix_beyond_the_budget_is_refused_with_what_would_do(name):
    X, y = make_problem(n=400, d=2)
    too_much = r"400 samples takes 2 MiB, cache_mb=1 allows less: set cache_mb=2, .* most 362 s"
    with pytest.raises(ValueError, match=too_much):
        svmbench.solver(name, cache_mb=1).prepare(X, y)
    svmbench.solver(name, cache_mb=2).prepare(X, y)
    svmbench.solver(name, cache_mb=1).prepare(X[:362], y[:362])


@pytest.mark.parametrize("name", ["nu-svm", "c-svm-bounded", "oc-svm", "srbo-nu-svm"])
def test_the_default_budget_holds_two_digits_of_mnist(name):
    assert svmbench.solver(name).cache_mb >= 13_000**2 * 8 / MIB


def test_a_matrix_that_is_handed_in_is_left_alone():
    _, X, y = matrix(n=20)
    K = KernelFunction("rbf", 1.0).between(X, X)
    kept = K.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svmbench.solver("nu-svm").solve(KernelSource.precomputed(K), y)
    assert np.array_equal(K, kept)


def test_other_kernel_parameters_make_another_matrix():
    X, y = make_problem(n=20, d=3)
    model = svmbench.solver("nu-svm", gamma=0.5)
    data = model.prepare(X, y)
    model.gamma_ = 2.0
    again = model.train(data).expansion_.coefficients
    assert_allclose(again, svmbench.solver("nu-svm", gamma=2.0).fit(X, y).expansion_.coefficients)


@needs_jit
def test_a_path_says_where_nu_has_no_margin():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.where(rng.random(40) < 0.5, -1, 1)
    said = r"finds no margin at nu=0\.05, .* nu=0\.[78][0-9]? has one"
    values = [0.05, 0.1, 0.9]
    with pytest.warns(ConvergenceWarning, match=said) as told:
        svmbench.NuPath(nu=values, kernel="linear").fit(X, y)
    assert len(told) == 1
    for solver in (svmbench.SRBONuSVM(kernel="linear"), svmbench.NuSVM(kernel="linear")):
        data = solver.prepare(X, y)
        with pytest.warns(ConvergenceWarning, match=said):
            list(solver.path(data, None, "nu", values))
    solver = svmbench.NuSVC(kernel="linear")
    with pytest.warns(ConvergenceWarning, match="no margin"):
        list(solver.path(solver.prepare(X, y), None, "nu", [0.05, 0.1, 0.7]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svmbench.NuPath(nu=[0.8, 0.9], kernel="linear").fit(X, y)
