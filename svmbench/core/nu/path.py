"""The sequential path: the solution at each sum screens, and starts, the next.

Problem
    As in ``box_qp`` with q = 0, for total_1 < total_2 < …
Given
    Q, the sums, an inner solver, a screening rule.
Returned
    At each sum: the point, which multipliers were screened, and what delta, the screening test and
    the solution took.
Reference
    Algorithm 1 and problems (18), (26) and (27) of the SRBO paper.
Deviations
    - ``srbo``: delta as printed, problem (18) once and (27) after. Where the coordinates that left
      their box can't make up the sum, more are taken with them, up to half of all (the paper's
      program draws them at random; here those next in line by their gradient).
    - ``srbo-descent``: delta is what lifts the last solution to the new sum, and a few pair steps;
      both balls screen. Where a forecast says that the smaller problem would not pay for its matrix
      and the test, all samples are solved for, from where they would be without screening: the
      pair steps are dropped, so that a path on which screening never pays is the same path, step by
      step, and costs its few tests more. It stops testing for a while after that has been so, and
      does not test at all where the last solution took little more than a test does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from svmbench.core.csvc.smo import Bounds, StoppingCriteria, pair_steps
from svmbench.core.nu import interior, pairwise, qp_solvers, screening
from svmbench.core.nu.box_qp import QPPoint, UnitProblem, mend, move_point
from svmbench.core.nu.full_matrix import ScreenedSolution
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import gather

#: Rules that a path may screen by; "corollary-2" is the unsafe print.
SCREENING_RULES = ("none", "srbo", "srbo-descent", "gap-safe", "corollary-2")

#: Pair steps of `srbo-descent` before it screens, as a share of the samples.
DESCENT = 0.02

#: Seconds a value of a gathered matrix, and of a row taken from a gradient, as measured once.
GATHER, ROW = 1.2e-9, 0.6e-9

#: Seconds of a test, and its part a sample, as measured once.
TEST, TEST_SAMPLE = 1e-4, 2e-7

#: A solution must have taken so many tests' time for the next to be tested, and the forecast for
#: what is left must be below this share of the one for all.
WORTH, GAIN = 10.0, 0.85

#: Multipliers that a solution from a warm start is taken to change.
LIKELY_CHANGES = 200

#: Free multipliers above this are not moved along the tangent: its factor would cost more.
TANGENT = 400

#: Duality gap, relative, to which delta is chosen: any will do, and a small one screens more.
DELTA_TOL = 1e-3

#: Tests skipped after one that did not pay, doubled each time up to the last.
FIRST_REST, LONGEST_REST = 2, 16


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
        """Return the settings that a solver's parameters stand for; `screen` is optional."""
        return cls(
            solver=model.solver,
            screen=getattr(model, "screen", "none"),
            tol=float(model.tol),
            max_iter=int(model.max_iter),
        )


@dataclass
class PathStep:
    """The solution of a path at one sum, with its work."""

    total: float
    # zero, one bool (n,): screened multipliers
    zero: np.ndarray
    one: np.ndarray
    # ``"on"``, ``"off"`` (not tested), ``"tested"`` (tested, and solved whole because that was
    # forecast to be faster), ``"first"`` or ``"none"``
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
        return int(np.count_nonzero(self.zero) + np.count_nonzero(self.one))

    def solution(self, coefficients: np.ndarray, b: float, square: float) -> ScreenedSolution:
        """Return the step as a solution; `square` is ``alpha'Q alpha`` in the solution's scale."""
        point = self.point
        return ScreenedSolution(
            coefficients,
            b=b,
            n_iter=point.steps + point.newton_steps,
            stop_reason=point.reason,
            counters={
                "updates": point.steps,
                "newton_steps": point.newton_steps,
                "screened_zero": int(np.count_nonzero(self.zero)),
                "screened_one": int(np.count_nonzero(self.one)),
                "left": len(coefficients) - self.n_screened,
                "unscreened_values": int(self.screening in ("off", "tested")),
            },
            times={
                "delta_s": self.delta_s,
                "screening_s": self.screening_s,
                "solve_s": self.solve_s,
            },
            square=square,
            screening=self.screening,
            screened=np.where(self.zero, -1, self.one).astype(np.int8),
        )


