"""Protocol ``nested-race``: whole nested cross-validations in turn, ratios of CPU time.

A racer that takes a kernel matrix runs this suite's search (``nested_race_on_kernels.py``):
distances, one kernel matrix a gamma, every C along a path, then a refit of the chosen point and the
predictions. Any other racer runs scikit-learn's own ``cross_validate(GridSearchCV(…))``; ``svc`` is
scikit-learn's SVC as its users call it. All have the same rows, folds and grid. The search here
breaks tied votes as LIBSVM does (the first class wins), so that score tables can be compared entry
by entry.

A racer's chosen points are reported as the geometric means of C and gamma over the outer folds, and
``inner_accuracy_pct`` is the score that chose them, a mean over the folds.

In each round every racer runs once; ``turns.py`` has the loop and the ratios. The models of the
last round's chosen points, one for each outer fold, are certified outside the timed spans, as those
of a race (``certified.py``).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.certified import CERTIFIED_METRICS, Certificates, share_bounds
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, ITSELF, UNSCALED
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of
from svmbench.experiment.protocols.turns import Costs, outcome_of_rounds, take_turns
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings
from svmbench.experiment.settings.values import Folds, Repeats, RunFolds


class NestedRace(RaceBlock):
    """Whole nested cross-validations in turn: one cell is all solvers.

    Attributes
    ----------
    repeats : int
        Rounds.
    outer_folds, inner_folds : int
    run_folds : int
        How many of the outer folds are really run; 0 for all.
    """

    repeats: Repeats = 5
    outer_folds: Folds = 5
    inner_folds: Folds = 5
    run_folds: RunFolds = 0


#: From the training rows and labels of an outer fold to the models of the chosen point, each with
#: its own rows and labels; called outside the timed spans.
Refitted = Callable[[Any, np.ndarray], list[tuple[Any, Any, np.ndarray]]]


@dataclass
class NestedResult:
    """The accuracies of a nested cross-validation, and the point that each outer fold chose."""

    #: Inner accuracies of each outer fold: arrays of shape (n_C, n_gamma, n_inner).
    inner_accuracy_pct: list[np.ndarray] = field(default_factory=list)
    accuracy_pct: list[float] = field(default_factory=list)
    chosen: list[dict[str, float]] = field(default_factory=list)
    #: Fits of the search that stopped early, and that ended at a duality gap.
    unconverged: int = 0
    gap_stopped: int = 0
    refitted: list[Refitted] = field(default_factory=list)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the outer folds and of their searches."""
        best = [by_fold.mean(axis=-1).max() for by_fold in self.inner_accuracy_pct]
        metrics = {
            "accuracy_pct": statistics.fmean(self.accuracy_pct),
            "inner_accuracy_pct": statistics.fmean(best),
            "unconverged_fits": self.unconverged,
            "gap_stopped_fits": self.gap_stopped,
        }
        for name in {"C", "gamma"} & {*self.chosen[0]}:
            values = [point[name] for point in self.chosen]
            metrics[f"chosen_{name}"] = statistics.geometric_mean(values)
        return metrics


@dataclass
class NestedRaceData:
    """Rows, folds and scaling of the race; `X` is scaled where all rows are scaled together."""

    X: Any
    codes: np.ndarray
    #: Outer folds, and the inner folds of each as positions in its training rows.
    outer: list[tuple[np.ndarray, np.ndarray]]
    inner: list[list[tuple[np.ndarray, np.ndarray]]]
    #: Where each outer fold scales anew.
    scaler: str | None

    def training_inputs(self, rows: np.ndarray) -> Any:
        """Return the inputs of an outer fold's training rows, scaled by a scaler fitted on them."""
        X = self.X if self.scaler is None else folds.scale(self.X, self.scaler, rows)
        return folds.take(X, rows)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.max()) + 1


#: From a task, a racer's settings and the data to the racer's nested cross-validation.
Prepare = Callable[[Task, SolverSettings, NestedRaceData], Callable[[], NestedResult]]


@protocol(
    "nested-race",
    settings=NestedRace,
    caption="nested cross-validations raced in one process",
    scores=False,
    scalings={"outer-fold": ITSELF, "all-rows": ALL_ROWS, "none": UNSCALED},
    cell="all solvers",
    splits=lambda block: (block.outer_folds, block.inner_folds),
    metrics=(
        *("ratio", "cpu_time_s", "train_time_s", "accuracy_pct", "inner_accuracy_pct"),
        *("chosen_C", "chosen_gamma", "unconverged_fits", "gap_stopped_fits"),
        *("unequal_scores_pct", "largest_score_difference_pct", "n_train", "outer_folds_run"),
        *CERTIFIED_METRICS,
    ),
)
def nested_race(task: Task) -> Outcome:
    """Run all racers' nested cross-validations in turn for `repeats` rounds."""
    return run_rounds(task, prepare_with_sklearn)


