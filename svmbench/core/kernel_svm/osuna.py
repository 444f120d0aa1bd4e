"""Osuna's decomposition: a working set of fixed size, as many examples leave it as enter.

Problem, given, returned
    As in ``working_set``.
Reference
    Osuna, Freund and Girosi 1997, as Platt 1998 (MSR-TR-98-14), section 1.2 describes it: a matrix
    of constant size, and any set that holds a violator makes progress.
Deviations
    - Whom to exchange is left open there. The worst violators enter, at most half of the set at a
      time; those leave first that are at a bound and farthest inside the conditions, and then,
      since free examples keep them best, the free ones that have been there for longest.
    - The pair of examples that violates most is always in the set: with the equality constraint,
      one violator alone can't move.
    - The inner quadratic program is solved by pair steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmbench.base.errors import BudgetError
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.working_set import (
    Variables,
    WorkingSetClassifier,
    first_of_both,
    require_pair,
    solve_inner,
    worst_of,
)
from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.models.kernel_base import KernelSolution


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

    Where :class:`~svmbench.core.kernel_svm.chunking.Chunking` lets its set grow to all support
    vectors, this one has a matrix of constant size; it keeps no rows.

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
    >>> from svmbench.core.kernel_svm.osuna import Osuna
    >>> Osuna(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    q: int = 500

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_pair("q", self.q)

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
