"""Chunking: a quadratic program over all support vectors and the worst violators, again and again.

Problem
    max_beta  y'beta - 1/2 beta'K beta,   low <= beta <= high,   e'beta = 0
    with beta_i = y_i alpha_i and the bounds [0, C] for y_i = 1, [-C, 0] for y_i = -1.
Given
    A kernel source, y in {-1, +1}, C, tol; perhaps a start.
Returned
    beta and the offset b, once no example is further than tol from its side of the margin.
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

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.base.errors import BudgetError
from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm import projected_gradient
from svmbench.core.kernel_svm.working_set import Variables, combination, first_of_both, worst_of
from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.kernels.storage import require_storage, stored
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier

#: The relative improvement at which the conjugate gradient first stops, and the least tried.
FIRST_THRESHOLD, LEAST_THRESHOLD = 3e-10, 1e-30

#: Conjugate gradient steps in one program.
MOST_STEPS = 100_000

#: A variable is freed from its bound if it violates by this share of the tolerance.
RELEASE = 0.1


@compiled
def close_up(K: np.ndarray, keep: np.ndarray) -> None:
    """Move the rows and columns `keep` (ascending) of K to its beginning."""
    for i in range(len(keep)):
        # Never behind what is still to be read, as they ascend.
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
        """Solve the chunk's program, bring everyone's gradient up to date; return its steps."""
        members = self.members
        before = variables.beta[members]
        beta, v = before.copy(), variables.v[members]
        steps = projected_gradient.maximise(
            self.K,
            variables.y[members],
            beta,
            v,
            variables.low[members],
            variables.high[members],
            threshold,
            RELEASE * tol,
            MOST_STEPS,
        )
        moved = np.flatnonzero(beta != before)
        variables.beta[members] = beta
        variables.v -= combination(self.source, members[moved], (beta - before)[moved])
        return int(steps) if len(moved) else 0


def spread(variables: Variables) -> float:
    """Return the spread of the thresholds that the non-bound examples propose."""
    free = (variables.beta > variables.low) & (variables.beta < variables.high)
    return float(np.ptp(variables.v[free])) if free.any() else 0.0


def optimise(
    source: KernelSource,
    variables: Variables,  # a feasible start; changed in place
    *,
    tol: float,
    max_iter: int,  # largest number of chunks
    cache_mb: float,  # memory for the chunk's matrix, MiB
    M: int,  # violators that enter at a time
) -> KernelSolution:
    """Solve chunk after chunk until the conditions hold within `tol`."""
    before = source.kernel_evaluations
    chunk = Chunk(source, cache_mb)
    iteration, steps, largest, threshold = 0, 0, 0, FIRST_THRESHOLD
    reason = ""
    while not reason:
        violation, _ = variables.violations()
        if violation.max() <= tol:
            reason = "converged"
            break
        if iteration >= max_iter:
            reason = "max_iter"
            break
        if iteration == 0:
            started = np.flatnonzero(variables.beta)
            entering = started if len(started) else first_of_both(variables.y, M)
            leaving = np.empty(0, dtype=np.int64)
        else:
            leaving = np.flatnonzero(variables.beta[chunk.members] == 0.0)
            # One that violates stays: it is a violator like those outside.
            leaving = leaving[violation[chunk.members[leaving]] <= tol]
            violation[chunk.members] = 0.0
            entering = worst_of(violation, tol, M)
            if spread(variables) > 2.0 * tol or len(entering) == 0:
                threshold /= 3.0
        chunk.replace(leaving, entering)
        largest = max(largest, len(chunk.members))
        done = chunk.optimise(variables, threshold, tol)
        steps, iteration = steps + done, iteration + 1
        if done == 0 and threshold < LEAST_THRESHOLD:
            reason = "stalled"
    return variables.solution(
        iteration,
        reason,
        {
            "kernel_evaluations": source.kernel_evaluations - before,
            "conjugate_gradient_steps": steps,
            "largest_chunk": largest,
        },
    )


@declare(
    name="chunking",
    problem="hinge",
    promise="violation",
    summary="a quadratic program over all support vectors and the worst violators, by chunks",
    reference="Platt 1998, sections 1.2 and 3; Vapnik 1982; Burges 1998",
    paper="smo",
    kernels=KERNELS,
)
@dataclass(eq=False, repr=False)
class Chunking(KernelClassifier):
    """Chunking with the projected conjugate gradient.

    Its memory grows with the square of the number of support vectors: it refuses, and says how
    much it would need, before it allocates more than `cache_mb`.

    Parameters
    ----------
    tol : float
        How far f may be from where the conditions want it; the gap at the end is at most twice
        that (LIBSVM's eps bounds the gap).
    max_iter : int
        Largest number of chunks.
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

    C: float = 1.0
    _: KW_ONLY
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    max_iter: int = 10_000
    cache_mb: float = 1024.0
    M: int = 500
    storage: str = "sparse"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_storage(self.storage)
        require_count("M", self.M)
        if self.M < 2:
            msg = f"M must be at least 2, since a step moves two multipliers, got M={self.M}"
            raise ValueError(msg)

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

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve chunk after chunk, from `start` or from zero."""
        C = float(self.C)
        variables = Variables.at_zero(y, C) if start is None else Variables.at(source, y, C, start)
        return optimise(
            source,
            variables,
            tol=float(self.tol),
            max_iter=self.max_iter,
            cache_mb=float(self.cache_mb),
            M=self.M,
        )
