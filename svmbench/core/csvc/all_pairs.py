"""The C-SVCs of all pairs of classes on the rows of one kernel matrix.

Problem
    For every pair of classes the C-SVC of their samples, with a free offset; see ``csvc.box``.
Given
    Samples class by class, so that a pair's part of a kernel row is two runs of it.
Returned
    The variables of every pair with its gradient, once the conditions hold within tol.
Reference
    None: what is fast where was measured. Of a kernel row a pair needs the values at its own two
    classes; those at the sample's own class serve every pair that it is part of. Each pair takes
    steps until it needs values that are not there; then those that all pairs want are made
    together.
Deviations
    As those of ``csvc.whole_matrix``, whose steps these are.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.csvc.box import Box
from svmbench.core.csvc.driver import PROGRESS, can_be_single, solve_box
from svmbench.core.csvc.exact import NEAR, SAFETY
from svmbench.core.csvc.pair_loops import (
    SMALL,
    is_near,
    put_blocks,
    steps_of_all,
    thresholds_of_all,
)
from svmbench.core.csvc.passes import extremes
from svmbench.core.csvc.whole_matrix import CONVERGED, MAX_ITER, REASONS, STALLED, UNKNOWN
from svmbench.core.kernels.float32_rows import DenseRows, Rows, SourceRows, float32_rows
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.kernels.pair_sums import OwnPairs
from svmbench.core.kernels.prediction import add_up
from svmbench.core.kernels.threads import Crew
from svmbench.core.models.joint_pairs import JointSolution, Layout
from svmbench.core.numeric.arrays import raw

#: Up to so many samples rows are made in float64, and nothing is left to check …
EXACT = 400

#: … and with classes of fewer on average: to check each pair would cost more than that.
TINY = 150

#: Up to so many a check makes all gradients exact, and with them the objective of `fit`.
CHECKED = 1000

#: Up to so many all rows are made at once, as they are of tiny classes: choosing them would cost
#: more than they do.
AT_ONCE = 3000

#: Rows of a strip, at least: its product of matrices is efficient.
STRIP = 128

#: A pair of more samples is solved alone: working sets and shrinking are faster there.
LARGEST_PAIR = 4000


class Runs:
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
    crew : Crew

    Attributes
    ----------
    values : ndarray of shape (any,)
        Runs, one after another.
    slots : ndarray of int of shape (n_classes, n_samples)
        Where the run of each sample at each class begins; -1 where it is not there.
    are_whole : bool
        Whether all were made at once.
    """

    def __init__(self, rows: Rows, starts: np.ndarray, cache_mb: float, crew: Crew) -> None:
        n, k, self.crew, self.starts = rows.n_samples, len(starts) - 1, crew, starts
        most = int(cache_mb * MIB / np.dtype(rows.dtype).itemsize)
        self.rows, self.columns, self.are_whole = rows, rows.columns(None), True
        if n <= max(AT_ONCE, TINY * k) and n * n <= most:
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
            self.crew.share(len(parts), 1, fill)
        else:
            fill(0, len(parts))
        for c, samples, at in parts:
            self.slots[c, samples] = at
        self.made = made
        return True


