"""From a user's table to a fitted pipeline: :func:`try_table`.

scikit-learn's transformers encode the columns, and become part of the pipeline. The solvers share
the time in which each searches its parameters by cross-validation on the training rows, and is
fitted with the best ones. The scores over these folds also choose the solver. The fitted pipelines
are scored once on the test rows, beside two baselines: the most frequent class, and scikit-learn's
logistic regression, whose C is searched as the solvers' parameters are.
"""

from __future__ import annotations

import io
import math
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.base.errors import ConfigError, DataError, ResultsError
from svmbench.studies.datasets import FORM_OPTIONS
from svmbench.studies.recommending import (
    ACCURACY,
    BALANCED,
    METRICS,
    ROC_AUC,
    Fitted,
    Searched,
    Trial,
    beaten_by,
    cautions,
    disagreement,
    influences_on,
    interval_of,
    number_to_quote,
    over_folds,
    recommended,
)

if TYPE_CHECKING:
    import pandas as pd

    from svmbench.data.frames import TableForm


#: Solvers with their fixed parameters and their grid, the simplest model first. Of equally good
#: solvers that predict about equally fast, the first is recommended.
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
#: The baseline that is searched and fitted as the solvers are, and never recommended.
LOGISTIC = "logistic regression"
BASELINE = (LOGISTIC, {"max_iter": 1000}, {"C": [1.0, 0.1, 10.0, 0.01, 100.0]})
#: Number of rows for the search of parameters, which are drawn by class, and of its folds.
SEARCH_ROWS = 3000
SEARCH_FOLDS = 3
#: Predictions of the test rows are timed this many times, or until they took this many seconds of
#: CPU time; their median counts.
TIMED_PREDICTIONS, MAX_PREDICTING_S = 5, 2.0
#: Classes are uneven if the most frequent one exceeds its even share of the rows by this factor.
UNEVEN_FACTOR = 1.6
#: A label that becomes a whole number: every reader writes it in the same way.
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}")
#: The line before the first fits.
LOADING = "loading the solvers (on a new machine they are compiled, a minute or two)"


@dataclass(frozen=True)
class TrySettings:
    """Settings of a trial of solvers.

    Attributes
    ----------
    metric : {"auto", "accuracy", "balanced_accuracy", "roc_auc"}, default "auto"
        The score that chooses, over folds of the training rows; "auto" is accuracy, or balanced
        accuracy if the classes are uneven.
    minutes : float, default 2
        Time for the searches and final fits of all solvers; each solver tries at least one setting.
    test_share : float, default 0.25
        Share of the rows that are held out to test the models.
    seed : int, default 0
        Seed of the splits.
    text : {"one-hot", "ordinal"}, optional
        Encoding of the columns of words; one-hot by default.
    impute : bool, default True
        Fill in missing values from the training rows instead of refusing them.
    """

    metric: str = "auto"
    minutes: float = 2.0
    test_share: float = 0.25
    seed: int = 0
    text: str | None = None
    impute: bool = True