@dataclass
class _State:
    """State of a path: the last solution, the last delta, and the pauses between tests."""

    point: QPPoint
    delta: np.ndarray | None = None  # (n,) or None
    work: tuple[int, int, int] = (0, 0, 0)
    # whether a library solves, whose time is about that of an interior-point method
    is_library: bool = False
    rest: int = 0  # sums without a test from here on
    pause: int = FIRST_REST  # how many there will be after the next that fails

    def solved(self, point: QPPoint) -> None:
        """Keep a solution, and what it took."""
        n_free = int(np.count_nonzero((point.a > 0.0) & (point.a < 1.0)))
        self.point, self.work = point, (point.steps, point.newton_steps, n_free)

    def seconds(self, n: int) -> float:
        """Return about how long the last solution would have taken among n samples."""
        if self.is_library:
            return interior.interior_seconds(n)
        steps, newton_steps, n_free = self.work
        together = pairwise.seconds_of_a_newton_step(n, min(n, n_free))
        return steps * pairwise.seconds_of_pairs(n) + newton_steps * together


def follow_nu(
    Q: np.ndarray,  # (n, n): C-ordered float64; not written to
    totals: Sequence[float],  # ascending, each above 0 and at most n
    settings: PathSettings,
) -> Iterator[PathStep]:
    """Yield the solution at each sum, in order.

    Raise ValueError if the sums do not ascend.
    """
    diag = raw(np.ascontiguousarray(Q.diagonal()))
    none = np.zeros(len(Q), dtype=bool)
    state: _State | None = None
    before = 0.0
    for total in totals:
        if total <= before:
            raise ValueError("the values of nu must ascend: each solution screens the next")
        before = float(total)
        problem = UnitProblem(Q, before, diag=diag)
        start = time.perf_counter()
        if state is None:
            first = _solved(problem, settings, None)
            state = _State(first, is_library=settings.solver in qp_solvers.LIBRARIES)
            state.solved(first)
            step = PathStep(before, none, none, "none" if settings.screen == "none" else "first")
            step.solve_s = time.perf_counter() - start
        elif settings.screen == "none":
            state.point = _solved(problem, settings, _next_start(problem, state.point, settings))
            step = PathStep(before, none, none)
            step.solve_s = time.perf_counter() - start
        elif settings.screen == "srbo-descent":
            step = _descend_and_screen(problem, state, settings)
        else:
            step = _screen(problem, state, settings)
        step.point = state.point.copy()
        yield step


def _is_warm(settings: PathSettings) -> bool:
    return settings.warm and settings.solver in qp_solvers.WARM_SOLVERS


def _next_start(problem: UnitProblem, last: QPPoint, settings: PathSettings) -> QPPoint | None:
    return lifted(problem, last) if _is_warm(settings) else None


def _solved(
    problem: UnitProblem, settings: PathSettings, start: QPPoint | None, tol: float = 0.0
) -> QPPoint:
    """Solve with the inner solver, from a start where it can; steps are counted from 0."""
    if start is not None:
        start.steps = start.newton_steps = 0
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
) -> QPPoint:
    """Return the last solution brought to a new sum: along the path's tangent, then greedily."""
    point = last.copy()
    for _ in range(pairwise.IN_A_ROW):
        missing = problem.sum - float(point.a.sum())
        free = np.flatnonzero((point.a > 0.0) & (point.a < 1.0))
        if abs(missing) <= 1e-14 * problem.sum or not 1 < len(free) <= TANGENT:
            break
        direction = pairwise.newton_direction(problem.Q, free, point.v, missing)
        if direction is None or pairwise.advance_free(problem.Q, point, free, direction) >= 1.0:
            break
    a = point.a.copy()
    make_up(a, point.v, problem.sum)
    move_point(problem.Q, point, a)
    return point


def make_up(
    a: np.ndarray,  # (n,): multipliers
    v: np.ndarray,  # (n,): ``-d``
    total: float,
) -> None:
    """Bring a sum to `total`, in place: the least d is added to, or the largest d taken from."""
    missing = total - float(a.sum())
    order = np.argsort(-v if missing > 0.0 else v, kind="stable")
    room = (1.0 - a if missing > 0.0 else a)[order]
    given = np.clip(abs(missing) - (np.cumsum(room) - room), 0.0, room)
    a[order] += given if missing > 0.0 else -given
    mend(a, total)


