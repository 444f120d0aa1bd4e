"""The search of a grid on splits of some rows, which several protocols share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from svmbench.core.contract.base import BY_GAP, UNFINISHED, Splits
from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.task import Task
from svmbench.schema.scores import contract as scores


@dataclass
class SplitRows:
    """The rows that a search runs on.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    splits : list of (ndarray, ndarray)
        Training and validation rows, as positions.
    scaler : str or None
        The scaler that is fitted anew on the training rows of each split; None if X stays as it is.
    """

    X: Any
    y: np.ndarray
    splits: Splits
    scaler: str | None = None

    def arrays(self, task: Task, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Return training and validation inputs of one split, scaled if there is a scaler."""
        train = task.training_rows(train, self.y)
        return scaled_apart(self.X, train, test, self.scaler)


def scaled_apart(
    X: Any, train: np.ndarray, test: np.ndarray, scaler: str | None
) -> tuple[Any, Any]:
    """Return training and test inputs, scaled by a scaler fitted on the training rows, if any."""
    if scaler is None:
        return folds.take(X, train), folds.take(X, test)
    both = folds.scale(folds.take(X, np.r_[train, test]), scaler, np.arange(len(train)))
    return both[: len(train)], both[len(train) :]


#: Metrics of a search; the last four only with shared kernel matrices.
SEARCHED = (
    "search_time_s", "search_cpu_time_s", "unconverged_fits", "gap_stopped_fits",
    "search_wall_time_s", "search_fits",
    "search_kernel_evaluations", "distances_cpu_time_s",
)  # fmt: skip


def search(task: Task, rows: SplitRows) -> tuple[dict[str, Any], dict[str, float]]:
    """Score every grid point on the splits; return the best point and the costs of the search.

    The first of equally good points wins, so grids list the smallest C first.
    """
    points = task.spec["grid"]
    if len(points) == 1:
        return points[0], {"search_time_s": 0.0, "search_cpu_time_s": 0.0}
    if shares_grid(task) and rows.scaler is None and task.spec["task"] == "binary":
        return _shared_search(task, rows)
    task = task.searching()
    metric = scores.find(task.spec["select_by"]).metric
    values = np.full((len(points), len(rows.splits)), np.nan)
    wall = cpu = 0.0
    unfinished = by_gap = 0
    for f, (train, test) in enumerate(rows.splits):
        missing = [p for p in range(len(points)) if f"{p}/{f}" not in task.done]
        arrays = rows.arrays(task, train, test) if missing else None
        train = task.training_rows(train, rows.y)
        for p, params in enumerate(points):
            point = task.done.get(f"{p}/{f}")
            if point is None:
                assert arrays is not None
                estimator = task.build(**params)
                y = task.labels(rows.y[train])
                _, timing = measure.fit_once(estimator, arrays[0], y)
                evaluation = scores.Evaluation(estimator, arrays[1], rows.y[test], (arrays[0], y))
                metrics, undefined = scores.compute_scores([task.spec["select_by"]], evaluation)
                point = {
                    "params": params,
                    **metrics,
                    "train_time_s": timing.wall_s,
                    "cpu_time_s": timing.cpu_s,
                    "stop_reason": str(estimator.stop_reason_),
                }
                if undefined:
                    point["undefined"] = undefined
                task.emit(f"{p}/{f}", point)
            values[p, f] = point.get(metric, np.nan)
            wall, cpu = wall + point["train_time_s"], cpu + point["cpu_time_s"]
            unfinished += point.get("stop_reason") in UNFINISHED
            by_gap += point.get("stop_reason") == BY_GAP
    return points[best_of(values, task.spec["select_by"])], {
        "search_time_s": wall,
        "search_cpu_time_s": cpu,
        "unconverged_fits": unfinished,
        "gap_stopped_fits": by_gap,
    }


