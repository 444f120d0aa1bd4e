"""Protocol ``screening``: paths of one parameter at every width of the kernel, solvers in turn.

One cell is a data set and all solvers. At each width every solver follows its own path on the same
rows: one path after the other, which keeps one kernel matrix at a time; or value by value in turn,
where ratios of times are asked for that a drift of the machine must not reach. The time is that of
the path without the kernel matrix (which `prepare` makes), the mean over all values of the grid, as
the SRBO paper has it. Its accuracy is the best over the grid *on the test rows*, which is what that
paper prints: a choice made after the test, so that it says what the grid holds and not what a user
would get. Each solver and width is a point.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import ALL_ROWS, UNSCALED, Scaled, protocol
from svmbench.experiment.protocols.held_out import kept_rows, testing_part
from svmbench.experiment.protocols.inputs import inputs_of
from svmbench.experiment.protocols.task import Outcome, Task
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.schema import scores


class Screening(RaceBlock):
    """Paths with and without screening.

    Attributes
    ----------
    test : float
        Share of the rows that score; not used where the set has a test part.
    gammas : list of float
        Widths of the kernel; empty for the solvers' own.
    turns : {"paths", "values"}
        What solvers take turns at: whole paths, or single values, by which every solver keeps a
        kernel matrix of its own; who goes first alternates.
    """

    test: Annotated[float, Field(gt=0, lt=1)] = 0.2
    gammas: list[Annotated[float, Field(gt=0)]] = []
    turns: Literal["paths", "values"] = "paths"


#: What is summed over the points of a solver, and what is the largest of them.
SUMMED = ("wall_s", "cpu_s", "n_values", "screened", "multipliers", "off", "screens")


@protocol(
    "screening",
    settings=Screening,
    caption="paths with and without screening, in turn",
    scalings={
        "outer-fold": Scaled(rows=kept_rows, by=("test", "has_test_part")),
        "all-rows": ALL_ROWS,
        "none": UNSCALED,
    },
    cell="all solvers",
    tasks=("binary", "one-class"),
    metrics=(
        *("train_time_s", "cpu_time_s", "screening_ratio_pct", "speedup", "ratio", "off_pct"),
        *("objective_difference", "n_values", "n_train", "n_test"),
    ),
)
def screening(task: Task) -> Outcome:
    """Follow every solver's path at every width; report means of times, best scores and ratios."""
    inputs = inputs_of(task)
    kept, *exam = testing_part(task, inputs)
    kept = task.training_rows(kept, inputs.y)
    rows = folds.take(inputs.X, kept), inputs.y[kept]
    totals: dict[str, dict[str, float]] = {}
    objectives: dict[str, list[float]] = {}
    together = task.settings["turns"] == "values"
    for gamma in task.settings["gammas"] or [None]:
        racers = {f"{one['shown']} gamma={gamma}": one for one in task.spec["racers"]}
        missing = [point for point in racers if point not in task.done]
        # Those that are compared ran in turn: where one is missing all run again.
        groups = [list(racers)] if together and missing else [[point] for point in missing]
        fresh: dict[str, _Path] = {}
        for group in groups:
            paths = [_Path(task, racers[point], gamma, rows, (exam[0], exam[1])) for point in group]
            _in_turn(paths)
            for point, own in zip(group, paths, strict=True):
                fresh[point] = own
                task.emit(
                    point,
                    {
                        "params": {"objectives": own.objectives},
                        "metrics": own.found,
                        "counters": {},
                        "undefined": {},
                    },
                )
        for point, settings in racers.items():
            if point in fresh:
                found, values = fresh[point].found, fresh[point].objectives
            else:
                found = dict(task.done[point]["metrics"])
                values = [float(v) for v in task.done[point]["params"]["objectives"]]
            name = settings["shown"]
            objectives.setdefault(name, []).extend(values)
            sums = totals.setdefault(name, {})
            for key, value in found.items():
                joined = (
                    sums.get(key, 0.0) + value
                    if key in SUMMED
                    else max(sums.get(key, value), value)
                )
                sums[key] = joined
    return _outcome(task, totals, objectives, (len(kept), len(exam[1])))


