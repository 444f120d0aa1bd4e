"""The C-SVCs of all pairs of classes on the rows of one kernel matrix.

Problem
    For every pair of classes the C-SVC of their samples, with a free offset; see ``problem``.
Given
    Samples class by class, so that a pair's part of a kernel row is two runs of it.
Returned
    The variables of every pair with its gradient, once the gap of each is at most tol.
Method
    Of a kernel row a pair needs the values at its own two classes; those at the sample's own class
    serve every pair that it is part of. Each pair takes the steps of ``smo`` on two runs of a row
    until it needs values that are not there; then the values that all pairs want are made together.
Reference
    None: what is fast where was measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.check import correct_near, is_exhausted
from svmbench.core.csvc.problem import QPProblem, threshold, up_low_extremes
from svmbench.core.csvc.smo import (
    CONVERGED,
    MAX_ITER,
    NO_LIMIT,
    REASONS,
    ROWS_MISSING,
    STALLED,
    Bounds,
    StoppingCriteria,
    pair_steps,
    select_j,
    solve_pair,
    up_low_penalties,
    update_gradient_select_i,
)
from svmbench.core.csvc.solver import can_be_single, solve_qp
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.kernels.pair_sums import OwnPairs
from svmbench.core.kernels.prediction import add_up
from svmbench.core.kernels.rows import DenseRows, Rows, SourceRows, float32_rows
from svmbench.core.kernels.thread_pool import ThreadPool
from svmbench.core.models.joint_pairs import JointSolution, Layout
from svmbench.core.numeric.arrays import raw

#: Up to so many samples a pair's matrix is copied to where it stays in the cache.
SMALL = 128

#: Rows that are mirrored side by side: their values, in float64, are a line of the cache.
LINE = 8

#: Up to so many samples rows are made in float64, and nothing is left to check …
FLOAT32_MIN_SAMPLES = 400

#: … and with classes of fewer on average: to check each pair would cost more than that.
TINY_CLASS = 150

#: Up to so many a check makes all gradients exact, and with them the objective of `fit`.
CHECK_ALL_MAX_SAMPLES = 1000

#: Up to so many all rows are made at once, as they are of tiny classes: choosing them would cost
#: more than they do.
FULL_MATRIX_MAX_SAMPLES = 3000

#: Rows of a strip, at least: its product of matrices is efficient.
STRIP = 128

#: A pair of more samples is solved alone: working sets and shrinking are faster there.
JOINT_MAX_PAIR = 4000


class PairTable(NamedTuple):
    """Where the classes of each pair stand.

    Attributes
    ----------
    starts : ndarray of int of shape (n_classes + 1,)
        The first sample of each class.
    first, second : ndarray of int of shape (n_pairs,)
        The two classes of each pair.
    offsets : ndarray of int of shape (n_pairs + 1,)
        The first variable of each pair.
    """

    starts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    offsets: np.ndarray


class Progress(NamedTuple):
    """The steps and the stop reason of each pair, and the runs that are wanted by any.

    `wanted` has the shape (n_classes, n_samples).
    """

    steps: np.ndarray
    reasons: np.ndarray
    wanted: np.ndarray


@compiled
def ask_ahead(
    ranges: tuple[int, int, int, int],
    v: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
    needed: int,
) -> None:
    """Ask for the runs of the variable that a step waits for, and of what would be asked for soon.

    That is, of each class, the largest gradient of what can go up and the smallest of what can go
    down, of samples that lack a run. What other pairs have asked for has no part in it: the order
    of pairs must not. `ranges`, `slots` and `wanted` are those of :func:`steps_of_pair`.
    """
    a0, a1, b0, _ = ranges
    m = a1 - a0
    ask(a0 + needed if needed < m else b0 + needed - m, slots, wanted)
    for begin, end, place in ((0, m, a0), (m, len(v), b0)):
        top, bottom, highest, lowest = -np.inf, np.inf, -1, -1
        for k in range(begin, end):
            at = place + k - begin
            if k != needed and (slots[0][at] < 0 or slots[1][at] < 0):
                if v[k] + up[k] > top:
                    top, highest = v[k], at
                if v[k] - down[k] < bottom:
                    bottom, lowest = v[k], at
        if highest >= 0:
            ask(highest, slots, wanted)
        if lowest >= 0:
            ask(lowest, slots, wanted)


@compiled
def ask(
    at: int, slots: tuple[np.ndarray, np.ndarray], wanted: tuple[np.ndarray, np.ndarray]
) -> None:
    """Set `wanted` for the runs that the sample `at` lacks."""
    for each in range(2):
        if slots[each][at] < 0:
            wanted[each][at] = True


@compiled
def steps_of_pair(
    values: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    diag: np.ndarray,
    ranges: tuple[int, int, int, int],
    bounds: Bounds,
    ends: StoppingCriteria,
    variables: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """Take the steps of one pair until it has converged or needs a run that is not there.

    Parameters
    ----------
    values : ndarray of shape (any,)
        Runs of kernel rows, one after another; no NaN where the longest of them would begin at 0.
    slots : tuple of ndarray of int of shape (n_samples,)
        The begin of each sample's run at the first class, and at the second; -1 where it is not
        there.
    diag : ndarray of shape (n_samples,)
        Kernel values of the samples with themselves, of the type of `values`.
    ranges : tuple of int
        Begin and end of the first class among the samples, and of the second.
    variables : (ndarray, ndarray)
        beta and its gradient, changed in place.
    wanted : tuple of ndarray of bool of shape (n_samples,)
        Set for the runs that are asked for, at the first class and at the second.

    Returns
    -------
    steps, reason : int
        As for ``smo.optimise``; the reason may be ``ROWS_MISSING``.
    """
    low, high = bounds.low, bounds.high
    tol, max_iter = ends.tol, ends.max_iter
    beta, v = variables
    a0, a1, b0, b1 = ranges
    m, w = a1 - a0, b1 - b0
    up, down = up_low_penalties(low, high, beta)
    score = np.empty(len(beta), dtype=np.float32)
    ia, ib, ja, jb, t, steps = 0, 0, 0, 0, 0.0, 0
    while True:
        i = update_gradient_select_i(v[:m], up[:m], values[ia : ia + m], values[ja : ja + m], t)
        k = update_gradient_select_i(v[m:], up[m:], values[ib : ib + w], values[jb : jb + w], t)
        if k >= 0 and (i < 0 or v[m + k] > v[i]):
            i = m + k
        if i < 0:
            return steps, CONVERGED
        at = a0 + i if i < m else b0 + i - m
        ia, ib = slots[0][at], slots[1][at]
        is_there, j = ia >= 0 and ib >= 0, -1
        if is_there:
            top, own = v[i], diag[at]
            a, b = values[ia : ia + m], values[ib : ib + w]
            j, gap = select_j(v[:m], down[:m], a, diag[a0:a1], top, own, score[:m])
            k, wide = select_j(v[m:], down[m:], b, diag[b0:b1], top, own, score[m:])
            if k >= 0 and (j < 0 or score[m + k] > score[j]):
                j = m + k
            if max(gap, wide) <= tol:
                return steps, CONVERGED
            if steps >= max_iter:
                return steps, MAX_ITER
            if j < 0:
                return steps, STALLED
            at = a0 + j if j < m else b0 + j - m
            ja, jb = slots[0][at], slots[1][at]
            is_there = ja >= 0 and jb >= 0
        if not is_there:
            ask_ahead(ranges, v, up, down, slots, wanted, j if j >= 0 else i)
            return steps, ROWS_MISSING
        kernel = own, diag[at], a[j] if j < m else b[j - m]
        t, has_moved = solve_pair(i, j, v[i] - v[j], kernel, beta, low, high, up, down)
        if not has_moved:
            return steps, STALLED
        steps += 1


@compiled
def steps_of_small_pair(
    values: np.ndarray,
    slots: tuple[np.ndarray, np.ndarray],
    diag: np.ndarray,
    ranges: tuple[int, int, int, int],
    bounds: Bounds,
    ends: StoppingCriteria,
    variables: tuple[np.ndarray, np.ndarray],
    scratch: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """Take the steps of :func:`steps_of_pair` on a copy of the matrix; all runs are there.

    `scratch` has room for the matrix and its diagonal, of the type of `values`.
    """
    a0, a1, b0, b1 = ranges
    m, w = a1 - a0, b1 - b0
    n = m + w
    K, own = scratch[0][: n * n].reshape(n, n), scratch[1][:n]
    for k in range(n):
        at = a0 + k if k < m else b0 + k - m
        first, second, row = slots[0][at], slots[1][at], K[k]
        for j in range(m):
            row[j] = values[first + j]
        for j in range(w):
            row[m + j] = values[second + j]
        own[k] = diag[at]
    return pair_steps(K, own, bounds, ends, *variables)


@compiled
def steps_of_all(
    values: np.ndarray,
    slots: np.ndarray,
    diag: np.ndarray,
    pairs: PairTable,
    bounds: Bounds,
    ends: StoppingCriteria,
    variables: tuple[np.ndarray, np.ndarray],
    so_far: Progress,
    all_there: bool,
) -> None:
    """Take the steps of every pair whose reason is ``ROWS_MISSING``; see :func:`steps_of_pair`.

    `slots` has the shape (n_classes, n_samples); `all_there` says that no run is missing.
    """
    starts, offsets = pairs.starts, pairs.offsets
    steps, reasons, wanted = so_far.steps, so_far.reasons, so_far.wanted
    scratch = np.empty(SMALL**2, dtype=values.dtype), np.empty(SMALL, dtype=values.dtype)
    for p in range(len(pairs.first)):
        if reasons[p] == ROWS_MISSING:
            a, b = pairs.first[p], pairs.second[p]
            ranges = starts[a], starts[a + 1], starts[b], starts[b + 1]
            begin, end = offsets[p], offsets[p + 1]
            own = Bounds(bounds.low[begin:end], bounds.high[begin:end])
            its = variables[0][begin:end], variables[1][begin:end]
            where, asked = (slots[a], slots[b]), (wanted[a], wanted[b])
            left = StoppingCriteria(ends.tol, ends.max_iter - steps[p], NO_LIMIT)
            if all_there and end - begin <= SMALL:
                taken, reason = steps_of_small_pair(
                    values, where, diag, ranges, own, left, its, scratch
                )
            else:
                taken, reason = steps_of_pair(values, where, diag, ranges, own, left, its, asked)
            steps[p] += taken
            reasons[p] = reason


@compiled
def put_blocks(
    strip: np.ndarray, first: int, last: int, starts: np.ndarray, values: np.ndarray
) -> None:
    """Write the kernel values of some classes by blocks of two classes, and mirror them.

    `strip` has the rows of the classes from `first` to `last`, from the diagonal on. The block of
    classes a and c begins at ``starts[a] * n_samples + (starts[a + 1] - starts[a]) * starts[c]``.
    """
    n, top = starts[-1], starts[first]
    for a in range(first, last):
        begin, size = starts[a], starts[a + 1] - starts[a]
        for c in range(first, len(starts) - 1):
            width, left = starts[c + 1] - starts[c], starts[c] - top
            at, mirrored = begin * n + size * starts[c], starts[c] * n + width * begin
            for i in range(size):
                row = strip[begin - top + i, left : left + width]
                out = values[at + i * width : at + (i + 1) * width]
                for j in range(width):
                    out[j] = row[j]
            if c < last:
                continue
            for some in range(0, size, LINE):
                rows = strip[begin - top + some : begin - top + min(some + LINE, size)]
                for j in range(width):
                    to = mirrored + j * size + some
                    for i in range(len(rows)):
                        values[to + i] = rows[i, left + j]


@compiled
def thresholds_of_all(
    offsets: np.ndarray,
    bounds: Bounds,
    variables: tuple[np.ndarray, np.ndarray],
    out: np.ndarray,
) -> None:
    """Write the offset of each pair."""
    for p in range(len(out)):
        begin, end = offsets[p], offsets[p + 1]
        low, high = bounds.low[begin:end], bounds.high[begin:end]
        out[p] = threshold(low, high, variables[0][begin:end], variables[1][begin:end])


@compiled
def is_near(
    begin: int,
    end: int,
    bounds: Bounds,
    variables: tuple[np.ndarray, np.ndarray],
    width: float,
) -> np.ndarray:
    """Return which variables of a pair could be part of a violation; see ``check.near_violation``.

    The variables of the pair stand from `begin` to `end`; `width` is the error of the gradients.
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


