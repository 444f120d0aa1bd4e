"""Answers from intervals: lower, near the best, growth of a time.

An answer rests on criteria. A criterion is an uncertain number with limits. It is met if its
interval lies within the limits, or overlaps them and is no wider than `width` (by default the
distance of both limits; with one limit 0). It fails if the interval lies outside. Otherwise, or
without an interval, it is undecided. The point estimate decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from svmbench.report.numbers.estimates import NORMAL_95, Estimate, difference
from svmbench.report.numbers.statistics import Interval, PowerLaw, fit_power_law
from svmbench.report.reading.wording import number


@dataclass(frozen=True)
class Criterion:
    """An uncertain number with its limits.

    Attributes
    ----------
    interval : Interval
        A count has two equal ends; an interval without ends decides nothing.
    at_least, at_most : float
        The limits; a value equal to a limit is allowed.
    width : float or None
        The widest interval that may cross a limit; None for the distance of both limits, or for 0
        if there is one limit.
    """

    interval: Interval
    at_least: float = -math.inf
    at_most: float = math.inf
    width: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the criterion is met (True), fails (False) or is undecided (None).

        It is met if the interval lies within the limits, or overlaps them and is no wider than
        `width`; it fails if the interval lies outside.
        """
        low, high = self.interval.low, self.interval.high
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return None
        if self.at_least <= low and high <= self.at_most:
            return True
        if high < self.at_least or low > self.at_most:
            return False
        return True if high - low <= self.allowed_width else None

    @property
    def allowed_width(self) -> float:
        """The widest interval that may cross a limit: `width`, or the distance of both limits."""
        if self.width is not None:
            return self.width
        distance = self.at_most - self.at_least
        return distance if math.isfinite(distance) else 0.0

    @property
    def crosses_limit(self) -> bool:
        """True if it is met although its interval reaches beyond a limit."""
        low, high = self.interval.low, self.interval.high
        if low is None or high is None or self.holds is not True:
            return False
        return low < self.at_least or high > self.at_most

    @property
    def single(self) -> bool:
        """True if the ends rest on the margin of times that were measured once."""
        return self.interval.single

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON holds them: a missing end or limit is null."""
        interval = self.interval
        limits = {
            "value": interval.value, "low": interval.low, "high": interval.high,
            "least": self.at_least, "most": self.at_most, "width": self.allowed_width,
        }  # fmt: skip
        finite = {
            name: value if value is not None and math.isfinite(value) else None
            for name, value in limits.items()
        }
        return {**finite, "single_times": self.single}


@dataclass(frozen=True)
class SideTest:
    """A test of each of two opposite alternatives.

    Attributes
    ----------
    p_holds, p_fails : float
        The p-values of the two alternatives, that the claim holds and that its opposite holds,
        corrected for the number of tests.
    level : float
    """

    p_holds: float
    p_fails: float
    level: float

    @property
    def holds(self) -> bool | None:
        """True if the first alternative is significant; None if neither is."""
        return True if self.p_holds < self.level else False if self.p_fails < self.level else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        return {"p_holds": self.p_holds, "p_fails": self.p_fails, "level": self.level}


@dataclass(frozen=True)
class Answer:
    """An answer that is yes if all of its criteria are met.

    Attributes
    ----------
    criteria : tuple of Criterion or SideTest
        Without any, the answer is undecided.
    """

    criteria: tuple[Criterion | SideTest, ...] = ()

    @property
    def holds(self) -> bool | None:
        """False where a criterion fails, True where all are met, None otherwise."""
        answers = [criterion.holds for criterion in self.criteria]
        return False if False in answers else True if answers and None not in answers else None

    @property
    def single(self) -> bool:
        """True if a criterion rests on the margin of times that were measured once."""
        return any(
            isinstance(criterion, Criterion) and criterion.single for criterion in self.criteria
        )

    def __bool__(self) -> bool:
        """Raise TypeError: an undecided answer is neither true nor false."""
        raise TypeError("an Answer is neither true nor false: read its attribute holds")


#: The answer if nothing was measured that could decide.
NO_ANSWER = Answer()


def all_of(answers: Iterable[Answer]) -> Answer:
    """Return yes if all answers are yes, no if one of them is no, else undecided.

    An answer without criteria is undecided.
    """
    criteria: list[Criterion | SideTest] = []
    for answer in answers:
        criteria += answer.criteria or (Criterion(Interval(math.nan)),)
    return Answer(tuple(criteria))


def within_limits(
    interval: Interval,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    width: float | None = None,
) -> Answer:
    """Return yes if an uncertain number lies within limits (inclusive)."""
    return Answer((Criterion(interval, at_least, at_most, width),))


def counted(value: float, at_least: float = -math.inf, at_most: float = math.inf) -> Answer:
    """Return yes if a counted number, which has no uncertainty, lies within limits."""
    return within_limits(Interval(value, value, value), at_least, at_most)


def answer_most(cases: Sequence[bool | None], total: int = 0, share: float = 0.5) -> Answer:
    """Return yes if more than a share of the cases hold.

    The share has no interval, because the paper has no other cases. Undecided and missing cases
    leave the answer undecided only if they could change it.

    Parameters
    ----------
    cases : sequence of bool or None
        Whether each case holds; None if undecided.
    total : int, default=0
        Number of cases with the missing ones, which are undecided; 0 for no missing ones.
    share : float, default=0.5
    """
    n = max(total, len(cases))
    if not n:
        return NO_ANSWER
    yes, no = cases.count(True), cases.count(False)
    least = math.nextafter(share, 1.0)
    return within_limits(Interval(yes / n, yes / n, (n - no) / n), at_least=least)


def answer_lower(first: Estimate, second: Estimate, metric: str) -> Answer:
    """Return yes if the first is lower; undecided if the difference's interval contains 0."""
    return within_limits(difference(first, second, metric), at_most=math.nextafter(0.0, -1.0))


