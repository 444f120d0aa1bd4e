"""Time the Spark solvers beside MLlib's, and `alsvm-spark` with growing numbers of rows.

    python results/alsvm/measure_spark.py table    # docs/spark.md: time, objective and passes
    python results/alsvm/measure_spark.py growth --rounds 3 --keep results/alsvm  # claim alsvm-4

Rows are made by the executors, each chunk of 10,000 from its own number, so that neither the
partitions nor the machine change them. In `table` they are written as Parquet first and read by
every solver from there; the solvers take turns, and seconds are wall time. In `growth` they are
made in the pass itself, and seconds are CPU time of all processes, the making in it. Before and
after each round there is a pass over ten rows a partition, which shows what a pass costs whatever
it reads; with ``--keep`` the medians are kept as `spark_growth.csv`, which claim alsvm-4 reads. A
session's start, and passes over some rows that load and compile everything, are no part of either.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil
from scipy.stats import linregress
from scipy.stats import t as student

from svmbench.experiment.measuring.environment import environment_facts
from svmbench.spark import ALSVMSpark, L2SVMSpark, local_session

#: Rows that come of one seed.
CHUNK_ROWS = 10_000

#: Of every pass of `growth`, and rows of each in the pass that is almost empty.
PARTITIONS, FEW = 8, 10

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)

GRID = [2.0**e for e in range(-10, 11, 2)]


def rows(spark: Any, n: int, d: int, partitions: int, chunk: int = CHUNK_ROWS) -> Any:
    """Return a data frame of standard-normal inputs, labels by a hyperplane, a tenth flipped.

    The inputs are lists of numbers, in the column features.
    """
    import pyarrow as pa

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        w = np.random.default_rng(0).standard_normal(d)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                draw = np.random.default_rng([1, number])
                X = draw.standard_normal((chunk, d))
                y = (X @ w > 0.0) != (draw.random(chunk) < 0.1)
                ends = pa.array(np.arange(0, chunk * d + 1, d, dtype=np.int32))
                values = pa.ListArray.from_arrays(ends, pa.array(X.ravel()))
                labels = pa.array(y.astype(float))
                yield pa.RecordBatch.from_arrays([values, labels], ["features", "label"])

    return spark.range(0, n // chunk, 1, partitions).mapInArrow(
        make, "features array<double>, label double"
    )


def written(frame: Any, folder: Path) -> None:
    """Write rows as Parquet, their inputs as Spark's vectors, which MLlib wants."""
    from pyspark.ml.functions import array_to_vector

    vectors = frame.select(array_to_vector("features").alias("features"), "label")
    vectors.write.parquet(str(folder))


def ours(frame: Any) -> tuple[str, float, int]:
    """Fit the whole grid; return the C of the best model, its objective and the passes."""
    found = ALSVMSpark().search(frame, GRID, 5)
    return f"best C {found.best.C:g}", found.best.objective_, found.counters["passes"]


def squared(frame: Any) -> tuple[str, float, int]:
    """Fit the squared hinge at C = 1."""
    model = L2SVMSpark().fit(frame)
    return "C 1", model.objective_, model.counters_["passes"]


def mllib(frame: Any) -> tuple[str, float, int]:
    """Fit MLlib's LinearSVC at its defaults: mean hinge, standardised, no penalty."""
    from pyspark.ml.classification import LinearSVC

    model = LinearSVC().fit(frame)
    told = model.summary()
    return "defaults", told.objectiveHistory[-1], len(told.objectiveHistory)


SOLVERS: dict[str, Callable[[Any], tuple[str, float, int]]] = {
    "alsvm-spark, 11 C × 5 folds": ours,
    "LinearSVC, one fit": mllib,
    "l2svm-spark, one fit": squared,
}


