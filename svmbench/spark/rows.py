"""On the executors: batches of Arrow as matrices, dense or CSR, with their labels and folds.

A data frame's vectors come as a struct of Spark's own (kind, size, indices, values) whose values
lie one after the other: no row is ever an object of Python. Vectors that are all dense are a view
of these values; else the block is CSR, and as large as its nonzeros.
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

#: Spark's number for a dense vector.
DENSE = 1

#: Values of dense rows that are hashed at a time.
IN_CACHE = 1 << 15


@dataclass(frozen=True)
class Folds:
    """How rows come to their folds.

    Attributes
    ----------
    number : int
        Of folds; 1 for none.
    seed : int
        Of the draw.
    given : bool
        Whether a column names them, so that nothing is drawn.
    """

    number: int = 1
    seed: int = 0
    given: bool = False

    def of(self, X: Any, column: pa.Array | None) -> np.ndarray | None:
        """Return the folds of some rows, int32; None where there is one alone.

        Raises
        ------
        ValueError
            For a fold that is missing, no whole number, or not in 0 … number - 1.
        """
        if self.number == 1:
            return None
        if column is None:
            return folds_by_content(X, self.number, self.seed)
        found = column.to_numpy(zero_copy_only=False)
        wrong = ~((found >= 0) & (found < self.number) & (found == np.floor(found)))
        if wrong.any():
            msg = f"a row has the fold {found[wrong][0]:g}, not one of 0 … {self.number - 1}"
            raise ValueError(msg)
        return found.astype(np.int32)


NO_FOLDS = Folds()


@dataclass(frozen=True)
class VectorRows:
    """Rows of a data frame: the columns features, label and, where folds are given, fold.

    Attributes
    ----------
    folds : Folds
    """

    folds: Folds = NO_FOLDS

    def __call__(self, batch: pa.RecordBatch) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, labels and folds of a batch.

        Raises
        ------
        ValueError
            In one sentence, for what is null, or vectors that differ in their lengths.
        """
        X = matrix(batch.column(0))
        labels = batch.column(1)
        if labels.null_count:
            msg = "a row has no label (null)"
            raise ValueError(msg)
        column = batch.column(2) if self.folds.given else None
        return X, labels.to_numpy(zero_copy_only=False), self.folds.of(X, column)


def matrix(column: pa.Array) -> Any:
    """Return vectors, or lists of numbers, as rows of a matrix.

    Parameters
    ----------
    column : pyarrow.StructArray or ListArray
        Spark's vectors (type, size, indices, values), or the values alone.

    Returns
    -------
    ndarray or csr_array of shape (n_rows, n_features)
        A view of the values where every vector is dense.

    Raises
    ------
    ValueError
        For a null, lengths that differ, or an index beyond a vector's size.
    """
    if column.null_count:
        msg = "a row has no features (null)"
        raise ValueError(msg)
    if not pa.types.is_struct(column.type):
        return _dense(column)
    kind, size, indices, values = column.flatten()
    if pc.all(pc.equal(kind, DENSE)).as_py() is not False:
        return _dense(values)
    is_dense = kind.to_numpy() == DENSE
    lengths = values.value_lengths().to_numpy()
    widths = np.where(is_dense, lengths, size.fill_null(0).to_numpy())
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.empty(indptr[-1], dtype=np.int32)
    from_dense = np.repeat(is_dense, lengths)
    columns[from_dense] = (np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths))[from_dense]
    columns[~from_dense] = indices.flatten().to_numpy()
    width = _one_of(widths)
    if len(columns) and not 0 <= columns.min() <= columns.max() < width:
        msg = f"a vector has a feature {columns.max() + 1:,}, beyond the last, {width:,}"
        raise ValueError(msg)
    return canonical_csr(
        sp.csr_array((_numbers(values), columns, indptr), shape=(len(lengths), width))
    )


def _dense(values: pa.ListArray) -> np.ndarray:
    width = _one_of(values.value_lengths().to_numpy())
    return _numbers(values).reshape(-1, width)


def _numbers(values: pa.ListArray) -> np.ndarray:
    """Return the numbers of all lists, float64; NaN for a null, which is refused later."""
    flat = values.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat, dtype=np.float64)


def _one_of(widths: np.ndarray) -> int:
    """Return the one length that all vectors have."""
    if not len(widths):
        return 0
    if widths.min() != widths.max():
        msg = f"the vectors have {widths.min():,} to {widths.max():,} features, not all the same"
        raise ValueError(msg)
    return int(widths[0])


def folds_by_content(X: Any, number: int, seed: int = 0) -> np.ndarray:
    """Return a fold for each row that depends on its values and the seed alone.

    Neither the partition, nor the order of the rows, nor whether zeros are stored changes it;
    rows with the same features are in the same fold. Each value's bits are multiplied by an odd
    number drawn for its feature, and their sum is mixed.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
    number : int
        Of folds.
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
        height = max(1, IN_CACHE // max(1, X.shape[1]))
        for start in range(0, X.shape[0], height):
            summed[start : start + height] = _bits(X[start : start + height]) @ factors
    return (mixed(summed) % np.uint64(number)).astype(np.int32)


def _bits(values: np.ndarray) -> np.ndarray:
    """Return the bits of each number, 0 for both zeros; the upper half is in the lower one, too.

    A product with an odd number only moves bits up, where those of 1.0 are already.
    """
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is the zero without a bit
    return bits ^ (bits >> np.uint64(32))
