"""The pre-image of a residual: the point whose image reduces it most.

Given
    a residual  r = sum_i g_i phi(x_i) - sum_j c_j phi(b_j)  over samples and basis points, where
    the second sum is the first one's projection on the span of the basis.
Returned
    z that maximises <r, phi(z)>^2 (RBF kernel: phi(z) has length 1), to a local optimum; the
    residual's squared length falls by at least that when z joins the basis.

Methods
-------
    - `fixed_point`: z <- sum g_i K(x_i, z) x_i / sum g_i K(x_i, z) over both sums, from several
      training samples (Schölkopf and Smola 2002, Section 18.2.2; CPSP paper, Section 5.2);
    - `SampleValues.best`: the best of 59 random training samples (Smola and Schölkopf 2000).
    With the linear kernel the residual itself is a point of the input space: `as_point`.
Deviations
    - Several starts take a few iterations together; the best goes on alone until the value hardly
      grows: on a9a a basis of 100 such points ends 0.02 % above one of points at rest.
    - A start whose divisor comes near zero, or whose point is not finite, ends at its best point.
      If no point is better than the best start, that training sample is the answer.
Sums over samples near a free point
    For weights g_i of some samples and a point z, with k_i = exp(-gamma ||x_i - z||^2):

        pull(z) = sum_i g_i k_i x_i   and   height(z) = sum_i g_i k_i.

    A piece of samples is read for both sums while it is in the cache. Dense inputs are kept in
    float32, shifted to a central sample so that distances lose no digits. Sparse inputs with few
    zeros are kept as dense ones, unshifted (products of whole vectors are faster than non-zeros one
    by one); other sparse inputs are read as they are. Points are in the shifted coordinates;
    `to_points` shifts back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_sums
from svmbench.core.kernels.columns import FLOAT32_COLUMNS_MAX_INPUT, SPARSE_COLUMNS_MAX_DENSITY
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.products import (
    LARGEST_GAMMA,
    gauss_of_squares,
    single_factor,
    squared_lengths,
)
from svmbench.core.kernels.rows import COPY_ROWS, Rows, float32_rows
from svmbench.core.numeric.arrays import central_row, csr_parts, raw

#: Samples of a piece: their kernel values stay in the first-level cache.
NEAR_PIECE = 512

#: Dense input values of a piece, which stay in the second-level cache between two products.
CACHED_VALUES = 1 << 17


@compiled_sums
def weigh_by_kernel(
    values: np.ndarray,  # float32 (m, n): products of m points with n samples
    lengths: np.ndarray,  # (n,): squared lengths of samples
    point_squares: np.ndarray,  # (m,): points
    weights: np.ndarray,  # float32 (n,)
    factor: np.float32,
    power: np.ndarray,  # int32 (n,): scratch
    height: np.ndarray,  # (m,)
) -> None:
    """Turn inner products into weighted kernel values, in place, and add these to the heights."""
    n = len(lengths)
    squares = np.empty(n, dtype=np.float32)
    for q in range(len(values)):
        row, length, total = values[q], point_squares[q], 0.0
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
    square = np.float32(0.0)
    for j in range(d):
        square += z[j] * z[j]
    for first in range(0, n, NEAR_PIECE):
        m = min(NEAR_PIECE, n - first)
        for k in range(m):
            x = X[first + k]
            product = np.float32(0.0)
            for j in range(d):
                product += x[j] * z[j]
            squares[k] = square + lengths[first + k] - np.float32(2.0) * product
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
    square, height = 0.0, 0.0
    for j in range(len(z)):
        square += z[j] * z[j]
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
            squares[k] = np.float32(square + lengths[first + k] - 2.0 * product)
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
    z_squares = np.zeros(4)
    for j in range(len(Z)):
        for q in range(4):
            z_squares[q] += Z[j, q] * Z[j, q]
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
            squares[0, k] = np.float32(z_squares[0] + length - 2.0 * a)
            squares[1, k] = np.float32(z_squares[1] + length - 2.0 * b)
            squares[2, k] = np.float32(z_squares[2] + length - 2.0 * c)
            squares[3, k] = np.float32(z_squares[3] + length - 2.0 * d)
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
    n, square = len(lengths), 0.0
    for j in range(len(z)):
        square += z[j] * z[j]
    for first in range(0, n, NEAR_PIECE):
        m = min(NEAR_PIECE, n - first)
        for k in range(m):
            i = first + k
            product = 0.0
            for p in range(np.uint32(starts[i]), np.uint32(starts[i + 1])):
                product += data[p] * z[np.uint32(indices[p])]
            squares[k] = np.float32(square + lengths[i] - 2.0 * product)
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
        point_squares = squared_lengths(points)
        pull, height = np.zeros(Z.shape), np.zeros(len(Z))
        for first in range(0, len(self._X), self._piece):
            piece = slice(first, first + self._piece)
            X = self._X[piece]
            values = np.matmul(points, X.T)
            power = np.empty(values.shape[1], dtype=np.int32)
            weigh_by_kernel(
                values,
                self._lengths[piece],
                point_squares,
                self._weights[piece],
                self._factor,
                power,
                height,
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
    if gamma > LARGEST_GAMMA or np.abs(values).max(initial=0.0) > FLOAT32_COLUMNS_MAX_INPUT:
        return None
    is_sparse = sp.issparse(X) and X.nnz < SPARSE_COLUMNS_MAX_DENSITY * X.shape[0] * X.shape[1]
    return SparseSums(X, gamma) if is_sparse else DenseSums(X, gamma)


#: Random training samples of which one is among the best 5 % with probability 0.95.
BEST_OF_DRAWS = 59

#: Samples that a residual is measured on where the end of the search depends on it.
CERTAIN_DRAWS = 256

#: Largest number of samples at which such a residual is measured on all of them.
CERTAIN_MAX_SAMPLES = 1024

#: Samples of a residual that others are compared with at a time.
BLOCK_COLUMNS = 1 << 14

#: Starts, iterations that all of them take, and the most that the best of them takes.
STARTS, COMMON_ITERATIONS, MAX_ITERATIONS = 4, 3, 30

#: The step towards the fixed point: at first, its growth an iteration, and after a fall of the
#: value for good.
FIRST_STEP, STEP_GROWTH, SAFE_STEP = 0.2, 0.1, 0.1

#: Cosine of a point with the next from which it has come to rest.
REST_COSINE = 0.99999

#: Growth of the value, as a share of itself, up to which a point has come to rest: a basis point
#: that is a little beside its best place serves as well.
REST_GAIN = 1e-3

#: A divisor is zero below this share of the sum of its terms' absolute values.
ZERO_DIVISOR_SHARE = 1e-9


@dataclass
class Residual:
    """Residual of a vector after its projection on the basis."""

    rows: np.ndarray  # int (n,): samples
    weights: np.ndarray  # (n,): their weights g
    coefficients: np.ndarray  # (k,): the projection's coefficients c
    points: np.ndarray  # (k, n_features): basis points
    near_points: np.ndarray  # the same in the coordinates of the search


def _pulls(
    selected: Selected,
    residual: Residual,
    lengths: np.ndarray,  # (k,): squared lengths of the near points
    Z: np.ndarray,
    gamma: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return numerators (m, n_features) and values <r, phi(z)> (m,) of the fixed point."""
    pull, height = selected.sums(Z)
    B = residual.near_points
    if len(B):
        squares = np.einsum("ij,ij->i", Z, Z)[:, None] + lengths
        squares -= 2.0 * (Z @ B.T)
        K = np.exp(-gamma * np.maximum(squares, 0.0)) * residual.coefficients
        pull -= K @ B
        height -= K.sum(axis=1)
    return pull, height


