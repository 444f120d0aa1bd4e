"""Pairs of classes, and the votes that they cast.

Ties
    The class with most votes wins; among equals, the one with the largest sum of decision values
    over its pairs; among equals still, the first. (LIBSVM takes the first at once.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.numeric.arrays import raw

#: Decision values that a vote holds at a time (64 MiB). With hundreds of classes, a row has tens of
#: thousands.
MAX_HELD_DECISIONS = 1 << 23


@dataclass(frozen=True)
class Pair:
    """The two-class problem of two classes."""

    negative: int  # code of the first class
    positive: int  # code of the second; above `negative`
    members: tuple[np.ndarray, np.ndarray]  # int: positions of the samples of each, ascending

    # Cached when first used: with hundreds of classes, few pairs are.
    @cached_property
    def rows(self) -> np.ndarray:
        """Positions of the samples of both classes, ascending, int of shape (n_pair,)."""
        return np.sort(np.concatenate(self.members))

    @cached_property
    def signs(self) -> np.ndarray:
        """Labels of the rows, -1.0 or +1.0, shape (n_pair,)."""
        return np.where(np.isin(self.rows, self.members[1], assume_unique=True), 1.0, -1.0)


class Pairs(Sequence[Pair]):
    """The problems of all pairs of classes, in the order of ``itertools.combinations``.

    A pair is made on access, since hundreds of classes have tens of thousands of pairs. A class
    without samples has no pairs and gets no votes.
    """

    negative: np.ndarray  # int (n_pairs,): code of the first class of each
    positive: np.ndarray

    def __init__(
        self,
        codes: np.ndarray,  # int (n_samples,): classes as numbers from 0
    ) -> None:
        self.codes = codes
        present = np.flatnonzero(np.bincount(codes))
        first, second = np.nonzero(np.less.outer(present, present))
        self.negative, self.positive = present[first], present[second]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.negative)

    @overload
    def __getitem__(self, p: int) -> Pair: ...
    @overload
    def __getitem__(self, p: slice) -> list[Pair]: ...
    def __getitem__(self, p: int | slice) -> Pair | list[Pair]:
        """Return one pair, or a list of pairs."""
        if isinstance(p, slice):
            return [self[each] for each in range(*p.indices(len(self)))]
        a, b = int(self.negative[p]), int(self.positive[p])
        return Pair(a, b, (self._members[a], self._members[b]))

    # Cached when first used: pairs that are trained together need none.
    @cached_property
    def _members(self) -> dict[int, np.ndarray]:
        """The positions of the samples of each class."""
        return {code: np.flatnonzero(self.codes == code) for code in np.unique(self.codes).tolist()}


def row_blocks(n_rows: int, pairs: Pairs) -> Iterator[slice]:
    """Yield blocks of rows whose decision values of all pairs fit in memory together."""
    height = max(1, MAX_HELD_DECISIONS // len(pairs))
    for top in range(0, n_rows, height):
        yield slice(top, top + height)


def vote(
    decisions: np.ndarray,  # (n_pairs, ...), in the order of `pairs`
    pairs: Pairs,
    n_classes: int,
    *,
    ties: str = "sum",  # of equal votes, the largest sum of decision values; or "first"
) -> np.ndarray:
    """Return the class of each sample that wins most pairs, int of shape (...).

    A decision value of 0 goes to the positive class, as in `predict`.
    """
    if ties not in ("sum", "first"):
        msg = f"ties must be 'sum' or 'first', got ties={ties!r}"
        raise ValueError(msg)
    shape = decisions.shape[1:]
    winners = np.empty(int(np.prod(shape)), dtype=np.int64)
    by_samples = np.ascontiguousarray(decisions.reshape(len(pairs), -1).T)
    classes = raw(pairs.negative), raw(pairs.positive)
    _elect(raw(by_samples), *classes, n_classes, ties == "sum", winners)
    return winners.reshape(shape)


def values_of_classes(decisions: np.ndarray, pairs: Pairs, n_classes: int) -> np.ndarray:
    """Return votes plus sums of decision values, scaled below half a vote, (n, n_classes).

    A decision value of 0 in `decisions` (n, n_pairs) goes to the negative class, as in
    scikit-learn.
    """
    values = np.empty((len(decisions), n_classes))
    classes = raw(pairs.negative), raw(pairs.positive)
    _count(raw(np.ascontiguousarray(decisions)), *classes, values)
    return values


@compiled
def _elect(
    decisions: np.ndarray,
    negative: np.ndarray,
    positive: np.ndarray,
    n_classes: int,
    sums_decide: bool,
    winners: np.ndarray,
) -> None:
    votes, sums = np.empty(n_classes, dtype=np.int64), np.empty(n_classes)
    for i in range(len(winners)):
        votes[:] = 0
        sums[:] = 0.0
        for k in range(len(negative)):
            value = decisions[i, k]
            votes[positive[k] if value >= 0.0 else negative[k]] += 1
            sums[positive[k]] += value
            sums[negative[k]] -= value
        best = 0
        for c in range(1, n_classes):
            more = votes[c] > votes[best]
            if more or (sums_decide and votes[c] == votes[best] and sums[c] > sums[best]):
                best = c
        winners[i] = best


@compiled
def _count(
    decisions: np.ndarray, negative: np.ndarray, positive: np.ndarray, out: np.ndarray
) -> None:
    sums = np.empty(out.shape[1])
    for i in range(len(out)):
        votes = out[i]
        votes[:] = 0.0
        sums[:] = 0.0
        for k in range(len(negative)):
            value = decisions[i, k]
            votes[positive[k] if value > 0.0 else negative[k]] += 1.0
            sums[positive[k]] += value
            sums[negative[k]] -= value
        for c in range(len(sums)):
            votes[c] += sums[c] / (3.0 * (abs(sums[c]) + 1.0))


def warm_up_votes() -> None:
    """Compile the counting of votes."""
    pairs = Pairs(np.array([0, 1]))
    values_of_classes(np.ones((1, 1)), pairs, 2)
    vote(np.ones((1, 1)), pairs, 2)
