"""What a cell's record takes from a fitted estimator."""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from svmbench.experiment.measuring.measure import Timing
from svmbench.experiment.protocols.outcomes import outcome_of


def fitted(**facts: Any) -> Any:
    known = {"counters_": {}, "n_iter_": 7, "stop_reason_": "converged", "objective_": 2.5}
    return SimpleNamespace(**{**known, **facts})


def test_the_support_vectors_are_those_at_the_bound_and_the_others() -> None:
    counters = {"support_vectors": 90, "bounded_support_vectors": 85, "updates": 3}
    timings = [Timing(wall=[1.0, 2.0, 6.0], cpu=[0.5, 1.0, 1.5], conversion=0.25, peak_memory=4.0)]
    estimator = fitted(counters_=counters, dual_objective_=2.25, n_iter_=np.array([3, 9, 4]))
    outcome = outcome_of(estimator, timings, {"C": 4})
    assert outcome["metrics"] == {
        "n_bound_sv": 85,
        "n_nonbound_sv": 5,
        "train_time_s": 2.0,
        "cpu_time_s": 1.0,
        "conversion_time_s": 0.25,
        "peak_memory_mb": 4.0,
        "objective": 2.5,
        "dual_objective": 2.25,
        "n_iter": 9,
    }
    assert (outcome["counters"], outcome["params"]) == (counters, {"C": 4})
    assert outcome["stop_reason"] == "converged"


def test_of_several_folds_times_are_means_and_memory_is_the_peak() -> None:
    timings = [
        Timing(wall=[seconds], cpu=[2 * seconds], conversion=seconds, peak_memory=memory)
        for seconds, memory in ((1.0, 3.0), (2.0, 8.0), (6.0, 1.0))
    ]
    outcome = outcome_of(fitted(dual_objective_=-np.inf), timings, {})
    metrics = outcome["metrics"]
    assert metrics["train_time_s"] == 3.0
    assert metrics["cpu_time_s"] == 6.0
    assert metrics["conversion_time_s"] == 3.0
    assert metrics["peak_memory_mb"] == 8.0
    assert outcome["spread"]["cpu_time_s"] == pytest.approx(statistics.stdev([2.0, 4.0, 12.0]))
    # Of a solver without multipliers there is no bound, and nothing of bounded ones.
    assert not {"dual_objective", "n_bound_sv", "n_nonbound_sv"} & set(metrics)
