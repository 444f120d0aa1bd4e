"""Protocol ``path``: one parameter along its grid; a solver may start from its last solution.

Each point is a result of its own, with the dimension ``solver.<parameter>`` in tables and plots.
Points are streamed as they are found. An interrupted path continues with the first missing point,
from a cold start. With ``plane: true``, the decision values of the last model in the plane are kept
for a plot of kind ``decision``; such a path starts again from its first point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds, outcomes, plane
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.task import (
    SCALINGS,
    Outcome,
    Share,
    Task,
    inputs_of,
    testing_part,
)
from svmbench.experiment.settings.blocks import TrainingBlock


class Path(TrainingBlock):
    """A path along one parameter: one cell a solver, whose grid has that parameter alone.

    Attributes
    ----------
    test : float
        Share of the rows that score; not used where the set has a test part.
    plane : bool
        True to keep the last model's decision values on the plane for a plot of kind ``decision``;
        the data must have two features.
    """

    test: Share = 0.2
    plane: bool = False


@protocol(
    "path",
    settings=Path,
    caption="a path of one parameter",
    scalings=SCALINGS,
    grid="one parameter",
    tasks=("binary", "multiclass", "one-class"),
    reads=("arrays", "blocks"),
    metrics=(
        *("train_time_s", "cpu_time_s", "objective", "n_points"),
        *("n_train", "n_test", "scaling_time_s"),
    ),
)
def path(task: Task) -> Outcome:
    """Train at every value of the grid in turn; score each model on rows that it has not seen."""
    return follow_path(task, _ArrayRows(task))


def follow_path(task: Task, rows: Any) -> Outcome:
    """Train and score along the path on rows in memory, or in blocks."""
    (over,) = task.spec["grid"][0]
    values = [point[over] for point in task.spec["grid"]]
    names = [f"{over}={value}" for value in values]
    # All points after a missing one are run again, since the state before it was not kept.
    n_done = next((i for i, name in enumerate(names) if name not in task.done), len(names))
    if task.protocol_settings["plane"]:
        n_done = 0
    totals = dict.fromkeys(("train_time_s", "cpu_time_s"), 0.0)
    for name in names[:n_done]:
        for total in totals:
            totals[total] += task.done[name]["metrics"][total]
    steps = rows.steps(over, values[n_done:]) if n_done < len(values) else iter(())
    model: Any = None
    for name, value, (model, wall, cpu, counters, test_scores) in zip(
        names[n_done:], values[n_done:], steps, strict=True
    ):
        metrics, undefined = test_scores
        if getattr(model, "objective_", None) is not None:
            metrics["objective"] = float(model.objective_)
        metrics |= {"train_time_s": wall, "cpu_time_s": cpu}
        for total in totals:
            totals[total] += metrics[total]
        task.emit(
            name,
            {
                "params": {over: value},
                "dimensions": {f"solver.{over}": value},
                "metrics": metrics,
                "counters": counters,
                "undefined": undefined,
            },
        )
    if task.protocol_settings["plane"]:
        task.save_arrays(**plane.plane_arrays(model, rows.inputs.whole(), rows.inputs.y, rows.kept))
    return {
        "metrics": {**totals, "n_points": len(values), **rows.sizes},
        "spread": {},
        "counters": {},
        "params": {},
    }


class _ArrayRows:
    """The rows of a path, in memory."""

    def __init__(self, task: Task) -> None:
        self.task, self.inputs = task, inputs_of(task)
        kept, self.X_test, self.y_test = testing_part(task, self.inputs)
        self.kept = task.training_rows(kept, self.inputs.y)
        self.X, self.y = folds.take(self.inputs.X, self.kept), self.inputs.y[self.kept]
        self.sizes = outcomes.sizes(self.inputs, len(self.y), len(self.y_test))

    def steps(self, over: str, values: list[Any]) -> Iterator[outcomes.PathModel]:
        """Yield each model with its scores."""
        for model, wall, cpu, counters in _solutions(self.task, self.X, self.y, over, values):
            metrics, undefined, _ = outcomes.test(
                self.task, model, self.X, self.y, self.X_test, self.y_test
            )
            yield outcomes.PathModel(model, wall, cpu, counters, (metrics, undefined))


def _solutions(
    task: Task, X: Any, y: np.ndarray, over: str, values: list[Any]
) -> Iterator[tuple[Any, float, float, dict[str, int]]]:
    """Yield each model, its objective evaluated, with its wall seconds, CPU seconds and counters.

    The points of a solver with its own path carry state; for other solvers this is a loop of fits.
    """
    estimator = task.build(**{over: values[0]})
    if task.spec["task"] != "multiclass" and hasattr(estimator, "path"):
        data = estimator.prepare(X, task.labels(y))
        points = estimator.path(data, None, over, values)
        while True:
            with measure.quiet():
                start = measure.now()
                point = next(points, None)
                _, cpu = measure.since(start)
            if point is None:
                return
            point.solution.evaluate_objective(data)
            counters = {name: int(count) for name, count in point.statistics.items()}
            yield point.solution, point.own_cost_s, cpu, counters
    for value in values:
        model = task.build(**{over: value})
        data, timing = measure.fit_once(model, X, task.labels(y))
        model.evaluate_objective(data)
        yield model, timing.wall_s, timing.cpu_s, dict(model.counters_)
