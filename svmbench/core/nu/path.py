"""The sequential path over nu: each solution screens the next problem and is its warm start.

Problem
    min_a  1/2 a'Q a,   0 <= a_i <= 1,   e'a = total   (``box_qp`` with q = 0), for each nu. The
    sums of the multipliers, total, ascend with nu. d = Q a is the gradient; points keep v = -d.
    Lifting moves a solution to another sum, by a Newton step of its free multipliers or greedily; a
    solution with w = 0 by a factor, if it stays in the box.
Given
    Q, the sums, an inner solver, a screening rule.
Returned
    At each sum: the solution, masks of the screened multipliers, and the times of three parts
    (delta, the screening test, the solution of the remaining problem).
Reference
    Algorithm 1 and problems (18), (26) and (27) of the SRBO paper. With a the last solution, delta
    is a step to a point a + delta that is feasible at the new sum. (18) makes the radius of the
    SRBO ball (``screening``) smallest over all such delta. (27) does so, too, but keeps the last
    delta where a + delta stays in the box. (26) is the problem of the remaining
    multipliers, those that the screening test has not fixed.
Deviations
    - ``srbo``: delta as printed, by problem (18) first and (27) after it. If the coordinates that
      left the box can't reach the new sum, half of all are free: these, and the ones of smallest
      d. If that half can't reach it, all are free. (The paper's program draws at random.)
      Where a step of nu is more than twice or less than half the one before, delta is found by (18)
      again: (27) keeps most of the last delta, which belongs to another step. (Not so for
      ``corollary-2``, which is kept as printed.)
      Both problems are solved to a relative duality gap of 1e-3 (`DELTA_TOL`), not exactly: that is
      as safe and costs less, but the ball is larger, and more or fewer samples may be screened.
    - Where w = 0, every multiple in the box is a solution of its sum, and nothing is screened: the
      solution is lifted to later sums at once (`_lift_further`), and those below are its multiples.
    - ``gap-safe``: the feasible point is the last solution, lifted; there is no delta. The gap-safe
      ball (``screening``) screens.
    - ``srbo-descent``: a + delta is the last solution, lifted to the new sum and improved by a few
      pair steps. The SRBO ball and the gap-safe ball (``screening``) both screen. If the smaller
      problem, with its matrix and the test, is not forecast to be faster, the whole problem is
      solved from the lifted solution, without the pair steps. So a path on which screening never
      saves time takes the same steps as without it. `MIN_SOLUTION_OVER_TEST` and `FIRST_PAUSE`
      skip some tests.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from svmbench.core.contract.base import NO_MARGIN
from svmbench.core.csvc.smo import Bounds, StoppingCriteria, pair_steps
from svmbench.core.nu import block_pivoting, interior, pairwise, qp_solvers, screening
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, move_point, restore_sum
from svmbench.core.nu.full_matrix import ScreenedSolution
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import gather

#: Rules that a path may screen by; "corollary-2" is the paper's unsafe version.
SCREENING_RULES = ("none", "srbo", "srbo-descent", "gap-safe", "corollary-2")

#: Number of pair steps of `srbo-descent` before it screens, divided by the number of samples.
DESCENT_STEPS_PER_SAMPLE = 0.02

#: Seconds per value to gather a submatrix, and to subtract a row from a gradient. Measured once.
GATHER_S, SUBTRACT_S = 1.2e-9, 0.6e-9

#: Seconds of a screening test: a constant, and an addition per sample. Measured once.
TEST_S, TEST_S_PER_SAMPLE = 1e-4, 2e-7

#: A sum is tested only if the last solution took at least this many times as long as a test.
MIN_SOLUTION_OVER_TEST = 10.0

#: The smaller problem is solved only if its forecast time is below this share of the whole one's.
MAX_FORECAST_SHARE = 0.85

#: The forecast assumes that a solution from a warm start changes this many multipliers.
LIKELY_CHANGES = 200

#: A solution of more free multipliers than this is lifted by a step of ``block_pivoting`` only if a
#: factor is forecast to take less time than the last solution did.
MAX_FREE_UNFORECAST = 400

#: The ridge of that step, and the one where the last solution has w = 0.
LIFT_RIDGE, VANISHING_RIDGE = 1e-12, 1e-11

#: Relative duality gap of the problem of delta: any value is safe, a smaller one screens more.
DELTA_TOL = 1e-3

#: Sums without a test after a test that saved no time: doubled each time, up to the second value.
FIRST_PAUSE, LONGEST_PAUSE = 2, 16


@dataclass(frozen=True)
class PathSettings:
    """Settings of a path: solver, screening rule, tolerance."""

    solver: str = "dcdm-pairwise"  # one of ``qp_solvers.QP_SOLVERS``
    screen: str = "srbo"  # one of `SCREENING_RULES`
    # tol, max_iter: duality gap relative to the objective; largest number of steps at each sum
    tol: float = 1e-8
    max_iter: int = 10_000_000
    warm: bool = True  # whether solutions start from the last, where the solver can

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the settings in the parameters of a solver; `screen` is "none" if it has none."""
        return cls(
            solver=model.solver,
            screen=getattr(model, "screen", "none"),
            tol=float(model.tol),
            max_iter=int(model.max_iter),
        )


