"""Measure the margin of a time that was measured once, from kept times that were repeated.

    python scripts/single_times.py [--check]

Claims take a single time to lie within this share of what repeats would give
(``svmbench.report.numbers.estimates``). It is the 95 % quantile, over all kept fits with repeats,
of twice the kept spread over the time: the interquartile range of the repeats, relative to their
median. Each run counts alike, however many fits it has. Shorter fits vary more, so that times
below ``SHORTEST_SINGLE_S`` count neither here nor there. ``--check`` fails where kept records say
something else than the code's constants.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from svmbench.papers.judging import gather_evidence
from svmbench.report.numbers.estimates import (
    N_REPEATED_TIMES,
    SHORTEST_SINGLE_S,
    SINGLE_TIME_MARGIN,
    estimate,
)

RESULTS = Path(__file__).resolve().parents[1] / "results"
METRIC = "cpu_time_s"


def relative_spreads(results: Path) -> list[list[float]]:
    """Return twice the spread over the median of the kept times with repeats, by run."""
    seen = set()
    by_run: dict[Path, list[float]] = {}
    for sources in gather_evidence([results], only_kept=True).sources.values():
        for run, cell in ((source.run, cell) for source in sources for cell in source.cells):
            found = estimate([cell], METRIC)
            name = cell.key, cell.solver
            if found is None or found.spread is None or found.n > 1 or name in seen:
                continue
            seen.add(name)
            if found.value >= SHORTEST_SINGLE_S:
                by_run.setdefault(run.path, []).append(2.0 * found.spread / found.value)
    return list(by_run.values())


def main() -> int:
    """Print the number of kept times with repeats, and the margin."""
    by_run = relative_spreads(RESULTS)
    spreads = np.concatenate(by_run)
    weights = np.repeat([1.0 / len(run) for run in by_run], list(map(len, by_run)))
    median, margin = np.quantile(spreads, [0.5, 0.95], weights=weights, method="inverted_cdf")
    print(
        f"{len(spreads)} times with repeats, of {len(by_run)} runs: "
        f"{margin:.2f} holds 95 %, {median:.2f} half"
    )
    same = len(spreads) == N_REPEATED_TIMES and round(float(margin), 2) == SINGLE_TIME_MARGIN
    if "--check" in sys.argv[1:] and not same:
        print(
            "svmbench/report/numbers/estimates.py has other numbers: "
            f"N_REPEATED_TIMES = {N_REPEATED_TIMES}, SINGLE_TIME_MARGIN = {SINGLE_TIME_MARGIN}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
