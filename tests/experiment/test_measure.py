"""The clock: how often a fit is repeated, and what its spread is."""

from __future__ import annotations

import pytest

from svmbench.experiment import measure


def repeats(seconds: float) -> int:
    """Return how many fits of so many seconds are made."""
    made = [seconds]
    while measure._too_few(made):
        made.append(seconds)
    return len(made)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1e-4, 50), (0.02, 5), (0.05, 3), (1.0, 3), (4.0, 2), (6.0, 1)]
)
def test_short_fits_are_repeated_and_long_ones_are_not(seconds: float, expected: int) -> None:
    assert repeats(seconds) == expected


def test_spread_is_not_moved_by_one_disturbed_repeat() -> None:
    calm = [1.0, 1.1, 1.2, 1.3, 1.4]
    timing = measure.Timing(wall=[*calm[:4], 100.0])
    assert timing.spread(calm) == pytest.approx(0.1)
    assert timing.spread(timing.wall) == pytest.approx(0.1)
    assert timing.wall_s == 1.2
    assert timing.spread([1.0]) is None
