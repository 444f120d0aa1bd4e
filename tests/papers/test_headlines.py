"""Headlines on papers: where each number comes from, and of which tables they speak."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from svmbench.base.paper_folders import papers
from svmbench.papers import judging, page_numbers
from svmbench.papers.judging.outcomes import FILE, paper_outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = page_numbers.Results(ROOT / "results")
ALL = {claim.id: claim for claim in judging.read_all_claims()}

_ROMAN = {
    one: place
    for place, one in enumerate(
        ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"), start=1
    )
}
#: Numbers as words, but for those that are names or articles.
_WORDS = (
    r"(?:one (?:thousand|hundred)|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twice"
    r"|hundreds?|thousands?|tens|half|quarters?|thirds?|dozens?)"
)
#: A number, also in a power: no part of a name such as svmguide1, no place and no order of growth.
_NUMBER = re.compile(rf"(?<![\w/-])\d[\d,.]*\d|(?<![\w/-])\d\b(?!/)|\b{_WORDS}\b|\w²")
#: An option of a program, such as LIBLINEAR's ``-s 3``.
_OPTION = re.compile(r"(?<!\w)-[a-z] \d+\b")
_PLACE = re.compile(
    r"(tables?|fig(?:ures?)?)\.? ?([IVX]+|\d+)\b((?:(?:,| to| and|, and) (?:[IVX]+|\d+)\b)*)",
    re.IGNORECASE,
)


def of(key):
    return RESULTS.judged([claim for claim in ALL.values() if claim.paper == key])


def places(text):
    """Return the tables and figures that a text names, as ``("table", 4)``."""
    found = set()
    for kind, first, more in _PLACE.findall(text):
        numbers = [_ROMAN.get(first) or int(first)]
        for word, one in re.findall(r"(,| to| and|, and) ([IVX]+|\d+)", more):
            number = _ROMAN.get(one) or int(one)
            numbers += range(numbers[-1] + 1, number + 1) if word == " to" else [number]
        found |= {(kind.lower()[:3], number) for number in numbers}
    return found


def without_origin(said, numbers):
    """Return the numbers of a sentence that stand in none of some phrases."""
    for phrase in numbers:
        said = said.replace(phrase, "")
    return _NUMBER.findall(_PLACE.sub("", _OPTION.sub("", said)))


#: The papers with a text that sums up their verdicts.
WITH_OUTCOME = [key for key, paper in papers().items() if (paper.folder / FILE).is_file()]


@pytest.mark.parametrize("key", WITH_OUTCOME)
def test_every_number_of_a_headline_is_in_the_verdict_that_it_names(key):
    found = paper_outcome(papers()[key], of(key))
    assert found.stale == ()
    assert without_origin(found.text, found.numbers) == []
    assert set(found.numbers) <= {phrase for phrase in found.numbers if phrase in found.text}


@pytest.mark.parametrize("key", WITH_OUTCOME)
def test_a_headline_names_the_tables_of_the_claims_that_it_rests_on(key):
    found = paper_outcome(papers()[key], of(key))
    named = places(found.text)
    for claim in found.claims:
        own = places(ALL[claim].where)
        assert not own or own & named, f"{claim} is of {ALL[claim].where}: {found.text}"
        for problem in re.findall(r"\b(adult|web|separable|noise)_", ALL[claim].where):
            assert problem in found.text.lower(), (claim, problem)
    told = set().union(*(places(ALL[claim].where) for claim in found.claims))
    assert named <= told, "a headline names tables of claims that it does not rest on"


#: Words that say at what scale a part of the text holds.
SCALE_WORDS = {
    "stand-in": ("stand-in", "stands in"),
    "reduced": ("fewer", "smaller", "a part of", "was run", "were run"),
}


@pytest.mark.parametrize("key", WITH_OUTCOME)
def test_a_headline_says_what_it_says_on_other_data_or_at_a_reduced_scale(key):
    verdicts = {verdict.claim.id: verdict for verdict in of(key)}
    found = paper_outcome(papers()[key], of(key))
    for claim in found.claims:
        words = SCALE_WORDS.get(verdicts[claim].scale.kind, ())
        own = places(ALL[claim].where)
        about = [one for one in found.parts.values() if not own or own & places(one)]
        said = any(word in one for one in about for word in words)
        assert said or not words, (claim, verdicts[claim].scale.kind, about)


def test_a_number_that_a_verdict_has_no_more_makes_a_headline_stale():
    verdicts = of("cpsp")
    found = paper_outcome(papers()["cpsp"], verdicts)
    assert found.numbers

    def other(verdict):
        parts = [replace(p, measured=p.measured.replace("k = 50", "k = 20")) for p in verdict.parts]
        return replace(verdict, parts=tuple(parts))

    (said,) = paper_outcome(papers()["cpsp"], [other(one) for one in verdicts]).stale
    assert said.startswith("'50 vectors' is no number of 'cpsp-2: ijcnn1, beside nystrom")


@pytest.mark.parametrize(
    ("said", "bare"),
    [
        ("On svmguide1 FOSVM2 takes O(1/θ) steps in Table II and Figures 8 to 10.", []),
        ("ALSVM is faster than LIBLINEAR (-s 3), by a factor of 3.", ["3"]),
        ("It is 36 times as fast, or 2.1, on half of the sets.", ["36", "2.1", "half"]),
        ("Time grows as N² near one thousand features, at 12,000 rows.",
         ["N²", "one thousand", "12,000"]),
    ],
)  # fmt: skip
def test_a_number_is_a_count_a_share_or_a_power_and_no_name(said, bare):
    assert without_origin(said, ()) == bare
    assert without_origin(said, [*bare]) == []


def test_tables_are_told_by_either_kind_of_number():
    assert places("tables IV to VII, fig4, fig6") == {
        *(("tab", n) for n in (4, 5, 6, 7)), ("fig", 4), ("fig", 6)
    }  # fmt: skip
    assert places("In Tables V and VII, and Figures 2 and 3") == {
        ("tab", 5), ("tab", 7), ("fig", 2), ("fig", 3)
    }  # fmt: skip
    assert places("table12") == {("tab", 12)} == places("Table XII")
