"""Protocol ``screening``: paths of solvers with and without safe screening, in turn.

Terms, here and in ``screening_sample``
    value       A value of the path's parameter, such as nu, in a solver's grid.
    path        The fits of one solver at the values of its grid, in order, at one gamma.
    neighbours  Two consecutive values of a grid.
    draw        A gamma and a value, drawn at random (``screening_sample``).
    point       A part of a cell that is recorded by itself; a killed cell goes on at the first
                missing one. Here: a finished path. In ``screening_sample``: a solver at a draw.
    screened    Multipliers that screening fixed at a bound before the fit.
    unscreened  Values that a solver with screening solved whole: because this was forecast to be
                faster, or because there is no margin. ``off_pct`` is their share.

Three ways to measure paths
    Whole paths   (`neighbour_pairs` is 0): times and screening ratios are means over all values.
    Neighbours    (`neighbour_pairs` above 1), on large sets: some pairs of neighbours, at equal
                  distances, stand for the grid. The first of two neighbours starts from a solution
                  that is many values away, a wider step than on the whole path. So only the second
                  one counts in times and screening ratios; both count in accuracies and objectives.
                  `srbo-descent` forecasts from the last solution and pauses after a test that did
                  not pay, so at neighbours it decides otherwise than on a whole path.
    Draws         ``screening_sample``: a random sample, for solvers that take days for a path.

One cell is a data set and all solvers. At each gamma every solver follows its own path on the same
rows: either one path after the other, which keeps one kernel matrix at a time, or value by value in
turn, so that a drift of the machine doesn't change ratios of times. The time is the mean time of a
value without the kernel matrix (which `prepare` makes), as in the SRBO paper: ``train_time_s`` is
wall time, and ``speedup`` (a ratio under the table's usual name) a ratio of CPU times. The accuracy
is the best over the grid *on the test rows*, as that paper prints it: since it is chosen after the
test, it describes the grid and not the accuracy that a user would get. A value without a margin (w
= 0) has no score and no objective: its decision values are rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, field_validator

from svmbench.core.contract.base import NO_MARGIN
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.task import SCALINGS, Outcome, Share, Task, training_and_test
from svmbench.experiment.protocols.turns import ratios_of, take_turns, timed
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.schema.scores import contract as scores


class PathsBlock(RaceBlock):
    """Settings that this protocol and ``screening-sample`` share.

    Attributes
    ----------
    test : float
        Share of the rows that score; not used where the set has a test part.
    gammas : list of float
        Values of the kernel's gamma; empty for the gamma in each solver's parameters.
    """

    test: Share = 0.2
    gammas: list[Annotated[float, Field(gt=0)]] = []


class Screening(PathsBlock):
    """Paths with and without screening.

    Attributes
    ----------
    turns : {"paths", "values"}
        The unit of a turn: a whole path, or a single value, for which every solver keeps its own
        kernel matrix. Solvers alternate in going first.
    neighbour_pairs : dict of int to int
        How many pairs of neighbours (two consecutive values) are taken from each grid, at equal
        distances, by the smallest number of rows that a set must have: ``{0: 0, 2500: 50}`` takes
        50 pairs, 100 values, on sets of 2,500 rows and more. 0 takes the whole grid; so does a grid
        that has no more values than the pairs would have.
    """

    turns: Literal["paths", "values"] = "paths"
    neighbour_pairs: dict[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0, le=10_000)]] = {
        0: 0
    }

    @field_validator("neighbour_pairs")
    @classmethod
    def _for_any_rows(cls, n_pairs: dict[int, int]) -> dict[int, int]:
        if 0 not in n_pairs:
            msg = "no number of pairs for the smallest sets: give one for 0 rows (0: whole grids)"
            raise ValueError(msg)
        if 1 in n_pairs.values():
            msg = "1 pair of neighbours is no sample of a grid: give 0 (whole grids), or 2 or more"
            raise ValueError(msg)
        return n_pairs


#: Metrics of a point that are summed over a solver's points: times; values, and values that count
#: (all, or the second of two neighbours); of those that count: screened multipliers, all
#: multipliers, unscreened values (recorded as `off`), and values of a solver that screens. Of the
#: other metrics, the scores, the largest value counts.
SUMMED = ("wall_s", "cpu_s", "n_values", "n_counted", "screened", "multipliers", "off", "screens")


@protocol(
    "screening",
    settings=Screening,
    caption="paths with and without screening, in turn",
    scalings=SCALINGS,
    cell="all solvers",
    tasks=("binary", "one-class"),
    metrics=(
        *("train_time_s", "cpu_time_s", "screening_ratio_pct", "speedup", "ratio", "off_pct"),
        *("objective_difference", "n_values", "n_train", "n_test"),
    ),
)
def screening(task: Task) -> Outcome:
    """Follow every solver's path at every gamma; report means of times, best scores and ratios."""
    spec, rows = task.spec, Rows(*training_and_test(task))
    totals: dict[str, dict[str, float]] = {racer["shown"]: {} for racer in spec["racers"]}
    objectives: dict[str, list[float]] = {name: [] for name in totals}
    values_in_turn = task.protocol_settings["turns"] == "values"
    for gamma in task.protocol_settings["gammas"] or [None]:
        racers = {f"{racer['shown']} gamma={gamma}": racer for racer in spec["racers"]}
        points = {point: task.done[point] for point in racers if point in task.done}
        missing = [point for point in racers if point not in points]
        # Compared values must come from the same turns: if a point is missing, all run again.
        groups = [list(racers)] if values_in_turn and missing else [[point] for point in missing]
        for group in groups:
            paths = [_Path(task, racers[point], gamma, rows) for point in group]
            take_turns([path.advance for path in paths], alternate=True)
            for point, path in zip(group, paths, strict=True):
                points[point] = path.point()
                task.emit(point, points[point])
        for point, settings in racers.items():
            name, sums = settings["shown"], totals[settings["shown"]]
            objectives[name] += map(float, points[point]["params"]["objectives"])
            for key, value in points[point]["metrics"].items():
                so_far = sums.get(key, 0.0 if key in SUMMED else value)
                sums[key] = so_far + value if key in SUMMED else max(so_far, value)
    return _outcome(task, totals, objectives, {"n_train": len(rows.y), "n_test": len(rows.y_test)})


