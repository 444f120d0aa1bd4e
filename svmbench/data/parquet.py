"""Read Parquet files in blocks of rows, by pyarrow (``pip install '.[blocks]'``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from svmbench.base.errors import DataError, MissingPackageError, suggestion
from svmbench.data.derive import MISSING_WORDS, refuse_long_labels, refuse_merged_labels

#: Names that pandas gives to an index without a name.
INDEX_NAME = re.compile(r"__index_level_[0-9]+__", re.ASCII)
#: Bytes of the arrays of one block.
PARQUET_BLOCK_BYTES = 4 << 20
#: Smallest number of rows of a block.
MIN_BLOCK_ROWS = 256


def require_pyarrow() -> Any:
    """Return pyarrow's module for Parquet.

    Raises
    ------
    MissingPackageError
        If pyarrow is missing; the message names the command that installs it.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        msg = (
            "Parquet files need the package pyarrow, which is not installed:"
            " pip install '.[blocks]'"
        )
        raise MissingPackageError(msg) from None
    return pyarrow.parquet


def blocks(
    path: Path,
    label_column: int | str | None,
    n_features: int | None,
    on_progress: Callable[[int, int], None] | None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of a file of numeric columns; the label's column may have words.

    Parameters
    ----------
    path : Path
    label_column : int, str or None
        ``"first"``, ``"last"`` (the default), a number from 1 or a column's name.
    n_features : int or None
        Required number of features, if known.
    on_progress : callable or None
        Called with the bytes of the row groups read so far, and the bytes of the file.

    Raises
    ------
    DataError
        If the file is damaged or cut off, if a column is missing, if a column other than the label
        isn't numeric, or if a value is null, NaN or infinite (with row and column).
    """
    parquet = require_pyarrow()
    import pyarrow as pa

    total = path.stat().st_size
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            all_names = schema.names
            label = _label_index(all_names, label_column, index_columns(schema), path.name)
            left_out = index_columns(schema) - {all_names[label]}
            names = [name for name in all_names if name not in left_out]
            _check_columns(schema, label, left_out, n_features, path.name)
            height = max(MIN_BLOCK_ROWS, PARQUET_BLOCK_BYTES // (8 * len(names)))
            done = 0
            columns = names if left_out else None
            for batch in file.iter_batches(height, columns=columns, use_threads=False):
                yield _arrays(batch, batch.schema.names.index(all_names[label]), done, path.name)
                done += batch.num_rows
                if on_progress is not None:
                    on_progress(total * done // file.metadata.num_rows, total)
            if not done:
                raise DataError(f"{path.name} has no data rows")
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: a column's name is not encoded as UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:160]
        raise DataError(f"{path.name} is not a complete Parquet file: {reason}") from None


def index_columns(schema: Any) -> set[str]:
    """Return the columns that have the index of a frame of pandas: row names, and no data."""
    try:
        stated = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        stated_names = {name for name in stated if isinstance(name, str)}
    except (KeyError, ValueError, TypeError, RecursionError):
        stated_names = set()
    return {name for name in schema.names if name in stated_names or INDEX_NAME.fullmatch(name)}


def left_out_of(path: Path, label_column: int | str | None) -> tuple[str, ...]:
    """Return the columns of a file that :func:`blocks` leaves out."""
    with require_pyarrow().ParquetFile(path) as file:
        schema = file.schema_arrow
    index = index_columns(schema)
    label = schema.names[_label_index(schema.names, label_column, index, path.name)]
    return tuple(map(left_out_words, sorted(index - {label})))


def left_out_words(column: str) -> str:
    """Return the words for an index that was left out."""
    return f"the column {column!r} (pandas' index)"


def _label_index(names: list[str], wanted: int | str | None, index: set[str], name: str) -> int:
    """Return the position of the label's column; an index of pandas is not "first" or "last"."""
    if wanted in names:
        return names.index(str(wanted))
    if wanted in (None, "first", "last"):
        positions = [position for position, column in enumerate(names) if column not in index]
        if not positions:
            raise DataError(f"{name} has no columns but an index")
        return positions[0 if wanted == "first" else -1]
    if str(wanted).isdecimal() and 1 <= int(wanted) <= len(names):  # type: ignore[arg-type]
        return int(wanted) - 1  # type: ignore[arg-type]
    near = suggestion(str(wanted), names)
    raise DataError(f"{name} has no column {wanted!r} (it has {len(names)}){near}")


def _check_columns(
    schema: Any, label: int, left_out: set[str], n_features: int | None, name: str
) -> None:
    import pyarrow.types as kinds

    n_found = len(schema.names) - 1 - len(left_out)
    if n_found < 1 or (n_features is not None and n_found != n_features):
        raise DataError(f"{name} has {n_found} features, not {n_features or 'one or more'}")
    for position, field in enumerate(schema):
        is_number = any(
            is_kind(field.type)
            for is_kind in (kinds.is_floating, kinds.is_integer, kinds.is_boolean)
        )
        if not is_number and position != label and field.name not in left_out:
            raise DataError(f"{name}, column {field.name!r}: {field.type} is not a numeric type")


def _arrays(batch: Any, label: int, done: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and labels of a batch that follows `done` rows."""
    X = np.empty((batch.num_rows, batch.num_columns - 1))
    features = [position for position in range(batch.num_columns) if position != label]
    for position in range(batch.num_columns):
        column = batch.column(position)
        if column.null_count:
            row = done + 1 + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            where = f"{name}, row {row:,}, column {batch.schema.names[position]!r}"
            raise DataError(f"{where}: the value is missing")
    for j, position in enumerate(features):
        X[:, j] = batch.column(position).to_numpy(zero_copy_only=False)
    if not np.isfinite(np.einsum("ij->", X)) and not np.isfinite(X).all():
        row, j = np.argwhere(~np.isfinite(X))[0]
        where = f"{name}, row {done + 1 + row:,}, column {batch.schema.names[features[j]]!r}"
        raise DataError(f"{where}: {X[row, j]} is not a finite number")
    y = batch.column(label)
    labels = y.to_numpy(zero_copy_only=False)
    where = f"{name}, from row {done + 1:,} on"
    if labels.dtype.kind not in "biuf":  # text, dates, decimal numbers
        labels = np.array([*map(str, labels.tolist()), ""], dtype=object)[:-1]
        if not MISSING_WORDS.isdisjoint(labels):
            raise DataError(f"{where}: a label is missing")
        refuse_long_labels(labels, where)
        return X, labels
    labels = labels.astype(np.float64)
    refuse_merged_labels(labels, where)
    return X, labels
