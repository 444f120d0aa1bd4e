"""The C-SVCs of all pairs of classes on the rows of one kernel matrix.

Problem
    For every pair of classes the C-SVC of their samples, with a free offset; see ``problem``. Here
    a pair is two classes; a step moves two variables.
Given
    Samples class by class, so that a pair's part of a kernel row is two runs (contiguous pieces).
Returned
    The variables of every pair with its gradient, once the violation of each is at most tol.
Method
    Of a kernel row a pair needs the values at its own two classes; those at the sample's own class
    serve every pair that it is part of. Each pair takes the steps of ``smo`` on two runs of a row
    until a run is missing; then the runs that all pairs want are made together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled, prefetch
from svmbench.core.csvc.problem import QPProblem, settle_at_bounds, threshold, up_low_extremes
from svmbench.core.csvc.smo import (
    CONVERGED,
    MAX_ITER,
    NO_GAP_TEST,
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
    CHECK_SAFETY,
    CHECK_WIDTH,
    CONTINUE,
    DONE,
    RelativeTolerance,
    correct_near,
    fits_float32,
    judge_check,
    solve_qp,
)
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource, ThreadPool
from svmbench.core.kernels.prediction import add_up
from svmbench.core.kernels.products import gauss_double, squared_lengths
from svmbench.core.kernels.rows import DenseRows, Rows, SourceRows, float32_rows
from svmbench.core.models.ovo_model import JointSolution, Layout, OwnPairs
from svmbench.core.numeric.arrays import raw

#: Rows are made in float64, which leaves nothing to check, for up to this many samples, and for
#: classes with fewer than this many samples on average: checking each pair would cost more.
PAIRS_FLOAT32_MIN_SAMPLES, PAIRS_FLOAT32_MIN_CLASS = 400, 150

#: Samples up to which a check makes all gradients exact, and with them the objective of `fit`.
CHECK_ALL_MAX_SAMPLES = 1000

#: Up to this many samples all rows are made at once: choosing some would cost more than making all.
ALL_ROWS_MAX_SAMPLES = 3000

#: A pair that misses a run asks for further ones at each end of each class: one for every ASK_SHARE
#: multipliers above 0, but at least one and at most ASK_MOST.
ASK_SHARE, ASK_MOST = 4, 8

#: Kernel values in a line of the cache, of 64 bytes, in float32.
VALUES_A_LINE = 16

#: Samples of a pair above which it is solved alone: working sets and shrinking are faster there.
JOINT_MAX_PAIR = 4000


class PairTable(NamedTuple):
    """The positions of the classes of each pair."""

    starts: np.ndarray  # int (n_classes + 1,): the first sample of each class
    first: np.ndarray  # int (n_pairs,): the first class of each pair
    second: np.ndarray  # int (n_pairs,): the second one
    offsets: np.ndarray  # int (n_pairs + 1,): the first variable of each pair


class Progress(NamedTuple):
    """The steps and the stop reason of each pair, and the runs that any pair wants."""

    steps: np.ndarray  # int (n_pairs,)
    reasons: np.ndarray  # int (n_pairs,)
    wanted: np.ndarray  # bool (n_classes, n_samples)


@compiled
def ask_ahead(
    ranges: tuple[int, int, int, int],
    variables: tuple[np.ndarray, np.ndarray],
    penalties: tuple[np.ndarray, np.ndarray],
    slots: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
    needed: int,
) -> None:
    """Ask for the runs of the variable that a step waits for, and of likely next ones.

    These are, of each class, samples that lack a run: those with the largest v of I_up and those
    with the smallest of I_low, a number of each that grows with the number of multipliers above 0.
    Runs that other pairs asked for don't count, so that the order of pairs changes nothing.
    `penalties` are `up` and `down` of :func:`steps_of_pair`, `needed` is the variable's position in
    the pair, and the other arguments are those of that function.
    """
    a0, a1, b0, _ = ranges
    (beta, v), n_first = variables, a1 - a0
    ask(a0 + needed if needed < n_first else b0 + needed - n_first, slots, wanted)
    several = min(max(int(np.count_nonzero(beta)) // ASK_SHARE, 1), ASK_MOST)
    # The largest of v in I_up, or of -v in I_low, in descending order, and their samples.
    values, samples = np.empty(several), np.empty(several, dtype=np.int64)
    for begin, end, place in ((0, n_first, a0), (n_first, len(v), b0)):
        for side in range(2):
            sign, penalty, count = 1.0 - 2.0 * side, penalties[side], 0
            values[:] = -np.inf
            for k in range(begin, end):
                value = sign * v[k] + penalty[k]
                if value > values[several - 1] and k != needed:
                    at = place + k - begin
                    if slots[0][at] < 0 or slots[1][at] < 0:
                        count = min(count + 1, several)
                        q = count - 1
                        while q > 0 and values[q - 1] < value:
                            values[q], samples[q] = values[q - 1], samples[q - 1]
                            q -= 1
                        values[q], samples[q] = value, at
            for q in range(count):
                ask(samples[q], slots, wanted)


@compiled
def ask(
    at: int, slots: tuple[np.ndarray, np.ndarray], wanted: tuple[np.ndarray, np.ndarray]
) -> None:
    """Set `wanted` for the runs that the sample `at` lacks."""
    for each in range(2):
        if slots[each][at] < 0:
            wanted[each][at] = True


@compiled
def fetch_run(values: np.ndarray, begin: int, length: int) -> None:
    """Prefetch a run of a kernel row: a pair reads most of its rows once or twice."""
    for k in range(begin, begin + length, VALUES_A_LINE):
        prefetch(values, k)


@compiled
def steps_of_pair(
    # runs of kernel rows, one after another; no NaN where the longest of them would begin at 0
    values: np.ndarray,
    # int (n_samples,), each: the begin of a sample's run at the first class, and at the second; -1
    # where it is missing
    slots: tuple[np.ndarray, np.ndarray],
    diag: np.ndarray,  # (n_samples,): K_ii, of the type of `values`
    ranges: tuple[int, int, int, int],  # begin and end of the first class, and of the second
    bounds: Bounds,
    criteria: StoppingCriteria,
    variables: tuple[np.ndarray, np.ndarray],  # beta and v, changed in place
    # bool (n_samples,), each: set for the runs that are asked for, at either class
    wanted: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """Take the steps of ``smo.pair_steps`` for one pair of classes, until a run is missing.

    Return the number of steps and the stop reason, which may be ``ROWS_MISSING``.
    """
    low, high = bounds.low, bounds.high
    beta, v = variables
    a0, a1, b0, _ = ranges
    n_first, n = a1 - a0, len(v)
    up, down = up_low_penalties(low, high, beta)
    first_slots, second_slots = slots
    ia, ib, ja, jb, t, steps = 0, 0, 0, 0, 0.0, 0
    while True:
        # update_gradient by the last step, and i = argmax of v over I_up: on either class's run.
        m = update_gradient(v, up, 0, n_first, values, ia, ja, t)
        other_m = update_gradient(v, up, n_first, n, values, ib, jb, t)
        if m >= other_m:
            if m == -np.inf:
                return steps, CONVERGED
            i = select_i(v, up, 0, n_first, m)
            at = a0 + i
        else:
            m = other_m
            i = select_i(v, up, n_first, n, m)
            at = b0 + i - n_first
        ia, ib = first_slots[at], second_slots[at]
        is_there, j = ia >= 0 and ib >= 0, -1
        if is_there:
            fetch_run(values, ia, n_first)
            fetch_run(values, ib, n - n_first)
            # j by WSS 2, on either class's run of row i; the violation is the larger of both.
            square = diag[at]
            best, violation = select_j(v, down, 0, n_first, values, ia, diag, a0, m, square)
            other, other_violation = select_j(v, down, n_first, n, values, ib, diag, b0, m, square)
            j = chosen_j(max(best, other))
            reason = why_stop(max(violation, other_violation), steps, j, criteria)
            if reason != NOT_YET:
                return steps, reason
            at = a0 + j if j < n_first else b0 + j - n_first
            ja, jb = first_slots[at], second_slots[at]
            is_there = ja >= 0 and jb >= 0
        if not is_there:
            ask_ahead(ranges, variables, (up, down), slots, wanted, j if j >= 0 else i)
            return steps, ROWS_MISSING
        fetch_run(values, ja, n_first)
        fetch_run(values, jb, n - n_first)
        kernel = square, diag[at], values[ia + j if j < n_first else ib + j - n_first]
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
    variables: tuple[np.ndarray, np.ndarray],
    so_far: Progress,
) -> None:
    """Take the steps of every pair whose reason is ``ROWS_MISSING``; see :func:`steps_of_pair`.

    `slots` has the shape (n_classes, n_samples).
    """
    starts, offsets = pairs.starts, pairs.offsets
    steps, reasons, wanted = so_far.steps, so_far.reasons, so_far.wanted
    for p in range(len(pairs.first)):
        if reasons[p] == ROWS_MISSING:
            a, b = pairs.first[p], pairs.second[p]
            ranges = starts[a], starts[a + 1], starts[b], starts[b + 1]
            begin, end = offsets[p], offsets[p + 1]
            pair_bounds = Bounds(bounds.low[begin:end], bounds.high[begin:end])
            pair_variables = variables[0][begin:end], variables[1][begin:end]
            where, asked = (slots[a], slots[b]), (wanted[a], wanted[b])
            left = StoppingCriteria(criteria.tol, criteria.max_iter - steps[p], NO_GAP_TEST)
            taken, reason = steps_of_pair(
                values, where, diag, ranges, pair_bounds, left, pair_variables, asked
            )
            steps[p] += taken
            reasons[p] = reason


@compiled
def thresholds_of_all(
    offsets: np.ndarray, bounds: Bounds, variables: tuple[np.ndarray, np.ndarray], out: np.ndarray
) -> None:
    """Write the offset of each pair."""
    for p in range(len(out)):
        begin, end = offsets[p], offsets[p + 1]
        low, high = bounds.low[begin:end], bounds.high[begin:end]
        settle_at_bounds(low, high, variables[0][begin:end])
        out[p] = threshold(low, high, variables[0][begin:end], variables[1][begin:end])


@compiled
def is_near(
    begin: int, end: int, bounds: Bounds, variables: tuple[np.ndarray, np.ndarray], width: float
) -> np.ndarray:
    """Mark the variables of a pair that may be part of a violation; see ``solver.near_violation``.

    The variables of the pair are those from `begin` to `end`; `width` is the error of v.
    """
    low, high = bounds.low[begin:end], bounds.high[begin:end]
    beta, v = variables[0][begin:end], variables[1][begin:end]
    m, M = up_low_extremes(low, high, beta, v)
    least, most = min(m, M) - width, max(m, M) + width
    near = np.empty(len(v), dtype=np.bool_)
    for k in range(len(v)):
        rises = beta[k] < high[k] and v[k] >= least
        near[k] = rises or (beta[k] > low[k] and v[k] <= most)
    return near


@compiled
def correct_gauss(
    points: tuple[np.ndarray, np.ndarray],  # the samples (n, d), and their squared lengths
    gamma: float,
    places: np.ndarray,  # int (n_variables,): the sample of each variable
    ranges: np.ndarray,  # int (m, 3): where each fixed sum of a pair begins, and the pair's end
    tols: np.ndarray,  # (m,)
    bounds: Bounds,
    linear: np.ndarray,
    variables: tuple[np.ndarray, np.ndarray],
) -> int:
    """Do ``solver.correct_near`` for several pairs, of RBF kernels; return the values computed."""
    (X, lengths), (all_beta, all_v), evaluations = points, variables, 0
    for q in range(len(tols)):
        begin, middle, end = ranges[q]
        beta, v, own = all_beta[begin:end], all_v[begin:end], places[begin:end]
        support = np.flatnonzero(beta)
        multipliers, others = beta[support], own[support]
        Z, squares = X[others], lengths[others]
        done, width, error = np.zeros(len(v), dtype=np.bool_), CHECK_WIDTH * tols[q], 0.0
        while True:
            first = is_near(begin, middle, bounds, variables, width)
            near = np.concatenate((first, is_near(middle, end, bounds, variables, width)))
            at = np.flatnonzero(near & ~done)
            if len(at):
                K = np.dot(X[own[at]], Z.T)
                gauss_double(K, lengths[own[at]], squares, gamma)
                exact = linear[begin + at] - np.dot(K, multipliers)
                error = max(error, np.max(np.abs(exact - v[at])))
                v[at], done[at] = exact, True
                evaluations += K.size
            if width >= CHECK_SAFETY * error:
                break
            width = 2.0 * CHECK_SAFETY * error
    return evaluations


class ClassRows:
    """Kernel values of samples with all samples of a class, made when pairs ask for them.

    A pair reads two runs of a kernel row, those at its classes, and one at its own class serves
    every pair that the sample is part of. All runs of few samples are made at once.
    """

    def __init__(self, rows: Rows, starts: np.ndarray, cache_mb: float, pool: ThreadPool) -> None:
        # `starts`: int (n_classes + 1,), the first sample of each class.
        n, k, self.pool, self.starts = rows.n_samples, len(starts) - 1, pool, starts
        most = int(cache_mb * MIB / np.dtype(rows.dtype).itemsize)
        # `values` has the runs one after another; `slots`, of shape (n_classes, n_samples), the
        # begin of each sample's run at each class, or -1. `are_whole`: no run is missing.
        self.rows, self.columns, self.are_whole = rows, rows.columns(None), True
        if n <= max(ALL_ROWS_MAX_SAMPLES, PAIRS_FLOAT32_MIN_CLASS * k) and n * n <= most:
            self.made = n * n
            self.values = rows.whole().ravel()
            self.slots = starts[:-1, None] + n * np.arange(n)
            return
        self.are_whole = False
        # The first step has length 0, and reads these zeros: no run is made yet.
        self.made = int(np.max(np.diff(starts)))
        self.values = np.empty(max(self.made, min(n * n + self.made, most)), dtype=rows.dtype)
        self.values[: self.made] = 0.0
        self.slots = np.full((k, n), -1, dtype=np.int64)

    def make(self, wanted: np.ndarray) -> bool:
        """Make missing runs, marked in `wanted` (n_classes, n_samples); False without room."""
        parts, made = [], self.made
        for c in np.flatnonzero(np.any(wanted, axis=1)):
            samples, length = np.flatnonzero(wanted[c]), int(self.starts[c + 1] - self.starts[c])
            parts.append((c, samples, made + length * np.arange(len(samples))))
            made += length * len(samples)
        if made > len(self.values):
            return False

        def fill(first: int, last: int) -> None:
            for c, samples, at in parts[first:last]:
                start, stop = int(self.starts[c]), int(self.starts[c + 1])
                out = self.values[at[0] : at[-1] + stop - start].reshape(len(at), -1)
                self.rows.fill(samples, self.columns, start, stop, out, np.arange(len(at)))

        self.rows.share(self.pool, len(parts), 1, fill)
        for c, samples, at in parts:
            self.slots[c, samples] = at
        self.made = made
        return True


class PairSearch:
    """The search for the solutions of all pairs; parameters are those of :func:`solve_pairs`.

    The problems are C-SVCs; those of the subclass in ``nu.nu_pairs`` are ν-SVCs. The loop is not
    that of ``solver.Refinement``, because pairs go on at different times: all pairs that are not
    done take steps on shared rows, each is checked by itself, and one that float32 can't solve
    leaves the loop for ``solve_qp``. Correction and verdict are those of ``solver``.
    """

    def __init__(
        self,
        source: KernelSource,
        layout: Layout,
        bound: np.ndarray,
        pool: ThreadPool,
        *,
        tol: float,
        max_iter: int,
        cache_mb: float,
    ) -> None:
        self.source, self.layout, self.pool = source, layout, pool
        self.tol, self.max_iter, self.cache_mb = tol, max_iter, cache_mb
        signed = bound * layout.signs
        self.bounds = Bounds(np.minimum(signed, 0.0), np.maximum(signed, 0.0))
        # The linear term p; beta and its gradient v = p - K beta, of all pairs.
        self.linear = layout.signs
        self.variables = np.zeros(len(bound)), self.linear.copy()
        # Of each pair: steps; stop reason, or ``ROWS_MISSING`` before its first step and while it
        # goes on; whether it is solved by `solve_qp`.
        n_pairs = len(layout.first)
        self.steps = np.zeros(n_pairs, dtype=np.int64)
        self.reasons = np.full(n_pairs, ROWS_MISSING)
        self.is_alone = np.zeros(n_pairs, dtype=bool)
        # Checks of pairs in float64, and the kernel values that they took.
        self.checks = self.evaluations = 0

    def run(self) -> JointSolution:
        """Solve every pair: take steps, check in float64, and go on with pairs that violate."""
        source = self.source
        before = source.kernel_evaluations
        maker: Rows = SourceRows(source, np.float64)
        is_large = source.n_samples > max(
            PAIRS_FLOAT32_MIN_SAMPLES, PAIRS_FLOAT32_MIN_CLASS * (len(self.layout.starts) - 1)
        )
        if is_large and fits_float32(source, maker.diagonal):
            maker = float32_rows(source)
        runs = ClassRows(maker, self.layout.starts, self.cache_mb, self.pool)
        last = np.full(len(self.reasons), np.inf)
        while True:
            ended = self.reasons != ROWS_MISSING
            self.take_steps(runs)
            if maker.dtype == np.float64:
                break
            self.check(np.flatnonzero(~ended), last)
            if not np.any(self.reasons == ROWS_MISSING):
                break
        made = source.kernel_evaluations - before + maker.evaluations + self.evaluations
        return self.solution({"kernel_evaluations": made, "updates": int(self.steps.sum())})

    def solution(self, work: dict[str, int]) -> JointSolution:
        """Return the solution of all pairs, with its counters."""
        layout, (beta, v) = self.layout, self.variables
        b = np.empty(len(self.reasons))
        thresholds_of_all(layout.offsets, self.bounds, self.variables, b)
        return JointSolution(
            layout,
            beta,
            b,
            layout.signs - v + np.repeat(b, np.diff(layout.offsets)),
            np.maximum(1, self.steps),
            [STOP_REASONS[reason] for reason in self.reasons],
            {**work, "checks": self.checks, **self.support()},
        )

    def take_steps(self, runs: ClassRows) -> None:
        """Take steps until no pair misses a run; without room for it, a pair goes on alone."""
        layout = self.layout
        wanted = np.zeros(runs.slots.shape, dtype=bool)

        def some_steps(start: int, stop: int) -> None:
            some = slice(start, stop)
            first, second = layout.first[some], layout.second[some]
            parts = PairTable(layout.starts, first, second, layout.offsets[start : stop + 1])
            so_far = Progress(self.steps[some], self.reasons[some], wanted)
            self.take_steps_of(runs, parts, so_far)

        while True:
            self.pool.share(len(layout.first), 1, some_steps)
            if not np.any(wanted):
                return
            if not runs.make(wanted):
                for p in np.flatnonzero(self.reasons == ROWS_MISSING):
                    self.solve_alone(int(p))
                return
            wanted[:] = False

    def take_steps_of(self, runs: ClassRows, pairs: PairTable, so_far: Progress) -> None:
        """Take steps of some pairs until runs are missing; threads share the pairs."""
        values, diag = raw(runs.values), raw(runs.rows.diagonal)
        criteria = StoppingCriteria(self.tol, self.max_iter)
        problem = values, runs.slots, diag, pairs, self.bounds, criteria, self.variables
        steps_of_all(*problem, so_far)

    def problem(self, p: int) -> QPProblem:
        """Return the problem of pair `p`."""
        chosen = self.layout.variables(p)
        linear, low, high = self.linear[chosen], self.bounds.low[chosen], self.bounds.high[chosen]
        return QPProblem(linear, low, high, np.zeros(len(linear), dtype=np.int64), 1)

    def violation(self, p: int) -> tuple[float, float]:
        """Return the violation m - M of pair `p`, and its tolerance."""
        chosen = self.layout.variables(p)
        m, M = up_low_extremes(*(each[chosen] for each in (*self.bounds, *self.variables)))
        return m - M, self.tol

    def tolerance_alone(self, p: int) -> float | RelativeTolerance:
        """Return the tolerance of pair `p` where it is solved alone."""
        return self.tol

    def check(self, pairs: np.ndarray, last: np.ndarray) -> None:
        """Check pairs in float64: those that violate go on, alone if float32 gets no further.

        `last` (n_pairs,) has the violation at the last check of each pair; changed in place.
        """
        pairs = pairs[(self.reasons[pairs] != MAX_ITER) & ~self.is_alone[pairs]]
        if len(self.layout.order) <= CHECK_ALL_MAX_SAMPLES:
            self.correct_all(pairs)
        else:
            self.correct_some(pairs)
        self.checks += len(pairs)
        for p in pairs:
            violation, tol = self.violation(int(p))
            verdict = judge_check(violation, last[p], tol, self.reasons[p])
            if verdict == DONE:
                self.reasons[p] = CONVERGED
            elif verdict == CONTINUE:
                # Checked, and to go on: no run need be missing.
                self.reasons[p] = ROWS_MISSING
            else:
                self.solve_alone(int(p))
            last[p] = violation

    def correct_all(self, pairs: np.ndarray) -> None:
        """Replace the gradients of pairs by their values in float64."""
        layout, (beta, v) = self.layout, self.variables
        inputs = self.source.inputs()
        assert inputs is not None, "pairs are trained together from inputs"
        X, function = inputs
        used, starts, coefficients = layout.gather(beta)
        sums_of_pairs = np.zeros((len(layout.order), len(layout.starts) - 2))
        sums = OwnPairs(coefficients, starts, layout.codes, sums_of_pairs)
        add_up(function, function.take(X, used), X, sums, n_jobs=self.pool.size)
        self.evaluations += len(sums_of_pairs) * len(used)
        is_asked = np.zeros(len(layout.first), dtype=bool)
        is_asked[pairs] = True
        chosen = np.flatnonzero(np.repeat(is_asked, np.diff(layout.offsets)))
        v[chosen] = (
            self.linear[chosen] - sums_of_pairs[layout.places[chosen], layout.others[chosen]]
        )

    def correct_some(self, pairs: np.ndarray) -> None:
        """Replace the gradients by their values in float64 where a pair could violate."""
        inputs = self.source.inputs()
        assert inputs is not None, "pairs are trained together from inputs"
        X, function = inputs
        if function.name == "rbf" and isinstance(X, np.ndarray):
            lengths = squared_lengths(X)
            if not function.cancels(lengths, lengths):
                offsets = self.layout.offsets
                ranges = np.column_stack([offsets[:-1], self.second_sums(), offsets[1:]])[pairs]
                tols = np.array([self.violation(int(p))[1] for p in pairs])
                given = (X, lengths), function.gamma, self.layout.places, ranges, tols
                self.evaluations += correct_gauss(*given, self.bounds, self.linear, self.variables)
                return
        for p in pairs:
            self.correct(int(p))

    def second_sums(self) -> np.ndarray:
        """Return where the variables of a second fixed sum begin, of each pair: at its end."""
        return self.layout.offsets[1:]

    def correct(self, p: int) -> None:
        """Replace the gradients by their values in float64 where the pair could violate."""
        layout, chosen = self.layout, self.layout.variables(p)
        beta, v = (each[chosen] for each in self.variables)
        places, support = layout.places[chosen], np.flatnonzero(beta)

        def exact(at: np.ndarray) -> np.ndarray:
            K = self.source.block(places[at], places[support])
            return self.linear[chosen][at] - K @ beta[support]

        correct_near(lambda width: self.near(p, width), exact, v, self.violation(p)[1])

    def near(self, p: int, width: float) -> np.ndarray:
        """Mark the variables of pair `p` that could violate if v errs by `width`."""
        chosen = self.layout.variables(p)
        return is_near(chosen.start, chosen.stop, self.bounds, self.variables, width)

    def solve_alone(self, p: int) -> None:
        """Go on with one pair by itself."""
        source = self.source.subset(self.layout.places[self.layout.variables(p)])
        self.solve_on(p, source, self.source.kernel_evaluations)

    def solve_on(
        self,
        p: int,
        source: KernelSource,
        counted: int,  # kernel values that were computed before those of `source`
    ) -> None:
        """Go on with one pair on its kernel values."""
        chosen = self.layout.variables(p)
        result = solve_qp(
            source,
            self.problem(p),
            start=self.variables[0][chosen],
            tol=self.tolerance_alone(p),
            max_iter=self.max_iter - int(self.steps[p]),
            cache_mb=self.cache_mb,
            n_jobs=self.pool.size,
        )
        self.variables[0][chosen], self.variables[1][chosen] = result.beta, result.v
        self.steps[p] += result.steps
        self.reasons[p], self.is_alone[p] = result.reason, True
        self.checks += result.checks or 0
        # The source has counted those in float64 already.
        self.evaluations += result.evaluations - (self.source.kernel_evaluations - counted)

    def support(self) -> dict[str, int]:
        """Count the support vectors of all pairs, and those at their bound."""
        size = np.abs(self.variables[0])
        is_bounded = (size > 0.0) & (size >= self.bounds.high - self.bounds.low)
        return {
            "support_vectors": int(np.count_nonzero(size)),
            "bounded_support_vectors": int(np.count_nonzero(is_bounded)),
        }


def suits_joint_training(sizes: np.ndarray) -> bool:
    """Return True if no pair of classes of these sizes is too large for shared rows."""
    return int(np.sort(sizes)[-2:].sum()) <= JOINT_MAX_PAIR


def solve_pairs(
    source: KernelSource,
    layout: Layout,
    C: float,
    weights: np.ndarray | None = None,
    *,
    tol: float = 1e-3,
    max_iter: int = 10_000_000,
    cache_mb: float = 1024.0,
    n_jobs: int = 1,
) -> JointSolution:
    """Solve the C-SVC of every pair of classes; samples of `source` stand class by class.

    `weights` (n_samples,), class by class, multiply C. The rest is as for
    :func:`~svmbench.core.csvc.solver.solve_qp`, with `max_iter` for each pair. The solution is the
    same, bit by bit, whatever the number of threads.
    """
    weighted = 1.0 if weights is None else weights[layout.places]
    bound = np.full(len(layout.places), C) * weighted
    with ThreadPool(n_jobs) as pool:
        search = PairSearch(
            source, layout, bound, pool, tol=tol, max_iter=max_iter, cache_mb=cache_mb
        )
        return search.run()


def warm_up_pairs() -> None:
    """Solve and check a problem of three classes in both precisions."""
    X = np.array([[0.0, 0.1], [1.0, 1.2], [1.0, 0.0], [0.2, 0.0], [0.0, 2.0], [2.0, 2.1]])
    layout = Layout.of(np.array([0, 0, 1, 1, 2, 2]), [0, 0, 1], [1, 2, 2])
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    for maker in (SourceRows(source, np.float64), DenseRows(X, KernelFunction("rbf", 1.0))):
        search = PairSearch(
            source, layout, np.ones(12), ThreadPool(1), tol=1e-3, max_iter=9, cache_mb=1.0
        )
        search.take_steps(ClassRows(maker, layout.starts, 1.0, ThreadPool(1)))
        search.check(np.arange(3), np.full(3, np.inf))
        search.correct(0)
        search.correct_some(np.arange(3))
        search.solution({})
