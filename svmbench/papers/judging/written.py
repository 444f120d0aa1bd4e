"""Verdicts as text: for a terminal, as JSON, Markdown or LaTeX. Names come out inert."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from svmbench.base import inert
from svmbench.papers.judging.verdict import STATES, Part, Verdict

_HOLDS = {True: "yes", False: "no", None: "open"}
#: What a Markdown cell shows of a reason.
_LONGEST = 400


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims came to each state, in a sentence."""
    counts = Counter(verdict.state for verdict in verdicts)
    said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    word = "claim" if len(verdicts) == 1 else "claims"
    stale = sum(verdict.freshness == "stale" for verdict in verdicts)
    verb = "rests" if stale == 1 else "rest"
    older = f"; {stale} {verb} on results that are older than the code" if stale else ""
    kept = sum(verdict.from_kept for verdict in verdicts)
    beside = f"; {kept} of them from kept records, which these runs leave open" if kept else ""
    return f"{len(verdicts)} {word}: {said}{beside}{older}"


def as_json(verdicts: Sequence[Verdict]) -> str:
    """Return all that is known of each verdict."""
    return json.dumps([verdict.to_json() for verdict in verdicts], indent=1, ensure_ascii=False)


def as_rows(verdicts: Sequence[Verdict], *, details: bool = False) -> list[tuple[str, str]]:
    """Return rows of two cells: a claim with its verdict, and with `details` all its parts."""
    rows: list[tuple[str, str]] = []
    for verdict in verdicts:
        mark = f" ({verdict.freshness})" if verdict.freshness in {"stale", "unknown"} else ""
        rows.append((verdict.claim.id, f"{verdict.state}{mark}: {verdict.reason}"))
        if details:
            rows += [("", line) for line in (*_details(verdict), "")]
    return rows


def _details(verdict: Verdict) -> list[str]:
    claim, rows = verdict.claim, verdict.rows()
    lines = [
        f"claim: {claim.statement}",
        f"decided by: {claim.decided_by}",
        f"uncertainty: {claim.uncertainty}",
    ]
    if claim.limits:
        lines.append(f"threshold: {claim.threshold()}")
    if claim.printed:
        lines.append(f"printed: {claim.printed}")
    lines += [f"{_HOLDS[part.holds]:>4}  {_part(part)}" for part in verdict.parts]
    if verdict.datasets():
        sizes = f" ({rows[0]:,} to {rows[1]:,} training rows)" if rows else ""
        lines.append(f"data sets: {', '.join(verdict.datasets())}{sizes}")
    lines += [f"from: {folder} ({profile}, {environment})"
              for folder, profile, environment in verdict.sources]  # fmt: skip
    lines += [f"note: {note}" for note in verdict.notes]
    lines += [f"stale: {one}" for one in verdict.stale]
    return lines + [f"records: {command}" for command in claim.commands()]


def _part(part: Part) -> str:
    kind = " (stand-in)" if part.stand_in else ""
    printed = f" [printed: {part.printed}]" if part.printed else ""
    return f"{part.what}{kind}: {part.measured}{printed}"


def as_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a table of all verdicts."""
    lines = ["| claim | verdict | what the records say |", "| --- | --- | --- |"]
    for verdict in verdicts:
        claim = verdict.claim
        state = f"**{verdict.state}**" + (", stale" if verdict.freshness == "stale" else "")
        statement = f"{claim.id}: {inert.markdown(claim.statement)}"
        reason = inert.markdown(inert.line(verdict.reason, _LONGEST))
        lines.append(f"| {statement} | {state} | {reason} |")
    return "\n".join([*lines, "", inert.markdown(summary(verdicts)) + "."])


def by_paper(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of the claims of each paper by their states."""
    papers = dict.fromkeys(verdict.claim.paper for verdict in verdicts)
    lines = [f"| paper | {' | '.join(STATES)} |", "| --- |" + " --- |" * len(STATES)]
    for paper in papers:
        own = [verdict for verdict in verdicts if verdict.claim.paper == paper]
        named = [", ".join(v.claim.id for v in own if v.state == state) for state in STATES]
        lines.append(f"| {inert.markdown(paper)} | {' | '.join(named)} |")
    return "\n".join(lines)


def as_latex(verdicts: Sequence[Verdict]) -> str:
    r"""Return a longtable (``\usepackage{booktabs,longtable}``) of all verdicts."""
    lines = [
        r"\begin{longtable}{lp{0.35\linewidth}lp{0.35\linewidth}}",
        r"\toprule",
        r"claim & statement & verdict & records \\",
        r"\midrule",
        r"\endhead",
    ]
    for verdict in verdicts:
        state = verdict.state + (" (stale)" if verdict.freshness == "stale" else "")
        row = (verdict.claim.id, verdict.claim.statement, state, verdict.reason)
        lines.append(" & ".join(inert.latex(text) for text in row) + r" \\")
    caption = inert.latex(summary(verdicts))
    return "\n".join([*lines, r"\bottomrule", rf"\caption{{{caption}.}}", r"\end{longtable}"])
