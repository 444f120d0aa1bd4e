"""The forms of a grid's values."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from svmbench.experiment.settings.blocks import SolverSpec


def values(given: object) -> list[object]:
    return [point["nu"] for point in SolverSpec(name="nu-svm", grid={"nu": given}).grid_points()]  # type: ignore[dict-item]


@pytest.mark.parametrize(("start", "stop", "step"), [(10, 995, 1), (1, 1000, 7), (-20, 20, 5)])
def test_a_range_of_numbers_has_the_values_of_a_list_of_its_decimals(
    start: int, stop: int, step: int
) -> None:
    """Added floats would be off by their rounding: 0.01 + 3 * 0.001 is not 0.013."""
    literals = [float(f"{i / 1000:.3f}") for i in range(start, stop + 1, step)]
    given = {"start": start / 1000, "stop": stop / 1000, "step": step / 1000}
    assert values(given) == literals
    assert values({**given, "stop": (stop + 0.4) / 1000}) == literals


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"start": 0.2, "stop": 0.1, "step": 0.1}, "an empty range: stop 0.1 is below start 0.2"),
        ({"start": 0, "stop": 1, "step": 1e-9}, "a range of 1,000,000,001 values, more than the"),
        ({"start": -1e308, "stop": 1e308, "step": 5e-324}, "values, more than the 1,000 of one"),
        ({"start": 0, "stop": 1, "step": 0}, "greater than 0"),
        ({"start": 0, "stop": 1}, "Field required"),
    ],
)
def test_a_range_that_is_none_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        values(given)
