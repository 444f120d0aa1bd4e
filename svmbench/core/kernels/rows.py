"""Rows of a kernel matrix in single precision, fast enough to be computed again when forgotten.

A maker of rows is asked for `columns` once, the samples that rows are wanted at, and then fills
pieces of rows into someone else's memory. Which maker serves a problem follows from its inputs:

- `BitRows`, all values 0 or 1: a sample is a few machine words, an inner product a population
  count, a kernel value a look into a table;
- `DifferenceRows`, RBF of few features, and of more where products would lose digits: by |a|^2 +
  |b|^2 - 2ab a small distance between long vectors has few digits left; of differences, squared and
  summed, only the coordinates' own rounding is left;
- `DenseRows`: one product of matrices, transformed while it is in the cache;
- `SourceRows`: whatever a `KernelSource` gives, in either precision (very sparse inputs, stored
  matrices, and the fallback where single precision does not suffice).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.products import (
    BITS_MAX_FEATURES,
    count_pieces,
    gauss_single,
    is_binary,
    pack,
    squared_lengths,
    subtract_half_distances,
    table_of,
)
from svmbench.core.kernels.row_cache import subtract_rows
from svmbench.core.kernels.thread_pool import Counter, ThreadPool
from svmbench.core.numeric.arrays import central_row, in_fours, largest_value, raw

#: RBF rows of at most this many features are always made of differences.
DIFFERENCES_ALWAYS_MAX_FEATURES = 8

#: RBF rows of more features than that, up to this number, are made of differences if the rounding
#: of products moves a kernel value by more than `PRODUCT_ROUNDING_LIMIT`.
DIFFERENCES_MAX_FEATURES = 48
PRODUCT_ROUNDING_LIMIT = 2e-6

#: Columns and rows of a piece, which stays in the second-level cache; rows in fours.
PIECE_COLUMNS, PIECE_ROWS = 512, 256

#: Sparse inputs are multiplied as dense ones from this share of non-zeros on.
DENSE_MIN_DENSITY = 0.03

#: Number of input rows that are converted at a time.
COPY_ROWS = 4096

#: Sparse inputs of at most this many values, zeros included, are multiplied as dense ones.
DENSE_MAX_VALUES = 1 << 22

#: Which columns: from the first number to before the second.
Span = tuple[int, int]


def suits_differences(X: Any, function: KernelFunction) -> bool:
    """Return True if rows of these inputs are best made from differences."""
    d = X.shape[1]
    if (
        function.name != "rbf"
        or d > DIFFERENCES_MAX_FEATURES
        or largest_value(X) > float(np.finfo(np.float32).max)
    ):
        return False
    return (
        d <= DIFFERENCES_ALWAYS_MAX_FEATURES
        or product_rounding(X, function) > PRODUCT_ROUNDING_LIMIT
    )


def product_rounding(X: Any, function: KernelFunction) -> float:
    """Return the largest change of a kernel value by the rounding of float32 products."""
    dense = X.toarray() if sp.issparse(X) else X
    longest = float(np.max(squared_lengths(dense - dense.mean(axis=0))))
    return 2.0 * function.gamma * longest * float(np.finfo(np.float32).eps)


def points_of(X: Any) -> np.ndarray:
    """Return inputs of few features as float32, moved to their middle, with a multiple of four."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    return in_fours((dense - central_row(dense)).astype(np.float32), 1)


class RowPoints(NamedTuple):
    """Samples as compiled loops read them; what a maker has no use for is empty."""

    inputs: np.ndarray  # float32: a sample a row; as columns of `DifferenceRows` a sample a column
    lengths: np.ndarray  # float32 (m,): squared
    words: np.ndarray  # uint64: bits, a sample a row; as columns a sample a column


NO_INPUTS, NO_LENGTHS = np.empty((0, 0), dtype=np.float32), np.empty(0, dtype=np.float32)
NO_WORDS = np.empty((0, 0), dtype=np.uint64)


class Rule(NamedTuple):
    """The way from points to kernel values."""

    kind: int  # `BY_PRODUCTS`, `BY_DIFFERENCES` or `BY_COUNTS`
    gamma: float  # of the RBF kernel; a table holds it for counts
    height: int  # rows of a piece
    # float32 (n_bits + 1,): the kernel's value at every count of bits, for `BY_COUNTS`
    table: np.ndarray
    differing: bool  # count the bits that differ; else those that two samples share


BY_PRODUCTS, BY_DIFFERENCES, BY_COUNTS = range(3)

NO_TABLE = raw(np.empty(0, dtype=np.float32))


