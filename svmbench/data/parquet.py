"""Blocks of rows from Parquet files, by pyarrow (``pip install svmbench[blocks]``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from svmbench.base.errors import DataError, MissingPackageError, suggestion
from svmbench.data.derive import refuse_long_labels

#: Bytes of the arrays of one block, and the fewest rows that are read at once.
BLOCK_BYTES, FEWEST_ROWS = 4 << 20, 256


def require() -> Any:
    """Return pyarrow's module for Parquet.

    Raises
    ------
    MissingPackageError
        With the command that installs it.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        msg = (
            "Parquet files need the package pyarrow, which is not installed:"
            " pip install svmbench[blocks]"
        )
        raise MissingPackageError(msg) from None
    return pyarrow.parquet


def blocks(
    path: Path,
    label_column: int | str | None,
    n_features: int | None,
    on_progress: Callable[[int, int], None] | None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of a file of numeric columns, one of which may be words: the label.

    Parameters
    ----------
    path : Path
    label_column : int, str or None
        ``"first"``, ``"last"`` (the default), a number from 1 or a column's name.
    n_features : int or None
        How many features there must be, if that is known.
    on_progress : callable or None
        Told the bytes of the row groups read so far, and those of the file.

    Raises
    ------
    DataError
        If the file is damaged or cut off; for a column that is missing, or is neither numbers nor
        the label; for a null, NaN or infinite value, with its row and column.
    """
    parquet = require()
    import pyarrow as pa

    total = path.stat().st_size
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            label = _place(names, label_column, path.name)
            _check_columns(file.schema_arrow, label, n_features, path.name)
            height = max(FEWEST_ROWS, BLOCK_BYTES // (8 * len(names)))
            done = 0
            for batch in file.iter_batches(batch_size=height, use_threads=False):
                yield _arrays(batch, label, done, path.name)
                done += batch.num_rows
                if on_progress is not None:
                    on_progress(total * done // file.metadata.num_rows, total)
            if not done:
                raise DataError(f"{path.name} has no data rows")
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: a column's name is not encoded as UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split()).rstrip(".")[:160]
        raise DataError(f"{path.name} is no whole Parquet file: {said}") from None


def _place(names: list[str], wanted: int | str | None, name: str) -> int:
    """Return the position of the label's column."""
    if wanted in names:
        return names.index(str(wanted))
    if wanted in (None, "last"):
        return len(names) - 1
    if wanted == "first":
        return 0
    if str(wanted).isdecimal() and 1 <= int(wanted) <= len(names):  # type: ignore[arg-type]
        return int(wanted) - 1  # type: ignore[arg-type]
    near = suggestion(str(wanted), names)
    raise DataError(f"{name} has no column {wanted!r} (it has {len(names)}){near}")


def _check_columns(schema: Any, label: int, n_features: int | None, name: str) -> None:
    import pyarrow.types as kinds

    found = len(schema.names) - 1
    if found < 1 or (n_features is not None and found != n_features):
        raise DataError(f"{name} has {found} features, not {n_features or 'one or more'}")
    for place, field in enumerate(schema):
        is_number = any(
            is_kind(field.type)
            for is_kind in (kinds.is_floating, kinds.is_integer, kinds.is_boolean)
        )
        if not is_number and place != label:
            raise DataError(f"{name}, column {field.name!r}: {field.type} is no type of number")


def _arrays(batch: Any, label: int, done: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch's inputs and labels; `done` rows came before it."""
    X = np.empty((batch.num_rows, batch.num_columns - 1))
    features = [place for place in range(batch.num_columns) if place != label]
    for place in range(batch.num_columns):
        column = batch.column(place)
        if column.null_count:
            row = done + 1 + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            where = f"{name}, row {row:,}, column {batch.schema.names[place]!r}"
            raise DataError(f"{where}: the value is missing")
    for j, place in enumerate(features):
        X[:, j] = batch.column(place).to_numpy(zero_copy_only=False)
    if not np.isfinite(np.einsum("ij->", X)) and not np.isfinite(X).all():
        row, j = np.argwhere(~np.isfinite(X))[0]
        where = f"{name}, row {done + 1 + row:,}, column {batch.schema.names[features[j]]!r}"
        raise DataError(f"{where}: {X[row, j]} is not a finite number")
    y = batch.column(label)
    labels = y.to_numpy(zero_copy_only=False)
    refuse_long_labels(labels, f"{name}, from row {done + 1:,} on")
    return X, labels.astype(np.float64) if labels.dtype != object else labels
