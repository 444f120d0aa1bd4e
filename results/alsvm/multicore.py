"""Time `dcd-l1` and `newton-l2` beside multi-core LIBLINEAR on one and on two threads.

    pip install --no-deps --target FOLDER liblinear-multicore==2.50.0
    python results/alsvm/multicore.py --package FOLDER a9a ijcnn1 --output results/alsvm

The package's module has the name of liblinear-official's, so it is imported from a folder of its
own and is no baseline of the suite. The suite's solvers use one thread. C = 1, a constant feature,
features scaled to [0, 1]. Of a ladder of tolerances, each program has the loosest that comes within
1 % (`dcd-l1` beside -s 3) or 0.1 % (`newton-l2` beside -s 2) of the best objective of all. Rounds
take turns in one process; conversions are not timed.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import svmbench

#: Of each solver of the suite: its opponent, the power of the loss, the share above the optimum.
RACES = {"dcd-l1": (3, 1, 1e-2), "newton-l2": (2, 2, 1e-3)}

#: Tolerances, the loosest first.
LADDERS = {
    3: [1, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.01],
    2: [0.1, 0.05, 0.03, 0.02, 0.01, 0.007, 0.005, 0.003, 0.001, 1e-4],
}

#: Trains at a tolerance and returns the weights, the constant feature's last.
Train = Callable[[float], np.ndarray]


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME")
    parser.add_argument("--package", type=Path, required=True, help="folder of the package")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of the package")
    parser.add_argument("--output", type=Path, help="folder whose multicore.csv is written")
    given = parser.parse_args()
    package = module_of(given.package)
    lines = [line for name in given.data for line in compare(name, package, given)]
    for line in lines:
        print("  ".join(f"{key}={value}" for key, value in line.items()))
    if given.output:
        path = given.output / "multicore.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def module_of(folder: Path) -> Any:
    """Return the package's module, under a name that no installed package has."""
    place = folder / "liblinear" / "liblinear.py"
    spec = importlib.util.spec_from_file_location("liblinear_multicore", place)
    assert spec is not None, place
    assert spec.loader is not None, place
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def compare(name: str, package: Any, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Race each solver of the suite with the package on one data set."""
    loaded = svmbench.load(name)
    X, y = scaled(loaded.X), np.asarray(loaded.y, dtype=np.float64)
    lines = []
    for solver, (kind, power, share) in RACES.items():
        ways = {"ours": own(solver, X, y)}
        ways |= {threads: foreign(package, X, y, kind, threads) for threads in given.threads}
        ladder = {
            way: [(tol, objective(X, y, ways[way](tol), power)) for tol in LADDERS[kind]]
            for way in ways
        }
        best = min(value for steps in ladder.values() for _, value in steps)
        chosen = {}
        for way, steps in ladder.items():
            reached = [(tol, value) for tol, value in steps if value <= (1.0 + share) * best]
            chosen[way] = reached[0] if reached else steps[-1]
        times: dict[Any, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(given.rounds):
            for way, train in ways.items():
                wall, cpu = time.perf_counter(), time.process_time()
                train(chosen[way][0])
                times[way].append((time.perf_counter() - wall, time.process_time() - cpu))
        for threads in given.threads:
            line = {
                "data": name,
                "solver": solver,
                "opponent": f"-s {kind}",
                "threads": threads,
                "rounds": given.rounds,
            }
            for key, way in (("excess", "ours"), ("opponent_excess", threads)):
                line[key] = f"{chosen[way][1] / best - 1.0:.1e}"
            for place, clock in enumerate(("wall", "cpu")):
                ratios = [
                    b[place] / a[place] for a, b in zip(times["ours"], times[threads], strict=True)
                ]
                line[f"{clock}_ratio"] = f"{statistics.median(ratios):.2f}"
                line[f"{clock}_low"], line[f"{clock}_high"] = (
                    f"{min(ratios):.2f}",
                    f"{max(ratios):.2f}",
                )
            line["wall_s"] = f"{statistics.median(wall for wall, _ in times['ours']):.4f}"
            lines.append(line)
    return lines


def scaled(X: Any) -> sp.csr_array:
    """Return samples with each feature scaled to [0, 1]; of sparse ones, the least value is 0."""
    X = sp.csr_array(X, dtype=np.float64)
    low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    width = np.where(high > low, high - low, 1.0)
    return sp.csr_array((X.toarray() - low) / width)


def own(solver: str, X: sp.csr_array, y: np.ndarray) -> Train:
    """Return the training of one of the suite's solvers."""
    data = svmbench.solver(solver, C=1.0).prepare(X, y)

    def train(tol: float) -> np.ndarray:
        model = svmbench.solver(solver, C=1.0, tol=tol).train(data)
        return np.append(model.coef_.ravel(), model.intercept_)

    return train


def foreign(package: Any, X: sp.csr_array, y: np.ndarray, kind: int, threads: int) -> Train:
    """Return the training of the package's solver on so many threads."""
    problem = package.problem(y, sp.csr_matrix(X), bias=1)

    def train(tol: float) -> np.ndarray:
        said = f"-s {kind} -c 1 -e {tol} -B 1 -m {threads} -q"
        model = package.liblinear.train(problem, package.parameter(said))
        w = np.ctypeslib.as_array(model.contents.w, (problem.n,)).copy()
        w *= 1.0 if model.contents.label[0] == 1 else -1.0
        package.liblinear.free_and_destroy_model(package.pointer(model))
        return w

    return train


def objective(X: sp.csr_array, y: np.ndarray, w: np.ndarray, power: int) -> float:
    """Return 1/2 ||w||^2 plus the sum of the losses; the constant feature is regularised."""
    losses = np.maximum(0.0, 1.0 - y * (X @ w[:-1] + w[-1]))
    return float(0.5 * w @ w + (losses**power).sum())


if __name__ == "__main__":
    main()
