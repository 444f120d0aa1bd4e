"""Estimates of metrics over folds, and their differences and ratios, with uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from svmbench.report.numbers.statistics import (
    Interval,
    paired_difference,
    student_quantile,
    welch_difference,
)
from svmbench.report.numbers.summary import registered_number, summarise_folds, value_of
from svmbench.report.reading.records import CellResult
from svmbench.report.reading.wording import is_timing

#: Number of standard deviations that cover 95 % of a normal distribution.
NORMAL_95 = 1.96

#: Relative margin of a time that was measured once. ``scripts/single_times.py`` measures it: for 95
#: % of `N_REPEATED_TIMES` kept times with repeats, where each run counts alike, twice the spread is
#: at most this share of the time.
SINGLE_TIME_MARGIN = 0.23
N_REPEATED_TIMES = 2092
#: Seconds. Shorter times vary more: measured once, they have no margin, and decide no claim.
SHORTEST_SINGLE_S = 0.01

#: The condition of a measurement: its data set, and the swept values.
Condition = tuple[str, tuple[tuple[str, object], ...]]


@dataclass(frozen=True)
class Estimate:
    """One metric of one solver at one condition.

    Attributes
    ----------
    value : float
        Mean over folds, or median over repeats.
    spread : float or None
        Standard deviation over folds, or half the interquartile range over repeats.
    low, high : float or None
        Range over the rounds of a race, if the record has one.
    n : int
        Number of folds; 0 for repeats of one fit.
    by_fold : dict of int to float
        Values by fold, if each fold is a cell.
    cells : tuple of CellResult
        The cells of the estimate.
    """

    value: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    by_fold: Mapping[int, float] = field(default_factory=dict)
    cells: tuple[CellResult, ...] = ()

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the range, or the value minus and plus twice its spread, or None."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        if self.spread is None:
            return None
        return self.value - 2.0 * self.spread, self.value + 2.0 * self.spread


def estimate(cells: Sequence[CellResult], metric: str) -> Estimate | None:
    """Estimate a metric over cells that differ in the fold only; return None without values."""
    finished = [cell for cell in cells if cell.status == "ok"]
    values = [(cell, value) for cell in finished if (value := value_of(cell, metric)) is not None]
    if not values:
        return None
    summary = summarise_folds([cell for cell, _ in values], metric)
    by_fold = {cell.fold: value for cell, value in values if cell.fold is not None}
    return Estimate(
        value=float(summary.value or 0.0),
        spread=summary.spread,
        low=summary.low,
        high=summary.high,
        n=len(by_fold) if len(by_fold) > 1 else values[0][0].folds,
        by_fold=by_fold,
        cells=tuple(cell for cell, _ in values),
    )


def estimates(
    cells: Iterable[CellResult], metric: str, *, sweep: Sequence[str] | None = None
) -> dict[Condition, dict[str, Estimate]]:
    """Estimate a metric for every solver at every condition, in the order of the plan.

    Parameters
    ----------
    cells : iterable of CellResult
    metric : str
    sweep : sequence of str, optional
        The dimensions that distinguish conditions; by default all.
    """
    grouped: dict[Condition, dict[str, list[CellResult]]] = {}
    for cell in cells:
        swept = sorted(cell.dimensions.items())
        condition = (
            str(cell.dataset),
            tuple((name, value) for name, value in swept if sweep is None or name in sweep),
        )
        grouped.setdefault(condition, {}).setdefault(str(cell.solver), []).append(cell)
    by_condition: dict[Condition, dict[str, Estimate]] = {}
    for condition, solvers in grouped.items():
        for solver, members in solvers.items():
            estimated = estimate(members, metric)
            if estimated is not None:
                by_condition.setdefault(condition, {})[solver] = estimated
    return by_condition


def difference(first: Estimate, second: Estimate, metric: str) -> Interval:
    """Return first minus second with its 95 % interval.

    Over common folds the interval is paired; for scores, the variance is corrected for overlapping
    training sets. Over different folds it is Welch's interval. For two ranges (:func:`interval`) it
    is the widest possible one. For accuracies on one test part it is that of two shares, and for
    areas under ROC curves it is Hanley and McNeil's.
    """
    common = sorted(first.by_fold.keys() & second.by_fold.keys())
    if len(common) > 1:
        share = 0.0 if is_timing(metric) else test_share(first)
        pairs = [first.by_fold[fold] - second.by_fold[fold] for fold in common]
        return paired_difference(pairs, test_to_train=share)
    value = first.value - second.value
    if first.n > 1 and second.n > 1 and first.spread is not None and second.spread is not None:
        return welch_difference(
            (first.value, first.spread, first.n), (second.value, second.spread, second.n)
        )
    first_range, second_range = interval(first, metric), interval(second, metric)
    if None in (first_range.low, first_range.high, second_range.low, second_range.high):
        known = {"accuracy_pct": _counted_difference, "auc_pct": _ranked_difference}
        return known[metric](first, second) if metric in known else Interval(value)
    low = float(first_range.low or 0.0) - float(second_range.high or 0.0)
    high = float(first_range.high or 0.0) - float(second_range.low or 0.0)
    return Interval(value, low, high, single=first_range.single or second_range.single)


def interval(estimated: Estimate, metric: str) -> Interval:
    """Return an estimate with the interval that decides.

    A mean over folds has Student's 95 % interval. Rounds have their range, and repeats twice the
    spread to both sides; neither is a confidence interval. A time that was measured once has the
    margin of single times. Other single values have no interval.
    """
    if estimated.n > 1 and estimated.spread is not None:
        half = student_quantile(0.975, estimated.n - 1) * estimated.spread / math.sqrt(estimated.n)
        return Interval(estimated.value, estimated.value - half, estimated.value + half)
    if estimated.ends is not None:
        return Interval(estimated.value, *estimated.ends)
    return _single(estimated, metric) if is_timing(metric) else Interval(estimated.value)


def _single(estimated: Estimate, metric: str) -> Interval:
    """Return a time or a ratio that was measured once, with the margin of single times.

    A ratio of two paths, fits along a series of parameter values, compares the sums of their times
    over all values. If its record lacks these times, they count as long enough.
    """
    times = [estimated.value] if metric.endswith("_s") else _times(estimated.cells)
    if min(times, default=math.inf) < SHORTEST_SINGLE_S:
        return Interval(estimated.value)
    low, high = 1.0 - SINGLE_TIME_MARGIN, 1.0 + SINGLE_TIME_MARGIN
    if not metric.endswith("_s"):
        low, high = low / high, high / low
    return Interval(estimated.value, estimated.value * low, estimated.value * high, single=True)


def _times(cells: Sequence[CellResult]) -> list[float]:
    """Return the CPU seconds of some paths, which records have as a mean over their values."""
    measurements = ((value_of(cell, "cpu_time_s"), value_of(cell, "n_values")) for cell in cells)
    return [mean * (n_values or 1.0) for mean, n_values in measurements if mean is not None]


def quotient(first: Interval, second: Interval) -> Interval:
    """Return the first over the second, with the widest possible interval.

    The result has no interval if one of the two has none, or if the second interval reaches 0.
    """
    value = first.value / second.value if second.value else math.inf
    if None in (first.low, first.high, second.low, second.high):
        return Interval(value)
    low, high = float(second.low or 0.0), float(second.high or 0.0)
    if low <= 0.0:
        return Interval(value)
    single = first.single or second.single
    return Interval(
        value, float(first.low or 0.0) / high, float(first.high or 0.0) / low, single=single
    )


def ratio(first: Estimate, second: Estimate, metric: str) -> Interval:
    """Return the ratio of the first to the second, with its 95 % interval.

    Over common folds the interval comes from the paired logarithms, else from the quotient of the
    two intervals.
    """
    common = sorted(first.by_fold.keys() & second.by_fold.keys())
    pairs = [(first.by_fold[fold], second.by_fold[fold]) for fold in common]
    if len(pairs) > 1 and all(a > 0.0 and b > 0.0 for a, b in pairs):
        share = 0.0 if is_timing(metric) else test_share(first)
        logs = paired_difference([math.log(a / b) for a, b in pairs], test_to_train=share)
        if logs.low is not None and logs.high is not None:
            return Interval(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high))
    return quotient(interval(first, metric), interval(second, metric))


def total(parts: Sequence[Interval]) -> Interval:
    """Return the sum of uncertain numbers, with the widest possible interval."""
    value = math.fsum(part.value for part in parts)
    ends = [(part.low, part.high) for part in parts]
    if any(low is None or high is None for low, high in ends):
        return Interval(value)
    low = math.fsum(low or 0.0 for low, _ in ends)
    high = math.fsum(high or 0.0 for _, high in ends)
    return Interval(value, low, high, single=any(part.single for part in parts))


def _counted_difference(first: Estimate, second: Estimate) -> Interval:
    """Return the difference of two shares of one test part, with independent errors."""
    value = first.value - second.value
    counts = [test_rows(estimated.cells[0]) for estimated in (first, second) if estimated.cells]
    if len(counts) < 2 or not all(counts):
        return Interval(value)
    variance = math.fsum(
        estimated.value * (100.0 - estimated.value) / float(n or 1)
        for estimated, n in zip((first, second), counts, strict=True)
    )
    half = NORMAL_95 * math.sqrt(max(0.0, variance))
    return Interval(value, value - half, value + half)


def test_rows(cell: CellResult) -> float | None:
    """Return on how many rows a cell was tested; None if that is unknown.

    Records of a fit to all rows lack the number. Their scores are those of the data set's own test
    part if the number of correct rows that follows from the accuracy is whole.
    """
    recorded = value_of(cell, "n_test")
    share = value_of(cell, "accuracy_pct")
    if recorded is not None or share is None:
        return recorded
    n_test = registered_number(str(cell.dataset), "n_test")
    correct = share / 100.0 * n_test
    return float(n_test) if n_test and abs(correct - round(correct)) < _INTEGER_TOLERANCE else None


def _ranked_difference(first: Estimate, second: Estimate) -> Interval:
    """Return a difference of areas under ROC curves on one test part, as if both were independent.

    Both rank the same rows, so that their errors are correlated, and the interval is too wide
    rather than too narrow.
    """
    value = first.value - second.value
    counts = _positives(first, second)
    if not counts:
        return Interval(value)
    variance = max(
        math.fsum(_area_variance(estimated.value / 100.0, *count) for estimated in (first, second))
        for count in counts
    )
    half = 100.0 * NORMAL_95 * math.sqrt(max(0.0, variance))
    return Interval(value, value - half, value + half)


def _area_variance(area: float, n_positive: int, n_negative: int) -> float:
    """Return the variance of an area under a ROC curve (Hanley and McNeil 1982, equation 2)."""
    two_positives, two_negatives = area / (2.0 - area), 2.0 * area**2 / (1.0 + area)
    return (
        area * (1.0 - area)
        + (n_positive - 1) * (two_positives - area**2)
        + (n_negative - 1) * (two_negatives - area**2)
    ) / (n_positive * n_negative)


#: Largest difference from an integer of the product of a recorded share and a count.
_INTEGER_TOLERANCE = 1e-6


def _positives(*several: Estimate) -> list[tuple[int, int]]:
    """Return the possible numbers of positive and negative test rows, by precision and recall.

    A record has neither count. The possible counts of positive rows are those for which two numbers
    are whole for every solver: recall times the count, and that product divided by the precision.
    """
    cells = [cell for estimated in several for cell in estimated.cells]
    sizes = {int(value_of(cell, "n_test") or 0) for cell in cells}
    n_test = sizes.pop() if len(sizes) == 1 else 0
    n_positive, known = np.arange(1, n_test), False
    for cell in cells:
        recall, precision = (value_of(cell, f"{name}_pct") for name in ("recall", "precision"))
        if not recall or not precision:  # no row was called positive
            continue
        hits = recall / 100.0 * n_positive
        n_predicted = hits / (precision / 100.0)
        whole = (abs(hits - hits.round()) < _INTEGER_TOLERANCE) & (
            abs(n_predicted - n_predicted.round()) < _INTEGER_TOLERANCE
        )
        n_positive, known = (
            n_positive[whole & (n_predicted - hits <= n_test - n_positive + _INTEGER_TOLERANCE)],
            True,
        )
    return [(int(k), n_test - int(k)) for k in n_positive] if known else []


def test_share(estimated: Estimate) -> float:
    """Return test rows over training rows, from the first fold that has both numbers."""
    for cell in estimated.cells:
        test, train = value_of(cell, "n_test"), value_of(cell, "n_train")
        if test and train:
            return test / train
    return 0.0
