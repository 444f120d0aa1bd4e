"""One unit a column: seconds, milliseconds or microseconds, whichever its times read best in."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit of time: its name, and how many of it make a second."""

    name: str
    per_second: float

    def of(self, seconds: float | None) -> float | None:
        """Return a number of seconds in this unit."""
        return None if seconds is None else seconds * self.per_second

    def head(self, label: str) -> str:
        """Return a metric's label, which says that it is in seconds, with this unit instead."""
        return f"{label.removesuffix('(s)').rstrip()} ({self.name})"


SECONDS, MILLISECONDS, MICROSECONDS = Unit("s", 1.0), Unit("ms", 1e3), Unit("µs", 1e6)


def unit_of(metric: str, seconds: Iterable[float | None]) -> Unit | None:
    """Return the unit in which most of a column's times are numbers of one to three digits.

    Parameters
    ----------
    metric : str
    seconds : iterable of float or None
        Its values; None for one that is missing.

    Returns
    -------
    Unit or None
        None of a metric that is no number of seconds.
    """
    if not metric.endswith("_s"):
        return None
    known = [value for value in seconds if value is not None and value > 0]
    middle = statistics.median(known) if known else 1.0
    return next(
        (unit for unit in (SECONDS, MILLISECONDS) if middle * unit.per_second >= 0.9995),
        MICROSECONDS,
    )
