"""Find the best solver for each metric among the comparable values of a table.

Values are comparable if they have the same metric and differ in the solver only. The values that
`Summary.why_not_compared` names and the pairs of a race are never compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svmbench.report.reading import wording
from svmbench.report.reading.records import MEMORY, TRAIN_PREFIX, VERSUS, Run
from svmbench.report.tables.layout import Table, TableEntry, row_texts

#: The key of an entry: its row, its column and its metric.
EntryKey = tuple[tuple[Any, ...], tuple[Any, ...], str]


@dataclass(frozen=True)
class Contest:
    """Values of one metric that differ in the solver only.

    Attributes
    ----------
    metric : str
    values : dict of str to (EntryKey, float)
        Key and value of each solver; at least two.
    higher : bool
        True if higher values are better.
    """

    metric: str
    values: Mapping[str, tuple[EntryKey, float]]
    higher: bool

    def best(self) -> list[str]:
        """Return the solvers with the best printed value."""
        best_value = (max if self.higher else min)(value for _, value in self.values.values())
        shown = wording.number(self.metric, best_value)
        return [
            solver
            for solver, (_, value) in self.values.items()
            if wording.number(self.metric, value) == shown
        ]

    def ranks(self) -> dict[str, float]:
        """Return the rank of each solver, 1 for the best; ties share the mean rank."""
        sign = -1.0 if self.higher else 1.0
        costs = {solver: sign * value for solver, (_, value) in self.values.items()}
        return {
            solver: 1
            + sum(other < cost for other in costs.values())
            + 0.5 * (sum(other == cost for other in costs.values()) - 1)
            for solver, cost in costs.items()
        }


def is_higher_better(run: Run, metric: str) -> bool | None:
    """Return True if higher values of a metric are better, False if lower ones are, else None.

    Neither is better of precision or recall alone: a classifier that finds a single sample may have
    a precision of 100 %.
    """
    if metric.removeprefix(TRAIN_PREFIX) in {"precision_pct", "recall_pct"}:
        return None
    if metric.endswith(("_s", "_mb")):
        return False
    declared = run.scores.get(metric.removeprefix(TRAIN_PREFIX), {}).get("better")
    return None if declared not in {"higher", "lower"} else declared == "higher"


def contests(run: Run, table: Table, *, allow_contended: bool = False) -> Iterator[Contest]:
    """Yield every group of comparable values of a table, in the order of the rows."""
    for metric in dict.fromkeys(metric for _, metric in table.columns):
        higher = is_higher_better(run, metric)
        if higher is None:
            continue
        by_condition: dict[tuple[Any, ...], dict[str, tuple[EntryKey, float]]] = {}
        for row in table.row_keys:
            for column, shown in table.columns:
                entry_key = (row, column, metric)
                entry = table.entries.get(entry_key)
                if shown != metric or entry is None or not _competes(entry, allow_contended):
                    continue
                solver = str(entry.cell.solver)
                if metric == MEMORY and solver in run.programs:
                    continue
                condition = (*_others(table.row_fields, row), *_others(table.column_fields, column))
                assert entry.summary.value is not None
                by_condition.setdefault(condition, {})[solver] = (entry_key, entry.summary.value)
        for values in by_condition.values():
            if len(values) > 1:
                yield Contest(metric, values, higher)


def left_out(run: Run, table: Table, metric: str) -> dict[str, dict[str, list[str]]]:
    """Return the values of a metric that no contest compares, though they were measured.

    Parameters
    ----------
    run : Run
    table : Table
    metric : str

    Returns
    -------
    dict of str to dict of str to list of str
        By reason and by solver: the first heads of the rows, each once.
    """
    by_reason: dict[str, dict[str, list[str]]] = {}
    for row in table.row_keys:
        for column, shown in table.columns:
            entry = table.entries.get((row, column, metric))
            is_program = metric == MEMORY and entry and str(entry.cell.solver) in run.programs
            if shown != metric or entry is None:
                continue
            summary, solver = entry.summary, str(entry.cell.solver)
            if summary.value is None or not entry.cell.solver or VERSUS in solver:
                continue
            reason = summary.why_not_compared()
            if is_program:
                reason = "a program's memory is that of a whole process"
            if not reason:
                continue
            rows = by_reason.setdefault(reason, {}).setdefault(solver, [])
            if (head := row_texts(table, row)[0]) not in rows:
                rows.append(head)
    return by_reason


def best_entries(run: Run, table: Table, *, allow_contended: bool = False) -> set[EntryKey]:
    """Return the keys of the best values of a table."""
    return {
        contest.values[solver][0]
        for contest in contests(run, table, allow_contended=allow_contended)
        for solver in contest.best()
    }


def _competes(entry: TableEntry, allow_contended: bool) -> bool:
    is_one_solver = bool(entry.cell.solver) and VERSUS not in str(entry.cell.solver)
    return is_one_solver and not entry.summary.why_not_compared(allow_contended=allow_contended)


def _others(fields: Sequence[str], key: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in zip(fields, key, strict=True) if name != "solver")
