"""Derive a data set from the rows of its files: select classes, map labels, drop features."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from svmbench.base.errors import DataError
from svmbench.data.entries import Derivation, Novelty

#: Data with fewer features are always stored dense.
DENSE_BELOW_FEATURES = 65
#: Wider data are stored as CSR if their share of non-zero values is below this.
SPARSE_BELOW_DENSITY = 1 / 3
#: Narrow data are stored as CSR nevertheless if a dense array would take more bytes than this and
#: the share of non-zero values is below `SPARSE_BELOW_FILLED`: a row of 64 columns may come from
#: two bytes of text.
MAX_DENSE_BYTES = 256 << 20
SPARSE_BELOW_FILLED = 1 / 50
#: Largest number of characters of a label.
MAX_LABEL_CHARS = 200
#: Whole numbers from here on may be the same float64.
LARGEST_LABEL = 2.0**53
#: Words for a missing value: those of pandas, R and Excel.
MISSING_WORDS = frozenset(
    {"", "nan", "NaN", "-nan", "-NaN", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "#N/A N/A"}
    | {"NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
#: The smallest range of values that scikit-learn's scalers don't treat as rounding errors, and the
#: largest range whose square doesn't overflow.
SMALLEST_RANGE, LARGEST_RANGE = 10 * np.finfo(np.float64).eps, 1e150
#: Largest number of features for which `ranges` returns an entry for every feature.
MAX_RANGES = 1_000_000
#: The name of the negative class lists at most this many classes.
MAX_CLASSES_IN_NAME = 5
#: `select_pair_of` searches the pairs of at most this many classes.
MAX_CLASSES_FOR_PAIR_SEARCH = 1000


@dataclass
class LabelledRows:
    """Training or test rows with the labels of the file.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        Labels in the file: words or numbers.
    left_out : tuple of str
        Descriptions of columns that were left out of the file, such as saved row names.
    read_as : tuple of str
        Descriptions of columns whose numbers are texts in the file, such as 12%.
    n_columns : int
        Number of columns of a LIBSVM file before its empty columns were left out; else 0.
    """

    X: Any
    labels: np.ndarray
    left_out: tuple[str, ...] = ()
    n_columns: int = 0
    read_as: tuple[str, ...] = ()


@dataclass
class Derived:
    """The arrays of a data set.

    Attributes
    ----------
    X, X_test : ndarray or csr_array
    y, y_test : ndarray of int64
        −1 and +1 for two classes, else 0 … k−1.
    classes : list of str
        Names of the classes, in the order of their codes.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray | None
    classes: list[str]


#: Numbers whose spellings are the same label: 1, +1, 1.0, and 1.0e+00, as programs print them.
#: Others, such as 007 and 1E2, are words, and so are numbers with more digits than float64 has.
_PLAIN_LABEL = re.compile(
    r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|[0-9]\.[0-9]+[eE][+-][0-9]{2,3})", re.ASCII
)
_MAX_LABEL_DIGITS = 15


def are_plain(words: Iterable[str]) -> bool:
    """Return True if all labels are plain numbers; then 1, +1 and 1.0 are one label."""
    return all(
        _PLAIN_LABEL.fullmatch(word) and _digits(word) <= _MAX_LABEL_DIGITS for word in words
    )


def _digits(number: str) -> int:
    """Count the digits of a number, without exponent and without the final zeros of a fraction."""
    mantissa = number.lower().partition("e")[0]
    return sum(map(str.isdigit, mantissa.rstrip("0") if "." in mantissa else mantissa))


