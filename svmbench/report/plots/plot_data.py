"""Collect the data of a plot: panels of series of points, fitted exponents and crossings."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from svmbench.base import escape
from svmbench.base.errors import DamagedResultsError
from svmbench.report.numbers.statistics import Crossing, PowerLaw, crossing, fit_power_law
from svmbench.report.numbers.summary import (
    Summary,
    by_environment_group,
    group,
    summarise_folds,
    value_of,
)
from svmbench.report.plots.kinds import kind_of
from svmbench.report.reading import published
from svmbench.report.reading.provenance import missing_short
from svmbench.report.reading.records import VERSUS, CellResult, Run, split_races
from svmbench.report.reading.wording import label_of
from svmbench.report.tables.layout import mixes_kernels, read_checked, varying_fields
from svmbench.schema.record import IDENTITY, canonical
from svmbench.schema.specs import PlotSpec, is_dimension


@dataclass(frozen=True)
class PlotPoint:
    """One point; `x` is a number or the text of a category."""

    x: Any
    y: float
    low: float
    high: float
    contended: bool
    partial: bool
    disturbed: bool = False

    @property
    def busy(self) -> bool:
        """True if the point is a disturbed time."""
        return self.contended or self.disturbed


@dataclass(frozen=True)
class Series:
    """One curve; the fields after `points` are for the kind ``scaling`` only.

    Attributes
    ----------
    name : str
    points : tuple of PlotPoint
    fit : PowerLaw or None
        Power law fitted to the points.
    printed_exponent : float or None
        Exponent in the paper.
    printed : tuple of (float, float)
        Points in the paper.
    printed_fit : PowerLaw or None
        Power law fitted to the points in the paper.
    """

    name: str
    points: tuple[PlotPoint, ...]
    fit: PowerLaw | None = None
    printed_exponent: float | None = None
    printed: tuple[tuple[float, float], ...] = ()
    printed_fit: PowerLaw | None = None


@dataclass(frozen=True)
class DecisionGrid:
    """A function of two features, for the kind ``decision``.

    Attributes
    ----------
    x, y : ndarray
        Values of the two features, ascending.
    values : ndarray of shape (len(y), len(x))
        Decision values, or numbers of predicted classes.
    levels : tuple of float
        Values of the drawn contour lines: margins and boundary; empty for classes.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    levels: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes, with the series of one data set (and of one value of other fields).

    Attributes
    ----------
    title : str
    series : tuple of Series
    crossing : str
        Description of the requested crossing of two series; empty without a request.
    grid : DecisionGrid or None
        Grid of the kind ``decision``.
    crossed : tuple of (float, float)
        The points of the crossings.
    """

    title: str
    series: tuple[Series, ...]
    crossing: str = ""
    grid: DecisionGrid | None = None
    crossed: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class PlotData:
    """The data of a plot.

    Attributes
    ----------
    spec : PlotSpec
        Specification of the plot.
    panels : tuple of Panel
        The panels with points.
    cells : list of CellResult
        All cells of the plot.
    y : str
        The drawn metric. A scaling plot of training times uses CPU times if all records have them,
        because CPU times vary less.
    lacking : tuple of str
        Data sets (with solvers) with a result but without a value of `y`.
    x_label, y_label : str
        Labels of the axes.
    """

    spec: PlotSpec
    panels: tuple[Panel, ...]
    cells: list[CellResult] = field(repr=False)
    y: str
    x_label: str = ""
    y_label: str = ""
    lacking: tuple[str, ...] = ()

    @property
    def crossings(self) -> list[str]:
        """A sentence for each panel with a requested crossing."""
        return [
            f"{panel.title}: {panel.crossing}" if panel.title else panel.crossing
            for panel in self.panels
            if panel.crossing
        ]

    def points(self) -> list[PlotPoint]:
        """Return all points of all panels."""
        return [p for panel in self.panels for series in panel.series for p in series.points]

    @property
    def gaps(self) -> str:
        """The missing values with reasons, in a few words; empty if nothing is missing."""
        if not self.cells:
            return "this profile's plan has no cells for it"
        parts = [missing_short(self.cells)]
        if self.lacking:
            parts.append(f"{self.y_label} of {', '.join(self.lacking)}")
        return "; ".join(part for part in parts if part)


def read_plot(raw: Mapping[str, Any], where: str) -> PlotSpec:
    """Read the entry of a plot in the plan, with defaults from its kind.

    Raises
    ------
    ResultsError
        If a field is missing, the kind is unknown, or cells don't have a named field.
    """
    spec = read_checked(PlotSpec, raw, f"{where}: plot")
    kind = kind_of(spec)
    return spec.model_copy(
        update={
            "x": canonical(spec.x or kind.x),
            "y": spec.y or kind.y,
            "series": canonical(spec.series) if spec.series else None,
            "across": canonical(spec.across) if spec.across else None,
        }
    )


def read_plot_data(run: Run, spec: PlotSpec) -> PlotData:
    """Collect the panels of a plot from the records."""
    kind = kind_of(spec)
    if kind.collect is not None:
        return kind.collect(run, spec)
    blocks = filter(None, (spec.block, spec.beside))
    whole = [
        cell
        for name in blocks
        for cell in run.block_cells(name)
        if spec.dataset in (None, cell.dataset)
    ]
    cells = split_races(whole)
    y = _clock(spec, cells)
    panels = []
    placed = {spec.x, spec.series, spec.across}
    for title, members in by_panel(cells, placed).items():
        by_series: dict[str, list[CellResult]] = {}
        for cell in members:
            name = str(cell.value(spec.series)) if spec.series else run.label(y)
            name += f" ({cell.block})" if cell.block != spec.block else ""
            by_series.setdefault(name, []).append(cell)
        drawn = [
            _series(spec, y, shown, part)
            for name, several in by_series.items()
            for shown, part in _by_environment_group(name, several).items()
        ]
        # The solvers of a race have times, but only pairs have ratios.
        series = [drawn_series for drawn_series in drawn if drawn_series.points or kind.fits]
        # A data set without points is listed as missing, without an empty panel.
        if any(drawn_series.points for drawn_series in series):
            sentence, crossed = _crossing(spec, series)
            panels.append(Panel(title, tuple(series), sentence, crossed=crossed))
    return PlotData(
        spec,
        tuple(panels),
        whole,
        y,
        x_label=run.label(str(spec.x)),
        y_label=run.label(y),
        lacking=tuple(_lacking(spec, y, cells)),
    )


def by_panel(
    cells: Sequence[CellResult], placed: Collection[str | None]
) -> dict[str, list[CellResult]]:
    """Group cells by panel; the title names the varying fields without another place."""
    fields = [name for name in varying_fields(cells) if name not in placed]
    if "kernel" in fields and "solver" in placed and mixes_kernels(cells):
        fields.remove("kernel")
    cells_of: dict[str, list[CellResult]] = {}
    for cell in cells:
        cells_of.setdefault(_panel_title(cell, fields), []).append(cell)
    return cells_of


def _clock(spec: PlotSpec, cells: Sequence[CellResult]) -> str:
    """Return the drawn metric; exponents are fitted to CPU times if all cells have them."""
    requested = str(spec.y)
    if not kind_of(spec).fits or requested != "train_time_s":
        return requested
    timed = [cell for cell in cells if value_of(cell, "train_time_s") is not None]
    have_both = all(value_of(cell, "cpu_time_s") is not None for cell in timed)
    return "cpu_time_s" if timed and have_both else requested


def _by_environment_group(name: str, cells: Sequence[CellResult]) -> dict[str, list[CellResult]]:
    """Split a series by environment, because folds of different environments have no mean."""
    parts = [by_environment_group(members) for members in group(cells).values()]
    if all(len(part) == 1 for part in parts):
        return {name: list(cells)}
    apart: dict[str, list[CellResult]] = {}
    for part in parts:
        for environment, members in part.items():
            apart.setdefault(f"{name} ({environment})" if environment else name, []).extend(members)
    return apart


def _lacking(spec: PlotSpec, y: str, cells: Sequence[CellResult]) -> list[str]:
    """Return the data sets, with solvers, whose finished cells lack the drawn metric."""
    # In a race, some metrics belong to pairs and others to single solvers.
    kinds = {VERSUS in str(cell.solver) for cell in cells if value_of(cell, y) is not None}
    races = {cell.key for cell in cells if VERSUS in str(cell.solver)}
    solvers_of: dict[str, dict[str, None]] = {}
    datasets = dict.fromkeys(str(cell.dataset) for cell in cells if cell.status == "ok")
    for cell in cells:
        if cell.key in races and (VERSUS in str(cell.solver)) not in (kinds or {True}):
            continue
        if cell.status == "ok" and (
            value_of(cell, y) is None or _x_value(cell, str(spec.x)) is None
        ):
            solvers_of.setdefault(str(cell.dataset), {})[str(cell.solver or "")] = None
    alike = {tuple(solvers) for solvers in solvers_of.values()}
    if len(datasets) > 1 and len(solvers_of) == len(datasets) and len(alike) == 1 and any(*alike):
        return [f"{' and '.join(*alike)} on every data set"]
    return [
        f"{dataset} ({', '.join(solvers)})" if any(solvers) else dataset
        for dataset, solvers in solvers_of.items()
    ]


def exponents_csv(plot: PlotData) -> str:
    """Return the fitted exponents as CSV, one line for each series, beside the printed ones.

    ``metric`` is the fitted metric. The ``printed`` columns have the exponent in the paper, and the
    same fit to the times in the paper.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fitted = ("exponent", "low", "high", "points")
    writer.writerow(
        [
            *("panel", "series", "metric"),
            *fitted,
            "printed",
            *(f"printed_fit_{name}" for name in fitted),
        ]
    )
    for panel in plot.panels:
        for series in panel.series:
            printed = "" if series.printed_exponent is None else f"{series.printed_exponent:g}"
            fits = (_fit_fields(series.fit), _fit_fields(series.printed_fit))
            line = [panel.title, series.name, plot.y, *fits[0], printed, *fits[1]]
            writer.writerow(map(escape.csv_field, line))
    return out.getvalue()


