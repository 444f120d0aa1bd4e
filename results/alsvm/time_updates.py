"""Time ALSVM's adding and removing of a sample with growing numbers of features.

    python results/alsvm/time_updates.py results/alsvm

For each d a model is fitted to 4 d dense samples (standard normal, labels from a random
plane); then one sample at a time is added and removed again. In each of `--rounds` rounds every d
has its turn. `updates.csv` holds the median CPU time of one add and one remove with its range over
the rounds, and the exponent of d fitted from where d^2 is most of the work. In the same column
stands how far the solution is from that of training anew: the largest difference of a weight after
64 samples were added, and after they were removed again, relative to the largest weight.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from pathlib import Path

import numpy as np
from scipy import stats

import svmbench
from svmbench.experiment.measuring import environment

DIMENSIONS = (50, 100, 200, 400, 600, 800, 1200, 1600, 2400, 3200)
#: Below it the fixed cost of a call is of the size of the update.
FITTED_FROM = 400
#: A span that is timed lasts at least this long, seconds.
SPAN_S = 0.05


def main() -> None:
    """Measure, fit and write."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    models = {d: fitted(d) for d in DIMENSIONS}
    seconds: dict[tuple[int, str], list[float]] = {}
    for _ in range(given.rounds):
        for d, (model, x) in models.items():
            added, removed = one_round(model, x)
            seconds.setdefault((d, "add"), []).append(added)
            seconds.setdefault((d, "remove"), []).append(removed)
    apart = {d: differences(d) for d in DIMENSIONS}
    with (given.folder / "updates.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["operation", "d", "cpu_time_s", "low", "high", "rounds", "cpu"])
        cpu = environment.environment_facts(1)["cpu"]
        for (d, operation), values in sorted(seconds.items(), key=lambda item: item[0][::-1]):
            row = [statistics.median(values), min(values), max(values)]
            writer.writerow([operation, d, *(f"{v:.4g}" for v in row), given.rounds, cpu])
        for operation in ("add", "remove"):
            slope, half = exponent({d: seconds[d, operation] for d in DIMENSIONS})
            writer.writerow([f"exponent of {operation}", f"{FITTED_FROM}-{DIMENSIONS[-1]}",
                             f"{slope:.3f}", f"{slope - half:.3f}", f"{slope + half:.3f}",
                             given.rounds, cpu])  # fmt: skip
        for place, operation in enumerate(("add", "remove")):
            for d, values in apart.items():
                line = [f"difference of {operation}", d, f"{values[place]:.3g}", "", "", 1, cpu]
                writer.writerow(line)
    print((given.folder / "updates.csv").read_text(encoding="utf-8"))


def problem(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of d features, the last 64 to be added, and their labels."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((4 * d + 64, d))
    return X, np.where(X @ rng.standard_normal(d) > 0, 1, -1)


def fitted(d: int) -> tuple[object, np.ndarray]:
    """Return a model of d features, and samples that it does not hold."""
    X, y = problem(d)
    model = svmbench.solver("alsvm", C=1.0).fit(X[:-64], y[:-64])
    return model, X[-64:]


def differences(d: int) -> tuple[float, float]:
    """Return how far weights are from retraining, after 64 adds and after as many removes."""
    X, y = problem(d)
    model = svmbench.solver("alsvm", C=1.0).fit(X[:-64], y[:-64])
    fewer = weights(model)
    model.add(X[-64:], y[-64:])
    more = weights(svmbench.solver("alsvm", C=1.0).fit(X, y))
    added = float(np.abs(weights(model) - more).max() / np.abs(more).max())
    model.remove(X[-64:], y[-64:])
    return added, float(np.abs(weights(model) - fewer).max() / np.abs(fewer).max())


def weights(model: object) -> np.ndarray:
    """Return a copy of all weights, the offset last."""
    found = np.ravel(model.coef_), np.ravel(model.intercept_)  # type: ignore[attr-defined]
    return np.concatenate(found)


def one_round(model: object, X: np.ndarray) -> tuple[float, float]:
    """Return the CPU seconds of one add and of one remove, over enough of them to be measured."""
    added = removed = 0.0
    count = 0
    while added + removed < SPAN_S:
        start = time.process_time()
        for x in X:
            model.add(x, 1)  # type: ignore[attr-defined]
        middle = time.process_time()
        for x in X:
            model.remove(x, 1)  # type: ignore[attr-defined]
        removed += time.process_time() - middle
        added += middle - start
        count += len(X)
    return added / count, removed / count


def exponent(seconds: dict[int, list[float]]) -> tuple[float, float]:
    """Return the slope of log time against log d, and half the width of its 95 % interval."""
    kept = {d: statistics.median(v) for d, v in seconds.items() if d >= FITTED_FROM}
    fit = stats.linregress(np.log(list(kept)), np.log(list(kept.values())))
    return float(fit.slope), float(stats.t.ppf(0.975, len(kept) - 2) * fit.stderr)


if __name__ == "__main__":
    main()
