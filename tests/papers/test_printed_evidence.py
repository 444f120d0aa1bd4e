"""The papers' own printed numbers under the rules that judge their claims."""

from __future__ import annotations

from pathlib import Path

from runs import svmbench

from svmbench.base.paper_folders import papers
from svmbench.papers import judging
from svmbench.papers.judging.printed_evidence import beside_printed, printed_evidence
from svmbench.report.reading.published import numbers

ROOT = Path(__file__).resolve().parents[2]

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


def test_a_verdict_has_the_outcome_of_its_rule_on_the_printed_numbers() -> None:
    own = [one for one in judging.read_all_claims() if one.paper == "smo"]
    of_printed = judging.judge(own, printed_evidence(papers()["smo"]))
    without = [judging.Verdict(claim, "not tested", "") for claim in own]
    found = {one.claim.id: one.by_printed for one in beside_printed(without, of_printed)}
    assert found["smo-10"] == "contradicted"
    assert found["smo-1"] == "supported"
    assert {name for name, said in found.items() if said not in {"", "supported"}} == {"smo-10"}
    page = (ROOT / "results/smo/README.md").read_text(encoding="utf-8")
    assert "the paper's own printed numbers give: smo-10 contradicted." in page


def test_the_command_judges_printed_numbers() -> None:
    ended = svmbench("claims", "--printed", "--paper", "smo")
    assert ended.code == 0, ended.said
    (line,) = [one for one in ended.out.splitlines() if one.startswith("smo-10 ")]
    assert "contradicted" in line
    details = svmbench("claims", "--printed", "--claim", "alsvm-2").out
    assert "from: the numbers that the paper prints, which have no uncertainty\n" in details
    assert "has changed since this run" not in details
    assert "times: CPU times, without the time that other programs took" not in details
    assert svmbench("claims", "--printed", "--paper", "cpsp").code == 1
    ended = svmbench("claims", "--printed", "results")
    assert ended.code == 2
    assert "takes no folder" in ended.err


def _printed(paper: str, table: str, metric: str) -> dict[tuple[str, str], float]:
    """Return the printed numbers of a table by data set and solver."""
    return {
        (one.dataset, one.solver): one.value
        for one in numbers(paper)
        if (one.table, one.metric) == (table, metric)
    }


def test_errata_that_rest_on_printed_numbers_alone_are_in_the_published_tables() -> None:
    page = " ".join((ROOT / "docs/errata.md").read_text(encoding="utf-8").split())
    # T = 10,000 steps of k = 1 sample cost the same on every set, but for the features.
    times = {
        dataset: value
        for (dataset, solver), value in _printed("alsvm", "table2", "train_time_s").items()
        if solver == "pegasos"
    }
    first, last = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    assert (first, last) == ("german", "poker")
    assert f"from {times[first]:g} s (German" in page
    assert f"to {times[last]:,g} s (Poker" in page
    assert times[last] > 3000 * times[first]
    # Two data sets with the same times.
    six = _printed("sgdlssvm", "table2", "train_time_s")
    pairs = [(v, six["ijcnn1", solver]) for (name, solver), v in six.items() if name == "cod-rna"]
    assert sum(a == b for a, b in pairs) == 5
    assert [pair for pair in pairs if pair[0] != pair[1]] == [(1392.0, 1391.0)]
    assert "five of their six printed times are equal, and the sixth is 1,392 and 1,391 s" in page
    # A speed-up that is not the ratio of the times beside it.
    ratio = _printed("srbo", "table4", "speedup")["wifi-localization", "srbo-nu-svm"]
    both = _printed("srbo", "table4", "train_time_s")
    from_times = both["wifi-localization", "nu-svm"] / both["wifi-localization", "srbo-nu-svm"]
    assert f"Wifi in Table IV (printed {ratio:.2f}, from its times {from_times:.3f})" in page
