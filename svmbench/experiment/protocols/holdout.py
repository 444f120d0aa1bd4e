"""Protocol ``holdout``: one validation split chooses, a test part scores."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from svmbench.experiment import folds
from svmbench.experiment.blocks import TrainingBlock
from svmbench.experiment.cells import NodeSpec, own_settings
from svmbench.experiment.protocols.declare import ALL_ROWS, UNSCALED, Scaled, protocol
from svmbench.experiment.protocols.outcomes import TESTED, fit_and_test, sizes
from svmbench.experiment.protocols.search import SEARCHED, Ground, search
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of


class Holdout(TrainingBlock):
    """Training, validation and test rows: one cell a solver.

    Attributes
    ----------
    validation, test : float
        Shares of the rows; `test` is not used where the set has a test part.
    """

    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    test: Annotated[float, Field(gt=0, lt=1)] = 0.2


def kept_rows(spec: NodeSpec, y: np.ndarray) -> np.ndarray | None:
    """Return the rows that are not held out for the test; all where the set has a test part."""
    if spec["has_test_part"]:
        return None
    seed = folds.derive_seed(spec["seed"], spec["dataset"]["name"], "test")
    return folds.holdout_split(y, own_settings(spec)["test"], seed)[0]


@protocol(
    "holdout",
    settings=Holdout,
    caption="a validation split and a test part",
    scalings={
        "outer-fold": Scaled(rows=kept_rows, by=("validation", "test", "has_test_part")),
        "all-rows": ALL_ROWS,
        "none": UNSCALED,
    },
    tasks=("binary", "multiclass", "one-class"),
    metrics=(*TESTED, *SEARCHED),
)
def holdout(task: Task) -> Outcome:
    """Search on one validation split, refit on training + validation rows, test once.

    The test rows are the data set's own test part where it has one.
    """
    inputs = inputs_of(task)
    if inputs.X_test is not None and inputs.y_test is not None:
        kept = np.arange(len(inputs.y))
        X_test, y_test = folds.take(inputs.X_test, np.arange(len(inputs.y_test))), inputs.y_test
    else:
        kept, test = folds.holdout_split(inputs.y, task.settings["test"], task.seed("test"))
        X_test, y_test = folds.take(inputs.X, test), inputs.y[test]
    X, y = folds.take(inputs.X, kept), inputs.y[kept]
    splits = [folds.holdout_split(y, task.settings["validation"], task.seed("validation"))]
    best, found = search(task, Ground(X, y, splits))
    fitted = task.training_rows(np.arange(len(y)), y)
    outcome = fit_and_test(task, best, folds.take(X, fitted), y[fitted], X_test, y_test)
    outcome["metrics"] |= found | sizes(inputs, len(fitted), len(y_test))
    return outcome
