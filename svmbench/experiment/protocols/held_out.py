"""The rows that score a protocol with one test part: the data set's own, or a share held out."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED, Scaled
from svmbench.experiment.protocols.inputs import Inputs, inputs_of
from svmbench.experiment.protocols.task import Task
from svmbench.experiment.settings.cells import NodeSpec, own_settings

#: A share of the rows, neither none nor all of them.
Share = Annotated[float, Field(gt=0, lt=1)]


def kept_rows(spec: NodeSpec, y: np.ndarray) -> np.ndarray | None:
    """Return the rows that are not held out for the test; all where the set has a test part."""
    if spec["has_test_part"]:
        return None
    seed = folds.derive_seed(spec["seed"], spec["dataset"]["name"], "test")
    return folds.holdout_split(y, own_settings(spec)["test"], seed)[0]


#: The scalings of a protocol that trains on the kept rows.
SCALINGS = {
    "outer-fold": Scaled(rows=kept_rows, by=("test", "has_test_part")),
    "all-rows": ALL_ROWS,
    "none": UNSCALED,
}


def testing_part(task: Task, inputs: Inputs) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return the rows that are kept for training, and the inputs and labels of the test."""
    if inputs.X_test is not None and inputs.y_test is not None:
        X_test = folds.take(inputs.X_test, np.arange(len(inputs.y_test)))
        return np.arange(len(inputs.y)), X_test, inputs.y_test
    kept, test = folds.holdout_split(inputs.y, task.settings["test"], task.seed("test"))
    return kept, folds.take(inputs.X, test), inputs.y[test]


def training_and_test(task: Task) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return X and y of a cell's training rows, and of its test rows."""
    inputs = inputs_of(task)
    kept, X_test, y_test = testing_part(task, inputs)
    rows = task.training_rows(kept, inputs.y)
    return folds.take(inputs.X, rows), inputs.y[rows], X_test, np.asarray(y_test)