class ClassRows:
    """Kernel values of samples with all samples of a class, made when pairs ask for them.

    A pair reads two runs of a kernel row, those at its classes, and one at its own class serves
    every pair that the sample is part of. All runs of few samples are made at once; of tiny
    classes, which a pair is copied from, those of one class with another stand side by side.

    Parameters
    ----------
    rows : Rows
        Their maker.
    starts : ndarray of int of shape (n_classes + 1,)
        Where each class begins.
    cache_mb : float
        Memory that they may take, MiB.
    pool : ThreadPool

    Attributes
    ----------
    values : ndarray of shape (any,)
        ClassRows, one after another.
    slots : ndarray of int of shape (n_classes, n_samples)
        Where the run of each sample at each class begins; -1 where it is not there.
    are_whole : bool
        Whether all were made at once.
    """

    def __init__(self, rows: Rows, starts: np.ndarray, cache_mb: float, pool: ThreadPool) -> None:
        n, k, self.pool, self.starts = rows.n_samples, len(starts) - 1, pool, starts
        most = int(cache_mb * MIB / np.dtype(rows.dtype).itemsize)
        self.rows, self.columns, self.are_whole = rows, rows.columns(None), True
        if n <= max(FULL_MATRIX_MAX_SAMPLES, TINY_CLASS * k) and n * n <= most:
            self.made = n * n
            if rows.dtype == np.float64 and 2 * n <= SMALL * k:
                self.values = np.empty(n * n, dtype=rows.dtype)
                self.slots = self._make_blocks()
            else:
                self.values = rows.whole().ravel()
                self.slots = starts[:-1, None] + n * np.arange(n)
            return
        self.are_whole = False
        # Before there are any, steps of length 0 read this.
        self.made = int(np.max(np.diff(starts)))
        self.values = np.empty(max(self.made, min(n * n + self.made, most)), dtype=rows.dtype)
        self.values[: self.made] = 0.0
        self.slots = np.full((k, n), -1, dtype=np.int64)

    def _make_blocks(self) -> np.ndarray:
        """Make all runs by strips of whole classes, and return where each begins."""
        rows, starts = self.rows, self.starts
        n, sizes = rows.n_samples, np.diff(starts)
        last = 0
        while last < len(sizes):
            first = last
            last = min(int(np.searchsorted(starts, starts[first] + STRIP)), len(sizes))
            top, end = int(starts[first]), int(starts[last])
            strip, samples = np.empty((end - top, n - top), dtype=rows.dtype), np.arange(top, end)
            rows.fill(samples, self.columns, top, n, strip, samples - top)
            put_blocks(strip, first, last, raw(starts), self.values)
        # The block of two classes begins after those of earlier rows, and of earlier columns.
        codes, samples = np.repeat(np.arange(len(sizes)), sizes), np.arange(n)
        own, places = starts[codes], samples - starts[codes]
        return own * n + np.outer(starts[:-1], sizes[codes]) + np.outer(sizes, places)

    def make(self, wanted: np.ndarray) -> bool:
        """Make runs that are not there; False if there is no room.

        Parameters
        ----------
        wanted : ndarray of bool of shape (n_classes, n_samples)
        """
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

        if self.rows.shares:
            self.pool.share(len(parts), 1, fill)
        else:
            fill(0, len(parts))
        for c, samples, at in parts:
            self.slots[c, samples] = at
        self.made = made
        return True


