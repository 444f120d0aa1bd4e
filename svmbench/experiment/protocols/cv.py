"""Protocol ``cv``: plain k-fold cross-validation, whose best mean is the score."""

from __future__ import annotations

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, ITSELF, UNSCALED
from svmbench.experiment.protocols.outcomes import (
    FITTED,
    fit,
    over_folds,
    sizes,
    test,
)
from svmbench.experiment.protocols.search import SEARCHED, SplitRows, search
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.experiment.settings.values import Folds


class CV(TrainingBlock):
    """Plain cross-validation: one cell a solver.

    Attributes
    ----------
    folds : int
    """

    folds: Folds = 5


@protocol(
    "cv",
    settings=CV,
    caption="plain cross-validation",
    # The folds are the outer folds, so "outer-fold" and "every-fold" are the same.
    scalings={
        "outer-fold": ITSELF,
        "all-rows": ALL_ROWS,
        "every-fold": ITSELF,
        "none": UNSCALED,
    },
    splits=lambda block: (block.folds,),
    tasks=("binary", "multiclass", "one-class"),
    reads=("arrays", "blocks"),
    metrics=(*FITTED, "n_test", *SEARCHED),
)
def cv(task: Task) -> Outcome:
    """Choose a grid point by plain k-fold CV, fit it again on the folds, and report their means.

    This is what several papers print. It is optimistic: the folds that choose the parameters are
    the folds that score them.
    """
    spec, inputs = task.spec, inputs_of(task)
    splits = folds.outer_splits(inputs.y, task.protocol_settings["folds"], task.seed("outer"))
    scaler = spec["scaler"] if spec["scaling"] in {"outer-fold", "every-fold"} else None
    rows = SplitRows(inputs.X, inputs.y, splits, scaler)
    best, search_metrics = search(task, rows)
    # In the search each fit ran once, and perhaps with other settings (`search` of a solver).
    timings: list[measure.Timing] = []
    test_scores = []
    for train, validation in splits:
        X, X_test = rows.arrays(task, train, validation)
        y = inputs.y[task.training_rows(train, inputs.y)]
        estimator, timing = fit(task, best, X, y)
        timings.append(timing)
        metrics, reasons, _ = test(task, estimator, X, y, X_test, inputs.y[validation])
        test_scores.append((metrics, reasons))
    outcome = over_folds(estimator, timings, best, test_scores)
    train, validation = splits[0]  # the other folds differ by a row at most
    n_train = len(task.training_rows(train, inputs.y))
    outcome["metrics"] |= search_metrics | sizes(inputs, n_train, len(validation))
    return outcome
