"""Warn of fits that converged as asked, but whose model or objective is of no use."""

from __future__ import annotations

import math
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

#: A promise is loose where the duality gap is above so many times the dual value. For csvc with its
#: default tolerance the gap is at most 11 times the dual value on a9a, ijcnn1 and digits (pixels
#: from 0 to 16) for C from 1 to 100 and a linear or an RBF kernel, and hundreds to thousands of
#: times for C = 1e8.
LOOSE_GAP = 20.0

#: The warning names a tolerance for a gap of about this share of the dual value.
GOOD_GAP = 0.1


def warn_if_useless(model: Any, data: Any) -> None:
    """Warn if a converged model is useless: no margin, or an objective far from the optimum.

    Parameters
    ----------
    model : Solver
        Whose `what_is_useless` returns the predicate of a sentence about prepared data, or "";
        without that method there is no such case.
    data : TrainingData
    """
    ask = getattr(model, "what_is_useless", None)
    what = ask(data) if ask is not None else ""
    if what:
        warnings.warn(f"{model.declaration.name} {what}", ConvergenceWarning, stacklevel=5)
    elif hasattr(model, "lower_bound"):
        warn_if_loose(model, model.lower_bound())


def warn_if_loose(model: Any, dual: float) -> None:
    """Warn where a solver keeps a promise that says little of its objective.

    A tolerance in units of the margin, or relative to C n, may be large beside the optimum.

    Parameters
    ----------
    model : Solver
        Trained, with its ``objective_``.
    dual : float
        A lower bound of the optimum; -inf where none is known.
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
