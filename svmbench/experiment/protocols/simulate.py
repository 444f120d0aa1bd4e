"""Protocol ``simulate``: the frequency with which a solver's random draws hit a good candidate.

A solver that examines m random samples instead of all is claimed to find one of the lowest few with
a known probability. This protocol repeats the solver's own draws many times around a trained model,
for each m of the grid, and reports the frequency of a hit beside the claimed probability.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from scipy.stats import beta, hypergeom

from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED
from svmbench.experiment.protocols.task import Task, inputs_of
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.experiment.settings.values import Repeats
from svmbench.schema.record import Outcome


class Simulate(TrainingBlock):
    """Draws of a solver around its model: one cell a solver, a point for each m of its grid.

    Attributes
    ----------
    repeats : int
        Draws for each m.
    top : float
        The share of the samples outside the active set that counts as a hit: those of the lowest
        scores.
    """

    repeats: Repeats = 100_000
    top: Annotated[float, Field(gt=0, lt=1)] = 0.05


@protocol(
    "simulate",
    settings=Simulate,
    caption="draws around a trained model",
    scores=False,
    # All rows are training rows, so that the first two scalings are the same.
    scalings={"outer-fold": ALL_ROWS, "all-rows": ALL_ROWS, "none": UNSCALED},
    grid="one parameter",
    tasks=("one-class",),
    metrics=(
        *("hit_pct", "hit_low_pct", "hit_high_pct", "claimed_pct", "expected_pct"),
        *("n_train", "n_outside", "n_points", "n_draws"),
    ),
)
def simulate(task: Task) -> Outcome:
    """Train at each value of the grid, draw around the model, count the hits."""
    spec, inputs, settings = task.spec, inputs_of(task), task.protocol_settings
    rows = task.training_rows(np.arange(len(inputs.y)), inputs.y)
    X, y = inputs.whole()[rows], inputs.y[rows]
    (over,) = spec["grid"][0]
    for point in spec["grid"]:
        estimator = task.build(**point)
        if not hasattr(estimator, "candidates"):
            raise ValueError(f"{spec['name']} draws no candidates, so there is nothing to simulate")
        name, m = f"{over}={point[over]}", int(point[over])
        if name in task.done:
            continue
        data = estimator.prepare(X, task.labels(y))
        draws = estimator.train(data).candidates(data)
        metrics = _frequency(draws, m, int(settings["repeats"]), float(settings["top"]))
        counters = {name: int(count) for name, count in estimator.counters_.items()}
        dimensions = {f"solver.{over}": point[over]}
        task.emit(
            name,
            {"params": point, "dimensions": dimensions, "metrics": metrics, "counters": counters},
        )
    return {
        "metrics": {
            "n_train": len(rows),
            "n_points": len(spec["grid"]),
            "n_draws": int(settings["repeats"]),
        },
        "spread": {}, "counters": {}, "params": {},
    }  # fmt: skip


def _frequency(draws: Any, m: int, trials: int, top: float) -> dict[str, float]:
    """Return the frequency of a hit with its 95 % interval, the claimed and the exact probability.

    Parameters
    ----------
    draws : object
        ``outside``, the samples that are drawn from; ``scores`` of these; ``draw()``, some of them.
    m : int
    trials : int
    top : float
    """
    n = len(draws.outside)
    best = max(1, round(top * n))
    is_top = np.zeros(int(draws.outside.max()) + 1, dtype=bool)
    is_top[draws.outside[np.argsort(draws.scores, kind="stable")[:best]]] = True
    hits = sum(bool(is_top[draws.draw()].any()) for _ in range(trials))
    # Clopper and Pearson's interval: exact, and no shorter than it may be at the ends.
    low = float(beta.ppf(0.025, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, trials - hits)) if hits < trials else 1.0
    return {
        "hit_pct": 100.0 * hits / trials,
        "hit_low_pct": 100.0 * low,
        "hit_high_pct": 100.0 * high,
        "claimed_pct": 100.0 * (1.0 - math.exp(-m * best / n)),
        "expected_pct": 100.0 * float(1.0 - hypergeom.pmf(0, n, best, min(m, n))),
        "n_outside": n,
    }
