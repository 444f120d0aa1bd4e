"""Read blocks of rows from pieces of text, in LIBSVM's format or as tables."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from svmbench.base.errors import DataError
from svmbench.data import libsvm, tables
from svmbench.data.derive import are_plain, refuse_long_labels, refuse_merged_labels
from svmbench.data.entries import Reading
from svmbench.data.text_rows import MAX_VALUES_PER_BYTE, parse_rows

#: The arrays of a piece have room for this many times the values of the piece before.
ARRAY_GROWTH_FACTOR = 1.05


def libsvm_blocks(
    pieces: Iterable[bytes], name: str, n_features: int | None, *, sort_indices: bool = False
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield a block for each piece of LIBSVM text that has rows.

    A block is dense if every row so far has every feature; else it is CSR.

    Parameters
    ----------
    pieces : iterable of bytes
        Whole lines, with a newline at the end of each piece.
    name : str
        Name of the file in errors.
    n_features : int or None
        Highest allowed index, if known.
    sort_indices : bool, default=False

    Raises
    ------
    DataError
        As :func:`svmbench.data.libsvm.parse_libsvm`, and for an index above `n_features`.
    """
    line, width, may_be_dense = 1, n_features or 0, True
    begun, blank, expected = False, True, MAX_VALUES_PER_BYTE
    for number, piece in enumerate(pieces):
        blank &= not piece.strip()
        rows = _Rows(libsvm.check_encoding(piece, name) if number == 0 else piece, expected)
        line += rows.read(name, line, n_features, sort_indices=sort_indices, begun=begun)
        if not rows.n_rows:
            continue
        expected = min(MAX_VALUES_PER_BYTE, ARRAY_GROWTH_FACTOR * rows.n_values / len(piece))
        # Dense blocks must have one width; the width of CSR blocks may grow.
        may_be_dense &= rows.is_full and (rows.width == width or not (begun or n_features))
        width, begun = max(width, rows.width), True
        labels = rows.labels[: rows.n_rows]
        refuse_merged_labels(labels, name)
        yield rows.matrix(width, dense=may_be_dense), labels
    if not begun:
        raise DataError(f"{name} {'is empty' if blank else 'has no data rows'}")


class _Rows:
    """The rows of one piece of text, in arrays that grow if needed."""

    def __init__(self, piece: bytes, expected: float) -> None:
        self.piece = piece
        # A carriage return alone also ends a line.
        most_rows = piece.count(b"\n") + piece.count(b"\r")
        self.labels = np.empty(most_rows)
        self.indptr = np.empty(most_rows + 1, dtype=np.int32)
        self.indptr[0] = 0
        n_values = int(expected * len(piece)) + 1
        self.indices = np.empty(n_values, dtype=np.int32)
        self.values = np.empty(n_values)
        self.n_rows = 0
        self.is_full = True

    def read(
        self, name: str, line: int, n_features: int | None, *, sort_indices: bool, begun: bool
    ) -> int:
        """Fill the arrays, and return the number of lines.

        `line` is the number of the first line; `begun` is True if there were rows before.
        """
        text = np.frombuffer(self.piece, dtype=np.uint8)
        most = n_features or libsvm.MAX_FEATURE_INDEX
        end = lines = 0
        while True:
            self.n_rows, end, more, full = parse_rows(
                *(text, end, self.n_rows, most),
                *(self.labels, self.indptr, self.indices, self.values),
            )
            lines += more
            self.is_full &= full
            if end == len(text):
                return lines
            after = self.piece.index(b"\n", end) + 1
            if self._has_grown_for(end, after):
                continue
            # A carriage return alone also ends a line.
            some = self.piece[end:after]
            X, labels = libsvm.read_slowly(
                *(some, name, sort_indices, line + lines, n_features),
                begun=begun or self.n_rows > 0,
            )
            self._append(X, labels)
            end, lines = after, lines + len(some.splitlines())

    def _has_grown_for(self, line: int, after: int) -> bool:
        """Grow the arrays for all remaining lines if a line doesn't fit; True if they grew."""
        n = self.n_values
        if n + int(MAX_VALUES_PER_BYTE * (after - line)) + 1 <= len(self.values):
            return False
        room = n + int(MAX_VALUES_PER_BYTE * (len(self.piece) - line)) + 1
        self.indices, self.values = (
            np.concatenate([array[:n], np.empty(room - n, dtype=array.dtype)])
            for array in (self.indices, self.values)
        )
        return True

    def _append(self, X: sp.csr_array, labels: np.ndarray) -> None:
        first, n = self.n_rows, int(self.indptr[self.n_rows])
        self.n_rows += len(labels)
        self.labels[first : self.n_rows] = labels
        self.indptr[first + 1 : self.n_rows + 1] = n + X.indptr[1:]
        self.indices[n : n + X.nnz] = X.indices
        self.values[n : n + X.nnz] = X.data
        self.is_full = False

    @property
    def n_values(self) -> int:
        return int(self.indptr[self.n_rows])

    @property
    def width(self) -> int:
        """Highest index."""
        return int(self.indices[: self.n_values].max()) + 1 if self.n_values else 0

    def matrix(self, width: int, *, dense: bool) -> Any:
        """Return the inputs; dense rows are a view of the values."""
        n = self.n_values
        if dense:
            return self.values[:n].reshape(self.n_rows, width)
        return sp.csr_array(
            (self.values[:n], self.indices[:n], self.indptr[: self.n_rows + 1]),
            shape=(self.n_rows, width),
        )


