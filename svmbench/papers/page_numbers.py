"""The numbers and tables of pages, computed from kept results.

Each number in a text follows its expression, which is in an HTML comment that readers don't see::

    csvc is <!--= median ratio csvc:libsvm of smo/perf_kernel block=a9a -->36 times as fast

An expression has these parts: an aggregate (``value`` of exactly one number, ``median``, ``mean``,
``min``, ``max``, ``range``, ``sum``, ``count``); a metric; a solver, or a pair ``a:b`` of a race
(optional); ``of`` and a folder under ``results/``; conditions on the columns of its ``table.csv``
(``dataset=iris,wine``, ``rows=1605``, or a dimension: ``solver.nu=0.2``). ``field=published`` reads
the column ``published`` in place of the value. With ``plot=NAME`` the numbers are the exponents of
a plot (``exponent``, ``low``, ``high``), and its series take the place of solvers. An expression
may be a quotient or a difference of two; the second one takes over the settings of the first,
unless it names others::

    <!--= mean cpu_time_s nn-isda of nlsgd/table3 block=all-rows / mean cpu_time_s nl-sgd -->15

The number is rounded to the digits that it is written with. Other pairs of comments enclose what is
generated. A table of a run::

    <!-- table smo/perf_kernel a9a -->
    <!-- /table -->

The verdicts on claims (`svmbench.papers.judging`): of all papers by their outcomes, or of one paper
with the measured numbers::

    <!-- verdicts -->
    <!-- /verdicts -->

    <!-- verdicts smo -->
    <!-- /verdicts -->

A text on the outcome of each paper (`svmbench.papers.judging.outcomes`); it is an error if the
verdicts have changed since the text was written::

    <!-- outcomes -->
    <!-- /outcomes -->

    <!-- outcomes smo -->
    <!-- /outcomes -->

The choice of a solver for each task (`svmbench.report.numbers.choices`)::

    <!-- choices -->
    <!-- /choices -->
"""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from svmbench.base import escape
from svmbench.base.errors import ResultsError
from svmbench.base.files import read_text
from svmbench.base.paper_folders import papers
from svmbench.papers import judging
from svmbench.papers.judging import Claim, Evidence, Verdict
from svmbench.papers.judging import export as as_text
from svmbench.papers.judging.outcomes import FILE, outcomes
from svmbench.papers.judging.picture import alternative_text, draw_parts
from svmbench.papers.judging.printed_evidence import beside_printed, printed_evidence
from svmbench.papers.judging.verdict import SUPPORTED
from svmbench.report.numbers.certified import boards
from svmbench.report.numbers.choices import HEAD, Choice, caption, choices
from svmbench.report.numbers.ratios import leaderboard, ratios
from svmbench.report.reading.folders import runs_below
from svmbench.report.reading.records import read_run
from svmbench.schema.record import canonical

_NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?"
# A match ends at the next comment of its kind. Otherwise a page of unclosed comments would take
# quadratic time.
_PAGE_NUMBER = re.compile(
    rf"<!--=(?P<what>(?:(?!<!--|-->).)*)-->(?P<number>{_NUMBER}(?:–{_NUMBER})?)?", re.DOTALL
)
_TABLE = re.compile(
    r"(?P<head><!-- table (?P<folder>\S+) (?P<name>\S+) -->\n)"
    r"(?:(?!<!-- /?table).)*(?P<foot><!-- /table -->)",
    re.DOTALL,
)
_VERDICTS = re.compile(
    r"(?P<head><!-- verdicts(?: (?P<paper>\S+))? -->\n)"
    r"(?:(?!<!-- /?verdicts).)*(?P<foot><!-- /verdicts -->)",
    re.DOTALL,
)
_OUTCOMES = re.compile(
    r"(?P<head><!-- outcomes(?: (?P<paper>\S+))? -->\n)(?:(?!<!-- /?outcomes).)*"
    r"(?P<foot><!-- /outcomes -->)",
    re.DOTALL,
)
_CHOICES = re.compile(r"(?P<head><!-- choices -->\n)[^<]*(?P<foot><!-- /choices -->)")
#: The folder with the pictures of a page's claims, beside the page.
PICTURES = "claims"
#: Number of digits of a number that isn't written yet.
_DEFAULT_DIGITS = 3

_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "sum": math.fsum,
    "count": len,
}


@dataclass(frozen=True)
class Query:
    """An expression without quotient or difference: an aggregate and the numbers it combines."""

    aggregate: str
    metric: str
    solver: str = ""
    folder: str = ""
    where: dict[str, str] = field(default_factory=dict)


