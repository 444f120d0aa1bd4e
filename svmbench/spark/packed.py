"""Keep blocks of rows on the executors, for methods with several passes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from svmbench.base.errors import DataError, SvmbenchError
from svmbench.core.numeric.arrays import as_block
from svmbench.spark.session import spark_errors
from svmbench.spark.source import SparkRows
from svmbench.spark.tree_aggregate import (
    Merge,
    Refusal,
    leave_out_of_collections,
    merged,
    opened,
)


class PackedBlock(NamedTuple):
    """A block of rows.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Labels of the data; ±1 in the functions of `Packed.sum`.
    folds : ndarray of shape (n_rows,) or None
    """

    X: Any
    y: np.ndarray
    folds: np.ndarray | None

    def times(self, V: np.ndarray, bias: float) -> np.ndarray:
        """Return ``x_i'v`` for each row and each row of V, shape (n_rows, len(V))."""
        if not bias:
            return np.asarray(self.X @ V.T)
        return np.asarray(self.X @ V[:, :-1].T) + bias * V[:, -1]

    def back(self, U: np.ndarray, bias: float) -> np.ndarray:
        """Return ``sum_i u_i x_i`` for each column of U, shape (U.shape[1], d)."""
        sums = np.asarray(self.X.T @ U).T
        return np.column_stack([sums, bias * U.sum(axis=0)]) if bias else sums


@dataclass(frozen=True)
class Survey:
    """Counts of some blocks of rows.

    Attributes
    ----------
    n_features : int
        Number of features of the widest block.
    by_label : dict of float to int
        Number of rows of each label.
    counts : ndarray of shape (n_folds,)
        Number of rows of each fold.
    """

    n_features: int
    by_label: dict[float, int]
    counts: np.ndarray

    def merge(self, other: Survey) -> Survey:
        """Return the counts of both surveys together.

        Raises
        ------
        ValueError
            If there is a third label.
        """
        labels = {*self.by_label, *other.by_label}
        check_labels(labels)
        return Survey(
            max(self.n_features, other.n_features),
            {k: self.by_label.get(k, 0) + other.by_label.get(k, 0) for k in labels},
            self.counts + other.counts,
        )


def check_labels(labels: Iterable[float]) -> None:
    """Raise ValueError for more than two labels."""
    values = sorted(labels)
    if len(values) > 2:
        shown = ", ".join(f"{label:g}" for label in values[:3])
        msg = f"there are more than two labels, for example {shown}; the problem has two classes"
        raise ValueError(msg)


@dataclass(frozen=True)
class Surveyor:
    """Count the rows of a block; raise ValueError for rows that no solver can use."""

    n_folds: int
    n_features: int | None

    def __call__(self, block: PackedBlock) -> Survey:
        """Return the survey of one block."""
        values = block.X.data if sp.issparse(block.X) else block.X
        if not (np.all(np.isfinite(values)) and np.all(np.isfinite(block.y))):
            msg = "there are NaN or infinite values"
            raise ValueError(msg)
        width = block.X.shape[1]
        if self.n_features is not None and width > self.n_features:
            msg = f"the index {width:,} is above the last feature, {self.n_features:,}"
            raise ValueError(msg)
        labels, numbers = np.unique(block.y, return_counts=True)
        check_labels(labels)
        counts = np.full(1, len(block.y))
        if block.folds is not None:
            counts = np.bincount(block.folds, minlength=self.n_folds)
        return Survey(width, dict(zip(labels.tolist(), numbers.tolist(), strict=True)), counts)


