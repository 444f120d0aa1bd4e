"""The search of a grid on splits of some rows, which several protocols have in common."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from svmbench import scores
from svmbench.experiment import folds, measure
from svmbench.experiment.kernel_search import UNFINISHED
from svmbench.experiment.protocols.task import Task

Splits = list[tuple[np.ndarray, np.ndarray]]


@dataclass
class Ground:
    """The rows that a search runs on.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    splits : list of (ndarray, ndarray)
        Training and validation rows, as positions.
    scaler : str or None
        Where every split has a scaler of its own, which one; it sees the training rows alone.
    """

    X: Any
    y: np.ndarray
    splits: Splits
    scaler: str | None = None

    def arrays(self, task: Task, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Return training and validation inputs of one split, scaled if they are to be."""
        train = task.training_rows(train, self.y)
        return scaled_apart(self.X, train, test, self.scaler)


def scaled_apart(
    X: Any, train: np.ndarray, test: np.ndarray, scaler: str | None
) -> tuple[Any, Any]:
    """Return training and test inputs, scaled by what the training rows say, if at all."""
    if scaler is None:
        return folds.take(X, train), folds.take(X, test)
    both = folds.scale(folds.take(X, np.r_[train, test]), scaler, np.arange(len(train)))
    return both[: len(train)], both[len(train) :]


#: What a search reports; the last four where it shares kernel matrices.
SEARCHED = (
    "search_time_s", "search_cpu_time_s", "unconverged_fits", "search_wall_time_s", "search_fits",
    "search_kernel_evaluations", "distances_cpu_time_s",
)  # fmt: skip


def search(task: Task, ground: Ground) -> tuple[dict[str, Any], dict[str, float]]:
    """Score every grid point on the splits; return the best and what the search cost.

    The first of equally good points wins, so grids list the smallest C first.
    """
    points = task.spec["grid"]
    if len(points) == 1:
        return points[0], {"search_time_s": 0.0, "search_cpu_time_s": 0.0}
    if _shares(task, ground):
        return _shared_search(task, ground)
    metric = scores.find(task.spec["select_by"]).metric
    values = np.full((len(points), len(ground.splits)), np.nan)
    wall = cpu = 0.0
    unfinished = 0
    for f, (train, test) in enumerate(ground.splits):
        missing = [p for p in range(len(points)) if f"{p}/{f}" not in task.done]
        arrays = ground.arrays(task, train, test) if missing else None
        train = task.training_rows(train, ground.y)
        for p, params in enumerate(points):
            point = task.done.get(f"{p}/{f}")
            if point is None:
                assert arrays is not None
                estimator = task.build(**params)
                y = task.labels(ground.y[train])
                _, timing = measure.fit_once(estimator, arrays[0], y)
                exam = scores.Exam(estimator, arrays[1], ground.y[test], (arrays[0], y))
                found, undefined = scores.mark([task.spec["select_by"]], exam)
                point = {
                    "params": params,
                    **found,
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
    return points[best_of(values, task.spec["select_by"])], {
        "search_time_s": wall,
        "search_cpu_time_s": cpu,
        "unconverged_fits": unfinished,
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
        msg = f"the score {score!r}, which is to choose, has no value on any split of the search"
        raise ValueError(msg)
    sign = 1.0 if scores.find(score).better == "higher" else -1.0
    means = np.full(len(values), -np.inf)
    for p in np.flatnonzero(known.any(axis=1)):
        # Rounded, so that equal scores are equal whatever order they were summed in.
        means[p] = sign * np.round(values[p][known[p]].mean(), 9)
    return int(np.argmax(means))


def _shares(task: Task, ground: Ground) -> bool:
    """Return whether the solver shares work along the grid's one parameter, over all folds."""
    from svmbench.catalogue import solver_class

    declared = solver_class(task.spec["name"]).declaration.paths
    names = {name for point in task.spec["grid"] for name in point}
    return (
        len(names) == 1
        and names <= set(declared)
        and ground.scaler is None
        and task.spec["task"] == "binary"
    )


def _shared_search(task: Task, ground: Ground) -> tuple[dict[str, Any], dict[str, float]]:
    """Search as `search` does, by the solver's own path: every fold and value in one go."""
    points, select_by = task.spec["grid"], task.spec["select_by"]
    metric = scores.find(select_by).metric
    asks_training = "training" in scores.find(select_by).needs
    (over,) = points[0]
    cpu, estimator = time.process_time(), task.build()
    data, wall = estimator.prepare(ground.X, ground.y), time.perf_counter()
    values = np.full((len(points), len(ground.splits)), np.nan)
    unfinished = 0
    path = estimator.path(data, None, over, [point[over] for point in points], ground.splits)
    for f, (train, test) in enumerate(ground.splits):
        solved = list(islice(path, len(points)))
        X_test = folds.take(ground.X, test)
        own = (ground.X[train], ground.y[train]) if asks_training else None
        decisions = _decisions([model for model, _, _ in solved], X_test)
        for p, (model, cost, _) in enumerate(solved):
            exam = scores.Exam(model, X_test, ground.y[test], own)
            found, undefined = scores.mark([select_by], exam.told(decisions[p]))
            values[p, f] = found.get(metric, np.nan)
            reason = str(model.stop_reason_)
            unfinished += reason in UNFINISHED
            point = {"params": points[p], **found, "train_time_s": cost, "stop_reason": reason}
            if undefined:
                point["undefined"] = undefined
            if f"{p}/{f}" not in task.done:
                task.emit(f"{p}/{f}", point)
    return points[best_of(values, select_by)], {
        "search_time_s": time.perf_counter() - wall,
        "search_cpu_time_s": time.process_time() - cpu,
        "unconverged_fits": unfinished,
    }


def _decisions(models: list[Any], X: Any) -> np.ndarray:
    """Return the decision values (n_models, n_samples) of a fold's models.

    Those of linear models are one product.
    """
    if all(hasattr(model, "coef_") for model in models):
        W = np.vstack([model.coef_ for model in models])
        offsets = np.concatenate([model.intercept_ for model in models])
        return np.asarray((X @ W.T + offsets).T)
    return np.array([model.decision_function(X) for model in models])
