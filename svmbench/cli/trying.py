"""The command ``try``: from a table of one's own to a fitted pipeline.

The columns are encoded by scikit-learn's transformers, which become part of the pipeline. Every
solver searches its parameters on the training rows, by cross-validation, within an equal share of
the time; the test rows score the refitted pipelines once.
"""

from __future__ import annotations

import io
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from svmbench.base.errors import ConfigError, DataError, ResultsError
from svmbench.cli import terminal
from svmbench.cli.options import IMPUTE, LABEL, POSITIVE_NUMBER, TEXT

#: Solvers in the order in which they are tried, with their fixed parameters and their grid.
CANDIDATES: tuple[tuple[str, dict[str, Any], dict[str, list[Any]]], ...] = (
    ("newton-l2", {}, {"C": [1.0, 0.1, 10.0, 0.01, 100.0]}),
    ("dcd-l1", {}, {"C": [1.0, 0.1, 10.0, 0.01, 100.0]}),
    (
        "csvc",
        {"kernel": "rbf"},
        {"gamma": ["scale", 0.1, 1.0, 0.01], "C": [1.0, 10.0, 100.0, 0.1]},
    ),
    (
        "nystrom",
        {"kernel": "rbf", "n_basis": 300},
        {"gamma": ["scale", 0.1, 1.0, 0.01], "C": [1.0, 10.0, 100.0, 0.1]},
    ),
)
#: Rows on which parameters are searched, drawn by class, and folds of that search.
SEARCH_ROWS = 3000
SEARCH_FOLDS = 3
#: A faster solver is not recommended if its accuracy is more points below the best.
MOST_POINTS_LESS = 1.0
#: Rows of the first fit of each solver, which compiles it and is not timed.
FIRST_ROWS = 60


@dataclass(frozen=True)
class Trial:
    """A solver on the leaderboard.

    Attributes
    ----------
    solver : str
    accuracy_pct, fit_s, predict_s : float
        Of the test rows; seconds of the last fit, and of predicting all test rows.
    size_kb : float
        Size of the pipeline's file.
    params : dict
        Chosen parameters.
    """

    solver: str
    accuracy_pct: float
    fit_s: float
    predict_s: float
    size_kb: float
    params: dict[str, Any]


def build_solver(name: str, n_classes: int, params: dict[str, Any]) -> Any:
    """Return a solver that separates so many classes."""
    from svmbench.baselines.catalogue import one_vs_one, solver

    made = solver(name, **params)
    return one_vs_one(made) if n_classes > 2 else made


