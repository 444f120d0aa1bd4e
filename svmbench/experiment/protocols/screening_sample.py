"""Protocol ``screening-sample``: the costs of paths, from a random sample of their values.

A path of a thousand values by a slow solver takes days. Here a few *draws* are made from all values
of the grid at all gammas, with the config's seed, the same ones for all solvers of the same grid: a
draw is a gamma and a value of the path's parameter, such as nu. (``screening`` defines the other
terms.) At each draw, a solver follows a short path of its own. It starts `before` values earlier on
the grid (or at its first value), so that the drawn value has the neighbours and the carried state
that it has on the whole path; only the drawn value is timed. A QP library starts each value from
nothing, so that without screening it needs no earlier values. Solvers take turns at each draw, and
alternate in going first.

Means over the draws estimate the means over the whole grid. Their intervals are percentiles of
means of draws resampled with replacement (95 % bootstrap). Scores are not recorded: the best one of
a sample is not the best one of the grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.screening import (
    PathsBlock,
    fits_at,
    for_rows,
    gamma_of,
    largest_difference,
    objective_of,
    path_parameter,
    screening_of,
)
from svmbench.experiment.protocols.task import SCALINGS, Outcome, Task, training_and_test
from svmbench.experiment.settings.cells import SolverSettings

#: Number of resamples of a bootstrap interval, and its two percentiles.
RESAMPLES = 10_000
PERCENTILES = (2.5, 97.5)


class ScreeningSample(PathsBlock):
    """A random sample of the values of paths with and without screening.

    The rows that score in the protocol `screening` are left out here too.

    Attributes
    ----------
    draws : dict of int to int
        How many draws are made, by the smallest number of rows that a set must have:
        ``{0: 24, 2500: 8}`` makes 8 on sets of 2,500 rows and more, 24 on smaller sets.
    before : int
        How many values of the grid a short path starts before the drawn one.
    """

    draws: dict[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=3, le=10_000)]] = {0: 24}
    before: Annotated[int, Field(ge=0, le=100)] = 2

    @field_validator("draws")
    @classmethod
    def _for_any_rows(cls, n_draws: dict[int, int]) -> dict[int, int]:
        if 0 not in n_draws:
            msg = "no number of draws for the smallest sets: give one for 0 rows"
            raise ValueError(msg)
        return n_draws


@protocol(
    "screening-sample",
    settings=ScreeningSample,
    caption="random values of paths with and without screening, in turn",
    scalings=SCALINGS,
    cell="all solvers",
    tasks=("binary", "one-class"),
    metrics=(
        *("train_time_s", "cpu_time_s", "screening_ratio_pct", "speedup", "ratio", "off_pct"),
        *("objective_difference", "n_values", "n_train"),
    ),
)
def screening_sample(task: Task) -> Outcome:
    """Time every solver at the drawn values; report means and ratios with bootstrap intervals."""
    X, y, _, _ = training_and_test(task)
    training = X, task.labels(y)
    racers = task.spec["racers"]
    draws = {settings["shown"]: _make_draws(task, settings) for settings in racers}
    measured: dict[str, list[Mapping[str, float]]] = {name: [] for name in draws}
    for number in range(max(map(len, draws.values()))):
        points = {
            f"{settings['shown']} point={number}": settings
            for settings in racers
            if number < len(draws[settings["shown"]])
        }
        # Compared values must come from the same turns: if a point is missing, all run again.
        finished = dict(task.done) if points.keys() <= task.done.keys() else {}
        in_turn = list(points) if number % 2 == 0 else list(points)[::-1]
        for point in in_turn if not finished else ():
            settings = points[point]
            finished[point] = _measure(task, settings, draws[settings["shown"]][number], training)
            task.emit(point, finished[point])
        for point, settings in points.items():
            measured[settings["shown"]].append(finished[point]["metrics"])
    return _outcome(task, measured, len(y))


class Draw(NamedTuple):
    """A gamma (None: that of the solver's parameters), and the position of a value in the grid."""

    gamma: float | None
    position: int


def _make_draws(task: Task, settings: SolverSettings) -> list[Draw]:
    n_draws = for_rows(task, "draws")
    grid, gammas = settings["grid"], task.protocol_settings["gammas"] or [None]
    candidates = [Draw(gamma, position) for gamma in gammas for position in range(len(grid))]
    random = np.random.default_rng(task.seed("sample", len(grid)))
    chosen = random.choice(len(candidates), size=min(n_draws, len(candidates)), replace=False)
    return [candidates[i] for i in chosen]


def _measure(
    task: Task, settings: SolverSettings, draw: Draw, training: tuple[Any, Any]
) -> dict[str, Any]:
    """Follow a solver's short path to one draw; return the point."""
    kernel = gamma_of(task, settings, draw.gamma)
    build = partial(task.build, settings, **kernel)
    drawn = settings["grid"][draw.position]
    model = build(**drawn)
    parameters = model.get_params()
    screens = parameters.get("screen", "none") != "none"
    # A solver that screens, or starts from the last solution, needs the values before.
    needs_earlier = screens or not str(parameters.get("solver")).startswith("qp")
    n_before = task.protocol_settings["before"] if path_parameter(model, drawn) else 0
    begin = max(0, draw.position - n_before) if needs_earlier else draw.position
    *_, fit = fits_at(build, settings["grid"][begin : draw.position + 1], training)
    n_screened, is_unscreened = screening_of(fit.model)
    metrics = {
        "wall_s": fit.wall_s,
        "cpu_s": fit.cpu_s,
        "objective": objective_of(fit.model),
        "screens": float(screens),
        "off": float(is_unscreened),
        "screened_share": n_screened / training[0].shape[0],
    }
    params = {**drawn, **kernel}
    return {"params": params, "metrics": metrics, "counters": {}, "undefined": {}}


def _outcome(
    task: Task, measured: Mapping[str, list[Mapping[str, float]]], n_train: int
) -> Outcome:
    columns = {
        name: {key: np.array([point[key] for point in points]) for key in points[0]}
        for name, points in measured.items()
    }
    metrics: dict[str, Any] = {"n_train": n_train}
    spread: dict[str, Any] = {}

    def add(metric: str, numerator: np.ndarray, denominator: np.ndarray | None = None) -> None:
        metrics[metric], spread[metric] = _with_interval(numerator, denominator)

    for name, column in columns.items():
        metrics[f"n_values:{name}"] = len(column["cpu_s"])
        add(f"train_time_s:{name}", column["wall_s"])
        add(f"cpu_time_s:{name}", column["cpu_s"])
        if column["screens"].any():
            add(f"screening_ratio_pct:{name}", 100.0 * column["screened_share"])
            add(f"off_pct:{name}", 100.0 * column["off"])
    for first, second in task.spec["pairs"]:
        a, b = columns[first], columns[second]
        # Costs are compared only if both solvers were timed at equally many draws.
        comparable = len(a["cpu_s"]) == len(b["cpu_s"])
        metrics[f"ratio:{first}:{second}"] = metrics[f"speedup:{first}"] = None
        metrics[f"objective_difference:{first}:{second}"] = None
        if comparable:
            for metric in (f"ratio:{first}:{second}", f"speedup:{first}"):
                add(metric, b["cpu_s"], np.maximum(a["cpu_s"], 1e-9))
            metrics[f"objective_difference:{first}:{second}"] = largest_difference(
                a["objective"], b["objective"]
            )
    return {"metrics": metrics, "spread": spread, "counters": {}, "params": {}, "folds": 1}


def _with_interval(
    numerator: np.ndarray, denominator: np.ndarray | None = None
) -> tuple[float, list[float]]:
    """Return a mean, or a ratio of two means, with its bootstrap interval over the draws."""
    n = len(numerator)
    denominator = np.ones(n) if denominator is None else denominator
    resampled = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    values = numerator[resampled].sum(axis=1) / denominator[resampled].sum(axis=1)
    low, high = np.percentile(values, PERCENTILES)
    return float(numerator.sum() / denominator.sum()), [float(low), float(high)]
