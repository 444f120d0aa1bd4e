"""Read a table with a header into a frame, and encode its columns of numbers and of words.

The columns have the types that :func:`pandas.read_csv` gives them, so that a fitted pipeline
accepts frames that its users read. :func:`svmbench.data.load_file` reads tables in the registry's
formats instead, unless an encoding of words is requested.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from svmbench.base.errors import ConfigError, DataError, suggestion
from svmbench.data import fetch, tables
from svmbench.data.archives import decompressed, ending_of
from svmbench.data.derive import MISSING_WORDS, label_words, why_not_scaled
from svmbench.data.entries import Reading
from svmbench.data.libsvm import text_lines
from svmbench.data.number_texts import (
    DECIMAL_DIGITS,
    NEARLY_ALL,
    NumberColumn,
    number_columns,
    with_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

#: A text column with more different values keeps the most frequent; the others share a feature.
MOST_WORDS = 50
#: Default encoding of columns of words.
DEFAULT_TEXT = "one-hot"
#: Largest number of columns that a sentence lists.
LISTED_COLUMNS = 6
#: Description of a first column without a name, which is left out.
ROW_NAMES = "the first column, which the header doesn't name (saved row names)"
#: Key in a frame's attributes for the descriptions of columns that were left out of its file.
LEFT_OUT = "left_out"
#: Keys for the columns whose numbers are texts in the file: decimal signs, and descriptions.
DECIMALS_OF_TEXTS, READ_AS = "decimals_of_texts", "read_as"
#: A first line that tells Excel the separator.
SEPARATOR_LINE = re.compile(r"sep=(.)(?=\r?\n)", re.IGNORECASE)
#: From this number of rows on, a column with another value in each row is not used as a feature.
LEAST_ROWS_OF_IDS = 20
#: A text column is free text if a larger share of its values occurs in one row alone.
MOST_OWN_VALUES = 0.5
#: A date, such as 2024-12-31, 31/12/2024, 12/31/24, 31.12.2024 or 31 Dec 2024, and the time of a
#: day. Three numbers with points are a date only if the year has four digits, as no version has.
DATE = (
    r"\s*(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([-/.])\d\d?\3\d{4}|\d\d?([-/])\d\d?\4\d\d"
    r"|\d\d?[- ][A-Za-z]{3,9}[- ,]{1,2}\d{4}|[A-Za-z]{3,9} \d\d?,? \d{4})"
    r"([ T,]{1,2}\d\d?:\d\d.{0,20})?\s*"
)
#: Names of columns that number the rows, as pandas and databases call them.
ID_NAMES = re.compile(
    r"(.*[ _.])?id|index|(row|sample|record|case)[ _.]?(id|index|number|nr|no)|unnamed: \d+",
    re.IGNORECASE,
)
#: Names of rows of totals.
TOTALS = r"\s*(grand |sub-?)?(totals?|sum|sums|averages?|means?)\s*:?\s*"
#: Separators of tables by the endings of their names.
TABLE_SEPARATORS = {".csv": ",", ".tsv": "\t", ".data": ","}


class FormKeywords(TypedDict, total=False):
    """The keywords for the form of a text file; see :func:`svmbench.load`."""

    sep: str
    encoding: str
    decimal: str
    header: bool
    drop: Sequence[str]
    na_values: Sequence[str]


FORM_KEYWORDS = tuple(FormKeywords.__annotations__)


def separator_of(path: Path) -> str:
    """Return the separator of a table from the ending of its name: a tab for .tsv, else a comma."""
    return TABLE_SEPARATORS.get(ending_of(path), ",")


@dataclass(frozen=True)
class TableForm:
    """The form of a text file, as options of the commands state it.

    Attributes
    ----------
    separator : str
        Separator of columns. If it is empty, the first line may state it (``sep=;``). Otherwise it
        is that of the file's ending, or, if the header lacks that one, a semicolon, tab or comma in
        the header.
    encoding : str
        Encoding of the text; UTF-8 if empty.
    decimal : str
        Decimal sign: a point or a comma.
    header : bool
        False if the first row is data; the columns are then named 1, 2, 3 …
    drop : tuple of str
        Names of columns to leave out.
    na_values : tuple of str
        Further marks of missing values, in all columns but the label's.
    """

    separator: str = ""
    encoding: str = ""
    decimal: str = "."
    header: bool = True
    drop: tuple[str, ...] = ()
    na_values: tuple[str, ...] = ()

    @classmethod
    def of(cls, **keywords: Unpack[FormKeywords]) -> TableForm | None:
        """Return the form for keywords; None if all keywords have their defaults.

        Raises
        ------
        ConfigError
            If the separator is no single character, or also the decimal sign, or if the decimal
            sign is neither a point nor a comma.
        TypeError
            If there is no such keyword.
        """
        if unknown := set(keywords) - set(FORM_KEYWORDS):
            msg = (
                f"unknown keyword {sorted(unknown)[0]!r}; a table's are {', '.join(FORM_KEYWORDS)}"
            )
            raise TypeError(msg)
        sep = keywords.get("sep") or ""
        separator = {"\\t": "\t", "tab": "\t"}.get(sep, sep)
        decimal, drop = keywords.get("decimal", "."), keywords.get("drop", ())
        na_values = keywords.get("na_values", ())
        if len(separator) > 1:
            raise ConfigError(f"--sep {sep!r} is no single character (write tab for a tab)")
        if decimal not in (".", ","):
            raise ConfigError(f"--decimal is a point or a comma, not {decimal!r}")
        if separator == decimal:
            raise ConfigError(f"--sep and --decimal are both {decimal!r}")
        form = cls(
            separator,
            keywords.get("encoding") or "",
            decimal,
            keywords.get("header", True),
            (drop,) if isinstance(drop, str) else tuple(drop),
            (na_values,) if isinstance(na_values, str) else tuple(na_values),
        )
        return None if form == cls() else form

    def text_of(self, content: bytes, name: str) -> bytes:
        """Return a file's text in UTF-8; a first line such as ``sep=;`` is blank.

        Raises
        ------
        DataError
            If the text is in another encoding.
        """
        try:
            text = content.decode(self.encoding or "utf-8").removeprefix("\ufeff")
        except LookupError as error:
            raise DataError(f"--encoding {self.encoding}: there is no such encoding") from error
        except UnicodeDecodeError as error:
            line = 1 + content[: error.start].count(b"\n")
            encoding = self.encoding or "UTF-8"
            likely = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1"
            raise DataError(
                f"{name}, line {line}: the text is not encoded as {encoding}; --encoding names"
                f" another encoding, such as {likely}"
            ) from error
        if "\ufeff" in text:
            line = 1 + text[: text.index("\ufeff")].count("\n")
            raise DataError(f"{name}, line {line}: a byte order mark, as where files were joined")
        if _is_arff(text):
            raise DataError(f"{name} is an ARFF file of Weka; save it as CSV")
        return SEPARATOR_LINE.sub("", text).encode()

    def separator_in(self, content: bytes, path: Path) -> str:
        """Return the separator of a file's text."""
        if self.separator:
            return self.separator
        encoding = self.encoding or "utf-8"
        start = content[: 1 << 20].decode(encoding, errors="replace").removeprefix("\ufeff")
        if stated := SEPARATOR_LINE.match(start):
            return stated[1]
        usual = separator_of(path)
        header = next((line for line in start.splitlines() if line.strip()), "")
        others = [sign for sign in (";", "\t", ",") if sign in header]
        return usual if usual in header or not others else others[0]

    def reader(self, content: bytes, path: Path, n_columns: int) -> str:
        """Return the call of pandas that reads the file as this module does."""
        separator = self.separator_in(content, path)
        arguments = [repr(str(path)), *([f"sep={separator!r}"] if separator != "," else [])]
        text = self.text_of(content, str(path))
        if any(f"{separator} ".encode() in line for line in text.splitlines()[:2]):
            arguments.append("skipinitialspace=True")
        arguments += [f"encoding={self.encoding!r}"] if self.encoding else []
        arguments += [f"decimal={self.decimal!r}"] if self.decimal != "." else []
        arguments += [f"na_values={list(self.na_values)}"] if self.na_values else []
        if SEPARATOR_LINE.match(content.decode(self.encoding or "utf-8").removeprefix("\ufeff")):
            arguments.append("skiprows=1")
        if not self.header:
            arguments.append(f"header=None, names=list(map(str, range(1, {n_columns + 1})))")
        return f"pandas.read_csv({', '.join(arguments)})"