def answer_positive(ahead: Interval) -> Answer:
    """Return yes if a difference is above 0; undecided if its interval contains 0."""
    return within_limits(ahead, at_least=math.nextafter(0.0, 1.0))


def answer_lag_at_most(behind: Interval, limit: float) -> Answer:
    """Return yes if a lag is at most `limit`; its interval may be twice the limit wide."""
    return within_limits(behind, at_most=limit, width=2.0 * limit)


#: The widest interval of an exponent that may cross a limit: the width of the window of linear
#: growth, and of the window of 0.2 on both sides of a printed exponent.
EXPONENT_WIDTH = 0.4


def growth(points: Iterable[tuple[float, float]]) -> PowerLaw | None:
    """Return the power law through the positive points; None with fewer than two distinct x."""
    positive = [(x, y) for x, y in points if x > 0 and y > 0]
    return fit_power_law([x for x, _ in positive], [y for _, y in positive]) if positive else None


def _exponent(law: PowerLaw | None) -> Interval:
    return Interval(math.nan) if law is None else Interval(law.exponent, law.low, law.high)


def answer_exponent_in(law: PowerLaw | None, low: float, high: float) -> Answer:
    """Return yes if an exponent, or the gap of two, is in a window.

    An interval that crosses a limit counts as yes if it is no wider than the window, or than
    `EXPONENT_WIDTH` if one end of the window is infinite.
    """
    width = EXPONENT_WIDTH if math.isinf(high - low) else None
    return within_limits(_exponent(law), low, high, width)


def answer_exponent_at_least(law: PowerLaw | None, limit: float) -> Answer:
    """Return yes if an exponent is at least `limit`, by the rule of :func:`answer_exponent_in`."""
    return answer_exponent_in(law, limit, math.inf)


def answer_exponent_at_most(law: PowerLaw | None, limit: float) -> Answer:
    """Return yes if an exponent is at most `limit`, by the rule of :func:`answer_exponent_in`."""
    return answer_exponent_in(law, -math.inf, limit)


def correlated(r: float, n: int, limit: float) -> Answer:
    """Return yes if a correlation of `n` pairs is at least `limit`, by Fisher's 95 % interval.

    It is undecided for fewer than four pairs. A perfect correlation gets the interval of a
    correlation just below 1.
    """
    if n < 4:
        return NO_ANSWER
    z, half = math.atanh(max(-1.0 + 1e-12, min(1.0 - 1e-12, r))), NORMAL_95 / math.sqrt(n - 3)
    return within_limits(Interval(r, math.tanh(z - half), math.tanh(z + half)), at_least=limit)


def spelt(law: PowerLaw | None) -> str:
    """Return an exponent with its interval and the number of points."""
    if law is None:
        return "no exponent (fewer than two sizes)"
    points = f" from {law.n_points} points" if law.low is not None else ""
    return f"exponent {law}{points}"


def format_value(metric: str, value: float) -> str:
    """Return a value with the decimals of its metric, and a typographic minus sign."""
    return number(metric, value).replace("-", "−")


def format_seconds(value: float) -> str:
    """Return a time with three digits, in the unit that needs no exponent."""
    unit, size = next(
        (scale for scale in (("s", 1.0), ("ms", 1e-3)) if abs(value) >= scale[1]), ("µs", 1e-6)
    )
    return f"{number('cpu_time_s', value / size)} {unit}"


def format_ratio(factor: float) -> str:
    """Return a factor with three digits and a sign of multiplication."""
    return f"{factor:,.3g}×" if factor < 1000 else f"{factor:,.0f}×"


def times_between(factor: Interval) -> str:
    """Return a factor as text, with its interval if it has one."""
    if factor.low is None or factor.high is None:
        return format_ratio(factor.value)
    return f"{format_ratio(factor.value)} [{factor.low:,.3g}, {factor.high:,.3g}]"


def format_signed(value: float, places: int = 2) -> str:
    """Format a signed difference; zero has no sign."""
    text = f"{value:+.{places}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "−")
