"""Squared distances from differences of coordinates, where inner products would lose their digits.

By |a|^2 + |b|^2 - 2ab the squared distance of two rows carries the rounding of their squared
lengths: of rows that are near each other and far from zero nothing may be left. Differences keep
what the coordinates have, and take longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled
from svmbench.core.kernels.tile_loops import subtract_half_distances
from svmbench.core.numeric.arrays import canonical_csr, csr_parts, in_fours

#: Columns of a piece.
WIDTH = 512


#: Of a CSR matrix whose indices ascend in each row: data, indices, starts.
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


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
    """Return minus half the squared distances of all pairs of rows, float64 of shape (m, n).

    Parameters
    ----------
    A, B : ndarray or CSR of float64 of shape (m, n_features), (n, n_features)
    """
    m, n = A.shape[0], B.shape[0]
    if sp.issparse(A) or sp.issparse(B):
        out = np.empty((m, n))
        minus_half_of_sparse(csr_parts(canonical_csr(A)), csr_parts(canonical_csr(B)), out)
        return out
    rows = np.ascontiguousarray(in_fours(in_fours(A, 1), 0))
    columns = np.ascontiguousarray(in_fours(B, 1).T)
    out = np.empty((len(rows), n))
    for start in range(0, n, WIDTH):
        piece = np.empty((len(rows), min(WIDTH, n - start)))
        subtract_half_distances(rows, columns, start, np.float64(0.5), piece)
        out[:, start : start + WIDTH] = piece
    return out[:m]


def warm_up() -> None:
    """Load or compile what is here."""
    X = np.eye(2)
    for each in (X, sp.csr_array(X)):
        minus_half_distances(each, each)