def _is_arff(text: str) -> bool:
    """Return True if a text begins like Weka's files, after comments and blank lines."""
    words = (line.strip() for line in io.StringIO(text))
    first = next((word for word in words if word and not word.startswith("%")), "")
    return first.lower().startswith("@relation")


def read_frame(
    path: Path,
    label: str | int | None,
    content: bytes | None = None,
    form: TableForm | None = None,
) -> Any:
    """Return the columns and the labels of a table, by default one with a header.

    Columns of dates and of free text, and columns of text or running numbers that differ in every
    row, are left out.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.
    label : str, int or None
        Name of the label's column, its number from 1, ``"first"`` or ``"last"``; None for the last.
    content : bytes, optional
        The file's uncompressed bytes, if they were read before.
    form : TableForm, optional
        The form of the text.

    Returns
    -------
    X : DataFrame
    y : Series of str

    Raises
    ------
    DataError
        If the file can't be read, has no such column or no other column; if a label is missing or a
        number is infinite; or if numbers have an unreadable form.
    """
    import pandas as pd

    form = form or TableForm()
    if content is None:
        content = decompressed(fetch.read_regular_file(path), path.name)
    if ending_of(path) == ".parquet":
        if form != TableForm():
            raise DataError(f"{path}: a Parquet file needs no word on how its text is written")
        return _read_parquet(path, label, content)
    name, separator = str(path), form.separator_in(content, path)
    content = form.text_of(content, name)
    reading = Reading(format="table", separator=separator, header=form.header)
    tables.refuse_many_columns(content, name, reading)
    _refuse_no_table(content, name, separator)
    options: dict[str, Any] = {
        "sep": separator,
        "skipinitialspace": True,
        "low_memory": False,
        "decimal": form.decimal,
    }
    try:
        first = pd.read_csv(
            io.BytesIO(content), header=None, nrows=2, dtype=object, na_filter=False, **options
        )
        if form.header:
            columns = [
                str(column) for column in pd.read_csv(io.BytesIO(content), nrows=0, **options)
            ]
        else:
            columns = [str(number) for number in range(1, first.shape[1] + 1)]
            options |= {"header": None, "names": columns}
        key = _label_of(columns, "last" if label is None else label, name)
        if form.na_values:
            options["na_values"] = {c: [*form.na_values] for c in columns if c != key}
        frame = pd.read_csv(io.BytesIO(content), dtype={key: object}, **options)
    except ValueError as error:
        if "Expected" in str(error) and " in line 2, " in str(error):
            raise _short_header(name) from error
        raise DataError(f"can't read {path}: {' '.join(str(error).split())}") from error
    frame.columns = pd.Index(columns)
    names = [str(word).strip() for word in first.iloc[0]] if form.header else columns
    if names.count(str(label)) > 1:
        raise DataError(f"{name}: the header names the column {label!r} twice")
    if not frame.index.equals(pd.RangeIndex(len(frame))):  # pandas made a column an index
        raise _short_header(name)
    lines = tables.line_numbers(content, len(frame) + form.header, reading)[int(form.header) :]
    suspects = set(lines[frame.iloc[:, -1].isna().to_numpy()])
    tables.refuse_short_rows(suspects, frame.shape[1], content, name, separator)
    _refuse_drops(form, columns, key, name)
    kept_columns = [column for column in columns if column not in form.drop]
    names = [word for word, column in zip(names, columns, strict=True) if column in kept_columns]
    frame = frame[kept_columns]
    _refuse_no_data(frame, key, names, name, lines)
    number_texts = _number_texts(frame.drop(columns=key), form, name, lines)
    frame = frame.assign(**{column: made.numbers for column, made in number_texts.items()})
    unnamed = [c for c, word in zip(kept_columns, names, strict=True) if not word and c != key]
    saved = [c for c in unnamed if c == columns[0]]
    empty = [c for c in unnamed if c not in saved and frame[c].isna().all()]
    useless = {} if separator == " " else _useless(frame.drop(columns=[key, *saved, *empty]))
    frame = frame.assign(**{key: _label_texts(frame[key])})
    X, y = labelled(frame.drop(columns=[*saved, *empty, *useless]), key, name, 1 + int(form.header))
    left_out = [ROW_NAMES] * bool(saved) + ["columns without a name"] * bool(empty)
    if left_out or useless:
        X.attrs[LEFT_OUT] = [*left_out, *useless.values()]
    used = {column: made for column, made in number_texts.items() if column in X}
    if used:
        X.attrs[DECIMALS_OF_TEXTS] = {column: made.decimal for column, made in used.items()}
        X.attrs[READ_AS] = [f"column {column}: {made.description}" for column, made in used.items()]
    return X, y


