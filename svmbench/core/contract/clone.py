"""Estimators whose pickles name the version of svmbench that made them."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

import svmbench
from svmbench.core.contract.sklearn_bases import BaseEstimator

#: Key of the package's version in the state of an estimator.
_VERSION = "_svmbench_version"


class OtherVersionWarning(InconsistentVersionWarning):
    """An estimator was pickled by another version of svmbench.

    Parameters
    ----------
    estimator : str
        Name of its class.
    version : str or None
        The version that pickled it; None for one that did not say so.
    """

    def __init__(self, estimator: str, version: str | None) -> None:
        super().__init__(
            estimator_name=estimator,
            current_sklearn_version=svmbench.__version__,
            original_sklearn_version=str(version),
        )
        self.version = version

    def __str__(self) -> str:
        """Return the sentence."""
        by = f"svmbench {self.version}" if self.version else "an older version of svmbench"
        return (
            f"{self.estimator_name} was pickled by {by}, and this is svmbench "
            f"{svmbench.__version__}: its model may be read wrongly here; fit it anew"
        )


class Versioned(BaseEstimator):
    """An estimator whose pickle names the version of svmbench that made it."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _VERSION: svmbench.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.get(_VERSION)
        if version != svmbench.__version__:
            name = type(self).__name__
            warnings.warn(OtherVersionWarning(name, version), stacklevel=2)
            # Parameters that are new since get their defaults, so that repr and get_params work.
            parameters = inspect.signature(type(self)).parameters.values()
            given = {p.name: p.default for p in parameters if p.default is not p.empty}
            state = {**given, **state}
        super().__setstate__({k: v for k, v in state.items() if k != _VERSION})
