"""Chunking, Osuna's decomposition and SVM-light: each step optimises a few variables.

Problem, given, returned
    As in ``working_set``.
Reference of Chunking
    Platt 1998 (MSR-TR-98-14), sections 1.2 and 3: each step solves the program over every example
    with alpha > 0 and the M = 500 that violate the conditions most, from where the last step
    ended. The projected conjugate gradient stops at a relative improvement that starts at 3e-10
    and is divided by 3 whenever the thresholds that the non-bound examples propose spread by more
    than 2 tol (2e-3 in the report).
Deviations of Chunking
    - The threshold is also divided where no example outside the chunk violates: then it is the
      program's own accuracy that is missing.
    - The first chunk has M / 2 examples of each class, all of which violate equally.
    - Outputs are brought up to date by the multipliers that changed.
    - Kernel values of examples that stay in the chunk are kept; the report doesn't speak of it.
Reference of Osuna
    Osuna, Freund and Girosi 1997, as Platt 1998 (MSR-TR-98-14), section 1.2 describes it: a matrix
    of constant size, as many examples leave as enter, and any set that holds a violator makes
    progress.
Deviations of Osuna
    - Whom to exchange is left open there. The worst violators enter, at most half of the set at a
      time; those leave first that are at a bound and farthest inside the conditions, and then,
      since free examples keep them best, the free ones that have been there for longest.
    - The pair of examples that violates most is always in the set: with the equality constraint,
      one violator alone can't move.
    - The inner quadratic program is solved by pair steps.
Reference of SVM-light
    Joachims 1999, "Making large-scale SVM learning practical": section 11.3 (working set by the
    steepest feasible direction: half of it from each end of the sorted gradient), 11.4 (shrinking:
    a variable is left out once its multiplier has held it at a bound for a number of iterations;
    at the end all are checked), 11.5 (cache of kernel rows; the least recently used give way).
Deviations of SVM-light
    - The inner quadratic program is solved by pair steps, not by an interior-point method.
    - Each half of the working set stays on its own side of the middle threshold. Near the end a
      side may have fewer than half to offer; the set is then smaller than q, the paper's is not.
    - Cached rows are dropped at each check of all samples, as the samples they are over change.
    - Samples are left out once a tenth of them can be; cached rows lose the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.base.errors import BudgetError
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm import projected_gradient
from svmbench.core.kernel_svm.working_set import (
    RowMaker,
    Variables,
    WorkingSetClassifier,
    first_of_both,
    solve_inner,
    worst_of,
)
from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.kernels.rows import RowCache
from svmbench.core.kernels.storage import require_storage, stored
from svmbench.core.models.kernel_base import KernelSolution

#: Relative improvement at which the conjugate gradient stops: at first, and at least.
FIRST_THRESHOLD, LEAST_THRESHOLD = 3e-10, 1e-30

#: Largest number of conjugate gradient steps in one program.
PROGRAM_MAX_STEPS = 100_000

#: Violation, as a share of the tolerance, from which a variable is freed from its bound.
RELEASE_TOL_SHARE = 0.1


@compiled
def close_up(K: np.ndarray, keep: np.ndarray) -> None:
    """Move the rows and columns `keep` (ascending) of K to its beginning."""
    for i in range(len(keep)):
        # As `keep` ascends, no value is overwritten before it is read.
        source, target = K[keep[i]], K[i]
        for k in range(len(keep)):
            target[k] = source[keep[k]]


class Chunk:
    """The active examples with the matrix of their kernel values."""

    def __init__(
        self,
        source: KernelSource,
        cache_mb: float,  # memory that the matrix may take, MiB
    ) -> None:
        self.source, self.cache_mb = source, cache_mb
        self.capacity = min(source.n_samples, int((cache_mb * MIB / 8.0) ** 0.5))
        # positions of the active examples, in the order in which they came
        self.members = np.empty(0, dtype=np.int64)
        # (capacity, capacity): kernel values in the first n rows and columns
        self.K = np.empty((0, 0))

    def replace(self, leaving: np.ndarray, entering: np.ndarray) -> None:
        """Drop the members at positions `leaving`, and add examples.

        Raise BudgetError if the matrix would not fit; nothing has been allocated for it then.
        """
        keep = np.delete(np.arange(len(self.members)), leaving)
        old, size = len(keep), len(keep) + len(entering)
        if size > self.capacity:
            needed = int(np.ceil(size**2 * 8 / MIB))
            msg = (
                f"chunking needs the kernel values of {size} active examples now, {needed} MiB, "
                f"but may use cache_mb={self.cache_mb:g}: give cache_mb={needed} or more"
            )
            raise BudgetError(msg)
        if not len(self.K):
            # Pages that no value has reached yet cost nothing.
            self.K = np.empty((self.capacity, self.capacity))
        if old < len(self.members):
            close_up(self.K, keep)
        self.members = np.concatenate([self.members[keep], entering])
        if len(entering):
            block = self.source.block(entering, self.members)
            self.K[old:size, :size] = block
            self.K[:old, old:size] = block[:, :old].T

    def optimise(self, variables: Variables, threshold: float, tol: float) -> int:
        """Solve the chunk's program and update the whole gradient; return its steps."""
        part = variables.part(self.members)
        steps = projected_gradient.maximise(
            self.K,
            part.y,
            part.beta,
            part.v,
            part.low,
            part.high,
            threshold,
            RELEASE_TOL_SHARE * tol,
            PROGRAM_MAX_STEPS,
        )
        n_moved = variables.move(self.source, self.members, part.beta)
        return int(steps) if n_moved else 0


