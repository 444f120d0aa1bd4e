"""LASVM: an online kernel SVM that looks at each sample once or twice.

Problem
    max_alpha  sum_i alpha_i y_i - 1/2 sum_ij alpha_i alpha_j K_ij,
    sum_i alpha_i = 0,  A_i <= alpha_i <= B_i,  A_i = min(0, C y_i),  B_i = max(0, C y_i):
    the dual of the hinge problem with a free offset; alpha has the labels' signs.
Given
    X, y in {-1, +1}, C, a kernel (linear, RBF), an order or rule of choice, tau.
Returned
    alpha and b = (g_i + g_j)/2 of the extreme pair, g_s = y_s - sum_t alpha_t K_st; no pair of the
    kept samples violates the conditions by more than tau. Samples that were not kept are never
    looked at again, so that this is not the optimum over all samples.
Reference
    Bordes, Ertekin, Weston and Bottou 2005, Section 3.2: LASVM PROCESS, LASVM REPROCESS, the online
    iterations and the finishing step; Section 4.2 for the choice among 50 candidates by gradient
    or by margin. The CPSP paper compares with the latter.
Deviations
    - The seeds are the first five samples of each class, as in the authors' program.
    - REPROCESS drops useless samples even if no pair violates the conditions by more than tau; the
      paper's returns before it drops any.
    - If the number of kept samples is bounded, the epochs end at the bound, and finishing follows.
    - RBF values are float32, computed from float64 distances. Linear ones are float64, of inputs
      that are moved if they are far from zero: that changes the offset alone.
    - If all kept multipliers are at bounds, a whole interval of offsets meets the conditions; b is
      then the one with the least loss over all samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.kernels import MIB
from svmbench.core.kernels.member_inputs import (
    MEMBER_KERNELS,
    MemberInputs,
    fill,
    member_inputs,
    own_value,
)
from svmbench.core.kernels.storage import moved_if_far
from svmbench.core.models.kernel_base import ClassifierWithC, Expansion, KernelSolution
from svmbench.core.numeric.random import generator

#: Samples of each class at the start.
SEEDS = 5

#: Candidates that a sample is chosen from.
CANDIDATES = 50

#: Places at first.
FIRST_PLACES = 1024

#: Samples of an epoch for which random numbers are made at a time.
SAMPLES_AT_A_TIME = 512

#: Values of `selection`.
SELECTIONS = ("random", "gradient", "margin")

#: Least curvature along a direction.
MIN_STEP_CURVATURE = 1e-12

#: Distance from a bound, in units of C, that counts as zero.
ZERO_SHARE = 1e-12

#: Least number of cached rows.
MIN_ROWS = 8

#: Entries of the counts: places ever used, kept samples, clock, rows ever used, kernel values
#: computed, pair steps, position in the epoch, free places.
HIGH, ALIVE, CLOCK, ROWS, VALUES, STEPS, NEXT, FREE = range(8)

#: How a run of the loop ends.
DONE, NO_PLACE, ENOUGH = range(3)


class Kept(NamedTuple):
    """The samples that are kept, by place, and rows of their kernel values with each other."""

    sample: np.ndarray  # int (width,): the sample at a place; -1 if the place is free
    alpha: np.ndarray  # (width,): signed multipliers
    g: np.ndarray  # (width,): gradients
    y: np.ndarray  # (width,): labels
    slot: np.ndarray  # int (width,): row of `K` that a place has; -1 if none
    free: np.ndarray  # int (width,): the first ``counts[FREE]`` are places that were given up
    K: np.ndarray  # float32 or float64 (n_slots, width)
    owner: np.ndarray  # int (n_slots,): the place whose row it is; -1 if free
    last_use: np.ndarray  # int (n_slots,): by the clock; -1 if free
    is_kept: np.ndarray  # bool (n_samples,)
    counts: np.ndarray  # int (8,)


def make_room(
    n_samples: int, width: int, cache_mb: float, old: Kept | None = None, dtype: Any = np.float32
) -> Kept:
    """Return places for `width` samples and the rows that fit, with the contents of `old`."""
    dtype = np.dtype(dtype) if old is None else old.K.dtype
    n_slots = min(width, max(MIN_ROWS, int(cache_mb * MIB // (dtype.itemsize * width))))
    kept = Kept(
        np.full(width, -1),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.full(width, -1),
        np.zeros(width, dtype=np.int64),
        np.empty((n_slots, width), dtype=dtype),
        np.full(n_slots, -1),
        np.full(n_slots, -1),
        np.zeros(n_samples, dtype=np.bool_) if old is None else old.is_kept,
        np.zeros(8, dtype=np.int64),
    )
    if old is not None:
        w = len(old.sample)
        for new, before in zip(kept[:6], old[:6], strict=True):
            new[:w] = before
        n = min(n_slots, int(old.counts[ROWS]))
        kept.K[:n, :w] = old.K[:n]
        kept.owner[:n], kept.last_use[:n] = old.owner[:n], old.last_use[:n]
        kept.slot[kept.slot >= n] = -1
        kept.counts[:] = old.counts
        kept.counts[ROWS] = n
    return kept


@compiled
def take_slot(kept: Kept, place: int) -> int:
    """Return a row for a place: a new one, or the least recently used."""
    counts = kept.counts
    if counts[ROWS] < len(kept.K):
        r = counts[ROWS]
        counts[ROWS] += 1
    else:
        r = np.argmin(kept.last_use)
        if kept.owner[r] >= 0:
            kept.slot[kept.owner[r]] = -1
    counts[CLOCK] += 1
    kept.owner[r], kept.last_use[r], kept.slot[place] = place, counts[CLOCK], r
    return r


@compiled
def row_of(inputs: MemberInputs, kept: Kept, place: int) -> int:
    """Return the slot of a place's row; compute the row if it is missing."""
    r = kept.slot[place]
    if r < 0:
        r = take_slot(kept, place)
        fill(inputs, kept.sample[place], kept.sample, kept.counts[HIGH], kept.K[r])
        kept.counts[VALUES] += kept.counts[HIGH]
    kept.counts[CLOCK] += 1
    kept.last_use[r] = kept.counts[CLOCK]
    return r


