"""Protocol ``nested-race``: whole nested cross-validations in turn, ratios of CPU time.

A racer that takes a kernel matrix runs this suite's search (``kernel_search``): distances, one
kernel matrix a gamma, every C along a path, then a refit of the chosen point and the predictions.
Any other runs scikit-learn's own ``cross_validate(GridSearchCV(…))``; ``svc`` is scikit-learn's SVC
as its users call it. All have the same rows, folds and grid. So that score tables can be compared
entry by entry, the search here breaks tied votes as LIBSVM does (the first class).

A racer's chosen points are reported as the geometric means of C and gamma over the outer folds, and
``inner_accuracy_pct`` is the score that chose them, a mean over the folds.

In each round every racer runs once, A B A B …; the ratio is the median over the rounds.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.kernels.kernels import KernelSource, gauss_of_distances, squared_distances
from svmbench.core.models.pairs import vote
from svmbench.core.numeric.submatrix import gather
from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import ALL_ROWS, ITSELF, UNSCALED, protocol
from svmbench.experiment.protocols.inputs import inputs_of
from svmbench.experiment.protocols.kernel_search import (
    SearchRows,
    make_folds,
    search,
    takes_part,
    warm_up,
)
from svmbench.experiment.protocols.outcomes import compare
from svmbench.experiment.protocols.task import Outcome, Task
from svmbench.experiment.settings.blocks import RaceBlock
from svmbench.experiment.settings.cells import SolverSettings, while_searching
from svmbench.experiment.settings.values import Folds, Repeats, RunFolds

#: Votes for a class that came first among equals, as LIBSVM counts.
TIES = "first"


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


@dataclass
class Result:
    """What one nested cross-validation found.

    Attributes
    ----------
    scores : list of ndarray of shape (n_C, n_gamma, n_inner)
        Inner scores (%) of each outer fold.
    accuracy_pct : list of float
        Outer scores.
    chosen : list of dict
        The best point of each outer fold.
    unconverged, gap_stopped : int
        Fits of the search that stopped early, and that ended at a duality gap.
    """

    scores: list[np.ndarray]
    accuracy_pct: list[float]
    chosen: list[dict[str, float]]
    unconverged: int = 0
    gap_stopped: int = 0

    def of_search(self) -> dict[str, float]:
        """Return what is reported of the searches, by metric."""
        best = [scores.mean(axis=-1).max() for scores in self.scores]
        found = {
            "inner_accuracy_pct": statistics.fmean(best),
            "unconverged_fits": self.unconverged,
            "gap_stopped_fits": self.gap_stopped,
        }
        for name in {"C", "gamma"} & {*self.chosen[0]}:
            values = [point[name] for point in self.chosen]
            found[f"chosen_{name}"] = statistics.geometric_mean(values)
        return found


@dataclass
class Problem:
    """Rows, folds and scaling of the race.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Scaled already where all rows are scaled together.
    codes : ndarray of int of shape (n_samples,)
    outer, inner : list of (ndarray, ndarray), list of such lists
        Outer folds, and the inner folds of each as positions in its training rows.
    scaler : str or None
        Where each outer fold scales anew.
    """

    X: Any
    codes: np.ndarray
    outer: list[tuple[np.ndarray, np.ndarray]]
    inner: list[list[tuple[np.ndarray, np.ndarray]]]
    scaler: str | None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.max()) + 1


@protocol(
    "nested-race",
    settings=NestedRace,
    caption="nested cross-validations raced in one process",
    scalings={"outer-fold": ITSELF, "all-rows": ALL_ROWS, "none": UNSCALED},
    cell="all solvers",
    splits=lambda block: (block.outer_folds, block.inner_folds),
    metrics=(
        *("ratio", "cpu_time_s", "train_time_s", "accuracy_pct", "inner_accuracy_pct"),
        *("chosen_C", "chosen_gamma", "unconverged_fits", "gap_stopped_fits"),
        *("unequal_scores_pct", "largest_score_difference_pct", "n_train", "outer_folds_run"),
    ),
)
def nested_race(task: Task) -> Outcome:
    """Run all racers' nested cross-validations in turn for `repeats` rounds."""
    spec = task.spec
    problem = _problem(task)
    names = [settings["shown"] for settings in spec["racers"]]
    cpu: dict[str, list[float]] = {name: [] for name in names}
    wall: dict[str, list[float]] = {name: [] for name in names}
    results: dict[str, Result] = {}
    for settings in spec["racers"]:
        # What a racer imports or compiles on its first call is nobody's training time.
        if not _shares(settings):
            import sklearn.model_selection
            import sklearn.pipeline
            import sklearn.svm  # noqa: F401
        else:
            warm_up(lambda settings=settings, **params: task.build_alone(settings, **params))
    for _ in range(task.settings["repeats"]):
        for settings in spec["racers"]:
            with measure.quiet():
                start = measure.now()
                found = _run(task, settings, problem)
                its_wall, its_cpu = measure.since(start)
            cpu[settings["shown"]].append(its_cpu)
            wall[settings["shown"]].append(its_wall)
            results[settings["shown"]] = found
    metrics: dict[str, Any] = {"n_train": len(problem.codes), "outer_folds_run": len(problem.outer)}
    spread: dict[str, Any] = {}
    for name in names:
        metrics[f"cpu_time_s:{name}"] = statistics.median(cpu[name])
        metrics[f"train_time_s:{name}"] = statistics.median(wall[name])
        metrics[f"accuracy_pct:{name}"] = statistics.fmean(results[name].accuracy_pct)
        metrics |= {f"{what}:{name}": value for what, value in results[name].of_search().items()}
        spread[f"cpu_time_s:{name}"] = [min(cpu[name]), max(cpu[name])]
    for first, second in spec["pairs"]:
        differences = np.abs(np.stack(results[first].scores) - np.stack(results[second].scores))
        metrics[f"unequal_scores_pct:{first}:{second}"] = 100.0 * float(np.mean(differences > 1e-9))
        metrics[f"largest_score_difference_pct:{first}:{second}"] = float(differences.max())
    ratios, ranges = compare(spec["pairs"], cpu)
    return {
        "metrics": metrics | ratios,
        "spread": spread | ranges,
        "counters": {},
        "params": {},
        "stop_reason": "",
        "folds": task.settings["repeats"],
    }


