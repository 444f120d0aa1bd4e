"""A short text on the outcome of each paper, tied to its verdicts.

The folder of a paper may hold an ``outcome.toml``: what ``held``, what ``failed`` and what is
``open``, each a few sentences or left out; and the verdicts that they rest on (``rests_on``), each
as outcome, scale and counts: ``mixed, reduced: 4 hold, 2 fail, 5 undecided``. ``numbers`` lists the
numbers of the text, each with its claim and the words of the verdict that it comes from:
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

#: The parts of the text, and what stands before each.
LABELS = {"held": "Held", "failed": "Failed", "open": "Open"}


@dataclass(frozen=True)
class PaperOutcome:
    """A short text on a paper, in up to three parts.

    Attributes
    ----------
    parts : dict of str to str
        The sentences after each label: ``Held``, ``Failed`` and ``Open``, as far as there are any.
    claims : tuple of str
        The claims whose verdicts the text rests on.
    stale : tuple of str
        A sentence for each verdict and number that has changed since.
    numbers : tuple of str
        The words of the text that stand for numbers of verdicts.
    """

    parts: dict[str, str]
    claims: tuple[str, ...]
    stale: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All parts, each after its label."""
        return " ".join(f"{label}: {sentences}" for label, sentences in self.parts.items())


def outcomes(verdicts: Sequence[Verdict]) -> dict[str, PaperOutcome]:
    """Return the texts on the papers of some verdicts, by paper."""
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
    """Return the text on a paper; None where its folder has none.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the file holds anything else than the parts of the text, the verdicts on the paper's
        claims, and the numbers of the text.
    """
    path = paper.folder / FILE
    if not path.is_file():
        return None
    content = read_toml(path, f"{paper.key}/{FILE}")
    rests_on, numbers = content.get("rests_on"), content.get("numbers", {})
    written = {key: content[key] for key in LABELS if key in content}
    known = content.keys() <= {*LABELS, "rests_on", "numbers"}
    if not (known and written and all(isinstance(text, str) for text in written.values())
            and isinstance(rests_on, dict) and isinstance(numbers, dict)):  # fmt: skip
        raise ResultsError(
            f"{paper.key}/{FILE} has 'held', 'failed' and 'open', sentences of which two may be "
            "left out, and 'rests_on' and 'numbers', two tables"
        )
    parts = {LABELS[key]: " ".join(text.split()) for key, text in written.items()}
    everything = " ".join(parts.values())
    now = {verdict.claim.id: standing(verdict) for verdict in verdicts}
    stale = tuple(
        f"{name} was {before!r} when the text was written, and is {now.get(name)!r}"
        for name, before in rests_on.items()
        if now.get(name) != before
    )
    texts = {verdict.claim.id: _text(verdict) for verdict in verdicts}
    stale += tuple(
        f"{phrase!r} is no number of {source!r}"
        for phrase, source in numbers.items()
        if phrase not in everything or not _is_in_verdict(str(source), texts)
    )
    return PaperOutcome(parts, tuple(rests_on), stale, tuple(numbers))


def _text(verdict: Verdict) -> str:
    """Return a claim's statement, rule and printed numbers, and its parts' numbers and cuts."""
    claim = verdict.claim
    parts = [f"{part.what}: {part.measured}; {part.cut}" for part in verdict.parts]
    return "\n".join([claim.statement, claim.rule, claim.printed, *parts])


def _is_in_verdict(source: str, texts: Mapping[str, str]) -> bool:
    """Return True if the verdict on a claim has the words of ``claim: words``."""
    claim, _, words = source.partition(": ")
    return bool(words) and words in texts.get(claim, "")
