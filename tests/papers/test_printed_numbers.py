"""The papers' own printed numbers under the rules that judge their claims."""

from __future__ import annotations

from runs import svmbench

from svmbench.base.paper_folders import papers
from svmbench.papers import judging
from svmbench.papers.judging.printed import printed_evidence

#: The paper's own table contradicts the sentence, or the rule's reading of it.
CONTRADICTED_BY_ITS_TABLE = {"smo-10", "alsvm-3", "nlsgd-5", "srbo-7"}
#: Some of the printed comparisons go the other way.
MIXED_BY_ITS_TABLE = {"nlsgd-3"}


def test_the_papers_own_numbers_pass_the_rules() -> None:
    outcomes: dict[str, str] = {}
    for key, paper in papers().items():
        own = [one for one in judging.read_all_claims() if one.paper == key]
        for found in judging.judge(own, printed_evidence(paper)):
            if any(part.cells for part in found.parts):
                outcomes[found.claim.id] = found.outcome
    assert len(outcomes) >= 30
    others = {name: one for name, one in outcomes.items() if one != "supported"}
    expected = dict.fromkeys(CONTRADICTED_BY_ITS_TABLE, "contradicted")
    expected |= dict.fromkeys(MIXED_BY_ITS_TABLE, "mixed")
    assert others == expected


def test_the_command_judges_printed_numbers() -> None:
    ended = svmbench("claims", "--printed", "--paper", "smo")
    assert ended.code == 0, ended.said
    (line,) = [one for one in ended.out.splitlines() if one.startswith("smo-10 ")]
    assert "contradicted" in line
    assert svmbench("claims", "--printed", "--paper", "cpsp").code == 1
    ended = svmbench("claims", "--printed", "results")
    assert ended.code == 2
    assert "takes no folder" in ended.err
