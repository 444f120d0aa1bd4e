"""Protocol ``calls``: times of whole calls as a user makes them, solvers in turn.

A race times `train`, on inputs that are ready. Here a round times one call of each solver, A B C
A B C …, as the block's `call` (or, for some solvers, `calls`) names it:

- ``train``: the algorithm alone, on inputs in the solver's own format, as a race times it;
- ``fit``: `fit` on arrays, with its validation, conversion and evaluation;
- ``predict``: `predict` on rows that the model has not seen, by a model fitted off the clock;
- ``first-train``, ``first-fit``: the same in a process of its own, whose memory pages are all new,
  after the solver's compiled code was loaded and called once on a tiny problem;
- ``cold-fit``: `fit` in a process that has imported scikit-learn and nothing else, so that the time
  includes the solver's imports and loading of cached code.

CPU time is that of the process, user and system time also apart. The models of ``train`` and
``fit`` are certified outside the timed spans, as those of a race (``certified.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from svmbench.experiment.measuring import measure, timed_call
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.certified import CERTIFIED_METRICS, Certificates, share_bounds
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.task import SCALINGS, Outcome, Share, Task, training_and_test
from svmbench.experiment.protocols.turns import outcome_of_rounds, take_turns
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import MaxSamples, Params, Repeats

Call = Literal["train", "fit", "predict", "first-train", "first-fit", "cold-fit"]

#: Calls that are made in a new process.
IN_NEW_PROCESS = ("first-train", "first-fit", "cold-fit")


class Calls(RaceBlock):
    """Whole calls in turn: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    call : str
        The timed call: one of `Call`; :func:`.timed_call.first_call` says what those in a new
        process include.
    calls : dict of str to str
        The same for some solvers, by the names that tables show.
    arguments : dict of str to dict
        Keyword arguments of `predict`, by solver.
    test : float
        Share of the rows that is held out; ignored if the set has a test part.
    max_test_samples : int
        Largest number of predicted rows, which are the first ones; 0 for all.
    """

    repeats: Repeats = 5
    call: Call = "fit"
    calls: dict[str, Call] = {}
    arguments: dict[str, Params] = {}
    test: Share = 0.2
    max_test_samples: MaxSamples = 0

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the solvers that settings name; see the base class."""
        yield from super().named()
        for setting in ("calls", "arguments"):
            for name in getattr(self, setting):
                yield (setting, name), name


class _Caller:
    """One solver, its timed call, and the seconds of each round."""

    def __init__(
        self, task: Task, settings: SolverSettings, X: Any, y: np.ndarray, X_test: Any
    ) -> None:
        block_settings = task.protocol_settings
        self.name = settings["shown"]
        self.call: str = block_settings["calls"].get(self.name, block_settings["call"])
        self.arguments = block_settings["arguments"].get(self.name, {})
        self.task, self.settings = task, settings
        self.X, self.y, self.X_test = X, task.labels(y), X_test
        self.seconds: list[timed_call.Seconds] = []
        self.estimator: Any = None

    def run(self) -> None:
        """Make the call once."""
        if self.call in IN_NEW_PROCESS:
            seconds = timed_call.first_call_in_new_process(self._description())
        else:
            with measure.quiet():
                seconds = timed_call.time_call(self._work())
        self.seconds.append(seconds)

    def objective(self) -> float | None:
        """Return the objective of the last call's model, if the model is here and has one."""
        if self.call == "train":
            self.estimator.evaluate_objective(self.data)
        return getattr(self.estimator, "objective_", None)

    def _work(self) -> Callable[[], Any]:
        """Return the function that is timed, with its inputs ready."""
        if self.call == "train":
            if not self.seconds:
                self.estimator = self.task.build(self.settings)
                self.data = self.estimator.prepare(self.X, self.y)
            return lambda: self.estimator.train(self.data)
        if self.call == "predict":
            if not self.seconds:
                self.estimator = timed_call.fitted(self._build(), self.X, self.y)
            return lambda: self.estimator.predict(self.X_test, **self.arguments)
        self.estimator = self._build()
        return lambda: timed_call.fitted(self.estimator, self.X, self.y)

    def _build(self) -> Any:
        # As a user calls it: the solver itself handles more than two classes.
        return self.task.build_alone(self.settings)

    def _description(self) -> dict[str, Any]:
        """Return the description of the call for a new process."""
        cls = type(self._build())
        plain = getattr(cls, "wrapped", cls)
        return {
            "call": self.call,
            "solver": self.settings["name"],
            "class": (plain.__module__, plain.__name__),
            "params": self._build().get_params(deep=False),
            "X": self.X,
            "y": self.y,
        }


@protocol(
    "calls",
    settings=Calls,
    caption="whole calls in turn",
    scores=False,
    scalings=SCALINGS,
    cell="all solvers",
    grid="none",
    tasks=("binary", "multiclass", "one-class"),
    # The clock counts all that this process does in a call, and no other process.
    programs=False,
    metrics=(
        *("ratio", "cpu_time_s", "user_time_s", "system_time_s", "wall_time_s", "objective"),
        *("n_train", "n_test"),
        *CERTIFIED_METRICS,
    ),
)
def calls(task: Task) -> Outcome:
    """Make each solver's call in turn for `repeats` rounds; report ratios and costs."""
    block_settings = task.protocol_settings
    X, y, X_test, y_test = training_and_test(task)
    n_test = min(len(y_test), block_settings["max_test_samples"] or len(y_test))
    X_test = folds.take(X_test, np.arange(n_test))
    callers = [_Caller(task, settings, X, y, X_test) for settings in task.spec["racers"]]
    take_turns([caller.run for caller in callers], block_settings["repeats"])
    metrics: dict[str, Any] = {"n_train": len(y), "n_test": n_test}
    costs = {}
    for caller in callers:
        costs[caller.name] = {
            "cpu_time_s": [seconds.cpu for seconds in caller.seconds],
            "user_time_s": [seconds.user for seconds in caller.seconds],
            "system_time_s": [seconds.system for seconds in caller.seconds],
            "wall_time_s": [seconds.wall for seconds in caller.seconds],
        }
        objective = caller.objective()
        if objective is not None:
            metrics[f"objective:{caller.name}"] = float(objective)
    notes = _certify(callers, metrics)
    return outcome_of_rounds(task, costs, metrics, stop_reason="; ".join(notes))


#: The calls that leave a trained model in this process.
_TRAINING_CALLS = ("train", "fit")


def _certify(callers: Sequence[_Caller], metrics: dict[str, Any]) -> list[str]:
    """Add the certificates of the models in this process; return notes on claims."""
    certificates = []
    for caller in callers:
        if caller.call in _TRAINING_CALLS:
            certificates.append(Certificates(caller.name, caller.X, caller.y))
            certificates[-1].add(0, caller.estimator)
    share_bounds(certificates)
    notes: list[str] = []
    for certificate in certificates:
        certificate.report([0], metrics, notes)
    return notes