@dataclass
class PathStep:
    """The solution of a path at one sum, its screened multipliers and its times."""

    total: float
    # at_zero, at_one bool (n,): screened multipliers; none if the whole problem was solved
    at_zero: np.ndarray
    at_one: np.ndarray
    # ``"on"``, ``"off"`` (not tested, or w = 0 is known), ``"tested"`` (tested, and solved whole:
    # that was forecast to be faster, or corollary 2 fixes too many), ``"first"`` or ``"none"``
    screening: str = "none"
    # delta_s, screening_s, solve_s: wall time, seconds
    delta_s: float = 0.0
    screening_s: float = 0.0
    solve_s: float = 0.0
    # the solution, a copy that the path does not touch again
    point: QPPoint = field(default_factory=lambda: QPPoint(np.zeros(0), np.zeros(0)))

    @property
    def n_screened(self) -> int:
        """Number of multipliers that the rule settled."""
        return int(np.count_nonzero(self.at_zero) + np.count_nonzero(self.at_one))

    def solution(self, coefficients: np.ndarray, b: float, squared_norm: float) -> ScreenedSolution:
        """Return the step as a solution whose ``alpha'Q alpha`` is `squared_norm`."""
        point = self.point
        return ScreenedSolution(
            coefficients,
            b=b,
            n_iter=point.steps + point.newton_steps,
            stop_reason=point.reason,
            counters={
                "updates": point.steps,
                "newton_steps": point.newton_steps,
                "screened_zero": int(np.count_nonzero(self.at_zero)),
                "screened_one": int(np.count_nonzero(self.at_one)),
                "left": len(coefficients) - self.n_screened,
                "unscreened_values": int(self.screening in ("off", "tested")),
            },
            times={
                "delta_s": self.delta_s,
                "screening_s": self.screening_s,
                "solve_s": self.solve_s,
            },
            squared_norm=squared_norm,
            screening=self.screening,
            screened=np.where(self.at_zero, -1, self.at_one).astype(np.int8),
        )


@dataclass
class _State:
    """State of a path: the last solution, the last delta, and the pauses between tests."""

    point: QPPoint
    delta: np.ndarray | None = None  # (n,) or None; its sum is the last step of the sum
    # of the last solution: pair steps, Newton steps, those of a selection, multipliers inside the
    # box
    work: tuple[int, int, int, int] = (0, 0, 0, 0)
    # whether the solver is a library; its time is forecast as that of an interior-point method
    is_library: bool = False
    n_untested: int = 0  # how many of the next sums are not tested
    pause: int = FIRST_PAUSE  # how many will not be tested after the next test that saves no time
    # the largest sum for which a solution with w = 0 is known (0 without one), and this solution
    vanishes_to: float = 0.0
    vanishing: QPPoint = field(default_factory=lambda: QPPoint(np.zeros(0), np.zeros(0)))

    def store(self, point: QPPoint) -> None:
        """Store a solution and its work."""
        n_free = int(np.count_nonzero((point.a > 0.0) & (point.a < 1.0)))
        self.point = point
        self.work = (point.steps, point.newton_steps, point.selected_steps, n_free)

    def forecast_s(self, n: int) -> float:
        """Forecast the seconds of a solution of n samples: as many steps as the last one took.

        Steps of a selection count by its size: counted by all free multipliers, two short ones
        would pay for a lift that takes longer than the whole solution by pairs.
        """
        if self.is_library:
            return interior.interior_seconds(n)
        steps, newton_steps, selected_steps, n_free = self.work
        newton_steps_s = pairwise.seconds_of_newton_steps(
            n, min(n, n_free), newton_steps, selected_steps
        )
        return steps * pairwise.seconds_of_pairs(n) + newton_steps_s


