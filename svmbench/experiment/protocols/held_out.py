"""The rows that score a protocol with one test part: the data set's own, or a share held out."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.inputs import Inputs
from svmbench.experiment.protocols.task import Task
from svmbench.experiment.settings.cells import NodeSpec, own_settings


def kept_rows(spec: NodeSpec, y: np.ndarray) -> np.ndarray | None:
    """Return the rows that are not held out for the test; all where the set has a test part."""
    if spec["has_test_part"]:
        return None
    seed = folds.derive_seed(spec["seed"], spec["dataset"]["name"], "test")
    return folds.holdout_split(y, own_settings(spec)["test"], seed)[0]


def testing_part(task: Task, inputs: Inputs) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return the rows that are kept for training, and the inputs and labels of the test."""
    if inputs.X_test is not None and inputs.y_test is not None:
        X_test = folds.take(inputs.X_test, np.arange(len(inputs.y_test)))
        return np.arange(len(inputs.y)), X_test, inputs.y_test
    kept, test = folds.holdout_split(inputs.y, task.settings["test"], task.seed("test"))
    return kept, folds.take(inputs.X, test), inputs.y[test]
