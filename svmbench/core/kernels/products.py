"""The loops below the kernels: inner products, squared distances, and the RBF exponential.

- `without_empty_columns`: CSR matrices whose sizes follow the columns that occur;
- `inner_products`, `squared_lengths`: whole matrices, by BLAS and scipy;
- `SparseProducts`: a few rows of one CSR matrix with some others, without making matrices;
- `products_of_sparse`, `products_of_two_sparse`: rows of a CSR matrix with a tile of points;
- `minus_half_distances`, `subtract_half_distances`: squared distances from differences of
  coordinates. By |a|^2 + |b|^2 - 2ab the squared distance carries the rounding of the lengths: for
  each other and far from zero nothing may be left. Differences take longer.
- `pack`, `count_pieces`: samples of two values, 0 and one other, as machine words, whose inner
  products are counts of bits;
- `gauss_double` and `gauss_single` turn inner products of two sets of samples into RBF values;
  `gauss_of_squares` takes squared distances of one sample, in single precision.

The exponential: e^t = 2^k e^r with an integer k. 2^k goes to the exponent's bits, and e^r is a
polynomial, whose loop the compiler vectorises; it can't vectorise a call of the library's
exponential. ``np.exp`` remains where it is as fast: for few values (tables of at most 1,025, up to
8 values of a step of SMO) and for blocks of stored squared distances, which need no lengths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import (
    JIT_DISABLED,
    compiled,
    compiled_fused,
    compiled_sums,
    inlined,
    wide_vectors,
)
from svmbench.core.numeric.arrays import canonical_csr, csr_parts, in_fours, raw

#: Sparse rows that are multiplied with the whole matrix at a time, as dense columns.
DENSE_ROWS = 256

#: Columns of a piece of distances: it stays in the second-level cache.
DISTANCE_COLUMNS = 512

#: Up to so many rows at a time are multiplied one by one; of more, matrices are worth making.
SPARSE_PRODUCTS_MAX_ROWS = 4

#: Up to so many products of two numbers take less time than making the matrices does.
SPARSE_PRODUCTS_MAX = 300_000

#: Values converted at a time: two scratch blocks of them stay in the first-level cache.
PIECE_VALUES = 512

#: A product with a larger gamma overflows in single precision; nor does it tell more samples apart.
LARGEST_GAMMA = 1e30

LOG2_E = 1.4426950408889634
# ln 2 in two parts: the first has zeros at its end, so that k times it is exact.
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6

#: Added to a number below 2^51 it rounds that to an integer, which then stands in the last bits.
TO_INTEGER = 6755399441055744.0

#: e^r = 1 + r + sum_k EXP[k] r^(k + 2) for |r| <= ln(2) / 2, to 1e-17: what interpolates
#: (e^r - 1 - r) / r^2 at the ten Chebyshev nodes.
EXP = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.008333333333330062,
    0.0013888888917213717,
    0.00019841269863053618,
    2.4801521295954376e-05,
    2.7557268459997064e-06,
    2.7620088445409746e-07,
    2.510038549551032e-08,
)

#: CSR matrices of fewer columns keep them all: an array of a float64 a column takes up to 1 MiB.
WIDE_MIN_COLUMNS = 1 << 17

#: Columns for each entry, above which those without an entry are left out. Finding the columns that
#: occur takes up to 30 bytes an entry.
WIDE_MIN_COLUMNS_PER_ENTRY = 4

#: Data, indices and starts of a CSR matrix.
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def occurring_columns(*matrices: Any) -> np.ndarray | None:
    """Return the columns with an entry in any of some matrices, in their order, (n_occurring,).

    None unless the matrices are CSR and have far more columns than entries.
    """
    width = matrices[0].shape[1]
    if width < WIDE_MIN_COLUMNS or not all(sp.issparse(each) for each in matrices):
        return None
    if width < WIDE_MIN_COLUMNS_PER_ENTRY * sum(each.nnz for each in matrices):
        return None
    return np.unique(np.concatenate([each.indices for each in matrices]))


def without_empty_columns(*matrices: Any) -> tuple[Any, ...]:
    """Return matrices of the same kernel values whose sizes follow their entries.

    Of CSR matrices with far more columns than entries, the columns without an entry are left out.
    The others keep their order, and so does each sum over them. Other matrices come back as they
    are.
    """
    columns = occurring_columns(*matrices)
    if columns is None:
        return matrices
    return tuple(
        sp.csr_array(
            (each.data, np.searchsorted(columns, each.indices).astype(np.int32), each.indptr),
            shape=(each.shape[0], len(columns)),
        )
        for each in matrices
    )


def with_empty_columns(points: np.ndarray, X: Any) -> Any:
    """Return dense points over the columns that :func:`without_empty_columns` left of `X`, as wide.

    CSR if columns were left out; else the points themselves.
    """
    columns = occurring_columns(X)
    if columns is None:
        return points
    narrow = sp.csr_array(points)
    indices = columns[narrow.indices].astype(np.int32)
    return sp.csr_array((narrow.data, indices, narrow.indptr), shape=(len(points), X.shape[1]))


def squared_lengths(X: Any) -> np.ndarray:
    """Return the squared length of each row of a dense or CSR matrix, shape (n_samples,)."""
    if not sp.issparse(X):
        return np.einsum("ij,ij->i", X, X)
    X = canonical_csr(X)
    lengths, filled = np.zeros(X.shape[0], dtype=X.dtype), np.flatnonzero(np.diff(X.indptr))
    # As in scipy's sum of the rows of a product, which takes many times as long on a few rows.
    if len(filled):
        lengths[filled] = np.add.reduceat(X.data[: X.nnz] ** 2, X.indptr[filled])
    return lengths


def inner_products(A: Any, B: Any) -> np.ndarray:
    """Return ``A @ B.T`` as a C-ordered dense array; either may be CSR."""
    if not sp.issparse(A) and not sp.issparse(B):
        return A @ B.T
    P = np.empty((A.shape[0], B.shape[0]), dtype=B.dtype)
    # Sparse times a few dense columns is several times faster than sparse times sparse.
    for start in range(0, A.shape[0], DENSE_ROWS):
        rows = A[start : start + DENSE_ROWS]
        dense = rows.toarray() if sp.issparse(rows) else rows
        P[start : start + DENSE_ROWS] = (B @ np.ascontiguousarray(dense.T)).T
    return P


@compiled
def multiply(
    data: np.ndarray,  # CSR: data, indices, starts
    indices: np.ndarray,
    starts: np.ndarray,
    rows: np.ndarray,  # positions, int64 (m,)
    others: np.ndarray,  # positions, int64 (n,)
    scratch: np.ndarray,  # (n_features,): zeros; zeros again afterwards
    out: np.ndarray,  # (m, n)
) -> None:
    """Write the inner products of rows with others."""
    for a in range(len(rows)):
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            scratch[indices[p]] += data[p]
        for b in range(len(others)):
            product = 0.0
            for p in range(np.uint32(starts[others[b]]), np.uint32(starts[others[b] + 1])):
                product += data[p] * scratch[np.uint32(indices[p])]
            out[a, b] = product
        for p in range(starts[rows[a]], starts[rows[a] + 1]):
            scratch[indices[p]] = 0.0


class SparseProducts:
    """Inner products and squared lengths of rows of a matrix by position."""

    def __init__(self, X: sp.csr_array) -> None:
        self.n_samples = X.shape[0]
        self._parts = csr_parts(canonical_csr(X))
        self._scratch = np.zeros(X.shape[1])
        self._a_row = len(X.data) / max(1, X.shape[0])
        self._lengths: np.ndarray | None = None

    def pays_for(self, n_rows: int, n_others: int) -> bool:
        """Return True if products of so many rows and others cost less here than as matrices."""
        return (
            n_rows <= SPARSE_PRODUCTS_MAX_ROWS
            or n_rows * n_others * self._a_row <= SPARSE_PRODUCTS_MAX
        )

    def between(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the inner products of rows with others, float64 of shape (m, n)."""
        out = np.empty((len(rows), len(others)))
        multiply(*self._parts, raw(rows), raw(others), self._scratch, out)
        return out

    def squared_lengths(self, rows: np.ndarray) -> np.ndarray:
        """Return the squared lengths of rows; those of all are computed once."""
        if self._lengths is None:
            data, _, starts = self._parts
            row_of = np.repeat(np.arange(self.n_samples), np.diff(starts))
            self._lengths = np.bincount(row_of, data * data, self.n_samples)
        return self._lengths[rows]