@dataclass(frozen=True)
class PartitionWork:
    """Sum a function over the blocks of a partition; a failure becomes a `Refusal`.

    Attributes
    ----------
    work : callable
        Function from a block and the broadcast value to a result.
    given : pyspark.Broadcast or None
    ready : callable or None
        Function from a packed block to the block for `work`.
    """

    work: Callable[..., Any]
    merge: Merge
    given: Any = None
    ready: Callable[[PackedBlock], PackedBlock] | None = None

    def __call__(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield the result, or None without blocks."""
        leave_out_of_collections()
        total: Any = None
        given = () if self.given is None else (self.given.value,)
        for block in blocks:
            try:
                prepared = block if self.ready is None else self.ready(block)
                result = prepared if isinstance(prepared, Refusal) else self.work(prepared, *given)
            except (ValueError, SvmbenchError) as error:
                result = Refusal.of(error)
            total = self.merge(total, result)
        yield total


@dataclass(frozen=True)
class Ready:
    """Give a block the common width and labels ±1."""

    n_features: int
    positive: float

    def __call__(self, block: PackedBlock) -> PackedBlock:
        """Return the block without a copy of its values."""
        X = as_block(block.X, self.n_features)
        return PackedBlock(X, np.where(block.y == self.positive, 1.0, -1.0), block.folds)


@dataclass(frozen=True)
class Pack:
    """Convert Arrow batches to pickled blocks."""

    read: Callable[[pa.RecordBatch], tuple[Any, Any, Any]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one pickled block for each batch."""
        leave_out_of_collections()
        for batch in batches:
            packed: Any
            try:
                packed = PackedBlock(*self.read(batch))
            except (ValueError, SvmbenchError) as error:
                packed = Refusal.of(error)
            if isinstance(packed, Refusal) or len(packed.y):
                blob = pa.array([pickle.dumps(packed, protocol=5)], pa.binary())
                yield pa.RecordBatch.from_arrays([blob], ["block"])


def add_arrays(first: Any, second: Any) -> Any:
    """Return the sum of two arrays."""
    return first + second


class Packed:
    """Rows as blocks that the executors keep in memory, or on disk if memory is full.

    The first pass reads and counts the rows; later passes read the blocks.

    Parameters
    ----------
    rows : Rows
    n_folds : int, default=1
    n_features : int, optional
        Largest number of features; by default, the number found in the rows.

    Attributes
    ----------
    n_features, n_samples : int
    classes : ndarray of shape (2,)
    counts : ndarray of shape (n_folds,)
        Number of rows of each fold.
    by_class : tuple of int
        Number of rows of each class.
    passes : int
        Number of passes so far.

    Raises
    ------
    svmbench.base.errors.DataError
        For unusable rows, or a single class.
    """

    def __init__(self, rows: SparkRows, n_folds: int = 1, n_features: int | None = None) -> None:
        from pyspark import StorageLevel  # an optional package

        with spark_errors():
            self._context = rows.frame.sparkSession.sparkContext
            frame = rows.frame.mapInArrow(Pack(rows.read), "block binary")
            self._blocks = frame.rdd.map(opened).persist(StorageLevel.MEMORY_AND_DISK)
        self._ready: Ready | None = None
        self.passes = 0
        survey = self._over(Surveyor(n_folds, n_features), Survey.merge)
        if survey is None:
            raise DataError("there are no rows")
        if len(survey.by_label) < 2:
            raise DataError(f"the data has one class only: {next(iter(survey.by_label)):g}")
        self.n_features = n_features or survey.n_features
        self.classes = np.array(sorted(survey.by_label))
        self.by_class = tuple(survey.by_label[label] for label in self.classes)
        self.n_samples, self.counts = sum(self.by_class), survey.counts
        self._ready = Ready(self.n_features, float(self.classes[1]))

    def sum(self, work: Callable[[PackedBlock, Any], Any], given: Any) -> Any:
        """Sum a function over all blocks in one pass.

        Parameters
        ----------
        work : callable
            Function from a block and the broadcast value `given` to an array.
        given : object
        """
        return self._over(work, add_arrays, given)

    def _over(self, work: Callable[..., Any], merge: Callable[..., Any], given: Any = None) -> Any:
        both = Merge(merge)
        with spark_errors():
            broadcast = None if given is None else self._context.broadcast(given)
            results = self._blocks.mapPartitions(PartitionWork(work, both, broadcast, self._ready))
            total = merged(results, merge)
            if broadcast is not None:
                broadcast.destroy()
        self.passes += 1
        return total

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        with spark_errors():
            self._blocks.unpersist()
