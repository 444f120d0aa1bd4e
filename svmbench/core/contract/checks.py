"""Checks around a fit: the kind of labels before it, and whether the model is of use after it.

The tests of labels are fast. The warnings are for fits that converged, but whose model or objective
is useless.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
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


#: A promise is loose if the duality gap is more than this many times the dual value. For csvc at
#: its default tolerance the gap is at most 11 times the dual on a9a, ijcnn1 and digits (pixels
#: from 0 to 16) for C from 1 to 100 and a linear or an RBF kernel, and hundreds to thousands of
#: times for C = 1e8.
LOOSE_GAP = 20.0

#: The warning names a tolerance for a gap of about this share of the dual value.
GOOD_GAP = 0.1


def warn_if_useless(model: Any, data: Any) -> None:
    """Warn if a converged model is useless: no margin, or an objective far from the optimum.

    A model's method `what_is_useless`, if it has one, returns the predicate of a warning, or "".
    """
    ask = getattr(model, "what_is_useless", None)
    what = ask(data) if ask is not None else ""
    if what:
        warnings.warn(f"{model.declaration.name} {what}", ConvergenceWarning, stacklevel=5)
    elif hasattr(model, "lower_bound"):
        warn_if_loose(model, model.lower_bound())


def warn_if_loose(model: Any, dual: float) -> None:
    """Warn if the tolerance of a converged solver allows an objective far from the optimum.

    `dual` is a lower bound of the optimum, or -inf. A tolerance in units of the margin, or relative
    to C n, may be large beside the optimum.
    """
    declared = model.declaration
    gap = model.objective_ - dual
    is_loose = math.isfinite(dual) and gap > LOOSE_GAP * abs(dual)
    if not (is_loose and declared.promise and model.stop_reason_ == "converged"):
        return
    tolerance = float(getattr(model, declared.promised_by))
    # The gap is proportional to the tolerance.
    better = GOOD_GAP * tolerance * max(dual, 0.0) / gap
    advice = f"; set {declared.promised_by}={better:.0e}" if better > 0.0 else ""
    warnings.warn(
        f"{declared.name} converged within {declared.promised_by}={tolerance:g}, which allows for"
        f" an objective far from the optimum: here {model.objective_:.2g}, where the optimum is at"
        f" least {dual:.2g}{advice}",
        ConvergenceWarning,
        stacklevel=6,
    )
