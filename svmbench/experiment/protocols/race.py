"""Protocol ``race``: solvers in turn in one process, ratios of CPU time at equal objective.

In each round every solver trains once; ``turns.py`` has the loop and the ratios.

A racer's grid is a *ladder*: each point is one setting, for example of `tol`. The racer's cost is
the CPU time to come within `tolerance` (relative) of the best objective that any solver of its
problem reached: the cost of the first setting that does, interpolated towards the setting before. A
racer that never reaches the target has no ratio, and the record says so. Where the grid has `C`,
each value is a race of its own and the costs are summed; a solver that declares that it shares work
along `C` does the whole grid at once. With ``tolerance: null`` racers run at the settings that the
config gives them, for solvers of different problems, whose objectives can't be compared.

The suite certifies every model of the first round, outside the timed spans (``certified.py``): the
objectives of classes and programs too, and how far each may be from the optimum.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from svmbench.core.contract.problems import ObjectiveId
from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols.certified import (
    ACCURACIES,
    CERTIFIED_METRICS,
    Certificates,
    share_bounds,
)
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of
from svmbench.experiment.protocols.turns import Costs, outcome_of_rounds, take_turns, timed
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import Limit, Repeats

#: C, and the position of a setting in the grid.
Setting = tuple[float, int]


class Race(RaceBlock):
    """Training in turn: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    tolerance : float or None
        Relative difference of objectives that counts as equal; null to compare solvers at the
        settings they are given.
    accuracies : list of float
        Relative gaps. For each gap, the record has the least time of the solver's settings that
        certainly reach it. Default: none.
    train_accuracy : bool
        Also measure, outside the timed spans, the accuracy of each model on its training rows; with
        several settings, that of the tightest one. A one-class model has none.
    """

    repeats: Repeats = 5
    tolerance: Limit | None = 1e-3
    accuracies: list[Limit] = []
    train_accuracy: bool = False


class _Racer:
    """One solver: its prepared data, and the costs and results of each setting."""

    def __init__(self, task: Task, settings: SolverSettings, X: Any, y: np.ndarray) -> None:
        self.name, self.points = settings["shown"], settings["grid"]
        self.certificates = Certificates(self.name, X, task.labels(y))
        self.estimator = task.build(settings)
        # The solver itself: its wrapper for more than two classes declares no problem.
        alone = task.build_alone(settings)
        #: The prefix of its parameters if it is wrapped.
        self.prefix = "" if type(alone) is type(self.estimator) else "estimator__"
        #: The problem it minimises; None for other people's classes that name none.
        self.objective_id: ObjectiveId | None = getattr(alone, "objective_id", None)
        measure.fit_a_few_rows(self.estimator, X, task.labels(y))
        self.data, self.conversion_s, _ = timed(lambda: self.estimator.prepare(X, task.labels(y)))
        C = settings["params"].get("C", 0.0)
        self.settings = [(float(point.get("C", C)), k) for k, point in enumerate(self.points)]
        self.shares_c = (
            "C" in alone.declaration.paths
            and hasattr(self.estimator, "path")
            and len(self.points) > 1
            and all(set(point) == {"C"} for point in self.points)
        )
        self.costs = {setting: Costs() for setting in self.settings}
        self.objectives: dict[Setting, float] = {}
        self.counters: dict[str, int] = {}
        is_scored = task.protocol_settings.get("train_accuracy") and task.labels(y) is not None
        #: The rows on which models are scored, if they are.
        self.scored_on = (X, y) if is_scored else None
        self.accuracies: dict[Setting, float] = {}

    def run(self) -> None:
        """Train every setting once."""
        if self.shares_c:
            values = [C for C, _ in self.settings]
            models, wall, cpu = timed(
                lambda: [p.solution for p in self.estimator.path(self.data, None, "C", values)]
            )
            for setting, model in zip(self.settings, models, strict=True):
                # The settings share the cost of the path in equal parts.
                self.costs[setting].add(cpu / len(values), wall / len(values))
                self._enter(setting, model)
            return
        for setting, point in zip(self.settings, self.points, strict=True):
            self.estimator.set_params(**{f"{self.prefix}{k}": value for k, value in point.items()})
            self.costs[setting].time(partial(self.estimator.train, self.data))
            self._enter(setting, self.estimator)

    def _enter(self, setting: Setting, model: Any) -> None:
        """Keep a setting's result of the first round, and count its work."""
        if len(self.costs[setting].cpu) > 1:
            return
        model.evaluate_objective(self.data)
        if self.objective_id is not None:
            self.objectives[setting] = float(model.objective_)
        self.certificates.add(setting, model)
        if self.scored_on is not None:
            rows, labels = self.scored_on
            self.accuracies[setting] = 100.0 * float(np.mean(model.predict(rows) == labels))
        # The counters of a path have the work of all its values already.
        before = {} if self.shares_c else self.counters
        self.counters |= {k: before.get(k, 0) + int(n) for k, n in model.counters_.items()}

    def excess(self, setting: Setting, best: dict[float, float]) -> float:
        """Return a setting's relative excess over the best objective of its C."""
        return (self.objectives[setting] - best[setting[0]]) / abs(best[setting[0]])

    def reached(self, best: dict[float, float], tolerance: float) -> list[Setting] | None:
        """Return for each C the first setting within the tolerance; None if one C has none."""
        reached: list[Setting] = []
        for C in best:
            settings = [setting for setting in self.costs if setting[0] == C]
            near = [setting for setting in settings if self.excess(setting, best) <= tolerance]
            if settings and not near:
                return None
            reached += near[:1]
        return reached

    def totals(self, best: dict[float, float], tolerance: float | None) -> np.ndarray | None:
        """Return the CPU and wall seconds of each round, summed over C; None at a missed target.

        Where a looser setting missed the target and the next one met it, the cost of just meeting
        it is interpolated between the two, in log cost against log excess.

        Returns
        -------
        ndarray of shape (2, n_rounds) or None
        """
        seconds = {setting: np.array([cost.cpu, cost.wall]) for setting, cost in self.costs.items()}
        if tolerance is None:
            return np.sum([*seconds.values()], axis=0)
        reached = self.reached(best, tolerance)
        if reached is None:
            return None
        costs = []
        for setting in reached:
            cost = seconds[setting]
            looser = [k for k in seconds if k[0] == setting[0] and k[1] < setting[1]]
            if looser:
                before = max(looser, key=lambda k: k[1])
                above = self.excess(before, best)
                below = max(self.excess(setting, best), 1e-3 * tolerance)
                share = np.log(above / tolerance) / np.log(above / below)
                cost = seconds[before] ** (1 - share) * cost**share
            costs.append(cost)
        return np.sum(costs, axis=0)


