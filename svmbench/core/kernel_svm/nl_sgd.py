"""Kernel sub-gradient steps on one sample: in shuffled cycles (NL-SGD) or drawn (Pegasos).

Problem
    min_w  lambda/2 ||w||^2 + 1/N sum_i max(0, 1 - y_i f(x_i)),   lambda = 1/C,   f(x) = w'phi(x):
    no offset. Times C, it is the C-SVC with C/N as its C: this C is N times the C-SVC's.
Given
    a kernel matrix, y in {-1, +1}, C, T = epochs * N steps.
Returned
    the mean of alpha^(t) = beta_t / (lambda t) over the last 50 % or 25 % of the steps, or
    alpha^(T) alone, where for t = 1 .. T, with i = perm[(t-1) mod N]:
        if y_i sum_j beta_j K_ji / (lambda t) < 1:   beta_i += y_i
Reference
    Melki and Kecman 2016, Algorithms A and B; kernel Pegasos: Shalev-Shwartz,
    Singer and Srebro 2007, section 4, whose i is drawn uniformly with replacement.
Deviations
    - The paper prints the step 1/(lambda m); here it is 1/(lambda t), as in the book it cites.
    - alpha^(t) includes the update of step t. Algorithm B takes it before that update, so that the
      printed mean lacks the updates' last share: y_i / (lambda t m) for each update at one of the m
      averaged steps t, and the printed last alpha lacks the last update (a test has both).
    - "The last 50 % of the updates" is read as the last half of the steps t, violating or not.
    - The other share is 25 %, as section III has it; section V says "the last 50% and 75%".
    - The loop keeps sum_j beta_j K_ji for every i. Only a step with a violation adds a row of K to
      these sums; in the last cycle, it adds only the part of the row that later steps read.
    - An update at step u is part of every later beta_t. So its weight in the mean is the sum of
      1/(lambda t) over the averaged steps t >= u, from a table (`worth_of_updates`).
    - Where kernel values must be computed, steps are taken in blocks: the block's own small kernel
      matrix gives its violators, and only their rows are computed, together.
    - With |K| <= 1 all |f| <= C: for C <= 1 every step updates, and C changes the scale alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.problems import Values
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.rows import RowCache, forget_none
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.random import generator

#: Number of steps in a block, if kernel values must be computed.
BLOCK_STEPS = 128

#: Up to this number of samples, the whole kernel matrix is faster than a choice of its rows.
WHOLE_MATRIX_MAX_SAMPLES = 1024


@compiled
def take_steps(
    K: np.ndarray,  # (n, n): kernel values, float64 or float32
    order: np.ndarray,  # int (m,): the sample of each step
    y: np.ndarray,  # (n,)
    C: np.ndarray,  # (k,)
    t: int,  # steps taken before
    weights: np.ndarray,  # (T,): what an update at each step adds to alpha, divided by C
    ascends: bool,  # whether `order` ascends, so that each sample occurs once
    F: np.ndarray,  # (k, n): ``sum_j beta_j K_ji``; if `order` ascends, only where it will be read
    alpha: np.ndarray,  # (k, n): alpha divided by C, changed in place
    counts: np.ndarray,  # int (k, n): updates of each sample, changed in place
) -> None:
    """Take the steps ``t + 1 ... t + len(order)`` for all values of C together."""
    for p in range(len(order)):
        i = order[p]
        row, sign = K[i], y[i]
        for c in range(len(C)):
            f = F[c]
            # y_i sum_j beta_j K_ji / (lambda t) < 1: beta_i += y_i
            if sign * f[i] * C[c] < t + p + 1:
                alpha[c, i] += weights[t + p]
                counts[c, i] += 1
                first = i + 1 if ascends else 0
                sums, kernel = f[first:], row[first:]
                for j in range(len(sums)):
                    sums[j] += sign * np.float64(kernel[j])


@compiled
def add_cached_rows(
    values: np.ndarray, slots: np.ndarray, factors: np.ndarray, F: np.ndarray, first: int
) -> None:
    """Add ``factors @ values[slots]`` to the columns of `F` from `first` on, without a copy."""
    for c in range(len(F)):
        f = F[c, first:]
        for m in range(len(slots)):
            factor, row = factors[c, m], values[slots[m], first:]
            if factor != 0.0:
                for j in range(len(f)):
                    f[j] += factor * row[j]


def add_rows_of(
    source: KernelSource,
    store: RowCache,
    F: np.ndarray,  # (k, n_samples)
    rows: np.ndarray,  # int (m,)
    factors: np.ndarray,  # (k, m)
    first: int,
) -> None:
    """Add ``factors @ K[rows]`` to the columns of `F` from `first` on, and keep whole new rows."""
    slots = store.find(rows)
    known = slots >= 0
    add_cached_rows(raw(store.rows), slots[known], factors[:, known], F, first)
    missing = rows[~known]
    if len(missing) == 0:
        return
    new = source.block(missing, slice(first, None))
    F[:, first:] += factors[:, ~known] @ new
    if first == 0:
        places = store.place(missing)
        store.rows[places] = new[: len(places)]


@dataclass(frozen=True)
class StepPlan:
    """All T steps of a run."""

    order: np.ndarray  # int (T,): the sample of each step
    weights: np.ndarray  # (T,): what an update at each step adds to alpha, divided by C
    last: int  # first step of the last cycle, from which `order` ascends; T if there is no cycle


def take_steps_by_blocks(
    source: KernelSource,
    plan: StepPlan,
    y: np.ndarray,
    C: np.ndarray,
    cache_mb: float,  # memory for rows that are used again, MiB
    alpha: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Take all steps, computing the rows of violators only."""
    order = plan.order
    T, n = len(order), source.n_samples
    F = np.zeros(alpha.shape)
    row_cache = RowCache(n, n, cache_mb, rule=forget_none)
    for t in range(0, T, BLOCK_STEPS):
        members = order[t : t + BLOCK_STEPS]
        steps = np.arange(t + 1, t + len(members) + 1)
        # Only updates change the sums: without a violator now, the block has no update.
        if not np.any(y[members] * F[:, members] * C[:, None] < steps):
            continue
        # A sample may have been drawn twice. places: of the steps, in `rows`.
        rows, places = np.unique(members, return_inverse=True)
        K, signs, f = source.block(rows, rows), y[rows], F[:, rows]
        gained, updates = np.zeros(f.shape), np.zeros(f.shape, dtype=np.int64)
        take_steps(raw(K), places, raw(signs), C, t, plan.weights, False, f, gained, updates)
        alpha[:, rows] += gained
        counts[:, rows] += updates
        # Update all sums; in the last cycle those from `first` on, after the last block none.
        violators = np.flatnonzero(updates.any(axis=0))
        first = int(members[-1]) + 1 if t >= plan.last else 0
        first = first if t + len(members) < T else len(y)
        factors = updates[:, violators] * signs[violators]
        add_rows_of(source, row_cache, F, rows[violators], factors, first)