def _fit_fields(fit: PowerLaw | None) -> list[str]:
    if fit is None:
        return ["", "", "", "0"]
    ends = ["" if end is None else f"{end:.4f}" for end in (fit.low, fit.high)]
    return [f"{fit.exponent:.4f}", *ends, str(fit.n_points)]


def _panel_title(cell: CellResult, fields: Sequence[str]) -> str:
    parts = []
    for name in fields:
        value = cell.value(name)
        if value is not None:
            parts.append(
                str(value) if name in {"dataset", "solver"} else f"{label_of(name)} {value}"
            )
    return ", ".join(parts)


def _series(spec: PlotSpec, y: str, name: str, cells: Sequence[CellResult]) -> Series:
    by_x: dict[Any, list[CellResult]] = {}
    for cell in cells:
        x = _x_value(cell, str(spec.x))
        if x is not None:
            by_x.setdefault(x, []).append(cell)
    points = []
    for x, members in by_x.items():
        summary = summarise_folds(members, y)
        if summary.value is not None:
            points.append(_point(x, summary))
    kind = kind_of(spec)
    if kind.fits or kind.is_sorted:
        points.sort(key=lambda point: (isinstance(point.x, str), point.x))
    if not kind.fits:
        return Series(name, tuple(points))
    for point in points:
        if isinstance(point.x, str):
            shown = escape.line(point.x, 60)
            raise DamagedResultsError(
                f"plot {escape.line(spec.name, 60)!r}: {spec.x} is {shown!r}, which is not a number"
            )
    drawable = tuple(point for point in points if point.x > 0 and point.y > 0)
    fit = fit_power_law([p.x for p in drawable], [p.y for p in drawable]) if drawable else None
    printed = _printed_points(spec, cells)
    return Series(
        name,
        drawable,
        fit,
        _printed_exponent(spec, cells[0]),
        printed,
        fit_power_law([x for x, _ in printed], [y for _, y in printed]) if printed else None,
    )


