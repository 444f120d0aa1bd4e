"""Protocols on rows that are read in blocks, in as few passes over the rows as possible.

A search along a parameter that the solver declares takes one pass to train for every value and
fold, and one pass to score all models. Folds and shares are drawn from the labels as on arrays, so
that they have the same rows. The time of a pass includes the reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds, outcomes
from svmbench.experiment.protocols.declare import variant
from svmbench.experiment.protocols.nested_cv import outer_split, whole_cpu_time
from svmbench.experiment.protocols.path import follow_path
from svmbench.experiment.protocols.row_blocks import BlockRows, open_rows
from svmbench.experiment.protocols.search import GridScores, shares_grid
from svmbench.experiment.protocols.task import Outcome, Task
from svmbench.schema.scores import contract as scores


@variant("cv", "blocks")
def cv_in_blocks(task: Task) -> Outcome:
    """Search the grid by plain k-fold cross-validation; then time the chosen point fold by fold."""
    rows, _ = open_rows(task.spec)
    splits = folds.outer_splits(rows.y, task.protocol_settings["folds"], task.seed("outer"))
    rows = rows.only(np.arange(len(rows.y)), _group_of(splits, len(rows.y)))
    best, search_metrics = _search(task, rows, len(splits))
    models, timings = [], []
    for train, _ in splits:
        estimator, timing = _fit(task, best, rows.only(train))
        models.append([estimator])
        timings.append(timing)
    decisions = rows.decisions(models)
    test_scores = [
        scores.compute_scores(
            task.spec["scores"], _evaluation(model, rows.labels(f), decisions[f][0])
        )
        for f, (model,) in enumerate(models)
    ]
    outcome = outcomes.over_folds(models[-1][0], timings, best, test_scores)
    outcome["metrics"] |= search_metrics | outcomes.sizes(None, *map(len, splits[0]))
    return outcome


@variant("holdout", "blocks")
def holdout_in_blocks(task: Task) -> Outcome:
    """Search on one validation split, fit training and validation rows, test once."""
    rows, kept, tested = _parts(task)
    seed = task.seed("validation")
    train, _ = folds.holdout_split(rows.y[kept], task.protocol_settings["validation"], seed)
    group = np.zeros(len(kept), dtype=np.int32)
    group[train] = 1  # never validated
    best, search_metrics = _search(task, rows.only(kept, group), 1)
    return _fit_and_test(task, best, rows.only(kept), tested, search_metrics)


@variant("nested-cv", "blocks")
def nested_cv_in_blocks(task: Task) -> Outcome:
    """Search the grid by inner cross-validation on one outer fold's training rows, fit, test."""
    rows, _ = open_rows(task.spec)
    settings = task.protocol_settings
    train, test = outer_split(rows.y, settings["outer_folds"], settings["fold"], task.seed)
    seed = task.seed("inner", task.spec["fold"])
    inner = folds.outer_splits(rows.y[train], settings["inner_folds"], seed)
    searched = rows.only(train, _group_of(inner, len(train)))
    best, search_metrics = _search(task, searched, len(inner))
    outcome = _fit_and_test(task, best, rows.only(train), rows.only(test), search_metrics)
    outcome["metrics"]["nested_cv_cpu_time_s"] = whole_cpu_time(task, outcome["metrics"])
    return outcome


@variant("path", "blocks")
def path_in_blocks(task: Task) -> Outcome:
    """Train at every value of the grid in one pass over the rows, and score in another."""
    return follow_path(task, PathRows(task))


