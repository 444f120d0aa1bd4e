"""Choose the unit of the times in a column: seconds, milliseconds or microseconds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit of time: its name, and its number per second."""

    name: str
    per_second: float

    def of(self, seconds: float | None) -> float | None:
        """Convert seconds to this unit."""
        return None if seconds is None else seconds * self.per_second

    def head(self, label: str) -> str:
        """Replace the unit seconds in a label by this unit."""
        return f"{label.removesuffix('(s)').rstrip()} ({self.name})"


SECONDS, MILLISECONDS, MICROSECONDS = Unit("s", 1.0), Unit("ms", 1e3), Unit("µs", 1e6)


def unit_of(metric: str, seconds: Iterable[float | None]) -> Unit | None:
    """Return the unit in which most times of a column have one to three digits.

    Parameters
    ----------
    metric : str
    seconds : iterable of float or None
        Values of the column; None for missing values.

    Returns
    -------
    Unit or None
        None for a metric that isn't a time.
    """
    if not metric.endswith("_s"):
        return None
    known = [value for value in seconds if value is not None and value > 0]
    middle = statistics.median(known) if known else 1.0
    return next(
        (unit for unit in (SECONDS, MILLISECONDS) if middle * unit.per_second >= 0.9995),
        MICROSECONDS,
    )