@compiled
def fill_gauss(
    samples: RowPoints,
    columns: RowPoints,
    part: Span,
    gamma: float,
    height: int,  # rows of a piece
    out: np.ndarray,
    at: np.ndarray,
    left: int,
) -> None:
    """Write RBF values, by products of pieces that stay in the cache; see ``Rows.fill``."""
    A, lengths, X, squares = samples.inputs, samples.lengths, columns.inputs, columns.lengths
    start, stop = part
    scratch = np.empty(min(height, len(A)) * PIECE_COLUMNS, dtype=np.float32)
    for top in range(0, len(A), height):
        some = A[top : top + height]
        for first in range(start, stop, PIECE_COLUMNS):
            end = min(first + PIECE_COLUMNS, stop)
            P = scratch[: len(some) * (end - first)].reshape(len(some), end - first)
            np.dot(some, X[first:end].T, P)
            target = out[:, left + first - start : left + end - start]
            a, b = lengths[top : top + height], squares[first:end]
            gauss_single(P, a, b, gamma, target, at[top : top + height])


@compiled
def fill_differences(
    A: np.ndarray,  # (m, d); zeros at the ends make m and d multiples of four
    columns: np.ndarray,  # (d, n)
    part: Span,
    gamma: float,
    out: np.ndarray,
    at: np.ndarray,  # fewer elements than A has rows, where some of those are zeros
    left: int,
) -> None:
    """Write RBF values from differences, by pieces that stay in the cache; see ``Rows.fill``."""
    start, stop = part
    scratch = np.empty(PIECE_ROWS * PIECE_COLUMNS, dtype=np.float32)
    zeros, half = np.zeros(max(PIECE_ROWS, PIECE_COLUMNS), dtype=np.float32), np.float32(0.5)
    for top in range(0, len(A), PIECE_ROWS):
        some, places = A[top : top + PIECE_ROWS], at[top : top + PIECE_ROWS]
        for first in range(start, stop, PIECE_COLUMNS):
            end = min(first + PIECE_COLUMNS, stop)
            P = scratch[: len(some) * (end - first)].reshape(len(some), end - first)
            subtract_half_distances(some, columns, first, half, P)
            target = out[:, left + first - start : left + end - start]
            nothing = zeros[: len(places)], zeros[: end - first]
            gauss_single(P[: len(places)], nothing[0], nothing[1], gamma, target, places)


@compiled
def fill_pieces(
    samples: RowPoints,
    columns: RowPoints,
    part: Span,
    rule: Rule,
    out: np.ndarray,
    at: np.ndarray,
    left: int,
) -> None:
    """Write pieces of rows by a rule; see ``Rows.fill``."""
    if rule.kind == BY_PRODUCTS:
        fill_gauss(samples, columns, part, rule.gamma, rule.height, out, at, left)
    elif rule.kind == BY_DIFFERENCES:
        fill_differences(samples.inputs, columns.inputs, part, rule.gamma, out, at, left)
    else:
        words, others, (start, stop) = samples.words, columns.words, part
        count_pieces(words, others, start, stop, rule.differing, rule.table, out, at, left)


@compiled
def take_off_pieces(
    samples: RowPoints,
    factors: np.ndarray,
    columns: RowPoints,
    part: Span,
    rule: Rule,
    v: np.ndarray,
) -> None:
    """Take a sum of rows off `v`; see ``Rows.take_off``.

    Compiled as a whole: the loop of `Rows`, in Python, took 22 % more CPU time in the median (3 to
    211 %) for 4, 24 and 400 rows of 8,000 samples, dense, binary and by differences, and threads
    that come back to Python after every piece wait for each other there.
    """
    m, height = len(factors), rule.height
    K, places = np.empty((min(height, m), PIECE_COLUMNS), dtype=np.float32), np.arange(height)
    for top in range(0, m, height):
        bottom, change = top + height, factors[top : top + height]
        some = RowPoints(
            samples.inputs[top:bottom], samples.lengths[top:bottom], samples.words[top:bottom]
        )
        at = places[: len(change)]
        for first in range(part[0], part[1], PIECE_COLUMNS):
            end = min(first + PIECE_COLUMNS, part[1])
            fill_pieces(some, columns, (first, end), rule, K, at, 0)
            subtract_rows(K, at, change, v[first:end], 0, end - first)