def run_rounds(task: Task, prepare: Prepare) -> Outcome:
    """Run the nested cross-validations of the racers, which `prepare` makes, in turn."""
    data = _race_data(task)
    runs = {racer["shown"]: prepare(task, racer, data) for racer in task.spec["racers"]}
    costs = {name: Costs() for name in runs}
    results: dict[str, NestedResult] = {}

    def run(name: str) -> None:
        results[name] = costs[name].time(runs[name])

    take_turns([partial(run, name) for name in runs], task.protocol_settings["repeats"])
    metrics: dict[str, Any] = {"n_train": len(data.codes), "outer_folds_run": len(data.outer)}
    for name, result in results.items():
        metrics |= {f"{what}:{name}": value for what, value in result.metrics().items()}
    for first, second in task.spec["pairs"]:
        inner = [np.stack(results[name].inner_accuracy_pct) for name in (first, second)]
        differences = np.abs(inner[0] - inner[1])
        metrics[f"unequal_scores_pct:{first}:{second}"] = 100.0 * float(np.mean(differences > 1e-9))
        metrics[f"largest_score_difference_pct:{first}:{second}"] = float(differences.max())
    notes = _certify(results, data, metrics)
    columns = {name: seconds.metrics() for name, seconds in costs.items()}
    return outcome_of_rounds(task, columns, metrics, stop_reason="; ".join(notes))


def _certify(
    results: dict[str, NestedResult], data: NestedRaceData, metrics: dict[str, Any]
) -> list[str]:
    """Add the certificates of the chosen points' models; return notes on claims."""
    certificates: dict[str, list[Certificates]] = {name: [] for name in results}
    for fold, (train, _) in enumerate(data.outer):
        X, codes = data.training_inputs(train), data.codes[train]
        for name, result in results.items():
            certificate = Certificates(name, X, codes)
            certificate.add_models(0, result.refitted[fold](X, codes))
            certificates[name].append(certificate)
        # Racers that chose the same point have the same problem on this fold.
        share_bounds([by_fold[fold] for by_fold in certificates.values()])
    notes: list[str] = []
    for by_fold in certificates.values():
        together = Certificates.of_folds(by_fold)
        together.report([(fold, 0) for fold in range(len(by_fold))], metrics, notes)
    return notes


def _race_data(task: Task) -> NestedRaceData:
    spec = task.spec
    inputs = inputs_of(task)
    _, codes = np.unique(inputs.y, return_inverse=True)
    outer = folds.outer_splits(codes, task.protocol_settings["outer_folds"], task.seed("outer"))
    outer = outer[: task.protocol_settings["run_folds"] or None]
    inner = [
        folds.outer_splits(
            codes[train], task.protocol_settings["inner_folds"], task.seed("inner", fold)
        )
        for fold, (train, _) in enumerate(outer)
    ]
    scaler = spec["scaler"] if spec["scaling"] == "outer-fold" else None
    return NestedRaceData(inputs.whole(), codes, outer, inner, scaler)


def prepare_with_sklearn(
    task: Task, settings: SolverSettings, data: NestedRaceData
) -> Callable[[], NestedResult]:
    """Return a solver's whole nested cross-validation by scikit-learn, which is loaded here."""
    # A racer's imports and compilation on its first call don't count as training time.
    import sklearn.model_selection
    import sklearn.pipeline
    import sklearn.svm  # noqa: F401

    return partial(_by_scikit_learn, task, settings, data)


def _by_scikit_learn(task: Task, settings: SolverSettings, data: NestedRaceData) -> NestedResult:
    from sklearn.model_selection import GridSearchCV, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    if settings.get("search"):
        msg = (
            f"{settings['shown']}: remove 'search'; scikit-learn's GridSearchCV fits the chosen "
            "point as part of its search"
        )
        raise ValueError(msg)
    prefix = ""
    if settings["name"] == "svc":
        estimator: Any = SVC(**settings["params"])
    else:
        estimator = task.build(settings)
        prefix = "estimator__" if hasattr(estimator, "estimator") else ""
    grid = {
        prefix + name: sorted({point[name] for point in settings["grid"]})
        for name in settings["grid"][0]
    }
    result = NestedResult()
    for outer, inner in zip(data.outer, data.inner, strict=True):
        searched: Any = GridSearchCV(estimator, grid, cv=inner)
        if data.scaler is not None:
            sparse = not isinstance(data.X, np.ndarray)
            searched = make_pipeline(folds.make_scaler(data.scaler, sparse), searched)
        tested = cross_validate(searched, data.X, data.codes, cv=[outer], return_estimator=True)
        fitted = tested["estimator"][0]
        fitted = fitted if data.scaler is None else fitted[-1]
        shape = tuple(len(values) for values in grid.values())
        table = [fitted.cv_results_[f"split{f}_test_score"] for f in range(len(inner))]
        accuracies = np.stack([values.reshape(shape) for values in table], axis=-1)
        result.inner_accuracy_pct.append(100.0 * accuracies)
        result.chosen.append(
            {name.removeprefix(prefix): value for name, value in fitted.best_params_.items()}
        )
        result.accuracy_pct.append(100.0 * float(tested["test_score"][0]))
        result.refitted.append(partial(_alone, fitted.best_estimator_))
    return result


def _alone(model: Any, X: Any, codes: np.ndarray) -> list[tuple[Any, Any, np.ndarray]]:
    """Return a model of all training rows; see `Refitted`."""
    return [(model, X, codes)]
