"""Protocol ``calls``: what a user waits for, solvers in turn: whole calls, not training alone.

A race times `train`, on inputs that are ready. Here a round times one call of each solver, A B C
A B C …, as the block's `call` (or, for some solvers, `calls`) names it:

- ``train``: the algorithm alone, on inputs in the solver's own format, as a race times it;
- ``fit``: `fit` on arrays, with what it validates, converts and evaluates;
- ``predict``: `predict` on rows that the model has not seen, by a model fitted off the clock;
- ``first-train``, ``first-fit``: the same in a process of its own, whose memory pages are all new,
  after the solver's compiled code was loaded and called once on a tiny problem;
- ``cold-fit``: `fit` in a process that has imported scikit-learn and nothing else: what the solver
  imports and loads from the code cache counts.

CPU time is that of the process, user and system time also apart.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from svmbench.experiment.measuring import clocked, measure
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import ALL_ROWS, UNSCALED, Scaled, protocol
from svmbench.experiment.protocols.held_out import kept_rows, testing_part
from svmbench.experiment.protocols.inputs import inputs_of
from svmbench.experiment.protocols.outcomes import compare
from svmbench.experiment.protocols.task import Outcome, Task
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import MaxSamples, Params, Repeats

Call = Literal["train", "fit", "predict", "first-train", "first-fit", "cold-fit"]

#: Calls that have a process of their own.
APART = ("first-train", "first-fit", "cold-fit")


class Calls(RaceBlock):
    """Whole calls in turn: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    call : str
        What is timed: one of `Call`.
    calls : dict of str to str
        The same for some solvers, by the names that tables show.
    arguments : dict of str to dict
        Keyword arguments of `predict`, by solver.
    test : float
        Share of the rows that is held out; not used where the set has a test part.
    max_test_samples : int
        At most so many rows are predicted, the first ones; 0 for all.
    """

    repeats: Repeats = 5
    call: Call = "fit"
    calls: dict[str, Call] = {}
    arguments: dict[str, Params] = {}
    test: Annotated[float, Field(gt=0, lt=1)] = 0.2
    max_test_samples: MaxSamples = 0

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the solvers that settings name; see the base class."""
        yield from super().named()
        for setting in ("calls", "arguments"):
            for name in getattr(self, setting):
                yield (setting, name), name


class _Caller:
    """One solver, what is called of it, and the seconds of each round.

    Attributes
    ----------
    seconds : list of clocked.Seconds
    """

    def __init__(
        self, task: Task, settings: SolverSettings, X: Any, y: np.ndarray, X_test: Any
    ) -> None:
        own = task.settings
        self.name = settings["shown"]
        self.call: str = own["calls"].get(self.name, own["call"])
        self.arguments = own["arguments"].get(self.name, {})
        self.task, self.settings = task, settings
        self.X, self.y, self.X_test = X, task.labels(y), X_test
        self.seconds: list[clocked.Seconds] = []
        self.estimator: Any = None

    def run(self) -> None:
        """Make the call once."""
        if self.call in APART:
            found = _apart(self._described())
        else:
            with measure.quiet():
                found = clocked.seconds(self._work())
        self.seconds.append(found)

    def objective(self) -> float | None:
        """Return the objective of the last call's model, where it is here and has one."""
        if self.call == "train":
            self.estimator.certify(self.data)
        return getattr(self.estimator, "objective_", None)

    def _work(self) -> Callable[[], Any]:
        """Return what is timed; all that it needs is ready."""
        if self.call == "train":
            if not self.seconds:
                self.estimator = self.task.build(self.settings)
                self.data = self.estimator.prepare(self.X, self.y)
            return lambda: self.estimator.train(self.data)
        if self.call == "predict":
            if not self.seconds:
                self.estimator = clocked.fitted(self._built(), self.X, self.y)
            return lambda: self.estimator.predict(self.X_test, **self.arguments)
        self.estimator = self._built()
        return lambda: clocked.fitted(self.estimator, self.X, self.y)

    def _built(self) -> Any:
        # As a user has it: of more classes than two it takes care itself.
        return self.task.build_alone(self.settings)

    def _described(self) -> dict[str, Any]:
        """Return what a process of its own is told."""
        cls = type(self._built())
        plain = getattr(cls, "wrapped", cls)
        return {
            "call": self.call,
            "solver": self.settings["name"],
            "class": (plain.__module__, plain.__name__),
            "params": self._built().get_params(deep=False),
            "X": self.X,
            "y": self.y,
        }


def _apart(described: dict[str, Any]) -> clocked.Seconds:
    """Return the seconds of a call in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="svmbench-call-") as folder:
        path = Path(folder, "call.pickle")
        path.write_bytes(pickle.dumps(described, protocol=5))
        done = subprocess.run(
            # Safe of its own folder's names, and without what the package imports.
            [sys.executable, "-P", clocked.__file__, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env=_with_bytecode(),
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        msg = f"the process of {described['solver']} ended with {done.returncode}: {last}"
        raise RuntimeError(msg)
    return clocked.Seconds(**json.loads(done.stdout))


def _with_bytecode() -> dict[str, str]:
    """Return the environment of a process that keeps the bytecode of what it imports.

    Without it a process compiles the sources of the package anew, which is none of a call's work.
    """
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


@protocol(
    "calls",
    settings=Calls,
    caption="whole calls in turn",
    scalings={
        "outer-fold": Scaled(rows=kept_rows, by=("test", "has_test_part")),
        "all-rows": ALL_ROWS,
        "none": UNSCALED,
    },
    cell="all solvers",
    grid="none",
    tasks=("binary", "multiclass", "one-class"),
    # The clock is this process's, and takes in whatever a call does.
    programs=False,
    metrics=(
        *("ratio", "cpu_time_s", "user_time_s", "system_time_s", "wall_time_s", "objective"),
        *("n_train", "n_test"),
    ),
)
def calls(task: Task) -> Outcome:
    """Make each solver's call in turn for `repeats` rounds; report ratios and costs."""
    spec, own, inputs = task.spec, task.settings, inputs_of(task)
    kept, X_test, y_test = testing_part(task, inputs)
    rows = task.training_rows(kept, inputs.y)
    X, y = folds.take(inputs.X, rows), inputs.y[rows]
    n_test = min(len(y_test), own["max_test_samples"] or len(y_test))
    X_test = folds.take(X_test, np.arange(n_test))
    callers = [_Caller(task, settings, X, y, X_test) for settings in spec["racers"]]
    for _ in range(own["repeats"]):
        for caller in callers:
            caller.run()
    metrics: dict[str, Any] = {"n_train": len(y), "n_test": n_test}
    spread: dict[str, Any] = {}
    costs = {}
    for caller in callers:
        name, found = caller.name, caller.seconds
        costs[name] = [one.cpu for one in found]
        metrics[f"cpu_time_s:{name}"] = statistics.median(costs[name])
        metrics[f"user_time_s:{name}"] = statistics.median(one.user for one in found)
        metrics[f"system_time_s:{name}"] = statistics.median(one.system for one in found)
        metrics[f"wall_time_s:{name}"] = statistics.median(one.wall for one in found)
        objective = caller.objective()
        if objective is not None:
            metrics[f"objective:{name}"] = float(objective)
        spread[f"cpu_time_s:{name}"] = [min(costs[name]), max(costs[name])]
    ratios, ranges = compare(spec["pairs"], costs)
    return {
        "metrics": metrics | ratios,
        "spread": spread | ranges,
        "counters": {},
        "params": {},
        "stop_reason": "",
        "folds": own["repeats"],
    }
