"""scikit-learn's base classes, with types for type checkers, and with the version in pickles.

scikit-learn has no type hints. A base class of an unknown type would keep a type checker from
checking the arguments of our constructors.
"""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import InconsistentVersionWarning

import svmbench

if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np

    class BaseEstimator:
        """Parameters, state and tags of an estimator."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """A classifier's score."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the accuracy."""

        def __sklearn_tags__(self) -> Any: ...

    class OutlierMixin:
        """A detector's predictions of its training samples."""

        def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> np.ndarray:
            """Fit, and predict the training samples."""

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "OutlierMixin"]


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
