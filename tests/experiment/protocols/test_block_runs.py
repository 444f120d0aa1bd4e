"""Runs whose rows are read in blocks: same results, bounded memory, and what can't be done."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_in_process, cells_of, svmbench, write_config

from svmbench import data
from svmbench.base.errors import DataError
from svmbench.data import export
from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.protocols import fit_in_blocks, function_of
from svmbench.experiment.protocols.row_blocks import open_rows
from svmbench.experiment.protocols.task import Task

FIT = {"protocol": "fit", "scaling": "none"}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of some kilobytes come in several blocks."""
    monkeypatch.setattr("svmbench.data.blocks.TEXT_PIECE_BYTES", 4096)


def rows(n: int = 400, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    X = np.round(draw.normal(size=(n, d)), 4)
    return X, np.where(X @ np.arange(1, d + 1) + draw.normal(size=n) > 0, 1, -1)


def planned(block: dict[str, Any], datasets: list[Any], **top: Any) -> dict[str, tuple[str, str]]:
    """Return the status of each solver's cell, and why it is not planned."""
    config = Config.model_validate(
        {"title": "t", "solvers": ["alsvm-batch", "alsvm"], "datasets": datasets, **top}
        | {"solvers": [{"name": "alsvm-batch"}, {"name": "alsvm"}]}
        | {"blocks": [{"name": "main", **block}]}
    )
    cells = make_plan(config, "t", "paper").cells
    return {cell.identity["solver"]: (cell.status, cell.reason) for cell in cells}


@pytest.mark.parametrize("form", list(export.EXPORT_ENDINGS))
def test_a_file_in_blocks_gives_what_its_arrays_give(tmp_path: Path, form: str) -> None:
    X, y = rows()
    path = tmp_path / f"rows{export.EXPORT_ENDINGS[form]}"
    export.export_rows(path, X, y)
    table = {"label_column": "last"} if form == "csv" else {}
    solver = [{"name": "alsvm-batch", "params": {"C": 4.0}}]
    (found,) = cells_in_process(
        solver, FIT, datasets=[{"file": str(path), "read": "blocks", **table}]
    )
    text = tmp_path / "rows.txt"
    export.export_rows(text, X, y)
    (whole,) = cells_in_process(solver, FIT, datasets=[{"file": str(text), "read": "arrays"}])
    for name in ("objective", "train_accuracy_pct", "n_train"):
        assert found["metrics"][name] == pytest.approx(whole["metrics"][name], rel=1e-10)
    assert found["counters"] == whole["counters"]
    assert "read_rate_pct" not in found["metrics"]


#: What is the same where a protocol reads blocks, by protocol: all but times and memory.
SEARCHES: dict[str, dict[str, Any]] = {
    "cv": {"folds": 3},
    "holdout": {"validation": 0.3, "test": 0.25},
    "nested-cv": {"outer_folds": 3, "inner_folds": 2},
}
SCORES = ["accuracy", "auc", "balanced-accuracy", "f1"]


def told_by(cell: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in cell["metrics"].items()
        if not name.endswith(("_s", "_mb")) and name != "n_iter"
    }


def pair_of(tmp_path: Path, solver: dict[str, Any], block: dict[str, Any]) -> Iterator[Any]:
    """Yield the outcomes of each cell, with what it streamed: of blocks, and of arrays."""
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows())
    found = [
        streamed_in_process(
            [solver],
            {"scaling": "none", "scores": SCORES, **block},
            datasets=[{"file": str(path), "read": read}],
        )
        for read in ("blocks", "arrays")
    ]
    yield from zip(*found, strict=True)


