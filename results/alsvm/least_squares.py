"""Time `alsvm-batch` on many features beside other ways to the same least-squares solution.

    python results/alsvm/least_squares.py reuters --output results/alsvm

The others are SciPy's: LSQR, and conjugate gradients and Cholesky's factorisation on either form,
(A'A + nu I) w = A'y with nu = 1 / (2C) or w = A'b, (AA' + nu I) b = y, where A is the samples with
a constant feature. LSQR and conjugate gradients have a ladder of tolerances, of which the loosest
counts that leaves a relative residual |A'y - (A'A + nu I) w| / |A'y| of at most 1e-8. Rounds take
turns, on one thread; what takes more than a minute has one. The time of `alsvm-batch` has its check
of the inputs in it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg, lsqr

import svmbench
from svmbench.core.numeric.arrays import append_bias

#: The residual that all must reach.
RESIDUAL = 1e-8

#: Tolerances, tightened until the residual is reached.
LADDER = [10.0**-k for k in range(4, 14)]

#: Rounds of what takes less than `LONG` seconds.
ROUNDS, LONG = 5, 60.0

FIELDS = ("data", "rows", "features", "way", "tolerance", "residual")
TIMES = ("cpu_time_s", "low_s", "high_s", "rounds", "times_ours")

#: What solves for w, told a tolerance; closed forms have no use for it.
Way = Callable[[float], np.ndarray]


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--output", type=Path, help="folder whose least_squares.csv is written")
    given = parser.parse_args()
    lines = [line for name in given.data for line in compare(name, given.C)]
    for line in lines:
        print("  ".join(f"{key}={value}" for key, value in line.items()))
    if given.output:
        path = given.output / "least_squares.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, FIELDS + TIMES, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def compare(name: str, C: float) -> list[dict[str, Any]]:
    """Return one line for each way, ours first."""
    dataset = svmbench.load(name)
    X, y, nu = dataset.X, dataset.y, 1.0 / (2.0 * C)
    A = append_bias(X, 1.0)
    q = A.T @ y

    def residual(w: np.ndarray) -> float:
        return float(np.linalg.norm(q - nu * w - A.T @ (A @ w)) / np.linalg.norm(q))

    def ours(_: float) -> np.ndarray:
        model = svmbench.solver("alsvm-batch", C=C)
        model.train(model.prepare(X, y))
        return np.append(model.coef_[0], model.intercept_[0])

    ways = {"alsvm-batch": ours, **others(A, y, nu)}
    chosen = {name: settle(way, residual, name) for name, way in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for r in range(ROUNDS):
        for way, (tolerance, _, seconds) in chosen.items():
            if r and seconds > LONG:
                continue
            start = time.process_time()
            ways[way](tolerance)
            times[way].append(time.process_time() - start)
    base = statistics.median(times["alsvm-batch"])
    return [
        {
            "data": name,
            "rows": len(y),
            "features": X.shape[1],
            "way": way,
            "tolerance": "" if np.isnan(tolerance) else f"{tolerance:.0e}",
            "residual": f"{left:.1e}",
            "cpu_time_s": f"{statistics.median(times[way]):.4g}",
            "low_s": f"{min(times[way]):.4g}",
            "high_s": f"{max(times[way]):.4g}",
            "rounds": len(times[way]),
            "times_ours": f"{statistics.median(times[way]) / base:.3g}",
        }
        for way, (tolerance, left, _) in chosen.items()
    ]


def others(A: Any, y: np.ndarray, nu: float) -> dict[str, Way]:
    """Return the ways that SciPy offers."""
    n, d = A.shape
    q = A.T @ y
    primal = LinearOperator((d, d), matvec=lambda w: nu * w + A.T @ (A @ w), dtype=np.float64)
    dual = LinearOperator((n, n), matvec=lambda b: nu * b + A @ (A.T @ b), dtype=np.float64)

    def gram(B: Any) -> np.ndarray:
        G = B @ B.T
        G = np.asarray(G.toarray() if sp.issparse(G) else G)
        G[np.diag_indices_from(G)] += nu
        return G

    def factored(B: Any, right: np.ndarray) -> np.ndarray:
        factor = scipy.linalg.cho_factor(gram(B), overwrite_a=True, check_finite=False)
        return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))

    return {
        "LSQR": lambda t: lsqr(A, y, damp=nu**0.5, atol=t, btol=t, iter_lim=20 * d)[0],
        "CG": lambda t: cg(primal, q, rtol=t)[0],
        "CG, dual": lambda t: A.T @ cg(dual, y, rtol=t)[0],
        "Cholesky": lambda _: factored(A.T, q),
        "Cholesky, dual": lambda _: A.T @ factored(A, y),
    }


def settle(way: Way, residual: Callable[[np.ndarray], float], name: str) -> tuple[float, ...]:
    """Return the loosest tolerance that will do, what it leaves, and the CPU time of that call."""
    is_closed = name.startswith(("alsvm", "Cholesky"))
    for tolerance in [float("nan")] if is_closed else LADDER:
        start = time.process_time()
        left = residual(way(tolerance))
        seconds = time.process_time() - start
        if left <= RESIDUAL:
            break
    else:
        raise SystemExit(f"{name} leaves a residual of {left:.1e} at its tightest tolerance")
    return tolerance, left, seconds


if __name__ == "__main__":
    main()
