"""A solver without an objective: it is declared as such, and compared by scores and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pytest
from small_problems import make_problem

from svmbench.baselines import catalogue
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearSolution
from svmbench.core.contract.registry import REGISTRY, declare
from svmbench.core.contract.without_objective import LinearClassifierWithoutObjective
from svmbench.studies.listing import card_of


@dataclass(eq=False, repr=False)
class Rule(LinearClassifierWithoutObjective):
    """The difference of the classes' means."""

    _: KW_ONLY
    fit_intercept: bool = False
    intercept_scaling: float = 1.0

    def train(self, data: TrainingData) -> Self:
        """Take the difference."""
        w = data.X[data.y > 0].mean(axis=0) - data.X[data.y < 0].mean(axis=0)
        return self._store(LinearSolution(np.asarray(w), 0.0, 1, "closed form", {}))


@pytest.fixture
def rule() -> Iterator[Any]:
    declared = declare(name="test-rule", problem=None, summary="a rule", reference="none")(Rule)
    catalogue._registry.cache_clear()
    yield declared
    del REGISTRY["test-rule"]
    catalogue._registry.cache_clear()


def test_it_needs_no_c_and_has_no_objective(rule: Any) -> None:
    X, y = make_problem(n=60, d=4)
    model = rule().fit(X, y)
    assert model.declaration.problem == ""
    assert model.objective_id is None
    assert not hasattr(model, "objective_")
    assert not hasattr(model, "C")
    assert model.score(X, y) > 0.6
    assert "no objective" in card_of("test-rule")["minimises"]


def test_several_classes_are_fitted_one_against_the_rest(rule: Any) -> None:
    X, _ = make_problem(n=60, d=4)
    y = np.arange(60) % 3
    model = rule().fit(X, y)
    assert model.coef_.shape == (3, 4)
    alone = rule().fit(X, np.where(y == 1, 1, -1))
    np.testing.assert_allclose(model.coef_[1], alone.coef_[0])


def test_it_promises_nothing() -> None:
    with pytest.raises(ValueError, match="promises something"):
        declare(
            name="test-rule", problem=None, summary="a rule", reference="none", promise="rounding"
        )(Rule)
    assert "test-rule" not in REGISTRY
