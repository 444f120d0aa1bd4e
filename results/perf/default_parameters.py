"""Compare `fit` and `predict` at scikit-learn's default parameters: our classes beside theirs.

    python results/perf/default_parameters.py --rounds 5 --output results/perf
    python results/perf/default_parameters.py --made 40 --output results/perf    # made problems
    python results/perf/default_parameters.py --table    # only write README.md's tables

One thread; the features of each set are scaled to [0, 1]. `csvc` stands beside SVC, `nu-svc` beside
NuSVC (if nu = 0.5 is feasible), `newton-l2`, which solves LinearSVC's problem, beside LinearSVC,
and `one-class` beside OneClassSVM (on the most frequent class). Both sides have scikit-learn's
default parameters, and the problems and tolerances are the same. If there are fewer rows than
features, `dcd-l2` stands beside LinearSVC, too, which solves the dual problem there.
With `--made` the problems are made from seeds, each of another kind and size (`made`), and not
scaled; the files are called made_parameters.csv, made_parameters.json and made_summary.csv.
Rows are shuffled; up to `SORTED_MAX_ROWS` rows, SVC and NuSVC are also fitted on rows sorted by
label. After one call of ours, both sides take turns; the CPU time of a call counts. `predict` is
timed on up to `PREDICTED_ROWS` of the training rows.
`objective_difference` is (ours - theirs) / |theirs|, without the divisor if that is 0; `our_gap`
and `their_gap` are relative duality gaps, all of them from `svmbench.certify`. A gap of theirs far
above ours means that they stopped further from the optimum; such a case has another line
(`their_tol`), with the largest tolerance of `TOLERANCES` at which they come within `EQUAL` of our
objective.
Lines are sorted by ratio, the worst first. The file is written after each data set, with the
machine and the versions (default_parameters.json) and a summary of the calls at default tolerances
(default_summary.csv) beside it. README.md has two tables of them: the summary, and the cases that
are slower or were fitted again at a smaller tolerance of theirs. Of the made problems it has the
summary.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM

import svmbench
from svmbench.experiment.measuring.environment import environment_facts

#: Data sets, from 100 to 50,000 rows.
NAMES = """
    fertility iris teach wine.scale sonar_scale glass.scale heart_scale liver-disorders dermatology
    synthetic-11x48 breast-cancer-569 breast-cancer-683 australian diabetes_scale vehicle.scale
    prokaryotic german.numer_scale splice biodegradation svmguide3 banknote hcv-egy cmc yeast a1a
    digits wifi-localization ctg segment.scale eukaryotic synthetic-100x30 svmguide1 a3a abalone
    wine-quality optdigits mushrooms electrical shuttle-1-2 ijcnn1
