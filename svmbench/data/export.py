"""Write rows to a file, to measure reading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from svmbench.data import parquet

#: Endings of file names by format.
EXPORT_ENDINGS = {"libsvm": ".txt", "csv": ".csv", "parquet": ".parquet"}


def export_rows(path: Path, X: Any, y: np.ndarray, copies: int = 1) -> None:
    """Write rows to a file, `copies` times; text formats get six digits.

    Parameters
    ----------
    path : Path
        Target file; its ending, one of :data:`EXPORT_ENDINGS`, gives the format.
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    copies : int, default=1
        Number of times the rows are written.

    Raises
    ------
    MissingPackageError
        For Parquet without pyarrow.
    """
    if path.suffix == EXPORT_ENDINGS["parquet"]:
        _write_parquet(path, X, y, copies)
        return
    text = _libsvm(X, y) if path.suffix == EXPORT_ENDINGS["libsvm"] else _csv(X, y)
    with path.open("wb") as stream:
        for _ in range(copies):
            stream.write(text)


def _libsvm(X: Any, y: np.ndarray) -> bytes:
    rows = sp.csr_array(X)
    lines = []
    for i, label in enumerate(y.tolist()):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        lines.append(f"{label:+g} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in pairs))
    return ("\n".join(lines) + "\n").encode()


def _csv(X: Any, y: np.ndarray) -> bytes:
    frame = pd.DataFrame(X.toarray() if sp.issparse(X) else X)
    frame[frame.shape[1]] = y
    return frame.to_csv(header=False, index=False, float_format="%.6g").encode()


def _write_parquet(path: Path, X: Any, y: np.ndarray, copies: int) -> None:
    writer = parquet.require_pyarrow().ParquetWriter
    import pyarrow as pa

    columns = {
        f"x{j + 1}": X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j]
        for j in range(X.shape[1])
    }
    table = pa.table({**columns, "label": y})
    with writer(path, table.schema) as stream:
        for _ in range(copies):
            stream.write_table(table)
