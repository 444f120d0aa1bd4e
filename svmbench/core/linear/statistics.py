"""Sums of samples, gathered block by block, from which the linear least-squares SVM follows.

    z = (x - m, 1),    S = sum z z',    q = sum s z

`m` is a shift, one number a feature, and `s` is +1 for the first label seen and -1 for the other.
With a constant feature of value `beta`, a sample is linear in z,

    (x, beta) = T z,    T = [[I, m], [0, beta]],

so that its sums are ``T S T'`` and ``T q``. One pass gathers S and q, which depend neither on C,
nor on `beta`, nor on the positive label. Sums of parts of the data add up, in any order.

Raw sums hold a feature's squared mean beside its variance, and lose the variance where the mean is
thousands of times the spread. Only such features have a shift: about their mean in the first rows
of a block. S is then as well conditioned as the centred data, without a second pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from svmbench.core.linear import least_squares
from svmbench.core.linear.least_squares import fold_moments
from svmbench.core.numeric.arrays import as_block, canonical_csr

#: Values of `stop_reason_`.
CLOSED_FORM = "closed form"
BY_CENTRED_SUMS = "closed form, of sums about the means"

#: A feature is shifted if its mean is more than this many standard deviations from zero, in the
#: first rows of a block.
SHIFT_MIN_DEVIATIONS, SHIFT_ROWS = 100.0, 1000

#: Bytes that the sums of all folds may take.
MAX_BYTES = 4 << 30


@dataclass
class Sums:
    """Sums of some samples about a shift, and the solutions that follow from them."""

    S: np.ndarray  # (d + 1, d + 1), symmetric
    r: np.ndarray  # (d + 1,): sum of y z, for labels y of ±1
    shift: np.ndarray  # (d,)
    bias: float  # value of the constant feature; 0 for none

    @cached_property
    def T(self) -> np.ndarray:  # noqa: N802 (the letter of the formula)
        """The matrix T of the module's formula, shape (d or d + 1, d + 1)."""
        d = len(self.shift)
        T = np.eye(d + bool(self.bias), d + 1)
        T[:d, d] = self.shift
        T[d:, d] = self.bias
        return T

    @cached_property
    def A(self) -> np.ndarray:  # noqa: N802
        """Sum of outer products of the samples."""
        return self.T @ self.S @ self.T.T

    @cached_property
    def q(self) -> np.ndarray:
        """Sum of y times the sample."""
        return np.asarray(self.T @ self.r)

    def solve(self, nu: float) -> tuple[np.ndarray, str]:
        """Return w with ``(A + nu I) w = q``, the constant's weight last, and the stop reason."""
        if not self.shift.any():
            w = least_squares.solve_sums(self.A, self.q, nu)
            if w is not None:
                return w, CLOSED_FORM
        else:
            w = self._solve_shifted(nu)
            if w is not None:
                return w, BY_CENTRED_SUMS
        # Without the directions that the sums have lost.
        w, _ = least_squares.solve(self.A, self.q, nu)
        return w, least_squares.BY_POOR_SUMS

    def _solve_shifted(self, nu: float) -> np.ndarray | None:
        """Solve in the coordinates of z; None where S is too ill-conditioned.

        With ``v = T'w`` and ``u = (m, -1)`` the constant's weight is ``-u v / beta``, so that

            (K + nu / beta^2 u u') v = r,    K = S + nu diag(1, ..., 1, 0),

        solved with K's factor by Sherman and Morrison's formula; without a constant feature by its
        limit, ``u v = 0``.
        """
        d = len(self.shift)
        K = self.S.copy()
        K.flat[: -1 : d + 2] += nu
        scale = 1.0 / np.sqrt(np.diag(K))
        factor = least_squares.cholesky(K * np.outer(scale, scale), 0.0)
        if factor is None:
            return None
        u = np.append(self.shift, -1.0)
        a, g = solve_triangular(factor, np.column_stack([scale * self.r, scale * u]), lower=True).T
        loose = self.bias**2 / nu
        share = float(g @ a) / (loose + float(g @ g))
        v = scale * solve_triangular(factor, a - share * g, lower=True, trans="T")
        return np.append(v[:d], -share * loose / self.bias) if self.bias else v[:d]

    def loss(self, w: np.ndarray, b: float) -> float:
        """Return ``sum (1 - y f(x))^2`` of ``f(x) = w x + b`` over these samples."""
        v = np.append(w, b + float(w @ self.shift))
        return max(0.0, float(self.S[-1, -1] - 2.0 * (v @ self.r) + v @ self.S @ v))


class Statistics:
    """Sums of outer products and of signed samples, of each fold of the data.

    Parameters
    ----------
    n_folds : int, default=1
        Folds of a cross-validation, whose sums are kept apart; 1 for none.
    n_features : int, optional
        Number of features, d. Default: the columns of the widest block.

    Attributes
    ----------
    n_features : int
    n_samples : int
    labels : tuple
        The labels seen so far, at most two, in order of their first appearance.
    shift : ndarray of shape (n_features,)
        m; mostly zeros.
    S : ndarray of shape (n_folds, n_features + 1, n_features + 1)
        Upper triangles, zeros below.
    q : ndarray of shape (n_folds, n_features + 1)

    Notes
    -----
    Memory is ``8 n_folds (n_features + 1)**2`` bytes, about three times as much while a block is
    added, whatever the number of rows. An object can be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> from svmbench.core.linear.statistics import Statistics
    >>> one = Statistics().update(np.array([[1.0], [2.0]]), np.array([0, 1]))
    >>> two = Statistics().update(np.array([[4.0]]), np.array([1]))
    >>> one.merge(two).n_samples
    3
    """

    def __init__(self, n_folds: int = 1, n_features: int | None = None) -> None:
        if n_folds < 1:
            msg = f"n_folds must be at least 1, got {n_folds}"
            raise ValueError(msg)
        self.n_folds = n_folds
        self._is_fixed = n_features is not None
        self.labels: tuple[Any, ...] = ()
        width = 1 if n_features is None else self._affordable(n_features) + 1
        self.shift = np.zeros(width - 1)
        self.S = np.zeros((n_folds, width, width))
        self.q = np.zeros((n_folds, width))

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return len(self.shift)

    @property
    def counts(self) -> np.ndarray:
        """Number of samples of each fold, shape (n_folds,)."""
        return np.rint(self.S[:, -1, -1]).astype(np.int64)

    @property
    def n_samples(self) -> int:
        """Number of samples of all folds."""
        return int(self.counts.sum())

    def update(self, X: Any, y: Any, folds: Any = None) -> Self:
        """Add a block of rows.

        Parameters
        ----------
        X : ndarray or sparse array of shape (n_rows, n_columns)
            A sparse block may be narrower than others: its missing features are zeros.
        y : array-like of shape (n_rows,)
            Labels.
        folds : array-like of shape (n_rows,), optional
            Fold of each row, 0 … n_folds - 1. Default: all of fold 0.

        Returns
        -------
        self : Statistics

        Raises
        ------
        ValueError
            For a third label, too many features, NaN or infinite values, values whose squares
            overflow, folds out of range, or lengths that differ. Nothing is added then.
        """
        X = as_block(X, self.n_features)
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            msg = f"a block has {X.shape[0]} rows and labels of shape {y.shape}"
            raise ValueError(msg)
        if not len(y):
            return self
        group = self._groups(folds, len(y))
        labels, signs = _signed(self.labels, y)
        X = self._fit_width(X)
        # A block with more rows than all before it sets the shift: few rows say little of a spread.
        shift = self.shift if self.n_samples >= len(y) else _far_means(X)
        with np.errstate(over="ignore", invalid="ignore"):
            S, q = fold_moments(_minus(X, shift), signs, group, self.n_folds, 1.0)
        if not np.all(np.isfinite(np.einsum("fii->fi", S))):
            raise ValueError(_why_not_finite(X))
        self._add(S, q, shift)
        self.labels = labels
        return self

    def merge(self, other: Statistics) -> Self:
        """Add the sums of another object, which is not changed.

        Raises
        ------
        ValueError
            If together they have more than two labels, or their folds or fixed widths differ.
        """
        if other.n_folds != self.n_folds:
            msg = f"statistics of {self.n_folds} and of {other.n_folds} folds can't be merged"
            raise ValueError(msg)
        if not other.n_samples:
            return self
        labels, _ = _signed(self.labels, np.array(other.labels))
        width = max(self.n_features, other.n_features)
        if self._is_fixed and width > self.n_features:
            raise ValueError(_beyond(width, self.n_features))
        self._widen(self._affordable(width))
        S, q, shift = _widened(other.S, other.q, other.shift, width)
        if other.labels[0] != labels[0]:
            q = -q
        if self.n_samples >= other.n_samples:
            S, q = _moved(S, q, shift - self.shift)
            shift = self.shift
        self._add(S, q, shift.copy())
        self.labels = labels
        return self

    def sums(self, bias: float, without: int | None = None) -> Sums:
        """Return the sums of all samples, or of the samples outside the fold `without`.

        `bias` is the value of the constant feature; 0 for none.

        Raises
        ------
        ValueError
            If the samples are not of two classes.
        """
        chosen = [fold for fold in range(self.n_folds) if fold != without]
        S, q = self.S[chosen].sum(axis=0), self.q[chosen].sum(axis=0)
        if abs(q[-1]) == S[-1, -1]:
            where = "the data" if without is None else f"the training part of fold {without}"
            msg = f"{where} has no samples" if not S[-1, -1] else f"{where} has one class only"
            raise ValueError(msg)
        sign = 1.0 if self.labels[0] == self.classes[1] else -1.0
        return Sums(S + np.triu(S, 1).T, sign * q, self.shift, bias)

    @property
    def classes(self) -> np.ndarray:
        """The labels in order; the last is the positive class."""
        return np.unique(np.array(self.labels))

    def held_out(self, fold: int, bias: float) -> Sums:
        """Return the sums of one fold alone, for the loss of a model of the other folds."""
        S = self.S[fold]
        sign = 1.0 if self.labels[0] == self.classes[-1] else -1.0
        return Sums(S + np.triu(S, 1).T, sign * self.q[fold], self.shift, bias)

    def _add(self, S: np.ndarray, q: np.ndarray, shift: np.ndarray) -> None:
        """Add sums about a shift, and move all sums to it."""
        self.S, self.q = _moved(self.S, self.q, self.shift - shift)
        self.S += S
        self.q += q
        self.shift = shift

    def _groups(self, folds: Any, n_rows: int) -> np.ndarray:
        if folds is None:
            return np.zeros(n_rows, dtype=np.int32)
        group = np.asarray(folds)
        if group.shape != (n_rows,) or (
            n_rows and not (group.min() >= 0 and group.max() < self.n_folds)
        ):
            msg = f"folds must be one of 0 … {self.n_folds - 1} for each of {n_rows} rows"
            raise ValueError(msg)
        return group.astype(np.int32)

    def _affordable(self, n_features: int) -> int:
        """Return the number of features; ValueError if their sums exceed `MAX_BYTES`."""
        size = 8 * self.n_folds * (n_features + 1) ** 2
        if size > MAX_BYTES:
            msg = (
                f"the sums of {n_features:,} features take {size / 2**30:,.0f} GiB"
                f" ({self.n_folds} folds), more than {MAX_BYTES / 2**30:g};"
                " an iterative solver such as newton-l2 needs no such matrix"
            )
            raise ValueError(msg)
        return n_features

    def _fit_width(self, X: Any) -> Any:
        """Return the block, after widening the sums to its number of columns if need be."""
        width = X.shape[1]
        if width > self.n_features:
            if self._is_fixed:
                raise ValueError(_beyond(width, self.n_features))
            if self.n_samples and not sp.issparse(X):
                msg = f"a block has {width} columns, those before it had {self.n_features}"
                raise ValueError(msg)
            self._widen(self._affordable(width))
        elif width < self.n_features:
            msg = f"a block has {width} columns instead of {self.n_features}"
            raise ValueError(msg)
        return X

    def _widen(self, n_features: int) -> None:
        if n_features > self.n_features:
            self.S, self.q, self.shift = _widened(self.S, self.q, self.shift, n_features)


def gather_statistics(
    blocks: Iterable[Any], n_folds: int = 1, *, seed: int = 0, n_features: int | None = None
) -> Statistics:
    """Return the statistics of all blocks, (X, y) or (X, y, folds), in one pass.

    `seed` is of the folds, where the blocks bring none: see :func:`folds_of_rows`. ValueError as of
    :meth:`Statistics.update`, with the row at which the block begins; or if there are no rows.
    """
    gathered = Statistics(n_folds, n_features)
    for start, X, y, folds in numbered(blocks, n_folds, seed):
        try:
            gathered.update(X, y, folds)
        except ValueError as error:
            msg = f"rows from {start + 1:,} on: {error}"
            raise ValueError(msg) from error
    if not gathered.n_samples:
        msg = "there are no rows"
        raise ValueError(msg)
    return gathered


def numbered(
    blocks: Iterable[Any], n_folds: int, seed: int
) -> Iterator[tuple[int, Any, Any, np.ndarray]]:
    """Yield each block as the number of its first row (from 0), its X, its y and its folds."""
    start = 0
    for X, y, *given in blocks:
        folds = given[0] if given else folds_of_rows(start, np.size(y), n_folds, seed)
        yield start, X, y, folds
        start += np.size(y)


def folds_of_rows(start: int, n_rows: int, n_folds: int, seed: int = 0) -> np.ndarray:
    """Return the folds of the rows numbered from `start` on, int32 of shape (n_rows,).

    A row's fold is drawn by its number and the seed: it depends neither on the blocks nor on the
    labels.
    """
    if n_folds == 1:
        return np.zeros(n_rows, dtype=np.int32)
    rows = np.arange(start, start + n_rows, dtype=np.uint64)
    # The seed is mixed first, so that seeds 0 and 1 give unrelated draws.
    drawn = mixed(mixed(np.full(n_rows, seed, dtype=np.uint64)) ^ rows)
    return (drawn % np.uint64(n_folds)).astype(np.int32)


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Return a 64-bit draw for each uint64 number: SplitMix64 (Steele, Lea and Flood 2014)."""
    odd, first, second = (
        np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
    )
    bits = numbers + odd
    bits = (bits ^ (bits >> np.uint64(30))) * first
    bits = (bits ^ (bits >> np.uint64(27))) * second
    return bits ^ (bits >> np.uint64(31))


def _signed(labels: tuple[Any, ...], y: np.ndarray) -> tuple[tuple[Any, ...], np.ndarray]:
    """Return all labels, and signs (+1: first label); ValueError for a third label, or NaN."""
    first = labels[0] if labels else y[0]
    is_first = y == first
    rest = y[~is_first]
    seen = (*labels[:1], *labels[1:]) or (first,)
    if len(rest) and len(seen) < 2:
        seen = (*seen, rest[0])
    wrong = rest[rest != seen[1]] if len(rest) else rest
    if len(wrong) or first != first:  # NaN equals nothing
        third = wrong[0] if len(wrong) else first
        shown = ", ".join(str(label) for label in seen if label == label)
        msg = f"the label {third} is a third beside {shown}; the problem has two classes"
        raise ValueError(msg)
    return seen, np.where(is_first, 1.0, -1.0)


def _far_means(X: Any) -> np.ndarray:
    """Return the means of the features that are shifted, zeros for others."""
    # A feature with some zeros is never shifted: its spread is about as large as its mean.
    rows = X[:SHIFT_ROWS]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        mean = np.asarray(rows.sum(axis=0)) / rows.shape[0]
        variance = np.asarray(squares.sum(axis=0)) / rows.shape[0] - mean * mean
        return np.where(variance * SHIFT_MIN_DEVIATIONS**2 < mean * mean, mean, 0.0)


def _minus(X: Any, shift: np.ndarray) -> Any:
    """Return X with the shift subtracted from every row; a CSR matrix stays sparse elsewhere."""
    shifted = np.flatnonzero(shift)
    if not len(shifted):
        return X
    if not sp.issparse(X):
        return X - shift
    n = X.shape[0]
    offsets = sp.csr_array(
        (
            np.tile(shift[shifted], n),
            np.tile(shifted.astype(np.int32), n),
            np.arange(n + 1, dtype=np.int32) * np.int32(len(shifted)),
        ),
        shape=X.shape,
    )
    return canonical_csr(X - offsets)


def _why_not_finite(X: Any) -> str:
    values = X.data if sp.issparse(X) else X
    if not np.all(np.isfinite(values)):
        return "there are NaN or infinite values"
    return "there are values whose squares overflow float64 when they are summed"


def _beyond(width: int, n_features: int) -> str:
    return f"there is a feature {width:,}, beyond the last, {n_features:,}"


def _widened(
    S: np.ndarray, q: np.ndarray, shift: np.ndarray, n_features: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums and shift with more features, which are zero in all rows so far."""
    d = len(shift)
    if n_features == d:
        return S, q, shift
    place = np.append(np.arange(d), n_features)
    wide_S = np.zeros((len(S), n_features + 1, n_features + 1))
    wide_S[:, place[:, None], place] = S
    wide_q = np.zeros((len(S), n_features + 1))
    wide_q[:, place] = q
    return wide_S, wide_q, np.append(shift, np.zeros(n_features - d))


def _moved(S: np.ndarray, q: np.ndarray, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums about another shift; `by` is the old shift less the new."""
    if not by.any():
        return S, q
    n, sums = S[:, -1:, -1], S[:, :-1, -1]
    moved_S, moved_q = S.copy(), q.copy()
    cross = sums[:, :, None] * by
    moved_S[:, :-1, :-1] += np.triu(
        cross + cross.transpose(0, 2, 1) + n[:, :, None] * np.outer(by, by)
    )
    moved_S[:, :-1, -1] += n * by
    moved_q[:, :-1] += q[:, -1:] * by
    return moved_S, moved_q
