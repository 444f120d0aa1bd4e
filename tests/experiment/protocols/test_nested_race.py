"""Protocol ``nested-race``: the models of the chosen points are certified, fold by fold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from svmbench.experiment.protocols import folds, nested_race
from svmbench.experiment.protocols.nested_race import NestedRaceData, NestedResult
from svmbench.experiment.protocols.nested_race_on_kernels import prepare_on_kernels
from svmbench.experiment.protocols.task import Task

X, CODES = load_iris(return_X_y=True)
#: One point, so that all racers choose the same.
GRID = [{"C": 8.0, "gamma": 0.25}]


def problem(n_classes: int, scaler: str | None) -> NestedRaceData:
    """Return iris without its first class, or with all, in two outer folds."""
    rows = np.isin(CODES, [0, 1, 2][-n_classes:])
    _, codes = np.unique(CODES[rows], return_inverse=True)
    outer = folds.outer_splits(codes, 2, 0)
    inner = [folds.outer_splits(codes[train], 2, 1) for train, _ in outer]
    return NestedRaceData(X[rows], codes, outer, inner, scaler)


def searched(name: str, data: NestedRaceData, **params: Any) -> NestedResult:
    """Return one racer's nested cross-validation."""
    task = Task(spec={"seed": 0, "dataset": {"name": "x"}, "task": "multiclass"})
    settings: Any = {"name": name, "shown": name, "params": params, "grid": GRID}
    return prepare_on_kernels(task, settings, data)()


def halved(refitted: nested_race.Refitted) -> nested_race.Refitted:
    """Return the models of an outer fold with half of their coefficients."""

    def models(X: Any, codes: np.ndarray) -> list[tuple[Any, Any, np.ndarray]]:
        found = refitted(X, codes)
        for model, _, _ in found:
            expansion = model.expansion_
            model.expansion_ = replace(expansion, coefficients=0.5 * expansion.coefficients)
        return found

    return models


@pytest.mark.parametrize("scaler", [None, "standard"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_racer_that_claims_what_is_not_true_on_a_fold_is_marked(
    n_classes: int, scaler: str | None
) -> None:
    data = problem(n_classes, scaler)
    results = {
        "csvc": searched("csvc", data, tol=1e-5),
        "svc": searched("svc", data, tol=1e-5),
        "liar": searched("csvc", data, tol=1e-5),
    }
    assert results["csvc"].chosen == results["svc"].chosen
    liar = results["liar"].refitted
    liar[1] = halved(liar[1])
    metrics: dict[str, Any] = {}
    (note,) = nested_race._certify(results, data, metrics)
    assert note.startswith("liar says that it converged, which is not certified on 1 of 2 outer")
    for name in ("csvc", "svc"):
        assert metrics[f"certified_gap:{name}"] < 1e-4
        assert metrics[f"solved_1e-3_pct:{name}"] == metrics[f"claims_true_pct:{name}"] == 100.0
    # Both solved the same problems.
    ours, theirs = (metrics[f"certified_objective:{name}"] for name in ("csvc", "svc"))
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert metrics["certified_bound:csvc"] == pytest.approx(metrics["certified_bound:svc"])
    assert metrics["certified_gap:liar"] > 1e-2
    assert metrics["solved_1e-2_pct:liar"] == metrics["claims_true_pct:liar"] == 50.0
