"""Runs whose rows are read in blocks: same results, bounded memory, and what can't be done."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_in_process, cells_of, svmbench, write_config

from svmbench import data
from svmbench.data import written
from svmbench.errors import DataError
from svmbench.experiment.models import Config
from svmbench.experiment.plan import make_plan

FIT = {"protocol": "fit", "scaling": "none"}


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
    return {cell.shown["solver"]: (cell.status, cell.reason) for cell in cells}


@pytest.mark.parametrize("form", list(written.ENDINGS))
def test_a_file_in_blocks_gives_what_its_arrays_give(tmp_path: Path, form: str) -> None:
    X, y = rows()
    path = tmp_path / f"rows{written.ENDINGS[form]}"
    written.write_rows(path, X, y)
    table = {"label_column": "last"} if form == "csv" else {}
    solver = [{"name": "alsvm-batch", "params": {"C": 4.0}}]
    (found,) = cells_in_process(
        solver, FIT, datasets=[{"file": str(path), "read": "blocks", **table}]
    )
    text = tmp_path / "rows.txt"
    written.write_rows(text, X, y)
    (whole,) = cells_in_process(solver, FIT, datasets=[{"file": str(text), "read": "arrays"}])
    for name in ("objective", "train_accuracy_pct", "n_train"):
        assert found["metrics"][name] == pytest.approx(whole["metrics"][name], rel=1e-10)
    assert found["counters"] == whole["counters"]
    assert "read_rate_pct" not in found["metrics"]


@pytest.mark.parametrize("form", list(written.ENDINGS))
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


def test_other_scores_than_accuracy_have_no_value_and_say_why() -> None:
    told = {"format": "libsvm", "repeats": 1}
    (found,) = cells_in_process(
        [{"name": "alsvm-batch"}],
        {**FIT, "scores": ["balanced-accuracy"]},
        datasets=[{"name": "synthetic-linear", "written": told}],
    )
    (reason,) = found["undefined"].values()
    assert reason == "rows in blocks are scored by their accuracy alone"


def test_what_needs_arrays_is_skipped_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    written.write_rows(path, *rows())
    datasets = [{"file": str(path), "read": "blocks"}]
    cells = planned(FIT, datasets)
    assert cells["alsvm-batch"] == ("planned", "")
    said = "alsvm needs arrays; the rows of this data set are read in blocks"
    assert cells["alsvm"] == ("skipped", said)
    for block, said in (
        ({**FIT, "scaling": "all-rows"}, "can't be scaled (scaling: all-rows)"),
        ({**FIT, "sizes": [100]}, "are taken whole"),
        ({**FIT, "max_samples": 100}, "are taken whole"),
        ({"protocol": "holdout", "scaling": "none"}, "protocol 'holdout' needs arrays"),
    ):
        status, reason = planned(block, datasets)["alsvm-batch"]
        assert status == "skipped"
        assert said in reason


def test_a_file_is_read_in_blocks_where_its_arrays_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    written.write_rows(path, *rows(), copies=100)
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
    written.write_rows(path, *rows())
    good = path.read_text()
    datasets = [{"file": str(path), "read": "blocks"}]
    for text, said in (
        (good + "1 1:x\n", "line 401, column 3: the value 'x' is not a finite number"),
        ("1 1:1\n1 1:2\n", "has one class only: 1.0"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=said):
            planned(FIT, datasets)
    path.write_text(good.replace("-1 ", "0 ", 10))
    assert "this data set has 3" in planned(FIT, datasets)["alsvm-batch"][1]


def test_settings_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    for dataset, said in (
        ({"name": "synthetic-linear", "read": "blocks"}, "from a file that it is 'written' to"),
        ({"file": "a.txt", "written": {"format": "csv"}}, "is one already"),
        ({"name": "synthetic-linear", "written": {"format": "tape"}}, "format"),
        (
            {"file": "a.txt", "read": "blocks", "novelty": {"ratio": 0.1}},
            "rows in blocks are taken",
        ),
    ):
        path = write_config(tmp_path, ["alsvm-batch"], FIT, datasets=[dataset])
        ended = svmbench("validate", path)
        assert ended.code == 2
        assert said in ended.err


@pytest.mark.slow
def test_a_run_reads_a_file_in_less_memory_than_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    written.write_rows(path, *rows(2000, 100), copies=100)
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
