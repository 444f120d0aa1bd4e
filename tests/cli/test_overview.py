"""The overview at the end of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic_runs as runs

from svmbench.cli.overview import print_overview
from svmbench.report.output.builder import build


def test_an_overview_has_all_rows_the_printed_numbers_and_what_was_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_overview(build(runs.alsvm_run(tmp_path)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Table II: training time and accuracy"
    rows = [line for line in lines if line.startswith(runs.ALSVM_SETS)]
    # Eighteen of 24 have values: cod-rna is missing, and two more have none.
    assert len(rows) == 18
    assert any("[82; -1.5]" in row and row.startswith("a9a ") for row in rows)
    assert sum("†2/3" in row for row in rows) == 1
    said = {line.strip() for line in lines}
    assert "best train time (s): alsvm in 4 of 4 comparisons" in said
    assert "best accuracy (%): pegasos in 3 of 5 comparisons, liblinear-l1 in 2" in said
    both = "not compared in train time (s) and accuracy (%), because"
    assert f"{both} folds are missing: pegasos on a9a" in said
    disturbed = "alsvm on covtype; liblinear-l1 on covtype; pegasos on covtype"
    assert f"not compared in train time (s), because other work disturbed them: {disturbed}" in said
    assert [line[0] for line in lines if line[1:2] == " " != line[0]] == ["†", "*"]
    assert "listed in tables.md" in "".join(said)


def test_a_long_name_leaves_the_first_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = runs.planned("fit", "a9a", 100 * "s")
    record = runs.record(cell, {"train_time_s": 2.0, "accuracy_pct": 90.0})
    table = {"name": "t", "title": "t", "block": "fit", "rows": "dataset", "columns": "solver",
             "metrics": ["train_time_s", "accuracy_pct"], "published": None}  # fmt: skip
    print_overview(build(runs.write_run(tmp_path, [cell], [record], [table])))
    out = capsys.readouterr().out
    assert "train time (s)" in out
    assert "accuracy (%)" not in out


def test_wall_and_cpu_times_beside_each_other_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = runs.planned("fit", "a9a", "alsvm")
    record = runs.record(cell, {"train_time_s": 2.0, "cpu_time_s": 1.9})
    table = {"name": "t", "title": "t", "block": "fit", "rows": "dataset", "columns": "solver",
             "metrics": ["train_time_s", "cpu_time_s"], "published": None}  # fmt: skip
    print_overview(build(runs.write_run(tmp_path, [cell], [record], [table])))
    assert "train time: by the clock on the wall; CPU time: " in capsys.readouterr().out
    # Of a paper, claims compare another time than the one in the table.
    table["metrics"] = ["train_time_s"]
    print_overview(build(runs.write_run(tmp_path / "alone", [cell], [record], [table])))
    said = "train time: by the clock on the wall; 'svmbench claims' compares CPU times"
    assert said in capsys.readouterr().out


def test_what_cannot_be_compared_has_no_winner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {
        "liblinear-l1": {"peak_memory_mb": 0.0, "precision_pct": 100.0, "recall_pct": 0.02},
        "alsvm": {"peak_memory_mb": 2.0, "precision_pct": 90.0, "recall_pct": 88.0},
        "build": {"peak_memory_mb": 6.8, "precision_pct": 91.0, "recall_pct": 87.0},
    }
    cells = [runs.planned("fit", "a9a", name) for name in values]
    records = [runs.record(cell, found) for cell, found in zip(cells, values.values(), strict=True)]
    table = {"name": "t", "title": "t", "block": "fit", "rows": "dataset", "columns": "solver",
             "metrics": ["peak_memory_mb", "precision_pct", "recall_pct"],
             "published": None}  # fmt: skip
    place = runs.write_run(tmp_path, cells, records, [table])
    plan = json.loads((place / "plan.json").read_text())
    plan["config"]["programs"] = ["build"]
    (place / "plan.json").write_text(json.dumps(plan))
    print_overview(build(place))
    out = capsys.readouterr().out
    # Of two solvers in the suite's process one needs less; a program's process is another thing.
    assert "best peak memory (MiB): liblinear-l1" in out
    assert "a program's memory is that of a whole process: build on a9a" in out
    # A precision of 100 % with a recall of 0.02 % is nobody's best.
    assert "best precision" not in out
    assert "best recall" not in out
    plan["config"]["programs"] = ["build", "alsvm"]
    (place / "plan.json").write_text(json.dumps(plan))
    print_overview(build(place))
    assert "best peak memory" not in capsys.readouterr().out
