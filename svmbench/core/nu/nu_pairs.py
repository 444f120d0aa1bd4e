"""The ν-SVCs of all pairs of classes on the rows of one kernel matrix.

Problem
    For every pair of classes the ν-SVC of their samples, times its N; see ``nu_problem``. Here a
    pair is two classes; a step moves two variables.
Given
    Samples class by class, so that a pair's part of a kernel row is two runs of it, and each run
    belongs to one of the pair's two fixed sums.
Returned
    The variables of every pair with its gradient, once the violation of each is at most tol, or tol
    times rho where rho is below 1.
Method
    As in ``csvc.pairs``, whose runs of kernel rows and whose loop of steps and checks it uses. A
    step moves two variables of one class. To choose them it reads a run of a row in each class, to
    update the gradient both runs of the two rows. The steps come in stages, since the tolerance
    depends on rho: each stage ends at a tenth of the violation, until w proves that there is a
    margin and the violation is small beside it (``judge``). A pair without a proven margin, and one
    that takes many steps, goes on alone: with Newton steps, on a copy of its part of the matrix if
    that is in memory. If the violation of a pair without a proven margin is as small as rounding,
    in float64 it has none. On a copy in float32 it goes on in float64.
Reference
    Chang and Lin 2001 (pairs of one class); ``csvc.solver`` for the tolerance.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.problems import Problem, Values
from svmbench.core.csvc.pairs import (
    ClassRows,
    PairSearch,
    PairTable,
    Progress,
    ask_ahead,
    is_near,
)
from svmbench.core.csvc.problem import (
    QPProblem,
    duality_gap,
    settle_at_bounds,
    threshold,
    thresholds,
    up_low_extremes,
)
from svmbench.core.csvc.smo import (
    CONVERGED,
    INDEX_BITS,
    MAX_ITER,
    NO_GAP_TEST,
    NO_MARGIN_CODE,
    NOT_YET,
    ROWS_MISSING,
    STALLED,
    STOP_REASONS,
    Bounds,
    StoppingCriteria,
    chosen_j,
    select_i,
    select_j,
    solve_pair,
    up_low_penalties,
    update_gradient,
    why_stop,
)
from svmbench.core.csvc.solver import (
    CLOSER_TO_MARGIN,
    GRADIENT_ROUNDINGS,
    NO_MARGIN_STEPS_A_SAMPLE,
    PROVES_MARGIN,
    SHORT_OF_WANTED,
    RelativeTolerance,
    has_margin,
    search_on_matrix,
)
from svmbench.core.kernels.kernels import KernelFunction, KernelSource, ThreadPool
from svmbench.core.kernels.rows import DenseRows, SourceRows
from svmbench.core.models.ovo_model import JointSolution, Layout
from svmbench.core.nu.nu_problem import require_feasible
from svmbench.core.numeric.arrays import raw

#: A pair goes on alone after COPY_STEPS steps, on a copy of its part of the matrix, if all rows are
#: in memory; after STEPS_A_SAMPLE steps for each of its samples, if rows are made on demand.
COPY_STEPS, STEPS_A_SAMPLE = 500, 4

#: Samples of a pair up to which its part of a matrix in memory is copied.
COPY_MAX_SAMPLES = 2000


@compiled
def judge(
    n_first: int, bounds: Bounds, variables: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float, bool]:
    """Return a pair's violation, its rho, and whether a primal value proves that rho is above 0.

    The first `n_first` variables are of the first class. The primal value is taken at the
    thresholds that a model would have, and at the best multiple of w; see "A margin of 0" in
    ``csvc.solver``.
    """
    (beta, v), gap, violation, rho = variables, 0.0, -np.inf, 0.0
    for begin, end, sign in ((0, n_first, 0.5), (n_first, len(v), -0.5)):
        low, high = bounds.low[begin:end], bounds.high[begin:end]
        multipliers, slope = beta[begin:end], v[begin:end]
        # On the margin of the first (negative) class v is b + rho, and on the other's b - rho.
        level = threshold(low, high, multipliers, slope)
        rho += sign * level
        gap += duality_gap(low, high, multipliers, slope, level)
        m, M = up_low_extremes(low, high, multipliers, slope)
        violation = max(violation, m - M)
    return violation, rho, gap < PROVES_MARGIN * -np.dot(beta, v)


@compiled
def next_stage(judged: tuple[float, float, bool], tol: float, rounding: float) -> tuple[float, int]:
    """Return the violation that the next steps are to reach, and ``NOT_YET`` or a stop reason.

    The next violation is a tenth of the present one, or the one that the tolerance demands. The
    reason is ``CONVERGED``, or, without a margin, ``STALLED`` once the violation is mere rounding.
    """
    violation, rho, has_margin = judged
    if not has_margin:
        reason = STALLED if violation <= rounding else NOT_YET
        return max(CLOSER_TO_MARGIN * violation, rounding), reason
    least = max(tol * min(1.0, abs(rho)), rounding)
    reason = CONVERGED if violation <= least else NOT_YET
    return max(CLOSER_TO_MARGIN * violation, SHORT_OF_WANTED * least, rounding), reason


@compiled
def steps_of_nu_pair(
    # as for `csvc.pairs.steps_of_pair`
    values: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    diag: np.ndarray,
    ranges: tuple[int, int, int, int],
    bounds: Bounds,
    criteria: StoppingCriteria,
    variables: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """Take the steps of ``smo.grouped_steps`` for one pair, whose classes are the two groups.

    Return the number of steps and the stop reason: ``ROWS_MISSING`` if a run is missing.
    """
    low, high = bounds.low, bounds.high
    beta, v = variables
    a0, a1, b0, _ = ranges
    # Of each class: begin and end of its variables, and what to add to a variable's position to get
    # the place of its sample.
    m, n = a1 - a0, len(v)
    parts = ((0, m, a0), (m, n, b0 - m))
    up, down = up_low_penalties(low, high, beta)
    # The runs of the last pair of variables at either class. A step of length 0 changes nothing.
    last_i, last_j, t, steps = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), 0.0, 0
    tops = np.empty(2)
    while True:
        # update_gradient by the last step, and i = argmax of v over I_up of each class.
        for g in range(2):
            begin, end, _ = parts[g]
            tops[g] = update_gradient(v, up, begin, end, values, last_i[g], last_j[g], t)
        # j by WSS 2 in each class; the better of the two pairs.
        i, j, between, missing = -1, -1, 0, -1
        widest, most = -np.inf, 0
        for g in range(2):
            begin, end, place = parts[g]
            if tops[g] == -np.inf:
                continue
            a = select_i(v, up, begin, end, tops[g])
            run = slots[g][place + a]
            if run < 0:
                missing = a
                continue
            best, b_violation = select_j(
                v, down, begin, end, values, run, diag, place + begin, tops[g], diag[place + a]
            )
            widest = max(widest, b_violation)
            if best >> INDEX_BITS > most >> INDEX_BITS:
                i, j, most = a, chosen_j(best), best
                between = run + j - begin
        if missing < 0:
            reason = why_stop(widest, steps, j, criteria)
            if reason != NOT_YET:
                return steps, reason
            g = 0 if i < m else 1
            at_i, at_j = parts[g][2] + i, parts[g][2] + j
            for c in range(2):
                last_i[c], last_j[c] = slots[c][at_i], slots[c][at_j]
                if last_j[c] < 0:
                    missing = j
                elif last_i[c] < 0:
                    missing = i
        if missing >= 0:
            ask_ahead(ranges, variables, (up, down), slots, wanted, missing)
            return steps, ROWS_MISSING
        kernel = diag[at_i], diag[at_j], values[between]
        t, has_moved = solve_pair(i, j, v[i] - v[j], kernel, beta, low, high, up, down)
        if not has_moved:
            return steps, STALLED
        steps += 1


@compiled
def steps_of_all(
    values: np.ndarray,
    slots: np.ndarray,
    diag: np.ndarray,
    pairs: PairTable,
    bounds: Bounds,
    criteria: StoppingCriteria,
    unit: float,  # rounding of a pair's gradient for each unit of its multipliers' sum
    variables: tuple[np.ndarray, np.ndarray],
    so_far: Progress,
    all_there: bool,
) -> None:
    """Take the steps of every pair whose reason is ``ROWS_MISSING``, in stages.

    A pair that then has another reason than ``ROWS_MISSING`` or ``CONVERGED`` goes on alone, unless
    it has taken all of its steps.
    """
    starts, offsets = pairs.starts, pairs.offsets
    steps, reasons, wanted = so_far.steps, so_far.reasons, so_far.wanted
    for p in range(len(pairs.first)):
        if reasons[p] != ROWS_MISSING:
            continue
        a, b = pairs.first[p], pairs.second[p]
        ranges = starts[a], starts[a + 1], starts[b], starts[b + 1]
        begin, end, n_first = offsets[p], offsets[p + 1], starts[a + 1] - starts[a]
        pair_bounds = Bounds(bounds.low[begin:end], bounds.high[begin:end])
        pair_variables = variables[0][begin:end], variables[1][begin:end]
        where, asked = (slots[a], slots[b]), (wanted[a], wanted[b])
        most = min(criteria.max_iter, COPY_STEPS if all_there else STEPS_A_SAMPLE * (end - begin))
        rounding = unit * np.sum(np.abs(pair_variables[0]))
        while True:
            tol, reason = next_stage(
                judge(n_first, pair_bounds, pair_variables), criteria.tol, rounding
            )
            if reason != NOT_YET:
                reasons[p] = reason
                break
            part = StoppingCriteria(tol, most - steps[p], NO_GAP_TEST)
            taken, reason = steps_of_nu_pair(
                values, where, diag, ranges, pair_bounds, part, pair_variables, asked
            )
            steps[p] += taken
            if reason != CONVERGED:
                reasons[p] = reason
                break


@compiled
def gradients_of_all(
    values: np.ndarray,
    slots: np.ndarray,
    pairs: PairTable,
    variables: tuple[np.ndarray, np.ndarray],
) -> None:
    """Write the gradient v = -K beta of every pair; the runs of its multipliers are there."""
    starts, offsets = pairs.starts, pairs.offsets
    for p in range(len(pairs.first)):
        a, b = pairs.first[p], pairs.second[p]
        begin, end = offsets[p], offsets[p + 1]
        beta, v = variables[0][begin:end], variables[1][begin:end]
        m = starts[a + 1] - starts[a]
        v[:] = 0.0
        for k in range(len(beta)):
            if beta[k] != 0.0:
                at = starts[a] + k if k < m else starts[b] + k - m
                first, second = slots[a][at], slots[b][at]
                for q in range(m):
                    v[q] -= beta[k] * np.float64(values[first + q])
                for q in range(len(v) - m):
                    v[m + q] -= beta[k] * np.float64(values[second + q])


@compiled
def margins_of_all(
    pairs: PairTable,
    bounds: Bounds,
    variables: tuple[np.ndarray, np.ndarray],
    b: np.ndarray,
    rho: np.ndarray,
) -> None:
    """Write the offset and rho of each pair, (n_pairs,), in the scale of the variables."""
    levels = np.empty(2)
    for p in range(len(b)):
        begin, end, a = pairs.offsets[p], pairs.offsets[p + 1], pairs.first[p]
        middle = begin + pairs.starts[a + 1] - pairs.starts[a]
        settle_at_bounds(bounds.low[begin:end], bounds.high[begin:end], variables[0][begin:end])
        for g in range(2):
            start, stop = (begin, middle) if g == 0 else (middle, end)
            low, high = bounds.low[start:stop], bounds.high[start:stop]
            levels[g] = threshold(low, high, variables[0][start:stop], variables[1][start:stop])
        b[p], rho[p] = 0.5 * (levels[0] + levels[1]), 0.5 * (levels[0] - levels[1])


@dataclass
class NuJointSolution(JointSolution):
    """The solution of all pairs, in the scale of the paper."""

    _: KW_ONLY
    rho: np.ndarray  # (n_pairs,)
    # (n_variables,): weights of the samples of each pair, of mean 1; None for 1 each
    pair_weights: np.ndarray | None = None

    def values(self, weights: np.ndarray | None, p: int | None = None) -> Values:
        """Return the values of the problem of pair `p`; the sum of all is no such problem."""
        assert p is not None, "each pair has a rho of its own"
        chosen = self.layout.variables(p)
        weighted = None if self.pair_weights is None else self.pair_weights[chosen]
        values = super().values(None, p)
        return replace(values, rho=float(self.rho[p]), weights=weighted)

    def objectives(
        self, problem: Problem, parameter: float, weights: np.ndarray | None
    ) -> tuple[float, float]:
        """Return the primal and the dual value of ``nu-svc``, summed over the pairs."""
        sizes, f = np.diff(self.layout.offsets), self.decisions
        squared_norms = float(self.coefficients @ (f - np.repeat(self.b, sizes)))
        slack = np.maximum(0.0, np.repeat(self.rho, sizes) - f * self.layout.signs)
        if self.pair_weights is not None:
            slack *= self.pair_weights
        losses = float(np.sum(slack / np.repeat(sizes, sizes)))
        return 0.5 * squared_norms - parameter * float(
            self.rho.sum()
        ) + losses, -0.5 * squared_norms


class NuPairSearch(PairSearch):
    """The search for the solutions of all pairs; see :class:`~svmbench.core.csvc.pairs.PairSearch`.

    `start` (n_variables,) has multipliers with the sums that steps keep.
    """

    def __init__(
        self,
        source: KernelSource,
        layout: Layout,
        high: np.ndarray,
        start: np.ndarray,
        **limits: Any,
    ) -> None:
        super().__init__(source, layout, high, ThreadPool(1), **limits)
        self.linear = np.zeros(len(start))
        self.start = start * layout.signs
        self.variables = self.start.copy(), np.zeros(len(start))
        self.has_gradient = False

    @property
    def pairs(self) -> PairTable:
        """The positions of the classes of all pairs."""
        layout = self.layout
        return PairTable(layout.starts, layout.first, layout.second, layout.offsets)

    def first_size(self, p: int) -> int:
        """Return the number of samples of the first class of pair `p`."""
        a = int(self.layout.first[p])
        return int(self.layout.starts[a + 1] - self.layout.starts[a])

    def take_steps(self, runs: ClassRows) -> None:
        """Take steps until no pair misses a run; pairs that go on alone are solved."""
        if not self.has_gradient:
            self.largest_kernel = float(np.max(np.abs(runs.rows.diagonal)))
            self.unit = GRADIENT_ROUNDINGS * np.finfo(np.float64).eps * self.largest_kernel
            self.set_gradients(runs)
        super().take_steps(runs)
        goes_on = (self.reasons == MAX_ITER) & (self.steps < self.max_iter)
        for p in np.flatnonzero(~self.is_alone & (goes_on | (self.reasons == STALLED))):
            self.solve_on_copy(int(p), runs)

    def set_gradients(self, runs: ClassRows) -> None:
        """Set v = -K beta at the start, for all pairs."""
        layout, support = self.layout, np.flatnonzero(self.variables[0])
        if not runs.are_whole:
            wanted = np.zeros(runs.slots.shape, dtype=bool)
            pair = np.searchsorted(layout.offsets, support, side="right") - 1
            for classes in (layout.first, layout.second):
                wanted[classes[pair], layout.places[support]] = True
            if not runs.make(wanted):
                # Without room for the runs, each pair goes on alone.
                for p in range(len(layout.first)):
                    self.solve_alone(p)
                return
        gradients_of_all(raw(runs.values), runs.slots, self.pairs, self.variables)
        self.has_gradient = True

    def take_steps_of(self, runs: ClassRows, pairs: PairTable, so_far: Progress) -> None:
        """Take steps of all pairs until runs are missing."""
        values, diag = raw(runs.values), raw(runs.rows.diagonal)
        criteria = StoppingCriteria(self.tol, self.max_iter)
        problem = values, runs.slots, diag, pairs, self.bounds, criteria, self.unit
        steps_of_all(*problem, self.variables, so_far, runs.are_whole)

    def problem(self, p: int) -> QPProblem:
        """Return the problem of pair `p`."""
        chosen, m = self.layout.variables(p), self.first_size(p)
        linear, low, high = self.linear[chosen], self.bounds.low[chosen], self.bounds.high[chosen]
        return QPProblem(linear, low, high, (np.arange(len(linear)) >= m).astype(np.int64), 2)

    def rounding(self, p: int) -> float:
        """Return the rounding of the gradient of pair `p`."""
        return self.unit * float(np.sum(np.abs(self.variables[0][self.layout.variables(p)])))

    def noise(self, p: int) -> float:
        """Return the usual error of the gradient of pair `p` on kernel values in float32."""
        norm = float(np.linalg.norm(self.variables[0][self.layout.variables(p)]))
        return float(np.finfo(np.float32).eps) * self.largest_kernel * norm

    def vanishes(self, p: int) -> bool:
        """Return True if the violation of pair `p` is mere rounding, and no margin is proven."""
        chosen = self.layout.variables(p)
        if self.judge(p)[0] > self.rounding(p):
            return False
        return not has_margin(self.problem(p), *(each[chosen] for each in self.variables))

    def judge(self, p: int) -> tuple[float, float, bool]:
        """Return the violation of pair `p`, its rho, and whether it is proven to be above 0."""
        chosen = self.layout.variables(p)
        low, high, beta, v = (each[chosen] for each in (*self.bounds, *self.variables))
        return judge(self.first_size(p), Bounds(low, high), (beta, v))

    def violation(self, p: int) -> tuple[float, float]:
        """Return the largest violation of pair `p`, and its tolerance; -inf without a margin."""
        violation, rho, has_margin = self.judge(p)
        least = max(self.tol * min(1.0, abs(rho)), self.rounding(p))
        return violation, least if has_margin else -np.inf

    def near(self, p: int, width: float) -> np.ndarray:
        """Mark the variables of pair `p` that could violate if v errs by `width`."""
        chosen = self.layout.variables(p)
        middle = chosen.start + self.first_size(p)
        parts = ((chosen.start, middle), (middle, chosen.stop))
        return np.concatenate([is_near(*at, self.bounds, self.variables, width) for at in parts])

    def second_sums(self) -> np.ndarray:
        """Return where the variables of the second class begin, of each pair."""
        layout = self.layout
        return layout.offsets[:-1] + np.diff(layout.starts)[layout.first]

    def tolerance_alone(self, p: int) -> RelativeTolerance:
        """Return the tolerance of pair `p` where it is solved alone."""
        problem = self.problem(p)

        def rho(beta: np.ndarray, v: np.ndarray) -> float:
            # The negative class is first; in ``nu_svc`` the positive one is.
            negative, positive = thresholds(problem, beta, v)
            return 0.5 * float(negative - positive)

        return RelativeTolerance(self.tol, rho)

    def solve_on(self, p: int, source: KernelSource, counted: int) -> None:
        """Go on with one pair by itself; without a proven margin, from its start.

        Near w = 0, ``solve_qp`` would set a tiny tolerance at once; and it would limit its further
        steps by a multiple of the steps so far, which it would count from 0.
        """
        if not self.judge(p)[2]:
            chosen = self.layout.variables(p)
            self.variables[0][chosen] = self.start[chosen]
        super().solve_on(p, source, counted)

    def solve_in_float64(self, p: int) -> None:
        """Go on with one pair by itself, in float64 if its matrix fits.

        Near w = 0, float32 would take many steps, and checks that cost as much as the matrix.
        """
        counted = self.source.kernel_evaluations
        source = self.source.subset(self.layout.places[self.layout.variables(p)])
        K = source.whole(self.cache_mb)
        self.solve_on(p, source if K is None else KernelSource.precomputed(K), counted)

    def solve_on_copy(self, p: int, runs: ClassRows) -> None:
        """Go on with one pair, on a copy of its matrix; if that is not in memory, by its samples.

        Steps on kernel values in float32 are checked in float64 later.
        """
        chosen = self.layout.variables(p)
        is_exact = runs.rows.dtype == np.float64
        if is_exact and self.vanishes(p):
            self.reasons[p] = NO_MARGIN_CODE
            return
        if not runs.are_whole or chosen.stop - chosen.start > COPY_MAX_SAMPLES:
            self.solve_alone(p)
            return
        K = self.copy_of(p, runs)
        problem, (beta, v) = self.problem(p), (each[chosen] for each in self.variables)
        begun = int(self.steps[p])
        most = min(self.max_iter, begun + NO_MARGIN_STEPS_A_SAMPLE * len(v))
        reason = NOT_YET
        while reason == NOT_YET:
            judged = self.judge(p)
            tol, reason = next_stage(judged, self.tol, self.rounding(p))
            left = self.max_iter if judged[2] else most
            if not (is_exact or judged[2]):
                # Steps on values in float32 can't tell a smaller violation from none.
                noise = self.noise(p)
                tol, reason = max(tol, noise), STALLED if judged[0] <= noise else reason
            if reason == NOT_YET:
                criteria = StoppingCriteria(tol, left - int(self.steps[p]))
                steps, ended = search_on_matrix(K, problem, criteria, beta, v)
                self.steps[p] += steps
                reason = NOT_YET if ended == CONVERGED else ended
        self.reasons[p] = reason
        if reason == CONVERGED or self.steps[p] >= self.max_iter:
            return
        if is_exact and self.vanishes(p):
            self.reasons[p] = NO_MARGIN_CODE
        elif self.judge(p)[2]:
            self.solve_alone(p)
        else:
            self.solve_in_float64(p)

    def copy_of(self, p: int, runs: ClassRows) -> np.ndarray:
        """Return a copy of the part of pair `p` of a matrix in memory.

        A class has neighbouring rows and columns: four blocks are copied faster than by `gather`.
        """
        layout, n = self.layout, len(self.layout.order)
        whole = runs.values.reshape(n, n)
        parts = [slice(*layout.starts[c : c + 2]) for c in (layout.first[p], layout.second[p])]
        return np.block([[whole[rows, columns] for columns in parts] for rows in parts])

    def solution(self, work: dict[str, int]) -> NuJointSolution:
        """Return the solution of all pairs, with its counters."""
        layout, (beta, v) = self.layout, self.variables
        sizes = np.diff(layout.offsets)
        b, rho = np.empty(len(sizes)), np.empty(len(sizes))
        margins_of_all(self.pairs, self.bounds, self.variables, b, rho)
        # In the scale of the paper; a multiplier at its bound is exactly its weight times 1/N.
        share, b, rho = np.repeat(1.0 / sizes, sizes), b / sizes, rho / sizes
        return NuJointSolution(
            layout,
            beta * share,
            b,
            np.repeat(b, sizes) - v * share,
            np.maximum(1, self.steps),
            [STOP_REASONS[reason] for reason in self.reasons],
            {**work, "checks": self.checks, **self.support()},
            rho=rho,
        )


def starts_of_all(layout: Layout, nu: float, high: np.ndarray) -> np.ndarray:
    """Return multipliers (n_variables,) of the sum nu N / 2 in each class of each pair.

    ValueError if a pair has too few samples of a class, as by ``nu_problem.nu_svc_problem``.
    """
    sizes, pair_sizes = np.diff(layout.starts), np.diff(layout.offsets)
    # The runs of variables: both classes of each pair.
    begins = np.append(0, np.cumsum(sizes[np.column_stack([layout.first, layout.second])]))
    room = np.add.reduceat(high, begins[:-1]).reshape(-1, 2)
    most = 2.0 * room.min(axis=1) / pair_sizes
    for p in np.flatnonzero(nu > most)[:1]:
        require_feasible(nu, float(most[p]))
    start = np.zeros(len(high))
    fill_from_first(begins, np.repeat(0.5 * nu * pair_sizes, 2), high, start)
    return start


@compiled
def fill_from_first(
    begins: np.ndarray, totals: np.ndarray, high: np.ndarray, start: np.ndarray
) -> None:
    """Write multipliers of the total of each run: at their bound from its first variable on."""
    for q in range(len(totals)):
        left = totals[q]
        for k in range(begins[q], begins[q + 1]):
            start[k] = min(high[k], left)
            left -= start[k]


def solve_nu_pairs(
    source: KernelSource,
    layout: Layout,
    nu: float,
    weights: np.ndarray | None = None,
    *,
    tol: float = 1e-3,
    max_iter: int = 10_000_000,
    cache_mb: float = 1024.0,
) -> NuJointSolution:
    """Solve the ν-SVC of every pair of classes; samples of `source` stand class by class.

    `weights` (n_samples,), class by class, count relative to their mean in each pair. The rest is
    as for :func:`~svmbench.core.csvc.pairs.solve_pairs`.
    """
    high, pair_weights = np.ones(len(layout.places)), None
    if weights is not None:
        sizes = np.diff(layout.offsets)
        high = weights[layout.places]
        high = high / np.repeat(np.add.reduceat(high, layout.offsets[:-1]) / sizes, sizes)
        pair_weights = high
    start = starts_of_all(layout, nu, high)
    search = NuPairSearch(
        source, layout, high, start, tol=tol, max_iter=max_iter, cache_mb=cache_mb
    )
    solution = search.run()
    assert isinstance(solution, NuJointSolution), "NuPairSearch.solution makes it"
    return replace(solution, pair_weights=pair_weights)


def warm_up_nu_pairs() -> None:
    """Solve and check a problem of three classes in both precisions."""
    X = np.array([[0.0, 0.1], [1.0, 1.2], [1.0, 0.0], [0.2, 0.0], [0.0, 2.0], [2.0, 2.1]])
    layout = Layout.of(np.array([0, 0, 1, 1, 2, 2]), [0, 0, 1], [1, 2, 2])
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    for maker in (SourceRows(source, np.float64), DenseRows(X, KernelFunction("rbf", 1.0))):
        start = starts_of_all(layout, 0.5, np.ones(12))
        search = NuPairSearch(
            source, layout, np.ones(12), start, tol=1e-3, max_iter=9, cache_mb=1.0
        )
        search.take_steps(ClassRows(maker, layout.starts, 1.0, search.pool))
        search.check(np.arange(3), np.full(3, np.inf))
        search.correct_all(np.arange(3))
        search.correct(0)
        search.correct_some(np.arange(3))
        search.solution({})
