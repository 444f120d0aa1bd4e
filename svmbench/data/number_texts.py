"""Read columns of numbers that are written for people: 12%, $ 5, 1,234.50, 12,5 or ?.

pandas has a thousands separator and a decimal sign for a whole file (with ``thousands=","`` it
reads 12,5 as 125), and none for percentages and currencies. Here each column is rewritten plainly,
and pandas reads the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Marks that Weka, SAS and Excel write among numbers for a missing value or an error.
MISSING_MARKS = frozenset(
    {"?", ".", "-", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"}
)
#: Smallest share of a column's values that decides its kind, such as numbers or dates.
NEARLY_ALL = 0.9
#: A number without a sign and an exponent.
DECIMAL_DIGITS = r"(?:\d+\.?\d*|\.\d+)"
#: Replacements that rewrite a number plainly; separators of thousands and decimals come after them.
REWRITINGS = (
    (r'=?"(.*)"', r"\1"),  # text of Excel
    (r"'(.*\d.*)", r"\1"),
    (r"\((.*\d.*)\)", r"-\1"),  # a negative number of accountants
    (r"([-+−–]?)\s?[$€£¥]\s?(.*)", r"\1\2"),
    (r"(.*\d)\s?[$€£¥%]", r"\1"),
    (r"[−–]\s?(.*)", r"-\1"),  # a minus that is no hyphen
    (rf"({DECIMAL_DIGITS})-", r"-\1"),
    (rf"([-+]?{DECIMAL_DIGITS})[dD]([-+]?\d+)", r"\1e\2"),  # an exponent of Fortran
)
#: Thousands, apart by a separator; the key is the decimal sign.
GROUPS = {
    ".": r"[-+]?[1-9]\d{0,2}(?:[,' \u00a0\u202f]\d{3})+(?:\.\d*)?",
    ",": r"[-+]?[1-9]\d{0,2}(?:[.' \u00a0\u202f]\d{3})+(?:,\d*)?",
}
#: Numbers with a decimal sign; 1,204 and 1.204 are thousands of the other sign, too.
DECIMALS = {
    ".": r"[-+]?(?:\d*|[1-9]\d{0,2}(?:[,' ]\d{3})+)\.\d+(?:[eE][-+]?\d+)?",
    ",": r"[-+]?(?:\d*|[1-9]\d{0,2}(?:[.' ]\d{3})+),\d+(?:[eE][-+]?\d+)?",
}
HEXADECIMAL = r"\s*[-+]?0[xX][0-9a-fA-F]+\s*"
#: Most texts that are no numbers which a description shows.
SHOWN_TEXTS = 3


@dataclass(frozen=True)
class NumberColumn:
    """A column of texts, nearly all of which are numbers.

    Attributes
    ----------
    numbers : Series of float
        NaN for missing values and for texts that are no numbers.
    decimal : {".", ","}
        The decimal sign.
    description : str
        An example of an unusual number, and how many texts are no numbers.
    """

    numbers: pd.Series
    decimal: str
    description: str


def _texts_of(values: pd.Series) -> pd.Series:
    """Return the texts of a column's cells, without missing values and truth values."""
    known = values.dropna()
    return known[known.map(lambda value: not isinstance(value, bool))].astype(str).str.strip()


def _rewritten(texts: pd.Series) -> pd.Series:
    """Return texts without signs of percentages and currencies, and with a plain minus."""
    for pattern, replacement in REWRITINGS:
        texts = texts.str.replace(rf"^{pattern}$", replacement, regex=True).str.strip()
    return texts


def numbers_of(values: pd.Series, decimal: str = ".") -> pd.Series:
    """Return the numbers of a column as floats; NaN for other texts.

    Parameters
    ----------
    values : Series
        Texts and missing values.
    decimal : {".", ","}
        The decimal sign.
    """
    import pandas as pd

    texts = _rewritten(_texts_of(values))
    separators = "[,' \u00a0\u202f]" if decimal == "." else "[.' \u00a0\u202f]"
    is_grouped = texts.str.fullmatch(GROUPS[decimal])
    texts = texts.mask(is_grouped, texts.str.replace(separators, "", regex=True))
    if decimal == ",":
        has_point = texts.str.contains(".", regex=False)
        texts = texts.mask(has_point).str.replace(",", ".", regex=False)
    numbers = pd.to_numeric(texts, errors="coerce").astype("float64")
    return numbers.reindex(values.index)


def with_numbers(X: pd.DataFrame, decimals: dict[Any, str]) -> pd.DataFrame:
    """Return a frame in which the texts of some columns are numbers.

    Parameters
    ----------
    X : DataFrame
    decimals : dict of str
        The columns, with the decimal signs of their texts.
    """
    texts = [c for c in decimals if X[c].dtype.kind == "O"]
    return X.assign(**{column: numbers_of(X[column], decimals[column]) for column in texts})


