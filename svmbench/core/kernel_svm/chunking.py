"""Chunking: a quadratic program over all support vectors and the worst violators, again and again.

Problem, given, returned
    As in ``working_set``.
Reference
    Platt 1998 (MSR-TR-98-14), sections 1.2 and 3: each step solves the program over every example
    with alpha > 0 and the M = 500 that violate the conditions most, from where the last step
    ended. The projected conjugate gradient stops at a relative improvement that starts at 3e-10
    and is divided by 3 whenever the thresholds that the non-bound examples propose spread by more
    than 2 tol (2e-3 in the report).
Deviations
    - The threshold is also divided where no example outside the chunk violates: then it is the
      program's own accuracy that is missing.
    - The first chunk has M / 2 examples of each class, all of which violate equally.
    - Outputs are brought up to date by the multipliers that changed.
    - Kernel values between examples that stay in the chunk are kept from one program to the next;
      the report does not say whether its program did so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.base.errors import BudgetError
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm import projected_gradient
from svmbench.core.kernel_svm.working_set import (
    Variables,
    WorkingSetClassifier,
    first_of_both,
    require_pair,
    worst_of,
)
from svmbench.core.kernels.kernels import MIB, KernelSource
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
    >>> from svmbench.core.kernel_svm.chunking import Chunking
    >>> Chunking(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    max_iter: int = 10_000
    cache_mb: float = 1024.0
    M: int = 500
    storage: str = "sparse"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_storage(self.storage)
        require_pair("M", self.M)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and bring the inputs into the chosen storage."""
        data = super().prepare(X, y)
        data.native = stored(data.X, self.storage)
        return data

    def train(self, data: TrainingData) -> Self:
        """Solve on the kernel values of the stored samples, and store the model."""
        source = KernelSource.from_inputs(data.native, self.function)
        return self._store(self.solve(source, data.y), data)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call what only problems of several chunks need."""
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