def write_plainly(path: Path, label: str | int | None, form: TableForm, target: Path) -> list[str]:
    """Write a table as UTF-8 with commas and a header; return notes on columns read as numbers.

    Parameters
    ----------
    path, label, form
        See :func:`read_frame`.
    target : Path
        The new file.

    Raises
    ------
    DataError
        See :func:`read_frame`.
    """
    X, y = read_frame(path, label, form=form)
    X.assign(**{str(y.name): y}).to_csv(target, index=False, lineterminator="\n")
    return changes(X.attrs)


def changes(facts: Mapping[Any, Any]) -> list[str]:
    """Return sentences about columns that were left out, and about numbers that were texts.

    `facts` are the attributes of a frame, or the facts of a data set.
    """
    read_as = facts.get(READ_AS, [])
    more = len(read_as) - LISTED_COLUMNS
    return [
        *read_as[:LISTED_COLUMNS],
        *([f"{more} more columns of texts are read as numbers"] if more > 0 else []),
        *(f"left out: {description}" for description in facts.get(LEFT_OUT, ())),
    ]


def _refuse_drops(form: TableForm, columns: list[str], key: Any, name: str) -> None:
    """Raise an error for a column to leave out that is the label or does not exist."""
    for column in form.drop:
        if column not in columns or column == key:
            complaint = (
                "is the label" if column == key else f"is no column{suggestion(column, columns)}"
            )
            raise DataError(f"{name}: --drop {column!r} {complaint}")


