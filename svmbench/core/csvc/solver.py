"""The solver: one entry, the choice of the method, the refinement of float32, the stopping rule.

Problem
    max_beta p'beta - 1/2 beta'K beta within bounds; the sum of beta over each group of variables is
    fixed. The C-SVC has beta_i = y_i alpha_i, p = y and one group; a C-SVC without an offset
    has no fixed sum; the ν-SVC has a group for each class. v = p - K beta is the gradient, m(alpha)
    its maximum over I_up (beta_i < high_i), M(alpha) its minimum over I_low (beta_i > low_i), and
    m - M the violation (Fan, Chen and Lin 2005, eq. 6), which is not the duality gap. Each
    group has its own m and M; the largest m - M counts. Without a sum: max(m, 0) - min(M, 0).
Given
    A source of kernel values, the problem, a feasible start.
Returned
    beta and v once m - M <= tol, or once the duality gap is at most `max_gap` (reason ``GAP``).
The choice of the matrix
    ``solve_qp``: a precomputed matrix, or under 500 samples, as long as `cache_mb` holds it: the
    full matrix in float64, or as it is stored, without refinement. Else refinement, on:
    ``choose_matrix``: up to 2,000 samples, the full matrix in float32. With an RBF kernel of few
    features, a row of it is computed when a step first reads it (``LazyMatrix``), as long as steps
    read few rows beside those of the start. More samples, or a matrix above `cache_mb`: no matrix.
    Later, ``ROWS_MISSING`` asks for the full matrix: if steps read many rows of a lazy one; or if
    over half of up to 8,192 samples are free (low < beta < high), and `cache_mb` / 4 holds it.
The choice of the steps
    No matrix: ``working_sets`` of some 512 samples, on rows in float32, with shrinking.
    A lazy matrix: ``smo.steps_on_matrix``, which doesn't shrink.
    The full matrix: ``choose_steps``.
Refinement (``Refinement``)
    Kernel values in float32 have errors of 1e-7, and a gradient summed from them errors of 1e-5.
    So after steps that ended with m - M <= tol, v is computed again in float64 for every sample
    whose v is so close to m or M that its error could matter (``check_in_float64``). If the true
    violation exceeds tol, another round of float32 steps starts from the corrected v; its error is
    proportional to its change of beta. Without a matrix, that round moves only the samples just
    checked; the others count as shrunk until it ends. If a round does not halve the violation,
    steps are float64.
Measured
    Below 500 samples a float64 matrix saves 12 % of the CPU time of a fit with a float32 matrix and
    a check, in the median (21 data sets, cut to 450 samples, C = 1 and 10,000; half of the fits:
    4 to 16 %). Inputs of 0 and 1 take up to 67 % more: float32 rows from bits are cheaper.
    ``LazyMatrix``: of six sets of 683 to 2,000 samples with at most 12 features, on three steps
    read few rows. Their fits take 0.28 to 0.87 of the CPU time, the others 1.00 to 1.07 (C = 1,
    100).
    If over half of the multipliers are free, working sets alone take 1.8 times the CPU time of the
    full matrix in the median (15 problems of 3,000 to 7,500 samples, one thread: 1.2 to 4.2).

A tolerance relative to the margin, for the ν-SVC, the one-class SVM and SVDD
    A C-SVC's margin is 1, so its tolerance is a share of the margin. The margin of other SVMs, rho
    (SVDD: the squared radius), can have any size; an absolute tolerance above it accepts nearly any
    point. Here the largest violation is at most ``tol * min(1, rho)``, or the gradient's rounding
    if larger. Like v, rho grows with the bounds (1, not 1/n). If rho >= 1, this is LIBSVM's rule.
A margin of 0
    The ν-SVC has the optimum w = 0, rho = 0 if the reduced convex hulls of the classes meet (Crisp
    and Burges 1999), and the one-class SVM if the origin lies in the reduced convex hull. No
    violation is small relative to rho = 0. w = 0 has the primal value 0, so a primal value below 0
    proves that rho > 0. A multiple t of (w, thresholds) has the value t^2/2 ||w||^2 + t (gap -
    ||w||^2), since the dual value is -||w||^2 / 2: it is below 0 at some t > 0 if the duality gap
    at the best thresholds (``least_gap``) is below ||w||^2 = beta'K beta. Until then, the number of
    further steps is limited.
From other modules
    ``up_low_sets``: v over I_up (else -inf), v over I_low (else inf), m, M. ``gap_of_problem``: the
    duality gap. ``exact_values(...).block(I, J)``: K[I, J] in float64. ``float32_rows``: the best
    maker of float32 rows; ``SourceRows``: of any source. ``subtract_kernel``: v -= K t by these.
    ``source.inputs()``: (X, kernel); None if K is stored. ``source.whole``: K; None above cache_mb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from svmbench.core.csvc.problem import (
    QPProblem,
    gap_of_problem,
    least_gap,
    make_qp,
    settle_at_bounds,
    up_low_sets,
)
from svmbench.core.csvc.smo import (
    CONVERGED,
    GAP,
    MAX_ITER,
    NO_GAP_TEST,
    NO_MARGIN_CODE,
    ROWS_MISSING,
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
from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource, ThreadPool
from svmbench.core.kernels.lazy_matrix import LazyMatrix
from svmbench.core.kernels.rows import (
    BitRows,
    DenseRows,
    DifferenceRows,
    ExactValues,
    Rows,
    SourceRows,
    exact_values,
    float32_rows,
    subtract_rows,
)
from svmbench.core.numeric.arrays import largest_value, raw

#: A kernel matrix: whole, or with the rows that steps have read so far.
Matrix = np.ndarray | LazyMatrix

#: Samples up to which steps read a full matrix, without working sets.
FULL_MATRIX_MAX_SAMPLES = 2000

#: A lazy matrix is tried for up to LAZY_MAX_FEATURES features, if at most the share LAZY_MAX_START
#: of the variables is not 0 at the start.
LAZY_MAX_FEATURES, LAZY_MAX_START = 12, 0.25

#: A lazy matrix is first judged after LAZY_FIRST_STEPS steps. All rows are computed once the steps
#: since the last check in float64 have read the share LAZY_MAX_ROWS of them anew; or if the
#: violation has not fallen although each step computed over LAZY_MANY_ROWS new rows on average.
LAZY_FIRST_STEPS, LAZY_MAX_ROWS, LAZY_MANY_ROWS = 32, 0.25, 1.5

#: If several sums are fixed, all rows are also computed after LAZY_MAX_STEPS steps a sample: Newton
#: steps need them.
LAZY_MAX_STEPS = 0.5

#: Samples below which the matrix is in float64; a float32 matrix and a check would cost more.
FLOAT32_MIN_SAMPLES = 500

#: The largest kernel value, and the largest input, for which float32 is used. The second bounds the
#: squared distances: they are in float32 too, but are no kernel values.
FLOAT32_MAX_KERNEL, FLOAT32_MAX_INPUT = 1e30, 1e15

#: A check begins with the samples whose v is at most this many tolerances from m or M.
CHECK_WIDTH = 3.0

#: The error of v at unchecked samples is assumed to be at most this factor times the largest found.
CHECK_SAFETY = 10.0

#: float32 makes progress if the true violation falls to at most this share of the last one.
CHECK_PROGRESS = 0.5

#: Most float64 kernel values computed at a time; most rows at a time, of a symmetric matrix.
CHECK_VALUES, CHECK_ROWS = 1 << 21, 256

#: Rounding of a gradient, in float64 epsilons of (largest kernel value times sum of |beta|).
GRADIENT_ROUNDINGS = 8.0

#: The next violation to reach. First: this share of what a proven margin asks for, since the margin
#: may shrink meanwhile. Second: without a proven margin, this share of the present violation.
SHORT_OF_WANTED, CLOSER_TO_MARGIN = 0.9, 0.1

#: Largest number of further steps without a proven margin: the larger of this many per sample and
#: this many times the steps taken so far. With 10 in place of 20, the margin of a1a at nu = 0.05
#: (gamma = 1/119) is not found.
NO_MARGIN_STEPS_A_SAMPLE, NO_MARGIN_STEPS_AGAIN = 10, 20

#: A duality gap below this share of ||w||^2 proves a margin. It would be 1 if v were exact: it errs
#: by up to 1 / CHECK_SAFETY of its distance from the thresholds where it was not checked.
PROVES_MARGIN = 1.0 - 1.0 / CHECK_SAFETY


@dataclass(frozen=True)
class RelativeTolerance:
    """A tolerance relative to the margin."""

    tol: float
    margin: Callable[[np.ndarray, np.ndarray], float]  # (beta, v) -> rho, in the scale of v
    can_vanish: bool = True  # rho may be 0 at the optimum; ``has_margin`` can prove it isn't


@dataclass
class QPResult:
    """The solution of a problem, with the work that it took."""

    beta: np.ndarray  # (n_samples,)
    # (n_samples,), float64; far from m and M, perhaps summed from kernel values in float32
    v: np.ndarray
    steps: int = 0
    checks: int | None = 0  # in float64; None on a stored matrix, which is not checked
    reason: int = CONVERGED  # position in ``smo.STOP_REASONS``
    evaluations: int = 0  # kernel values computed
    # The largest error of v that a check found and corrected: a scale of the errors elsewhere
    error: float = 0.0
    # Why float32 gave way to float64, each time: stop reasons of the steps, and in the last set
    fallbacks: list[str] = field(default_factory=list)
    matrix: np.ndarray | None = None  # K, if there is no margin and the search had all of it

    @property
    def stop_reason(self) -> str:
        """Why the search ended, in words."""
        return STOP_REASONS[self.reason]

    @property
    def counters(self) -> dict[str, int]:
        """The work, as solvers report it; ``fallbacks`` only where there are any."""
        work = {"kernel_evaluations": self.evaluations, "updates": self.steps}
        if self.fallbacks:
            work["fallbacks"] = len(self.fallbacks)
        return work if self.checks is None else {**work, "checks": self.checks}


def solve_qp(
    source: KernelSource,
    problem: QPProblem,
    *,
    start: np.ndarray | None = None,
    tol: float | RelativeTolerance = 1e-3,
    max_iter: int = 10_000_000,
    cache_mb: float = 1024.0,
    n_jobs: int = 1,
    gap: float | None = None,
) -> QPResult:
    """Solve any problem of :mod:`~svmbench.core.csvc.problem`: the one place that chooses how.

    Parameters
    ----------
    source : KernelSource
        Kernel values; if the kernel is not positive semidefinite, a stationary point is found.
    problem : QPProblem
        From :func:`~svmbench.core.csvc.problem.make_qp`.
    start : ndarray of shape (n_samples,), optional
        Variables inside the bounds, default zero. Steps keep the sums that the start has.
    tol : float or RelativeTolerance, default=1e-3
        Largest violation of the optimality conditions; as a number, in the scale of `problem`.
    max_iter : int, default=10000000
        Largest number of steps.
    cache_mb : float, default=1024.0
        Memory for kernel values, MiB.
    n_jobs : int, default=1
        Threads.
    gap : float, optional
        Stop with the reason ``"gap"`` once primal minus dual value is at most `gap` times the sum
        of all ``high - low`` (for a C-SVC that is C n). Both values are computed from the kernel
        values of the search, which may be float32.

    Examples
    --------
    The one-class problem of two points; at the solution each point has half of the weight:

    >>> import numpy as np
    >>> from svmbench.core.csvc import make_qp, solve_qp
    >>> from svmbench.core.kernels.kernels import KernelSource
    >>> problem = make_qp(np.zeros(2), np.zeros(2), np.ones(2))
    >>> solve_qp(KernelSource.precomputed(np.eye(2)), problem, start=np.array([1.0, 0.0])).beta
    array([0.5, 0.5])
    """
    max_gap = NO_GAP_TEST if gap is None else gap * float(np.sum(problem.high - problem.low))
    relative = tol if isinstance(tol, RelativeTolerance) else None
    criteria = StoppingCriteria(
        tol.tol if isinstance(tol, RelativeTolerance) else tol, max_iter, max_gap
    )
    if source.is_stored or source.n_samples < FLOAT32_MIN_SAMPLES:
        K = source.whole(cache_mb)
        if K is not None:
            result = _solve_on_matrix(K, problem, start, criteria, relative)
            settle_at_bounds(problem.low, problem.high, result.beta)
            return replace(result, checks=None if source.is_stored else 0)
    with ThreadPool(n_jobs) as pool:
        result = Refinement(source, problem, pool, cache_mb).run(start, criteria, relative)
    settle_at_bounds(problem.low, problem.high, result.beta)
    return result


def choose_steps(
    n_sums: int, *, tests_gap: bool, is_refined: bool
) -> Callable[[np.ndarray, QPProblem, StoppingCriteria, np.ndarray, np.ndarray], tuple[int, int]]:
    """Return the function that takes steps on a full matrix: the only place that chooses it.

    Its arguments are K, the problem, the criteria, beta and v. It changes beta and v in place, and
    returns the number of steps and the stop reason. The three functions, by what they do between
    steps:

    - ``steps_with_shrinking``: leave samples out that are likely to stay at a bound; with two or
      more sums, also take Newton steps of the free variables; test the duality gap if asked to
    - ``steps_until_gap``: test the duality gap
    - ``steps_on_matrix``: nothing

    Parameters
    ----------
    n_sums : int
        Number of fixed sums.
    tests_gap : bool
        True if a small duality gap ends the search.
    is_refined : bool
        True if the gradient is checked in float64 afterwards. False if the whole search is on one
        matrix, which is precomputed or in float64.
    """
    if n_sums == 1 and not is_refined:
        # These steps test the duality gap, too.
        return steps_with_shrinking
    if n_sums > 1 and not tests_gap:
        # With Newton steps of the free variables.
        return steps_with_shrinking
    if tests_gap:
        return steps_until_gap
    return steps_on_matrix


def _solve_on_matrix(
    K: np.ndarray,
    problem: QPProblem,
    start: np.ndarray | None,
    criteria: StoppingCriteria,
    relative: RelativeTolerance | None,
) -> QPResult:
    """Take steps on a matrix in float64, or precomputed, until the stopping rule is met."""
    if start is None:
        # beta = 0 has the gradient v = p.
        beta, v = np.zeros(len(problem.low)), np.array(problem.linear)
    else:
        beta = np.array(start, dtype=np.float64)
        v = gradient(raw(K), raw(problem.linear), beta)
    tolerance = Tolerance(relative, criteria, problem, K.diagonal(), (beta, v))
    result, end_reason = QPResult(beta, v, 0, None, CONVERGED, K.size), None
    while end_reason is None:
        part = tolerance.criteria(result.steps)
        steps, reason = search_on_matrix(K, problem, part, beta, v, is_refined=False)
        result.steps += steps
        end_reason = tolerance.settle(reason, result.steps, beta, v)
    result.reason = end_reason
    result.matrix = K if end_reason == NO_MARGIN_CODE else None
    return result


def search_on_matrix(
    K: np.ndarray,
    problem: QPProblem,
    criteria: StoppingCriteria,
    beta: np.ndarray,
    v: np.ndarray,
    *,
    is_refined: bool = True,
) -> tuple[int, int]:
    """Take the steps that ``choose_steps`` chooses; return their number and the stop reason."""
    tests_gap = criteria.max_gap >= 0.0
    take_steps = choose_steps(problem.n_sums, tests_gap=tests_gap, is_refined=is_refined)
    return take_steps(K, problem, criteria, beta, v)


def steps_with_shrinking(
    K: np.ndarray, problem: QPProblem, criteria: StoppingCriteria, beta: np.ndarray, v: np.ndarray
) -> tuple[int, int]:
    """Take ``smo.shrinking_steps``: of several sums, with Newton steps of the free variables."""
    diag, bounds = raw(np.ascontiguousarray(K.diagonal())), Bounds(problem.low, problem.high)
    return shrinking_steps(raw(K), diag, bounds, criteria, beta, v, problem.group)


def steps_until_gap(
    K: np.ndarray, problem: QPProblem, criteria: StoppingCriteria, beta: np.ndarray, v: np.ndarray
) -> tuple[int, int]:
    """Take ``smo.steps_on_matrix``, and test the duality gap at intervals."""
    steps, look = 0, steps_between_checks(len(beta))
    while gap_of_problem(problem, beta, v) > criteria.max_gap:
        some = criteria._replace(max_iter=min(look, criteria.max_iter - steps))
        taken, reason = steps_on_matrix(K, problem, some, beta, v)
        steps += taken
        if reason != MAX_ITER or steps >= criteria.max_iter:
            return steps, reason
    return steps, GAP


class Refinement:
    """The search on kernel values computed from samples: float32 with checks, then float64."""

    def __init__(
        self, source: KernelSource, problem: QPProblem, pool: ThreadPool, cache_mb: float
    ) -> None:
        self.source, self.problem, self.pool, self.cache_mb = source, problem, pool, cache_mb

    def run(
        self,
        start: np.ndarray | None,
        criteria: StoppingCriteria,
        relative: RelativeTolerance | None = None,
    ) -> QPResult:
        """Solve from `start`, or from zero, to the tolerance `relative` if it is given."""
        source, problem = self.source, self.problem
        # members: samples of a search by working sets: all, or those just checked. With K: unused.
        everyone = members = np.arange(len(problem.low))
        before = source.kernel_evaluations
        result = QPResult(np.zeros(len(everyone)), np.array(problem.linear))
        rows: Rows = SourceRows(source, np.float64)
        if fits_float32(source, rows.diagonal):
            rows = float32_rows(source)
        exact = exact_values(source, rows)
        K = self.choose_matrix(rows, start, criteria.max_gap)
        if start is not None:
            result.beta = np.array(start, dtype=np.float64)
            self.set_gradient(rows, K, result)
        tolerance = Tolerance(relative, criteria, problem, rows.diagonal, (result.beta, result.v))
        # made: values of old rows, which the source does not count. last: violation at a check.
        made, checks, last = 0, 0, np.inf
        while True:
            tol = tolerance.current
            inner = self.take_steps(rows, K, members, tolerance.criteria(result.steps), result)
            if result.reason == ROWS_MISSING:
                K, members = rows.whole(K.K if isinstance(K, LazyMatrix) else None), everyone
                continue
            if result.reason == GAP:
                if gap_of_problem(problem, result.beta, result.v) <= criteria.max_gap:
                    break
                # The gap was small enough with outdated v of shrunk samples. With v up to date, no.
                members = everyone
                continue
            if result.reason == MAX_ITER:
                verdict = DONE
            elif rows.dtype == np.float64:
                # The v of shrunk samples has been reconstructed: they may violate after all.
                violation = up_low_sets(problem, result.beta, result.v).violation
                verdict = DONE if result.reason == STALLED or violation <= tol else CONTINUE
            elif result.reason == CONVERGED and tolerance.tightens(result.beta, result.v):
                members = everyone
                continue
            else:
                violation, members, error = check_in_float64(
                    exact, problem, result.beta, result.v, tol
                )
                checks, result.error = checks + 1, max(result.error, error)
                verdict = judge_check(violation, last, tol, result.reason)
                last = violation
                if verdict == DONE:
                    result.reason = CONVERGED
            if verdict == DONE:
                # A relative tolerance depends on the margin at this beta, so more steps may follow.
                end_reason = tolerance.settle(result.reason, result.steps, result.beta, result.v)
                if end_reason is not None:
                    result.reason = end_reason
                    break
                members, last = everyone, np.inf
            elif verdict == NEEDS_FLOAT64:
                result.fallbacks.append(f"{result.stop_reason}, in its set {STOP_REASONS[inner]}")
                result.v = exact_gradient(exact, problem.linear, result.beta, everyone)
                result.error = 0.0
                made += rows.evaluations
                rows, members = SourceRows(source, np.float64), everyone
                K = source.whole(self.cache_mb)
        result.checks = checks
        result.matrix = K if result.reason == NO_MARGIN_CODE and isinstance(K, np.ndarray) else None
        result.evaluations += source.kernel_evaluations - before + made + rows.evaluations
        return result

    def choose_matrix(self, rows: Rows, start: np.ndarray | None, max_gap: float) -> Matrix | None:
        """Return the matrix, lazy if few rows may be enough; None if there are many samples."""
        n, used = rows.n_samples, 0 if start is None else np.count_nonzero(start)
        if n > FULL_MATRIX_MAX_SAMPLES or n**2 * rows.diagonal.itemsize > self.cache_mb * MIB:
            return None
        may_do = self.problem.n_sums > 0 and max_gap < 0.0 and used <= LAZY_MAX_START * n
        lazy = LazyMatrix.of(rows, LAZY_MAX_FEATURES) if may_do else None
        return rows.whole() if lazy is None else lazy

    def steps_on_lazy_matrix(
        self, lazy: LazyMatrix, criteria: StoppingCriteria, result: QPResult
    ) -> None:
        """Take steps, and compute the rows that they read; ``ROWS_MISSING`` asks for all rows.

        It does so once many rows are computed; or if the violation has not fallen, although nearly
        every step computed two rows.
        """
        problem, beta, v, look = self.problem, result.beta, result.v, LAZY_FIRST_STEPS
        begin, max_steps = up_low_sets(problem, beta, v).violation, result.steps + criteria.max_iter
        many_rows = np.count_nonzero(lazy.is_computed) + LAZY_MAX_ROWS * len(v)
        many_steps = LAZY_MAX_STEPS * len(v) if problem.n_sums > 1 else np.inf
        while True:
            before = np.count_nonzero(lazy.is_computed)
            some = criteria._replace(max_iter=min(look, max_steps - result.steps))
            steps, result.reason = steps_on_matrix(lazy.K, problem, some, beta, v, lazy)
            result.steps += steps
            if result.reason != MAX_ITER or result.steps == max_steps:
                return
            n_computed = np.count_nonzero(lazy.is_computed)
            if (
                n_computed > many_rows
                or result.steps > many_steps
                or (
                    n_computed - before > LAZY_MANY_ROWS * steps
                    and up_low_sets(problem, beta, v).violation >= begin
                )
            ):
                # The full matrix is wanted.
                result.reason = ROWS_MISSING
                return
            look *= 2

    def set_gradient(self, rows: Rows, K: np.ndarray | LazyMatrix | None, result: QPResult) -> None:
        """Set v = p - K beta at the start, with the kernel values of the search."""
        if isinstance(K, np.ndarray):
            result.v = gradient(raw(K), raw(self.problem.linear), result.beta)
            return
        moved, columns = np.flatnonzero(result.beta), rows.columns(None)
        change, result.v = result.beta[moved], np.array(self.problem.linear)
        if K is None:
            subtract_kernel(rows, moved, change, columns, result.v, self.pool)
            return
        # Steps are going to read most of these rows.
        rows.fill(moved, columns, 0, len(result.v), K.K, moved)
        K.is_computed[moved] = True
        subtract_rows(K.K, moved, change, result.v, 0, len(result.v))

    def take_steps(
        self,
        rows: Rows,
        K: Matrix | None,
        members: np.ndarray,
        criteria: StoppingCriteria,
        result: QPResult,
    ) -> int:
        """Take steps on the matrix `K`; if it is None, on `members`, by working sets.

        Return why the steps stopped; of working sets, why those in the last set did.
        """
        if K is None:
            return self.steps_in_working_sets(rows, members, criteria, result)
        if isinstance(K, LazyMatrix):
            before = np.count_nonzero(K.is_computed)
            self.steps_on_lazy_matrix(K, criteria, result)
            result.evaluations += len(K.K) * int(np.count_nonzero(K.is_computed) - before)
            return result.reason
        steps, result.reason = search_on_matrix(K, self.problem, criteria, result.beta, result.v)
        result.steps += steps
        return result.reason

    def steps_in_working_sets(
        self, rows: Rows, members: np.ndarray, criteria: StoppingCriteria, result: QPResult
    ) -> int:
        """Take steps on `members`; return why the steps in the last working set stopped."""
        active = ActiveSamples(members, self.problem, result.beta, result.v)
        sets = WorkingSetSearch(rows, active, criteria.tol, self.cache_mb, self.pool)
        result.reason = sets.run(criteria.max_iter, criteria.max_gap)
        result.steps += sets.steps
        # Reconstruct the gradient of shrunk samples (Chang and Lin 2011, section 5.1).
        active.finish(rows, self.pool)
        return sets.inner_reason


#: Verdicts on steps that returned; see :func:`judge_check`.
DONE, CONTINUE, NEEDS_FLOAT64 = 0, 1, 2


def judge_check(violation: float, last: float, tol: float, reason: int) -> int:
    """Return the verdict on a search (of one pair in ``pairs``) that was checked in float64.

    `violation` is exact, `last` the exact violation at the previous check (infinite at the first),
    `reason` why the steps stopped. ``DONE`` ends the search, ``CONTINUE`` goes on in float32 from
    the corrected gradient, and ``NEEDS_FLOAT64`` in float64: float32 gets no further.
    """
    if violation <= tol:
        return DONE
    return CONTINUE if violation <= CHECK_PROGRESS * last and reason != STALLED else NEEDS_FLOAT64


def check_in_float64(
    source: ExactValues, problem: QPProblem, beta: np.ndarray, v: np.ndarray, tol: float
) -> tuple[float, np.ndarray, float]:
    """Replace v by its float64 value at samples that could decide m - M, in place.

    Return the true violation m - M, the samples whose v was replaced, and its largest error there.
    """
    done, error = correct_near(
        lambda width: near_violation(problem, beta, v, width),
        lambda at: exact_gradient(source, problem.linear, beta, at),
        v,
        tol,
    )
    return up_low_sets(problem, beta, v).violation, np.flatnonzero(done), error


def correct_near(
    near: Callable[[float], np.ndarray],  # width -> samples that could violate if v errs by width
    exact: Callable[[np.ndarray], np.ndarray],  # samples -> their v in float64
    v: np.ndarray,
    tol: float,
) -> tuple[np.ndarray, float]:
    """Replace v by its float64 value at samples that could violate.

    Return a mask of these samples, and the largest error of v among them.
    """
    done, width, error = np.zeros(len(v), dtype=bool), CHECK_WIDTH * tol, 0.0
    while True:
        at = np.flatnonzero(near(width) & ~done)
        if len(at):
            corrected = exact(at)
            error = max(error, float(np.max(np.abs(corrected - v[at]))))
            v[at] = corrected
            done[at] = True
        # Assume that v errs by at most e = CHECK_SAFETY * error at unchecked samples. `near` marked
        # all that could violate if v errs by `width`: e <= width is enough. Else 2 e: e may grow.
        if width >= CHECK_SAFETY * error:
            return done, error
        width = 2.0 * CHECK_SAFETY * error


def near_violation(problem: QPProblem, beta: np.ndarray, v: np.ndarray, width: float) -> np.ndarray:
    """Mark samples that could violate if v errs by `width`; after steps, m may be below M."""
    at = up_low_sets(problem, beta, v)
    rises = at.v_up >= np.minimum(at.m, at.M) - width
    return rises | (at.v_low <= np.maximum(at.m, at.M) + width)


def exact_gradient(
    source: ExactValues, linear: np.ndarray, beta: np.ndarray, samples: np.ndarray
) -> np.ndarray:
    """Return ``(linear - K beta)[samples]`` in float64; `samples` are distinct and ascending."""
    is_support, v = beta != 0.0, linear.copy()
    support, is_inside = np.flatnonzero(is_support), is_support[samples]
    # The support vectors in `samples` are `inside`, and symmetry halves the work on their block. Up
    # to CHECK_ROWS of them would be a single strip, where it saves nothing: they are in `rest`.
    is_inside &= np.count_nonzero(is_inside) > CHECK_ROWS
    inside, rest = samples[is_inside], samples[~is_inside]
    is_support[inside] = False
    # rest x all support vectors, inside x the support vectors that are not inside.
    for rows, columns in ((rest, support), (inside, np.flatnonzero(is_support))):
        height = max(1, CHECK_VALUES // max(1, len(columns)))
        for top in range(0, len(rows), height):
            part = rows[top : top + height]
            v[part] -= source.block(part, columns) @ beta[columns]
    # inside x inside is symmetric: compute each kernel value once, and use it for both samples.
    height = max(1, min(CHECK_ROWS, CHECK_VALUES // max(1, len(inside))))
    for top in range(0, len(inside), height):
        part, later = inside[top : top + height], inside[top + height :]
        K = source.block(part, inside[top:])
        v[part] -= K @ beta[inside[top:]]
        v[later] -= beta[part] @ K[:, len(part) :]
    return v[samples]


class Tolerance:
    """The stopping rule of a search.

    Attributes
    ----------
    current : float
        The violation to reach next.
    max_steps : int
        The largest number of steps in all, as far as is known now.
    """

    def __init__(
        self,
        relative: RelativeTolerance | None,  # None: the tolerance is absolute
        search: StoppingCriteria,  # of the whole search
        problem: QPProblem,
        diagonal: np.ndarray,  # of the kernel matrix
        start: tuple[np.ndarray, np.ndarray],  # beta and v
    ) -> None:
        self.relative, self.problem, self.search = relative, problem, search
        self.current, self.max_steps = search.tol, search.max_iter
        if relative is None:
            return
        beta, v = start
        # No value of a positive semidefinite kernel is larger than the largest K_ii.
        self.largest_kernel = float(np.max(np.abs(diagonal), initial=0.0))
        size = self.largest_kernel * float(np.sum(np.abs(beta)))
        size += float(np.max(np.abs(problem.linear), initial=0.0))
        self.rounding = GRADIENT_ROUNDINGS * np.finfo(np.float64).eps * size
        # rho isn't known yet: begin relative to the start's violation; it has the kernel's scale.
        violation = up_low_sets(problem, beta, v).violation
        self.current = max(search.tol * min(1.0, violation), self.rounding)

    def criteria(self, steps: int) -> StoppingCriteria:
        """Return the criteria for the next steps, after `steps` steps in all."""
        return StoppingCriteria(self.current, self.max_steps - steps, self.search.max_gap)

    def settle(self, reason: int, steps: int, beta: np.ndarray, v: np.ndarray) -> int | None:
        """Return the reason to end the search; or set the violation to reach next, return None.

        `reason` is why the last steps stopped; `steps` is the number of steps in all.
        """
        relative, max_iter = self.relative, self.search.max_iter
        if relative is None or (reason == MAX_ITER and steps >= max_iter):
            return reason
        violation = up_low_sets(self.problem, beta, v).violation
        if relative.can_vanish and not has_margin(self.problem, beta, v):
            # No margin is proven yet: go on, but for a limited number of steps.
            if self.max_steps == max_iter:
                more = max(NO_MARGIN_STEPS_A_SAMPLE * len(v), NO_MARGIN_STEPS_AGAIN * steps)
                self.max_steps = min(steps + more, max_iter)
            if reason == STALLED or violation <= self.rounding or steps >= self.max_steps:
                return NO_MARGIN_CODE
            self.current = max(CLOSER_TO_MARGIN * violation, self.rounding)
            return None
        self.max_steps = max_iter
        wanted = self.wanted(relative, beta, v)
        if violation <= wanted:
            return CONVERGED
        self.current = max(SHORT_OF_WANTED * wanted, self.rounding)
        return STALLED if reason == STALLED else None

    def wanted(self, relative: RelativeTolerance, beta: np.ndarray, v: np.ndarray) -> float:
        """Return the largest violation that the margin at this beta allows."""
        return max(relative.tol * min(1.0, abs(relative.margin(beta, v))), self.rounding)

    def tightens(self, beta: np.ndarray, v: np.ndarray) -> bool:
        """Set the violation to reach next, and return True, if a check can wait until then.

        It can if a proven margin asks for a smaller violation, well above the usual error of v in
        float32: its epsilon times ``||beta||``, for kernel values of 1.
        """
        relative = self.relative
        if relative is None or (wanted := self.wanted(relative, beta, v)) >= self.current:
            return False
        error = float(np.finfo(np.float32).eps) * self.largest_kernel * float(np.linalg.norm(beta))
        if SHORT_OF_WANTED * wanted <= CHECK_SAFETY * error:
            return False
        if relative.can_vanish and not has_margin(self.problem, beta, v):
            return False
        self.current = SHORT_OF_WANTED * wanted
        return True


def has_margin(problem: QPProblem, beta: np.ndarray, v: np.ndarray) -> bool:
    """Return True if the duality gap proves w != 0 at the optimum of a ν-SVC or one-class SVM."""
    # -beta'v is beta'K beta: here p = 0, so that K beta = -v.
    max_gap = PROVES_MARGIN * -float(beta @ v)
    # The duality gap at a model's thresholds bounds the least one, and needs no sorting.
    return gap_of_problem(problem, beta, v) < max_gap or least_gap(problem, beta, v) < max_gap


def fits_float32(source: KernelSource, diagonal: np.ndarray) -> bool:
    """Return True if float32 holds a source's kernel values, and squared distances of inputs."""
    if float(np.max(np.abs(diagonal))) > FLOAT32_MAX_KERNEL:
        return False
    inputs = source.inputs()
    return inputs is None or largest_value(inputs[0]) <= FLOAT32_MAX_INPUT


def warm_up_solver(fixed: str | np.ndarray = "sum") -> None:
    """Compile all that a search calls: run each kind of rows and of search on four samples."""
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
    problem = make_qp(y, np.minimum(y, 0.0), np.maximum(y, 0.0), fixed)
    search, everyone = Refinement(source, problem, pool, 1.0), np.arange(4)
    for rows in makers:
        result = QPResult(np.zeros(4), y.copy())
        # Search among all samples, then among three of them; drop one to compile the shrinking.
        for members in (everyone, np.array([0, 2, 3])):
            active = ActiveSamples(members, problem, result.beta, result.v)
            sets = WorkingSetSearch(rows, active, 1e-3, 1.0, pool)
            sets.run(100, 0.0)
            sets.drop(np.arange(len(members)) > 0)
            active.finish(rows, pool)
        check_in_float64(exact_values(source, rows), problem, result.beta, result.v, 1e-3)
        K = LazyMatrix.of(rows, 2) or rows.whole()
        search.take_steps(rows, K, everyone, StoppingCriteria(1e-3, 9, 0.0), result)
