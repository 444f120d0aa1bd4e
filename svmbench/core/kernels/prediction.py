"""Sums over points, sum_j c_j K(z_j, x), at many rows x: how every kernel model is evaluated.

What is asked for is made in tiles of rows by points that stay in the second-level cache: kernel
values of a tile, and at once their products with the coefficients. Who makes the kernel values of
a tile follows from the inputs:

- nobody, for the linear kernel, where the sum is one product with the vector w, and for values that
  are handed in;
- `BitTiles`, where all values on both sides are 0 or one common other value: an inner product is a
  population count, a kernel value a look into a table of doubles;
- `DenseTiles`, for dense inputs, and sparse ones of so many non-zeros that a product of dense
  matrices is faster: one such product a tile. RBF values depend on differences alone: inputs far
  from the origin are moved by a central point, and where rounding of the products would still show
  in the values, differences are squared and summed instead;
- `SparseTiles`: the products of a sparse row with the points, over its non-zeros alone.

Rows are taken in blocks of a fixed height, so that the values are the same, bit by bit, whatever
the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled_sums
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernels.kernels import KernelFunction, ThreadPool
from svmbench.core.kernels.products import (
    BITS_MAX_FEATURES,
    common_value,
    count_pieces,
    gauss_double,
    gauss_single,
    pack,
    products_of_sparse,
    products_of_two_sparse,
    squared_lengths,
    subtract_half_distances,
    table_of,
    without_empty_columns,
)
from svmbench.core.numeric.arrays import central_row, csr_parts, in_fours, raw

#: Rows and points of a tile: kernel values of 1 MiB. With few points it has more rows, up to so
#: many times as many.
TILE_ROWS, TILE_POINTS, TILE_MAX_HEIGHTS = 128, 1024, 16

#: Bytes that the points may take as a dense array, beyond one tile's.
DENSE_POINTS_BYTES = 1 << 26

#: How precisely kernel values may be asked for.
PRECISIONS = ("double", "single")

#: What rounding of inner products may change a kernel value by, by precision.
TILE_MAX_ROUNDING = {np.float64: 1e-11, np.float32: 2e-6}

#: Up to so much of it, in double precision, inputs are left where they are: equal distances that
#: symmetry makes stay equal.
UNMOVED_MAX_ROUNDING = 1e-13

#: Differences are squared in single precision up to so many features; the product of matrices in
#: double precision is faster with more.
DIFFERENCE_TILES_MAX_FEATURES = 48

#: Products up to here round as numbers well within the range of float32.
SINGLE_MAX_ROUNDING = 1e23

#: Nanoseconds that a kernel value takes before its exponential, measured on one core with AVX-512:
#: in a dense product, at least and a feature; in a sparse one, a product of two non-zeros; a
#: non-zero of a row that meets dense points.
DENSE_LEAST, DENSE_FEATURE, SPARSE_PRODUCT, SPARSE_RUN = 0.45, 0.03, 1.0, 0.25


def require_precision(precision: str) -> None:
    """Raise ValueError unless `precision` is one of `PRECISIONS`."""
    if precision not in PRECISIONS:
        msg = f"precision must be 'double' or 'single', got precision={precision!r}"
        raise ValueError(msg)


def weighted_sums(
    function: KernelFunction,
    points: Any,  # (n_points, n_features), dense or CSR: the z_j; finite
    coefficients: np.ndarray,  # (n_points,): the c_j
    X: Any,  # (n_samples, n_features), dense or CSR; finite
    *,
    precision: str = "double",  # "double" or "single", of the kernel values; sums are double
    n_jobs: int = 1,  # threads; -1: one a processor; the sums do not depend on it
) -> np.ndarray:
    """Return sum_j c_j K(z_j, x) for each row x of `X`, shape (n_samples,).

    Double is right to about 1e-15 of a value, or 1e-11 in all where the rounding of inner products
    counts. Single is asked of dense inputs with the RBF kernel alone: a value is right to 2e-6,
    most to 2e-7. Where float32 could not keep that, and everywhere else, values are double.
    """
    sums = np.zeros(X.shape[0])
    if function.name == "linear" and len(coefficients):
        points, X = without_empty_columns(points, X)
        return np.asarray(X @ (points.T @ coefficients))
    add_up(function, points, X, OneSum(coefficients, sums), precision=precision, n_jobs=n_jobs)
    return sums


def add_up(
    function: KernelFunction,  # as for :func:`weighted_sums`
    points: Any,
    X: Any,
    sums: KernelSums,
    *,
    precision: str = "double",
    n_jobs: int = 1,
) -> None:
    """Hand the kernel values of the rows of `X` and the points to `sums`."""
    if not (X.shape[0] and points.shape[0]):
        return
    if function.name not in KERNELS:
        # Values that are handed in: rows of a matrix, of which points are columns.
        add_given_rows(sums, X.shape[0], lambda rows: np.asarray(function.between(X[rows], points)))
        return
    points, X = without_empty_columns(points, X)
    with ThreadPool(n_jobs) as pool:
        for first, tiles in _makers(function, points, X, precision):
            height = TILE_ROWS * min(TILE_MAX_HEIGHTS, max(1, TILE_POINTS // tiles.n_points))
            height = min(height, sums.tallest)
            pool.share(X.shape[0], height, partial(_add_tiles, tiles, first, sums, height))


def add_given_rows(
    sums: KernelSums,
    n_rows: int,
    values: Callable[[slice], Any],  # returns those of some rows, (m, n_points)
) -> None:
    """Hand given values with all points to `sums`, a block of rows at a time."""
    for top in range(0, n_rows, sums.tallest):
        bottom = min(top + sums.tallest, n_rows)
        part = sums.begin(top, bottom)
        sums.add(part, 0, values(slice(top, bottom)))
        sums.end(part, top, bottom)


def _add_tiles(
    tiles: Tiles, offset: int, sums: KernelSums, height: int, start: int, stop: int
) -> None:
    """Add the part of some points to the sums of the rows from `start` to `stop`."""
    scratch = np.empty(height * min(TILE_POINTS, tiles.n_points), dtype=tiles.dtype)
    for top in range(start, stop, height):
        bottom = min(top + height, stop)
        rows, part = tiles.rows(top, bottom), sums.begin(top, bottom)
        for first in range(0, tiles.n_points, TILE_POINTS):
            end = min(first + TILE_POINTS, tiles.n_points)
            K = scratch[: (bottom - top) * (end - first)].reshape(bottom - top, end - first)
            tiles.fill(rows, first, end, K)
            sums.add(part, offset + first, K)
        sums.end(part, top, bottom)


class KernelSums(ABC):
    """An adder of kernel values, of some rows at a time."""

    tallest = 1 << 62  # the most rows at a time; by default any number

    @abstractmethod
    def begin(self, top: int, bottom: int) -> Any:
        """Start the sums of the rows from `top` to `bottom`; return the first argument of `add`."""

    @abstractmethod
    def add(
        self,
        part: Any,  # from `begin`
        first: int,  # a multiple of ``TILE_POINTS``
        # (n_rows, at most TILE_POINTS): kernel values, in either precision; from `add_given_rows`
        # with all points at once
        K: np.ndarray,
    ) -> None:
        """Add the part of the points from `first` on."""

    def end(self, part: Any, top: int, bottom: int) -> None:  # noqa: B027 - nothing by default
        """End the rows from `top` to `bottom`, once or for each large part of the points."""


@compiled_sums
def add_products(K: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """Add ``K @ coefficients`` to `out`, K (m, n) in single precision and the sums in double."""
    for i in range(len(out)):
        row, total = K[i], 0.0
        for j in range(len(coefficients)):
            total += coefficients[j] * np.float64(row[j])
        out[i] += total


class OneSum(KernelSums):
    """One sum at each row; see :class:`KernelSums`."""

    def __init__(
        self,
        coefficients: np.ndarray,  # (n_points,)
        out: np.ndarray,  # (n_rows,): what is added to
    ) -> None:
        self.coefficients, self.out = np.ascontiguousarray(coefficients), out

    def begin(self, top: int, bottom: int) -> np.ndarray:
        """Return the place of the sums; see :class:`KernelSums`."""
        return self.out[top:bottom]

    def add(self, part: np.ndarray, first: int, K: np.ndarray) -> None:
        """Add products; see :class:`KernelSums`."""
        coefficients = raw(self.coefficients[first : first + K.shape[1]])
        if K.dtype == np.float32:
            add_products(K, coefficients, part)
        else:
            part += K @ coefficients


class Tiles(Protocol):
    """A maker of the kernel values of rows and points, a tile at a time."""

    n_points: int
    dtype: Any  # of the values

    def rows(self, top: int, bottom: int) -> Any:
        """Return the rows from `top` to `bottom` in the form that `fill` wants."""

    def fill(self, rows: Any, first: int, end: int, out: np.ndarray) -> None:
        """Write the values of `rows` with the points from `first` to `end` to `out`."""


def _makers(
    function: KernelFunction, points: Any, X: Any, precision: str
) -> Iterator[tuple[int, Tiles]]:
    """Yield makers of tiles for parts of the points, and where each part begins."""
    n_points, n_features = points.shape
    if n_features <= BITS_MAX_FEATURES:
        value = common_value(points)
        if value is not None and common_value(X) == value:
            yield 0, BitTiles(function, points, X, value)
            return
    if sp.issparse(X) and _sparse_cost(X, points) < DENSE_LEAST + DENSE_FEATURE * n_features:
        yield 0, SparseTiles(function, points, X)
        return
    height = max(1, DENSE_POINTS_BYTES // (8 * TILE_POINTS * max(1, n_features))) * TILE_POINTS
    for first in range(0, n_points, height):
        yield first, DenseTiles(function, points[first : first + height], X, precision)


def _sparse_cost(X: sp.csr_array, points: Any) -> float:
    """Return about how many nanoseconds the product of a sparse row and a point takes."""
    if not sp.issparse(points):
        return SPARSE_RUN * X.nnz / X.shape[0]
    meetings = _counts(X) @ _counts(points)
    return SPARSE_PRODUCT * float(meetings) / X.shape[0] / points.shape[0]


def _counts(X: sp.csr_array) -> np.ndarray:
    """Return the number of stored values of each column, as floats."""
    return np.bincount(X.indices, minlength=X.shape[1]).astype(np.float64)


class BitTiles:
    """From inputs of two values; see :class:`Tiles`."""

    dtype = np.float64

    def __init__(
        self,
        function: KernelFunction,  # as for :func:`weighted_sums`
        points: Any,
        X: Any,
        value: float,  # the one value other than 0
    ) -> None:
        self.n_points = points.shape[0]
        self.differing = function.name == "rbf"
        self.table = table_of(function, points.shape[1], value)
        self.words, self.columns = pack(X), np.ascontiguousarray(pack(points).T)
        self.places = np.arange(TILE_MAX_HEIGHTS * TILE_ROWS)

    def rows(self, top: int, bottom: int) -> np.ndarray:
        """Return words; see :class:`Tiles`."""
        return self.words[top:bottom]

    def fill(self, rows: np.ndarray, first: int, end: int, out: np.ndarray) -> None:
        """Count and look up; see :class:`Tiles`."""
        count_pieces(
            rows, self.columns, first, end, self.differing, self.table, out, self.places, 0
        )


class SparseTiles:
    """From sparse rows, and points that are sparse too or dense; see :class:`Tiles`."""

    dtype = np.float64

    def __init__(
        self,
        function: KernelFunction,  # as for :func:`weighted_sums`; X is CSR
        points: Any,
        X: sp.csr_array,
    ) -> None:
        self.function, self.n_points = function, points.shape[0]
        self.parts = csr_parts(X)
        self.row_squares, self.lengths = raw(squared_lengths(X)), raw(squared_lengths(points))
        self.is_sparse = sp.issparse(points)
        if self.is_sparse:
            # By features, tile for tile: what a non-zero meets lies side by side.
            self.others = [
                csr_parts(sp.csr_array(points[first : first + TILE_POINTS].T))
                for first in range(0, self.n_points, TILE_POINTS)
            ]
        else:
            self.columns = raw(np.ascontiguousarray(points.T))

    def rows(self, top: int, bottom: int) -> tuple[int, np.ndarray]:
        """Return the first row and squared lengths; see :class:`Tiles`."""
        return top, self.row_squares[top:bottom]

    def fill(self, rows: tuple[int, np.ndarray], first: int, end: int, out: np.ndarray) -> None:
        """Multiply by non-zeros and transform; see :class:`Tiles`."""
        top, row_squares = rows
        if self.is_sparse:
            products_of_two_sparse(*self.parts, top, *self.others[first // TILE_POINTS], out)
        else:
            products_of_sparse(*self.parts, top, self.columns, first, out)
        _transform(self.function, out, row_squares, self.lengths[first:end])


class DenseTiles:
    """From dense inputs, or sparse ones that are made dense by parts; see :class:`Tiles`."""

    def __init__(self, function: KernelFunction, points: Any, X: Any, precision: str) -> None:
        self.function, self.X, self.n_points = function, X, points.shape[0]
        self.given = points
        self.points = _dense(points)
        self.is_rbf = function.name == "rbf"
        self.dtype: Any = np.float64
        self.lengths = raw(squared_lengths(self.points))
        self.shift = None
        single = self.is_rbf and precision == "single"
        if self.is_rbf and (
            single or self._rounding(self.lengths, np.float64) > UNMOVED_MAX_ROUNDING
        ):
            # By a point near the mean, not the mean: numbers of few digits keep them.
            self.shift = central_row(self.points)
            self.points = self.points - self.shift
            self.lengths = raw(squared_lengths(self.points))
        if single:
            self._take_single()

    def _rounding(self, lengths: np.ndarray, dtype: Any) -> float:
        """Return by how much rounding of products may move a value, by squared lengths."""
        return 2.0 * self.function.gamma * float(np.max(lengths)) * float(np.finfo(dtype).eps)

    def _take_single(self) -> None:
        """Go over to float32, if it can hold what the kernel values need."""
        rounding, is_exact = self._rounding(self.lengths, np.float32), _is_single(self.points)
        for top in range(0, self.X.shape[0], TILE_ROWS):
            A = self._moved(top, top + TILE_ROWS)
            rounding = max(rounding, self._rounding(squared_lengths(A), np.float32))
            is_exact = is_exact and _is_single(A)
        bound, unit = TILE_MAX_ROUNDING[np.float32], float(np.finfo(np.float32).eps)
        # A coordinate's rounding moves a value by at most sqrt(2 gamma) / e^(1/2) times it.
        holds = is_exact or np.sqrt(rounding * unit) < bound
        few = self.points.shape[1] <= DIFFERENCE_TILES_MAX_FEATURES
        if rounding < bound or (few and holds and rounding < SINGLE_MAX_ROUNDING):
            self.dtype = np.float32
            self.points = self.points.astype(np.float32)
            self.lengths = raw(squared_lengths(self.points))

    def _moved(self, top: int, bottom: int) -> np.ndarray:
        """Return some rows as a dense array in double precision, moved as the points are."""
        A = _dense(self.X[top:bottom])
        return A if self.shift is None else A - self.shift

    @cached_property
    def columns(self) -> np.ndarray:
        """The points by features, of which zeros make a multiple of four; for differences."""
        # In double as they were given: between far places a move takes digits.
        points = self.points if self.dtype == np.float32 else _dense(self.given)
        return np.ascontiguousarray(in_fours(points, 1).T)

    def rows(self, top: int, bottom: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return inputs, squared lengths, and whether to take differences; see :class:`Tiles`."""
        A = np.ascontiguousarray(self._moved(top, bottom), dtype=self.dtype)
        row_squares = squared_lengths(A)
        if not self.is_rbf:
            return A, row_squares, False
        rounding = max(self._rounding(each, self.dtype) for each in (row_squares, self.lengths))
        apart = not rounding < TILE_MAX_ROUNDING[self.dtype]
        if apart:
            A = A if self.dtype == np.float32 else _dense(self.X[top:bottom])
            A = np.ascontiguousarray(in_fours(in_fours(A, 1), 0))
        return A, row_squares, apart

    def fill(
        self, rows: tuple[np.ndarray, np.ndarray, bool], first: int, end: int, out: np.ndarray
    ) -> None:
        """Multiply or subtract, and transform; see :class:`Tiles`."""
        A, row_squares, apart = rows
        if not apart:
            np.matmul(A, self.points[first:end].T, out=out)
            _transform(self.function, out, row_squares, self.lengths[first:end])
            return
        halves = out if len(A) == len(out) else np.empty((len(A), end - first), dtype=self.dtype)
        subtract_half_distances(A, self.columns, first, self.dtype(0.5), halves)
        if halves is not out:
            out[:] = halves[: len(out)]
        _transform(
            self.function, out, np.zeros_like(row_squares), np.zeros_like(self.lengths[first:end])
        )


def _transform(function: KernelFunction, P: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Replace inner products by kernel values, in place; a and b are squared lengths."""
    if function.name != "rbf":
        P[:] = function.of_products(P)
    elif P.dtype == np.float32:
        gauss_single(P, raw(a), raw(b), function.gamma, P, np.arange(len(P)))
    else:
        gauss_double(P, raw(a), raw(b), function.gamma)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _is_single(X: np.ndarray) -> bool:
    """Return True if float32 holds all values of `X` as they are."""
    with np.errstate(over="ignore"):
        return bool(np.all(X.astype(np.float32) == X))


def warm_up_prediction() -> None:
    """Call every maker of tiles once, in each precision."""
    X = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    wide = np.pad(X, ((0, 0), (0, 60)))
    function, coefficients = KernelFunction("rbf", 1.0), np.ones(5)
    for some in (X, X * 1e9, wide, X > 0.5):
        some = some.astype(np.float64)
        for precision in PRECISIONS:
            weighted_sums(function, some, coefficients, some, precision=precision)
    rows = sp.csr_array(wide)
    for points in (wide, rows, rows > 0.5):
        points = points.astype(np.float64)
        weighted_sums(function, points, coefficients, rows)