def _refuse_no_table(content: bytes, name: str, separator: str) -> None:
    """Raise an error for an empty text, or a line with # first and fewer separators than others."""
    if not content.strip():
        raise DataError(f"{name} is empty")
    if not (content.startswith(b"#") or b"\n#" in content):
        return
    lines = [line for line in text_lines(content) if line.strip()]
    usual = max(line.count(separator.encode()) for line in lines)
    for number, line in enumerate(text_lines(content), start=1):
        if line.startswith(b"#") and line.count(separator.encode()) < usual:
            raise DataError(f"{name}, line {number}: a comment; remove lines that are no data")


def _useless(frame: pd.DataFrame) -> dict[Any, str]:
    """Return columns that can't distinguish classes, each with its description."""
    import pandas as pd

    descriptions = {}
    for column in frame.columns:
        values = frame[column].dropna()
        if len(values) < LEAST_ROWS_OF_IDS:
            continue
        if values.dtype.kind in "iu":
            numbers = values.to_numpy()
            if numbers[0] in (0, 1) and len(values) == len(frame) and (np.diff(numbers) == 1).all():
                descriptions[column] = f"the column {column} (running numbers of the rows)"
            elif ID_NAMES.fullmatch(str(column)) and values.nunique() == len(frame):
                descriptions[column] = (
                    f"the column {column} (another number in each row, as ids are)"
                )
        elif values.dtype.kind == "O" and pd.api.types.infer_dtype(values) == "string":
            if values.str.fullmatch(DATE).mean() >= NEARLY_ALL:
                descriptions[column] = (
                    f"the column {column} (dates such as {values.iloc[0].strip()}; make numbers of"
                    " them to use them, such as days since the first)"
                )
            elif values.nunique() == len(frame):
                descriptions[column] = (
                    f"the column {column} (another value in each row, as ids are)"
                )
            elif (unique := (~values.duplicated(keep=False)).mean()) > MOST_OWN_VALUES:
                descriptions[column] = (
                    f"the column {column} (free text: {100 * unique:.0f} % of its values occur"
                    " once; make numbers or categories of it to use it)"
                )
    if len(descriptions) == frame.shape[1]:
        return {}
    return descriptions


