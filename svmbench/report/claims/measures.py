"""From cells to what claims compare: estimates, differences and exponents, each with its doubt.

An answer is True, False, or None where the uncertainty leaves it open; what leaves it open is said
with each rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from svmbench.report.comparisons import Interval, paired_difference, welch_difference
from svmbench.report.records import Cell
from svmbench.report.statistics import PowerLaw, fit_power_law
from svmbench.report.summary import measured, summarise
from svmbench.report.wording import is_timing, number

#: Two times without a spread that are nearer than this share of the larger decide nothing.
SAME_TIME = 0.1

#: So many standard deviations hold 95 % of a normal distribution.
NORMAL_95 = 1.96

#: Where a measurement stands: its data set, and what is swept.
Place = tuple[str, tuple[tuple[str, object], ...]]


@dataclass(frozen=True)
class Estimate:
    """One metric of one solver in one place.

    Attributes
    ----------
    value : float
        The mean over folds, or the median over repeats, as the records have it.
    spread : float or None
        Standard deviation over folds or repeats.
    low, high : float or None
        A range, where the record has one (of a race's rounds).
    n : int
        Folds that the spread is of; 0 for repeats of one fit.
    by_fold : dict of int to float
        Where each fold is a cell of its own.
    cells : tuple of Cell
        The cells that it is of.
    """

    value: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    by_fold: Mapping[int, float] = field(default_factory=dict)
    cells: tuple[Cell, ...] = ()

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the range, or the value with twice its spread to both sides; None without."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        if self.spread is None:
            return None
        return self.value - 2.0 * self.spread, self.value + 2.0 * self.spread


def estimate(cells: Sequence[Cell], metric: str) -> Estimate | None:
    """Return a metric over cells that differ in their fold alone; None where none has a value."""
    own = [cell for cell in cells if cell.status == "ok"]
    values = [(cell, value) for cell in own if (value := measured(cell, metric)) is not None]
    if not values:
        return None
    found = summarise([cell for cell, _ in values], metric)
    by_fold = {cell.fold: value for cell, value in values if cell.fold is not None}
    return Estimate(
        value=float(found.value or 0.0),
        spread=found.spread,
        low=found.low,
        high=found.high,
        n=len(by_fold) if len(by_fold) > 1 else values[0][0].folds,
        by_fold=by_fold,
        cells=tuple(cell for cell, _ in values),
    )


def estimates(
    cells: Iterable[Cell], metric: str, *, sweep: Sequence[str] | None = None
) -> dict[Place, dict[str, Estimate]]:
    """Return a metric of every solver in every place, places in the plan's order.

    Parameters
    ----------
    cells : iterable of Cell
    metric : str
    sweep : sequence of str, optional
        The dimensions that tell places apart; all of them by default.
    """
    grouped: dict[Place, dict[str, list[Cell]]] = {}
    for cell in cells:
        swept = sorted(cell.dimensions.items())
        place = (
            str(cell.dataset),
            tuple((name, value) for name, value in swept if sweep is None or name in sweep),
        )
        grouped.setdefault(place, {}).setdefault(str(cell.solver), []).append(cell)
    found: dict[Place, dict[str, Estimate]] = {}
    for place, solvers in grouped.items():
        for solver, members in solvers.items():
            one = estimate(members, metric)
            if one is not None:
                found.setdefault(place, {})[solver] = one
    return found


def difference(first: Estimate, second: Estimate, metric: str) -> Interval:
    """Return first minus second with its 95 % interval.

    Over common folds it is paired, for scores with the variance that overlapping training sets ask
    for; over other folds it is Welch's; of two ranges it is as wide as they allow; of accuracies on
    one test part it is that of two shares.
    """
    common = sorted(first.by_fold.keys() & second.by_fold.keys())
    if len(common) > 1:
        ratio = 0.0 if is_timing(metric) else test_share(first)
        pairs = [first.by_fold[fold] - second.by_fold[fold] for fold in common]
        return paired_difference(pairs, test_to_train=ratio)
    value = first.value - second.value
    if first.n > 1 and second.n > 1 and first.spread is not None and second.spread is not None:
        return welch_difference(
            (first.value, first.spread, first.n), (second.value, second.spread, second.n)
        )
    if first.ends is None or second.ends is None:
        return _counted_difference(first, second) if metric == "accuracy_pct" else Interval(value)
    return Interval(value, first.ends[0] - second.ends[1], first.ends[1] - second.ends[0])


def _counted_difference(first: Estimate, second: Estimate) -> Interval:
    """Return a difference of shares of one test part, as if the two had erred independently."""
    value = first.value - second.value
    counts = [measured(one.cells[0], "n_test") for one in (first, second) if one.cells]
    if len(counts) < 2 or not all(counts):
        return Interval(value)
    variance = math.fsum(
        one.value * (100.0 - one.value) / float(n or 1)
        for one, n in zip((first, second), counts, strict=True)
    )
    half = NORMAL_95 * math.sqrt(max(0.0, variance))
    return Interval(value, value - half, value + half)


def test_share(one: Estimate) -> float:
    """Return test rows over training rows, of the first fold that says so."""
    for cell in one.cells:
        test, train = measured(cell, "n_test"), measured(cell, "n_train")
        if test and train:
            return test / train
    return 0.0


def is_lower(first: Estimate, second: Estimate, metric: str) -> bool | None:
    """Return whether the first is lower; None where the interval of the difference holds 0."""
    apart = difference(first, second, metric)
    if apart.low is None or apart.high is None:
        near = abs(apart.value) <= SAME_TIME * max(abs(first.value), abs(second.value))
        return None if near else apart.value < 0
    if apart.low <= 0.0 <= apart.high:
        return None
    return apart.value < 0


def is_within(behind: Interval, limit: float) -> bool | None:
    """Return whether something is at most `limit` behind the best.

    None where it is further behind but its interval holds 0, and where the interval is wider than
    four times the limit.
    """
    if behind.low is None or behind.high is None:
        return behind.value <= limit
    if behind.value <= limit:
        return None if behind.high - behind.low > 4.0 * limit else True
    return False if behind.low > 0.0 else None


def growth(points: Iterable[tuple[float, float]]) -> PowerLaw | None:
    """Return the exponent of positive points; None with fewer than two places."""
    kept = [(x, y) for x, y in points if x > 0 and y > 0]
    return fit_power_law([x for x, _ in kept], [y for _, y in kept]) if kept else None


def is_inside(law: PowerLaw | None, low: float, high: float) -> bool | None:
    """Return whether an exponent is in a window.

    None without an interval, where the interval is more than twice as wide as the window, and where
    the exponent is outside while its interval reaches in.
    """
    if law is None or law.low is None or law.high is None:
        return None
    if law.high - law.low > 2.0 * (high - low):
        return None
    if low <= law.exponent <= high:
        return True
    return False if law.high < low or law.low > high else None


def is_at_least(law: PowerLaw | None, limit: float) -> bool | None:
    """Return whether an exponent, or the gap of two, is at least `limit`.

    None without an interval, where the interval holds both 0 and the limit, and where the exponent
    is below the limit while its interval reaches it; for a limit of 0, where the interval holds it.
    """
    if law is None or law.low is None or law.high is None:
        return None
    if limit == 0.0:
        return None if law.low < 0.0 <= law.high else law.low >= 0.0
    if law.low <= 0.0 and law.high >= limit:
        return None
    if law.exponent >= limit:
        return True
    return False if law.high < limit else None


def is_at_most(law: PowerLaw | None, limit: float, widest: float = 1.0) -> bool | None:
    """Return whether an exponent is at most `limit`.

    None without an interval, where that is wider than `widest`, and where the exponent is above the
    limit while its interval reaches it.
    """
    if law is None or law.low is None or law.high is None or law.high - law.low > widest:
        return None
    if law.exponent <= limit:
        return True
    return False if law.low > limit else None


def spelt(law: PowerLaw | None) -> str:
    """Return an exponent with its interval and the number of points."""
    if law is None:
        return "no exponent (fewer than two sizes)"
    return f"{law} from {law.n_points} points" if law.low is not None else str(law)


def figure(metric: str, value: float) -> str:
    """Return a value with the decimals of its metric, and a minus sign that is one."""
    return number(metric, value).replace("-", "−")


def seconds(value: float) -> str:
    """Return a time with three digits, in the unit that needs no exponent."""
    unit, size = next(
        (one for one in (("s", 1.0), ("ms", 1e-3)) if abs(value) >= one[1]), ("µs", 1e-6)
    )
    return f"{number('cpu_time_s', value / size)} {unit}"


def times(factor: float) -> str:
    """Return a factor with three digits and a sign of multiplication."""
    return f"{factor:,.3g}×" if factor < 1000 else f"{factor:,.0f}×"


def signed(value: float, places: int = 2) -> str:
    """Return a difference with its sign, which nothing has none of."""
    text = f"{value:+.{places}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "−")