def _screen(problem: UnitProblem, state: _State, settings: PathSettings) -> PathStep:
    """Take one step of Algorithm 1, always: delta, the test, the rest."""
    start = time.perf_counter()
    last = state.point
    if settings.screen == "gap-safe":
        feasible = lifted(problem, last)
        ball = screening.gap_safe_ball(problem, feasible)
    else:
        feasible = bilevel(problem, last, state.delta, settings)
        state.delta = feasible.a - last.a
        ball = screening.srbo_ball(problem, last, feasible)
    chosen = time.perf_counter()
    if settings.screen == "corollary-2":
        zero, one = screening.corollary_2(problem, last, feasible)
    else:
        zero, one = screening.settled(ball, screening.margin_bounds(ball, problem.sum))
    tested = time.perf_counter()
    # The print's rule can settle so much that the sum can't be kept: then all samples take part.
    if np.count_nonzero(one) <= problem.sum <= len(one) - np.count_nonzero(zero):
        state.point = solve_rest(problem, feasible, zero, one, settings)
    else:
        state.point = _solved(problem, settings, feasible)
    step = PathStep(problem.sum, zero, one, "on", chosen - start, tested - chosen)
    step.solve_s = time.perf_counter() - tested
    return step


def bilevel(
    problem: UnitProblem,  # at the new sum
    last: QPPoint,  # the solution a0 at the last sum; not changed
    delta: np.ndarray | None,  # (n,) or None
    settings: PathSettings,
) -> QPPoint:
    """Return ``a0 + delta``: by problem (18) without an old delta, by problem (27) with one."""
    # With b = a0 + delta, r(delta) = 1/2 (1/2 b'Q b + (Q a0)'b) + const.
    n = len(last.a)
    start = lifted(problem, last)
    chosen = np.arange(n)
    if delta is not None:
        kept = last.a + delta
        leaves = (kept < 0.0) | (kept > 1.0)
        chosen = _enough(problem, leaves, np.clip(kept, 0.0, 1.0), last)
        if len(chosen) < n:
            kept[chosen] = start.a[chosen]
            part = kept[chosen]
            make_up(part, last.v[chosen], problem.sum - float(kept.sum() - part.sum()))
            kept[chosen] = part
            move_point(problem.Q, start, kept)
    Q = problem.Q if len(chosen) == n else gather(problem.Q, chosen, chosen, np.float64)
    part = start.a[chosen]
    linear = -last.v[chosen] - start.v[chosen] - Q @ part
    small = UnitProblem(Q, float(part.sum()), linear, constant=-0.5 * float(last.a @ last.v))
    found = _solved(small, settings, small.at(part), tol=DELTA_TOL)
    after = start.a.copy()
    after[chosen] = found.a
    move_point(problem.Q, start, after)
    return start


