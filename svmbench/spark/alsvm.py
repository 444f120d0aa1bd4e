"""ALSVM's closed form for data in a cluster: one pass for all values of C and all folds.

Problem, Given, Returned
    As in `core/linear/alsvm_batch.py`, for rows in partitions.
Method
    Each partition sums the outer products of its rows for each fold (`core/linear/statistics.py`),
    in blocks from Arrow. ``treeAggregate`` adds the sums, and the driver factorises once for each
    fold and C. The partitions change sums and solutions by rounding only: by about 1e-16 times the
    condition number of the sums.
Reference
    ALSVM paper, equations 1 and 2.
Deviations
    - If the sums don't determine w in float64, a second pass computes a triangular factor of the
      samples, as in memory; the factors of the partitions are stacked and factorised again.
    - If the sums take more than `max_sums_mb`, the solver warns and uses conjugate gradients for
      all folds and values of C together, with one pass for each step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np

from svmbench.core.contract.base import Along, PathPoint, TrainingData, require_positive
from svmbench.core.contract.declaration import Declaration
from svmbench.core.linear import least_squares
from svmbench.core.linear.alsvm_batch import ALSVMBatch, folds_of
from svmbench.core.linear.statistics import Statistics
from svmbench.core.numeric.arrays import as_block
from svmbench.spark import steps
from svmbench.spark.frames import is_arrays, predicted, to_frame
from svmbench.spark.rows import FoldAssignment, VectorRows
from svmbench.spark.search import SearchResult
from svmbench.spark.session import spark_errors
from svmbench.spark.source import FrameColumns, SparkRows, rows_to_read
from svmbench.spark.tree_aggregate import TooWideError, fold_rows


@dataclass(frozen=True)
class Gather:
    """Add a block to statistics, up to a largest number of bytes."""

    most_bytes: float

    def __call__(self, sums: Statistics, block: tuple[Any, Any, Any]) -> Statistics:
        """Return `sums` with the block's rows."""
        X, y, folds = block
        width = max(X.shape[1], sums.n_features)
        if sums_bytes(width, sums.n_folds) > self.most_bytes:
            raise TooWideError(too_wide(width, sums.n_folds, self.most_bytes))
        return sums.update(X, y, folds)


def sums_bytes(n_features: int, n_folds: int) -> int:
    """Return the bytes of the sums of all folds."""
    return 8 * n_folds * (n_features + 1) ** 2


def too_wide(n_features: int, n_folds: int, most_bytes: float) -> str:
    """Return the warning that the sums are too large."""
    size = sums_bytes(n_features, n_folds) / 2**20
    return (
        f"the sums of {n_features:,} features and {n_folds} fold{'s' * (n_folds > 1)} take"
        f" {size:,.0f} MiB, more than max_sums_mb={most_bytes / 2**20:g}: solved by conjugate"
        " gradients, which read the data once per step"
    )


@dataclass(frozen=True)
class Triangulate:
    """Add a block to the triangular factors of its folds, with the labels as the last column.

    Attributes
    ----------
    classes : ndarray of shape (2,)
    n_features : int
    bias : float
    """

    classes: np.ndarray
    n_features: int
    bias: float

    def __call__(
        self, triangles: list[np.ndarray], block: tuple[Any, Any, Any]
    ) -> list[np.ndarray]:
        """Return `triangles` with the block's rows."""
        X, y, folds = block
        X, signs = as_block(X, self.n_features), np.where(y == self.classes[1], 1.0, -1.0)
        group = np.zeros(len(y), dtype=np.int32) if folds is None else folds
        for fold in np.unique(group):
            rows = np.flatnonzero(group == fold)
            triangles[fold] = least_squares.append_to_factor(
                triangles[fold], X[rows], signs[rows], self.bias
            )
        return triangles


def no_triangles(n_folds: int, width: int) -> list[np.ndarray]:
    """Return an empty triangular factor for each fold."""
    return [np.empty((0, width)) for _ in range(n_folds)]


def stacked_triangles(first: list[np.ndarray], second: list[np.ndarray]) -> list[np.ndarray]:
    """Return the triangular factors of two stacks of rows, fold by fold."""
    return [
        np.asarray(np.linalg.qr(np.vstack(pair), mode="r"))
        for pair in zip(first, second, strict=True)
    ]


