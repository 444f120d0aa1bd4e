"""Summarise cells that differ in the fold only: mean, spread and status."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from svmbench.base.paper_folders import FULL_PROFILE, papers
from svmbench.base.paths import asset
from svmbench.base.toml_source import read_toml
from svmbench.report.numbers.statistics import mean_sd
from svmbench.report.reading import published
from svmbench.report.reading.records import CellResult, Run
from svmbench.report.reading.wording import is_timing

#: A sample with at least this share of the printed rows counts as the whole data set: a file may
#: have a few rows fewer than its paper prints.
WHOLE_SHARE = 0.98
#: A sweep covers the whole data set if its largest training part has this share of the printed
#: rows: four fifths, less a few rows for folds and classes.
WHOLE_TRAINING_SHARE = 0.75
#: Seconds that two readings of wall and CPU time one after the other are apart, rounded up
#: (0.74 microseconds on a Xeon, the median of 20,000): no training takes less.
CLOCK_RESOLUTION_S = 1e-6
#: Metrics that are times of a training; in a race, the name of a racer follows after a colon.
_TRAINING_TIMES = frozenset({"train_time_s", "cpu_time_s"})
#: A run counts as having all rows of a limit from this share on: because of folds and classes, a
#: sample may lack a few.
FILLED_SHARE = 0.98


@dataclass(frozen=True)
class Summary:
    """One metric of one solver under one condition (data set, kernel, size, features), over folds.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value, spread : float or None
        Mean and sample standard deviation over the finished folds; with a single fold, the spread
        of its repeats, if the record has one.
    low, high : float or None
        Range instead of a spread (races record the range of their rounds).
    folds, planned : int
        Folds with a value, and folds in the plan.
    status, reason : str
        ``ok``, or status and reason of the first fold with another status.
    contended : bool
        True for a time that was partly measured beside other workers of the run.
    disturbed : bool
        True for a time that was partly measured under load from other programs.
    unresolved : bool
        True for a time of a training that is shorter than the clock can tell on some fold, where it
        counts as `CLOCK_RESOLUTION_S`.
    undefined : tuple of str
        Reasons for undefined values on finished folds, each once.
    environments : tuple of str
        Ids of the environments of the folds.
    false_convergence : bool
        True for a time of a racer that says it converged, and did not; for a ratio, of one of both.
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
    unresolved: bool = False
    undefined: tuple[str, ...] = ()
    false_convergence: bool = False

    @property
    def partial(self) -> bool:
        """True if some planned folds have no value."""
        return 0 < self.folds < self.planned

    @property
    def busy(self) -> bool:
        """True for a time that other work disturbed, of this run or of other programs."""
        return self.contended or self.disturbed

    def why_not_compared(self, *, allow_contended: bool = False) -> str:
        """Return why the value is not compared with others, to end a sentence; "" if it is."""
        if self.value is None:
            return "they have no value"
        if self.false_convergence:
            return "their solvers did not converge as reported"
        if self.unresolved:
            return "they are shorter than the clock can tell"
        if self.partial:
            return "folds are missing"
        return "other work disturbed them" if self.busy and not allow_contended else ""