def _x_value(cell: CellResult, name: str) -> Any:
    """Return the x value of a cell, or None."""
    if name.startswith("params."):
        value = cell.params.get(name.removeprefix("params."))
        return value if isinstance(value, str | int | float) else None
    if name in IDENTITY or is_dimension(name):
        return cell.value(name)
    return value_of(cell, name)


def _point(x: Any, summary: Summary) -> PlotPoint:
    value = float(summary.value or 0.0)
    low, high = value, value
    if summary.low is not None and summary.high is not None:
        low, high = summary.low, summary.high
    elif summary.spread is not None:
        low, high = value - summary.spread, value + summary.spread
    return PlotPoint(x, value, low, high, summary.contended, summary.partial, summary.disturbed)


def _printed_exponent(spec: PlotSpec, cell: CellResult) -> float | None:
    """Return the exponent that the paper prints for a series."""
    if not spec.published:
        return None
    return published.exponent(
        cell.paper, spec.published, cell.dataset, cell.solver, kernel=cell.kernel
    )


def _printed_points(spec: PlotSpec, cells: Sequence[CellResult]) -> tuple[tuple[float, float], ...]:
    """Return the paper's points of a series: the whole sweep, or one point for each data set."""
    if not spec.published:
        return ()
    first = cells[0]
    if spec.x == "rows":
        sweep = published.printed_sweep(
            first.paper,
            spec.published,
            first.dataset,
            str(spec.y),
            first.solver,
            kernel=first.kernel,
        )
        return tuple((float(size), value) for size, value in sweep)
    values = {}
    for cell in cells:
        x = _x_value(cell, str(spec.x))
        value = published.lookup(
            cell.paper,
            spec.published,
            cell.dataset,
            str(spec.y),
            cell.solver,
            cell.kernel,
            dimensions=cell.dimensions,
        )
        if value is not None and isinstance(x, int | float):
            values[float(x)] = value
    return tuple(sorted(values.items()))


def _crossing(
    spec: PlotSpec, series: Sequence[Series]
) -> tuple[str, tuple[tuple[float, float], ...]]:
    """Return a description of the crossings of two series, and their points."""
    if spec.crossing is None:
        return "", ()
    by_name = {curve.name: curve for curve in series}
    first, second = spec.crossing
    for name in spec.crossing:
        if name not in by_name or not by_name[name].points:
            return f"crossing of {first} and {second}: unknown, {name} has no points", ()
    curves = [
        [point for point in by_name[name].points if point.x > 0 and point.y > 0]
        for name in spec.crossing
    ]
    crossed: Crossing = crossing(
        [p.x for p in curves[0]],
        [p.y for p in curves[0]],
        [p.x for p in curves[1]],
        [p.y for p in curves[1]],
    )
    where = tuple(zip(crossed.at, crossed.heights, strict=True))
    return crossed.sentence(first, second, label_of(str(spec.x))), where
