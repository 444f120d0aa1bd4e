"""Compare `fit` at scikit-learn's default parameters: svmbench's classes beside scikit-learn's.

    python results/perf/default_parameters.py --rounds 5 --output results/perf

One thread; the features of each set are scaled to [0, 1]. `csvc` stands beside SVC, `nu-svc` beside
NuSVC (on two classes, if nu = 0.5 is feasible), `newton-l2`, which solves LinearSVC's problem,
beside LinearSVC, and `one-class` beside OneClassSVM (on the most frequent class). Both sides have
the default parameters of scikit-learn. After one call of each, both take turns; the CPU time of a
call counts. `same_predictions` is the share of training samples that both models predict alike;
LinearSVC also penalises its offset. Lines are sorted by ratio, the worst first; the file is written
after each case, so that a run that ends early leaves the cases that it has measured.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM

import svmbench

#: Data sets, from 100 to 50,000 rows.
NAMES = """
    wine.scale sonar_scale glass.scale heart_scale iris dermatology breast-cancer-569 australian
    breast-cancer-683 pima diabetes_scale vehicle.scale german.numer_scale splice biodegradation
    svmguide3 banknote hcv-egy cmc yeast a1a digits wifi-localization ctg segment.scale svmguide1
    a3a w1a synthetic-100x30 abalone wine-quality optdigits synthetic-26x231 musk shill-bidding
    usps-esl mushrooms a6a electrical mnist[:6000] w5a ijcnn1[:20000]
"""


def main() -> None:
    """Measure all cases, and write a line for each."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=NAMES.split(), help="names of data sets")
    parser.add_argument("--output", type=Path, help="folder of default_parameters.csv")
    given = parser.parse_args()
    lines = []
    for name in given.sets:
        X, y = scaled(name)
        for ours, theirs, own_y in cases(X, y):
            own_X = X if own_y is not None else X[y == most_frequent(y)]
            try:
                line = compare(ours, theirs, own_X, own_y, given.rounds)
            except ValueError as error:  # NuSVC refuses its model where rho is 0
                print(f"{name}: no comparison: {error}", flush=True)
                continue
            lines.append({"dataset": name, **line})
            print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
            if given.output:
                write(given.output / "default_parameters.csv", lines)


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write the lines, those with the smallest ratio first."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: float(line["ratio"])))


def scaled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a registered data set, dense, with features from 0 to 1."""
    data = svmbench.load(name)
    X = data.X.toarray() if sp.issparse(data.X) else np.array(data.X, dtype=np.float64)
    least, most = X.min(axis=0), X.max(axis=0)
    return (X - least) / np.where(most > least, most - least, 1.0), np.asarray(data.y)


def most_frequent(y: np.ndarray) -> Any:
    """Return the most frequent class."""
    classes, counts = np.unique(y, return_counts=True)
    return classes[np.argmax(counts)]


def cases(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[Any, Any, np.ndarray | None]]:
    """Yield both sides' estimators with their labels; None where there are none."""
    counts = np.unique(y, return_counts=True)[1]
    yield svmbench.solver("csvc", C=1.0, gamma="scale"), SVC(), y
    if len(counts) == 2:
        if counts.min() >= 0.25 * len(y):
            yield svmbench.solver("nu-svc", nu=0.5, gamma="scale"), NuSVC(), y
        yield svmbench.solver("newton-l2", C=1.0), LinearSVC(), y
    yield svmbench.solver("one-class", nu=0.5, gamma="scale"), OneClassSVM(), None


def compare(
    ours: Any, theirs: Any, X: np.ndarray, y: np.ndarray | None, rounds: int
) -> dict[str, Any]:
    """Return the line of a case: CPU times, their ratio with its range, and agreement."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(rounds + 1):
        for side, model in (("ours", ours), ("theirs", theirs)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                begin = time.process_time()
                model.fit(X) if y is None else model.fit(X, y)
                used = time.process_time() - begin
            if turn:
                times[side].append(used)
    ratios = np.array(times["theirs"]) / np.array(times["ours"])
    return {
        "ours": type(ours).__name__,
        "theirs": type(theirs).__name__,
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": 1 if y is None else len(np.unique(y)),
        "ours_cpu_s": f"{np.median(times['ours']):.4f}",
        "theirs_cpu_s": f"{np.median(times['theirs']):.4f}",
        "ratio": f"{np.median(ratios):.2f}",
        "least": f"{ratios.min():.2f}",
        "most": f"{ratios.max():.2f}",
        "same_predictions": f"{np.mean(ours.predict(X) == theirs.predict(X)):.4f}",
        "load_1min": f"{os.getloadavg()[0]:.1f}",
    }


if __name__ == "__main__":
    main()
