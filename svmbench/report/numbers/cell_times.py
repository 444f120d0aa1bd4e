"""Forecast the time of one cell from the recorded times of others.

A dry run adds up such times of planned cells (``studies/forecasting.py``), and a claim those of the
cells that would decide it (``papers/judging/cuts.py``).

A cell's time is forecast from the nearest recorded cells of the same solver (nearest by data set,
config, protocol and size). Each recorded time is scaled to the cell by powers of the ratios of
rows, features, fits and swept values, such as the number of basis vectors; a ridge regression on
all records of the solver gives the powers. The weighted median of the scaled times is the forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmbench.base.paper_folders import papers
from svmbench.report.numbers.summary import FILLED_SHARE, registered_number, value_of
from svmbench.report.reading.records import CellResult, Run
from svmbench.schema.record import CELL_OVERHEAD_S

#: The powers by which a time is taken to grow with each size before records of the solver show it;
#: any other size has the power 0.
USUAL_POWERS = {"rows": 1.5, "features": 0.4, "fits": 0.9, "solver.n_basis": 1.5}
#: The ridge of the regression: the usual powers count as much as records whose logarithms of a size
#: have this sum of squares.
_PRIOR = 2.0
#: The ridge of the number of fits: the time of a cell is nearly proportional to it, and it varies
#: in few records, together with the rows.
_PRIOR_OF_FITS = 20.0
#: The weight of differences between the data sets of a block; those within a data set have 1.
_BETWEEN = 0.2
#: Weights of the differences of log sizes in the distance of two cells: by size, and of any other.
_DISTANCE_WEIGHTS = {"rows": 1.0, "features": 0.3, "fits": 0.7}
_OTHER_DISTANCE_WEIGHT = 0.5
#: Largest number of recorded cells that a forecast uses.
_MAX_NEIGHBOURS = 9


@dataclass(frozen=True)
class Work:
    """The facts of a cell that are known before it runs.

    Attributes
    ----------
    config, block, protocol : str
    solver, kernel : str
        The solver's name in the config; the solvers of a race are joined by ``|``.
    dataset : str
    rows, features, fits : float
        Rows of the data; features of a sample that aren't 0, as a mean, or those that the config
        sweeps; and models that are trained: values of the grid times folds, or those of a sample of
        the values. An unknown number is 0: the forecast does without it. If the rows of a cell of
        the full protocol are unknown, they are NaN: it has no forecast.
    swept : tuple of (str, float)
        Other numbers that the cell has and the config sweeps, by their names, such as
        ``solver.n_basis``.
    """

    config: str
    block: str
    protocol: str
    solver: str
    kernel: str
    dataset: str
    rows: float
    features: float
    fits: float
    swept: tuple[tuple[str, float], ...] = ()

    @cached_property
    def log_sizes(self) -> dict[str, float]:
        """The logarithms of all sizes that are known, by their names."""
        known = {"rows": self.rows, "features": self.features, "fits": self.fits}
        known |= dict(self.swept)
        return {name: math.log(value) for name, value in known.items() if value > 0}


@dataclass(frozen=True)
class Timed:
    """The recorded seconds of some work."""

    work: Work
    seconds: float


class Forecaster:
    """Forecasts of cells' times from some recorded times.

    Parameters
    ----------
    known : iterable of Timed
    """

    def __init__(self, known: Iterable[Timed]) -> None:
        self._of_solver: dict[tuple[str, str], list[Timed]] = {}
        for timed in known:
            solver_and_kernel = (timed.work.solver, timed.work.kernel)
            self._of_solver.setdefault(solver_and_kernel, []).append(timed)
        self._powers: dict[tuple[str, str], Mapping[str, float]] = {}

    def seconds(self, work: Work) -> float | None:
        """Return the forecast seconds of a cell; None if its rows or its solver's time are unknown.

        Parameters
        ----------
        work : Work
        """
        solver = (work.solver, work.kernel)
        candidates = self._of_solver.get(solver) or self._alike(work)
        if not candidates or math.isnan(work.rows):
            return None
        near = sorted(
            ((_distance(timed.work, work), timed) for timed in candidates), key=lambda pair: pair[0]
        )
        near = near[:_MAX_NEIGHBOURS]
        if solver not in self._powers:
            self._powers[solver] = _powers(candidates)
        powers = self._powers[solver]
        return CELL_OVERHEAD_S + _weighted_median(
            [
                (
                    _net(timed.seconds) * _scale(timed.work, work, powers),
                    2.0 ** (near[0][0] - distance),
                )
                for distance, timed in near
            ]
        )

    def _alike(self, work: Work) -> list[Timed]:
        """Return the records of the solvers, or races, that share most solvers with a cell."""
        solvers = set(work.solver.split("|"))
        shares: dict[float, list[Timed]] = {}
        for (solver, kernel), timed in self._of_solver.items():
            others = set(solver.split("|"))
            share = len(solvers & others) / len(solvers | others) - 0.1 * (kernel != work.kernel)
            if solvers & others:
                shares.setdefault(share, []).extend(timed)
        return shares[max(shares)] if shares else []


def timed_cells(run: Run) -> list[Timed]:
    """Return the recorded times of a run.

    Parameters
    ----------
    run : Run
    """
    # Points of a cell share its key and its time.
    cells = {cell.key: cell for cell in run.cells if cell.status == "ok" and cell.wall_s > 0}
    return [Timed(work_of(run, cell), cell.wall_s) for cell in cells.values()]


def work_of(run: Run, cell: CellResult) -> Work:
    """Return the facts of a cell of a run from which its time is forecast.

    Parameters
    ----------
    run : Run
    cell : CellResult
    """
    return _work(run, cell, run.counts.get(cell.block, {}))


def whole_work_of(run: Run, cell: CellResult) -> Work:
    """Return the facts of a cell of a smaller run as they are in the full protocol of its config.

    Parameters
    ----------
    run : Run
        With the counts of the full protocol.
    cell : CellResult
        Of a run of less than the full protocol.
    """
    counts = run.full_counts.get(cell.block, {})
    # A set has its printed rows, or those of a run that took all, or those of its registry entry.
    known = printed_facts(run.paper, cell.dataset)
    max_samples = run.counts.get(cell.block, {}).get("max_samples") or math.inf
    whole = _rows_used(cell) if 0 < _rows_used(cell) < FILLED_SHARE * max_samples else math.nan
    rows = cell.dimensions.get("rows") or known.get("n_samples") or whole
    if math.isnan(rows):
        rows = registered_number(str(cell.dataset), "n_samples") or math.nan
    dimensions = {**cell.dimensions, "rows": min(rows, counts.get("max_samples") or math.inf)}
    return _work(run, replace(cell, dimensions=dimensions), counts)


def _work(run: Run, cell: CellResult, counts: Mapping[str, Any]) -> Work:
    known = printed_facts(run.paper, cell.dataset)
    max_samples = counts.get("max_samples") or math.inf
    rows = (
        cell.dimensions.get("rows")
        or _rows_used(cell)
        or min(max_samples, known.get("n_samples") or 0)
    )
    grids = counts.get("grids", {})
    n_values = {
        name: math.prod(grids.get(name, {}).values()) for name in str(cell.solver).split("|")
    }
    return Work(
        config=run.name,
        block=cell.block,
        protocol=cell.protocol,
        solver=str(cell.solver),
        kernel=str(cell.kernel),
        dataset=str(cell.dataset),
        rows=float(rows),
        features=float(cell.dimensions.get("features") or values_a_row(run.paper, cell.dataset)),
        fits=n_fits(n_values, counts, rows),
        swept=swept_of(cell.dimensions),
    )


def swept_of(dimensions: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the positive numbers that a cell's config sweeps, but rows and features.

    Parameters
    ----------
    dimensions : dict
        Of a cell.
    """
    numbers = {
        name: float(value)
        for name, value in dimensions.items()
        if name not in ("rows", "features") and isinstance(value, int | float) and value > 0
    }
    return tuple(sorted(numbers.items()))


