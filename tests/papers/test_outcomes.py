"""Texts on papers: each rests on verdicts, and is not shown where one of them has changed."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from svmbench.base.errors import ResultsError
from svmbench.base.paper_folders import papers
from svmbench.papers import judging, page_numbers
from svmbench.papers.judging.export import outcome
from svmbench.papers.judging.outcomes import FILE, paper_outcome, standing
from svmbench.site.pages import _outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = page_numbers.Results(ROOT / "results")


def of(key):
    return RESULTS.judged([claim for claim in judging.read_all_claims() if claim.paper == key])


#: The papers that have kept results, and therefore a text and a page.
WITH_RESULTS = [key for key in papers() if (ROOT / "results" / key).is_dir()]


@pytest.mark.parametrize("key", WITH_RESULTS)
def test_every_paper_has_a_text_that_is_of_todays_verdicts(key):
    found = paper_outcome(papers()[key], of(key))
    assert found is not None
    assert found.stale == ()
    assert found.parts
    assert all(text.endswith(".") for text in found.parts.values())
    assert set(found.claims) <= {verdict.claim.id for verdict in of(key)}


def changed(verdicts):
    """Return verdicts of which the first has lost a part."""
    first, *rest = verdicts
    return [replace(first, parts=first.parts[1:]), *rest]


def test_a_text_is_stale_where_a_verdict_has_other_parts():
    verdicts = changed(of("smo"))
    (said,) = paper_outcome(papers()["smo"], verdicts).stale
    was, now = standing(of("smo")[0]), standing(verdicts[0])
    assert was != now
    assert said == f"smo-1 was {was!r} when the text was written, and is {now!r}"
    assert paper_outcome(papers()["smo"], []).stale


def test_the_first_page_shows_a_text_only_beside_its_verdicts():
    verdicts = of("cpsp")
    said = paper_outcome(papers()["cpsp"], verdicts).text
    assert said.startswith("Held: ")
    assert " Failed: " in said
    assert _outcome(verdicts) == said
    assert _outcome(changed(verdicts)) == outcome(changed(verdicts))


def test_a_page_with_a_stale_text_is_an_error(monkeypatch):
    page = "before\n<!-- outcomes -->\nformerly\n<!-- /outcomes -->\nafter\n"
    shown = page_numbers.refresh_page(page, RESULTS)
    assert "formerly" not in shown
    assert shown.count("\n- **") == len(WITH_RESULTS)
    assert page_numbers.refresh_page(shown, RESULTS) == shown
    monkeypatch.setattr(RESULTS, "_verdicts", {one.claim.id: one for one in changed(of("smo"))})
    with pytest.raises(ResultsError, match=r"smo/outcome.toml: read the text again: smo-1 was"):
        page_numbers.refresh_page(page, RESULTS)


def test_a_page_begins_with_what_held_failed_and_is_open():
    for key in WITH_RESULTS:
        title, page = (ROOT / "results" / key / "README.md").read_text().split("\n", 1)
        parts = paper_outcome(papers()[key], of(key)).parts
        begin = f"<!-- outcomes {key} -->\n\n{len(of(key))} claims: "
        assert title.startswith("# ")
        assert page.lstrip().startswith(begin), key
        assert "".join(f"- **{label}**: {text}\n" for label, text in parts.items()) in page, key
        assert page.index("<!-- verdicts") < page.index("## How it was measured")
        assert page.index("## How it was measured") < page.index("## What is uncertain")
    with pytest.raises(ResultsError, match="there is no text on 'else'"):
        page_numbers.refresh_page("<!-- outcomes else -->\n<!-- /outcomes -->\n", RESULTS)


@pytest.mark.parametrize(
    "content",
    [
        'held = "It holds."\n',
        "[rests_on]\n",
        "held = 3\n[rests_on]\n",
        'x = 1\nheld = "a"\n[rests_on]\n',
    ],
)
def test_a_file_without_a_text_or_its_verdicts_is_refused(content, tmp_path):
    paper = papers()["smo"]
    shutil.copy(paper.folder / "paper.toml", tmp_path)
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ResultsError, match=r"smo/outcome.toml has 'held', 'failed' and 'open'"):
        paper_outcome(paper.model_copy(update={"folder": tmp_path}), [])


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (["smo-1"], "smo-1"),
        (["smo-1", "smo-2"], "smo-1, smo-2"),
        (["smo-1", "smo-2", "smo-4", "smo-5", "smo-6"], "smo-1, smo-2, smo-4 to smo-6"),
        (["one-speed", "two-1", "one-2", "one-3", "one-4"], "one-speed, two-1, one-2 to one-4"),
    ],
)  # fmt: skip
def test_claims_in_a_row_are_named_by_the_first_and_the_last(claims, said):
    assert page_numbers._named(claims) == said
