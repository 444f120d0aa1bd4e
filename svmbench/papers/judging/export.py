"""Verdicts as text: for a terminal, as JSON, Markdown or LaTeX. Names are escaped."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from svmbench.base import escape
from svmbench.papers.judging.entries import EVERY, MOST
from svmbench.papers.judging.evidence import PRINTED
from svmbench.papers.judging.verdict import (
    CONTRADICTED,
    FULL,
    MIXED,
    NOT_TESTED,
    OUTCOMES,
    REDUCED,
    STAND_IN,
    SUPPORTED,
    UNDECIDED,
    Part,
    Verdict,
)
from svmbench.schema.rechecks import WORDS
from svmbench.schema.record import duration_text

if TYPE_CHECKING:
    from svmbench.report.tables.grids import TableGrid

#: Largest number of characters of a claim's number in a Markdown table.
_MAX_NUMBER_CHARS = 120


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return the number of claims with each outcome, as a sentence."""
    counts = ", ".join(f"{count} {name}" for name, count in count_outcomes(verdicts) if count)
    word = "claim" if len(verdicts) == 1 else "claims"
    words = Counter(verdict.age for verdict in verdicts if verdict.age)
    first, *others = [age for age in WORDS if words[age]] or [""]
    ages = ""
    if first:
        claims = "claim rests" if words[first] == 1 else "claims rest"
        ages = f"; {words[first]} {claims} on {first} records"
        ages += "".join(f", {words[age]} on {age} ones" for age in others)
    n_kept = sum(verdict.from_kept for verdict in verdicts)
    beside = f"; from kept records, not from these runs: {n_kept}" if n_kept else ""
    return f"{len(verdicts)} {word}: {counts}{beside}{ages}"


def count_outcomes(verdicts: Sequence[Verdict]) -> list[tuple[str, int]]:
    """Return how many verdicts have each outcome; of the supported ones how many at full scale."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    full = sum(verdict.outcome == SUPPORTED and verdict.scale.kind == FULL for verdict in verdicts)
    at_full = f"{SUPPORTED} ({full} of them at full scale)"
    return [(at_full if name == SUPPORTED else name, counts[name]) for name in OUTCOMES]


def at_scales(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims have each outcome; how many at full scale, and on stand-ins alone."""
    phrases = []
    for name in OUTCOMES:
        alike = [verdict for verdict in verdicts if verdict.outcome == name]
        kinds = Counter(verdict.scale.kind for verdict in alike)
        named = {FULL: "at full scale", STAND_IN: "on stand-ins alone"}
        scales = ", ".join(f"{kinds[kind]} {words}" for kind, words in named.items() if kinds[kind])
        if alike:
            phrases.append(f"{len(alike)} {name}" + (f" ({scales})" if scales else ""))
    return f"{len(verdicts)} {'claim' if len(verdicts) == 1 else 'claims'}: {', '.join(phrases)}"


def reproduced(verdicts: Sequence[Verdict]) -> str:
    """Return which claims are supported in every part, at full scale, on all sets they name."""
    names = [verdict.claim.id for verdict in verdicts if verdict.is_reproduced]
    word = "claim is" if len(names) == 1 else "claims are"
    listed = f": {', '.join(names)}" if names else ""
    return (
        f"{len(names)} {word} reproduced, which means supported in every part, at full scale, with "
        f"no data set that the claim names left out or replaced{listed}."
    )


def as_json(verdicts: Sequence[Verdict]) -> str:
    """Return all fields of each verdict as JSON."""
    return json.dumps([verdict.to_json() for verdict in verdicts], indent=1, ensure_ascii=False)


#: The names of the columns of :func:`as_rows`.
VERDICT_COLUMNS = ("claim", "outcome", "scale", "decided on", "what was found", "age")
#: Largest number of characters of a line of the table, and number of characters between columns.
TABLE_WIDTH, _COLUMN_GAP = 88, 2
#: Colours of outcomes on a terminal.
OUTCOME_STYLES = {SUPPORTED: "green", MIXED: "yellow", CONTRADICTED: "red"}