class Search:
    """Solving the problems of all pairs.

    Parameters
    ----------
    source : KernelSource
        Over inputs, class by class.
    layout : Layout
    bound : ndarray of shape (n_variables,)
        C of each variable.
    crew : Crew
    tol, max_iter, cache_mb
        As for :func:`solve_pairs`.

    Attributes
    ----------
    bounds, variables : (ndarray, ndarray), each of shape (n_variables,)
        Lower and upper; beta and its gradient.
    steps, reasons : ndarray of int of shape (n_pairs,)
        Taken so far; position in ``whole_matrix.REASONS``, ``UNKNOWN`` for a pair that goes on.
    is_alone : ndarray of bool of shape (n_pairs,)
        Which pairs were handed to ``driver.solve_box``, whose result is checked already.
    checks, evaluations : int
        Of pairs in float64, and the kernel values that these took.
    """

    def __init__(
        self,
        source: KernelSource,
        layout: Layout,
        bound: np.ndarray,
        crew: Crew,
        *,
        tol: float,
        max_iter: int,
        cache_mb: float,
    ) -> None:
        self.source, self.layout, self.crew = source, layout, crew
        self.tol, self.max_iter, self.cache_mb = tol, max_iter, cache_mb
        signed = bound * layout.signs
        self.bounds = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
        self.variables = np.zeros(len(bound)), layout.signs.copy()
        n_pairs = len(layout.first)
        self.steps = np.zeros(n_pairs, dtype=np.int64)
        self.reasons = np.full(n_pairs, UNKNOWN)
        self.is_alone = np.zeros(n_pairs, dtype=bool)
        self.checks = self.evaluations = 0

    def run(self) -> JointSolution:
        """Search until every pair has ended."""
        source = self.source
        before = source.kernel_evaluations
        maker: Rows = SourceRows(source, np.float64)
        is_large = source.n_samples > max(EXACT, TINY * (len(self.layout.starts) - 1))
        if is_large and can_be_single(source, maker.diagonal):
            maker = float32_rows(source)
        runs = Runs(maker, self.layout.starts, self.cache_mb, self.crew)
        last = np.full(len(self.reasons), np.inf)
        while True:
            ended = self.reasons != UNKNOWN
            self.go_on(runs)
            if maker.dtype == np.float64:
                break
            self.check(np.flatnonzero(~ended), last)
            if not np.any(self.reasons == UNKNOWN):
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

    def go_on(self, runs: Runs) -> None:
        """Take steps until no pair needs a run; those that there is no room for end alone."""
        layout, ends = self.layout, (self.tol, self.max_iter)
        wanted = np.zeros(runs.slots.shape, dtype=bool)
        values, diag = raw(runs.values), raw(runs.rows.diagonal)

        def take_steps(start: int, stop: int) -> None:
            some = slice(start, stop)
            first, second = layout.first[some], layout.second[some]
            parts = layout.starts, first, second, layout.offsets[start : stop + 1]
            so_far = self.steps[some], self.reasons[some], wanted
            problem = values, runs.slots, diag, parts, self.bounds, ends, self.variables
            steps_of_all(*problem, so_far, runs.are_whole)

        while True:
            self.crew.share(len(layout.first), 1, take_steps)
            if not np.any(wanted):
                return
            if not runs.make(wanted):
                for p in np.flatnonzero(self.reasons == UNKNOWN):
                    self.solve_alone(int(p))
                return
            wanted[:] = False

    def box(self, p: int) -> Box:
        """Return the box of pair `p`."""
        own = self.layout.variables(p)
        signs, low, high = self.layout.signs[own], self.bounds[0][own], self.bounds[1][own]
        return Box(signs, low, high, np.zeros(len(signs), dtype=np.int64), 1)

    def check(self, pairs: np.ndarray, last: np.ndarray) -> None:
        """Check pairs in float64: a violation sends one on, and alone where float32 is at its end.

        Parameters
        ----------
        pairs : ndarray of int
        last : ndarray of shape (n_pairs,)
            The gap that each had when it was last checked; changed in place.
        """
        pairs = pairs[(self.reasons[pairs] != MAX_ITER) & ~self.is_alone[pairs]]
        all_of_few = len(self.layout.order) <= CHECKED
        if all_of_few:
            self.correct_all(pairs)
        self.checks += len(pairs)
        for p in pairs:
            if not all_of_few:
                self.correct(int(p))
            own = self.layout.variables(int(p))
            top, bottom = extremes(*(each[own] for each in (*self.bounds, *self.variables)))
            gap = top - bottom
            if gap <= self.tol:
                self.reasons[p] = CONVERGED
            elif not gap <= PROGRESS * last[p] or self.reasons[p] == STALLED:
                self.solve_alone(int(p))
            else:
                self.reasons[p] = UNKNOWN
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
        add_up(function, function.take(X, used), X, sums, n_jobs=self.crew.size)
        self.evaluations += len(found) * len(used)
        is_asked = np.zeros(len(layout.first), dtype=bool)
        is_asked[pairs] = True
        own = np.flatnonzero(np.repeat(is_asked, np.diff(layout.offsets)))
        v[own] = layout.signs[own] - found[layout.places[own], layout.others[own]]

    def correct(self, p: int) -> None:
        """Replace the gradients of a pair near its gap by their values in float64.

        As ``exact.correct`` does, first of what is within ``NEAR`` tolerances of the gap.
        """
        layout, own = self.layout, self.layout.variables(p)
        beta, v = (each[own] for each in self.variables)
        places, support = layout.places[own], np.flatnonzero(beta)
        is_known, width, error = np.zeros(len(v), dtype=bool), NEAR * self.tol, 0.0
        while True:
            near = is_near(own.start, own.stop, self.bounds, self.variables, width) & ~is_known
            at = np.flatnonzero(near)
            if len(at):
                K = self.source.block(places[at], places[support])
                found = layout.signs[own][at] - K @ beta[support]
                error = max(error, float(np.max(np.abs(found - v[at]))))
                v[at] = found
                is_known |= near
            if width >= SAFETY * error:
                return
            width = 2.0 * SAFETY * error

    def solve_alone(self, p: int) -> None:
        """Go on with one pair by itself."""
        own = self.layout.variables(p)
        found = solve_box(
            self.source.subset(self.layout.places[own]),
            self.box(p),
            start=self.variables[0][own],
            tol=self.tol,
            max_iter=self.max_iter - int(self.steps[p]),
            cache_mb=self.cache_mb,
            n_jobs=self.crew.size,
        )
        self.variables[0][own], self.variables[1][own] = found.beta, found.v
        self.steps[p] += found.steps
        self.reasons[p], self.is_alone[p] = found.reason, True
        self.checks += found.checks or 0

    def support(self) -> dict[str, int]:
        """Return how many support vectors the pairs have, and how many of them at their bound."""
        size = np.abs(self.variables[0])
        is_bounded = (size > 0.0) & (size >= self.bounds[1] - self.bounds[0])
        return {
            "support_vectors": int(np.count_nonzero(size)),
            "bounded_support_vectors": int(np.count_nonzero(is_bounded)),
        }


