"""What share of a solver's call some of its functions take: reasons are measured, too.

    python results/smo/profile_share.py chunking a9a:4781 \
        svmbench.core.kernel_svm.projected_gradient.maximise \
        kernel=rbf C=1 gamma=0.05 --output results/smo
    python results/smo/profile_share.py csvc optdigits \
        svmbench.core.csvc.pairs.steps_of_all C=1 gamma=scale cache_mb=1024 \
        --call fit --scale --repeats 15 --output results/smo
    python results/smo/profile_share.py csvc a9a:4000 \
        svmbench.core.csvc.path.follow_c stop=gap --call search --output results/smo

Calls once to load what is compiled, then `--repeats` times with the time inside each function taken
apart, and prints the median shares with their range; a function inside another counts in both. With
`--output` the lines are also entered into `profile.csv` of that folder, in place of earlier ones of
the same measurement. `search` is a search on all rows by five folds, of the grid of `perf_search`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import pkgutil
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale

import svmbench
from svmbench.core.kernels.kernels import squared_distances
from svmbench.experiment.config.yaml_source import parse_value
from svmbench.experiment.measuring import environment
from svmbench.experiment.protocols.kernel_search import SearchRows, search_on_kernels

FIELDS = (
    "solver", "data", "rows", "params", "call", "function", "share_pct", "low_pct", "high_pct",
    "cpu_time_s", "repeats", "cpu", "numpy", "numba", "python",
)  # fmt: skip
IDENTITY = FIELDS[:6]

#: What may be looked into.
CALLS = ("train", "fit", "decision_function", "search")

#: What a search scores, and its folds.
GRID = [{"C": 4.0**c, "gamma": 4.0**g} for c in range(-2, 6) for g in range(-5, 3)]
FOLDS = 5


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("solver")
    parser.add_argument("data", help="a data set's name; NAME:N for its first N rows")
    parser.add_argument("functions", help="dotted names of functions, with commas between")
    parser.add_argument("params", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--call", choices=CALLS, default="train")
    parser.add_argument("--scale", action="store_true", help="scale the features to [0, 1]")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="folder whose profile.csv takes the lines")
    given = parser.parse_intermixed_args()
    params = {
        name: parse_value(value) for name, _, value in (p.partition("=") for p in given.params)
    }
    name, _, rows = given.data.partition(":")
    dataset = svmbench.load(name)
    kept = int(rows) if rows else len(dataset.y)
    X, y = dataset.X[:kept], dataset.y[:kept]
    if given.scale:
        X = minmax_scale(X.toarray() if sp.issparse(X) else X)
    estimator = svmbench.solver(given.solver, **params)
    functions = given.functions.split(",")
    shares, totals = shares_of(prepared(estimator, given.call, X, y), functions, given.repeats)
    found = environment.environment_facts(1)
    for function in functions:
        line = {
            "solver": given.solver,
            "data": name,
            "rows": kept,
            "params": " ".join(sorted(given.params) + ["scaled"] * given.scale),
            "call": given.call,
            "function": function,
            "share_pct": f"{statistics.median(shares[function]):.1f}",
            "low_pct": f"{min(shares[function]):.1f}",
            "high_pct": f"{max(shares[function]):.1f}",
            "cpu_time_s": f"{statistics.median(totals):.3g}",
            "repeats": given.repeats,
            "cpu": found["cpu"],
            "numpy": found["packages"]["numpy"],
            "numba": found["packages"]["numba"],
            "python": platform.python_version(),
        }
        print(
            f"{line['share_pct']} % ({line['low_pct']}-{line['high_pct']})"
            f" of {line['cpu_time_s']} s in {function}"
        )
        if given.output:
            enter(given.output / "profile.csv", line)


def prepared(estimator: Any, call: str, X: Any, y: Any) -> Callable[[], Any]:
    """Return the call without arguments, all that comes before it done."""
    if call == "fit":
        return lambda: estimator.fit(X, y)
    if call == "decision_function":
        estimator.fit(X, y)
        return lambda: estimator.decision_function(X)
    if call == "search":
        codes = np.unique(y, return_inverse=True)[1]
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        places = np.arange(len(codes)), codes, int(codes.max()) + 1
        ground = SearchRows(squared_distances(X), *places, list(folds.split(X, codes)))
        build = partial(_with, estimator)
        return lambda: search_on_kernels(ground, build, GRID, ties="first")
    data = estimator.prepare(X, y)
    return lambda: estimator.train(data)


def _with(estimator: Any, **point: Any) -> Any:
    return clone(estimator).set_params(**point)


def shares_of(
    call: Callable[[], Any], functions: list[str], repeats: int
) -> tuple[dict[str, list[float]], list[float]]:
    """Return each function's share (%) of each call's CPU time, and those times (s)."""
    inside = dict.fromkeys(functions, 0.0)

    def timed(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def replacement(*arguments: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return original(*arguments, **named)
            finally:
                inside[name] += time.process_time() - start

        return replacement

    call()
    shares: dict[str, list[float]] = {name: [] for name in functions}
    totals = []
    with contextlib.ExitStack() as patches:
        for name in functions:
            module, _, attribute = name.rpartition(".")
            home = pkgutil.resolve_name(module)
            replacement = timed(name, getattr(home, attribute))
            patches.enter_context(mock.patch.object(home, attribute, replacement))
        for _ in range(repeats):
            inside.update(dict.fromkeys(functions, 0.0))
            start = time.process_time()
            call()
            totals.append(time.process_time() - start)
            for name in functions:
                shares[name].append(100.0 * inside[name] / totals[-1])
    for name in functions:
        if not any(shares[name]):
            raise SystemExit(f"{name} was never called through its module")
    return shares, totals


def enter(path: Path, line: dict[str, Any]) -> None:
    """Add a line to the CSV, in place of an earlier one of the same measurement."""
    lines = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as stream:
            lines = list(csv.DictReader(stream))
    same = [str(line[field]) for field in IDENTITY]
    lines = [one for one in lines if [one[field] for field in IDENTITY] != same] + [line]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda one: [str(one[field]) for field in IDENTITY]))


if __name__ == "__main__":
    main()
