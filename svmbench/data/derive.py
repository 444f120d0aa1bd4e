"""From rows and written labels to a data set: classes kept and mapped, features left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from svmbench.base.errors import DataError
from svmbench.data.entries import Derivation, Novelty

#: Narrower data are always stored dense: CSR pays off where most of many columns are zero.
DENSE_BELOW_FEATURES = 65
SPARSE_BELOW_DENSITY = 1 / 3
#: Narrow data are stored as CSR none the less where dense they would take more than this, and far
#: more than the text that they were read from: 64 columns may stand for two bytes of a row.
MOST_DENSE_BYTES = 256 << 20
SPARSE_BELOW_FILLED = 1 / 50
#: Characters of a label.
LONGEST_LABEL = 200
MAX_CLASSES_IN_NAME = 5
MOST_CLASSES_OF_A_PAIR = 1000


@dataclass
class Part:
    """Training or test rows as read.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        As written in the file: words, or numbers.
    """

    X: Any
    labels: np.ndarray


@dataclass
class Derived:
    """A data set's arrays.

    Attributes
    ----------
    X, X_test : ndarray or csr_array
    y, y_test : ndarray of int64
        −1 and +1 for two classes, else 0 … k−1.
    classes : list of str
        The classes' names in the order of the codes.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray | None
    classes: list[str]


def label_words(labels: np.ndarray) -> np.ndarray:
    """Return labels as words, numbers in their shortest form: ``+1`` and ``1.0`` are ``1``."""
    if labels.dtype.kind in "OUS":
        codes, kinds = pd.factorize(labels, use_na_sentinel=False)
        words = np.array([str(kind) for kind in kinds] + [""], dtype=object)[:-1]
        try:
            numbers = words.astype(np.float64)
        except ValueError:
            return words[codes]
        if not np.isfinite(numbers).all():
            return words[codes]
        numbers = numbers[codes]
    else:
        numbers = labels.astype(np.float64)
    values, inverse = np.unique(numbers, return_inverse=True)
    # np.unique makes -0.0 and 0.0 one; adding 0.0 gives that one the plain sign.
    plain = [repr(float(value + 0.0)).removesuffix(".0") for value in values]
    # As objects: NumPy's own texts would all be as wide as the longest of them.
    return np.array(plain, dtype=object)[inverse]


def refuse_long_labels(labels: np.ndarray, where: str) -> None:
    """Refuse labels that are sentences rather than names.

    Raises
    ------
    DataError
        For a label longer than `LONGEST_LABEL`.
    """
    if labels.dtype.kind in "OUS" and len(labels):
        longest = max(map(len, map(str, labels)))
        if longest > LONGEST_LABEL:
            raise DataError(
                f"{where}: a label of {longest:,} characters, more than the {LONGEST_LABEL} of one"
                " (is another column the label's?)"
            )


def class_order(words: set[str]) -> list[str]:
    """Return class names in numeric order if all are numbers, else in alphabetical order."""
    plain = [str(word) for word in words]
    try:
        return sorted(plain, key=float)
    except ValueError:
        return sorted(plain)


def derive(name: str, train: Part, test: Part | None, what: Derivation) -> Derived:
    """Apply a derivation.

    Parameters
    ----------
    name : str
        The data set, for errors.
    train, test : Part
        As read; test may be None.
    what : Derivation
        Classes to select, features and rows to leave out, labels to map.

    Raises
    ------
    DataError
        If a class that is named isn't there, only one class is left, or the test part has a class
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
            raise DataError(f"{name}: the test part has the class {str(min(strangers))!r} alone")
        _, y_test = _codes(words_test, positive, class_order(set(words)))
    return Derived(_stored(X), y, _stored(X_test), y_test, names)


def pair_of(name: str, words: np.ndarray, total: int) -> tuple[str, str]:
    """Return the one pair of classes that has `total` rows together.

    Raises
    ------
    DataError
        If there is none, or more than one.
    """
    classes, sizes = np.unique(words, return_counts=True)
    if len(classes) > MOST_CLASSES_OF_A_PAIR:
        raise DataError(f"{name} has {len(classes):,} classes, too many to look for a pair in")
    pairs = [
        (str(classes[i]), str(classes[j]))
        for i in range(len(classes))
        for j in range(i + 1, len(classes))
        if sizes[i] + sizes[j] == total
    ]
    if len(pairs) != 1:
        held = ", ".join(f"{word}: {size:,}" for word, size in zip(classes, sizes, strict=True))
        found = "no pair" if not pairs else f"{len(pairs)} pairs"
        raise DataError(f"{name}: {found} of its classes has {total:,} rows together ({held})")
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
    place = {word: code for code, word in enumerate(order)}
    return order, np.array([place[word] for word in words], dtype=np.int64)


def thinned(is_normal: np.ndarray, what: Novelty) -> np.ndarray:
    """Return which rows the novelty protocol keeps: all normal ones, and of the others a few.

    Parameters
    ----------
    is_normal : ndarray of bool of shape (n_samples,)
    what : Novelty
        How many abnormal rows for each normal one; all are kept where there are fewer.

    Returns
    -------
    keep : ndarray of bool of shape (n_samples,)
        Rows keep their order.
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

    Of CSR the values alone are gone over, since an entry may say that there are 2³¹ columns.
    """
    n_features = X.shape[1]
    for number in dropped:
        if not 1 <= number <= n_features:
            raise DataError(f"{name} has no feature {number} to drop; it has {n_features}")
    left_out = np.unique(np.array(dropped, dtype=np.int64) - 1)
    if not sp.issparse(X):
        return np.delete(X, left_out, axis=1)
    place = np.searchsorted(left_out, X.indices)
    keep = ~np.isin(X.indices, left_out)
    before = np.concatenate([[0], np.cumsum(keep)])
    indices = (X.indices - place)[keep].astype(X.indices.dtype)
    indptr = before[X.indptr].astype(X.indptr.dtype)
    shape = (X.shape[0], n_features - len(left_out))
    return sp.csr_array((X.data[keep], indices, indptr), shape=shape)


def _kept(X: Any, words: np.ndarray, keep: np.ndarray) -> tuple[Any, np.ndarray]:
    return X[keep], words[keep]


def _widened(X: Any, n_features: int) -> Any:
    """Return `X` with `n_features` columns: a LIBSVM file doesn't say how many there are."""
    if X.shape[1] == n_features:
        return X
    if sp.issparse(X):
        return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    wide = np.zeros((X.shape[0], n_features))
    wide[:, : X.shape[1]] = X
    return wide


def density(X: Any) -> float:
    """Return the share of entries that are not zero."""
    cells = X.shape[0] * X.shape[1]
    nonzero = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return float(nonzero) / cells if cells else 0.0


def _stored(X: Any) -> Any:
    """Return `X` as it will lie on disk: dense float64 in C order, or CSR where that is smaller."""
    if X is None:
        return None
    share = density(X)
    is_wide = X.shape[1] >= DENSE_BELOW_FEATURES and share < SPARSE_BELOW_DENSITY
    dense_bytes = 8 * X.shape[0] * X.shape[1]
    is_empty = share < SPARSE_BELOW_FILLED and dense_bytes > MOST_DENSE_BYTES
    if not (is_wide or is_empty):
        dense = X.toarray() if sp.issparse(X) else X
        return np.ascontiguousarray(dense, dtype=np.float64)
    rows = sp.csr_array(X, dtype=np.float64)
    rows.eliminate_zeros()
    rows.sort_indices()
    if max(rows.nnz, rows.shape[1]) < 2**31:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows
