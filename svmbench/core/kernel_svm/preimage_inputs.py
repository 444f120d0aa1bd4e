"""Sums over samples near a free point, for the search for pre-images.

For weights g_i of some samples and a point z, with k_i = exp(-gamma ||x_i - z||^2):

    pull(z) = sum_i g_i k_i x_i   and   height(z) = sum_i g_i k_i.

A piece of samples is read for both sums while it is in the cache. Dense inputs are kept in float32,
shifted to a central sample so that distances lose no digits. Sparse inputs with few zeros are kept
as dense ones, unshifted (products of whole vectors are faster than non-zeros one by one); other
sparse inputs are read as they are. Points are in the shifted coordinates; `to_points` shifts back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.kernels.columns import SINGLE_COLUMNS_MAX_INPUT, SPARSE_COLUMNS_MAX_DENSITY
from svmbench.core.kernels.products import (
    LARGEST_GAMMA,
    gauss_of_squares,
    single_factor,
    squared_lengths,
)
from svmbench.core.kernels.rows import COPY_ROWS
from svmbench.core.numeric.arrays import central_row, csr_parts, raw

#: Samples of a piece: their kernel values stay in the first-level cache.
NEAR_PIECE = 512

#: Dense input values of a piece, which stay in the second-level cache between two products.
CACHED_VALUES = 1 << 17


@compiled_sums
def weigh_by_kernel(
    values: np.ndarray,  # float32 (m, n): products of m points with n samples
    lengths: np.ndarray,  # (n,): squared lengths of samples
    own: np.ndarray,  # (m,): points
    weights: np.ndarray,  # float32 (n,)
    factor: np.float32,
    power: np.ndarray,  # int32 (n,): scratch
    height: np.ndarray,  # (m,)
) -> None:
    """Turn inner products into weighted kernel values, in place, and add these to the heights."""
    n = len(lengths)
    squares = np.empty(n, dtype=np.float32)
    for q in range(len(values)):
        row, length, total = values[q], own[q], 0.0
        for k in range(n):
            squares[k] = length + lengths[k] - np.float32(2.0) * row[k]
        gauss_of_squares(squares, factor, power, row)
        for k in range(n):
            row[k] *= weights[k]
            total += np.float64(row[k])
        height[q] += total


@compiled_sums
def column_dense(
    X: np.ndarray, lengths: np.ndarray, z: np.ndarray, factor: np.float32, out: np.ndarray
) -> None:
    """Write the kernel values of a point with all dense samples."""
    n, d = X.shape
    squares, power = (
        np.empty(NEAR_PIECE, dtype=np.float32),
        np.empty(NEAR_PIECE, dtype=np.int32),
    )
    own = np.float32(0.0)
    for j in range(d):
        own += z[j] * z[j]
    for first in range(0, n, NEAR_PIECE):
        m = min(NEAR_PIECE, n - first)
        for k in range(m):
            x = X[first + k]
            product = np.float32(0.0)
            for j in range(d):
                product += x[j] * z[j]
            squares[k] = own + lengths[first + k] - np.float32(2.0) * product
        gauss_of_squares(squares[:m], factor, power[:m], out[first : first + m])


class WeightedSamples(NamedTuple):
    """Some CSR samples with weights, one behind the other."""

    values: np.ndarray  # float32: non-zeros; empty if all of them are 1
    features: np.ndarray  # int32: their features
    ends: np.ndarray  # int (n,): the end of each sample in both
    lengths: np.ndarray  # (n,): squared lengths
    weights: np.ndarray  # (n,)


@compiled
def copy_rows(
    data: np.ndarray, indices: np.ndarray, starts: np.ndarray, rows: np.ndarray, to: WeightedSamples
) -> None:
    """Write the non-zeros of some CSR samples to `to`."""
    values, features, ends = to.values, to.features, to.ends
    n = 0
    for k in range(len(rows)):
        i = rows[k]
        for p in range(starts[i], starts[i + 1]):
            features[n] = indices[p]
            if len(values) > 0:
                values[n] = data[p]
            n += 1
        ends[k] = n


@compiled
def add_sparse(
    samples: WeightedSamples, z: np.ndarray, factor: np.float32, pull: np.ndarray
) -> float:
    """Add the pull of CSR samples to a point, shape (n_features,); return its height."""
    values, features, ends, lengths, weights = samples
    kernel, power = (
        np.empty(NEAR_PIECE, dtype=np.float32),
        np.empty(NEAR_PIECE, dtype=np.int32),
    )
    squares = np.empty(NEAR_PIECE, dtype=np.float32)
    of_ones = len(values) == 0
    own, height = 0.0, 0.0
    for j in range(len(z)):
        own += z[j] * z[j]
    top = np.uint64(0)
    for first in range(0, len(ends), NEAR_PIECE):
        m = min(NEAR_PIECE, len(ends) - first)
        start = top
        for k in range(m):
            product, end = 0.0, np.uint64(ends[first + k])
            if of_ones:
                for p in range(start, end):
                    product += z[np.uint32(features[p])]
            else:
                for p in range(start, end):
                    product += np.float64(values[p]) * z[np.uint32(features[p])]
            squares[k] = np.float32(own + lengths[first + k] - 2.0 * product)
            start = end
        gauss_of_squares(squares[:m], factor, power[:m], kernel[:m])
        start = top
        for k in range(m):
            weight, end = weights[first + k] * np.float64(kernel[k]), np.uint64(ends[first + k])
            height += weight
            if of_ones:
                for p in range(start, end):
                    pull[np.uint32(features[p])] += weight
            else:
                for p in range(start, end):
                    pull[np.uint32(features[p])] += weight * np.float64(values[p])
            start = end
        top = start
    return height


@compiled
def add_sparse_of_four(
    samples: WeightedSamples,
    Z: np.ndarray,  # (n_features, 4)
    factor: np.float32,
    pull: np.ndarray,  # (n_features, 4)
    height: np.ndarray,  # (4,)
) -> None:
    """Add the pulls and heights of four points at once, for one pass over the samples."""
    values, features, ends, lengths, weights = samples
    kernel = np.empty((4, NEAR_PIECE), dtype=np.float32)
    squares, power = (
        np.empty((4, NEAR_PIECE), dtype=np.float32),
        np.empty(NEAR_PIECE, dtype=np.int32),
    )
    of_ones = len(values) == 0
    own = np.zeros(4)
    for j in range(len(Z)):
        for q in range(4):
            own[q] += Z[j, q] * Z[j, q]
    top, v = np.uint64(0), 1.0
    for first in range(0, len(ends), NEAR_PIECE):
        m = min(NEAR_PIECE, len(ends) - first)
        start = top
        for k in range(m):
            a, b, c, d, end = 0.0, 0.0, 0.0, 0.0, np.uint64(ends[first + k])
            for p in range(start, end):
                i = np.uint32(features[p])
                if not of_ones:
                    v = np.float64(values[p])
                a += v * Z[i, 0]
                b += v * Z[i, 1]
                c += v * Z[i, 2]
                d += v * Z[i, 3]
            length = lengths[first + k]
            squares[0, k] = np.float32(own[0] + length - 2.0 * a)
            squares[1, k] = np.float32(own[1] + length - 2.0 * b)
            squares[2, k] = np.float32(own[2] + length - 2.0 * c)
            squares[3, k] = np.float32(own[3] + length - 2.0 * d)
            start = end
        for q in range(4):
            gauss_of_squares(squares[q, :m], factor, power[:m], kernel[q, :m])
        start = top
        for k in range(m):
            g, end = weights[first + k], np.uint64(ends[first + k])
            a, b = g * np.float64(kernel[0, k]), g * np.float64(kernel[1, k])
            c, d = g * np.float64(kernel[2, k]), g * np.float64(kernel[3, k])
            height[0] += a
            height[1] += b
            height[2] += c
            height[3] += d
            for p in range(start, end):
                i = np.uint32(features[p])
                if not of_ones:
                    v = np.float64(values[p])
                pull[i, 0] += v * a
                pull[i, 1] += v * b
                pull[i, 2] += v * c
                pull[i, 3] += v * d
            start = end
        top = start


@compiled
def column_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    z: np.ndarray,
    factor: np.float32,
    out: np.ndarray,
) -> None:
    """Write the kernel values of a point with all CSR samples."""
    squares, power = (
        np.empty(NEAR_PIECE, dtype=np.float32),
        np.empty(NEAR_PIECE, dtype=np.int32),
    )
    n, own = len(lengths), 0.0
    for j in range(len(z)):
        own += z[j] * z[j]
    for first in range(0, n, NEAR_PIECE):
        m = min(NEAR_PIECE, n - first)
        for k in range(m):
            i = first + k
            product = 0.0
            for p in range(np.uint32(starts[i]), np.uint32(starts[i + 1])):
                product += data[p] * z[np.uint32(indices[p])]
            squares[k] = np.float32(own + lengths[i] - 2.0 * product)
        gauss_of_squares(squares[:m], factor, power[:m], out[first : first + m])


class DenseSelected:
    """Maker of sums over some weighted dense samples."""

    def __init__(
        self,
        X: np.ndarray,  # float32 (n, n_features)
        lengths: np.ndarray,  # float32 (n,): their squared lengths
        weights: np.ndarray,  # (n,)
        factor: np.float32,
    ) -> None:
        self._X, self._lengths, self._factor = X, lengths, factor
        self._weights = weights.astype(np.float32)
        self._piece = max(NEAR_PIECE, CACHED_VALUES // max(1, X.shape[1]))

    def sums(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pulls (m, n_features) and heights (m,) of points (m, n_features)."""
        points = np.ascontiguousarray(Z, dtype=np.float32)
        own = squared_lengths(points)
        pull, height = np.zeros(Z.shape), np.zeros(len(Z))
        for first in range(0, len(self._X), self._piece):
            piece = slice(first, first + self._piece)
            X = self._X[piece]
            values = np.matmul(points, X.T)
            power = np.empty(values.shape[1], dtype=np.int32)
            weigh_by_kernel(
                values, self._lengths[piece], own, self._weights[piece], self._factor, power, height
            )
            pull += np.matmul(values, X)
        return pull, height