class _Path:
    """One solver's path at one width, taken value by value.

    Attributes
    ----------
    name : str
        As the table shows the solver.
    found : dict of str to float
        Sums, and the best scores, of the values so far.
    objectives : list of float
        At each value.
    """

    def __init__(
        self,
        task: Task,
        settings: Any,
        gamma: float | None,
        rows: tuple[Any, Any],
        exam: tuple[Any, Any],
    ) -> None:
        points = settings["grid"]
        (over,) = points[0] or ("",)
        known = task.build_alone(settings).get_params()
        width = {"gamma": gamma} if gamma is not None and "gamma" in known else {}
        X, y = rows
        self.name = str(settings["shown"])
        self.task, self.exam, self.n = task, exam, len(y)
        self.rows = X, task.labels(y)
        values = [point.get(over) for point in points]
        self.found: dict[str, float] = dict.fromkeys(SUMMED, 0.0)
        self.objectives: list[float] = []
        self._models = _models(task, settings, width, over, values, self.rows)

    def advance(self) -> bool:
        """Take the next value; return whether there was one."""
        solved = next(self._models, None)
        if solved is None:
            return False
        model, wall, cpu = solved
        found = self.found
        found["wall_s"] += wall
        found["cpu_s"] += cpu
        found["n_values"] += 1
        counters = getattr(model, "counters_", {})
        found["screened"] += counters.get("screened_zero", 0) + counters.get("screened_one", 0)
        found["multipliers"] += self.n
        found["off"] += counters.get("unscreened_values", 0)
        found["screens"] += getattr(model, "screening_", "none") != "none"
        exam = scores.Exam(model, *self.exam, self.rows)
        marks, _ = scores.mark(self.task.spec["scores"], exam)
        for metric, value in marks.items():
            found[metric] = max(found.get(metric, value), value)
        self.objectives.append(float(getattr(model, "square_", np.nan)))
        return True


def _in_turn(paths: list[_Path]) -> None:
    """Take every path to its end, a value of each at a time; who goes first alternates."""
    going = list(paths)
    while going:
        going = [path for path in going if path.advance()][::-1]


def _models(
    task: Task,
    settings: Any,
    width: dict[str, Any],
    over: str,
    values: list[Any],
    rows: tuple[Any, Any],
) -> Any:
    """Yield each model with its wall and CPU seconds, without those of the kernel matrix."""
    first = task.build(settings, **width, **({over: values[0]} if over else {}))
    shares = over and over in getattr(first.declaration, "paths", ()) and hasattr(first, "path")
    data = first.prepare(*rows)
    if not shares:
        for value in values:
            model = task.build(settings, **width, **({over: value} if over else {}))
            data = model.prepare(*rows)
            with measure.quiet():
                wall, cpu = time.perf_counter(), time.process_time()
                model.train(data)
                cost = time.perf_counter() - wall, time.process_time() - cpu
            yield model, *cost
        return
    points = first.path(data, None, over, values)
    while True:
        with measure.quiet():
            cpu = time.process_time()
            point = next(points, None)
            cpu = time.process_time() - cpu
        if point is None:
            return
        yield point.solution, point.own_cost_s, cpu


def _outcome(
    task: Task,
    totals: dict[str, dict[str, float]],
    objectives: dict[str, list[float]],
    sizes: tuple[int, int],
) -> Outcome:
    metrics: dict[str, Any] = {"n_train": sizes[0], "n_test": sizes[1]}
    for name, own in totals.items():
        n_values = max(1.0, own["n_values"])
        metrics |= {
            f"train_time_s:{name}": own["wall_s"] / n_values,
            f"cpu_time_s:{name}": own["cpu_s"] / n_values,
            f"n_values:{name}": int(own["n_values"]),
        }
        marks = {key: value for key, value in own.items() if key not in SUMMED}
        metrics |= {f"{key}:{name}": value for key, value in marks.items()}
        if own["screens"]:
            metrics[f"screening_ratio_pct:{name}"] = 100.0 * own["screened"] / own["multipliers"]
            metrics[f"off_pct:{name}"] = 100.0 * own["off"] / n_values
    for first, second in task.spec["pairs"]:
        ratio = totals[second]["cpu_s"] / max(totals[first]["cpu_s"], 1e-9)
        metrics[f"ratio:{first}:{second}"] = metrics[f"speedup:{first}"] = ratio
        pair = np.array([objectives[first], objectives[second]])
        largest = np.maximum(np.abs(pair).max(axis=0), np.finfo(np.float64).tiny)
        apart = np.abs(pair[0] - pair[1]) / largest
        known = apart[np.isfinite(apart)]
        metrics[f"objective_difference:{first}:{second}"] = (
            float(known.max()) if len(known) else None
        )
    return {"metrics": metrics, "spread": {}, "counters": {}, "params": {}, "folds": 1}
