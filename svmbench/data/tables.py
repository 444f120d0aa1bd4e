"""Read tables of rows and columns with any separator, and encode them as inputs and labels."""

from __future__ import annotations

import csv
import io
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from svmbench.base.errors import DataError, suggestion
from svmbench.data.derive import MAX_DENSE_BYTES, MISSING_WORDS, refuse_long_labels
from svmbench.data.entries import Reading
from svmbench.data.libsvm import check_text, text_lines

#: Largest number of columns of a table; each column takes at least 0.1 ms.
MAX_TABLE_COLUMNS = 100_000

#: Advice for rows that have more columns than the header.
SHORT_HEADER = (
    "The header may lack the name of the first column, as where R's write.table saves row names;"
    " add it, for example as rownames"
)

#: Largest number of different words in a column for one-hot encoding.
MAX_ONE_HOT_WORDS = 1000
#: If all rows take more than `MAX_DENSE_BYTES`, the one-hot features of a row may take this many.
MAX_ONE_HOT_BYTES_PER_ROW = 512


def read_table(content: bytes, name: str, reading: Reading) -> pd.DataFrame:
    """Read a file into a frame of stripped words, without conversion to numbers.

    Parameters
    ----------
    content : bytes
        The uncompressed file.
    name : str
        Name of the file in errors.
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
    refuse_many_columns(content, name, reading)
    try:
        frame = pd.read_csv(
            io.BytesIO(content),
            sep=r"\s+" if reading.separator == "whitespace" else reading.separator,
            header=None,  # pandas would rename a repeated name
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
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        if reading.header and reason.startswith("Expected"):
            reason += f". {SHORT_HEADER}"
        raise DataError(f"{name} can't be read as a table: {reason}") from None
    frame = _stripped(frame)
    frame.index = line_numbers(content, len(frame), reading)
    suspects = set(frame.index[(frame.iloc[:, -1] == "").to_numpy()])
    refuse_short_rows(suspects, frame.shape[1], content, name, reading.separator)
    frame.columns = pd.RangeIndex(1, frame.shape[1] + 1)
    if reading.header:
        frame = _named(frame, name)
    if frame.empty:
        raise DataError(f"{name} has no data rows")
    return frame


def refuse_many_columns(content: bytes, name: str, reading: Reading) -> None:
    """Raise an error if the first row has too many columns."""
    lines = (line for line in islice(text_lines(content), reading.skip_lines, None) if line.strip())
    first = next(lines, b"")
    by_blanks = reading.separator == "whitespace"
    n_columns = len(first.split()) if by_blanks else 1 + first.count(reading.separator.encode())
    if n_columns > MAX_TABLE_COLUMNS:
        raise DataError(
            f"{name} has {n_columns:,} columns; a table may have {MAX_TABLE_COLUMNS:,}. Use"
            " LIBSVM's format, which has no such limit"
        )


def _named(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the frame with its first row as the names of the columns."""
    header = pd.Index(frame.iloc[0].astype(str))
    if header.has_duplicates:
        repeated = header[header.duplicated()][0]
        raise DataError(f"{name}: the header names the column {repeated[:40]!r} twice")
    frame = frame.iloc[1:]
    frame.columns = header
    return frame


def _stripped(frame: pd.DataFrame) -> pd.DataFrame:
    words = [w.strip() if isinstance(w, str) else w for w in frame.to_numpy(dtype=object).ravel()]
    array = np.empty(len(words), dtype=object)
    array[:] = words
    return pd.DataFrame(array.reshape(frame.shape), dtype=object)


