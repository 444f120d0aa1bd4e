"""Kernel columns for solvers that use each of them once and keep none.

A kernel matrix is symmetric, so a column is a row; whoever makes rows fastest makes them here.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from svmbench.core.kernels.bits import MOST_BITS, is_binary
from svmbench.core.kernels.exponential import LARGEST_GAMMA
from svmbench.core.kernels.float32_rows import BitRows, DenseRows, Rows
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.one_column import FEW_FEATURES, OneColumn, ProductColumn, one_column
from svmbench.core.numeric.arrays import raw

#: Up to so many samples the whole matrix is made once: it takes 8 MiB.
SMALL = 1024

#: A tolerance of the gradient from which on single precision is tried.
SINGLE_FROM = 1e-4

#: From so many columns at a time on one product of matrices is faster than as many of vectors.
FROM_BLOCKS = 8


class Columns(Protocol):
    """What makes kernel columns.

    Attributes
    ----------
    n_samples : int
    dtype : type
        Of the values.
    matrix : ndarray of shape (n_samples, n_samples) or None
        The whole matrix, where that is there.
    in_pieces : bool
        Whether `block` makes pieces of columns as cheaply as whole ones.
    """

    n_samples: int
    dtype: Any
    matrix: np.ndarray | None
    in_pieces: bool

    def column(self, i: int, out: np.ndarray) -> None:
        """Write column `i` to `out` (n_samples,)."""

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Write columns `B` at samples `start` to `stop` to `out` (len(B), stop - start)."""


class MatrixColumns:
    """Columns of a matrix that is there; see :class:`Columns`.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
    """

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
    """Columns in float32 from what makes rows by hundreds; see :class:`Columns`.

    Parameters
    ----------
    rows : svmbench.core.kernels.float32_rows.Rows
    """

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


class SingleColumns:
    """Columns in float32, one by one; see :class:`Columns`.

    Parameters
    ----------
    maker : OneColumn
    n_samples : int
    """

    matrix: np.ndarray | None = None
    dtype = np.float32
    in_pieces = False

    def __init__(self, maker: OneColumn, n_samples: int) -> None:
        self.n_samples, self.column = n_samples, maker.fill

    def block(self, B: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
        """Compute whole columns: `start` to `stop` must be all samples."""
        for i, place in zip(B, out, strict=True):
            self.column(i, place)


class DoubleColumns:
    """Columns in float64, as a source gives them; see :class:`Columns`.

    Parameters
    ----------
    source : KernelSource
    """

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


def columns_of(source: KernelSource, tol: float, t: int = 1) -> Columns:
    """Return the fastest columns of a source that serve a tolerance of the gradient.

    Parameters
    ----------
    source : KernelSource
    tol : float
    t : int, default=1
        Columns at a time.
    """
    if source.is_stored or source.n_samples <= SMALL:
        K = source.whole(np.inf)
        assert K is not None
        return MatrixColumns(K)
    inputs = source.inputs()
    if inputs is None or tol < SINGLE_FROM:
        return DoubleColumns(source)
    X, function = inputs
    if function.name != "rbf" or function.gamma > LARGEST_GAMMA:
        return DoubleColumns(source)
    if X.shape[1] <= MOST_BITS and is_binary(X):
        return RowColumns(BitRows(X, function))
    maker = one_column(X, function.gamma)
    if maker is None:
        return DoubleColumns(source)
    if t >= FROM_BLOCKS and isinstance(maker, ProductColumn):
        return RowColumns(DenseRows(X, function))
    return SingleColumns(maker, source.n_samples)


def warm_up() -> list[Columns]:
    """Load or compile every kind of columns; return them, over four samples."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    wide = np.tile(X, (1, FEW_FEATURES))
    sparse = sp.csr_array(np.pad(X, ((0, 0), (0, 30))))
    function = KernelFunction("rbf", 1.0)
    makers = [one_column(each, 1.0) for each in (X, wide, sparse)]
    K = function.between(X, X)
    kinds: list[Columns] = [
        MatrixColumns(K),
        MatrixColumns(K.astype(np.float32)),
        DoubleColumns(KernelSource.from_inputs(X, function)),
        RowColumns(BitRows(X, function)),
        RowColumns(DenseRows(X, function)),
        *(SingleColumns(maker, len(X)) for maker in makers if maker is not None),
    ]
    for columns in kinds:
        columns.block(np.arange(2), 0, len(X), np.empty((2, len(X)), dtype=columns.dtype))
    return kinds
