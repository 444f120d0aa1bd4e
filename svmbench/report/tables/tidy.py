"""Write ``table.csv``: every summary of a run in tidy form, one number per line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from svmbench.base import escape
from svmbench.report.numbers.summary import (
    by_environment_group,
    compare_with_paper,
    group,
    is_cut,
    metric_names,
    summarise_folds,
)
from svmbench.report.reading import wording
from svmbench.report.reading.records import CellResult, Run, split_races
from svmbench.report.tables.layout import Table
from svmbench.schema.specs import TableSpec

TIDY_COLUMNS = (
    "paper", "table", "block", "dataset", "kernel", "rows", "features", "dimensions", "solver",
    "metric", "value", "spread", "low", "high", "folds", "folds_planned",
    "published", "difference", "status", "reason", "contended", "outside_load", "undefined",
    "scaling", "profile", "environment",
)  # fmt: skip


class _LastLine:
    """A file for csv.writer that has the last written line."""

    text = ""

    def write(self, text: str) -> None:
        """Store a line."""
        self.text = text


def tidy_csv(run: Run, tables: Sequence[Table], *, allow_contended: bool = False) -> str:
    """Return all values in the records of a run, as :func:`tidy_lines` yields them."""
    return "".join(tidy_lines(run, tables, allow_contended=allow_contended))


def tidy_lines(
    run: Run, tables: Sequence[Table], *, allow_contended: bool = False
) -> Iterator[str]:
    """Yield all values in the records of a run, line by line.

    First come the metrics of tables, with the name of the table; then, block by block, the metrics
    and counters that no table shows, with an empty name. ``value`` is the mean over ``folds`` of
    ``folds_planned`` folds. ``spread`` is their sample standard deviation; with one fold, the
    spread of its repeats. ``status`` is the status of the first fold that is not ``ok``. Folds of
    different environments have separate lines.
    """
    out = _LastLine()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(TIDY_COLUMNS)
    yield out.text
    shown: dict[str, set[str]] = {}
    for table in tables:
        shown.setdefault(table.spec.block, set()).update(table.spec.metrics)
        present = set(table.columns)
        for members in group(table.cells).values():
            column = tuple(members[0].value(name) for name in table.column_fields)
            for metric in table.spec.metrics:
                if (column, metric) in present:
                    for part in by_environment_group(members).values():
                        row = _row(run, part, metric, table.spec, allow_contended=allow_contended)
                        writer.writerow(_fields(row))
                        yield out.text
    for block in dict.fromkeys(cell.block for cell in run.cells):
        cells = split_races(run.block_cells(block))
        metrics = [name for name in metric_names(cells) if name not in shown.get(block, ())]
        for members in group(cells).values():
            of_members = set(metric_names(members))
            rows = [name for name in metrics if name in of_members]
            if not rows and block not in shown:
                # Show the status of cells that no table shows.
                rows = [""]
            for metric in rows:
                for part in by_environment_group(members).values():
                    writer.writerow(_fields(_row(run, part, metric, None)))
                    yield out.text


def _fields(row: dict[str, object]) -> list[object]:
    return [escape.csv_field(row[column]) for column in TIDY_COLUMNS]


def _row(
    run: Run,
    members: Sequence[CellResult],
    metric: str,
    spec: TableSpec | None,
    *,
    allow_contended: bool = False,
) -> dict[str, object]:
    cell = members[0]
    summary = summarise_folds(members, metric)
    comparison = compare_with_paper(
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
        "value": wording.csv_number(summary.value),
        "spread": wording.csv_number(summary.spread),
        "low": wording.csv_number(summary.low),
        "high": wording.csv_number(summary.high),
        "folds": summary.folds,
        "folds_planned": summary.planned,
        "published": wording.csv_number(comparison.published),
        "difference": wording.csv_number(comparison.difference),
        "status": summary.status,
        "reason": summary.reason,
        "contended": "true" if summary.contended else "false",
        "outside_load": "true" if summary.disturbed else "false",
        "undefined": "; ".join(summary.undefined),
        "scaling": run.block_scaling(cell.block),
        "profile": run.profile,
        "environment": ";".join(summary.environments),
    }
