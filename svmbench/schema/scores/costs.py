"""Scores of the size of a model, and of the time of its predictions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

import numpy as np

from svmbench.schema.scores.contract import Evaluation, Undefined, named, score

#: Predictions are repeated until their total CPU time reaches this many seconds.
PREDICT_TOTAL_S = 0.05
#: Largest number of repeated predictions.
PREDICT_REPEATS = 50


@score(
    "support-vectors", metric="n_support_vectors", caption="support vectors", unit="",
    better="lower", tolerance=0.1, relative=True, needs=("model",),
)  # fmt: skip
def support_vectors(evaluation: Evaluation) -> float:
    """Return the number of support vectors; for one-vs-one models the sum over the pairs."""
    model = evaluation.estimator
    for attribute, count in (("support_", len), ("n_support_", np.sum)):
        if (values := getattr(model, attribute, None)) is not None:
            return float(count(values))
    counters = getattr(model, "counters_", None)
    if isinstance(counters, Mapping) and "support_vectors" in counters:
        return float(counters["support_vectors"])
    raise Undefined(f"{named(model)} has no support vectors")


@score(
    "predict-time", metric="predict_time_per_row_s", caption="CPU time of prediction per row (s)",
    unit="s", better="lower", tolerance=None,
)  # fmt: skip
def predict_time(evaluation: Evaluation) -> float:
    """Return the CPU seconds of `predict` per test row: the median over repeats.

    The first call, whose predictions the other scores use, is not timed.
    """
    if evaluation.estimator is None:
        raise Undefined("the model itself is not available")
    if evaluation.X is None:
        raise Undefined("the rows are not in memory")
    _ = evaluation.predicted
    # A program's estimator has its own clock.
    now = getattr(evaluation.estimator, "cpu_clock", time.process_time)
    seconds: list[float] = []
    while sum(seconds) < PREDICT_TOTAL_S and len(seconds) < PREDICT_REPEATS:
        start = now()
        evaluation.estimator.predict(evaluation.X)
        seconds.append(now() - start)
    return statistics.median(seconds) / len(evaluation.y)