def follow_nu(
    Q: np.ndarray,  # (n, n): C-ordered float64; not written to
    totals: Sequence[float],  # ascending, each above 0 and at most n
    settings: PathSettings,
) -> Iterator[PathStep]:
    """Yield the solution at each sum, in order.

    Raise ValueError if the sums do not ascend.
    """
    diag = raw(np.ascontiguousarray(Q.diagonal()))
    empty = np.zeros(len(Q), dtype=bool)
    state: _State | None = None
    last_total = 0.0
    looks_ahead = _is_warm(settings) and settings.solver == "dcdm-pairwise"
    looks_ahead = looks_ahead and settings.screen != "corollary-2"  # which is kept as printed
    for i, total in enumerate(map(float, totals)):
        if total <= last_total:
            raise ValueError("the values of nu must ascend: each solution screens the next")
        last_total = total
        problem = UnitProblem(Q, total, diag=diag)
        start = time.perf_counter()
        if state is None:
            first = _solve(problem, settings, None)
            state = _State(first, is_library=settings.solver in qp_solvers.LIBRARIES)
            state.store(first)
            step = PathStep(total, empty, empty, "none" if settings.screen == "none" else "first")
            step.solve_s = time.perf_counter() - start
        elif total <= state.vanishes_to:
            # Any multiple of a solution with w = 0 is one, and leaves nothing to screen by.
            state.point = _solve(problem, settings, lifted(problem, state.vanishing))
            step = PathStep(total, empty, empty, "none" if settings.screen == "none" else "off")
            step.solve_s = time.perf_counter() - start
        elif settings.screen == "none":
            state.store(_solve(problem, settings, _next_start(problem, state, settings)))
            step = PathStep(total, empty, empty)
            step.solve_s = time.perf_counter() - start
        elif settings.screen == "srbo-descent":
            step = _take_descent_step(problem, state, settings)
        else:
            step = _take_printed_step(problem, state, settings)
        if looks_ahead and state.point.reason == NO_MARGIN and total > state.vanishes_to:
            start = time.perf_counter()
            state.vanishing, state.vanishes_to = _lift_further(problem, state, totals[i + 1 :])
            step.solve_s += time.perf_counter() - start
        step.point = state.point.copy()
        yield step


def _is_warm(settings: PathSettings) -> bool:
    return settings.warm and settings.solver in qp_solvers.WARM_SOLVERS


def _next_start(problem: UnitProblem, state: _State, settings: PathSettings) -> QPPoint | None:
    if not _is_warm(settings):
        return None
    return lifted(problem, state.point, state.forecast_s(len(state.point.a)))


def _solve(
    problem: UnitProblem, settings: PathSettings, start: QPPoint | None, tol: float = 0.0
) -> QPPoint:
    """Solve with the inner solver, from `start` if it accepts one."""
    return qp_solvers.solve_by_name(
        problem,
        name=settings.solver,
        tol=tol or settings.tol,
        max_iter=settings.max_iter,
        start=start if _is_warm(settings) else None,
    )


def lifted(
    problem: UnitProblem,  # at the new sum
    last: QPPoint,  # not changed
    seconds: float = 0.0,  # a forecast of the time of the last solution
) -> QPPoint:
    """Move the last solution to a new sum by a step of its free multipliers, or else greedily.

    If the last solution has w = 0, so has each multiple of it: the one with the new sum is returned
    if it lies in the box.
    The point's `newton_steps` counts the factors of the step.
    """
    point = replace(last.copy(), steps=0, newton_steps=0, selected_steps=0)
    multiple = point.a * (problem.sum / float(point.a.sum()))
    if last.reason == NO_MARGIN and float(multiple.max()) <= 1.0:
        restore_sum(multiple, problem.sum)
        move_point(problem.Q, point, multiple)
        return point
    n_free = int(np.count_nonzero((point.a > 0.0) & (point.a < 1.0)))
    if (
        n_free <= MAX_FREE_UNFORECAST
        or pairwise.seconds_of_a_newton_step(len(point.a), n_free) <= seconds
    ):
        missing = problem.sum - float(point.a.sum())
        ridge = VANISHING_RIDGE if last.reason == NO_MARGIN else LIFT_RIDGE
        if block_pivoting.step(problem, point, ridge, missing)[0]:
            return point
    a = point.a.copy()
    reach_sum(a, point.v, problem.sum)
    move_point(problem.Q, point, a)
    return point