def _rows_used(cell: CellResult) -> float:
    """Return how many rows a cell trained on and predicted, those of a separate test part too."""
    return (value_of(cell, "n_train") or 0.0) + (value_of(cell, "n_test") or 0.0)


def printed_facts(paper: str, dataset: str | None) -> Mapping[str, Any]:
    """Return the printed rows and features of a data set in a paper; empty if none are printed.

    Parameters
    ----------
    paper : str
    dataset : str or None
    """
    folder = papers().get(paper)
    sets = folder.datasets if folder is not None else {}
    name = str(dataset)
    return sets.get(name) or sets.get(name.partition("+")[0]) or {}


def values_a_row(paper: str, dataset: str | None) -> float:
    """Return how many values of a sample aren't 0, as a mean; 0 if its features are unknown.

    Parameters
    ----------
    paper : str
    dataset : str or None
    """
    name = str(dataset).partition("+")[0]  # without its parts
    printed = printed_facts(paper, dataset).get("n_features")
    n_features = float(printed or registered_number(name, "n_features"))
    return n_features * (registered_number(name, "density") or 1.0)


def n_fits(n_values: Mapping[str, int], counts: Mapping[str, Any], rows: float) -> float:
    """Return how many models a cell trains on all rows: values of its solvers' grids times folds.

    Where a sample of the values is drawn, each solver trains the drawn ones and those before them.

    Parameters
    ----------
    n_values : dict of str to int
        By solver, the number of points of its grid.
    counts : dict
        Of the cell's block, as in ``plan.json``.
    rows : float
        Of the data set.
    """
    # Older plans have `draws` as "points", and `neighbour_pairs` as "runs".
    if n_draws := _at_rows(counts.get("draws") or counts.get("points", {}), rows):
        return float(len(n_values) * n_draws * (1 + counts.get("before", 0)))
    # Pairs of neighbouring values stand for a longer grid.
    n_pairs = _at_rows(counts.get("neighbour_pairs") or counts.get("runs", {}), rows)
    most = 2 * n_pairs or math.inf
    # Where a fast solver searches the grid, the cell's own solver is trained at one point alone.
    chosen = counts.get("choose_with") or ()
    values = float(sum(1 if name in chosen else min(n, most) for name, n in n_values.items()))
    # A search on a sample of the rows costs that share of it, beside the fit at the best point.
    n_sampled = counts.get("choose_rows") or rows
    if not chosen and n_sampled < rows:
        values = values * n_sampled / rows + len(n_values)
    folds = counts.get("inner_folds") or counts.get("folds") or 1
    return values * folds * (counts.get("gammas") or 1)


