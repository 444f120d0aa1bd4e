"""What a comparison calls worse, and what it leaves alone."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import ENVIRONMENT, planned, record, write_run

from svmbench import files
from svmbench.errors import ResultsError
from svmbench.report import compare as comparing
from svmbench.report.compare import Change, Comparison

RACE = "a|ref"


def make(folder: Path, **wrong: Any) -> Path:
    """Write a run of two folds and a race, with one thing changed."""
    values = {"accuracy": 96.0, "updates": 1000, "objective": 2.5, "ratio": 3.0, "C": 0.5} | wrong
    cells = [planned("cv", "a9a", "alsvm", fold) for fold in (0, 1)]
    race = planned("speed", "a9a", RACE, protocol="race")
    records = [
        record(
            cell,
            {"accuracy_pct": values["accuracy"], "objective": values["objective"], "cpu_time_s": 1},
            counters={"updates": values["updates"]},
            params={"C": values["C"]},
            status=values.get("status", "ok") if cell["fold"] else "ok",
        )
        for cell in cells
    ]
    records.append(
        record(race, {"ratio:a:ref": values["ratio"]}, contended=values.get("contended", False))
    )
    write_run(folder, [*cells, race], records)
    if "environment" in wrong:
        content = ENVIRONMENT | wrong["environment"]
        (folder / "environment-4be1c0de.json").write_text(json.dumps(content))
    return folder


def compared(tmp_path: Path, **wrong: Any) -> Comparison:
    base, new = make(tmp_path / "base"), make(tmp_path / "new", **wrong)
    return comparing.compare(comparing.read_side(base), comparing.read_side(new))


def test_equal_runs_have_no_changes(tmp_path: Path) -> None:
    found = compared(tmp_path)
    assert found.changes == ()
    assert found.compared == {"result": 3, "accuracy": 1, "objective": 2, "counter": 2, "time": 1}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"accuracy": 95.0}, ("worse", "accuracy")),
        ({"accuracy": 95.49}, ("worse", "accuracy")),
        ({"accuracy": 95.51}, ("different", "accuracy")),
        ({"accuracy": 97.0}, ("better", "accuracy")),
        ({"updates": 1001}, ("worse", "counter")),
        ({"updates": 999}, ("better", "counter")),
        ({"objective": 2.51}, ("worse", "objective")),
        ({"objective": 2.501}, None),
        ({"ratio": 1.5}, ("worse", "time")),
        ({"ratio": 2.1}, None),
        ({"ratio": 6.0}, ("better", "time")),
        ({"ratio": None}, ("worse", "time")),
        ({"status": "crashed"}, ("worse", "result")),
        ({"C": 1.0, "updates": 5000, "objective": 9.0}, ("different", "params")),
    ],
)
def test_one_thing_changed(
    tmp_path: Path, wrong: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    changes = compared(tmp_path, **wrong).changes
    assert {(c.verdict, c.kind) for c in changes} == ({expected} if expected else set())


def scored(folder: Path, metric: str, value: float, plan: Any = None) -> Path:
    cell = planned("cv", "a9a", "alsvm")
    write_run(folder, [cell], [record(cell, {metric: value})])
    if plan is not None:
        content = json.loads((folder / "plan.json").read_text())
        (folder / "plan.json").write_text(json.dumps({**content, "scores": {metric: plan}}))
    return folder


@pytest.mark.parametrize(
    ("metric", "plan", "values", "expected"),
    [
        ("auc_pct", None, (96.0, 95.0), "worse"),
        ("auc_pct", None, (96.0, 97.0), "better"),
        ("auc_pct", None, (96.0, 95.6), "different"),
        ("log_loss", None, (0.30, 0.33), "worse"),
        ("train_log_loss", None, (0.30, 0.33), "worse"),
        ("log_loss", None, (0.30, 0.27), "better"),
        ("n_support_vectors", None, (100.0, 111.0), "worse"),
        ("n_support_vectors", None, (100.0, 109.0), "different"),
        ("n_support_vectors", None, (100.0, 89.0), "better"),
        ("predict_time_per_row_s", None, (1e-6, 1.0), None),
        ("misses", {"better": "lower", "tolerance": 2}, (5.0, 8.0), "worse"),
        ("misses", {"better": "lower", "tolerance": 2}, (5.0, 2.0), "better"),
        ("misses", None, (5.0, 8.0), None),
        ("auc_pct", {"better": "higher", "tolerance": 2.0}, (96.0, 95.0), "different"),
    ],
)
def test_scores_are_judged_by_their_own_direction_and_tolerance(
    tmp_path: Path, metric: str, plan: Any, values: tuple[float, float], expected: str | None
) -> None:
    before, after = (
        scored(tmp_path / str(i), metric, value, plan) for i, value in enumerate(values)
    )
    comparing.write_baseline(before, tmp_path / "kept")
    for base in (before, tmp_path / "kept"):
        found = comparing.compare(comparing.read_side(base), comparing.read_side(after)).changes
        assert [(c.verdict, c.kind, c.what) for c in found] == (
            [(expected, "score", metric)] if expected else []
        )


def test_cells_apart_along_a_dimension_alone_are_compared_with_their_like(tmp_path: Path) -> None:
    for name, offset in (("base", 0.0), ("new", 5.0)):
        cells = [planned("cv", "a9a", "s", dimensions={"solver.nu": nu}) for nu in (0.1, 0.2)]
        records = [
            record(c, {"auc_pct": 90.0 - offset * (c["dimensions"]["solver.nu"] == 0.2)})
            for c in cells
        ]
        write_run(tmp_path / name, cells, records)
    sides = [comparing.read_side(tmp_path / name) for name in ("base", "new")]
    (change,) = comparing.compare(*sides).changes
    assert (change.verdict, change.where) == ("worse", "cv · a9a · nu 0.2 · s")


def test_old_and_new_names_of_a_dimension_are_the_same(tmp_path: Path) -> None:
    """A baseline kept before dimensions had a mapping stands for a run that has one."""
    old = planned("cv", "a9a", "alsvm", size=1000)
    new = planned("cv", "a9a", "alsvm", size=1000, dimensions={"rows": 1000})
    for name, cell, auc in (("old", old, 96.0), ("new", new, 90.0)):
        write_run(tmp_path / name, [cell], [record(cell, {"accuracy_pct": auc})])
    comparing.write_baseline(tmp_path / "old", tmp_path / "kept")
    path = tmp_path / "kept" / "baseline.json"
    kept = json.loads(path.read_text())
    del kept["scores"], kept["cells"][0]["dimensions"]
    kept["cells"][0] |= {"size": 1000, "n_features_kept": None}
    path.write_text(json.dumps(kept))
    (change,) = comparing.compare(
        comparing.read_side(tmp_path / "kept"), comparing.read_side(tmp_path / "new")
    ).changes
    assert (change.verdict, change.kind, change.where) == (
        "worse",
        "accuracy",
        "cv · a9a · 1,000 rows · alsvm",
    )


def test_another_cpu_compares_no_times_and_counters_within_a_tenth(tmp_path: Path) -> None:
    other = {"environment": {"cpu": "Another CPU"}}
    found = compared(tmp_path / "a", ratio=0.1, updates=1099, **other)
    assert found.changes == ()
    assert "time" not in found.compared
    assert found.notes == (
        "CPU, BLAS or libraries differ: counters may grow by 10%",
        "times not compared: measured on different CPU models",
        "2 of 2 counters grew under other arithmetic, by up to 9.9%",
    )
    assert [c.kind for c in compared(tmp_path / "b", updates=1101, **other).regressions] == [
        "counter",
        "counter",
    ]


def test_contended_times_are_not_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, ratio=0.1, contended=True)
    assert found.changes == ()
    assert found.notes == ("times not compared: speed · a9a ran beside other cells",)


def test_a_baseline_stands_for_its_run(tmp_path: Path) -> None:
    run, worse = make(tmp_path / "run"), make(tmp_path / "worse", updates=2000)
    comparing.write_baseline(run, tmp_path / "kept")
    base = comparing.read_side(tmp_path / "kept")
    assert comparing.compare(base, comparing.read_side(run)).changes == ()
    assert comparing.compare(base, comparing.read_side(worse)).regressions[0] == Change(
        "worse", "counter", "cv · a9a · alsvm · fold 0", "updates", 1000, 2000
    )


def test_no_baseline_is_made_of_a_run_with_holes(tmp_path: Path) -> None:
    run = make(tmp_path / "run", status="timeout")
    with pytest.raises(ResultsError, match=r"1 cells have no result \(cv · a9a · alsvm: timeout"):
        comparing.write_baseline(run, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_of_repeated_runs_the_median_ratio_counts(tmp_path: Path) -> None:
    base = make(tmp_path / "base")
    for number, ratio in enumerate([1.0, 2.9, 3.1]):
        make(tmp_path / "new" / str(number), ratio=ratio)
    new = comparing.read_side(tmp_path / "new")
    assert comparing.compare(comparing.read_side(base), new).changes == ()
    make(tmp_path / "new" / "2", ratio=1.1)
    new = comparing.read_side(tmp_path / "new")
    (slower,) = comparing.compare(comparing.read_side(base), new).changes
    assert (slower.what, slower.base, slower.new) == ("a vs ref", 3.0, 1.1)


def test_what_is_no_side_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="neither a run folder"):
        comparing.read_side(tmp_path)
    (tmp_path / "baseline.json").write_text("{")
    with pytest.raises(ResultsError, match=r"can't read .*baseline\.json"):
        comparing.read_side(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": ...}, "cell 1 has no 'status'"),
        ({"contended": ...}, "cell 1 has no 'contended'"),
        ({"params": ...}, "cell 1 has no mapping 'params'"),
        ({"metrics": [1]}, "cell 1 has no mapping 'metrics'"),
        ({"counters": ...}, "cell 1 has no mapping 'counters'"),
        ({"counters": {"updates": "many"}}, "'updates' of its counters is no number: 'many'"),
        ({"fold": ...}, "KeyError"),
    ],
)
def test_a_baseline_that_lacks_something_is_one_sentence(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = comparing.write_baseline(make(tmp_path / "run"), tmp_path / "kept")
    kept = json.loads(path.read_text())
    cell = {**kept["cells"][0], **change}
    kept["cells"][0] = {name: value for name, value in cell.items() if value is not ...}
    path.write_text(json.dumps(kept))
    with pytest.raises(ResultsError, match=said) as caught:
        comparing.read_side(tmp_path / "kept")
    assert str(path) in str(caught.value)


def test_a_base_without_results_is_nothing_to_compare_with(tmp_path: Path) -> None:
    cell = planned("cv", "a9a", "alsvm")
    for name, records in (("base", []), ("new", [record(cell, {"accuracy_pct": 1.0})])):
        write_run(tmp_path / name, [cell], records)
    sides = [comparing.read_side(tmp_path / name) for name in ("base", "new")]
    for new in sides:
        with pytest.raises(ResultsError, match="nothing to compare: no cell of BASE has a result"):
            comparing.compare(sides[0], new)
    assert comparing.compare(sides[1], sides[0]).compared == {"result": 1}


def test_a_baseline_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make(tmp_path / "run")
    path = comparing.write_baseline(run, tmp_path / "kept")
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", fail)
        with pytest.raises(ResultsError, match=r"can't write .*baseline\.json: No space left"):
            comparing.write_baseline(make(tmp_path / "other", updates=7), tmp_path / "kept")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    for target in (path, path / "below"):
        with pytest.raises(ResultsError, match="can't write"):
            comparing.write_baseline(run, target)


def test_strangers_are_not_compared(tmp_path: Path) -> None:
    run = comparing.read_side(make(tmp_path / "run"))
    cell = planned("other", "adult", "alsvm")
    other = comparing.read_side(write_run(tmp_path / "other", [cell], [record(cell)]))
    with pytest.raises(ResultsError, match="no cell in common"):
        comparing.compare(run, other)


# ---------------------------------------------------------------- what passed unseen


def many(folder: Path, number: int, cpu: str = "", **wrong: Any) -> Path:
    """Write a run of so many data sets with two folds each; `wrong` is what each has."""
    values = {"accuracy": (96.0, 95.0), "updates": 1000, "C": 0.5} | wrong
    cells, records = [], []
    for i in range(number):
        for fold in (0, 1):
            cells.append(planned("cv", f"set-{i:05}", "alsvm", fold))
            records.append(
                record(
                    cells[-1],
                    {"accuracy_pct": values["accuracy"][fold], "objective": 2.5},
                    counters={"updates": values["updates"]} if values["updates"] else {},
                    params={"C": values["C"]},
                )
            )
    write_run(folder, cells, records)
    if cpu:
        content = ENVIRONMENT | {"cpu": cpu}
        (folder / "environment-4be1c0de.json").write_text(json.dumps(content))
    return folder


def between(tmp_path: Path, number: int = 6, cpu: str = "", **wrong: Any) -> Comparison:
    base, new = many(tmp_path / "base", number), many(tmp_path / "new", number, cpu, **wrong)
    return comparing.compare(comparing.read_side(base), comparing.read_side(new))


def test_one_fold_that_loses_is_seen_though_the_other_makes_up_for_it(tmp_path: Path) -> None:
    found = between(tmp_path, 1, accuracy=(95.0, 96.0))
    (change,) = found.regressions
    assert (change.kind, change.where, change.base, change.new) == (
        "accuracy", "cv · set-00000 · alsvm · fold 0", 96.0, 95.0,
    )  # fmt: skip
    elsewhere = between(tmp_path / "b", 1, "Another CPU", accuracy=(95.0, 96.0))
    assert elsewhere.regressions == ()
    assert ("different", "accuracy") in {(c.verdict, c.kind) for c in elsewhere.changes}


def test_a_little_loss_everywhere_is_no_chance(tmp_path: Path) -> None:
    found = between(tmp_path, accuracy=(95.51, 94.51))
    (change,) = found.regressions
    assert change.where == "all 6 measurements together"
    assert change.base - change.new == pytest.approx(0.49)
    assert between(tmp_path / "b", 1, accuracy=(95.51, 94.51)).regressions == ()
    assert between(tmp_path / "c", accuracy=(96.4, 95.4)).regressions == ()


def test_a_little_more_work_everywhere_is_seen_under_other_arithmetic(tmp_path: Path) -> None:
    found = between(tmp_path, 6, "Another CPU", updates=1050)
    (change,) = found.regressions
    assert (change.kind, change.what) == ("counter", "updates, as a share of base")
    assert change.new == pytest.approx(1.05)
    alone = between(tmp_path / "b", 1, "Another CPU", updates=1050)
    assert alone.regressions == ()
    assert "2 of 2 counters grew under other arithmetic, by up to 5.0%" in alone.notes


def test_a_counter_that_vanishes_is_worse(tmp_path: Path) -> None:
    assert {c.kind for c in between(tmp_path, 1, updates=0).regressions} == {"counter"}


def test_other_parameters_do_not_hide_ten_times_the_work(tmp_path: Path) -> None:
    found = between(tmp_path, 1, C=2.0, updates=10_000)
    assert {(c.kind, c.new) for c in found.regressions} == {("counter", 10_000)}
    assert any("at other parameters" in note for note in found.notes)
    assert between(tmp_path / "b", 1, C=2.0, updates=1500).regressions == ()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1" * 400])
def test_a_baseline_with_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    run = make(tmp_path / "run")
    path = comparing.write_baseline(run, tmp_path / "kept")
    path.write_text(path.read_text().replace("96.0", number))
    with pytest.raises(ResultsError, match="can't read") as raised:
        comparing.read_side(tmp_path / "kept")
    assert raised.value.exit_code == 2


def test_times_without_an_environment_are_named_as_not_compared(tmp_path: Path) -> None:
    base, new = make(tmp_path / "base"), make(tmp_path / "new", ratio=1.5)
    (new / "environment-4be1c0de.json").unlink()
    found = comparing.compare(comparing.read_side(base), comparing.read_side(new))
    assert "time" not in found.compared
    assert (
        "times not compared: what a side was measured on is not known (its environment file is"
        " missing)" in found.notes
    )


@pytest.mark.parametrize("ratio", [0.0, -1.0])
def test_a_ratio_of_nothing_is_judged(tmp_path: Path, ratio: float) -> None:
    assert [c.kind for c in compared(tmp_path, ratio=ratio).regressions] == ["time"]
    base, new = make(tmp_path / "b", ratio=ratio), make(tmp_path / "n")
    found = comparing.compare(comparing.read_side(base), comparing.read_side(new))
    assert found.regressions == ()
    assert any("BASE has the ratio" in note for note in found.notes)


def test_a_comparison_takes_time_in_proportion_to_its_cells() -> None:
    def side(number: int) -> comparing.Side:
        cell = {
            "status": "ok", "params": {}, "counters": {"updates": 3}, "contended": False,
            "metrics": {"accuracy_pct": 90.0},
        }  # fmt: skip
        cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {
            ("cv", f"set-{i}", "alsvm", "linear", (), 0): [cell] for i in range(number)
        }
        scores = {"accuracy_pct": {"better": "higher", "tolerance": 0.5}}
        return comparing.Side("x", cells, frozenset("c"), frozenset("c"), scores)

    def seconds(number: int) -> float:
        one = side(number)
        began = time.process_time()
        comparing.compare(one, one)
        return time.process_time() - began

    assert seconds(100_000) < 20 * max(seconds(20_000), 0.05)