def _lift_further(
    problem: UnitProblem,
    state: _State,  # with its solution, where w = 0, whose `newton_steps` counts those of lifts too
    totals: Sequence[float],  # the next sums
) -> tuple[QPPoint, float]:
    """Find a large later sum that still has w = 0; return its solution and the sum.

    Look 1, 2, 4 … sums further until w isn't 0 or the sums end, then halve the stride; stop when
    this has taken as long as the solution did, by forecasts. Without such a later sum, return the
    present solution and sum. Solutions of all sums below are multiples of the one returned.
    """
    n = len(state.point.a)
    furthest, total, left = state.point, problem.sum, state.forecast_s(n)
    at, ahead, grows = -1, 1, True
    while ahead and left > 0.0:
        if at + ahead < len(totals):
            further = replace(problem, total=float(totals[at + ahead]))
            candidate = lifted(further, furthest, left)
            further.refresh(candidate)
            state.point.newton_steps += candidate.newton_steps
            state.point.selected_steps += candidate.selected_steps
            n_free = int(np.count_nonzero((candidate.a > 0.0) & (candidate.a < 1.0)))
            left -= pairwise.seconds_of_newton_steps(
                n, n_free, candidate.newton_steps, candidate.selected_steps
            )
            if further.vanishes(candidate):
                candidate.reason = NO_MARGIN
                furthest, total, at = candidate, further.sum, at + ahead
                ahead = 2 * ahead if grows else ahead // 2
                continue
        grows, ahead = False, ahead // 2
    return furthest, total


def reach_sum(
    a: np.ndarray,  # (n,): multipliers
    v: np.ndarray,  # (n,): ``-d``, minus the gradient
    total: float,
) -> None:
    """Raise multipliers of smallest d, or lower those of largest d, until the sum is `total`."""
    missing = total - float(a.sum())
    order = np.argsort(-v if missing > 0.0 else v, kind="stable")
    room = (1.0 - a if missing > 0.0 else a)[order]
    given = np.clip(abs(missing) - (np.cumsum(room) - room), 0.0, room)
    a[order] += given if missing > 0.0 else -given
    restore_sum(a, total)


def _take_printed_step(problem: UnitProblem, state: _State, settings: PathSettings) -> PathStep:
    """Take a step of `srbo`, `corollary-2` or `gap-safe`, by Algorithm 1.

    Find a feasible point at the new sum, screen, solve the remaining problem.
    """
    start = time.perf_counter()
    last = state.point
    if settings.screen == "gap-safe":
        feasible = lifted(problem, last, state.forecast_s(len(last.a)))
        ball = screening.gap_safe_ball(problem, feasible)
    else:
        delta = state.delta
        if delta is not None and settings.screen != "corollary-2":
            increase = problem.sum - float(last.a.sum())
            if not 0.5 * increase <= float(delta.sum()) <= 2.0 * increase:
                delta = None
        feasible = solve_for_delta(problem, last, delta, settings)
        state.delta = feasible.a - last.a
        ball = screening.srbo_ball(problem, last, feasible)
    delta_done = time.perf_counter()
    if settings.screen == "corollary-2":
        at_zero, at_one = screening.corollary_2(problem, last, feasible)
    else:
        at_zero, at_one = screening.settled(ball, screening.margin_bounds(ball, problem.sum))
    tested = time.perf_counter()
    outcome = "on"
    if np.count_nonzero(at_one) <= problem.sum <= len(at_one) - np.count_nonzero(at_zero):
        state.store(solve_remaining(problem, feasible, at_zero, at_one, settings))
    else:
        # Corollary 2 has fixed so many multipliers that the others can't reach the sum.
        outcome = "tested"
        at_zero[:], at_one[:] = False, False
        state.store(_solve(problem, settings, feasible))
    step = PathStep(problem.sum, at_zero, at_one, outcome, delta_done - start, tested - delta_done)
    step.solve_s = time.perf_counter() - tested
    return step