def refuse_short_rows(
    suspects: set[int], width: int, content: bytes, name: str, separator: str
) -> None:
    """Raise an error for a short row, which pandas would fill with empty words.

    `suspects` are the lines of rows whose last column is empty.
    """
    if not suspects:
        return
    for number, stored in enumerate(text_lines(content), start=1):
        if number not in suspects:
            continue
        line = stored.decode()
        try:
            words = (
                line.split()
                if separator == "whitespace"
                else next(csv.reader([line], delimiter=separator, skipinitialspace=True))
            )
        except csv.Error as error:  # a word that is too long for csv
            raise DataError(f"{name}, line {number}: {error}") from None
        if len(words) < width:
            raise DataError(f"{name}, line {number}: the row has fewer columns than the others")


def line_numbers(content: bytes, n_rows: int, reading: Reading) -> pd.Index:
    """Return the line number of each row; blank lines are no rows."""
    lines = enumerate(text_lines(content), start=1)
    is_filled = (i for i, line in lines if i > reading.skip_lines and line and not line.isspace())
    filled = np.fromiter(is_filled, dtype=np.int64)
    if len(filled) != n_rows:  # a quoted cell spans several lines
        return pd.RangeIndex(1 + reading.skip_lines, 1 + reading.skip_lines + n_rows)
    return pd.Index(filled)


