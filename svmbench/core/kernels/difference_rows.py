"""RBF rows in single precision from differences of coordinates.

By |a|^2 + |b|^2 - 2ab a small distance between long vectors has few digits left; here differences
are squared and summed, and what is left is the rounding of the coordinates themselves. The work
grows with the features faster than that of a product of matrices, so that this is for few features,
and for unscaled ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_fused
from svmbench.core.kernels.exponential import gauss_single
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.products import squared_lengths, subtract_half_distances
from svmbench.core.kernels.row_store import subtract_rows
from svmbench.core.kernels.threads import Tally
from svmbench.core.numeric.arrays import central_row, in_fours, largest_value

#: Rows of up to so many features are made so in any case …
FEW = 8

#: … and up to so many where the rounding of a product would move a value by more than this.
MANY, ROUNDING = 48, 2e-6

#: Columns and rows of a piece, which stays in the second-level cache; rows in fours.
WIDTH, HEIGHT = 512, 256

#: Which columns: from the first number to before the second.
Part = tuple[int, int]


def suits(X: Any, function: KernelFunction) -> bool:
    """Return whether rows of these inputs are best made from differences."""
    d = X.shape[1]
    if function.name != "rbf" or d > MANY or largest_value(X) > float(np.finfo(np.float32).max):
        return False
    return d <= FEW or product_rounding(X, function) > ROUNDING


def product_rounding(X: Any, function: KernelFunction) -> float:
    """Return by how much rounding of products may move a value of moved inputs, in float32."""
    dense = X.toarray() if sp.issparse(X) else X
    longest = float(np.max(squared_lengths(dense - dense.mean(axis=0))))
    return 2.0 * function.gamma * longest * float(np.finfo(np.float32).eps)


@compiled_fused
def rbf_row(columns: np.ndarray, i: int, gamma: float, out: np.ndarray) -> None:
    """Write the kernel values of point i with all points to ``out[i]``.

    Parameters
    ----------
    columns : ndarray of float32 of shape (d, n)
        Points, a column each; d is a multiple of four.
    i : int
    gamma : float
    out : ndarray of float32 of shape (n, n)
    """
    n, half = columns.shape[1], np.float32(0.5)
    products, zeros = np.zeros((1, n), dtype=np.float32), np.zeros(n, dtype=np.float32)
    row = products[0]
    for k in range(0, columns.shape[0], 4):
        x0, x1, x2, x3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        a, b, c, d = x0[i], x1[i], x2[i], x3[i]
        for j in range(n):
            row[j] -= half * (
                (a - x0[j]) ** 2 + (b - x1[j]) ** 2 + (c - x2[j]) ** 2 + (d - x3[j]) ** 2
            )
    # As pieces of rows are written elsewhere: one version to compile.
    gauss_single(products, zeros[:1], zeros, gamma, out[:, :n], np.full(1, i))


def points_of(X: Any) -> np.ndarray:
    """Return inputs of few features as float32, moved to their middle, with a multiple of four."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    return in_fours((dense - central_row(dense)).astype(np.float32), 1)