def table(n: int, d: int, rounds: int) -> None:
    """Print time, objective and passes of each solver on one Parquet folder."""
    spark = local_session(2, memory="6g")
    folder = Path(tempfile.mkdtemp(prefix="svmbench-"))
    try:
        written(rows(spark, n, d, 8), folder / "rows")
        written(rows(spark, 2 * CHUNK_ROWS, d, 2), folder / "few")
        for solve in SOLVERS.values():
            solve(spark.read.parquet(str(folder / "few")))
        seconds: dict[str, list[float]] = {name: [] for name in SOLVERS}
        said = {}
        for _ in range(rounds):
            for name, solve in SOLVERS.items():
                start = perf_counter()
                said[name] = solve(spark.read.parquet(str(folder / "rows")))
                seconds[name].append(perf_counter() - start)
        print(f"{n:,} × {d}, local[2], Spark {spark.version}, {rounds} round(s)")
        print("| solver | settings | seconds | lowest to highest | objective | passes |")
        print("|---|---|---|---|---|---|")
        for name, took in seconds.items():
            settings, objective, passes = said[name]
            print(
                f"| {name} | {settings} | {statistics.median(took):.1f} | {min(took):.1f} to"
                f" {max(took):.1f} | {objective:.6g} | {passes} |"
            )
    finally:
        spark.stop()
        shutil.rmtree(folder)


def growth(d: int, rounds: int, keep: Path | None) -> None:
    """Print CPU seconds at each number of rows, with and without what an empty pass takes."""
    spark = local_session(2, memory="2g")
    few = PARTITIONS * FEW
    for _ in range(3):
        ALSVMSpark().fit(rows(spark, 2 * SIZES[0], d, PARTITIONS))
    seconds: dict[int, list[float]] = {n: [] for n in (few, *SIZES)}
    load = os.getloadavg()[0]
    for _ in range(rounds):
        for n in (few, *SIZES, few):
            frame = rows(spark, n, d, PARTITIONS, FEW if n == few else CHUNK_ROWS)
            start, before = perf_counter(), cpu_seconds()
            visits = ALSVMSpark().fit(frame).counters_["visits"]
            took, wall = cpu_seconds() - before, perf_counter() - start
            seconds[n].append(took)
            print(f"{n:,} rows, {visits:,} read: {took:.2f} CPU s, {wall:.2f} s", flush=True)
    version = spark.version
    spark.stop()
    lines = [
        {
            "rows": n,
            "features": d,
            "cpu_time_s": f"{statistics.median(took):.4g}",
            "low": f"{min(took):.4g}",
            "high": f"{max(took):.4g}",
            "passes": len(took),
            "load": f"{load:.2g}",
            "spark": version,
            "cpu": environment_facts(1)["cpu"],
        }
        for n, took in seconds.items()
    ]
    _print_table(lines, rounds)
    if keep is not None:
        with (keep / "spark_growth.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def _print_table(lines: list[dict[str, Any]], rounds: int) -> None:
    """Print the table, the exponents and the line through all sizes."""
    first = lines[0]
    print(f"{first['features']} features, local[2], Spark {first['spark']}, {rounds} round(s)")
    print("| rows | CPU s | lowest to highest | less the empty pass |")
    print("|---|---|---|---|")
    fixed = float(first["cpu_time_s"])
    for line in lines:
        took = float(line["cpu_time_s"])
        more = f"{took - fixed:.2f}" if line is not first else ""
        print(f"| {line['rows']:,} | {took:.2f} | {line['low']} to {line['high']} | {more} |")
    points = [(line["rows"], float(line["cpu_time_s"])) for line in lines[1:]]
    for name, off in (("as they are", 0.0), ("less the empty pass", fixed)):
        slope, reach = grown([(n, took - off) for n, took in points])
        print(f"exponent of the times {name}: {slope:.3f} ± {reach:.3f} (95 %)")
    sizes, took = np.array(points).T
    per_row, intercept = np.polyfit(sizes, took, 1, w=1.0 / took)
    off = took / (intercept + per_row * sizes) - 1.0
    print(
        f"CPU seconds = {intercept:.2f} + {per_row * 1e6:.3f} for each million rows, which is off"
    )
    print("by " + ", ".join(f"{100 * each:+.1f} %" for each in off))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all below it: Java's, and that of the tasks."""
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended
            total += sum(process.cpu_times()[:4])
    return total


def grown(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Return the slope of log seconds over log rows, and half of its 95 % interval."""
    found = linregress(*np.log(np.array(points)).T)
    return found.slope, found.stderr * student.ppf(0.975, len(points) - 2)


def main() -> None:
    """Read the words of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["table", "growth"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for spark_growth.csv")
    given = parser.parse_args()
    if given.what == "table":
        table(given.rows, given.features, given.rounds)
    else:
        growth(given.features, given.rounds, given.keep)


if __name__ == "__main__":
    main()