def suits(sizes: np.ndarray) -> bool:
    """Return whether classes of these sizes are solved so: no pair is too large."""
    return int(np.sort(sizes)[-2:].sum()) <= LARGEST_PAIR


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
        As for :func:`~svmbench.core.csvc.driver.solve_box`; `max_iter` is that of a pair.
        The solution is the same, bit by bit, whatever the number of threads.
    """
    weighted = 1.0 if weights is None else weights[layout.places]
    bound = np.full(len(layout.places), C) * weighted
    with Crew(n_jobs) as crew:
        search = Search(source, layout, bound, crew, tol=tol, max_iter=max_iter, cache_mb=cache_mb)
        return search.run()


def warm_up() -> None:
    """Solve and check a problem of three classes in both precisions."""
    X = np.array([[0.0, 0.1], [1.0, 1.2], [1.0, 0.0], [0.2, 0.0], [0.0, 2.0], [2.0, 2.1]])
    layout = Layout.of(np.array([0, 0, 1, 1, 2, 2]), [0, 0, 1], [1, 2, 2])
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    for maker in (SourceRows(source, np.float64), DenseRows(X, KernelFunction("rbf", 1.0))):
        search = Search(source, layout, np.ones(12), Crew(1), tol=1e-3, max_iter=9, cache_mb=1.0)
        search.go_on(Runs(maker, layout.starts, 1.0, Crew(1)))
        search.check(np.arange(3), np.full(3, np.inf))
        search.correct(0)
        search.solution({})