class MadeRows(ABC):
    """Rows in float32 that are made from inputs, of which several threads may make some at a time.

    What all makers of such rows have in common; see :class:`~.float32_rows.Rows`.
    """

    dtype = np.float32
    height: int = HEIGHT
    shares = True
    n_samples: int

    def __init__(self) -> None:
        self._counter = Tally()

    @property
    def evaluations(self) -> int:
        """Values made so far."""
        return self._counter.total

    @abstractmethod
    def columns(self, J: np.ndarray | None) -> Any:
        """Return the samples `J` (None: all) in the form that `fill` wants."""

    @abstractmethod
    def _taken(self, samples: np.ndarray) -> Any:
        """Return samples in the form that `_write` wants."""

    @abstractmethod
    def _write(
        self, taken: Any, columns: Any, part: Part, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        """Write pieces of rows, of the samples in `taken`; see :meth:`fill`."""

    def fill(
        self,
        samples: np.ndarray,
        columns: Any,
        start: int,
        stop: int,
        out: np.ndarray,
        at: np.ndarray,
        left: int = 0,
    ) -> None:
        """Write pieces of rows; see :class:`~.float32_rows.Rows`."""
        self._write(self._taken(samples), columns, (start, stop), out, at, left)
        self._counter.add(len(samples) * (stop - start))

    def take_off(
        self, samples: np.ndarray, factors: np.ndarray, columns: Any, part: Part, v: np.ndarray
    ) -> None:
        """Take a sum of rows off `v`; see :class:`~.float32_rows.Rows`.

        By pieces that are written, used while they are in the cache, and written over. Of fewer
        rows a piece has more columns: a thread comes back to Python, where it may have to wait for
        another, once for about ``HEIGHT * WIDTH`` values.
        """
        height = min(self.height, len(samples))
        width = WIDTH * max(1, HEIGHT // max(1, height))
        scratch, places = np.empty((height, width), dtype=self.dtype), np.arange(height)
        for top in range(0, len(samples), self.height):
            some, change = samples[top : top + height], factors[top : top + height]
            taken, at = self._taken(some), places[: len(some)]
            for first in range(*part, width):
                end = min(first + width, part[1])
                self._write(taken, columns, (first, end), scratch, at, 0)
                subtract_rows(scratch, at, change, v[first:end], 0, end - first)
        self._counter.add(len(samples) * (part[1] - part[0]))

    def whole(self) -> np.ndarray:
        """Return the whole matrix: strips from the diagonal on are made, and mirrored."""
        n = self.n_samples
        K, columns, everyone = np.empty((n, n), self.dtype), self.columns(None), np.arange(n)
        for top in range(0, n, HEIGHT):
            end = min(top + HEIGHT, n)
            self.fill(everyone[top:end], columns, top, n, K, everyone[top:end], top)
            K[end:, top:end] = K[top:end, end:].T
        return K


@compiled
def fill_differences(
    A: np.ndarray,
    columns: np.ndarray,
    part: Part,
    gamma: float,
    out: np.ndarray,
    at: np.ndarray,
    left: int,
) -> None:
    """Write RBF values from differences, by pieces that stay in the cache.

    Parameters
    ----------
    A : ndarray of float32 of shape (m, d)
        Samples, with rows of zeros at the end up to a multiple of four; so is d.
    columns : ndarray of float32 of shape (d, n)
        Points, a column each.
    part : tuple of int
        Which of the columns.
    gamma : float
    out, at, left
        As for ``Rows.fill``; `at` has fewer elements than `A` where rows of zeros are at its end.
    """
    start, stop = part
    scratch = np.empty(HEIGHT * WIDTH, dtype=np.float32)
    zeros, half = np.zeros(max(HEIGHT, WIDTH), dtype=np.float32), np.float32(0.5)
    for top in range(0, len(A), HEIGHT):
        some, places = A[top : top + HEIGHT], at[top : top + HEIGHT]
        for first in range(start, stop, WIDTH):
            end = min(first + WIDTH, stop)
            P = scratch[: len(some) * (end - first)].reshape(len(some), end - first)
            subtract_half_distances(some, columns, first, half, P)
            target = out[:, left + first - start : left + end - start]
            nothing = zeros[: len(places)], zeros[: end - first]
            gauss_single(P[: len(places)], nothing[0], nothing[1], gamma, target, places)


class DifferenceRows(MadeRows):
    """Rows of an RBF kernel of few features; see :class:`~.float32_rows.Rows`.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    function : KernelFunction
    """

    def __init__(self, X: Any, function: KernelFunction) -> None:
        super().__init__()
        self.n_samples, d = X.shape
        self.gamma, self.X = function.gamma, points_of(X)
        self.effort = 4.0 + d / 12.0
        self.diagonal = np.ones(self.n_samples, dtype=np.float32)

    def columns(self, J: np.ndarray | None) -> np.ndarray:
        """Return the samples `J`, a column each."""
        return np.ascontiguousarray((self.X if J is None else self.X[J]).T)

    def _taken(self, samples: np.ndarray) -> np.ndarray:
        return in_fours(self.X[samples], 0)

    def _write(
        self, taken: Any, columns: Any, part: Part, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        """Subtract, square, sum and transform."""
        fill_differences(taken, columns, part, self.gamma, out, at, left)
