"""Rows of a cell that are read in blocks, with the label and the fold of each row.

The labels and folds of all rows are in memory, a few bytes for each row, but only one block of the
inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from svmbench import data
from svmbench.base.errors import DataError
from svmbench.core.numeric.arrays import as_block
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.task import open_dataset
from svmbench.experiment.settings.cells import NodeSpec
from svmbench.schema.scores import contract as scores


@dataclass(frozen=True)
class BlockRows:
    """Rows that can be gone over again, each with its label and its fold.

    Attributes
    ----------
    name : str
        For sentences.
    blocks : iterable of (X, labels)
        As the data set has them; their labels are not used.
    y : ndarray of shape (n_rows,)
        The labels of all rows, as of any data set: −1 and +1 of two classes.
    n_features : int
    group : ndarray of int of shape (n_rows,)
        The fold of each row; a row of a negative one is left out.
    dense : bool
        Whether blocks are dense arrays whatever the data set has.
    """

    name: str
    blocks: Iterable[tuple[Any, np.ndarray]]
    y: np.ndarray
    n_features: int
    group: np.ndarray
    dense: bool = False

    def only(self, rows: np.ndarray, group: np.ndarray | int = 0) -> Self:
        """Return some of the rows, in their order, in the folds that are given.

        Parameters
        ----------
        rows : ndarray of int
            Their positions among all rows.
        group : int or ndarray of int of shape (len(rows),), default=0
        """
        chosen = np.full(len(self.y), -1, dtype=np.int32)
        chosen[rows] = group
        return replace(self, group=chosen)

    def outside(self, fold: int) -> Self:
        """Return the rows of all folds but one, all in fold 0; left-out rows stay left out."""
        return self.only(np.flatnonzero((self.group >= 0) & (self.group != fold)))

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Yield X, y and folds of each block from which a row is taken.

        Raises
        ------
        svmbench.base.errors.DataError
            If there are other rows than there were.
        """
        start = 0
        for X, labels in self.blocks:
            stop = start + len(labels)
            group = self.group[start:stop]
            if len(group) < len(labels):
                break
            taken = np.flatnonzero(group >= 0)
            if len(taken):
                X, y = as_block(X, self.n_features), self.y[start:stop]
                if len(taken) < len(y):
                    X, y, group = X[taken], y[taken], group[taken]
                yield folds.dense(X) if self.dense else X, y, group
            start = stop
        if start != len(self.y):
            raise DataError(f"{self.name} has changed while the run was reading it")

    def decisions(
        self, models: Sequence[Sequence[Any]], *, signs: bool = False
    ) -> list[np.ndarray]:
        """Return the predictions of models on the rows of each fold, from one pass.

        Parameters
        ----------
        models : sequence of sequences of estimators
            Of two classes; those of the first fold, of the second … Rows of further folds are
            passed over.
        signs : bool, default=False
            Whether the class is all that is wanted, so that a byte is kept of each value.

        Returns
        -------
        list of ndarray of shape (n_models, n_rows_of_the_fold)
            Decision values; ±1 of type int8 where `signs` is set.
        """
        kind = np.int8 if signs else np.float64
        decisions = [
            np.empty((len(fold_models), self.count(f)), kind)
            for f, fold_models in enumerate(models)
        ]
        filled = [0] * len(models)
        for X, _, group in self:
            for f, fold_models in enumerate(models):
                at = np.flatnonzero(group == f)
                if not len(at):
                    continue
                values = scores.values_of_models(fold_models, X[at])
                end = filled[f] + len(at)
                decisions[f][:, filled[f] : end] = np.where(values >= 0, 1, -1) if signs else values
                filled[f] = end
        return decisions

    def count(self, fold: int) -> int:
        """Return the number of rows of a fold."""
        return int(np.sum(self.group == fold))

    def labels(self, fold: int) -> np.ndarray:
        """Return the labels of a fold's rows, in the order in which they are read."""
        return self.y[self.group == fold]


def open_rows(spec: NodeSpec) -> tuple[BlockRows, BlockRows | None]:
    """Open a cell's data set; return its rows, all of fold 0, and those of its test part.

    A file is gone over once for its labels.
    """
    source, chosen = open_dataset(spec), spec["dataset"]
    dense = spec.get("inputs") == "dense"

    def whole(blocks: Any, y: np.ndarray) -> BlockRows:
        group = np.zeros(len(y), dtype=np.int32)
        return BlockRows(chosen["name"], blocks, y, source.X.shape[1], group, dense)

    y = np.asarray(source.y)
    if chosen["file"]:
        return whole(
            data.open_blocks(chosen["file"], label_column=chosen["label_column"] or None), y
        ), None
    tested = None
    if source.X_test is not None:
        y_test = np.asarray(source.y_test)
        tested = whole(data.ArrayBlocks(source.X_test, y_test), y_test)
    return whole(data.ArrayBlocks(source.X, y), y), tested
