"""What share of a solver's training one of its functions takes: reasons are measured, too.

    python scripts/profile_share.py chunking a9a:4781 \
        svmbench.core.kernel.conjugate_gradient.maximise C=1 gamma=0.05 --output results/smo

Trains once to load what is compiled, then `--repeats` times with the function's own CPU time taken
apart, and prints the median share with its range. With `--output` the line is also entered into
`profile.csv` of that folder, in place of an earlier one of the same measurement.
"""

from __future__ import annotations

import argparse
import csv
import pkgutil
import platform
import statistics
import time
from pathlib import Path
from typing import Any
from unittest import mock

import svmbench
from svmbench.experiment import environment
from svmbench.experiment.yaml_source import parse_value

FIELDS = (
    "solver", "data", "rows", "params", "function", "share_pct", "low_pct", "high_pct",
    "cpu_time_s", "repeats", "cpu", "numpy", "numba", "python",
)  # fmt: skip
IDENTITY = FIELDS[:5]


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("solver")
    parser.add_argument("data", help="a data set's name; NAME:N for its first N rows")
    parser.add_argument("function", help="dotted name of a function that the training calls")
    parser.add_argument("params", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="folder whose profile.csv takes the line")
    given = parser.parse_args()
    params = {
        name: parse_value(value) for name, _, value in (p.partition("=") for p in given.params)
    }
    name, _, rows = given.data.partition(":")
    dataset = svmbench.load(name)
    kept = int(rows) if rows else len(dataset.y)
    estimator = svmbench.solver(given.solver, **params)
    shares, totals = shares_of(
        estimator, dataset.X[:kept], dataset.y[:kept], given.function, given.repeats
    )
    found = environment.describe(1)
    line = {
        "solver": given.solver,
        "data": name,
        "rows": kept,
        "params": " ".join(sorted(given.params)),
        "function": given.function,
        "share_pct": f"{statistics.median(shares):.1f}",
        "low_pct": f"{min(shares):.1f}",
        "high_pct": f"{max(shares):.1f}",
        "cpu_time_s": f"{statistics.median(totals):.3g}",
        "repeats": given.repeats,
        "cpu": found["cpu"],
        "numpy": found["packages"]["numpy"],
        "numba": found["packages"]["numba"],
        "python": platform.python_version(),
    }
    print(
        f"{line['share_pct']} % ({line['low_pct']}-{line['high_pct']}) of {line['cpu_time_s']} s of"
        f" CPU time in {given.function}"
    )
    if given.output:
        enter(given.output / "profile.csv", line)


def shares_of(
    estimator: Any, X: Any, y: Any, function: str, repeats: int
) -> tuple[list[float], list[float]]:
    """Return the function's share (%) of each training's CPU time, and those times (s)."""
    module, _, attribute = function.rpartition(".")
    home = pkgutil.resolve_name(module)
    original = getattr(home, attribute)
    inside = 0.0

    def timed(*arguments: Any, **named: Any) -> Any:
        nonlocal inside
        start = time.process_time()
        try:
            return original(*arguments, **named)
        finally:
            inside += time.process_time() - start

    data = estimator.prepare(X, y)
    estimator.train(data)
    shares, totals = [], []
    with mock.patch.object(home, attribute, timed):
        for _ in range(repeats):
            inside, start = 0.0, time.process_time()
            estimator.train(data)
            totals.append(time.process_time() - start)
            shares.append(100.0 * inside / totals[-1])
    if not any(shares):
        raise SystemExit(f"{function} was never called through its module while training")
    return shares, totals


def enter(path: Path, line: dict[str, Any]) -> None:
    """Add a line to the CSV, in place of an earlier one of the same measurement."""
    lines = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as stream:
            lines = list(csv.DictReader(stream))
    same = [str(line[field]) for field in IDENTITY]
    lines = [one for one in lines if [one[field] for field in IDENTITY] != same] + [line]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda one: [str(one[field]) for field in IDENTITY]))


if __name__ == "__main__":
    main()
