"""Products of a kernel matrix with a vector; a memory budget limits the part that is stored.

The matrix is symmetric: only values on and right of its diagonal are stored, in blocks of rows, and
a product uses each twice. Every product computes the blocks beyond the budget again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.kernels.rows import SourceRows, float32_rows

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
            single = dtype is np.float32
            self._rows = float32_rows(source) if single else SourceRows(dense_source(source), dtype)
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
            own = slice(start, start + height)
            out[own] += block[:, :height] @ given[own]
            for left in range(height, width, BLOCK_TILE):
                tile = block[:, left : left + BLOCK_TILE]
                others = slice(start + left, start + left + tile.shape[1])
                out[own] += tile @ given[others]
                out[others] += tile.T @ given[own]
        return out
