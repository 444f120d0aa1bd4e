"""Read LIBSVM text in Spark: parse lines on the executors, and locate errors on the driver.

Spark splits files at arbitrary places, so an executor doesn't know line numbers. It returns a
malformed line to the driver, which runs two more jobs to find the line in the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from svmbench.base.errors import DataError
from svmbench.base.escape import line as shown
from svmbench.spark.rows import NO_FOLDS, FoldAssignment

#: Number of characters of a line that an error quotes.
SHOWN_LINE_CHARS = 60


class LineError(DataError):
    """A malformed line; the message quotes its beginning.

    Parameters
    ----------
    path : str
        The path that Spark reads.
    text : str
        The line.
    reason : str
        The error, with the column if it is known.
    """

    def __init__(self, path: str, text: str, reason: str) -> None:
        self.path, self.text, self.reason = path, text, reason
        super().__init__(f"{path}, the line {shown(text, SHOWN_LINE_CHARS)!r}{reason}")

    def __reduce__(self) -> tuple[type[LineError], tuple[str, str, str]]:
        """Pickle the arguments, to send the error from an executor."""
        return LineError, (self.path, self.text, self.reason)


@dataclass(frozen=True)
class TextRows:
    """Reader of lines of LIBSVM text.

    Attributes
    ----------
    path : str
        The path, for errors.
    folds : Folds
    n_features : int or None
        Number of features; a higher index is an error.
    """

    path: str
    folds: FoldAssignment = NO_FOLDS
    n_features: int | None = None

    def __call__(self, batch: pa.RecordBatch) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, labels and folds of a batch of lines; X is as wide as its last feature.

        Raises
        ------
        LineError
            For a malformed line, or an index above `n_features`.
        """
        from svmbench.data import libsvm  # imported for text only

        lines = batch.column(0)
        whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
        content = pc.binary_join(whole, "\n")[0].as_buffer().to_pybytes()
        if not content.strip():
            X = sp.csr_array((0, 0))
            return X, np.zeros(0), self.folds.of(X, None)
        try:
            X, labels = libsvm.parse_libsvm(content, "")
        except DataError as error:
            match = re.match(r", line (\d+)", str(error))
            if match is None:
                raise DataError(f"{self.path}{error}") from error
            text = lines[int(match[1]) - 1].as_py()
            raise LineError(self.path, text, str(error)[match.end() :]) from error
        if self.n_features is not None and X.shape[1] > self.n_features:
            raise self._too_wide(lines.to_pylist())
        return X, labels, self.folds.of(X, None)

    def _too_wide(self, lines: list[str]) -> LineError:
        from svmbench.data import libsvm

        for text in filter(str.strip, lines):
            width = libsvm.parse_libsvm(text.encode())[0].shape[1]
            if width > (self.n_features or 0):
                break
        complaint = f": the index {width:,} is above the last feature, {self.n_features:,}"
        return LineError(self.path, text, complaint)


def located(error: LineError) -> DataError:
    """Add the file and the line number to an error, if Spark can find the line.

    Parameters
    ----------
    error : LineError
        Error from the active session.
    """
    import pyspark.sql.functions as F  # noqa: N812 (the name that its documentation gives it)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    spark, text = SparkSession.getActiveSession(), error.text
    assert spark is not None
    try:
        lines = spark.read.text(error.path).select("value", "_metadata.file_path")
        [(file,)] = lines.where(F.col("value") == text).agg(F.min("file_path")).collect()
        # Spark's address has %20 for a space; it can't contain a comma, and stars are patterns.
        path = unquote(file).removeprefix("file:")
        literal = re.sub(r"([][{}*?\\])", r"\\\1", path)
        numbered = spark.sparkContext.textFile(literal).zipWithIndex()
        number = numbered.filter(lambda pair: pair[0] == text).first()[1] + 1
    except (Py4JError, PySparkException, OSError, TypeError, ValueError):
        return error
    return DataError(f"{re.sub('^/+', '/', path)}, line {number}{error.reason}")
