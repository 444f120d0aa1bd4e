r"""Tables and plots for papers: LaTeX (booktabs) and PDF, the footers as captions.

A table has one unit a metric, the best in bold, and is made smaller where it is wider than a line.
"""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.base import escape
from svmbench.report.builder import Content
from svmbench.report.grids import Box, Grid, grid_of
from svmbench.report.media import LATEX, Sentence
from svmbench.report.plots import draw, footer

#: What a document needs for what is made here.
PREAMBLE = r"% \usepackage{booktabs,graphicx,textcomp}"


def paper_files(content: Content, *, allow_contended: bool = False) -> dict[str, bytes]:
    """Return the tables of a run as LaTeX and its plots as PDF, by the names of their files.

    Beside each PDF is a ``.tex`` that includes it, with what the plot's footer says as caption.

    Parameters
    ----------
    content : Content
    allow_contended : bool, default False
        Use times that were measured while other workers ran like any others.
    """
    run = content.run
    files = {}
    for table in content.tables:
        grid = grid_of(run, table, allow_contended=allow_contended)
        name = table.spec.name
        files[f"{name}.tex"] = latex_table(grid, f"{run.name}-{name}").encode()
    for one in content.curves:
        drawn = draw(run, one, allow_contended=allow_contended, endings=("pdf",), bare=True)
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


def latex_table(grid: Grid, label: str) -> str:
    r"""Return a table as LaTeX.

    Parameters
    ----------
    grid : Grid
    label : str
        What ``\ref`` calls it by, after ``tab:``.
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


def _heads(grid: Grid) -> list[str]:
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


def _cell(box: Box) -> str:
    text = box.text
    value = LATEX.strong(text.value) if box.best else escape.latex(text.value)
    said = " ".join(filter(None, (value, escape.latex(text.spread)))) + escape.latex(text.marks)
    return " ".join(filter(None, (said, escape.latex(text.folds), escape.latex(text.printed))))


def _row(texts: Sequence[str]) -> str:
    line = " & ".join(texts) + r" \\"
    # After the end of a row a bracket would say how much space follows.
    return "{}" + line if line.startswith("[") else line


def _sentences(sentences: Sequence[Sentence]) -> str:
    return " ".join(map(LATEX.spell, sentences))


def _label(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in name)
