r"""Write tables and plots for papers: LaTeX (booktabs) and PDF, with footers as captions.

A table has one unit for each metric and the best values in bold. A wide table is scaled down.
"""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.base import escape
from svmbench.report.builder import Content
from svmbench.report.grids import PageTable, TableCell, grid_of
from svmbench.report.media import LATEX, Sentence
from svmbench.report.plots import draw_plot, footer

#: The packages that a document needs.
PREAMBLE = r"% \usepackage{booktabs,graphicx,textcomp}"


def paper_files(content: Content, *, allow_contended: bool = False) -> dict[str, bytes]:
    """Return the tables of a run as LaTeX and its plots as PDF, by file name.

    For each PDF there is a ``.tex`` file that includes it, with the footer of the plot as caption.

    Parameters
    ----------
    content : Content
    allow_contended : bool, default False
        True to use times measured beside other workers like all other times.
    """
    run = content.run
    files = {}
    for table in content.tables:
        grid = grid_of(run, table, allow_contended=allow_contended)
        name = table.spec.name
        files[f"{name}.tex"] = latex_table(grid, f"{run.name}-{name}").encode()
    for one in content.curves:
        drawn = draw_plot(run, one, allow_contended=allow_contended, endings=("pdf",), bare=True)
        if not drawn:
            continue
        name = one.spec.name
        files[f"{name}.pdf"] = drawn["pdf"]
        said = footer(run, one, hollow=not allow_contended)
        lines = [
            PREAMBLE,
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{name}}}",
            rf"\caption{{{escape.latex(one.spec.heading)}. {escape.latex(said)}.}}",
            rf"\label{{fig:{_label(f'{run.name}-{name}')}}}",
            r"\end{figure}",
        ]
        files[f"{name}.tex"] = ("\n".join(lines) + "\n").encode()
    return files


def latex_table(grid: PageTable, label: str) -> str:
    r"""Return a table as LaTeX.

    Parameters
    ----------
    grid : Grid
    label : str
        The label for ``\ref``, without ``tab:``.
    """
    n_fields, n_columns = len(grid.fields), len(grid.heads)
    lines = [
        PREAMBLE,
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_sentences([(f'{grid.title}.',), *grid.caption, *grid.notes])}}}",
        rf"\label{{tab:{_label(label)}}}",
    ]
    if grid.rows:
        lines += [
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * n_fields}{'r' * n_columns}}}",
            r"\toprule",
            *_heads(grid),
            r"\midrule",
            *(_row([*map(escape.latex, names), *map(_cell, boxes)]) for names, boxes in grid.rows),
            r"\bottomrule",
            r"\end{tabular}}",
        ]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _heads(grid: PageTable) -> list[str]:
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


def _cell(box: TableCell) -> str:
    text = box.text
    value = LATEX.strong(text.value) if box.best else escape.latex(text.value)
    said = " ".join(filter(None, (value, escape.latex(text.spread)))) + escape.latex(text.marks)
    return " ".join(filter(None, (said, escape.latex(text.folds), escape.latex(text.printed))))


def _row(texts: Sequence[str]) -> str:
    line = " & ".join(texts) + r" \\"
    # LaTeX would read a bracket after the end of a row as an amount of space.
    return "{}" + line if line.startswith("[") else line


def _sentences(sentences: Sequence[Sentence]) -> str:
    return " ".join(map(LATEX.spell, sentences))


def _label(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in name)