def worth_of_updates(T: int, share: float) -> np.ndarray:
    """Return what an update at each of T steps adds to alpha, times lambda; shape (T,).

    alpha is the mean of beta_s / (lambda s) over the last m = max(1, share T) steps s. An update at
    step t is part of beta_s for all s >= t.
    """
    m = max(1, round(share * T))
    tails = np.cumsum(1.0 / np.arange(T, T - m, -1))[::-1] / m
    return np.concatenate([np.full(T - m, tails[0]), tails])


@dataclass(eq=False, repr=False)
class _SubGradient(ClassifierWithC):
    """Kernel sub-gradient steps; subclasses define `_ordered`.

    Parameters
    ----------
    C : float
        1/lambda; above 0. The C of the equivalent C-SVC is C / n_samples. If kernel values are at
        most 1, all C up to 1 give the same model up to its scale.
    epochs : int
        Number of steps, divided by the number of samples.
    average : float
        Share of the steps, from the end, over which alpha is averaged (0.5 and 0.25 in the paper);
        0 takes the last alpha.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        0.
    objective_ : float
        1/2 ||w||^2 + C/N times the summed hinge losses: C times the problem's value.
    dual_objective_ : float
        -inf, because multipliers above C/N are not feasible in the dual problem.
    n_iter_ : int
        Steps, epochs * N.
    stop_reason_ : str
        ``"epochs"``.
    counters_ : dict
        ``steps``, ``updates`` (steps with a violation), ``kernel_rows`` (different samples with an
        update), ``kernel_evaluations``, ``support_vectors``, ``bounded_support_vectors``.
    """

    C: float = 100.0
    _: KW_ONLY
    epochs: int = 2
    average: float = 0.5
    cache_mb: float = 1024.0
    random_state: Any = 0

    # Without memory, rows are computed on demand, as they are for many samples.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"cache_mb": 0.0})
    treats_offset: ClassVar[str] = "none"

    def _set_objectives(self, data: TrainingData, values: Values) -> Self:
        return super()._set_objectives(data, replace(values, alpha=None))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("epochs", self.epochs)
        if not (isinstance(self.average, Real) and 0.0 <= float(self.average) <= 1.0):
            msg = f"average must be a share of the steps from 0 to 1, got average={self.average!r}"
            raise ValueError(msg)

    def _problem_parameter(self, data: TrainingData) -> float:
        return float(self.C) / len(data.y)

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Take epochs * N steps; there is no warm start."""
        return self._solve_at_each(source, y, [self.C])[0]

    def solve_along(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterable[KernelSolution]:
        """Train all values of C together; the first solution counts the kernel evaluations."""
        if over != "C":
            return super().solve_along(source, y, over, values)
        return self._solve_at_each(source, y, values)

    def _ordered(self, n: int) -> tuple[np.ndarray | None, np.ndarray, int]:
        """Return a permutation of the samples (None: as they are), and the order of the steps.

        The order holds positions in the permutation. The third value is the number of steps at the
        end that ascend and take no position twice.
        """
        raise AssertionError("a subclass defines _ordered")

    def _solve_at_each(
        self, source: KernelSource, y: np.ndarray, values: Sequence[float]
    ) -> list[KernelSolution]:
        """Return the solution at each C, reading each row of the kernel matrix once.

        Apart from rounding, the solutions equal those of `solve`. The ``kernel_evaluations`` of the
        first solution are those of all solutions; the other counters belong to one solution each.
        """
        n, T = len(y), int(self.epochs) * len(y)
        C = np.array(values, dtype=np.float64)
        before = source.kernel_evaluations
        samples, order, n_last = self._ordered(n)
        weights = worth_of_updates(T, float(self.average))
        signs = y if samples is None else y[samples]
        source = source if samples is None else source.subset(samples)
        wants_matrix = source.is_stored or n <= WHOLE_MATRIX_MAX_SAMPLES
        K = source.whole(float(self.cache_mb)) if wants_matrix else None
        gained, counts = np.zeros((len(C), n)), np.zeros((len(C), n), dtype=np.int64)
        if K is not None:
            F = np.zeros((len(C), n))
            for start, stop, ascends in ((0, T - n_last, False), (T - n_last, T, True)):
                steps = order[start:stop]
                take_steps(raw(K), steps, raw(signs), C, start, weights, ascends, F, gained, counts)
        else:
            plan = StepPlan(order, weights, last=T - n_last)
            take_steps_by_blocks(source, plan, signs, C, float(self.cache_mb), gained, counts)
        evaluations = source.kernel_evaluations - before
        alpha = np.empty((len(C), n))
        alpha[:, slice(None) if samples is None else samples] = gained * C[:, None]
        return [
            KernelSolution(
                coefficients=alpha[c] * y,
                b=0.0,
                n_iter=T,
                stop_reason="epochs",
                counters={
                    "steps": T,
                    "updates": int(counts[c].sum()),
                    "kernel_rows": int(np.count_nonzero(counts[c])),
                    "kernel_evaluations": evaluations if c == 0 else 0,
                },
            )
            for c in range(len(C))
        ]


@declare(
    name="nl-sgd",
    problem="mean-hinge",
    summary="kernel sub-gradient steps in a shuffled cyclic order, averaged",
    reference="Melki and Kecman 2016, Algorithms A and B",
    paper="nlsgd",
    kernels=KERNELS,
    paths=("C",),
)
class NLSGD(_SubGradient):
    """Kernel Pegasos that goes through the samples in one shuffled order, epoch after epoch.

    Unlike :class:`KernelPegasos`, it sees every sample once an epoch.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.nl_sgd import NLSGD
    >>> NLSGD(C=4.0, gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    def _ordered(self, n: int) -> tuple[np.ndarray | None, np.ndarray, int]:
        # Permute the samples to the order of the steps: sums still to be read are contiguous.
        cycle = generator(self.random_state).permutation(n)
        return cycle, np.tile(np.arange(n), int(self.epochs)), n


@declare(
    name="kernel-pegasos",
    problem="mean-hinge",
    summary="kernel sub-gradient steps on uniformly drawn samples",
    reference="Shalev-Shwartz, Singer and Srebro 2007, section 4",
    paper="nlsgd",
    kernels=KERNELS,
    paths=("C",),
)
@dataclass(eq=False, repr=False)
class KernelPegasos(_SubGradient):
    """Pegasos with a kernel: every step draws one sample uniformly, with replacement.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.nl_sgd import KernelPegasos
    >>> model = KernelPegasos(C=4.0, gamma=1.0, epochs=5)
    >>> model.fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    _: KW_ONLY
    average: float = 0.0

    def _ordered(self, n: int) -> tuple[np.ndarray | None, np.ndarray, int]:
        draws = generator(self.random_state).random(int(self.epochs) * n)
        return None, (draws * n).astype(np.int64), 0
