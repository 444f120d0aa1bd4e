"""Verdicts as text: for a terminal, as JSON, Markdown or LaTeX. Names are escaped."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence

from svmbench.base import escape
from svmbench.papers.judging.verdict import (
    NOT_REPRODUCED,
    OPEN,
    PARTLY,
    REPRODUCED,
    STATES,
    Part,
    Verdict,
)
from svmbench.schema.rechecks import WORDS

_HOLDS = {True: "yes", False: "no", None: "open"}
#: Largest number of characters of a reason in a Markdown table.
_MAX_REASON_CHARS = 400


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return the number of claims in each state, as a sentence."""
    counts = Counter(verdict.state for verdict in verdicts)
    said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    word = "claim" if len(verdicts) == 1 else "claims"
    words = Counter(verdict.freshness for verdict in verdicts if verdict.freshness)
    ages = ", ".join(f"{words[word]} {word}" for word in WORDS if words[word])
    older = f"; results: {ages}" if ages else ""
    kept = sum(verdict.from_kept for verdict in verdicts)
    beside = f"; {kept} of them from kept records, which these runs leave open" if kept else ""
    return f"{len(verdicts)} {word}: {said}{beside}{older}"


def as_json(verdicts: Sequence[Verdict]) -> str:
    """Return all that is known of each verdict."""
    return json.dumps([verdict.to_json() for verdict in verdicts], indent=1, ensure_ascii=False)


#: The names of the columns of :func:`as_rows`.
VERDICT_COLUMNS = ("claim", "verdict", "what was found", "freshness")
#: Characters of a line that the table fits, and those between two columns.
TABLE_WIDTH, _COLUMN_GAP = 80, 2
#: Colours of verdicts on a terminal.
STATE_STYLES = {"reproduced": "green", "partly": "yellow", "not reproduced": "red"}


def as_rows(
    verdicts: Sequence[Verdict], width: int = TABLE_WIDTH
) -> list[tuple[str, str, str, str]]:
    """Return a row for each claim: its name, the verdict, what was found, whether it is fresh.

    The third cell is shortened so that a line has at most `width` characters.

    A claim that was judged on several machines has a row for each of them, too.
    """
    names = [(one.claim.id, one.state, one.freshness) for one in verdicts]
    columns = zip((VERDICT_COLUMNS[0], VERDICT_COLUMNS[1], VERDICT_COLUMNS[3]), *names, strict=True)
    room = (
        width
        - sum(max(map(len, column)) for column in columns)
        - _COLUMN_GAP * (len(VERDICT_COLUMNS) - 1)
    )
    rows = []
    for one in verdicts:
        said = one.on_machines or one.found(room)
        rows.append((one.claim.id, one.state, escape.line(said, room), one.freshness))
        for machine in one.machines:
            named = escape.line(f"{machine.origin}: {machine.name}", room)
            rows.append(("", machine.state, named, machine.freshness))
    return rows