@compiled
def insert(inputs: MemberInputs, kept: Kept, i: int, label: float) -> int:
    """Keep a sample with multiplier 0 and its gradient; return its place."""
    counts = kept.counts
    if counts[FREE] > 0:
        counts[FREE] -= 1
        place = kept.free[counts[FREE]]
    else:
        place = counts[HIGH]
        counts[HIGH] += 1
    kept.sample[place], kept.y[place], kept.alpha[place] = i, label, 0.0
    counts[ALIVE] += 1
    kept.is_kept[i] = True
    r = take_slot(kept, place)
    row, n = kept.K[r], counts[HIGH]
    fill(inputs, i, kept.sample, n, row)
    counts[VALUES] += n
    f = 0.0
    for s in range(n):
        f += kept.alpha[s] * np.float64(row[s])
    kept.g[place] = label - f
    for q in range(counts[ROWS]):
        if kept.owner[q] >= 0:
            kept.K[q, place] = row[kept.owner[q]]
    return place


@compiled
def extremes(kept: Kept, C: float) -> tuple[int, int]:
    """Return the places i of the largest g in the up set and j of the smallest in the low set."""
    i, j, largest, smallest = -1, -1, -np.inf, np.inf
    for s in range(kept.counts[HIGH]):
        if kept.sample[s] >= 0:
            g = kept.g[s]
            if g > largest and kept.alpha[s] < max(0.0, C * kept.y[s]):
                i, largest = s, g
            if g < smallest and kept.alpha[s] > min(0.0, C * kept.y[s]):
                j, smallest = s, g
    return i, j


