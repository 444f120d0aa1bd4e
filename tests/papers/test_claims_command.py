"""``svmbench claims`` as a person uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from claimed_runs import SCENES, Kept
from runs import svmbench
from synthetic_runs import planned, record, write_run

from svmbench.papers.judging import export, read_all_claims
from svmbench.papers.judging.verdict import NOT_TESTED, OUTCOMES, UNDECIDED

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runs = Kept()
    SCENES["smo-1"].build(runs)
    runs.write(tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def test_the_folder_results_is_judged_unless_others_are_named(kept: Path) -> None:
    shown = svmbench("claims", "--paper", "smo", "--no-ages")
    assert shown.code == 0
    head, first = shown.out.splitlines()[:2]
    assert head.split() == [
        "claim", "outcome", "scale", "decided", "on", "what", "was", "found", "age",
    ]  # fmt: skip
    assert first == "smo-1   supported     full   6/9 sets    3 hold: SMO's exponent"
    said = "13 claims: 2 supported (2 of them at full scale), 1 contradicted, 10 not tested"
    assert said in shown.out
    assert svmbench("claims", "--paper", "smo", "--no-ages", kept).out == shown.out


def test_a_folder_without_results_is_told_whose_results_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Kept()
    SCENES["smo-1"].build(runs)
    runs.write(tmp_path / "elsewhere" / "results")
    monkeypatch.setattr("svmbench.studies.judging.PACKAGE", tmp_path / "elsewhere" / "svmbench")
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    shown = svmbench("claims", "--claim", "smo-1", "--no-ages")
    kept = tmp_path / "elsewhere" / "results"
    assert shown.code == 0
    assert f"judged from the results that svmbench has kept: {kept}\n" in shown.err
    assert "supported" in shown.out
    # Nothing is said where the folder has results of its own, or where folders are named.
    runs.write(tmp_path / "mine" / "results")
    for words in ([], [kept]):
        shown = svmbench("claims", "--claim", "smo-1", "--no-ages", *words)
        assert (shown.code, "judged from" in shown.err) == (0, False)


def test_the_table_fits_its_width_and_says_what_failed_in_twelve_words() -> None:
    shown = svmbench("claims", "--no-ages", ROOT / "results").out.splitlines()
    head, *rows = shown[:-1]
    place = head.index("what was found"), head.index("age")
    assert len(rows) >= 45
    assert not [row for row in rows if "…" in row]
    assert max(map(len, shown[:-1])) <= export.TABLE_WIDTH
    for row in rows:
        found = row[place[0] : place[1]].strip()
        assert 1 <= len(found.split()) <= 12, row
        if " contradicted " in row:  # what failed, then how many hold and are undecided
            pattern = r"(1 fails|\d+ fail)(: \w.*?)?([,;] \d+ holds?)?([,;] \d+ undecided)?$"
            assert re.match(pattern, found), row


def test_details_begin_with_failures_and_end_with_what_made_the_records(kept: Path) -> None:
    shown = svmbench("claims", "--claim", "smo-7", "--no-ages", ROOT / "results").out
    marks = [line.split()[0] for line in shown.splitlines() if line.split()[:1] and
             line.split()[0] in {"holds", "fails", "undecided"}]  # fmt: skip
    assert marks == sorted(marks, key=["fails", "holds", "undecided"].index)
    assert marks[0] == "fails"
    cut = svmbench("claims", "--claim", "srbo-8", "--no-ages", ROOT / "results").out
    assert "to repeat: svmbench run srbo_table9_11 --profile paper" in cut
    assert "cut: mnist-1-vs-0 at 2,000 rows;" in cut


def test_one_claim_is_shown_with_all_its_parts(kept: Path) -> None:
    shown = svmbench("claims", "--claim", "smo-1", "--no-ages").out
    assert "to repeat: svmbench run smo_adult_linear --profile paper" in shown
    assert "holds  subsets of LIBSVM's site: SMO" in shown
    assert "times: CPU times, without the time that other programs took\n" in shown


def test_results_older_than_the_code_are_marked(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svmbench.experiment.plan import present_code

    asked: list[Path] = []

    def changes(folder: Path) -> dict[str, str]:
        asked.append(folder)
        plan = json.loads((folder / "plan.json").read_text())
        return dict.fromkeys([cell["key"] for cell in plan["cells"]], "core.base has changed since")

    monkeypatch.setattr(present_code, "code_changes", changes)
    shown = svmbench("claims", "--paper", "smo").out
    assert shown.splitlines()[1].split()[-1] == "older"
    assert [folder.name for folder in asked] == ["smo_adult_linear"]
    details = svmbench("claims", "--claim", "smo-1").out
    assert "older: 12 of 12 results" in details
    assert "core.base" not in details


@pytest.mark.parametrize("form", ["json", "markdown", "latex"])
def test_other_forms(kept: Path, form: str) -> None:
    shown = svmbench("claims", "--paper", "smo", "--no-ages", "--format", form)
    assert shown.code == 0
    assert "supported" in shown.out
    if form == "json":
        assert [one["outcome"] for one in json.loads(shown.out)].count("supported") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--paper", "sm"], "unknown paper 'sm'"),
        (["--claim", "smo-99"], "unknown claim 'smo-99'; did you mean"),
        (["nowhere"], "nowhere is no folder of results"),
        (["--claims", "nowhere.toml"], "can't read nowhere.toml: No such file"),
    ],
)
def test_what_is_wrong_is_a_sentence(kept: Path, words: list[str], said: str) -> None:
    shown = svmbench("claims", *words)
    assert shown.code in (1, 2)
    assert said in shown.err
    assert "Traceback" not in shown.said


def test_a_folder_without_results_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n")
    shown = svmbench("claims", "--no-ages", tmp_path)
    assert (shown.code, shown.out) == (1, "")
    assert shown.err == (
        f"svmbench: {tmp_path} has no results: name run folders, or a folder that has some; "
        "'svmbench run CONFIG' makes them\n"
    )
    both = svmbench("claims", "--claim", "smo-1", tmp_path, tmp_path)
    assert both.code == 1
    assert f"{tmp_path}, {tmp_path} have no results" in both.err


@pytest.mark.parametrize(("name", "option"), [("srbo-2", "--claim"), ("srbo", "--paper")])
def test_a_claim_in_place_of_a_folder_is_told_its_option(name: str, option: str) -> None:
    shown = svmbench("claims", name)
    assert (shown.code, shown.out) == (1, "")
    assert f"'svmbench claims {option} {name}' judges it" in shown.err


def test_a_claim_without_a_run_has_no_verdict_but_commands(kept: Path) -> None:
    shown = svmbench("claims", "--claim", "cpsp-1", kept)
    assert shown.code == 0
    assert "not tested: no run is kept of cpsp_table1" in shown.out
    assert "svmbench run cpsp_table1 --profile paper" in shown.out


def test_the_kept_results_of_this_repository_have_a_verdict_each() -> None:
    root = Path(__file__).parents[2] / "results"
    found = json.loads(svmbench("claims", "--no-ages", "--format", "json", root).out)
    assert [one["id"] for one in found] == [claim.id for claim in read_all_claims()]
    for one in found:
        assert one["reason"], one["id"]
        assert one["commands"], one["id"]
        assert one["outcome"] in OUTCOMES
        # What is decided rests on records, or on the one file that a script keeps.
        if one["outcome"] not in {UNDECIDED, NOT_TESTED}:
            assert one["runs"] or one["id"] == "alsvm-7"


def test_an_unfinished_cell_has_no_age_though_its_points_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svmbench.experiment.plan import present_code
    from svmbench.report.reading.records import read_run
    from svmbench.studies import judging

    done, cut, failed = (planned("cv", "a9a", name) for name in ("alsvm", "falsvm", "pegasos"))
    points = [
        {
            "schema": 1,
            "kind": "point",
            "key": cell["key"],
            "point": "1",
            "dimensions": {"solver.C": 1.0},
            "metrics": {"accuracy_pct": 80.0},
        }
        for cell in (done, cut)
    ]
    records = [
        record(done, {"accuracy_pct": 80.0}),
        {**record(cut), "status": "timeout", "reason": "took too long"},
        {**record(failed), "status": "failed", "reason": "it raised"},
    ]
    run = write_run(tmp_path / "run", [done, cut, failed], [*points, *records])
    keys = [cell["key"] for cell in (done, cut, failed)]
    monkeypatch.setattr(present_code, "code_changes", lambda _: dict.fromkeys(keys, ""))
    shown = [cell.key for cell in read_run(run).cells if cell.status == "ok"]
    assert sorted(shown) == sorted([done["key"], cut["key"]])
    assert judging.ages_of(run).words == {done["key"]: "fresh"}