class PathRows:
    """The rows of a path: one pass for the models, one for the scores.

    Attributes
    ----------
    sizes : dict of str to float
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._rows, kept, self._tested = _parts(task)
        self._rows = self._rows.only(kept)
        self.sizes = outcomes.sizes(None, len(kept), self._tested.count(0))

    def steps(self, over: str, values: list[Any]) -> Iterator[outcomes.PathModel]:
        """Yield each model with its scores, which are known once all are trained."""
        task, y_test = self._task, self._tested.labels(0)
        models = list(_models(task, self._rows, [{over: value} for value in values], [None]))
        (of_models,) = self._tested.decisions([[model for model, *_ in models]])
        for (model, wall, cpu, work), decisions in zip(models, of_models, strict=True):
            test_scores = scores.compute_scores(
                task.spec["scores"], _evaluation(model, y_test, decisions)
            )
            yield outcomes.PathModel(model, wall, cpu, work, test_scores)


def _parts(task: Task) -> tuple[BlockRows, np.ndarray, BlockRows]:
    """Return the rows, the indices of the training rows, and the rows that are scored."""
    rows, tested = open_rows(task.spec)
    if tested is not None:
        return rows, np.arange(len(rows.y)), tested
    kept, test = folds.holdout_split(rows.y, task.protocol_settings["test"], task.seed("test"))
    return rows, kept, rows.only(test)


def _group_of(splits: list[tuple[np.ndarray, np.ndarray]], n_rows: int) -> np.ndarray:
    """Return the split in which each row is tested."""
    group = np.empty(n_rows, dtype=np.int32)
    for f, (_, test) in enumerate(splits):
        group[test] = f
    return group


def _search(task: Task, rows: BlockRows, n_splits: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Score every grid point on the first folds of some rows, as `search` does on arrays."""
    points = task.spec["grid"]
    if len(points) == 1:
        return points[0], {"search_time_s": 0.0, "search_cpu_time_s": 0.0}
    task = task.searching()
    start = measure.now()
    models = list(_models(task, rows, points, list(range(n_splits))))
    by_fold = [models[f * len(points) : (f + 1) * len(points)] for f in range(n_splits)]
    signs = scores.find(task.spec["select_by"]).needs == ("predict",)
    decisions = rows.decisions([[model for model, *_ in fold] for fold in by_fold], signs=signs)
    grid_scores = GridScores(task, n_splits)
    for f, fold in enumerate(by_fold):
        y = rows.labels(f)
        for p, (model, cost, _, _) in enumerate(fold):
            grid_scores.enter(p, f, _evaluation(model, y, decisions[f][p]), {"train_time_s": cost})
    wall, cpu = measure.since(start)
    return grid_scores.best(), {
        "search_time_s": wall,
        "search_cpu_time_s": cpu,
        "unconverged_fits": grid_scores.unfinished,
        "gap_stopped_fits": grid_scores.by_gap,
    }


def _models(
    task: Task, rows: BlockRows, points: list[dict[str, Any]], leaving_out: list[Any]
) -> Iterator[tuple[Any, float, float, dict[str, int]]]:
    """Yield the model of each point, fold after fold; wall and CPU seconds, and counters.

    Parameters
    ----------
    task : Task
    rows : BlockRows
    points : list of dict
        Parameters.
    leaving_out : list of int or None
        The folds that are left out in turn, 0, 1 …; ``[None]`` for none.
    """
    if not shares_grid(task):
        for fold in leaving_out:
            part = rows if fold is None else rows.outside(fold)
            for params in points:
                model, timing = _fit(task, params, part)
                yield model, timing.wall_s, timing.cpu_s, dict(model.counters_)
        return
    (over,) = points[0]
    n_folds = 1 if leaving_out == [None] else int(rows.group.max()) + 1
    path = task.build().path_blocks(
        rows, [point[over] for point in points], n_folds=n_folds, n_features=rows.n_features
    )
    path = islice(path, len(points) * len(leaving_out))
    while True:
        with measure.quiet():
            start = measure.now()
            point = next(path, None)
            _, cpu = measure.since(start)
        if point is None:
            return
        counters = {name: int(count) for name, count in point.statistics.items()}
        yield point.solution, point.own_cost_s, cpu, counters


def _fit(task: Task, params: dict[str, Any], rows: BlockRows) -> tuple[Any, measure.Timing]:
    """Fit once, in a pass over the rows; return the solver with its times."""
    estimator, timing = task.build(**params), measure.Timing()
    with measure.quiet():
        before = measure.reset_peak()
        start = measure.now()
        estimator.fit_blocks(rows, n_features=rows.n_features)
        wall, cpu = measure.since(start)
        timing.peak_memory = measure.peak_since(before)
    timing.wall.append(wall)
    timing.cpu.append(cpu)
    return estimator, timing


def _fit_and_test(
    task: Task,
    params: dict[str, Any],
    rows: BlockRows,
    tested: BlockRows,
    search_metrics: dict[str, float],
) -> Outcome:
    """Fit with the chosen parameters, and score in one pass over the rows that are tested."""
    estimator, timing = _fit(task, params, rows)
    outcome = outcomes.outcome_of(estimator, [timing], params)
    start = measure.now()
    ((decisions,),) = tested.decisions([[estimator]])
    wall, cpu = measure.since(start)
    evaluation = _evaluation(estimator, tested.labels(0), decisions)
    metrics, outcome["undefined"] = scores.compute_scores(task.spec["scores"], evaluation)
    outcome["metrics"] |= metrics | {"predict_time_s": wall, "predict_cpu_time_s": cpu}
    outcome["metrics"] |= search_metrics | outcomes.sizes(None, rows.count(0), tested.count(0))
    return outcome


def _evaluation(model: Any, y: np.ndarray, decisions: np.ndarray) -> scores.Evaluation:
    """Return a model's stored predictions of rows that are no longer in memory."""
    return scores.Evaluation(model, None, y).set_decisions(decisions)
