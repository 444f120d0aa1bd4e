"""Runs of less than the paper's protocol decide neither way, whatever they have less of."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from claimed_runs import SCENES, Kept, counts_of

from svmbench.experiment.config.loader import load_config
from svmbench.papers import judging
from svmbench.papers.judging import export
from svmbench.papers.judging.cuts import (
    fewer_settings,
    is_repeatable,
    missing_work,
    to_decide,
    with_cut,
)
from svmbench.papers.judging.evidence import Source
from svmbench.papers.judging.verdict import Part
from svmbench.report.numbers.cell_times import Forecaster, Timed, whole_work_of, work_of
from svmbench.report.numbers.summary import cut_to
from svmbench.report.reading.records import CellResult, Run

ROOT = Path(__file__).resolve().parents[2]
ALL = {claim.id: claim for claim in judging.read_all_claims()}


def cell(block, solver):
    return CellResult("k", block, "cv", "p", "a", None, solver, None, "ok")


def run(config, profile, note="", **counts):
    """A run of a profile of a config that ships, of which some counts differ."""
    of_plan = counts_of(config, profile)
    own = {name: {**known, **counts.get(name, {})} for name, known in of_plan["own"].items()}
    known = {"counts": {**counts, **own}, "full_counts": of_plan["full"], "profile_note": note}
    return Run(Path(config), config, "p", "t", profile, "", {}, (), (), (), {}, **known)


def profile_of(config, name):
    return load_config(ROOT / "configs" / f"{config}.yaml").profiles[name]


def fewer(config, profile, block, solver, **kept):
    return fewer_settings(run(config, profile, **{block: kept}), [cell(block, solver)])


@pytest.mark.parametrize(
    ("config", "profile", "block", "solver", "kept", "said"),
    [
        ("sgdlssvm_table2", "medium", "cv", "sgd-lssvm", {"folds": 3},
         ["3 of 5 folds", "3 of 11 values of C", "3 of 11 values of gamma"]),
        ("sgdlssvm_table2", "small", "nested-cv", "none", {"outer_folds": 3, "inner_folds": 2},
         ["3 of 5 outer folds", "2 of 5 inner folds"]),
        ("nlsgd_table2", "medium", "all-rows", "nl-sgd", {"outer_folds": 5, "run_folds": 1},
         ["1 of 5 outer folds"]),
        ("nlsgd_table2", "small", "all-rows", "nl-sgd", {"outer_folds": 5, "run_folds": 0}, []),
        ("cpsp_fig2", "small", "fig2", "cpsp", {}, ["7 of 8 values of solver.n_basis"]),
        ("cpsp_table1", "small", "table1", "linear", {}, ["2 of 4 values of C"]),
        ("srbo_table5", "thinned", "exact", "c-svm-pairwise", {},
         ["4 of 12 values of C", "2 of 12 values of gamma"]),
        ("srbo_table4", "thinned", "exact", "nu-svm-pairwise", {}, ["30 of 986 values of nu"]),
        ("srbo_table5", "thinned", "paths", "nu-svm", {},
         ["block paths, which the config has no more"]),
        ("perf_kernel", "quick", "a9a", "csvc", {"repeats": 1}, ["1 of 3 repeats"]),
        ("cpsp_fig3", "small", "basis", "cpsp", {}, []),
        ("sgdlssvm_table2", "paper", "cv", "sgd-lssvm", {"folds": 3}, []),
    ],
)  # fmt: skip
def test_what_a_profile_has_less_of_than_the_full_protocol_is_named(
    config, profile, block, solver, kept, said
):
    assert fewer(config, profile, block, solver, **kept) == said


def test_a_plan_without_counts_decides_at_a_reduced_scale_only():
    older = replace(run("cpsp_table1", "small"), counts={}, full_counts={})
    (said,) = fewer_settings(older, [cell("table1", "linear")])
    assert said == "an unknown share of the protocol: the plan of cpsp_table1 has no counts"
    assert fewer_settings(replace(older, profile="paper"), [cell("table1", "linear")]) == []
    # A config without the profile `paper` has no full protocol.
    own = replace(run("cpsp_table1", "small"), full_counts={})
    assert fewer_settings(own, [cell("table1", "linear")]) == []


@pytest.mark.parametrize("edit", [lambda cell: None, SCENES["cpsp-1"].edit])
def test_a_smaller_grid_decides_at_a_reduced_scale(edit, tmp_path):
    SCENES["cpsp-1"].build(kept := Kept())
    kept.edit(edit)
    kept.edit(lambda cell: cell.update(profile="small"))
    (found,) = judging.judge([ALL["cpsp-1"]], judging.gather_evidence([kept.write(tmp_path)]))
    assert found.outcome == ("contradicted" if edit is SCENES["cpsp-1"].edit else "supported")
    assert found.scale.kind == "reduced"
    assert found.scale.cut == ("2 of 4 values of C; 2 of 6 values of gamma (profile small)",)
    assert not found.is_reproduced


def test_no_part_with_fewer_folds_or_values_counts_as_whole(tmp_path):
    """The kept parts, and parts of a smaller profile beside them."""
    SCENES["cpsp-2"].build(small := Kept())
    small.edit(lambda cell: cell.update(profile="small"))
    kept = judging.gather_evidence([ROOT / "results", small.write(tmp_path)])
    runs = {
        one.key: source.run
        for found in kept.sources.values()
        for source in found
        for one in source.run.cells
    }
    verdicts = judging.judge(judging.read_all_claims(), kept)
    n_cut = 0
    for part in (part for verdict in verdicts for part in verdict.parts if part.cells):
        less = [said for one in part.cells for said in fewer_settings(runs[one.key], [one])]
        n_cut += bool(less)
        assert not less or part.cut or part.smoke_test, (part.what, less)
    assert n_cut > 10


def test_an_open_verdict_says_which_cells_are_missing_and_how_long_they_take():
    verdicts = judging.judge(
        judging.read_all_claims(), judging.gather_evidence([ROOT / "results"], only_kept=True)
    )
    for found in verdicts:
        if found.outcome not in {"undecided", "not tested"}:
            assert found.to_decide == "", found.claim.id
        elif found.claim.id != "alsvm-7":  # of a script
            where = r"cells? of \w+(, \w+)* at profile paper"
            time = r"(about [\d,.]+ (minutes?|hours?)|less than a minute)(, most of it [\w /-]+)?"
            late = r"[\d,]+ of them would end at their time limit and decide nothing"
            unknown = r"no record tells how long [\d,]+ of them take"
            assert re.fullmatch(
                rf"no {where} is missing whose data are here: it takes more repeats, more seeds or "
                rf"other data|[\d,]+ missing {where}, "
                rf"({time}|{late}|{unknown})(; ({late}|{unknown}))*|"
                r"\w+(, \w+)* at profile paper, whose blocks are others than the kept runs have: "
                r"no record tells how long",
                found.to_decide,
            ), (found.claim.id, found.to_decide)
    said = next(one for one in verdicts if one.to_decide)
    assert f"To decide it: {said.to_decide}." in export.as_markdown([said])


def source_of(*cells, profile="paper", **blocks):
    return Source(replace(run("nlsgd_table2", profile, "", **blocks), cells=cells), (), "")


def planned(solver, fold, status="not run", dataset="iris", **metrics):
    key, seconds = f"{solver}{dataset}{fold}", 40.15 if metrics else 0.0
    return CellResult(key, "all-rows", "nested-cv", "nlsgd", dataset, "rbf", solver, fold, status,
                      metrics=metrics, wall_s=seconds)  # fmt: skip


def test_cells_that_another_run_of_the_plan_has_are_no_missing_ones():
    earlier, missing = planned("csvc", 0, "ok", accuracy_pct=90.0), planned("csvc", 1)
    later = replace(planned("csvc", 2, "ok", accuracy_pct=80.0), key="by other code")
    sources = [
        replace(source_of(), cells=(earlier, missing)),
        replace(source_of(), cells=(later, replace(missing, key="by other code, too"))),
        replace(source_of(profile="small"), cells=(planned("csvc", 3, "ok", accuracy_pct=70.0),)),
    ]
    part = Part("all folds", None, "", cells=(earlier, later))
    source_of_cell = {cell.key: source for source in sources for cell in source.cells}
    found = with_cut(part, source_of_cell, names_datasets=True)
    assert found.cut == "1 of 3 cells not run (profile paper)"


def test_nothing_is_forecast_for_rows_that_nobody_knows():
    cut = {"max_samples": 2000}
    cell = planned("nu-svm", 0, "ok", dataset="nowhere", n_train=1600, n_test=400)
    cell = replace(cell, block="exact", paper="srbo")
    less = replace(run("srbo_table4", "thinned", "", exact=cut), paper="srbo", cells=(cell,))
    work = whole_work_of(less, cell)
    assert math.isnan(work.rows)
    assert Forecaster([Timed(work_of(less, cell), 40.0)]).seconds(work) is None
    # A set whose rows are printed, registered, or taken by a run that took all, has them.
    pair = replace(cell, dataset="mnist-1-vs-0")
    assert whole_work_of(less, pair).rows == 12_665
    assert Forecaster([Timed(work_of(less, pair), 40.0)]).seconds(whole_work_of(less, pair)) > 40.0
    assert whole_work_of(less, replace(cell, dataset="sonar")).rows == 208
    whole = replace(cell, metrics={"n_train": 100, "n_test": 25})
    assert whole_work_of(less, whole).rows == 125


def test_a_block_that_cuts_the_rows_of_the_full_profile_too_is_a_cut():
    pair = planned("nu-svm", 0, "ok", dataset="mnist-1-vs-0", n_train=2000, n_test=2115)
    pair = replace(pair, block="linear", paper="srbo")
    blocks = {"linear": {"max_samples": 2000}}
    full = replace(run("srbo_table9_11", "paper"), paper="srbo", blocks=blocks)
    assert cut_to(full, [pair]) == "at 2,000 rows"
    # A limit above the rows that there are cuts nothing.
    less = replace(pair, metrics={"n_train": 1000, "n_test": 400})
    assert cut_to(full, [less]) == ""
    # The 2,115 test rows are a file of their own, and don't fill the limit.
    less = replace(pair, metrics={"n_train": 1000, "n_test": 2115})
    assert cut_to(full, [less]) == ""


def test_rows_of_a_sweep_include_the_test_rows_that_are_split_off():
    # 6,400 of 10,000 rows are a cut; 6,400 and their own 1,280 test rows again would be none.
    cell = planned("nu-svm", 0, "ok", "electrical", n_train=5120, n_test=1280)
    cell = replace(cell, block="sizes", paper="srbo", dimensions={"rows": 6400})
    short = replace(run("srbo_fig5", "short"), paper="srbo")
    assert cut_to(short, [cell]) == "6,400 of 10,000 rows"


def test_only_missing_cells_of_a_claims_own_solvers_are_counted():
    done = planned("nl-sgd", 0, "ok", n_train=120)
    others = [planned("nl-sgd", 1), planned("libsvm", 0), planned("nl-sgd", 0, "unavailable", "a")]
    source = source_of(done, *others)
    forecaster = Forecaster([Timed(work_of(source.run, done), done.wall_s)])
    part = judging.Part("iris", None, "", cells=(done,))
    said = "1 missing cell of nlsgd_table2 at profile paper, less than a minute"
    assert to_decide([part], [source], forecaster) == (said, 1)
    assert to_decide([], [source], forecaster) == (
        "2 missing cells of nlsgd_table2 at profile paper, less than a minute; "
        "no record tells how long 1 of them take",
        2,
    )


def test_a_claim_that_no_missing_cell_can_decide_has_no_hours():
    done = planned("nl-sgd", 0, "ok", n_train=120)
    whole = source_of(done, planned("nl-sgd", 0, "unavailable", "usps"))
    forecaster = Forecaster([Timed(work_of(whole.run, done), 9000.0)])
    said, n_missing = to_decide([], [whole], forecaster)
    assert n_missing == 0
    assert said.startswith("no cell of nlsgd_table2 at profile paper is missing")
    # A cell that would reach the limit of its config, two hours, decides nothing.
    late, _ = to_decide([], [source_of(done, planned("nl-sgd", 1))], forecaster)
    assert late == (
        "1 missing cell of nlsgd_table2 at profile paper, "
        "1 of them would end at their time limit and decide nothing"
    )
    assert not re.search("hour|minute", said + late)


def test_a_verdict_says_which_commands_make_other_records_now():
    note = profile_of("nlsgd_table2", "small").note
    same = run("nlsgd_table2", "small", note)
    assert is_repeatable(same)
    assert not is_repeatable(replace(same, profile_note="the nine small sets, once"))
    assert not is_repeatable(replace(same, profile="tiny"))
    assert is_repeatable(replace(same, name="mine", profile="tiny"))
    kept = judging.gather_evidence([ROOT / "results"], only_kept=True)
    for verdict in judging.judge([ALL["srbo-9"], ALL["srbo-3"]], kept):
        folders = {run.folder for run in verdict.runs}
        own = [one for one in kept.runs if one.path.as_posix() in folders]
        changed = [one for one in own if not is_repeatable(one)]
        said = [one for one in verdict.notes if "has changed since this run" in one]
        assert len(said) == len({(one.name, one.profile) for one in changed})


def test_a_cell_that_a_smaller_profile_runs_in_full_is_not_missing():
    blocks = {"all-rows": {"outer_folds": 5, "inner_folds": 5, "run_folds": 0}}
    done = planned("nl-sgd", 0, "ok", n_train=120)
    note = profile_of("nlsgd_table2", "small").note
    small = replace(run("nlsgd_table2", "small", note, **blocks), cells=(done,))
    # Of the other twelve sets nothing is planned: each is taken to have as many cells.
    missing = missing_work([small])
    assert {one.work.dataset for one in missing} == {
        one.name for one in load_config(ROOT / "configs" / "nlsgd_table2.yaml").datasets
    } - {"iris"}
    assert sum(one.number for one in missing) == 12
    assert {one.timeout_s for one in missing} == {7200}
    fewer_folds = {"all-rows": {"outer_folds": 3, "inner_folds": 3, "run_folds": 0}}
    cut = replace(small, counts={**small.counts, **fewer_folds})
    assert "iris" in {one.work.dataset for one in missing_work([cut])}


def test_a_cell_that_another_run_of_the_full_protocol_finished_is_not_missing():
    of_code = [
        replace(planned("nl-sgd", fold, status, n_train=120), key=f"{code}{fold}")
        for code, *statuses in [
            ("older", "ok", "not run", "not run", "unavailable"),
            ("newer", "not run", "ok", "not run", "not run"),
        ]
        for fold, status in enumerate(statuses)
    ]
    runs = [source_of(*of_code[:4]).run, source_of(*of_code[4:]).run]
    for order in (runs, runs[::-1]):
        # Fold 2 is missing in both; fold 3 has data in the newer run, and no result.
        assert [missing.number for missing in missing_work(order)] == [1.0, 1.0]


def test_a_page_says_how_long_its_results_took():
    done = replace(planned("nl-sgd", 0, "ok", n_train=120), wall_s=3600.0)
    again = replace(done, solver="mn-svm")  # of a race that is taken apart
    part = judging.Part("iris", None, "", cells=(done, again))
    other = judging.Part("iris", None, "", cells=(replace(done, key="k"),))
    claim = ALL["nlsgd-1"]
    both = [judging.Verdict(claim, "undecided", "", (part,)),
            judging.Verdict(claim, "undecided", "", (part, other))]  # fmt: skip
    said = "The 2 cells they rest on took about 2 hours of computing on one core."
    assert export.evidence_time(both) == said
    assert export.as_markdown(both).endswith(f"\n\n{said}")
    assert export.evidence_time([judging.Verdict(claim, "not tested", "")]) == ""
