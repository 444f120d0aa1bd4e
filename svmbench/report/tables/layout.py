"""Arrange tables as in the papers: rows, columns, and a summary in every entry."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from svmbench.base import escape
from svmbench.base.errors import DamagedResultsError
from svmbench.base.validation_messages import sentence, shown
from svmbench.report.numbers.summary import (
    PaperComparison,
    Summary,
    by_environment_group,
    compare_with_paper,
    group,
    is_cut,
    summarise_folds,
)
from svmbench.report.reading import wording
from svmbench.report.reading.records import VERSUS, CellResult, Run, split_races
from svmbench.report.reading.units import SECONDS, Unit
from svmbench.report.reading.wording import (
    CONTENDED_MARK,
    DISTURBED_MARK,
    FALSE_CONVERGENCE_MARK,
    PARTIAL_MARK,
    UNRESOLVED_MARK,
)
from svmbench.schema.record import IDENTITY
from svmbench.schema.specs import Spec, TableSpec


@dataclass(frozen=True)
class TableEntry:
    """One entry of a table, a mean over folds.

    `cell` is the plan's cell of the first fold, for its names; `summary` has the values.
    """

    cell: CellResult
    summary: Summary
    comparison: PaperComparison


@dataclass(frozen=True)
class Table:
    """An arranged table.

    Attributes
    ----------
    spec : TableSpec
        Specification of the table.
    cells : list of CellResult
        Cells of the block, with races split.
    row_fields, column_fields : tuple of str
        Identifying fields of the rows and of the columns. The last field of the rows is
        ``environment_group`` if folds of one measurement come from different environments, which
        are not averaged.
    row_keys : list of tuple
        Values of the row fields, in the order of the plan.
    columns : list of (tuple, str)
        Values of the column fields and the metric.
    entries : dict
        Entries by (row key, column key, metric), for planned combinations.
    constants : dict of str to object
        Identifying fields with the same value in the whole block that the layout doesn't show.
    kernels : dict of tuple to str
        The kernels of each column, if solvers with different kernels share the rows.
    """

    spec: TableSpec
    cells: list[CellResult]
    row_fields: tuple[str, ...]
    column_fields: tuple[str, ...]
    row_keys: list[tuple[Any, ...]]
    columns: list[tuple[tuple[Any, ...], str]]
    entries: Mapping[tuple[tuple[Any, ...], tuple[Any, ...], str], TableEntry]
    constants: Mapping[str, Any]
    kernels: Mapping[tuple[Any, ...], str] = field(default_factory=dict)

    def column_words(self, column: tuple[Any, ...]) -> list[str]:
        """Return the values of a column without its metric, with the kernels at the end."""
        return [*filter(None, map(_as_text, column)), *filter(None, [self.kernels.get(column)])]

    def column_text(self, column: tuple[Any, ...]) -> str:
        """Return the head of a column without its metric; kernels stand in parentheses."""
        text = " ".join(filter(None, map(_as_text, column)))
        return f"{text} ({self.kernels[column]})" if self.kernels.get(column) else text


def read_spec(raw: Mapping[str, Any], where: str) -> TableSpec:
    """Read the entry of a table in the plan.

    Raises
    ------
    ResultsError
        If a field is missing, or names a field that cells don't have.
    """
    return read_checked(TableSpec, raw, f"{where}: table")


SpecType = TypeVar("SpecType", bound=Spec)


def read_checked(model: type[SpecType], raw: Mapping[str, Any], where: str) -> SpecType:
    """Read a specification in the plan.

    Raises
    ------
    ResultsError
        If it is invalid; the message names the first error.
    """
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors()[0]
        key = next((part for part in first["loc"] if isinstance(part, str)), "")
        name = shown(raw.get("name"))
        problem = f"{escape.line(key, 60)}: {sentence(first)}"
        raise DamagedResultsError(f"{where} {name}: {problem}") from error


def lay_out(run: Run, spec: TableSpec, *, allow_contended: bool = False) -> Table:
    """Arrange the summaries of a block in rows and columns."""
    cells = split_races(run.block_cells(spec.block))
    varying = varying_fields(cells)
    across = spec.column_fields
    fixed = (*spec.row_fields, *across)
    shares_rows = "solver" in across and "kernel" not in fixed and mixes_kernels(cells)
    if shares_rows:
        varying.remove("kernel")
    row_fields = (*spec.row_fields, *(name for name in varying if name not in fixed))
    # Each measurement: its folds by environment group.
    measurements = [by_environment_group(members) for members in group(cells).values()]
    groups = _groups_of_rows(measurements, row_fields)
    has_groups = any(len(folds_by_group) > 1 for folds_by_group in measurements)
    entries: dict[tuple[tuple[Any, ...], tuple[Any, ...], str], TableEntry] = {}
    kernels_of: dict[tuple[Any, ...], dict[str, None]] = {}  # of each column
    for folds_by_group in measurements:
        for group_id, members in folds_by_group.items():
            cell = members[0]
            row, column = _values(cell, row_fields), _values(cell, across)
            if has_groups:
                # Cells without a measurement belong to the first row of their group.
                row = (*row, group_id or next(iter(groups[row]), ""))
            kernels_of.setdefault(column, {})[cell.kernel or ""] = None
            cut = bool(spec.published) and is_cut(run, members)
            for metric in spec.metrics:
                summary = summarise_folds(members, metric)
                comparison = compare_with_paper(
                    summary, cell, spec.published, is_cut=cut, allow_contended=allow_contended
                )
                entries[row, column, metric] = TableEntry(cell, summary, comparison)
    columns = [(column, metric) for column in kernels_of for metric in spec.metrics]
    if any(cell.is_race for cell in cells):
        columns = _filled_columns(columns, entries)
    return Table(
        spec=spec,
        cells=cells,
        row_fields=(*row_fields, "environment_group") if has_groups else row_fields,
        column_fields=across,
        row_keys=_row_keys(groups, has_groups=has_groups),
        columns=columns,
        entries=entries,
        constants=_constants(cells, {*row_fields, *across, *(["kernel"] if shares_rows else [])}),
        kernels={
            column: "/".join(filter(None, kernels))
            for column, kernels in kernels_of.items()
            if shares_rows
        },
    )


def _groups_of_rows(
    measurements: Sequence[Mapping[str, Sequence[CellResult]]], row_fields: Sequence[str]
) -> dict[tuple[Any, ...], dict[str, None]]:
    """Return the environment groups that measured each row, in the order of the plan."""
    groups: dict[tuple[Any, ...], dict[str, None]] = {}
    for folds_by_group in measurements:
        row = _values(next(iter(folds_by_group.values()))[0], row_fields)
        groups.setdefault(row, {}).update(dict.fromkeys(filter(None, folds_by_group)))
    return groups


def _row_keys(
    groups: Mapping[tuple[Any, ...], Iterable[str]], *, has_groups: bool
) -> list[tuple[Any, ...]]:
    """Return the keys of the rows: with `has_groups`, a row for each environment group."""
    if not has_groups:
        return list(groups)
    return [(*row, group_id) for row, names in groups.items() for group_id in names or [""]]


def _filled_columns(
    columns: Sequence[tuple[tuple[Any, ...], str]],
    entries: Mapping[tuple[tuple[Any, ...], tuple[Any, ...], str], TableEntry],
) -> list[tuple[tuple[Any, ...], str]]:
    """Drop the empty columns of a race: ratios belong to pairs, and times to single solvers.

    A race without any value keeps the ratios of its pairs.
    """
    filled = {(c, m) for (_, c, m), entry in entries.items() if entry.summary.value is not None}
    return [
        (column, metric)
        for column, metric in columns
        if (column, metric) in filled
        or (not filled and metric == "ratio" and VERSUS in str(column))
    ]


def _constants(cells: Sequence[CellResult], shown: Container[str]) -> dict[str, Any]:
    """Return the fields with one value in all cells, without those that the layout shows."""
    if not cells:
        return {}
    values = {name: cells[0].value(name) for name in fields_of(cells) if name not in shown}
    return {name: value for name, value in values.items() if value}


def mixes_kernels(cells: Sequence[CellResult]) -> bool:
    """Return True if solvers with different kernels share a data set, each with one kernel there.

    Then the kernel is a property of the solver, and doesn't separate rows of a table or panels of a
    plot.
    """
    conditions: dict[tuple[Any, ...], dict[str | None, set[str | None]]] = {}
    for cell in cells:
        condition = (cell.dataset, *sorted(cell.dimensions.items()))
        conditions.setdefault(condition, {}).setdefault(cell.solver, set()).add(cell.kernel)
    if any(len(kernels) > 1 for solvers in conditions.values() for kernels in solvers.values()):
        return False
    return any(len(set().union(*solvers.values())) > 1 for solvers in conditions.values())


def varying_fields(cells: Sequence[CellResult]) -> list[str]:
    """Return the identifying fields that vary among the cells."""
    return [name for name in fields_of(cells) if len({cell.value(name) for cell in cells}) > 1]


def fields_of(cells: Sequence[CellResult]) -> list[str]:
    """Return the fields of cells, with swept dimensions before the solver."""
    *first, last = IDENTITY
    return [*first, *dict.fromkeys(name for cell in cells for name in cell.dimensions), last]


def wide_csv(run: Run, table: Table) -> str:
    """Return a table as CSV, with separate columns for numbers and statuses.

    Each column is named ``<column>.<metric>``, with ``.sd`` (or ``.low``/``.high``), ``.folds``,
    ``.published``, ``.difference`` and ``.status`` after it. With one fold, ``.sd`` is the spread
    that its record has: half the interquartile range of the repeats.
    """
    suffixes = ["", ".sd", ".folds"]
    shown = [table.entries.get((r, c, m)) for r in table.row_keys for c, m in table.columns]
    if any(entry and entry.summary.low is not None for entry in shown):
        suffixes += [".low", ".high"]
    if table.spec.published:
        suffixes += [".published", ".difference"]
    suffixes.append(".status")
    header = list(table.row_fields)
    for column, metric in table.columns:
        stem = ".".join([*table.column_words(column), metric])
        header += [stem + suffix for suffix in suffixes]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(escape.csv_field, [*header, "scaling", "profile", "environment"]))
    for row in table.row_keys:
        line = [_as_text(value) for value in row]
        environments: dict[str, None] = {}
        for column, metric in table.columns:
            fields = _csv_fields(table.entries.get((row, column, metric)))
            line += [fields[suffix] for suffix in suffixes]
            entry = table.entries.get((row, column, metric))
            environments.update(dict.fromkeys(entry.summary.environments if entry else ()))
        line += [run.block_scaling(table.spec.block), run.profile, ";".join(environments)]
        writer.writerow(map(escape.csv_field, line))
    return out.getvalue()


def _csv_fields(entry: TableEntry | None) -> dict[str, str]:
    if entry is None:
        return dict.fromkeys(
            ("", ".sd", ".folds", ".low", ".high", ".published", ".difference", ".status"), ""
        )
    summary, comparison = entry.summary, entry.comparison
    state = wording.status_word(summary.status)
    if summary.partial:
        state = f"{state}, {summary.folds} of {summary.planned} folds"
    if summary.contended:
        state = f"{state}, contended"
    if summary.disturbed:
        state = f"{state}, outside load"
    if summary.false_convergence:
        state = f"{state}, false claim"
    return {
        "": wording.csv_number(summary.value),
        ".sd": wording.csv_number(summary.spread),
        ".folds": str(summary.folds),
        ".low": wording.csv_number(summary.low),
        ".high": wording.csv_number(summary.high),
        ".published": wording.csv_number(comparison.published),
        ".difference": wording.csv_number(comparison.difference),
        ".status": state,
    }


@dataclass(frozen=True)
class EntryText:
    """The text of an entry of a table in parts, which may be empty.

    Attributes
    ----------
    value, spread : str
        The number or the word for its status; the spread.
    marks, folds : str
        All marks but that of missing folds; with missing folds, their mark and the numbers of folds
        with a value and in the plan.
    printed : str
        The paper's number, and the difference from it.
    """

    value: str
    spread: str = ""
    marks: str = ""
    folds: str = ""
    printed: str = ""

    def __str__(self) -> str:
        text = " ".join(filter(None, (self.value, self.spread))) + self.marks
        return " ".join(filter(None, (text, self.folds, self.printed)))


def entry_text(
    entry: TableEntry | None, *, allow_contended: bool = False, unit: Unit | None = None
) -> EntryText:
    """Return the text of an entry: value, spread, marks, and the paper's number.

    Parameters
    ----------
    entry : TableEntry or None
        None for an unplanned combination, whose text is empty.
    allow_contended : bool, default False
        True to leave out the marks * and ‡ of times that other work disturbed.
    unit : Unit, optional
        Unit of a time instead of seconds; the paper's number then shows its own unit.
    """
    if entry is None:
        return EntryText("")
    summary, comparison = entry.summary, entry.comparison
    value, spread = _value_text(summary, unit or SECONDS)
    marks = folds = printed = ""
    if not allow_contended:
        marks += CONTENDED_MARK if summary.contended else ""
        marks += DISTURBED_MARK if summary.disturbed else ""
    marks += UNRESOLVED_MARK if summary.unresolved else ""
    marks += FALSE_CONVERGENCE_MARK if summary.false_convergence else ""
    if summary.partial:
        folds = f"{PARTIAL_MARK}{summary.folds}/{summary.planned}"
    if comparison.published is not None:
        printed = wording.printed_bracket(
            summary.metric,
            summary.value,
            comparison.published,
            comparison.difference,
            unit="s" if unit not in {None, SECONDS} else "",
        )
    return EntryText(value, spread, marks, folds, printed)


def _value_text(summary: Summary, unit: Unit) -> tuple[str, str]:
    """Return the value and the spread of a summary as texts."""
    metric, value = summary.metric, summary.value
    if value is None:
        if summary.undefined:
            return "undefined", ""
        return "–" if summary.status == "ok" else wording.status_word(summary.status), ""
    if metric.endswith("_s"):
        value *= unit.per_second
        low, high, spread = map(unit.of, (summary.low, summary.high, summary.spread))
    else:
        low, high, spread = summary.low, summary.high, summary.spread
    text = wording.number(metric, value)
    if low is not None and high is not None:
        return text, f"({wording.number(metric, low)}–{wording.number(metric, high)})"
    return text, wording.spread_text(metric, value, spread)


def row_texts(table: Table, row: tuple[Any, ...]) -> list[str]:
    """Return the texts of the heads of a row."""
    return [
        _as_text(value) or ("–" if name == "kernel" else "all")
        for name, value in zip(table.row_fields, row, strict=True)
    ]


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)


def _values(cell: CellResult, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(cell.value(name) for name in names)