class Results:
    """A folder of kept results; each file is read once.

    Parameters
    ----------
    root : Path
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[Path, list[dict[str, str]]] = {}
        self._verdicts: dict[str, Verdict] = {}

    def lines(self, path: Path) -> list[dict[str, str]]:
        """Return the lines of a CSV file, all with the same columns; '' where one has no value.

        Raises
        ------
        ResultsError
            If it can't be read.
        """
        if path not in self._read:
            try:
                rows = [_flat(row) for row in csv.DictReader(io.StringIO(read_text(path)))]
            except OSError as error:
                raise ResultsError(f"can't read {path}: {error.strerror or error}") from error
            columns = {name: "" for row in rows for name in row}
            self._read[path] = [{**columns, **row} for row in rows]
        return self._read[path]

    def judged(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return a verdict on each claim, judged once, whatever the age of its records."""
        for claim in (claim for claim in claims if claim.id not in self._verdicts):
            (self._verdicts[claim.id],) = judging.judge([claim], self.evidence)
        return [self._verdicts[claim.id] for claim in claims]

    @cached_property
    def choices(self) -> tuple[list[Choice], str]:
        """The solver for each task, with reasons from the races of all kept runs, and a caption."""
        runs = [read_run(folder) for folder in runs_below([self.root]).values()]
        raced = [(run.path.name, run) for run in runs if any(cell.is_race for cell in run.cells)]
        races, others = boards(raced), leaderboard(ratios(raced, lambda _, label: label))
        return choices(races, others), caption(races)

    @cached_property
    def evidence(self) -> Evidence:
        """The kept runs below the folder, as evidence for claims."""
        return judging.gather_evidence([self.root], only_kept=True)


def refresh_page(text: str, results: Results, name: str = "text") -> str:
    """Return a page with every number, table and verdict computed from the kept results.

    Parameters
    ----------
    text : str
        Markdown.
    results : Results
    name : str
        The name of the page in messages.

    Raises
    ------
    ResultsError
        For an expression that can't be read, or that fits no number or several.
    """

    def page_number(match: re.Match[str]) -> str:
        try:
            values = evaluate_expression(match["what"], results)
        except ResultsError as error:
            line = text.count("\n", 0, match.start()) + 1
            raise ResultsError(f"{name}:{line}: {match['what'].strip()}: {error}") from error
        return f"<!--={match['what']}-->{written(values, match['number'] or '')}"

    def table(match: re.Match[str]) -> str:
        lines = _table_lines(results.root / match["folder"] / f"{match['name']}.md")
        return f"{match['head']}\n{lines}\n\n{match['foot']}"

    def verdicts(match: re.Match[str]) -> str:
        return f"{match['head']}\n{_verdict_lines(match['paper'], results)}\n\n{match['foot']}"

    def outcomes(match: re.Match[str]) -> str:
        return f"{match['head']}\n{_outcome_lines(match['paper'], results)}\n\n{match['foot']}"

    def choice_lines(match: re.Match[str]) -> str:
        lines = [f"| {' | '.join(HEAD)} |", "| --- | --- | --- |"]
        chosen, sentence = results.choices
        lines += [f"| {choice.task} | `{choice.solver}` | {choice.why} |" for choice in chosen]
        return "\n".join([match["head"], *lines, "", sentence, "", match["foot"]])

    text = _CHOICES.sub(choice_lines, _OUTCOMES.sub(outcomes, text))
    return _VERDICTS.sub(verdicts, _TABLE.sub(table, _PAGE_NUMBER.sub(page_number, text)))


