"""Pickles of estimators that know by which version they were made."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

import svmbench
from svmbench.core.contract.sklearn_bases import BaseEstimator

#: Where the state of an estimator keeps the version of the package that it is of.
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
    """An estimator whose pickle says by which version of svmbench it was made."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _VERSION: svmbench.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.get(_VERSION)
        if version != svmbench.__version__:
            name = type(self).__name__
            warnings.warn(OtherVersionWarning(name, version), stacklevel=2)
            # What was no parameter then has its default, so that repr and get_params find it.
            parameters = inspect.signature(type(self)).parameters.values()
            given = {p.name: p.default for p in parameters if p.default is not p.empty}
            state = {**given, **state}
        super().__setstate__({k: v for k, v in state.items() if k != _VERSION})
