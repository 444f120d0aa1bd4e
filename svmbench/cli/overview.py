"""The overview at the end of a run: a table, the best solvers, what to read next."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from svmbench.cli import terminal
from svmbench.report.output.builder import BuiltReport
from svmbench.report.reading.records import Run
from svmbench.report.tables.best import contests, left_out
from svmbench.report.tables.layout import Table, cell_text, row_texts

#: Largest number of characters of a line, and of rows, of the overview.
OVERVIEW_CHARACTERS = 80
OVERVIEW_ROWS = 60


def print_overview(built: BuiltReport) -> None:
    """Print a table as aligned lines, its best solvers, and what to read next.

    It is the first table that has the paper's numbers beside its own, else the first with values.
    Each line has one row and one column of the table, with their metrics beside each other; marks
    are those of the tables.
    """
    run = built.content.run
    filled = [(table, found) for table in built.content.tables if (found := _lines(run, table))]
    beside = [(table, found) for table, found in filled if _has_printed(table)]
    for table, found in (beside or filled)[:1]:
        header, *rows = _fitted(found)
        terminal.print_line(table.spec.heading)
        terminal.print_columns(rows[:OVERVIEW_ROWS], header=header)
        if len(rows) > OVERVIEW_ROWS:
            terminal.print_line(f"{len(rows) - OVERVIEW_ROWS} more rows: {built.joined}")
        if beside:
            terminal.print_line(
                "in brackets: what the paper prints; times: measured / printed; others: measured -"
                " printed"
            )
        for sentence in _best(run, table):
            terminal.print_line(sentence)
    plots = [paths[-1] for paths in built.plots.values()]
    terminal.print_line(f"tables: {built.joined}")
    for plot in plots[:1]:
        more = f" and {len(plots) - 1} more beside it" if plots[1:] else ""
        terminal.print_line(f"plot: {plot}{more}")


def _has_printed(table: Table) -> bool:
    return any(
        entry.comparison.published is not None and entry.summary.value is not None
        for entry in table.entries.values()
    )


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
                values = [str(replace(cell_text(entry), spread="")) for entry in entries]
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
    """Return a sentence for each metric on the solvers with the best values, and on what it omits.

    Example: "best accuracy (%): csvc in 3 of 4 comparisons, smo in 2".
    """
    found: dict[str, list[list[str]]] = {}
    for contest in contests(run, table):
        found.setdefault(contest.metric, []).append(contest.first())
    sentences = []
    for metric, firsts in found.items():
        counts = Counter(name for names in firsts for name in names).most_common()
        told = [f"{name} in {count}" for name, count in counts]
        if len(firsts) == 1:
            told = [" and ".join(name for name, _ in counts)]
        else:
            told[0] += f" of {len(firsts)} comparisons"
        sentences.append(f"best {run.label(metric)}: {', '.join(told)}")
        for reason, solvers in left_out(run, table, metric).items():
            told = [f"{name} on {', '.join(rows)}" for name, rows in solvers.items()]
            sentences.append(f"  not compared, because {reason}: {'; '.join(told)}")
    return sentences