def points_of(grid: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the points of a grid, the most usual values of all parameters first."""
    from sklearn.model_selection import ParameterGrid

    places = {name: {repr(v): i for i, v in enumerate(values)} for name, values in grid.items()}
    yield from sorted(
        ParameterGrid(grid), key=lambda point: sum(places[k][repr(v)] for k, v in point.items())
    )


def search(
    pipeline: Any, grid: dict[str, list[Any]], X: Any, y: Any, seconds: float, build: Any
) -> tuple[dict[str, Any], int]:
    """Return the best parameters by cross-validation within some seconds, and how many were tried.

    At least one point is tried.
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    end = time.monotonic() + seconds
    folds = StratifiedKFold(SEARCH_FOLDS, shuffle=True, random_state=0)
    best, best_score, tried = {}, -1.0, 0
    for point in points_of(grid):
        began = time.monotonic()
        score = float(np.mean(cross_val_score(pipeline(build(point)), X, y, cv=folds)))
        tried += 1
        if score > best_score:
            best, best_score = point, score
        if time.monotonic() + (time.monotonic() - began) > end:
            break
    return best, tried


def try_solvers(
    X: Any, y: Any, transformer: Any, *, seconds: float, test_share: float, seed: int, tell: Any
) -> list[tuple[Trial, Any]]:
    """Search, fit and test every candidate; return them with their pipelines, the best first."""
    import joblib
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import Pipeline

    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=test_share, stratify=y, random_state=seed
    )
    n_classes = y.nunique()

    def pipeline(model: Any) -> Any:
        return Pipeline([("columns", clone(transformer)), ("solver", model)])

    if len(X_train) > SEARCH_ROWS:
        X_few, _, y_few, _ = train_test_split(
            X_train, y_train, train_size=SEARCH_ROWS, stratify=y_train, random_state=seed
        )
    else:
        X_few, y_few = X_train, y_train
    tell("compiling the solvers, where this was not done before")
    few = train_test_split(
        X_few,
        y_few,
        train_size=min(FIRST_ROWS, len(X_few) - n_classes),
        stratify=y_few,
        random_state=seed,
    )
    for name, fixed, _ in CANDIDATES:
        model = pipeline(build_solver(name, n_classes, fixed))
        model.fit(few[0], few[2]).predict(few[0])
    end = time.monotonic() + seconds
    found = []
    for number, (name, fixed, grid) in enumerate(CANDIDATES):
        share = max(0.0, end - time.monotonic()) / (len(CANDIDATES) - number)

        def build(point: dict[str, Any], name: str = name, fixed: Any = fixed) -> Any:
            return build_solver(name, n_classes, {**fixed, **point})

        best, tried = search(pipeline, grid, X_few, y_few, share / 2, build)
        model = pipeline(build(best))
        began = time.monotonic()
        model.fit(X_few, y_few)
        expected = (time.monotonic() - began) * (len(X_train) / len(X_few)) ** 2
        rows = len(X_few)
        if len(X_train) > len(X_few) and expected <= share / 2:
            began = time.monotonic()
            model = pipeline(build(best)).fit(X_train, y_train)
            rows = len(X_train)
        fit_s = time.monotonic() - began
        began = time.monotonic()
        accuracy = 100 * float(np.mean(model.predict(X_test) == y_test))
        predict_s = time.monotonic() - began
        file = io.BytesIO()
        joblib.dump(model, file)
        size = len(file.getvalue()) / 1024
        few = f", fitted on {rows:,} of {len(X_train):,} rows" if rows < len(X_train) else ""
        shown = ", ".join(f"{key}={value}" for key, value in best.items())
        tell(f"{name}: {tried} settings tried, the best {shown}{few}")
        found.append((Trial(name, accuracy, fit_s, predict_s, size, {**fixed, **best}), model))
    return sorted(found, key=lambda pair: -pair[0].accuracy_pct)


def recommended(trials: list[Trial], n_test: int) -> tuple[Trial, str]:
    """Return the fastest solver within a standard error of the best accuracy, and a sentence."""
    best = trials[0]
    share = best.accuracy_pct / 100
    error = 100 * float(np.sqrt(max(share * (1 - share), 0.25 / n_test) / n_test))
    allowed = min(error, MOST_POINTS_LESS)
    near = [one for one in trials if best.accuracy_pct - one.accuracy_pct <= allowed]
    chosen = min(near, key=lambda one: one.predict_s)
    if chosen is best:
        return best, f"Take {best.solver}: {best.accuracy_pct:.2f} % is the best accuracy."
    return chosen, (
        f"Take {chosen.solver}: its {chosen.accuracy_pct:.2f} % differ from the best,"
        f" {best.accuracy_pct:.2f} % of {best.solver}, by less than the standard error on"
        f" {n_test:,} test rows ({error:.2f} points), and it predicts"
        f" {best.predict_s / chosen.predict_s:.2g} times as fast."
    )


