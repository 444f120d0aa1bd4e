"""State of Platt's two algorithms, and the estimator around them.

Besides multipliers and errors, the state has lists of the non-bound examples and of the support
vectors: the cost of a step grows with the lengths of the lists, not with N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from svmbench.base.compiled import compiled, inlined
from svmbench.core.contract.base import TrainingData
from svmbench.core.kernels.storage import (
    LINEAR,
    Storage,
    kernel_values,
    product,
    require_storage,
    store,
    with_matrix,
)
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import ClassifierWithC

#: The two lists: 0 < alpha < C, and alpha > 0.
FREE, SUPPORT = 0, 1

#: Share of C within which a multiplier is put on its bound.
BOUND_MARGIN = 1e-12

#: The work of a search: kernel values computed, steps, and sweeps.
COUNTERS = np.dtype([("evaluations", np.int64), ("steps", np.int64), ("sweeps", np.int64)])


class Examples(NamedTuple):
    """The changing arrays of one problem of n examples with d features."""

    y: np.ndarray  # (n,): labels ±1
    alpha: np.ndarray  # (n,): multipliers
    errors: np.ndarray  # (n,): f(x_i) - y_i where it is cached
    w: np.ndarray  # (d,): the weight vector, with the linear kernel
    members: np.ndarray  # int (2, n): the lists `FREE` and `SUPPORT`, in no order
    place: np.ndarray  # int (2, n): an example's position in each list; -1 if it is not there
    sizes: np.ndarray  # int (2,): lengths of the lists
    counters: np.ndarray  # `COUNTERS` (1,): the work so far
    second: np.ndarray  # (d,): the dense second example during the second choice; else zeros
    work: np.ndarray  # (d,): scratch, zeros between calls
    values: np.ndarray  # (n,): scratch


def at_zero(y: np.ndarray, n_features: int) -> Examples:
    """Return the state of alpha = 0, where f = 0 and every error is -y."""
    n = len(y)
    return Examples(
        y=np.array(y, dtype=np.float64),
        alpha=np.zeros(n),
        errors=-y,
        w=np.zeros(n_features),
        members=np.zeros((2, n), dtype=np.int64),
        place=np.full((2, n), -1, dtype=np.int64),
        sizes=np.zeros(2, dtype=np.int64),
        counters=np.zeros(1, dtype=COUNTERS),
        second=np.zeros(n_features),
        work=np.zeros(n_features),
        values=np.empty(n),
    )


@compiled
def enlist(v: Examples, which: int, i: int, belongs: bool) -> None:
    """Put example i on a list if it `belongs` there, or take it off."""
    p = v.place[which, i]
    if belongs and p < 0:
        size = v.sizes[which]
        v.members[which, size] = i
        v.place[which, i] = size
        v.sizes[which] = size + 1
    elif p >= 0 and not belongs:
        size = v.sizes[which] - 1
        last = v.members[which, size]
        v.members[which, p] = last
        v.place[which, last] = p
        v.place[which, i] = -1
        v.sizes[which] = size


@compiled
def set_multiplier(v: Examples, i: int, value: float, C: float) -> None:
    """Give example i its new multiplier, and update the lists."""
    v.alpha[i] = value
    enlist(v, FREE, i, 0.0 < value < C)
    enlist(v, SUPPORT, i, value > 0.0)


@compiled
def to_bound(value: float, C: float) -> float:
    """Return `value`, or the bound that it equals but for rounding."""
    if value < BOUND_MARGIN * C:
        return 0.0
    if value > C - BOUND_MARGIN * C:
        return C
    return value


@compiled
def summed_output(s: Storage, v: Examples, i: int) -> float:
    """Return sum_j alpha_j y_j K(x_j, x_i) over the support vectors."""
    support, n_support = v.members[SUPPORT], v.sizes[SUPPORT]
    kernel_values(s, i, support, n_support, v.work, v.values, v.counters)
    total = 0.0
    for m in range(n_support):
        j = support[m]
        total += v.alpha[j] * v.y[j] * v.values[m]
    return total


@inlined
def output(s: Storage, v: Examples, i: int) -> float:
    """Return sum_j alpha_j y_j K(x_j, x_i), from the weight vector if the kernel is linear."""
    if s.kind == LINEAR:
        v.counters[0]["evaluations"] += 1
        total = product(s, v.w, i)
    else:
        total = summed_output(s, v, i)
    return total


def solution(v: Examples, b: float, stop_reason: str) -> KernelSolution:
    """Return the solution, with the offset `b` of f = sum + b."""
    return KernelSolution(
        coefficients=v.alpha * v.y,
        b=b,
        n_iter=int(v.counters[0]["sweeps"]),
        stop_reason=stop_reason,
        counters={
            "kernel_evaluations": int(v.counters[0]["evaluations"]),
            "updates": int(v.counters[0]["steps"]),
            "sweeps": int(v.counters[0]["sweeps"]),
        },
    )


@dataclass(eq=False, repr=False, kw_only=True)
class PlattClassifier(ClassifierWithC):
    """A solver that works on the inputs themselves, example by example.

    Subclasses define `optimise`.

    Parameters
    ----------
    tol : float
        Largest distance of an example from its side of the margin, in units of f. The gap m - M at
        the end is at most twice that (LIBSVM's eps bounds the gap).
    max_iter : int
        Largest number of sweeps over all or over the non-bound examples.
    cache_mb : float
        Memory for kernel values, MiB: if it holds the whole matrix, that is computed once.
    storage : {"sparse", "dense"}
        How inputs are kept, whatever they came as; the report measures both.

    Attributes
    ----------
    n_iter_ : int
        Sweeps.
    counters_ : dict
        ``kernel_evaluations`` (inner products, with the linear kernel), ``updates`` (steps),
        ``sweeps``, ``support_vectors``, ``bounded_support_vectors``.
    """

    tol: float = 1e-3
    max_iter: int = 100_000
    cache_mb: float = 0.0
    storage: str = "sparse"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_storage(self.storage)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and bring the inputs into the chosen storage."""
        data = super().prepare(X, y)
        data.native = store(data.X, self.function, self.storage)
        return data

    def train(self, data: TrainingData) -> Self:
        """Sweep until no example violates the optimality conditions by more than `tol`."""
        s = with_matrix(data.native, data.X, self.function, float(self.cache_mb))
        v = at_zero(data.y, data.X.shape[1])
        v.counters[0]["evaluations"] = s.K.size
        return self._store(self.optimise(s, v), data)

    def optimise(self, s: Storage, v: Examples) -> KernelSolution:
        """Solve from `v`, which is at alpha = 0, with the estimator's own parameters."""
        raise AssertionError("a subclass defines optimise")
