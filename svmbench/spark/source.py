"""A data frame, or the path of a file, as rows that the executors read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any

from svmbench.base.errors import DataError
from svmbench.spark.rows import NO_FOLDS, Folds, VectorRows
from svmbench.spark.session import present_session, require_spark, told
from svmbench.spark.text import TextRows

#: Types of a column that holds the features: Spark's vectors, or a list of numbers.
VECTORS = ("vector", "array<double>", "array<float>", "array<int>", "array<bigint>")


@dataclass(frozen=True)
class Columns:
    """Which columns of a data frame are what.

    Attributes
    ----------
    features : str or sequence of str
        A column of vectors or of lists of numbers, or the names of columns of numbers.
    label : str
        Numbers of two values.
    fold : str or None
        The rows' folds, 0 … folds - 1; None to draw them.
    n_features : int or None
        How many features there are, where that is known.
    """

    features: str | Sequence[str] = "features"
    label: str = "label"
    fold: str | None = None
    n_features: int | None = None


@dataclass(frozen=True)
class Rows:
    """Rows to be read by the executors, and how.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        Of the columns that `read` wants.
    read : VectorRows or TextRows
        From a batch of Arrow to X, labels and folds.
    """

    frame: Any
    read: VectorRows | TextRows = field(default_factory=VectorRows)


def rows_of(data: Any, columns: Columns, folds: Folds = NO_FOLDS) -> Rows:
    """Return the rows of a data frame or of a file.

    Parameters
    ----------
    data : pyspark.sql.DataFrame, str or path
        A path (also a folder, a pattern or an address that Spark reads) that ends in ``.parquet``,
        or whose folder holds such files, is Parquet; any other is LIBSVM text.
    columns : Columns
        Of a data frame or Parquet; of text the number of features alone.
    folds : Folds

    Raises
    ------
    svmbench.base.errors.DataError
        For a column that is not there or of another type, or data that are neither.
    """
    require_spark()
    from pyspark.sql import DataFrame

    if isinstance(data, DataFrame):
        with told():
            return _framed(data, columns, folds)
    if not isinstance(data, str | PathLike):
        raise DataError(f"data must be a Spark DataFrame or a path, not {type(data).__name__}")
    path = fspath(data)
    spark = present_session()
    with told():
        if _is_parquet(path):
            return _framed(spark.read.parquet(path), columns, folds)
        if columns.fold is not None:
            raise DataError("LIBSVM text has no column of folds; give a data frame, or none")
        return Rows(spark.read.text(path), TextRows(path, folds, columns.n_features))


def _is_parquet(path: str) -> bool:
    from pathlib import Path

    return path.rstrip("/*").endswith(".parquet") or any(Path(path).glob("*.parquet"))


def _framed(frame: Any, columns: Columns, folds: Folds) -> Rows:
    import pyspark.sql.functions as F  # noqa: N812 (the name that its documentation gives it)

    types = dict(frame.dtypes)
    features = columns.features
    names = [features] if isinstance(features, str) else list(features)
    for name in (*names, columns.label, *([columns.fold] if columns.fold else [])):
        if name not in types:
            raise DataError(f"there is no column {name!r}; there are {', '.join(types)}")
    if not isinstance(features, str):
        chosen = F.array(*[F.col(name).cast("double") for name in features])
    elif types[features] in VECTORS:
        chosen = F.col(features)
    else:
        raise DataError(
            f"the column {features!r} is of type {types[features]}, not of vectors or lists of"
            " numbers"
        )
    taken = [chosen.alias("features"), F.col(columns.label).cast("double").alias("label")]
    if columns.fold:
        taken.append(F.col(columns.fold).cast("double").alias("fold"))
    return Rows(frame.select(*taken), VectorRows(replace(folds, given=bool(columns.fold))))