def streamed_in_process(
    solvers: list[Any], block: dict[str, Any], done: Any = None, **top: Any
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Run the cells of a config of one block; return each outcome with its points by name."""
    config = Config.model_validate(
        {"title": "t", "solvers": solvers, "blocks": [{"name": "main", **block}], **top}
    )
    found = []
    for cell in make_plan(config, "t", "paper").cells:
        points: dict[str, Any] = {}
        task = Task(cell.spec, done=done or {}, emit=points.__setitem__)
        found.append((function_of(cell.spec)(task), points))
    return found


def same_numbers(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value == pytest.approx(other[name], rel=1e-10, abs=1e-10), name


@pytest.mark.parametrize("protocol", list(SEARCHES))
@pytest.mark.parametrize(
    "grid",
    [{"C": [1e-5, 1e-3, 0.1]}, {"intercept_scaling": [1.0, 0.01], "C": [1e-4, 0.1]}, {"C": [0.1]}],
)
def test_a_search_in_blocks_finds_what_arrays_give(
    tmp_path: Path, small_blocks: None, protocol: str, grid: dict[str, Any]
) -> None:
    block = {"protocol": protocol, **SEARCHES[protocol], "select_by": "auc"}
    pairs = list(pair_of(tmp_path, {"name": "alsvm-batch", "grid": grid}, block))
    assert len(pairs) == (3 if protocol == "nested-cv" else 1)
    for (found, points), (whole, known) in pairs:
        same_numbers(told_by(found), told_by(whole))
        same_numbers(*({k: v for k, v in each["spread"].items() if "_s" not in k}
                       for each in (found, whole)))  # fmt: skip
        assert found["params"] == whole["params"]
        assert found["undefined"] == whole["undefined"]
        assert {*whole["metrics"]} - {*found["metrics"]} == set()
        assert points.keys() == known.keys()
        for name, point in points.items():
            assert point["params"] == known[name]["params"]
            assert point["auc_pct"] == pytest.approx(known[name]["auc_pct"], rel=1e-10)


def test_a_search_by_accuracy_keeps_no_decision_values(tmp_path: Path, small_blocks: None) -> None:
    block = {"protocol": "cv", "folds": 3}
    solver = {"name": "alsvm-batch", "grid": {"C": [1e-6, 1e-5, 0.1]}}
    ((found, points), (whole, known)), *_ = pair_of(tmp_path, solver, block)
    assert found["params"] == whole["params"]
    assert {n: p["accuracy_pct"] for n, p in points.items()} == pytest.approx(
        {n: p["accuracy_pct"] for n, p in known.items()}
    )


def test_a_search_in_blocks_reads_the_file_once_for_all_c_and_folds(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    once = data.FileBlocks.__iter__
    monkeypatch.setattr(data.FileBlocks, "__iter__", lambda self: (passes.append(1), once(self))[1])
    solver = {"name": "alsvm-batch", "grid": {"C": [0.01, 0.1, 1.0, 10.0]}}
    for block, expected in (
        ({"protocol": "path"}, 1 + 2),  # the labels; the sums, the scores
        ({"protocol": "cv", "folds": 4}, 1 + 2 + 4 + 1),  # … and each fold's own fit, the scores
        ({"protocol": "holdout"}, 1 + 2 + 1 + 1),
    ):
        folder = tmp_path / block["protocol"]
        folder.mkdir()
        next(pair_of(folder, solver, block))
        assert len(passes) == expected, block
        passes.clear()


@pytest.mark.parametrize("over", ["C", "intercept_scaling"])
def test_a_path_in_blocks_goes_through_the_points_of_arrays(
    tmp_path: Path, small_blocks: None, over: str
) -> None:
    solver = {"name": "alsvm-batch", "grid": {over: [0.01, 0.1, 1.0]}}
    ((found, points), (whole, known)), *_ = pair_of(tmp_path, solver, {"protocol": "path"})
    same_numbers(told_by(found), told_by(whole))
    assert list(points) == list(known)
    for name, point in points.items():
        assert point["dimensions"] == known[name]["dimensions"]
        assert point["undefined"] == known[name]["undefined"] == {}
        same_numbers(told_by(point), told_by(known[name]))
    assert sum(point["counters"]["passes"] for point in points.values()) == (
        1 if over == "C" else 3
    )


def test_a_path_in_blocks_goes_on_at_the_first_missing_point(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows())
    solver = {"name": "alsvm-batch", "grid": {"C": [0.01, 0.1, 1.0]}}
    block, datasets = {"protocol": "path"}, [{"file": str(path), "read": "blocks"}]
    ((_, points),) = streamed_in_process([solver], block, datasets=datasets)
    done = {"C=0.01": points["C=0.01"]}
    ((found, rest),) = streamed_in_process([solver], block, done, datasets=datasets)
    assert list(rest) == ["C=0.1", "C=1.0"]
    assert found["metrics"]["n_points"] == 3
    assert found["metrics"]["train_time_s"] > points["C=0.01"]["metrics"]["train_time_s"]
    same_numbers(told_by(rest["C=1.0"]), told_by(points["C=1.0"]))


@pytest.mark.parametrize(
    "name", ["synthetic-linear", "breast-cancer", "synthetic-sparse-50k-300[:900]"]
)
@pytest.mark.parametrize("block", [{"protocol": "path"}, {"protocol": "fit"}, {"protocol": "cv"}])
def test_a_registered_set_is_read_in_blocks_of_its_arrays(
    small_blocks: None, name: str, block: dict[str, Any]
) -> None:
    solver = {"name": "alsvm-batch", "params": {"C": 0.01}}
    if block["protocol"] != "fit":
        solver["grid"] = {"C": [1e-4, 0.01]}
    (found, points), (whole, known) = (
        streamed_in_process(
            [solver], {"scaling": "none", **block}, datasets=[{"name": name, "read": read}]
        )[0]
        for read in ("blocks", "arrays")
    )
    same_numbers(told_by(found), told_by(whole))
    assert points.keys() == known.keys()


@pytest.mark.mirror
@pytest.mark.parametrize("name", ["svmguide1", "a1a"])
@pytest.mark.parametrize("protocol", ["path", "fit", "holdout"])
def test_a_test_part_is_read_in_blocks_too(
    small_blocks: None, mirror: str, name: str, protocol: str
) -> None:
    solver: dict[str, Any] = {"name": "alsvm-batch", "params": {"C": 0.01}}
    if protocol != "fit":
        solver["grid"] = {"C": [1e-4, 0.01]}
    found, whole = (
        streamed_in_process(
            [solver],
            {"protocol": protocol, "scaling": "none", "scores": SCORES},
            datasets=[{"name": name, "read": read}],
        )[0]
        for read in ("blocks", "arrays")
    )
    same_numbers(told_by(found[0]), told_by(whole[0]))
    assert found[1].keys() == whole[1].keys()
    for name, point in found[1].items():
        score = point["metrics"] if protocol == "path" else point
        known = whole[1][name]["metrics"] if protocol == "path" else whole[1][name]
        assert score["accuracy_pct"] == pytest.approx(known["accuracy_pct"])


def test_a_registered_set_whose_arrays_do_not_fit_is_read_in_blocks() -> None:
    datasets = ["synthetic-linear"]  # 5,000 x 20 numbers
    size = 5000 * 20 * 8 / 2**30
    for memory_gb, skipped in ((1.01 * size, False), (0.99 * size, True)):
        cells = planned(FIT, datasets, memory_gb=memory_gb)
        assert cells["alsvm-batch"][0] == "planned"
        assert (cells["alsvm"][0] == "skipped") == skipped
    # A part of the rows does fit, and so it is where arrays are asked for.
    for block in ({**FIT, "max_samples": 100}, {**FIT, "sizes": [100]}, {**FIT, "features": [2]}):
        assert planned(block, datasets, memory_gb=0.5 * size)["alsvm"][0] == "planned"
    told = [{"name": "synthetic-linear", "read": "arrays"}]
    assert planned(FIT, told, memory_gb=0.5 * size)["alsvm"][0] == "planned"


def test_facts_of_a_file_in_blocks(tmp_path: Path, small_blocks: None) -> None:
    path = tmp_path / "rows.txt"
    X, y = rows()
    X[:, 2] = 0.0
    export.export_rows(path, X, y)
    found, whole = (
        cells_in_process([], {"protocol": "facts"}, datasets=[{"file": str(path), "read": read}])[0]
        for read in ("blocks", "arrays")
    )
    assert found == whole
    assert found["metrics"]["density_pct"] == pytest.approx(80.0)


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows())
    spec = {"dataset": {"name": "rows", "file": str(path), "label_column": "", "read": "blocks"}}
    known, _ = open_rows(spec)
    good = path.read_text()
    for text in (good + good, good[: good.index("\n", len(good) // 2) + 1]):
        path.write_text(text)
        with pytest.raises(DataError, match="rows has changed while the run was reading it"):
            list(known)


@pytest.mark.parametrize("form", list(export.EXPORT_ENDINGS))
def test_a_registered_set_is_written_and_read_in_turn(form: str) -> None:
    told = {"format": form, "copies": 2, "repeats": 3}
    (found,) = cells_in_process(
        [{"name": "alsvm-batch"}], FIT, datasets=[{"name": "synthetic-linear", "written": told}]
    )
    metrics = found["metrics"]
    assert metrics["n_train"] == 10_000
    assert metrics["read_cpu_time_s"] > 0
    assert 0 < metrics["read_rate_pct"] < 200
    assert metrics["arrays_rate_pct"] > 0
    assert metrics["train_accuracy_pct"] > 90
    assert {"read_rate_pct", "arrays_rate_pct", "cpu_time_s"} <= set(found["spread"])


def test_a_fit_in_blocks_has_every_score_but_those_that_ask_for_the_rows(
    tmp_path: Path, small_blocks: None
) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows())
    wanted = [*SCORES, "log-loss", "predict-time"]
    found, whole = (
        cells_in_process(
            [{"name": "alsvm-batch", "params": {"C": 0.001}}],
            {**FIT, "scores": wanted},
            datasets=[{"file": str(path), "read": read}],
        )[0]
        for read in ("blocks", "arrays")
    )
    for name in ("accuracy_pct", "auc_pct", "balanced_accuracy_pct", "f1_pct"):
        assert found["metrics"][f"train_{name}"] == pytest.approx(whole["metrics"][f"train_{name}"])
    assert found["undefined"] == {
        "train_log_loss": "calibration needs the training rows with their labels",
        "train_predict_time_per_row_s": "the rows are not in memory",
    }


def test_a_set_is_written_for_what_measures_the_reading_alone() -> None:
    datasets = [{"name": "synthetic-linear", "written": {"format": "libsvm"}}]
    assert planned(FIT, datasets)["alsvm-batch"][0] == "planned"
    status, reason = planned({"protocol": "cv"}, datasets)["alsvm-batch"]
    assert status == "skipped"
    assert "which protocol 'cv' does not measure" in reason


def test_what_needs_arrays_is_skipped_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows())
    datasets = [{"file": str(path), "read": "blocks"}]
    cells = planned(FIT, datasets)
    assert cells["alsvm-batch"] == ("planned", "")
    said = "alsvm needs arrays; the rows of this data set are read in blocks"
    assert cells["alsvm"] == ("skipped", said)
    for block, said in (
        ({**FIT, "scaling": "all-rows"}, "can't be scaled (scaling: all-rows)"),
        ({**FIT, "sizes": [100]}, "are all used"),
        ({**FIT, "max_samples": 100}, "are all used"),
        ({"protocol": "race", "scaling": "none"}, "protocol 'race' needs arrays"),
        ({**FIT, "plane": True}, "are not kept, as 'plane' asks"),
    ):
        cells = planned(block, datasets)
        status, reason = next(cells[name] for name in cells if name.startswith("alsvm-batch"))
        assert status == "skipped"
        assert said in reason


def test_a_file_is_read_in_blocks_where_its_arrays_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows(), copies=100)
    size = path.stat().st_size / 2**30
    for memory_gb, skipped in ((2.1 * size, False), (1.9 * size, True)):
        assert data.does_not_fit(path, memory_gb) == skipped
    assert not data.does_not_fit(tmp_path / "none.txt", 1e-9)
    datasets = [{"file": str(path)}]
    assert planned(FIT, datasets, memory_gb=2.1 * size)["alsvm"][0] == "planned"
    assert planned(FIT, datasets, memory_gb=1.9 * size)["alsvm"][0] == "skipped"
    told = [{"file": str(path), "read": "arrays"}]
    assert planned(FIT, told, memory_gb=1.9 * size)["alsvm"][0] == "planned"


def test_a_bad_file_is_told_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows())
    good = path.read_text()
    datasets = [{"file": str(path), "read": "blocks"}]
    for text, said in (
        (good + "1 1:x\n", "line 401, column 3: the value 'x' is not a finite number"),
        ("1 1:1\n1 1:2\n", "has one class only: 1"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=said):
            planned(FIT, datasets)
    path.write_text(good.replace("-1 ", "0 ", 10))
    assert "this data set has 3" in planned(FIT, datasets)["alsvm-batch"][1]


def test_settings_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    for dataset, said in (
        ({"file": "a.txt", "written": {"format": "csv"}}, "leave it out if 'file' is given"),
        ({"name": "synthetic-linear", "written": {"format": "tape"}}, "format"),
        (
            {"file": "a.txt", "read": "blocks", "novelty": {"ratio": 0.1}},
            "can't be used with rows in blocks",
        ),
    ):
        path = write_config(tmp_path, ["alsvm-batch"], FIT, datasets=[dataset])
        ended = svmbench("validate", path)
        assert ended.code == 2
        assert said in ended.err


def test_dense_blocks_become_one_array_without_a_second_copy() -> None:
    X, y = rows(20_000, 20)
    blocks = (
        (X[start : start + 500].copy(), y[start : start + 500]) for start in range(0, 20_000, 500)
    )
    tracemalloc.start()
    try:
        whole, labels = fit_in_blocks._as_arrays(blocks, 20_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * X.nbytes
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.slow
def test_a_run_reads_a_file_in_less_memory_than_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    export.export_rows(path, *rows(2000, 100), copies=100)
    assert path.stat().st_size > 150 << 20
    config = write_config(
        tmp_path, ["alsvm-batch", "alsvm"], FIT, datasets=[{"file": str(path)}], memory_gb=0.125
    )
    ended = svmbench("run", config, "--profile", "quick", "--output", tmp_path / "out")
    assert ended.code == 0, ended.err
    cells = cells_of(tmp_path / "out")
    assert cells["alsvm-batch"]["status"] == "ok"
    assert cells["alsvm-batch"]["metrics"]["n_train"] == 200_000
    assert cells["alsvm-batch"]["metrics"]["peak_memory_mb"] < 128