class Rows(NamedTuple):
    """The rows of a cell, as ``training_and_test`` returns them."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class Fit(NamedTuple):
    """A model at one value of a path, and its times without the kernel matrix."""

    model: Any
    wall_s: float
    cpu_s: float


class _Path:
    """One solver's path at one gamma, taken value by value, with sums and best scores so far."""

    def __init__(
        self, task: Task, settings: SolverSettings, gamma: float | None, rows: Rows
    ) -> None:
        self.name, self.score_names = settings["shown"], task.spec["scores"]
        self.training = rows.X, task.labels(rows.y)
        self.test = rows.X_test, rows.y_test
        self.totals: dict[str, float] = dict.fromkeys(SUMMED, 0.0)
        self.objectives: list[float] = []
        grid, n_pairs = settings["grid"], for_rows(task, "neighbour_pairs")
        self.is_whole, positions = _positions(len(grid), n_pairs)
        build = partial(task.build, settings, **gamma_of(task, settings, gamma))
        self._fits = fits_at(build, [grid[i] for i in positions], self.training)

    def advance(self) -> bool:
        """Take the next value; return whether there was one."""
        fit = next(self._fits, None)
        if fit is None:
            return False
        model, totals = fit.model, self.totals
        is_second_neighbour = int(totals["n_values"]) % 2 == 1
        totals["n_values"] += 1
        if self.is_whole or is_second_neighbour:
            totals["wall_s"] += fit.wall_s
            totals["cpu_s"] += fit.cpu_s
            totals["n_counted"] += 1
            n_screened, is_unscreened = screening_of(model)
            totals["screened"] += n_screened
            totals["multipliers"] += self.training[0].shape[0]
            totals["off"] += is_unscreened
            totals["screens"] += getattr(model, "screening_", "none") != "none"
        self.objectives.append(objective_of(model))
        if getattr(model, "stop_reason_", "") == NO_MARGIN:
            return True
        metrics, _ = scores.compute_scores(
            self.score_names, scores.Evaluation(model, *self.test, self.training)
        )
        for metric, value in metrics.items():
            totals[metric] = max(totals.get(metric, value), value)
        return True

    def point(self) -> dict[str, Any]:
        """Return the point of the whole path."""
        params = {"objectives": self.objectives}
        return {"params": params, "metrics": self.totals, "counters": {}, "undefined": {}}


def _positions(n: int, n_pairs: int) -> tuple[bool, list[int]]:
    """Return whether all n values of a grid are taken, and the positions of those that are."""
    if n_pairs == 0 or 2 * n_pairs >= n:
        return True, list(range(n))
    starts = np.linspace(0, n - 2, n_pairs).round().astype(int)
    return False, np.unique([starts, starts + 1]).tolist()


def for_rows(task: Task, setting: str) -> int:
    """Return the value of a setting that depends on the number of rows, at the cell's own."""
    by_rows: dict[int, int] = task.protocol_settings[setting]
    return by_rows[max(least for least in by_rows if least <= task.spec["n_rows"])]


