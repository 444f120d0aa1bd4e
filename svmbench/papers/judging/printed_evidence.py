"""The papers' own printed numbers as evidence: each table as if a run had measured it.

Judged by a claim's rule, a paper's own numbers should support the claim. The tests list the claims
that a paper's own table contradicts. A printed number has no uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from svmbench.base.paper_folders import FULL_PROFILE, Paper, dataset_names_of, shipped_config
from svmbench.base.paths import asset
from svmbench.papers.judging.evidence import PRINTED, Evidence, Source
from svmbench.papers.judging.verdict import Verdict
from svmbench.report.reading import published
from svmbench.report.reading.published import PrintedNumber
from svmbench.report.reading.records import CellResult, Run

#: Printed tables whose names differ from those of the configs that make them, by config and block.
_TABLES = {
    ("srbo_table9_11", "linear"): "table10",
    ("srbo_table9_11", "rbf"): "table11",
    ("nlsgd_fig6_7", ""): "fig6-10",
    ("nlsgd_fig8_10", ""): "fig6-10",
}
#: Metrics of times: a time that a paper prints stands for each of them.
_TIMES = ("train_time_s", "cpu_time_s", "nested_cv_cpu_time_s")


def printed_evidence(paper: Paper) -> Evidence:
    """Return the printed numbers of a paper as runs of the configs that make its tables."""
    sources = {}
    for config_file in sorted(asset("configs").glob(f"{paper.key}_*.yaml")):
        config = config_file.stem
        cells = [
            cell
            for block in shipped_config(config).get("blocks", [])
            for cell in _cells(paper, config, block)
        ]
        if cells:
            blocks: dict[str, dict[str, Any]] = {cell.block: {} for cell in cells}
            run = Run(Path(config), config, paper.key, config, FULL_PROFILE, "", blocks,
                      tuple(cells), (), (), {})  # fmt: skip
            sources[config] = [Source(run, tuple(cells), "")]
    return Evidence(sources)


def beside_printed(verdicts: Sequence[Verdict], of_printed: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts with the outcomes and values that the printed numbers give by the same rules.

    Parameters
    ----------
    verdicts : sequence of Verdict
    of_printed : sequence of Verdict
        The verdicts from printed numbers (`printed_evidence`).
    """
    outcomes = {
        verdict.claim.id: verdict.outcome
        for verdict in of_printed
        if any(part.cells for part in verdict.parts)
    }
    values = {
        (verdict.claim.id, part.subject): part.interval.value
        for verdict in of_printed
        for part in verdict.parts
        if part.interval is not None
    }
    return [
        replace(
            verdict,
            by_printed=outcomes.get(verdict.claim.id, ""),
            parts=tuple(
                replace(part, printed_value=values.get((verdict.claim.id, part.subject)))
                for part in verdict.parts
            ),
        )
        for verdict in verdicts
    ]


def _cells(paper: Paper, config: str, block: dict[str, Any]) -> list[CellResult]:
    """Return a cell for each data set, size and solver of the table that a block makes."""
    name = str(block.get("name"))
    printed = config.removeprefix(f"{paper.key}_")
    table = _TABLES.get((config, name)) or _TABLES.get((config, "")) or printed
    wanted = set(dataset_names_of(block))
    metrics_of: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in published.numbers(paper.key):
        dataset = _dataset(paper, row, wanted, name)
        if row.table != table or dataset is None or row.metric == "scaling_exponent":
            continue
        for solver in _ours(paper.printed.solvers, row.solver):
            metrics = metrics_of.setdefault((dataset, row.size, solver), {})
            for metric in _TIMES if row.metric in _TIMES else (row.metric,):
                metrics[metric] = row.value
    return [
        _cell(paper, name, dataset, size, solver, metrics)
        for (dataset, size, solver), metrics in metrics_of.items()
    ]


def _dataset(paper: Paper, row: PrintedNumber, wanted: set[str], block: str) -> str | None:
    """Return the name here of a printed data set, at its size, if a block has it."""
    subsets = {
        (printed, str(size)): ours for ours, (printed, size) in paper.printed.subsets.items()
    }
    if block == "sizes":
        return row.dataset if row.dataset in wanted and row.size else None
    if (row.dataset, row.size) in subsets:
        return subsets[row.dataset, row.size]
    names = (*paper.printed.datasets.get(row.dataset, ()), row.dataset)
    return next((name for name in names if name in wanted), None)


def _ours(renamed: Any, printed: str) -> tuple[str, ...]:
    """Return the names here of a printed solver."""
    names = renamed.get(printed, printed)
    return (names,) if isinstance(names, str) else tuple(names)


def _cell(
    paper: Paper, block: str, dataset: str, size: str, solver: str, metrics: dict[str, float]
) -> CellResult:
    rows = int(size) if size else paper.datasets.get(dataset, {}).get("n_samples")
    dims = {"rows": int(size)} if size and block == "sizes" else {}
    known = {**metrics, "n_train": rows} if isinstance(rows, int) else dict(metrics)
    return CellResult(
        key=f"{block} {dataset} {size} {solver}", block=block, protocol=PRINTED, paper=paper.key,
        dataset=dataset, kernel=None, solver=solver, fold=None, status="ok", dimensions=dims,
        metrics=known, spread={metric: [value, value] for metric, value in metrics.items()},
    )  # fmt: skip
