"""Lay out the numbers that a paper prints, a table as the paper has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from svmbench.report.reading.published import PrintedNumber, numbers
from svmbench.report.reading.wording import label_of

#: The names of the fields that tell the rows of a table apart, in the order of its columns.
_FIELDS = ("dataset", "kernel", "size")


@dataclass(frozen=True)
class PrintedTable:
    """A table of printed numbers.

    Attributes
    ----------
    name : str
        Its name in the paper's file: ``table4``.
    title : str
        The same for a heading: ``Table 4``.
    fields, heads : list of str
        The heads of the columns that name a row, and of those with numbers.
    rows : list of (tuple of str, list of str)
        Names and numbers of each row; an empty text where nothing is printed.
    count : int
        How many numbers it has.
    made_in : list of (str, str)
        Title and anchor of the tables that show the numbers beside measured ones.
    """

    name: str
    title: str
    fields: list[str]
    heads: list[str]
    rows: list[tuple[tuple[str, ...], list[str]]]
    count: int
    made_in: list[tuple[str, str]]


def printed_tables(paper: str, made: Collection[tuple[str, str, str]] = ()) -> list[PrintedTable]:
    """Return the printed tables of a paper in the order of its file.

    Parameters
    ----------
    paper : str
        The key of the paper.
    made : collection of (str, str, str)
        Printed table, title and anchor of each table that has its numbers beside measured ones.
    """
    by_table: dict[str, list[PrintedNumber]] = {}
    for row in numbers(paper):
        by_table.setdefault(row.table, []).append(row)
    return [
        _laid_out(
            name, several, [(title, anchor) for table, title, anchor in made if table == name]
        )
        for name, several in by_table.items()
    ]


def _laid_out(
    name: str, several: Sequence[PrintedNumber], made_in: list[tuple[str, str]]
) -> PrintedTable:
    fields = [
        field for field in _FIELDS if field == "dataset" or any(getattr(n, field) for n in several)
    ]
    columns = dict.fromkeys((number.solver, number.metric) for number in several)
    rows: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for number in several:
        names = tuple(getattr(number, field) for field in fields)
        rows.setdefault(names, {})[number.solver, number.metric] = f"{number.value:,.10g}"
    return PrintedTable(
        name=name,
        title=_title(name),
        fields=[field.replace("dataset", "data set") for field in fields],
        heads=[f"{solver}: {label_of(metric)}" if solver else label_of(metric)
               for solver, metric in columns],
        rows=[(names, [cells.get(column, "") for column in columns])
              for names, cells in rows.items()],
        count=len(several),
        made_in=made_in,
    )  # fmt: skip


def _title(name: str) -> str:
    """Return ``Table 4`` for ``table4``, and other names with spaces."""
    for word, shown in (("table", "Table"), ("fig", "Figure")):
        if name.startswith(word) and name != word:
            return f"{shown} {name.removeprefix(word)}"
    return name.replace("_", " ").capitalize()
