"""Which method solves a problem, and when the search ends.

Refinement
    A solution found on float32 rows is checked with kernel values in float64 near the gap
    (``check``). While the true gap exceeds the tolerance, the search goes on from there: the error
    of each round is in proportion to what the round still changed. Where a round does not halve the
    gap, the search goes on in float64.
Measured
    Below 500 samples the matrix is float64 from the start, which saves 20 % of the CPU time of a
    fit in the median (three data sets of 300 to 440 samples, C = 1 and 10,000: -2 % to 47 %).
    Making rows of a matrix of 500 to 2,000 samples one by one, where a step needs them, gains
    nothing in the median (15 data sets, ratios 0.76 to 3.7), so the full matrix is made.

A tolerance relative to the margin, for the ν-SVC, the one-class SVM and SVDD
    A C-SVC's margin is 1, so that its tolerance is a share of the margin. The margin of the others
    is rho (of SVDD the squared radius), which can be of any size: where it is below LIBSVM's
    absolute tolerance, that tolerance accepts nearly any point. So the largest violation is at most
    ``tol * min(1, rho)``, both in the problem's scale, but need not be below the rounding of the
    gradient. Where rho is at least 1, that is LIBSVM's rule.
A margin that is 0
    The optimum of the ν-SVC is w = 0, rho = 0 where the reduced convex hulls of the classes meet
    (Crisp and Burges 1999), and that of the one-class SVM where the origin lies in the reduced
    convex hull. Then no violation is small relative to rho. A margin is proven as soon as the
    primal value is below 0, the value of w = 0: the duality gap is then below the absolute value of
    the dual. The search goes on for a limited number of steps while that is not so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from svmbench.core.csvc.check import check_in_float64, exact_gradient, is_exhausted
from svmbench.core.csvc.problem import QPProblem, gap_of_problem, make_qp, up_low_sets
from svmbench.core.csvc.smo import (
    CONVERGED,
    GAP,
    MAX_ITER,
    NO_LIMIT,
    NO_MARGIN,
    REASONS,
    STALLED,
    Bounds,
    StoppingCriteria,
    gradient,
    optimise,
    shrinking_steps,
    steps_between_checks,
)
from svmbench.core.csvc.working_sets import ActiveSet, WorkingSetSearch, subtract_kernel
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.kernels.rows import (
    BitRows,
    DenseRows,
    DifferenceRows,
    Rows,
    SourceRows,
    exact_values,
    float32_rows,
)
from svmbench.core.kernels.thread_pool import ThreadPool
from svmbench.core.numeric.arrays import largest_value, raw

#: A gradient is not known better than so many roundings of the largest kernel value times the sum
#: of the multipliers.
ROUNDINGS = 8.0

#: The next violation to reach: as a share of the one that is asked for, once there is a margin; and
#: of the last one while there is none.
SHORT, CLOSER = 0.9, 0.1

#: Without a margin the search goes on for so many steps a sample, or for so many times the steps
#: that it has taken, whichever is more.
STEPS_A_SAMPLE, STEPS_AGAIN = 10, 3

#: Up to so many samples the whole matrix is computed: choosing rows would cost more than they do.
FULL_MATRIX_MAX_SAMPLES = 2000

#: Below so many samples the matrix is in float64: to check a solution would cost more than that.
FLOAT32_MIN_SAMPLES = 500

#: Kernel values above this are not for float32.
FLOAT32_MAX_KERNEL = 1e30

#: Inputs above this are not either: their squared distances need not be kernel values.
FLOAT32_MAX_INPUT = 1e15


@dataclass(frozen=True)
class ShareOfMargin:
    """A tolerance relative to the margin.

    Attributes
    ----------
    tol : float
    margin : callable
        Returns the margin in the problem's scale, of the variables and their gradient.
    can_vanish : bool
        Whether a margin of 0 means that the problem has no solution but w = 0.
    """

    tol: float
    margin: Callable[[np.ndarray, np.ndarray], float]
    can_vanish: bool = True


class Tolerance:
    """The violation and the number of steps at which a search looks up.

    Parameters
    ----------
    share : ShareOfMargin or None
        None where the tolerance is absolute.
    tol, max_iter : float, int
    problem : QPProblem
    diagonal : ndarray of shape (n,)
        Of the kernel matrix.
    start : (ndarray, ndarray)
        The variables at the start, and their gradient.

    Attributes
    ----------
    now : float
        The violation to reach.
    most : int
        Steps in all after which to stop.
    """

    def __init__(
        self,
        share: ShareOfMargin | None,
        tol: float,
        max_iter: int,
        problem: QPProblem,
        diagonal: np.ndarray,
        start: tuple[np.ndarray, np.ndarray],
    ) -> None:
        self.share, self.problem, self.now = share, problem, tol
        self.most = self.max_iter = max_iter
        if share is None:
            return
        beta, v = start
        size = float(np.max(np.abs(diagonal), initial=0.0)) * float(np.sum(np.abs(beta)))
        size += float(np.max(np.abs(problem.linear), initial=0.0))
        self.rounding = ROUNDINGS * np.finfo(np.float64).eps * size
        # The violation at the start has the scale of the kernel, whatever is added to features.
        self.now = max(tol * min(1.0, up_low_sets(problem, beta, v).gap), self.rounding)

    def settle(self, reason: int, steps: int, beta: np.ndarray, v: np.ndarray) -> int | None:
        """Return why the search is over; or None, and set what it goes on with.

        `reason` is why the steps stopped at `now` or `most`; `steps` were taken in all.
        """
        share = self.share
        if share is None or (reason == MAX_ITER and steps >= self.max_iter):
            return reason
        violation = up_low_sets(self.problem, beta, v).gap
        if share.can_vanish and not has_margin(self.problem, beta, v):
            if self.most == self.max_iter:
                more = max(STEPS_A_SAMPLE * len(v), STEPS_AGAIN * steps)
                self.most = min(steps + more, self.max_iter)
            if reason == STALLED or violation <= self.rounding or steps >= self.most:
                return NO_MARGIN
            self.now = max(CLOSER * violation, self.rounding)
            return None
        self.most = self.max_iter
        wanted = max(share.tol * min(1.0, abs(share.margin(beta, v))), self.rounding)
        if violation <= wanted:
            return CONVERGED
        if reason == STALLED:
            return STALLED
        self.now = max(SHORT * wanted, self.rounding)
        return None


def has_margin(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> bool:
    """Return whether the duality gap proves that w is not 0 at the optimum of a ν-problem."""
    dual = 0.5 * float(beta @ (problem.linear + v))
    return gap_of_problem(problem, beta, v) < abs(dual)


@dataclass
class QPResult:
    """What a search returns.

    Attributes
    ----------
    beta, v : ndarray of shape (n_samples,)
        Variables, and gradient: exact near the gap, and so at every free variable; elsewhere it
        may be that of single-precision rows.
    steps : int
    checks : int or None
        Of the gradient in float64; None on a stored matrix, which is taken at its word.
    reason : int
        Position in ``smo.REASONS``.
    evaluations : int
        Kernel values computed.
    """

    beta: np.ndarray
    v: np.ndarray
    steps: int = 0
    checks: int | None = 0
    reason: int = CONVERGED
    evaluations: int = 0

    @property
    def stop_reason(self) -> str:
        """Why the search ended, in words."""
        return REASONS[self.reason]

    @property
    def counters(self) -> dict[str, int]:
        """What the search took, as solvers report it."""
        work = {"kernel_evaluations": self.evaluations, "updates": self.steps}
        return work if self.checks is None else {**work, "checks": self.checks}


def solve_qp(
    source: KernelSource,
    problem: QPProblem,
    *,
    start: np.ndarray | None = None,
    tol: float | ShareOfMargin = 1e-3,
    max_iter: int = 10_000_000,
    cache_mb: float = 1024.0,
    n_jobs: int = 1,
    gap: float | None = None,
) -> QPResult:
    """Solve any problem of :mod:`~svmbench.core.csvc.problem`: the one place that chooses how.

    - On a stored matrix that fits the budget, and on that of fewer than 500 samples: as it is
      (``smo``).
    - From inputs, up to 2,000 samples: on the full matrix in float32.
    - More: by working sets, with rows made when they are needed (``working_sets``).

    Both of the last are checked in float64 before they count as converged, and go on in float64
    where float32 gets no further.

    Parameters
    ----------
    source : KernelSource
        Of a positive semidefinite kernel; of others a stationary point is found.
    problem : QPProblem
        From :func:`~svmbench.core.csvc.problem.make_qp`.
    start : ndarray of shape (n_samples,), optional
        Variables inside the bounds; the sums that are kept are the start's. Zero if not given.
    tol : float or ShareOfMargin, default=1e-3
        Largest violation of the optimality conditions; as a number, in the scale of `problem`.
    max_iter : int, default=10000000
        Largest number of steps.
    cache_mb : float, default=1024.0
        Memory for kernel values, MiB.
    n_jobs : int, default=1
        Threads.
    gap : float, optional
        End already once primal minus dual value is at most this share of the sum of all widths of
        bounds (which is C n for a C-SVC); the stop reason is then ``"gap"``. Both values are those
        of the search's own kernel values, in single precision where these are.

    Examples
    --------
    The one-class problem of two points, half of whose weight each must carry:

    >>> import numpy as np
    >>> from svmbench.core.csvc import make_qp, solve_qp
    >>> from svmbench.core.kernels.kernels import KernelSource
    >>> problem = make_qp(np.zeros(2), np.zeros(2), np.ones(2))
    >>> solve_qp(KernelSource.precomputed(np.eye(2)), problem, start=np.array([1.0, 0.0])).beta
    array([0.5, 0.5])
    """
    limit = NO_LIMIT if gap is None else gap * float(np.sum(problem.high - problem.low))
    share = tol if isinstance(tol, ShareOfMargin) else None
    ends = StoppingCriteria(tol.tol if isinstance(tol, ShareOfMargin) else tol, max_iter, limit)
    is_stored = source.inputs() is None
    if is_stored or source.n_samples < FLOAT32_MIN_SAMPLES:
        K = source.whole(cache_mb)
        if K is not None:
            return replace(
                _on_matrix(K, problem, start, ends, share), checks=None if is_stored else 0
            )
    with ThreadPool(n_jobs) as pool:
        return Refinement(source, problem, pool, ends, cache_mb).run(start, share)


def _on_matrix(
    K: np.ndarray,
    problem: QPProblem,
    start: np.ndarray | None,
    ends: StoppingCriteria,
    share: ShareOfMargin | None,
) -> QPResult:
    if start is None:
        beta, v = np.zeros(len(problem.low)), np.array(problem.linear)
    else:
        beta = np.array(start, dtype=np.float64)
        v = gradient(raw(K), raw(problem.linear), beta)
    diag, bounds = raw(np.ascontiguousarray(K.diagonal())), Bounds(problem.low, problem.high)
    tolerance = Tolerance(share, ends.tol, ends.max_iter, problem, diag, (beta, v))
    found, over = QPResult(beta, v, 0, None, CONVERGED, K.size), None
    while over is None:
        part = StoppingCriteria(tolerance.now, tolerance.most - found.steps, ends.limit)
        if problem.n_sums == 1:
            steps, reason = shrinking_steps(raw(K), diag, bounds, part, beta, v)
        else:
            steps, reason = until_gap(K, problem, part, beta, v)
        found.steps += steps
        over = tolerance.settle(reason, found.steps, beta, v)
    found.reason = over
    return found


def until_gap(
    K: np.ndarray, problem: QPProblem, ends: StoppingCriteria, beta: np.ndarray, v: np.ndarray
) -> tuple[int, int]:
    """Take the steps of ``smo.optimise``; look at the duality gap in between if it has a limit."""
    if ends.limit < 0.0:
        return optimise(K, problem, ends, beta, v)
    steps, look = 0, steps_between_checks(len(beta))
    while gap_of_problem(problem, beta, v) > ends.limit:
        some = ends._replace(max_iter=min(look, ends.max_iter - steps))
        taken, reason = optimise(K, problem, some, beta, v)
        steps += taken
        if reason != MAX_ITER or steps >= ends.max_iter:
            return steps, reason
    return steps, GAP


class Refinement:
    """Solving from inputs: in float32 with checks, and if that gets no further, in float64.

    Parameters
    ----------
    source, problem, cache_mb
        As for :func:`solve_qp`.
    pool : ThreadPool
    ends : StoppingCriteria
    """

    def __init__(
        self,
        source: KernelSource,
        problem: QPProblem,
        pool: ThreadPool,
        ends: StoppingCriteria,
        cache_mb: float,
    ) -> None:
        self.source, self.problem, self.pool = source, problem, pool
        self.ends, self.cache_mb = ends, cache_mb

    def run(self, start: np.ndarray | None, share: ShareOfMargin | None = None) -> QPResult:
        """Refinement from `start`, or from zero; with a `share`, the tolerance is relative."""
        source, problem = self.source, self.problem
        everyone = members = np.arange(len(problem.low))
        before = source.kernel_evaluations
        found = QPResult(np.zeros(len(everyone)), np.array(problem.linear))
        rows: Rows = SourceRows(source, np.float64)
        if can_be_single(source, rows.diagonal):
            rows = float32_rows(source)
        exact = exact_values(source, rows)
        K = self.matrix(rows)
        if start is not None:
            found.beta = np.array(start, dtype=np.float64)
            self.evaluate(rows, K, found)
        start_point = found.beta, found.v
        tolerance = Tolerance(
            share, self.ends.tol, self.ends.max_iter, problem, rows.diagonal, start_point
        )
        made, checks, last = 0, 0, np.inf
        while True:
            tol = tolerance.now
            self.ends = self.ends._replace(tol=tol, max_iter=tolerance.most)
            self.go_on(rows, K, members, found)
            if (
                found.reason == GAP
                and gap_of_problem(problem, found.beta, found.v) > self.ends.limit
            ):
                # It was so by gradients that were not up to date.
                members = everyone
                continue
            if found.reason == GAP:
                break
            is_over = found.reason == MAX_ITER
            if rows.dtype == np.float64:
                # What was dropped on the way may be part of a violation after all.
                is_over |= (
                    found.reason == STALLED or up_low_sets(problem, found.beta, found.v).gap <= tol
                )
                if not is_over:
                    continue
            elif not is_over:
                gap, members = check_in_float64(exact, problem, found.beta, found.v, tol)
                checks += 1
                if gap <= tol:
                    found.reason, is_over = CONVERGED, True
            if is_over:
                over = tolerance.settle(found.reason, found.steps, found.beta, found.v)
                if over is not None:
                    found.reason = over
                    break
                members, last = everyone, np.inf
                continue
            if is_exhausted(gap, last, found.reason):
                found.v = exact_gradient(exact, problem.linear, found.beta, everyone)
                made += rows.evaluations
                rows, members = SourceRows(source, np.float64), everyone
                K = source.whole(self.cache_mb)
            last = gap
        found.checks = checks
        found.evaluations = source.kernel_evaluations - before + made + rows.evaluations
        return found

    def matrix(self, rows: Rows) -> np.ndarray | None:
        """Return the matrix in memory that a small problem is solved on; None for a larger one."""
        n = rows.n_samples
        if n > FULL_MATRIX_MAX_SAMPLES or n**2 * rows.diagonal.itemsize > self.cache_mb * MIB:
            return None
        return rows.whole()

    def evaluate(self, rows: Rows, K: np.ndarray | None, found: QPResult) -> None:
        """Set the gradient of the start by the rows of the search: what checks it is the same."""
        if K is not None:
            found.v = gradient(raw(K), raw(self.problem.linear), found.beta)
            return
        moved = np.flatnonzero(found.beta)
        found.v = np.array(self.problem.linear)
        subtract_kernel(rows, moved, found.beta[moved], rows.columns(None), found.v, self.pool)

    def go_on(self, rows: Rows, K: np.ndarray | None, members: np.ndarray, found: QPResult) -> None:
        """Search on the whole matrix, where there is one, or among `members` by working sets."""
        ends = self.ends._replace(max_iter=self.ends.max_iter - found.steps)
        if K is not None:
            steps, found.reason = until_gap(K, self.problem, ends, found.beta, found.v)
            found.steps += steps
            return
        active = ActiveSet(members, self.problem, found.beta, found.v)
        sets = WorkingSetSearch(rows, active, tol=ends.tol, cache_mb=self.cache_mb, pool=self.pool)
        found.reason = sets.run(ends.max_iter, ends.limit)
        found.steps += sets.steps
        active.finish(rows, self.pool)


def warm_up() -> None:
    """Run every maker of rows through every kind of search, and a cut, on a few samples."""
    X = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    function = KernelFunction("rbf", 1.0)
    source = KernelSource.from_inputs(X, function)
    pool = ThreadPool(1)
    makers: list[Rows] = [
        BitRows(X, function),
        DenseRows(X, function),
        DifferenceRows(X, function),
        SourceRows(source, np.float32),
        SourceRows(source, np.float64),
    ]
    problem = make_qp(y, np.minimum(y, 0.0), np.maximum(y, 0.0))
    search = Refinement(source, problem, pool, StoppingCriteria(1e-3, 9, 0.0), 1.0)
    for rows in makers:
        found = QPResult(np.zeros(4), y.copy())
        # Once among all samples and once among some, of which one more is dropped on the way.
        for members in (np.arange(4), np.array([0, 2, 3])):
            active = ActiveSet(members, problem, found.beta, found.v)
            sets = WorkingSetSearch(rows, active, tol=1e-3, cache_mb=1.0, pool=pool)
            sets.run(100, 0.0)
            sets.drop(np.arange(len(members)) > 0)
            active.finish(rows, pool)
        check_in_float64(exact_values(source, rows), problem, found.beta, found.v, 1e-3)
        search.go_on(rows, rows.whole(), np.arange(4), found)


def can_be_single(source: KernelSource, diagonal: np.ndarray) -> bool:
    """Return whether float32 can hold a source's kernel values, and squared distances of inputs."""
    if float(np.max(np.abs(diagonal))) > FLOAT32_MAX_KERNEL:
        return False
    inputs = source.inputs()
    return inputs is None or largest_value(inputs[0]) <= FLOAT32_MAX_INPUT
