"""Protocol ``scored-race``: solvers in turn in one process, compared by costs and scores.

A race compares solvers of one problem at equal objective. Solvers of different problems are
compared by their models: each is trained on the same rows in turn, A B C A B C …, and scored once
on held-out rows. A racer's grid is a *ladder* from the cheapest setting on. Its cost is the cost of
the first setting whose score (`select_by`) is within `within` of the best score of the
`reference`. A racer that never reaches that score has no cost and no ratio, and the record says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.task import SCALINGS, Outcome, Share, Task, training_and_test
from svmbench.experiment.protocols.turns import Costs, outcome_of_rounds, take_turns, timed
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import Repeats
from svmbench.schema.scores import contract as scores


class ScoredRace(RaceBlock):
    """Training in turn, and scores on held-out rows: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    test : float
        Share of the rows that is held out; not used where the set has a test part.
    reference : str
        The solver, by its name in tables, whose score the others have to reach within `within`;
        empty if every setting is good enough.
    within : float
        The allowed difference, in the unit of the score that `select_by` names.
    """

    repeats: Repeats = 3
    test: Share = 0.2
    reference: str = ""
    within: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the solvers that settings name; see the base class."""
        yield from super().named()
        if self.reference:
            yield ("reference",), self.reference


class _Racer:
    """One solver: its settings in the order of its ladder, with their costs and scores."""

    def __init__(self, task: Task, settings: SolverSettings, rows: tuple[Any, ...]) -> None:
        X, y, X_test, y_test = rows
        spec = task.spec
        self.score_names = list(dict.fromkeys([*spec["scores"], spec["select_by"]]))
        self.name, self.points = settings["shown"], settings["grid"]
        self.training, self.test = (X, task.labels(y)), (X_test, y_test)
        self.estimators = [task.build(settings, **point) for point in self.points]
        measure.fit_a_few_rows(self.estimators[0], *self.training)
        self.data, seconds, _ = timed(lambda: [e.prepare(*self.training) for e in self.estimators])
        self.conversion_s = seconds / len(self.points)
        self.costs = [Costs() for _ in self.points]
        #: Scores of each setting, and the reasons of those without a value.
        self.scored: list[tuple[dict[str, float], dict[str, str]]] = []
        self.counters: list[dict[str, int]] = []

    def run(self) -> None:
        """Train every setting once; score each the first time."""
        for p, (estimator, data) in enumerate(zip(self.estimators, self.data, strict=True)):
            self.costs[p].time(partial(estimator.train, data))
            if len(self.scored) == p:
                evaluation = scores.Evaluation(estimator, *self.test, self.training)
                self.scored.append(scores.compute_scores(self.score_names, evaluation))
                counters = {name: int(count) for name, count in estimator.counters_.items()}
                self.counters.append({"n_iter": int(np.max(estimator.n_iter_)), **counters})

    def values(self, score: str) -> list[float]:
        """Return a score of every setting, the larger the better; -inf where it has no value."""
        declared = scores.find(score)
        sign = 1.0 if declared.better == "higher" else -1.0
        return [sign * metrics.get(declared.metric, -sign * np.inf) for metrics, _ in self.scored]


@protocol(
    "scored-race",
    settings=ScoredRace,
    caption="a race in one process, scored on held-out rows",
    scalings=SCALINGS,
    cell="all solvers",
    tasks=("binary", "multiclass", "one-class"),
    metrics=(
        *("ratio", "cpu_time_s", "train_time_s", "conversion_time_s", "n_iter"),
        *("n_train", "n_test"),
    ),
)
def scored_race(task: Task) -> Outcome:
    """Run all racers in turn for `repeats` rounds; report costs, ratios and scores."""
    spec, block_settings = task.spec, task.protocol_settings
    rows = training_and_test(task)
    racers = [_Racer(task, settings, rows) for settings in spec["racers"]]
    take_turns([racer.run for racer in racers], block_settings["repeats"])
    values = {racer.name: racer.values(spec["select_by"]) for racer in racers}
    # Without a reference every setting is good enough.
    target = max(values.get(block_settings["reference"], [-np.inf])) - block_settings["within"]
    metrics: dict[str, Any] = {"n_train": len(rows[1]), "n_test": len(rows[3])}
    counters: dict[str, int] = {}
    params: dict[str, Any] = {}
    undefined: dict[str, str] = {}
    costs, notes = {}, []
    for racer in racers:
        name = racer.name
        near = next((p for p, value in enumerate(values[name]) if value >= target), None)
        # The cost of a single setting counts even if its score is not near the best.
        reached = 0 if len(racer.points) == 1 else near
        shown = int(np.argmax(values[name])) if reached is None else reached
        test_scores, reasons = racer.scored[shown]
        metrics |= {f"{score}:{name}": value for score, value in test_scores.items()}
        undefined |= {f"{score}:{name}": reason for score, reason in reasons.items()}
        metrics[f"conversion_time_s:{name}"] = racer.conversion_s
        counted = dict(racer.counters[shown])
        metrics[f"n_iter:{name}"] = counted.pop("n_iter")
        counters |= {f"{what}:{name}": count for what, count in counted.items()}
        params |= {f"{what}:{name}": v for what, v in racer.points[shown].items()}
        if near is None:
            best = f"{block_settings['reference']}'s {spec['select_by']}"
            notes.append(f"{name} never came within {block_settings['within']:g} of {best}")
        if reached is not None:
            costs[name] = racer.costs[reached].metrics()
    return outcome_of_rounds(
        task,
        costs,
        metrics,
        counters=counters,
        params=params,
        undefined=undefined,
        stop_reason="; ".join(notes),
    )
