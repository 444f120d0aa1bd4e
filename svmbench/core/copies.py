"""Copies of estimators, without what scikit-learn's `clone` takes to make them."""

from __future__ import annotations

from copy import copy
from typing import Any


def unfitted(estimator: Any) -> Any:
    """Return an estimator of the same class and parameters that was not fitted.

    As `clone`, but that parameters are not copied, nor asked for by name: looking at signatures
    takes longer than the fit of a small problem.
    """
    model = copy(estimator)
    for name in list(vars(model)):
        if name.endswith("_") or name.startswith("_"):
            delattr(model, name)
    return model
