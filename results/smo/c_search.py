"""What `csvc` costs along many values of C in cross-validation, on one thread.

    python results/smo/c_search.py a7a a8a w7a --run-folds 1 --output results/smo

Ten stratified folds and 50 values of C from 1e-3 to 1e3, in equal steps of the logarithm, RBF
kernel with gamma = 1 / n_features, features as stored. Each fit starts from zero; each model
predicts its fold. With `--run-folds` fewer folds are run; times are those of the folds that ran.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
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
    parser.add_argument("--run-folds", type=int, default=FOLDS)
    parser.add_argument("--output", type=Path, help="folder whose c_search.csv is written")
    given = parser.parse_args()
    search("a1a", 1)  # loads the compiled code
    lines = []
    for name in given.data:
        lines.append(search(name, given.run_folds))
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if given.output:
        path = given.output / "c_search.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def search(name: str, run_folds: int) -> dict[str, Any]:
    """Return what the folds that run cost on one data set."""
    loaded = svmbench.load(name)
    X, y = loaded.X, loaded.y
    split = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    right, tested = np.zeros(len(VALUES)), 0
    wall, cpu = time.perf_counter(), time.process_time()
    for train, test in list(split)[:run_folds]:
        tested += len(test)
        for place, C in enumerate(VALUES):
            model = svmbench.CSVC(C=float(C), gamma=1.0 / X.shape[1]).fit(X[train], y[train])
            right[place] += np.count_nonzero(model.predict(X[test]) == y[test])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    best = int(np.argmax(right))
    return {
        "data": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "folds_run": run_folds,
        "values": len(VALUES),
        "cpu_time_s": f"{cpu:.1f}",
        "wall_time_s": f"{wall:.1f}",
        "best_C": f"{VALUES[best]:.3g}",
        "accuracy_pct": f"{100.0 * right[best] / tested:.2f}",
        "load_1min": f"{os.getloadavg()[0]:.1f}",
    }


if __name__ == "__main__":
    main()
