"""Of each table and figure of a paper: whether it was made again, and whether it agrees."""

from dataclasses import replace
from pathlib import Path

import pytest
from imagined_runs import planned_run

from svmbench.base.paper_folders import papers
from svmbench.papers import judging
from svmbench.papers.judging import Part, Verdict
from svmbench.papers.judging.made_again import _agrees, made_again
from svmbench.papers.judging.measures import NO_ANSWER, counted

ROOT = Path(__file__).resolve().parents[2]
ALL = {claim.id: claim for claim in judging.read_all_claims()}
YES, NO = counted(1.0, at_least=0.0), counted(1.0, at_most=0.0)
OF_A_VALUE, OF_AN_ORDER = ALL["sgdlssvm-4"], ALL["sgdlssvm-3"]


@pytest.mark.parametrize(
    ("claim", "answers", "said"),
    [
        (OF_A_VALUE, [YES, NO_ANSWER], "in value"),
        (OF_AN_ORDER, [YES, YES], "in direction"),
        (OF_A_VALUE, [YES, YES, NO], "in some parts"),
        (OF_A_VALUE, [YES, NO], "no"),
        (OF_A_VALUE, [NO_ANSWER], "undecided"),
        (OF_A_VALUE, [], "no claim"),
    ],
)
def test_what_agrees_is_what_the_decided_parts_say(claim, answers, said):
    verdict = Verdict(claim, "", "")
    assert _agrees([(verdict, Part("x", one, "")) for one in answers]) == said
    if any(one is not NO_ANSWER for one in answers):
        stand_ins = [(verdict, Part("x", one, "", stand_in=True)) for one in answers]
        assert _agrees(stand_ins) == f"{said}, on other data"


@pytest.fixture(scope="module")
def figure5():
    return planned_run("sgdlssvm_fig5", 0).run


def row_of(run, verdicts=()):
    (row,) = made_again("sgdlssvm", ["sgdlssvm_fig5"], verdicts, [run])
    return row


def test_a_whole_run_makes_a_figure_again_and_a_part_of_one_says_what_is_missing(figure5):
    whole = row_of(figure5)
    assert (whole.what, whole.made, whole.less, whole.agrees) == (
        "Figure 5: training time against the number of examples", "yes", "", "no claim"
    )  # fmt: skip
    first, *others = figure5.cells
    left = replace(first, status="not run", metrics={})
    assert row_of(replace(figure5, cells=(left, *others))).less == "1 of 30 cells not run"
    lost = tuple(
        replace(one, status="unavailable", metrics={}) if one.dataset == "rcv1" else one
        for one in figure5.cells
    )
    assert row_of(replace(figure5, cells=lost)).less == "no data of rcv1"
    fewer = tuple(one for one in figure5.cells if one.dataset != "ijcnn1")
    found = row_of(replace(figure5, cells=fewer))
    assert (found.made, found.less) == ("in part", "without ijcnn1")
    none = tuple(replace(one, status="not run", metrics={}) for one in figure5.cells)
    assert row_of(replace(figure5, cells=none)).made == "no"
    assert row_of(replace(figure5, profile="quick")).made == "no"


def test_a_cut_that_the_check_itself_knows_of_is_one_of_the_table(figure5):
    part = Part("ijcnn1", YES, "", cells=figure5.cells[:1], cut="5 of 986 values of nu")
    found = row_of(figure5, [Verdict(OF_A_VALUE, "", "", (replace(part, cut=""), part))])
    assert (found.made, found.less, found.agrees) == (
        "in part", "5 of 986 values of nu", "in value"
    )  # fmt: skip
    assert found.claims == ("sgdlssvm-4",)


def test_every_table_with_a_config_has_its_line_and_every_judged_claim_a_table():
    kept = judging.gather_evidence([ROOT / "results"], only_kept=True)
    for key, paper in papers().items():
        verdicts = judging.judge([one for one in ALL.values() if one.paper == key], kept)
        found = made_again(key, paper.configs, verdicts, [r for r in kept.runs if r.paper == key])
        assert len(found) >= len(paper.configs)
        named = {claim for one in found for claim in one.claims}
        judged = {v.claim.id for v in verdicts if any(part.cells for part in v.parts)}
        assert judged <= named, key
    assert found  # the last paper has some
    twelve = [one for one in made_again("srbo", papers()["srbo"].configs, [
        Verdict(ALL["srbo-4"], "", "", (Part("x", NO, ""),))
    ], []) if one.what == "Table 12"]  # fmt: skip
    assert [(one.made, one.agrees, one.claims) for one in twelve] == [("no", "no", ("srbo-4",))]
