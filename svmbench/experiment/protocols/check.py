"""Protocol ``check``: a named property over a grid of cases, with counts and counterexamples.

A cell is a data set and a solver, whose grid has one parameter: the cases are its values, on all
rows or on samples of them. Each sample is a point; an interrupted check continues with the
first missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.experiment.settings.values import SampleCount

#: Largest number of counterexamples in a record; all are counted.
MAX_QUOTED_COUNTEREXAMPLES = 5

#: Screening is contradicted if a multiplier differs from its predicted bound by more than this
#: share of the upper bound.
BOUND_TOLERANCE = 1e-5

#: Largest relative difference of two equal objectives.
EQUAL_OBJECTIVES_RTOL = 1e-7

#: Relative duality gap of the reference solutions.
REFERENCE_GAP_RTOL = 1e-10


class Check(TrainingBlock):
    """A property, over the values of a parameter.

    Attributes
    ----------
    property : str
        ``path-is-fits``: every model along the path equals that of a separate fit.
        ``safe-screening`` (solvers on a whole matrix): no screened multiplier contradicts an
        accurate solution without screening, the objectives are equal, and the signs of decision
        values are equal, unless the two gaps leave them open.
    samples : int
        How many random samples of rows replace a data set of more than `whole_up_to` rows; 0 to use
        all rows.
    sample_rows : int
        Rows of a sample, every class in proportion.
    whole_up_to : int
        Largest number of rows of a data set that is used whole.
    """

    property: Literal["path-is-fits", "safe-screening"] = "path-is-fits"
    samples: SampleCount = 0
    sample_rows: Annotated[int, Field(ge=4)] = 2000
    whole_up_to: Annotated[int, Field(ge=0)] = 5000


@dataclass
class Case:
    """The result of one case.

    Attributes
    ----------
    wrong : str
        What contradicts the property, as a sentence; empty if nothing does.
    difference : float
        Relative, of two objectives or of decision values.
    settled, multipliers : int
        How many multipliers were screened, of how many.
    undecided : int
        Decision values that the gaps leave open.
    """

    wrong: str
    difference: float
    settled: int = 0
    multipliers: int = 0
    undecided: int = 0


def path_is_fits(
    task: Task, X: Any, y: np.ndarray | None, over: str, values: list[Any]
) -> Iterator[Case]:
    """Compare each model of a path with a separate fit, by decision values on its rows."""
    model = task.build(**{over: values[0]})
    path_of = getattr(model, "path", None)
    models = (
        [point.solution for point in path_of(model.prepare(X, y), None, over, values)]
        if path_of
        else None
    )
    for position, value in enumerate(values):
        alone = task.build(**{over: value}).fit(X, y)
        on_path = models[position] if models else task.build(**{over: value}).fit(X, y)
        f, g = on_path.decision_function(X), alone.decision_function(X)
        scale = max(float(np.abs(g).max()), np.finfo(np.float64).tiny)
        difference = float(np.abs(f - g).max()) / scale
        # Two solutions within a tolerance are as far apart as its root, at worst.
        allowed = 10.0 * float(np.sqrt(getattr(alone, "tol", 1e-8)))
        wrong = f"decision values differ by {difference:.2g}" if difference > allowed else ""
        yield Case(wrong, difference)


def safe_screening(
    task: Task, X: Any, y: np.ndarray | None, over: str, values: list[Any]
) -> Iterator[Case]:
    """Compare a screened path with accurate solutions that screen nothing."""
    model = task.build(**{over: values[0]})
    if not (hasattr(model, "screen") and hasattr(model, "beside_reference")):
        msg = f"{task.spec['name']} has no screening along {over}"
        raise ValueError(msg)
    data = model.prepare(X, y)
    norms = np.sqrt(np.maximum(data.native.Q.diagonal(), 0.0))
    for problem, truth, step in model.beside_reference(data, values, REFERENCE_GAP_RTOL):
        best, value = problem.value(truth.point), problem.value(step.point)
        a = truth.point.a
        n_wrong = int(
            np.sum(step.at_zero & (a > BOUND_TOLERANCE))
            + np.sum(step.at_one & (a < 1 - BOUND_TOLERANCE))
        )
        apart = max(0.0, abs(value - best) - problem.rounding_gap())
        difference = apart / max(abs(best), np.finfo(np.float64).tiny)
        gaps = [
            max(0.0, problem.gap(p)) + problem.rounding_gap() for p in (truth.point, step.point)
        ]
        band = np.sqrt(2.0 * sum(gaps)) * norms
        clear = (np.abs(truth.point.v) > band) & (np.abs(step.point.v) > band)
        turned = int(np.sum(clear & (truth.point.v * step.point.v < 0.0)))
        reasons = [f"{n_wrong} wrongly screened"] if n_wrong else []
        if difference > EQUAL_OBJECTIVES_RTOL:
            reasons.append(f"objectives {value:.12g} and {best:.12g}")
        reasons += [f"{turned} predictions turned"] if turned else []
        undecided = int(np.sum(~clear))
        yield Case("; ".join(reasons), difference, step.n_screened, len(a), undecided)


PROPERTIES: dict[str, Callable[..., Iterator[Case]]] = {
    "path-is-fits": path_is_fits,
    "safe-screening": safe_screening,
}


@protocol(
    "check",
    settings=Check,
    caption="a property over a grid of cases",
    scores=False,
    scalings={"outer-fold": ALL_ROWS, "all-rows": ALL_ROWS, "none": UNSCALED},
    grid="one parameter",
    tasks=("binary", "one-class"),
    metrics=(
        *("n_cases", "n_wrong", "largest_difference", "screening_ratio_pct", "undecided_pct"),
        *("n_samples", "n_train"),
    ),
)
def check_property(task: Task) -> Outcome:
    """Check the property at every value of the grid, on all rows or on each sample."""
    inputs = inputs_of(task)
    settings, rows = task.protocol_settings, task.training_rows(np.arange(len(inputs.y)), inputs.y)
    whole = not settings["samples"] or len(rows) <= settings["whole_up_to"]
    sums: dict[str, float] = {}
    quoted: list[str] = []
    for number in range(1 if whole else settings["samples"]):
        name = "all rows" if whole else f"sample {number}"
        if name in task.done:
            metrics = dict(task.done[name]["metrics"])
            quoted += list(task.done[name]["params"].values())
        else:
            seed = task.seed("check", number)
            kept = rows if whole else rows[
                folds.subset_rows(inputs.y[rows], settings["sample_rows"], seed)
            ]  # fmt: skip
            metrics, examples = _check_rows(task, inputs, kept, name)
            quoted += examples
            quotes = {f"example {k}": text for k, text in enumerate(examples)}
            task.emit(name, {"params": quotes, "metrics": metrics, "counters": {}, "undefined": {}})
        for key, value in metrics.items():
            sums[key] = max(sums.get(key, 0.0), value) if key == "largest_difference" else (
                sums.get(key, 0.0) + value
            )  # fmt: skip
    multipliers = max(1.0, sums["multipliers"])
    return {
        "metrics": {
            "n_cases": int(sums["n_cases"]),
            "n_wrong": int(sums["n_wrong"]),
            "largest_difference": sums["largest_difference"],
            "screening_ratio_pct": 100.0 * sums["settled"] / multipliers,
            "undecided_pct": 100.0 * sums["undecided"] / multipliers,
            "n_samples": 1 if whole else int(settings["samples"]),
            "n_train": int(sums["n_train"]),
        },
        "spread": {},
        "counters": {},
        "params": {},
        "stop_reason": "; ".join(quoted[:MAX_QUOTED_COUNTEREXAMPLES]) or "no counterexample",
    }


def _check_rows(
    task: Task, inputs: Any, rows: np.ndarray, name: str
) -> tuple[dict[str, float], list[str]]:
    """Return the counts of one sample, and the first counterexamples."""
    X, y = folds.take(inputs.X, rows), task.labels(inputs.y[rows])
    (over,) = task.spec["grid"][0]
    values = [point[over] for point in task.spec["grid"]]
    test = PROPERTIES[task.protocol_settings["property"]]
    cases = list(test(task, X, y, over, values))
    wrong = [(value, case) for value, case in zip(values, cases, strict=True) if case.wrong]
    return {
        "n_cases": len(cases),
        "n_wrong": len(wrong),
        "largest_difference": max(case.difference for case in cases),
        "settled": sum(case.settled for case in cases),
        "multipliers": sum(case.multipliers for case in cases),
        "undecided": sum(case.undecided for case in cases),
        "n_train": len(rows),
    }, [
        f"{name}, {over}={value:g}: {case.wrong}"
        for value, case in wrong[:MAX_QUOTED_COUNTEREXAMPLES]
    ]