def _enough(
    problem: UnitProblem, leaves: np.ndarray, kept: np.ndarray, last: QPPoint
) -> np.ndarray:
    """Return the coordinates of problem (27): those that left the box, with what the sum needs."""
    n = len(kept)
    order = np.argsort(last.v * np.where(leaves, 0.0, -1.0) - 1e300 * leaves, kind="stable")
    for size in (int(np.count_nonzero(leaves)), n // 2):
        chosen = order[:size]
        others = float(kept.sum() - kept[chosen].sum())
        if size and others <= problem.sum <= others + size:
            return np.sort(chosen)
    return np.arange(n)


def _descend_and_screen(problem: UnitProblem, state: _State, settings: PathSettings) -> PathStep:
    """Take one step with delta by descent, and screening where it is forecast to pay."""
    start = time.perf_counter()
    n = len(state.point.a)
    none = np.zeros(n, dtype=bool)
    plain = lifted(problem, state.point)
    test_s = TEST + TEST_SAMPLE * n
    if state.rest > 0 or state.seconds(n) < WORTH * test_s:
        state.rest = max(0, state.rest - 1)
        state.solved(_solved(problem, settings, plain))
        step = PathStep(problem.sum, none, none, "off")
        step.solve_s = time.perf_counter() - start
        return step
    feasible = _descended(problem, plain)
    chosen = time.perf_counter()
    zero, one = none.copy(), none.copy()
    for ball in (
        screening.srbo_ball(problem, state.point, feasible),
        screening.gap_safe_ball(problem, feasible),
    ):
        more_zero, more_one = screening.settled(ball, screening.margin_bounds(ball, problem.sum))
        zero |= more_zero
        one |= more_one
    left = n - int(np.count_nonzero(zero) + np.count_nonzero(one))
    tested = time.perf_counter()
    smaller = GATHER * left**2 + ROW * n * min(left, LIKELY_CHANGES) + state.seconds(left)
    pays = test_s + smaller < GAIN * state.seconds(n)
    if pays:
        state.pause = FIRST_REST
        state.solved(solve_rest(problem, feasible, zero, one, settings))
    else:
        state.rest, state.pause = state.pause, min(2 * state.pause, LONGEST_REST)
        state.solved(_solved(problem, settings, plain))
    step = PathStep(problem.sum, zero, one, "on" if pays else "tested", chosen - start)
    step.screening_s, step.solve_s = tested - chosen, time.perf_counter() - tested
    return step


def _descended(problem: UnitProblem, start: QPPoint) -> QPPoint:
    """Return a few pair steps' worth of descent from a point, which is not changed."""
    point = start.copy()
    steps = int(DESCENT * len(point.a))
    if steps:
        bounds = Bounds(np.zeros(len(point.a)), np.ones(len(point.a)))
        criteria = StoppingCriteria(0.0, steps)
        taken, _ = pair_steps(raw(problem.Q), problem.diag, bounds, criteria, point.a, point.v)
        point.drift += taken
    return point


def solve_rest(
    problem: UnitProblem,
    start: QPPoint,  # feasible; changed in place
    # zero, one bool (n,): the screened multipliers
    zero: np.ndarray,
    one: np.ndarray,
    settings: PathSettings,
) -> QPPoint:
    """Solve among what was not screened (problem 26); return the whole solution."""
    rest = np.flatnonzero(~(zero | one))
    if len(rest) == len(zero):
        return _solved(problem, settings, start)
    a = start.a.copy()
    a[zero], a[one] = 0.0, 1.0
    part, total = a[rest], problem.sum - float(np.count_nonzero(one))
    make_up(part, start.v[rest], total)
    a[rest] = part
    move_point(problem.Q, start, a)
    steps, newton_steps, reason = 0, 0, "converged"
    if len(rest):
        Q = gather(problem.Q, rest, rest, np.float64)
        linear = -start.v[rest] - Q @ part
        value = -0.5 * float(start.a @ start.v)
        mine = 0.5 * float(part @ (linear - start.v[rest]))
        small = UnitProblem(Q, total, linear, constant=value - mine)
        found = _solved(small, settings, small.at(part.copy()), tol=0.5 * settings.tol)
        steps, newton_steps, reason = found.steps, found.newton_steps, found.reason
        a[rest] = found.a
        move_point(problem.Q, start, a)
    start.steps, start.newton_steps, start.reason = steps, newton_steps, reason
    target = problem.target(start, settings.tol)
    if settings.solver == "dcdm-pairwise" and settings.screen != "corollary-2":
        # Rounding, or what the rest's own tolerance leaves: the whole problem's gap counts.
        if not problem.reaches(start, target):
            pairwise.solve_pairwise(problem, start, tol=settings.tol, max_iter=settings.max_iter)
    else:
        start.gap = problem.gap(start)
    return start


def beside_unscreened(
    Q: np.ndarray,  # (n, n)
    values: Sequence[float],  # of nu; they ascend
    settings: PathSettings,  # of the path's own
    accuracy: float,  # duality gap, relative, of the solution without screening
) -> Iterator[tuple[UnitProblem, PathStep, PathStep]]:
    """Yield the problem at each nu, an accurate solution without screening, and the path's own."""
    totals, diag = [float(value) * len(Q) for value in values], np.ascontiguousarray(Q.diagonal())
    plain = replace(settings, solver=PathSettings.solver, screen="none", tol=accuracy)
    for truth, step in zip(
        follow_nu(Q, totals, plain), follow_nu(Q, totals, settings), strict=True
    ):
        yield UnitProblem(Q, step.total, diag=diag), truth, step
