"""Where the CPU time of a `fit` goes, on data sets of `perf_library`, beside scikit-learn's `fit`.

    python results/smo/parts.py --output results/smo

One thread, inputs scaled to [0, 1], C = 1 (`csvc`) or nu = 0.2 (`nu-svc`), gamma "scale". Shares
are those of nine fits together: kernel values, steps (with the rows that steps make themselves),
scikit-learn's validation of the inputs, and the rest. Ratios are scikit-learn's CPU time over ours:
of the whole `fit`, and of kernel values and validation alone, as if all else took no time. With
`--output` the lines are written to parts.csv.
"""

from __future__ import annotations

import argparse
import csv
import functools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, NuSVC

import svmbench
from svmbench.core.contract import base
from svmbench.core.csvc import pairs, solver, working_sets
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.rows import Rows

SETS = {
    "csvc": (
        *("wifi-localization", "banknote", "breast-cancer-683", "breast-cancer", "haberman"),
        *("monks", "pima", "australian", "a1a", "w1a", "svmguide1", "ctg"),
        *("optdigits", "usps-esl", "digits", "synthetic-11x48", "synthetic-26x231"),
    ),
    "nu-svc": ("svmguide1", "banknote", "wifi-localization", "breast-cancer-683", "a1a", "splice"),
}
#: Larger sets as stored, by themselves: name, first rows, parameters of `csvc`.
LARGE = (
    ("a9a", None, {"C": 1.0, "gamma": 1 / 22}),
    ("cod-rna-train", 20_000, {"C": 1.0, "gamma": 0.1}),
    ("ijcnn1", None, {"C": 32.0, "gamma": 2.0}),
)
FITS, LARGE_FITS = 9, 2
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
    clock.charge(base, "validate_data", "validation")
    for cls in (*kinds_of(Rows), *kinds_of(KernelSource)):
        for name in ("fill", "take_off", "whole", "block", "rows"):
            if callable(vars(cls).get(name)):
                clock.charge(cls, name, "values")
    clock.charge(pairs, "add_up", "values")
    for owner in (solver, working_sets):
        clock.charge(owner, "steps_on_matrix", "steps")
    clock.charge(solver, "shrinking_steps", "steps")
    clock.charge(working_sets, "subtract_rows", "steps")
    clock.charge(pairs, "steps_of_all", "steps")


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


def shares_of(clock: Clock, model: Any, X: Any, y: np.ndarray, fits: int) -> dict[str, float]:
    """Return the share of each part in the CPU time of some fits."""
    clock.turn()
    clock.spent = dict.fromkeys(PARTS, 0.0)
    for _ in range(fits):
        model.fit(X, y)
    clock.turn()
    total = sum(clock.spent.values())
    return {part: spent / total for part, spent in clock.spent.items()}


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
        share = shares_of(clock, models[name], X, y, FITS)
        mine, its = times[name, data]
        left = mine * (share["values"] + share["validation"])
        line = line_of(f"fit {name}", data, y, round(1e3 * mine, 2), share)
        ratios = {"ratio": round(its / mine, 2), "ratio_of_values": round(its / left, 1)}
        lines.append(line | ratios)
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    for data, first, parameters in LARGE:
        loaded = svmbench.load(data)
        X, y = loaded.X[:first], loaded.y[:first]
        model = svmbench.CSVC(**parameters, cache_mb=1024.0)
        begin = time.process_time()
        share = shares_of(clock, model, X, y, LARGE_FITS)
        ms = round(1e3 * (time.process_time() - begin) / LARGE_FITS)
        call = f"fit csvc, C = {parameters['C']:g}, gamma = {parameters['gamma']:.3g}"
        lines.append(line_of(call, data, y, ms, share) | {"ratio": "", "ratio_of_values": ""})
        print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
    if given.output:
        path = given.output / "parts.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
