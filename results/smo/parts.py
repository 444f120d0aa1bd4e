"""Where the CPU time of a `fit` goes, on data sets of `perf_library`, beside scikit-learn's `fit`.

    python results/smo/parts.py --output results/smo

One thread, inputs scaled to [0, 1], C = 1 (`csvc`) or nu = 0.2 (`nu-svc`), gamma "scale". Shares
are those of nine fits together: kernel values, steps (with the rows that steps make themselves),
scikit-learn's validation of the inputs, and the rest. Ratios are scikit-learn's CPU time over ours:
of the whole `fit`, of kernel values and validation alone, as if all else took no time, and of
these with the steps, as if only the rest took no time.
Further calls stand by themselves, without a ratio: large sets, several classes, training alone
(`train`), a search over C and gamma (that of ``nlsgd/liquidsvm.py``), the warning of `nu-svc` with
its search for a nu that has a margin (the largest class against the others), a linear one-class
SVM on many rows, and a prediction. Of the linear one-class SVM, "values" are products of all rows
with a vector, and "steps" the selection of rows. In `dcd-l1`, "steps" are its passes. In
`newton-l2`, "values" are products with rows, and "steps" the factors of a sample's Hessian and
products with them. With `--output` the lines are written to parts.csv.
"""

from __future__ import annotations

import argparse
import csv
import functools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, NuSVC

import svmbench
from svmbench.core.contract import base
from svmbench.core.csvc import pairs, path, solver, working_sets
from svmbench.core.kernels import prediction
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.rows import Rows
from svmbench.core.linear import dcd, hessian
from svmbench.core.nu import nu_pairs
from svmbench.core.oneclass import min_norm
from svmbench.experiment.protocols import kernel_search

sys.path.append(str(Path(__file__).resolve().parent.parent / "nlsgd"))
import liquidsvm

SETS = {
    "csvc": (
        *("wifi-localization", "banknote", "breast-cancer-683", "breast-cancer", "haberman"),
        *("monks", "pima", "australian", "a1a", "w1a", "svmguide1", "ctg"),
        *("optdigits", "usps-esl", "digits", "synthetic-11x48", "synthetic-26x231"),
    ),
    "nu-svc": ("svmguide1", "banknote", "wifi-localization", "breast-cancer-683", "a1a", "splice"),
}
#: Calls without an opponent here: method, solver, parameters, data set and its first rows. Inputs
#: of `csvc` are as stored; `one-class` has the first rows of the most frequent class.
OTHERS: tuple[tuple[str, str, dict[str, float], str, int | None], ...] = (
    ("fit", "csvc", {"C": 1.0, "gamma": 1 / 22}, "a9a", None),
    ("fit", "csvc", {"C": 1.0, "gamma": 0.1}, "cod-rna-train", 20_000),
    ("fit", "csvc", {"C": 32.0, "gamma": 2.0}, "ijcnn1", None),
    ("train", "csvc", {"C": 1.0, "gamma": 1 / 22}, "ijcnn1", None),
    *(("train", "one-class", {"nu": nu}, "svmguide1", None) for nu in (0.05, 0.01)),
    ("train", "one-class", {"nu": 0.05, "gamma": 50.0}, "electrical", None),
    *(("fit", "one-class", {"nu": 0.05}, data, 30) for data in ("iris", "wine.scale")),
    *(
        ("fit", "nu-svc", {"nu": nu}, data, None)
        for data, nu in (
            *(("vehicle.scale", 0.5), ("segment.scale", 0.05), ("digits", 0.05)),
            *(("dermatology", 0.1), ("glass.scale", 0.2), ("eukaryotic", 0.3), ("svmguide3", 0.3)),
        )
    ),
    ("train", "newton-l2", {"tol": 0.03}, "mnist-t10k-even-odd", None),
    *(
        ("train", "dcd-l1", {"tol": 0.12}, data, None)
        for data in ("svmguide1", "banknote", "wine-quality", "digits-even-odd")
    ),
)
#: Data sets of the search over C and gamma, with their rows.
SEARCHES = (("splice", ""), ("a9a", "5000"), ("ijcnn1", "5000"))
#: Data sets of the search for a nu, whose inputs are as stored, with gamma, at a nu of USELESS_NU.
USEFUL, USELESS_NU = (("yeast", 1 / 8), ("haberman", 0.5)), 0.02
#: Rows and features of the linear one-class SVM, and nu.
LINEAR = (1_000_000, 10, 0.01)
#: Data set of the prediction, and its training and test rows.
PREDICTION = ("ijcnn1", 10_000, 4000)
FITS, OTHER_SECONDS = 9, 1.0
PARTS = ("values", "steps", "validation", "rest")


