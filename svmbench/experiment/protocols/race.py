"""Protocol ``race``: solvers in turn in one process, ratios of CPU time at equal objective.

Absolute times of a shared machine drift by a factor of two within minutes; the ratio of two fits
that ran one after the other does not. So every speed claim of the suite is a race: in each round
every solver trains once, A B C A B C …, and what is reported is the median over rounds of the
ratio of CPU times, with its smallest and largest.

A racer's grid is a *ladder*: each point is one setting (of `tol`, say), and the racer's cost is
what it takes to come within `tolerance` (relative) of the best objective that any solver of its
problem reached: that of its first setting which does, interpolated towards the one before. A racer
that never gets there has no ratio, and the record says so. Where the grid has `C`, each value is a
race of its own and the costs are summed; a solver that declares that it shares work along `C` does
the whole grid at once. With ``tolerance: null`` racers run at the settings that the config gives
them, for solvers of different problems, whose objectives can't be compared.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from svmbench.core.contract.problems import Aim
from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols.declare import ALL_ROWS, UNSCALED, protocol
from svmbench.experiment.protocols.inputs import inputs_of
from svmbench.experiment.protocols.outcomes import compare
from svmbench.experiment.protocols.task import Outcome, Task
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import Limit, Repeats


class Race(RaceBlock):
    """Training in turn: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    tolerance : float or None
        Relative difference of objectives that counts as equal; null to compare solvers at the
        settings they are given.
    """

    repeats: Repeats = 5
    tolerance: Limit | None = 1e-3


class _Racer:
    """One solver in the race: its prepared data and what each setting cost.

    Attributes
    ----------
    name : str
        As the table shows it.
    aim : Aim
        What it minimises: objectives are compared only where problem and offset agree.
    costs : dict
        (C, rung) → CPU seconds of each round.
    objectives : dict
        (C, rung) → objective reached.
    """

    def __init__(self, task: Task, settings: SolverSettings, X: Any, y: np.ndarray) -> None:
        self.settings = settings
        self.name = settings["shown"]
        self.estimator = task.build(settings)
        # Of the solver itself: what wraps it for more classes declares nothing.
        alone = task.build_alone(settings)
        #: What stands before its parameters where it is wrapped.
        self.prefix = "" if type(alone) is type(self.estimator) else "estimator__"
        #: A class of others has no problem, and aims at nothing that could be compared.
        self.declaration, self.aim = alone.declaration, getattr(alone, "aim", None)
        start = time.perf_counter()
        self.data = self.estimator.prepare(X, task.labels(y))
        self.conversion_s = time.perf_counter() - start
        self.points = settings["grid"]
        self.costs: dict[tuple[float, int], list[float]] = {}
        self.walls: dict[tuple[float, int], list[float]] = {}
        self.objectives: dict[tuple[float, int], float] = {}
        self.counters: dict[str, int] = {}
        self.counted: set[tuple[float, int]] = set()

    def run(self) -> None:
        """Train every setting once."""
        if self._shares_c():
            self._run_path()
            return
        for rung, point in enumerate(self.points):
            estimator = self.estimator.set_params(
                **{f"{self.prefix}{name}": value for name, value in point.items()}
            )
            key = (self._c_of(point), rung)
            with measure.quiet():
                start = measure.now()
                estimator.train(self.data)
                wall, cpu = measure.since(start)
            self.costs.setdefault(key, []).append(cpu)
            self.walls.setdefault(key, []).append(wall)
            if key not in self.counted:
                self.counted.add(key)
                estimator.certify(self.data)
                if self.aim is not None:
                    self.objectives[key] = float(estimator.objective_)
                for name, value in estimator.counters_.items():
                    self.counters[name] = self.counters.get(name, 0) + int(value)

    def _shares_c(self) -> bool:
        return (
            "C" in self.declaration.paths
            and hasattr(self.estimator, "path")
            and len(self.points) > 1
            and all(set(point) == {"C"} for point in self.points)
        )

    def _run_path(self) -> None:
        values = [point["C"] for point in self.points]
        with measure.quiet():
            cpu, wall = time.process_time(), time.perf_counter()
            path = self.estimator.path(self.data, None, "C", values)
            models = [point.solution for point in path]
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

    def excess(self, key: tuple[float, int], best: dict[float, float]) -> float:
        """Return how far a setting's objective is above the best of its C, relative to it."""
        return (self.objectives[key] - best[key[0]]) / abs(best[key[0]])

    def reached(self, best: dict[float, float], tolerance: float) -> list[tuple[float, int]] | None:
        """Return for each C the first setting within the tolerance; None if one C has none."""
        keys: list[tuple[float, int]] = []
        for C in best:
            good = [k for k in self.costs if k[0] == C and self.excess(k, best) <= tolerance]
            if C in {k[0] for k in self.costs}:
                if not good:
                    return None
                keys.append(good[0])
        return keys

    def totals(
        self,
        times: dict[tuple[float, int], list[float]],
        best: dict[float, float],
        tolerance: float | None,
    ) -> list[float] | None:
        """Return what each round cost, summed over C; None if the target was missed.

        Where a looser setting missed the target and the next one met it, the cost of just meeting
        it is interpolated between the two, in log cost against log excess.
        """
        if tolerance is None:
            return [sum(column) for column in zip(*times.values(), strict=True)]
        keys = self.reached(best, tolerance)
        if keys is None:
            return None
        rounds = np.zeros(len(times[keys[0]]))
        for key in keys:
            cost = np.asarray(times[key])
            looser = [k for k in times if k[0] == key[0] and k[1] < key[1]]
            if looser:
                before = max(looser, key=lambda k: k[1])
                above = self.excess(before, best)
                below = max(self.excess(key, best), 1e-3 * tolerance)
                share = np.log(above / tolerance) / np.log(above / below)
                cost = np.asarray(times[before]) ** (1 - share) * cost**share
            rounds += cost
        return [float(value) for value in rounds]


