"""What a pass over the data costs, on one machine and on many: the numbers of docs/scaling.md.

::

    python results/perf/scaling.py --measure   # measure this machine's rates, about two minutes
    python results/perf/scaling.py             # write the tables of the page from them
    python results/perf/scaling.py --check     # only say whether the page has what this would write

Rates are CPU time of one core, medians of rounds in turn. What machines wait for each other is
simulated, from a fixed seed.
"""

from __future__ import annotations

import argparse
import heapq
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PAGE, MEASURED = ROOT / "docs" / "scaling.md", Path(__file__).with_name("scaling.json")

#: The terabyte: rows and features.
ROWS, FEATURES = 10**9, 300
#: What is measured: so many rows of it, read from files `COPIES` times as long.
SAMPLE, COPIES, ROUNDS = 10_000, 4, 5
#: Folds and values of C of the grid.
FOLDS, VALUES = 5, 11


@dataclass(frozen=True)
class Cost:
    """What a solver needs of rows that lie on several machines.

    Attributes
    ----------
    passes : float
        Over all rows.
    flops : float
        Multiplications of one row in one pass.
    sent : float
        Bytes that each machine sends in one pass.
    messages : float
        From one machine, in all.
    why : str
    """

    passes: float
    flops: float
    sent: float
    messages: float
    why: str


def costs(counters: dict[str, dict[str, int]], d: int, n: float) -> dict[str, Cost]:
    """Return what each linear solver costs for one C.

    Parameters
    ----------
    counters : dict
        What each solver counted on the sample.
    d : int
        Features, the constant one among them.
    n : float
        Rows.
    """
    triangle = d * (d + 1) / 2
    newton, faces = counters["newton-l2"]["passes"], counters["asvm"]["faces"]
    lsvm, cuts = counters["lsvm"]["passes"], counters["svm-perf"]["passes"]
    steps = counters["pegasos"]["steps"]
    updated = counters["falsvm"]["updates"] / counters["falsvm"]["samples"]
    epochs = {name: counters[name]["passes"] for name in ("dcd-l1", "dcd-l2")}
    one_by_one = "each row needs the weights after the last row: one machine, or a message per row"
    return {
        "alsvm-batch": Cost(1, triangle, 8 * triangle, 1, "sums for all C and folds at once"),
        "alsvm": Cost(1, 2 * d * d, 8 * d * d, n, one_by_one),
        "falsvm": Cost(1, d + 2 * d * d * updated, 8 * d * d, n, one_by_one),
        "newton-l2": Cost(newton, 2 * d, 8 * d, newton, "gradients and products with the Hessian"),
        "lsvm": Cost(lsvm, 2 * d, 8 * d, lsvm, "products; once also the matrix of sums"),
        "asvm": Cost(2 * faces, triangle, 8 * triangle, 2 * faces, "sums over each active set"),
        "svm-perf": Cost(cuts, 2 * d, 8 * d, cuts, "one cut per pass"),
        "dcd-l1": Cost(epochs["dcd-l1"], 2 * d, 8 * d, n * epochs["dcd-l1"], one_by_one),
        "dcd-l2": Cost(epochs["dcd-l2"], 2 * d, 8 * d, n * epochs["dcd-l2"], one_by_one),
        "pegasos": Cost(steps / n, 2 * d, 8 * d, steps, "one row per step, on any machine"),
    }


# ------------------------------------------------------------------------------------------------
# Machines that wait for each other

#: A machine in a hundred runs at a third of the speed throughout, a task in a hundred takes five
#: times as long, and every task's time varies by a tenth.
SLOW_MACHINES, SLOW_SPEED, SLOW_TASKS, SLOW_TASK, SPREAD = 0.01, 1 / 3, 0.01, 5.0, 0.1

#: A copy of a task is started once it has run so many times as long as the median.
SPECULATION_FACTOR = 1.5

WAYS = (
    "one task per machine",
    "20 tasks per machine, from a queue",
    "20 tasks per machine, with copies of late tasks",
)


def slowdown(machines: int, way: str, passes: int, rng: np.random.Generator) -> float:
    """Return the time of passes with a barrier after each, over that of equal machines.

    Parameters
    ----------
    machines : int
    way : str
        One of `WAYS`.
    passes : int
    rng : numpy.random.Generator
    """
    speeds = np.where(rng.random(machines) < SLOW_MACHINES, SLOW_SPEED, 1.0)
    tasks = 1 if way == WAYS[0] else 20
    return statistics.fmean(
        _one_pass(speeds, tasks, copies=way == WAYS[2], rng=rng) for _ in range(passes)
    )


