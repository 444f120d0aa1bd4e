"""The choice of a grid point from its scores."""

from __future__ import annotations

import numpy as np
import pytest

from svmbench.experiment.protocols.search import best_of

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "score", "best"),
    [
        ([[90.1, 90.1], [90.1, 90.4], [90.2, 90.2]], "accuracy", 1),  # by a tenth of a point
        ([[90.0, 90.0], [90.000001, 90.000001]], "accuracy", 1),
        ([[0.30, 0.31], [0.30, 0.29]], "log-loss", 1),  # the lower, the better
        ([[0.3, 0.1, 0.2], [0.1, 0.2, 0.3]], "accuracy", 0),  # equal but for the sum's rounding
        ([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]], "accuracy", 0),
        ([[NAN, NAN], [80.0, NAN], [70.0, 90.5]], "accuracy", 2),
    ],
)
def test_the_best_mean_is_chosen_and_the_first_among_equals(
    values: list[list[float]], score: str, best: int
) -> None:
    assert best_of(np.array(values), score) == best


def test_scores_without_a_value_are_an_error() -> None:
    with pytest.raises(ValueError, match="has no value on any split"):
        best_of(np.full((2, 2), NAN), "accuracy")