"""

#: Rows up to which SVC and NuSVC are fitted on rows sorted by label, too; up to which NuSVC and
#: OneClassSVM are called, which take minutes on more; and rows of `predict`.
SORTED_MAX_ROWS, NU_MAX_ROWS, PREDICTED_ROWS = 1000, 6000, 2000

#: The page with the tables, and where they stand.
PAGE = Path(__file__).with_name("README.md")
_TABLES = re.compile(r"(<!-- (defaults|made) -->\n).*?(<!-- /\2 -->)", re.DOTALL)

#: Seconds after which a case takes no further turn.
CASE_SECONDS = 2.0

#: Objectives that differ by less are equal; tolerances at which theirs are fitted until they are.
EQUAL, TOLERANCES = 0.01, (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def main() -> None:
    """Measure all cases, and write a line for each call."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=NAMES.split(), help="names of data sets")
    parser.add_argument("--made", type=int, metavar="N", help="take N made problems instead")
    parser.add_argument("--output", type=Path, help="folder of default_parameters.csv")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the tables")
    given = parser.parse_args()
    if given.table:
        PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    lines: list[dict[str, Any]] = []
    named = ((name, *scaled(name)) for name in given.sets)
    for name, X, y in named if given.made is None else map(made, range(given.made)):
        for order, ours, theirs, own_X, own_y in cases(X, y):
            facts = {"dataset": name, "order": order}
            try:
                found = compare(ours, theirs, own_X, own_y, given.rounds)
            except ValueError as error:  # NuSVC refuses an infeasible nu, and a rho of 0
                print(f"{name}: no comparison: {error}", flush=True)
                continue
            for line in found:
                lines.append({**facts, **line})
                print("  ".join(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
        if given.output and lines:
            stem = "default" if given.made is None else "made"
            write(given.output / f"{stem}_parameters.csv", lines)


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write the lines, those with the smallest ratio first, and the environment."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: float(line["ratio"])))
    summary = summaries(lines)
    summary_name = path.name.replace("parameters", "summary")
    with path.with_name(summary_name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, summary[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(summary)
    text = json.dumps(environment_facts(1), indent=1)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def summaries(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each call and class the least and median ratio, and the cases that are slower."""
    of_case: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:  # the first line of a case has the default tolerance
        case = tuple(line[name] for name in ("call", "ours", "theirs", "dataset", "order"))
        of_case.setdefault(case, line)
    of_call: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for case, line in of_case.items():
        of_call.setdefault(case[:3], []).append(line)
    found = []
    for (call, ours, theirs), own in sorted(of_call.items()):
        slower = [line for line in own if float(line["ratio"]) < 1.0]
        worst = min(own, key=lambda line: float(line["ratio"]))
        found.append(
            {
                "call": call,
                "ours": ours,
                "theirs": theirs,
                "cases": len(own),
                "least": worst["ratio"],
                "worst_case": worst["dataset"],
                "median": f"{np.median([float(line['ratio']) for line in own]):.2f}",
                "slower": len(slower),
                "slower_most_rows": max((int(line["rows"]) for line in slower), default=""),
                "slower_most_ms": max((float(line["ours_cpu_ms"]) for line in slower), default=""),
            }
        )
    return found


def page_with_tables(page: str) -> str:
    """Return the page's text with the tables as the kept lines make them."""

    def table(found: re.Match[str]) -> str:
        stem = {"defaults": "default", "made": "made"}[found[2]]
        with PAGE.with_name(f"{stem}_parameters.csv").open(newline="", encoding="utf-8") as stream:
            lines = list(csv.DictReader(stream))
        text = summary_table(lines)
        return found[1] + (text if stem == "made" else text + second_table(lines)) + found[3]

    return _TABLES.sub(table, page)


def summary_table(lines: list[dict[str, Any]]) -> str:
    """Return the table of all calls."""
    text = "| call | least ratio | median ratio | slower than theirs |\n|---|---:|---:|---|\n"
    lines = sorted(lines, key=lambda line: -float(line["their_tol"]))
    for each in sorted(summaries(lines), key=lambda found: -float(found["median"])):
        slower = f"{each['slower']} of {each['cases']}"
        if each["slower"]:
            rows, ms = each["slower_most_rows"], each["slower_most_ms"]
            slower += f", on at most {rows:,} rows, in at most {ms:g} ms"
        least = f"{each['least']} ({each['worst_case']})"
        text += f"| {call_of(each)} | {least} | {each['median']} | {slower} |\n"
    return text


def second_table(lines: list[dict[str, Any]]) -> str:
    """Return the table of cases that are slower or have a second line."""
    lines = sorted(lines, key=lambda line: -float(line["their_tol"]))
    text = (
        "\n| call, slower or not at an equal objective | rows | ratio | our gap | their gap |"
        " ratio at an equal objective |\n|---|---:|---:|---:|---:|---:|\n"
    )
    of_case: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines:
        case = call_of(line), line["dataset"], line["order"]
        of_case.setdefault(case, []).append(line)
    some = [(case, own) for case, own in of_case.items() if float(own[0]["ratio"]) < 1 or own[1:]]
    for (call, name, order), own in sorted(some, key=lambda each: float(each[1][0]["ratio"])):
        first = own[0]
        ranges = [f"{each['ratio']} ({each['least']}–{each['most']})" for each in own]
        cells = [f"{call}, {name}, {order}", f"{int(first['rows']):,}", ranges[0]]
        cells += [first["our_gap"], first["their_gap"], *(ranges[1:] or [""])]
        text += f"| {' | '.join(cells)} |\n"
    return text


def call_of(line: dict[str, Any]) -> str:
    """Return the words for a call: both sides of it."""
    ours = getattr(svmbench, line["ours"]).declaration.name
    return f"`{line['call']}` of `{ours}` beside {line['theirs']}"


def scaled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a registered data set in random order, dense, with features from 0 to 1."""
    data = svmbench.load(name)
    X = data.X.toarray() if sp.issparse(data.X) else np.array(data.X, dtype=np.float64)
    least, most = X.min(axis=0), X.max(axis=0)
    X = (X - least) / np.where(most > least, most - least, 1.0)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], np.asarray(data.y)[order]


def made(seed: int) -> tuple[str, Any, np.ndarray]:
    """Return a made problem: its name, inputs, and labels.

    Eight kinds take turns. Rows (60 to 2,500), features and classes (2 in half of the problems) are
    drawn, rows and features evenly in their logarithm.
    """
    rng = np.random.default_rng(seed)
    n, d = (int(np.exp(rng.uniform(*np.log(ends)))) for ends in ((60, 2500), (1, 600)))
    n_classes = min(int(rng.choice([2, 2, 2, 3, 5, 10])), n // 15)
    kind = ("noise", "wide", "sparse", "binary", "repeated", "rare", "blobs", "checks")[seed % 8]
    X: Any = rng.random((n, d))
    centres = rng.normal(size=(n_classes, d))
    y = rng.integers(n_classes, size=n)
    if kind == "wide":
        X = rng.normal(size=(n, 2 * n)) + 0.3 * rng.normal(size=(n_classes, 2 * n))[y]
    elif kind == "sparse":
        X = sp.random_array((n, 10 * n), density=min(1.0, 2 / n), format="csr", rng=rng)
        y = np.asarray(X @ rng.normal(size=(10 * n, n_classes))).argmax(axis=1)
    elif kind == "binary":
        X = (rng.uniform(0.05, 0.5) > X).astype(float)
        y = (X @ centres.T + rng.normal(size=(n, n_classes))).argmax(axis=1)
    elif kind == "repeated":
        X = X[rng.integers(n // 10, size=n)]
    elif kind == "rare":
        y = (rng.random(n) < 0.04).astype(int)
        y[:2] = 0, 1
        X += 0.3 * y[:, None]
    elif kind == "blobs":
        X = centres[y] + rng.uniform(0.2, 2.0) * rng.normal(size=(n, d))
    elif kind == "checks":
        y = (np.floor(4.0 * X[:, : min(d, 2)]).sum(axis=1) % 2).astype(int)
    return f"{kind}-{seed}", X, y


def most_frequent(y: np.ndarray) -> Any:
    """Return the most frequent class."""
    classes, counts = np.unique(y, return_counts=True)
    return classes[np.argmax(counts)]


def cases(
    X: np.ndarray, y: np.ndarray
) -> Iterator[tuple[str, Any, Any, np.ndarray, np.ndarray | None]]:
    """Yield the order of the rows, both sides' estimators, and their inputs and labels."""
    orders = {"shuffled": np.arange(len(y))}
    if len(y) <= SORTED_MAX_ROWS:
        orders["sorted"] = np.argsort(y, kind="stable")
    for order, rows in orders.items():
        yield order, svmbench.solver("csvc", C=1.0, gamma="scale"), SVC(), X[rows], y[rows]
        if len(y) <= NU_MAX_ROWS:
            ours = svmbench.solver("nu-svc", nu=0.5, gamma="scale")
            yield order, ours, NuSVC(), X[rows], y[rows]
    yield "shuffled", svmbench.solver("newton-l2", C=1.0, tol=1e-4), LinearSVC(), X, y
    if X.shape[0] < X.shape[1]:
        yield "shuffled", svmbench.solver("dcd-l2", C=1.0, tol=1e-4), LinearSVC(), X, y
    if len(y) <= NU_MAX_ROWS:
        ours = svmbench.solver("one-class", nu=0.5, gamma="scale")
        yield "shuffled", ours, OneClassSVM(), X[y == most_frequent(y)], None


def compare(
    ours: Any, theirs: Any, X: np.ndarray, y: np.ndarray | None, rounds: int
) -> list[dict[str, Any]]:
    """Return the lines of a case: CPU times of a call, their ratio with its range, agreement."""
    labels = () if y is None else (y,)
    quietly(lambda: ours.fit(X, *labels))
    calls = {"fit": in_turn(lambda: ours.fit(X, *labels), lambda: theirs.fit(X, *labels), rounds)}
    some = X[:PREDICTED_ROWS]
    ours.predict(some)
    calls["predict"] = in_turn(lambda: ours.predict(some), lambda: theirs.predict(some), rounds)
    us, them = (quietly(lambda m=m: svmbench.certify(m, X, y)) for m in (ours, theirs))
    facts = {
        "ours": type(ours).__name__,
        "theirs": type(theirs).__name__,
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": 1 if y is None else len(np.unique(y)),
        "their_tol": f"{theirs.tol:g}",
        "same_predictions": f"{np.mean(ours.predict(some) == theirs.predict(some)):.4f}",
    }
    ends = agreement(us, them)
    lines = [{"call": call, **facts, **each, **ends} for call, each in calls.items()]
    excess = them.primal - us.primal
    if excess > EQUAL * abs(us.primal):
        for tol in TOLERANCES:
            theirs.set_params(tol=tol)
            quietly(lambda: theirs.fit(X, *labels))
            them = quietly(lambda: svmbench.certify(theirs, X, y))
            if them.primal - us.primal <= EQUAL * abs(us.primal):
                break
        fit = in_turn(lambda: ours.fit(X, *labels), lambda: theirs.fit(X, *labels), rounds)
        same = {**facts, "their_tol": f"{theirs.tol:g}"}
        lines.append({"call": "fit", **same, **fit, **agreement(us, them)})
    return lines


def agreement(us: Any, them: Any) -> dict[str, str]:
    """Return the relative difference of the objectives, and both relative gaps."""
    return {
        "objective_difference": f"{(us.primal - them.primal) / (abs(them.primal) or 1.0):.1e}",
        "our_gap": "" if us.relative_gap is None else f"{us.relative_gap:.1e}",
        "their_gap": "" if them.relative_gap is None else f"{them.relative_gap:.1e}",
        "load_1min": f"{os.getloadavg()[0]:.1f}",
    }


def in_turn(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> dict[str, str]:
    """Return the median CPU times of two calls that take turns, and their ratio with its range."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    start = time.process_time()
    for _ in range(rounds):
        for side, call in (("ours", ours), ("theirs", theirs)):
            begin = time.process_time()
            quietly(call)
            times[side].append(time.process_time() - begin)
        if time.process_time() - start > CASE_SECONDS:
            break
    ratios = np.array(times["theirs"]) / np.array(times["ours"])
    return {
        "ours_cpu_ms": f"{1e3 * np.median(times['ours']):.2f}",
        "theirs_cpu_ms": f"{1e3 * np.median(times['theirs']):.2f}",
        "ratio": f"{np.median(ratios):.2f}",
        "least": f"{ratios.min():.2f}",
        "most": f"{ratios.max():.2f}",
        "turns": str(len(ratios)),
    }


def quietly(call: Callable[[], Any]) -> Any:
    """Return the result of a call without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


if __name__ == "__main__":
    main()
