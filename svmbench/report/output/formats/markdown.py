"""Markdown: a section with caption, table, notes and missing cells; plots as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterable

from svmbench.base import escape
from svmbench.report.output.formats import Format
from svmbench.report.plots.drawing import PLOT_ENDINGS
from svmbench.report.tables.grids import TableGrid
from svmbench.report.tables.media import MARKDOWN


def markdown_table(grid: TableGrid, _label: str = "") -> str:
    """Return a table as a section of Markdown, with caption, footnotes and missing cells."""
    caption = " ".join(map(MARKDOWN.spell, grid.caption))
    lines = [f"## {escape.markdown(grid.title)}", "", caption, ""]
    if not (grid.rows or grid.gaps):
        lines += ["No cells: this profile's plan has none for this table.", ""]
        return "\n".join(lines)
    if grid.rows:
        lines.append(_row([*grid.fields, *grid.column_texts]))
        lines.append("|" + " --- |" * len(grid.fields) + " ---: |" * len(grid.heads))
    else:
        lines.append("No cell of this table has a result.")
    for names, entries in grid.rows:
        lines.append(_row([*names, *(str(entry.text) for entry in entries)]))
    lines.append("")
    for note in grid.notes:
        lines += [MARKDOWN.spell(note), ""]
    if grid.gaps:
        lines += ["Missing cells:", "", *(f"- {escape.markdown(gap)}" for gap in grid.gaps), ""]
    else:
        lines += ["Missing cells: none.", ""]
    if grid.undefined:
        undefined = (f"- {escape.markdown(line)}" for line in grid.undefined)
        lines += ["Undefined values:", "", *undefined, ""]
    return "\n".join(lines)


def _row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(escape.markdown(text) for text in texts) + " |"


FORMAT = Format(
    what="Markdown tables; plots as SVG and PNG",
    ending="md",
    table=markdown_table,
    plots=PLOT_ENDINGS,
    in_seconds=True,
)