def gamma_of(task: Task, settings: SolverSettings, gamma: float | None) -> dict[str, float]:
    """Return a gamma as a parameter of a solver; empty if it has none, or if gamma is None."""
    has_gamma = "gamma" in task.build_alone(settings).get_params()
    return {"gamma": gamma} if gamma is not None and has_gamma else {}


def screening_of(model: Any) -> tuple[int, int]:
    """Return how many multipliers were screened before a fit, and 1 if the value is unscreened."""
    counters = getattr(model, "counters_", {})
    n_screened = counters.get("screened_zero", 0) + counters.get("screened_one", 0)
    return n_screened, counters.get("unscreened_values", 0)


def objective_of(model: Any) -> float:
    """Return alpha'Q alpha, or NaN without a margin, where it is 0 but for rounding.

    Of a nu-SVM or one-class SVM it is twice the minimised dual objective. Of a C-SVM it is
    ||w||^2, without the sum of alpha.
    """
    has_margin = getattr(model, "stop_reason_", "") != NO_MARGIN
    return float(getattr(model, "squared_norm_", np.nan)) if has_margin else np.nan


def largest_difference(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return the largest relative difference of objectives at equal values; None without any."""
    of_both = np.array([first, second])
    largest = np.maximum(np.abs(of_both).max(axis=0), np.finfo(np.float64).tiny)
    difference = np.abs(of_both[0] - of_both[1]) / largest
    difference = difference[np.isfinite(difference)]
    return float(difference.max()) if len(difference) else None


def path_parameter(model: Any, setting: dict[str, Any]) -> str:
    """Return the parameter of a grid's setting if the solver follows its own path, else ""."""
    (parameter,) = setting or ("",)
    return parameter if parameter in model.declaration.paths and hasattr(model, "path") else ""


def fits_at(
    build: Callable[..., Any], grid: list[dict[str, Any]], training: tuple[Any, Any]
) -> Iterator[Fit]:
    """Return the fits at the values of a grid: along the solver's own path, if it has one."""
    first = build(**grid[0])
    if parameter := path_parameter(first, grid[0]):
        values = [setting[parameter] for setting in grid]
        return _fits_along_path(first, parameter, values, training)
    return _separate_fits(build, grid, training)


def _fits_along_path(
    model: Any, parameter: str, values: list[Any], training: tuple[Any, Any]
) -> Iterator[Fit]:
    """Yield the fits of a solver's own path, each of which starts from the last solution."""
    steps = model.path(model.prepare(*training), None, parameter, values)
    while True:
        solved, _, cpu = timed(lambda: next(steps, None))
        if solved is None:
            return
        yield Fit(solved.solution, solved.own_cost_s, cpu)


def _separate_fits(
    build: Callable[..., Any], grid: list[dict[str, Any]], training: tuple[Any, Any]
) -> Iterator[Fit]:
    """Yield a fit at each value, which does not start from the solution of another one."""
    for setting in grid:
        model = build(**setting)
        data = model.prepare(*training)
        _, wall, cpu = timed(partial(model.train, data))
        yield Fit(model, wall, cpu)


def _outcome(
    task: Task,
    totals: dict[str, dict[str, float]],
    objectives: dict[str, list[float]],
    metrics: dict[str, Any],
) -> Outcome:
    for name, sums in totals.items():
        n_counted = max(1.0, sums["n_counted"])
        metrics |= {
            f"train_time_s:{name}": sums["wall_s"] / n_counted,
            f"cpu_time_s:{name}": sums["cpu_s"] / n_counted,
            f"n_values:{name}": int(sums["n_values"]),
        }
        best = {key: value for key, value in sums.items() if key not in SUMMED}
        metrics |= {f"{key}:{name}": value for key, value in best.items()}
        if sums["screens"]:
            metrics[f"screening_ratio_pct:{name}"] = 100.0 * sums["screened"] / sums["multipliers"]
            metrics[f"off_pct:{name}"] = 100.0 * sums["off"] / n_counted
    # The CPU times of all values together: one round, which has no spread.
    cpu = {name: [max(sums["cpu_s"], 1e-9)] for name, sums in totals.items()}
    ratios, _ = ratios_of(task.spec["pairs"], cpu)
    metrics |= ratios
    for first, second in task.spec["pairs"]:
        metrics[f"speedup:{first}"] = ratios[f"ratio:{first}:{second}"]
        metrics[f"objective_difference:{first}:{second}"] = largest_difference(
            objectives[first], objectives[second]
        )
    return {"metrics": metrics, "spread": {}, "counters": {}, "params": {}, "folds": 1}
