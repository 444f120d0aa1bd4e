"""What comes of doing otherwise where a solver leaves its paper, or where the paper leaves it open.

    python results/smo/deviations.py > results/smo/deviations.csv

A row is one of these on one data set, with what was counted in the solver's own way and in the
other, and the other's number over its own:

- ``smo errors``: the linear kernel's cached errors by increments of kernel values, as any other
  kernel's, and not from the weight vector. CPU seconds, and pair steps.
- ``chunking values``: all kernel values of a chunk made anew, and not only those of examples that
  enter. Kernel evaluations.
- ``svm-light halves``: the q / 2 samples of each end of the gradient, wherever the middle threshold
  lies. Working sets, pair steps and kernel evaluations.
- ``svm-light rows``: the rows that were made after the first check of all samples never made. No
  cache could save more; kernel evaluations.
- ``nl-sgd updates``: the mean over the last half of the steps that changed the model, and not over
  the last half of all. Accuracy in per cent on the third of the samples that is held out, the mean
  of ten orders.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from time import process_time
from typing import Any
from unittest import mock

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from svmbench import NLSGD, SMO, Chunking, SVMLight, load
from svmbench.core.kernel_svm import decomposition
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.numeric.random import generator

DATA = ("a1a", "w1a", "german.numer_scale", "breast-cancer", "splice")

#: A counter's name, its number in the solver's own way, and in the other.
Counted = tuple[str, float, float]


def samples(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a set's samples, each feature from 0 to 1, and labels ±1."""
    data = load(name)
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    return MinMaxScaler().fit_transform(X), np.where(data.y == np.max(data.y), 1.0, -1.0)


def counters_of(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, int]:
    """Train, and return the counters and ``n_iter``."""
    model.train(model.prepare(X, y))
    return {**model.counters_, "n_iter": model.n_iter_}


def compare(own: dict[str, int], other: dict[str, int], *names: str) -> Iterator[Counted]:
    """Return some of the counters in both ways."""
    for name in names:
        yield name, own[name], other[name]


def smo_errors(X: np.ndarray, y: np.ndarray) -> Iterator[Counted]:
    """Take the linear kernel as a polynomial of degree 1, for which `smo` has no weight vector."""
    models = (
        SMO(C=1.0, kernel="linear"),
        SMO(C=1.0, kernel="poly", degree=1, gamma=1.0, coef0=0.0),
    )
    times: list[list[float]] = [[], []]
    found: list[dict[str, int]] = []
    for _ in range(3):
        for model, took in zip(models, times, strict=True):
            before = process_time()
            found.append(counters_of(model, X, y))
            took.append(process_time() - before)
    yield from compare(found[0], found[1], "updates")
    own, other = (float(np.median(took)) for took in times)
    yield "cpu_time_s", own, other


def chunking_values(X: np.ndarray, y: np.ndarray) -> Iterator[Counted]:
    """Have every member leave and come back whenever a chunk changes."""
    replace = decomposition.Chunk.replace

    def anew(chunk: decomposition.Chunk, leaving: np.ndarray, entering: np.ndarray) -> None:
        everyone = np.arange(len(chunk.members))
        stays = np.delete(chunk.members, leaving)
        replace(chunk, everyone, np.concatenate([stays, entering]))

    own = counters_of(Chunking(C=1.0), X, y)
    with mock.patch.object(decomposition.Chunk, "replace", anew):
        other = counters_of(Chunking(C=1.0), X, y)
    yield from compare(own, other, "n_iter", "kernel_evaluations")


def from_both_ends(
    v: np.ndarray, beta: np.ndarray, low: np.ndarray, high: np.ndarray, half: int
) -> tuple[np.ndarray, float]:
    """Return the `half` variables of largest gradient that can rise, and the same of the other end.

    In place of ``decomposition.steepest``.
    """
    rising, falling = np.where(beta < high, v, -np.inf), np.where(beta > low, v, np.inf)
    gap = float(rising.max() - falling.min())
    top = np.argsort(-rising, kind="stable")[:half]
    top = top[np.isfinite(rising[top])]
    falling[top] = np.inf
    bottom = np.argsort(falling, kind="stable")[:half]
    return np.concatenate([top, bottom[np.isfinite(falling[bottom])]]), gap


def svm_light_halves(X: np.ndarray, y: np.ndarray) -> Iterator[Counted]:
    """Take the working sets from both ends of the gradient alone."""
    own = counters_of(SVMLight(C=1.0), X, y)
    with mock.patch.object(decomposition, "steepest", from_both_ends):
        other = counters_of(SVMLight(C=1.0), X, y)
    yield from compare(own, other, "n_iter", "updates", "kernel_evaluations")


def svm_light_rows(X: np.ndarray, y: np.ndarray) -> Iterator[Counted]:
    """Note how many values had been made when all samples were checked for the first time."""
    at_checks: list[int] = []
    bring_back = decomposition.Taking.bring_back

    def noted(taking: decomposition.Taking, whole: Any) -> None:
        made = taking.evaluations + taking.maker.evaluations
        bring_back(taking, whole)
        # Rows for working sets, and what this check takes in any case.
        at_checks.extend([made, taking.evaluations - made])

    with mock.patch.object(decomposition.Taking, "bring_back", noted):
        own = counters_of(SVMLight(C=1.0), X, y)
    yield "checks", own["checks"], own["checks"]
    yield "kernel_evaluations", sum(at_checks), at_checks[0] + sum(at_checks[1::2])


def nl_sgd_updates(X: np.ndarray, y: np.ndarray) -> Iterator[Counted]:
    """Average by plain loops over the last half of the updates."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    scores: list[tuple[float, float]] = []
    for seed in range(10):
        model = NLSGD(C=10_000.0, random_state=seed).fit(X, y)
        K = KernelFunction("rbf", model.gamma_)
        alpha = mean_of_updates(K.between(X, X), y, model.C, int(model.epochs), seed)
        f = K.between(X_test, X) @ (alpha * y)
        other = accuracy_score(y_test, np.where(f >= 0.0, 1.0, -1.0))
        scores.append((accuracy_score(y_test, model.predict(X_test)), other))
    own, others = np.mean(scores, axis=0)
    yield "accuracy_pct", 100.0 * own, 100.0 * others


def mean_of_updates(K: np.ndarray, y: np.ndarray, C: float, epochs: int, seed: int) -> np.ndarray:
    """Return the mean model over the last half of the steps with a violation, shape (n,)."""
    f, counts = np.zeros(len(y)), np.zeros(len(y))
    order = np.tile(generator(seed).permutation(len(y)), epochs)
    models: list[np.ndarray] = []
    for t, i in enumerate(order, start=1):
        if y[i] * f[i] * C < t:
            counts[i] += 1.0
            f += y[i] * K[i]
            models.append(C / t * counts)
    return np.mean(models[len(models) // 2 :], axis=0)


DEVIATIONS = {
    "smo errors": smo_errors,
    "chunking values": chunking_values,
    "svm-light halves": svm_light_halves,
    "svm-light rows": svm_light_rows,
    "nl-sgd updates": nl_sgd_updates,
}


def main() -> None:
    """Measure all on all data sets, and write a table to standard output."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["deviation", "data", "rows", "counter", "own", "other", "ratio"])
    for name in DATA:
        X, y = samples(name)
        for deviation, measure in DEVIATIONS.items():
            for counter, own, other in measure(X, y):
                numbers = f"{own:.6g}", f"{other:.6g}", f"{other / own:.3f}"
                out.writerow([deviation, name, len(y), counter, *numbers])


if __name__ == "__main__":
    main()