def table_blocks(
    pieces: Iterable[bytes],
    name: str,
    n_features: int | None,
    reading: Reading,
    *,
    as_words: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield a block for each piece of a table that has rows.

    Parameters
    ----------
    pieces : iterable of bytes
        Whole lines; no cell spans several lines.
    name : str
    n_features : int or None
    reading : Reading
        Separator, header, label column.
    as_words : bool, default=False
        True to leave labels as they are written.

    Raises
    ------
    DataError
        As :func:`svmbench.data.load_file` for tables, and for a wrong number of features.
    """
    line, header, width, begun, blank = 1, b"", n_features, False, True
    for number, piece in enumerate(pieces):
        blank &= not piece.strip()
        text = libsvm.check_encoding(piece, name) if number == 0 else piece
        while reading.header and text and not header.strip():  # skip blank lines before the header
            header, _, text = text.partition(b"\n")
            header += b"\n"
            line += 1
        if text and not text.isspace():
            if not begun:
                tables.refuse_many_columns(
                    header or text, name, reading.model_copy(update={"skip_lines": 0})
                )
            X, labels = _fast_table(text, header, name, reading) or _slow_table(
                text, header, name, line, reading
            )
            if X.shape[1] != (width or X.shape[1]):
                where = f"{name}, from line {line} on"
                raise DataError(f"{where}: {X.shape[1]} features instead of {width}")
            refuse_long_labels(labels, f"{name}, from line {line} on")
            width, begun = X.shape[1], True
            yield X, labels if as_words else as_numbers(labels)
        line += text.count(b"\n")
    if not begun:
        raise DataError(f"{name} {'is empty' if blank else 'has no data rows'}")


def as_numbers(labels: np.ndarray) -> np.ndarray:
    """Return labels as float64 if all are plain numbers, else unchanged."""
    return labels.astype(np.float64) if are_plain(set(labels)) else labels


def _fast_table(
    text: bytes, header: bytes, name: str, reading: Reading
) -> tuple[np.ndarray, np.ndarray] | None:
    """Read the rows of a piece by pandas' parser of numbers; return None if there are words."""
    options: dict[str, Any] = {
        "sep": r"\s+" if reading.separator == "whitespace" else reading.separator,
        "header": None,
        "skipinitialspace": True,
        "na_filter": False,
        "index_col": False,
    }
    try:
        words = pd.read_csv(io.BytesIO(header or text), dtype=str, nrows=1, **options)
        words.columns = words.iloc[0].str.strip() if header else words.columns + 1
        if words.columns.has_duplicates:
            return None
        label_key = tables.column_of(words, reading.label, name)
        label = list(words.columns).index(label_key)
        left_out = {
            list(words.columns).index(key)
            for key in tables.saved_row_names(words.columns, label_key, reading)
        }
        features = [position for position in range(words.shape[1]) if position != label]
        kinds = {position: str if position in left_out else np.float64 for position in features}
        frame = pd.read_csv(io.BytesIO(text), dtype={**kinds, label: str}, **options)
        if frame.shape[1] != words.shape[1]:
            return None
        labels = frame.pop(label).str.strip().to_numpy(dtype=object)
        frame = frame.drop(columns=list(left_out))
        tables.refuse_missing_labels(pd.Series(labels), name, reading)
    except (ValueError, LookupError, AttributeError, DataError):
        return None
    X = np.ascontiguousarray(frame.to_numpy())
    is_whole = bool(np.isfinite(X).all()) and all(labels)
    return (X, labels) if is_whole and X.shape[1] else None


def _slow_table(
    text: bytes, header: bytes, name: str, line: int, reading: Reading
) -> tuple[np.ndarray, np.ndarray]:
    """Read the rows of a piece like a whole table; raise an error for a wrong line."""
    # Blank lines replace the lines before, so that errors have the right line number.
    before = header + b"\n" * (line - 1 - bool(header))
    frame = tables.read_table(before + text, name, reading)
    ((X, labels),) = tables.samples([frame], [name], reading)
    return X, labels