@click.command("try")
@click.argument("file", metavar="FILE|openml:N", type=click.Path(dir_okay=False, path_type=Path))
@LABEL
@TEXT
@IMPUTE
@click.option(
    "--minutes",
    type=POSITIVE_NUMBER,
    default=2.0,
    show_default=True,
    metavar="M",
    help="Time for the search of all solvers; each tries one setting at least.",
)
@click.option(
    "--test",
    "test_share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.25,
    show_default=True,
    metavar="SHARE",
    help="Share of the rows that are held out to test the models.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the splits."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The fitted pipeline.  [default: FILE with the ending .joblib]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def try_(
    file: Path,
    label: str | None,
    text: str | None,
    impute: bool,
    minutes: float,
    test_share: float,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> None:
    r"""Fit linear and RBF solvers to a CSV file, compare them, and write the best pipeline.

    The file has a header, and --label names its column of classes. openml:N is a data set of
    OpenML, whose label OpenML names. A part of the rows is held out to test the models. Each solver
    gets a share of the time to search its parameters. If there are more than 3,000 training rows,
    the search uses 3,000 of them.
    The pipeline takes frames with the same columns and returns the labels as text.

    \b
    Example:
      svmbench try my.csv --label churn --minutes 5
      svmbench try openml:40994
    """
    import joblib

    from svmbench.data import frames, openml
    from svmbench.data.userfile import Table

    wanted = openml.reference(file)
    if wanted is None and not label:
        raise ConfigError(f"{file}: --label is missing, the name of the column of classes")
    named = file.with_suffix(".joblib") if wanted is None else f"openml-{wanted.number}.joblib"
    target = output or Path(named)
    if target.resolve() == file.resolve():
        raise ConfigError(f"-o {target} is the file of the data")
    X, y = Table(file, label).columns
    smallest = int(y.value_counts().min())
    if y.nunique() < 2 or smallest < 2 * SEARCH_FOLDS:
        raise DataError(
            f"{file}: {y.nunique()} classes, the smallest of {smallest} rows; a classifier needs"
            f" two, of {2 * SEARCH_FOLDS} rows or more"
        )
    transformer, said = frames.encoder(X, text=text or frames.DEFAULT_TEXT, impute=impute)
    tell = (lambda _: None) if as_json else terminal.print_line
    tell(f"{file}: {len(y):,} rows, {y.nunique()} classes of {y.name}")
    for sentence in said:
        tell(sentence)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # settings of the search that don't converge, say
        pairs = try_solvers(
            X, y, transformer, seconds=60 * minutes, test_share=test_share, seed=seed, tell=tell
        )
    trials = [trial for trial, _ in pairs]
    n_test = round(len(y) * test_share)
    chosen, sentence = recommended(trials, n_test)
    model = next(model for trial, model in pairs if trial is chosen)
    try:
        joblib.dump(model, target)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
    if as_json:
        board = [asdict(trial) for trial in trials]
        made = {"trials": board, "recommended": chosen.solver, "file": str(target)}
        terminal.write_output(json.dumps(made, indent=1))
        return
    terminal.print_columns(
        [
            (
                one.solver,
                f"{one.accuracy_pct:.2f}",
                f"{one.fit_s:.3g}",
                f"{one.predict_s:.3g}",
                f"{one.size_kb:.0f}",
            )
            for one in trials
        ],
        header=("solver", "accuracy (%)", "fit (s)", "predict (s)", "size (KiB)"),
    )
    terminal.print_line(sentence)
    if wanted is None:
        separator = frames.separator_of(file)
        how = [repr(str(file)), *([f"sep={separator!r}"] if separator != "," else [])]
        how += ["skipinitialspace=True"] if frames.has_blanks_after_separators(file) else []
        needed, frame = "joblib, pandas", f"pandas.read_csv({', '.join(how)})"
    else:
        needed = "joblib, sklearn.datasets"
        how = [f"data_id={wanted.number}", f"parser={openml.PARSER!r}"]
        frame = f"sklearn.datasets.fetch_openml({', '.join(how)}).frame"
    terminal.print_line("To use it:")
    for line in (
        f"import {needed}",
        f"model = joblib.load({str(target)!r})",
        f"print(model.predict({frame}))",
    ):
        terminal.print_line(f"  {line}")
    terminal.check_written()


def register(group: click.Group) -> None:
    """Add the command of this module to the command line."""
    group.add_command(try_)
