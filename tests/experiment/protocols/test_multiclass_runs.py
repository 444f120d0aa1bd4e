"""Many classes through the whole line: nested runs on shared kernels, and races of whole runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_of, lines_of, svmbench, write_config
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from svmbench.experiment.protocols.folds import derive_seed, outer_splits

pytestmark = pytest.mark.usefixtures("workshop")

GRID: dict[str, Any] = {"C": [0.25, 4.0, 64.0], "gamma": [0.0625, 1.0]}
NESTED = {
    "protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3, "multiclass": "one-vs-one"
}  # fmt: skip
X, codes = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[codes]


@pytest.fixture
def flowers(tmp_path: Path) -> list[dict[str, str]]:
    """Return iris as a data set of the user's own, with a constant column and names as labels."""
    path = tmp_path / "flowers.csv"
    lines = [",".join([*map(str, row), "7", name]) for row, name in zip(X, NAMES, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return [{"file": str(path)}]


def run(folder: Path, datasets: Any, solvers: list[Any], block: dict[str, Any]) -> Path:
    config = write_config(folder, solvers, block, datasets=datasets)
    ended = svmbench("run", config, "--output", folder / "out")
    assert ended.code == 0, ended.said
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["outer-fold", "all-rows", "every-fold"])
def test_the_search_on_shared_kernels_and_the_plain_one_agree(
    tmp_path: Path, flowers: Any, scaling: str
) -> None:
    solvers = [{"name": "csvc", "grid": GRID, "params": {"tol": 1e-6}},
               {"name": "libsvm", "grid": GRID, "params": {"tol": 1e-6}}]  # fmt: skip
    out = run(tmp_path, flowers, solvers, {**NESTED, "scaling": scaling})
    cells = cells_of(out)
    assert len(cells) == 6
    for fold in range(3):
        ours, theirs = cells[f"csvc/{fold}"], cells[f"libsvm/{fold}"]
        assert ours["params"] == theirs["params"]
        assert ours["kernel"] == "rbf"
        for name in ("accuracy_pct", "unconverged_fits"):
            assert ours["metrics"][name] == theirs["metrics"][name]
        assert ours["metrics"]["objective"] == pytest.approx(
            theirs["metrics"]["objective"], rel=1e-5
        )
        assert ours["metrics"]["n_bound_sv"] == theirs["metrics"]["n_bound_sv"]
    shared = scaling != "every-fold"
    assert ("distances_cpu_time_s" in cells["csvc/0"]["metrics"]) == shared
    mine = {cells[f"csvc/{fold}"]["key"] for fold in range(3)}
    points = [r for r in lines_of(out) if r["kind"] == "point" and r["key"] in mine]
    assert len(points) == (3 * 2 if shared else 3 * 3 * 6)


@pytest.mark.slow
def test_the_chosen_point_scores_what_scikit_learn_says(tmp_path: Path, flowers: Any) -> None:
    out = run(
        tmp_path, flowers, [{"name": "csvc", "grid": GRID}], {**NESTED, "scaling": "all-rows"}
    )
    # A user's file has the name of its content.
    content = Path(flowers[0]["file"]).read_bytes()
    config_seed, name = 0, f"file {hashlib.sha256(content).hexdigest()[:16]}"
    splits = outer_splits(codes, 3, derive_seed(config_seed, name, "outer"))
    scaled = minmax_scale(X)
    for fold, (train, test) in enumerate(splits):
        cell = cells_of(out)[f"csvc/{fold}"]
        model = SVC(**cell["params"]).fit(scaled[train], codes[train])
        score = 100.0 * model.score(scaled[test], codes[test])
        assert cell["metrics"]["accuracy_pct"] == pytest.approx(score)
        whole = cell["metrics"]["nested_cv_cpu_time_s"]
        assert whole > 3 * cell["metrics"]["cpu_time_s"]


def test_two_class_solvers_are_skipped_without_the_word(tmp_path: Path, flowers: Any) -> None:
    block = {**NESTED, "multiclass": "skip"}
    config = write_config(tmp_path, [{"name": "csvc", "grid": GRID}], block, datasets=flowers)
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert "cells: 3 skipped" in ended.out
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["cells"][0]["reason"] == "csvc separates two classes; this data set has 3"


def test_a_class_too_small_for_the_inner_folds_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("".join(f"{i},{i % 3},{'a' if i < 4 else 'b'}\n" for i in range(30)))
    block = {**NESTED, "inner_folds": 4}
    config = write_config(
        tmp_path, [{"name": "csvc", "grid": GRID}], block, datasets=[{"file": str(path)}]
    )
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 3
    assert "data set 'few.csv', block 'main': class a has 4 samples" in ended.said
    assert "class a has 4 samples; an outer fold leaves 2 for training" in ended.said
    assert not (tmp_path / "out" / "runs.jsonl").read_text()


@pytest.mark.parametrize("scaling", ["all-rows", "outer-fold"])
def test_a_race_of_whole_runs_finds_equal_scores(
    tmp_path: Path, flowers: Any, scaling: str
) -> None:
    block = {
        "protocol": "nested-race", "outer_folds": 3, "inner_folds": 3, "run_folds": 2,
        "scaling": scaling, "multiclass": "one-vs-one", "repeats": 2,
        "pairs": [["csvc", "svc"], ["csvc", "libsvm"]],
    }  # fmt: skip
    solvers = [{"name": name, "grid": GRID} for name in ("csvc", "svc", "libsvm")]
    out = run(tmp_path, flowers, solvers, block)
    (record,) = [r for r in lines_of(out) if r["kind"] == "cell"]
    metrics = record["metrics"]
    assert metrics["outer_folds_run"] == 2
    assert metrics["unequal_scores_pct:csvc:svc"] == 0.0
    # One against one breaks tied votes otherwise than LIBSVM's own code does.
    assert metrics["unequal_scores_pct:csvc:libsvm"] < 10.0
    assert metrics["accuracy_pct:csvc"] == pytest.approx(metrics["accuracy_pct:svc"], abs=2.1)
    low, high = record["spread"]["ratio:csvc:svc"]
    assert 1.0 < low <= metrics["ratio:csvc:svc"] <= high


def test_a_data_set_may_set_a_solver_its_own_way(tmp_path: Path, flowers: Any) -> None:
    datasets = [{**flowers[0], "params": {"mine": {"tol": 0.5}}}]
    solvers = [{"name": "csvc", "label": "mine"}, {"name": "csvc", "params": {"tol": 1e-4}}]
    config = write_config(tmp_path, solvers, NESTED, datasets=datasets)
    assert svmbench("run", config, "--output", tmp_path / "out").code == 0
    cells = cells_of(tmp_path / "out")
    assert cells["mine/0"]["metrics"]["n_iter"] < cells["csvc/0"]["metrics"]["n_iter"]


def test_what_a_data_set_sets_must_be_there(tmp_path: Path, flowers: Any) -> None:
    own = {"csvd": {"tol": 0.5}, "csvc": {"toll": 0.5}}
    config = write_config(tmp_path, ["csvc"], NESTED, datasets=[{**flowers[0], "params": own}])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 2
    assert "datasets[0]: no solver is called 'csvd' here; did you mean 'csvc'?" in ended.said
    assert "datasets[0]: solver 'csvc' has no parameter 'toll'; did you mean 'tol'?" in ended.said
