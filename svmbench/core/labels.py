"""What labels are, found out as fast as may be."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target


def are_several(y: Any) -> bool:
    """Return whether labels are of more than two classes; what is no label is none."""
    if y is None or are_two_numbers(y):
        return False
    if are_whole_numbers(y):
        return len(np.unique(y)) > 2
    return bool(type_of_target(y) == "multiclass")


def are_whole_numbers(y: Any) -> bool:
    """Return whether labels are an array of integers, or of two whole numbers: the usual cases.

    Finding out what else they may be takes longer than the fit of a small problem.
    """
    is_array = type(y) is np.ndarray and y.ndim == 1 and len(y) > 0
    return (is_array and y.dtype.kind in "biu") or are_two_numbers(y)


def are_two_numbers(y: Any) -> bool:
    """Return whether labels are an array of at most two whole numbers."""
    if not (type(y) is np.ndarray and y.ndim == 1 and len(y) and y.dtype.kind in "biuf"):
        return False
    first, last = y.min(), y.max()
    whole = float(first).is_integer() and float(last).is_integer()
    return whole and bool(np.all((y == first) | (y == last)))
