"""What a comparison calls worse, and what it leaves alone."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from runs import svmbench
from script_loading import load_script
from synthetic_runs import ENVIRONMENT, planned, record, write_run

from svmbench.base import files
from svmbench.base.errors import ResultsError
from svmbench.report.gate import compare as comparing
from svmbench.report.gate.changes import Change, Comparison
from svmbench.report.gate.sides import Side, SideRun, read_side, write_baseline

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
    return comparing.compare_folders(read_side(base), read_side(new))


def test_equal_runs_have_no_changes(tmp_path: Path) -> None:
    found = compared(tmp_path)
    assert found.changes == ()
    assert found.compared == {"result": 3, "accuracy": 1, "objective": 2, "counter": 2, "time": 2}
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
        ({"objective": 2.5 * (1 + 2e-9)}, ("worse", "objective")),
        ({"objective": 2.5 * (1 + 5e-10)}, None),
        ({"objective": 2.5 * (1 - 2e-9)}, ("better", "objective")),
        ({"objective": 2.0}, ("worse", "objective")),
        ({"objective": -2.5}, ("worse", "objective")),
        ({"updates": 0}, ("worse", "counter")),
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
    write_baseline(before, tmp_path / "kept")
    for base in (before, tmp_path / "kept"):
        found = comparing.compare_folders(read_side(base), read_side(after)).changes
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
    sides = [read_side(tmp_path / name) for name in ("base", "new")]
    (change,) = comparing.compare_folders(*sides).changes
    assert (change.verdict, change.where) == ("worse", "cv · a9a · nu 0.2 · s")


def test_old_and_new_names_of_a_dimension_are_the_same(tmp_path: Path) -> None:
    """A baseline kept before dimensions had a mapping stands for a run that has one."""
    old = planned("cv", "a9a", "alsvm", size=1000)
    new = planned("cv", "a9a", "alsvm", size=1000, dimensions={"rows": 1000})
    for name, cell, auc in (("old", old, 96.0), ("new", new, 90.0)):
        write_run(tmp_path / name, [cell], [record(cell, {"accuracy_pct": auc})])
    write_baseline(tmp_path / "old", tmp_path / "kept")
    path = tmp_path / "kept" / "baseline.json"
    kept = json.loads(path.read_text())
    del kept["scores"], kept["cells"][0]["dimensions"]
    kept["cells"][0] |= {"size": 1000, "n_features_kept": None}
    path.write_text(json.dumps(kept))
    (change,) = comparing.compare_folders(
        read_side(tmp_path / "kept"), read_side(tmp_path / "new")
    ).changes
    assert (change.verdict, change.kind, change.where) == (
        "worse",
        "accuracy",
        "cv · a9a · 1,000 rows · alsvm",
    )


def test_another_cpu_compares_no_times_and_all_else_exactly(tmp_path: Path) -> None:
    other = {"environment": {"cpu": "Another CPU"}}
    found = compared(tmp_path / "a", ratio=0.1, **other)
    assert found.changes == ()
    assert "time" not in found.compared
    assert found.notes == ("times not compared: measured on different CPU models",)
    (counter, _) = compared(tmp_path / "b", updates=1001, **other).regressions
    assert counter.kind == "counter"


OTHER_CORE = {"blas": ["openblas 0.3.30 SkylakeX"]}


@pytest.mark.parametrize("moved", [OTHER_CORE, {"packages": {"numpy": "9", "scipy": "1.17.1"}}])
def test_other_arithmetic_is_named_and_has_a_tolerance(
    tmp_path: Path, moved: dict[str, Any]
) -> None:
    found = compared(tmp_path / "a", updates=1900, objective=2.52, environment=moved)
    assert found.changes == ()
    assert found.compared["time"] == 2  # the CPU is the same
    first, second = found.notes
    assert first.endswith(
        "differ: the counters of a measurement may grow by 100%, objectives by 1%"
    )
    assert ("BLAS (openblas 0.3.30 Haswell" in first) == ("blas" in moved)
    assert ("numpy (2.4.6 and 9)" in first) == ("packages" in moved)
    assert second == "1 of 1 counters grew under other arithmetic, by up to 90.0%"
    for worse, kind in (({"updates": 2001}, "counter"), ({"objective": 2.53}, "objective")):
        found = compared(tmp_path / kind, environment=moved, **worse)
        assert {c.kind for c in found.regressions} == {kind}


@pytest.mark.parametrize("ratio", [3.0, 1.5])
def test_a_slowdown_beside_other_cells_is_one(tmp_path: Path, ratio: float) -> None:
    found = compared(tmp_path, ratio=ratio, contended=True)
    assert [c.kind for c in found.regressions] == ["time"] * (ratio < 2.0)
    assert found.notes == ("speed · a9a ran beside other cells: its ratios are less certain",)


def test_a_baseline_stands_for_its_run(tmp_path: Path) -> None:
    run, worse = make(tmp_path / "run"), make(tmp_path / "worse", updates=2000)
    write_baseline(run, tmp_path / "kept")
    base = read_side(tmp_path / "kept")
    assert comparing.compare_folders(base, read_side(run)).changes == ()
    assert comparing.compare_folders(base, read_side(worse)).regressions[0] == Change(
        "worse", "counter", "cv · a9a · alsvm · fold 1", "updates", 1000, 2000
    )


def test_no_baseline_is_made_of_a_run_with_holes(tmp_path: Path) -> None:
    run = make(tmp_path / "run", status="timeout")
    with pytest.raises(ResultsError, match=r"1 cells have no result \(cv · a9a · alsvm: timeout"):
        write_baseline(run, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_of_repeated_runs_the_median_ratio_counts(tmp_path: Path) -> None:
    base = make(tmp_path / "base")
    for number, ratio in enumerate([1.0, 2.9, 3.1]):
        make(tmp_path / "new" / str(number), ratio=ratio)
    new = read_side(tmp_path / "new")
    assert comparing.compare_folders(read_side(base), new).changes == ()
    make(tmp_path / "new" / "2", ratio=1.1)
    new = read_side(tmp_path / "new")
    (slower,) = comparing.compare_folders(read_side(base), new).changes
    assert (slower.what, slower.base, slower.new) == ("a vs ref", 3.0, 1.1)


def test_what_is_no_side_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="neither a run folder"):
        read_side(tmp_path)
    (tmp_path / "baseline.json").write_text("{")
    with pytest.raises(ResultsError, match=r"can't read .*baseline\.json"):
        read_side(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": ...}, "cell 1 has no 'status'"),
        ({"contended": ...}, "cell 1 has no 'contended'"),
        ({"params": ...}, "cell 1 has no mapping 'params'"),
        ({"metrics": [1]}, "cell 1 has no mapping 'metrics'"),
        ({"counters": ...}, "cell 1 has no mapping 'counters'"),
        ({"counters": {"updates": "many"}}, "'updates' of its counters is not a number: 'many'"),
        ({"fold": ...}, "KeyError"),
    ],
)
def test_a_baseline_that_lacks_something_is_one_sentence(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = write_baseline(make(tmp_path / "run"), tmp_path / "kept")
    kept = json.loads(path.read_text())
    cell = {**kept["cells"][0], **change}
    kept["cells"][0] = {name: value for name, value in cell.items() if value is not ...}
    path.write_text(json.dumps(kept))
    with pytest.raises(ResultsError, match=said) as caught:
        read_side(tmp_path / "kept")
    assert str(path) in str(caught.value)


def test_a_base_without_results_is_nothing_to_compare_with(tmp_path: Path) -> None:
    cell = planned("cv", "a9a", "alsvm")
    for name, records in (("base", []), ("new", [record(cell, {"accuracy_pct": 1.0})])):
        write_run(tmp_path / name, [cell], records)
    sides = [read_side(tmp_path / name) for name in ("base", "new")]
    for new in sides:
        with pytest.raises(ResultsError, match="nothing to compare: no cell of BASE has a result"):
            comparing.compare_folders(sides[0], new)
    assert comparing.compare_folders(sides[1], sides[0]).compared == {"result": 1}


def test_a_baseline_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make(tmp_path / "run")
    path = write_baseline(run, tmp_path / "kept")
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", fail)
        with pytest.raises(ResultsError, match=r"can't write .*baseline\.json: No space left"):
            write_baseline(make(tmp_path / "other", updates=7), tmp_path / "kept")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    for target in (path, path / "below"):
        with pytest.raises(ResultsError, match="can't write"):
            write_baseline(run, target)


def test_strangers_are_not_compared(tmp_path: Path) -> None:
    run = read_side(make(tmp_path / "run"))
    cell = planned("other", "adult", "alsvm")
    other = read_side(write_run(tmp_path / "other", [cell], [record(cell)]))
    with pytest.raises(ResultsError, match="no cell in common"):
        comparing.compare_folders(run, other)


# ---------------------------------------------------------------- what passed unseen


def many(
    folder: Path, number: int, environment: dict[str, Any] | None = None, **wrong: Any
) -> Path:
    """Write a run of so many data sets with two folds each; `wrong` is what each has."""
    values = {"accuracy": (96.0, 95.0), "updates": 1000, "C": 0.5, "objective": 2.5} | wrong
    cells, records = [], []
    for i in range(number):
        for fold in (0, 1):
            cells.append(planned("cv", f"set-{i:05}", "alsvm", fold))
            records.append(
                record(
                    cells[-1],
                    {
                        "accuracy_pct": values["accuracy"][fold],
                        "objective": values["objective"],
                    },
                    counters={"updates": values["updates"]} if values["updates"] else {},
                    params={"C": values["C"]},
                )
            )
    write_run(folder, cells, records)
    if environment:
        content = ENVIRONMENT | environment
        (folder / "environment-4be1c0de.json").write_text(json.dumps(content))
    return folder


def between(
    tmp_path: Path, number: int = 6, environment: dict[str, Any] | None = None, **wrong: Any
) -> Comparison:
    base = many(tmp_path / "base", number)
    new = many(tmp_path / "new", number, environment, **wrong)
    return comparing.compare_folders(read_side(base), read_side(new))


def test_one_fold_that_loses_is_seen_though_the_other_makes_up_for_it(tmp_path: Path) -> None:
    found = between(tmp_path, 1, accuracy=(95.0, 96.0))
    (change,) = found.regressions
    assert (change.kind, change.where, change.base, change.new) == (
        "accuracy", "cv · set-00000 · alsvm · fold 1", 96.0, 95.0,
    )  # fmt: skip
    elsewhere = between(tmp_path / "b", 1, OTHER_CORE, accuracy=(94.5, 96.5))
    assert elsewhere.regressions == ()
    assert ("different", "accuracy") in {(c.verdict, c.kind) for c in elsewhere.changes}


@pytest.mark.parametrize(("lost", "is_worse"), [(0.9, (True, False)), (1.1, (True, True))])
def test_a_score_may_lose_twice_as_much_by_other_arithmetic(
    tmp_path: Path, lost: float, is_worse: tuple[bool, bool]
) -> None:
    accuracy = (96.0 - lost, 95.0 - lost)
    for environment, expected in zip((None, OTHER_CORE), is_worse, strict=True):
        found = between(tmp_path / str(environment is None), 1, environment, accuracy=accuracy)
        assert bool(found.regressions) == expected


def test_a_little_loss_everywhere_is_no_chance(tmp_path: Path) -> None:
    found = between(tmp_path, accuracy=(95.51, 94.51))
    (change,) = found.regressions
    assert change.where == "all 6 measurements together"
    assert change.base - change.new == pytest.approx(0.49)
    assert between(tmp_path / "b", 1, accuracy=(95.51, 94.51)).regressions == ()
    assert between(tmp_path / "c", accuracy=(96.4, 95.4)).regressions == ()


def test_a_little_more_work_everywhere_is_seen_under_other_arithmetic(tmp_path: Path) -> None:
    found = between(tmp_path, 6, OTHER_CORE, updates=1050)
    (change,) = found.regressions
    assert (change.kind, change.where, change.what) == (
        "counter", "all 6 counters together", "share of base",
    )  # fmt: skip
    assert change.new == pytest.approx(1.05)
    alone = between(tmp_path / "b", 1, OTHER_CORE, updates=1050)
    assert alone.regressions == ()
    assert "1 of 1 counters grew under other arithmetic, by up to 5.0%" in alone.notes


def test_a_counter_that_vanishes_is_worse(tmp_path: Path) -> None:
    assert {c.kind for c in between(tmp_path, 1, updates=0).regressions} == {"counter"}


def test_other_parameters_do_not_hide_ten_times_the_work(tmp_path: Path) -> None:
    found = between(tmp_path, 1, C=2.0, updates=10_000)
    assert {(c.kind, c.new) for c in found.regressions} == {("counter", 10_000)}
    assert any("where parameters differ" in note for note in found.notes)
    elsewhere = between(tmp_path / "c", 1, OTHER_CORE, C=2.0, updates=10_000)
    assert elsewhere.regressions == ()
    assert "objective and work are not compared where parameters differ" in elsewhere.notes
    assert between(tmp_path / "b", 1, C=2.0, updates=1500).regressions == ()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1" * 400])
def test_a_baseline_with_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    run = make(tmp_path / "run")
    path = write_baseline(run, tmp_path / "kept")
    path.write_text(path.read_text().replace("96.0", number))
    with pytest.raises(ResultsError, match="can't read") as raised:
        read_side(tmp_path / "kept")
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("what", ["file", "cpu", "blas", "packages"])
def test_results_without_their_environment_are_refused(tmp_path: Path, what: str) -> None:
    run = make(tmp_path / "run")
    path = run / "environment-4be1c0de.json"
    if what == "file":
        path.unlink()
    else:
        path.write_text(json.dumps({k: v for k, v in ENVIRONMENT.items() if k != what}))
    for use in (lambda: read_side(run), lambda: write_baseline(run, run)):
        with pytest.raises(ResultsError, match=r"environment-4be1c0de\.json is missing or") as said:
            use()
        assert said.value.exit_code == 2


def test_an_objective_that_grows_a_little_everywhere_is_seen(tmp_path: Path) -> None:
    for name, environment in (("same", None), ("other", OTHER_CORE)):
        found = between(tmp_path / name, 41, environment, objective=2.5 * 1.0009)
        assert {c.kind for c in found.regressions} == {"objective"}
        assert "all 82 objectives together" in {c.where for c in found.regressions}
    # One alone may be another path to the same end.
    assert between(tmp_path / "one", 1, OTHER_CORE, objective=2.5 * 1.0009).regressions == ()


@pytest.mark.parametrize("environment", [None, OTHER_CORE])
@pytest.mark.parametrize("factor", [0.5, 0.0, -1.0])
def test_an_objective_of_another_problem_is_not_better(
    tmp_path: Path, factor: float, environment: Any
) -> None:
    found = between(tmp_path, 6, environment, objective=2.5 * factor)
    assert {(c.verdict, c.kind) for c in found.changes} == {("worse", "objective")}
    assert len(found.regressions) >= 12


@pytest.mark.parametrize("has_dual", ["base", "new"])
@pytest.mark.parametrize("environment", [None, OTHER_CORE])
def test_an_objective_below_a_dual_value_is_worse(
    tmp_path: Path, has_dual: str, environment: Any
) -> None:
    """Where either run has a dual value, no fit can have come below it."""
    cell = planned("cv", "a9a", "csvc")
    for name, objective in (("base", 2.5), ("new", 2.49), ("near", 2.495)):
        metrics = {"objective": objective}
        if name in (has_dual, "near"):
            metrics["dual_objective"] = 2.4949999
        folder = write_run(tmp_path / name, [cell], [record(cell, metrics)])
        if environment and name != "base":
            content = json.dumps(ENVIRONMENT | environment)
            (folder / "environment-4be1c0de.json").write_text(content)
    write_baseline(tmp_path / "base", tmp_path / "kept")
    for base in ("base", "kept"):
        sides = {name: read_side(tmp_path / name) for name in (base, "new", "near")}
        changes = comparing.compare_folders(sides[base], sides["new"]).changes
        lost = {"dual_objective"} if has_dual == "base" else set()
        assert {c.what for c in changes} == {"objective, below a dual value", *lost}
        assert {c.verdict for c in changes} == {"worse"}
        assert comparing.compare_folders(sides[base], sides["near"]).regressions == ()


def test_a_fit_that_counts_no_work_is_worse(tmp_path: Path) -> None:
    cell = planned("speed", "a9a", "a|b", protocol="race")
    counters = [
        {"updates:a": 10, "checks:a": 1, "updates:b": 5},
        {"updates:a": 0, "checks:a": 0, "updates:b": 5},
        {"updates:a": 10, "checks:a": 0, "updates:b": 5},
    ]
    sides = [
        read_side(
            write_run(tmp_path / str(i), [cell], [record(cell, {"ratio:a:b": 1}, counters=counted)])
        )
        for i, counted in enumerate(counters)
    ]
    (change,) = comparing.compare_folders(sides[0], sides[1]).regressions
    assert (change.what, change.base, change.new) == ("all counters of a", 11, 0)
    assert comparing.compare_folders(sides[0], sides[2]).regressions == ()


def raced(folder: Path, ratios: list[float], **more: Any) -> Side:
    cells = [planned("speed", f"set-{i}", RACE, protocol="race") for i in range(len(ratios))]
    records = [
        record(cell, {"ratio:a:ref": ratio}, **more)
        for cell, ratio in zip(cells, ratios, strict=True)
    ]
    return read_side(write_run(folder, cells, records))


@pytest.mark.parametrize("contended", [False, True])
def test_ratios_that_are_all_a_little_slower_are_worse_together(
    tmp_path: Path, contended: bool
) -> None:
    base = raced(tmp_path / "base", [3.0] * 11)
    for name, slower, expected in (("all", 1.49, 1), ("less", 1.16, 1), ("honest", 1.14, 0)):
        new = raced(tmp_path / name, [3.0 / slower] * 11, contended=contended)
        found = comparing.compare_folders(base, new)
        assert [c.where for c in found.regressions] == ["all 11 ratios together"] * expected
        # Who allows each ratio more allows their mean more.
        assert comparing.compare_folders(base, new, slowdown=3.0).regressions == ()
    # Of two ratios each is judged alone.
    few = [raced(tmp_path / f"few-{i}", [ratio] * 2) for i, ratio in enumerate((3.0, 2.1))]
    assert comparing.compare_folders(*few).changes == ()


def test_a_limit_of_ratios_without_races_is_said(tmp_path: Path) -> None:
    base, new = (tmp_path / name for name in ("base", "new"))
    for folder in (base, new):
        cell = planned("cv", "a9a", "alsvm", 0)
        write_run(folder, [cell], [record(cell, {"accuracy_pct": 96.0, "cpu_time_s": 1.0})])
    sides = read_side(base), read_side(new)
    assert comparing.compare_folders(*sides).notes == ()
    (said,) = comparing.compare_folders(*sides, slowdown=1.3).notes
    assert said.startswith("no race in these runs: --slowdown has no effect")


@pytest.mark.parametrize(
    ("ratios", "limit"),
    [
        ((2.9, 3.0, 3.0, 3.0, 3.1), 1.2),  # the least
        ((2.7, 3.0, 3.0, 3.1, 3.2), (3.2 / 2.7) ** 2),
        ((1.8, 3.0, 3.0, 3.1, 3.2), (3.2 / 1.8) ** 2),
        ((1.0, 3.0, 3.0, 3.1, 3.2), 4.0),  # the largest
        ((2.9, 3.0, 3.1), 1.5),  # too few repeats
    ],
)
def test_the_limit_of_a_ratio_is_the_spread_of_its_repeats(
    tmp_path: Path, ratios: tuple[float, ...], limit: float
) -> None:
    for number, ratio in enumerate(ratios):
        make(tmp_path / "repeats" / str(number), ratio=ratio)
    write_baseline(tmp_path / "repeats", tmp_path / "kept")
    repeats = read_side(tmp_path / "repeats")
    for base in (repeats, read_side(tmp_path / "kept")):
        for share, n_worse in ((0.99, 0), (1.01, 1)):
            new = make(tmp_path / f"new-{share}", ratio=3.0 / (limit * share))
            found = comparing.compare_folders(base, read_side(new))
            assert len(found.regressions) == n_worse, (share, limit)
            # One limit for all takes the place of the measured ones.
            free = comparing.compare_folders(base, read_side(new), slowdown=9.0)
            assert free.regressions == ()


@pytest.mark.parametrize(("cpu", "limit"), [("Example CPU 3000", 1.2), ("Another CPU", 1.5)])
def test_a_single_run_keeps_the_repeats_of_the_same_cpu(
    tmp_path: Path, cpu: str, limit: float
) -> None:
    for number in range(5):
        make(tmp_path / "repeats" / str(number))
    write_baseline(tmp_path / "repeats", tmp_path / "kept")
    write_baseline(make(tmp_path / "run", environment={"cpu": cpu}), tmp_path / "kept")
    for share, n_worse in ((0.99, 0), (1.01, 1)):
        ratio = 3.0 / (limit * share)
        new = make(tmp_path / f"new-{share}", ratio=ratio, environment={"cpu": cpu})
        sides = read_side(tmp_path / "kept"), read_side(new)
        assert len(comparing.compare_folders(*sides).regressions) == n_worse


def test_ratios_that_move_both_ways_are_no_trend(tmp_path: Path) -> None:
    base = raced(tmp_path / "base", [3.0] * 10)
    new = raced(tmp_path / "new", [3.0 / 1.4, 3.0 * 1.4] * 5)
    assert comparing.compare_folders(base, new).regressions == ()


@pytest.mark.parametrize("environment", [None, OTHER_CORE])
def test_other_parameters_in_every_cell_are_worse(tmp_path: Path, environment: Any) -> None:
    found = between(tmp_path, 6, environment, C=2.0)
    (change,) = found.regressions
    assert (change.kind, change.where, change.new) == ("params", "all 12 cells together", 12)


def test_a_search_that_chose_otherwise_in_one_cell_of_many_is_different(tmp_path: Path) -> None:
    base, new = many(tmp_path / "base", 20), many(tmp_path / "new", 20)
    lines = [json.loads(line) for line in (new / "runs.jsonl").read_text().splitlines()]
    for changed, expected in ((4, 0), (5, 1)):
        for line in lines[:changed]:
            line["params"] = {"C": 8.0}
        (new / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = comparing.compare_folders(read_side(base), read_side(new))
        assert len(found.regressions) == expected
        assert len([c for c in found.changes if c.kind == "params"]) == changed + expected


def said_of(folder: Path, fact: str, value: Any) -> Path:
    """Have a run of two folds and a race say something else of itself."""
    make(folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"]["seed"] = 1
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        line["data_sha256"] = "aa"
    if fact == "data_sha256":
        lines[-1][fact] = value
    elif fact == "profile":
        plan[fact] = value
    elif fact:
        plan["config"][fact] = value
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize("side", ["run", "baseline", "repeats"])
@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("data_sha256", "bb", r"content of the data set a9a \(speed\) is aa in BASE and bb in NEW"),
        ("seed", 2, "seed is 1 in BASE and 2 in NEW"),
        ("profile", "paper", "profile is quick in BASE and paper in NEW"),
        ("name", "other", "config is alsvm_table2 in BASE and other in NEW"),
    ],
)
def test_runs_of_other_data_or_settings_are_not_compared(
    tmp_path: Path, side: str, fact: str, value: Any, said: str
) -> None:
    base, new = said_of(tmp_path / "base", "", 0), tmp_path / "new"
    if side == "baseline":
        write_baseline(base, tmp_path / "kept")
        base = tmp_path / "kept"
    if side == "repeats":
        said_of(new / "0", "", 0)
        said_of(new / "1", fact, value)
    else:
        said_of(new, fact, value)
    with pytest.raises(ResultsError, match=f"nothing to compare: the {said}") as raised:
        comparing.compare_folders(read_side(base), read_side(new))
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("fact", ["data_sha256", "seed"])
def test_what_a_run_does_not_say_is_a_note(tmp_path: Path, fact: str) -> None:
    sides = [said_of(tmp_path / "base", "", 0), said_of(tmp_path / "new", fact, None)]
    found = comparing.compare_folders(*map(read_side, sides))
    assert found.changes == ()
    (note,) = found.notes
    assert note.startswith("NEW doesn't state for every run: the ")


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"accuracy": 94.0}, "accuracy"),
        ({"updates": 1001}, "counter"),
        ({"updates": 0}, "counter"),
        ({"objective": 2.6}, "objective"),
        ({"objective": 1.0}, "objective"),
        ({"status": "failed"}, "result"),
    ],
)
@pytest.mark.parametrize("of", ["base", "new"])
def test_every_repeat_of_a_side_is_read(
    tmp_path: Path, wrong: dict[str, Any], kind: str, of: str
) -> None:
    """What is wrong with the last by name is wrong with the side."""
    for name in ("base", "new"):
        for number in range(3):
            own = wrong if (name, number) == ("new", 2) else {}
            make(tmp_path / name / str(number), **own)
    base, new = (read_side(tmp_path / name) for name in ("base", "new"))
    found = comparing.compare_folders(base, new)
    assert {c.kind for c in found.regressions} == {kind}
    # Repeats of one version that don't agree are seen from either side.
    if of == "base" and kind in ("accuracy", "counter", "objective"):
        assert comparing.compare_folders(new, base).changes != ()


def test_a_baseline_that_the_code_beats_is_stale(tmp_path: Path) -> None:
    write_baseline(make(tmp_path / "old"), tmp_path / "kept")
    kept = read_side(tmp_path / "kept")
    same = comparing.compare_folders(kept, read_side(make(tmp_path / "same", ratio=6.1)))
    assert not same.is_stale  # times are of the day
    for name, wrong in {
        "counter": {"updates": 640},
        "accuracy": {"accuracy": 96.1},
        "objective": {"objective": 2.49},
        "params": {"C": 1.0},
    }.items():
        new = read_side(make(tmp_path / name, **wrong))
        found = comparing.compare_folders(kept, new)
        assert (found.regressions, found.is_stale) == ((), True), name
        assert found.to_json()["stale"]
        # Two runs are two versions: nobody says that they are of the same code.
        run = read_side(tmp_path / "old")
        assert not comparing.compare_folders(run, new).is_stale
        content = json.dumps(ENVIRONMENT | OTHER_CORE)
        (tmp_path / name / "environment-4be1c0de.json").write_text(content)
        assert not comparing.compare_folders(kept, read_side(tmp_path / name)).is_stale


def test_a_stale_baseline_ends_with_the_code_of_a_regression(tmp_path: Path) -> None:
    write_baseline(make(tmp_path / "old"), tmp_path / "kept")
    for number, words in ((1000, "no regression"), (640, "stale: at equal arithmetic")):
        make(tmp_path / "new", updates=number)
        ended = svmbench("compare", tmp_path / "kept", tmp_path / "new")
        assert (ended.code, words in ended.out) == (0 if number == 1000 else 4, True)


def test_counters_and_cells_that_a_baseline_lacks_make_it_stale(tmp_path: Path) -> None:
    cells = [planned("cv", name, "alsvm") for name in ("one", "two")]
    write_run(tmp_path / "old", cells[:1], [record(cells[0], {"objective": 1.0})])
    write_baseline(tmp_path / "old", tmp_path / "kept")
    more = record(cells[0], {"objective": 1.0}, counters={"checks": 1})
    for name, planned_cells, records in (
        ("counter", cells[:1], [more]),
        ("cell", cells, [record(cell, {"objective": 1.0}) for cell in cells]),
    ):
        write_run(tmp_path / name, planned_cells, records)
        sides = (read_side(tmp_path / side) for side in ("kept", name))
        assert comparing.compare_folders(*sides).is_stale, name


def test_the_script_names_the_solvers_whose_path_changes_with_rounding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arithmetic = load_script("arithmetic", "results/perf")
    cells = [planned("cv", "a9a", solver, fold) for solver in ("moves", "stays") for fold in (0, 1)]
    for core, updates in (("A", 10), ("B", 14)):
        records = [
            record(
                cell,
                {"accuracy_pct": 96.0, "objective": 2.5 + (updates == 14 and cell["fold"]) * 1e-3},
                counters={"updates": updates if cell["solver"] == "moves" else 10},
            )
            for cell in cells
        ]
        folder = write_run(tmp_path / f"1-{core}", cells, records)
        content = ENVIRONMENT | {"blas": [f"openblas 0.3.30 {core}"]}
        (folder / "environment-4be1c0de.json").write_text(json.dumps(content))
    words = [str(tmp_path), "--seeds", "1", "--cores", "A", "B", "--read"]
    assert arithmetic.main(words) == 0
    said = capsys.readouterr().out
    assert "2 runs, 2 ordered pairs, 0 with a regression" in said
    assert "moves: objective 4.0e-04, accuracy of a fold 0.00 points, updates 40.0%" in said
    assert said.endswith("solvers whose iterations change with rounding: moves\n")
    # By one arithmetic the same would be a regression.
    (tmp_path / "1-B" / "environment-4be1c0de.json").write_text(
        (tmp_path / "1-A" / "environment-4be1c0de.json").read_text()
    )
    assert arithmetic.main(words) == 1


def test_values_are_shown_with_the_digits_that_tell_them_apart(tmp_path: Path) -> None:
    base, new = make(tmp_path / "base"), make(tmp_path / "new", objective=2.50000004)
    assert "2.50000004" in svmbench("compare", base, new).out


@pytest.mark.parametrize("ratio", [0.0, -1.0])
def test_a_ratio_of_nothing_is_judged(tmp_path: Path, ratio: float) -> None:
    assert [c.kind for c in compared(tmp_path, ratio=ratio).regressions] == ["time"]
    base, new = make(tmp_path / "b", ratio=ratio), make(tmp_path / "n")
    found = comparing.compare_folders(read_side(base), read_side(new))
    assert found.regressions == ()
    assert any("BASE has the ratio" in note for note in found.notes)


@pytest.mark.slow
def test_a_comparison_takes_time_in_proportion_to_its_cells() -> None:
    def side(number: int) -> Side:
        cell = {
            "status": "ok", "params": {}, "counters": {"updates": 3}, "contended": False,
            "solver": "alsvm", "metrics": {"accuracy_pct": 90.0},
        }  # fmt: skip
        cells: dict[tuple[Any, ...], Any] = {
            ("cv", f"set-{i}", "alsvm", "linear", (), 0): cell for i in range(number)
        }
        scores = {"accuracy_pct": {"better": "higher", "tolerance": 0.5}}
        of = {"config": "x", "profile": "quick", "seed": 1}
        run = SideRun(of, cells, frozenset("c"), {"BLAS": "b"})
        return Side("x", (run,), scores)

    def seconds(number: int) -> float:
        one = side(number)
        began = time.process_time()
        comparing.compare_folders(one, one)
        return time.process_time() - began

    assert seconds(100_000) < 20 * max(seconds(20_000), 0.05)
