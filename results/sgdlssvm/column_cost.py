"""Time a single kernel column, in rows of the fastest maker of rows, and find what bounds it.

    python results/sgdlssvm/column_cost.py a9a:gamma=0.008130081300813009 ijcnn1:gamma=2 \
        --output results/sgdlssvm

A solver that takes one column an iteration can't share the reading of the inputs among columns, as
rows made by hundreds do. In rounds that take turns, this times the columns that ``sgd-lssvm`` uses,
the rows that ``csvc`` uses, and one bare reading of the inputs from which a column is made, all on
one thread. Where the ratio of column to row is high and that of column to reading low, the
inputs' way from memory is what bounds it.
"""

from __future__ import annotations

import argparse
import csv
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import svmbench
from svmbench.core.kernels.columns import columns_of, warm_up_columns
from svmbench.core.kernels.kernels import KernelFunction, KernelSource
from svmbench.core.kernels.products import BITS_MAX_FEATURES, is_binary
from svmbench.core.kernels.rows import BitRows, DenseRows
from svmbench.experiment.measuring import environment

#: Columns, and rows, of a round; rounds after one that is thrown away.
HEIGHT, ROUNDS = 256, 7

#: The tolerance of sgd-lssvm's default.
TOL = 0.01


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME:gamma=VALUE")
    parser.add_argument("--output", type=Path, help="folder whose columns.csv is written")
    given = parser.parse_args()
    warm_up_columns()
    lines = []
    for one in given.data:
        name, _, gamma = one.partition(":gamma=")
        lines.append(measure(name, float(gamma)))
        print(
            "{data}: a column takes {column_us} us, {ratio} ({low} to {high}) rows of {rows_by}, "
            "{readings} readings of its inputs".format(**lines[-1])
        )
    if given.output:
        with (given.output / "columns.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def measure(name: str, gamma: float) -> dict[str, Any]:
    """Return a line of the table for one data set, read whole, as it is distributed."""
    X = svmbench.load(name).X
    X = sp.csr_array(X) if sp.issparse(X) else np.array(X)
    function = KernelFunction("rbf", gamma)
    columns = columns_of(KernelSource.from_inputs(X, function), TOL)
    binary = X.shape[1] <= BITS_MAX_FEATURES and is_binary(X)
    rows = BitRows(X, function) if binary else DenseRows(X, function)
    # As many bytes as a column is made of, in the order in which it reads them.
    n_bytes = rows.points.words.nbytes if binary else 4 * (X.nnz if sp.issparse(X) else X.size)
    inputs = np.ones(n_bytes // 4, dtype=np.float32)
    n = columns.n_samples
    out, block = np.empty(n, dtype=np.float32), np.empty((HEIGHT, n), dtype=np.float32)
    samples, everyone = np.arange(HEIGHT), rows.columns(None)

    def one_by_one() -> None:
        for i in range(HEIGHT):
            columns.column(i, out)

    def together() -> None:
        rows.fill(samples, everyone, 0, n, block, samples)

    def read() -> None:
        for _ in range(HEIGHT):
            np.dot(inputs, inputs)

    turns = [[seconds(each) for each in (one_by_one, together, read)] for _ in range(ROUNDS + 1)]
    column, row, reading = (statistics.median(times) for times in zip(*turns[1:], strict=True))
    ratios = [each[0] / each[1] for each in turns[1:]]
    found = environment.environment_facts(1)
    return {
        "data": name,
        "rows": n,
        "gamma": gamma,
        "columns_by": type(columns).__name__,
        "rows_by": type(rows).__name__,
        "column_us": f"{1e6 * column:.0f}",
        "row_us": f"{1e6 * row:.0f}",
        "ratio": f"{statistics.median(ratios):.2f}",
        "low": f"{min(ratios):.2f}",
        "high": f"{max(ratios):.2f}",
        "bytes_read": n_bytes,
        "readings": f"{column / reading:.2f}",
        "cpu": found["cpu"],
        "numpy": found["packages"]["numpy"],
        "numba": found["packages"]["numba"],
        "python": platform.python_version(),
    }


def seconds(work: Callable[[], None]) -> float:
    """Return the CPU time of a piece of work by column."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / HEIGHT


if __name__ == "__main__":
    main()