@protocol(
    "race",
    settings=Race,
    caption="a race in one process",
    # Every row is a training row, so that the first two are one.
    scalings={"outer-fold": ALL_ROWS, "all-rows": ALL_ROWS, "none": UNSCALED},
    cell="all solvers",
    tasks=("binary", "multiclass", "one-class"),
    metrics=(
        *("ratio", "cpu_time_s", "train_time_s", "conversion_time_s", "n_train"),
        *("objective", "excess_objective", "objective_difference"),
    ),
)
def race(task: Task) -> Outcome:
    """Run all racers in turn for `repeats` rounds; report ratios, costs and objectives."""
    spec, inputs = task.spec, inputs_of(task)
    X, y = inputs.whole(), inputs.y
    rows = task.training_rows(np.arange(len(y)), y)
    if len(rows) < len(y):
        X, y = X[rows], y[rows]
    racers = [_Racer(task, settings, X, y) for settings in spec["racers"]]
    for _ in range(task.settings["repeats"]):
        for racer in racers:
            racer.run()
    best: dict[Aim | None, dict[float, float]] = {}
    for racer in racers:
        for (C, _), value in racer.objectives.items():
            known = best.setdefault(racer.aim, {})
            known[C] = min(known.get(C, np.inf), value)
    metrics: dict[str, Any] = {"n_train": len(y)}
    spread: dict[str, Any] = {}
    totals: dict[str, list[float]] = {}
    notes: list[str] = []
    tolerance = task.settings["tolerance"]
    for racer in racers:
        target = best.get(racer.aim, {})
        metrics[f"conversion_time_s:{racer.name}"] = racer.conversion_s
        can_be_judged = bool(target) or tolerance is None
        cpu = racer.totals(racer.costs, target, tolerance) if can_be_judged else None
        wall = racer.totals(racer.walls, target, tolerance) if can_be_judged else None
        if target:
            met = racer.reached(target, tolerance) if tolerance is not None else list(racer.costs)
            shown = met or [min(racer.objectives, key=lambda key: racer.excess(key, target))]
            metrics[f"excess_objective:{racer.name}"] = max(racer.excess(k, target) for k in shown)
            if len(shown) == 1:
                metrics[f"objective:{racer.name}"] = racer.objectives[shown[0]]
        if cpu is None or wall is None:
            missed = f"did not come within {tolerance:g} of the optimum"
            notes.append(f"{racer.name} {missed if target else 'has no objective to compare'}")
            continue
        totals[racer.name] = cpu
        metrics[f"cpu_time_s:{racer.name}"] = statistics.median(cpu)
        metrics[f"train_time_s:{racer.name}"] = statistics.median(wall)
        spread[f"cpu_time_s:{racer.name}"] = [min(cpu), max(cpu)]
    aims = {racer.name: racer.aim for racer in racers}
    for first, second in spec["pairs"]:
        if aims[first] != aims[second]:
            # Said outright: a table would else take the difference of the two objectives.
            metrics[f"objective_difference:{first}:{second}"] = None
    ratios, ranges = compare(spec["pairs"], totals)
    return {
        "metrics": metrics | ratios,
        "spread": spread | ranges,
        "counters": {f"{k}:{r.name}": v for r in racers for k, v in r.counters.items()},
        "params": {},
        "stop_reason": "; ".join(notes),
        "folds": task.settings["repeats"],
    }