def as_rows(verdicts: Sequence[Verdict], width: int = TABLE_WIDTH) -> list[tuple[str, ...]]:
    """Return a row for each claim: its name, outcome, scale, number of sets, finding and age.

    The finding has names of parts only as far as a line has at most `width` characters. A claim
    that was judged on several machines also has a row for each machine.
    """
    names = [
        (verdict.claim.id, verdict.outcome, verdict.scale.kind, _sets(verdict), verdict.age)
        for verdict in verdicts
    ]
    heads = (*VERDICT_COLUMNS[:4], VERDICT_COLUMNS[5])
    room = (
        width
        - sum(max(map(len, column)) for column in zip(heads, *names, strict=True))
        - _COLUMN_GAP * (len(VERDICT_COLUMNS) - 1)
    )
    rows: list[tuple[str, ...]] = []
    for verdict, (*start, age) in zip(verdicts, names, strict=True):
        rows.append((*start, verdict.on_machines or verdict.finding(room), age))
        for machine in verdict.machines:
            label = escape.line(f"{machine.origin}: {machine.name}", room)
            rows.append(("", machine.outcome, "", "", label, machine.age))
    return rows


def _sets(verdict: Verdict) -> str:
    """Return on how many of the paper's data sets a claim is decided: ``4/11 sets``."""
    scale = verdict.scale
    number = scale.covered - (scale.stand_ins if scale.stand_ins < scale.covered else 0)
    return f"{number}/{scale.named} sets" if scale.named and scale.kind else ""


