"""Fast tests for the kind of labels: two classes, several, or anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target


def are_several(y: Any) -> bool:
    """Return True if labels have more than two classes; False for invalid labels."""
    if y is None or are_two_numbers(y):
        return False
    if are_plain(y):
        return len(np.unique(y)) > 2
    return bool(type_of_target(y) == "multiclass")


def are_plain(y: Any) -> bool:
    """Return True if labels are an array of integers or strings, or of two whole numbers.

    For these usual cases scikit-learn's full check takes longer than the fit of a small problem.
    """
    return is_row_of(y, "biuU") or are_two_numbers(y)


def are_two_numbers(y: Any) -> bool:
    """Return True if labels are an array of at most two whole numbers."""
    if not is_row_of(y, "biuf"):
        return False
    first, last = y.min(), y.max()
    whole = float(first).is_integer() and float(last).is_integer()
    return whole and bool(np.all((y == first) | (y == last)))


def is_row_of(y: Any, kinds: str) -> bool:
    """Return True if labels are a one-dimensional array (in memory or mapped) of these kinds."""
    is_array = isinstance(y, np.ndarray) and not isinstance(y, np.ma.MaskedArray)
    return is_array and y.ndim == 1 and len(y) > 0 and y.dtype.kind in kinds
