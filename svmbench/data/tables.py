"""Files of rows and columns: comma, semicolon, blanks or tabs between, the label in any column."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pandas as pd

from svmbench.data.entries import Reading
from svmbench.data.libsvm import check_text
from svmbench.errors import DataError, suggestion

#: The most words of a column that become features of their own.
MOST_WORDS = 1000


def read(content: bytes, name: str, reading: Reading) -> pd.DataFrame:
    """Read a file into a frame of stripped words, without turning any into numbers.

    Parameters
    ----------
    content : bytes
        The uncompressed file.
    name : str
        What to call the file in an error.
    reading : Reading
        Separator, header and lines to skip.

    Returns
    -------
    frame : DataFrame of str
        Columns are header names, or the numbers 1, 2, 3 …

    Raises
    ------
    DataError
        For an empty file, another encoding, or rows of unequal length (with the line number).
    """
    content = check_text(content, name)
    try:
        frame = pd.read_csv(
            io.BytesIO(content),
            sep=r"\s+" if reading.separator == "whitespace" else reading.separator,
            header=None,  # pandas would rename a name that is there twice
            skiprows=reading.skip_lines,
            dtype=object,
            keep_default_na=False,
            skipinitialspace=True,
            index_col=False,
            encoding="utf-8",
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not encoded as UTF-8: {error.reason}") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{name} has no data rows") from None
    except (pd.errors.ParserError, ValueError) as error:
        said = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataError(f"{name} can't be read as a table: {said}") from None
    frame = frame.apply(lambda column: column.map(_stripped))
    frame.index = _line_numbers(content, len(frame), reading)
    _refuse_short_rows(frame, content, name, reading.separator)
    frame.columns = pd.RangeIndex(1, frame.shape[1] + 1)
    if reading.header:
        frame = _named(frame, name)
    if frame.empty:
        raise DataError(f"{name} has no data rows")
    return frame


def _named(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the frame without its first row, which names the columns."""
    header = pd.Index(frame.iloc[0].astype(str))
    if header.has_duplicates:
        twice = header[header.duplicated()][0]
        raise DataError(f"{name}: the header has the column {twice[:40]!r} twice")
    frame = frame.iloc[1:]
    frame.columns = header
    return frame


def _stripped(word: Any) -> Any:
    return word.strip() if isinstance(word, str) else word


def _refuse_short_rows(frame: pd.DataFrame, content: bytes, name: str, separator: str) -> None:
    """Raise for a row that ends too early: pandas fills it up with empty words."""
    suspects = frame.index[(frame.iloc[:, -1] == "").to_numpy()]
    if not len(suspects):
        return
    lines = content.splitlines()
    for number in suspects:
        line = lines[number - 1].decode()
        words = (
            line.split()
            if separator == "whitespace"
            else next(csv.reader([line], delimiter=separator, skipinitialspace=True))
        )
        if len(words) < frame.shape[1]:
            raise DataError(f"{name}, line {number}: the row has fewer columns than the others")


def _line_numbers(content: bytes, n_rows: int, reading: Reading) -> pd.Index:
    """Return the line of each row: blank lines don't make rows."""
    lines = content.splitlines()
    filled = [i for i, line in enumerate(lines, start=1) if line and not line.isspace()]
    filled = [i for i in filled if i > reading.skip_lines]
    if len(filled) != n_rows:  # a quoted cell goes over several lines
        return pd.RangeIndex(1 + reading.skip_lines, 1 + reading.skip_lines + n_rows)
    return pd.Index(filled)


