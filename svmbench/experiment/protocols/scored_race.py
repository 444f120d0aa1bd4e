"""Protocol ``scored-race``: solvers in turn in one process, what they cost and what they learnt.

A race compares solvers of one problem at equal objective. Solvers of different problems are
compared by their models: each is trained on the same rows in turn, A B C A B C …, and scored once
on rows that none has seen. A racer's grid is a *ladder* from the cheapest setting on; what it costs
is the first setting whose score (`select_by`) comes within `within` of the best of the `reference`.
A racer that never gets there has no cost and no ratio, and the record says so.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import ALL_ROWS, UNSCALED, Scaled, protocol
from svmbench.experiment.protocols.held_out import kept_rows, testing_part
from svmbench.experiment.protocols.inputs import inputs_of
from svmbench.experiment.protocols.outcomes import compare
from svmbench.experiment.protocols.task import Task
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import Repeats
from svmbench.schema import scores
from svmbench.schema.record import Outcome


class ScoredRace(RaceBlock):
    """Training in turn, and scores on held-out rows: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    test : float
        Share of the rows that is held out; not used where the set has a test part.
    reference : str
        The solver, by the name that tables show, whose score others are to come near; empty where
        every setting is good enough.
    within : float
        How near, in the unit of the score that `select_by` names.
    """

    repeats: Repeats = 3
    test: Annotated[float, Field(gt=0, lt=1)] = 0.2
    reference: str = ""
    within: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the solvers that settings name; see the base class."""
        yield from super().named()
        if self.reference:
            yield ("reference",), self.reference


class _Racer:
    """One solver: its settings in the order of its ladder, what each cost, and how it scored.

    Attributes
    ----------
    cpu, wall : list of list of float
        Seconds of each round, by setting.
    marks : list of (dict, dict)
        Scores of each setting, and the reasons of those without a value.
    """

    def __init__(self, task: Task, settings: SolverSettings, X: Any, y: np.ndarray) -> None:
        self.name, self.points = settings["shown"], settings["grid"]
        self.own = X, task.labels(y)
        self.estimators = [task.build(settings, **point) for point in self.points]
        self.data = []
        start = time.perf_counter()
        for estimator in self.estimators:
            self.data.append(estimator.prepare(*self.own))
        self.conversion_s = (time.perf_counter() - start) / len(self.points)
        self.cpu: list[list[float]] = [[] for _ in self.points]
        self.wall: list[list[float]] = [[] for _ in self.points]
        self.marks: list[tuple[dict[str, float], dict[str, str]]] = []
        self.counters: list[dict[str, int]] = []

    def run(self, wanted: list[str], X_test: Any, y_test: np.ndarray) -> None:
        """Train every setting once; score each the first time."""
        for p, (estimator, data) in enumerate(zip(self.estimators, self.data, strict=True)):
            with measure.quiet():
                start = measure.now()
                estimator.train(data)
                wall, cpu = measure.since(start)
            self.cpu[p].append(cpu)
            self.wall[p].append(wall)
            if len(self.marks) == p:
                exam = scores.Exam(estimator, X_test, y_test, self.own)
                self.marks.append(scores.mark(wanted, exam))
                own = {name: int(count) for name, count in estimator.counters_.items()}
                self.counters.append({"n_iter": int(np.max(estimator.n_iter_)), **own})

    def values(self, score: str) -> list[float]:
        """Return a score of every setting, the larger the better; -inf where it has no value."""
        one = scores.find(score)
        sign = 1.0 if one.better == "higher" else -1.0
        return [
            sign * mark[one.metric] if one.metric in mark else -np.inf for mark, _ in self.marks
        ]

    def first_at(self, score: str, target: float) -> int | None:
        """Return the first setting whose score is at least `target`; None if there is none."""
        return next((p for p, value in enumerate(self.values(score)) if value >= target), None)


@protocol(
    "scored-race",
    settings=ScoredRace,
    caption="a race in one process, scored on held-out rows",
    scalings={
        "outer-fold": Scaled(rows=kept_rows, by=("test", "has_test_part")),
        "all-rows": ALL_ROWS,
        "none": UNSCALED,
    },
    cell="all solvers",
    tasks=("binary", "multiclass", "one-class"),
    metrics=(
        *("ratio", "cpu_time_s", "train_time_s", "conversion_time_s", "n_iter"),
        *("n_train", "n_test"),
    ),
)
def scored_race(task: Task) -> Outcome:
    """Run all racers in turn for `repeats` rounds; report costs, ratios and scores."""
    spec, inputs, own = task.spec, inputs_of(task), task.settings
    kept, X_test, y_test = testing_part(task, inputs)
    rows = task.training_rows(kept, inputs.y)
    X, y = folds.take(inputs.X, rows), inputs.y[rows]
    racers = [_Racer(task, settings, X, y) for settings in spec["racers"]]
    wanted = list(dict.fromkeys([*spec["scores"], spec["select_by"]]))
    for _ in range(own["repeats"]):
        for racer in racers:
            racer.run(wanted, X_test, np.asarray(y_test))
    outcome, costs = _judged(racers, spec["select_by"], own["reference"], own["within"])
    outcome["metrics"] |= {"n_train": len(rows), "n_test": len(y_test)}
    ratios, ranges = compare(spec["pairs"], costs)
    outcome["metrics"] |= ratios
    outcome["spread"] |= ranges
    return outcome


def _judged(
    racers: list[_Racer], select_by: str, reference: str, within: float
) -> tuple[Outcome, dict[str, list[float]]]:
    """Return what each racer scored where it came near the reference, or at its best; its costs."""
    target = -np.inf
    for racer in racers:
        if racer.name == reference:
            target = max(racer.values(select_by)) - within
    outcome: Outcome = {
        "metrics": {}, "spread": {}, "counters": {}, "params": {}, "undefined": {},
        "folds": len(racers[0].cpu[0]),
    }  # fmt: skip
    metrics, costs, notes = outcome["metrics"], {}, []
    for racer in racers:
        name, near = racer.name, racer.first_at(select_by, target)
        # A setting on its own costs what it costs, near or not.
        place = 0 if len(racer.points) == 1 else near
        shown = int(np.argmax(racer.values(select_by))) if place is None else place
        mark, reasons = racer.marks[shown]
        metrics |= {f"{score}:{name}": value for score, value in mark.items()}
        outcome["undefined"] |= {f"{score}:{name}": reason for score, reason in reasons.items()}
        metrics[f"conversion_time_s:{name}"] = racer.conversion_s
        counted = dict(racer.counters[shown])
        metrics[f"n_iter:{name}"] = counted.pop("n_iter")
        outcome["counters"] |= {f"{what}:{name}": count for what, count in counted.items()}
        outcome["params"] |= {f"{what}:{name}": v for what, v in racer.points[shown].items()}
        if near is None:
            notes.append(f"{name} never came within {within:g} of {reference}'s {select_by}")
        if place is None:
            continue
        costs[name] = racer.cpu[place]
        metrics[f"cpu_time_s:{name}"] = statistics.median(costs[name])
        metrics[f"train_time_s:{name}"] = statistics.median(racer.wall[place])
        outcome["spread"][f"cpu_time_s:{name}"] = [min(costs[name]), max(costs[name])]
    outcome["stop_reason"] = "; ".join(notes)
    return outcome, costs