def threshold_spread(variables: Variables) -> float:
    """Return the spread of the thresholds that the non-bound examples propose."""
    free = variables.is_free
    return float(np.ptp(variables.v[free])) if free.any() else 0.0


@declare(
    name="chunking",
    problem="hinge",
    promise="violation",
    summary="a quadratic program over all support vectors and the worst violators, by chunks",
    reference="Platt 1998, sections 1.2 and 3; Vapnik 1982; Burges 1998",
    paper="smo",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False, kw_only=True)
class Chunking(WorkingSetClassifier):
    """Chunking with the projected conjugate gradient.

    Its memory grows with the square of the number of support vectors: it refuses, and says how
    much it would need, before it allocates more than `cache_mb`.

    Parameters
    ----------
    cache_mb : float
        Memory that the matrix of a chunk may take, MiB; the report's machine had 128 in all.
    M : int
        Violators that enter at a time, at least 2.
    storage : {"sparse", "dense"}
        How inputs are kept, whatever they came as; the report measures both.

    Attributes
    ----------
    n_iter_ : int
        Chunks.
    counters_ : dict
        ``kernel_evaluations``, ``conjugate_gradient_steps``, ``largest_chunk`` (examples),
        ``support_vectors``, ``bounded_support_vectors``.

    Raises
    ------
    svmbench.base.errors.BudgetError
        If a chunk's matrix would not fit into `cache_mb`.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.decomposition import Chunking
    >>> Chunking(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    max_iter: int = 10_000
    cache_mb: float = 1024.0
    M: int = 500
    storage: str = "sparse"
    _size: ClassVar[str] = "M"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_storage(self.storage)

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma, and bring the inputs into the chosen storage."""
        data = super()._convert(data)
        data.native = stored(data.native, self.storage)
        return data

    def train(self, data: TrainingData) -> Self:
        """Solve on the kernel values of the stored samples, and store the model."""
        source = KernelSource.from_inputs(data.native, self.function)
        return self._store(self.solve(source, data.y), data)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Run the compiled code that only problems of several chunks need."""
        super().warm_up_rest()
        close_up(np.zeros((2, 2)), np.arange(2))

    def _optimise(self, source: KernelSource, variables: Variables) -> KernelSolution:
        """Solve chunk after chunk until the conditions hold within `tol`."""
        tol, before = float(self.tol), source.kernel_evaluations
        chunk = Chunk(source, float(self.cache_mb))
        iteration, steps, largest, threshold = 0, 0, 0, FIRST_THRESHOLD
        reason = ""
        while not reason:
            violation, _ = variables.violations()
            if violation.max() <= tol:
                reason = "converged"
                break
            if iteration >= self.max_iter:
                reason = "max_iter"
                break
            if iteration == 0:
                started = np.flatnonzero(variables.beta)
                entering = started if len(started) else first_of_both(variables.y, self.M)
                leaving = np.empty(0, dtype=np.int64)
            else:
                # Examples with alpha = 0 leave, but for violators: these would enter again.
                leaving = np.flatnonzero(variables.beta[chunk.members] == 0.0)
                leaving = leaving[violation[chunk.members[leaving]] <= tol]
                violation[chunk.members] = 0.0
                entering = worst_of(violation, tol, self.M)
                if threshold_spread(variables) > 2.0 * tol or len(entering) == 0:
                    threshold /= 3.0
            chunk.replace(leaving, entering)
            largest = max(largest, len(chunk.members))
            done = chunk.optimise(variables, threshold, tol)
            steps, iteration = steps + done, iteration + 1
            if done == 0 and threshold < LEAST_THRESHOLD:
                reason = "stalled"
        counters = {
            "kernel_evaluations": source.kernel_evaluations - before,
            "conjugate_gradient_steps": steps,
            "largest_chunk": largest,
        }
        return variables.solution(iteration, reason, counters)


class FixedSizeSet:
    """The examples that are optimised, with the matrix of their kernel values."""

    def __init__(self, source: KernelSource, members: np.ndarray) -> None:
        self.source, self.members = source, members
        # the step at which each member entered
        self.since = np.zeros(len(members), dtype=np.int64)
        self.K = source.block(members, members)  # (q, q)

    def exchange(self, variables: Variables, tol: float, step: int) -> None:
        """Let the worst violators enter, and as many leave."""
        v_up, v_low, _, _ = variables.limits()
        pair = np.array([np.argmax(v_up), np.argmin(v_low)])
        violation, _ = variables.violations()
        stays = np.isin(self.members, pair)
        outside = violation.copy()
        outside[self.members] = -np.inf
        # The pair that violates most comes before all other violators.
        outside[pair[~np.isin(pair, self.members)]] = np.inf
        most = min(max(2, len(self.members) // 2), int(np.count_nonzero(~stays)))
        entering = worst_of(outside, tol, most)
        members = self.members
        free = variables.is_free[members]
        # The last key of lexsort counts most: the pair stays, examples at a bound leave before
        # free ones; then those farthest inside the conditions, or longest in the set, leave first.
        order = np.where(free, self.since, violation[members])
        leaving = np.lexsort((order, free, stays))[: len(entering)]
        self.members[leaving], self.since[leaving] = entering, step
        block = self.source.block(entering, self.members)
        self.K[leaving] = block
        self.K[:, leaving] = block.T

    def optimise(self, variables: Variables, tol: float) -> int:
        """Optimise the members and update the whole gradient; return the number of pair steps."""
        part = variables.part(self.members)
        steps = solve_inner(self.K, part, tol)
        variables.move(self.source, self.members, part.beta)
        return steps


@declare(
    name="osuna",
    problem="hinge",
    promise="violation",
    summary="decomposition with a working set of fixed size, as many leaving as entering",
    reference="Osuna, Freund and Girosi 1997; Platt 1998, section 1.2",
    paper="smo",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False, kw_only=True)
class Osuna(WorkingSetClassifier):
    """Osuna's decomposition.

    Its working set has a constant size, where that of `Chunking` grows to all support vectors. It
    keeps no kernel rows.

    Parameters
    ----------
    cache_mb : float
        Memory that the matrix of the working set may take, MiB.
    q : int
        Size of the working set, at least 2.

    Attributes
    ----------
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (pair steps in working sets), ``support_vectors``,
        ``bounded_support_vectors``.

    Raises
    ------
    svmbench.base.errors.BudgetError
        If `cache_mb` does not hold the matrix; says how much does.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.decomposition import Osuna
    >>> Osuna(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    q: int = 500

    def _optimise(self, source: KernelSource, variables: Variables) -> KernelSolution:
        """Exchange and optimise until the conditions hold within `tol`."""
        size, tol = min(self.q, source.n_samples), float(self.tol)
        needed = size**2 * 8 / MIB
        if needed > self.cache_mb:
            msg = (
                f"osuna keeps the kernel values of its {size} working examples, {needed:.3g} MiB, "
                f"but may use cache_mb={self.cache_mb:g}: give more, or a smaller q"
            )
            raise BudgetError(msg)
        # What `Variables.at` has evaluated is the start's, not the solver's.
        before = source.kernel_evaluations
        chosen = FixedSizeSet(source, first_of_both(variables.y, size))
        iteration, steps, reason = 0, 0, ""
        while not reason:
            _, _, m, M = variables.limits()
            if m - M <= 2.0 * tol:
                reason = "converged"
            elif iteration >= self.max_iter:
                reason = "max_iter"
            else:
                if iteration > 0 or np.any(variables.beta):
                    chosen.exchange(variables, tol, iteration)
                done = chosen.optimise(variables, tol)
                if done == 0:
                    reason = "stalled"
                steps, iteration = steps + done, iteration + 1
        counters = {"kernel_evaluations": source.kernel_evaluations - before, "updates": steps}
        return variables.solution(iteration, reason, counters)


#: Iterations that a variable's gradient must hold it at its bound before it is left out.
SHRINK_AFTER_ITERATIONS = 100

#: Iterations between two attempts to leave samples out.
SHRINK_EVERY_ITERATIONS = 10

#: Least share of the samples that is left out at a time.
SHRINK_MIN_SHARE = 0.1

#: Largest number of pair steps in one working set.
SET_MAX_STEPS = 1000


@compiled
def steepest(
    # v, beta, low, high (n,): gradient, variables and their bounds
    v: np.ndarray,
    beta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    half: int,  # how many variables to take from each end of the sorted gradient
) -> tuple[np.ndarray, float]:
    """Return the working set of the steepest feasible direction, and the violation m - M."""
    n = len(v)
    top, bottom = -np.inf, np.inf
    for k in range(n):
        if beta[k] < high[k] and v[k] > top:
            top = v[k]
        if beta[k] > low[k] and v[k] < bottom:
            bottom = v[k]
    # On their own side of the threshold, none can be in both halves.
    b = 0.5 * (top + bottom)
    chosen, score = np.empty(2 * half, dtype=np.int64), np.empty(2 * half)
    size = np.zeros(2, dtype=np.int64)
    for k in range(n):
        side = 0 if v[k] > b else 1
        if (side == 0 and beta[k] >= high[k]) or (side == 1 and beta[k] <= low[k]) or v[k] == b:
            continue
        # Each half is kept sorted, the largest distance first.
        distance, start = abs(v[k] - b), side * half
        place = start + size[side]
        if place == start + half:
            if distance <= score[place - 1]:
                continue
            place -= 1
        else:
            size[side] += 1
        while place > start and score[place - 1] < distance:
            chosen[place], score[place] = chosen[place - 1], score[place - 1]
            place -= 1
        chosen[place], score[place] = k, distance
    return np.append(chosen[: size[0]], chosen[half : half + size[1]]), top - bottom


class Taking:
    """The samples that take part, with their cached rows."""

    def __init__(
        self, source: KernelSource, whole: Variables, store: RowCache, iteration: int
    ) -> None:
        self.source, self.store = source, store
        # int (n,): their positions in the whole problem, ascending
        self.members = np.arange(source.n_samples)
        self.variables = whole.part(self.members)
        # Of all samples; up to date once one is left out.
        self.beta = whole.beta.copy()
        self.maker = RowMaker(source)
        # the iteration at which each member was last not held at a bound
        self._moving = np.full(source.n_samples, iteration)
        self.evaluations = 0

    def select(self, q: int) -> tuple[np.ndarray, float]:
        """Return the working set, positions among the members, and the violation m - M."""
        x = self.variables
        chosen, violation = steepest(x.v, x.beta, x.low, x.high, max(1, q // 2))
        return chosen, float(violation)

    def step(self, chosen: np.ndarray, tol: float) -> int:
        """Optimise the working set; return the number of pair steps."""
        slots, missing = self.store.claim(self.members[chosen])
        if missing.any():
            self.store.rows[slots[missing]] = self.maker.rows(chosen[missing])
        rows = self.store.rows[slots]
        v = self.variables
        part = v.part(chosen)
        steps = solve_inner(np.ascontiguousarray(rows[:, chosen]), part, tol, SET_MAX_STEPS)
        change = part.beta - v.beta[chosen]
        v.beta[chosen] = part.beta
        v.v -= change @ rows
        return steps

    def leave_out(self, iteration: int) -> None:
        """Leave out the samples whose gradient has long held them at a bound."""
        v = self.variables
        v_up, v_low, m, M = v.limits()
        b = 0.5 * (m + M)
        stays = ((v_up == -np.inf) & (v.v > b)) | ((v_low == np.inf) & (v.v < b))
        self._moving[~stays] = iteration
        keep = np.flatnonzero(iteration - self._moving < SHRINK_AFTER_ITERATIONS)
        if len(keep) > (1.0 - SHRINK_MIN_SHARE) * len(self.members) or len(keep) < 2:
            return
        self.beta[self.members] = v.beta
        is_kept = np.zeros(self.source.n_samples, dtype=bool)
        is_kept[self.members[keep]] = True
        self.members, self._moving = self.members[keep], self._moving[keep]
        self.variables = v.part(keep)
        self.store.cut(keep, is_kept)
        self.evaluations += self.maker.evaluations
        self.maker = RowMaker(self.source.subset(self.members))

    def bring_back(self, whole: Variables) -> None:
        """Write the members' variables to the whole problem's, and update its gradient."""
        self.beta[self.members] = self.variables.beta
        n_moved = whole.move(self.source, np.arange(len(whole.y)), self.beta)
        self.evaluations += self.maker.evaluations + n_moved * len(whole.y)


@declare(
    name="svm-light",
    problem="hinge",
    promise="violation",
    summary="decomposition with working sets of ten by steepest feasible direction, shrinking",
    reference="Joachims 1999, sections 11.3 to 11.5",
    paper="smo",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False, kw_only=True)
class SVMLight(WorkingSetClassifier):
    """The method of SVM-light.

    Parameters
    ----------
    cache_mb : float
        Memory for kernel rows, MiB; at least `q` rows.
    q : int
        Size of the working set, at least 2.

    Attributes
    ----------
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (pair steps in working sets), ``checks`` (of all
        samples), ``support_vectors``, ``bounded_support_vectors``.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If `cache_mb` does not hold `q` rows; says how much does.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.decomposition import SVMLight
    >>> SVMLight(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    max_iter: int = 1_000_000
    q: int = 10

    def _optimise(self, source: KernelSource, variables: Variables) -> KernelSolution:
        """Decompose until the conditions hold within `tol` for all samples."""
        n, tol, q = source.n_samples, float(self.tol), self.q
        iteration, steps, evaluations, checks = 0, 0, 0, 0
        reason = ""
        while not reason:
            store = RowCache(n, n, float(self.cache_mb), least=q)
            taking = Taking(source, variables, store, iteration)
            stuck = False
            while True:
                chosen, violation = taking.select(q)
                if violation <= 2.0 * tol or iteration >= self.max_iter or stuck:
                    break
                done = taking.step(chosen, tol)
                stuck, steps, iteration = done == 0, steps + done, iteration + 1
                if iteration % SHRINK_EVERY_ITERATIONS == 0:
                    taking.leave_out(iteration)
            # Section 11.4: at the end, all samples are checked.
            was_whole = len(taking.members) == n
            taking.bring_back(variables)
            evaluations += taking.evaluations
            checks += 1
            _, _, m, M = variables.limits()
            if m - M <= 2.0 * tol:
                reason = "converged"
            elif iteration >= self.max_iter:
                reason = "max_iter"
            elif stuck and was_whole:
                reason = "stalled"
        counters = {"kernel_evaluations": evaluations, "updates": steps, "checks": checks}
        return variables.solution(iteration, reason, counters)
