"""Base of the methods that optimise a few variables at a time: variables, rows, inner program.

Problem
    max_beta  y'beta - 1/2 beta'K beta,   low <= beta <= high,   e'beta = 0
    with beta_i = y_i alpha_i and the bounds [0, C] for y_i = 1, [-C, 0] for y_i = -1.
Given
    A kernel source, y in {-1, +1}, C, tol; perhaps a start.
Returned
    beta and the offset b, once no example is further than tol from its side of the margin.
Optimality
    With the gradient v = y - K beta of the dual, the conditions hold within tol once there is a
    threshold b with v_i <= b + tol wherever beta_i can go up, and v_i >= b - tol wherever it can
    go down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmbench.core.contract.base import require_count
from svmbench.core.csvc.problem import UpLowSets, csvc_problem, up_low_sets
from svmbench.core.csvc.smo import Bounds, StoppingCriteria, pair_steps
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.products import gauss_double, inner_products, squared_lengths
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution
from svmbench.core.numeric.arrays import raw

#: Kernel rows computed at a time where they are only summed up.
SUMMED_ROWS = 256

#: Share of C within which a variable counts as at a bound.
BOUND_SHARE = 1e-12

#: Share of the tolerance to which the inner problem is solved.
INNER_TOL_SHARE = 0.5

#: Largest number of pair steps in one inner problem.
INNER_MAX_STEPS = 100_000


class Variables:
    """The variables of a problem, or of a part of it, with gradient and bounds; shape (n,) each."""

    def __init__(self, y: np.ndarray, C: float, beta: np.ndarray, v: np.ndarray) -> None:
        self.y, self.C, self.beta, self.v = y, C, beta, v
        self.problem = csvc_problem(y, C)
        self.low, self.high = self.problem.low, self.problem.high

    @classmethod
    def at_zero(cls, y: np.ndarray, C: float) -> Variables:
        """Return all variables at zero, where the gradient is y."""
        y = np.array(y, dtype=np.float64)
        return cls(y, C, np.zeros(len(y)), y.copy())

    @classmethod
    def at(cls, source: KernelSource, y: np.ndarray, C: float, alpha: np.ndarray) -> Variables:
        """Return the variables of feasible multipliers `alpha`."""
        beta = alpha * y
        support = np.flatnonzero(beta)
        return cls(y, C, beta, y - combination(source, support, beta[support]))

    def part(self, members: np.ndarray) -> Variables:
        """Return copies of some of the variables, with their own gradient."""
        return Variables(self.y[members], self.C, self.beta[members], self.v[members])

    def move(self, source: KernelSource, members: np.ndarray, beta: np.ndarray) -> int:
        """Give the members new values and update the whole gradient; return how many changed."""
        change = beta - self.beta[members]
        moved = np.flatnonzero(change)
        self.beta[members] = beta
        self.v -= combination(source, members[moved], change[moved])
        return len(moved)

    @property
    def is_free(self) -> np.ndarray:
        """Mask of the variables that are at no bound."""
        return (self.beta > self.low) & (self.beta < self.high)

    def limits(self) -> UpLowSets:
        """Return `v` of the variables that can go up (else -inf), down (else inf); m and M."""
        return up_low_sets(self.problem, self.beta, self.v)

    def violations(self) -> tuple[np.ndarray, float]:
        """Return each example's violation at the threshold that makes the largest least, and it."""
        v_up, v_low, m, M = self.limits()
        b = 0.5 * float(m + M)
        return np.maximum(v_up - b, b - v_low), b

    def solution(self, n_iter: int, stop_reason: str, counters: dict[str, int]) -> KernelSolution:
        """Return the present solution, with b halfway between m and M."""
        _, _, m, M = self.limits()
        return KernelSolution(self.beta, 0.5 * float(m + M), n_iter, stop_reason, counters)


def worst_of(violation: np.ndarray, tol: float, most: int) -> np.ndarray:
    """Return the positions of up to `most` of the largest violations above `tol`, ascending."""
    violators = np.flatnonzero(violation > tol)
    if len(violators) > most:
        violators = np.sort(
            violators[np.argpartition(violation[violators], len(violators) - most)[-most:]]
        )
    return violators