def samples(
    frames: list[pd.DataFrame], names: list[str], reading: Reading
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Turn a data set's frames into inputs and labels.

    The frames are encoded together, so that a word has one number in training and test rows.

    Parameters
    ----------
    frames : list of DataFrame
        What :func:`read` returned, training files first.
    names : list of str
        The files' names, for errors.
    reading : Reading
        Label, columns to drop, encodings, missing values.

    Returns
    -------
    parts : list of (X, labels)
        For each frame: float64 of shape (n_samples, n_features), and words of shape (n_samples,).

    Raises
    ------
    DataError
        For an unknown column, a word without a number (line and column named), a missing value
        where none is allowed, or files of unequal width.
    """
    widths = {frame.shape[1] for frame in frames}
    if len(widths) > 1:
        raise DataError(
            f"{' and '.join(names)} have different numbers of columns: {sorted(widths)}"
        )
    label = column_of(frames[0], reading.label, names[0])
    dropped = {column_of(frames[0], column, names[0]) for column in reading.drop}
    features = [c for c in frames[0].columns if c != label and c not in dropped]
    if not features:
        raise DataError(f"{names[0]}: no column is left for features")
    encodings = {column_of(frames[0], key, names[0]): rule for key, rule in reading.encode.items()}
    if reading.incomplete == "drop":
        frames = [frame[~(frame[features] == reading.missing).any(axis=1)] for frame in frames]
        if not len(frames[0]):
            raise DataError(f"{names[0]} has no complete row")
    columns: list[list[np.ndarray]] = [[] for _ in frames]
    for feature in features:
        parts = [frame[feature] for frame in frames]
        for held, encoded in zip(
            columns, _encoded(parts, encodings.get(feature), reading, feature, names), strict=True
        ):
            held.append(encoded)
    return [
        (np.column_stack(held), _labels(frame[label], name, reading))
        for held, frame, name in zip(columns, frames, names, strict=True)
    ]


def column_of(frame: pd.DataFrame, key: int | str, name: str) -> Any:
    """Return the frame's own key of a column given by number, name, "first" or "last"."""
    if key in ("first", "last") and key not in frame.columns:
        return frame.columns[0 if key == "first" else -1]
    if key in frame.columns:
        return key
    if isinstance(key, int) or str(key).isdecimal():
        number = int(key)
        if 1 <= number <= frame.shape[1]:
            return frame.columns[number - 1]
    near = suggestion(str(key), [str(column) for column in frame.columns])
    raise DataError(f"{name} has no column {key!r} (it has {frame.shape[1]}){near}")


def _labels(words: pd.Series, name: str, reading: Reading) -> np.ndarray:
    labels = words.str.rstrip(reading.label_strip) if reading.label_strip else words
    for bad in ("", reading.missing):
        if bad is not None and (labels == bad).any():
            line = labels.index[int(np.argmax((labels == bad).to_numpy()))]
            raise DataError(f"{name}, line {line}: the label is missing")
    return labels.to_numpy(dtype=object)


def _encoded(
    parts: list[pd.Series],
    rule: Any,
    reading: Reading,
    feature: Any,
    names: list[str],
) -> list[np.ndarray]:
    """Return one feature's columns for each part: one column, or one a word for one-hot."""
    if rule is None:
        return _numbers(parts, reading, feature, names)
    if rule in ("alphabetical", "one-hot"):
        words = sorted(set().union(*(set(part) for part in parts)))
        if reading.missing in words and reading.incomplete != "category":
            raise DataError(f"{names[0]}, column {feature}: there are missing values")
        if rule == "one-hot":
            if len(words) > MOST_WORDS:
                raise DataError(
                    f"{names[0]}, column {feature}: {len(words):,} different words, more than the"
                    f" {MOST_WORDS:,} that one-hot encoding takes"
                )
            return [
                np.column_stack([(part == word).to_numpy(dtype=np.float64) for word in words])
                for part in parts
            ]
        rule = {word: float(number) for number, word in enumerate(words)}
    encoded = []
    for part, name in zip(parts, names, strict=True):
        numbers = part.map(rule).to_numpy(dtype=np.float64)
        _refuse_nan(numbers, part, reading, feature, name, "has no number in its encoding")
        encoded.append(numbers)
    return encoded


def _numbers(
    parts: list[pd.Series], reading: Reading, feature: Any, names: list[str]
) -> list[np.ndarray]:
    columns: list[np.ndarray] = []
    for part, name in zip(parts, names, strict=True):
        missing = (part == reading.missing).to_numpy() if reading.missing is not None else None
        # Underscores are digits' separators to Python and words to everyone else.
        plain = part.where(~part.str.contains("_", regex=False), "")
        numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        numbers[~np.isfinite(numbers)] = np.nan
        if missing is not None and reading.incomplete == "mean":
            known = columns[0] if columns else numbers
            fill = np.nanmean(known) if np.isfinite(known).any() else np.nan
            numbers[missing] = fill
        _refuse_nan(numbers, part, reading, feature, name, "is not a finite number")
        columns.append(numbers)
    return columns


def _refuse_nan(
    numbers: np.ndarray, part: pd.Series, reading: Reading, feature: Any, name: str, what: str
) -> None:
    bad = np.isnan(numbers)
    if not bad.any():
        return
    at = int(np.argmax(bad))
    word = part.iloc[at]
    shown = repr(word if len(word) <= 40 else word[:39] + "…")
    where = f"{name}, line {part.index[at]}, column {feature}"
    if word in ("", reading.missing):
        raise DataError(f"{where}: the value is missing")
    if at == 0 and not reading.header:
        raise DataError(f"{where}: {shown} {what} (a header taken for data?)")
    raise DataError(f"{where}: {shown} {what}")
