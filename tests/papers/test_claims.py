"""Verdicts: each follows its records, and says no more than they do."""

import copy
import json
import math
import re
import shutil
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
import yaml
from claimed_runs import SCENES, Kept, write_run, write_updates

from svmbench.base.errors import ConfigError, ResultsError
from svmbench.base.paper_folders import papers
from svmbench.experiment.config.loader import apply_profile, load_config
from svmbench.papers import judging
from svmbench.papers.judging import export, fill_in_from_kept
from svmbench.papers.judging.checks import CHECKS, load_checks
from svmbench.papers.judging.export import summary
from svmbench.papers.judging.measures import (
    Criterion,
    SideTest,
    answer_exponent_at_least,
    answer_exponent_at_most,
    answer_exponent_in,
    answer_lag_at_most,
    answer_lower,
    answer_most,
    counted,
    format_seconds,
    format_signed,
)
from svmbench.papers.judging.parts import within_best
from svmbench.papers.judging.verdict import (
    CONTRADICTED,
    MIXED,
    NOT_TESTED,
    SUPPORTED,
    UNDECIDED,
    Part,
    Scale,
    decide,
    scale_of,
)
from svmbench.report.numbers.estimates import Estimate, difference
from svmbench.report.numbers.statistics import Interval, PowerLaw
from svmbench.report.output.builder import read_spec
from svmbench.report.reading.records import CellResult, read_run
from svmbench.report.tables.captions import footnotes
from svmbench.report.tables.layout import lay_out
from svmbench.schema.rechecks import Ages

ROOT = Path(__file__).resolve().parents[2]
ALL = {claim.id: claim for claim in judging.read_all_claims()}


def verdict(name, folder):
    (found,) = judging.judge([ALL[name]], judging.gather_evidence([folder]))
    return found


def scene(name, folder, edit=None):
    kept = Kept()
    SCENES[name].build(kept)
    if edit:
        kept.edit(edit)
    return kept.write(folder, SCENES[name].blocks)


def test_every_claim_has_a_check_a_scene_and_a_command():
    assert len(ALL) == len(judging.read_all_claims()) > 0  # no name twice
    assert all(load_checks(paper) for paper in papers().values())
    # Another test of the same process may have declared checks of a paper of its own.
    ours = {name for name in CHECKS if name.rpartition("-")[0] in papers()}
    assert set(ALL) == ours
    assert {claim.paper for claim in ALL.values()} == set(papers())
    assert set(SCENES) == set(ALL) - {"alsvm-7"}  # which is of no run
    for claim in ALL.values():
        assert claim.commands()
        for script in re.findall(r"\S+\.py", claim.command):
            assert (ROOT / script).is_file(), (claim.id, script)


def test_every_config_that_a_claim_names_ships():
    from svmbench.base.paths import asset

    for claim in ALL.values():
        for config in claim.configs:
            assert (asset("configs") / f"{config}.yaml").is_file(), (claim.id, config)
            assert config.startswith(f"{claim.paper}_")


@pytest.mark.parametrize("name", SCENES)
def test_a_verdict_flips_when_its_records_are_edited(name, tmp_path):
    held = verdict(name, scene(name, tmp_path / "held"))
    assert held.outcome == SUPPORTED, held.reason
    edited = verdict(name, scene(name, tmp_path / "edited", SCENES[name].edit))
    assert edited.outcome == CONTRADICTED, edited.reason