def as_details(verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return rows of two cells: each claim with its verdict, its rule, and all its parts."""
    rows: list[tuple[str, str]] = []
    for verdict in verdicts:
        mark = f" ({verdict.age})" if verdict.age else ""
        rows.append((verdict.claim.id, f"{_outcome(verdict)}{mark}: {verdict.reason}"))
        rows += [("", line) for line in (*_details(verdict), "")]
    return rows


def _outcome(verdict: Verdict) -> str:
    """Return the outcome with its scale: ``supported, reduced; decided on 4 of 11 sets``."""
    return f"{verdict.outcome}, {verdict.scale}" if verdict.scale.kind else verdict.outcome


def _details(verdict: Verdict) -> list[str]:
    claim, rows = verdict.claim, verdict.rows()
    refuted_by = "one failing part"
    if claim.quantifier != EVERY:
        half = ", or half of all parts failing" if claim.quantifier == MOST else ""
        refuted_by = f"more failing parts than holding ones{half}"
    lines = [
        f"claim: {claim.statement}",
        f"the paper ({claim.place()}): {claim.quote}",
        f"refuted by: {refuted_by}",
        f"rule: {claim.rule}",
        f"uncertainty: {claim.uncertainty}",
    ]
    is_measured = any(cell.protocol != PRINTED for cell in verdict.cells)
    if is_measured and any(metric.endswith("cpu_time_s") for metric in claim.metrics):
        lines.append("times: CPU times, without the time that other programs took")
    if claim.limits:
        lines.append(f"limits: {claim.limits_text()}")
    if claim.printed:
        lines.append(f"printed: {claim.printed}")
    order = [False, True, None]  # failures first
    lines += [
        f"{part.outcome:>9}  {_part(part)}"
        for part in sorted(verdict.parts, key=lambda part: order.index(part.holds))
    ]
    if verdict.scale.cut:
        lines.append(f"cut: {'; '.join(verdict.scale.cut)}")
    if verdict.scale.missing:
        lines.append(f"nothing decided on: {', '.join(verdict.scale.missing)}")
    if verdict.datasets():
        sizes = " to ".join(dict.fromkeys(f"{n:,}" for n in rows)) if rows else ""
        sizes = f" ({sizes} training rows)" if rows else ""
        lines.append(f"data sets: {', '.join(verdict.datasets())}{sizes}")
    lines += [f"judged on: {cpu}" for cpu in verdict.cpus]
    lines += [verdict.on_machines] if verdict.machines else []
    lines += [
        f"{machine.origin}, {machine.name}: {machine.outcome}: {machine.reason}"
        for machine in verdict.machines
    ]
    for run in verdict.runs:
        details = ", ".join(filter(None, (run.profile, run.environments)))
        lines.append(f"from: {run.folder}{f' ({details})' if details else ''}")
    lines += [f"to decide it: {verdict.to_decide}"] if verdict.to_decide else []
    lines += [f"note: {note}" for note in verdict.notes]
    lines += [f"{verdict.age}: {detail}" for detail in verdict.age_details]
    return lines + [f"to repeat: {command}" for command in verdict.commands or claim.commands()]


def _part(part: Part) -> str:
    kind = " (stand-in)" if part.stand_in else ""
    printed = f" [printed: {part.printed}]" if part.printed else ""
    cut = f" ({part.cut})" if part.cut else ""
    single = " (single times)" if part.single_times else ""
    if part.deciding is not None and part.deciding.crosses_limit:
        width = part.deciding.allowed_width
        single += f" (crosses a limit, which an interval at most {width:.2g} wide may)"
    return f"{part.what}{kind}: {part.measured}{printed}{single}{cut}"


def as_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a table of all verdicts: each claim, its outcome, scale and parts, and one number."""
    lines = ["| claim | outcome | scale | parts | one number |", "| --- | --- | --- | --- | --- |"]
    for verdict in verdicts:
        claim = verdict.claim
        state = f"**{verdict.outcome}**" + (f", {verdict.age}" if verdict.age else "")
        state += f" ({verdict.on_machines})" if verdict.machines else ""
        statement = f"{claim.id}: {escape.markdown(claim.statement)}"
        measured = verdict.key_number() or verdict.reason
        short = textwrap.shorten(
            escape.line(measured), _MAX_NUMBER_CHARS, placeholder=" …", break_on_hyphens=False
        )
        number = escape.markdown(short)
        if verdict.to_decide:
            number += f". To decide it: {escape.markdown(verdict.to_decide)}."
        scale = escape.markdown(str(verdict.scale))
        lines.append(f"| {statement} | {state} | {scale} | {verdict.count_parts()} | {number} |")
    took = evidence_time(verdicts)
    return "\n".join(
        [*lines, "", f"{escape.markdown(summary(verdicts))}.", *(["", took] if took else [])]
    )


def in_format(name: str, verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as JSON, or in an output format: a table of all claims.

    Parameters
    ----------
    name : str
        ``json``, or a name of `svmbench.report.output.formats.FORMATS`.
    verdicts : sequence of Verdict
    """
    from svmbench.report.output.formats import FORMATS

    writers = {"json": as_json, "markdown": as_markdown, "latex": as_latex}
    if name in writers:
        return writers[name](verdicts)
    return FORMATS.named(name).table(verdict_grid(verdicts), "verdicts")


def verdict_grid(verdicts: Sequence[Verdict]) -> TableGrid:
    """Return the verdicts as a grid, which any output format can write."""
    from svmbench.report.tables.grids import GridEntry, Head, TableGrid
    from svmbench.report.tables.layout import EntryText

    heads = [Head(text) for text in ("outcome", "scale", "reason")]
    rows = [
        (
            [verdict.claim.id, verdict.claim.statement],
            [
                GridEntry(EntryText(text), "", best=False, state="ok")
                for text in (verdict.outcome, str(verdict.scale), verdict.reason)
            ],
        )
        for verdict in verdicts
    ]
    return TableGrid(
        name="verdicts",
        title="Verdicts",
        caption=[(f"{summary(verdicts)}.",)],
        notes=[],
        fields=["claim", "statement"],
        groups=[],
        heads=heads,
        rows=rows,
        gaps=[],
        undefined=[],
    )


def evidence_time(verdicts: Sequence[Verdict]) -> str:
    """Return a sentence on the computing time of the verdicts' results; "" if it is unknown.

    Parameters
    ----------
    verdicts : sequence of Verdict
    """
    took = {cell.key: cell.wall_s for verdict in verdicts for cell in verdict.cells}
    total = sum(took.values())
    if not total:
        return ""
    cells = "The cell they rest on" if len(took) == 1 else f"The {len(took):,} cells they rest on"
    return f"{cells} took {duration_text(total)} of computing on one core."


def outcome(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts on a paper's claims in one sentence that names them."""
    words = {
        CONTRADICTED: ("is contradicted", "are contradicted"),
        MIXED: ("is mixed", "are mixed"),
        SUPPORTED: ("is supported", "are supported"),
        UNDECIDED: ("is undecided", "are undecided"),
        NOT_TESTED: ("is not tested", "are not tested"),
    }
    phrases = []
    for name, (singular, several) in words.items():
        names = [verdict.claim.id for verdict in verdicts if verdict.outcome == name]
        if names:
            phrases.append(
                f"{len(names)} {singular if len(names) == 1 else several} ({', '.join(names)})"
            )
    last = (
        f" and {phrases[-1]}" if len(phrases) > 1 else phrases[-1] if phrases else "none was judged"
    )
    return f"Of {len(verdicts)} claims {', '.join(phrases[:-1])}{last}."


def scales(verdicts: Sequence[Verdict]) -> str:
    """Return at what scale the claims of a paper were decided, in one sentence."""
    counts = Counter(verdict.scale.kind for verdict in verdicts)
    words = {
        FULL: "with the paper's data and protocol",
        REDUCED: "on fewer rows, folds or settings",
        STAND_IN: "on other data than the paper's",
    }
    phrases = [f"{counts[kind]} {how}" for kind, how in words.items() if counts[kind]]
    n_undecided = len(verdicts) - sum(counts[kind] for kind in words)
    if not phrases:
        return "No claim is decided."
    rest = (
        f"; {n_undecided} {'is' if n_undecided == 1 else 'are'} not decided" if n_undecided else ""
    )
    word = "claim was" if len(verdicts) - n_undecided == 1 else "claims were"
    decided = len(verdicts) - n_undecided
    return f"{decided} of {len(verdicts)} {word} decided: {', '.join(phrases)}{rest}."


def by_paper(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of the claims of each paper by their outcomes."""
    papers = dict.fromkeys(verdict.claim.paper for verdict in verdicts)
    lines = [f"| paper | {' | '.join(OUTCOMES)} |", "| --- |" + " --- |" * len(OUTCOMES)]
    for paper in papers:
        verdicts_of = [verdict for verdict in verdicts if verdict.claim.paper == paper]
        cells = [
            ", ".join(v.claim.id for v in verdicts_of if v.outcome == name) for name in OUTCOMES
        ]
        lines.append(f"| {escape.markdown(paper)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def as_latex(verdicts: Sequence[Verdict]) -> str:
    r"""Return a longtable (``\usepackage{booktabs,longtable}``) of all verdicts."""
    lines = [
        r"\begin{longtable}{lp{0.35\linewidth}lp{0.35\linewidth}}",
        r"\toprule",
        r"claim & statement & outcome & reason \\",
        r"\midrule",
        r"\endhead",
    ]
    for verdict in verdicts:
        state = _outcome(verdict) + (f" ({verdict.age})" if verdict.age else "")
        state += f"; {verdict.on_machines}" if verdict.machines else ""
        row = (verdict.claim.id, verdict.claim.statement, state, verdict.reason)
        lines.append(" & ".join(escape.latex(text) for text in row) + r" \\")
    caption = escape.latex(summary(verdicts))
    return "\n".join([*lines, r"\bottomrule", rf"\caption{{{caption}.}}", r"\end{longtable}"])
