"""Protocol ``fit``: training alone, for tables and plots of its time."""

from __future__ import annotations

import numpy as np

from svmbench.experiment.protocols import folds, outcomes, plane
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.schema.scores import contract as scores

#: Further metrics of a fit on rows in blocks.
READING = (
    "file_mb", "read_cpu_time_s", "arrays_cpu_time_s", "read_rate_pct", "arrays_rate_pct",
)  # fmt: skip


class Fit(TrainingBlock):
    """Training once on all rows: one cell a solver. It searches no grid.

    Attributes
    ----------
    trace : bool
        True to train once more after the measurement and record the progress (CPU seconds, work,
        objective), for solvers that support it.
    plane : bool
        True to keep the model's decision values on the plane for a plot of kind ``decision``; the
        data must have two features.
    """

    trace: bool = False
    plane: bool = False


@protocol(
    "fit",
    settings=Fit,
    caption="training on all rows",
    # All rows are training rows, so that the first two scalings are the same.
    scalings={"outer-fold": ALL_ROWS, "all-rows": ALL_ROWS, "none": UNSCALED},
    grid="none",
    tasks=("binary", "multiclass", "one-class"),
    reads=("arrays", "blocks", "written"),
    metrics=(*outcomes.FITTED, *READING),
)
def fit_on_all_rows(task: Task) -> Outcome:
    """Train once on all rows.

    Scores on all rows are recorded as ``train_accuracy_pct`` and so on. If the data set has a test
    part, its scores are recorded, too, without the prefix.
    """
    inputs = inputs_of(task)
    X, y = inputs.whole(), inputs.y
    fitted = task.training_rows(np.arange(len(y)), y)
    training = (X if len(fitted) == len(y) else folds.take(X, fitted)), y[fitted]
    estimator, timing = outcomes.fit(task, {}, *training)
    outcome = outcomes.outcome_of(estimator, [timing], {})
    evaluation = scores.Evaluation(estimator, X, y, (training[0], task.labels(training[1])))
    metrics, undefined = scores.compute_scores(task.spec["scores"], evaluation)
    outcome["metrics"] |= {f"train_{name}": value for name, value in metrics.items()}
    outcome["undefined"] = {f"train_{name}": reason for name, reason in undefined.items()}
    if inputs.X_test is not None:
        X_test = folds.take(inputs.X_test, np.arange(inputs.X_test.shape[0]))
        metrics, undefined, _ = outcomes.test(task, estimator, *training, X_test, inputs.y_test)
        outcome["metrics"] |= metrics
        outcome["undefined"] |= undefined
    if task.protocol_settings["trace"] and "trace" in estimator.get_params():
        followed = task.build(trace=True)
        followed.train(followed.prepare(training[0], task.labels(training[1])))
        outcome["trace"] = [[float(s), int(work), float(v)] for s, work, v in followed.trace_]
    if task.protocol_settings["plane"]:
        task.save_arrays(**plane.plane_arrays(estimator, X, y, fitted))
    outcome["metrics"] |= {"n_train": len(fitted), "scaling_time_s": inputs.scaling_s}
    return outcome
