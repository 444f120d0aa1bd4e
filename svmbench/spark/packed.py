"""Blocks of rows that stay with the executors, for what needs more passes than one."""

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
from svmbench.spark.passes import Merge, Refusal, merged, opened
from svmbench.spark.session import told
from svmbench.spark.source import Rows


class Block(NamedTuple):
    """Some rows.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Labels as they were read; ±1 once a function of `Packed.sum` sees them.
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
    """What some blocks hold.

    Attributes
    ----------
    n_features : int
        Of the widest block.
    by_label : dict of float to int
        Number of rows of each label.
    counts : ndarray of shape (n_folds,)
        Number of rows of each fold.
    """

    n_features: int
    by_label: dict[float, int]
    counts: np.ndarray

    def merge(self, other: Survey) -> Survey:
        """Return what both hold.

        Raises
        ------
        ValueError
            For a third label.
        """
        labels = {*self.by_label, *other.by_label}
        check_labels(labels)
        return Survey(
            max(self.n_features, other.n_features),
            {k: self.by_label.get(k, 0) + other.by_label.get(k, 0) for k in labels},
            self.counts + other.counts,
        )


def check_labels(labels: Iterable[float]) -> None:
    """Raise ValueError for more labels than two."""
    found = sorted(labels)
    if len(found) > 2:
        shown = ", ".join(f"{label:g}" for label in found[:3])
        msg = f"there are more labels than two, {shown} among them; the problem has two classes"
        raise ValueError(msg)


@dataclass(frozen=True)
class Surveyor:
    """From a block to what it holds; its refusals are of rows that no solver can use."""

    n_folds: int
    n_features: int | None

    def __call__(self, block: Block) -> Survey:
        """Return the survey of one block."""
        values = block.X.data if sp.issparse(block.X) else block.X
        if not (np.all(np.isfinite(values)) and np.all(np.isfinite(block.y))):
            msg = "there are NaN or infinite values"
            raise ValueError(msg)
        width = block.X.shape[1]
        if self.n_features is not None and width > self.n_features:
            msg = f"there is a feature {width:,}, beyond the last, {self.n_features:,}"
            raise ValueError(msg)
        labels, numbers = np.unique(block.y, return_counts=True)
        check_labels(labels)
        counts = np.full(1, len(block.y))
        if block.folds is not None:
            counts = np.bincount(block.folds, minlength=self.n_folds)
        return Survey(width, dict(zip(labels.tolist(), numbers.tolist(), strict=True)), counts)


@dataclass(frozen=True)
class Work:
    """From the blocks of a partition to one result, or a refusal.

    Attributes
    ----------
    work : callable
        From a block, and what was broadcast, to a result.
    given : pyspark.Broadcast or None
    ready : callable or None
        From a block as it was packed to one as `work` wants it.
    """

    work: Callable[..., Any]
    merge: Merge
    given: Any = None
    ready: Callable[[Block], Block] | None = None

    def __call__(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield the result; None without blocks."""
        found: Any = None
        given = () if self.given is None else (self.given.value,)
        for block in blocks:
            try:
                one = block if self.ready is None else self.ready(block)
                result = one if isinstance(one, Refusal) else self.work(one, *given)
            except (ValueError, SvmbenchError) as error:
                result = Refusal.of(error)
            found = self.merge(found, result)
        yield found


@dataclass(frozen=True)
class Ready:
    """From a block as it was read to one as wide as all, with labels of ±1."""

    n_features: int
    positive: float

    def __call__(self, block: Block) -> Block:
        """Return the block; its values are not copied."""
        X = as_block(block.X, self.n_features)
        return Block(X, np.where(block.y == self.positive, 1.0, -1.0), block.folds)


@dataclass(frozen=True)
class Pack:
    """From batches of Arrow to pickled blocks."""

    read: Callable[[pa.RecordBatch], tuple[Any, Any, Any]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one cell of bytes for each batch."""
        for batch in batches:
            packed: Any
            try:
                packed = Block(*self.read(batch))
            except (ValueError, SvmbenchError) as error:
                packed = Refusal.of(error)
            if isinstance(packed, Refusal) or len(packed.y):
                blob = pa.array([pickle.dumps(packed, protocol=5)], pa.binary())
                yield pa.RecordBatch.from_arrays([blob], ["block"])


def added(one: Any, two: Any) -> Any:
    """Return the sum of two arrays."""
    return one + two


class Packed:
    """Rows as blocks that the executors keep, in memory and beyond it on their disks.

    The first pass reads the rows, and finds out what they hold; a further one goes over the blocks.

    Parameters
    ----------
    rows : Rows
    n_folds : int, default=1
    n_features : int, optional
        Largest number of features; default: that of the rows.

    Attributes
    ----------
    n_features, n_samples : int
    classes : ndarray of shape (2,)
    counts : ndarray of shape (n_folds,)
        Rows of each fold.
    by_class : tuple of int
        Rows of each class.
    passes : int
        Made so far.

    Raises
    ------
    svmbench.base.errors.DataError
        In one sentence, for rows that can't be used, or a single class.
    """

    def __init__(self, rows: Rows, n_folds: int = 1, n_features: int | None = None) -> None:
        from pyspark import StorageLevel  # an optional package

        with told():
            self._context = rows.frame.sparkSession.sparkContext
            frame = rows.frame.mapInArrow(Pack(rows.read), "block binary")
            self._blocks = frame.rdd.map(opened).persist(StorageLevel.MEMORY_AND_DISK)
        self._ready: Ready | None = None
        self.passes = 0
        found = self._over(Surveyor(n_folds, n_features), Survey.merge)
        if found is None:
            raise DataError("there are no rows")
        if len(found.by_label) < 2:
            raise DataError(f"the data has one class only: {next(iter(found.by_label)):g}")
        self.n_features = n_features or found.n_features
        self.classes = np.array(sorted(found.by_label))
        self.by_class = tuple(found.by_label[label] for label in self.classes)
        self.n_samples, self.counts = sum(self.by_class), found.counts
        self._ready = Ready(self.n_features, float(self.classes[1]))

    def sum(self, work: Callable[[Block, Any], Any], given: Any) -> Any:
        """Return the sum over all blocks of what a function makes of each, in one pass.

        Parameters
        ----------
        work : callable
            From a block and `given`, which is broadcast, to an array.
        given : object
        """
        return self._over(work, added, given)

    def _over(self, work: Callable[..., Any], merge: Callable[..., Any], given: Any = None) -> Any:
        both = Merge(merge)
        with told():
            broadcast = None if given is None else self._context.broadcast(given)
            results = self._blocks.mapPartitions(Work(work, both, broadcast, self._ready))
            found = merged(results, merge)
            if broadcast is not None:
                broadcast.destroy()
        self.passes += 1
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        with told():
            self._blocks.unpersist()
