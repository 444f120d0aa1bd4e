"""Warnings of searches that ended as they should, with a model or an objective of no use."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

#: The stop reason of a search for a margin where the optimum is w = 0.
NO_MARGIN = "no margin"


def warn_if_useless(model: Any, data: Any) -> None:
    """Warn where a trained and evaluated solver has something to say against its own solution.

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
