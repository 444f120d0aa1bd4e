"""Time trivial cells that run through Dask, with one and two workers, and cells that run here.

    python results/perf/cluster_cost.py
    python results/perf/cluster_cost.py speedup

Runs of the same cells alternate, here and on one Dask worker of this machine. The cost of a cell is
the time between two records; a run's is the median of its cells, and what is printed the median and
range of the runs. With ``speedup``, a dozen cells of about a second run on one and on two
workers in turn, from the first record to the last but for one cell a worker: what starts them is no
part of it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml

from svmbench.experiment.run.session import Request, execute_run, plan_run

CELLS, LONGER_CELLS = 24, 12


class Clock:
    """A listener that notes when each record was on disk."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def started(self, cell: Any) -> None:
        """Ignore it."""

    def finished(self, cell: Any, record: Any) -> None:
        """Note the time."""
        self.at.append(perf_counter())

    def note(self, text: str) -> None:
        """Say it: nothing is to be noted here."""
        print(text, file=sys.stderr)


def records_at(config: Path, output: Path, cluster: str) -> list[float]:
    """Run a config; return when each record was on disk, in seconds."""
    clock = Clock()

    @contextmanager
    def watch(_cells: list[Any]) -> Iterator[Clock]:
        yield clock

    execute_run(plan_run(Request(str(config), output=output, cluster=cluster)), watch=watch)
    return clock.at


def cost_ms(config: Path, output: Path, cluster: str) -> float:
    """Return the median time between two records of a run, in milliseconds."""
    at = records_at(config, output, cluster)
    return 1e3 * statistics.median(b - a for a, b in pairwise(at))


def rate(config: Path, output: Path, cluster: str) -> float:
    """Return the cells a second of a run, from the first record of its last worker on."""
    at, workers = records_at(config, output, cluster), int(cluster.rpartition(":")[2])
    return (len(at) - workers) / (at[-1] - at[workers - 1])


def config_of(folder: Path, dataset: str, solver: dict[str, Any], cells: int) -> Path:
    """Write a config of fits that differ in C alone."""
    content = {
        "title": "Cells",
        "datasets": [dataset],
        "solvers": [
            {**solver, "label": f"a{i}", "params": {**solver.get("params", {}), "C": 1.0 + i}}
            for i in range(cells)
        ],
        "blocks": [{"name": "main", "protocol": "fit"}],
        "tables": [{"name": "t", "block": "main", "metrics": ["objective"]}],
        "profiles": {"quick": {}},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(content))
    return config


def cost(folder: Path, runs: int) -> None:
    """Print what a trivial cell costs here and through Dask, and the difference."""
    config = config_of(folder, "breast-cancer", {"name": "alsvm-batch"}, CELLS)
    costs: dict[str, list[float]] = {"": [], "local:1": []}
    for i in range(runs):
        for place, found in costs.items():
            found.append(cost_ms(config, folder / f"{i}{place}", place))
    here, there = (statistics.median(found) for found in costs.values())
    for place, found in costs.items():
        name = "through Dask" if place else "here"
        print(f"{name}: {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})")
    print(f"more: {there - here:.0f} ms")


def speedup(folder: Path, runs: int) -> None:
    """Print the cells a second of one and of two workers, and their ratio."""
    solver = {"name": "alsvm", "params": {}}
    config = config_of(folder, "synthetic-20k-100", solver, LONGER_CELLS)
    rates: dict[str, list[float]] = {"local:1": [], "local:2": []}
    for i in range(runs):
        for place, found in rates.items():
            found.append(rate(config, folder / f"{i}{place}", place))
    for place, found in rates.items():
        took = f"{statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})"
        print(f"{place}: {took} cells a second")
    one, two = rates.values()
    ratios = [b / a for a, b in zip(one, two, strict=True)]
    print(f"speed-up: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> None:
    """Measure what is asked for, in a folder that goes with it."""
    measure = speedup if sys.argv[1:] == ["speedup"] else cost
    with tempfile.TemporaryDirectory() as folder:
        print(f"load before: {os.getloadavg()[0]:.1f}")
        measure(Path(folder), 3)
        print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