class Rows(ABC):
    """Makers of rows of one kernel matrix, of which several threads may make some at a time."""

    n_samples: int
    dtype: Any = np.float32  # of the values: float32 or float64
    diagonal: np.ndarray  # (n_samples,): K(x, x) of every sample, of that type
    effort: float  # about the cost of a value, in units of reading a stored one from memory
    height: int = PIECE_ROWS  # rows to ask for at a time where there is a choice
    shares = True  # whether several threads may fill rows at a time

    def __init__(self) -> None:
        self._counter = Counter()

    @property
    def evaluations(self) -> int:
        """Values made so far, but for those that a `KernelSource` counts."""
        return self._counter.total

    @abstractmethod
    def columns(self, J: np.ndarray | None) -> Any:
        """Return the samples `J` (None: all) in the form that `fill` wants."""

    @abstractmethod
    def _taken(self, samples: np.ndarray) -> Any:
        """Return samples in the form that `_write` wants."""

    @abstractmethod
    def _write(
        self, taken: Any, columns: Any, part: Span, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        """Write pieces of rows, of the samples in `taken`; see :meth:`fill`."""

    def fill(
        self,
        samples: np.ndarray,  # int (m,)
        columns: Any,  # from `columns`
        start: int,  # the columns from `start` to before `stop`
        stop: int,
        out: np.ndarray,  # (any, at least left + stop - start)
        at: np.ndarray,  # int (m,)
        left: int = 0,
    ) -> None:
        """Write values of sample ``samples[m]`` to ``out[at[m], left : left + stop - start]``."""
        self._write(self._taken(samples), columns, (start, stop), out, at, left)
        self._counter.add(len(samples) * (stop - start))

    def take_off(
        self, samples: np.ndarray, factors: np.ndarray, columns: Any, part: Span, v: np.ndarray
    ) -> None:
        """Take ``factors @ K[samples][:, columns]`` off `v`, in the part of the columns.

        By pieces that are written, used while they are in the cache, and written over.
        """
        height = min(self.height, len(samples))
        scratch, places = np.empty((height, PIECE_COLUMNS), dtype=self.dtype), np.arange(height)
        for top in range(0, len(samples), self.height):
            some, change = samples[top : top + height], factors[top : top + height]
            taken, at = self._taken(some), places[: len(some)]
            for first in range(*part, PIECE_COLUMNS):
                end = min(first + PIECE_COLUMNS, part[1])
                self._write(taken, columns, (first, end), scratch, at, 0)
                subtract_rows(scratch, at, change, v[first:end], 0, end - first)
        self._counter.add(len(samples) * (part[1] - part[0]))

    def share(
        self, pool: ThreadPool, n: int, multiple: int, task: Callable[[int, int], None]
    ) -> None:
        """Do ``pool.share(n, multiple, task)``, or all of it here if rows can't be shared."""
        if self.shares:
            pool.share(n, multiple, task)
        else:
            task(0, n)

    def whole(self) -> np.ndarray:
        """Return the whole matrix: strips from the diagonal on are made, and mirrored."""
        n = self.n_samples
        K, columns, everyone = np.empty((n, n), self.dtype), self.columns(None), np.arange(n)
        for top in range(0, n, PIECE_ROWS):
            end = min(top + PIECE_ROWS, n)
            self.fill(everyone[top:end], columns, top, n, K, everyone[top:end], top)
            K[end:, top:end] = K[top:end, end:].T
        return K


class CompiledRows(Rows):
    """Rows in float32 that compiled loops make of points, by a rule."""

    points: RowPoints
    rule: Rule

    def _taken(self, samples: np.ndarray) -> RowPoints:
        inputs, lengths, words = self.points
        if self.rule.kind == BY_DIFFERENCES:
            return RowPoints(in_fours(inputs[samples], 0), lengths, words)
        if self.rule.kind == BY_COUNTS:
            return RowPoints(inputs, lengths, words[samples])
        return RowPoints(inputs[samples], lengths[samples], words)

    def columns(self, J: np.ndarray | None) -> RowPoints:
        """Return the samples `J` (None: all): of differences and bits, a column each."""
        inputs, lengths, words = self.points
        if self.rule.kind == BY_DIFFERENCES:
            some = inputs if J is None else inputs[J]
            return RowPoints(np.ascontiguousarray(some.T), lengths, words)
        if self.rule.kind == BY_COUNTS:
            some = words if J is None else words[J]
            return RowPoints(inputs, lengths, np.ascontiguousarray(some.T))
        return self.points if J is None else RowPoints(inputs[J], lengths[J], words)

    def _write(
        self, taken: Any, columns: Any, part: Span, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        fill_pieces(taken, columns, part, self.rule, out, at, left)

    def take_off(
        self, samples: np.ndarray, factors: np.ndarray, columns: Any, part: Span, v: np.ndarray
    ) -> None:
        """Take a sum of rows off `v`, in one call; see :class:`Rows`."""
        take_off_pieces(self._taken(samples), factors, columns, part, self.rule, v)
        self._counter.add(len(samples) * (part[1] - part[0]))


class DifferenceRows(CompiledRows):
    """Rows of an RBF kernel of few features; see :class:`Rows`."""

    def __init__(self, X: Any, function: KernelFunction) -> None:
        super().__init__()
        self.n_samples, d = X.shape
        self.X = points_of(X)
        self.points = RowPoints(self.X, NO_LENGTHS, NO_WORDS)
        self.rule = Rule(BY_DIFFERENCES, float(function.gamma), PIECE_ROWS, NO_TABLE, True)
        self.effort = 4.0 + d / 12.0
        self.diagonal = np.ones(self.n_samples, dtype=np.float32)


class ExactValues(Protocol):
    """A source of kernel values in float64: a `KernelSource`, or rows that have exact ones."""

    def block(self, I: Any, J: Any) -> np.ndarray:  # noqa: E741
        """Return the values of samples `I` with samples `J`, float64 of shape (len(I), len(J))."""


class DenseRows(CompiledRows):
    """Rows from dense inputs in float32; see :class:`Rows`."""

    def __init__(
        self,
        X: Any,  # dense or CSR: CSR inputs are copied to a dense array
        function: KernelFunction,
    ) -> None:
        super().__init__()
        self.function = function
        self.n_samples, d = X.shape
        # Distances don't change by a shift, and small inputs lose fewer digits in them.
        shift = np.asarray(X.mean(axis=0)).ravel() if function.name == "rbf" else np.zeros(d)
        inputs = np.empty((self.n_samples, d), dtype=np.float32)
        for top in range(0, self.n_samples, COPY_ROWS):
            piece = X[top : top + COPY_ROWS]
            dense = piece.toarray() if sp.issparse(piece) else piece
            np.subtract(dense, shift, out=inputs[top : top + COPY_ROWS], casting="same_kind")
        self.points = RowPoints(inputs, np.einsum("ij,ij->i", inputs, inputs), NO_WORDS)
        self.effort = 4.0 + d / 20.0
        # Where the product is most of the work, it is faster with taller pieces.
        self.height = PIECE_ROWS if d < PIECE_ROWS else 2 * PIECE_ROWS
        self.rule = Rule(BY_PRODUCTS, float(function.gamma), self.height, NO_TABLE, True)
        self.diagonal = function.diagonal(X).astype(np.float32)

    def _write(
        self, taken: Any, columns: Any, part: Span, out: np.ndarray, at: np.ndarray, left: int
    ) -> None:
        """Multiply, transform and write."""
        if self.function.name == "rbf":
            super()._write(taken, columns, part, out, at, left)
            return
        A, X, (start, stop) = taken.inputs, columns.inputs, part
        for top in range(0, len(A), self.height):
            some, places = A[top : top + self.height], at[top : top + self.height]
            for first in range(start, stop, PIECE_COLUMNS):
                end = min(first + PIECE_COLUMNS, stop)
                values = self.function.of_products(some @ X[first:end].T)
                out[places, left + first - start : left + end - start] = values

    def take_off(
        self, samples: np.ndarray, factors: np.ndarray, columns: Any, part: Span, v: np.ndarray
    ) -> None:
        """Take a sum of rows off `v`, those of an RBF kernel in one call; see :class:`Rows`."""
        loop = CompiledRows if self.function.name == "rbf" else Rows
        loop.take_off(self, samples, factors, columns, part, v)


class BitRows(CompiledRows):
    """Rows from inputs whose values are all 0 or 1; see :class:`Rows`."""

    def __init__(self, X: Any, function: KernelFunction) -> None:
        super().__init__()
        self.n_samples, n_features = X.shape
        self.points = RowPoints(NO_INPUTS, NO_LENGTHS, pack(X))
        self.effort = 2.5 + 0.5 * self.points.words.shape[1]
        #: The kernel's value at every count, in float64, where it has no rounding but the kernel's.
        self.exact_table = raw(table_of(function, n_features))
        table, differing = raw(self.exact_table.astype(np.float32)), function.name == "rbf"
        self.rule = Rule(BY_COUNTS, 0.0, PIECE_ROWS, table, differing)
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
    """Rows from any source, rounded to `dtype`; see :class:`Rows`."""

    effort = 20.0
    shares = False

    def __init__(
        self,
        source: KernelSource,
        dtype: Any,  # float32 or float64
    ) -> None:
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
        self, taken: Any, columns: Any, part: Span, out: np.ndarray, at: np.ndarray, left: int
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


def float32_rows(source: KernelSource) -> Rows:
    """Return the fastest maker of float32 rows for a source."""
    inputs = source.inputs()
    if inputs is None:
        return SourceRows(source, np.float32)
    X, function = inputs
    if X.shape[1] <= BITS_MAX_FEATURES and is_binary(X):
        return BitRows(X, function)
    if sp.issparse(X):
        size = X.shape[0] * X.shape[1]
        if size > DENSE_MAX_VALUES and X.nnz < DENSE_MIN_DENSITY * size:
            return SourceRows(source, np.float32)
    return DifferenceRows(X, function) if suits_differences(X, function) else DenseRows(X, function)


def exact_values(source: KernelSource, rows: Rows) -> ExactValues:
    """Return the fastest source of values in float64: bits, where rows are made of them."""
    return rows if isinstance(rows, BitRows) else source
