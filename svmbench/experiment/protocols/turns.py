"""The loop of all races: solvers in turn in one process, and the ratios of their costs.

Absolute times of a shared machine drift by a factor of two within minutes; the ratio of two fits
that ran one after the other does not. So every speed claim of the suite is a race: in each round
every solver takes one turn, A B C A B C …, and the result is the ratio of CPU times: the median
over the rounds, with the smallest and the largest.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols.task import Outcome, Task

T = TypeVar("T")


def take_turns(
    turns: Iterable[Callable[[], object]], rounds: int | None = None, *, alternate: bool = False
) -> None:
    """Call each function once a round, until the rounds are over or every function has ended.

    Parameters
    ----------
    turns : iterable of callable
        One for each solver. A function that returns False has ended and is not called again.
    rounds : int, optional
        Default: until all have ended.
    alternate : bool, default=False
        Whether every second round has the reverse order, A B C C B A.
    """
    going = list(turns)
    for number in itertools.count():
        if not going or number == rounds:
            return
        order = going[::-1] if alternate and number % 2 else going
        ended = [turn for turn in order if turn() is False]
        going = [turn for turn in going if turn not in ended]


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """Call a function; return its result, and its wall and CPU seconds."""
    with measure.quiet():
        start = measure.now()
        result = work()
        wall, cpu = measure.since(start)
    return result, wall, cpu


@dataclass
class Costs:
    """CPU and wall seconds of one solver, or of one of its settings, in each round."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def time(self, work: Callable[[], T]) -> T:
        """Call a function and keep its seconds; return its result."""
        result, wall, cpu = timed(work)
        self.add(cpu, wall)
        return result

    def add(self, cpu: float, wall: float) -> None:
        """Keep the seconds of one more round."""
        self.cpu.append(cpu)
        self.wall.append(wall)

    def metrics(self) -> dict[str, list[float]]:
        """Return the seconds by the names of the metrics that report them."""
        return {"cpu_time_s": self.cpu, "train_time_s": self.wall}


def outcome_of_rounds(
    task: Task,
    costs: Mapping[str, Mapping[str, Sequence[float]]],
    metrics: Mapping[str, Any],
    **more: Any,
) -> Outcome:
    """Return a race's outcome: medians of costs, the range of CPU times, ratios of the pairs.

    Parameters
    ----------
    task : Task
        Its block has `repeats`.
    costs : mapping of str to mapping of str to sequence of float
        Seconds of each round, by the solver's name and the metric. ``cpu_time_s`` must be among
        the metrics. A solver that has no cost, since it missed the target, is left out.
    metrics : mapping
        The other metrics of the race.
    **more
        Other fields of the outcome; ``spread`` can't be.
    """
    all_metrics: dict[str, Any] = dict(metrics)
    spread: dict[str, Any] = {}
    for name, columns in costs.items():
        medians = {metric: statistics.median(seconds) for metric, seconds in columns.items()}
        all_metrics |= {f"{metric}:{name}": median for metric, median in medians.items()}
        spread[f"cpu_time_s:{name}"] = [min(columns["cpu_time_s"]), max(columns["cpu_time_s"])]
    cpu = {name: columns["cpu_time_s"] for name, columns in costs.items()}
    ratios, ranges = ratios_of(task.spec["pairs"], cpu)
    outcome: Outcome = {"metrics": all_metrics | ratios, "spread": spread | ranges, "counters": {}}
    folds = task.protocol_settings["repeats"]
    return {**outcome, "params": {}, "stop_reason": "", "folds": folds, **more}  # type: ignore[typeddict-item]


def ratios_of(
    pairs: Iterable[Sequence[str]], costs: Mapping[str, Sequence[float]]
) -> tuple[dict[str, float | None], dict[str, list[float]]]:
    """Return the ratio of each pair, the median over the rounds, and its smallest and largest.

    Parameters
    ----------
    pairs : iterable of (str, str)
        A ratio is the cost of the second over that of the first.
    costs : mapping of str to sequence of float
        Seconds of each round. If a solver of a pair has none, the pair's ratio is None.
    """
    ratios: dict[str, float | None] = {}
    spread: dict[str, list[float]] = {}
    for first, second in pairs:
        name = f"ratio:{first}:{second}"
        ratios[name] = None
        if first in costs and second in costs:
            by_round = [b / a for a, b in zip(costs[first], costs[second], strict=True)]
            ratios[name] = statistics.median(by_round)
            spread[name] = [min(by_round), max(by_round)]
    return ratios, spread
