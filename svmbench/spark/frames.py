"""Convert arrays to data frames, and add predictions to data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from svmbench.spark.rows import matrix
from svmbench.spark.session import present_session, spark_errors
from svmbench.spark.source import FrameColumns


def is_arrays(X: Any, y: Any) -> bool:
    """Return True for arrays; a data frame or a path contains the labels and comes without y."""
    return y is not None or isinstance(X, list | tuple | np.ndarray) or sp.issparse(X)


def to_frame(X: Any, y: np.ndarray, folds: np.ndarray | None = None) -> Any:
    """Convert arrays to a data frame with the columns features, label and optionally fold.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        CSR rows become Spark's sparse vectors.
    y : ndarray of shape (n_samples,)
    folds : ndarray of shape (n_samples,), optional
    """
    import pyarrow as pa  # comes with Spark's extra

    spark = present_session()
    n, d = X.shape
    if sp.issparse(X):
        ends = pa.array(X.indptr, pa.int32())
        features = pa.StructArray.from_arrays(
            [
                pa.array(np.zeros(n, dtype=np.int8)),
                pa.array(np.full(n, d, dtype=np.int32)),
                pa.ListArray.from_arrays(ends, pa.array(X.indices, pa.int32())),
                pa.ListArray.from_arrays(ends, pa.array(X.data, pa.float64())),
            ],
            ["type", "size", "indices", "values"],
        )
    else:
        ends = pa.array(np.arange(0, n * d + 1, d, dtype=np.int32))
        features = pa.ListArray.from_arrays(ends, pa.array(X.ravel(), pa.float64()))
    columns = {"features": features, "label": pa.array(y, pa.float64())}
    if folds is not None:
        columns["fold"] = pa.array(folds, pa.float64())
    with spark_errors():
        return spark.createDataFrame(pa.table(columns))


@dataclass(frozen=True)
class Predict:
    """Append the predicted label to batches of a data frame.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
    offset : float
    classes : ndarray of shape (2,)
    features : str or sequence of str
        The column of vectors, or the columns of numbers.
    """

    weights: np.ndarray
    offset: float
    classes: np.ndarray
    features: str | Sequence[str]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield each batch with the additional column."""
        import pyarrow as pa  # comes with Spark's extra

        from svmbench.spark.tree_aggregate import leave_out_of_collections

        leave_out_of_collections()
        for batch in batches:
            if isinstance(self.features, str):
                X = matrix(batch.column(self.features))
            else:
                X = np.column_stack([batch.column(name).to_numpy() for name in self.features])
            labels = self.classes[(X @ self.weights + self.offset >= 0.0).astype(np.intp)]
            columns = [*batch.columns, pa.array(labels, pa.float64())]
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, "prediction"])


def predicted(model: Any, frame: Any, columns: FrameColumns, name: str) -> Any:
    """Return a data frame with the predicted label of each row.

    Parameters
    ----------
    model : LinearClassifier
        A fitted model.
    frame : pyspark.sql.DataFrame
    columns : Columns
        The columns of features.
    name : str
        Name of the new column.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    check_is_fitted(model)
    predict = Predict(
        model.coef_[0],
        float(model.intercept_[0]),
        np.asarray(model.classes_, dtype=np.float64),
        columns.features,
    )
    with spark_errors():
        schema = StructType([*frame.schema.fields, StructField("prediction", DoubleType())])
        return frame.mapInArrow(predict, schema).withColumnRenamed("prediction", name)