class PairSearch:
    """Solving the problems of all pairs.

    Parameters
    ----------
    source : KernelSource
        Over inputs, class by class.
    layout : Layout
    bound : ndarray of shape (n_variables,)
        C of each variable.
    pool : ThreadPool
    tol, max_iter, cache_mb
        As for :func:`solve_pairs`.

    Attributes
    ----------
    bounds, variables : (ndarray, ndarray), each of shape (n_variables,)
        Lower and upper; beta and its gradient.
    steps, reasons : ndarray of int of shape (n_pairs,)
        Taken so far; position in ``smo.REASONS``, ``ROWS_MISSING`` for a pair that goes on.
    is_alone : ndarray of bool of shape (n_pairs,)
        Which pairs were handed to ``solver.solve_qp``, whose result is checked already.
    checks, evaluations : int
        Of pairs in float64, and the kernel values that these took.
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
        self.variables = np.zeros(len(bound)), layout.signs.copy()
        n_pairs = len(layout.first)
        self.steps = np.zeros(n_pairs, dtype=np.int64)
        self.reasons = np.full(n_pairs, ROWS_MISSING)
        self.is_alone = np.zeros(n_pairs, dtype=bool)
        self.checks = self.evaluations = 0

    def run(self) -> JointSolution:
        """PairSearch until every pair has ended."""
        source = self.source
        before = source.kernel_evaluations
        maker: Rows = SourceRows(source, np.float64)
        is_large = source.n_samples > max(
            FLOAT32_MIN_SAMPLES, TINY_CLASS * (len(self.layout.starts) - 1)
        )
        if is_large and can_be_single(source, maker.diagonal):
            maker = float32_rows(source)
        runs = ClassRows(maker, self.layout.starts, self.cache_mb, self.pool)
        last = np.full(len(self.reasons), np.inf)
        while True:
            ended = self.reasons != ROWS_MISSING
            self.go_on(runs)
            if maker.dtype == np.float64:
                break
            self.check(np.flatnonzero(~ended), last)
            if not np.any(self.reasons == ROWS_MISSING):
                break
        made = source.kernel_evaluations - before + maker.evaluations + self.evaluations
        return self.solution({"kernel_evaluations": made, "updates": int(self.steps.sum())})

    def solution(self, work: dict[str, int]) -> JointSolution:
        """Return what was found, with this work and what is counted of the solution."""
        layout, (beta, v) = self.layout, self.variables
        b = np.empty(len(self.reasons))
        thresholds_of_all(layout.offsets, self.bounds, self.variables, b)
        return JointSolution(
            layout,
            beta,
            b,
            layout.signs - v + np.repeat(b, np.diff(layout.offsets)),
            np.maximum(1, self.steps),
            [REASONS[reason] for reason in self.reasons],
            {**work, "checks": self.checks, **self.support()},
        )

    def go_on(self, runs: ClassRows) -> None:
        """Take steps until no pair needs a run; those that there is no room for end alone."""
        layout, ends = self.layout, StoppingCriteria(self.tol, self.max_iter)
        wanted = np.zeros(runs.slots.shape, dtype=bool)
        values, diag = raw(runs.values), raw(runs.rows.diagonal)

        def take_steps(start: int, stop: int) -> None:
            some = slice(start, stop)
            first, second = layout.first[some], layout.second[some]
            parts = PairTable(layout.starts, first, second, layout.offsets[start : stop + 1])
            so_far = Progress(self.steps[some], self.reasons[some], wanted)
            problem = values, runs.slots, diag, parts, self.bounds, ends, self.variables
            steps_of_all(*problem, so_far, runs.are_whole)

        while True:
            self.pool.share(len(layout.first), 1, take_steps)
            if not np.any(wanted):
                return
            if not runs.make(wanted):
                for p in np.flatnonzero(self.reasons == ROWS_MISSING):
                    self.solve_alone(int(p))
                return
            wanted[:] = False

    def problem(self, p: int) -> QPProblem:
        """Return the problem of pair `p`."""
        own = self.layout.variables(p)
        signs, low, high = self.layout.signs[own], self.bounds.low[own], self.bounds.high[own]
        return QPProblem(signs, low, high, np.zeros(len(signs), dtype=np.int64), 1)

    def check(self, pairs: np.ndarray, last: np.ndarray) -> None:
        """Check pairs in float64: a violation sends one on, and alone where float32 is at its end.

        Parameters
        ----------
        pairs : ndarray of int
        last : ndarray of shape (n_pairs,)
            The gap that each had when it was last checked; changed in place.
        """
        pairs = pairs[(self.reasons[pairs] != MAX_ITER) & ~self.is_alone[pairs]]
        all_of_few = len(self.layout.order) <= CHECK_ALL_MAX_SAMPLES
        if all_of_few:
            self.correct_all(pairs)
        self.checks += len(pairs)
        for p in pairs:
            if not all_of_few:
                self.correct(int(p))
            own = self.layout.variables(int(p))
            m, M = up_low_extremes(*(each[own] for each in (*self.bounds, *self.variables)))
            gap = m - M
            if gap <= self.tol:
                self.reasons[p] = CONVERGED
            elif is_exhausted(gap, last[p], self.reasons[p]):
                self.solve_alone(int(p))
            else:
                self.reasons[p] = ROWS_MISSING
            last[p] = gap

    def correct_all(self, pairs: np.ndarray) -> None:
        """Replace the gradients of pairs by their values in float64."""
        layout, (beta, v) = self.layout, self.variables
        inputs = self.source.inputs()
        assert inputs is not None, "pairs are trained together from inputs"
        X, function = inputs
        used, starts, coefficients = layout.gather(beta)
        found = np.zeros((len(layout.order), len(layout.starts) - 2))
        sums = OwnPairs(coefficients, starts, layout.codes, found)
        add_up(function, function.take(X, used), X, sums, n_jobs=self.pool.size)
        self.evaluations += len(found) * len(used)
        is_asked = np.zeros(len(layout.first), dtype=bool)
        is_asked[pairs] = True
        own = np.flatnonzero(np.repeat(is_asked, np.diff(layout.offsets)))
        v[own] = layout.signs[own] - found[layout.places[own], layout.others[own]]

    def correct(self, p: int) -> None:
        """Replace the gradients of a pair near its gap by their values in float64."""
        layout, own = self.layout, self.layout.variables(p)
        beta, v = (each[own] for each in self.variables)
        places, support = layout.places[own], np.flatnonzero(beta)

        def exact(at: np.ndarray) -> np.ndarray:
            K = self.source.block(places[at], places[support])
            return layout.signs[own][at] - K @ beta[support]

        correct_near(
            lambda width: is_near(own.start, own.stop, self.bounds, self.variables, width),
            exact,
            v,
            self.tol,
        )

    def solve_alone(self, p: int) -> None:
        """Go on with one pair by itself."""
        own = self.layout.variables(p)
        found = solve_qp(
            self.source.subset(self.layout.places[own]),
            self.problem(p),
            start=self.variables[0][own],
            tol=self.tol,
            max_iter=self.max_iter - int(self.steps[p]),
            cache_mb=self.cache_mb,
            n_jobs=self.pool.size,
        )
        self.variables[0][own], self.variables[1][own] = found.beta, found.v
        self.steps[p] += found.steps
        self.reasons[p], self.is_alone[p] = found.reason, True
        self.checks += found.checks or 0

    def support(self) -> dict[str, int]:
        """Return how many support vectors the pairs have, and how many of them at their bound."""
        size = np.abs(self.variables[0])
        is_bounded = (size > 0.0) & (size >= self.bounds.high - self.bounds.low)
        return {
            "support_vectors": int(np.count_nonzero(size)),
            "bounded_support_vectors": int(np.count_nonzero(is_bounded)),
        }


def suits(sizes: np.ndarray) -> bool:
    """Return whether classes of these sizes are solved so: no pair is too large."""
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
    """Solve the C-SVC of every pair of classes.

    Parameters
    ----------
    source : KernelSource
        Over inputs, class by class.
    layout : Layout
    C : float
    weights : ndarray of shape (n_samples,), optional
        What multiplies C for each sample, class by class.
    tol, max_iter, cache_mb, n_jobs
        As for :func:`~svmbench.core.csvc.solver.solve_qp`; `max_iter` is that of a pair.
        The solution is the same, bit by bit, whatever the number of threads.
    """
    weighted = 1.0 if weights is None else weights[layout.places]
    bound = np.full(len(layout.places), C) * weighted
    with ThreadPool(n_jobs) as pool:
        search = PairSearch(
            source, layout, bound, pool, tol=tol, max_iter=max_iter, cache_mb=cache_mb
        )
        return search.run()


def warm_up() -> None:
    """Solve and check a problem of three classes in both precisions."""
    X = np.array([[0.0, 0.1], [1.0, 1.2], [1.0, 0.0], [0.2, 0.0], [0.0, 2.0], [2.0, 2.1]])
    layout = Layout.of(np.array([0, 0, 1, 1, 2, 2]), [0, 0, 1], [1, 2, 2])
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    for maker in (SourceRows(source, np.float64), DenseRows(X, KernelFunction("rbf", 1.0))):
        search = PairSearch(
            source, layout, np.ones(12), ThreadPool(1), tol=1e-3, max_iter=9, cache_mb=1.0
        )
        search.go_on(ClassRows(maker, layout.starts, 1.0, ThreadPool(1)))
        search.check(np.arange(3), np.full(3, np.inf))
        search.correct(0)
        search.solution({})
