"""The solver: one entry, the choice of the method, the refinement of float32, the stopping rule.

Problem
    That of ``problem``: max_beta p'beta - 1/2 beta'K beta within bounds, with kept sums; for the
    C-SVC beta_i = y_i alpha_i. v = p - K beta is the gradient, m(alpha) its maximum over I_up,
    M(alpha) its minimum over I_low, and m - M the violation (Fan, Chen and Lin 2005, eq. 6).
Given
    A kernel source, the problem, a feasible start.
Returned
    beta and v once m - M <= tol, or once the duality gap is at most a limit.
The choice (``solve_qp``)
    A matrix that is stored, or of fewer than 500 samples: the steps of ``smo`` on it, as it is.
    Up to 2,000 samples: the same steps on the full matrix in float32, with refinement.
    More: working sets of some 512 samples (``working_sets``) on rows in float32, with refinement.
Refinement (``Refinement``)
    Kernel values in float32 carry errors of 1e-7, and a gradient summed from them errors of 1e-5.
    So after steps that ended with m - M <= tol, the gradient near the gap is computed anew in
    float64 (``check_in_float64``). While the true violation exceeds tol, the steps go on from
    there: the error of a round is in proportion to what the round still changed. Where a round does
    not halve the violation, the steps go on in float64.
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

from svmbench.core.csvc.problem import QPProblem, gap_of_problem, make_qp, up_low_sets
from svmbench.core.csvc.smo import (
    CONVERGED,
    GAP,
    MAX_ITER,
    NO_LIMIT,
    NO_MARGIN,
    STALLED,
    STOP_REASONS,
    Bounds,
    StoppingCriteria,
    gradient,
    shrinking_steps,
    steps_between_checks,
    steps_on_matrix,
)
from svmbench.core.csvc.working_sets import ActiveSamples, WorkingSetSearch, subtract_kernel
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.kernels.rows import (
    BitRows,
    DenseRows,
    DifferenceRows,
    ExactValues,
    Rows,
    SourceRows,
    exact_values,
    float32_rows,
)
from svmbench.core.kernels.thread_pool import ThreadPool
from svmbench.core.numeric.arrays import largest_value, raw

#: Samples up to which the full matrix is computed: choosing rows would cost more than they do.
FULL_MATRIX_MAX_SAMPLES = 2000

#: Samples below which the matrix is in float64: checking a solution would cost more than that.
FLOAT32_MIN_SAMPLES = 500

#: The largest kernel value, and the largest input, for which float32 is used: squared distances of
#: larger inputs need not be kernel values.
FLOAT32_MAX_KERNEL, FLOAT32_MAX_INPUT = 1e30, 1e15

#: Tolerances from the gap within which samples are checked at first.
CHECK_WIDTH = 3.0

#: Factor by which the error of unchecked samples may exceed the largest error found.
CHECK_SAFETY = 10.0

#: The largest share of the last true violation that counts as progress in float32.
CHECK_PROGRESS = 0.5

#: Exact kernel values held in memory at a time, and rows of a symmetric block of them.
CHECK_VALUES, CHECK_ROWS = 1 << 21, 256

#: Roundings of the largest kernel value times the sum of the multipliers that a gradient may have.
GRADIENT_ROUNDINGS = 8.0

#: The next violation to reach, as a share: of the one asked for, once there is a margin; of the
#: last one while there is none.
SHORT_OF_WANTED, CLOSER_TO_MARGIN = 0.9, 0.1

#: Further steps without a margin: so many a sample, or so many times the steps taken, whichever is
#: more.
NO_MARGIN_STEPS_A_SAMPLE, NO_MARGIN_STEPS_AGAIN = 10, 3


@dataclass(frozen=True)
class ShareOfMargin:
    """A tolerance relative to the margin."""

    tol: float
    margin: Callable[[np.ndarray, np.ndarray], float]  # in the problem's scale, of beta and v
    can_vanish: bool = True  # a margin of 0 means that w = 0 is the only solution


@dataclass
class QPResult:
    """The solution of a problem, with the work that it took."""

    beta: np.ndarray  # (n_samples,)
    # (n_samples,): exact near the gap, and so at free variables; elsewhere maybe of float32 rows
    v: np.ndarray
    steps: int = 0
    checks: int | None = 0  # in float64; None on a stored matrix, which is not checked
    reason: int = CONVERGED  # position in ``smo.STOP_REASONS``
    evaluations: int = 0  # kernel values computed

    @property
    def stop_reason(self) -> str:
        """Why the search ended, in words."""
        return STOP_REASONS[self.reason]

    @property
    def counters(self) -> dict[str, int]:
        """The work, as solvers report it."""
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
    absolute = tol.tol if isinstance(tol, ShareOfMargin) else tol
    criteria = StoppingCriteria(absolute, max_iter, limit)
    is_stored = source.inputs() is None
    if is_stored or source.n_samples < FLOAT32_MIN_SAMPLES:
        K = source.whole(cache_mb)
        if K is not None:
            found = _on_matrix(K, problem, start, criteria, share)
            return replace(found, checks=None if is_stored else 0)
    with ThreadPool(n_jobs) as pool:
        return Refinement(source, problem, pool, cache_mb).run(start, criteria, share)


def _on_matrix(
    K: np.ndarray,
    problem: QPProblem,
    start: np.ndarray | None,
    criteria: StoppingCriteria,
    share: ShareOfMargin | None,
) -> QPResult:
    """Take steps on a matrix that needs no check."""
    if start is None:
        # beta = 0 has the gradient v = p.
        beta, v = np.zeros(len(problem.low)), np.array(problem.linear)
    else:
        beta = np.array(start, dtype=np.float64)
        v = gradient(raw(K), raw(problem.linear), beta)
    diag, bounds = raw(np.ascontiguousarray(K.diagonal())), Bounds(problem.low, problem.high)
    tolerance = Tolerance(share, criteria, problem, diag, (beta, v))
    found, over = QPResult(beta, v, 0, None, CONVERGED, K.size), None
    while over is None:
        part = tolerance.criteria(found.steps)
        if problem.n_sums == 1:
            steps, reason = shrinking_steps(raw(K), diag, bounds, part, beta, v)
        else:
            steps, reason = until_gap(K, problem, part, beta, v)
        found.steps += steps
        over = tolerance.settle(reason, found.steps, beta, v)
    found.reason = over
    return found


def until_gap(
    K: np.ndarray, problem: QPProblem, criteria: StoppingCriteria, beta: np.ndarray, v: np.ndarray
) -> tuple[int, int]:
    """Take ``smo.steps_on_matrix``, with looks at the duality gap if it has a limit."""
    if criteria.limit < 0.0:
        return steps_on_matrix(K, problem, criteria, beta, v)
    steps, look = 0, steps_between_checks(len(beta))
    while gap_of_problem(problem, beta, v) > criteria.limit:
        some = criteria._replace(max_iter=min(look, criteria.max_iter - steps))
        taken, reason = steps_on_matrix(K, problem, some, beta, v)
        steps += taken
        if reason != MAX_ITER or steps >= criteria.max_iter:
            return steps, reason
    return steps, GAP


class Refinement:
    """The search on values computed from inputs: in float32 with checks, then in float64."""

    def __init__(
        self, source: KernelSource, problem: QPProblem, pool: ThreadPool, cache_mb: float
    ) -> None:
        self.source, self.problem, self.pool, self.cache_mb = source, problem, pool, cache_mb

    def run(
        self,
        start: np.ndarray | None,
        criteria: StoppingCriteria,
        share: ShareOfMargin | None = None,
    ) -> QPResult:
        """Solve from `start`, or from zero; with a `share`, the tolerance is relative."""
        source, problem = self.source, self.problem
        everyone = members = np.arange(len(problem.low))
        before = source.kernel_evaluations
        found = QPResult(np.zeros(len(everyone)), np.array(problem.linear))
        rows: Rows = SourceRows(source, np.float64)
        if fits_float32(source, rows.diagonal):
            rows = float32_rows(source)
        exact = exact_values(source, rows)
        K = self.full_matrix(rows)
        if start is not None:
            found.beta = np.array(start, dtype=np.float64)
            self.set_gradient(rows, K, found)
        tolerance = Tolerance(share, criteria, problem, rows.diagonal, (found.beta, found.v))
        made, checks, last = 0, 0, np.inf
        while True:
            tol = tolerance.now
            self.take_steps(rows, K, members, tolerance.criteria(found.steps), found)
            if found.reason == GAP:
                if gap_of_problem(problem, found.beta, found.v) <= criteria.limit:
                    break
                # The limit was met by gradients of shrunk samples that were out of date.
                members = everyone
                continue
            if found.reason == MAX_ITER:
                verdict = OVER
            elif rows.dtype == np.float64:
                # Shrunk samples, whose gradient is up to date now, may violate after all.
                gap = up_low_sets(problem, found.beta, found.v).gap
                verdict = OVER if found.reason == STALLED or gap <= tol else GO_ON
            else:
                gap, members = check_in_float64(exact, problem, found.beta, found.v, tol)
                checks += 1
                verdict = judge_check(gap, last, tol, found.reason)
                last = gap
                if verdict == OVER:
                    found.reason = CONVERGED
            if verdict == OVER:
                # The stopping rule has the last word: a relative tolerance follows the margin.
                over = tolerance.settle(found.reason, found.steps, found.beta, found.v)
                if over is not None:
                    found.reason = over
                    break
                members, last = everyone, np.inf
            elif verdict == EXHAUSTED:
                found.v = exact_gradient(exact, problem.linear, found.beta, everyone)
                made += rows.evaluations
                rows, members = SourceRows(source, np.float64), everyone
                K = source.whole(self.cache_mb)
        found.checks = checks
        found.evaluations = source.kernel_evaluations - before + made + rows.evaluations
        return found

    def full_matrix(self, rows: Rows) -> np.ndarray | None:
        """Return the full matrix of a small problem; None for a larger one."""
        n = rows.n_samples
        if n > FULL_MATRIX_MAX_SAMPLES or n**2 * rows.diagonal.itemsize > self.cache_mb * MIB:
            return None
        return rows.whole()

    def set_gradient(self, rows: Rows, K: np.ndarray | None, found: QPResult) -> None:
        """Set v = p - K beta of the start, by the rows of the search."""
        if K is not None:
            found.v = gradient(raw(K), raw(self.problem.linear), found.beta)
            return
        moved = np.flatnonzero(found.beta)
        found.v = np.array(self.problem.linear)
        subtract_kernel(rows, moved, found.beta[moved], rows.columns(None), found.v, self.pool)

    def take_steps(
        self,
        rows: Rows,
        K: np.ndarray | None,
        members: np.ndarray,
        criteria: StoppingCriteria,
        found: QPResult,
    ) -> None:
        """Take steps on the full matrix, where there is one, or among `members` by working sets."""
        if K is not None:
            steps, found.reason = until_gap(K, self.problem, criteria, found.beta, found.v)
            found.steps += steps
            return
        active = ActiveSamples(members, self.problem, found.beta, found.v)
        sets = WorkingSetSearch(rows, active, criteria.tol, self.cache_mb, self.pool)
        found.reason = sets.run(criteria.max_iter, criteria.limit)
        found.steps += sets.steps
        # Reconstruct the gradient of shrunk samples (Chang and Lin 2011, section 5.1).
        active.finish(rows, self.pool)


#: Verdicts on steps that returned; see :func:`judge_check`.
OVER, GO_ON, EXHAUSTED = 0, 1, 2


def judge_check(gap: float, last: float, tol: float, reason: int) -> int:
    """Return the verdict on a search, or a pair of classes, that was checked in float64.

    `gap` is its true violation, `last` that of the check before (infinite at first), `reason` why
    the steps stopped. The verdict is ``OVER``; ``GO_ON``, in float32 from the corrected gradient;
    or ``EXHAUSTED``, where only float64 gets further.
    """
    if gap <= tol:
        return OVER
    return GO_ON if gap <= CHECK_PROGRESS * last and reason != STALLED else EXHAUSTED


def check_in_float64(
    source: ExactValues, problem: QPProblem, beta: np.ndarray, v: np.ndarray, tol: float
) -> tuple[float, np.ndarray]:
    """Replace the gradient near the gap by its value in float64, in place.

    Return the true violation m - M, and the samples whose gradient is exact now.
    """
    done = correct_near(
        lambda width: near_violation(problem, beta, v, width),
        lambda at: exact_gradient(source, problem.linear, beta, at),
        v,
        tol,
    )
    return up_low_sets(problem, beta, v).gap, np.flatnonzero(done)


def correct_near(
    near: Callable[[float], np.ndarray],  # which samples may violate, gradients wrong by a width
    exact: Callable[[np.ndarray], np.ndarray],  # the gradient of some samples in float64
    v: np.ndarray,
    tol: float,
) -> np.ndarray:
    """Replace v near the gap by its value in float64; return where it was replaced."""
    done, width, error = np.zeros(len(v), dtype=bool), CHECK_WIDTH * tol, 0.0
    while True:
        at = np.flatnonzero(near(width) & ~done)
        if len(at):
            found = exact(at)
            error = max(error, float(np.max(np.abs(found - v[at]))))
            v[at] = found
            done[at] = True
        # Samples that were not looked at have at most CHECK_SAFETY times the largest error found,
        # so that those outside twice that width can't be part of a violation.
        if width >= CHECK_SAFETY * error:
            return done
        width = 2.0 * CHECK_SAFETY * error


def near_violation(problem: QPProblem, beta: np.ndarray, v: np.ndarray, width: float) -> np.ndarray:
    """Mark the samples that could be part of a violation if gradients were wrong by `width`."""
    at = up_low_sets(problem, beta, v)
    rises = at.v_up >= np.minimum(at.m, at.M) - width
    return rises | (at.v_low <= np.maximum(at.m, at.M) + width)


def exact_gradient(
    source: ExactValues, linear: np.ndarray, beta: np.ndarray, samples: np.ndarray
) -> np.ndarray:
    """Return ``(linear - K beta)[samples]`` in float64; `samples` are different and ascend."""
    is_support, v = beta != 0.0, linear.copy()
    support, own = np.flatnonzero(is_support), samples[is_support[samples]]
    is_support[own] = False
    others, idle = np.flatnonzero(is_support), samples[beta[samples] == 0.0]
    for rows, columns in ((idle, support), (own, others)):
        height = max(1, CHECK_VALUES // max(1, len(columns)))
        for top in range(0, len(rows), height):
            part = rows[top : top + height]
            v[part] -= source.block(part, columns) @ beta[columns]
    # Among the samples with a multiplier each value serves for both of its pair.
    height = max(1, min(CHECK_ROWS, CHECK_VALUES // max(1, len(own))))
    for top in range(0, len(own), height):
        part, later = own[top : top + height], own[top + height :]
        K = source.block(part, own[top:])
        v[part] -= K @ beta[own[top:]]
        v[later] -= beta[part] @ K[:, len(part) :]
    return v[samples]


class Tolerance:
    """The stopping rule of a search: the violation to reach now, and the most steps until then."""

    def __init__(
        self,
        share: ShareOfMargin | None,  # None: the tolerance is absolute
        limits: StoppingCriteria,  # of the whole search
        problem: QPProblem,
        diagonal: np.ndarray,  # of the kernel matrix
        start: tuple[np.ndarray, np.ndarray],  # beta and v
    ) -> None:
        self.share, self.problem, self.limits = share, problem, limits
        self.now, self.most = limits.tol, limits.max_iter
        if share is None:
            return
        beta, v = start
        size = float(np.max(np.abs(diagonal), initial=0.0)) * float(np.sum(np.abs(beta)))
        size += float(np.max(np.abs(problem.linear), initial=0.0))
        self.rounding = GRADIENT_ROUNDINGS * np.finfo(np.float64).eps * size
        # The violation at the start has the scale of the kernel, whatever is added to features.
        violation = up_low_sets(problem, beta, v).gap
        self.now = max(limits.tol * min(1.0, violation), self.rounding)

    def criteria(self, steps: int) -> StoppingCriteria:
        """Return the criteria of the next steps, after so many of them."""
        return StoppingCriteria(self.now, self.most - steps, self.limits.limit)

    def settle(self, reason: int, steps: int, beta: np.ndarray, v: np.ndarray) -> int | None:
        """Return why the search is over; or None, and set the violation to reach next.

        `reason` is why the steps stopped at `now` or `most`; `steps` were taken in all.
        """
        share, max_iter = self.share, self.limits.max_iter
        if share is None or (reason == MAX_ITER and steps >= max_iter):
            return reason
        violation = up_low_sets(self.problem, beta, v).gap
        if share.can_vanish and not has_margin(self.problem, beta, v):
            # No margin is proven yet: go on, but for a limited number of steps.
            if self.most == max_iter:
                more = max(NO_MARGIN_STEPS_A_SAMPLE * len(v), NO_MARGIN_STEPS_AGAIN * steps)
                self.most = min(steps + more, max_iter)
            if reason == STALLED or violation <= self.rounding or steps >= self.most:
                return NO_MARGIN
            self.now = max(CLOSER_TO_MARGIN * violation, self.rounding)
            return None
        self.most = max_iter
        wanted = max(share.tol * min(1.0, abs(share.margin(beta, v))), self.rounding)
        if violation <= wanted:
            return CONVERGED
        if reason == STALLED:
            return STALLED
        self.now = max(SHORT_OF_WANTED * wanted, self.rounding)
        return None


def has_margin(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> bool:
    """Return True if the duality gap proves that w is not 0 at the optimum of a ν-problem."""
    dual = 0.5 * float(beta @ (problem.linear + v))
    return gap_of_problem(problem, beta, v) < abs(dual)


def fits_float32(source: KernelSource, diagonal: np.ndarray) -> bool:
    """Return True if float32 holds a source's kernel values, and squared distances of inputs."""
    if float(np.max(np.abs(diagonal))) > FLOAT32_MAX_KERNEL:
        return False
    inputs = source.inputs()
    return inputs is None or largest_value(inputs[0]) <= FLOAT32_MAX_INPUT


def warm_up_solver() -> None:
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
    search, everyone = Refinement(source, problem, pool, 1.0), np.arange(4)
    for rows in makers:
        found = QPResult(np.zeros(4), y.copy())
        # Once among all samples and once among some, of which one more is dropped on the way.
        for members in (everyone, np.array([0, 2, 3])):
            active = ActiveSamples(members, problem, found.beta, found.v)
            sets = WorkingSetSearch(rows, active, 1e-3, 1.0, pool)
            sets.run(100, 0.0)
            sets.drop(np.arange(len(members)) > 0)
            active.finish(rows, pool)
        check_in_float64(exact_values(source, rows), problem, found.beta, found.v, 1e-3)
        search.take_steps(rows, rows.whole(), everyone, StoppingCriteria(1e-3, 9, 0.0), found)
