"""Time searches over C and gamma that start their fits from the neighbouring gamma's solutions.

    python results/nlsgd/gamma_starts.py "a9a[:5000]" splice "ijcnn1[:5000]" --output results/nlsgd

A solution at one gamma is feasible at the next, at the same C; its gradient has to be made anew.
On four fifths of the rows of each set, with C = 4^-2 ... 4^5 and gamma = 4^-5 ... 4^2 in powers of
4 and of its cube root, this counts csvc's steps, stopped by the violation and by the duality gap:
from the solution at the last C (what ``csvc`` does), from that at the last gamma, and from
whichever of the two has the larger dual value. CPU times have the gradients in them.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import svmbench
from svmbench.core.contract.base import warm_up
from svmbench.core.csvc import CSVC
from svmbench.core.csvc.path import stretch
from svmbench.core.csvc.problem import label_bounds
from svmbench.core.csvc.smo import NO_GAP_TEST, Bounds, StoppingCriteria, gradient, shrinking_steps
from svmbench.core.kernels.kernels import gauss_of_distances, squared_distances
from svmbench.core.numeric.arrays import raw
from svmbench.experiment.protocols import folds

VALUES = [4.0**c for c in range(-2, 6)]

#: Factors between two values of gamma, with their numbers from 4^-5 to 4^2.
FACTORS = {4.0: 8, 4.0 ** (1 / 3): 22}

TOL, GAP = 1e-3, 1e-3

#: Where a fit starts.
STARTS = ("along C", "across gamma", "either")


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME")
    parser.add_argument("--output", type=Path, help="folder whose gamma_starts.csv is written")
    given = parser.parse_args()
    warm_up(CSVC)
    lines = []
    for name in given.data:
        distances, y = problem(name)
        for factor, number in FACTORS.items():
            gammas = [4.0**-5 * factor**k for k in range(number)]
            for stop in ("kkt", "gap"):
                found = compare(distances, y, gammas, by_gap=stop == "gap")
                lines += [
                    {"data": name, "factor": f"{factor:.3g}", "stop": stop, "start": start} | work
                    for start, work in found.items()
                ]
                print(*lines[-len(STARTS) :], sep="\n")
    if given.output:
        with (given.output / "gamma_starts.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def problem(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances and labels ±1 of the training rows of one fold of five, scaled."""
    data = svmbench.load(name)
    rows = folds.outer_splits(np.asarray(data.y), 5, seed=0)[0][0]
    X = folds.scale(folds.take(data.X, rows), "minmax", np.arange(len(rows)))
    return squared_distances(X), np.where(data.y[rows] == np.max(data.y), 1.0, -1.0)


def compare(
    distances: np.ndarray, y: np.ndarray, gammas: list[float], *, by_gap: bool
) -> dict[str, dict[str, Any]]:
    """Return steps and CPU seconds by start, of all gammas but the first, which has no neighbour.

    Parameters
    ----------
    distances : ndarray of shape (n, n)
        Squared.
    y : ndarray of shape (n,)
        Labels ±1.
    gammas : list of float
    by_gap : bool
        Whether the duality gap ends a fit, in place of the violation alone.
    """
    steps, seconds = dict.fromkeys(STARTS, 0), dict.fromkeys(STARTS, 0.0)
    neighbours: dict[float, np.ndarray] = {}
    for gamma in gammas:
        K = raw(gauss_of_distances(distances, gamma))
        beta, v, before = np.zeros(len(y)), y.copy(), 0.0
        for C in VALUES:
            made = [clocked(lambda: along(y, before, C, beta, v))]  # noqa: B023 - called here
            made.append(clocked(lambda: across(K, y, neighbours.get(C))))  # noqa: B023
            duals = [float(b @ y - 0.5 * b @ (y - g)) for (b, g), _ in made]
            solved = [clocked(lambda: fit(K, y, C, by_gap, *start)) for start, _ in made]  # noqa: B023
            if C in neighbours:
                own = [cost + made[s][1] for s, (_, cost) in enumerate(solved)]
                better = int(duals[1] > duals[0])
                for s, start in enumerate(STARTS):
                    which = better if start == "either" else s
                    steps[start] += solved[which][0]
                    tried = made[1 - better][1] if start == "either" else 0.0
                    seconds[start] += own[which] + tried
            beta, v = made[0][0]
            neighbours[C], before = beta.copy(), C
    return {name: {"steps": steps[name], "cpu_s": f"{seconds[name]:.3g}"} for name in STARTS}


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `work` returns and the CPU seconds that it took."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def along(
    y: np.ndarray, before: float, C: float, beta: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a start from the solution at the last C, with its gradient."""
    beta, v = beta.copy(), v.copy()
    if before:
        stretch(y, before, C, beta, v)
    return beta, v


def across(K: np.ndarray, y: np.ndarray, beta: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return a start from the solution at the last gamma, with its gradient."""
    beta = np.zeros(len(y)) if beta is None else beta.copy()
    return beta, gradient(K, raw(y), beta)


def fit(
    K: np.ndarray, y: np.ndarray, C: float, by_gap: bool, beta: np.ndarray, v: np.ndarray
) -> int:
    """Solve from a start, in place; return the steps."""
    max_gap = GAP * C * len(y) if by_gap else NO_GAP_TEST
    diag, bounds = raw(K.diagonal().copy()), Bounds(*label_bounds(y, C))
    criteria, one_group = StoppingCriteria(TOL, 10**7, max_gap), np.zeros(len(y), dtype=np.int64)
    return shrinking_steps(K, diag, bounds, criteria, beta, v, one_group)[0]


if __name__ == "__main__":
    main()
