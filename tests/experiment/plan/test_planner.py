"""Plans: what can't run costs its own cells, and what is not asked for is not touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_of, svmbench, write_config

from svmbench import data
from svmbench.base.errors import ConfigError
from svmbench.experiment.config.loader import apply_profile, load_config, shipped_configs
from svmbench.experiment.plan.filters import filters_of
from svmbench.experiment.plan.filters import only as choose
from svmbench.experiment.plan.planner import make_plan, prepare_plan
from svmbench.experiment.plan.present_code import code_changes
from svmbench.experiment.protocols import protocols
from svmbench.experiment.protocols.declare import PROTOCOLS
from svmbench.report.output import kept

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
    reason = "data set 'few.csv', block 'main': class a has 2 samples, fewer than the 3 folds"
    assert reason in svmbench("run", config, "--output", tmp_path / "out").out
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert [(cell["status"], cell["reason"]) for cell in plan["cells"]] == [
        ("skipped", reason),
        ("planned", ""),
    ]
    assert reason in (tmp_path / "out" / "t.md").read_text()
    # What was just run is as new as the code; what can't run is of none.
    assert code_changes(tmp_path / "out") == {plan["cells"][1]["key"]: ""}


def test_the_name_of_a_file_changes_no_folds(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), random.choice(["a", "b"], 60)
    text = "".join(f"{p},{q},{r},{word}\n" for (p, q, r), word in zip(X, y, strict=True))
    found = []
    for name in ("one.csv", "two.csv"):
        path = tmp_path / name
        path.write_text(text)
        where = tmp_path / path.stem
        where.mkdir()
        block = {"protocol": "cv", "folds": 3, "sizes": [50]}
        config = write_config(where, ["dcd-l1"], block, datasets=[{"file": str(path)}])
        assert svmbench("run", config, "--output", where / "out").code == 0
        (cell,) = cells_of(where / "out").values()
        found.append(cell["metrics"]["accuracy_pct"])
        assert cell["dataset"] == name
    assert found[0] == found[1]


def test_a_dry_run_without_the_data_does_not_say_that_all_is_done(
    tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SVMBENCH_MIRROR", raising=False)
    config = write_config(tmp_path, ["dcd-l1"], datasets=["a9a"])
    said = svmbench("run", config, "--dry-run", "--output", tmp_path / "out").out
    assert "to fetch first, from the official addresses, by 'svmbench fetch': a9a" in said
    assert "nothing left to run" not in said


@pytest.mark.slow
def test_results_are_taken_over_from_a_kept_folder(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["dcd-l1"])
    first, kept_folder, second = (tmp_path / name for name in ("first", "kept", "second"))
    assert svmbench("run", config, "--output", first).code == 0
    kept.keep_run(first, kept_folder)
    assert not (kept_folder / "runs.jsonl").exists()
    ended = svmbench("run", config, "--output", second, "--reuse", kept_folder)
    assert "1 result taken over" in ended.out, ended.said
    assert cells_of(second) == cells_of(first)
    packed = kept_folder / "runs.jsonl.xz"
    for content in (packed.read_bytes()[:-9], packed.read_bytes() + b"more", b"none"):
        packed.write_bytes(content)
        ended = svmbench("run", config, "--output", tmp_path / "third", "--reuse", kept_folder)
        assert (ended.code, "can't read" in ended.err) == (1, True), ended.said


@pytest.mark.slow
def test_a_class_of_one_row_is_enough_where_nothing_is_split(tmp_path: Path) -> None:
    path = tmp_path / "rare.csv"
    path.write_text(
        "".join(f"{i},{i * i % 7},{10 * (1 + i % 2)}\n" for i in range(20)) + "3,4,30\n"
    )
    for block, ok in (
        ({"protocol": "fit"}, True),
        ({"protocol": "race", "repeats": 2}, True),
        ({"protocol": "holdout"}, False),
        ({"protocol": "cv", "folds": 2}, False),
    ):
        where = tmp_path / block["protocol"]
        where.mkdir()
        one = {"name": "dcd-l1"}
        config = write_config(
            where, [one], {**block, "multiclass": "one-vs-one"}, datasets=[{"file": str(path)}]
        )
        ended = svmbench("run", config, "--output", where / "out")
        assert ended.code == (0 if ok else 3), ended.said
        assert ok or "class 30 has 1 sample, fewer than the 2" in ended.out


@pytest.mark.slow
def test_a_sweep_goes_no_further_than_the_features_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{i},{i % 5},{i % 3},{i % 2}\n" for i in range(40)))
    block = {"protocol": "fit", "features": [1, 3, 4, 300]}
    config = write_config(tmp_path, ["dcd-l1"], block, datasets=[{"file": str(path)}])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert "2 ok, 2 skipped" in ended.out, ended.said
    assert "has 3 features, fewer than the 300 of the sweep" in ended.out
    assert "has 3 features, fewer than the 4 of the sweep" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-17, 8e307])
@pytest.mark.parametrize("read", ["arrays", "blocks"])
def test_a_feature_that_scaling_would_spoil_is_told(tmp_path: Path, unit: float, read: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{(2 * (i % 2) - 1) * unit},{i % 3},{i % 2}\n" for i in range(40)))
    for scaling, word in (("all-rows", "1 skipped"), ("none", "1 ok")):
        block = {"protocol": "fit", "scaling": scaling}
        datasets = [{"file": str(path), "read": read} if read == "blocks" else {"file": str(path)}]
        solver = "alsvm-batch" if read == "blocks" else "liblinear-l1"
        if unit > 1 and scaling == "none":
            continue  # no solver can square such values
        config = write_config(tmp_path, [solver], block, datasets=datasets)
        ended = svmbench("run", config, "--output", tmp_path / scaling)
        assert word in ended.out, ended.said
        assert ("feature 1 has values from" in ended.out) == (scaling != "none")


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (CV, "class a has 2 samples, fewer than the 3 folds"),
        ({**CV, "sizes": [3]}, "class a has 1 sample, fewer than the 3 folds"),
        (
            {"protocol": "holdout", "sizes": [3]},
            "class a has 1 sample, fewer than the 2 that a split needs",
        ),
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
    config = load_config(path)
    for profile in config.profiles:
        plan = make_plan(apply_profile(config, profile), path.stem, profile, mirror=mirror)
        assert any(cell.status == "planned" for cell in plan.cells)
        # Whatever can't run says why.
        assert all(cell.reason for cell in plan.cells if cell.status != "planned")


def sweep(folder: Path) -> Path:
    """Write a config that sweeps rows and a parameter: four cells of one solver."""
    block = {"protocol": "fit", "sweep": {"rows": [100, "50%"], "solver.C": [0.5, 1]}}
    return write_config(folder, ["alsvm"], block)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("rows=100", [(100, 0.5), (100, 1)]),
        ("size=100", [(100, 0.5), (100, 1)]),
        ("rows=284", [(284, 0.5), (284, 1)]),
        ("solver.C=1.0", [(100, 1), (284, 1)]),
        ("rows=100,solver.C=.5", [(100, 0.5)]),
    ],
)
def test_only_chooses_by_any_dimension(
    tmp_path: Path, only: str, expected: list[tuple[int, float]]
) -> None:
    filters = filters_of([only])
    plan = prepare_plan(str(sweep(tmp_path)), "quick", only=filters)
    dimensions = [cell.identity["dimensions"] for cell in choose(plan.cells, filters)]
    assert [(place["rows"], place["solver.C"]) for place in dimensions] == expected


def test_powers_along_a_dimension_are_whole_numbers_where_they_can_be(tmp_path: Path) -> None:
    """Rows, and parameters that count, take no 1.0."""
    powers = {
        "rows": {"base": 10, "exponents": [1, 2]},
        "solver.C": {"base": 2, "exponents": [-1, 0]},
    }
    config = write_config(tmp_path, ["alsvm"], {"protocol": "fit", "sweep": powers})
    plan = prepare_plan(str(config), "quick")
    values = [tuple(cell.identity["dimensions"].values()) for cell in plan.cells]
    assert repr(values) == "[(10, 0.5), (10, 1), (100, 0.5), (100, 1)]"


def test_the_plan_has_the_counts_of_its_profile_and_of_the_full_protocol(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "title: t\ndatasets: [breast-cancer]\ntimeout_s: 60\n"
        "solvers:\n"
        "- {name: csvc, label: ours, grid: {C: {base: 2, exponents: {start: -3, stop: 8}}}}\n"
        "blocks: [{name: b, protocol: cv, folds: 5, sweep: {solver.tol: [0.1, 0.01]}}]\n"
        "profiles:\n  paper: {max_samples: 400}\n"
        "  quick: {folds: 3, grid: {C: [1, 2]}, timeout_s: 9}\n"
    )
    counts = json.loads(prepare_plan(str(path), "quick", prepare=False).to_json())["counts"]
    shared = {"datasets": ["breast-cancer"], "sweep": {"solver.tol": 2}}
    assert counts == {
        "own": {"b": {"timeout_s": 9.0, "max_samples": 0, "folds": 3, "grids": {"ours": {"C": 2}},
                      **shared}},
        "full": {"b": {"timeout_s": 60.0, "max_samples": 400, "folds": 5,
                       "grids": {"ours": {"C": 12}}, **shared}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ("solver.C=2", "--only solver.C=2: the plan has 0.5, 1"),
        ("rows=many", "--only rows=many: the plan has 100, 284"),
        ("features=3", "--only features=3: the plan has no 'features' to choose cells by"),
        ("solver.=3", "--only solver.=3: expected solver=…"),
    ],
)
def test_only_of_what_is_not_swept_is_a_sentence(tmp_path: Path, only: str, said: str) -> None:
    ended = svmbench("run", sweep(tmp_path), "--output", tmp_path / "out", "--only", only)
    assert ended.code in {1, 2}
    assert said in ended.err
    assert not (tmp_path / "out").exists()


def test_only_of_keys_that_no_cell_matches_together_is_a_sentence() -> None:
    cells = prepare_plan("cpsp_fig1", "quick", prepare=False).cells
    message = "--only block=exact,solver=cpsp: no cell of the plan matches all of these keys"
    with pytest.raises(ConfigError, match=message):
        choose(cells, filters_of(["block=exact", "solver=cpsp"]))


def reasons_of(config: Path) -> list[str]:
    """Return why each cell of a plan can't run."""
    cells = prepare_plan(str(config), "quick").cells
    assert {cell.status for cell in cells} == {"skipped"}
    return [cell.reason for cell in cells]