@dataclass(frozen=True)
class TryResult:
    """The result of trying solvers on a table.

    Attributes
    ----------
    metric : str
        The score that chose.
    solvers, baselines : list of Fitted
        The solvers with the best score over folds first; the baselines.
    chosen : Fitted
        The solver to take; ``chosen.model`` is its fitted pipeline.
    reason : str
        A sentence with the reason.
    quote : str
        A sentence with the score to quote, and its interval.
    notes : list of str
        Warnings about the recommended model.
    y_test : Series
        Labels of the test rows.
    reader : str
        Python code that reads a table of new rows.
    """

    metric: str
    solvers: list[Fitted]
    baselines: list[Fitted]
    chosen: Fitted
    reason: str
    quote: str
    notes: list[str]
    y_test: Any
    reader: str

    @property
    def confusion(self) -> tuple[list[Any], list[list[int]]]:
        """The classes, and for each true class the numbers of test rows by predicted class."""
        import numpy as np
        from sklearn.metrics import confusion_matrix

        classes = np.unique(self.y_test)
        counts = confusion_matrix(self.y_test, self.chosen.predicted, labels=classes)
        return classes.tolist(), counts.tolist()

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The head and the rows of the table of solvers and baselines."""
        extra = ("area under ROC (%)",) if self.metric == ROC_AUC else ()
        scores = (*extra, "accuracy (%)", "balanced accuracy (%)")
        over_folds = f"{METRICS[self.metric]} over {SEARCH_FOLDS} folds (%)"
        rows = [("solver", *scores, over_folds, "fit (s)", "predict (s)", "size (KiB)")]
        for trial in (item.trial for item in (*self.solvers, *self.baselines)):
            folds = "-"
            if trial.folds_pct is not None:
                folds = f"{trial.folds_pct:.2f} ± {trial.folds_spread_pct:.2f}"
            rows.append(
                (
                    trial.solver,
                    *([f"{trial.score_pct:.2f}"] if extra else []),
                    f"{trial.accuracy_pct:.2f}",
                    f"{trial.balanced_accuracy_pct:.2f}",
                    folds,
                    f"{trial.fit_s:.3g}",
                    f"{trial.predict_s:.3g}",
                    f"{trial.size_kb:,.0f}",
                )
            )
        return rows

    @property
    def facts(self) -> dict[str, Any]:
        """The scores, the recommendation and its cautions, as JSON values."""
        return {
            "metric": self.metric,
            "trials": [asdict(solver.trial) for solver in self.solvers],
            "baselines": [asdict(baseline.trial) for baseline in self.baselines],
            "recommended": self.chosen.trial.solver,
            "cautions": self.notes,
            "confusion": dict(zip(("classes", "counts"), self.confusion, strict=True)),
        }

    def usage(self, model_file: Path) -> list[str]:
        """Return lines of Python that predict a table of new rows with the written model."""
        module = "pandas" if self.reader.startswith("pandas.") else "sklearn.datasets"
        return [
            f"import joblib, {module}",
            f"model = joblib.load({str(model_file)!r})",
            f"print(model.predict({self.reader}))",
        ]

    def fitted_on(self) -> str:
        """Return sentences on the rows that the written pipeline was and was not fitted on."""
        n_train, n_test = self.chosen.trial.n_train, len(self.y_test)
        return (
            f"It is the pipeline of {self.chosen.trial.solver}, fitted on {n_train:,} training"
            f" rows; it was not fitted again with the {n_test:,} test rows. To use all rows, call"
            " its fit with them."
        )

    def scores(self) -> str:
        """Return sentences on the values that rank rows, and on probabilities."""
        model = self.chosen.model
        if not hasattr(model, "decision_function"):
            return (
                "The pairs of classes vote on its predictions: it has neither decision_function nor"
                " predict_proba."
            )
        classes = [*map(str, model.classes_)]
        what = "has one column for each class, and the largest value wins"
        if len(classes) == 2:
            what = f"is above 0 for {classes[1]} and below 0 for {classes[0]}"
        return (
            f"Its decision_function {what}. SVMs have no predict_proba: fit"
            " sklearn.calibration.CalibratedClassifierCV on the pipeline for probabilities."
        )


def try_table(
    file: Path | str,
    label: str | None = None,
    settings: TrySettings | None = None,
    *,
    form: TableForm | None = None,
    print_line: Callable[[str], None] | None = None,
) -> TryResult:
    """Fit linear and RBF solvers to a table, compare them, and recommend one.

    Parameters
    ----------
    file : Path or str
        A CSV file with a header, or ``openml:NUMBER``.
    label : str, optional
        The column of classes; OpenML names it for its data sets.
    settings : TrySettings, optional
    form : TableForm, optional
        How the table is written.
    print_line : callable, optional
        Called with a sentence about each step.

    Returns
    -------
    TryResult

    Raises
    ------
    svmbench.base.errors.ConfigError
        Without a label, or for a metric that doesn't suit the classes.
    svmbench.base.errors.DataError
        For a table that can't be read or has too few rows of a class.

    Examples
    --------
    >>> result = try_table("my.csv", "churn")  # doctest: +SKIP
    >>> result.chosen.model.predict(frame)  # doctest: +SKIP
    """
    from svmbench.data import frames, openml
    from svmbench.data.userfile import Table

    file, settings = Path(file), settings or TrySettings()
    tell = print_line or (lambda _: None)
    reference = openml.reference(file)
    if reference is None and not label:
        raise ConfigError(f"{file}: --label is missing, the name of the column of classes")
    if reference is not None and form is not None:
        raise ConfigError(f"{FORM_OPTIONS} are options for files")
    table = Table(file, label, form=form)
    X, y = table.columns
    by_class, metric = y.value_counts(), settings.metric
    smallest = int(by_class.min())
    if len(by_class) == 1:
        raise DataError(f"{file} has one class only, {by_class.index[0]}; a classifier needs two")
    if smallest < 2 * SEARCH_FOLDS:
        rows = "1 row" if smallest == 1 else f"{smallest} rows"
        raise DataError(
            f"{file}: the smallest of {len(by_class)} classes, {by_class.index[-1]}, has {rows};"
            f" each class needs {2 * SEARCH_FOLDS} rows or more; leave out or join smaller classes"
        )
    if metric == ROC_AUC and y.nunique() > 2:
        raise ConfigError(f"--metric roc_auc needs two classes; {file} has {y.nunique()}")
    y = with_own_type(y).reset_index(drop=True)
    X = X.reset_index(drop=True)
    transformer, encodings = frames.encoder(
        X, text=settings.text or frames.DEFAULT_TEXT, impute=settings.impute
    )
    counts = y.value_counts()
    majority = f"{100 * counts.iloc[0] / len(y):.1f} % of them {counts.index[0]}"
    tell(f"{file}: {len(y):,} rows, {len(counts)} classes of {y.name}, {majority}")
    for sentence in encodings:
        tell(sentence)
    if metric == "auto":
        metric = metric_for(y)
        if metric != ACCURACY:
            tell(why_weighted(y, metric))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about settings that don't converge
        solvers, baselines, y_test = try_solvers(
            X,
            y,
            transformer,
            seconds=60 * settings.minutes,
            test_share=settings.test_share,
            seed=settings.seed,
            metric=metric,
            tell=tell,
        )
    chosen, reason = recommended(solvers, metric, [name for name, _, _ in CANDIDATES])
    reason += beaten_by(chosen, baselines, metric)
    notes = list(cautions(chosen, baselines[0], metric, y_test.to_numpy()))
    if apart := disagreement(chosen, solvers, metric):
        notes.insert(0, apart)
    if reference is None:
        reader = table.reader
    else:
        how = f"data_id={reference.number}, parser={openml.PARSER!r}"
        reader = f"sklearn.datasets.fetch_openml({how}).frame"
    quote = number_to_quote(chosen, len(y_test), metric)
    return TryResult(metric, solvers, baselines, chosen, reason, quote, notes, y_test, reader)


def metric_for(y: pd.Series) -> str:
    """Return the metric that suits the classes: accuracy unless they are uneven."""
    shares = y.value_counts(normalize=True)
    uneven = float(shares.max()) > min(0.95, UNEVEN_FACTOR / len(shares))
    return BALANCED if uneven else ACCURACY


def why_weighted(y: pd.Series, metric: str) -> str:
    """Return sentences on what uneven classes change, and which solvers take no class weights."""
    counts = y.value_counts()
    without = [name for name, _, _ in CANDIDATES if not takes_weights(name)]
    verb = "takes" if len(without) == 1 else "take"
    but = f" ({' and '.join(without)} {verb} no class weights)" if without else ""
    return (
        f"The classes are uneven: always predicting {counts.index[0]} would be right for"
        f" {100 * counts.iloc[0] / len(y):.1f} % of the rows. So {METRICS[metric]} (the mean of the"
        f" classes' accuracies) chooses, and class weights are tried{but}; --metric chooses"
        " otherwise."
    )


def try_solvers(
    X: Any,
    y: Any,
    transformer: Any,
    *,
    seconds: float,
    test_share: float,
    seed: int,
    metric: str,
    tell: Any,
) -> tuple[list[Fitted], list[Fitted], Any]:
    """Search, fit and test every candidate.

    Returns
    -------
    solvers, baselines : list of Fitted
        The solvers with the best score over folds first; the baselines.
    y_test : Series
        Labels of the test rows.

    Raises
    ------
    DataError
        If too few rows of a class are left for training or for the test.
    """
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier
    from sklearn.pipeline import Pipeline

    X_train, X_test, y_train, y_test = split(X, y, test_share, seed)
    n_classes = y.nunique()

    def pipeline(model: Any) -> Any:
        return Pipeline([("columns", clone(transformer)), ("solver", model)])

    X_few, y_few = X_train, y_train
    if len(X_train) > SEARCH_ROWS:
        drawn = drawn_by_class(y_train, SEARCH_ROWS, 2 * SEARCH_FOLDS, seed)
        X_few, y_few = X_train.loc[drawn], y_train.loc[drawn]
    tell(LOADING)
    for name, fixed, _ in CANDIDATES:
        untimed = pipeline(build_solver(name, n_classes, fixed))
        untimed.fit(X_few, y_few).predict(X_few)
    end = time.monotonic() + seconds
    solvers = []
    searches: dict[str, Searched] = {}
    fits_s: list[float] = []
    searchable = (*CANDIDATES, BASELINE)
    for number, (name, fixed, plain_grid) in enumerate(searchable):
        share = max(0.0, end - time.monotonic()) / (len(searchable) - number)
        grid = grid_for(name, plain_grid, metric)

        def build(point: dict[str, Any], name: str = name, fixed: Any = fixed) -> Any:
            return pipeline(build_solver(name, n_classes, {**fixed, **point}))

        searched = searches[name] = search(build, grid, X_few, y_few, share / 2, metric)
        best = searched.params
        began = fits_began = time.monotonic()
        model = build(best).fit(X_few, y_few)
        fit_s = time.monotonic() - began
        rows = len(X_few)
        if rows < len(X_train) and fit_s * (len(X_train) / rows) ** 2 <= share / 2:
            began = time.monotonic()
            model = build(best).fit(X_train, y_train)
            fit_s = time.monotonic() - began
            rows = len(X_train)
        few = f", fitted on {rows:,} of {len(X_train):,} rows" if rows < len(X_train) else ""
        shown = ", ".join(f"{key}={value}" for key, value in best.items())
        fits_s.append(time.monotonic() - fits_began)
        tried = f"{searched.n_tried} of {searched.n_points} settings tried"
        tell(f"{name}: {tried}, the best {shown}{few}")
        solver = tested(name, {**fixed, **best}, model, fit_s, X_test, y_test, metric)
        trial = replace(
            solver.trial,
            folds_pct=100 * float(searched.scores.mean()),
            folds_spread_pct=100 * float(searched.scores.std(ddof=1)),
            n_train=rows,
        )
        solvers.append(replace(solver, trial=trial, searched=searched))
    if advice := time_was_short(searches, fits_s):
        tell(advice)
    began = time.monotonic()
    frequent = pipeline(DummyClassifier()).fit(X_few, y_few)
    fit_s = time.monotonic() - began
    *solvers, logistic = solvers
    baselines = [
        tested("most frequent class", {}, frequent, fit_s, X_test, y_test, metric),
        logistic,
    ]
    return sorted(solvers, key=over_folds, reverse=True), baselines, y_test


def split(X: Any, y: Any, test_share: float, seed: int) -> tuple[Any, Any, Any, Any]:
    """Split rows by class into training and test rows.

    Raises
    ------
    DataError
        If too few rows of a class are left for training or for the test.
    """
    import numpy as np
    from sklearn.model_selection import train_test_split

    counts = y.value_counts()
    n_test = int(np.ceil(test_share * len(y)))
    if min(n_test, len(y) - n_test) >= len(counts):
        parts = train_test_split(X, y, test_size=test_share, stratify=y, random_state=seed)
        in_training, in_test = (part.value_counts() for part in parts[2:])
        if in_training.min() >= SEARCH_FOLDS and len(in_test) == len(counts):
            return tuple(parts)
    raise DataError(
        f"--test {test_share:g} of {len(y):,} rows leaves too few rows of a class: each of the"
        f" {len(counts)} classes needs {SEARCH_FOLDS} rows for training and one for the test (the"
        f" smallest, {counts.index[-1]}, has {counts.iloc[-1]})"
    )


def drawn_by_class(y: pd.Series, n_rows: int, at_least: int, seed: int) -> Any:
    """Return the labels of rows drawn by class: about `n_rows`, and `at_least` of each class."""
    import numpy as np

    share = n_rows / len(y)
    parts = [
        rows.sample(min(len(rows), max(at_least, round(share * len(rows)))), random_state=seed)
        for _, rows in y.groupby(y)
    ]
    return np.sort(np.concatenate([part.index.to_numpy() for part in parts]))


def build_solver(name: str, n_classes: int, params: dict[str, Any]) -> Any:
    """Return a solver that separates this number of classes."""
    from sklearn.linear_model import LogisticRegression

    from svmbench.baselines.catalogue import one_vs_one, solver

    if name == LOGISTIC:
        return LogisticRegression(**params)
    model = solver(name, **params)
    return one_vs_one(model) if n_classes > 2 else model


def grid_for(name: str, grid: dict[str, list[Any]], metric: str) -> dict[str, list[Any]]:
    """Return a solver's grid, with class weights for uneven classes if the solver takes them.

    The area under the ROC curve doesn't depend on the offset: without weights, a model that never
    predicts a rare class can have the largest.
    """
    if metric == ACCURACY or not takes_weights(name):
        return grid
    weights = ["balanced"] if metric == ROC_AUC else ["balanced", None]
    return {"class_weight": weights, **grid}


def takes_weights(name: str) -> bool:
    """Return True if a solver, or the baseline that is searched, takes class weights."""
    return "class_weight" in build_solver(name, 2, {}).get_params()


def search(
    pipeline: Any, grid: dict[str, list[Any]], X: Any, y: Any, seconds: float, metric: str
) -> Searched:
    """Return the best parameters by cross-validation within some seconds.

    `pipeline` is called with a point of the grid. At least one point is tried.
    """
    import numpy as np
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import StratifiedKFold, cross_validate

    scorer = get_scorer(metric)

    def scored(model: Any, rows: Any, labels: Any) -> dict[str, float]:
        n_predicted = len(np.unique(model.predict(rows)))
        return {"score": scorer(model, rows, labels), "n_predicted": n_predicted}

    start = time.monotonic()
    folds = StratifiedKFold(SEARCH_FOLDS, shuffle=True, random_state=0)
    best: dict[str, Any] = {}
    best_scores, n_predicted, tried = np.full(SEARCH_FOLDS, -1.0), 1, 0
    for point in points_of(grid):
        began = time.monotonic()
        results = cross_validate(pipeline(point), X, y, cv=folds, scoring=scored)
        tried += 1
        if np.mean(results["test_score"]) > np.mean(best_scores):
            best, best_scores = point, results["test_score"]
            n_predicted = int(np.max(results["test_n_predicted"]))
        if time.monotonic() + (time.monotonic() - began) > start + seconds:
            break
    n_points = math.prod(map(len, grid.values()))
    return Searched(best, best_scores, tried, n_points, time.monotonic() - start, n_predicted)


def points_of(grid: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the points of a grid, the most usual values of all parameters first."""
    from sklearn.model_selection import ParameterGrid

    ranks = {name: {repr(v): i for i, v in enumerate(values)} for name, values in grid.items()}
    yield from sorted(
        ParameterGrid(grid), key=lambda point: sum(ranks[k][repr(v)] for k, v in point.items())
    )