def summarise_folds(cells: Sequence[CellResult], metric: str) -> Summary:
    """Summarise one metric over cells that share everything but the fold.

    Parameters
    ----------
    cells : sequence of CellResult
        At least one cell.
    metric : str
        Name of a metric, or of a counter if no metric has this name.
    """
    finished = [cell for cell in cells if cell.status == "ok"]
    values_of_cells = [
        (cell, value) for cell in finished if (value := value_of(cell, metric)) is not None
    ]
    value = spread = low = high = None
    if values_of_cells:
        value, spread = mean_sd([value for _, value in values_of_cells])
    if len(values_of_cells) == 1:
        spread, low, high = _spread_of_repeats(values_of_cells[0][0].spread.get(metric), metric)
    unfinished = next((cell for cell in cells if cell.status != "ok"), None)
    return Summary(
        metric=metric,
        value=value,
        spread=spread,
        low=low,
        high=high,
        folds=len(values_of_cells),
        planned=len(cells),
        status=unfinished.status if unfinished else "ok",
        reason=unfinished.reason if unfinished else "",
        contended=is_timing(metric) and any(cell.contended for cell, _ in values_of_cells),
        environments=tuple(
            dict.fromkeys(cell.environment for cell in finished if cell.environment)
        ),
        disturbed=is_timing(metric) and any(cell.disturbed for cell, _ in values_of_cells),
        unresolved=any(
            _is_unresolved(metric, cell.metrics.get(metric)) for cell, _ in values_of_cells
        ),
        undefined=tuple(
            dict.fromkeys(cell.undefined[metric] for cell in finished if metric in cell.undefined)
        ),
        false_convergence=is_timing(metric)
        and any(cell.has_false_convergence for cell, _ in values_of_cells),
    )


def by_environment_group(cells: Sequence[CellResult]) -> dict[str, list[CellResult]]:
    """Group the folds of one measurement by environment group.

    Folds of different environments are not averaged. With several, each group has all folds, and
    those of other environments have the status ``other environment`` and no values, so that tables
    show that it has only some of the folds.

    Parameters
    ----------
    cells : sequence of CellResult
        Cells that share everything but the fold.
    """
    groups = dict.fromkeys(cell.environment_group for cell in cells if cell.status == "ok")
    if len(groups) < 2:
        return {next(iter(groups), ""): list(cells)}
    return {
        name: [
            cell if cell.status != "ok" or cell.environment_group == name else without_values(cell)
            for cell in cells
        ]
        for name in groups
    }


def without_values(cell: CellResult) -> CellResult:
    """Return a cell without its values, with the status of results of another environment."""
    no_values: dict[str, Any] = {"metrics": {}, "spread": {}, "counters": {}, "undefined": {}}
    reason = f"measured in environment {cell.environment}"
    return replace(cell, status="other environment", reason=reason, **no_values)


def value_of(cell: CellResult, metric: str) -> float | None:
    """Return the finite value of a metric or counter of a cell, or None.

    A time of a training that is shorter than the clock can tell counts as `CLOCK_RESOLUTION_S`.
    """
    for source in (cell.metrics, cell.counters):
        if metric in source:
            value = _finite(source[metric])
            return CLOCK_RESOLUTION_S if _is_unresolved(metric, value) else value
    return None


def _is_unresolved(metric: str, seconds: Any) -> bool:
    """Return True for a time of a training that is shorter than the clock can tell."""
    is_time = metric.partition(":")[0] in _TRAINING_TIMES and seconds is not None
    return is_time and seconds < CLOCK_RESOLUTION_S


def metric_names(cells: Sequence[CellResult]) -> list[str]:
    """Return every metric and counter of the cells, in the order of first occurrence."""
    names = dict.fromkeys(name for cell in cells for name in cell.metrics)
    names.update(dict.fromkeys(name for cell in cells for name in cell.counters))
    names.update(dict.fromkeys(name for cell in cells for name in cell.undefined))
    return [
        name
        for name in names
        if any(name in cell.undefined or value_of(cell, name) is not None for cell in cells)
    ]


@dataclass(frozen=True)
class PaperComparison:
    """A printed number, and its difference from the measured one.

    `difference` (measured − printed, in the unit of the metric) is None if the measured value isn't
    compared (`Summary.why_not_compared`), or is a time of fewer rows than the paper's.
    """

    published: float | None
    difference: float | None


def compare_with_paper(
    summary: Summary,
    cell: CellResult,
    table: str | None,
    *,
    allow_contended: bool = False,
    is_cut: bool = False,
) -> PaperComparison:
    """Compare a summary with the printed number in `table` (None for no table).

    With fewer rows than in the paper (`is_cut`), times are not compared.
    """
    if not table:
        return PaperComparison(None, None)
    printed = published.lookup(
        cell.paper,
        table,
        cell.dataset,
        summary.metric,
        cell.solver,
        kernel=cell.kernel,
        dimensions=cell.dimensions,
    )
    is_unfit = summary.why_not_compared(allow_contended=allow_contended)
    if (
        printed is None
        or summary.value is None
        or is_unfit
        or (is_cut and is_timing(summary.metric))
    ):
        return PaperComparison(printed, None)
    return PaperComparison(printed, summary.value - printed)


