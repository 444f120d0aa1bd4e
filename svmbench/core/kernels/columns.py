"""Kernel columns for solvers that use each of them once and keep none, and products of a matrix.

A kernel matrix is symmetric, so that a column is a row, and the makers of rows serve here too:

- `MatrixColumns`: a matrix that is there;
- `DoubleColumns`: what a `KernelSource` gives, in float64;
- `RowColumns`: makers of float32 rows, by hundreds;
- `Float32Columns`: one RBF column at a time, in float32, at which makers of hundreds are slow.
  `DifferenceColumns` (dense inputs of few features) sum squared differences, and nothing cancels;
  `ProductColumns` (of more features) take one product of a matrix and a vector; `ScatterColumns`
  (sparse inputs) take the products of the features that the sample has.

`KernelProduct` multiplies the symmetric matrix by vectors: values on and right of its diagonal, in
blocks of rows, are each used twice. Every product computes the blocks beyond a memory budget again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.core.kernels.kernels import MIB, KernelFunction, KernelSource
from svmbench.core.kernels.lazy_matrix import difference_column
from svmbench.core.kernels.products import (
    BITS_MAX_FEATURES,
    LARGEST_GAMMA,
    gauss_single,
    is_binary,
    products_of_two_sparse,
    single_factor,
    squared_lengths,
)
from svmbench.core.kernels.rows import (
    BitRows,
    DenseRows,
    Rows,
    SourceRows,
    float32_rows,
)
from svmbench.core.numeric.arrays import central_row, csr_parts, raw

#: Up to so many samples the whole matrix is made once: it takes 8 MiB.
MATRIX_COLUMNS_MAX_SAMPLES = 1024

#: A tolerance of the gradient from which on single precision is tried.
FLOAT32_COLUMNS_MIN_TOL = 1e-4

#: From so many columns at a time on one product of matrices is faster than as many of vectors.
BLOCK_COLUMNS_MIN = 8

#: Up to so many dense features differences are faster than a product.
DIFFERENCE_COLUMNS_MAX_FEATURES = 40

#: Sparse inputs with a larger share of nonzeros are treated as dense.
SPARSE_COLUMNS_MAX_DENSITY = 0.2

#: Squares of larger numbers overflow in single precision.
FLOAT32_COLUMNS_MAX_INPUT = 1e15

#: Where `gauss_single` writes one row to.
FIRST_ROW = np.zeros(1, dtype=np.int64)


class Columns(Protocol):
    """A maker of kernel columns."""

    n_samples: int
    dtype: Any  # of the values
    matrix: np.ndarray | None  # (n_samples, n_samples): the whole matrix, where that is there
    in_pieces: bool  # whether `block` makes pieces of columns as cheaply as whole ones

    def column(self, i: int, out: np.ndarray) -> None:
        """Write column `i` to `out` (n_samples,)."""

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Write columns `B` at samples `start` to `stop` to `out` (len(B), stop - start)."""


class MatrixColumns:
    """Columns of a matrix that is there; see :class:`Columns`."""

    in_pieces = True

    def __init__(self, K: np.ndarray) -> None:
        self._K = raw(K)
        self.matrix: np.ndarray | None = self._K
        self.n_samples, self.dtype = len(K), K.dtype.type

    def column(self, i: int, out: np.ndarray) -> None:
        """Copy."""
        out[:] = self._K[i]

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Copy."""
        np.take(self._K[:, start:stop], B, axis=0, out=out)


class RowColumns:
    """Columns in float32 from what makes rows by hundreds; see :class:`Columns`."""

    matrix: np.ndarray | None = None
    dtype = np.float32
    in_pieces = True

    def __init__(self, rows: Rows) -> None:
        self._rows, self._columns = rows, rows.columns(None)
        self.n_samples = rows.n_samples
        self._places = np.arange(1)

    def column(self, i: int, out: np.ndarray) -> None:
        """Compute."""
        self.block(np.array([i]), 0, self.n_samples, out[np.newaxis])

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Compute."""
        if len(self._places) != len(B):
            self._places = np.arange(len(B))
        self._rows.fill(B, self._columns, start, stop, out, self._places)