def random_starts(residual: Residual, rng: Any) -> np.ndarray:
    """Return samples of the residual to start from, drawn with replacement."""
    return np.asarray(residual.rows[rng.randint(len(residual.rows), size=STARTS)])


def fixed_point(
    near: NearSums,
    residual: Residual,
    gamma: float,
    drawn: np.ndarray,  # int: samples to start from
) -> tuple[np.ndarray, float, int, bool]:
    """Return the best point z found, in the coordinates of the search, and ``<r, phi(z)>^2``.

    Also return the number of points that sums were made for, and whether z is a training sample
    because no iteration gave anything better.
    """
    Z = np.stack([near.point(int(i)) for i in drawn])
    limit = ZERO_DIVISOR_SHARE * float(
        np.abs(residual.weights).sum() + np.abs(residual.coefficients).sum()
    )
    selected = near.select(residual.rows, residual.weights)
    near_squares = squared_lengths(residual.near_points)
    best_of, best = Z.copy(), np.full(len(Z), -np.inf)
    first: np.ndarray | None = None
    last = np.full(len(Z), -np.inf)
    step, grows = np.full(len(Z), FIRST_STEP), np.ones(len(Z), dtype=bool)
    n_sums = 0
    for iteration in range(MAX_ITERATIONS + 1):
        if iteration == COMMON_ITERATIONS and len(Z) > 1:
            chosen = [int(np.argmax(best))]
            Z, best_of, best, last = Z[chosen], best_of[chosen], best[chosen], last[chosen]
            step, grows = step[chosen], grows[chosen]
        with np.errstate(all="ignore"):
            pull, height = _pulls(selected, residual, near_squares, Z, gamma)
            value = np.where(np.isfinite(height), height * height, -np.inf)
            n_sums += len(Z)
            first = value.copy() if first is None else first
            better = value > best
            best_of[better], best[better] = Z[better], value[better]
            # The step grows until the value falls for the first time, then stays small.
            gain = value - last
            settled = (gain >= 0.0) & (gain <= REST_GAIN * value)
            grows &= gain >= 0.0
            step = np.where(grows, np.minimum(1.0, step + STEP_GROWTH * (iteration > 0)), SAFE_STEP)
            last = value
            # A step towards the fixed point, pull / height.
            target = Z + step[:, None] * (pull / height[:, None] - Z)
            usable = (np.abs(height) > limit) & np.all(np.isfinite(target), axis=1)
            lengths = np.linalg.norm(Z, axis=1) * np.linalg.norm(target, axis=1)
            turned = np.einsum("ij,ij->i", Z, target) / np.where(lengths > 0.0, lengths, 1.0)
        moving = usable & (turned < REST_COSINE) & ~settled
        if not np.any(moving):
            break
        Z = np.where(usable[:, None], target, best_of)
    assert first is not None
    fell_back = not best.max() > first.max()
    z = near.point(int(drawn[np.argmax(first)])) if fell_back else best_of[np.argmax(best)]
    return z, float(best.max()), n_sums, fell_back


