"""On the executors: convert Arrow batches to dense or CSR matrices with labels and folds.

Spark's vectors are structs (kind, size, indices, values) with contiguous values, so that no row
becomes a Python object. If all vectors are dense, the matrix is a view of the values; else the
block is CSR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from svmbench.core.linear.statistics import mixed
from svmbench.core.numeric.arrays import canonical_csr

#: Spark's type number of a dense vector.
DENSE_VECTOR_TYPE = 1

#: Number of values of dense rows that are hashed at a time, to stay in the CPU cache.
VALUES_HASHED_AT_A_TIME = 1 << 15


@dataclass(frozen=True)
class FoldAssignment:
    """The assignment of rows to folds.

    Attributes
    ----------
    number : int
        Number of folds; 1 for none.
    seed : int
        Seed of the assignment.
    given : bool
        True if a column names the folds.
    """

    number: int = 1
    seed: int = 0
    given: bool = False

    def of(self, X: Any, column: pa.Array | None) -> np.ndarray | None:
        """Return the folds of some rows, int32; None for a single fold.

        Raises
        ------
        ValueError
            If a fold is missing, or not a whole number in 0 … number - 1.
        """
        if self.number == 1:
            return None
        if column is None:
            return folds_by_content(X, self.number, self.seed)
        folds = column.to_numpy(zero_copy_only=False)
        wrong = ~((folds >= 0) & (folds < self.number) & (folds == np.floor(folds)))
        if wrong.any():
            msg = f"a row has the fold {folds[wrong][0]:g}, not one of 0 … {self.number - 1}"
            raise ValueError(msg)
        return folds.astype(np.int32)


NO_FOLDS = FoldAssignment()


@dataclass(frozen=True)
class VectorRows:
    """Reader of a data frame with the columns features, label and optionally fold.

    Attributes
    ----------
    folds : Folds
    """

    folds: FoldAssignment = NO_FOLDS

    def __call__(self, batch: pa.RecordBatch) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, labels and folds of a batch.

        Raises
        ------
        ValueError
            For null values, or vectors of different lengths.
        """
        X = matrix(batch.column(0))
        labels = batch.column(1)
        if labels.null_count:
            msg = "a row has no label (null)"
            raise ValueError(msg)
        column = batch.column(2) if self.folds.given else None
        return X, labels.to_numpy(zero_copy_only=False), self.folds.of(X, column)


def matrix(column: pa.Array) -> Any:
    """Convert vectors or lists of numbers to the rows of a matrix.

    Parameters
    ----------
    column : pyarrow.StructArray or ListArray
        Spark's vectors (type, size, indices, values), or the values alone.

    Returns
    -------
    ndarray or csr_array of shape (n_rows, n_features)
        A view of the values if all vectors are dense.

    Raises
    ------
    ValueError
        For null values, different lengths, or an index beyond a vector's size.
    """
    if column.null_count:
        msg = "a row has no features (null)"
        raise ValueError(msg)
    if not pa.types.is_struct(column.type):
        return _dense(column)
    kind, size, indices, values = column.flatten()
    if pc.all(pc.equal(kind, DENSE_VECTOR_TYPE)).as_py() is not False:
        return _dense(values)
    is_dense = kind.to_numpy() == DENSE_VECTOR_TYPE
    lengths = values.value_lengths().to_numpy()
    widths = np.where(is_dense, lengths, size.fill_null(0).to_numpy())
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.empty(indptr[-1], dtype=np.int32)
    from_dense = np.repeat(is_dense, lengths)
    columns[from_dense] = (np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths))[from_dense]
    columns[~from_dense] = indices.flatten().to_numpy()
    width = _one_of(widths)
    if len(columns) and not 0 <= columns.min() <= columns.max() < width:
        msg = f"a vector has the feature {columns.max() + 1:,}, above the last, {width:,}"
        raise ValueError(msg)
    return canonical_csr(
        sp.csr_array((_numbers(values), columns, indptr), shape=(len(lengths), width))
    )


def _dense(values: pa.ListArray) -> np.ndarray:
    width = _one_of(values.value_lengths().to_numpy())
    return _numbers(values).reshape(-1, width)


def _numbers(values: pa.ListArray) -> np.ndarray:
    """Return the numbers of all lists as float64; null becomes NaN, which is refused later."""
    flat = values.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat, dtype=np.float64)


def _one_of(widths: np.ndarray) -> int:
    """Return the common length of all vectors."""
    if not len(widths):
        return 0
    if widths.min() != widths.max():
        msg = f"the vectors have {widths.min():,} to {widths.max():,} features, not all the same"
        raise ValueError(msg)
    return int(widths[0])


def folds_by_content(X: Any, number: int, seed: int = 0) -> np.ndarray:
    """Return a fold for each row, computed from the values of the row and the seed.

    Partitions, the order of the rows and explicit zeros don't change the fold; equal rows are in
    the same fold. The bits of each value are multiplied by a random odd number of the feature, and
    the sum is mixed.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
    number : int
        Number of folds.
    seed : int, default=0

    Returns
    -------
    ndarray of int32 of shape (n_rows,)
    """
    features = np.arange(X.shape[1], dtype=np.uint64)
    factors = mixed(features + mixed(np.full(1, seed, dtype=np.uint64))) | np.uint64(1)
    if sp.issparse(X):
        terms = _bits(X.data) * factors[X.indices]
        totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        summed = totals[X.indptr[1:]] - totals[X.indptr[:-1]]
    else:
        summed = np.empty(X.shape[0], dtype=np.uint64)
        height = max(1, VALUES_HASHED_AT_A_TIME // max(1, X.shape[1]))
        for start in range(0, X.shape[0], height):
            summed[start : start + height] = _bits(X[start : start + height]) @ factors
    return (mixed(summed) % np.uint64(number)).astype(np.int32)


def _bits(values: np.ndarray) -> np.ndarray:
    """Return the bits of each number, with the upper half mixed into the lower half.

    A product with an odd number only moves bits up, and the bits of 1.0 are all in the upper half.
    """
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    return bits ^ (bits >> np.uint64(32))
