"""ALSVM's closed form of data in a cluster: one pass for every C of a grid and every fold.

Problem, Given, Returned
    As `core/linear/alsvm_batch.py` has them, of rows that lie in partitions.
How
    Each partition sums up its rows' outer products, fold by fold
    (`core/linear/statistics.py`), in blocks as Arrow brings them; ``treeAggregate`` adds the sums
    up; the driver factorises once for each fold and C. Neither sums nor solutions depend on the
    partitions, but for rounding: at most some 1e-16 times the condition of the sums.
Reference
    ALSVM paper, equations 1 and 2.
Deviations
    - Where the sums don't determine w in float64, a second pass makes the samples triangular, as
      in memory; triangles of partitions stack up to one.
    - Where sums of so many features take more than `max_sums_mb`, there is a warning, and w comes
      from conjugate gradients, of all folds and C side by side: a pass for each step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np

from svmbench.base.errors import DataError
from svmbench.core.contract.base import Along, PathPoint, TrainingData, require_positive
from svmbench.core.contract.declaration import Declaration
from svmbench.core.linear import least_squares
from svmbench.core.linear.alsvm_batch import ALSVMBatch, folds_of
from svmbench.core.linear.statistics import Statistics
from svmbench.core.numeric.arrays import as_block
from svmbench.spark import steps
from svmbench.spark.frames import is_arrays, predicted, to_frame
from svmbench.spark.passes import TooWideError, fold_rows
from svmbench.spark.rows import Folds, VectorRows
from svmbench.spark.search import Search
from svmbench.spark.session import told
from svmbench.spark.source import Columns, Rows, rows_of


@dataclass(frozen=True)
class Gather:
    """Adds a block to statistics that may take so many bytes."""

    most_bytes: float

    def __call__(self, found: Statistics, block: tuple[Any, Any, Any]) -> Statistics:
        """Return `found` with the block's rows."""
        X, y, folds = block
        width = max(X.shape[1], found.n_features)
        if sums_bytes(width, found.n_folds) > self.most_bytes:
            raise TooWideError(too_wide(width, found.n_folds, self.most_bytes))
        return found.update(X, y, folds)


def sums_bytes(n_features: int, n_folds: int) -> int:
    """Return the bytes that the sums of each fold take."""
    return 8 * n_folds * (n_features + 1) ** 2


def too_wide(n_features: int, n_folds: int, most_bytes: float) -> str:
    """Return the sentence that says so."""
    size = sums_bytes(n_features, n_folds) / 2**20
    return (
        f"the sums of {n_features:,} features and {n_folds} fold{'s' * (n_folds > 1)} take"
        f" {size:,.0f} MiB, more than max_sums_mb={most_bytes / 2**20:g}: solved by conjugate"
        " gradients, which read the data once a step"
    )


@dataclass(frozen=True)
class Triangulate:
    """Puts a block below the triangular factor of its fold, with the labels as last column.

    Attributes
    ----------
    classes : ndarray of shape (2,)
    n_features : int
    bias : float
    """

    classes: np.ndarray
    n_features: int
    bias: float

    def __call__(self, found: list[np.ndarray], block: tuple[Any, Any, Any]) -> list[np.ndarray]:
        """Return `found` with the block's rows."""
        X, y, folds = block
        X, signs = as_block(X, self.n_features), np.where(y == self.classes[1], 1.0, -1.0)
        group = np.zeros(len(y), dtype=np.int32) if folds is None else folds
        for fold in np.unique(group):
            rows = np.flatnonzero(group == fold)
            found[fold] = least_squares.stacked(found[fold], X[rows], signs[rows], self.bias)
        return found


def no_triangles(n_folds: int, width: int) -> list[np.ndarray]:
    """Return a triangular factor of no rows for each fold."""
    return [np.empty((0, width)) for _ in range(n_folds)]


def stacked_triangles(one: list[np.ndarray], two: list[np.ndarray]) -> list[np.ndarray]:
    """Return the factors of both, fold by fold."""
    return [
        np.asarray(np.linalg.qr(np.vstack(pair), mode="r")) for pair in zip(one, two, strict=True)
    ]


