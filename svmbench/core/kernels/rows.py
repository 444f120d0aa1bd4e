"""Rows of a kernel matrix in single precision, and the cache that keeps some of them in memory.

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

`RowCache` has slots for rows, within a budget that the caller sets; its `rule` (`forget_oldest` or
`forget_none`) says which rows give way to new ones. A compiled loop may read ``rows[slots[i]]``
itself and note in `last_use` that it did. `cut` drops columns (shrinking): rows become shorter and
move together, so that the same memory has slots for more rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled
from svmbench.base.errors import SvmbenchError
from svmbench.core.kernels.kernels import MIB, Counter, KernelFunction, KernelSource, ThreadPool
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

#: Largest number of slots. With more, finding the oldest slot would cost more than computing a row.
MAX_SLOTS = 1 << 16

#: Columns that `subtract_rows` takes at a time: their part of `v` stays in the first-level cache.
SPAN = 1024

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
def subtract_rows(
    rows: np.ndarray,  # (any, at least n)
    slots: np.ndarray,  # (m,)
    factors: np.ndarray,  # (m,)
    v: np.ndarray,  # (n,): changed in place, from `first` to before `end`
    first: int,
    end: int,
) -> None:
    """Take ``factors @ rows[slots]`` off `v`, in float64."""
    m = len(slots)
    for start in range(first, end, SPAN):
        stop = min(start + SPAN, end)
        values = v[start:stop]
        q = 0
        while q + 4 <= m:
            f0, f1, f2, f3 = factors[q], factors[q + 1], factors[q + 2], factors[q + 3]
            r0, r1 = rows[slots[q], start:stop], rows[slots[q + 1], start:stop]
            r2, r3 = rows[slots[q + 2], start:stop], rows[slots[q + 3], start:stop]
            for k in range(len(values)):
                values[k] -= (f0 * np.float64(r0[k]) + f1 * np.float64(r1[k])) + (
                    f2 * np.float64(r2[k]) + f3 * np.float64(r3[k])
                )
            q += 4
        while q < m:
            f0, r0 = factors[q], rows[slots[q], start:stop]
            for k in range(len(values)):
                values[k] -= f0 * np.float64(r0[k])
            q += 1


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

    def whole(self, K: np.ndarray | None = None) -> np.ndarray:
        """Return the whole matrix, in `K` if given: strips from the diagonal on, mirrored."""
        n = self.n_samples
        K = np.empty((n, n), self.dtype) if K is None else K
        columns, everyone = self.columns(None), np.arange(n)
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

    def fill(
        self, samples: Any, columns: Any, start: int, stop: int, out: Any, at: Any, left: int = 0
    ) -> None:
        """Write values; see :class:`Rows`. Of a single row, `_taken` would cost half of that."""
        words, rule = self.points.words[samples], (self.rule.differing, self.rule.table)
        count_pieces(words, columns.words, start, stop, *rule, out, at, left)
        self._counter.add(len(samples) * (stop - start))

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

    def whole(self, K: np.ndarray | None = None) -> np.ndarray:
        """Return the whole matrix, rounded from float64 values of the source; `K` is not used."""
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


def forget_oldest(last_use: np.ndarray, clock: int, wanted: int) -> np.ndarray:
    """Return up to `wanted` slots, those unused for longest, and none that was used just now."""
    wanted = min(wanted, int(np.count_nonzero(last_use < clock)))
    return np.argpartition(last_use, wanted - 1)[:wanted] if wanted > 0 else np.arange(0)


def forget_none(last_use: np.ndarray, clock: int, wanted: int) -> np.ndarray:
    """Return no slot: rows that came first stay.

    If a solver goes through all rows in the same order again and again, the oldest row is always
    the next one that it needs. `forget_oldest` would then remove each row just before its use.
    """
    return np.arange(0)


class RowCache:
    """Slots for kernel rows; samples are known by their numbers.

    SvmbenchError if the budget is too small for `least` rows; the message states one that suffices.
    """

    rows: np.ndarray  # (n_slots, width): the row of a slot
    slots: np.ndarray  # int (n_names,): the slot of each sample's row; -1 if it has none
    last_use: np.ndarray  # int (n_slots,): the value of `clock` at the last use of each slot
    clock: int  # at least as high as every number in `last_use`
    filled: int  # number of slots that have had a row: the first ones

    def __init__(
        self,
        n_names: int,  # number of all samples, active or not: their numbers are 0 to n_names - 1
        width: int,  # active samples at first: the length of a row, and the largest number of rows
        budget_mb: float,  # MiB for all rows
        *,
        least: int = 0,  # number of rows that must fit at once; above `width`, it means `width`
        dtype: Any = np.float64,
        # rule(last_use, clock, wanted) returns the slots, at most `wanted`, that give way
        rule: Callable[[np.ndarray, int, int], np.ndarray] = forget_oldest,
    ) -> None:
        itemsize = np.dtype(dtype).itemsize
        least = min(least, width)
        size = int(budget_mb * MIB // itemsize)
        if size < least * width:
            needed = int(np.ceil(least * width * itemsize / MIB))
            msg = (
                f"cache_mb={budget_mb:g} holds {size // width} kernel rows of {width} "
                f"samples; {least} are needed at a time: give cache_mb={needed} or more"
            )
            raise SvmbenchError(msg)
        self.rule, self.clock = rule, 0
        self.slots = np.full(n_names, -1, dtype=np.int64)
        self._most = min(width, MAX_SLOTS)
        # The operating system provides memory only when a row is written to it.
        self._memory = np.empty(min(size, width**2), dtype=dtype)
        self._shape(width, np.empty(0, dtype=np.int64))

    def _shape(self, width: int, owners: np.ndarray) -> None:
        """Lay the memory out in rows of `width`, of which the first belong to `owners`."""
        n_slots = min(len(self._memory) // max(1, width), self._most)
        self.rows = self._memory[: n_slots * width].reshape(n_slots, width)
        self._owner = np.full(n_slots, -1, dtype=np.int64)
        self.last_use = np.zeros(n_slots, dtype=np.int64)
        self.filled = len(owners)
        self._owner[: len(owners)] = owners

    def find(self, samples: np.ndarray) -> np.ndarray:
        """Return the slot of each sample's row, -1 where there is none, and note the use."""
        self.clock += 1
        slots = self.slots[samples]
        self.last_use[slots[slots >= 0]] = self.clock
        return slots

    def claim(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a slot for each of the samples, and a mask of the slots whose row is missing.

        The samples must be distinct, and no more than the slots. The caller writes missing rows.
        """
        slots = self.find(wanted)
        missing = slots < 0
        slots[missing] = self.place(wanted[missing])
        return slots, missing

    def place(self, samples: np.ndarray) -> np.ndarray:
        """Assign slots to samples for which `find` returned -1; the caller writes the rows.

        Return slots for the first of the samples, as many as there is room for. The rows that the
        last call of `find` returned stay.
        """
        fresh = min(len(samples), len(self.rows) - self.filled)
        gone = self.rule(self.last_use[: self.filled], self.clock, len(samples) - fresh)
        owners = self._owner[gone]
        self.slots[owners[owners >= 0]] = -1
        slots = np.concatenate([np.arange(self.filled, self.filled + fresh), gone])
        self.filled += fresh
        self.slots[samples[: len(slots)]] = slots
        self._owner[slots] = samples[: len(slots)]
        self.last_use[slots] = self.clock
        return slots

    def forget(self, samples: np.ndarray) -> None:
        """Free the slots of samples that each have one; `forget_oldest` returns these first."""
        slots = self.slots[samples]
        self.last_use[slots], self._owner[slots], self.slots[samples] = -1, -1, -1

    def rename(self, before: np.ndarray) -> None:
        """Renumber the first samples: ``before[m]`` becomes m; `before` is a permutation."""
        slots = self.slots[before]
        self.slots[: len(before)] = slots
        known = np.flatnonzero(slots >= 0)
        self._owner[slots[known]] = known

    def cut(
        self,
        keep: np.ndarray,  # int: columns that stay, ascending
        is_kept: np.ndarray,  # bool (n_names,): which samples stay active
    ) -> None:
        """Drop columns, and the rows of samples that are no longer active."""
        owners = self._owner[: self.filled]
        stays = (owners >= 0) & is_kept[owners]
        rows, kept = np.flatnonzero(stays), owners[stays]
        move_together(self._memory, self.rows.shape[1], rows, keep)
        last_use = self.last_use[rows]
        self.slots.fill(-1)
        self.slots[kept] = np.arange(len(kept))
        self._shape(len(keep), kept)
        self.last_use[: len(kept)] = last_use


@compiled
def move_together(
    memory: np.ndarray,  # (size,)
    width: int,
    rows: np.ndarray,  # int: the rows that are kept, ascending
    columns: np.ndarray,  # int: the columns that are kept, ascending
) -> None:
    """Move the kept values of rows of length `width` to the start of the memory."""
    n = len(columns)
    for m in range(len(rows)):
        # In place: rows and columns ascend, so no value is overwritten before it is read.
        source, target = rows[m] * width, m * n
        for k in range(n):
            memory[target + k] = memory[source + columns[k]]