@compiled
def pair_step(inputs: MemberInputs, kept: Kept, C: float, i: int, j: int) -> None:
    """Move multiplier from j to i as far as the dual value grows and the bounds allow."""
    a, b = row_of(inputs, kept, i), row_of(inputs, kept, j)
    first, second = kept.K[a], kept.K[b]
    curvature = own_value(inputs, kept.sample[i]) + own_value(inputs, kept.sample[j])
    curvature -= 2.0 * np.float64(first[j])
    up, down = max(0.0, C * kept.y[i]), min(0.0, C * kept.y[j])
    # lambda = min((g_i - g_j) / (K_ii + K_jj - 2 K_ij), B_i - alpha_i, alpha_j - A_j)
    step = (kept.g[i] - kept.g[j]) / max(curvature, MIN_STEP_CURVATURE)
    at_up, at_down = up - kept.alpha[i], kept.alpha[j] - down
    step = min(step, at_up, at_down)
    # A multiplier within rounding of a bound is put on it.
    room = ZERO_SHARE * C
    kept.alpha[i] = up if at_up - step <= room else kept.alpha[i] + step
    kept.alpha[j] = down if at_down - step <= room else kept.alpha[j] - step
    for s in (i, j):
        if abs(kept.alpha[s]) <= room:
            kept.alpha[s] = 0.0
    for s in range(kept.counts[HIGH]):
        kept.g[s] -= step * (np.float64(first[s]) - np.float64(second[s]))
    kept.counts[STEPS] += 1


@compiled
def process(inputs: MemberInputs, kept: Kept, C: float, tau: float, i: int, label: float) -> None:
    """Keep a sample; take a step with it and the extreme sample of the other set (PROCESS)."""
    place = insert(inputs, kept, i, label)
    up, down = extremes(kept, C)
    if label > 0.0:
        up = place
    else:
        down = place
    if up >= 0 and down >= 0 and kept.g[up] - kept.g[down] > tau:
        pair_step(inputs, kept, C, up, down)


@compiled
def reprocess(inputs: MemberInputs, kept: Kept, C: float, tau: float) -> float:
    """Step on the extreme pair, drop useless samples, return the violation (LASVM REPROCESS)."""
    i, j = extremes(kept, C)
    if i < 0 or j < 0:
        return 0.0
    if kept.g[i] - kept.g[j] > tau:
        pair_step(inputs, kept, C, i, j)
        i, j = extremes(kept, C)
        if i < 0 or j < 0:
            return 0.0
    # Useless: alpha = 0, y = -1 and g >= g_i, or alpha = 0, y = +1 and g <= g_j.
    largest, smallest = kept.g[i], kept.g[j]
    for s in range(kept.counts[HIGH]):
        useless = kept.g[s] >= largest if kept.y[s] < 0.0 else kept.g[s] <= smallest
        if kept.sample[s] >= 0 and kept.alpha[s] == 0.0 and useless:
            drop_place(kept, s)
    return largest - smallest


@compiled
def drop_place(kept: Kept, place: int) -> None:
    """Free a place and its row."""
    r = kept.slot[place]
    if r >= 0:
        kept.owner[r], kept.last_use[r], kept.slot[place] = -1, -1, -1
    kept.is_kept[kept.sample[place]] = False
    kept.sample[place] = -1
    kept.free[kept.counts[FREE]] = place
    kept.counts[FREE] += 1
    kept.counts[ALIVE] -= 1


@compiled
def bring_best(
    inputs: MemberInputs,
    kept: Kept,
    y: np.ndarray,
    C: float,
    order: np.ndarray,
    first: int,
    uniform: np.ndarray,
    by_margin: bool,
) -> None:
    """Bring the best of some random samples to position `first` of the order.

    The best has the smallest |f| (by margin) or the smallest y f (by gradient).
    """
    i, j = extremes(kept, C)
    b = 0.5 * (kept.g[i] + kept.g[j]) if i >= 0 and j >= 0 else 0.0
    n, left = kept.counts[HIGH], len(order) - first
    row = np.empty(n, dtype=kept.K.dtype)
    best, at = np.inf, first
    for c in range(min(len(uniform), left)):
        position = first + int(uniform[c] * left)
        candidate = order[position]
        fill(inputs, candidate, kept.sample, n, row)
        kept.counts[VALUES] += n
        f = b
        for s in range(n):
            f += kept.alpha[s] * np.float64(row[s])
        score = abs(f) if by_margin else y[candidate] * f
        if score < best:
            best, at = score, position
    order[first], order[at] = order[at], order[first]


@compiled
def learn(
    inputs: MemberInputs,
    kept: Kept,
    y: np.ndarray,  # (n_samples,)
    C: float,
    tau: float,
    order: np.ndarray,  # int (n_samples,): the next samples; reordered by `bring_best`
    stop: int,  # position to stop at
    most: int,  # number of kept samples to stop at
    uniform: np.ndarray,  # (stop - start, n_candidates): in [0, 1); no candidates by random order
    by_margin: bool,
) -> int:
    """Take online iterations, PROCESS and REPROCESS, up to `stop`; return how it ended."""
    counts = kept.counts
    start = counts[NEXT]
    for t in range(start, stop):
        if counts[ALIVE] >= most:
            return ENOUGH
        if counts[FREE] == 0 and counts[HIGH] == len(kept.sample):
            return NO_PLACE
        if uniform.shape[1] > 0:
            bring_best(inputs, kept, y, C, order, t, uniform[t - start], by_margin)
        i = order[t]
        counts[NEXT] = t + 1
        if not kept.is_kept[i]:
            process(inputs, kept, C, tau, i, y[i])
        reprocess(inputs, kept, C, tau)
    return DONE


@compiled
def finish(inputs: MemberInputs, kept: Kept, C: float, tau: float, max_iter: int) -> float:
    """Reprocess until the violation is at most tau; return it."""
    violation = np.inf
    for _ in range(max_iter):
        violation = reprocess(inputs, kept, C, tau)
        if violation <= tau:
            break
    return violation


