"""Measurements of fitted models, and their form in a record."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols.task import CellInputs, Outcome, Task
from svmbench.schema.scores import contract as scores

#: The metrics that `outcome_of` and `sizes` report of every fitted model; `test` adds its own.
FITTED = (
    "train_time_s", "cpu_time_s", "conversion_time_s", "peak_memory_mb", "objective",
    "dual_objective", "n_iter", "n_bound_sv", "n_nonbound_sv", "n_train", "scaling_time_s",
)  # fmt: skip
TESTED = (*FITTED, "n_test", "predict_time_s", "predict_cpu_time_s")


class PathModel(NamedTuple):
    """One model of a path.

    Attributes
    ----------
    model : estimator
        With its objective.
    wall, cpu : float
        Its costs in seconds.
    counters : dict of str to int
    test_scores : (dict, dict)
        Its scores on test rows, and the reasons of scores without a value.
    """

    model: Any
    wall: float
    cpu: float
    counters: dict[str, int]
    test_scores: tuple[dict[str, Any], dict[str, str]]


def fit_and_test(
    task: Task, params: dict[str, Any], X: Any, y: np.ndarray, X_test: Any, y_test: Any
) -> Outcome:
    """Fit with the chosen parameters, several times if short, and score on the test rows.

    Parameters
    ----------
    task : Task
    params : dict
    X, y : array
        Training rows with their labels.
    X_test, y_test : array
        Test rows.
    """
    estimator, timing = fit(task, params, X, y)
    outcome = outcome_of(estimator, [timing], params)
    metrics, undefined, seconds = test(task, estimator, X, y, X_test, y_test)
    outcome["metrics"] |= metrics | seconds
    outcome["undefined"] = undefined
    return outcome


def fit(task: Task, params: dict[str, Any], X: Any, y: np.ndarray) -> tuple[Any, measure.Timing]:
    """Fit the cell's solver, several times if short; return it with its times."""
    estimator = task.build(**params)
    data, timing = measure.fit_repeatedly(estimator, X, task.labels(y))
    estimator.evaluate_objective(data)
    return estimator, timing


def test(
    task: Task, estimator: Any, X: Any, y: np.ndarray, X_test: Any, y_test: Any
) -> tuple[dict[str, float], dict[str, str], dict[str, float]]:
    """Return the scores on the test rows, the reasons of those without a value, and the seconds."""
    start = measure.now()
    evaluation = scores.Evaluation(estimator, X_test, np.asarray(y_test), (X, task.labels(y)))
    _ = evaluation.predicted
    wall, cpu = measure.since(start)
    seconds = {"predict_time_s": wall, "predict_cpu_time_s": cpu}
    return *scores.compute_scores(task.spec["scores"], evaluation), seconds


def outcome_of(estimator: Any, timings: list[measure.Timing], params: dict[str, Any]) -> Outcome:
    """Return a fitted estimator's own facts, and the cost of its fits.

    Parameters
    ----------
    estimator : object
        The fitted estimator; of several, the last one.
    timings : list of Timing
        One per fold.
    params : dict
        The parameters that a search chose.
    """
    wall = [t.wall_s for t in timings]
    cpu = [t.cpu_s for t in timings]
    first = timings[0]
    counters = {name: int(value) for name, value in estimator.counters_.items()}
    metrics: dict[str, Any] = {}
    if "bounded_support_vectors" in counters:
        metrics["n_bound_sv"] = counters["bounded_support_vectors"]
        metrics["n_nonbound_sv"] = counters["support_vectors"] - metrics["n_bound_sv"]
    metrics |= {
        "train_time_s": statistics.fmean(wall),
        "cpu_time_s": statistics.fmean(cpu),
        "conversion_time_s": statistics.fmean(t.conversion for t in timings),
        "peak_memory_mb": max(t.peak_memory for t in timings),
    }
    if getattr(estimator, "objective_", None) is not None:
        metrics["objective"] = float(estimator.objective_)
    # A lower bound of every objective of this problem; -inf of a solver that has no multipliers.
    dual = getattr(estimator, "dual_objective_", None)
    if dual is not None and np.isfinite(dual):
        metrics["dual_objective"] = float(dual)
    metrics["n_iter"] = int(np.max(estimator.n_iter_))
    spread = {
        "train_time_s": deviation(wall) if len(timings) > 1 else first.spread(first.wall),
        "cpu_time_s": deviation(cpu) if len(timings) > 1 else first.spread(first.cpu),
    }
    return {
        "metrics": metrics,
        "spread": {name: value for name, value in spread.items() if value is not None},
        "counters": counters,
        "stop_reason": str(estimator.stop_reason_),
        "params": params,
    }


def over_folds(
    estimator: Any,
    timings: list[measure.Timing],
    params: dict[str, Any],
    test_scores: Sequence[tuple[dict[str, float], dict[str, str]]],
) -> Outcome:
    """Return the outcome of one fit per fold: means and standard deviations over the folds.

    Parameters
    ----------
    estimator, timings, params
        As :func:`outcome_of` takes them.
    test_scores : sequence of (dict, dict)
        The scores of each fold, and the reasons of those without a value.
    """
    scored: dict[str, list[float]] = {}
    undefined: dict[str, str] = {}
    for metrics, reasons in test_scores:
        undefined |= reasons
        for name, value in metrics.items():
            scored.setdefault(name, []).append(value)
    outcome = outcome_of(estimator, timings, params)
    outcome["undefined"] = undefined
    outcome["metrics"] |= {name: statistics.fmean(values) for name, values in scored.items()}
    outcome["spread"] |= {name: deviation(values) for name, values in scored.items()}
    outcome["folds"] = len(test_scores)
    return outcome


def sizes(inputs: CellInputs | None, n_train: int, n_test: int) -> dict[str, float]:
    """Return the metrics that say how many rows there were, and what scaling took.

    Without `inputs`, nothing was scaled.
    """
    scaling = 0.0 if inputs is None else inputs.scaling_s
    return {"scaling_time_s": scaling, "n_train": n_train, "n_test": n_test}


def deviation(values: list[float]) -> float:
    """Return the standard deviation over folds; 0 for a single fold."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
