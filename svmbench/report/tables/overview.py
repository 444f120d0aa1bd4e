"""An overview of a table: a line for each row and column, and its best solvers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from svmbench.report.reading.records import Run
from svmbench.report.reading.wording import MARKS
from svmbench.report.tables.best import contests, left_out
from svmbench.report.tables.captions import footnotes
from svmbench.report.tables.layout import Table, entry_text, row_texts
from svmbench.report.tables.media import TERMINAL

#: Largest number of characters of a line of the overview.
MAX_OVERVIEW_CHARACTERS = 80
#: Largest number of rows of the overview.
MAX_OVERVIEW_ROWS = 60


def has_printed(table: Table) -> bool:
    """Return True if a value of the table stands beside a printed one."""
    return any(
        entry.comparison.published is not None and entry.summary.value is not None
        for entry in table.entries.values()
    )


def overview_lines(run: Run, table: Table) -> list[list[str]]:
    """Return a header and a line for each row and column with a value; nothing without values."""
    columns = list(dict.fromkeys(column for column, _ in table.columns))
    metrics = list(dict.fromkeys(metric for _, metric in table.columns))
    heads = [run.label(name) for name in table.row_fields]
    lines = []
    for row in table.row_keys:
        for column in columns:
            entries = [table.entries.get((row, column, metric)) for metric in metrics]
            if any(entry and entry.summary.value is not None for entry in entries):
                names = [table.column_text(column)] if table.column_fields else []
                values = [str(replace(entry_text(entry), spread="")) for entry in entries]
                lines.append([*row_texts(table, row), *names, *values])
    column_head = ["solver" if table.column_fields == ("solver",) else "column"]
    header = [*heads, *(column_head if table.column_fields else []), *map(run.label, metrics)]
    return [header, *lines] if lines else []


def lines_that_fit(table: Table, lines: list[list[str]], gap: int) -> list[list[str]]:
    """Leave out metrics from the right, but not the first, until the lines fit the screen.

    Parameters
    ----------
    table : Table
    lines : list of list of str
    gap : int
        Number of spaces between two columns.
    """
    min_columns = len(table.row_fields) + bool(table.column_fields) + 1
    shown = lines[: MAX_OVERVIEW_ROWS + 1]
    widths = [max(map(len, column)) + gap for column in zip(*shown, strict=True)]
    while len(widths) > min_columns and sum(widths) - gap > MAX_OVERVIEW_CHARACTERS:
        widths.pop()
    return [line[: len(widths)] for line in lines]


def legend(run: Run, table: Table, lines: list[list[str]]) -> list[str]:
    """Return sentences on the marks, the ratios and the kinds of time of the shown lines."""
    shown = "".join(text for line in lines for text in line)
    notes = [TERMINAL.spell(note) for note in footnotes(table, allow_contended=False)]
    sentences = [
        note.replace("listed below", "listed in tables.md")
        for note in notes
        if (note[0] in MARKS and note[0] in shown) or note.startswith("a vs b")
    ]
    metrics = {metric for _, metric in table.columns}
    if {"train_time_s", "cpu_time_s"} <= metrics and "CPU time (s)" in lines[0]:
        sentences.append(
            "train time: by the clock on the wall; CPU time: of the processor alone, without the"
            " time that other programs took"
        )
    elif "train_time_s" in metrics and run.paper:
        sentences.append(
            "train time: by the clock on the wall; 'svmbench claims' compares CPU times, without"
            " the time that other programs took"
        )
    return sentences


def best_sentences(run: Run, table: Table) -> list[str]:
    """Return a sentence for each metric on the solvers with the best values, and on what it omits.

    Example: "best accuracy (%): csvc in 3 of 4 comparisons, smo in 2".
    """
    by_metric: dict[str, list[list[str]]] = {}
    for contest in contests(run, table):
        by_metric.setdefault(contest.metric, []).append(contest.best())
    sentences = []
    omitted: dict[str, list[str]] = {}
    for metric, best in by_metric.items():
        counts = Counter(name for names in best for name in names).most_common()
        phrases = [f"{name} in {count}" for name, count in counts]
        if len(best) == 1:
            phrases = [" and ".join(name for name, _ in counts)]
        else:
            phrases[0] += f" of {len(best)} comparisons"
        sentences.append(f"best {run.label(metric)}: {', '.join(phrases)}")
        for reason, solvers in left_out(run, table, metric).items():
            phrases = [f"{name} on {', '.join(rows)}" for name, rows in solvers.items()]
            sentence = f"because {reason}: {'; '.join(phrases)}"
            omitted.setdefault(sentence, []).append(run.label(metric))
    return sentences + [
        f"  not compared in {' and '.join(labels)}, {sentence}"
        for sentence, labels in omitted.items()
    ]