def work(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the work of `n` tasks; 1 is an undisturbed one's."""
    slow = np.where(rng.random(n) < SLOW_TASKS, SLOW_TASK, 1.0)
    return slow * rng.lognormal(0.0, SPREAD, n)


def _one_pass(speeds: np.ndarray, tasks: int, *, copies: bool, rng: np.random.Generator) -> float:
    """Return the end of a pass, in units of the time that one equal machine's share takes."""
    n = len(speeds) * tasks
    durations = work(n, rng) / tasks
    free = [(0.0, machine) for machine in range(len(speeds))]
    begun, ends = np.empty(n), np.empty(n)
    for task in range(n):
        start, machine = heapq.heappop(free)
        begun[task], ends[task] = start, start + durations[task] / speeds[machine]
        heapq.heappush(free, (ends[task], machine))
    if copies and n > 1:
        late = SPECULATION_FACTOR * float(np.median(ends - begun))
        # Whoever is free first takes the task that would end last, if it is late by then.
        again = work(n, rng) / tasks
        for task in np.argsort(-ends):
            start, machine = heapq.heappop(free)
            start = max(start, begun[task] + late)
            end = start + again[task] / speeds[machine]
            if start >= ends[task]:
                break
            ends[task] = min(ends[task], end)
            heapq.heappush(free, (ends[task], machine))
    return float(ends.max())


def simulated(
    seed: int = 0, sizes: tuple[int, ...] = (1, 10, 100, 1000)
) -> dict[int, dict[str, float]]:
    """Return the mean slowdown of one pass, for numbers of machines and each way."""
    rng = np.random.default_rng(seed)
    return {
        machines: {
            way: statistics.fmean(
                slowdown(machines, way, 1, rng) for _ in range(max(20, 1000 // machines))
            )
            for way in WAYS
        }
        for machines in sizes
    }


# ------------------------------------------------------------------------------------------------
# Rates of this machine


def _sample(folder: Path) -> tuple[np.ndarray, np.ndarray, dict[str, Path]]:
    from svmbench.data import export, synthetic

    part, _ = synthetic.linear(n_samples=SAMPLE, n_features=FEATURES, noise=0.2, seed=0)
    files = {}
    for form in ("libsvm", "parquet"):
        files[form] = folder / f"rows{export.EXPORT_ENDINGS[form]}"
        export.export_rows(files[form], part.X, part.labels, COPIES)
    return part.X, part.labels, files


def measure() -> dict[str, Any]:
    """Return what a row costs on this machine, CPU microseconds, and what the solvers count."""
    import svmbench
    from svmbench.core.linear.statistics import Statistics
    from svmbench.data import open_blocks
    from svmbench.experiment.measuring.environment import cpu_model

    with tempfile.TemporaryDirectory(prefix="svmbench-scaling-") as name:
        X, y, files = _sample(Path(name))
        w = np.ones(FEATURES)

        def read(form: str) -> None:
            for _ in open_blocks(files[form]):
                pass

        def fit(form: str) -> None:
            svmbench.ALSVMBatch().fit_blocks(open_blocks(files[form]))

        jobs: dict[str, tuple[Callable[[], Any], int]] = {
            "sums of arrays": (lambda: Statistics().update(X, y), SAMPLE),
            "a product pass": (lambda: X.T @ (X @ w), SAMPLE),
            **{f"reading {form}": (lambda f=form: read(f), COPIES * SAMPLE) for form in files},
            **{
                f"reading and sums, {form}": (lambda f=form: fit(f), COPIES * SAMPLE)
                for form in files
            },
        }
        times: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(1 + ROUNDS):
            for name, (job, rows) in jobs.items():
                start = time.process_time()
                job()
                times[name].append(1e6 * (time.process_time() - start) / rows)
        return {
            "machine": cpu_model(),
            "microseconds a row": {
                name: round(statistics.median(t[1:]), 3) for name, t in times.items()
            },
            "bytes a row": {f: files[f].stat().st_size / (COPIES * SAMPLE) for f in files},
            "workers": {str(n): _with_workers(files["libsvm"], n) for n in (1, 2)},
            "counters": _counters(X, y),
        }


def _counters(X: np.ndarray, y: np.ndarray) -> dict[str, dict[str, int]]:
    import warnings

    import svmbench

    found = {}
    warnings.simplefilter("ignore")  # the dual solvers end at their limit here
    for name in ("falsvm", "newton-l2", "lsvm", "asvm", "svm-perf", "dcd-l1", "dcd-l2", "pegasos"):
        model = svmbench.solver(name)
        model.train(model.prepare(X, y))
        found[name] = {key: int(count) for key, count in model.counters_.items()}
    return found


def _gathered(path: str) -> tuple[Any, float]:
    """Return the sums of a file, and the CPU seconds that they took this process."""
    from svmbench.core.linear.statistics import gather_statistics
    from svmbench.data import open_blocks

    start = time.process_time()
    found = gather_statistics(open_blocks(path))
    return found, time.process_time() - start


def _with_workers(path: Path, n: int) -> dict[str, float]:
    """Return what `n` processes do that gather sums of the file each, and what merging takes."""
    rows = COPIES * SAMPLE
    with multiprocessing.get_context("spawn").Pool(n) as pool:
        pool.map(_gathered, [str(path)] * n, chunksize=1)  # load the code
        walls, cpu, merges = [], [], []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            parts = pool.map(_gathered, [str(path)] * n, chunksize=1)
            walls.append(time.perf_counter() - start)
            cpu += [seconds for _, seconds in parts]
            start = time.perf_counter()
            whole = parts[0][0]
            for part, _ in parts[1:]:
                whole.merge(part)
            merges.append(time.perf_counter() - start)
        assert whole.n_samples == n * rows
    return {
        "rows a second": round(n * rows / statistics.median(walls)),
        "CPU microseconds a row": round(1e6 * statistics.median(cpu) / rows, 3),
        "merging, ms": round(1e3 * statistics.median(merges), 3),
    }


# ------------------------------------------------------------------------------------------------
# The page


def tables(measured: dict[str, Any]) -> dict[str, str]:
    """Return the page's tables by their names."""
    return {
        "costs": _costs_table(measured["counters"]),
        "rates": _rates_table(measured),
        "workers": _workers_table(measured["workers"]),
        "terabyte": _terabyte_table(measured),
        "stragglers": _stragglers_table(),
    }


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def _bytes(size: float) -> str:
    units = ("B", "kB", "MB", "GB", "TB")
    step = min(len(units) - 1, int(np.log10(max(size, 1.0))) // 3)
    return f"{size / 1000**step:.3g} {units[step]}"


def _count(number: float) -> str:
    return f"{number:,.0f}" if 1 <= number < 1e5 else f"{number:.1e}"


def _costs_table(counters: dict[str, dict[str, int]]) -> str:
    found = costs(counters, FEATURES + 1, ROWS)
    rows = [
        [f"`{name}`", _count(c.passes), _count(c.flops), _bytes(c.sent), _count(c.messages), c.why]
        for name, c in found.items()
    ]
    head = [
        "solver",
        "passes",
        "multiplications per row and pass",
        "bytes sent per pass",
        "messages per machine",
        "messages carry",
    ]
    return _table(head, rows)


def _rates_table(measured: dict[str, Any]) -> str:
    rows = [
        [name, f"{us:.3g}", _count(1e6 / us)] for name, us in measured["microseconds a row"].items()
    ]
    return _table(["one core, 300 features", "µs per row", "rows per second"], rows)


def _workers_table(workers: dict[str, dict[str, float]]) -> str:
    rows = [
        [
            n,
            _count(found["rows a second"]),
            f"{found['CPU microseconds a row']:.3g}",
            f"{found['merging, ms']:.2g}",
        ]
        for n, found in workers.items()
    ]
    head = ["workers", "rows per second, wall", "CPU µs per row", "merging (ms)"]
    return _table(head, rows)


def _hours(seconds: float) -> str:
    hours = seconds / 3600.0
    return f"{hours:.3g} h" if hours >= 1 else f"{60 * hours:.2g} min"


def _terabyte_table(measured: dict[str, Any]) -> str:
    us, newton = measured["microseconds a row"], measured["counters"]["newton-l2"]["passes"]
    fits = FOLDS * VALUES
    jobs = {
        "`alsvm-batch`, LIBSVM text": us["reading and sums, libsvm"],
        "`alsvm-batch`, Parquet": us["reading and sums, parquet"],
        "`alsvm-batch`, arrays in memory": us["sums of arrays"],
        f"`newton-l2`, one fit, arrays in memory ({newton} passes)": newton * us["a product pass"],
        "`newton-l2`, one fit, reading Parquet in each pass": newton
        * (us["reading parquet"] + us["a product pass"]),
        f"`newton-l2`, the grid of {fits} fits, arrays in memory": fits
        * newton
        * us["a product pass"],
    }
    rows = [
        [name, *(_hours(ROWS * cost / 1e6 / cores) for cores in (1, 100, 1000))]
        for name, cost in jobs.items()
    ]
    return _table(["", "1 core", "100 cores", "1,000 cores"], rows)


def _stragglers_table() -> str:
    rows = [
        [f"{machines:,}", *(f"{found[way]:.2f}" for way in WAYS)]
        for machines, found in simulated().items()
    ]
    return _table(["machines", *WAYS], rows)


def filled(page: str, made: dict[str, str]) -> str:
    """Return the page with each table between its marks."""
    for name, table in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{table}\n\n{end}{after}"
    return page


def main(arguments: list[str] | None = None) -> int:
    """Measure, write or check; 1 where the page is not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measure", action="store_true", help="measure this machine's rates")
    parser.add_argument("--check", action="store_true", help="write nothing")
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        MEASURED.write_text(json.dumps(measure(), indent=1) + "\n")
    page = PAGE.read_text(encoding="utf-8")
    new = filled(page, tables(json.loads(MEASURED.read_text())))
    if chosen.check:
        print(
            "scaling.md is up to date" if page == new else "scaling.md: run results/perf/scaling.py"
        )
        return int(page != new)
    PAGE.write_text(new, encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
