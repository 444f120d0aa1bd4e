"""Linear solvers that minimise no objective, such as the perceptron.

Such a solver is declared with ``problem=None``. It has no C, and the suite compares it by scores
and times, never by objective.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifier


class LinearClassifierWithoutObjective(LinearClassifier):
    """A two-class solver with a normal vector and an offset that minimises no objective.

    Subclasses have the parameters `fit_intercept` and `intercept_scaling`, as those of
    `LinearClassifier`, and no `C`. More than two classes are fitted one against the rest.
    """

    needs_parameters: ClassVar[tuple[str, ...]] = ("fit_intercept",)

    @property
    def objective_id(self) -> None:  # type: ignore[override]
        """None: its solutions have no objective that could be compared."""
        return

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Do nothing, because the solver minimises no objective."""
        return self

    def _fit_several(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        signs = (np.where(y == label, 1, -1) for label in self.classes_)
        return self._join([self._alone().fit(X, labels) for labels in signs])