class SparseSelected:
    """Maker of sums over some weighted CSR samples.

    The samples are copied to float32, without values where all non-zeros are 1: each sum reads
    them twice, and a pre-image takes about twenty sums.
    """

    def __init__(
        self,
        X: SparseSums,  # all samples
        rows: np.ndarray,  # (n,): the samples that are summed over
        weights: np.ndarray,  # (n,): their weights
    ) -> None:
        data, indices, starts = X.parts
        n_values = int(np.sum(starts[rows + 1] - starts[rows]))
        self._samples = WeightedSamples(
            np.empty(0 if X.is_of_ones else n_values, dtype=np.float32),
            np.empty(n_values, dtype=np.int32),
            np.empty(len(rows), dtype=np.int64),
            X.lengths[rows],
            raw(weights),
        )
        copy_rows(data, indices, starts, raw(rows), self._samples)
        self._factor = X.factor

    def sums(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pulls (m, n_features) and heights (m,) of points (m, n_features)."""
        pull, height = np.zeros(Z.shape), np.zeros(len(Z))
        for first in range(0, len(Z) - 3, 4):
            four = slice(first, first + 4)
            across, pulls = raw(np.ascontiguousarray(Z[four].T)), np.zeros((Z.shape[1], 4))
            add_sparse_of_four(self._samples, across, self._factor, pulls, height[four])
            pull[four] = pulls.T
        for q in range(len(Z) - len(Z) % 4, len(Z)):
            height[q] = add_sparse(self._samples, raw(Z[q]), self._factor, pull[q])
        return pull, height


class DenseSums:
    """Maker of sums over the dense samples of one problem."""

    def __init__(
        self,
        X: Any,  # (n_samples, n_features): a CSR matrix is copied to a dense array
        gamma: float,
    ) -> None:
        shifted = np.empty(X.shape, dtype=np.float32)
        if sp.issparse(X):
            self._shift = np.zeros(X.shape[1])
            for top in range(0, X.shape[0], COPY_ROWS):
                shifted[top : top + COPY_ROWS] = X[top : top + COPY_ROWS].toarray()
        else:
            self._shift = central_row(X)
            np.subtract(X, self._shift, out=shifted, casting="same_kind")
        self._X, self._lengths = raw(shifted), raw(squared_lengths(shifted))
        self._factor = single_factor(gamma)

    def point(self, i: int) -> np.ndarray:
        """Return sample `i` as a point, float64 of shape (n_features,)."""
        return self._X[i].astype(np.float64)

    def to_points(self, Z: np.ndarray) -> np.ndarray:
        """Return points (m, n_features) in the coordinates of the inputs."""
        return Z + self._shift

    def select(self, rows: np.ndarray, weights: np.ndarray) -> Selected:
        """Return the maker of sums over some samples (n,) with weights (n,)."""
        return DenseSelected(self._X[rows], self._lengths[rows], weights, self._factor)

    def column(self, z: np.ndarray, out: np.ndarray) -> None:
        """Write the kernel values of a point with all samples to `out`, float32 (n_samples,)."""
        column_dense(self._X, self._lengths, raw(z.astype(np.float32)), self._factor, out)


class SparseSums:
    """Maker of sums over the CSR samples of one problem."""

    def __init__(self, X: sp.csr_array, gamma: float) -> None:
        self._X, self.parts = X, csr_parts(X)
        self.lengths = raw(squared_lengths(X))
        self.factor = single_factor(gamma)
        self.is_of_ones = bool(np.all(X.data == 1.0))

    def point(self, i: int) -> np.ndarray:
        """Return sample `i` as a point, float64 of shape (n_features,)."""
        return np.asarray(self._X[[i]].toarray()).ravel()

    def to_points(self, Z: np.ndarray) -> np.ndarray:
        """Return points (m, n_features) in the coordinates of the inputs: as they are."""
        return Z

    def select(self, rows: np.ndarray, weights: np.ndarray) -> Selected:
        """Return the maker of sums over some samples (n,) with weights (n,)."""
        return SparseSelected(self, rows, weights)

    def column(self, z: np.ndarray, out: np.ndarray) -> None:
        """Write the kernel values of a point with all samples to `out`, float32 (n_samples,)."""
        column_sparse(*self.parts, self.lengths, raw(z), self.factor, out)


Selected = DenseSelected | SparseSelected
NearSums = DenseSums | SparseSums


def near_sums(X: Any, gamma: float) -> NearSums | None:
    """Return the maker of sums; None if float32 can't hold the inputs or gamma."""
    values = X.data if sp.issparse(X) else X
    if gamma > LARGEST_GAMMA or np.abs(values).max(initial=0.0) > SINGLE_COLUMNS_MAX_INPUT:
        return None
    is_sparse = sp.issparse(X) and X.nnz < SPARSE_COLUMNS_MAX_DENSITY * X.shape[0] * X.shape[1]
    return SparseSums(X, gamma) if is_sparse else DenseSums(X, gamma)
