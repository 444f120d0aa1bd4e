"""The loops over one tile of rows and points: products of sparse rows, differences, sums."""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled, compiled_fused, compiled_sums, wide_vectors


@compiled_sums
def add_products(K: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """Add ``K @ coefficients`` to `out`, K (m, n) in single precision and the sums in double."""
    for i in range(len(out)):
        row, total = K[i], 0.0
        for j in range(len(coefficients)):
            total += coefficients[j] * np.float64(row[j])
        out[i] += total


@compiled_fused
def subtract_half_distances(
    A: np.ndarray, B: np.ndarray, start: int, half: float, out: np.ndarray
) -> None:
    """Write minus half the squared distances of rows and points, from their differences.

    Parameters
    ----------
    A : ndarray of shape (m, d)
        Rows; m and d are multiples of four.
    B : ndarray of shape (d, at least start + n)
        Points, a column each, of which those from `start` on are wanted.
    start : int
    half : float
        1/2, of the type of the arrays.
    out : ndarray of shape (m, n)
    """
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
def products_of_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    first: int,
    others: np.ndarray,
    start: int,
    out: np.ndarray,
) -> None:
    """Write inner products of CSR rows, from `first` on, with dense points, from `start` on.

    Parameters
    ----------
    data, indices, starts : ndarray
        Of the CSR matrix.
    first, start : int
    others : ndarray of shape (n_features, at least start + n_points)
        The points, a column each: a non-zero meets all of them in one run.
    out : ndarray of shape (n_rows, n_points)
    """
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
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    first: int,
    other_data: np.ndarray,
    other_indices: np.ndarray,
    other_starts: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write inner products of CSR rows, from `first` on, with sparse points.

    Parameters
    ----------
    data, indices, starts : ndarray
        Of the CSR matrix.
    first : int
    other_data, other_indices, other_starts : ndarray
        Of the points by features: CSR of shape (n_features, n_points).
    out : ndarray of shape (n_rows, n_points)
    """
    for i in range(len(out)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for p in range(np.uint32(starts[first + i]), np.uint32(starts[first + i + 1])):
            value, feature = data[p], np.uint32(indices[p])
            for q in range(np.uint32(other_starts[feature]), np.uint32(other_starts[feature + 1])):
                row[np.uint32(other_indices[q])] += value * other_data[q]
