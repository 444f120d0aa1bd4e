"""The overview at the end of a run: first rows of a table, the best solvers, what to read next."""

from __future__ import annotations

from collections import Counter

from svmbench.cli import terminal
from svmbench.report.best import contests
from svmbench.report.builder import BuiltReport
from svmbench.report.records import Run
from svmbench.report.tables import Table, cell_text, row_texts

#: Largest number of characters of a line, and of rows, of the overview.
OVERVIEW_CHARACTERS = 80
OVERVIEW_ROWS = 10


def print_overview(built: BuiltReport) -> None:
    """Print the first table with values as aligned lines, its best solvers, and what to read next.

    Each line has one row and one column of the table, with their metrics beside each other.
    """
    run = built.content.run
    for table in built.content.tables:
        lines = _lines(run, table)
        if lines:
            header, *rows = _fitted(lines)
            terminal.print_line(table.spec.heading)
            terminal.print_columns(rows[:OVERVIEW_ROWS], header=header)
            if len(rows) > OVERVIEW_ROWS:
                terminal.print_line(f"… and {len(rows) - OVERVIEW_ROWS} more rows")
            for sentence in _best(run, table):
                terminal.print_line(sentence)
            break
    plots = [paths[-1] for paths in built.plots.values()]
    terminal.print_line(f"tables: {built.joined}")
    for plot in plots[:1]:
        more = f" and {len(plots) - 1} more beside it" if plots[1:] else ""
        terminal.print_line(f"plot: {plot}{more}")


def _lines(run: Run, table: Table) -> list[list[str]]:
    """Return a header and a line for each row and column with a value; nothing without values."""
    columns = list(dict.fromkeys(column for column, _ in table.columns))
    metrics = list(dict.fromkeys(metric for _, metric in table.columns))
    heads = [run.label(name) for name in table.row_fields]
    found = []
    for row in table.row_keys:
        for column in columns:
            entries = [table.entries.get((row, column, metric)) for metric in metrics]
            if any(entry and entry.summary.value is not None for entry in entries):
                named = [table.column_text(column)] if table.column_fields else []
                values = [cell_text(entry).value for entry in entries]
                found.append([*row_texts(table, row), *named, *values])
    across = ["solver" if table.column_fields == ("solver",) else "column"]
    header = [*heads, *(across if table.column_fields else []), *map(run.label, metrics)]
    return [header, *found] if found else []


def _fitted(lines: list[list[str]]) -> list[list[str]]:
    """Leave out columns from the right until the lines fit."""
    shown = lines[: OVERVIEW_ROWS + 1]
    widths = [
        max(map(len, column)) + terminal.COLUMN_GAP_CHARACTERS
        for column in zip(*shown, strict=True)
    ]
    while len(widths) > 1 and sum(widths) - terminal.COLUMN_GAP_CHARACTERS > OVERVIEW_CHARACTERS:
        widths.pop()
    return [line[: len(widths)] for line in lines]


def _best(run: Run, table: Table) -> list[str]:
    """Return a sentence for each metric that names the solvers with the best values."""
    found: dict[str, list[list[str]]] = {}
    for contest in contests(run, table):
        found.setdefault(contest.metric, []).append(contest.first())
    sentences = []
    for metric, firsts in found.items():
        counts = Counter(name for names in firsts for name in names)
        most = max(counts.values())
        names = " and ".join(name for name, count in counts.items() if count == most)
        where = f" in {most} of {len(firsts)} comparisons" if len(firsts) > 1 else ""
        sentences.append(f"best {run.label(metric)}: {names}{where}")
    return sentences
