"""From the cells that differ in their fold alone to one number with its spread and its state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        A timing of which a part was measured while other workers ran.
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

    @property
    def partial(self) -> bool:
        """Whether there is a value, but not from every planned fold."""
        return 0 < self.folds < self.planned


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
        spread, low, high = _own_spread(found[0][0].spread.get(metric))
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
    )


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
    return [name for name in names if any(measured(cell, name) is not None for cell in cells)]


@dataclass(frozen=True)
class Comparison:
    """A printed number and how far the measured one is from it.

    `difference` (measured − printed, in the metric's unit) is None where the measured value is not
    fit for comparison: folds are missing, or it is a time taken while other workers ran.
    """

    published: float | None
    difference: float | None


def compare(
    summary: Summary, cell: Cell, table: str | None, *, allow_contended: bool = False
) -> Comparison:
    """Set a summary beside the number that its paper prints for it in `table` (None: nowhere)."""
    if not table:
        return Comparison(None, None)
    printed = published.lookup(
        cell.paper,
        table,
        cell.dataset,
        summary.metric,
        cell.solver,
        kernel=cell.kernel,
        size=cell.size,
    )
    fit = not summary.partial and (allow_contended or not summary.contended)
    if printed is None or summary.value is None or not fit:
        return Comparison(printed, None)
    return Comparison(printed, summary.value - printed)


def group(cells: Sequence[Cell]) -> Mapping[tuple[Any, ...], list[Cell]]:
    """Collect the cells that differ in their fold alone, in the order of first occurrence."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.identity, []).append(cell)
    return groups


def _own_spread(spread: Any) -> tuple[float | None, float | None, float | None]:
    """Return (spread, low, high) of a record: a number is a spread, a pair is a range."""
    if isinstance(spread, (list, tuple)) and len(spread) == 2:
        return None, _finite(spread[0]), _finite(spread[1])
    return _finite(spread), None, None


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
