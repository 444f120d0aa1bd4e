"""Measure a path of `nu-svm` through the values of nu without a margin (w = 0).

    python results/srbo/vanishing_path.py --version NAME --output results/srbo

The data are four fifths of the rows, drawn with seed 0, scaled to [0, 1]; of more than two classes,
the largest one against the others. RBF kernel without an offset, `dcdm-pairwise`, no screening,
tol = 1e-6, one thread; nu goes from 0.01 in steps of 0.001 to the `MORE`-th value with a margin.
Times are CPU times per value, without the kernel matrix. `factors_pct` is the share of linear
systems and of the interior-point method in the time, `systems` the number of all systems. With
`--output`, lines of other versions in vanishing_path.csv are kept.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import svmbench
from svmbench.core.contract.base import NO_MARGIN
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.nu import block_pivoting, interior
from svmbench.core.nu.path import PathSettings, follow_nu

#: Data sets and the widths of the kernel.
RUNS = [("haberman", 0.5), ("haberman", 0.03125), ("cmc", 0.5), ("cmc", 0.03125), ("yeast", 0.5)]

#: Values of nu with a margin after those without.
MORE = 40

#: CPU seconds of linear systems and of the interior-point method.
spent = {"factors": 0.0}


def charge(owner: Any, name: str) -> None:
    """Add the CPU time of a function's calls to `spent`."""
    function = getattr(owner, name)

    def timed(*given: Any, **named: Any) -> Any:
        begin = time.process_time()
        try:
            return function(*given, **named)
        finally:
            spent["factors"] += time.process_time() - begin

    setattr(owner, name, timed)


def signed_kernel(name: str, gamma: float) -> np.ndarray:
    """Return Q of a data set."""
    data = svmbench.load(name)
    X = np.asarray(data.X.toarray() if sp.issparse(data.X) else data.X, dtype=float)
    least, most = X.min(axis=0), X.max(axis=0)
    X, labels = (X - least) / np.where(most > least, most - least, 1.0), np.asarray(data.y)
    classes, counts = np.unique(labels, return_counts=True)
    y = np.where(labels == classes[counts.argmax()], 1.0, -1.0)
    rows = np.random.default_rng(0).permutation(len(y))[: int(0.8 * len(y))]
    K = KernelFunction("rbf", gamma).between(X[rows], X[rows])
    return np.ascontiguousarray(K * np.outer(y[rows], y[rows]))


def measured(name: str, gamma: float) -> dict[str, Any]:
    """Return the line of one path."""
    Q = signed_kernel(name, gamma)
    totals = [(0.01 + 0.001 * i) * len(Q) for i in range(985)]
    path = follow_nu(Q, totals, PathSettings(screen="none", tol=1e-6))
    times: dict[bool, list[float]] = {True: [], False: []}
    factors, work, spent["factors"] = {True: 0.0, False: 0.0}, {True: 0, False: 0}, 0.0
    while len(times[False]) < MORE:
        begin = time.process_time()
        point = next(path).point
        vanishes = point.reason == NO_MARGIN
        times[vanishes].append(time.process_time() - begin)
        factors[vanishes] += spent["factors"]
        work[vanishes] += point.newton_steps
        spent["factors"] = 0.0
    line: dict[str, Any] = {"data": name, "gamma": gamma, "rows": len(Q)}
    for vanishes, word in ((True, "vanishing"), (False, "next")):
        total = sum(times[vanishes])
        line |= {
            f"{word}_values": len(times[vanishes]),
            f"{word}_ms": f"{1e3 * total / max(1, len(times[vanishes])):.2f}",
            f"{word}_first_ms": f"{1e3 * times[vanishes][0]:.1f}" if times[vanishes] else "",
            f"{word}_systems": work[vanishes],
            f"{word}_factors_pct": f"{100.0 * factors[vanishes] / total:.0f}" if total else "",
        }
    return line


def main() -> None:
    """Measure all paths."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--version", required=True, help="what the lines are called")
    parser.add_argument("--output", type=Path, help="folder whose vanishing_path.csv is written")
    given = parser.parse_args()
    charge(block_pivoting, "_direction")
    charge(interior, "solve_interior")
    Q = signed_kernel("haberman", 0.03125)
    for _ in follow_nu(Q, [0.01 * len(Q), 0.2 * len(Q)], PathSettings(screen="none")):
        pass  # compiles
    lines = []
    for name, gamma in RUNS:
        lines.append({"version": given.version} | measured(name, gamma))
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if given.output:
        file = given.output / "vanishing_path.csv"
        table = pd.DataFrame(lines)
        if file.exists():
            earlier = pd.read_csv(file, dtype=str)
            table = pd.concat([earlier[earlier["version"] != given.version], table])
        table.to_csv(file, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