def test_a_protocol_of_two_classes_refuses_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = replace(protocols()["fit"], tasks=("binary",))
    monkeypatch.setitem(PROTOCOLS, "fit", narrow)
    config = write_config(tmp_path, ["svc"], {"protocol": "fit"}, datasets=["digits"])
    assert reasons_of(config) == [
        "protocol 'fit' can't do the task multiclass, which data set 'digits' with 10 classes asks"
        " for (it can: binary)"
    ]


def test_a_race_says_before_it_runs_which_racer_cant(tmp_path: Path) -> None:
    block = {"protocol": "race", "tolerance": None, "repeats": 1}
    config = write_config(
        tmp_path, [{"class": "sklearn.svm.NuSVC"}, "alsvm"], block, datasets=["digits"]
    )
    (reason,) = reasons_of(config)
    assert reason == "alsvm separates two classes; this data set has 10"


def test_a_class_is_recorded_with_a_kernel_only_where_it_has_one(tmp_path: Path) -> None:
    classes = [
        "tree.DecisionTreeClassifier",
        "svm.NuSVC",
        "gaussian_process.GaussianProcessClassifier",
    ]
    config = write_config(tmp_path, [{"class": f"sklearn.{name}"} for name in classes])
    cells = prepare_plan(str(config), "quick").cells
    assert [cell.identity["kernel"] for cell in cells] == ["", "rbf", ""]
    race = write_config(
        tmp_path,
        [{"class": f"sklearn.{name}"} for name in classes],
        {"protocol": "race", "tolerance": None},
    )
    assert [cell.identity["kernel"] for cell in prepare_plan(str(race), "quick").cells] == ["rbf"]
