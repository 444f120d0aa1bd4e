"""Variables, rows and inner program of the methods that optimise a few variables at a time.

They keep beta_i = y_i alpha_i, with the bounds [0, C] for y_i = 1 and [-C, 0] for y_i = -1, and
the gradient v = y - K beta of the dual. The conditions hold within tol once there is a threshold b
with v_i <= b + tol wherever beta_i can go up, and v_i >= b - tol wherever it can go down.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.csvc.problem import UpLowSets, csvc_problem, up_low_sets
from svmbench.core.csvc.smo import Bounds, StoppingCriteria, pair_steps
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.products import gauss_double, inner_products, squared_lengths
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.numeric.arrays import raw

#: Kernel rows computed at a time where they are only summed up.
BATCH = 256

#: Share of C within which a variable counts as at a bound.
AT_BOUND = 1e-12

#: The inner problem is solved to this share of the tolerance, in at most so many pair steps.
INNER, INNER_STEPS = 0.5, 100_000


class Variables:
    """The variables of a problem, or of a part of it, with gradient and bounds; shape (n,) each."""

    def __init__(self, y: np.ndarray, C: float, beta: np.ndarray, v: np.ndarray) -> None:
        self.y, self.beta, self.v = y, beta, v
        self.box = csvc_problem(y, C)
        self.low, self.high = self.box.low, self.box.high

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

    def limits(self) -> UpLowSets:
        """Return `v` of what can go up (else -inf) and down (else inf), and their extremes."""
        return up_low_sets(self.box, self.beta, self.v)

    def violations(self) -> tuple[np.ndarray, float]:
        """Return by how much each example violates the conditions, and the threshold for that.

        The threshold is the one at which the largest violation is least.
        """
        v_up, v_low, m, M = self.limits()
        b = 0.5 * float(m + M)
        return np.maximum(v_up - b, b - v_low), b

    def solution(self, n_iter: int, stop_reason: str, counters: dict[str, int]) -> KernelSolution:
        """Return the present state as a solution, its offset in the middle of what is allowed."""
        _, _, m, M = self.limits()
        return KernelSolution(
            coefficients=self.beta,
            b=0.5 * float(m + M),
            n_iter=n_iter,
            stop_reason=stop_reason,
            counters=counters,
        )


def worst_of(violation: np.ndarray, tol: float, most: int) -> np.ndarray:
    """Return the positions of the largest violations above `tol`, at most so many, ascending."""
    found = np.flatnonzero(violation > tol)
    if len(found) > most:
        found = np.sort(found[np.argpartition(violation[found], len(found) - most)[-most:]])
    return found


def first_of_both(y: np.ndarray, size: int) -> np.ndarray:
    """Return the first positions of each class, half of `size` each where there are so many."""
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
    for start in range(0, len(I), BATCH):
        part = slice(start, start + BATCH)
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
    part: Variables,
    C: float,
    tol: float,
    most: int = INNER_STEPS,  # largest number of pair steps
) -> int:  # pair steps; 0 if there was nothing left to do
    """Optimise the variables of a working set, changing them and their own gradient in place."""
    diagonal = raw(np.ascontiguousarray(np.diagonal(K)))
    steps, _ = pair_steps(
        raw(K),
        diagonal,
        Bounds(part.low, part.high),
        StoppingCriteria(INNER * tol, most),
        part.beta,
        part.v,
    )
    margin = AT_BOUND * C
    np.copyto(part.beta, part.low, where=part.beta <= part.low + margin)
    np.copyto(part.beta, part.high, where=part.beta >= part.high - margin)
    return int(steps)