def _short_header(name: str) -> DataError:
    return DataError(f"{name}: rows have more columns than the header. {tables.SHORT_HEADER}")


def _label_texts(labels: pd.Series) -> pd.Series:
    """Return labels without blanks around them; words for missing values become missing.

    If plain numbers have several spellings, the labels are written in their shortest form.
    """
    words = labels.str.strip()
    words = words.mask(words.isin([*MISSING_WORDS]))
    known = words.dropna().to_numpy(dtype=object)
    short = label_words(known)
    if len(set(short)) < len(set(known)):
        words[words.notna()] = short
    return words


def _refuse_no_data(
    frame: pd.DataFrame, key: Any, names: list[str], name: str, lines: pd.Index
) -> None:
    """Raise an error for a repeated header, for totals, and for texts among labels of numbers."""
    words = [c for c in frame.columns if frame[c].dtype.kind == "O"]
    suspects = frame.loc[frame[key] == names[list(frame.columns).index(key)], words].index
    for row in suspects:
        if all(frame.loc[row, c] == names[j] for j, c in enumerate(frame.columns) if c in words):
            raise DataError(f"{name}, line {lines[row]}: the row repeats the header")
    for column in words[:2]:
        texts = frame[column].fillna("").astype(str)
        totals = texts.str.fullmatch(TOTALS, case=False).to_numpy(dtype=bool)
        if 0 < totals.sum() <= max(1, (1 - NEARLY_ALL) * len(texts)):
            raise DataError(f"{name}, line {lines[totals][0]}: the row has totals; remove it")
    labels = frame[key].dropna().str.strip()
    labels = labels[~labels.isin([*MISSING_WORDS])]
    odd = labels[~labels.str.fullmatch(rf"[-+]?{DECIMAL_DIGITS}([eE][-+]?\d+)?")]
    if 0 < len(odd) <= (1 - NEARLY_ALL) * len(labels):
        row = odd.index[0]
        raise DataError(
            f"{name}, line {lines[row]}: the label {odd[row][:40]!r} stands among numbers"
        )


def _number_texts(
    frame: pd.DataFrame, form: TableForm, name: str, lines: pd.Index
) -> dict[Any, NumberColumn]:
    """Return the columns whose numbers are texts; raise an error for those that can't be read."""
    words = frame[[c for c in frame.columns if frame[c].dtype.kind == "O"]]
    columns, complaints = number_columns(words, form.decimal)
    if complaints:
        messages = [
            f"line {lines[row]}, column {column}: {complaint}, or --drop the column"
            for column, (row, complaint) in complaints.items()
        ]
        raise DataError("\n  ".join([f"{name}, {messages[0]}", *messages[1:]]))
    return columns


