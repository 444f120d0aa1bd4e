"""Parts of a stored matrix: as arrays of their own, and their products with vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.base.compiled import compiled, wide_vectors
from svmbench.core.numeric.arrays import raw


class Workspace:
    """Memory for one array after another; each is valid until the next call of `array`.

    Writing to memory again costs less than touching new memory.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialised array."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if len(self._memory) < size:
            self._memory = np.empty(size, dtype=np.uint8)
        return self._memory[:size].view(dtype).reshape(shape)


def gather(
    matrix: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    dtype: Any,
    workspace: Workspace | None = None,
) -> np.ndarray:
    """Return ``matrix[np.ix_(rows, columns)]`` as `dtype`, several times faster.

    The matrix is C-ordered, perhaps memory-mapped; positions are int64 and not negative. The result
    is in the memory of `workspace`, if it is given.
    """
    shape = len(rows), len(columns)
    out = np.empty(shape, dtype=dtype) if workspace is None else workspace.array(shape, dtype)
    copy_part(raw(matrix), raw(rows), raw(columns), out)
    return out


@compiled
def copy_part(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Write ``matrix[rows][:, columns]`` to `out`; positions are not negative."""
    wide_vectors()
    for i in range(len(rows)):
        row, target = matrix[rows[i]], out[i]
        # Unsigned positions never count from the end, so that the loop vectorises.
        for j in range(len(columns)):
            target[j] = row[np.uint64(columns[j])]


@compiled
def leading_product(K: np.ndarray, n: int, p: np.ndarray, out: np.ndarray) -> None:
    """Write ``K[:n, :n] @ p`` to `out`, reading only the rows where p is not zero; K = K'."""
    for k in range(n):
        out[k] = 0.0
    rows = np.flatnonzero(p[:n])
    q = 0
    while q + 4 <= len(rows):
        f0, f1, f2, f3 = p[rows[q]], p[rows[q + 1]], p[rows[q + 2]], p[rows[q + 3]]
        r0, r1, r2, r3 = K[rows[q]], K[rows[q + 1]], K[rows[q + 2]], K[rows[q + 3]]
        for k in range(n):
            out[k] += (f0 * r0[k] + f1 * r1[k]) + (f2 * r2[k] + f3 * r3[k])
        q += 4
    while q < len(rows):
        f0, r0 = p[rows[q]], K[rows[q]]
        for k in range(n):
            out[k] += f0 * r0[k]
        q += 1