def without_comments(text: str) -> str:
    """Return a page without its comments, and without the empty lines that they leave."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[at:start])
        at = end + 3
        # If the comment is alone on its line, the end of the line is removed, too.
        at += text[at : at + 2] in ("\n\n", "\n#")
    parts.append(text[at:])
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip("\n") + "\n"


def expressions(text: str) -> list[str]:
    """Return every expression of a page."""
    return [match["what"] for match in _PAGE_NUMBER.finditer(text)]


def queries(expression: str) -> list[Query]:
    """Return an expression, or both sides of its quotient or difference, each with its folder.

    Raises
    ------
    ResultsError
        For an expression that can't be read.
    """
    parts = re.split(r" [/-] ", " ".join(expression.split()))
    if len(parts) > 2:
        raise ResultsError("an expression has at most one quotient or difference")
    first, *rest = map(parse, parts)
    for index, second in enumerate(rest):
        if not second.folder:
            where = {**first.where, **second.where}
            rest[index] = replace(second, folder=first.folder, where=where)
    return [first, *rest]


def evaluate_expression(expression: str, results: Results) -> tuple[float, ...]:
    """Return the value of an expression; both ends of a range.

    Raises
    ------
    ResultsError
        For an expression that can't be read, or that no number or several fit.
    """
    values = [_value(query, results) for query in queries(expression)]
    if len(values) == 1:
        return values[0]
    first, second = values
    if len(first) > 1 or len(second) > 1:
        raise ResultsError("a range can't have a quotient or difference")
    if " - " in " ".join(expression.split()):
        return (first[0] - second[0],)
    if second[0] == 0:
        raise ResultsError("the second value is 0")
    return (first[0] / second[0],)


def parse(text: str) -> Query:
    """Read an expression without a quotient.

    Raises
    ------
    ResultsError
        If it can't be read.
    """
    words = shlex.split(text)
    head, where = [word for word in words if "=" not in word], [w for w in words if "=" in w]
    folder = ""
    if "of" in head:
        index = head.index("of")
        if len(head) != index + 2:
            raise ResultsError("after 'of' stands one folder under results/")
        folder, head = head[-1].removeprefix("results/").rstrip("/"), head[:index]
    known = ["value", "range", *_AGGREGATES]
    if not 2 <= len(head) <= 3 or head[0] not in known:
        raise ResultsError(
            f"it begins with one of {', '.join(known)}, a metric and at most one solver"
        )
    return Query(
        aggregate=head[0],
        metric=head[1],
        solver=head[2].replace(":", " vs ") if head[2:] else "",
        folder=folder,
        where=dict(word.split("=", 1) for word in where),
    )


def written(values: Sequence[float], like: str) -> str:
    """Return numbers with the digits of the text `like`; three digits if it is empty."""
    shapes = like.split("–") if like else [""]
    if len(shapes) != len(values):
        shapes = [shapes[0]] * len(values)
    return "–".join(_one(value, shape) for value, shape in zip(values, shapes, strict=True))


def _one(value: float, like: str) -> str:
    if like:
        places = len(like.partition(".")[2])
        comma = "," if "," in like or (abs(value) >= 1e4 and "." not in like) else ""
    elif float(value).is_integer():
        places, comma = 0, ","
    else:
        places, comma = max(0, _DEFAULT_DIGITS - 1 - math.floor(math.log10(abs(value)))), ","
    text = f"{value:{comma}.{places}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def _value(query: Query, results: Results) -> tuple[float, ...]:
    numbers = _numbers(query, results)
    if query.aggregate == "count":
        return (float(len(numbers)),)
    if not numbers:
        raise ResultsError("no number fits")
    if query.aggregate == "value":
        if len(numbers) > 1:
            raise ResultsError(
                f"{len(numbers)} numbers fit; select one, or choose how to combine them"
            )
        return (numbers[0],)
    if query.aggregate == "range":
        return (min(numbers), max(numbers))
    return (float(_AGGREGATES[query.aggregate](numbers)),)


def _numbers(query: Query, results: Results) -> list[float]:
    return [float(row[_column(query)]) for row in rows_behind(query, results)]


def _column(query: Query) -> str:
    return query.metric if "plot" in query.where else query.where.get("field", "value")


def rows_behind(query: Query, results: Results) -> list[dict[str, str]]:
    """Return the lines of a folder's ``table.csv``, or of exponents, that fit, each number once.

    Raises
    ------
    ResultsError
        Without a folder, or if there is no such file or column.
    """
    where = dict(query.where)
    plot, column = where.pop("plot", ""), _column(query)
    where.pop("field", "")
    if not query.folder:
        raise ResultsError("it names no folder ('of smo/perf_kernel')")
    if plot:
        path = results.root / query.folder / f"{plot}-exponents.csv"
        wanted = {"series": query.solver, **where}
    else:
        path = results.root / query.folder / "table.csv"
        wanted = {"metric": query.metric, "solver": query.solver, **where}
    rows = results.lines(path)
    for name in (column, *wanted):
        if rows and name not in rows[0]:
            raise ResultsError(f"{path.name} has no column {name!r}")
    # A number has a line for every table that shows it, with the paper's number of that table.
    twice = {"table", "published", "difference"} - {column}
    matching: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for row in rows:
        fits = all(not text or row[name] in text.split(",") for name, text in wanted.items())
        if fits and row[column]:
            key = tuple((name, text) for name, text in row.items() if name not in twice)
            matching[key] = row
    return list(matching.values())


@cache
def _swept(dimensions: str) -> dict[str, str]:
    """Return each dimension of a line by its own name."""
    swept = [part.partition("=") for part in dimensions.split("; ") if "=" in part]
    return {name: text for name, _, text in swept}


def _flat(row: dict[str, str]) -> dict[str, str]:
    """Return a line of ``table.csv`` with each dimension under its own name."""
    by_name = {canonical(name): text for name, text in row.items()}
    return {**by_name, **_swept(row.get("dimensions", ""))}


def _table_lines(path: Path) -> str:
    try:
        text = read_text(path)
    except OSError as error:
        raise ResultsError(f"can't read {path}: {error.strerror or error}") from error
    lines = [line for line in text.splitlines() if line.startswith("|")]
    if not lines:
        raise ResultsError(f"{path} holds no table")
    return "\n".join(lines)


def _verdict_lines(paper: str | None, results: Results) -> str:
    """Return the verdicts on a paper's claims, or on all claims, whatever the age of the records.

    Raises
    ------
    ResultsError
        For a paper without claims.
    """
    wanted = [claim for claim in judging.read_all_claims() if paper in (None, claim.paper)]
    if not wanted:
        raise ResultsError(f"there are no claims of {paper!r}")
    verdicts = results.judged(wanted)
    if paper is None:
        return as_text.by_paper(verdicts)
    by_printed = _own_numbers(_beside_printed(verdicts))
    pictures = [_picture_lines(verdict) for verdict in verdicts if verdict.parts]
    folded = ["<details>", "<summary>The parts of each claim as pictures</summary>", ""]
    folded += ["\n\n".join(pictures), "", "</details>"]
    lines = [as_text.as_markdown(verdicts), *by_printed, "", *(folded if pictures else [])]
    return "\n".join(lines).rstrip("\n")


def _picture_lines(verdict: Verdict) -> str:
    """Return a claim with its picture as Markdown."""
    name, alt = verdict.claim.id, escape.markdown(alternative_text(verdict.parts))
    statement = escape.markdown(verdict.claim.statement)
    return f"{name}: {statement}\n\n![{name}: {alt}]({PICTURES}/{name}.svg)"


def claim_pictures(page: str, results: Results) -> dict[str, str]:
    """Return the pictures of the claims whose verdicts a page shows, by their names.

    Parameters
    ----------
    page : str
        Markdown.
    results : Results
    """
    keys = {match["paper"] for match in _VERDICTS.finditer(page)} - {None}
    wanted = [claim for claim in judging.read_all_claims() if claim.paper in keys]
    return {
        f"{verdict.claim.id}.svg": draw_parts(verdict.parts)
        for verdict in _beside_printed(results.judged(wanted))
        if verdict.parts
    }


def _beside_printed(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts with the outcomes that the papers' printed numbers give by the same rules."""
    known = papers()
    of_printed = [
        judged
        for key in dict.fromkeys(verdict.claim.paper for verdict in verdicts)
        for judged in judging.judge(
            [verdict.claim for verdict in verdicts if verdict.claim.paper == key],
            printed_evidence(known[key]),
        )
    ]
    return beside_printed(verdicts, of_printed)


