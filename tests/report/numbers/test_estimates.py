"""Differences of two results of one test part, from counts that records hold or imply."""

import math

import numpy as np
import pytest

from svmbench.report.numbers.estimates import (
    Estimate,
    _area_variance,
    _positives,
    difference,
)
from svmbench.report.numbers.estimates import (
    test_rows as rows_of,
)
from svmbench.report.numbers.statistics import Interval
from svmbench.report.reading.records import CellResult


def one(auc, hits, said, n_positive, n_negative, **more):
    """Return a detector's result that called `said` rows positive, `hits` of them rightly."""
    metrics = {
        "auc_pct": auc,
        "recall_pct": 100.0 * hits / n_positive,
        "n_test": n_positive + n_negative,
        **({"precision_pct": 100.0 * hits / said} if said else {}),
        **more,
    }
    cell = CellResult("k", "b", "holdout", "p", "a", None, "s", None, "ok", metrics=metrics)
    return Estimate(auc, cells=(cell,))


def test_the_variance_of_an_area_is_that_of_exponential_scores():
    """Hanley and McNeil's formula is exact where scores of both classes are exponential."""
    draws, n_positive, n_negative = np.random.default_rng(0), 40, 15
    positive = draws.exponential(4.0, (4000, n_positive, 1))
    negative = draws.exponential(1.0, (4000, 1, n_negative))
    areas = (positive > negative).mean(axis=(1, 2))
    expected = _area_variance(4.0 / 5.0, n_positive, n_negative)
    assert expected == pytest.approx(areas.var(), rel=0.05)
    assert _area_variance(0.8, n_negative, n_positive) != pytest.approx(expected, rel=0.05)


def test_precision_and_recall_tell_how_many_rows_are_positive():
    first, second = one(60.0, 12246, 15938, 12435, 3846), one(59.0, 11194, 14218, 12435, 3846)
    assert _positives(first, second) == [(12435, 3846)]
    # Without a row that was called positive the other's counts are left.
    assert _positives(one(60.0, 0, 0, 12435, 3846), second) == [(12435, 3846)]
    assert _positives(one(60.0, 0, 0, 12435, 3846)) == []
    # Where several counts fit, all are known.
    assert (80, 20) in _positives(one(60.0, 80, 90, 80, 20))


def test_areas_of_one_test_part_have_an_interval_of_their_difference():
    first, second = one(90.0, 701, 719, 797, 203), one(86.0, 643, 661, 797, 203)
    assert _positives(first, second) == [(797, 203)]
    found = difference(first, second, "auc_pct")
    half = 196.0 * math.sqrt(_area_variance(0.9, 797, 203) + _area_variance(0.86, 797, 203))
    assert (found.low, found.high) == pytest.approx((4.0 - half, 4.0 + half))
    other = one(86.0, 65, 66, 80, 20)  # of another test part
    assert difference(first, other, "auc_pct") == Interval(4.0)
    assert difference(first, one(86.0, 0, 0, 797, 203, n_test=900), "auc_pct") == Interval(4.0)


def fitted(accuracy, protocol="fit", dataset="ijcnn1", **metrics):
    return CellResult(
        key="k", block="b", protocol=protocol, paper="p", dataset=dataset, kernel="rbf",
        solver="s", fold=None, status="ok", metrics={"accuracy_pct": accuracy, **metrics},
    )  # fmt: skip


def test_a_fit_was_tested_on_the_data_sets_own_test_part():
    n = 91_701
    share = 100.0 * 86_000 / n
    assert rows_of(fitted(share)) == n
    assert rows_of(fitted(share, n_test=50)) == 50
    assert rows_of(fitted(share + 1e-4)) is None  # no share of so many rows
    assert rows_of(fitted(share, dataset="splice[:100]")) is None
    first, second = (Estimate(value, cells=(fitted(value),)) for value in (share, share - 100 / n))
    found = difference(first, second, "accuracy_pct")
    assert found.low < 0.0 < found.high < 0.3