class ALSVMSpark(ALSVMBatch):
    """The least-squares SVM in closed form, of a Spark data frame or a file that Spark reads.

    The model is that of :class:`~svmbench.core.linear.alsvm_batch.ALSVMBatch`, and predicts arrays
    as every solver does; `transform` predicts a data frame.

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
        Number of features; one beyond is an error. Default: found in the pass.
    max_sums_mb : float, default=256.0
        MiB that the sums, ``8 folds (n_features + 1)**2`` bytes, may take: on the driver, in each
        Python worker, and on their way. That is 5,791 features, with five folds 2,589.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    objective_ : float
        From the sums.
    stop_reason_ : str
        As ``alsvm-batch`` has it.
    counters_ : dict
        ``passes`` over the data, ``factorisations``, ``fallbacks``, ``visits`` (rows read by all
        tasks: more than passes times rows where Spark had to repeat one).
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
        """Fit a data frame or a file; arrays go to a session on this machine.

        Parameters
        ----------
        X : pyspark.sql.DataFrame, str, path or array-like
            As :func:`svmbench.spark.source.rows_of` takes it; or arrays, with their `y`.
        y : array-like of shape (n_samples,), optional

        Raises
        ------
        svmbench.base.errors.DataError
            In one sentence: labels other than two, null, NaN or infinite values, a feature beyond
            `n_features`, a column that is not there, no rows.
        svmbench.base.errors.MissingPackageError
            If PySpark or Java is missing here, or a package on the executors.
        """
        if is_arrays(X, y):
            return super().fit(X, y)
        self._check_parameters()
        (point,) = self._points(rows_of(X, self._columns()), [self.C], 1)
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
    ) -> Search:
        """Solve for every C on the training rows of every fold, and on all rows, from one pass.

        Parameters
        ----------
        data : pyspark.sql.DataFrame, str or path
        values : sequence of float
            Of C.
        folds : int, default=5
            At least 2.
        fold : str, optional
            Column of the rows' folds, 0 … folds - 1. Default: drawn by the rows' values
            (:func:`svmbench.spark.rows.folds_by_content`), so that no partitioning changes them.
        seed : int, default=0
            Of that draw.

        Raises
        ------
        ValueError
            For a fold without rows, or without which one class is left; and as `fit` does.
        """
        if folds < 2 or not len(values):
            msg = f"a search needs 2 folds or more, and a value of C; got {folds} and {values}"
            raise ValueError(msg)
        drawn = Folds(folds, seed)
        rows = rows_of(data, self._columns(fold), drawn)
        points = list(self._points(rows, values, folds, and_all=True))
        return Search.of(points, list(values), folds)

    def transform(self, frame: Any, column: str = "prediction") -> Any:
        """Return a data frame with the predicted label of each row as a further column.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        column : str, default="prediction"
        """
        return predicted(self, frame, self._columns(), column)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate arrays, and hand them to a session on this machine as a data frame."""
        data = super().prepare(X, y)
        data.native = to_frame(data.X, data.y)
        return data

    def train(self, data: TrainingData) -> Self:
        """Make the pass and solve."""
        (point,) = self._points(Rows(data.native), [self.C], 1)
        return self._take(point.solution)

    def _path(self, data: Any, y: np.ndarray | None, along: Along) -> Iterator[PathPoint]:
        """Solve for each value of a parameter.

        Along C one pass serves every value, and every fold where the splits are a partition.
        """
        over, values, splits = along
        n_folds = 1 if splits is None else len(splits)
        group = None if splits is None else folds_of(splits, len(data.y))
        if over != "C" or (splits is not None and group is None) or data.weights is not None:
            yield from super(ALSVMBatch, self)._path(data, y, along)
            return
        rows = Rows(data.native)
        if group is not None:
            rows = Rows(to_frame(data.X, data.y, group), VectorRows(Folds(n_folds, given=True)))
        for found, seconds, work in self._points(rows, values, n_folds):
            yield PathPoint(self._sibling(C=found.C)._take(found), seconds, work)

    def _columns(self, fold: str | None = None) -> Columns:
        return Columns(self.features, self.label, fold, self.n_features)

    def _take(self, found: Any) -> Self:
        """Take over a solution, but for its classes: arrays have labels of their own."""
        kept = {"classes_": self.classes_, "n_features_in_": self.n_features_in_}
        self.__dict__.update({**found.__dict__, **kept})
        return self

    def _points(
        self, rows: Rows, values: Sequence[float], n_folds: int, *, and_all: bool = False
    ) -> Iterator[PathPoint]:
        """Yield the solution of each C, fold after fold, and where asked for of all rows, too."""
        models = [self._clone_at(float(C)) for C in values]
        start, most = perf_counter(), self.max_sums_mb * 2**20
        try:
            if self.n_features and sums_bytes(self.n_features, n_folds) > most:
                raise TooWideError(too_wide(self.n_features, n_folds, most))
            with told():
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
        check_folds(gathered)
        trains = [None] if n_folds == 1 else [*range(n_folds), *([None] if and_all else [])]
        shared = (perf_counter() - start) / (len(trains) * len(models))
        work, triangles = {"passes": 1, "visits": visits}, None
        for without in trains:
            sums = gathered.sums(self.bias, without)
            for model in models:
                start = perf_counter()
                found = model._clone_at(model.C).fit_statistics(gathered, without, sums)
                if found.stop_reason_ == least_squares.BY_POOR_SUMS:
                    if triangles is None:
                        triangles, again = self._triangles(rows, gathered)
                        work = {"passes": work["passes"] + 1, "visits": work["visits"] + again}
                        visits += again
                    found._solve_triangle(triangles, sums, without)
                found.counters_["visits"] = visits
                if without is not None:
                    held_out = gathered.held_out(without, self.bias)
                    loss = held_out.loss(found.coef_[0], float(found.intercept_[0]))
                    found.held_out_loss_ = loss / int(gathered.counts[without])
                cost = shared + perf_counter() - start
                yield PathPoint(found, cost, {**found.counters_, **work})
                work = {"passes": 0, "visits": 0}

    def _clone_at(self, C: float) -> Self:
        model = type(self)(**{**self.get_params(), "C": C})
        model._check_parameters()
        return model

    def _triangles(self, rows: Rows, gathered: Statistics) -> tuple[list[np.ndarray], int]:
        """Return each fold's triangular factor from a second pass, and the rows read."""
        width = gathered.n_features + bool(self.bias) + 1
        with told():
            return fold_rows(
                rows.frame,
                rows.read,
                partial(no_triangles, gathered.n_folds, width),
                Triangulate(gathered.classes, gathered.n_features, self.bias),
                stacked_triangles,
            )


def check_folds(gathered: Any) -> None:
    """Raise DataError where there are no rows at all, or none in a fold.

    Parameters
    ----------
    gathered : object
        With ``counts``, the number of rows of each fold.
    """
    if not gathered.counts.sum():
        raise DataError("there are no rows")
    empty = np.flatnonzero(gathered.counts == 0)
    if len(empty):
        raise DataError(
            f"fold {empty[0]} has no rows (0 … {len(gathered.counts) - 1} need some): take fewer"
            " folds, or name a column of folds"
        )
