"""Where the CPU time of a process's first fit goes, beyond the import of scikit-learn.

    python results/smo/cold_start.py --processes 15 > results/smo/cold.csv

Each process imports scikit-learn, then Numba, then the solver; calls one compiled function of no
work, which makes Numba set itself up and load that function from its cache; then fits csvc on
breast-cancer, once and once more. One process before them fills the caches, of Numba's code and of
Python's, which they may write here whatever the environment says. A row is a part: the
median of the processes, and their least and largest, in seconds.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys

#: What such a process runs.
PROGRAM = """
import json
from time import process_time as now
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC
X, y = load_breast_cancer(return_X_y=True)
SVC().fit(X, y)
at = [now()]
import numba
at.append(now())
from svmbench import CSVC
model = CSVC()
at.append(now())
import numpy as np
from svmbench.core.csvc.problem import label_bounds
label_bounds(np.ones(1), 1.0)
at.append(now())
for _ in range(2):
    model.fit(X, y)
    at.append(now())
print(json.dumps([later - sooner for sooner, later in zip(at, at[1:])]))
"""

PARTS = ("import numba", "import svmbench", "first compiled function", "first fit", "second fit")


def main() -> None:
    """Measure, and write a table to standard output."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--processes", type=int, default=9)
    given = parser.parse_args()
    one_process()
    found = [one_process() for _ in range(given.processes)]
    rows = dict(zip(PARTS, zip(*found, strict=True), strict=True))
    rows["all but the second fit"] = tuple(sum(times[:-1]) for times in found)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["part", "cpu_time_s", "least_s", "largest_s"])
    for part, times in rows.items():
        middle = statistics.median(times)
        out.writerow([part, *(f"{value:.4f}" for value in (middle, min(times), max(times)))])


def one_process() -> list[float]:
    """Return the CPU seconds of each part, of a process of its own."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    words = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environ)
    return list(json.loads(done.stdout))


if __name__ == "__main__":
    main()