def _own_numbers(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a sentence on the claims that the paper's own printed numbers don't support."""
    names_of: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.by_printed not in {"", SUPPORTED}:
            names_of.setdefault(verdict.by_printed, []).append(verdict.claim.id)
    sentence = ", ".join(f"{', '.join(names)} {outcome}" for outcome, names in names_of.items())
    shown = f"Under the same rules, the paper's own printed numbers give: {sentence}."
    return ["", shown] if sentence else []


def _named(claims: Iterable[str]) -> str:
    """Return claims as text; of three or more with successive numbers, the first and the last."""
    rows: list[list[str]] = []
    for claim in claims:
        stem, _, number = claim.rpartition("-")
        before = f"{stem}-{int(number) - 1}" if number.isdecimal() else None
        if rows and rows[-1][-1] == before:
            rows[-1].append(claim)
        else:
            rows.append([claim])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 2 else ", ".join(row) for row in rows)


def _outcome_lines(only: str | None, results: Results) -> str:
    """Return the verdicts of each paper, or of one, as text.

    Raises
    ------
    ResultsError
        If a text was written for other verdicts than those of the kept results.
    """
    wanted = [claim for claim in judging.read_all_claims() if only in (None, claim.paper)]
    judged, lines = results.judged(wanted), []
    for paper, outcome in outcomes(judged).items():
        if outcome.stale:
            raise ResultsError(f"{paper}/{FILE}: read the text again: {'; '.join(outcome.stale)}")
        counts = as_text.at_scales([verdict for verdict in judged if verdict.claim.paper == paper])
        claims = _named(outcome.claims)
        if only is None:
            parts = " ".join(f"*{label}:* {text}" for label, text in outcome.parts.items())
            lines.append(f"- **{paper}**, {counts}. {parts} (From {claims}.)")
        else:
            lines += [f"{counts}.", ""]
            lines += [f"- **{label}**: {text}" for label, text in outcome.parts.items()]
            lines += ["", f"These sentences rest on {claims}."]
    if not lines:
        raise ResultsError(f"there is no text on {only!r}")
    head = [] if only else [f"{as_text.at_scales(judged)}. {as_text.reproduced(judged)}", ""]
    return "\n".join([*head, *lines])
