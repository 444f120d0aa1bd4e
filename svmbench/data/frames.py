"""Read a table with a header into a frame, and encode its columns of numbers and of words.

The columns have the types that :func:`pandas.read_csv` gives them, so that a fitted pipeline takes
the frames that its users read. :func:`svmbench.data.load_file` reads tables in the registry's
formats instead, unless an encoding of words is asked for.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from svmbench.base.errors import DataError, suggestion
from svmbench.data import fetch, tables
from svmbench.data.archives import decompressed, ending_of
from svmbench.data.entries import Reading

if TYPE_CHECKING:
    import pandas as pd

#: A text column with more different words keeps the most frequent ones; the others share a feature.
MOST_WORDS = 50
#: Encoding of columns of words where none is given.
DEFAULT_TEXT = "one-hot"
#: A sentence about columns lists at most so many.
LISTED_COLUMNS = 6
#: Separators of tables by the endings of their names.
TABLE_SEPARATORS = {".csv": ",", ".tsv": "\t", ".data": ","}


def separator_of(place: Path) -> str:
    """Return the separator of a table from the ending of its name: a tab for .tsv, else a comma."""
    return TABLE_SEPARATORS.get(ending_of(place), ",")


def has_blanks_after_separators(place: Path) -> bool:
    """Return True if a blank follows a separator in the header or the row after it."""
    lines = decompressed(fetch.regular(place), place.name).splitlines()[:2]
    return any(f"{separator_of(place)} ".encode() in line for line in lines)


def read_frame(place: Path, label: str | int | None, content: bytes | None = None) -> Any:
    """Return the columns and the labels of a table with a header.

    Parameters
    ----------
    place : Path
        The file, plain or compressed.
    label : str, int or None
        Name of the label's column, its number from 1, ``"first"`` or ``"last"``; None for the last.
    content : bytes, optional
        The file's uncompressed bytes, if they were read before.

    Returns
    -------
    X : DataFrame
    y : Series of str

    Raises
    ------
    DataError
        If the file can't be read, has no such column or no other column, or if a label is missing
        or a number infinite.
    """
    import pandas as pd

    if content is None:
        content = decompressed(fetch.regular(place), place.name)
    separator = separator_of(place)
    tables.refuse_many_columns(content, str(place), Reading(format="table", separator=separator))
    try:
        frame = pd.read_csv(
            io.BytesIO(content), sep=separator, skipinitialspace=True, low_memory=False
        )
    except ValueError as error:
        raise DataError(f"can't read {place}: {' '.join(str(error).split())}") from error
    frame.columns = frame.columns.map(str)
    return labelled(frame, "last" if label is None else label, str(place))


def labelled(
    frame: pd.DataFrame, label: str | int, name: str, first_line: int | None = 2
) -> tuple[pd.DataFrame, pd.Series]:
    """Split a frame into columns and labels, as :func:`read_frame` does.

    Errors name the line of the file, or the number of the row if `first_line` is None.
    """

    def place(row: Any) -> str:
        return f"row {int(row) + 1}" if first_line is None else f"line {int(row) + first_line}"

    columns = list(frame.columns)
    if isinstance(label, str) and label not in {"first", "last", *columns}:
        listed = ", ".join(columns[:10])
        near = suggestion(label, columns)
        raise DataError(f"{name} has no column {label!r}{near} (it has {listed})")
    label = tables.column_of(frame, label, name)
    y = frame[label]
    if y.isna().any():
        raise DataError(f"{name}, {place(np.argmax(y.isna()))}: the label is missing")
    X = frame.drop(columns=label)
    if not X.shape[1]:
        raise DataError(f"{name}: no column is left for features")
    if not len(X):
        raise DataError(f"{name} has no data rows")
    for column in numeric_columns(X):
        infinite = np.isinf(X[column].to_numpy(dtype=np.float64, na_value=np.nan))
        if infinite.any():
            where = f"{name}, {place(np.argmax(infinite))}, column {column}"
            raise DataError(f"{where}: the number is not finite")
    return X, y.astype(str)


def numeric_columns(X: pd.DataFrame) -> list[Any]:
    """Return the columns of numbers or truth values; the others hold words."""
    return [c for c in X.columns if X[c].dtype.kind in "iufb"]


def missing_values(X: pd.DataFrame) -> str:
    """Return the columns with missing values and how many each has, or an empty text."""
    return listed([f"{c} ({int(n):,})" for c, n in X.isna().sum().items() if n])


def listed(words: list[str]) -> str:
    """Return the first words as a list, and how many more there are."""
    more = f" and {len(words) - LISTED_COLUMNS} more" if words[LISTED_COLUMNS:] else ""
    return ", ".join(words[:LISTED_COLUMNS]) + more


def _counted(kind: str, columns: list[Any]) -> str:
    return f"{len(columns)} {kind} column{'s' if len(columns) != 1 else ''}"


def encoder(
    X: pd.DataFrame, *, text: str = DEFAULT_TEXT, impute: bool = False, scale: bool = True
) -> tuple[Any, list[str]]:
    """Return a transformer of the columns, and a sentence for each of its steps.

    Parameters
    ----------
    X : DataFrame
    text : {"one-hot", "ordinal"}
        Encoding of columns of words.
    impute : bool, default=False
        True to fill in missing values: numbers by the median, words by the most frequent one.
    scale : bool, default=True
        True to scale numbers to [0, 1].

    Raises
    ------
    DataError
        If values are missing and `impute` is False.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder

    numbers = numeric_columns(X)
    words = [c for c in X.columns if c not in numbers]
    said = [f"{_counted('numeric', numbers)}{', scaled to [0, 1]' if scale else ''}"]
    if words:
        named = listed([f"{c} ({X[c].nunique()} words)" for c in words])
        said.append(f"{_counted('text', words)}, {text}: {named}")
    if lacking := missing_values(X):
        if not impute:
            raise DataError(
                f"values are missing: {lacking}; --impute fills them in, or a config's impute: true"
                " (numbers by the median, words by the most frequent one)"
            )
        said.append(f"missing values, filled in from the training rows: {lacking}")
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_WORDS)
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    scaler = [MinMaxScaler()] if scale else []
    as_text = [one_hot] if text == "one-hot" else [ordinal, *scaler]
    median, usual = (
        [SimpleImputer(strategy=s)] if impute else [] for s in ("median", "most_frequent")
    )
    steps = [
        (
            "numbers",
            make_pipeline(*median, *scaler) if median or scaler else "passthrough",
            numbers,
        ),
        ("words", make_pipeline(*usual, *as_text), words),
    ]
    return ColumnTransformer([step for step in steps if step[2]]), said