@pytest.mark.parametrize("name", SCENES)
def test_a_verdict_is_another_without_any_record_that_it_rests_on(name, tmp_path):
    before = verdict(name, scene(name, tmp_path))
    keys = [cell.key for cell in before.cells]
    for key in {keys[0], keys[len(keys) // 2], keys[-1]}:
        for records in tmp_path.rglob("runs.jsonl"):
            lines = records.read_text().splitlines(keepends=True)
            records.write_text("".join(line for line in lines if f'"{key}"' not in line))
        after = verdict(name, tmp_path)
        assert after.to_json()["parts"] != before.to_json()["parts"]
        scene(name, tmp_path)


def test_updates_are_judged_from_what_the_script_keeps(tmp_path):
    found = verdict("alsvm-7", write_updates(tmp_path / "a", 1.9, 1e-12))
    assert (found.outcome, [part.holds for part in found.parts]) == (SUPPORTED, [True] * 3)
    found = verdict("alsvm-7", write_updates(tmp_path / "b", 2.9, 1e-3))
    assert found.outcome == CONTRADICTED
    found = verdict("alsvm-7", write_updates(tmp_path / "c", 1.9))
    assert (found.outcome, [part.holds for part in found.parts]) == (SUPPORTED, [True, True, None])
    (tmp_path / "a" / "updates.csv").write_text("nonsense\n1\n")
    assert verdict("alsvm-7", tmp_path / "a").outcome == NOT_TESTED
    (tmp_path / "a" / "updates.csv").write_text("operation,d,cpu_time_s\nadd,x,1\n")
    with pytest.raises(ResultsError, match=r"updates.csv: a line has no number 'd'"):
        verdict("alsvm-7", tmp_path / "a")


def test_kept_records_decide_what_some_runs_leave_open(tmp_path):
    (tmp_path / "none").mkdir()
    write_updates(tmp_path / "kept", 1.9, 1e-12)
    write_updates(tmp_path / "own", 2.9, 1e-3)
    open_, kept, own = (verdict("alsvm-7", tmp_path / name) for name in ("none", "kept", "own"))
    [found] = fill_in_from_kept([open_], [kept])
    assert (found.outcome, found.from_kept) == (SUPPORTED, True)
    assert found.reason.startswith("from kept records: holds ")
    assert found.notes[0] == f"These runs alone: {open_.reason}."
    assert summary([found]).endswith("; from kept records, not from these runs: 1")
    # What the runs decide stays theirs, and nothing is said of kept records that decide nothing.
    assert fill_in_from_kept([own], [kept]) == [own]
    assert fill_in_from_kept([open_], [open_]) == [open_]
    assert "kept" not in summary([own, open_])


@pytest.mark.parametrize("name", ALL)
def test_nothing_kept_is_not_tested_and_says_which_command(name, tmp_path):
    found = verdict(name, tmp_path)
    assert (found.outcome, found.scale.kind) == (NOT_TESTED, "")
    assert found.reason
    assert found.claim.commands()


def test_an_interval_that_crosses_a_limit_decides_only_if_it_is_narrow():
    def law(value, low, high):
        return PowerLaw(value, low, high, 1.0, 9)

    for exponent, low, high, holds in (
        (0.7, 0.2, 1.2, None),  # above the limit, and crossing it
        (0.4, 0.15, 0.6, None),  # below the limit, and crossing it
        (0.7, 0.5, 0.9, True),
        (0.2, 0.1, 0.3, False),
        (0.6, 0.4, 0.8, True),  # no wider than 0.4
        (0.4, 0.3, 0.7, True),
    ):
        assert answer_exponent_at_least(law(exponent, low, high), 0.5).holds is holds
        assert answer_exponent_in(law(exponent, low, high), 0.5, math.inf).holds is holds
        assert answer_exponent_in(law(-exponent, -high, -low), -math.inf, -0.5).holds is holds
    assert answer_exponent_at_least(law(0.1, -0.2, 0.4), 0.0).holds is None  # 0.6 wide
    assert answer_exponent_at_least(law(-0.3, -0.4, -0.2), 0.0).holds is False
    assert answer_exponent_at_most(law(1.9, 1.5, 2.3), 2.0).holds is None  # 0.8 wide
    assert answer_exponent_at_most(law(1.9, 1.8, 2.0), 2.0).holds is True
    assert answer_exponent_at_most(law(2.5, 2.3, 2.7), 2.0).holds is False
    assert answer_exponent_in(law(1.0, 0.9, 1.1), 0.8, 1.3).holds is True
    # An interval that meets the window is to be no wider than the window.
    assert answer_exponent_in(law(1.0, 0.7, 1.1), 0.8, 1.3).holds is True
    assert answer_exponent_in(law(1.0, 0.6, 1.4), 0.8, 1.3).holds is None
    assert answer_exponent_in(law(1.4, 1.2, 1.6), 0.8, 1.3).holds is True
    assert answer_exponent_in(law(1.6, 1.4, 1.8), 0.8, 1.3).holds is False
    assert answer_exponent_in(PowerLaw(1.0, None, None, 1.0, 2), 0.8, 1.3).holds is None
    assert answer_exponent_in(None, 0.8, 1.3).holds is None


def test_an_answer_has_no_truth_value():
    with pytest.raises(TypeError, match="read its attribute holds"):
        bool(counted(1.0, at_most=0.0))


def test_a_few_points_say_in_the_verdict_that_they_decide_nothing(tmp_path):
    kept = Kept()
    SCENES["smo-1"].build(kept)
    few = [
        cell for cell in kept.cells["smo_adult_linear"] if cell["dataset"] in {"a1a", "a2a", "a3a"}
    ]
    for cell, factor in zip(few, (1.0, 2.0, 5.0, 1.0, 2.0, 9.0), strict=True):
        cell["metrics"]["cpu_time_s"] *= factor
    kept.cells["smo_adult_linear"] = few
    found = verdict("smo-1", kept.write(tmp_path))
    assert found.outcome == UNDECIDED
    assert found.reason.startswith("undecided: ")
    assert "from 3 points" in found.reason


def test_times_that_overlap_have_no_order():
    near, far = Estimate(1.0, 0.3, n=5), Estimate(1.2, 0.3, n=5)
    assert answer_lower(near, far, "cpu_time_s").holds is None
    assert answer_lower(near, Estimate(3.0, 0.3, n=5), "cpu_time_s").holds is True
    assert answer_lower(Estimate(3.0, 0.3, n=5), near, "cpu_time_s").holds is False
    assert (
        answer_lower(Estimate(1.0), Estimate(1.05), "cpu_time_s").holds is None
    )  # no spread, 5 % apart
    assert answer_lower(Estimate(1.0), Estimate(2.0), "cpu_time_s").holds is True
    folds = {k: 1.0 + k for k in range(5)}
    paired = Estimate(3.0, 1.6, n=5, by_fold={k: v + 0.1 + 0.01 * k for k, v in folds.items()})
    assert answer_lower(Estimate(3.0, 1.6, n=5, by_fold=folds), paired, "cpu_time_s").holds is True


def test_a_score_is_near_the_best_or_not_or_undecided():
    for interval, holds in (
        (Interval(1.0, 0.5, 1.5), True),
        (Interval(1.0, -6.0, 8.0), None),
        (Interval(3.0, 1.0, 5.0), True),  # it meets the limit, and is no wider than twice it
        (Interval(3.0, 1.0, 5.1), None),
        (Interval(5.0, 3.0, 7.0), False),
        (Interval(1.0), None),  # without an interval
        (Interval(3.0), None),
    ):
        assert answer_lag_at_most(interval, 2.0).holds is holds


def test_folds_are_paired_and_scores_corrected_for_what_they_share():
    cell = CellResult("k", "b", "cv", "smo", "a", None, "s", 0, "ok",
                metrics={"n_test": 20, "n_train": 80})  # fmt: skip
    one, other = ({k: 90.0 + k + step * (k % 2) for k in range(5)} for step in (0.0, 1.0))
    first, second = (Estimate(92.0, 1.6, n=5, by_fold=x, cells=(cell,)) for x in (one, other))
    score, time = (difference(first, second, m) for m in ("accuracy_pct", "cpu_time_s"))
    assert score.value == time.value == pytest.approx(-0.4)
    halves = [score.high - score.value, time.high - time.value]
    assert halves[0] / halves[1] == pytest.approx(math.sqrt((1 / 5 + 1 / 4) / (1 / 5)))
    apart = Estimate(92.0, 1.6, n=5)  # the same spread, unpaired
    assert difference(first, apart, "cpu_time_s").high > 2.0


def parts(*holds, **more):
    answers = {True: counted(1.0, at_most=2.0), False: counted(3.0, at_most=2.0), None: None}
    return [Part(str(k), answers[one], "measured", **more) for k, one in enumerate(holds)]


@pytest.mark.parametrize(
    ("quantifier", "holds", "outcome"),
    [
        ("value", (True, True), SUPPORTED),
        ("value", (True, None), SUPPORTED),
        ("value", (True, False), MIXED),
        ("value", (True, False, False), CONTRADICTED),
        ("value", (False, None), CONTRADICTED),
        ("order", (True, True, False), MIXED),
        ("every", (True, None), SUPPORTED),
        ("every", (True, True, True, False), CONTRADICTED),  # one counterexample
        ("most", (True, True, False), SUPPORTED),  # two of three
        ("most", (True, True, False, None), MIXED),  # the open one could make it a half
        ("most", (True, False, False, None), CONTRADICTED),  # which cannot be most any more
        ("most", (True, False), CONTRADICTED),
        ("most", (True, None, None), SUPPORTED),
    ],
)
def test_an_outcome_follows_from_the_parts_and_from_how_the_claim_quantifies(
    quantifier, holds, outcome
):
    assert decide(quantifier, parts(*holds), [])[0] == outcome


def test_what_has_no_decided_part_is_undecided_or_not_tested():
    cell = CellResult("k", "b", "cv", "smo", "a", None, "s", 0, "ok")
    lost, stand_in = parts(None, unavailable=True), parts(True, stand_in=True)
    assert decide("value", parts(None, cells=(cell,)), [])[0] == UNDECIDED
    assert decide("value", parts(None), [])[0] == NOT_TESTED
    assert decide("value", lost, [])[0] == NOT_TESTED
    assert decide("value", [], ["no run is kept of x"]) == (NOT_TESTED, "no run is kept of x")
    quick = parts(True, False, smoke_test=True, cells=(cell,))
    assert decide("every", quick, [])[0] == UNDECIDED
    assert "data not available" in decide("value", [*parts(True), *lost], [])[1]
    assert "on stand-ins alone" in decide("value", stand_in, [])[1]
    assert "on stand-ins" not in decide("value", [*parts(False), *stand_in], [])[1]


def of_set(dataset, holds=True, **more):
    cell = CellResult(dataset, "b", "cv", "smo", dataset, None, "s", 0, "ok")
    return parts(holds, cells=(cell,), **more)[0]


def test_a_scale_says_what_an_outcome_rests_on():
    def scale(outcome, *found, named=("a", "b|c", "d"), stand_ins=("c",)):
        return scale_of(outcome, found, named, stand_ins)

    a, cut = of_set("a"), of_set("b", cut="b 10 of 20 rows")
    other = of_set("c", stand_in=True)
    assert scale(SUPPORTED, a) == Scale("full", (), 1, 3, 0, ("b", "d"))
    assert scale(SUPPORTED, a, cut) == Scale("reduced", ("b 10 of 20 rows",), 2, 3, 0, ("d",))
    assert scale(SUPPORTED, other) == Scale("stand-in", (), 1, 3, 1, ("a", "d"))
    assert str(scale(SUPPORTED, a, other)) == "full; decided on 1 of 3 sets, 1 more on other data"
    assert scale(SUPPORTED, a, replace(other, cut="10 of 20 rows")).kind == "full"
    assert scale(SUPPORTED, replace(other, cut="10 of 20 rows")).cut == ("10 of 20 rows",)
    assert scale(UNDECIDED, of_set("a", None)) == Scale(named=3)
    # The counterexample with the most of the paper's protocol counts.
    fails = of_set("d", holds=False)
    assert scale(CONTRADICTED, cut, replace(other, answer=fails.answer), fails).kind == "full"
    assert scale(CONTRADICTED, a, replace(cut, answer=fails.answer)).kind == "reduced"
    assert scale(CONTRADICTED, a, replace(other, answer=fails.answer)).kind == "stand-in"


def test_reproduced_is_supported_at_full_scale_on_every_named_set(tmp_path):
    found = verdict("smo-13", scene("smo-13", tmp_path))
    assert found.is_reproduced
    one_of_two, other_data = Scale("full", (), 1, 2), Scale("full", (), 1, 1, 1)
    for scale in (Scale("reduced", ("x",), 1, 1), one_of_two, other_data):
        assert not replace(found, scale=scale).is_reproduced
    assert not replace(found, outcome=MIXED).is_reproduced
    undecided = replace(found.parts[0], answer=None)
    assert not replace(found, parts=(*found.parts, undecided)).is_reproduced


def test_failures_stand_before_what_held():
    held = [Part(f"held {k}", counted(1.0, at_most=2.0), "1") for k in range(2)]
    failed = [Part(f"failed {k}", counted(3.0, at_most=2.0), "3") for k in range(4)]
    reason = decide("value", [*held, *failed], [])[1]
    assert reason == (
        "fails in 4 of 6 parts (2 hold): failed 0: 3; failed 1: 3; failed 2: 3; and 1 more; "
        "holds: held 0, held 1"
    )


@pytest.mark.parametrize("edit", [lambda cell: None, SCENES["smo-1"].edit])
def test_the_least_profile_shows_nothing_and_refutes_nothing(edit, tmp_path):
    def cut(cell):
        cell["profile"] = "quick"
        edit(cell)

    found = verdict("smo-1", scene("smo-1", tmp_path, cut))
    assert found.outcome == UNDECIDED
    assert "profile quick: all of it" in found.reason
    assert {(part.smoke_test, part.holds) for part in found.parts if part.cells} == {(True, None)}


@pytest.mark.parametrize("edit", [lambda cell: None, SCENES["sgdlssvm-2"].edit])
def test_a_cut_decides_at_a_reduced_scale_and_says_how_far_it_went(edit, tmp_path):
    kept = Kept()
    SCENES["sgdlssvm-2"].build(kept)
    kept.edit(edit)
    blocks = {"cv": {"max_samples": 5000}}  # a9a has 32,561 rows in the paper, ijcnn1 49,990
    found = verdict("sgdlssvm-2", kept.write(tmp_path, blocks))
    cut = {part.what: part.cut for part in found.parts if part.cut}
    assert cut["sgd-lssvm on a9a"] == "a9a 5,000 of 32,561 rows (profile paper)"
    held = edit is not SCENES["sgdlssvm-2"].edit
    assert {part.holds for part in found.parts if part.cells} == {held}
    # A set that is not cut shows a contradiction at full scale.
    assert found.scale.kind == ("reduced" if held else "full")
    assert ("a9a 5,000 of 32,561 rows (profile paper)" in found.scale.cut) is held


def test_an_unfinished_run_does_not_decide_at_full_scale(tmp_path):
    kept = Kept()
    SCENES["smo-1"].build(kept)
    for cell in kept.cells["smo_adult_linear"]:
        if cell["dataset"] == "a6a":
            cell["status"] = "not run"
    found = verdict("smo-1", kept.write(tmp_path))
    assert found.outcome == SUPPORTED
    assert found.scale.kind == "reduced"
    assert "2 of 12 cells not run (profile paper)" in found.scale.cut


def test_data_sets_that_no_kept_run_plans_are_named_and_not_covered(tmp_path):
    kept = Kept()
    SCENES["cpsp-3"].build(kept)
    cells = kept.cells["cpsp_fig2"]
    kept.cells["cpsp_fig2"] = [cell for cell in cells if not cell["dataset"].startswith("mnist")]
    found = verdict("cpsp-3", kept.write(tmp_path))
    assert (found.outcome, found.scale.covered, found.scale.named) == (SUPPORTED, 3, 5)
    assert found.reason.endswith("no kept run has mnist-0-vs-rest, mnist-low-vs-high")


@pytest.mark.parametrize("n_repeats", [0, 1, 10])
def test_repeats_of_the_outer_folds_decide_what_five_folds_leave_open(n_repeats, tmp_path):
    """The fold differences are the same; with more of them, their average is more certain."""
    kept = Kept()
    for config, n in (("nlsgd_fig6_7", 1), ("nlsgd_repeats", n_repeats)):
        block = "both" if config == "nlsgd_fig6_7" else "epochs"
        for dataset, fold, number in product(("prokaryotic", "eukaryotic"), range(5 * n), (2, 5)):
            for output in ("last", "last-50", "last-25"):
                ahead = (number == 2) * (1.0 + 0.8 * (fold % 5 - 2))
                kept.add(config, block, dataset, f"nl-sgd-{number}-{output}",
                         {"accuracy_pct": 80.0 + ahead, "n_train": 80, "n_test": 20},
                         fold=fold, protocol="nested-cv")  # fmt: skip
    found = verdict("nlsgd-4", kept.write(tmp_path))
    assert [part.holds for part in found.parts] == [n_repeats == 10 or None] * 3
    keys = {cell["key"] for cell in kept.cells["nlsgd_repeats"]} if n_repeats else set()
    assert all(not keys or {cell.key for cell in part.cells} <= keys for part in found.parts)


@pytest.mark.parametrize(("times", "holds"), [(3.0, False), (5.0, True)])
def test_a_ratio_far_below_the_printed_one_fails(times, holds, tmp_path):
    """MN-SVM takes 8 times NL-SGD's time on small sets in print; half of that has to be left."""

    def edit(cell):
        own = {"nl-sgd": 1.0, "mn-svm": times, "nn-isda": 3.0}.get(cell["solver"])
        if own is not None:
            cell["metrics"]["nested_cv_cpu_time_s"] = own

    found = verdict("nlsgd-2", scene("nlsgd-2", tmp_path, edit))
    part = next(part for part in found.parts if part.what.endswith("beside mn-svm, small sets"))
    assert part.holds is holds


@pytest.mark.parametrize("name", SCENES)
def test_a_point_estimate_decides_nothing(name, tmp_path):
    """Every decided part has intervals on one side of their limits."""
    for edit in (None, SCENES[name].edit):
        found = verdict(name, scene(name, tmp_path / str(edit is None), edit))
        assert_intervals_decide(found)


def test_no_kept_verdict_is_decided_by_a_point_estimate():
    verdicts = judging.judge(judging.read_all_claims(), judging.gather_evidence([ROOT / "results"]))
    assert len(verdicts) == len(ALL)
    for found in verdicts:
        assert_intervals_decide(found)
        assert_no_estimate_is_taken_for_a_count(found)
        if found.outcome == SUPPORTED and found.claim.quantifier != "most":
            assert not [part for part in found.parts if part.holds is False]
        if {run.profile for run in found.runs} == {"quick"}:
            assert found.outcome == UNDECIDED


def _side(one):
    low, high = one.interval.low, one.interval.high
    if low is None or high is None:
        return None
    if high < one.at_least or low > one.at_most:
        return False
    apart = one.at_most - one.at_least
    width = one.width if one.width is not None else apart if math.isfinite(apart) else 0.0
    return True if one.at_least <= low <= high <= one.at_most or high - low <= width else None


#: Claims with parts of counts, which have no uncertainty, and the things that are counted.
COUNTED = {
    "alsvm-7": "the largest difference of weights",
    "cpsp-1": "sets, where none is undecided",
    "cpsp-4": "vectors, of the numbers that were tried",
    "cpsp-6": "cuts",
    "fosvm-2": "active rows beside a bound",
    "smo-8": "support vectors",
    "srbo-1": "cases",
    "srbo-4": "groups, where none is undecided",
    **dict.fromkeys(("srbo-2", "srbo-5", "srbo-6", "srbo-7", "srbo-8"), "sets, or cases"),
    "sgdlssvm-5": "iterations",
}


def assert_no_estimate_is_taken_for_a_count(found):
    for part in found.parts:
        for one in part.answer.criteria if part.holds is not None else ():
            ends = one.interval if isinstance(one, Criterion) else None
            if ends is not None and ends.low is not None and ends.low == ends.high:
                # Equal scores of all folds have an interval of no width; so has "never".
                is_measured = one.interval.value == 0.0 or math.isinf(one.interval.value)
                assert is_measured or found.claim.id in COUNTED, (found.claim.id, part.what)


def assert_intervals_decide(found):
    for part in found.parts:
        if part.holds is None:
            continue
        assert not part.smoke_test
        ends = [one for one in part.answer.criteria if isinstance(one, Criterion)]
        tests = [one for one in part.answer.criteria if isinstance(one, SideTest)]
        sides = [_side(one) for one in ends]
        sides += [True if one.p_holds < one.level else False if one.p_fails < one.level else None
                  for one in tests]  # fmt: skip
        assert sides, (found.claim.id, part.what)
        assert part.holds is (False not in sides), (found.claim.id, part.what)
        assert part.holds is False or None not in sides, (found.claim.id, part.what)


def test_a_time_of_an_uncertain_number_of_vectors_decides_nothing(tmp_path):
    """Other methods come near the exact accuracy on text, but not with certainty."""

    def near(cell):
        if cell["solver"] not in ("cpsp", "exact", "linear"):
            cell["metrics"]["accuracy_pct"] = 94.6

    kept = Kept()
    SCENES["cpsp-9"].build(kept)
    exact = {
        cell["metrics"]["accuracy_pct"]
        for cells in kept.cells.values()
        for cell in cells
        if cell["solver"] == "exact"
    }
    assert exact == {95.0}
    assert verdict("cpsp-9", scene("cpsp-9", tmp_path / "held")).outcome == SUPPORTED
    assert verdict("cpsp-9", scene("cpsp-9", tmp_path / "near", near)).outcome == UNDECIDED


@pytest.mark.parametrize(
    "claim", ["cpsp-1", "cpsp-2", "cpsp-4", "cpsp-7", "cpsp-8", "cpsp-9", "cpsp-10", "cpsp-11"]
)
def test_a_search_on_a_sample_of_the_rows_counts_like_one_on_all(claim, tmp_path):
    def sampled(cell):
        if cell["block"] in {"fig1", "exact", "table1"}:
            cell["block"] += "-sampled"

    whole = verdict(claim, scene(claim, tmp_path / "whole"))
    found = verdict(claim, scene(claim, tmp_path / "sampled", sampled))
    assert found.outcome == whole.outcome == SUPPORTED
    assert [(part.what, part.measured) for part in found.parts] == [
        (part.what, part.measured) for part in whole.parts
    ]


def test_runs_of_one_config_are_not_pooled(tmp_path):
    scene("smo-1", tmp_path / "full")

    def against(cell):
        cell["profile"] = "quick"
        SCENES["smo-1"].edit(cell)

    scene("smo-1", tmp_path / "quick", against)
    found = verdict("smo-1", tmp_path)
    assert found.outcome == SUPPORTED
    assert any("does not count" in note for note in found.notes)
    assert [run.profile for run in found.runs] == ["paper"]
    # Of two runs of a profile the one with more results counts, not their mean.
    kept = Kept()
    SCENES["smo-1"].build(kept)
    kept.edit(SCENES["smo-1"].edit)
    write_run(tmp_path / "less", "smo_adult_linear", kept.cells["smo_adult_linear"][:-2])
    assert verdict("smo-1", tmp_path).outcome == SUPPORTED


def test_another_profile_counts_where_the_full_one_is_unfinished(tmp_path):
    def unfinished(cell):
        if cell["dataset"] == "ijcnn1":
            cell["status"] = "not run"

    def smaller(cell):
        cell["profile"] = "medium"

    def lost(cell):
        smaller(cell)
        if cell["solver"] == "pegasos":
            unfinished(cell)

    scene("alsvm-1", tmp_path / "full", unfinished)
    scene("alsvm-1", tmp_path / "medium", smaller)
    found = verdict("alsvm-1", tmp_path)
    assert found.outcome == SUPPORTED
    labels = [part.what for part in found.parts]
    assert "ijcnn1, profile medium" in labels
    assert "ijcnn1" not in labels
    assert not any("a9a, profile medium" in label for label in labels)
    # What neither has finished stays open; nothing is made up of both.
    scene("alsvm-1", tmp_path / "medium", lost)
    found = verdict("alsvm-1", tmp_path)
    assert found.outcome == SUPPORTED
    assert "ijcnn1" in [part.what for part in found.parts if part.holds is None]


def test_another_run_of_the_full_protocol_comes_before_another_profile(tmp_path):
    def without(name, solvers=None):
        def edit(cell):
            if cell["dataset"] == name and (solvers is None or cell["solver"] in solvers):
                cell["status"] = "not run"

        return edit

    def smaller(cell):
        cell["profile"] = "medium"

    def only_ijcnn1(cell):
        if cell["dataset"] != "ijcnn1":
            cell["status"] = "not run"

    scene("alsvm-1", tmp_path / "most", without("ijcnn1"))
    scene("alsvm-1", tmp_path / "medium", smaller)
    scene("alsvm-1", tmp_path / "later", only_ijcnn1)
    found = verdict("alsvm-1", tmp_path)
    assert found.outcome == SUPPORTED
    labels = [part.what for part in found.parts]
    assert labels.count("ijcnn1, profile paper") == 1
    assert not any("profile medium" in label for label in labels)
    assert [Path(run.folder).parent.name for run in found.runs] == ["most", "later"]
    # A set that the later run has not finished, either, comes from neither of the two.
    scene("alsvm-1", tmp_path / "later", without("ijcnn1", ["pegasos"]))
    found = verdict("alsvm-1", tmp_path)
    assert "ijcnn1, profile medium" in [part.what for part in found.parts]
    # The same is true of a set of which the later run planned fewer cells.
    kept = Kept()
    SCENES["alsvm-1"].build(kept)
    kept.edit(only_ijcnn1)
    cells = kept.cells["alsvm_table2"]
    last = next(cell for cell in reversed(cells) if cell["dataset"] == "ijcnn1")
    write_run(tmp_path / "later", "alsvm_table2", [cell for cell in cells if cell is not last])
    found = verdict("alsvm-1", tmp_path)
    assert "ijcnn1, profile medium" in [part.what for part in found.parts]


def test_a_run_with_more_blocks_of_a_data_set_fills_in_before_one_with_fewer(tmp_path):
    def unfinished(cell):
        if cell["dataset"] == "ccat":
            cell["status"] = "not run"

    def smaller(cell):
        cell["profile"] = "medium"

    def only_the_exact_one(cell):
        if cell["dataset"] != "ccat" or cell["block"] != "exact":
            cell["status"] = "not run"

    kept = Kept()
    SCENES["cpsp-9"].build(kept)
    of_ccat = kept.cells["cpsp_fig1"]
    of_others = [
        {**cell, "dataset": name, "key": f"{name}-{cell['key']}"}
        for name in ("a9a", "ijcnn1")
        for cell in of_ccat
    ]
    kept.edit(unfinished)
    write_run(tmp_path / "most", "cpsp_fig1", [*of_others, *of_ccat])
    scene("cpsp-9", tmp_path / "medium", smaller)
    scene("cpsp-9", tmp_path / "later", only_the_exact_one)
    found = verdict("cpsp-9", tmp_path)
    assert found.outcome == SUPPORTED
    assert {part.what for part in found.parts if part.holds} == {"ccat, profile medium"}
    # Of runs with equally many blocks, one of the full protocol: blocks that it lacks don't count.
    scene("cpsp-9", tmp_path / "later")
    extra = [{**cell, "block": "extra", "key": f"extra-{cell['key']}"} for cell in of_ccat]
    for cell in (cells := [*copy.deepcopy(of_ccat), *extra]):
        cell.update(status="ok", profile="medium")
    write_run(tmp_path / "medium" / "cpsp_fig1", "cpsp_fig1", cells)
    found = verdict("cpsp-9", tmp_path)
    assert {part.what for part in found.parts if part.holds} == {"ccat, profile paper"}


def test_a_run_of_the_full_protocol_with_more_blocks_of_a_data_set_gives_all_of_them(tmp_path):
    def without_the_curves(cell):
        if cell["dataset"] == "ijcnn1" and cell["block"] == "fig1":
            cell["status"] = "no record"

    def only_ijcnn1(cell):
        if cell["dataset"] != "ijcnn1":
            cell["status"] = "no record"

    # The fullest run has the exact machine on ijcnn1, the later one its curves too.
    scene("cpsp-11", tmp_path / "most", without_the_curves)
    assert "of 4 sets" in verdict("cpsp-11", tmp_path).parts[0].measured
    scene("cpsp-11", tmp_path / "later", only_ijcnn1)
    (part,) = verdict("cpsp-11", tmp_path).parts
    assert "of 5 sets" in part.measured
    assert part.holds is True


@pytest.mark.parametrize("name", ["srbo-2", "srbo-4", "srbo-9"])
def test_sets_are_counted_over_all_runs_of_a_profile(name, tmp_path):
    def lacks(is_lacking):
        def edit(cell):
            if is_lacking(cell["dataset"] == last):
                cell["status"] = "no record"

        return edit

    scene(name, tmp_path / "whole")
    whole = verdict(name, tmp_path / "whole")
    last = whole.datasets()[-1]
    scene(name, tmp_path / "apart" / "most", lacks(lambda is_last: is_last))
    scene(name, tmp_path / "apart" / "later", lacks(lambda is_last: not is_last))
    apart = verdict(name, tmp_path / "apart")
    counts = [part.measured for part in whole.parts if part.holds is not None]
    assert counts
    assert [part.measured for part in apart.parts if part.holds is not None] == counts


def test_results_of_another_environment_are_left_out_and_named(tmp_path):
    kept = Kept()
    SCENES["smo-1"].build(kept)
    (cells,) = kept.cells.values()
    for cell in cells[:2]:
        cell["environment"] = "0ther"
        cell["metrics"]["cpu_time_s"] *= 1000.0
    kept.write(tmp_path, environments=("4be1c0de", "0ther"))
    found = verdict("smo-1", tmp_path)
    assert found.outcome == SUPPORTED
    assert any("2 of 12 results come from another environment (0ther)" in n for n in found.notes)
    assert "a1a" not in found.datasets()
    assert [run.environments for run in found.runs] == ["4be1c0de"]


def test_all_environments_of_the_results_and_missing_sets_are_named(tmp_path):
    kept = Kept()
    SCENES["smo-1"].build(kept)
    (cells,) = kept.cells.values()
    for cell in cells[:2]:
        cell["environment"] = "an0ther"
    kept.write(tmp_path, environments=("4be1c0de", "an0ther"))
    first, other = sorted(tmp_path.rglob("environment-*.json"))
    shutil.copy(first, other)
    found = verdict("smo-1", tmp_path)
    assert [run.environments for run in found.runs] == ["4be1c0de, an0ther"]
    cut = replace(found, scale=Scale("full", (), 8, 9, 0, ("a5a",)))
    lines = [line for _, line in export.as_details([cut])]
    assert "nothing decided on: a5a" in lines


def test_a_run_at_all_values_of_nu_comes_before_an_older_one(tmp_path):
    """On banknote the older run, of few values, screens less than half."""
    for name, block, solver, screened in (
        ("older", "paths", "srbo-nu-svm", 20.0),
        ("exact", "exact", "srbo-nu-svm-pairwise", 80.0),
    ):
        kept = Kept()
        profile = "paper" if block == "exact" else "thinned"
        for dataset in ("banknote", "cmc")[: 1 + (block == "paths")]:
            metrics = {"screening_ratio_pct": screened, "n_train": 1000}
            kept.add("srbo_table4", block, dataset, solver, metrics, profile=profile)
        kept.write(tmp_path / name)
    (part,) = (one for one in verdict("srbo-7", tmp_path).parts if one.subject == "table4")
    assert part.measured.startswith("above 50 % on 1 of 1 sets")


def test_an_unfinished_run_is_shown_as_such(tmp_path):
    kept = Kept()
    SCENES["alsvm-1"].build(kept)
    for cell in kept.cells["alsvm_table2"]:
        if cell["dataset"] == "ijcnn1":
            cell["status"] = "not run"
    found = verdict("alsvm-1", kept.write(tmp_path))
    assert (found.outcome, found.scale.covered) == (SUPPORTED, 2)
    assert "undecided: ijcnn1" in found.reason
    assert "alsvm_table2 is unfinished: no result for 4 of 12 cells." in found.notes


def test_rivals_need_not_name_the_solver_that_is_near_the_best(tmp_path):
    evidence = judging.gather_evidence([scene("alsvm-3", tmp_path)])
    claim, (source,) = ALL["alsvm-3"], evidence.runs_that_count("alsvm_table2")
    rivals = ("falsvm", "liblinear-l1", "pegasos")
    parts = within_best(claim, source, ["cv"], "alsvm", rivals)
    named = within_best(claim, source, ["cv"], "alsvm", (*rivals, "alsvm"))
    assert parts
    assert parts == named


@pytest.mark.parametrize(
    ("name", "config", "rival"),
    [
        ("alsvm-1", "alsvm_table2", "pegasos"),
        ("alsvm-3", "alsvm_table2", "pegasos"),
        ("cpsp-1", "cpsp_table1", "icf"),
        ("nlsgd-1", "nlsgd_table2", "mn-svm"),
    ],
)
def test_the_best_is_open_while_a_rival_is_missing(name, config, rival, tmp_path):
    def unfinished(edit, folder):
        kept = Kept()
        SCENES[name].build(kept)
        kept.edit(edit)
        first = kept.cells[config][0]["dataset"]
        for cell in kept.cells[config]:
            if cell["dataset"] == first and cell["solver"] == rival:
                cell["status"] = "not run"
        return verdict(name, kept.write(folder))

    found = unfinished(lambda cell: None, tmp_path / "held")
    assert found.outcome == SUPPORTED
    assert rival in "".join(part.measured for part in found.parts if part.holds is None)
    # That it isn't the best is no matter of who else is missing.
    assert unfinished(SCENES[name].edit, tmp_path / "not").outcome == CONTRADICTED


def test_a_run_of_which_nothing_is_done_yet_says_so(tmp_path):
    kept = Kept()
    SCENES["alsvm-1"].build(kept)
    for cell in kept.cells["alsvm_table2"]:
        cell["status"] = "not run"
    found = verdict("alsvm-1", kept.write(tmp_path))
    assert found.outcome == NOT_TESTED
    assert found.reason.startswith("undecided: a9a: not run")
    # The run of this test has another note of its profile than the config.
    changed = [note for note in found.notes if "alsvm_table2 has changed since this run" in note]
    assert len(changed) == 1
    unfinished = "alsvm_table2 is unfinished: no result for 12 of 12 cells."
    assert set(found.notes) == {unfinished, *changed}


def test_data_that_cannot_be_had_are_named_and_leave_a_part_open(tmp_path):
    kept = Kept()
    SCENES["alsvm-1"].build(kept)
    for cell in kept.cells["alsvm_table2"]:
        if cell["dataset"] == "ijcnn1":
            cell |= {"status": "unavailable", "reason": "no such file"}
    found = verdict("alsvm-1", kept.write(tmp_path))
    assert found.outcome == SUPPORTED
    assert "; data not available: ijcnn1; no kept run has cod-rna, covtype, " in found.reason


def test_times_taken_beside_other_work_are_counted(tmp_path):
    def busy(cell):
        cell["contended"] = cell["solver"] == "smo"

    found = verdict("smo-1", scene("smo-1", tmp_path, busy))
    assert "6 of 12 results were timed while other programs or cells ran." in found.notes


def test_names_that_mean_something_elsewhere_are_inert(tmp_path):
    def rename(cell):
        if cell["dataset"] == "a9a":
            cell["dataset"] = "<script>alert(1)</script>|*x*\x1b[31m"

    found = verdict("alsvm-1", scene("alsvm-1", tmp_path, rename))
    assert "<script>" not in export.as_markdown([found]).replace("\\<script\\>", "")
    assert "\x1b" not in export.as_markdown([found])
    latex = export.as_latex([verdict("alsvm-2", tmp_path)])
    assert r"\$" not in latex
    assert latex.count("\\\\\n") == 2  # the head and one row
    everything = json.loads(export.as_json([found]))
    assert everything[0]["parts"][0]["what"] == "<script>alert(1)</script>|*x*\x1b[31m"


def test_a_long_number_in_markdown_ends_after_a_whole_word(tmp_path):
    whole = verdict("smo-1", scene("smo-1", tmp_path))
    words = [f"w{number:03}-xyz" for number in range(200)]
    found = replace(whole, parts=(replace(whole.parts[0], measured=" ".join(words)),))
    said = export.as_markdown([found]).partition("w000")[2].partition(" …")[0]
    last = said.split()[-1].replace("\\", "")
    assert last in words, said


def test_formats_hold_every_verdict(tmp_path):
    verdicts = judging.judge(
        list(ALL.values()), judging.gather_evidence([scene("smo-1", tmp_path)])
    )
    for text in (export.as_markdown(verdicts), export.as_latex(verdicts),
                 export.as_json(verdicts), str(export.as_details(verdicts))):  # fmt: skip
        assert all(name in text for name in ALL)
        assert "supported" in text
    said = "2 supported (2 of them at full scale), 1 contradicted"
    said = f"{len(ALL)} claims: {said}, {len(ALL) - 3} not tested"
    assert said in export.summary(verdicts)
    detailed = str(export.as_details(verdicts[:1]))
    for said in ("limits: gap 1, apart 0.2", "svmbench run smo_adult_linear --profile paper",
                 "1,605 to 11,220 training rows", "printed: 1.9 and 3.1"):  # fmt: skip
        assert said in detailed


def test_what_is_older_than_the_code_is_marked(tmp_path):
    kept = judging.gather_evidence([scene("smo-1", tmp_path)])
    keys = [
        cell.key for source in kept.runs_that_count("smo_adult_linear") for cell in source.cells
    ]

    def judged(known):
        return judging.judge([ALL["smo-1"]], kept, lambda _source: known)[0]

    fresh = judged(Ages(dict.fromkeys(keys, "fresh")))
    assert (fresh.age, fresh.age_details) == ("fresh", ())
    assert judged(Ages(dict.fromkeys(keys[1:], "fresh"))).age == "older"
    older = judged(Ages({**dict.fromkeys(keys, "fresh"), keys[0]: "older"}))
    assert (older.age, older.age_details) == ("older", ("1 of 12 results",))
    assert older.outcome == fresh.outcome
    assert export.summary([older, fresh]).endswith(
        "; 1 claim rests on older records, 1 on fresh ones"
    )
    assert "**supported**, older" in export.as_markdown([older])
    assert export.as_rows([older])[0][1::4] == ("supported", "older")
    assert export.as_rows([older])[0][2:4] == ("full", "6/9 sets")
    assert "supported, full; decided on 6 of 9 sets (older): " in export.as_details([older])[0][1]
    assert "supported, full; decided on 6 of 9 sets (older)" in export.as_latex([older])
    again = judged(Ages(dict.fromkeys(keys, "rechecked"), n_agreed=2))
    assert again.age == "rechecked"
    assert again.age_details == (f"2 of {len(keys)} cells of a run were repeated, and agreed",)
    moved = Ages(
        {**dict.fromkeys(keys, "older"), keys[0]: "changed"},
        changed={keys[0]: "linear · a9a: objective was 1, is 2", "other": "another cell"},
    )
    changed = judged(moved)
    assert changed.age == "changed"
    assert changed.age_details == ("1 of 12 results", "linear · a9a: objective was 1, is 2")
    assert "changed: linear · a9a" in str(export.as_details([changed]))
    assert verdict("smo-1", tmp_path).age == ""  # nobody looked


def test_tables_without_records_are_no_evidence(tmp_path):
    folder = tmp_path / "smo_adult_linear"
    folder.mkdir()
    (folder / "tables.md").write_text("# tables\n")
    found = verdict("smo-1", tmp_path)
    assert found.reason == "only tables, no records, are kept of smo_adult_linear"


def test_a_damaged_run_and_a_missing_folder_are_sentences(tmp_path):
    scene("smo-1", tmp_path)
    (tmp_path / "smo_adult_linear" / "plan.json").write_text("{")
    with pytest.raises(ResultsError, match=r"plan\.json"):
        judging.gather_evidence([tmp_path])
    with pytest.raises(ResultsError, match="is no folder of results"):
        judging.gather_evidence([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('metrics = ["cpu_time_s"]', 'metrics = ["cpu_tme_s"]', "unknown metric 'cpu_tme_s'; did"),
        ("[smo-1]", "[smoo-1]", "no check is known by this name; did you mean 'smo-1'?"),
        ("where =", 'paper = "smoo"\nwhere =', "paper is 'smo'"),
        ("limits = {gap = 1.0, apart = 0.2}", "limits = {gab = 0.5}", "limit gap is missing"),
        ("limits = {gap = 1.0, apart = 0.2}", "limits = {gap = true}", "limit gap is a number"),
        ("limits = {gap = 1.0, apart = 0.2}", "limits = 3", "limits is a table of numbers"),
        ("where =", "wher =", "unknown key 'wher'; did you mean 'where'?"),
        (
            "limits = {gap = 1.0, apart = 0.2}",
            "limits = {gap = nan}",
            "limit gap is above 0 and at most",
        ),
        (
            "limits = {gap = 1.0, apart = 0.2}",
            "limits = {gap = 0}",
            "limit gap is above 0 and at most",
        ),
        ('metrics = ["cpu_time_s"]', "metrics = []", "metrics has 0 names instead of 1"),
        ("configs = [", 'configs = ["x", ', "configs has 2 names instead of 1"),
        (
            'configs = ["smo_noise_linear", "smo_noise_rbf"]',
            'configs = ["smo_noise_linear"]',
            "configs has 1 name instead of 2",
        ),
        (
            "limits = {gap = 1.0, apart = 0.2}",
            f"limits = {{gap = {'9' * 5000}}}",
            "integer string conversion",
        ),
        ('metrics = ["cpu_time_s"]', "metrics = 3", "metrics is a list of names"),
        ("[smo-1]", "[smo-1", "claims.toml: "),
        ('fixed = "2026-11-28"', 'fixed = "today"', "fixed is a date, as in 2026-11-23"),
        ('fixed = "2026-11-28"', 'fixed = ""', "fixed is missing"),
        ("after_records = true", "after_records = 1", "after_records is true or false"),
    ],
)
def test_a_wrong_claims_file_is_a_sentence(before, after, said, tmp_path):
    text = (papers()["smo"].folder / "claims.toml").read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "claims.toml"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        judging.read_all_claims(path)
    assert said in str(caught.value)


def test_thresholds_of_ones_own_decide(tmp_path):
    text = (
        (papers()["smo"].folder / "claims.toml")
        .read_text(encoding="utf-8")
        .replace("limits = {gap = 1.0, apart = 0.2}", "limits = {gap = 2.0, apart = 0.2}")
    )
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    strict = {claim.id: claim for claim in judging.read_all_claims(path)}["smo-1"]
    kept = judging.gather_evidence([scene("smo-1", tmp_path / "runs")])
    assert judging.judge([ALL["smo-1"]], kept)[0].outcome == SUPPORTED
    assert [part.holds for part in judging.judge([strict], kept)[0].parts] == [True, True, False]


def test_a_cell_that_lies_twice_counts_once(tmp_path):
    scene("smo-1", tmp_path)
    shutil.copytree(tmp_path / "smo_adult_linear", tmp_path / "again" / "smo_adult_linear")
    assert len(verdict("smo-1", tmp_path).cells) == 12


def test_times_are_written_in_a_unit_without_an_exponent():
    assert format_seconds(12.345) == "12.3 s"
    assert format_seconds(0.0123) == "12.3 ms"
    assert format_seconds(6.31e-4) == "631 µs"
    assert format_seconds(2e-9) == "0.00200 µs"
    assert (format_signed(-1.234), format_signed(0.5), format_signed(-0.0001)) == (
        "−1.23",
        "+0.50",
        "0.00",
    )


def test_a_trend_over_few_races_is_undecided(tmp_path):
    kept = Kept()
    SCENES["srbo-2"].build(kept)
    for config, cells in kept.cells.items():
        kept.cells[config] = cells[:2] if config == "srbo_fig5" else []
    few = Kept({"srbo_fig5": kept.cells["srbo_fig5"]})
    found = verdict("srbo-2", few.write(tmp_path))
    assert [part.holds for part in found.parts] == [None]
    assert "over 2 races" in found.reason


def test_growth_with_the_size_asks_for_sizes_that_differ(tmp_path):
    def alike(cell):
        if cell["dimensions"].get("rows") is None:
            cell["metrics"]["n_train"] = 1000 + cell["metrics"]["n_train"] // 100

    found = srbo_verdict("srbo-2", tmp_path, alike)
    grows = {part.what: part for part in found.parts if part.what.endswith("grows")}
    assert {what: part.holds for what, part in grows.items()} == {
        "fig5, abalone, grows": True,
        **{f"table{k}, grows": None for k in (4, 5, 6, 7)},
    }
    assert "sizes differ by less than 4 times" in grows["table4, grows"].measured


def test_novelty_is_judged_beside_libsvm_and_ours_decides_nothing(tmp_path):
    found = verdict("fosvm-1", scene("fosvm-1", tmp_path / "held"))
    digits = next(part for part in found.parts if part.what == "fosvm1 on digits")
    assert digits.holds is True  # ten times as fast as LIBSVM, a hundredth of ours
    assert "; 10× [" in digits.measured
    assert "as fast as libsvm-oneclass (and 0.01× [" in digits.measured
    without = Kept()
    SCENES["fosvm-1"].build(without)
    cells = without.cells["fosvm_table2"]
    without.cells["fosvm_table2"] = [one for one in cells if one["solver"] != "libsvm-oneclass"]
    assert verdict("fosvm-1", without.write(tmp_path / "without")).outcome == NOT_TESTED


@pytest.mark.parametrize("change", [
    {"auc_pct": 85.0}, {"cpu_time_s": 5.0}, {"auc_pct": 85.0, "cpu_time_s": 5.0},
])  # fmt: skip
def test_novelty_must_be_as_good_and_faster_on_the_same_data_set(change, tmp_path):
    kept = Kept()
    SCENES["fosvm-1"].build(kept)
    for cell in kept.cells["fosvm_table2"]:
        if cell["solver"] == "fosvm1" and cell["dataset"] == "digits":
            cell["metrics"].update(change)
    found = verdict("fosvm-1", kept.write(tmp_path / "kept"))
    answers = {part.what: part.holds for part in found.parts}
    assert answers == {
        "fosvm1 on digits": False, "fosvm2 on digits": True,
        "fosvm1 on diabetes": True, "fosvm2 on diabetes": True,
    }  # fmt: skip


def srbo_verdict(name, tmp_path, change):
    kept = Kept()
    SCENES[name].build(kept)
    kept.edit(change)
    return verdict(name, kept.write(tmp_path))


def test_times_that_are_the_same_leave_open_whether_screening_pays(tmp_path):
    def same(cell):
        for name in cell["metrics"]:
            if name.startswith("speedup"):
                cell["metrics"][name] = 1.0 + 0.00001 * cell["metrics"]["n_train"]

    found = srbo_verdict("srbo-2", tmp_path, same)
    paying = [part for part in found.parts if "pays" in part.what or "not on" in part.what]
    assert len(paying) == 8
    assert {part.holds for part in paying} == {None}
    assert "either on 7 of 7 sets" in paying[0].measured


def test_groups_of_too_few_sets_and_groups_that_differ_leave_a_majority_open(tmp_path):
    def few(cell):
        if cell["dataset"] not in {f"set{place}" for place in range(4)}:
            cell["status"], cell["metrics"] = "failed", {}

    # Four sets that all speak for it have p = 1/16, which is not below 0.05.
    found = srbo_verdict("srbo-4", tmp_path / "few", few)
    (part,) = (one for one in found.parts if one.what == "most groups")
    assert part.holds is None
    assert "below 0.05 in 0 of 12 groups, not in 0, undecided in 12: " in part.measured

    kept = Kept()
    SCENES["srbo-4"].build(kept)
    for number, cells in enumerate(kept.cells.values()):
        for cell in cells if number < 4 else ():
            SCENES["srbo-4"].edit(cell)
    (part,) = verdict("srbo-4", kept.write(tmp_path / "eight")).parts
    assert (part.holds, part.printed) == (True, "10 of 12 groups")  # eight of twelve
    assert "below 0.05 in 8 of 12 groups, not in 1, undecided in 3: " in part.measured


def test_missing_sets_leave_a_count_undecided_only_if_they_could_change_it(tmp_path):
    def better_on(cell):
        if cell["dataset"] in {"set0", "set1", "set2", "set3"}:
            cell["metrics"]["accuracy_pct:c-svm-pairwise"] = 95.0
        cell["metrics"] |= {"n_values:nu-svm-pairwise": 40, "n_values:c-svm-pairwise": 8}

    found = srbo_verdict("srbo-5", tmp_path, better_on)
    # Seven of eleven sets: of Table IV's 13 most, of Table V's 26 not.
    assert [part.holds for part in found.parts] == [True, None]
    assert "on 7 of 11 sets" in found.parts[0].measured
    assert "best of 40 settings against that of 8" in found.parts[0].measured
    wins = [True] * 7 + [False] * 4
    assert answer_most(wins, 13).holds is True
    assert answer_most(wins, 14).holds is None
    assert answer_most([False] * 4, 8).holds is False  # the other four are no more than half


@pytest.mark.parametrize(
    "name", ["srbo-2", "srbo-3", "srbo-4", "srbo-5", "srbo-6", "srbo-7", "srbo-9"]
)
def test_runs_of_the_configs_that_a_claim_names_are_judged(name, tmp_path):
    kept = Kept()
    SCENES[name].build(kept)
    kept.cells = {f"my_{config}": cells for config, cells in kept.cells.items()}
    evidence = judging.gather_evidence([kept.write(tmp_path)])
    claim = replace(ALL[name], configs=tuple(f"my_{config}" for config in ALL[name].configs))
    assert [one.outcome for one in judging.judge([claim, ALL[name]], evidence)] == [
        SUPPORTED,
        NOT_TESTED,
    ]


def test_another_accuracy_of_one_table_contradicts_that_screening_is_safe(tmp_path):
    kept = Kept()
    SCENES["srbo-1"].build(kept)
    for solver, accuracy in (("nu-svm-dcdm", 94.75), ("srbo-nu-svm-dcdm", 95.75)):
        kept.add("srbo_table8", "rbf", "epileptic", solver, {"accuracy_pct": accuracy})
    found = verdict("srbo-1", kept.write(tmp_path))
    (part,) = (one for one in found.parts if one.holds is False)
    assert part.what == "table8, accuracy with dcdm"
    assert part.measured.startswith("another accuracy in 1 of 1 cases; epileptic, rbf: 94.75 %")
    assert found.outcome == CONTRADICTED


@pytest.mark.parametrize("profile", ["paper", "thinned"])
@pytest.mark.parametrize("table", [4, 5, 6, 7])
def test_screening_paths_follow_nu_in_the_papers_steps(table, profile):
    config = apply_profile(load_config(ROOT / f"configs/srbo_table{table}.yaml"), profile)
    for solver in (one for block in config.blocks for one in block.solvers if "nu" in one.grid):
        values = [point["nu"] for point in solver.grid_points()]
        assert {round(b - a, 9) for a, b in pairwise(values)} == {0.001}
        assert len(values) == (986 if profile == "paper" else 30)


def test_a_config_has_the_three_steps_of_nu_side_by_side():
    given = yaml.safe_load((ROOT / "configs/srbo_steps.yaml").read_text())
    steps = {}
    for block in given["blocks"]:
        values = block["solvers"][0]["grid"]["nu"]
        assert (values[0], values[-1]) == (0.3, 0.5)
        kernel = block["name"].split("-")[0]
        steps.setdefault(kernel, set()).update(round(b - a, 9) for a, b in pairwise(values))
    assert steps == {"linear": {0.1, 0.01, 0.001}, "rbf": {0.1, 0.01, 0.001}}


@pytest.mark.parametrize(
    ("name", "own", "exact", "rival"),
    [("sgdlssvm-1", 0.01, 10.0, 0.1), ("sgdlssvm-2", 90.0, 45.0, 90.5)],
)
def test_sgd_lssvm_at_its_own_point_is_compared_with_rivals_at_an_exact_solvers(
    tmp_path, name, own, exact, rival
):
    """Its cells at the exact solver's point, and those of block `cv`, would contradict a claim."""
    kept, metric = Kept(), ALL[name].metrics[0]
    for block, solver, value in (
        ("own", "sgd-lssvm", own),
        ("chosen", "sgd-lssvm", exact),
        ("chosen", "libsvm", rival),
        ("cv", "sgd-lssvm", exact),
        ("cv", "libsvm", rival),
    ):
        kept.add("sgdlssvm_table2", block, "a9a", solver, {metric: value},
                 spread={metric: value / 500}, folds=5, protocol="cv")  # fmt: skip
    found = verdict(name, kept.write(tmp_path))
    assert [part.holds for part in found.parts if "a9a" in part.what] == [True]


def test_times_of_fewer_rows_than_the_paper_s_have_no_ratio_to_printed_times():
    """In a9a's rows of Table II, cut to 4,000 of 32,561, and in whole rows of the other run."""
    found = {}
    for folder, name in (
        ("sgdlssvm_table2-medium", "table2"),
        ("sgdlssvm_table2-paper", "table2-chosen"),
    ):
        run = read_run(ROOT / "results/sgdlssvm" / folder)
        spec = read_spec(next(one for one in run.tables if one["name"] == name), "plan.json")
        table = lay_out(run, spec)
        explains = "fewer rows than the paper's" in str(footnotes(table, allow_contended=False))
        assert explains is (name == "table2")
        for entry in table.entries.values():
            if entry.summary.metric == "train_time_s" and entry.comparison.published is not None:
                found.setdefault((name, entry.cell.dataset), []).append(entry.comparison.difference)
    assert set(found["table2", "a9a"]) == set(found["table2", "ijcnn1"]) == {None}
    assert None not in found["table2-chosen", "a9a"]


def test_a_finding_names_the_parts_that_fail_or_else_those_that_hold(tmp_path):
    for edit, begin in ((None, "3 hold: "), (SCENES["smo-1"].edit, "")):
        found = verdict("smo-1", scene("smo-1", tmp_path / str(edit is None), edit))
        said = found.finding(200)
        assert said.startswith(begin)
        named = [part.subject for part in found.parts if part.holds is (edit is None)]
        assert f": {named[0]}" in said