def best_of(values: np.ndarray, score: str) -> int:
    """Return the point whose mean over the splits is best; the first among equals.

    Parameters
    ----------
    values : ndarray of shape (n_points, n_splits)
        NaN where the score has no value; such splits are left out of a point's mean.
    score : str

    Raises
    ------
    ValueError
        If the score has no value anywhere.
    """
    known = ~np.isnan(values)
    if not known.any():
        msg = f"the score {score!r} has no value on any split, so no grid point can be selected"
        raise ValueError(msg)
    sign = 1.0 if scores.find(score).better == "higher" else -1.0
    means = np.full(len(values), -np.inf)
    for p in np.flatnonzero(known.any(axis=1)):
        # Rounded, so that equal scores are equal whatever order they were summed in.
        means[p] = sign * np.round(values[p][known[p]].mean(), 9)
    return int(np.argmax(means))


def shares_grid(task: Task) -> bool:
    """Return True if the solver shares work along the grid's one parameter, over all folds."""
    from svmbench.baselines.catalogue import solver_class

    declared = solver_class(task.spec["name"]).declaration.paths
    names = {name for point in task.spec["grid"] for name in point}
    return len(names) == 1 and names <= set(declared)


def _shared_search(task: Task, rows: SplitRows) -> tuple[dict[str, Any], dict[str, float]]:
    """Search as `search` does, but train all folds and values by one call of the solver's path."""
    task, points = task.searching(), task.spec["grid"]
    needs_training = "training" in scores.find(task.spec["select_by"]).needs
    (over,) = points[0]
    estimator = task.build()
    data = estimator.prepare(rows.X, rows.y)
    # The times leave out `prepare`, like those of single fits. They include the work between two
    # solutions of a path, which the path itself doesn't time: a search needs it for the models.
    start_wall, start_cpu = time.perf_counter(), time.process_time()
    grid_scores = GridScores(task, len(rows.splits))
    path = estimator.path(data, None, over, [point[over] for point in points], rows.splits)
    for f, (train, test) in enumerate(rows.splits):
        solved = list(islice(path, len(points)))
        X_test = folds.take(rows.X, test)
        training = (rows.X[train], rows.y[train]) if needs_training else None
        decisions = scores.values_of_models([model for model, _, _ in solved], X_test)
        for p, (model, cost, _) in enumerate(solved):
            evaluation = scores.Evaluation(model, X_test, rows.y[test], training)
            evaluation.set_decisions(decisions[p])
            grid_scores.enter(p, f, evaluation, {"train_time_s": cost})
    return grid_scores.best(), {
        "search_time_s": time.perf_counter() - start_wall,
        "search_cpu_time_s": time.process_time() - start_cpu,
        "unconverged_fits": grid_scores.unfinished,
        "gap_stopped_fits": grid_scores.by_gap,
    }


class GridScores:
    """The scores of a grid's points on each split, as a search finds and streams them.

    Parameters
    ----------
    task : Task
    n_splits : int

    Attributes
    ----------
    unfinished, by_gap : int
        How many fits have not converged, and how many have ended at a duality gap.
    """

    def __init__(self, task: Task, n_splits: int) -> None:
        self._task = task
        self._values = np.full((len(task.spec["grid"]), n_splits), np.nan)
        self.unfinished = self.by_gap = 0

    def enter(self, p: int, f: int, evaluation: scores.Evaluation, costs: dict[str, float]) -> None:
        """Score a point's model on a split, and stream it unless an earlier run has.

        Parameters
        ----------
        p, f : int
            Numbers of the grid point and of the split.
        evaluation : Evaluation
        costs : dict of str to float
            Costs of the fit in seconds.
        """
        task, select_by = self._task, self._task.spec["select_by"]
        metrics, undefined = scores.compute_scores([select_by], evaluation)
        self._values[p, f] = metrics.get(scores.find(select_by).metric, np.nan)
        reason = str(evaluation.estimator.stop_reason_)
        self.unfinished += reason in UNFINISHED
        self.by_gap += reason == BY_GAP
        point = {"params": task.spec["grid"][p], **metrics, **costs, "stop_reason": reason}
        if undefined:
            point["undefined"] = undefined
        if f"{p}/{f}" not in task.done:
            task.emit(f"{p}/{f}", point)

    def best(self) -> dict[str, Any]:
        """Return the parameters of the best point."""
        return self._task.spec["grid"][best_of(self._values, self._task.spec["select_by"])]