def _read_parquet(path: Path, label: str | int | None, content: bytes) -> Any:
    """Return the columns and the labels of a Parquet file; the index of a frame is no column."""
    import pandas as pd

    from svmbench.data import parquet

    parquet.require_pyarrow()
    import pyarrow as pa

    try:
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise DataError(f"{path} is not a complete Parquet file: {reason}") from error
    if label in frame.index.names:
        frame = frame.reset_index(level=label)
    index = [str(level) for level in frame.index.names if level is not None]
    if not isinstance(frame.index, pd.RangeIndex):
        index = index or ["__index_level_0__"]
    frame = frame.reset_index(drop=True)
    frame.columns = frame.columns.map(str)
    saved = [c for c in frame.columns if parquet.INDEX_NAME.fullmatch(c) and c != label]
    X, y = labelled(
        frame.drop(columns=saved), "last" if label is None else label, str(path), first_line=None
    )
    if index + saved:
        X.attrs[LEFT_OUT] = [parquet.left_out_words(c) for c in index + saved]
    return X, y


def _label_of(columns: list[str], label: str | int, name: str) -> Any:
    """Return the column of labels."""
    import pandas as pd

    if isinstance(label, str) and label not in {"first", "last", *columns}:
        listed = ", ".join(columns[:10])
        near = suggestion(label, columns)
        raise DataError(f"{name} has no column {label!r}{near} (it has {listed})")
    return tables.column_of(pd.DataFrame(columns=columns), label, name)


def labelled(
    frame: pd.DataFrame, label: str | int, name: str, first_line: int | None = 2
) -> tuple[pd.DataFrame, pd.Series]:
    """Split a frame into columns and labels, as :func:`read_frame` does.

    Errors name the line of the file, or the number of the row if `first_line` is None.
    """

    def place(row: Any) -> str:
        return f"row {int(row) + 1}" if first_line is None else f"line {int(row) + first_line}"

    label = _label_of(list(frame.columns), label, name)
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
    """Return the columns of numbers or truth values; the others have words."""
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
        True to fill in missing values: numbers by the median, text by the most frequent value.
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
    from sklearn.preprocessing import (
        FunctionTransformer,
        MinMaxScaler,
        OneHotEncoder,
        OrdinalEncoder,
    )

    numbers = numeric_columns(X)
    words = [c for c in X.columns if c not in numbers]
    sentences = [f"{_counted('numeric', numbers)}{', scaled to [0, 1]' if scale else ''}"]
    if words:
        listed_words = listed([f"{c} ({X[c].nunique()} values)" for c in words])
        sentences.append(f"{_counted('text', words)}, {text}: {listed_words}")
        many = [str(c) for c in words if X[c].nunique() > MOST_WORDS]
        if many and text == "one-hot":
            sentences.append(
                f"the {MOST_WORDS - 1} most frequent values have a feature each, all others one:"
                f" {listed(many)}"
            )
    if missing := missing_values(X):
        if not impute:
            raise DataError(
                f"values are missing: {missing}; --impute fills them in, or a config's impute:"
                " true (numbers by the median, text by the most frequent value)"
            )
        sentences.append(f"missing values, filled in from the training rows: {missing}")
    sentences += changes(X.attrs)
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_WORDS)
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    if scale and numbers:
        values = X[numbers].astype(np.float64)
        bounds = values.min().to_numpy(), values.max().to_numpy()
        if reason := why_not_scaled(*bounds):
            raise DataError(f"the numeric columns: {reason}")
    decimals = X.attrs.get(DECIMALS_OF_TEXTS)
    reader = [FunctionTransformer(with_numbers, kw_args={"decimals": decimals})] if decimals else []
    scaler = [MinMaxScaler()] if scale else []
    as_text = [one_hot] if text == "one-hot" else [ordinal, *scaler]
    median, usual = (
        [SimpleImputer(strategy=s)] if impute else [] for s in ("median", "most_frequent")
    )
    number_steps = [*reader, *median, *scaler]
    steps = [
        (
            "numbers",
            make_pipeline(*number_steps) if number_steps else "passthrough",
            numbers,
        ),
        ("words", make_pipeline(*usual, *as_text), words),
    ]
    return ColumnTransformer([step for step in steps if step[2]]), sentences