def _at_rows(numbers: Mapping[Any, int], rows: float) -> int:
    """Return the number that a setting by the least number of rows gives; 0 if it has none."""
    by_rows = {int(least): number for least, number in numbers.items()}
    least = max((least for least in by_rows if least <= rows), default=min(by_rows, default=0))
    return by_rows.get(least, 0)


def _net(seconds: float) -> float:
    """Return the seconds of a cell's protocol alone."""
    return max(seconds - CELL_OVERHEAD_S, 0.05 * seconds)


def _logs(work: Work, other: Work) -> dict[str, float]:
    """Return the logarithms of the ratios of the sizes that both have, by their names."""
    sizes, other_sizes = work.log_sizes, other.log_sizes
    return {name: other_sizes[name] - sizes[name] for name in sizes.keys() & other_sizes.keys()}


def _distance(known: Work, work: Work) -> float:
    """Return how far a recorded cell is from a cell: each further 1 halves its weight."""
    return (
        2.0 * (known.dataset != work.dataset)
        + 1.5 * (known.protocol != work.protocol)
        + 1.0 * (known.config != work.config)
        + 0.5 * (known.block != work.block)
        + sum(
            _DISTANCE_WEIGHTS.get(name, _OTHER_DISTANCE_WEIGHT) * abs(log)
            for name, log in _logs(work, known).items()
        )
    )


def _scale(known: Work, work: Work, powers: Mapping[str, float]) -> float:
    return math.exp(
        sum(powers.get(name, 0.0) * log_ratio for name, log_ratio in _logs(known, work).items())
    )


def _powers(cells: Sequence[Timed]) -> dict[str, float]:
    """Fit the powers by which a solver's time grows with its sizes, and return them by name.

    Differences of size within one data set of a block count fully. Data sets differ in more than
    their sizes, so differences between data sets count less. A size that doesn't vary has its
    usual power.
    """
    names = sorted({name for timed in cells for name in timed.work.log_sizes})
    usual = np.array([USUAL_POWERS.get(name, 0.0) for name in names])
    of_block: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
    for timed in cells:
        work, sizes = timed.work, timed.work.log_sizes
        point = [*(sizes.get(name, math.nan) for name in names), math.log(_net(timed.seconds))]
        of_set = of_block.setdefault((work.config, work.block), {})
        of_set.setdefault(work.dataset, []).append(point)
    products, squares = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for sets in of_block.values():
        tables = [np.array(points) for points in sets.values()]
        means = np.array([_known_mean(table) for table in tables])
        for table, weight in [*((table, 1.0) for table in tables), (means, _BETWEEN)]:
            away = np.nan_to_num(table - _known_mean(table))
            products += weight * away[:, :-1].T @ (away[:, -1] - away[:, :-1] @ usual)
            squares += weight * away[:, :-1].T @ away[:, :-1]
    ridge = np.diag([_PRIOR_OF_FITS if name == "fits" else _PRIOR for name in names])
    fitted = usual + np.linalg.solve(squares + ridge, products)
    return {name: min(max(power, -1.0), 3.0) for name, power in zip(names, fitted, strict=True)}


def _known_mean(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each column's known values; NaN where none is known."""
    is_known = ~np.isnan(table)
    counts = is_known.sum(axis=0)
    sums = np.where(is_known, table, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    half, so_far = sum(weight for _, weight in pairs) / 2.0, 0.0
    for value, weight in sorted(pairs):
        so_far += weight
        if so_far >= half:
            return value
    return 0.0
