"""A cell run again is held to equality or, with other arithmetic, to tolerances."""

from __future__ import annotations

from typing import Any

import pytest

from svmbench.report.gate.compare import compare_cell

SCORES = {"accuracy_pct": {"better": "higher", "tolerance": 0.5, "relative": False}}


def cell(accuracy: float = 80.0, *, n_test: int = 100, steps: int = 1000, C: float = 1.0) -> Any:
    return {
        "block": "main", "dataset": "iris", "solver": "smo", "kernel": "rbf", "fold": 0,
        "status": "ok", "contended": False, "dimensions": {}, "params": {"C": C},
        "counters": {"steps": steps}, "metrics": {"accuracy_pct": accuracy, "n_test": n_test},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("new", "moved"),
    [
        (cell(80.0), set()),
        (cell(69.0), set()),  # within three standard errors of 4 %
        (cell(67.0), {"accuracy_pct"}),
        (cell(79.0, n_test=100), set()),
        (cell(67.0, C=8.0), set()),  # a search chose another C
        (cell(57.0, C=8.0), {"accuracy_pct"}),
        (cell(steps=4000), set()),
        (cell(steps=6000), {"steps"}),
        (cell(steps=100), {"steps"}),
    ],
)  # fmt: skip
def test_other_arithmetic(new: Any, moved: set[str]) -> None:
    changes, n_compared = compare_cell(cell(), new, SCORES, is_exact=False)
    assert {one.what for one in changes} == moved
    assert n_compared >= 1


def test_many_test_rows_allow_less() -> None:
    both = cell(n_test=100_000), cell(78.0, n_test=100_000)
    assert [one.what for one in compare_cell(*both, SCORES, is_exact=False)[0]] == ["accuracy_pct"]


def test_few_counts_decide_nothing() -> None:
    both = cell(steps=1), cell(steps=12)
    assert compare_cell(*both, SCORES, is_exact=False)[0] == []
    assert len(compare_cell(*both, SCORES, is_exact=True)[0]) == 1


def test_equal_arithmetic_is_exact() -> None:
    assert len(compare_cell(cell(), cell(80.001), SCORES, is_exact=True)[0]) == 1
