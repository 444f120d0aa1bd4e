"""SVM-light's decomposition: ten variables at a time, along the steepest feasible direction.

Problem, given, returned
    As in ``working_set``.
Reference
    Joachims 1999, "Making large-scale SVM learning practical": section 11.3 (working set by the
    steepest feasible direction: half of it from each end of the sorted gradient), 11.4 (shrinking:
    a variable is left out once its multiplier has held it at a bound for a number of iterations;
    at the end all are checked), 11.5 (cache of kernel rows; the least
    recently used give way).
Deviations
    - The inner quadratic program is solved by pair steps, not by an interior-point method.
    - Each half of the working set stays on its own side of the middle threshold. Near the end a
      side may have fewer than half to offer; the set is then smaller than q, where the paper's
      takes more along with it.
    - Cached rows are dropped at each check of all samples, as the samples they are over change.
    - Samples are left out once a tenth of the samples that take part can be; cached rows lose the
      same columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.working_set import (
    RowMaker,
    Variables,
    WorkingSetClassifier,
    require_pair,
    solve_inner,
)
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.rows import RowCache
from svmbench.core.models.kernel_base import KernelSolution

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
    """Return the working set of the steepest feasible direction, and the gap."""
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
        """Return the working set, positions among the members, and the gap m - M."""
        x = self.variables
        chosen, gap = steepest(x.v, x.beta, x.low, x.high, max(1, q // 2))
        return chosen, float(gap)

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_pair("q", self.q)

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
                chosen, gap = taking.select(q)
                if gap <= 2.0 * tol or iteration >= self.max_iter or stuck:
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
