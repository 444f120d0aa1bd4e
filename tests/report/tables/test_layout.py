"""Tables from run folders made by hand: values, marks, missing cells, damage, determinism."""

import csv
import json
import statistics
from dataclasses import replace

import pytest
import synthetic_runs as runs

from svmbench.base.errors import ResultsError
from svmbench.base.files import write_text
from svmbench.report.numbers.summary import compare_with_paper
from svmbench.report.output.builder import build, read_content
from svmbench.report.reading.provenance import dimension_text
from svmbench.report.reading.records import read_run
from svmbench.report.tables.best import best_entries, contests, left_out


def rows_of(path):
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def tidy(report, **wanted):
    found = [
        row
        for row in rows_of(report.tidy)
        if all(row[name] == value for name, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


def small_run(folder, outcomes, *, dataset="a9a", solver="alsvm", **more):
    """One data set and solver with one fold an outcome: metrics, or what else the record says."""
    cells = [runs.planned("cv", dataset, solver, fold) for fold in range(len(outcomes))]
    records = [
        runs.record(cell, **outcome)
        for cell, outcome in zip(cells, outcomes, strict=True)
        if outcome is not None
    ]
    return runs.write_run(folder, cells, records, [runs.TABLE2], **more)


def metrics(time, accuracy, **more):
    return {"metrics": {"train_time_s": time, "accuracy_pct": accuracy}, **more}


@pytest.mark.slow
@pytest.mark.parametrize("make", [runs.alsvm_run, runs.sweep_run, runs.race_run, runs.facts_run])
def test_the_same_records_give_the_same_bytes(tmp_path, make):
    first, second = build(make(tmp_path / "a")), build(make(tmp_path / "b"))
    again = build(tmp_path / "a")
    assert [p.name for p in first.files] == [p.name for p in second.files]
    for one, other, repeated in zip(first.files, second.files, again.files, strict=True):
        content = one.read_bytes()
        assert content == other.read_bytes() == repeated.read_bytes(), one.name
        assert content
        if one.suffix != ".png":
            assert b"\r" not in content
    leftovers = {p.name for p in (tmp_path / "a").iterdir()} - {p.name for p in first.files}
    assert leftovers == {"plan.json", "runs.jsonl", "environment-4be1c0de.json"}


def test_mean_spread_and_difference_by_hand(tmp_path):
    report = build(small_run(tmp_path, [metrics(1.0, 80.0), metrics(2.0, 83.0), metrics(6.0, 85)]))
    time = tidy(report, metric="train_time_s")
    assert (time["value"], time["folds"], time["published"]) == ("3", "3", "82")
    assert float(time["spread"]) == pytest.approx(statistics.stdev([1, 2, 6]))
    assert float(time["difference"]) == 3 - 82
    accuracy = tidy(report, metric="accuracy_pct")
    assert float(accuracy["value"]) == pytest.approx(248 / 3)
    assert float(accuracy["difference"]) == pytest.approx(248 / 3 - 82)
    text = report.all_tables.read_text()
    assert "| a9a | 3.00 ± 2.65 [82; ×0.037] | 82.67 ± 2.52 [82; +0.7] |" in text
    assert "Missing cells: none." in text
    assert "Profile: **quick**" in text
    assert "scaling all-rows" in text
    assert "Example CPU 3000" in text
    assert "commit 0123456789ab with changes, numpy 2.4.6" in text
    wide = rows_of(tmp_path / "table2.csv")
    assert wide[0]["alsvm.train_time_s"] == "3"
    assert wide[0]["alsvm.accuracy_pct.published"] == "82"
    assert (wide[0]["profile"], wide[0]["environment"]) == ("quick", "4be1c0de")


def test_a_failed_fold_is_marked_and_not_compared(tmp_path):
    failed = {"status": "failed", "reason": "NaN | in w"}
    report = build(small_run(tmp_path, [metrics(1.0, 80.0), failed, metrics(3.0, 84.0)]))
    row = tidy(report, metric="accuracy_pct")
    assert (row["value"], row["folds"], row["folds_planned"]) == ("82", "2", "3")
    assert (row["status"], row["reason"], row["difference"]) == ("failed", "NaN | in w", "")
    text = report.all_tables.read_text()
    assert "82.00 ± 2.83 †2/3 [82]" in text
    assert "† Not every fold finished" in text
    assert "- a9a, alsvm, fold 2: failed (NaN \\| in w)" in text
    assert (
        rows_of(tmp_path / "table2.csv")[0]["alsvm.accuracy_pct.status"] == "failed, 2 of 3 folds"
    )


def test_missing_cells_say_why(tmp_path):
    report = build(runs.alsvm_run(tmp_path))
    text = (tmp_path / "table2.md").read_text()
    assert "- cod-rna, every solver: not available (cod-rna: the mirror lacks cod-rna.t)" in text
    assert "- covtype, falsvm: not run (no record of it yet)" in text
    assert "- svmguide3, pegasos: timeout (stopped after 60 s)" in text
    assert "timeout [5]" in text
    assert "not run [5.7]" in text
    row = tidy(report, dataset="cod-rna", solver="pegasos", metric="train_time_s")
    assert (row["value"], row["status"], row["published"]) == ("", "unavailable", "8332")
    stand_in = tidy(report, dataset="cod-rna-train", solver="alsvm", metric="train_time_s")
    assert stand_in["value"]
    assert stand_in["published"] == ""
    order = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert tuple(order[2:]) == runs.ALSVM_SETS


def test_data_sets_that_lack_the_same_cells_share_a_line(tmp_path):
    cells = [
        runs.planned("cv", dataset, solver, 0)
        for dataset in ("a9a", "w8a", "splice", "mushrooms")
        for solver in ("alsvm", "falsvm")
    ]
    # Of a9a both were run, of splice alsvm.
    records = [runs.record(cell, **metrics(1.0, 80.0)) for cell in (*cells[:2], cells[4])]
    build(runs.write_run(tmp_path, cells, records, [runs.TABLE2]))
    lines = (tmp_path / "table2.md").read_text().splitlines()
    assert "- w8a, mushrooms, every solver: not run (no record of it yet)" in lines
    assert "- splice, falsvm: not run (no record of it yet)" in lines
    assert sum("not run (no record of it yet)" in line for line in lines) == 2


@pytest.mark.parametrize(("dataset", "printed"), [("iris", False), ("a9a", True)])
def test_a_table_without_a_run_has_a_sentence_or_what_is_printed(tmp_path, dataset, printed):
    text = build(small_run(tmp_path, [None, None], dataset=dataset)).all_tables.read_text()
    assert ("No cell of this table has a result." in text) is not printed
    assert (f"| {dataset} | not run [82] | not run [82] |" in text) is printed
    assert "Missing cells:\n\n- all 2 cells: not run (no record of it yet)\n" in text
    # Another reason has a line of its own.
    text = build(runs.alsvm_run(tmp_path / "several")).all_tables.read_text()
    assert "all 2 cells" not in text


def test_counters_outside_the_tables_are_in_table_csv(tmp_path):
    report = build(runs.alsvm_run(tmp_path))
    row = tidy(report, dataset="a9a", solver="alsvm", metric="updates")
    assert (row["table"], row["value"], row["spread"]) == ("", "200", "100")


def test_contended_times_are_marked_and_not_compared_unless_told(tmp_path):
    folder = small_run(tmp_path, [metrics(2.0, 80.0, contended=True), metrics(2.0, 80.0)])
    report = build(folder)
    assert "2.00 ± 0.00\\* [82]" in report.all_tables.read_text()
    assert "Measured while other workers ran" in report.all_tables.read_text()
    row = tidy(report, metric="train_time_s")
    assert (row["value"], row["contended"], row["difference"]) == ("2", "true", "")
    # Other work on the machine does not change an accuracy.
    assert tidy(report, metric="accuracy_pct")["difference"] == "-2"
    told = build(folder, allow_contended=True)
    assert tidy(told, metric="train_time_s")["difference"] == "-80"
    assert "2.00 ± 0.00 [82; ×0.024]" in told.all_tables.read_text()


def test_a_time_of_false_convergence_has_no_difference_from_the_printed_one(tmp_path):
    content = read_content(small_run(tmp_path / "run", [metrics(1.0, 80.0)]))
    (entry,) = (
        entry
        for entry in content.tables[0].entries.values()
        if entry.summary.metric == "train_time_s"
    )
    wrong = replace(entry.summary, false_convergence=True)
    assert entry.comparison.difference is not None
    assert compare_with_paper(wrong, entry.cell, "table2").difference is None


def test_one_fold_shows_the_spread_of_its_repeats(tmp_path):
    outcome = metrics(2.0, 80.0, spread={"train_time_s": 0.25})
    text = build(small_run(tmp_path, [outcome])).all_tables.read_text()
    assert "2.00 ± 0.25 [82; ×0.024] | 80.00 [82; -2.0]" in text


@pytest.mark.parametrize("seconds", [1e-9, 0.0, -3.0])
def test_a_time_below_the_clock_is_marked_and_wins_nothing(tmp_path, seconds):
    cells = [runs.planned("cv", "a9a", solver) for solver in ("alsvm", "pegasos", "falsvm")]
    outcomes = [metrics(value, 80.0) for value in (seconds, 2.0, 3.0)]
    for one in outcomes:
        one["metrics"]["cpu_time_s"] = one["metrics"]["train_time_s"]
    records = [runs.record(cell, **one) for cell, one in zip(cells, outcomes, strict=True)]
    table = {"name": "table2", "block": "cv", "rows": ["dataset"], "columns": ["solver"],
             "metrics": ["train_time_s"]}  # fmt: skip
    build(runs.write_run(tmp_path, cells, records, tables=[table]))
    text = (tmp_path / "table2.md").read_text()
    assert "| a9a | 1.00e-06§ | 2.00 | 3.00 |" in text
    content = read_content(tmp_path)
    (first,) = contests(content.run, content.tables[0])
    assert first.best() == ["pegasos"]
    (reason,) = left_out(content.run, content.tables[0], "train_time_s")
    assert reason == "they are shorter than the clock can tell"
    assert "§ Shorter than the clock can tell: counts as 1e-06 s, and is not compared." in text


def test_one_repeat_has_no_spread_and_shows_none(tmp_path):
    alone = metrics(21.0, 80.0, spread={"train_time_s": 0.0})
    report = build(small_run(tmp_path, [alone]))
    assert "| a9a | 21.0 [82; ×0.26] | 80.00 [82; -2.0] |" in report.all_tables.read_text()
    assert "±" not in (tmp_path / "table2.md").read_text()
    assert tidy(report, metric="train_time_s")["spread"] == ""
    # Five folds of one cell may well have the same accuracy.
    same = metrics(21.0, 80.0, spread={"accuracy_pct": 0.0})
    assert "80.00 ± 0.00" in build(small_run(tmp_path / "cv", [same])).all_tables.read_text()


def loaded(time, cpu):
    return {"metrics": {"train_time_s": time, "cpu_time_s": cpu, "accuracy_pct": 80.0}}


def test_load_from_outside_is_marked_apart_from_that_of_the_run(tmp_path):
    report = build(small_run(tmp_path, [loaded(1.16, 1.0)]))
    text = report.all_tables.read_text()
    assert "| a9a | 1.16‡ [82] | 80.00 [82; -2.0] |" in text
    assert "‡ Measured under load from outside: the wall time" in text
    assert "more than 1.15 times its CPU time" in text
    assert "while other workers ran" not in text
    row = tidy(report, metric="train_time_s")
    assert (row["contended"], row["outside_load"], row["difference"]) == ("false", "true", "")
    assert rows_of(tmp_path / "table2.csv")[0]["alsvm.train_time_s.status"] == "ok, outside load"
    told = build(tmp_path, allow_contended=True).all_tables.read_text()
    assert "1.16 [82; ×0.014]" in told
    assert "their times are used as asked" in told
    quiet = build(small_run(tmp_path / "quiet", [loaded(1.15, 1.0)])).all_tables.read_text()
    assert "1.15 [82; ×0.014]" in quiet
    # Beside other cells of the run it may be these that had the processor.
    beside = build(small_run(tmp_path / "beside", [{**loaded(1.2, 1.0), "contended": True}]))
    assert "1.20\\* [82]" in beside.all_tables.read_text()
    assert "‡" not in beside.all_tables.read_text()
    # Threads that share the work take more CPU time than wall time, and are no such case.
    threads = build(small_run(tmp_path / "threads", [loaded(1.0, 1.9)])).all_tables.read_text()
    assert "1.00 [82; ×0.012]" in threads


def on_machines(folder, content, other_content):
    """Three folds: two in one environment, the last in another."""
    outcomes = [metrics(1.0, 80.0), metrics(3.0, 82.0), metrics(9.0, 90.0, environment="0ther")]
    small_run(folder, outcomes)
    (folder / "environment-4be1c0de.json").write_text(json.dumps(content))
    (folder / "environment-0ther.json").write_text(json.dumps(other_content))
    return build(folder)


def test_folds_of_different_environments_make_no_mean(tmp_path):
    other = {**runs.ENVIRONMENT, "id": "0ther", "cpu": "Another CPU"}
    report = on_machines(tmp_path, runs.ENVIRONMENT, other)
    text = (tmp_path / "table2.md").read_text()
    assert "| data set | environment | alsvm train time (s) | alsvm accuracy (%) |" in text
    assert "| a9a | 4be1c0de | 2.00 ± 1.41 †2/3 [82] | 81.00 ± 1.41 †2/3 [82] |" in text
    assert "| a9a | 0ther | 9.00 †1/3 [82] | 90.00 †1/3 [82] |" in text
    assert "each environment has a row of its own" in text
    found = [row for row in rows_of(report.tidy) if row["metric"] == "train_time_s"]
    assert [(r["value"], r["folds"], r["environment"]) for r in found] == [
        ("2", "2", "4be1c0de"),
        ("9", "1", "0ther"),
    ]
    wide = rows_of(tmp_path / "table2.csv")
    assert [(row["environment_group"], row["alsvm.train_time_s"]) for row in wide] == [
        ("4be1c0de", "2"),
        ("0ther", "9"),
    ]
    assert wide[0]["alsvm.train_time_s.status"] == ("in another environment, 2 of 3 folds")


def test_another_commit_or_load_is_no_other_environment(tmp_path):
    later = {**runs.ENVIRONMENT, "id": "0ther", "git": {"commit": "ffff"}, "load": [3.0]}
    on_machines(tmp_path, runs.ENVIRONMENT, later)
    assert "| a9a | 4.33 ± 4.16 [82; ×0.053] | 84.00" in (tmp_path / "table2.md").read_text()


def test_an_environment_that_is_not_known_is_like_no_other(tmp_path):
    on_machines(tmp_path, runs.ENVIRONMENT, {})
    assert "| a9a | 0ther | 9.00 †1/3" in (tmp_path / "table2.md").read_text()


def test_what_was_measured_nowhere_stands_in_the_first_row_of_its_kind(tmp_path):
    cells = [
        runs.planned("cv", dataset, solver, fold)
        for dataset in ("a9a", "w8a")
        for solver in ("alsvm", "pegasos")
        for fold in (0, 1)
    ]
    records = [
        runs.record(cell, {"train_time_s": 1.0 + cell["fold"]}, environment=str(cell["fold"]))
        for cell in cells
        if (cell["dataset"], cell["solver"]) == ("a9a", "alsvm")
    ]
    table = {**runs.TABLE2, "metrics": ["train_time_s"], "published": None}
    build(runs.write_run(tmp_path, cells, records, [table]))
    lines = (tmp_path / "table2.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| ") and "a9a" in line] == [
        "| a9a | 0 | 1.00 †1/2 | not run |",
        "| a9a | 1 | 2.00 †1/2 |  |",
    ]
    assert "| w8a | all | not run | not run |" in lines


def test_an_undefined_score_is_said_and_left_out_of_the_mean(tmp_path):
    reason = "all test rows belong to one class, 1"
    without = {"metrics": {"train_time_s": 1.0}, "undefined": {"auc_pct": reason}}
    with_it = {"metrics": {"train_time_s": 1.0, "auc_pct": 90.0}}
    cells = [runs.planned("cv", "a9a", s, f) for s in ("alsvm", "pegasos") for f in (0, 1)]
    outcomes = [with_it, without, without, without]
    records = [runs.record(c, **o) for c, o in zip(cells, outcomes, strict=True)]
    table = {**runs.TABLE2, "metrics": ["auc_pct"], "published": None}
    report = build(runs.write_run(tmp_path, cells, records, [table]))
    text = (tmp_path / "table2.md").read_text()
    assert "| a9a | 90.00 †1/2 | undefined |" in text
    assert "† Not every fold has a value here" in text
    assert "Undefined values:" in text
    assert f"- a9a, alsvm, fold 2: no AUC (%) ({reason})" in text
    assert f"- a9a, pegasos: no AUC (%) ({reason})" in text
    assert "Missing cells: none." in text
    row = tidy(report, solver="alsvm", metric="auc_pct")
    assert (row["value"], row["folds"], row["undefined"]) == ("90", "1", reason)
    untabled = build(runs.write_run(tmp_path / "untabled", cells, records))
    assert tidy(untabled, solver="pegasos", metric="auc_pct")["undefined"] == reason


def test_a_line_with_nan_is_no_record(tmp_path):
    report = build(small_run(tmp_path, [metrics(2.0, float("nan"))]))
    assert report.notes == ("1 unreadable line of runs.jsonl skipped.",)
    assert "| not run [82] | not run [82] |" in report.all_tables.read_text()


def test_torn_and_corrupted_lines_are_skipped_and_counted(tmp_path):
    folder = small_run(tmp_path, [metrics(1.0, 80.0), metrics(3.0, 82.0)])
    lines = (folder / "runs.jsonl").read_bytes().splitlines(keepends=True)
    damaged = lines[0] + b"\xff\xfe{not json\n" + b'{"kind": "cell"}\n[]\n' + lines[1][:-40]
    (folder / "runs.jsonl").write_bytes(damaged)
    report = build(folder)
    assert report.notes == (
        "3 unreadable lines of runs.jsonl skipped.",
        "The last line of runs.jsonl is torn (a killed run) and was skipped.",
    )
    assert all(note in report.all_tables.read_text() for note in report.notes)
    row = tidy(report, metric="train_time_s")
    assert (row["value"], row["folds"], row["status"]) == ("1", "1", "not run")


def test_the_newest_record_counts_and_points_and_strangers_do_not(tmp_path):
    folder = small_run(tmp_path, [metrics(1.0, 80.0)])
    cell = json.loads((folder / "plan.json").read_text())["cells"][0]
    newer = runs.record(cell, {"train_time_s": 7.0, "accuracy_pct": 81.0})
    point = {**runs.record(cell, {"train_time_s": 99.0}), "kind": "point", "point": "0/0"}
    stranger = {**newer, "key": "000000000000", "metrics": {"train_time_s": 55.0}}
    with (folder / "runs.jsonl").open("a") as handle:
        handle.writelines(json.dumps(one) + "\n" for one in (newer, stranger, point))
    report = build(folder)
    assert tidy(report, metric="train_time_s")["value"] == "7"
    assert report.notes == ("1 recorded cell of an earlier plan is not in this one and not shown.",)


def test_an_empty_run_is_a_table_of_gaps(tmp_path):
    folder = small_run(tmp_path, [None, None])
    (folder / "runs.jsonl").unlink()
    report = build(folder)
    text = report.all_tables.read_text()
    assert "| a9a | not run [82] | not run [82] |" in text
    assert "0 of 2 cells have results" in text
    assert "nothing has been measured" in text
    no_cells = build(runs.write_run(tmp_path / "none", [], [], [runs.TABLE2]))
    assert "No cells" in no_cells.all_tables.read_text()


def test_fields_without_a_place_become_rows(tmp_path):
    cells = [runs.planned("cv", "a9a", "alsvm", 0, kernel=kernel) for kernel in ("linear", "rbf")]
    records = [runs.record(c, {"train_time_s": t}) for c, t in zip(cells, (1.0, 3.0), strict=True)]
    build(runs.write_run(tmp_path, cells, records, [runs.TABLE2]))
    wide = rows_of(tmp_path / "table2.csv")
    assert [(r["kernel"], r["alsvm.train_time_s"]) for r in wide] == [("linear", "1"), ("rbf", "3")]


def test_solvers_of_different_kernels_share_the_row_of_a_data_set(tmp_path):
    kernels = {"alsvm": "linear", "csvc": "rbf", "mine": ""}
    cells = [
        runs.planned("cv", dataset, solver, 0, kernel=kernel)
        for dataset in ("a9a", "w8a")
        for solver, kernel in kernels.items()
    ]
    times = {"alsvm": 2.0, "csvc": 3.0, "mine": 1.0}
    records = [runs.record(cell, metrics(times[cell["solver"]], 80)["metrics"]) for cell in cells]
    plot = {"name": "p", "kind": "bars", "block": "cv", "x": "dataset", "y": "train_time_s"}
    folder = runs.write_run(tmp_path, cells, records, [runs.TABLE2], [plot])
    build(folder)
    wide = rows_of(tmp_path / "table2.csv")
    assert [row["dataset"] for row in wide] == ["a9a", "w8a"]
    assert "kernel" not in wide[0]
    assert [wide[0][f"{head}.train_time_s"] for head in ("alsvm.linear", "csvc.rbf", "mine")] == [
        "2", "3", "1",
    ]  # fmt: skip
    text = (tmp_path / "table2.md").read_text()
    assert "| data set | alsvm (linear) train time (s) |" in text
    assert "| mine train time (s) |" in text
    content = read_content(folder)
    (table,), (plot,) = content.tables, content.plots
    # A solver without a kernel competes with the others, and all of them share a panel.
    places = best_entries(content.run, table)
    assert {column for _, column, metric in places if metric == "train_time_s"} == {("mine",)}
    assert len(plot.panels) == 1
    assert [one.name for one in plot.panels[0].series] == list(kernels)


def test_a_data_set_a_kernel_keeps_the_kernel_in_its_rows(tmp_path):
    cells = [
        runs.planned("cv", dataset, solver, 0, kernel=kernel)
        for dataset, kernel in (("a9a", "linear"), ("w8a", "rbf"))
        for solver in ("smo", "libsvm")
    ]
    build(runs.write_run(tmp_path, cells, [], [runs.TABLE2]))
    rows = [(row["dataset"], row["kernel"]) for row in rows_of(tmp_path / "table2.csv")]
    assert rows == [("a9a", "linear"), ("w8a", "rbf")]


def test_races(tmp_path):
    report = build(runs.race_run(tmp_path))
    text = report.all_tables.read_text()
    assert "| a9a | 9.70 (8.73–11.6) | 1.00e-04 | 38.8 (33.9–42.7) | 0.0123 |" in text
    assert "alsvm-batch vs liblinear-l2 times faster" in text
    assert "| cod-rna-train | crashed | crashed |" in text
    row = tidy(report, dataset="a9a", solver="alsvm-batch vs liblinear-l2", metric="ratio")
    assert (row["value"], row["low"], row["high"]) == ("9.7", "8.73", "11.64")


def test_facts_stand_beside_the_printed_ones(tmp_path):
    text = build(runs.facts_run(tmp_path)).all_tables.read_text()
    assert "| a9a | 32561 [32561; =] | 123 [123; =] | 0.113 |" in text
    assert "| svmguide3 | 1243 [1243; =] | 22 [21; +1] | 0.113 |" in text


def swept(tmp_path, **more):
    """A solver's parameter as a dimension, and the epochs of another."""
    cells = [
        runs.planned("cv", "a9a", "nu-svc", dimensions={"solver.nu": nu, "rows": 1000}, size=1000)
        for nu in (0.1, 0.2)
    ]
    records = [
        runs.record(c, {"train_time_s": 10 * c["dimensions"]["solver.nu"], "auc_pct": 90.0})
        for c in cells
    ]
    table = {**runs.TABLE2, "published": None, "metrics": ["auc_pct"], **more}
    return runs.write_run(tmp_path, cells, records, [table])


def test_any_dimension_can_be_rows_and_columns(tmp_path):
    report = build(swept(tmp_path / "rows", rows="solver.nu"))
    text = (tmp_path / "rows" / "table2.md").read_text()
    assert "| nu | nu-svc AUC (%) |" in text
    assert "| 0.1 | 90.00 |\n| 0.2 | 90.00 |" in text
    assert "data set a9a; kernel linear; rows 1000" in text
    (row,) = [r for r in rows_of(report.tidy) if r["dimensions"] == "solver.nu=0.2" and r["table"]]
    assert (row["rows"], row["metric"], row["value"]) == ("1000", "auc_pct", "90")
    build(swept(tmp_path / "columns", columns=["solver", "solver.nu"]))
    text = (tmp_path / "columns" / "table2.md").read_text()
    assert "| data set | nu-svc 0.1 AUC (%) | nu-svc 0.2 AUC (%) |" in text
    # Without a place it becomes rows: two values of nu make no mean.
    build(swept(tmp_path / "none"))
    assert "| a9a | 0.2 | 90.00 |" in (tmp_path / "none" / "table2.md").read_text()


@pytest.mark.parametrize(
    ("chooser", "expected"),
    [
        ({"alsvm": "alsvm"}, "`alsvm` chooses its own C and gamma. It searches the grid"),
        (
            {"alsvm": "newton-l2", "pegasos": "dcd-l2", "falsvm": "dcd-l2"},
            "`newton-l2` chooses C and gamma for alsvm; `dcd-l2` chooses C and gamma for pegasos, "
            "falsvm. Each of these searches the grid",
        ),
    ],
)
def test_a_caption_says_who_chooses_the_points(tmp_path, chooser, expected):
    cell = runs.planned("cv", "a9a", "alsvm")
    block = {"name": "cv", "choose_with": chooser, "choose_rows": 5000}
    folder = runs.write_run(tmp_path, [cell], [runs.record(cell)], [runs.TABLE2], blocks=[block])
    text = build(folder).all_tables.read_text()
    assert f"{expected} on the same folds, on at most 5,000 rows." in text


def test_old_names_of_dimensions_are_read(tmp_path):
    cells = [runs.planned("cv", "a9a", "alsvm", size=n, n_features_kept=7) for n in (100, 200)]
    records = [runs.record(c, {"train_time_s": 1.0, "accuracy_pct": 80.0}) for c in cells]
    for name in ("size", "rows"):
        folder = tmp_path / name
        build(runs.write_run(folder, cells, records, [{**runs.TABLE2, "rows": name}]))
        text = (folder / "table2.md").read_text()
        assert "| rows | alsvm train time (s)" in text
        assert "| 200 | 1.00" in text
        assert "features kept 7" in text


def test_points_that_are_results_are_rows(tmp_path):
    cell = runs.planned("path", "a9a", "nu-svc", protocol="path")
    points = [
        {"schema": 1, "kind": "point", "key": cell["key"], "point": f"{nu:g}",
         "dimensions": {"solver.nu": nu}, "metrics": {"train_time_s": nu}}
        for nu in (0.1, 0.2, 0.3)
    ]  # fmt: skip
    newer = {**points[1], "metrics": {"train_time_s": 9.0}}
    whole = runs.record(cell, {"train_time_s": 0.6})
    table = {**runs.TABLE2, "block": "path", "rows": "solver.nu", "metrics": ["train_time_s"]}
    folder = runs.write_run(tmp_path, [cell], [*points, newer, whole], [table])
    report = build(folder)
    text = (folder / "table2.md").read_text()
    assert "| 0.1 | 0.100 |\n| 0.2 | 9.00 |\n| 0.3 | 0.300 |" in text
    assert "Missing cells: none." in text
    times = [row["value"] for row in rows_of(report.tidy) if row["metric"] == "train_time_s"]
    assert times == ["0.1", "9", "0.3"]
    # Before its end a cell is a gap beside its points.
    unfinished = runs.write_run(tmp_path / "half", [cell], points[:2], [table])
    build(unfinished)
    text = (unfinished / "table2.md").read_text()
    assert "| 0.2 | 0.200 |" in text
    assert "- a9a, nu-svc: not run" in text


def test_a_plan_says_what_its_scores_and_protocols_are(tmp_path):
    cell = runs.planned("cv", "a9a", "one, two", protocol="duel")
    metrics = {"ratio:one:two": 2.0, "misses:one": 3.0}
    table = {**runs.TABLE2, "metrics": ["ratio", "misses"], "published": None}
    pair = {**cell, "solver": "one|two"}
    folder = runs.write_run(tmp_path, [pair], [runs.record(pair, metrics)], [table])
    plan = json.loads((folder / "plan.json").read_text())
    plan["scores"] = {"misses": {"caption": "rows missed", "unit": "", "better": "lower"}}
    plan["protocols"] = {"duel": {"caption": "a duel", "race": True}}
    (folder / "plan.json").write_text(json.dumps(plan))
    build(folder)
    assert "| one vs two times faster | one rows missed |" in (folder / "table2.md").read_text()
    labels = {name: read_run(folder).label(name) for name in ("train_auc_pct", "train_time_s")}
    assert labels == {"train_auc_pct": "train AUC (%)", "train_time_s": "train time (s)"}


def test_notes_on_ratios_stand_below_tables_that_have_such_columns(tmp_path):
    """A race shown by solver has no column "a vs b"; a speed-up isn't the quotient of the times."""
    pair = runs.planned("cv", "a9a", "one|two", protocol="duel")
    metrics = {"train_time_s:one": 3.0, "train_time_s:two": 4.0, "speedup:one": 1.5}
    table = {**runs.TABLE2, "metrics": ["train_time_s", "speedup"], "published": None}
    by_pair = {**table, "name": "pairs", "metrics": ["train_time_s", "ratio"]}
    record = runs.record(pair, {**metrics, "ratio:one:two": 1.5})
    folder = runs.write_run(tmp_path, [pair], [record], [table, by_pair])
    plan = json.loads((folder / "plan.json").read_text())
    plan["protocols"] = {"duel": {"caption": "a duel", "race": True}}
    (folder / "plan.json").write_text(json.dumps(plan))
    build(folder)
    by_solver, by_pair = ((folder / f"{name}.md").read_text() for name in ("table2", "pairs"))
    clocks = "A speed-up is a ratio of CPU times; the training times beside it are wall times."
    assert "one speed-up" in by_solver
    assert clocks in by_solver
    assert "`a vs b`" not in by_solver
    assert "`a vs b`: how many times faster a is than b" in by_pair
    assert clocks not in by_pair


def test_a_sweep_stands_beside_the_printed_sizes(tmp_path):
    text = build(runs.smo_run(tmp_path)).all_tables.read_text()
    assert "| 1605 | 15.8 [15.8; ×1] | 34.8 [34.8; ×1] |" in text
    assert (
        "- smo: exponent 2.07 [2.02, 2.11] from 9 points of train time; the paper prints 2.1; "
        "the same fit to its 9 printed points gives 2.07 [2.02, 2.11]."
    ) in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "../x"}, "table '../x': name: should begin with a letter or a digit"),
        ({"name": "table"}, "is taken"),
        ({"columns": "colour"}, "columns: a field of a cell is .*, not 'colour'"),
        ({"metrics": []}, "metrics: should have at least 1 item"),
    ],
)
def test_an_impossible_table_is_one_sentence(tmp_path, change, said):
    cells = [runs.planned("cv", "a9a", "alsvm", 0)]
    folder = runs.write_run(tmp_path, cells, [], [{**runs.TABLE2, **change}])
    with pytest.raises(ResultsError, match=said):
        build(folder)


def test_a_folder_that_is_no_run_folder(tmp_path):
    with pytest.raises(ResultsError, match="is not a run folder"):
        build(tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(ResultsError, match="can't read"):
        build(tmp_path)
    for plan, said in (
        ({"cells": [], "config": ["a"]}, "not a plan: its config is no mapping"),
        ({"cells": [], "config": {}, "tables": ["a"]}, "not a plan: its tables are no list of"),
        ({"cells": [], "config": {}, "plots": {"a": 1}}, "not a plan: its plots are no list of"),
    ):
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        with pytest.raises(ResultsError, match=said):
            build(tmp_path)
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(ResultsError, match="not a plan"):
        build(tmp_path)


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(ResultsError, match="can't write"):
        write_text(tmp_path / "missing" / "x.md", "text")
    (tmp_path / "taken").mkdir()
    with pytest.raises(ResultsError, match="can't write"):
        write_text(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rows", 3000, "3,000 rows"),
        ("features", 1200, "1,200 features"),
        ("rows", "all", "rows all"),
        ("solver.n_basis", 2000, "basis points 2000"),
    ],
)
def test_sizes_are_counts_and_other_dimensions_are_named(name, value, said):
    assert dimension_text(name, value) == said
