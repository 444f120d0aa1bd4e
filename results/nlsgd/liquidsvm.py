"""Time a search over C and gamma beside liquidSVM's, on one thread.

    python results/nlsgd/liquidsvm.py --python OTHER/bin/python splice a9a:5000

OTHER is an environment with liquidSVM 1.0.1 (`pip install --no-build-isolation liquidsvm==1.0.1`
with setuptools below 70); the script gives it the configuration variable SO, which Python no longer
has. Both search the same 8 x 8 grid with five folds of their own on the same 80 % of the rows,
scaled to [0, 1], and predict the rest by their best point: liquidSVM by its five models, `csvc` by
one trained on all those rows. `csvc` stops fits of the search at a duality gap of 1e-3 C n, and
liquidSVM by its default. CPU times of search, selection and final training; rounds take turns. With
`--output results/nlsgd` they are written to liquidsvm.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold, train_test_split

import svmbench
from svmbench.core.kernels.kernels import squared_distances
from svmbench.experiment.protocols.kernel_search import SearchRows, search_on_kernels

C_VALUES, GAMMAS = 4.0 ** np.arange(-2, 6), 4.0 ** np.arange(-5, 3)

#: Run by the other environment: prints CPU time, accuracy, and the number of grid points by folds.
OTHER = """
import sys, sysconfig, time
known = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: known("EXT_SUFFIX" if name == "SO" else name)
import numpy as np, liquidSVM
a = np.load(sys.argv[1])
# Its parser reads no exponents.
gammas, lambdas = (" ".join("%.12f" % v for v in a[name]) for name in ("widths", "lambdas"))
cpu = time.process_time()
model = liquidSVM.SVM(a["X"], a["y"], threads=1, folds=5, display=0)
model.set("SCENARIO", "MC AvA_hinge").set("GRID_CHOICE", -1)
model.set("GAMMAS", gammas).set("LAMBDAS", lambdas)
points = len(model.train())
model.select()
cpu = time.process_time() - cpu
right = model.test(a["Z"], a["z"])[0][:, 0] == a["z"]
print("result", cpu, 100.0 * right.mean(), points, flush=True)
"""


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME[:ROWS]")
    parser.add_argument("--python", type=Path, required=True, help="interpreter with liquidSVM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="folder whose liquidsvm.csv is written")
    given = parser.parse_args()
    lines = []
    for name in given.data:
        lines.append(compare(name, given.python, given.rounds))
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if given.output:
        path = given.output / "liquidsvm.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def split(name: str, rows: str) -> list[np.ndarray]:
    """Return inputs to search on and to predict, and the labels of both."""
    loaded = svmbench.load(name)
    X = loaded.X.toarray() if sp.issparse(loaded.X) else np.asarray(loaded.X, dtype=np.float64)
    y = np.asarray(loaded.y, dtype=np.float64)
    if rows:
        X, _, y, _ = train_test_split(X, y, train_size=int(rows), stratify=y, random_state=0)
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    return list(train_test_split(X, y, test_size=0.2, stratify=y, random_state=0))


def compare(name: str, python: Path, rounds: int) -> dict[str, Any]:
    """Return the ratio of both searches' CPU times on one data set."""
    name, _, rows_used = name.partition(":")
    X, Z, y, z = split(name, rows_used)
    fold = len(y) * 4 // 5
    widths, lambdas = GAMMAS**-0.5, 1.0 / (2.0 * C_VALUES * fold)
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "inputs.npz"
        np.savez(place, X=X, y=y, Z=Z, z=z, widths=widths, lambdas=lambdas)
        search(X[:200], y[:200], Z, z)  # loads the compiled code
        for _ in range(rounds):
            ours.append(search(X, y, Z, z))
            command = [str(python), "-c", OTHER, str(place)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            cpu, accuracy, points = said[said.index("result") :].split()[1:4]
            assert int(points) == 5 * len(C_VALUES) * len(GAMMAS), points
            theirs.append((float(cpu), float(accuracy)))
    ratios = [b[0] / a[0] for a, b in zip(ours, theirs, strict=True)]
    return {
        "data": name,
        "rows": len(y),
        "features": X.shape[1],
        "rounds": rounds,
        "ratio": f"{statistics.median(ratios):.2f}",
        "low": f"{min(ratios):.2f}",
        "high": f"{max(ratios):.2f}",
        "csvc_s": f"{statistics.median(cpu for cpu, _ in ours):.2f}",
        "liquid_s": f"{statistics.median(cpu for cpu, _ in theirs):.2f}",
        "csvc_accuracy_pct": f"{ours[0][1]:.2f}",
        "liquid_accuracy_pct": f"{theirs[0][1]:.2f}",
        "load_1min": f"{os.getloadavg()[0]:.1f}",
    }


def search(X: np.ndarray, y: np.ndarray, Z: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """Return the CPU time of the suite's search with the final training, and the accuracy."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    splits = list(folds.split(X, y))
    points = [{"C": C, "gamma": gamma} for C in C_VALUES for gamma in GAMMAS]
    cpu = time.process_time()
    codes = (y > 0.0).astype(np.int64)
    ground = SearchRows(squared_distances(X), np.arange(len(y)), codes, 2, splits)
    best = search_on_kernels(ground, partial(svmbench.CSVC, stop="gap"), points).best
    model = svmbench.CSVC(C=best["C"], gamma=best["gamma"], stop="gap").fit(X, y)
    cpu = time.process_time() - cpu
    return cpu, 100.0 * float(np.mean(model.predict(Z) == z))


if __name__ == "__main__":
    main()