def label_words(labels: np.ndarray) -> np.ndarray:
    """Return labels as words; plain numbers in their shortest form: ``+1`` and ``1.0`` are ``1``.

    If any label is not a plain number, all labels stay as they are written.
    """
    if labels.dtype.kind in "OUS":
        codes, kinds = pd.factorize(labels, use_na_sentinel=False)
        words = np.array([str(kind) for kind in kinds] + [""], dtype=object)[:-1]
        if not are_plain(words):
            return words[codes]
        numbers = words.astype(np.float64)[codes]
    elif labels.dtype.kind in "iu":
        codes, values = pd.factorize(labels)
        return np.array([*map(str, values.tolist()), ""], dtype=object)[:-1][codes]
    else:
        numbers = labels.astype(np.float64)
    values, inverse = np.unique(numbers, return_inverse=True)
    # np.unique keeps one of -0.0 and 0.0; adding 0.0 makes it 0.0.
    plain = [repr(float(value + 0.0)).removesuffix(".0") for value in values]
    # An object array: NumPy's string arrays give each text the width of the longest one.
    return np.array(plain, dtype=object)[inverse]


def refuse_merged_labels(labels: np.ndarray, where: str) -> None:
    """Raise an error for NaN, and for labels so large that different ones may be equal in float64.

    Raises
    ------
    DataError
        For NaN, infinity, or a label beyond ±2⁵³.
    """
    if labels.dtype.kind == "f" and not (np.abs(labels) < LARGEST_LABEL).all():
        bad = labels[~(np.abs(labels) < LARGEST_LABEL)][0]
        raise DataError(
            f"{where}: the label {bad:.17g} is not a number between -2**53 and 2**53; a table may"
            " have such labels as text"
        )


def refuse_long_labels(labels: np.ndarray, where: str) -> None:
    """Raise an error for labels that are too long to be class names.

    Raises
    ------
    DataError
        For a label longer than `MAX_LABEL_CHARS`.
    """
    if labels.dtype.kind in "OUS" and len(labels):
        longest = max(map(len, map(str, labels)))
        if longest > MAX_LABEL_CHARS:
            raise DataError(
                f"{where}: a label has {longest:,} characters, but at most {MAX_LABEL_CHARS}"
                " are allowed (is the label in another column?)"
            )


def class_order(words: set[str]) -> list[str]:
    """Return class names in numeric order if all are numbers, else in alphabetical order."""
    plain = [str(word) for word in words]
    try:
        value = {word: float(word) for word in plain}
    except ValueError:
        return sorted(plain)
    if not all(map(math.isfinite, value.values())):
        return sorted(plain)
    return sorted(plain, key=lambda word: (value[word], word))  # 7 and 007 have one value


def derive(name: str, train: LabelledRows, test: LabelledRows | None, what: Derivation) -> Derived:
    """Apply a derivation.

    Parameters
    ----------
    name : str
        Name of the data set, for errors.
    train, test : LabelledRows
        Rows of the files; `test` may be None.
    what : Derivation
        Classes to select, features and rows to leave out, labels to map.

    Raises
    ------
    DataError
        If a named class doesn't exist, if only one class is left, or if the test part has a class
        that the training part lacks.
    """
    n_features = max(part.X.shape[1] for part in (train, test) if part is not None)
    rows = slice(*what.rows) if what.rows else slice(None)
    X, words = _widened(train.X, n_features)[rows], label_words(train.labels)[rows]
    X_test, words_test = None, None
    if test is not None:
        X_test, words_test = _widened(test.X, n_features), label_words(test.labels)
    select = what.select
    if what.select_pair_of is not None:
        select = pair_of(name, words, what.select_pair_of)
    if select:
        _require(name, select, words)
        X, words = _kept(X, words, np.isin(words, select))
        if words_test is not None:
            X_test, words_test = _kept(X_test, words_test, np.isin(words_test, select))
    if what.drop_features:
        X = _without(name, X, what.drop_features)
        X_test = None if X_test is None else _without(name, X_test, what.drop_features)
    positive = what.positive
    if what.novelty is not None:
        positive = what.novelty.normal
        _require(name, positive, words)
        X, words = _kept(X, words, thinned(np.isin(words, positive), what.novelty))
    if positive:
        _require(name, positive, words)
    names, y = coded(name, words, positive)
    y_test = None
    if words_test is not None:
        strangers = set(words_test) - set(words)
        if strangers and not positive:
            raise DataError(f"{name}: only the test part has the class {str(min(strangers))!r}")
        _, y_test = _codes(words_test, positive, class_order(set(words)))
    return Derived(_stored(X), y, _stored(X_test), y_test, names)


