"""One pass over the rows of a cluster: each partition folded by itself, the results by a tree.

What a partition can't use is no exception, which Spark would try again four times and log at
length, but a `Refusal` that takes the place of the result.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from svmbench.base.errors import DataError, SvmbenchError
from svmbench.core.numeric.arrays import as_block

#: CSR rows that are added at a time, at least: an addition goes over all sums, and of wide sparse
#: rows that costs more than the rows do.
TOGETHER = 50_000

T = TypeVar("T")


@dataclass(frozen=True)
class Refusal:
    """Why a partition was refused.

    Attributes
    ----------
    error : exception
        What is raised.
    """

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """Return what is told of an error; one that is not ours is one of the data."""
        return cls(error if isinstance(error, SvmbenchError) else DataError(str(error)))

    @property
    def reason(self) -> str:
        """What is wrong, one sentence."""
        return str(self.error)


class TooWideError(SvmbenchError):
    """More features than there may be sums of."""


@dataclass(frozen=True)
class Folded:
    """From the batches of a partition to one pickled result.

    Attributes
    ----------
    read : callable
        From a batch of Arrow to a block: (X, labels, folds).
    start : callable
        Returns an empty result.
    add : callable
        From a result and a block to a result.
    visits : pyspark.accumulators.Accumulator
        Counts the rows read, those read again for a lost executor among them.
    """

    read: Callable[[pa.RecordBatch], tuple[Any, Any, Any]]
    start: Callable[[], Any]
    add: Callable[[Any, tuple[Any, Any, Any]], Any]
    visits: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result as one cell of bytes."""
        found: Any = self.start()
        try:
            for block in together(map(self.read, batches)):
                found = self.add(found, block)
                self.visits.add(len(block[1]))
        except (ValueError, SvmbenchError) as error:
            found = Refusal.of(error)
        blob = pa.array([pickle.dumps(found, protocol=5)], pa.binary())
        yield pa.RecordBatch.from_arrays([blob], ["result"])


def together(blocks: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield blocks, CSR ones joined up to :data:`TOGETHER` rows."""
    held: list[tuple[Any, Any, Any]] = []
    for block in blocks:
        if not sp.issparse(block[0]):
            yield block
            continue
        held.append(block)
        if sum(len(y) for _, y, _ in held) >= TOGETHER:
            yield joined(held)
            held = []
    if held:
        yield joined(held)


def joined(blocks: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """Return CSR blocks as one, as wide as the widest."""
    if len(blocks) == 1:
        return blocks[0]
    width = max(X.shape[1] for X, _, _ in blocks)
    X = sp.vstack([as_block(X, width) for X, _, _ in blocks], format="csr")
    _, labels, folds = zip(*blocks, strict=True)
    return X, np.concatenate(labels), None if folds[0] is None else np.concatenate(folds)


@dataclass(frozen=True)
class Merge:
    """From two results to one; a refusal is stronger, and of two the one that sorts first."""

    merge: Callable[[Any, Any], Any]

    def __call__(self, one: Any, two: Any) -> Any:
        """Return both as one; None is nothing yet."""
        if one is None or two is None:
            return two if one is None else one
        refused = [each for each in (one, two) if isinstance(each, Refusal)]
        if refused:
            return min(refused, key=lambda each: each.reason)
        try:
            return self.merge(one, two)
        except ValueError as error:
            return Refusal.of(error)


def opened(row: Any) -> Any:
    """Return the result that a row of bytes is."""
    return pickle.loads(row[0])


def fold_rows(
    frame: Any,
    read: Callable[[pa.RecordBatch], tuple[Any, Any, Any]],
    start: Callable[[], T],
    add: Callable[[T, tuple[Any, Any, Any]], T],
    merge: Callable[[T, T], T],
) -> tuple[T, int]:
    """Return what a pass over all rows has found, and the number of rows read.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    read, start, add
        As :class:`Folded` has them; they and all they name have to be importable there.
    merge : callable
        From two results to one.

    Raises
    ------
    svmbench.base.errors.DataError
        What a partition, or two together, were refused for.
    """
    visits = frame.sparkSession.sparkContext.accumulator(0)
    folded = frame.mapInArrow(Folded(read, start, add, visits), "result binary")
    found = merged(folded.rdd.map(opened), merge)
    return (start() if found is None else found), int(visits.value)


def merged(results: Any, merge: Callable[[T, T], T]) -> T | None:
    """Return the results of an RDD as one, by a tree; None where there is none.

    Raises
    ------
    svmbench.base.errors.DataError
        If one of them is a refusal, or two can't be merged.
    """
    both = Merge(merge)
    found = results.treeAggregate(None, both, both)
    if isinstance(found, Refusal):
        raise found.error
    return found
