"""The grid of a table, which every format writes: heads, entries in parts, caption and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from svmbench.report.reading.provenance import missing, undefined, was_run
from svmbench.report.reading.records import VERSUS, Run
from svmbench.report.reading.units import Unit, unit_of
from svmbench.report.tables import captions
from svmbench.report.tables.best import best_entries
from svmbench.report.tables.layout import EntryText, Table, TableEntry, entry_text, row_texts
from svmbench.report.tables.media import Sentence

#: The note about bold numbers.
BEST_NOTE: Sentence = (
    "Bold: the best of the compared solvers. Not counted: times that other programs disturbed, and "
    "means with missing folds.",
)


@dataclass(frozen=True)
class Head:
    """The head of one or several columns.

    Attributes
    ----------
    text : str
    span : int
    solvers : tuple of str
        The solvers in the text, which have pages.
    """

    text: str
    span: int = 1
    solvers: tuple[str, ...] = ()


@dataclass(frozen=True)
class GridEntry:
    """An entry of a grid: its text in parts, its number for sorting, and its style.

    Attributes
    ----------
    text : EntryText
    order : str
        The number as text, or empty.
    best : bool
    state : str
        ``ok``, or another status.
    """

    text: EntryText
    order: str
    best: bool
    state: str


@dataclass(frozen=True)
class TableGrid:
    """A table as every format writes it.

    Attributes
    ----------
    name, title : str
    caption, notes : list of Sentence
        Sentences above and below the table.
    fields : list of str
        Heads of the columns that name the rows.
    groups, heads : list of Head
        Heads of the other columns, in two rows; `groups` is empty if one row is enough.
    rows : list of (list of str, list of GridEntry)
        Texts and entries of each row; none if no cell was run and nothing is printed for it.
    gaps, undefined : list of str
        Missing cells and undefined values, one line each.
    """

    name: str
    title: str
    caption: list[Sentence]
    notes: list[Sentence]
    fields: list[str]
    groups: list[Head]
    heads: list[Head]
    rows: list[tuple[list[str], list[GridEntry]]]
    gaps: list[str]
    undefined: list[str]

    @property
    def column_texts(self) -> list[str]:
        """The heads of the columns in one row, each after its group's head."""
        groups = [group.text for group in self.groups for _ in range(group.span)]
        texts = zip(groups or [""] * len(self.heads), self.heads, strict=True)
        return [" ".join(filter(None, (group, head.text))) for group, head in texts]


def grid_of(
    run: Run, table: Table, *, allow_contended: bool = False, in_seconds: bool = False
) -> TableGrid:
    """Arrange a table for a format.

    Parameters
    ----------
    run : Run
    table : Table
    allow_contended : bool, default False
        True to use times measured beside other workers like all other times.
    in_seconds : bool, default False
        True to show all times in seconds and mark no best values. Otherwise the times of a metric
        share a unit that suits them, and the best of the compared values are marked.
    """
    units = {} if in_seconds else units_of(table)
    best = set() if in_seconds else best_entries(run, table, allow_contended=allow_contended)
    rows = [
        (
            row_texts(table, row),
            [
                _grid_entry(
                    table.entries.get((row, c, m)),
                    units.get(m),
                    best=(row, c, m) in best,
                    allow_contended=allow_contended,
                )
                for c, m in table.columns
            ],
        )
        for row in (table.row_keys if _has_numbers(table) else ())
    ]
    groups = [
        Head(table.column_text(column), len(list(members)), _solvers(table, column))
        for column, members in groupby(table.columns, key=lambda pair: pair[0])
    ]
    notes = captions.footnotes(table, allow_contended=allow_contended)
    return TableGrid(
        name=table.spec.name,
        title=table.spec.heading,
        caption=captions.caption(run, table),
        notes=[BEST_NOTE, *notes] if best else notes,
        fields=[run.label(name) for name in table.row_fields],
        groups=groups if any(group.text for group in groups) else [],
        heads=[Head(_metric(run, m, units)) for _, m in table.columns],
        rows=rows,
        gaps=missing(run.block_cells(table.spec.block)),
        undefined=undefined(run, table.cells, table.spec.metrics),
    )


def _has_numbers(table: Table) -> bool:
    """Return True if a cell was run, or the paper prints a number for one."""
    printed = (entry.comparison.published for entry in table.entries.values())
    return any(map(was_run, table.cells)) or any(value is not None for value in printed)


def units_of(table: Table) -> dict[str, Unit]:
    """Return the unit of each time of a table; all its columns share the unit."""
    values_of: dict[str, list[float | None]] = {}
    for (_, _, metric), entry in table.entries.items():
        values_of.setdefault(metric, []).append(entry.summary.value)
    units = {metric: unit_of(metric, values) for metric, values in values_of.items()}
    return {metric: unit for metric, unit in units.items() if unit is not None}


def _metric(run: Run, metric: str, units: Mapping[str, Unit]) -> str:
    label = run.label(metric)
    return units[metric].head(label) if metric in units else label


def _solvers(table: Table, column: Sequence[Any]) -> tuple[str, ...]:
    names = [
        str(value)
        for name, value in zip(table.column_fields, column, strict=True)
        if name == "solver" and value is not None
    ]
    return tuple(part for name in names for part in name.split(VERSUS))


def _grid_entry(
    entry: TableEntry | None, unit: Unit | None, *, best: bool, allow_contended: bool
) -> GridEntry:
    if entry is None:
        return GridEntry(EntryText(""), "", best=False, state="ok")
    summary = entry.summary
    order = "" if summary.value is None else f"{summary.value:.6g}"
    text = entry_text(entry, allow_contended=allow_contended, unit=unit)
    return GridEntry(text, order, best, summary.status)
