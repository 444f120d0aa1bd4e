"""What a trivial cell costs through Dask, beside one that runs here.

    python scripts/cluster_cost.py

Runs of the same cells alternate, here and on one Dask worker of this machine. The cost of a cell is
the time between two records; a run's is the median of its cells, and what is printed the median and
range of the runs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml

from svmbench.experiment.session import Request, carry_out, look_ahead

CELLS = 24


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


def cost_ms(config: Path, output: Path, cluster: str) -> float:
    """Return the median time between two records of a run, in milliseconds."""
    clock = Clock()

    @contextmanager
    def watch(_cells: list[Any]) -> Iterator[Clock]:
        yield clock

    carry_out(look_ahead(Request(str(config), output=output, cluster=cluster)), watch=watch)
    return 1e3 * statistics.median(b - a for a, b in zip(clock.at, clock.at[1:], strict=False))


def main(runs: int = 3) -> None:
    """Print both costs and their difference."""
    solvers = [
        {"name": "alsvm-batch", "label": f"a{i}", "params": {"C": 1.0 + i}} for i in range(CELLS)
    ]
    content = {
        "title": "Trivial cells",
        "datasets": ["breast-cancer"],
        "solvers": solvers,
        "blocks": [{"name": "main", "protocol": "fit"}],
        "profiles": {"quick": {}},
    }
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(content))
        costs: dict[str, list[float]] = {"": [], "local:1": []}
        for i in range(runs):
            for place, found in costs.items():
                found.append(cost_ms(config, Path(folder) / f"{i}{place}", place))
    here, there = (statistics.median(found) for found in costs.values())
    for place, found in costs.items():
        name = "through Dask" if place else "here"
        print(f"{name}: {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})")
    print(f"more: {there - here:.0f} ms")


if __name__ == "__main__":
    main()