class DoubleColumns:
    """Columns in float64, as a source gives them; see :class:`Columns`."""

    matrix: np.ndarray | None = None
    dtype = np.float64
    in_pieces = True

    def __init__(self, source: KernelSource) -> None:
        self.source, self.n_samples = source, source.n_samples

    def column(self, i: int, out: np.ndarray) -> None:
        """Compute."""
        out[:] = self.source.rows(np.array([i]))[0]

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Compute."""
        everyone = start == 0 and stop == self.n_samples
        out[:] = self.source.block(B, slice(None) if everyone else slice(start, stop))


class Float32Columns(ABC):
    """RBF columns in float32, one by one; see :class:`Columns`."""

    matrix: np.ndarray | None = None
    dtype = np.float32
    in_pieces = False
    n_samples: int

    @abstractmethod
    def column(self, i: int, out: np.ndarray) -> None:
        """Compute."""

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Compute whole columns: `start` to `stop` must be all samples."""
        for i, place in zip(B, out, strict=True):
            self.column(i, place)


class DifferenceColumns(Float32Columns):
    """Columns by squared differences."""

    def __init__(self, X: np.ndarray, gamma: float) -> None:
        self.n_samples = len(X)
        self._X = np.empty(X.shape[::-1], dtype=np.float32)
        np.subtract(X.T, central_row(X)[:, np.newaxis], out=self._X, casting="same_kind")
        self._factor = single_factor(gamma)

    def column(self, i: int, out: np.ndarray) -> None:
        """Subtract, square, sum and transform."""
        difference_column(self._X, i, self._factor, out)


def _transform(out: np.ndarray, lengths: np.ndarray, i: int, gamma: float) -> None:
    """Turn inner products with sample `i` into its column, in place, float32 of shape (1, n)."""
    gauss_single(out, lengths[i : i + 1], lengths, gamma, out, FIRST_ROW)


class ProductColumns(Float32Columns):
    """Columns by one product of a matrix and a vector."""

    def __init__(self, X: np.ndarray, gamma: float) -> None:
        self.n_samples, self._gamma = len(X), gamma
        self._X = np.empty(X.shape, dtype=np.float32)
        np.subtract(X, central_row(X), out=self._X, casting="same_kind")
        self._lengths = raw(squared_lengths(self._X))

    def column(self, i: int, out: np.ndarray) -> None:
        """Multiply and transform."""
        np.matmul(self._X, self._X[i], out=out)
        _transform(out[np.newaxis], self._lengths, i, self._gamma)


class ScatterColumns(Float32Columns):
    """Columns from sparse inputs."""

    def __init__(self, X: sp.csr_array, gamma: float) -> None:
        self.n_samples, self._gamma = X.shape[0], gamma
        rows = sp.csr_array(X, dtype=np.float32)
        self._rows, self._features = csr_parts(rows), csr_parts(sp.csr_array(rows.T))
        self._lengths = raw(squared_lengths(rows))

    def column(self, i: int, out: np.ndarray) -> None:
        """Multiply by the sample's non-zeros and transform."""
        row = out[np.newaxis]
        products_of_two_sparse(*self._rows, i, *self._features, row)
        _transform(row, self._lengths, i, self._gamma)


def float32_columns(X: Any, gamma: float) -> Float32Columns | None:
    """Return the fastest maker of RBF columns one by one; None if float32 can't hold the inputs."""
    n, d = X.shape
    if sp.issparse(X):
        if X.nnz < SPARSE_COLUMNS_MAX_DENSITY * n * d:
            large = np.abs(X.data).max(initial=0.0) > FLOAT32_COLUMNS_MAX_INPUT
            return None if large else ScatterColumns(X, gamma)
        X = X.toarray()
    if np.abs(X).max(initial=0.0) > FLOAT32_COLUMNS_MAX_INPUT:
        return None
    return (
        DifferenceColumns(X, gamma)
        if d <= DIFFERENCE_COLUMNS_MAX_FEATURES
        else ProductColumns(X, gamma)
    )


def columns_of(source: KernelSource, tol: float, t: int = 1) -> Columns:
    """Return the fastest columns that serve a tolerance of the gradient, `t` columns at a time."""
    if source.is_stored or source.n_samples <= MATRIX_COLUMNS_MAX_SAMPLES:
        K = source.whole(np.inf)
        assert K is not None
        return MatrixColumns(K)
    inputs = source.inputs()
    if inputs is None or tol < FLOAT32_COLUMNS_MIN_TOL:
        return DoubleColumns(source)
    X, function = inputs
    if function.name != "rbf" or function.gamma > LARGEST_GAMMA:
        return DoubleColumns(source)
    if X.shape[1] <= BITS_MAX_FEATURES and is_binary(X):
        return RowColumns(BitRows(X, function))
    one_by_one = float32_columns(X, function.gamma)
    if one_by_one is None:
        return DoubleColumns(source)
    if t >= BLOCK_COLUMNS_MIN and isinstance(one_by_one, ProductColumns):
        return RowColumns(DenseRows(X, function))
    return one_by_one