def _evidence(values: pd.Series) -> tuple[dict[str, int], int]:
    """Return how many texts show each decimal sign, and how many leave it open.

    12,5 and 1.204,50 show a comma, 1.5 and 1,204.50 a point, and 1,204 neither.
    """
    texts = _rewritten(_texts_of(values))
    matches = {
        sign: texts.str.fullmatch(GROUPS[sign]) | texts.str.fullmatch(DECIMALS[sign])
        for sign in GROUPS
    }
    shown = {
        sign: int((matches[sign] & ~matches[other]).sum())
        for sign, other in ((".", ","), (",", "."))
    }
    is_open = matches["."] & matches[","] & texts.str.contains(",", regex=False)
    return shown, int(is_open.sum())


def _column(values: pd.Series, decimal: str, advice: str) -> NumberColumn | None:
    """Return a column if nearly all of its texts are numbers, or all but marks."""
    import pandas as pd

    texts = _texts_of(values)
    numbers = numbers_of(texts, decimal)
    rest = texts[numbers.isna()]
    if len(rest) == len(texts) or (
        len(texts) - len(rest) < NEARLY_ALL * len(texts) and not rest.isin(MISSING_MARKS).all()
    ):
        return None
    unusual = numbers[pd.to_numeric(texts, errors="coerce").isna() & numbers.notna()]
    notes = []
    if len(unusual) or not len(rest):
        row: Any = unusual.index[0] if len(unusual) else numbers.abs().idxmax()
        notes.append(f"{texts[row][:40]!r} is read as {numbers[row]:.12g}{advice}")
    if len(rest):
        shown = [repr(text[:20]) for text in rest.unique()[: SHOWN_TEXTS + 1]]
        shown[SHOWN_TEXTS:] = ["…"] if shown[SHOWN_TEXTS:] else []
        cells = (
            "cell that is no number counts" if len(rest) == 1 else "cells that are no numbers count"
        )
        notes.append(f"{len(rest):,} {cells} as missing ({', '.join(shown)})")
    return NumberColumn(numbers.reindex(values.index), decimal, " and ".join(notes))


def number_columns(
    frame: pd.DataFrame, decimal: str = "."
) -> tuple[dict[Any, NumberColumn], dict[Any, tuple[Any, str]]]:
    """Return the columns of a frame that have numbers in texts.

    If a column leaves open whether 1,204 is a thousand or a decimal number, the other columns
    decide, and otherwise `decimal`.

    Parameters
    ----------
    frame : DataFrame
        Columns of texts.
    decimal : {".", ","}
        The decimal sign of the file.

    Returns
    -------
    columns : dict
        By their names.
    complaints : dict
        For each column of numbers that can't be read: a row, and a clause.
    """
    evidence = {column: _evidence(frame[column]) for column in frame.columns}
    clear = {
        max(shown, key=shown.__getitem__) for shown, _ in evidence.values() if any(shown.values())
    }
    usual = next(iter(clear)) if len(clear) == 1 and decimal == "." else decimal
    columns, complaints = {}, {}
    for column, (shown, n_open) in evidence.items():
        if any(shown.values()):
            sign = max(shown, key=shown.__getitem__)
        else:
            sign = usual if n_open else decimal
        is_guess = sign == "." and n_open and not clear
        advice = ' (if that is wrong: --decimal ",")' if is_guess else ""
        if made := _column(frame[column], sign, advice):
            columns[column] = made
        elif complaint := _complaint(frame[column], shown):
            complaints[column] = complaint
    return columns, complaints


def _complaint(values: pd.Series, shown: dict[str, int]) -> tuple[Any, str] | None:
    """Return a row and the mistake in it if a column's numbers can't be read."""
    texts = _texts_of(values)
    if not len(texts):
        return None
    is_hexadecimal = texts.str.fullmatch(HEXADECIMAL)
    if is_hexadecimal.mean() >= NEARLY_ALL:
        row = texts.index[0]
        return row, f"{texts[row][:40]!r} is hexadecimal; write plain numbers"
    readable = numbers_of(texts, ".").notna() | numbers_of(texts, ",").notna()
    if all(shown.values()) and readable.mean() >= NEARLY_ALL:
        rare = numbers_of(texts, max(shown, key=shown.__getitem__)).isna()
        row = texts.index[rare & readable][0]
        return (
            row,
            f"{texts[row][:40]!r} has another decimal sign than most; write all numbers alike",
        )
    return None
