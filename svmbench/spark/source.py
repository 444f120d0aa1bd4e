"""Find the rows of a data frame or a file, for reading on the executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any

from svmbench.base.errors import DataError
from svmbench.spark.rows import NO_FOLDS, FoldAssignment, VectorRows
from svmbench.spark.session import present_session, require_spark, spark_errors
from svmbench.spark.text import TextRows

#: Allowed types of the column of features: Spark's vectors, or lists of numbers.
FEATURE_TYPES = ("vector", "array<double>", "array<float>", "array<int>", "array<bigint>")


@dataclass(frozen=True)
class FrameColumns:
    """The roles of the columns of a data frame.

    Attributes
    ----------
    features : str or sequence of str
        A column of vectors or of lists of numbers, or the names of columns of numbers.
    label : str
        Column of labels, which are numbers with two values.
    fold : str or None
        Column of folds, 0 … folds - 1; None to compute them.
    n_features : int or None
        Number of features, if known.
    """

    features: str | Sequence[str] = "features"
    label: str = "label"
    fold: str | None = None
    n_features: int | None = None


@dataclass(frozen=True)
class SparkRows:
    """Rows for the executors, with a reader.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        Data frame with the columns for `read`.
    read : VectorRows or TextRows
        Function from an Arrow batch to X, labels and folds.
    """

    frame: Any
    read: VectorRows | TextRows = field(default_factory=VectorRows)


def rows_to_read(data: Any, columns: FrameColumns, folds: FoldAssignment = NO_FOLDS) -> SparkRows:
    """Return the rows of a data frame or of a file.

    Parameters
    ----------
    data : pyspark.sql.DataFrame, str or path
        A path may also be a folder, a pattern or an address. It is Parquet if it ends in
        ``.parquet`` or its folder holds such files, else LIBSVM text.
    columns : Columns
        Columns of a data frame or of Parquet; for text, only the number of features is used.
    folds : Folds

    Raises
    ------
    svmbench.base.errors.DataError
        For a missing column, a column of a wrong type, or other data.
    """
    require_spark()
    from pyspark.sql import DataFrame

    if isinstance(data, DataFrame):
        with spark_errors():
            return _framed(data, columns, folds)
    if not isinstance(data, str | PathLike):
        raise DataError(f"data must be a Spark DataFrame or a path, not {type(data).__name__}")
    path = fspath(data)
    spark = present_session()
    with spark_errors():
        if _is_parquet(path):
            return _framed(spark.read.parquet(path), columns, folds)
        if columns.fold is not None:
            raise DataError("LIBSVM text has no column of folds; use a data frame, or no column")
        return SparkRows(spark.read.text(path), TextRows(path, folds, columns.n_features))


def _is_parquet(path: str) -> bool:
    from pathlib import Path

    return path.rstrip("/*").endswith(".parquet") or any(Path(path).glob("*.parquet"))


def _framed(frame: Any, columns: FrameColumns, folds: FoldAssignment) -> SparkRows:
    import pyspark.sql.functions as F  # noqa: N812 (the name that its documentation gives it)

    types = dict(frame.dtypes)
    features = columns.features
    names = [features] if isinstance(features, str) else list(features)
    for name in (*names, columns.label, *([columns.fold] if columns.fold else [])):
        if name not in types:
            raise DataError(f"there is no column {name!r}; there are {', '.join(types)}")
    if not isinstance(features, str):
        chosen = F.array(*[F.col(name).cast("double") for name in features])
    elif types[features] in FEATURE_TYPES:
        chosen = F.col(features)
    else:
        raise DataError(
            f"the column {features!r} has the type {types[features]}; it must hold vectors or lists"
            " of numbers"
        )
    taken = [chosen.alias("features"), F.col(columns.label).cast("double").alias("label")]
    if columns.fold:
        taken.append(F.col(columns.fold).cast("double").alias("fold"))
    return SparkRows(frame.select(*taken), VectorRows(replace(folds, given=bool(columns.fold))))