def solve_for_delta(
    problem: UnitProblem,  # at the new sum
    last: QPPoint,  # the solution a0 at the last sum; not changed
    delta: np.ndarray | None,  # (n,) or None
    settings: PathSettings,
) -> QPPoint:
    """Return ``a0 + delta``: by problem (18) without an old delta, by problem (27) with one."""
    # Both minimise the ball's radius^2, 1/2 (1/2 b'Q b + (Q a0)'b) + const, with b = a0 + delta.
    n = len(last.a)
    point = lifted(problem, last)
    chosen = np.arange(n)
    if delta is not None:
        kept = last.a + delta
        left_box = (kept < 0.0) | (kept > 1.0)
        chosen = _coordinates_to_solve_for(problem, left_box, np.clip(kept, 0.0, 1.0), last)
        if len(chosen) < n:
            kept[chosen] = point.a[chosen]
            part = kept[chosen]
            reach_sum(part, last.v[chosen], problem.sum - float(kept.sum() - part.sum()))
            kept[chosen] = part
            move_point(problem.Q, point, kept)
    Q = problem.Q if len(chosen) == n else gather(problem.Q, chosen, chosen, np.float64)
    part = point.a[chosen]
    linear = -last.v[chosen] - point.v[chosen] - Q @ part
    small = UnitProblem(Q, float(part.sum()), linear, constant=-0.5 * float(last.a @ last.v))
    solved = _solve(small, settings, small.at(part), tol=DELTA_TOL)
    after = point.a.copy()
    after[chosen] = solved.a
    move_point(problem.Q, point, after)
    return point