def pair_of(name: str, words: np.ndarray, total: int) -> tuple[str, str]:
    """Return the only pair of classes whose rows add up to `total`.

    Raises
    ------
    DataError
        If no pair or several pairs add up to `total`.
    """
    classes, sizes = np.unique(words, return_counts=True)
    if len(classes) > MAX_CLASSES_FOR_PAIR_SEARCH:
        raise DataError(f"{name} has {len(classes):,} classes, too many to search for a pair")
    pairs = [
        (str(classes[i]), str(classes[j]))
        for i in range(len(classes))
        for j in range(i + 1, len(classes))
        if sizes[i] + sizes[j] == total
    ]
    if len(pairs) != 1:
        listed_sizes = ", ".join(
            f"{word}: {size:,}" for word, size in zip(classes, sizes, strict=True)
        )
        n_pairs = "no pair" if not pairs else f"{len(pairs)} pairs"
        raise DataError(
            f"{name}: {n_pairs} of its classes has {total:,} rows together ({listed_sizes})"
        )
    return pairs[0]


def coded(name: str, words: np.ndarray, positive: tuple[str, ...]) -> tuple[list[str], np.ndarray]:
    """Return class names and codes: −1/+1 for two classes or a positive side, else 0 … k−1.

    Raises
    ------
    DataError
        If there is one class only.
    """
    order = class_order(set(words))
    if len(order) < 2:
        raise DataError(f"{name} has one class only: {order[0] if order else 'no rows at all'}")
    names, y = _codes(words, positive, order)
    if positive and len(np.unique(y)) < 2:
        raise DataError(f"{name} has one class only: every row is {names[int(y[0] > 0)]}")
    return names, y


def _codes(
    words: np.ndarray, positive: tuple[str, ...], order: list[str]
) -> tuple[list[str], np.ndarray]:
    if positive or len(order) == 2:
        plus = list(positive) or order[1:]
        minus = [word for word in order if word not in plus]
        y = np.where(np.isin(words, plus), np.int64(1), np.int64(-1))
        rest = " or ".join(minus) if len(minus) <= MAX_CLASSES_IN_NAME else "the rest"
        return [rest, " or ".join(plus)], y
    code_of = {word: code for code, word in enumerate(order)}
    return order, np.array([code_of[word] for word in words], dtype=np.int64)


def thinned(is_normal: np.ndarray, what: Novelty) -> np.ndarray:
    """Select all normal rows and a random sample of the abnormal rows, as a mask.

    Parameters
    ----------
    is_normal : ndarray of bool of shape (n_samples,)
    what : Novelty
        Ratio of abnormal to normal rows; if there are fewer abnormal rows, all are kept.

    Returns
    -------
    keep : ndarray of bool of shape (n_samples,)
        True for the selected rows.
    """
    keep = is_normal.copy()
    abnormal = np.flatnonzero(~is_normal)
    wanted = min(len(abnormal), max(1, round(what.ratio * int(is_normal.sum()))))
    chosen = np.random.default_rng(what.seed).choice(abnormal, size=wanted, replace=False)
    keep[chosen] = True
    return keep


def _require(name: str, wanted: tuple[str, ...], words: np.ndarray) -> None:
    present = set(words)
    for word in wanted:
        if word not in present:
            known = ", ".join(class_order(present)[:12])
            raise DataError(f"{name} has no class {word!r}; its classes are {known}")


