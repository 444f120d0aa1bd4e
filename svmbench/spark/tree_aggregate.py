"""One pass over the rows of a cluster: reduce each partition, and merge the results in a tree.

If a partition has unusable rows, its result is a `Refusal`. Spark would repeat a task with an
exception four times, and log it at length.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from svmbench.base.errors import DataError, SvmbenchError
from svmbench.core.numeric.arrays import as_block

#: Smallest number of CSR rows that are added at a time. Each addition reads all sums, which for
#: wide sparse rows costs more than the rows.
FEWEST_CSR_ROWS_PER_ADDITION = 50_000

PassResult = TypeVar("PassResult")


@dataclass(frozen=True)
class Refusal:
    """The reason why a partition has no result.

    Attributes
    ----------
    error : exception
        The error to raise.
    """

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """Return the refusal for an error; an error of another package becomes a DataError."""
        return cls(error if isinstance(error, SvmbenchError) else DataError(str(error)))

    @property
    def reason(self) -> str:
        """The error in one sentence."""
        return str(self.error)


class TooWideError(SvmbenchError):
    """Too many features for sums."""


@cache
def leave_out_of_collections() -> None:
    """Leave what this worker has loaded out of all later collections of garbage.

    PySpark collects garbage after each task, and would look through all modules each time.
    """
    gc.freeze()


@dataclass(frozen=True)
class Folded:
    """Reduce the batches of a partition to one pickled result.

    Attributes
    ----------
    read : callable
        Function from an Arrow batch to a block: (X, labels, folds).
    start : callable
        Returns an empty result.
    add : callable
        Function from a result and a block to a result.
    visits : pyspark.accumulators.Accumulator
        Counts the rows read, also those read again for a lost executor.
    """

    read: Callable[[pa.RecordBatch], tuple[Any, Any, Any]]
    start: Callable[[], Any]
    add: Callable[[Any, tuple[Any, Any, Any]], Any]
    visits: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the pickled result."""
        leave_out_of_collections()
        total: Any = self.start()
        try:
            for block in join_csr_blocks(map(self.read, batches)):
                total = self.add(total, block)
                self.visits.add(len(block[1]))
        except (ValueError, SvmbenchError) as error:
            total = Refusal.of(error)
        blob = pa.array([pickle.dumps(total, protocol=5)], pa.binary())
        yield pa.RecordBatch.from_arrays([blob], ["result"])


def join_csr_blocks(blocks: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield blocks; join CSR blocks up to :data:`FEWEST_CSR_ROWS_PER_ADDITION` rows."""
    held: list[tuple[Any, Any, Any]] = []
    for block in blocks:
        if not sp.issparse(block[0]):
            yield block
            continue
        held.append(block)
        if sum(len(y) for _, y, _ in held) >= FEWEST_CSR_ROWS_PER_ADDITION:
            yield stacked_csr(held)
            held = []
    if held:
        yield stacked_csr(held)


def stacked_csr(blocks: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """Stack CSR blocks, with the width of the widest."""
    if len(blocks) == 1:
        return blocks[0]
    width = max(X.shape[1] for X, _, _ in blocks)
    X = sp.vstack([as_block(X, width) for X, _, _ in blocks], format="csr")
    _, labels, folds = zip(*blocks, strict=True)
    return X, np.concatenate(labels), None if folds[0] is None else np.concatenate(folds)


@dataclass(frozen=True)
class Merge:
    """Merge two results. A refusal wins over a result; of two, the first in sorted order wins."""

    merge: Callable[[Any, Any], Any]

    def __call__(self, first: Any, second: Any) -> Any:
        """Return the merged result; None stands for no result yet."""
        if first is None or second is None:
            return second if first is None else first
        refused = [each for each in (first, second) if isinstance(each, Refusal)]
        if refused:
            return min(refused, key=lambda each: each.reason)
        try:
            return self.merge(first, second)
        except ValueError as error:
            return Refusal.of(error)


def opened(row: Any) -> Any:
    """Unpickle a result."""
    return pickle.loads(row[0])


def fold_rows(
    frame: Any,
    read: Callable[[pa.RecordBatch], tuple[Any, Any, Any]],
    start: Callable[[], PassResult],
    add: Callable[[PassResult, tuple[Any, Any, Any]], PassResult],
    merge: Callable[[PassResult, PassResult], PassResult],
) -> tuple[PassResult, int]:
    """Run one pass over all rows; return the result and the number of rows read.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    read, start, add
        As for :class:`Folded`; the executors must be able to import them.
    merge : callable
        Function from two results to one.

    Raises
    ------
    svmbench.base.errors.DataError
        If a partition has unusable rows, or two results can't be merged.
    """
    visits = frame.sparkSession.sparkContext.accumulator(0)
    folded = frame.mapInArrow(Folded(read, start, add, visits), "result binary")
    total = merged(folded.rdd.map(opened), merge)
    return (start() if total is None else total), int(visits.value)


def merged(
    results: Any, merge: Callable[[PassResult, PassResult], PassResult]
) -> PassResult | None:
    """Merge the results of an RDD in a tree; return None if there are none.

    Raises
    ------
    svmbench.base.errors.DataError
        If a result is a refusal, or two results can't be merged.
    """
    both = Merge(merge)
    result = results.treeAggregate(None, both, both)
    if isinstance(result, Refusal):
        raise result.error
    return result
