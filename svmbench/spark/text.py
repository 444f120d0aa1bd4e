"""LIBSVM text in Spark: on the executors lines as rows, on the driver which line is wrong.

An executor has lines without their numbers: Spark cuts files where it likes. So a line that can't
be read comes back as it is, and the driver looks for it in the files: two more jobs, for an error.
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
from svmbench.spark.rows import NO_FOLDS, Folds

#: So much of a line stands in a sentence.
SHOWN = 60


class LineError(DataError):
    """A line that can't be read; its text says which, by its beginning.

    Parameters
    ----------
    path : str
        What Spark was asked to read.
    text : str
        The line.
    said : str
        What is wrong with it, with the column where that is known.
    """

    def __init__(self, path: str, text: str, said: str) -> None:
        self.path, self.text, self.said = path, text, said
        super().__init__(f"{path}, the line {shown(text, SHOWN)!r}{said}")

    def __reduce__(self) -> tuple[type[LineError], tuple[str, str, str]]:
        """Have it made anew from what it was made of, on its way from an executor."""
        return LineError, (self.path, self.text, self.said)


@dataclass(frozen=True)
class TextRows:
    """Lines of LIBSVM text.

    Attributes
    ----------
    path : str
        For sentences.
    folds : Folds
    n_features : int or None
        A line with a feature beyond is refused.
    """

    path: str
    folds: Folds = NO_FOLDS
    n_features: int | None = None

    def __call__(self, batch: pa.RecordBatch) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, labels and folds of a batch of lines; X is as wide as its last feature.

        Raises
        ------
        LineError
            For what :func:`svmbench.data.libsvm.parse` refuses, or a feature too many.
        """
        from svmbench.data import libsvm  # its parser is needed for text alone

        lines = batch.column(0)
        whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
        content = pc.binary_join(whole, "\n")[0].as_buffer().to_pybytes()
        if not content.strip():
            X = sp.csr_array((0, 0))
            return X, np.zeros(0), self.folds.of(X, None)
        try:
            X, labels = libsvm.parse(content, "")
        except DataError as error:
            found = re.match(r", line (\d+)", str(error))
            if found is None:
                raise DataError(f"{self.path}{error}") from error
            text = lines[int(found[1]) - 1].as_py()
            raise LineError(self.path, text, str(error)[found.end() :]) from error
        if self.n_features is not None and X.shape[1] > self.n_features:
            raise self._too_wide(lines.to_pylist())
        return X, labels, self.folds.of(X, None)

    def _too_wide(self, lines: list[str]) -> LineError:
        from svmbench.data import libsvm

        for text in filter(str.strip, lines):
            width = libsvm.parse(text.encode())[0].shape[1]
            if width > (self.n_features or 0):
                break
        said = f": the index {width:,} is beyond the last feature, {self.n_features:,}"
        return LineError(self.path, text, said)


def located(error: LineError) -> DataError:
    """Return the error with the file and number of its line, as far as Spark can find them.

    Parameters
    ----------
    error : LineError
        Of the session that is active.
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
        # An address for Spark's eyes, with %20 for a space; it takes no comma, and stars for more.
        place = unquote(file).removeprefix("file:")
        literal = re.sub(r"([][{}*?\\])", r"\\\1", place)
        numbered = spark.sparkContext.textFile(literal).zipWithIndex()
        number = numbered.filter(lambda pair: pair[0] == text).first()[1] + 1
    except (Py4JError, PySparkException, OSError, TypeError, ValueError):
        return error
    return DataError(f"{re.sub('^/+', '/', place)}, line {number}{error.said}")
