"""Protocol ``holdout``: one validation split chooses, a test part scores."""

from __future__ import annotations

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED, Scaled
from svmbench.experiment.protocols.outcomes import TESTED, fit_and_test, sizes
from svmbench.experiment.protocols.search import SEARCHED, SplitRows, search
from svmbench.experiment.protocols.task import (
    Outcome,
    Share,
    Task,
    inputs_of,
    kept_rows,
    testing_part,
)
from svmbench.experiment.settings.blocks import TrainingBlock


class Holdout(TrainingBlock):
    """Training, validation and test rows: one cell a solver.

    Attributes
    ----------
    validation, test : float
        Shares of the rows; `test` is not used where the set has a test part.
    """

    validation: Share = 0.2
    test: Share = 0.2


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
    reads=("arrays", "blocks"),
    metrics=(*TESTED, *SEARCHED),
)
def holdout(task: Task) -> Outcome:
    """Search on one validation split, refit on training + validation rows, test once.

    The test rows are the data set's own test part where it has one.
    """
    inputs = inputs_of(task)
    kept, X_test, y_test = testing_part(task, inputs)
    X, y = folds.take(inputs.X, kept), inputs.y[kept]
    splits = [folds.holdout_split(y, task.protocol_settings["validation"], task.seed("validation"))]
    best, search_metrics = search(task, SplitRows(X, y, splits))
    fitted = task.training_rows(np.arange(len(y)), y)
    outcome = fit_and_test(task, best, folds.take(X, fitted), y[fitted], X_test, y_test)
    outcome["metrics"] |= search_metrics | sizes(inputs, len(fitted), len(y_test))
    return outcome