class Clock:
    """CPU time by parts: that of a call inside another one counts for the inner one alone."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.running, self.since = ["rest"], time.process_time()

    def turn(self) -> None:
        """Charge the time since the last turn to the part that runs."""
        now = time.process_time()
        self.spent[self.running[-1]] += now - self.since
        self.since = now

    def charge(self, owner: Any, name: str, part: str) -> None:
        """Count the calls of one function as a part."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            self.turn()
            self.running.append(part)
            try:
                return function(*given, **named)
            finally:
                self.turn()
                self.running.pop()

        setattr(owner, name, timed)


def kinds_of(cls: type) -> list[type]:
    """Return a class with all classes below it."""
    return [cls, *(below for each in cls.__subclasses__() for below in kinds_of(each))]


def charge_all(clock: Clock) -> None:
    """Count the calls of a fit by parts."""
    for name in ("validated", "require_squares"):
        clock.charge(base, name, "validation")
    for cls in (*kinds_of(Rows), *kinds_of(KernelSource)):
        for name in ("fill", "take_off", "whole", "block", "rows"):
            if callable(vars(cls).get(name)):
                clock.charge(cls, name, "values")
    for name in ("add_up", "correct_gauss"):
        clock.charge(pairs, name, "values")
    for owner in (solver, working_sets):
        clock.charge(owner, "steps_on_matrix", "steps")
    clock.charge(solver, "shrinking_steps", "steps")
    clock.charge(working_sets, "subtract_rows", "steps")
    for owner in (pairs, nu_pairs):
        clock.charge(owner, "steps_of_all", "steps")
    clock.charge(path, "follow_c", "steps")
    for name in ("passes_dense", "passes_csr"):
        clock.charge(dcd, name, "steps")
    for name in ("gather", "gauss_of_distances"):
        clock.charge(kernel_search, name, "values")
    clock.charge(liquidsvm, "squared_distances", "values")
    for name in ("times", "combine", "curvature"):
        clock.charge(hessian.RowProducts, name, "values")
    for name in ("make", "solve"):
        clock.charge(hessian.SampleHessian, name, "steps")
    for name in ("lowest", "choose_band", "violation_and_rho"):
        clock.charge(min_norm, name, "steps")


