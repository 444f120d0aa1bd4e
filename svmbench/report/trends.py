"""What a comparison sees over all measurements together, where each alone passes.

Each measurement has a tolerance, for chance to live in. Chance moves some for the better and some
for the worse: where all move the same way, each within its tolerance, that is no chance.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator

from svmbench.report.records import TRAIN

#: Fewer measurements than this show no trend.
FEWEST = 4
#: The share of a score's tolerance that the measurements may lose on average.
MEAN_LOSS = 0.25
#: And the share of them that lose at all; half would be chance.
LOSING = 0.75
#: The mean growth of all counters (geometric) that other arithmetic may cause: measured 1.009.
MEAN_GROWTH = 1.02
#: The same of the mean relative growth of all objectives: measured 1.2e-4.
MEAN_OBJECTIVE_GROWTH = 5e-4
#: The mean slowdown of all ratios (geometric), as a share of what a single ratio may lose.
MEAN_SLOWDOWN = 0.3
#: The share of the cells that may choose other parameters: measured 0.
OTHER_PARAMS = 0.1


class Trends:
    """Collects by how much each measurement moved, in units that can be averaged."""

    def __init__(self) -> None:
        self._losses: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        self._growths: list[float] = []
        self._objectives: list[float] = []
        self._slowdowns: list[float] = []
        self._chosen: list[bool] = []

    def score(self, name: str, before: float, after: float, loss: float, allowed: float) -> None:
        """Note that a score went from one mean to another; `loss` is in its bad direction."""
        self._losses[name].append((loss / allowed if allowed else 0.0, before, after))

    def counter(self, before: float, after: float) -> None:
        """Note that a counter went from one value to another."""
        if before > 0 and after > 0:
            self._growths.append(math.log(after / before))

    def objective(self, before: float, after: float) -> None:
        """Note that an objective went from one value to another."""
        if before:
            self._objectives.append((after - before) / abs(before))

    def ratio(self, before: float, after: float) -> None:
        """Note that a solver went from so many times its reference's speed to so many."""
        self._slowdowns.append(math.log(before / after))

    def params(self, *, are_equal: bool) -> None:
        """Note whether a cell was fitted with the same parameters."""
        self._chosen.append(are_equal)

    def worse(self, slowdown: float) -> Iterator[tuple[str, str, str, float, float]]:
        """Yield what has become worse as a whole: kind, where, what, and its two values.

        Parameters
        ----------
        slowdown : float
            How many times slower a single ratio may be.
        """
        for name, moved in self._losses.items():
            shares = [share for share, _, _ in moved]
            if _is_trend(shares) and statistics.fmean(shares) > MEAN_LOSS:
                before, after = (statistics.fmean(m[i] for m in moved) for i in (1, 2))
                yield kind_of(name), f"all {len(shares)} measurements together", name, before, after
        growth = _mean_factor(self._growths)
        if _is_trend(self._growths) and growth > MEAN_GROWTH:
            where = f"all {len(self._growths)} counters together"
            yield "counter", where, "share of base", 1.0, growth
        lost = statistics.fmean(self._objectives or [0.0])
        if _is_trend(self._objectives) and lost > MEAN_OBJECTIVE_GROWTH:
            where = f"all {len(self._objectives)} objectives together"
            yield "objective", where, "share of base", 1.0, 1.0 + lost
        slower = _mean_factor(self._slowdowns)
        if len(self._slowdowns) >= FEWEST and slower > 1.0 + MEAN_SLOWDOWN * (slowdown - 1.0):
            where = f"all {len(self._slowdowns)} ratios together"
            yield "time", where, "times slower", 1.0, slower
        others = self._chosen.count(False)
        if others >= FEWEST and others > OTHER_PARAMS * len(self._chosen):
            where = f"all {len(self._chosen)} cells together"
            yield "params", where, "cells with other parameters", 0, others

    def passed_growth(self) -> tuple[int, int, float]:
        """Return how many counters grew of how many, and the largest factor."""
        grown = [growth for growth in self._growths if growth > 0]
        return len(grown), len(self._growths), math.exp(max(grown, default=0.0))


def kind_of(score: str) -> str:
    """Return what kind of change one of a score is: accuracies have a name of their own."""
    return "accuracy" if score.removeprefix(TRAIN) == "accuracy_pct" else "score"


def _is_trend(moved: list[float]) -> bool:
    """Whether there are enough measurements, and nearly all of them became worse."""
    return len(moved) >= FEWEST and sum(each > 0 for each in moved) >= LOSING * len(moved)


def _mean_factor(logs: list[float]) -> float:
    return math.exp(statistics.fmean(logs or [0.0]))
