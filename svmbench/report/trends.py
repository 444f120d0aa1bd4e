"""What a comparison sees over all measurements together, where each alone passes.

Each measurement has a tolerance, for chance to live in. Chance moves some for the better and some
for the worse: where all move the same way, each within its tolerance, that is no chance.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator

#: Fewer measurements than this show no trend.
FEWEST = 4
#: The share of a score's tolerance that the measurements may lose on average.
MEAN_LOSS = 0.25
#: And the share of them that lose at all; half would be chance.
LOSING = 0.75
#: The mean relative growth of a counter (geometric) where the two sides' arithmetic differs.
MEAN_GROWTH = 0.02


class Trends:
    """Collects by how much each measurement moved, in units that can be averaged."""

    def __init__(self) -> None:
        self._losses: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        self._growths: dict[str, list[float]] = defaultdict(list)

    def score(self, name: str, before: float, after: float, loss: float, allowed: float) -> None:
        """Note that a score went from one mean to another; `loss` is in its bad direction."""
        self._losses[name].append((loss / allowed if allowed else 0.0, before, after))

    def counter(self, name: str, before: float, after: float) -> None:
        """Note that a counter went from one value to another."""
        if before > 0 and after > 0:
            self._growths[name].append(math.log(after / before))

    def scores(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield what has become worse as a whole: metric, where, mean before, mean after."""
        for name, moved in self._losses.items():
            shares = [share for share, _, _ in moved]
            losing = sum(share > 0 for share in shares) / len(shares)
            if len(shares) >= FEWEST and statistics.fmean(shares) > MEAN_LOSS and losing >= LOSING:
                before, after = (statistics.fmean(m[i] for m in moved) for i in (1, 2))
                yield name, f"all {len(shares)} measurements together", before, after

    def counters(self) -> Iterator[tuple[str, str, float]]:
        """Yield what has grown as a whole: counter, where, factor."""
        for name, logs in self._growths.items():
            growing = sum(growth > 0 for growth in logs) / len(logs)
            factor = math.exp(statistics.fmean(logs))
            if len(logs) >= FEWEST and factor > 1 + MEAN_GROWTH and growing >= LOSING:
                yield name, f"all {len(logs)} measurements together", factor

    def passed_growth(self) -> tuple[int, int, float]:
        """Return how many counters grew of how many, and the largest factor."""
        logs = [growth for each in self._growths.values() for growth in each]
        grown = [growth for growth in logs if growth > 0]
        return len(grown), len(logs), math.exp(max(grown, default=0.0))