class TimedRows:
    """Rows whose products with a vector are charged as values."""

    __array_ufunc__ = None  # a vector times these rows calls __rmatmul__

    def __init__(self, X: np.ndarray, clock: Clock) -> None:
        self.X, self.shape = X, X.shape
        clock.charge(self, "times", "values")

    def times(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return a product."""
        return left @ right

    def __matmul__(self, w: np.ndarray) -> np.ndarray:
        return self.times(self.X, w)

    def __rmatmul__(self, beta: np.ndarray) -> np.ndarray:
        return self.times(beta, self.X)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.X[rows]


def inputs_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set, dense, scaled to [0, 1]."""
    data = svmbench.load(name)
    X = np.asarray(data.X.toarray() if sp.issparse(data.X) else data.X, dtype=float)
    least, most = X.min(axis=0), X.max(axis=0)
    return (X - least) / np.where(most > least, most - least, 1.0), np.asarray(data.y)


def seconds_of(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the CPU time of one fit."""
    begin = time.process_time()
    model.fit(X, y)
    return time.process_time() - begin


def shares_of(clock: Clock, call: Callable[[], Any], calls: int) -> dict[str, float]:
    """Return the share of each part in the CPU time of some calls."""
    clock.turn()
    clock.spent = dict.fromkeys(PARTS, 0.0)
    for _ in range(calls):
        call()
    clock.turn()
    total = sum(clock.spent.values())
    return {part: spent / total for part, spent in clock.spent.items()}


def other_calls(clock: Clock) -> Iterator[tuple[str, str, np.ndarray, Callable[[], Any]]]:
    """Yield the words for each call without an opponent, its data, its labels, and the call."""
    for method, name, parameters, data, rows in OTHERS:
        if name == "csvc":
            loaded = svmbench.load(data)
            X, y = loaded.X[:rows], np.asarray(loaded.y[:rows])
        else:
            X, y = inputs_of(data)
        if name == "one-class":
            classes, counts = np.unique(y, return_counts=True)
            X, y = X[y == classes[counts.argmax()]][:rows], np.ones(counts.max())[:rows]
        model = svmbench.solver(name, **parameters)
        if method == "fit":
            call = partial(model.fit, X, y)
        else:
            call = partial(model.train, model.prepare(X, y))
        given = ", ".join(f"{key} = {value:.3g}" for key, value in parameters.items())
        yield f"{method} {name}, {given}", data, y, call
    for data, gamma in USEFUL:
        loaded = svmbench.load(data)
        X, labels = loaded.X, np.asarray(loaded.y)
        classes, counts = np.unique(labels, return_counts=True)
        y = np.where(labels == classes[counts.argmax()], 1.0, -1.0)
        model = svmbench.solver("nu-svc", nu=USELESS_NU, gamma=gamma)
        prepared = model.prepare(X, y)
        model.train(prepared)
        yield "search nu with a margin", data, y, partial(model.no_margin_warning, prepared)
    for data, given in SEARCHES:
        X, Z, y, z = liquidsvm.split(data, given)
        yield "search csvc", data, y, partial(liquidsvm.search, X, y, Z, z)
    n, d, nu = LINEAR
    X = TimedRows(np.random.default_rng(0).normal(3.0, 1.0, (n, d)), clock)
    call = partial(min_norm.solve_min_norm, X, nu * n, 1.0, tol=0.1, max_iter=1000)
    yield f"train one-class, linear, nu = {nu:g}", "gaussian", np.ones(n), call
    name, n_rows, n_tested = PREDICTION
    X, y = inputs_of(name)
    model = svmbench.solver("csvc", C=1.0, gamma=1 / 22).fit(X[:n_rows], y[:n_rows])
    rows = X[n_rows : n_rows + n_tested]
    clock.charge(prediction.DenseTiles, "fill", "values")
    call = partial(model.predict, rows, precision="single")
    yield "predict csvc, single precision", name, y[n_rows : n_rows + n_tested], call


def line_of(call: str, data: str, y: np.ndarray, ms: float, share: dict[str, float]) -> dict:
    """Return a line of the table without ratios."""
    parts = {f"{part}_pct": f"{100.0 * share[part]:.0f}" for part in PARTS}
    classes = len(np.unique(y))
    return {"call": call, "data": data, "rows": len(y), "classes": classes, "fit_ms": ms} | parts


def main() -> None:
    """Measure all sets."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder whose parts.csv is written")
    given = parser.parse_args()
    calls = [(name, data) for name, sets in SETS.items() for data in sets]
    ours = {"csvc": {"C": 1.0}, "nu-svc": {"nu": 0.2}}
    models = {name: svmbench.solver(name, **ours[name], cache_mb=1024.0) for name in ours}
    others = {"csvc": SVC(cache_size=1024), "nu-svc": NuSVC(nu=0.2, cache_size=1024)}
    times: dict[tuple[str, str], tuple[float, float]] = {}
    for name, data in calls:
        X, y = inputs_of(data)
        both = models[name], others[name]
        rounds = [[seconds_of(model, X, y) for model in both] for _ in range(FITS + 1)][1:]
        mine, its = (statistics.median(column) for column in zip(*rounds, strict=True))
        times[name, data] = mine, its
    clock, lines = Clock(), []
    charge_all(clock)
    for name, data in calls:
        X, y = inputs_of(data)
        share = shares_of(clock, partial(models[name].fit, X, y), FITS)
        mine, its = times[name, data]
        left = mine * (share["values"] + share["validation"])
        with_steps = left + mine * share["steps"]
        line = line_of(f"fit {name}", data, y, round(1e3 * mine, 2), share)
        ratios = {
            "ratio": round(its / mine, 2),
            "ratio_of_values": round(its / left, 1),
            "ratio_with_steps": round(its / with_steps, 1),
        }
        lines.append(line | ratios)
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    for words, data, y, call in other_calls(clock):
        begin = time.process_time()
        call()  # compiles, and fills the caches
        count = max(1, int(OTHER_SECONDS / (time.process_time() - begin)))
        begin = time.process_time()
        share = shares_of(clock, call, count)
        ms = round(1e3 * (time.process_time() - begin) / count, 2)
        lines.append(line_of(words, data, y, ms, share) | dict.fromkeys(ratios, ""))
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if given.output:
        path = given.output / "parts.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
