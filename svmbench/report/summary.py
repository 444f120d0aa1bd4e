"""From the cells that differ in their fold alone to one number with its spread and its state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svmbench.report import published
from svmbench.report.records import Cell
from svmbench.report.statistics import mean_sd
from svmbench.report.wording import is_timing


@dataclass(frozen=True)
class Summary:
    """One metric over the folds of one (data set, kernel, size, features, solver).

    Attributes
    ----------
    metric : str
        Name of the metric.
    value, spread : float or None
        Mean over the finished folds and sample standard deviation; with a single fold the spread
        of its own repeats, where the record has one.
    low, high : float or None
        A range instead of a spread (races record the range of their rounds).
    folds, planned : int
        Folds with a value, and folds in the plan.
    status, reason : str
        ``ok``, or state and reason of the first fold that is not.
    contended : bool
        A timing of which a part was measured while other workers of the run ran.
    disturbed : bool
        A timing of which a part was measured under load from outside the run.
    undefined : tuple of str
        Why the metric has no value on some finished folds, each reason once.
    environments : tuple of str
        Ids of the environments that it was measured in.
    """

    metric: str
    value: float | None
    spread: float | None
    low: float | None
    high: float | None
    folds: int
    planned: int
    status: str
    reason: str
    contended: bool
    environments: tuple[str, ...]
    disturbed: bool = False
    undefined: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether there is a value, but not from every planned fold."""
        return 0 < self.folds < self.planned

    @property
    def busy(self) -> bool:
        """Whether it is a time that other work disturbed, this run's or another's."""
        return self.contended or self.disturbed


def summarise(cells: Sequence[Cell], metric: str) -> Summary:
    """Summarise one metric over cells that share everything but the fold.

    Parameters
    ----------
    cells : sequence of Cell
        At least one.
    metric : str
        A metric's or, where there is no metric of that name, a counter's name.
    """
    finished = [cell for cell in cells if cell.status == "ok"]
    found = [(cell, value) for cell in finished if (value := measured(cell, metric)) is not None]
    value = spread = low = high = None
    if found:
        value, spread = mean_sd([value for _, value in found])
    if len(found) == 1:
        spread, low, high = _own_spread(found[0][0].spread.get(metric), metric)
    troubled = next((cell for cell in cells if cell.status != "ok"), None)
    return Summary(
        metric=metric,
        value=value,
        spread=spread,
        low=low,
        high=high,
        folds=len(found),
        planned=len(cells),
        status=troubled.status if troubled else "ok",
        reason=troubled.reason if troubled else "",
        contended=is_timing(metric) and any(cell.contended for cell, _ in found),
        environments=tuple(
            dict.fromkeys(cell.environment for cell in finished if cell.environment)
        ),
        disturbed=is_timing(metric) and any(cell.disturbed for cell, _ in found),
        undefined=tuple(
            dict.fromkeys(cell.undefined[metric] for cell in finished if metric in cell.undefined)
        ),
    )


def by_machine(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Return the folds of one measurement apart, by the machine that they were measured on.

    Folds of different machines make no mean. Where there are several, each gets all the folds, the
    others' as ``elsewhere``, so that it is seen to be a part.

    Parameters
    ----------
    cells : sequence of Cell
        Cells that share everything but the fold.
    """
    machines = dict.fromkeys(cell.machine for cell in cells if cell.status == "ok")
    if len(machines) < 2:
        return {next(iter(machines), ""): list(cells)}
    return {
        machine: [
            cell if cell.status != "ok" or cell.machine == machine else _elsewhere(cell)
            for cell in cells
        ]
        for machine in machines
    }


def _elsewhere(cell: Cell) -> Cell:
    nothing: dict[str, Any] = {"metrics": {}, "spread": {}, "counters": {}, "undefined": {}}
    reason = f"measured in environment {cell.environment}"
    return replace(cell, status="elsewhere", reason=reason, **nothing)


def measured(cell: Cell, metric: str) -> float | None:
    """Return a cell's finite value of a metric or counter, or None."""
    for source in (cell.metrics, cell.counters):
        if metric in source:
            return _finite(source[metric])
    return None


def metric_names(cells: Sequence[Cell]) -> list[str]:
    """Return every metric and counter of the cells, in the order of first occurrence."""
    names = dict.fromkeys(name for cell in cells for name in cell.metrics)
    names.update(dict.fromkeys(name for cell in cells for name in cell.counters))
    names.update(dict.fromkeys(name for cell in cells for name in cell.undefined))
    return [
        name
        for name in names
        if any(name in cell.undefined or measured(cell, name) is not None for cell in cells)
    ]


@dataclass(frozen=True)
class Comparison:
    """A printed number and how far the measured one is from it.

    `difference` (measured − printed, in the metric's unit) is None where the measured value is not
    fit for comparison: folds are missing, or it is a time that other work disturbed.
    """

    published: float | None
    difference: float | None


def compare(
    summary: Summary,
    cell: Cell,
    table: str | None,
    *,
    allow_contended: bool = False,
    is_cut: bool = False,
) -> Comparison:
    """Set a summary beside the number that its paper prints for it in `table` (None: nowhere).

    Where the rows were cut (`is_cut`), a time is not compared with the printed one.
    """
    if not table:
        return Comparison(None, None)
    printed = published.lookup(
        cell.paper,
        table,
        cell.dataset,
        summary.metric,
        cell.solver,
        kernel=cell.kernel,
        dimensions=cell.dimensions,
    )
    fit = not summary.partial and (allow_contended or not summary.busy)
    fit = fit and not (is_cut and is_timing(summary.metric))
    if printed is None or summary.value is None or not fit:
        return Comparison(printed, None)
    return Comparison(printed, summary.value - printed)


def group(cells: Sequence[Cell]) -> Mapping[tuple[Any, ...], list[Cell]]:
    """Collect the cells that differ in their fold alone, in the order of first occurrence."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.identity, []).append(cell)
    return groups


def _own_spread(spread: Any, metric: str) -> tuple[float | None, float | None, float | None]:
    """Return (spread, low, high) of a record: a number is a spread, a pair is a range.

    No two measurements of a time agree to the last digit: a spread of exactly 0 is what records
    once said of a single one, which has none.
    """
    if isinstance(spread, (list, tuple)) and len(spread) == 2:
        return None, _finite(spread[0]), _finite(spread[1])
    number = _finite(spread)
    return None if number == 0.0 and is_timing(metric) else number, None, None


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