def time_was_short(searches: dict[str, Searched], fits_s: list[float]) -> str:
    """Return why not all settings were tried, and what to do; "" if all were.

    Parameters
    ----------
    searches : dict of str to Searched
        By solver, in the order of the searches.
    fits_s : list of float
        Seconds of each solver's fits after its search.
    """
    if all(search.n_tried == search.n_points for search in searches.values()):
        return ""
    needed = spent = 0.0
    for number, (search, fit_s) in enumerate(zip(searches.values(), fits_s, strict=True)):
        # Half of an equal share of what is left is for the search.
        needed = max(needed, spent + 2 * (len(searches) - number) * search.seconds_of_all)
        spent += search.seconds_of_all + fit_s
    minutes = needed / 60
    enough = f"{math.ceil(minutes)}" if minutes > 1 else f"{math.ceil(10 * minutes) / 10:g}"
    return (
        "Not all settings were tried, because each solver has an equal share of the time:"
        f" --minutes {enough} is about enough for all of them."
    )


def tested(
    name: str, params: dict[str, Any], model: Any, fit_s: float, X: Any, y: Any, metric: str
) -> Fitted:
    """Score a fitted pipeline on the test rows, and time its predictions."""
    import joblib
    import numpy as np
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

    times: list[float] = []
    while len(times) < TIMED_PREDICTIONS and sum(times) < MAX_PREDICTING_S:
        start = time.process_time()
        predicted = model.predict(X)
        times.append(time.process_time() - start)
    truth = y.to_numpy()
    accuracy, balanced = accuracy_score(truth, predicted), balanced_accuracy_score(truth, predicted)
    values = None
    if metric == ROC_AUC:
        values = (
            model.decision_function(X)
            if hasattr(model, "decision_function")
            else model.predict_proba(X)[:, 1]
        )
        score = roc_auc_score(truth, values)
    else:
        score = accuracy if metric == ACCURACY else balanced
    file = io.BytesIO()
    joblib.dump(model, file)
    influences = influences_on(metric, truth, predicted, values)
    trial = Trial(
        solver=name,
        score_pct=100 * float(score),
        accuracy_pct=100 * float(accuracy),
        balanced_accuracy_pct=100 * float(balanced),
        fit_s=fit_s,
        predict_s=float(np.median(times)),
        size_kb=len(file.getvalue()) / 1024,
        params=params,
        interval_pct=interval_of(metric, influences),
    )
    return Fitted(trial, model, predicted, influences)


def with_own_type(y: Any) -> Any:
    """Return labels as whole numbers or truth values if all of them are written as such."""
    import numpy as np

    texts = set(y.unique())
    if texts <= {"True", "False"}:
        return y == "True"
    if all(WHOLE_NUMBER.fullmatch(text) for text in texts):
        return y.astype(np.int64)
    return y


def refuse_unwritable(target: Path) -> None:
    """Raise a ConfigError if no file can be written beside `target`."""
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise ConfigError(f"can't write {target}: {error.strerror or error}") from error


def write_model(model: Any, target: Path) -> None:
    """Write a pipeline to its file.

    Raises
    ------
    ResultsError
        If the file can't be written; the pipeline is then in the temporary folder.
    """
    import joblib

    from svmbench.base import files

    content = io.BytesIO()
    joblib.dump(model, content)
    try:
        files.write_bytes(target, content.getvalue())
    except ResultsError as error:
        spare = Path(tempfile.mkdtemp(prefix="svmbench-")) / target.name
        spare.write_bytes(content.getvalue())
        raise ResultsError(f"{error}; the model is in {spare}") from error