class SampleValues:
    """Values of residuals at training samples."""

    def __init__(
        self,
        X: Any,  # (n_samples, n_features)
        function: KernelFunction,
        single: bool,  # whether kernel values in single precision will do
    ) -> None:
        self.X, self.function = X, function
        self._single: Rows | None = None
        if single:
            self._single = float32_rows(KernelSource.from_inputs(X, function))
        self.evaluations = 0

    def values(self, residual: Residual, samples: np.ndarray) -> np.ndarray:
        """Return <r, phi(x)> at training samples, shape (len(samples),)."""
        at = self.X[samples]
        self.evaluations += len(samples) * (len(residual.rows) + len(residual.points))
        if self._single is None:
            values = self.function.between(at, self.X[residual.rows]) @ residual.weights
        else:
            values, weights = np.zeros(len(samples)), residual.weights.astype(np.float32)
            for first in range(0, len(residual.rows), BLOCK_COLUMNS):
                some = residual.rows[first : first + BLOCK_COLUMNS]
                K = np.empty((len(samples), len(some)), dtype=np.float32)
                columns = self._single.columns(some)
                self._single.fill(samples, columns, 0, len(some), K, np.arange(len(samples)))
                values += K @ weights[first : first + BLOCK_COLUMNS]
        if len(residual.points):
            values -= self.function.between(at, residual.points) @ residual.coefficients
        return np.asarray(values)

    def best(self, residual: Residual, rng: Any) -> int:
        """Return the best of 59 samples of the residual, drawn with replacement."""
        drawn = np.unique(residual.rows[rng.randint(len(residual.rows), size=BEST_OF_DRAWS)])
        lengths = np.maximum(self.function.diagonal(self.X[drawn]), np.finfo(float).tiny)
        return int(drawn[np.argmax(self.values(residual, drawn) ** 2 / lengths)])


def as_point(X: Any, residual: Residual) -> np.ndarray:
    """Return the residual of the linear kernel: a vector of the input space."""
    signed = np.zeros(X.shape[0])
    signed[residual.rows] = residual.weights
    return np.asarray(X.T @ signed).ravel() - residual.coefficients @ residual.points


@dataclass
class Probe:
    """A residual's squared length, and its values at the samples that it was measured on."""

    square: float  # the squared length, or an estimate from some samples
    error: float  # standard error of the estimate; 0 if all samples were used
    samples: np.ndarray  # int (m,)
    values: np.ndarray  # (m,): <r, phi(x)> at each

    def best(self, m: int) -> np.ndarray:
        """Return up to m of the samples, by falling absolute value."""
        return np.asarray(self.samples[np.argsort(-np.abs(self.values), kind="stable")[:m]])


def probe(inputs: SampleValues, residual: Residual, n_draws: int, rng: Any) -> Probe:
    """Measure a residual on `n_draws` of its samples, drawn at random, or on all if they are few.

    As the basis is orthogonal to it, ``||r||^2 = sum_i g_i <r, phi(x_i)>``: a mean over the
    samples, which drawing them in proportion to |g_i| estimates without bias.
    """
    weights = residual.weights
    if len(weights) <= (CERTAIN_MAX_SAMPLES if n_draws == CERTAIN_DRAWS else n_draws):
        values = inputs.values(residual, residual.rows)
        return Probe(float(weights @ values), 0.0, residual.rows, values)
    total = float(np.abs(weights).sum())
    drawn = rng.choice(len(weights), size=n_draws, p=np.abs(weights) / total)
    values = inputs.values(residual, residual.rows[drawn])
    terms = np.sign(weights[drawn]) * values * total
    error = float(terms.std() / np.sqrt(n_draws))
    return Probe(float(terms.mean()), error, residual.rows[drawn], values)
