"""Sums of the models of all pairs of classes over points that they share.

The points stand class by class, and a point of class c has a coefficient with each other class, in
the order of these: the layout of LIBSVM's models. So do the sums: of a row x, a point class c and
another class there is one; the two of a pair of classes add up to what its model says of x.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.kernels.prediction import KernelSums
from svmbench.core.numeric.arrays import raw

#: Sums that are added up at a time (8 MiB): with many classes a block of rows is less high …
SUMS_AT_A_TIME = 1 << 20

#: … but no less than this, or a product of matrices would be one of a few rows.
SUMS_MIN_ROWS = 16

#: Classes of a square of pairs.
PAIR_SQUARE = 16


class AllPairs(KernelSums):
    """The sums of all pairs at each row; see ``prediction.KernelSums``."""

    def __init__(
        self,
        coefficients: np.ndarray,  # (n_classes - 1, n_points)
        starts: np.ndarray,  # int (n_classes + 1,): where the points of each class begin
        # (n_rows, n_pairs): what they are added to. Pairs are in the order of
        # ``itertools.combinations``
        out: np.ndarray,
    ) -> None:
        self.values, self.starts, self.out = np.ascontiguousarray(coefficients.T), starts, out
        self.n_classes = len(starts) - 1
        self.tallest = max(SUMS_MIN_ROWS, SUMS_AT_A_TIME // (self.n_classes * (self.n_classes - 1)))

    def begin(self, top: int, bottom: int) -> np.ndarray:
        """Return a place for the sums of some rows; see :class:`Sums`."""
        return np.zeros((bottom - top, self.n_classes, self.n_classes - 1))

    def add(self, part: np.ndarray, first: int, K: np.ndarray) -> None:
        """Add those of some points, class by class; see :class:`Sums`."""
        K, end, starts = K.astype(np.float64, copy=False), first + K.shape[1], self.starts
        of_first, of_last = np.searchsorted(starts, [first, end - 1], side="right") - 1
        for c in range(of_first, of_last + 1):
            begin, stop = max(starts[c], first), min(starts[c + 1], end)
            part[:, c] += K[:, begin - first : stop - first] @ self.values[begin:stop]

    def end(self, part: np.ndarray, top: int, bottom: int) -> None:
        """Add up the two of each pair; see :class:`Sums`."""
        _add_both(part, self.out[top:bottom])


@compiled
def _add_both(sums: np.ndarray, out: np.ndarray) -> None:
    """Add the two sums of each pair to `out`."""
    n = sums.shape[1]
    for i in range(len(out)):
        own, target = sums[i], out[i]
        # By squares: what one column of a row shares a cache line with serves the next columns.
        for top in range(0, n, PAIR_SQUARE):
            for left in range(top, n, PAIR_SQUARE):
                for a in range(top, min(top + PAIR_SQUARE, n)):
                    first = a * (n - 1) - a * (a - 1) // 2 - a - 1
                    for b in range(max(left, a + 1), min(left + PAIR_SQUARE, n)):
                        target[first + b] += own[a, b - 1] + own[b, a]


@compiled
def drop_small(values: np.ndarray, least: float) -> None:
    """Make 0 of values (m, n) that are smaller than `least`, in place."""
    for i in range(len(values)):
        row = values[i]
        for j in range(len(row)):
            row[j] = 0.0 if abs(row[j]) < least else row[j]


class OwnPairs(KernelSums):
    """The sums of each row in the pairs of its own class; see :class:`Sums`."""

    def __init__(
        self,
        coefficients: np.ndarray,  # as for :class:`AllPairs`
        starts: np.ndarray,
        codes: np.ndarray,  # int (n_rows,): the class of each row
        # (n_rows, n_classes - 1): what they are added to: one for each other class, in the order
        # of these
        out: np.ndarray,
    ) -> None:
        self.coefficients, self.starts = raw(coefficients), raw(starts)
        self.codes, self.out = raw(codes), out

    def begin(self, top: int, bottom: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes of some rows and the place of their sums; see :class:`Sums`."""
        return self.codes[top:bottom], self.out[top:bottom]

    def add(self, part: tuple[np.ndarray, np.ndarray], first: int, K: np.ndarray) -> None:
        """Add those of some points; see :class:`Sums`."""
        _add_own(K, first, self.coefficients, self.starts, *part)


@compiled_sums
def _add_own(
    K: np.ndarray,
    first: int,
    coefficients: np.ndarray,
    starts: np.ndarray,
    codes: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the products of kernel values, of rows and the points from `first` on, to `out`."""
    n_classes, last = len(starts) - 1, first + K.shape[1]
    for i in range(len(out)):
        row, c = K[i], codes[i]
        for d in range(n_classes):
            begin, end = max(starts[d], first), min(starts[d + 1], last)
            if begin >= end:
                continue
            values = row[begin - first : end - first]
            # A point of the row's class has a part in all pairs of that, another in one of them.
            these = range(n_classes - 1) if d == c else range(c - (c > d), c - (c > d) + 1)
            for e in these:
                own, total = coefficients[e, begin:end], 0.0
                for k in range(len(values)):
                    total += own[k] * values[k]
                out[i, e if d == c else d - (d > c)] += total
