"""What Spark's solvers cost beside MLlib's, and how `alsvm-spark` grows with the number of rows.

    python scripts/measure_spark.py table    # docs/spark.md: time, objective and passes
    python scripts/measure_spark.py growth   # claim alsvm-4 on 10^5 to 10^7 rows

Rows are made by the executors, each chunk of 10,000 from its own number, so that neither the
partitions nor the machine change them. In `table` they are written as Parquet first and read by
every solver from there; the solvers take turns, and seconds are wall time. In `growth` they are
made in the pass itself, and seconds are CPU time of all processes, the making in it. A session's
start, and passes over a few rows that load and compile everything, are no part of either.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import linregress
from scipy.stats import t as student

from svmbench.spark import ALSVMSpark, L2SVMSpark, local_session

#: Rows that come of one seed.
CHUNK = 10_000

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)

GRID = [2.0**e for e in range(-10, 11, 2)]


def rows(spark: Any, n: int, d: int, partitions: int) -> Any:
    """Return a data frame of standard-normal inputs, labels by a hyperplane, a tenth flipped.

    The inputs are lists of numbers, in the column features.
    """
    import pyarrow as pa

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        w = np.random.default_rng(0).standard_normal(d)
        for batch in batches:
            for chunk in batch.column(0).to_pylist():
                draw = np.random.default_rng([1, chunk])
                X = draw.standard_normal((CHUNK, d))
                y = (X @ w > 0.0) != (draw.random(CHUNK) < 0.1)
                ends = pa.array(np.arange(0, CHUNK * d + 1, d, dtype=np.int32))
                values = pa.ListArray.from_arrays(ends, pa.array(X.ravel()))
                labels = pa.array(y.astype(float))
                yield pa.RecordBatch.from_arrays([values, labels], ["features", "label"])

    return spark.range(0, n // CHUNK, 1, partitions).mapInArrow(
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
        written(rows(spark, 2 * CHUNK, d, 2), folder / "few")
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


def growth(d: int, rounds: int) -> None:
    """Print CPU seconds at each number of rows, and the slope of their logarithms."""
    spark = local_session(2, memory="2g")
    for _ in range(3):
        ALSVMSpark().fit(rows(spark, 2 * SIZES[0], d, 8))
    points = []
    print(f"{d} features, local[2], Spark {spark.version}, {rounds} round(s)")
    print("| rows | CPU s | wall s | rows read |")
    print("|---|---|---|---|")
    for _ in range(rounds):
        for n in SIZES:
            start, before = perf_counter(), cpu_seconds()
            model = ALSVMSpark().fit(rows(spark, n, d, 8))
            points.append((n, cpu_seconds() - before))
            wall, visits = perf_counter() - start, model.counters_["visits"]
            print(f"| {n:,} | {points[-1][1]:.2f} | {wall:.2f} | {visits:,} |", flush=True)
    spark.stop()
    for least in (SIZES[0], SIZES[2]):
        slope, reach = grown([point for point in points if point[0] >= least])
        print(f"slope from {least:,} rows: {slope:.3f} ± {reach:.3f} (95 %)")
    sizes, took = np.array(points).T
    per_row, fixed = np.polyfit(sizes, took, 1, w=1.0 / took)
    print(f"CPU seconds = {fixed:.2f} + {per_row * 1e6:.3f} for each million rows")


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all below it: Java's, and that of the tasks."""
    parents, ticks = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(status.parent.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))
    ours, found = {os.getpid()}, 0
    while len(ours) > found:
        found = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return sum(ticks[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")


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
    given = parser.parse_args()
    if given.what == "table":
        table(given.rows, given.features, given.rounds)
    else:
        growth(given.features, given.rounds)


if __name__ == "__main__":
    main()
