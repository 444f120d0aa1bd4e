"""``table.csv``: every summary of a run in tidy long form, one line a number."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from svmbench.base import escape
from svmbench.report import wording
from svmbench.report.cuts import is_cut
from svmbench.report.races import take_apart
from svmbench.report.records import Cell, Run
from svmbench.report.summary import by_machine, compare, group, metric_names, summarise
from svmbench.report.tables import Table
from svmbench.schema.specs import TableSpec

COLUMNS = (
    "paper", "table", "block", "dataset", "kernel", "rows", "features", "dimensions", "solver",
    "metric", "value", "spread", "low", "high", "folds", "folds_planned",
    "published", "difference", "status", "reason", "contended", "outside_load", "undefined",
    "scaling", "profile", "environment",
)  # fmt: skip


class _LastLine:
    """A file for a writer of CSV that holds what was written last."""

    text = ""

    def write(self, text: str) -> None:
        """Take a line."""
        self.text = text


def tidy_csv(run: Run, tables: Sequence[Table], *, allow_contended: bool = False) -> str:
    """Return everything that the run's records hold, as :func:`tidy_lines` yields it."""
    return "".join(tidy_lines(run, tables, allow_contended=allow_contended))


def tidy_lines(
    run: Run, tables: Sequence[Table], *, allow_contended: bool = False
) -> Iterator[str]:
    """Yield everything that the run's records hold, line by line.

    First the tables, each metric with the name of its table; then, block by block, the metrics and
    counters that no table shows, with an empty table name. ``value`` is the mean over ``folds`` of
    ``folds_planned`` folds, ``spread`` their sample standard deviation (with one fold: the spread
    of its repeats), ``status`` that of the first fold that is not ``ok``. Folds of different
    environments are lines of their own.
    """
    out = _LastLine()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    yield out.text
    shown: dict[str, set[str]] = {}
    for table in tables:
        shown.setdefault(table.spec.block, set()).update(table.spec.metrics)
        present = set(table.columns)
        for members in group(table.cells).values():
            column = tuple(members[0].value(name) for name in table.column_fields)
            for metric in table.spec.metrics:
                if (column, metric) in present:
                    for part in by_machine(members).values():
                        row = _row(run, part, metric, table.spec, allow_contended=allow_contended)
                        writer.writerow(_inert(row))
                        yield out.text
    for block in dict.fromkeys(cell.block for cell in run.cells):
        cells = take_apart(run.block_cells(block))
        metrics = [name for name in metric_names(cells) if name not in shown.get(block, ())]
        for members in group(cells).values():
            own = set(metric_names(members))
            rows = [name for name in metrics if name in own]
            if not rows and block not in shown:
                # Cells that no table shows still say what became of them.
                rows = [""]
            for metric in rows:
                for part in by_machine(members).values():
                    writer.writerow(_inert(_row(run, part, metric, None)))
                    yield out.text


def _inert(row: dict[str, object]) -> dict[str, object]:
    return {column: escape.csv_field(value) for column, value in row.items()}


def _row(
    run: Run,
    members: Sequence[Cell],
    metric: str,
    spec: TableSpec | None,
    *,
    allow_contended: bool = False,
) -> dict[str, object]:
    cell = members[0]
    summary = summarise(members, metric)
    comparison = compare(
        summary,
        cell,
        spec.published if spec else None,
        allow_contended=allow_contended,
        is_cut=bool(spec and spec.published) and is_cut(run, members),
    )
    return {
        "paper": cell.paper,
        "table": spec.name if spec else "",
        "block": cell.block,
        "dataset": cell.dataset,
        "kernel": cell.kernel,
        "rows": cell.dimensions.get("rows"),
        "features": cell.dimensions.get("features"),
        "dimensions": "; ".join(
            f"{name}={value}"
            for name, value in cell.dimensions.items()
            if name not in {"rows", "features"}
        ),
        "solver": cell.solver,
        "metric": metric,
        "value": wording.plain(summary.value),
        "spread": wording.plain(summary.spread),
        "low": wording.plain(summary.low),
        "high": wording.plain(summary.high),
        "folds": summary.folds,
        "folds_planned": summary.planned,
        "published": wording.plain(comparison.published),
        "difference": wording.plain(comparison.difference),
        "status": summary.status,
        "reason": summary.reason,
        "contended": "true" if summary.contended else "false",
        "outside_load": "true" if summary.disturbed else "false",
        "undefined": "; ".join(summary.undefined),
        "scaling": run.block_scaling(cell.block),
        "profile": run.profile,
        "environment": ";".join(summary.environments),
    }