@compiled
def products_of_sparse(
    data: np.ndarray,  # CSR: data, indices, starts
    indices: np.ndarray,
    starts: np.ndarray,
    first: int,
    others: np.ndarray,  # (n_features, at least start + n_points): a non-zero meets one run
    start: int,
    out: np.ndarray,  # (n_rows, n_points)
) -> None:
    """Write inner products of CSR rows, from `first` on, with dense points, from `start` on."""
    for i in range(len(out)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for p in range(np.uint32(starts[first + i]), np.uint32(starts[first + i + 1])):
            value, other = data[p], others[np.uint32(indices[p]), start : start + len(row)]
            for j in range(len(row)):
                row[j] += value * other[j]


@compiled
def products_of_two_sparse(
    data: np.ndarray,  # CSR: data, indices, starts
    indices: np.ndarray,
    starts: np.ndarray,
    first: int,
    other_data: np.ndarray,  # the points by features: CSR of shape (n_features, n_points)
    other_indices: np.ndarray,
    other_starts: np.ndarray,
    out: np.ndarray,  # (n_rows, n_points)
) -> None:
    """Write inner products of CSR rows, from `first` on, with sparse points."""
    for i in range(len(out)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for p in range(np.uint32(starts[first + i]), np.uint32(starts[first + i + 1])):
            value, feature = data[p], np.uint32(indices[p])
            for q in range(np.uint32(other_starts[feature]), np.uint32(other_starts[feature + 1])):
                row[np.uint32(other_indices[q])] += value * other_data[q]


@compiled_fused
def subtract_half_distances(
    A: np.ndarray,  # rows (m, d); m and d are multiples of four
    B: np.ndarray,  # points, a column each (d, at least start + n)
    start: int,  # the first point that is wanted
    half: float,  # 1/2, of the type of the arrays
    out: np.ndarray,  # (m, n)
) -> None:
    """Write minus half the squared distances of rows and points, from their differences."""
    wide_vectors()
    n = out.shape[1]
    # Only of a whole array the compiler knows that columns lie side by side.
    for i in range(0, len(A), 4):
        for each in range(4):
            out[i + each] = 0.0
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(0, A.shape[1], 4):
            z0, z1 = B[k, start : start + n], B[k + 1, start : start + n]
            z2, z3 = B[k + 2, start : start + n], B[k + 3, start : start + n]
            a, b, c, d = (
                A[i, k : k + 4],
                A[i + 1, k : k + 4],
                A[i + 2, k : k + 4],
                A[i + 3, k : k + 4],
            )
            a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
            b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
            c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
            d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
            for j in range(n):
                x, y, z, w = z0[j], z1[j], z2[j], z3[j]
                o0[j] -= half * ((a0 - x) ** 2 + (a1 - y) ** 2 + (a2 - z) ** 2 + (a3 - w) ** 2)
                o1[j] -= half * ((b0 - x) ** 2 + (b1 - y) ** 2 + (b2 - z) ** 2 + (b3 - w) ** 2)
                o2[j] -= half * ((c0 - x) ** 2 + (c1 - y) ** 2 + (c2 - z) ** 2 + (c3 - w) ** 2)
                o3[j] -= half * ((d0 - x) ** 2 + (d1 - y) ** 2 + (d2 - z) ** 2 + (d3 - w) ** 2)


@compiled
def minus_half_of_sparse(rows: Parts, others: Parts, out: np.ndarray) -> None:
    """Write minus half the squared distances of CSR rows to `out`, of shape (m, n)."""
    (data, indices, starts), (other_data, other_indices, other_starts) = rows, others
    for i in range(out.shape[0]):
        end = starts[i + 1]
        for j in range(out.shape[1]):
            p, q, last, total = starts[i], other_starts[j], other_starts[j + 1], 0.0
            while p < end or q < last:
                if q == last or (p < end and indices[p] < other_indices[q]):
                    total += data[p] ** 2
                    p += 1
                elif p == end or indices[p] > other_indices[q]:
                    total += other_data[q] ** 2
                    q += 1
                else:
                    total += (data[p] - other_data[q]) ** 2
                    p += 1
                    q += 1
            out[i, j] = -0.5 * total


def minus_half_distances(A: Any, B: Any) -> np.ndarray:
    """Return minus half the squared distances of all pairs of rows, float64 of shape (m, n)."""
    m, n = A.shape[0], B.shape[0]
    if sp.issparse(A) or sp.issparse(B):
        out = np.empty((m, n))
        minus_half_of_sparse(csr_parts(canonical_csr(A)), csr_parts(canonical_csr(B)), out)
        return out
    rows = np.ascontiguousarray(in_fours(in_fours(A, 1), 0))
    columns = np.ascontiguousarray(in_fours(B, 1).T)
    out = np.empty((len(rows), n))
    for start in range(0, n, DISTANCE_COLUMNS):
        piece = np.empty((len(rows), min(DISTANCE_COLUMNS, n - start)))
        subtract_half_distances(rows, columns, start, np.float64(0.5), piece)
        out[:, start : start + DISTANCE_COLUMNS] = piece
    return out[:m]


@compiled_fused
def gauss_double(
    P: np.ndarray,  # (m, n): inner products ``x_i . z_j``
    a: np.ndarray,  # (m,): squared lengths of the x_i
    b: np.ndarray,  # (n,): of the z_j
    gamma: float,
) -> None:
    """Replace inner products by exp(-gamma * squared distance), in place, to about 2e-16."""
    wide_vectors()
    values, shifted = np.empty(PIECE_VALUES), np.empty(PIECE_VALUES)
    bits, power, out = values.view(np.int64), shifted.view(np.int64), P.view(np.int64)
    n = P.shape[1]
    for i in range(P.shape[0]):
        length = a[i]
        for start in range(0, n, PIECE_VALUES):
            row, others = P[i, start : start + PIECE_VALUES], b[start : start + PIECE_VALUES]
            for j in range(len(row)):
                distance = length + others[j] - 2.0 * row[j]
                t = -gamma * distance if distance > 0.0 else 0.0
                t = t if t > -708.0 else -708.0
                # The last bits of the sum are those of the nearest integer.
                z = t * LOG2_E + TO_INTEGER
                k = z - TO_INTEGER
                r = (t - k * LN2_HIGH) - k * LN2_LOW
                # By Estrin: half a dozen steps that wait for each other instead of eleven.
                r2 = r * r
                r4 = r2 * r2
                low = r2 * (EXP[0] + EXP[1] * r)
                middle = (EXP[2] + EXP[3] * r) + r2 * (EXP[4] + EXP[5] * r)
                high = (EXP[6] + EXP[7] * r) + r2 * (EXP[8] + EXP[9] * r)
                # The largest part comes last: its rounding is the only one of its size.
                values[j] = 1.0 + (r + (low + r4 * (middle + r4 * high)))
                shifted[j] = z
            target = out[i, start : start + PIECE_VALUES]
            for j in range(len(row)):
                # k goes to the exponent.
                target[j] = bits[j] + (power[j] << 52)


@inlined
def power_of_two(t: np.float32) -> tuple[np.float32, np.int32]:
    """Return two factors of 2^t for t <= 0: 2^r, and the bits of the float32 number 2^k.

    t = k + r with an integer k and |r| <= 1/2; 2^r is a polynomial, to about 1e-7. A caller keeps
    the bits in an array of int32 and multiplies by its view as float32.
    """
    one, half, lowest = np.float32(1.0), np.float32(0.5), np.float32(-126.0)
    c1, c2, c3 = np.float32(0.6931472), np.float32(0.24022651), np.float32(0.05550411)
    c4, c5, c6 = np.float32(0.0096181291), np.float32(0.0013333558), np.float32(0.000154035)
    t = t if t > lowest else lowest
    k = np.int32(t - half)
    r = t - np.float32(k)
    e = c5 + r * c6
    e = c4 + r * e
    e = c3 + r * e
    e = c2 + r * e
    e = c1 + r * e
    return one + r * e, (k + np.int32(127)) << np.int32(23)


@compiled_sums
def gauss_of_squares(
    squares: np.ndarray,  # float32 (m,): written over
    factor: np.float32,  # ``-gamma * log2(e)``; see :func:`single_factor`
    power: np.ndarray,  # int32 (m,): scratch
    out: np.ndarray,  # (m,): may be `squares`
) -> None:
    """Write ``2 ** (factor * squares)`` to `out`: RBF values of squared distances."""
    zero, two_to_k = np.float32(0.0), power.view(np.float32)
    m = len(out)
    for j in range(m):
        squares[j], power[j] = power_of_two(factor * (squares[j] if squares[j] > zero else zero))
    for j in range(m):
        out[j] = squares[j] * two_to_k[j]


@compiled_sums
def gauss_single(
    P: np.ndarray,  # float32 (m, n): inner products ``x_i . z_j``
    a: np.ndarray,  # float32 (m,): squared lengths of the x_i
    b: np.ndarray,  # float32 (n,): of the z_j
    gamma: float,
    out: np.ndarray,  # row i goes to ``out[at[i], :n]``; `out` may be `P`
    at: np.ndarray,
) -> None:
    """Write exp(-gamma * squared distance) of inner products, in float32, to about 2e-7."""
    wide_vectors()
    n = P.shape[1]
    width = min(n, PIECE_VALUES)
    power, part = np.empty(width, dtype=np.int32), np.empty(width, dtype=np.float32)
    two_to_k = power.view(np.float32)
    zero, two, factor = np.float32(0.0), np.float32(2.0), np.float32(-gamma * LOG2_E)
    for i in range(P.shape[0]):
        length = a[i]
        for start in range(0, n, PIECE_VALUES):
            row, others = P[i, start : start + PIECE_VALUES], b[start : start + PIECE_VALUES]
            target = out[at[i], start : start + PIECE_VALUES]
            for j in range(len(row)):
                distance = length + others[j] - two * row[j]
                part[j], power[j] = power_of_two(factor * (distance if distance > zero else zero))
            for j in range(len(row)):
                target[j] = part[j] * two_to_k[j]


def single_factor(gamma: float) -> np.float32:
    """Return the factor that :func:`gauss_of_squares` takes for a gamma."""
    return np.float32(-gamma * LOG2_E)


def warm_up_products() -> None:
    """Load or compile the loops that a `KernelSource` calls."""
    X, both = np.eye(2), np.arange(2)
    products = SparseProducts(sp.csr_array(X))
    products.between(both, both)
    products.squared_lengths(both)
    for each in (X, sp.csr_array(X)):
        minus_half_distances(each, each)


#: Counts that are made at a time: they stay in the first-level cache.
COUNTS_WIDTH = 512

#: Samples of more features than this are not kept as bits.
BITS_MAX_FEATURES = 1024

#: Rows that are brought into bits at a time.
PACK_ROWS = 4096


def common_value(X: Any) -> float | None:
    """Return the one value other than 0 that a dense or CSR matrix holds; None if there are more.

    A matrix without any such value has 1.
    """
    values = (X.data if sp.issparse(X) else X).reshape(-1)
    # Almost all inputs of more values show it in their first ones.
    for some in (values[:64], values):
        others = some[some != 0.0]
        if len(others) and not np.all(others == others[0]):
            return None
    return float(others[0]) if len(others) else 1.0


def is_binary(X: Any) -> bool:
    """Return True if all values of a dense or CSR matrix are 0 or 1."""
    return common_value(X) == 1.0


def pack(X: Any) -> np.ndarray:
    """Mark the values of each row that are not 0, in words: feature 64 w + k is bit k of word w.

    X is dense, or CSR without duplicates; the words have the shape (n_samples, at least 1).
    """
    n_samples, n_features = X.shape
    words = np.zeros((n_samples, max(1, -(-n_features // 64))), dtype=np.uint64)
    if sp.issparse(X):
        _pack_sparse(*csr_parts(X), words)
        return words
    for top in range(0, n_samples, PACK_ROWS):
        rows = slice(top, top + PACK_ROWS)
        is_set = np.zeros((len(words[rows]), 64 * words.shape[1]), dtype=bool)
        np.not_equal(X[rows], 0.0, out=is_set[:, :n_features])
        words[rows] = np.packbits(is_set, axis=1, bitorder="little").view("<u8")
    return words


@compiled
def _pack_sparse(
    data: np.ndarray, indices: np.ndarray, starts: np.ndarray, words: np.ndarray
) -> None:
    for i in range(len(words)):
        for p in range(starts[i], starts[i + 1]):
            if data[p] != 0.0:
                bit = np.uint64(indices[p])
                words[i, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


def _python_ones(word: int) -> int:
    """Return the number of bits of a word that are set."""
    return int(word).bit_count()


def _make_ones() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def ones(typing_context: Any, word: Any) -> Any:
        """Return the number of bits of a 64-bit word that are set."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.uint64(types.uint64), emit

    return ones


ones: Any = _python_ones if JIT_DISABLED else _make_ones()


@compiled
def count_pieces(
    A: np.ndarray,  # uint64 (m, n_words): words of samples
    B: np.ndarray,  # uint64 (n_words, n): of others, word by word
    start: int,  # the others from `start` to before `stop`
    stop: int,
    differing: bool,  # count the bits that are set in one of the two; else those set in both
    table: np.ndarray,  # float32 or float64 (n_bits + 1,)
    out: np.ndarray,  # row i goes to ``out[at[i], left : left + stop - start]``
    at: np.ndarray,
    left: int,
) -> None:
    """Write a table's value at the number of bits that two samples differ in, or share."""
    wide_vectors()
    n_words = len(B)
    counts = np.empty(COUNTS_WIDTH, dtype=np.uint64)
    for first in range(start, stop, COUNTS_WIDTH):
        end = min(first + COUNTS_WIDTH, stop)
        for i in range(len(A)):
            for k in range(end - first):
                counts[k] = 0
            for w in range(n_words):
                word, others = A[i, w], B[w, first:end]
                if differing:
                    for k in range(len(others)):
                        counts[k] += ones(word ^ others[k])
                else:
                    for k in range(len(others)):
                        counts[k] += ones(word & others[k])
            target = out[at[i], left + first - start : left + end - start]
            for k in range(len(target)):
                target[k] = table[counts[k]]


def table_of(
    function: Any,
    n_features: int,
    value: float = 1.0,  # what a set bit stands for
) -> np.ndarray:
    """Return the kernel's value at every count: of differing bits for RBF, else of shared ones."""
    products = value**2 * np.arange(n_features + 1, dtype=np.float64)
    is_rbf = function.name == "rbf"
    return raw(np.exp(-function.gamma * products) if is_rbf else function.of_products(products))