class ALSVMSpark(ALSVMBatch):
    """The least-squares SVM in closed form, for a Spark data frame or a file that Spark reads.

    The model is that of :class:`~svmbench.core.linear.alsvm_batch.ALSVMBatch`, and predicts arrays;
    `transform` predicts a data frame.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed squared losses; above 0.
    fit_intercept : bool, default=True
        Whether there is a constant feature.
    intercept_scaling : float, default=1.0
        Its value.
    features : str or sequence of str, default="features"
        The column of vectors (or lists of numbers), or the columns of numbers.
    label : str, default="label"
        The column of labels: numbers, two values.
    n_features : int, optional
        Number of features; a higher index is an error. By default, found in the pass.
    max_sums_mb : float, default=256.0
        Largest size of the sums, ``8 folds (n_features + 1)**2`` bytes, in MiB: on the driver, in
        each Python worker, and in each message. The default allows 5,791 features, or 2,589 with
        five folds.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    objective_ : float
        Objective, computed from the sums.
    stop_reason_ : str
        As for ``alsvm-batch``.
    counters_ : dict
        ``passes`` over the data, ``factorisations``, ``fallbacks``, ``visits`` (rows read by all
        tasks; more than passes times rows if Spark repeated a task).
    """

    declaration = Declaration(
        name="alsvm-spark",
        problem="least-squares",
        paper="alsvm",
        summary="alsvm-batch by Spark: sums of partitions in one pass, whole C grids and CVs",
        reference="ALSVM paper, equations 1 and 2",
        paths=("C",),
    )

    #: Mean loss of the rows of a fold that a model of `path` was not trained on.
    held_out_loss_: float

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        features: str | Sequence[str] = "features",
        label: str = "label",
        n_features: int | None = None,
        max_sums_mb: float = 256.0,
    ) -> None:
        super().__init__(C, fit_intercept=fit_intercept, intercept_scaling=intercept_scaling)
        self.features = features
        self.label = label
        self.n_features = n_features
        self.max_sums_mb = max_sums_mb

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("max_sums_mb", self.max_sums_mb)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a data frame or a file; arrays are sent to a session on this machine.

        Parameters
        ----------
        X : pyspark.sql.DataFrame, str, path or array-like
            As for :func:`svmbench.spark.source.rows_to_read`; or arrays with `y`.
        y : array-like of shape (n_samples,), optional

        Raises
        ------
        svmbench.base.errors.DataError
            For labels that are not two, null, NaN or infinite values, an index above
            `n_features`, a missing column, or no rows.
        svmbench.base.errors.MissingPackageError
            If PySpark or Java is missing here, or a package on the executors.
        """
        if is_arrays(X, y):
            return super().fit(X, y)
        self._check_parameters()
        (point,) = self._points(rows_to_read(X, self._columns()), [self.C], 1)
        self.__dict__.update(point.solution.__dict__)
        return self

    def search(
        self,
        data: Any,
        values: Sequence[float],
        folds: int = 5,
        *,
        fold: str | None = None,
        seed: int = 0,
    ) -> SearchResult:
        """Solve for all values of C on all training folds and on all rows, from one pass.

        Parameters
        ----------
        data : pyspark.sql.DataFrame, str or path
        values : sequence of float
            Values of C.
        folds : int, default=5
            Number of folds, at least 2.
        fold : str, optional
            Column of folds, 0 … folds - 1. By default, folds are computed from the values of the
            rows (:func:`svmbench.spark.rows.folds_by_content`), independently of partitions.
        seed : int, default=0
            Seed of these folds.

        Raises
        ------
        ValueError
            If a fold is empty, if only one class is left without a fold, and as for `fit`.
        """
        if folds < 2 or not len(values):
            msg = f"a search needs 2 folds or more and a value of C, got {folds} and {values}"
            raise ValueError(msg)
        drawn = FoldAssignment(folds, seed)
        rows = rows_to_read(data, self._columns(fold), drawn)
        points = list(self._points(rows, values, folds, and_all=True))
        return SearchResult.of(points, list(values), folds)

    def transform(self, frame: Any, column: str = "prediction") -> Any:
        """Return a data frame with the predicted label of each row as a further column.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        column : str, default="prediction"
        """
        return predicted(self, frame, self._columns(), column)

    def _convert(self, data: TrainingData) -> TrainingData:
        """Send arrays to a session on this machine as a data frame."""
        data.native = to_frame(data.X, data.y)
        return data

    def train(self, data: TrainingData) -> Self:
        """Run the pass and solve."""
        (point,) = self._points(SparkRows(data.native), [self.C], 1)
        return self._take(point.solution)

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value of a parameter.

        For C, one pass serves all values, and all folds if the splits are a partition.
        """
        over, values, splits = along
        n_folds = 1 if splits is None else len(splits)
        group = None if splits is None else folds_of(splits, len(data.y))
        if over != "C" or (splits is not None and group is None) or data.weights is not None:
            yield from super(ALSVMBatch, self)._path(data, y, along)
            return
        rows = SparkRows(data.native)
        if group is not None:
            rows = SparkRows(
                to_frame(data.X, data.y, group), VectorRows(FoldAssignment(n_folds, given=True))
            )
        for fitted, seconds, work in self._points(rows, values, n_folds):
            yield PathPoint(self._sibling(C=fitted.C)._take(fitted), seconds, work)

    def _columns(self, fold: str | None = None) -> FrameColumns:
        return FrameColumns(self.features, self.label, fold, self.n_features)

    def _take(self, fitted: Any) -> Self:
        """Store a solution, without its classes: arrays have their own labels."""
        of_data = {"classes_": self.classes_, "n_features_in_": self.n_features_in_}
        self.__dict__.update({**fitted.__dict__, **of_data})
        return self

    def _points(
        self, rows: SparkRows, values: Sequence[float], n_folds: int, *, and_all: bool = False
    ) -> Iterator[PathPoint]:
        """Yield the solution of each C, fold after fold, and then of all rows if `and_all`."""
        models = [self._clone_at(float(C)) for C in values]
        start, most = perf_counter(), self.max_sums_mb * 2**20
        try:
            if self.n_features and sums_bytes(self.n_features, n_folds) > most:
                raise TooWideError(too_wide(self.n_features, n_folds, most))
            with spark_errors():
                gathered, visits = fold_rows(
                    rows.frame,
                    rows.read,
                    partial(Statistics, n_folds, self.n_features),
                    Gather(most),
                    Statistics.merge,
                )
        except TooWideError as error:
            warnings.warn(str(error), stacklevel=4)
            yield from steps.points(rows, models, n_folds, self.n_features, and_all=and_all)
            return
        steps.check_folds(gathered)
        trains = [None] if n_folds == 1 else [*range(n_folds), *([None] if and_all else [])]
        shared = (perf_counter() - start) / (len(trains) * len(models))
        work, triangles = {"passes": 1, "visits": visits}, None
        for without in trains:
            sums = gathered.sums(self.bias, without)
            for model in models:
                start = perf_counter()
                fitted = model._clone_at(model.C).fit_statistics(gathered, without, sums)
                if fitted.stop_reason_ == least_squares.BY_POOR_SUMS:
                    if triangles is None:
                        triangles, again = self._triangles(rows, gathered)
                        work = {"passes": work["passes"] + 1, "visits": work["visits"] + again}
                        visits += again
                    fitted._solve_triangle(triangles, sums, without)
                fitted.counters_["visits"] = visits
                if without is not None:
                    held_out = gathered.held_out(without, self.bias)
                    loss = held_out.loss(fitted.coef_[0], float(fitted.intercept_[0]))
                    fitted.held_out_loss_ = loss / int(gathered.counts[without])
                cost = shared + perf_counter() - start
                yield PathPoint(fitted, cost, {**fitted.counters_, **work})
                work = {"passes": 0, "visits": 0}

    def _clone_at(self, C: float) -> Self:
        model = type(self)(**{**self.get_params(), "C": C})
        model._check_parameters()
        return model

    def _triangles(self, rows: SparkRows, gathered: Statistics) -> tuple[list[np.ndarray], int]:
        """Return the triangular factor of each fold from a second pass, and the rows read."""
        width = gathered.n_features + bool(self.bias) + 1
        with spark_errors():
            return fold_rows(
                rows.frame,
                rows.read,
                partial(no_triangles, gathered.n_folds, width),
                Triangulate(gathered.classes, gathered.n_features, self.bias),
                stacked_triangles,
            )
