"""Plans: what can't run costs its own cells, and what is not asked for is not touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runs import svmbench, write_config

from svmbench import data
from svmbench.experiment import prepare_plan
from svmbench.experiment.config import apply_profile, load_config, shipped_configs
from svmbench.experiment.plan import make_plan

CV = {"protocol": "cv", "folds": 3}
GRID = {"C": [0.5, 1.0]}


def write_few(folder: Path) -> dict[str, str]:
    """Write a data set with two samples of one class, and return its spec."""
    path = folder / "few.csv"
    path.write_text("1,2,a\n3,4,a\n5,6,b\n7,8,b\n2,1,b\n3,1,b\n")
    return {"file": str(path)}


def test_a_set_that_cant_bear_the_protocol_costs_its_own_cells(tmp_path: Path) -> None:
    datasets: list[Any] = [write_few(tmp_path), "breast-cancer"]
    config = write_config(tmp_path, [{"name": "alsvm", "grid": GRID}], CV, datasets=datasets)
    ended = svmbench("run", config, "--output", tmp_path / "out", "--quiet")
    assert ended.code == 0, ended.said
    assert "cells: 1 ok, 1 skipped" in ended.out
    reason = "data set 'few.csv', block 'main': class -1 has 2 samples, fewer than the 3 folds"
    assert reason in svmbench("run", config, "--output", tmp_path / "out").out
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert [(cell["status"], cell["reason"]) for cell in plan["cells"]] == [
        ("skipped", reason),
        ("planned", ""),
    ]
    assert reason in (tmp_path / "out" / "t.md").read_text()


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (CV, "class -1 has 2 samples, fewer than the 3 folds"),
        ({"protocol": "fit", "sizes": [7]}, "data set 'few.csv' has 6 rows, fewer than the size 7"),
    ],
)
def test_a_run_in_which_nothing_can_run_says_why(
    tmp_path: Path, block: dict[str, Any], reason: str
) -> None:
    config = write_config(tmp_path, ["alsvm"], block, datasets=[write_few(tmp_path)])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 3
    assert "nothing could run:" in ended.out
    assert reason in ended.out
    assert "Traceback" not in ended.said


def test_only_comes_before_data_sets_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = ["breast-cancer", "a9a", {"file": str(tmp_path / "nowhere.csv")}]
    config = str(write_config(tmp_path, ["alsvm"], datasets=datasets))
    prepared: list[str] = []
    monkeypatch.setattr(data, "status", lambda _name: "not prepared")
    monkeypatch.setattr(data, "ensure", lambda name, **_: prepared.append(name))
    plan = prepare_plan(config, "quick", only={"dataset": ["breast-cancer"]})
    assert prepared == ["breast-cancer"]
    assert [(cell.status, cell.reason) for cell in plan.cells] == [
        ("planned", ""),
        ("not run", "outside --only"),
        ("not run", "outside --only"),
    ]
    prepare_plan(config, "quick", only={"block": ["another"]})
    assert prepared == ["breast-cancer"]


def test_only_runs_what_was_asked_for_and_shows_the_rest(tmp_path: Path) -> None:
    datasets: list[Any] = ["breast-cancer", {"file": str(tmp_path / "nowhere.csv")}]
    config = write_config(tmp_path, ["alsvm"], datasets=datasets)
    out = tmp_path / "out"
    ended = svmbench("run", config, "--output", out, "--only", "dataset=breast-cancer")
    assert ended.code == 0, ended.said
    assert "cells: 1 not run, 1 ok" in ended.out
    assert "outside --only" in (out / "t.md").read_text()


def test_double_precision_counts_in_the_budget_of_shared_arrays(tmp_path: Path) -> None:
    grid = {"C": [0.5, 1.0], "gamma": [0.1, 1.0]}
    sizes = {}
    for precision in ("single", "double"):
        block = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3}
        block |= {"precision": precision}
        config = write_config(tmp_path, [{"name": "csvc", "grid": grid}], block)
        plan = prepare_plan(str(config), "quick")
        (cell, *_) = plan.cells
        assert cell.shared is not None
        sizes[precision] = cell.shared.bytes
        assert cell.spec.get("precision", "single") == precision
    assert sizes["double"] - sizes["single"] == 4 * cell.spec["n_rows"] ** 2


@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.parametrize("path", shipped_configs(), ids=lambda p: p.stem)
def test_every_shipped_config_has_something_to_run_in_every_profile(
    path: Path, mirror: str
) -> None:
    config, _ = load_config(path)
    for profile in config.profiles:
        plan = make_plan(apply_profile(config, profile), path.stem, profile, mirror=mirror)
        assert any(cell.status == "planned" for cell in plan.cells)
        # Whatever can't run says why.
        assert all(cell.reason for cell in plan.cells if cell.status != "planned")