def _coordinates_to_solve_for(
    problem: UnitProblem,
    left_box: np.ndarray,  # bool (n,): where the last delta leads out of the box
    kept: np.ndarray,  # (n,): a0 plus the last delta, clipped to the box
    last: QPPoint,
) -> np.ndarray:
    """Return the coordinates that problem (27) solves for; the others keep the last delta.

    These are the coordinates that left the box if they can reach the new sum, else half of all,
    else all.
    """
    n = len(kept)
    # Those that left the box come first, then the others by descending v.
    order = np.argsort(last.v * np.where(left_box, 0.0, -1.0) - 1e300 * left_box, kind="stable")
    for size in (int(np.count_nonzero(left_box)), n // 2):
        chosen = order[:size]
        others = float(kept.sum() - kept[chosen].sum())
        if size and others <= problem.sum <= others + size:
            return np.sort(chosen)
    return np.arange(n)


def _take_descent_step(problem: UnitProblem, state: _State, settings: PathSettings) -> PathStep:
    """Take one step of `srbo-descent`: screen if this is forecast to save time."""
    start = time.perf_counter()
    n = len(state.point.a)
    empty = np.zeros(n, dtype=bool)
    plain = lifted(problem, state.point, state.forecast_s(n))
    test_s = TEST_S + TEST_S_PER_SAMPLE * n
    if state.n_untested > 0 or state.forecast_s(n) < MIN_SOLUTION_OVER_TEST * test_s:
        state.n_untested = max(0, state.n_untested - 1)
        state.store(_solve(problem, settings, plain))
        step = PathStep(problem.sum, empty, empty, "off")
        step.solve_s = time.perf_counter() - start
        return step
    feasible = _descended(problem, plain)
    delta_done = time.perf_counter()
    at_zero, at_one = empty.copy(), empty.copy()
    for ball in (
        screening.srbo_ball(problem, state.point, feasible),
        screening.gap_safe_ball(problem, feasible),
    ):
        more_zero, more_one = screening.settled(ball, screening.margin_bounds(ball, problem.sum))
        at_zero |= more_zero
        at_one |= more_one
    left = n - int(np.count_nonzero(at_zero) + np.count_nonzero(at_one))
    tested = time.perf_counter()
    matrix_s = GATHER_S * left**2 + SUBTRACT_S * n * min(left, LIKELY_CHANGES)
    smaller_s = matrix_s + state.forecast_s(left)
    pays = test_s + smaller_s < MAX_FORECAST_SHARE * state.forecast_s(n)
    if pays:
        state.pause = FIRST_PAUSE
        state.store(solve_remaining(problem, feasible, at_zero, at_one, settings))
    else:
        state.n_untested, state.pause = state.pause, min(2 * state.pause, LONGEST_PAUSE)
        at_zero, at_one = empty, empty
        state.store(_solve(problem, settings, plain))
    step = PathStep(problem.sum, at_zero, at_one, "on" if pays else "tested", delta_done - start)
    step.screening_s, step.solve_s = tested - delta_done, time.perf_counter() - tested
    return step


def _descended(problem: UnitProblem, start: QPPoint) -> QPPoint:
    """Return a copy of a point after a few pair steps."""
    point = start.copy()
    steps = int(DESCENT_STEPS_PER_SAMPLE * len(point.a))
    if steps:
        bounds = Bounds(np.zeros(len(point.a)), np.ones(len(point.a)))
        criteria = StoppingCriteria(0.0, steps)
        taken, _ = pair_steps(raw(problem.Q), problem.diag, bounds, criteria, point.a, point.v)
        point.drift += taken
    return point


def solve_remaining(
    problem: UnitProblem,
    start: QPPoint,  # feasible; changed in place
    # at_zero, at_one bool (n,): the screened multipliers
    at_zero: np.ndarray,
    at_one: np.ndarray,
    settings: PathSettings,
) -> QPPoint:
    """Solve problem (26), over the remaining multipliers; return the solution of all."""
    remaining = np.flatnonzero(~(at_zero | at_one))
    if len(remaining) == len(at_zero):
        return _solve(problem, settings, start)
    a = start.a.copy()
    a[at_zero], a[at_one] = 0.0, 1.0
    part, total = a[remaining], problem.sum - float(np.count_nonzero(at_one))
    reach_sum(part, start.v[remaining], total)
    a[remaining] = part
    move_point(problem.Q, start, a)
    steps, newton_steps, selected_steps, reason = 0, 0, 0, "converged"
    if len(remaining):
        Q = gather(problem.Q, remaining, remaining, np.float64)
        linear = -start.v[remaining] - Q @ part
        value = -0.5 * float(start.a @ start.v)
        value_of_part = 0.5 * float(part @ (linear - start.v[remaining]))
        small = UnitProblem(Q, total, linear, constant=value - value_of_part)
        solved = _solve(small, settings, small.at(part.copy()), tol=0.5 * settings.tol)
        steps, newton_steps, reason = solved.steps, solved.newton_steps, solved.reason
        selected_steps = solved.selected_steps
        a[remaining] = solved.a
        move_point(problem.Q, start, a)
    start.steps, start.reason = start.steps + steps, reason
    start.newton_steps += newton_steps
    start.selected_steps += selected_steps
    target = problem.target(start, settings.tol)
    if settings.solver == "dcdm-pairwise" and settings.screen != "corollary-2":
        # Rounding, or the small problem's tolerance, may leave a larger gap: solve on with all.
        if not problem.reaches(start, target):
            pairwise.solve_pairwise(problem, start, tol=settings.tol, max_iter=settings.max_iter)
    else:
        start.gap = problem.gap(start)
    return start


def beside_reference(
    Q: np.ndarray,  # (n, n)
    values: Sequence[float],  # of nu; they ascend
    settings: PathSettings,  # of the path that is compared
    accuracy: float,  # relative duality gap of the solution without screening
) -> Iterator[tuple[UnitProblem, PathStep, PathStep]]:
    """Yield the problem at each nu, an accurate solution without screening, and the path's step."""
    totals, diag = [float(value) * len(Q) for value in values], np.ascontiguousarray(Q.diagonal())
    accurate = replace(settings, solver=PathSettings.solver, screen="none", tol=accuracy)
    for reference, step in zip(
        follow_nu(Q, totals, accurate), follow_nu(Q, totals, settings), strict=True
    ):
        yield UnitProblem(Q, step.total, diag=diag), reference, step
