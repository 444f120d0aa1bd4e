"""The cost of a whole nested cross-validation, from one of its folds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from svmbench.experiment.protocols.nested_cv import whole_cpu_time


@pytest.mark.parametrize(
    ("scaling", "seconds"),
    [
        # Five times the search without distances (6), the training (3) and the test (1).
        ("outer-fold", 5 * (6 + 3 + 1) + 5 * 4),
        ("every-fold", 5 * (6 + 3 + 1) + 5 * 4),
        ("all-rows", 5 * (6 + 3 + 1) + 4),
        ("none", 5 * (6 + 3 + 1) + 4),
    ],
)
def test_each_fold_pays_its_own_work_and_distances_are_paid_once_where_they_are_shared(
    scaling: str, seconds: float
) -> None:
    task: Any = SimpleNamespace(protocol_settings={"outer_folds": 5}, spec={"scaling": scaling})
    metrics = {
        "search_cpu_time_s": 10.0,
        "distances_cpu_time_s": 4.0,
        "cpu_time_s": 3.0,
        "predict_cpu_time_s": 1.0,
    }
    assert whole_cpu_time(task, metrics) == pytest.approx(seconds)
    del metrics["distances_cpu_time_s"]
    assert whole_cpu_time(task, metrics) == pytest.approx(5 * (10 + 3 + 1))