def _without(name: str, X: Any, dropped: tuple[int, ...]) -> Any:
    """Return `X` without some features, numbered from 1.

    For CSR, the work depends on the number of values only: a file may have 2³¹ columns.
    """
    n_features = X.shape[1]
    for number in dropped:
        if not 1 <= number <= n_features:
            raise DataError(f"{name} has no feature {number} to drop; it has {n_features}")
    left_out = np.unique(np.array(dropped, dtype=np.int64) - 1)
    if not sp.issparse(X):
        return np.delete(X, left_out, axis=1)
    n_before = np.searchsorted(left_out, X.indices)
    keep = ~np.isin(X.indices, left_out)
    before = np.concatenate([[0], np.cumsum(keep)])
    indices = (X.indices - n_before)[keep].astype(X.indices.dtype)
    indptr = before[X.indptr].astype(X.indptr.dtype)
    shape = (X.shape[0], n_features - len(left_out))
    return sp.csr_array((X.data[keep], indices, indptr), shape=shape)


def _kept(X: Any, words: np.ndarray, keep: np.ndarray) -> tuple[Any, np.ndarray]:
    return X[keep], words[keep]


def _widened(X: Any, n_features: int) -> Any:
    """Return `X` with `n_features` columns; a LIBSVM file doesn't state their number."""
    if X.shape[1] == n_features:
        return X
    if sp.issparse(X):
        return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    wide = np.zeros((X.shape[0], n_features))
    wide[:, : X.shape[1]] = X
    return wide


def ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each feature; CSR counts as having a zero.

    For CSR with more than `MAX_RANGES` features, only the features that occur are returned.
    """
    if sp.issparse(X):
        columns_of_values, n_features = X.indices, X.shape[1]
        if n_features > MAX_RANGES:
            columns, columns_of_values = np.unique(X.indices, return_inverse=True)
            n_features = len(columns)
        low, high = (np.zeros(n_features) for _ in range(2))
        np.minimum.at(low, columns_of_values, X.data)
        np.maximum.at(high, columns_of_values, X.data)
        return low, high
    return X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)


def why_not_scaled(low: np.ndarray, high: np.ndarray, *, named: bool = True) -> str:
    """Return why scikit-learn's scalers would spoil a feature; empty if they wouldn't.

    They treat a feature as constant if its range is below ten times the rounding error of 1,
    whatever its unit. A range or a variance that overflows makes all values 0.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        Smallest and largest value of each feature.
    named : bool, default=True
        Whether positions in `low` and `high` are the numbers of the features.
    """
    with np.errstate(over="ignore"):
        widths = high - low
    bad = ((widths > 0) & (widths < SMALLEST_RANGE)) | (widths > LARGEST_RANGE)
    if not bad.any():
        return ""
    j = int(np.argmax(bad))
    subject = f"feature {j + 1}" if named else "a feature"
    return (
        f"{subject} has values from {low[j]:g} to {high[j]:g}; scaling needs a range between"
        f" {SMALLEST_RANGE:.1g} and {LARGEST_RANGE:g}, so use another unit, or scaling: none"
    )


def density(X: Any) -> float:
    """Return the share of non-zero values."""
    cells = X.shape[0] * X.shape[1]
    nonzero = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return float(nonzero) / cells if cells else 0.0


def is_stored_dense(shape: tuple[int, int], share: float) -> bool:
    """Return True if data of a shape and a share of non-zero values are stored dense."""
    is_wide = shape[1] >= DENSE_BELOW_FEATURES and share < SPARSE_BELOW_DENSITY
    is_empty = share < SPARSE_BELOW_FILLED and 8 * shape[0] * shape[1] > MAX_DENSE_BYTES
    return not (is_wide or is_empty)


def _stored(X: Any) -> Any:
    """Return `X` in its storage format: dense float64 in C order, or CSR if that is smaller."""
    if X is None:
        return None
    if is_stored_dense(X.shape, density(X)):
        dense = X.toarray() if sp.issparse(X) else X
        return np.ascontiguousarray(dense, dtype=np.float64)
    rows = sp.csr_array(X, dtype=np.float64)
    rows.eliminate_zeros()
    rows.sort_indices()
    if max(rows.nnz, rows.shape[1]) < 2**31:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows
