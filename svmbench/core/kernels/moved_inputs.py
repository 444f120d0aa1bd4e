"""Inputs far from zero, moved for solvers that take kernel values one by one from products."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.kernels.kernels import KernelFunction, squared_lengths
from svmbench.core.numeric.arrays import canonical_csr, central_row


def moved(X: Any, function: KernelFunction) -> Any:
    """Return inputs that products tell the RBF distances of, where those of `X` lose digits.

    They are moved by a sample, which changes no distance; sparse ones along the features that every
    sample has an entry of. Others come back as they are.
    """
    lengths = squared_lengths(X)
    if function.name != "rbf" or not function.cancels(lengths, lengths):
        return X
    return _move(X)[0]


def moved_if_far(X: Any) -> tuple[Any, np.ndarray]:
    """Return inputs, moved if that makes them shorter by a factor of 4, and the move or zeros.

    The linear kernel then keeps the digits of differences. Moving changes no dual value where the
    signed multipliers sum to 0.
    """
    apart, place = _move(X)
    is_far = np.max(squared_lengths(X)) > 16.0 * np.max(squared_lengths(apart))
    return (apart, place) if is_far else (X, np.zeros(X.shape[1]))


def _move(X: Any) -> tuple[Any, np.ndarray]:
    """Return inputs moved by a sample, and by what; sparse ones along their full features."""
    if not sp.issparse(X):
        place = central_row(X)
        return X - place, place
    X = canonical_csr(X).copy()
    is_full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    place = np.where(is_full, X[[0]].toarray()[0], 0.0)
    X.data -= place[X.indices]
    return X, place