def run_epochs(
    inputs: MemberInputs,
    y: np.ndarray,  # (n_samples,): labels ±1
    model: LASVM,  # with its parameters
    most: int,  # largest number of kept samples
    rng: Any,
) -> tuple[Kept, float]:
    """Go through the epochs and finish; return the kept samples, and their violation."""
    n, C, tau = len(y), float(model.C), float(model.tol)
    dtype = np.float64 if model.kernel == "linear" else np.float32
    kept = make_room(n, min(FIRST_PLACES, n), model.cache_mb, dtype=dtype)
    for label in (1.0, -1.0):
        for i in np.flatnonzero(y == label)[: min(SEEDS, max(1, most // 2))]:
            insert(inputs, kept, int(i), label)
    chosen, by_margin = model.selection != "random", model.selection == "margin"
    end = DONE
    for _ in range(int(model.epochs)):
        order = rng.permutation(n)
        kept.counts[NEXT] = 0
        while kept.counts[NEXT] < n and end != ENOUGH:
            start = int(kept.counts[NEXT])
            stop = min(n, start + SAMPLES_AT_A_TIME)
            uniform = rng.random((stop - start, CANDIDATES if chosen else 0))
            end = learn(inputs, kept, y, C, tau, order, stop, most, uniform, by_margin)
            if end == NO_PLACE:
                width = min(n, 2 * len(kept.sample))
                kept = make_room(n, width, model.cache_mb, kept)
    return kept, finish(inputs, kept, C, tau, int(model.max_iter))


def best_offset(
    f: np.ndarray,  # (n_samples,): decision values without an offset
    y: np.ndarray,  # (n_samples,): labels ±1, both present
    low: float,
    high: float,
) -> float:
    """Return the offset in [low, high] with the least sum of hinge losses; of several the middle.

    The sum bends upwards by 1 at each ``y_i - f_i``, and its slope starts at minus the number of
    positive samples.
    """
    n_positive = int(np.count_nonzero(y > 0.0))
    bends = np.clip(np.sort(y - f)[n_positive - 1 : n_positive + 1], low, high)
    return float(bends.mean())


def restore_sum(beta: np.ndarray, C: float) -> None:
    """Take the rounding error of the multipliers' sum off the one farthest from its bounds."""
    room = np.minimum(np.abs(beta), C - np.abs(beta))
    k = int(np.argmax(room))
    if room[k] > 0.0:
        beta[k] -= float(np.sum(beta))


@declare(
    name="lasvm",
    problem="hinge",
    paper="cpsp",
    summary="online steps on the C-SVM's dual, then finishing on what was kept (LASVM)",
    reference="Bordes, Ertekin, Weston and Bottou 2005, Section 3.2",
    kernels=MEMBER_KERNELS,
    counters=("pair_steps", "kept"),
)
@dataclass(eq=False, repr=False, kw_only=True)
class LASVM(ClassifierWithC):
    """C-SVM by online steps: each sample is visited once an epoch, and kept if it matters then.

    The model is optimal on the kept samples, not on all: a sample that was dropped or not kept is
    never looked at again. By gradient the dual value is within 1e-3 of the optimum. By random or
    margin choice it is a few per cent below the optimum on many sets and about 20 % on some, where
    the primal value can be several times the optimum: ``objective_`` minus ``dual_objective_``
    bounds the distance.

    Parameters
    ----------
    n_basis : int or None
        Number of kept samples at which the epochs end; None for no bound.
    selection : {"random", "gradient", "margin"}
        Which sample comes next: the next of a random order, or the best of 50 random ones by
        smallest y f or smallest |f|, which costs 50 rows of kernel values a sample.
    epochs : int
        Number of visits to every sample.
    tol : float
        tau: largest violation of the conditions by a pair of the kept samples, at the end. It says
        nothing of the other samples.
    max_iter : int
        Largest number of steps of the finishing.
    cache_mb : float
        Memory for kernel values of kept samples with each other, MiB.

    Attributes
    ----------
    objective_, dual_objective_ : float
        Of the problem over all samples.
    n_iter_ : int
        Pair steps.
    stop_reason_ : str
        ``"converged"`` or ``"max_iter"``.
    counters_ : dict
        ``pair_steps``, ``kept``, ``kernel_evaluations``, ``support_vectors``,
        ``bounded_support_vectors``.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.lasvm import LASVM
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> LASVM(gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    n_basis: int | None = None
    selection: str = "random"
    epochs: int = 1
    tol: float = 1e-3
    max_iter: int = 10_000_000
    cache_mb: float = 1024.0
    random_state: Any = 0

    treats_offset = "free"
    optional = ("n_basis",)
    warm_with = ({}, {"selection": "margin"}, {"kernel": "linear"})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("epochs", self.epochs)
        if self.n_basis is not None:
            require_count("n_basis", self.n_basis)
        if self.selection not in SELECTIONS:
            msg = f"selection must be one of {', '.join(SELECTIONS)}, got {self.selection!r}"
            raise ValueError(msg)

    def train(self, data: TrainingData) -> Self:
        """Go through the epochs and finish; store the expansion over the kept samples."""
        n = len(data.y)
        most = n if self.n_basis is None else min(n, int(self.n_basis))
        X, place = moved_if_far(data.native) if self.kernel == "linear" else (data.native, None)
        kept, violation = run_epochs(
            member_inputs(X, self.function), data.y, self, most, generator(self.random_state)
        )
        beta, alive = np.zeros(n), kept.sample >= 0
        beta[kept.sample[alive]] = kept.alpha[alive]
        if place is not None and np.any(place):
            restore_sum(beta, float(self.C))
        i, j = extremes(kept, float(self.C))
        low = kept.g[i] if i >= 0 else -np.inf
        high = kept.g[j] if j >= 0 else np.inf
        b, evaluations = 0.5 * (low + high), int(kept.counts[VALUES])
        if high - low > self.tol:
            f = Expansion.over_rows(self.function, X, beta, 0.0).decide(X)
            b = best_offset(f, data.y, low, high)
            evaluations += n * int(np.count_nonzero(beta))
        if place is not None:
            b -= float(place @ (data.native.T @ beta))
        counters = {
            "pair_steps": int(kept.counts[STEPS]),
            "kept": int(kept.counts[ALIVE]),
            "kernel_evaluations": evaluations,
        }
        reason = "converged" if violation <= self.tol else "max_iter"
        return self._store(
            KernelSolution(beta, float(b), int(kept.counts[STEPS]), reason, counters), data
        )