def warm_up_columns() -> list[Columns]:
    """Load or compile every kind of columns; return them, over four samples."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    wide = np.tile(X, (1, DIFFERENCE_COLUMNS_MAX_FEATURES))
    sparse = sp.csr_array(np.pad(X, ((0, 0), (0, 30))))
    function = KernelFunction("rbf", 1.0)
    makers = [float32_columns(each, 1.0) for each in (X, wide, sparse)]
    K = function.between(X, X)
    kinds: list[Columns] = [
        MatrixColumns(K),
        MatrixColumns(K.astype(np.float32)),
        DoubleColumns(KernelSource.from_inputs(X, function)),
        RowColumns(BitRows(X, function)),
        RowColumns(DenseRows(X, function)),
        *(maker for maker in makers if maker is not None),
    ]
    for columns in kinds:
        columns.block(np.arange(2), 0, len(X), np.empty((2, len(X)), dtype=columns.dtype))
    return kinds


#: Rows of a block, and columns of the tiles into which a product divides it. A tile stays in the
#: CPU's cache between its two products.
BLOCK_ROWS, BLOCK_TILE = 512, 1024

#: Largest size, zeros included, of sparse inputs that double-precision products make dense.
DENSE_SOURCE_MAX_VALUES = 1 << 25


def dense_source(source: KernelSource) -> KernelSource:
    """Return a source over dense inputs if they are small enough: their products are cheaper."""
    inputs = source.inputs()
    if inputs is None or not sp.issparse(inputs[0]):
        return source
    X, function = inputs
    if X.shape[0] * X.shape[1] > DENSE_SOURCE_MAX_VALUES:
        return source
    return KernelSource.from_inputs(X.toarray(), function)


class KernelProduct:
    """A kernel matrix for products; `values_made` is the number of kernel values computed."""

    def __init__(
        self,
        source: KernelSource,
        cache_mb: float,  # budget for kernel values, MiB
        # float32 or float64, of the values and the products; sums over tiles are in float64
        dtype: Any,
    ) -> None:
        self.n_samples, self.dtype = source.n_samples, dtype
        self.values_made = self.products = 0
        self._left = int(cache_mb * MIB)
        self._kept: dict[int, np.ndarray] = {}
        self._matrix = source.whole(np.inf) if source.is_stored else None
        if self._matrix is None:
            is_float32 = dtype is np.float32
            self._rows = (
                float32_rows(source) if is_float32 else SourceRows(dense_source(source), dtype)
            )
            self._columns = self._rows.columns(None)

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row of each block, and its values from the diagonal on."""
        n = self.n_samples
        for start in range(0, n, BLOCK_ROWS):
            block = self._kept.get(start)
            if block is None:
                some = np.arange(start, min(start + BLOCK_ROWS, n))
                block = np.empty((len(some), n - start), dtype=self.dtype)
                self._rows.fill(some, self._columns, start, n, block, some - start)
                self.values_made += block.size
                if block.nbytes <= self._left:
                    self._left -= block.nbytes
                    self._kept[start] = block
            yield start, block

    def times(self, v: np.ndarray) -> np.ndarray:
        """Return the matrix times `v`, float64."""
        self.products += 1
        if self._matrix is not None:
            return np.asarray(self._matrix @ v.astype(self._matrix.dtype), dtype=np.float64)
        out = np.zeros(v.shape)
        given = v.astype(self.dtype)
        for start, block in self._blocks():
            height, width = block.shape
            block_rows = slice(start, start + height)
            out[block_rows] += block[:, :height] @ given[block_rows]
            for left in range(height, width, BLOCK_TILE):
                tile = block[:, left : left + BLOCK_TILE]
                others = slice(start + left, start + left + tile.shape[1])
                out[block_rows] += tile @ given[others]
                out[others] += tile.T @ given[block_rows]
        return out
