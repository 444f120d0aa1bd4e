"""Grow hard problems, and look for a solver that breaks its promise without a warning.

Long rows, moved data, units, repeated rows, weights of classes, tiny and huge C and nu, degenerate
classes: every solver that states a promise (docs/solvers.md) fits those that it can, and its
objective is held against certified bounds of the optimum. Prints a line for each case in which a
solver breaks its promise and says nothing, and ends with code 1 if there is one.

    python scripts/hard_problems.py                        600 problems, at most 10 minutes
    python scripts/hard_problems.py --seed 7 --number 2000 --minutes 60
    python scripts/hard_problems.py --seed 41 --number 1 --solver dcd-l2     one problem again
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "core"))

import grown_problems


def main(arguments: list[str] | None = None) -> int:
    """Grow the problems; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first problem")
    parser.add_argument(
        "--number", type=int, default=600, help="of problems; each has the next seed"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="after which no problem begins")
    parser.add_argument("--solver", action="append", default=[], help="judge this one alone")
    asked = parser.parse_args(arguments)
    begin, n_fits, n_problems, n_silent = time.monotonic(), 0, 0, 0
    for seed in range(asked.seed, asked.seed + asked.number):
        if time.monotonic() - begin > 60.0 * asked.minutes:
            print(f"time is up after {n_problems} of {asked.number} problems", file=sys.stderr)
            break
        fits, found = grown_problems.silent_cases(grown_problems.draw(seed), tuple(asked.solver))
        n_fits, n_problems, n_silent = n_fits + fits, n_problems + 1, n_silent + len(found)
        for line in found:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{n_problems} problems, {n_fits} fits, {n_silent} silent cases beyond a promise")
    return 1 if n_silent else 0


if __name__ == "__main__":
    sys.exit(main())
