"""What claims ask of estimates: which is lower, near the best, and how fast a time grows.

An answer is True, False, or None where the uncertainty leaves it open; what leaves it open is said
with each rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from svmbench.report.comparisons import Interval
from svmbench.report.estimates import Estimate, difference
from svmbench.report.statistics import PowerLaw, fit_power_law
from svmbench.report.wording import number

#: Two times without a spread that are nearer than this share of the larger decide nothing.
SAME_TIME = 0.1


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
