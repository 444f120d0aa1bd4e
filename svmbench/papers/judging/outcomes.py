"""A short text on the outcome of each paper, tied to its verdicts.

The folder of a paper may hold an ``outcome.toml``: the text (``said``), and the verdicts that
it rests on (``rests_on``), each as outcome, scale and counts:
``mixed, reduced: 4 hold, 2 fail, 5 undecided``. ``numbers`` lists the numbers of the text, each
with its claim and the words of the verdict that it comes from:
``"three quarters" = "srbo-7: 75.5 to 98.6 %"``. If a verdict or these words have changed since, the
text is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from svmbench.base.errors import ResultsError
from svmbench.base.paper_folders import Paper, papers
from svmbench.base.toml_source import read_toml
from svmbench.papers.judging.verdict import Verdict

#: The file in a paper's folder.
FILE = "outcome.toml"


@dataclass(frozen=True)
class PaperOutcome:
    """A short text on a paper: one or more sentences.

    Attributes
    ----------
    sentence : str
    claims : tuple of str
        The claims whose verdicts it rests on.
    stale : tuple of str
        A sentence for each verdict and number that has changed since.
    numbers : tuple of str
        The words of the sentence that stand for numbers of verdicts.
    """

    sentence: str
    claims: tuple[str, ...]
    stale: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def outcomes(verdicts: Sequence[Verdict]) -> dict[str, PaperOutcome]:
    """Return the sentences on the papers of some verdicts, by paper."""
    keys = dict.fromkeys(verdict.claim.paper for verdict in verdicts)
    outcome_of = {
        key: paper_outcome(
            papers()[key], [verdict for verdict in verdicts if verdict.claim.paper == key]
        )
        for key in keys
    }
    return {key: outcome for key, outcome in outcome_of.items() if outcome is not None}


def standing(verdict: Verdict) -> str:
    """Return a verdict's outcome and scale with the numbers of its parts."""
    answers = [part.holds for part in verdict.parts]
    yes, no, undecided = (answers.count(answer) for answer in (True, False, None))
    scale = f", {verdict.scale.kind}" if verdict.scale.kind else ""
    return f"{verdict.outcome}{scale}: {yes} hold, {no} fail, {undecided} undecided"


def paper_outcome(paper: Paper, verdicts: Sequence[Verdict]) -> PaperOutcome | None:
    """Return the sentence on a paper; None where its folder has none.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the file holds anything else than a sentence, the verdicts on the paper's claims, and the
        numbers of the sentence.
    """
    path = paper.folder / FILE
    if not path.is_file():
        return None
    content = read_toml(path, f"{paper.key}/{FILE}")
    sentence, rests_on = content.get("said"), content.get("rests_on")
    numbers = content.get("numbers", {})
    known = content.keys() <= {"said", "rests_on", "numbers"}
    if not (known and isinstance(sentence, str) and isinstance(rests_on, dict)
            and isinstance(numbers, dict)):  # fmt: skip
        raise ResultsError(
            f"{paper.key}/{FILE} has 'said', a sentence, and 'rests_on' and 'numbers', two tables"
        )
    sentence = " ".join(sentence.split())
    now = {verdict.claim.id: standing(verdict) for verdict in verdicts}
    stale = tuple(
        f"{name} was {before!r} when the sentence was written, and is {now.get(name)!r}"
        for name, before in rests_on.items()
        if now.get(name) != before
    )
    texts = {verdict.claim.id: _text(verdict) for verdict in verdicts}
    stale += tuple(
        f"{phrase!r} is no number of {source!r}"
        for phrase, source in numbers.items()
        if phrase not in sentence or not _is_in_verdict(str(source), texts)
    )
    return PaperOutcome(sentence, tuple(rests_on), stale, tuple(numbers))


def _text(verdict: Verdict) -> str:
    """Return a claim's statement, rule and printed numbers, and its parts' numbers and cuts."""
    claim = verdict.claim
    parts = [f"{part.what}: {part.measured}; {part.cut}" for part in verdict.parts]
    return "\n".join([claim.statement, claim.rule, claim.printed, *parts])


def _is_in_verdict(source: str, texts: Mapping[str, str]) -> bool:
    """Return True if the verdict on a claim has the words of ``claim: words``."""
    claim, _, words = source.partition(": ")
    return bool(words) and words in texts.get(claim, "")
