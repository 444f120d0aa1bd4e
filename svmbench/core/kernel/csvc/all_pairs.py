"""The C-SVCs of all pairs of classes on the rows of one kernel matrix.

Problem
    For every pair of classes the C-SVC of their samples, with a free offset; see ``csvc.box``.
Given
    Samples class by class, so that a pair's part of a kernel row is two runs of it.
Returned
    The variables of every pair with its gradient, once the conditions hold within tol.
Reference
    None: what is fast where was measured. A kernel row serves every pair that its sample is part
    of. Each pair takes steps until it needs a row that is not there; then the rows that all pairs
    want are made together.
Deviations
    As those of ``csvc.whole_matrix``, whose steps these are.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.arrays import raw
from svmbench.core.crew import Crew
from svmbench.core.joint_pairs import JointSolution, Layout
from svmbench.core.kernel.csvc.box import Box
from svmbench.core.kernel.csvc.driver import PROGRESS, can_be_single, solve_box
from svmbench.core.kernel.csvc.exact import NEAR, SAFETY
from svmbench.core.kernel.csvc.float32_rows import WIDTH, DenseRows, Rows, SourceRows, float32_rows
from svmbench.core.kernel.csvc.pair_loops import (
    extremes,
    find_near,
    put_exact,
    steps_of_all,
    thresholds_of_all,
)
from svmbench.core.kernel.csvc.whole_matrix import CONVERGED, MAX_ITER, REASONS, STALLED, UNKNOWN
from svmbench.core.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.prediction import weighted_sums

#: Up to so many samples rows are made in float64, and nothing is left to check.
EXACT = 400

#: Up to so many a check makes all gradients exact, and with them the objective of `fit`.
CHECKED = 1000

#: Up to so many all rows are made at once: choosing them would cost more than they do.
AT_ONCE = 3000

#: A pair of more samples is solved alone: working sets and shrinking are faster there.
LARGEST_PAIR = 4000


class RowsOfAll:
    """Kernel rows over all samples, made when pairs ask for them; those of few samples at once.

    Parameters
    ----------
    rows : Rows
        Their maker.
    cache_mb : float
        Memory that they may take, MiB.
    crew : Crew
    """

    def __init__(self, rows: Rows, cache_mb: float, crew: Crew) -> None:
        n, self.crew = rows.n_samples, crew
        most = int(cache_mb * MIB / (n * np.dtype(rows.dtype).itemsize))
        self.rows, self.columns = rows, rows.columns(None)
        if n <= min(AT_ONCE, most):
            self.values, self.slots, self.made = rows.whole(), np.arange(n), n
            return
        self.values = np.empty((max(1, min(n, most)), n), dtype=rows.dtype)
        self.slots, self.made = np.full(n, -1, dtype=np.int64), 0
        self.make(np.zeros(1, dtype=np.int64))

    def make(self, wanted: np.ndarray) -> bool:
        """Make the rows of some samples that are not there; False if there is no room."""
        made = self.made + len(wanted)
        if made > len(self.values):
            return False
        at = np.arange(self.made, made)

        def fill(start: int, stop: int) -> None:
            self.rows.fill(wanted, self.columns, start, stop, self.values, at, start)

        if self.rows.shares:
            self.crew.share(self.rows.n_samples, WIDTH, fill)
        else:
            fill(0, self.rows.n_samples)
        self.slots[wanted], self.made = at, made
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
        if source.n_samples > EXACT and can_be_single(source, maker.diagonal):
            maker = float32_rows(source)
        rows = RowsOfAll(maker, self.cache_mb, self.crew)
        last = np.full(len(self.reasons), np.inf)
        while True:
            ended = self.reasons != UNKNOWN
            self.go_on(rows)
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

    def go_on(self, rows: RowsOfAll) -> None:
        """Take steps until no pair needs a row; those that there is no room for end alone."""
        layout, ends = self.layout, (self.tol, self.max_iter)
        wanted = np.zeros(len(layout.order), dtype=bool)
        values, diag = raw(rows.values), raw(rows.rows.diagonal)

        def take_steps(start: int, stop: int) -> None:
            some = slice(start, stop)
            first, second = layout.first[some], layout.second[some]
            parts = layout.starts, first, second, layout.offsets[start : stop + 1]
            so_far = self.steps[some], self.reasons[some], wanted
            steps_of_all(values, rows.slots, diag, parts, self.bounds, ends, self.variables, so_far)

        while True:
            self.crew.share(len(layout.first), 1, take_steps)
            if not np.any(wanted):
                return
            if not rows.make(np.flatnonzero(wanted)):
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
        self.correct(pairs, np.inf if all_of_few else NEAR * self.tol)
        self.checks += len(pairs)
        for p in pairs:
            ends = self.layout.offsets[p], self.layout.offsets[p + 1]
            top, bottom = extremes(*ends, self.bounds, self.variables)
            gap = top - bottom
            if gap <= self.tol:
                self.reasons[p] = CONVERGED
            elif gap > PROGRESS * last[p] or self.reasons[p] == STALLED:
                self.solve_alone(int(p))
            else:
                self.reasons[p] = UNKNOWN
            last[p] = gap

    def correct(self, pairs: np.ndarray, width: float) -> None:
        """Replace the gradients of pairs near their gap by their values in float64.

        As ``exact.correct`` does, first of what is within `width` of the gap.
        """
        layout, (beta, v) = self.layout, self.variables
        inputs = self.source.inputs()
        assert inputs is not None, "pairs are trained together from inputs"
        X, function = inputs
        used, coefficients = layout.gather(beta)
        points = function.take(X, used)
        is_known = np.zeros(len(beta), dtype=bool)
        widths, errors = np.full(len(self.reasons), -1.0), np.zeros(len(self.reasons))
        widths[pairs] = width
        near = np.empty_like(is_known)
        while np.any(widths >= 0.0):
            near[:] = False
            find_near(layout.offsets, self.bounds, self.variables, widths, near)
            near &= ~is_known
            is_known |= near
            wanted = np.zeros(len(layout.order), dtype=bool)
            wanted[layout.places[near]] = True
            sums = weighted_sums(function, points, coefficients.T, X[wanted], n_jobs=self.crew.size)
            self.evaluations += len(sums) * len(used)
            at = np.cumsum(wanted) - 1
            put_exact(layout.offsets, layout.signs, layout.places, sums, at, near, v, errors)
            enough = (widths < 0.0) | (widths >= SAFETY * errors)
            widths = np.where(enough, -1.0, np.maximum(widths, 2.0 * SAFETY * errors))

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
        As for :func:`~svmbench.core.kernel.csvc.driver.solve_box`; `max_iter` is that of a pair.
        The solution is the same, bit by bit, whatever the number of threads.
    """
    weighted = 1.0 if weights is None else weights[layout.places]
    bound = np.full(len(layout.places), C) * weighted
    with Crew(n_jobs) as crew:
        search = Search(source, layout, bound, crew, tol=tol, max_iter=max_iter, cache_mb=cache_mb)
        return search.run()


def warm_up() -> None:
    """Solve a problem of three classes in both precisions, where some rows are asked for."""
    X = np.array([[0.0, 0.1], [1.0, 1.2], [1.0, 0.0], [0.2, 0.0], [0.0, 2.0], [2.0, 2.1]])
    layout = Layout.of(np.array([0, 0, 1, 1, 2, 2]), [0, 0, 1], [1, 2, 2])
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    for maker in (SourceRows(source, np.float64), DenseRows(X, KernelFunction("rbf", 1.0))):
        search = Search(source, layout, np.ones(12), Crew(1), tol=1e-3, max_iter=9, cache_mb=1.0)
        search.go_on(RowsOfAll(maker, 1.0, Crew(1)))
        search.check(np.arange(3), np.full(3, np.inf))
        search.solution({})
