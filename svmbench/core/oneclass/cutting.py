"""The cutting-plane search of FOSVM1 and FOSVM2, with any selection of the next sample.

Problem
    min_{w,rho}  1/2 ||w||^2 - rho,   <w, phi(x_i)> >= rho for every sample;
    dual: min_alpha 1/2 alpha' K alpha, alpha >= 0, sum alpha = 1;   w = sum_i alpha_i phi(x_i).
Given
    kernel values, theta in (0, 1); for FOSVM2 m, the number of candidates.
Returned
    The active set A, its w and rho, once o = <w, phi(x_p)> - rho >= -theta rho for the chosen p.
Reference
    FOSVM paper, Algorithm 1 (any selection: :func:`grow_active_set`), Algorithm 2 (FOSVM1: p is the
    argmin over all that is not in A) and Algorithm 3 (FOSVM2: over m of them, drawn at random).
    A starts as the first two samples.
Deviations
    - The active problem is solved from the last solution (``active_qp``), to rounding.
    - FOSVM1 keeps the <w, phi(x_i)>: an iteration adds to them what changed in the multipliers,
      finds the lowest in the same pass, and computes one kernel column, that of the new point.
    - Columns may be of single precision. The lowest scores are then checked in double at the end,
      and the search goes on in double where one of them is below (1 - theta) rho after all.
    - Where the origin is in the samples' convex hull (which an RBF kernel rules out) rho is 0, no
      margin is left to approximate, and the search ends with that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.kernels.columns import (
    MATRIX_COLUMNS_MAX_SAMPLES,
    Columns,
    DoubleColumns,
    columns_of,
)
from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.oneclass.active_qp import ActiveSet

#: Samples of a piece of a pass: scores of it stay in the first-level cache.
SCORES_PIECE = 1024

#: Samples on which the error of single precision is measured, and the share of theta rho that it
#: may have there.
CHECKED_SAMPLES, TRUSTED = 64, 0.1

#: A margin below this share of the largest squared length is rounding.
NO_MARGIN_SHARE = 1e-14


@compiled_sums
def add_columns(
    columns: np.ndarray,  # (n_columns, m)
    places: np.ndarray,  # int (k,): those whose multiplier has changed, and by how much:
    changes: np.ndarray,  # (k,)
    scores: np.ndarray,  # (m,)
) -> None:
    """Add changes of multipliers to the scores of a piece of the samples.

    `row_cache.subtract_rows`, which rounds products and sums apart, took 1.4 times as long for 40
    float32 columns of 8,000 samples.
    """
    m, k = len(scores), 0
    while k + 3 < len(places):
        c0, c1 = columns[places[k]], columns[places[k + 1]]
        c2, c3 = columns[places[k + 2]], columns[places[k + 3]]
        d0, d1, d2, d3 = changes[k], changes[k + 1], changes[k + 2], changes[k + 3]
        for j in range(m):
            scores[j] += (d0 * c0[j] + d1 * c1[j]) + (d2 * c2[j] + d3 * c3[j])
        k += 4
    while k < len(places):
        c0, d0 = columns[places[k]], changes[k]
        for j in range(m):
            scores[j] += d0 * c0[j]
        k += 1


@compiled
def update_and_find(
    columns: np.ndarray,  # (n_columns, n)
    places: np.ndarray,  # (k,)
    changes: np.ndarray,  # (k,)
    scores: np.ndarray,  # (n,): infinite where a sample is not to be found
) -> int:
    """Add changes of multipliers to all scores; return the position of the lowest."""
    n, lowest, best = len(scores), 0, np.inf
    for start in range(0, n, SCORES_PIECE):
        stop = min(start + SCORES_PIECE, n)
        piece = scores[start:stop]
        add_columns(columns[:, start:stop], places, changes, piece)
        for j in range(stop - start):
            if piece[j] < best:
                lowest, best = start + j, piece[j]
    return lowest


@dataclass
class Cut:
    """State of a search: the active set A, its solution, and the work so far."""

    members: list[int]  # A, in the order in which its samples came
    active: ActiveSet  # their multipliers and rho
    iterations: int = 0  # solutions of the active problem; A has one sample more
    reason: str = ""
    # ``columns``, ``passes`` over all samples, ``kernel_evaluations``
    work: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, by: int) -> None:
        """Add to a counter."""
        self.work[name] = self.work.get(name, 0) + int(by)


#: From where a search stands to a sample outside A and its score; (-1, inf) if A is everything.
SampleSelection = Callable[[Cut], tuple[int, float]]


def begin_cut(source: KernelSource) -> Cut:
    """Return the start of a search: A holds the first two samples (the one, if there is one)."""
    first = source.block(np.arange(1), np.arange(1))
    cut = Cut([0], ActiveSet(float(first[0, 0])))
    cut.count("kernel_evaluations", 1)
    if source.n_samples > 1:
        join_active_set(source, cut, 1)
    cut.iterations = 1
    return cut


def join_active_set(source: KernelSource, cut: Cut, sample: int) -> None:
    """Let a sample join A, and solve the active problem."""
    cut.members.append(sample)
    row = source.block(np.array([sample]), np.array(cut.members))[0]
    cut.count("kernel_evaluations", len(row))
    cut.active.add(row)


def grow_active_set(
    source: KernelSource,
    cut: Cut,  # changed in place
    select: SampleSelection,  # the choice of the next sample: what Algorithms 2 and 3 differ by
    theta: float,  # ends at a chosen sample whose score is at least (1 - theta) rho
    max_iter: int,  # largest number of active problems solved
) -> None:
    """Run Algorithm 1 of the paper from where a search stands, with any selection."""
    floor = NO_MARGIN_SHARE * max(1.0, abs(cut.active.rho))
    while True:
        if cut.active.rho <= floor:
            cut.reason = "no margin"
            return
        sample, score = select(cut)
        if score >= (1.0 - theta) * cut.active.rho:
            cut.reason = "converged"
            return
        if cut.iterations >= max_iter:
            cut.reason = "max_iter"
            return
        join_active_set(source, cut, sample)
        cut.iterations += 1


class Everyone:
    """FOSVM1's selection: the lowest score of all, kept up to date from column to column."""

    def __init__(
        self,
        columns: Columns,
        # memory for columns, MiB. Those beyond are computed again in every iteration
        cache_mb: float,
    ) -> None:
        self.columns = columns
        n = columns.n_samples
        self._most = max(1, int(cache_mb * MIB / (n * np.dtype(columns.dtype).itemsize)))
        self._kept = np.empty((min(16, self._most), n), dtype=columns.dtype)
        self._spare = np.empty((1, n), dtype=columns.dtype)
        self.scores = np.zeros(n)
        self._alpha = np.zeros(0)

    def __call__(self, cut: Cut) -> tuple[int, float]:
        """Return the sample with the lowest score outside A, and that score."""
        known = len(self._alpha)
        for place in range(known, len(cut.members)):
            self._compute(place, cut.members[place])
            cut.count("columns", 1)
            cut.count("kernel_evaluations", len(self.scores))
            self.scores[cut.members[place]] = np.inf
        changes = np.array(cut.active.alpha)
        changes[:known] -= self._alpha
        self._alpha = np.array(cut.active.alpha)
        places = np.flatnonzero(changes)
        for place in places[places >= self._most]:
            self.columns.column(cut.members[place], self._spare[0])
            cut.count("columns", 1)
            cut.count("kernel_evaluations", len(self.scores))
            add_columns(self._spare, np.zeros(1, np.int64), changes[place : place + 1], self.scores)
        places = places[places < self._most]
        cut.count("passes", 1)
        sample = update_and_find(self._kept, places, changes[places], self.scores)
        score = float(self.scores[sample])
        return (sample, score) if np.isfinite(score) else (-1, np.inf)

    def _compute(self, place: int, sample: int) -> None:
        """Compute a column and keep it, if it is not one of those beyond the budget."""
        if place >= self._most:
            return
        if place == len(self._kept):
            more = np.empty((min(2 * place, self._most), len(self.scores)), self._kept.dtype)
            more[:place] = self._kept
            self._kept = more
        self.columns.column(sample, self._kept[place])


