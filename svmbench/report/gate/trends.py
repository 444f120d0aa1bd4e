"""Find small changes that are regressions when all measurements are taken together.

Each measurement has a tolerance for noise. Noise makes some measurements better and some worse. If
nearly all move in the same direction, even within their tolerances, the change is a regression.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator

from svmbench.report.reading.records import TRAIN_PREFIX

#: Smallest number of measurements for a trend.
MIN_TREND_MEASUREMENTS = 4
#: Largest mean loss of the measurements, as a share of the score's tolerance.
MAX_MEAN_LOSS = 0.25
#: Smallest share of losing measurements in a trend; noise alone gives half.
MIN_LOSING_SHARE = 0.75
#: Largest geometric mean growth of all counters with other arithmetic; 1.009 was measured.
MAX_MEAN_GROWTH = 1.02
#: Largest mean relative growth of all objectives with other arithmetic; 1.2e-4 was measured.
MAX_MEAN_OBJECTIVE_GROWTH = 5e-4
#: Largest geometric mean slowdown of all ratios, as a share of the limit for a single ratio.
MAX_MEAN_SLOWDOWN = 0.3
#: Largest median growth of a wall time over all cells; programs beside a run lengthen many.
MAX_WALL_GROWTH = 6.0
#: This number of ratios is a regression together if each is slower by this share of its limit (in
#: logarithms).
MIN_SLOWER, MIN_SLOWER_SHARE = 3, 0.6
#: Largest share of cells with other chosen parameters; 0 was measured.
MAX_OTHER_PARAMS_SHARE = 0.1


class Trends:
    """Collector of changes of measurements, in units that can be averaged."""

    def __init__(self) -> None:
        self._losses: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        self._growths: list[float] = []
        self._objectives: list[float] = []
        self._slowdowns: list[float] = []
        self._limits: list[float] = []
        self._walls: dict[str, list[float]] = defaultdict(list)
        self._chosen: list[bool] = []

    def add_score(
        self, name: str, before: float, after: float, loss: float, allowed: float
    ) -> None:
        """Add a change of the mean of a score; `loss` is positive for the worse direction."""
        self._losses[name].append((loss / allowed if allowed else 0.0, before, after))

    def add_counter(self, before: float, after: float) -> None:
        """Add a change of a counter."""
        if before > 0 and after > 0:
            self._growths.append(math.log(after / before))

    def add_objective(self, before: float, after: float) -> None:
        """Add a change of an objective."""
        if before:
            self._objectives.append((after - before) / abs(before))

    def add_ratio(self, slower: float, limit: float) -> None:
        """Add the slowdown of a solver relative to its reference, and its limit, as logarithms."""
        self._slowdowns.append(slower)
        self._limits.append(limit)

    def add_wall_time(self, name: str, before: float, after: float) -> None:
        """Add a change of a wall time of a cell."""
        if before > 0:
            self._walls[name].append(after / before)

    def add_params(self, *, are_equal: bool) -> None:
        """Add a cell with equal or different chosen parameters."""
        self._chosen.append(are_equal)

    def worse(self, slowdown: float) -> Iterator[tuple[str, str, str, float, float]]:
        """Yield the regressions of all measurements together: kind, where, what, two values.

        Parameters
        ----------
        slowdown : float
            Largest factor by which a single ratio may be slower, if its own limit isn't larger.
        """
        for name, moved in self._losses.items():
            shares = [share for share, _, _ in moved]
            if _is_trend(shares) and statistics.fmean(shares) > MAX_MEAN_LOSS:
                before, after = (statistics.fmean(m[i] for m in moved) for i in (1, 2))
                yield (
                    kind_of_score(name),
                    f"all {len(shares)} measurements together",
                    name,
                    before,
                    after,
                )
        growth = _mean_factor(self._growths)
        if _is_trend(self._growths) and growth > MAX_MEAN_GROWTH:
            where = f"all {len(self._growths)} counters together"
            yield "counter", where, "share of base", 1.0, growth
        lost = statistics.fmean(self._objectives or [0.0])
        if _is_trend(self._objectives) and lost > MAX_MEAN_OBJECTIVE_GROWTH:
            where = f"all {len(self._objectives)} objectives together"
            yield "objective", where, "share of base", 1.0, 1.0 + lost
        slower = _mean_factor(self._slowdowns)
        single = max(slowdown, _mean_factor(self._limits))
        if len(self._slowdowns) >= MIN_TREND_MEASUREMENTS and slower > 1.0 + MAX_MEAN_SLOWDOWN * (
            single - 1.0
        ):
            where = f"all {len(self._slowdowns)} ratios together"
            yield "time", where, "times slower", 1.0, slower
        elif self._are_several_slower():
            slowest = sorted(self._slowdowns)[-MIN_SLOWER:]
            where = f"{MIN_SLOWER} slowest of {len(self._slowdowns)} ratios together"
            yield "time", where, "times slower", 1.0, _mean_factor(slowest)
        for name, growths in self._walls.items():
            longer = statistics.median(growths)
            if len(growths) >= MIN_TREND_MEASUREMENTS and longer > MAX_WALL_GROWTH:
                yield "time", f"all {len(growths)} cells together", f"{name}, growth", 1.0, longer
        others = self._chosen.count(False)
        if others >= MIN_TREND_MEASUREMENTS and others > MAX_OTHER_PARAMS_SHARE * len(self._chosen):
            where = f"all {len(self._chosen)} cells together"
            yield "params", where, "cells with other parameters", 0, others

    def _are_several_slower(self) -> bool:
        """Return True if several ratios came near their limits, and not as many the other way.

        Ratios beyond their limits are regressions already, each by itself.
        """
        moved = zip(self._slowdowns, self._limits, strict=True)
        shares = sorted(slower / limit for slower, limit in moved if limit)
        if len(shares) < MIN_SLOWER:
            return False
        faster = max(0.0, -shares[MIN_SLOWER - 1])
        return shares[-MIN_SLOWER] <= 1.0 and shares[-MIN_SLOWER] - faster > MIN_SLOWER_SHARE

    def passed_growth(self) -> tuple[int, int, float]:
        """Return the number of grown counters, of all counters, and the largest growth."""
        grown = [growth for growth in self._growths if growth > 0]
        return len(grown), len(self._growths), math.exp(max(grown, default=0.0))


def kind_of_score(score: str) -> str:
    """Return the kind of a change of a score: ``accuracy`` or ``score``."""
    return "accuracy" if score.removeprefix(TRAIN_PREFIX) == "accuracy_pct" else "score"


def _is_trend(moved: list[float]) -> bool:
    """Return True if there are enough measurements and nearly all became worse."""
    return len(moved) >= MIN_TREND_MEASUREMENTS and sum(
        each > 0 for each in moved
    ) >= MIN_LOSING_SHARE * len(moved)


def _mean_factor(logs: list[float]) -> float:
    return math.exp(statistics.fmean(logs or [0.0]))
