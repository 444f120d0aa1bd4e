"""What a config sets for the fits of a search alone (``search``): csvc's stop by the gap, say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import cells_of, lines_of, svmbench, write_config

pytestmark = pytest.mark.usefixtures("workshop")

BY_GAP: dict[str, Any] = {"stop": "gap", "gap": 1e-2}
GRID: dict[str, Any] = {"C": [1.0, 16.0], "gamma": [0.25, 1.0]}
NESTED = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3, "run_folds": 1}


def run(folder: Path, solvers: list[Any], block: dict[str, Any]) -> Path:
    config = write_config(folder, solvers, block, datasets=["breast-cancer"])
    ended = svmbench("run", config, "--output", folder / "out")
    assert ended.code == 0, ended.said
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "grid", "n_fits"),
    [
        ({**NESTED, "scaling": "all-rows"}, GRID, 12),
        ({**NESTED, "scaling": "every-fold"}, GRID, 12),
        ({"protocol": "cv", "folds": 3, "scaling": "all-rows"}, {"C": [1.0, 16.0]}, 6),
    ],
    ids=["shared kernels", "one by one", "along C"],
)
def test_the_search_alone_stops_at_the_gap(
    tmp_path: Path, block: dict[str, Any], grid: dict[str, Any], n_fits: int
) -> None:
    fixed = {"tol": 1e-5}
    solvers = [
        {"name": "csvc", "params": fixed, "grid": grid},
        {"name": "csvc", "label": "by gap", "params": fixed, "grid": grid, "search": BY_GAP},
    ]
    cells = {cell["solver"]: cell for cell in cells_of(run(tmp_path, solvers, block)).values()}
    whole, short = cells["csvc"], cells["by gap"]
    assert whole["metrics"]["gap_stopped_fits"] == 0
    assert short["metrics"]["gap_stopped_fits"] == n_fits
    # The chosen point is fitted to the tolerance, without what the search had.
    assert short["stop_reason"] == whole["stop_reason"] == "converged"
    assert "stop" not in short["params"]
    if short["params"] == whole["params"]:
        assert short["metrics"]["objective"] == whole["metrics"]["objective"]
    assert short["key"] != whole["key"]


def test_points_say_how_their_fits_ended(tmp_path: Path) -> None:
    solver = {"name": "csvc", "grid": {"C": [1.0, 16.0]}, "search": BY_GAP}
    out = run(tmp_path, [solver], {"protocol": "cv", "folds": 3, "scaling": "all-rows"})
    points = [line for line in lines_of(out) if line["kind"] == "point"]
    assert [point["stop_reason"] for point in points] == ["gap"] * 6


def test_a_race_shows_what_the_stop_does_to_the_choice(tmp_path: Path) -> None:
    solvers = [
        {"name": "csvc", "grid": GRID},
        {"name": "csvc", "label": "by-gap", "grid": GRID, "search": BY_GAP},
    ]
    block = {
        "protocol": "nested-race", "scaling": "all-rows", "repeats": 1, "outer_folds": 3,
        "inner_folds": 3, "run_folds": 2, "pairs": [["by-gap", "csvc"]],
    }  # fmt: skip
    (cell,) = cells_of(run(tmp_path, solvers, block)).values()
    metrics = cell["metrics"]
    assert metrics["gap_stopped_fits:by-gap"] == 2 * 3 * 4
    assert metrics["gap_stopped_fits:csvc"] == 0
    for name in ("csvc", "by-gap"):
        assert 90.0 < metrics[f"inner_accuracy_pct:{name}"] <= 100.0
        assert 1.0 <= metrics[f"chosen_C:{name}"] <= 16.0
        assert 0.25 <= metrics[f"chosen_gamma:{name}"] <= 1.0


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        ({"name": "csvc", "grid": GRID, "search": {"stopp": "gap"}}, "has no parameter 'stopp'"),
        ({"name": "csvc", "grid": GRID, "search": {"stop": "primal"}}, "stop must be 'kkt' or"),
        ({"name": "csvc", "search": BY_GAP}, "'search' is for the fits of a search"),
        ({"name": "libsvm", "grid": GRID, "search": BY_GAP}, "has no parameter 'stop'"),
    ],
)
def test_what_no_search_can_have_is_said(tmp_path: Path, solver: dict[str, Any], said: str) -> None:
    config = write_config(tmp_path, [solver], NESTED, datasets=["breast-cancer"])
    ended = svmbench("validate", config)
    assert ended.code == 2
    assert said in ended.said
