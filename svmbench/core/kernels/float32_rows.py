"""Rows of a kernel matrix in single precision, fast enough to be computed again when forgotten.

A maker of rows is asked for `columns` once, the samples that rows are wanted at, and then fills
pieces of rows into someone else's memory. Which maker serves a problem follows from its inputs:

- `BitRows`, all values 0 or 1: a sample is a few machine words, an inner product a population
  count, a kernel value a look into a table;
- `DifferenceRows`, RBF of few features, and of more where products would lose digits;
- `DenseRows`: one product of matrices, transformed while it is in the cache;
- `SourceRows`: whatever a `KernelSource` gives, in either precision (very sparse inputs, stored
  matrices, and the fallback where single precision does not suffice).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.core.kernels.bits import MOST_BITS, count_pieces, is_binary, pack, table_of
from svmbench.core.kernels.difference_rows import (
    BY_COUNTS,
    BY_PRODUCTS,
    HEIGHT,
    NO_INPUTS,
    NO_LENGTHS,
    NO_TABLE,
    NO_WORDS,
    WIDTH,
    CompiledRows,
    DifferenceRows,
    Part,
    Points,
    Rows,
    Rule,
    suits,
)
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.numeric.arrays import raw

#: Sparse inputs are multiplied as dense ones from this share of non-zeros on.
DENSE_FROM = 0.03

#: Rows of the inputs that are brought into their form at a time.
COPIED = 4096

#: Dense inputs of so many values are no burden, however many of them are zero.
SMALL = 1 << 22


class Blocks(Protocol):
    """What kernel values in float64 come from: a `KernelSource`, or rows that have exact ones."""

    def block(self, I: Any, J: Any) -> np.ndarray:  # noqa: E741
        """Return the values of samples `I` with samples `J`, float64 of shape (len(I), len(J))."""


def float32_rows(source: KernelSource) -> Rows:
    """Return the fastest maker of float32 rows for a source."""
    inputs = source.inputs()
    if inputs is None:
        return SourceRows(source, np.float32)
    X, function = inputs
    if X.shape[1] <= MOST_BITS and is_binary(X):
        return BitRows(X, function)
    if sp.issparse(X):
        size = X.shape[0] * X.shape[1]
        if size > SMALL and X.nnz < DENSE_FROM * size:
            return SourceRows(source, np.float32)
    return DifferenceRows(X, function) if suits(X, function) else DenseRows(X, function)


def exact_values(source: KernelSource, rows: Rows) -> Blocks:
    """Return what computes values in float64 fastest: bits, where rows are made of them."""
    return rows if isinstance(rows, BitRows) else source


class DenseRows(CompiledRows):
    """Rows from dense inputs in float32; see :class:`Rows`.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        CSR inputs are copied to a dense array.
    function : KernelFunction
    """

    def __init__(self, X: Any, function: KernelFunction) -> None:
        super().__init__()
        self.function = function
        self.n_samples, d = X.shape
        # Distances don't change by a shift, and small inputs lose fewer digits in them.
        shift = np.asarray(X.mean(axis=0)).ravel() if function.name == "rbf" else np.zeros(d)
        inputs = np.empty((self.n_samples, d), dtype=np.float32)
        for top in range(0, self.n_samples, COPIED):
            piece = X[top : top + COPIED]
            dense = piece.toarray() if sp.issparse(piece) else piece
            np.subtract(dense, shift, out=inputs[top : top + COPIED], casting="same_kind")
        self.points = Points(inputs, np.einsum("ij,ij->i", inputs, inputs), NO_WORDS)
        self.effort = 4.0 + d / 20.0
        # Where the product is most of the work, it is faster with taller pieces.
        self.height = HEIGHT if d < HEIGHT else 2 * HEIGHT
        self.rule = Rule(BY_PRODUCTS, float(function.gamma), self.height, NO_TABLE, True)
        self.diagonal = function.diagonal(X).astype(np.float32)

    def _write(
        self, taken: Any, columns: Any, part: Part, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        """Multiply, transform and write."""
        if self.function.name == "rbf":
            super()._write(taken, columns, part, out, at, left)
            return
        A, X, (start, stop) = taken.inputs, columns.inputs, part
        for top in range(0, len(A), self.height):
            some, places = A[top : top + self.height], at[top : top + self.height]
            for first in range(start, stop, WIDTH):
                end = min(first + WIDTH, stop)
                values = self.function.of_products(some @ X[first:end].T)
                out[places, left + first - start : left + end - start] = values

    def take_off(
        self, samples: np.ndarray, factors: np.ndarray, columns: Any, part: Part, v: np.ndarray
    ) -> None:
        """Take a sum of rows off `v`, those of an RBF kernel in one call; see :class:`Rows`."""
        loop = CompiledRows if self.function.name == "rbf" else Rows
        loop.take_off(self, samples, factors, columns, part, v)


class BitRows(CompiledRows):
    """Rows from inputs whose values are all 0 or 1; see :class:`Rows`.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    function : KernelFunction
    """

    def __init__(self, X: Any, function: KernelFunction) -> None:
        super().__init__()
        self.n_samples, n_features = X.shape
        self.points = Points(NO_INPUTS, NO_LENGTHS, pack(X))
        self.effort = 2.5 + 0.5 * self.points.words.shape[1]
        #: The kernel's value at every count, in float64, where it has no rounding but the kernel's.
        self.exact_table = raw(table_of(function, n_features))
        table, differing = raw(self.exact_table.astype(np.float32)), function.name == "rbf"
        self.rule = Rule(BY_COUNTS, 0.0, HEIGHT, table, differing)
        self.diagonal = function.diagonal(X).astype(np.float32)

    def block(self, I: np.ndarray, J: np.ndarray) -> np.ndarray:  # noqa: E741
        """Return the kernel values of samples `I` with samples `J`, in float64, shape (I, J)."""
        values, others = np.empty((len(I), len(J))), self.columns(J).words
        count_pieces(
            *(self.points.words[I], others, 0, len(J), self.rule.differing),
            *(self.exact_table, values, np.arange(len(I)), 0),
        )
        self._counter.add(values.size)
        return values


class SourceRows(Rows):
    """Rows from any source, rounded to `dtype`; see :class:`Rows`.

    Parameters
    ----------
    source : KernelSource
    dtype : type
        float32 or float64.
    """

    effort = 20.0
    shares = False

    def __init__(self, source: KernelSource, dtype: Any) -> None:
        super().__init__()
        self.source, self.dtype = source, dtype
        self.n_samples = source.n_samples
        self.diagonal = source.diag().astype(dtype)

    @property
    def evaluations(self) -> int:
        """No values: the source counts its own."""
        return 0

    def columns(self, J: np.ndarray | None) -> np.ndarray:
        """Return the positions `J`."""
        return np.arange(self.n_samples) if J is None else J

    def _taken(self, samples: np.ndarray) -> np.ndarray:
        return samples

    def _write(
        self, taken: Any, columns: Any, part: Part, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        """Ask the source, in pieces of bounded size."""
        J = columns[slice(*part)]
        height = max(1, (1 << 22) // max(1, len(J)))
        for top in range(0, len(taken), height):
            rows = slice(top, top + height)
            out[at[rows], left : left + len(J)] = self.source.block(taken[rows], J)

    def whole(self) -> np.ndarray:
        """Return the whole matrix, which a small problem is solved on."""
        return self.source.rows(np.arange(self.n_samples)).astype(self.dtype, copy=False)