class Drawn:
    """FOSVM2's selection: the lowest score of m samples outside A, drawn without replacement."""

    def __init__(
        self,
        source: KernelSource,
        m: int,  # all that is outside A is taken where there is no more of it
        random: Any,
    ) -> None:
        self.source, self.m, self.random = source, m, random

    def __call__(self, cut: Cut) -> tuple[int, float]:
        """Return the drawn sample with the lowest score, and that score."""
        drawn = self.draw(cut.members)
        if not len(drawn):
            return -1, np.inf
        support = cut.active.support
        block = self.source.block(drawn, np.array(cut.members)[support])
        cut.count("kernel_evaluations", block.size)
        cut.count("candidates", len(drawn))
        scores = block @ cut.active.alpha[support]
        lowest = int(np.argmin(scores))
        return int(drawn[lowest]), float(scores[lowest])

    def draw(self, members: list[int]) -> np.ndarray:
        """Return m samples that are not in A, or all of these, in the order of the draw."""
        n, held = self.source.n_samples, set(members)
        if n - len(held) <= 4 * self.m:
            outside = np.array(sorted(set(range(n)) - held), dtype=np.int64)
            return outside[self.random.permutation(len(outside))[: self.m]]
        # Reading nothing of the others keeps the cost of a draw free of N.
        drawn: dict[int, None] = {}
        while len(drawn) < self.m:
            for sample in (self.random.random(self.m) * n).astype(np.int64).tolist():
                if sample not in held and len(drawn) < self.m:
                    drawn[sample] = None
        return np.array(list(drawn), dtype=np.int64)


def columns_for(source: KernelSource, theta: float) -> Columns:
    """Return the fastest columns of a source that serve a theta, few of which will be asked for."""
    if not source.is_stored and source.n_samples <= MATRIX_COLUMNS_MAX_SAMPLES:
        return DoubleColumns(source)
    return columns_of(source, theta)


def is_confirmed(source: KernelSource, cut: Cut, scores: np.ndarray, theta: float) -> bool:
    """Return True if no score is below (1 - theta) rho, by kernel values in double precision.

    What single precision did to the scores is measured on some samples; those that may be below
    are computed anew. Where the error is no small part of theta rho, nothing is confirmed.
    """
    support, limit = cut.active.support, (1.0 - theta) * cut.active.rho
    alpha, members = cut.active.alpha[support], np.array(cut.members)[support]

    def exact(samples: np.ndarray) -> np.ndarray:
        block = source.block(samples, members)
        cut.count("kernel_evaluations", block.size)
        return block @ alpha

    some = np.unique(np.linspace(0, len(scores) - 1, CHECKED_SAMPLES).astype(np.int64))
    some = some[np.isfinite(scores[some])]
    error = float(np.max(np.abs(exact(some) - scores[some]), initial=0.0))
    if error > TRUSTED * theta * cut.active.rho:
        return False
    near = np.flatnonzero(scores < limit + 4.0 * error)
    return not np.any(exact(near) < limit)
