"""What running itself costs: a plan of many cells, and memory and time of many trivial cells.

    python results/perf/measure_runner.py plan --cells 100000
    python results/perf/measure_runner.py cells --cells 3000
    python results/perf/measure_runner.py reports --cells 100000

``plan`` makes one plan of so many cells and prints what it took. ``cells`` runs so many (a
closed-form solver on sixty rows, at so many values of C), and prints for each tenth of them what
the parent held and what a cell took; it ends with code 1 where the last tenth is not as the second
(the first warms up). ``reports`` writes a run folder of so many records and prints what `table`,
`compare` and `site` take to read it, each in a process of its own. All work in a folder and with a
cache of their own, and leave nothing behind.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from svmbench.experiment.measuring import measure
from svmbench.experiment.plan.planner import prepare_plan
from svmbench.experiment.run import execute, session
from svmbench.experiment.settings.cells import Cell
from svmbench.schema.record import CellRecord

#: Parts of the run that are set beside each other.
N_PARTS = 10
#: How many times the second part's memory and CPU time a cell the last one's may be.
MOST_GROWTH = 1.1, 1.5


def config_of(folder: Path, cells: int) -> Path:
    """Write a config of so many cells: an alsvm at each of as many values of C."""
    solvers = [{"name": "alsvm", "label": f"alsvm-{i}"} for i in range(max(1, cells // 3000))]
    values = [round(0.001 * (i + 1), 3) for i in range(-(-cells // len(solvers)))]
    content = {
        "title": "Trivial cells",
        "datasets": ["breast-cancer[:60]"],
        "solvers": solvers,
        "blocks": [{"name": "main", "protocol": "fit", "sweep": {"solver.C": values}}],
        "tables": [{"name": "t", "block": "main", "rows": "solver.C"}],
        "profiles": {"quick": {}},
    }
    path = folder / "cells.yaml"
    path.write_text(yaml.safe_dump(content, default_flow_style=True))
    return path


def held_mb() -> float:
    """Return the anonymous memory of this process, MiB."""
    return measure.status_bytes()["RssAnon"] / 2**20


@dataclass
class Meter:
    """A listener that prints, for each part of the cells, what the parent holds and has taken.

    Attributes
    ----------
    size : int
        Cells of a part.
    parts : list of (float, float)
        Memory at the end of each, MiB, and the parent's CPU time for a cell of it, ms.
    """

    size: int
    parts: list[tuple[float, float]] = field(default_factory=list)
    _done: int = 0
    _since: tuple[float, float] = (0.0, 0.0)

    def started(self, cell: Cell) -> None:
        """Start the clocks with the first cell."""
        if not self._done:
            self._since = time.process_time(), time.monotonic()

    def finished(self, cell: Cell, record: CellRecord) -> None:
        """Note it."""
        if record["status"] != "ok":
            raise RuntimeError(f"{cell.key}: {record['status']}: {record.get('reason')}")
        self._done += 1
        if self._done % self.size == 0:
            now = time.process_time(), time.monotonic()
            cpu, wall = (1000 * (b - a) / self.size for a, b in zip(self._since, now, strict=True))
            self.parts.append((held_mb(), cpu))
            self._since = now
            first = self._done - self.size + 1
            print(
                f"| {first:,} to {self._done:,} | {held_mb():.1f} | {cpu:.2f} | {wall:.0f} |",
                flush=True,
            )

    def note(self, text: str) -> None:
        """Show it."""
        print(text)


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a folder to work in, with a cache of data sets in it."""
    with tempfile.TemporaryDirectory(prefix="svmbench-measure-") as place:
        os.environ["SVMBENCH_CACHE"] = f"{place}/cache"
        yield Path(place)


def plan(cells: int, place: Path) -> int:
    """Make a plan, twice: what comes with the first (imports, the data set) is not the plan's."""
    prepare_plan(str(config_of(place, 3)), "quick")
    path = config_of(place, cells)
    before, began, wall = held_mb(), time.process_time(), time.monotonic()
    made = prepare_plan(str(path), "quick")
    seconds, waited = time.process_time() - began, time.monotonic() - wall
    text = made.to_json()
    print(
        f"{len(made.cells):,} cells: {seconds:.1f} s of CPU time ({waited:.1f} s of wall time),"
        f" {held_mb() - before:.0f} MiB, {len(text) / 1e6:.0f} MB of plan.json"
    )
    return 0