def samples(
    frames: list[pd.DataFrame], names: list[str], reading: Reading
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Convert the frames of a data set to inputs and labels.

    All frames are encoded together, so that a word has the same number in training and test rows.

    Parameters
    ----------
    frames : list of DataFrame
        Results of :func:`read_table`, training files first.
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
        For an unknown column, a word without an encoding (with line and column), an unexpected
        missing value, or files of unequal width.
    """
    widths = {frame.shape[1] for frame in frames}
    if len(widths) > 1:
        raise DataError(
            f"{' and '.join(names)} have different numbers of columns: {sorted(widths)}"
        )
    label = column_of(frames[0], reading.label, names[0])
    dropped = {column_of(frames[0], column, names[0]) for column in reading.drop}
    dropped |= set(saved_row_names(frames[0].columns, label, reading))
    features = [c for c in frames[0].columns if c != label and c not in dropped]
    if not features:
        raise DataError(f"{names[0]}: no column is left for features")
    encodings = {column_of(frames[0], key, names[0]): rule for key, rule in reading.encode.items()}
    if reading.incomplete == "drop":
        frames = [frame[~(frame[features] == reading.missing).any(axis=1)] for frame in frames]
        if not len(frames[0]):
            raise DataError(f"{names[0]} has no complete row")
    columns: list[list[np.ndarray]] = [[] for _ in frames]
    plain = [feature for feature in features if encodings.get(feature) is None]
    numbers = _numbers([frame[plain] for frame in frames], reading, names)
    column_in_numbers = {feature: j for j, feature in enumerate(plain)}
    for feature in features:
        if feature in column_in_numbers:
            encoded = [part[:, column_in_numbers[feature]] for part in numbers]
        else:
            parts = [frame[feature] for frame in frames]
            encoded = _encoded(parts, encodings[feature], reading, feature, names)
        for parts_of_frame, part_of_feature in zip(columns, encoded, strict=True):
            parts_of_frame.append(part_of_feature)
    return [
        (np.column_stack(parts_of_frame), _labels(frame[label], name, reading))
        for parts_of_frame, frame, name in zip(columns, frames, names, strict=True)
    ]


def saved_row_names(columns: pd.Index, label: Any, reading: Reading) -> list[Any]:
    """Return the first column if the header has no name for it: row names that a program saved.

    The column of labels is never one.
    """
    return [""] if reading.header and columns[0] == "" and label != "" else []


def column_of(frame: pd.DataFrame, key: int | str, name: str) -> Any:
    """Return the frame's key of a column, which is given by number, name, "first" or "last"."""
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


def refuse_missing_labels(labels: pd.Series, name: str, reading: Reading) -> None:
    """Raise an error for a label that is a word for a missing value, with its line."""
    is_missing = labels.isin([*MISSING_WORDS, reading.missing]).to_numpy()
    if is_missing.any():
        position = int(np.argmax(is_missing))
        written = f" ({labels.iloc[position]!r})" if labels.iloc[position] else ""
        raise DataError(f"{name}, line {labels.index[position]}: the label is missing{written}")


def _labels(words: pd.Series, name: str, reading: Reading) -> np.ndarray:
    labels = words.str.rstrip(reading.label_strip) if reading.label_strip else words
    refuse_missing_labels(labels, name, reading)
    array = labels.to_numpy(dtype=object)
    refuse_long_labels(array, name)
    return array


def _encoded(
    parts: list[pd.Series],
    rule: Any,
    reading: Reading,
    feature: Any,
    names: list[str],
) -> list[np.ndarray]:
    """Return the encoded columns of a feature for each part: one, or one per word for one-hot."""
    if rule in ("alphabetical", "one-hot"):
        words = sorted(set().union(*(set(part) for part in parts)))
        if reading.missing in words and reading.incomplete != "category":
            raise DataError(f"{names[0]}, column {feature}: there are missing values")
        if rule == "one-hot":
            if len(words) > MAX_ONE_HOT_WORDS:
                raise DataError(
                    f"{names[0]}, column {feature}: {len(words):,} different words; one-hot"
                    f" encoding allows {MAX_ONE_HOT_WORDS:,}"
                )
            most = max(MAX_DENSE_BYTES, MAX_ONE_HOT_BYTES_PER_ROW * len(parts[0]))
            if 8 * len(words) * sum(map(len, parts)) > most:
                raise DataError(
                    f"{names[0]}, column {feature}: {len(words):,} different words would take more"
                    f" than {most >> 20:,} MiB with one-hot encoding"
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


def _numbers(parts: list[pd.DataFrame], reading: Reading, names: list[str]) -> list[np.ndarray]:
    """Convert all numeric columns of each part at once."""
    numbers_of_parts: list[np.ndarray] = []
    for part in parts:
        words = part.to_numpy(dtype=object)
        flat = pd.Series(words.ravel(), dtype=object)
        # Python accepts underscores in numbers; other programs don't.
        plain = flat.where(~flat.str.contains("_", regex=False).astype(bool), "")
        numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        numbers[~np.isfinite(numbers)] = np.nan
        numbers = numbers.reshape(words.shape)
        if reading.missing is not None and reading.incomplete == "mean":
            missing = words == reading.missing
            for j in np.flatnonzero(missing.any(axis=0)):
                known = np.ascontiguousarray(
                    (numbers_of_parts[0] if numbers_of_parts else numbers)[:, j]
                )
                fill = np.nanmean(known) if np.isfinite(known).any() else np.nan
                numbers[missing[:, j], j] = fill
        numbers_of_parts.append(numbers)
    has_nan = [np.isnan(numbers).any(axis=0) for numbers in numbers_of_parts]
    for j in np.flatnonzero(np.any(has_nan, axis=0))[:1]:
        for numbers, part, name in zip(numbers_of_parts, parts, names, strict=True):
            complaint = "is not a finite number"
            _refuse_nan(numbers[:, j], part.iloc[:, j], reading, part.columns[j], name, complaint)
    return numbers_of_parts


def _refuse_nan(
    numbers: np.ndarray, part: pd.Series, reading: Reading, feature: Any, name: str, what: str
) -> None:
    is_nan = np.isnan(numbers)
    if not is_nan.any():
        return
    position = int(np.argmax(is_nan))
    word = part.iloc[position]
    shown = repr(word if len(word) <= 40 else word[:39] + "…")
    where = f"{name}, line {part.index[position]}, column {feature}"
    if word in ("", reading.missing):
        raise DataError(f"{where}: the value is missing")
    if position == 0 and not reading.header:
        raise DataError(
            f"{where}: {shown} {what} (a header taken for data? --label, or label_column, names the"
            " column of labels)"
        )
    raise DataError(f"{where}: {shown} {what}")