def as_details(verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return rows of two cells: each claim with its verdict, its rule, and all its parts."""
    rows: list[tuple[str, str]] = []
    for verdict in verdicts:
        mark = f" ({verdict.freshness})" if verdict.freshness else ""
        rows.append((verdict.claim.id, f"{verdict.state}{mark}: {verdict.reason}"))
        rows += [("", line) for line in (*_details(verdict), "")]
    return rows


def _details(verdict: Verdict) -> list[str]:
    claim, rows = verdict.claim, verdict.rows()
    lines = [
        f"claim: {claim.statement}",
        f"the paper ({claim.place()}): {claim.quote}",
        f"rule: {claim.rule}",
        f"uncertainty: {claim.uncertainty}",
    ]
    if claim.limits:
        lines.append(f"threshold: {claim.threshold()}")
    if claim.printed:
        lines.append(f"printed: {claim.printed}")
    order = [False, True, None]  # failures first
    lines += [
        f"{_HOLDS[part.holds]:>4}  {_part(part)}"
        for part in sorted(verdict.parts, key=lambda part: order.index(part.holds))
    ]
    if verdict.datasets():
        sizes = f" ({rows[0]:,} to {rows[1]:,} training rows)" if rows else ""
        lines.append(f"data sets: {', '.join(verdict.datasets())}{sizes}")
    lines += [f"judged on: {cpu}" for cpu in verdict.cpus]
    lines += [verdict.on_machines] if verdict.machines else []
    lines += [f"{one.origin}, {one.name}: {one.state}: {one.reason}" for one in verdict.machines]
    lines += [f"from: {folder} ({profile}, {environment})"
              for folder, profile, environment in verdict.sources]  # fmt: skip
    lines += [f"to decide it: {verdict.to_decide}"] if verdict.to_decide else []
    lines += [f"note: {note}" for note in verdict.notes]
    lines += [f"{verdict.freshness}: {one}" for one in verdict.age]
    return lines + [f"records: {command}" for command in verdict.commands or claim.commands()]


def _part(part: Part) -> str:
    kind = " (stand-in)" if part.stand_in else ""
    printed = f" [printed: {part.printed}]" if part.printed else ""
    cut = f" ({part.cut})" if part.cut else ""
    single = " (single times)" if part.single_times else ""
    return f"{part.what}{kind}: {part.measured}{printed}{single}{cut}"


def as_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a table of all verdicts, each claim with the rule that decides it."""
    lines = ["| claim | verdict | what the records say |", "| --- | --- | --- |"]
    for verdict in verdicts:
        claim = verdict.claim
        state = f"**{verdict.state}**" + (f", {verdict.freshness}" if verdict.freshness else "")
        state += f" ({verdict.on_machines})" if verdict.machines else ""
        statement = f"{claim.id}: {escape.markdown(claim.statement)}"
        statement += f" Rule: {escape.markdown(claim.rule)}."
        short = textwrap.shorten(
            verdict.reason, _MAX_REASON_CHARS, placeholder=" …", break_on_hyphens=False
        )
        reason = escape.markdown(escape.line(short))
        if verdict.to_decide:
            reason += f". To decide it, run {escape.markdown(verdict.to_decide)}."
        lines.append(f"| {statement} | {state} | {reason} |")
    return "\n".join([*lines, "", escape.markdown(summary(verdicts)) + "."])


def outcome(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts on a paper's claims in one sentence that names them; failures first."""
    words = {
        NOT_REPRODUCED: ("does not hold", "do not hold"),
        PARTLY: ("holds in part", "hold in part"),
        REPRODUCED: ("holds", "hold"),
        OPEN: ("is open", "are open"),
    }
    said = []
    for state, (one, several) in words.items():
        names = [verdict.claim.id for verdict in verdicts if verdict.state == state]
        if names:
            said.append(f"{len(names)} {one if len(names) == 1 else several} ({', '.join(names)})")
    last = f" and {said[-1]}" if len(said) > 1 else said[-1] if said else "none was judged"
    return f"Of {len(verdicts)} claims {', '.join(said[:-1])}{last}."


def by_paper(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of the claims of each paper by their states."""
    papers = dict.fromkeys(verdict.claim.paper for verdict in verdicts)
    lines = [f"| paper | {' | '.join(STATES)} |", "| --- |" + " --- |" * len(STATES)]
    for paper in papers:
        own = [verdict for verdict in verdicts if verdict.claim.paper == paper]
        named = [", ".join(v.claim.id for v in own if v.state == state) for state in STATES]
        lines.append(f"| {escape.markdown(paper)} | {' | '.join(named)} |")
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
        state = verdict.state + (f" ({verdict.freshness})" if verdict.freshness else "")
        state += f"; {verdict.on_machines}" if verdict.machines else ""
        row = (verdict.claim.id, verdict.claim.statement, state, verdict.reason)
        lines.append(" & ".join(escape.latex(text) for text in row) + r" \\")
    caption = escape.latex(summary(verdicts))
    return "\n".join([*lines, r"\bottomrule", rf"\caption{{{caption}.}}", r"\end{longtable}"])