def cells(number: int, place: Path) -> int:
    """Run trivial cells and compare the last part of them with the second."""
    meter = Meter(number // N_PARTS)
    run_plan = session.plan_run(
        session.Request(str(config_of(place, number)), output=place / "out")
    )

    @contextmanager
    def watch(_: list[Cell]) -> Iterator[execute.Listener]:
        yield meter

    print("| cells | parent holds, MiB | parent's CPU a cell, ms | wall time a cell, ms |")
    print("| --- | ---: | ---: | ---: |")
    session.execute_run(run_plan, watch=watch)
    grown = [last / second for last, second in zip(meter.parts[-1], meter.parts[1], strict=True)]
    print(f"\nlast part over second: memory {grown[0]:.3f}, CPU time {grown[1]:.3f}")
    return int(any(g > most for g, most in zip(grown, MOST_GROWTH, strict=True)))


#: What a made run folder sweeps: data sets, solvers and folds; and rows, as many as it takes.
N_DATASETS, SOLVERS, N_FOLDS = 25, ("alsvm", "falsvm", "liblinear-l1", "pegasos"), 10
COMMANDS = {
    "table": ("table", "run"),
    "compare": ("compare", "run", "run"),
    "site": ("site", "run", "--no-ages", "-o", "pages"),
}


def write_run(folder: Path, records: int) -> Path:
    """Write a run folder of so many finished cells, with a table and a plot; return it."""
    chooser = random.Random(0)
    folder.mkdir(parents=True)
    places = list(itertools.product(range(N_DATASETS), SOLVERS, range(N_FOLDS)))
    planned = []
    with (folder / "runs.jsonl").open("w") as lines:
        for number in range(records):
            sweep, place = divmod(number, len(places))
            dataset, solver, fold = places[place]
            rows = 1000 * (sweep + 1)
            cell = {
                "key": f"{number:020x}",
                "block": "sweep",
                "protocol": "cv",
                "paper": "alsvm",
                "profile": "quick",
                "dataset": f"set-{dataset}",
                "solver": solver,
                "kernel": "linear",
                "fold": fold,
                "dimensions": {"rows": rows},
            }
            planned.append({**cell, "status": "planned", "reason": ""})
            lines.write(json.dumps(_record(cell, rows, chooser.random())) + "\n")
    plan = {
        "config": {
            "name": "many",
            "paper": "alsvm",
            "title": "Many",
            "blocks": [{"name": "sweep"}],
        },
        "profile": "quick",
        "cells": planned,
        "tables": [
            {
                "name": "t",
                "block": "sweep",
                "rows": ["dataset", "rows"],
                "columns": "solver",
                "metrics": ["train_time_s", "accuracy_pct"],
            }
        ],
        "plots": [{"name": "p", "kind": "scaling", "block": "sweep", "x": "rows"}],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    machine = {"id": "4be1c0de", "cpu": "none", "blas": ["none"], "packages": {"numpy": "0"}}
    (folder / "environment-4be1c0de.json").write_text(json.dumps(machine))
    return folder


def _record(cell: dict[str, Any], rows: int, chance: float) -> dict[str, Any]:
    seconds = rows * 1e-6 * (1 + chance)
    parts = ("cpu_time_s", "train_time_s", "predict_time_s", "scaling_time_s", "search_time_s")
    times = {name: seconds / (part + 1) for part, name in enumerate(parts)}
    sizes = {"n_train": rows, "n_test": rows // 4, "n_iter": rows}
    scores = {
        "accuracy_pct": 80 + 10 * chance,
        "objective": chance * rows,
        "peak_memory_mb": chance,
    }
    return {
        "schema": 1,
        "kind": "cell",
        **cell,
        "status": "ok",
        "reason": "",
        "metrics": {**times, **sizes, **scores},
        "spread": {"cpu_time_s": seconds / 30, "train_time_s": seconds / 31},
        "counters": {"refreshes": 0, "samples": rows, "updates": rows},
        "params": {"C": 0.5},
        "stop_reason": "closed form",
        "undefined": {},
        "warnings": [],
        "contended": False,
        "environment": "4be1c0de",
        "data_sha256": "7" * 64,
        "started": "2026-01-31T12:00:00+00:00",
        "wall_s": 1.2,
    }


def reports(cells: int, place: Path) -> int:
    """Print the CPU time and the memory of each command on a run of so many records."""
    write_run(place / "run", cells)
    print("| command | CPU s | peak, MiB |")
    print("| --- | ---: | ---: |")
    for name, words in COMMANDS.items():
        call = "from svmbench.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", call, *words], cwd=place, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"{name} ended with code {code}")
        cpu = used.ru_utime + used.ru_stime
        print(f"| {name} | {cpu:.1f} | {used.ru_maxrss / 1024:.0f} |", flush=True)
    return 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("what", choices=["plan", "cells", "reports"])
    parser.add_argument("--cells", type=int, required=True, metavar="NUMBER")
    given = parser.parse_args()
    if given.cells < 2 * N_PARTS:
        parser.error(f"--cells should be at least {2 * N_PARTS}")
    with workplace() as place:
        return {"plan": plan, "cells": cells, "reports": reports}[given.what](given.cells, place)


if __name__ == "__main__":
    sys.exit(main())
