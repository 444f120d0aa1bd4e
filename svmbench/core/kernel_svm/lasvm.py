"""LASVM: an online kernel SVM that looks at each sample once or twice.

Problem
    max_alpha  sum_i alpha_i y_i - 1/2 sum_ij alpha_i alpha_j K_ij,
    sum_i alpha_i = 0,  A_i <= alpha_i <= B_i,  A_i = min(0, C y_i),  B_i = max(0, C y_i):
    the dual of the hinge problem with a free offset; alpha has the labels' signs.
Given
    X, y in {-1, +1}, C, a kernel (linear, RBF), an order or rule of choice, tau.
Returned
    alpha and b = (g_i + g_j)/2 of the extreme pair, g_s = y_s - sum_t alpha_t K_st; no pair of the
    samples that were kept violates the conditions by more than tau. Samples that were not kept
    are never looked at again, so that this is no optimum over all of them.
Reference
    Bordes, Ertekin, Weston and Bottou 2005, Section 3.2: LASVM PROCESS, LASVM REPROCESS, the online
    iterations and the finishing step; Section 4.2 for the choice among 50 candidates by gradient
    or by margin. The CPSP paper compares with the latter.
Deviations
    - The seeds are the first five samples of each class, as in the authors' program.
    - REPROCESS drops samples of no use also where no pair violates the conditions by more than tau;
      the paper's ends there before it drops any.
    - With a bound on the kept samples the epoch ends when it is reached, and finishing follows.
    - RBF values are float32, computed from float64 distances. Linear ones are float64, of inputs
      that are moved if they are far from zero: that changes the offset alone.
    - Where all multipliers that are kept are at bounds, a whole interval of offsets meets their
      conditions. The one taken has the least loss over all samples.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.lasvm_steps import (
    ALIVE,
    DONE,
    ENOUGH,
    NEXT,
    NO_PLACE,
    STEPS,
    VALUES,
    Kept,
    extremes,
    finish,
    insert,
    learn,
    make_room,
)
from svmbench.core.kernels.member_rows import MEMBER_KERNELS, MemberInputs, member_inputs
from svmbench.core.kernels.storage import moved_if_far
from svmbench.core.models.expansion import Expansion
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier
from svmbench.core.numeric.random import generator

#: Samples of each class at the start.
SEEDS = 5

#: Candidates that a sample is chosen from.
CANDIDATES = 50

#: Places at first, samples of an epoch between two returns.
PLACES, CHUNK = 1024, 512

SELECTIONS = ("random", "gradient", "margin")


def run(
    inputs: MemberInputs,
    y: np.ndarray,  # (n_samples,): labels ±1
    model: LASVM,  # what holds the parameters
    most: int,  # samples that may be kept
    rng: Any,
) -> tuple[Kept, float]:
    """Go through the epochs and finish; return what is kept, and its gap."""
    n, C, tau = len(y), float(model.C), float(model.tol)
    dtype = np.float64 if model.kernel == "linear" else np.float32
    kept = make_room(n, min(PLACES, n), model.cache_mb, dtype=dtype)
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
            stop = min(n, start + CHUNK)
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
    """Take what rounding has left of the multipliers' sum from the one farthest from its bounds."""
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
@dataclass(eq=False, repr=False)
class LASVM(KernelClassifier):
    """C-SVM by online steps: each sample is looked at once an epoch, and kept if it matters then.

    Optimal on the samples that it kept, not on all: a sample that was dropped or not kept is never
    looked at again. By gradient it comes within 1e-3 of the exact dual value. By random or margin
    choice it ends a few per cent below it on many sets and about 20 % on some, where the primal
    value can be several times the optimum: ``objective_`` minus ``dual_objective_`` bounds the
    distance.

    Parameters
    ----------
    n_basis : int or None
        Number of kept samples at which the epochs end; None for no bound.
    selection : {"random", "gradient", "margin"}
        Which sample comes next: the next of a random order, or the best of 50 random ones by
        smallest y f or smallest |f|, which costs 50 rows of kernel values a sample.
    epochs : int
        Times every sample is looked at.
    tol : float
        tau: largest violation of the conditions by a pair of the kept samples, at the end. It says
        nothing of the other samples.
    max_iter : int
        Largest number of steps of the finishing.
    cache_mb : float
        Memory for kernel values of kept samples with each other, MiB.
    random_state : int, RandomState or None
        Seed of order and candidates.

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

    C: float = 1.0
    _: KW_ONLY
    n_basis: int | None = None
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
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
        """Go through the epochs and finish; store the expansion over what is kept."""
        n = len(data.y)
        most = n if self.n_basis is None else min(n, int(self.n_basis))
        X, place = moved_if_far(data.X) if self.kernel == "linear" else (data.X, None)
        kept, gap = run(
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
            b -= float(place @ (data.X.T @ beta))
        counters = {
            "pair_steps": int(kept.counts[STEPS]),
            "kept": int(kept.counts[ALIVE]),
            "kernel_evaluations": evaluations,
        }
        reason = "converged" if gap <= self.tol else "max_iter"
        return self._store(
            KernelSolution(beta, float(b), int(kept.counts[STEPS]), reason, counters), data
        )
