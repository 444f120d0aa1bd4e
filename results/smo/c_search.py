"""What `csvc` costs along many values of C in cross-validation, on one or several processes.

    python results/smo/c_search.py a7a a8a w7a --jobs 2 --output results/smo

Ten stratified folds and 50 values of C from 1e-3 to 1e3, in equal steps of the logarithm, RBF
kernel with gamma = 1 / n_features, features as stored. Each fit starts from zero, on one thread;
each model predicts its fold. Each process takes whole folds. The wall time is that of all folds,
with the start of the processes; the CPU time is the sum over the processes.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import svmbench

FOLDS, VALUES = 10, np.geomspace(1e-3, 1e3, 50)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", type=Path, help="folder whose c_search.csv is written")
    given = parser.parse_args()
    fold_of("a1a", 0)  # compiles what the cache lacks
    lines = []
    for name in given.data:
        lines.append(search(name, given.jobs))
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if given.output:
        path = given.output / "c_search.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def fold_of(name: str, place: int) -> tuple[np.ndarray, int, float]:
    """Return the right predictions at each C and the rows of one fold, and its CPU time."""
    loaded = svmbench.load(name)
    X, y = loaded.X, loaded.y
    split = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    train, test = list(split)[place]
    right = np.zeros(len(VALUES))
    for at, C in enumerate(VALUES):
        model = svmbench.CSVC(C=float(C), gamma=1.0 / X.shape[1]).fit(X[train], y[train])
        right[at] = np.count_nonzero(model.predict(X[test]) == y[test])
    return right, len(test), time.process_time()


def search(name: str, jobs: int) -> dict[str, Any]:
    """Return what all folds cost on one data set."""
    shape = svmbench.load(name).X.shape
    wall = time.perf_counter()
    # Each fold has a process of its own, whose CPU time is that of the fold.
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        found: Iterable[Any] = pool.map(partial(fold_of, name), range(FOLDS))
        rights, tested, cpu = zip(*found, strict=True)
    wall = time.perf_counter() - wall
    right = np.sum(rights, axis=0)
    best = int(np.argmax(right))
    return {
        "data": name,
        "rows": shape[0],
        "features": shape[1],
        "folds": FOLDS,
        "values": len(VALUES),
        "processes": jobs,
        "cpu_time_s": f"{sum(cpu):.1f}",
        "wall_time_s": f"{wall:.1f}",
        "best_C": f"{VALUES[best]:.3g}",
        "accuracy_pct": f"{100.0 * right[best] / sum(tested):.2f}",
        "load_1min": f"{os.getloadavg()[0]:.1f}",
    }


if __name__ == "__main__":
    main()