def first_of_both(y: np.ndarray, size: int) -> np.ndarray:
    """Return the first positions of each class, half of `size` each if both are large enough."""
    positive, negative = np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0)
    n_positive = min(len(positive), max(size // 2, size - len(negative)))
    return np.sort(np.concatenate([positive[:n_positive], negative[: size - n_positive]]))


def combination(source: KernelSource, I: np.ndarray, weights: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return ``weights @ rows(I)``, shape (n_samples,), without keeping the rows.

    With a linear kernel on inputs that is one weight vector and its products.
    """
    known = source.inputs()
    if known is not None and known[1].name == "linear":
        X = known[0]
        return np.asarray(X @ np.asarray(X[I].T @ weights).ravel()).ravel()
    total = np.zeros(source.n_samples)
    for start in range(0, len(I), SUMMED_ROWS):
        part = slice(start, start + SUMMED_ROWS)
        total += weights[part] @ source.rows(I[part])
    return total


class RowMaker:
    """Kernel rows over one set of samples, a few at a time, again and again.

    It knows what does not change between calls: the squared lengths of the samples.
    """

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.evaluations = 0  # kernel values computed so far
        known = source.inputs()
        self._rbf = None
        if known is not None and known[1].name == "rbf":
            self._squares = squared_lengths(known[0])
            if not known[1].cancels(self._squares, self._squares):
                self._rbf = known

    def rows(self, I: np.ndarray) -> np.ndarray:  # noqa: E741
        """Return the rows at positions `I`, float64 of shape (len(I), n_samples)."""
        self.evaluations += len(I) * self.source.n_samples
        if self._rbf is None:
            return self.source.rows(I)
        X, function = self._rbf
        P = inner_products(X[I], X)
        gauss_double(P, self._squares[I], self._squares, function.gamma)
        return P


def solve_inner(
    K: np.ndarray,  # (q, q): their kernel values, C-ordered
    part: Variables,  # variables of a working set; changed in place
    tol: float,
    max_steps: int = INNER_MAX_STEPS,
) -> int:
    """Optimise a working set by pair steps; return their number."""
    diagonal = raw(np.ascontiguousarray(np.diagonal(K)))
    steps, _ = pair_steps(
        raw(K),
        diagonal,
        Bounds(part.low, part.high),
        StoppingCriteria(INNER_TOL_SHARE * tol, max_steps),
        part.beta,
        part.v,
    )
    margin = BOUND_SHARE * part.C
    np.copyto(part.beta, part.low, where=part.beta <= part.low + margin)
    np.copyto(part.beta, part.high, where=part.beta >= part.high - margin)
    return int(steps)


@dataclass(eq=False, repr=False, kw_only=True)
class WorkingSetClassifier(ClassifierWithC):
    """A method that optimises a few variables at a time; subclasses define `_optimise`.

    Parameters
    ----------
    tol : float
        Largest violation of the optimality conditions, in units of f; m - M is at most twice that
        at the end (LIBSVM's eps bounds m - M).

    Attributes
    ----------
    n_iter_ : int
        Working sets.
    """

    tol: float = 1e-3
    max_iter: int = 100_000
    cache_mb: float = 200.0
    #: The parameter that says how many variables enter at a time.
    _size: ClassVar[str] = "q"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        name, n = self._size, getattr(self, self._size)
        require_count(name, n)
        if n < 2:
            msg = f"{name} must be at least 2, since a step moves two multipliers, got {name}={n}"
            raise ValueError(msg)

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve from the multipliers `start`, or from zero."""
        C = float(self.C)
        variables = Variables.at_zero(y, C) if start is None else Variables.at(source, y, C, start)
        return self._optimise(source, variables)

    def _optimise(self, source: KernelSource, variables: Variables) -> KernelSolution:
        """Optimise a feasible start, in place."""
        raise AssertionError("a subclass defines _optimise")