@protocol(
    "race",
    settings=Race,
    caption="a race in one process",
    scores=False,
    # All rows are training rows, so that the first two scalings are the same.
    scalings={"outer-fold": ALL_ROWS, "all-rows": ALL_ROWS, "none": UNSCALED},
    cell="all solvers",
    tasks=("binary", "multiclass", "one-class"),
    metrics=(
        *("ratio", "cpu_time_s", "train_time_s", "conversion_time_s", "n_train"),
        *("objective", "train_accuracy_pct", "excess_objective", "objective_difference"),
        *CERTIFIED_METRICS,
        *(f"cpu_time_to_{accuracy}_s" for accuracy in ACCURACIES),
    ),
)
def run_race(task: Task) -> Outcome:
    """Run all racers in turn for `repeats` rounds; report ratios, costs and objectives."""
    spec, inputs = task.spec, inputs_of(task)
    X, y = inputs.whole(), inputs.y
    rows = task.training_rows(np.arange(len(y)), y)
    if len(rows) < len(y):
        X, y = X[rows], y[rows]
    racers = [_Racer(task, settings, X, y) for settings in spec["racers"]]
    take_turns([racer.run for racer in racers], task.protocol_settings["repeats"])
    share_bounds([racer.certificates for racer in racers])
    # The best objective of each C, of the racers that minimise the same.
    best: dict[Any, dict[float, float]] = {racer.objective_id: {} for racer in racers}
    for racer in racers:
        known = best[racer.objective_id]
        for (C, _), value in racer.objectives.items():
            known[C] = min(known.get(C, np.inf), value)
    metrics: dict[str, Any] = {"n_train": len(y)}
    costs: dict[str, dict[str, list[float]]] = {}
    notes: list[str] = []
    tolerance = task.protocol_settings["tolerance"]
    for racer in racers:
        name, target = racer.name, best[racer.objective_id]
        metrics[f"conversion_time_s:{name}"] = racer.conversion_s
        if racer.accuracies:
            tightest = max(racer.accuracies, key=lambda setting: setting[1])
            metrics[f"train_accuracy_pct:{name}"] = racer.accuracies[tightest]
        if target:
            met = list(racer.costs) if tolerance is None else racer.reached(target, tolerance)
            shown = met or [min(racer.objectives, key=lambda k: racer.excess(k, target))]
            metrics[f"excess_objective:{name}"] = max(racer.excess(k, target) for k in shown)
            if len(shown) == 1:
                metrics[f"objective:{name}"] = racer.objectives[shown[0]]
            racer.certificates.report(shown, metrics, notes)
        else:
            racer.certificates.report(list(racer.costs), metrics, notes)
        racer.certificates.report_times(
            task.protocol_settings.get("accuracies", ()), racer.costs, metrics
        )
        if not target and tolerance is not None:
            notes.append(f"{name} has no objective to compare")
            continue
        total = racer.totals(target, tolerance)
        if total is None:
            notes.append(f"{name} did not come within {tolerance:g} of the optimum")
            continue
        costs[name] = Costs(*total.tolist()).metrics()
    objective_ids = {racer.name: racer.objective_id for racer in racers}
    for first, second in spec["pairs"]:
        if objective_ids[first] != objective_ids[second]:
            # Without this None a table would show the difference of the two objectives.
            metrics[f"objective_difference:{first}:{second}"] = None
    counters = {f"{k}:{r.name}": v for r in racers for k, v in r.counters.items()}
    return outcome_of_rounds(task, costs, metrics, counters=counters, stop_reason="; ".join(notes))