def group(cells: Sequence[CellResult]) -> Mapping[tuple[Any, ...], list[CellResult]]:
    """Group cells that differ in the fold only, in the order of first occurrence."""
    groups: dict[tuple[Any, ...], list[CellResult]] = {}
    for cell in cells:
        groups.setdefault(cell.identity, []).append(cell)
    return groups


def _spread_of_repeats(spread: Any, metric: str) -> tuple[float | None, float | None, float | None]:
    """Return (spread, low, high) of a record; a number is a spread, a pair is a range.

    Older records have a spread of exactly 0 for a single measurement of a time; it counts as no
    spread.
    """
    if isinstance(spread, (list, tuple)) and len(spread) == 2:
        return None, _finite(spread[0]), _finite(spread[1])
    number = _finite(spread)
    return None if number == 0.0 and is_timing(metric) else number, None, None


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


@cache
def registered_number(dataset: str, field: str) -> float:
    """Return a number from the entry of a shipped data set; 0 where it has none.

    Parameters
    ----------
    dataset : str
        Without parts and rows.
    field : str
        ``n_samples``, ``n_test``, ``n_features`` or ``density`` (share of values that aren't 0).
    """
    path = asset("datasets.toml")
    entries = read_toml(path, path.name)
    entry = entries.get(dataset, {})
    number = entry.get(field, entries.get(str(entry.get("based_on")), {}).get(field, 0))
    return float(number) if isinstance(number, int | float) else 0.0


def cut_to(run: Run, cells: Sequence[CellResult]) -> str:
    """Describe the reduced size of a data set in a run; return "" for the whole data set.

    Parameters
    ----------
    run : Run
    cells : sequence of CellResult
        Cells of one data set.
    """
    if not cells:
        return ""
    dataset, paper = str(cells[0].dataset), papers().get(run.paper)
    printed = paper.datasets.get(dataset, {}).get("n_samples") if paper is not None else None
    blocks = dict.fromkeys(cell.block for cell in cells)
    max_samples = max(
        (run.blocks.get(name, {}).get("max_samples") or 0 for name in blocks), default=0
    )
    if max_samples and isinstance(printed, int):
        return f"{max_samples:,} of {printed:,} rows" if max_samples < WHOLE_SHARE * printed else ""
    if max_samples:
        filled = any(rows_of(cell) >= FILLED_SHARE * max_samples for cell in cells)
        return f"at {max_samples:,} rows" if filled else ""
    if run.profile == FULL_PROFILE:
        return ""
    swept = [rows_of(cell) for cell in cells if "rows" in cell.dimensions]
    if swept and isinstance(printed, int) and max(swept) < WHOLE_TRAINING_SHARE * printed:
        return f"{max(swept):,.0f} of {printed:,} rows"
    return ""


def is_cut(run: Run, cells: Sequence[CellResult]) -> bool:
    """Return True if the cells of a table entry used fewer rows than the paper.

    An entry of a sweep over sizes is compared with the printed number at its size.
    """
    return "rows" not in cells[0].dimensions and bool(cut_to(run, cells))


def rows_of(cell: CellResult) -> float:
    """Return how many rows a cell divided into training and test rows; 0 if unknown.

    The rows of a test part that comes with the data set are not among them.
    """
    swept = cell.dimensions.get("rows")
    if isinstance(swept, int | float):
        return float(swept)
    n_test = value_of(cell, "n_test") or 0.0
    if n_test == registered_number(str(cell.dataset), "n_test"):
        n_test = 0.0
    return (value_of(cell, "n_train") or 0.0) + n_test