def _problem(task: Task) -> Problem:
    spec = task.spec
    inputs = inputs_of(task)
    _, codes = np.unique(inputs.y, return_inverse=True)
    outer = folds.outer_splits(codes, task.settings["outer_folds"], task.seed("outer"))
    outer = outer[: task.settings["run_folds"] or None]
    inner = [
        folds.outer_splits(codes[train], task.settings["inner_folds"], task.seed("inner", fold))
        for fold, (train, _) in enumerate(outer)
    ]
    scaler = spec["scaler"] if spec["scaling"] == "outer-fold" else None
    return Problem(inputs.whole(), codes, outer, inner, scaler)


def _run(task: Task, settings: SolverSettings, problem: Problem) -> Result:
    if _shares(settings):
        return _on_shared_kernels(task, settings, problem)
    return _by_scikit_learn(task, settings, problem)


def _shares(settings: SolverSettings) -> bool:
    from svmbench.baselines.catalogue import solver_class

    return takes_part(solver_class(settings["name"]), settings["params"], settings["grid"])


def _on_shared_kernels(task: Task, settings: SolverSettings, problem: Problem) -> Result:
    result = Result([], [], [])
    everywhere = squared_distances(problem.X) if problem.scaler is None else None

    def build(**params: Any) -> Any:
        return task.build_alone(settings, **params)

    def build_searching(**params: Any) -> Any:
        return task.build_alone(while_searching(settings), **params)

    for (train, test), inner in zip(problem.outer, problem.inner, strict=True):
        distances = everywhere
        if distances is None:
            distances = squared_distances(folds.scale(problem.X, str(problem.scaler), train))
        codes = problem.codes[train]
        ground = SearchRows(distances, train, codes, problem.n_classes, inner)
        found = search(ground, build_searching, settings["grid"], ties=TIES)
        result.scores.append(found.accuracy_pct)
        result.chosen.append(found.best)
        result.unconverged += int(found.metrics["unconverged_fits"])
        result.gap_stopped += int(found.metrics["gap_stopped_fits"])
        predicted = _refit(distances, train, test, problem, build, found.best)
        result.accuracy_pct.append(100.0 * float(np.mean(predicted == problem.codes[test])))
    return result


def _refit(
    distances: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    problem: Problem,
    build: Any,
    best: dict[str, float],
) -> np.ndarray:
    """Train on all of an outer fold's training rows, and return the classes of its test rows."""
    both = np.r_[train, test]
    codes = problem.codes[both]
    K = gauss_of_distances(gather(distances, both, both, distances.dtype), best["gamma"])
    known, asked = np.arange(len(train)), np.arange(len(train), len(both))
    (fold,) = make_folds(codes, [(known, asked)])
    estimator = build(**best)
    decisions = np.empty((len(fold.pairs), len(test)))
    for k, (rows, signs) in enumerate(zip(fold.rows, fold.signs, strict=True)):
        solution = estimator.solve(KernelSource.precomputed(K).subset(rows), signs)
        decisions[k] = solution.coefficients @ K[np.ix_(rows, asked)] + solution.b
    return vote(decisions, fold.pairs, problem.n_classes, ties=TIES)


def _by_scikit_learn(task: Task, settings: SolverSettings, problem: Problem) -> Result:
    from sklearn.model_selection import GridSearchCV, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    if settings.get("search"):
        msg = (
            f"{settings['shown']} is searched by scikit-learn's GridSearchCV, which fits the "
            "chosen point as it searches: leave 'search' out"
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
    result = Result([], [], [])
    for outer, inner in zip(problem.outer, problem.inner, strict=True):
        searched: Any = GridSearchCV(estimator, grid, cv=inner)
        if problem.scaler is not None:
            sparse = not isinstance(problem.X, np.ndarray)
            searched = make_pipeline(folds.make_scaler(problem.scaler, sparse), searched)
        found = cross_validate(
            searched, problem.X, problem.codes, cv=[outer], return_estimator=True
        )
        fitted = found["estimator"][0]
        table = (fitted if problem.scaler is None else fitted[-1]).cv_results_
        shape = tuple(len(values) for values in grid.values())
        scores = [table[f"split{f}_test_score"].reshape(shape) for f in range(len(inner))]
        result.scores.append(100.0 * np.stack(scores, axis=-1))
        chosen = (fitted if problem.scaler is None else fitted[-1]).best_params_
        result.chosen.append({name.removeprefix(prefix): chosen[name] for name in grid})
        result.accuracy_pct.append(100.0 * float(found["test_score"][0]))
    return result
