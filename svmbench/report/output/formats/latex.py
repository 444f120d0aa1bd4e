r"""Write tables and plots for papers: LaTeX (booktabs) and PDF, with footers as captions.

A table has one unit for each metric and the best values in bold. A wide table stands sideways, and
its columns in as many parts as keep the text readable; each part is a table with the names of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from svmbench.base import escape
from svmbench.report.output.formats import Format
from svmbench.report.plots.drawing import footer
from svmbench.report.plots.plot_data import PlotData
from svmbench.report.reading.records import Run
from svmbench.report.tables.grids import GridEntry, Head, TableGrid
from svmbench.report.tables.media import LATEX, Sentence

#: Largest number of characters of a table's line, upright and sideways. On a page for text of 10
#: points, such a line is scaled to about 8 points.
UPRIGHT_LINE, SIDEWAYS_LINE = 75, 130
#: The packages that a document needs.
PREAMBLE = r"% \usepackage{booktabs,graphicx,rotating,textcomp}"


def latex_figure(run: Run, plot: PlotData, path: str, hollow: bool) -> str:
    """Return a figure that includes a plot, with the plot's footer as caption.

    Parameters
    ----------
    run : Run
    plot : PlotData
    path : str
        The file of the plot without its ending, as a document names it.
    hollow : bool
        True if disturbed times are marked.
    """
    footnote = escape.latex(footer(run, plot, hollow=hollow))
    lines = [
        PREAMBLE,
        r"\begin{figure}",
        r"\centering",
        rf"\includegraphics[width=\linewidth]{{{path}}}",
        rf"\caption{{{escape.latex(plot.spec.heading)}. {footnote}.}}",
        rf"\label{{fig:{_label(f'{run.name}-{plot.spec.name}')}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines) + "\n"


def latex_table(grid: TableGrid, label: str) -> str:
    r"""Return a table as LaTeX.

    Parameters
    ----------
    grid : TableGrid
    label : str
        The label for ``\ref``, without ``tab:``.
    """
    parts, is_wide = _parts(grid)
    float_ = "sidewaystable" if is_wide else "table"
    lines = [PREAMBLE]
    for i, part in enumerate(parts):
        sentences = [(f"{grid.title}.",), *grid.caption, *grid.notes]
        lines += [
            rf"\begin{{{float_}}}",
            r"\centering",
            rf"\caption{{{_sentences([(f'{grid.title}, continued.',)] if i else sentences)}}}",
            rf"\label{{tab:{_label(label)}{f'-{i + 1}' * (i > 0)}}}",
        ]
        if grid.rows:
            rows = [
                (map(escape.latex, names), map(_entry, entries)) for names, entries in part.rows
            ]
            lines += [
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{'l' * len(grid.fields)}{'r' * len(part.heads)}}}",
                r"\toprule",
                *_heads(part),
                r"\midrule",
                *(_row([*names, *entries]) for names, entries in rows),
                r"\bottomrule",
                r"\end{tabular}}",
            ]
        lines.append(rf"\end{{{float_}}}")
    return "\n".join(lines) + "\n"


def _parts(grid: TableGrid) -> tuple[list[TableGrid], bool]:
    """Return tables with some of the columns each, and whether they are to stand sideways.

    The columns of a group stay together.
    """
    names_width = max((sum(map(len, names)) for names, _ in grid.rows), default=0)
    columns = [
        max(len(head.text), *(len(str(entries[j].text)) for _, entries in grid.rows), 0)
        for j, head in enumerate(grid.heads)
    ]
    if names_width + sum(columns) <= UPRIGHT_LINE:
        return [grid], False
    groups = grid.groups or [Head("") for _ in grid.heads]
    starts = [*accumulate((group.span for group in groups), initial=0)]
    parts: list[tuple[int, int]] = []  # the first group of a part, and the one after its last
    for i in range(len(groups)):
        first = parts[-1][0] if parts else 0
        if parts and names_width + sum(columns[starts[first] : starts[i + 1]]) <= SIDEWAYS_LINE:
            parts[-1] = first, i + 1
        else:
            parts.append((i, i + 1))
    return [
        replace(
            grid,
            groups=grid.groups[first:end],
            heads=grid.heads[starts[first] : starts[end]],
            rows=[(names, entries[starts[first] : starts[end]]) for names, entries in grid.rows],
        )
        for first, end in parts
    ], True


def _heads(grid: TableGrid) -> list[str]:
    n_fields = len(grid.fields)
    last = _row(
        [*map(escape.latex, grid.fields), *(escape.latex(head.text) for head in grid.heads)]
    )
    if not grid.groups:
        return [last]
    groups, rules, column = [], [], n_fields + 1
    for head in grid.groups:
        groups.append(rf"\multicolumn{{{head.span}}}{{c}}{{{escape.latex(head.text)}}}")
        rules.append(rf"\cmidrule(lr){{{column}-{column + head.span - 1}}}")
        column += head.span
    return [_row([""] * n_fields + groups), " ".join(rules), last]


def _entry(entry: GridEntry) -> str:
    text = entry.text
    value = LATEX.strong(text.value) if entry.best else escape.latex(text.value)
    value_text = " ".join(filter(None, (value, escape.latex(text.spread)))) + escape.latex(
        text.marks
    )
    return " ".join(
        filter(None, (value_text, escape.latex(text.folds), escape.latex(text.printed)))
    )


def _row(texts: Sequence[str]) -> str:
    line = " & ".join(texts) + r" \\"
    # LaTeX would read a bracket after the end of a row as an amount of space.
    return "{}" + line if line.startswith("[") else line


def _sentences(sentences: Sequence[Sentence]) -> str:
    return " ".join(map(LATEX.spell, sentences))


def _label(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in name)


FORMAT = Format(
    what="LaTeX tables (booktabs); plots as PDF, each with a figure that includes it",
    ending="tex",
    table=latex_table,
    plots=("pdf",),
    figure=latex_figure,
)
