"""Iterations of SGD-LSSVM on separable points of a known margin, beside the bound of Theorem 6(2).

    python results/sgdlssvm/margin.py --output results/sgdlssvm

The theorem says that the number of iterations does not depend on N where a margin m separates the
points: |f(alpha)| at the optimum is below 1/(2 m^2), so that the iterations are at most
2 (t R^2 + nu) / (2 m^2 eps^2). Its proof takes the minimum of the hard-margin dual over free alpha;
that dual has alpha >= 0. Points lie at 1 to 2 on their class's side of the origin along the first
axis, and anywhere in -1 to 1 along the second: w = (1, 0) separates them with the margin 1 for
every N. |f(alpha)| comes from the primal problem, which has three variables, solved directly.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import svmbench

#: The paper's precision and number of columns; its C is chosen by a search.
EPSILON, T, C = 0.01, 1, 1.0

#: The margin of all sets of points.
MARGIN = 1.0


def main() -> None:
    """Measure every number of points that the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    sizes = [250, 500, 1000, 2000, 4000, 8000]
    parser.add_argument("sizes", nargs="*", type=int, default=sizes, metavar="N")
    parser.add_argument("--output", type=Path, help="folder whose margin.csv is written")
    given = parser.parse_args()
    lines = [measure(n) for n in given.sizes]
    for line in lines:
        print(
            "N = {rows}: {iterations} iterations, bound {iterations_bound}; "
            "|f| = {objective}, bound {objective_bound}".format(**line)
        )
    if given.output:
        with (given.output / "margin.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def measure(n: int) -> dict[str, int | str]:
    """Return a line of the table for n points."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = np.column_stack([y * rng.uniform(MARGIN, 2.0 * MARGIN, n), rng.uniform(-1.0, 1.0, n)])
    model = svmbench.solver("sgd-lssvm", kernel="linear", C=C, t=T, tol=EPSILON, max_iter=10**7)
    model.fit(X, y)
    nu = 1.0 / (2.0 * C)
    signed = np.column_stack([X, np.ones(n)]) * y[:, None]
    w = np.linalg.solve(signed.T @ signed + nu * np.eye(3), signed.sum(axis=0))
    objective = 0.5 * w @ w + C * ((1.0 - signed @ w) ** 2).sum()
    bound = 1.0 / (2.0 * MARGIN**2)
    square = float((signed**2).sum(axis=1).max())
    return {
        "rows": n,
        "margin": f"{MARGIN:g}",
        "C": f"{C:g}",
        "epsilon": f"{EPSILON:g}",
        "iterations": int(model.n_iter_),
        "stop_reason": model.stop_reason_,
        "iterations_bound": round(2.0 * (T * square + nu) * bound / EPSILON**2),
        "objective": f"{objective:.2f}",
        "objective_bound": f"{bound:g}",
    }


if __name__ == "__main__":
    main()
