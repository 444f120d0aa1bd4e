"""Arrays as data frames of a session on this machine, and data frames with predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from svmbench.spark.rows import matrix
from svmbench.spark.session import present_session, told
from svmbench.spark.source import Columns


def is_arrays(X: Any, y: Any) -> bool:
    """Return whether these are arrays, and not a data frame or a path, which bring their labels."""
    return y is not None or isinstance(X, list | tuple | np.ndarray) or sp.issparse(X)


def to_frame(X: Any, y: np.ndarray, folds: np.ndarray | None = None) -> Any:
    """Return arrays as a data frame of the columns features, label and, where given, fold.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        CSR rows become sparse vectors, in the struct that Spark keeps them in.
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
    with told():
        return spark.createDataFrame(pa.table(columns))


@dataclass(frozen=True)
class Predict:
    """Appends the predicted label to batches of all columns of a data frame.

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
        """Yield each batch with one more column."""
        import pyarrow as pa  # comes with Spark's extra

        for batch in batches:
            if isinstance(self.features, str):
                X = matrix(batch.column(self.features))
            else:
                X = np.column_stack([batch.column(name).to_numpy() for name in self.features])
            labels = self.classes[(X @ self.weights + self.offset >= 0.0).astype(np.intp)]
            columns = [*batch.columns, pa.array(labels, pa.float64())]
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, "prediction"])


def predicted(model: Any, frame: Any, columns: Columns, name: str) -> Any:
    """Return a data frame with a model's prediction of each row.

    Parameters
    ----------
    model : LinearClassifier
        Fitted.
    frame : pyspark.sql.DataFrame
    columns : Columns
        Which column the features are.
    name : str
        Of the new column.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    check_is_fitted(model)
    predict = Predict(
        model.coef_[0],
        float(model.intercept_[0]),
        np.asarray(model.classes_, dtype=np.float64),
        columns.features,
    )
    with told():
        schema = StructType([*frame.schema.fields, StructField("prediction", DoubleType())])
        return frame.mapInArrow(predict, schema).withColumnRenamed("prediction", name)
