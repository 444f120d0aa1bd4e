"""The overview at the end of a run: a table, the best solvers, and the names of further files."""

from __future__ import annotations

from svmbench.cli import terminal
from svmbench.report.output.builder import BuiltReport
from svmbench.report.tables.overview import (
    MAX_OVERVIEW_ROWS,
    best_sentences,
    has_printed,
    legend,
    lines_that_fit,
    overview_lines,
)


def print_overview(built: BuiltReport) -> None:
    """Print a table as aligned lines, its best solvers, and the names of further files.

    The table is the first one with numbers of the paper, else the first one with values. Each line
    has the metrics of one row and one column of the table. The marks are those of the tables.
    """
    run = built.content.run
    filled = [
        (table, lines) for table in built.content.tables if (lines := overview_lines(run, table))
    ]
    beside = [(table, lines) for table, lines in filled if has_printed(table)]
    for table, lines in (beside or filled)[:1]:
        header, *rows = lines_that_fit(table, lines, terminal.COLUMN_GAP_CHARACTERS)
        terminal.print_line(table.spec.heading)
        terminal.print_columns(rows[:MAX_OVERVIEW_ROWS], header=header)
        if len(rows) > MAX_OVERVIEW_ROWS:
            terminal.print_line(f"{len(rows) - MAX_OVERVIEW_ROWS} more rows: {built.all_tables}")
        if beside:
            terminal.print_line(
                "in brackets: what the paper prints; times: measured / printed; others: measured -"
                " printed"
            )
        for sentence in (*legend(run, table, [header, *rows]), *best_sentences(run, table)):
            terminal.print_line(sentence)
    plots = [paths[-1] for paths in built.plots.values()]
    terminal.print_line(f"tables: {built.all_tables}")
    for plot in plots[:1]:
        more = f" and {len(plots) - 1} more beside it" if plots[1:] else ""
        terminal.print_line(f"plot: {plot}{more}")
