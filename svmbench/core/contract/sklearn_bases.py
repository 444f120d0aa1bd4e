"""scikit-learn's base classes, with types for type checkers.

scikit-learn has no type hints. A base class of an unknown type would keep a type checker from
checking the arguments of our constructors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
