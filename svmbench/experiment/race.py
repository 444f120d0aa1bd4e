"""Protocol ``race``: solvers in turn in one process, ratios of CPU time at equal objective.

Absolute times of a shared machine drift by a factor of two within minutes; the ratio of two fits
that ran one after the other does not. So every speed claim of the suite is a race: in each round
every solver trains once, A B C A B C …, and what is reported is the median over rounds of the
ratio of CPU times, with its smallest and largest.

A racer's grid is a *ladder*: each point is one setting (of `tol`, say), and the racer's cost is
that of its cheapest setting whose objective is within `tolerance` (relative) of the best that
any solver of its problem reached. A racer that never gets there has no ratio, and the record says
so. Where the grid has `C`, each value is a race of its own and the costs are summed; a solver that
declares that it shares work along `C` does the whole grid at once. With ``tolerance: null`` racers
run at the settings that the config gives them, for solvers of different problems, whose objectives
can't be compared.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from svmbench.experiment import measure
from svmbench.experiment.folds import take
from svmbench.experiment.protocols import Outcome, Task, inputs_of


class _Racer:
    """One solver in the race: its prepared data and what each setting cost.

    Attributes
    ----------
    name : str
        As the table shows it.
    problem : str
        The problem it minimises: objectives are compared within one problem only.
    costs : dict
        (C, rung) → CPU seconds of each round.
    objectives : dict
        (C, rung) → objective reached.
    """

    def __init__(self, task: Task, settings: dict[str, Any], X: Any, y: np.ndarray) -> None:
        self.settings = settings
        self.name = settings["shown"]
        self.estimator = task.build(settings)
        self.declaration = self.estimator.declaration
        self.problem = self.declaration.problem
        start = time.perf_counter()
        self.data = self.estimator.prepare(X, y)
        self.conversion_s = time.perf_counter() - start
        self.points = settings["grid"]
        self.costs: dict[tuple[float, int], list[float]] = {}
        self.walls: dict[tuple[float, int], list[float]] = {}
        self.objectives: dict[tuple[float, int], float] = {}
        self.counters: dict[str, int] = {}

    def run(self) -> None:
        """Train every setting once."""
        if self._shares_c():
            self._run_path()
            return
        for rung, point in enumerate(self.points):
            estimator = self.estimator.set_params(**point)
            key = (self._c_of(point), rung)
            with measure.quiet():
                cpu, wall = time.process_time(), time.perf_counter()
                estimator.train(self.data)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            self.costs.setdefault(key, []).append(cpu)
            self.walls.setdefault(key, []).append(wall)
            if key not in self.objectives:
                estimator.certify(self.data)
                self.objectives[key] = float(estimator.objective_)
                for name, value in estimator.counters_.items():
                    self.counters[name] = self.counters.get(name, 0) + int(value)

    def _shares_c(self) -> bool:
        return (
            self.declaration.shares == "C" and len(self.points) > 1 and set(self.points[0]) == {"C"}
        )

    def _run_path(self) -> None:
        values = [point["C"] for point in self.points]
        with measure.quiet():
            cpu, wall = time.process_time(), time.perf_counter()
            models = self.estimator.train_path(self.data, values)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        for rung, (C, model) in enumerate(zip(values, models, strict=True)):
            key = (float(C), rung)
            self.costs.setdefault(key, []).append(cpu / len(values))
            self.walls.setdefault(key, []).append(wall / len(values))
            if key not in self.objectives:
                model.certify(self.data)
                self.objectives[key] = float(model.objective_)
                self.counters = {k: int(v) for k, v in model.counters_.items()}

    def _c_of(self, point: dict[str, Any]) -> float:
        return float(point.get("C", self.settings["params"].get("C", 0.0)))

    def chosen(
        self, target: dict[float, float], tolerance: float | None
    ) -> list[tuple[float, int]] | None:
        """Return for each C its cheapest setting that reaches the target; None if one has none."""
        if tolerance is None:
            return list(self.costs)
        keys: list[tuple[float, int]] = []
        for C in dict.fromkeys(key[0] for key in self.costs):
            good = [
                key
                for key in self.costs
                if key[0] == C and self.objectives[key] <= target[C] + tolerance * abs(target[C])
            ]
            if not good:
                return None
            keys.append(min(good, key=lambda k: statistics.median(self.costs[k])))
        return keys

    def total(self, times: dict[tuple[float, int], list[float]], keys: list[Any]) -> list[float]:
        """Return the sum over C of each round."""
        return [sum(times[key][r] for key in keys) for r in range(len(times[keys[0]]))]


def race(task: Task) -> Outcome:
    """Run all racers in turn for `repeats` rounds; report ratios, costs and objectives."""
    spec, inputs = task.spec, inputs_of(task)
    X, y = take(inputs.X, np.arange(len(inputs.y))), inputs.y
    racers = [_Racer(task, settings, X, y) for settings in spec["racers"]]
    for _ in range(spec["repeats"]):
        for racer in racers:
            racer.run()
    best: dict[str, dict[float, float]] = {}
    for racer in racers:
        for (C, _), value in racer.objectives.items():
            known = best.setdefault(racer.problem, {})
            known[C] = min(known.get(C, np.inf), value)
    metrics: dict[str, Any] = {"n_train": len(y)}
    spread: dict[str, Any] = {}
    totals: dict[str, list[float]] = {}
    notes: list[str] = []
    for racer in racers:
        keys = racer.chosen(best[racer.problem], spec["tolerance"])
        metrics[f"conversion_time_s:{racer.name}"] = racer.conversion_s
        reached = keys or list(racer.objectives)[-1:]
        metrics[f"excess_objective:{racer.name}"] = max(
            (racer.objectives[k] - best[racer.problem][k[0]]) / abs(best[racer.problem][k[0]])
            for k in reached
        )
        if len(reached) == 1:
            metrics[f"objective:{racer.name}"] = racer.objectives[reached[0]]
        if keys is None:
            notes.append(f"{racer.name} did not come within {spec['tolerance']:g} of the optimum")
            continue
        totals[racer.name] = racer.total(racer.costs, keys)
        walls = racer.total(racer.walls, keys)
        metrics[f"cpu_time_s:{racer.name}"] = statistics.median(totals[racer.name])
        metrics[f"train_time_s:{racer.name}"] = statistics.median(walls)
        spread[f"cpu_time_s:{racer.name}"] = [min(totals[racer.name]), max(totals[racer.name])]
    for first, second in spec["pairs"]:
        metrics[f"ratio:{first}:{second}"] = None
        if first in totals and second in totals:
            ratios = [b / a for a, b in zip(totals[first], totals[second], strict=True)]
            metrics[f"ratio:{first}:{second}"] = statistics.median(ratios)
            spread[f"ratio:{first}:{second}"] = [min(ratios), max(ratios)]
    return {
        "metrics": metrics,
        "spread": spread,
        "counters": {f"{k}:{r.name}": v for r in racers for k, v in r.counters.items()},
        "params": {},
        "stop_reason": "; ".join(notes),
        "folds": spec["repeats"],
    }
