"""Protocol ``nested-race`` where racers take a kernel matrix: they search on shared matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from svmbench.core.contract.base import TrainingData, unfitted
from svmbench.core.kernels.kernels import KernelSource, gauss_of_distances, squared_distances
from svmbench.core.models.kernel_base import KernelClassifier, KernelSolution
from svmbench.core.models.pairs import vote
from svmbench.core.numeric.submatrix import Workspace, gather
from svmbench.experiment.protocols import folds, nested_race
from svmbench.experiment.protocols.declare import variant
from svmbench.experiment.protocols.kernel_search import (
    Fold,
    SearchRows,
    make_folds,
    pair_decisions,
    search_on_kernels,
    takes_part,
    warm_up_search,
)
from svmbench.experiment.protocols.nested_race import NestedRaceData, NestedResult
from svmbench.experiment.protocols.task import Outcome, Task
from svmbench.experiment.settings.cells import SolverSettings, while_searching

#: Among classes with equally many votes the first wins, as in LIBSVM.
TIES = "first"


@variant("nested-race", "kernel")
def nested_race_on_kernels(task: Task) -> Outcome:
    """Run all racers' nested cross-validations in turn, some of them on kernel matrices."""
    return nested_race.run_rounds(task, prepare_on_kernels)


def prepare_on_kernels(
    task: Task, settings: SolverSettings, data: NestedRaceData
) -> Callable[[], NestedResult]:
    """Return a solver's whole nested cross-validation, with its compiled code loaded."""
    from svmbench.baselines.catalogue import solver_class

    if takes_part(solver_class(settings["name"]), settings["params"], settings["grid"]):
        # A racer's compilation on its first call doesn't count as training time.
        warm_up_search(partial(task.build_alone, settings))
        return partial(_on_shared_kernels, task, settings, data)
    return nested_race.prepare_with_sklearn(task, settings, data)


def _on_shared_kernels(task: Task, settings: SolverSettings, data: NestedRaceData) -> NestedResult:
    result = NestedResult()
    all_distances = squared_distances(data.X) if data.scaler is None else None
    build_searching = partial(task.build_alone, while_searching(settings))
    for (train, test), inner in zip(data.outer, data.inner, strict=True):
        distances = all_distances
        if distances is None:
            distances = squared_distances(folds.scale(data.X, str(data.scaler), train))
        searched = SearchRows(distances, train, data.codes[train], data.n_classes, inner)
        search = search_on_kernels(searched, build_searching, settings["grid"], ties=TIES)
        result.inner_accuracy_pct.append(search.accuracy_pct)
        result.chosen.append(search.best)
        result.unconverged += int(search.metrics["unconverged_fits"])
        result.gap_stopped += int(search.metrics["gap_stopped_fits"])
        # The chosen point is trained on all training rows, and predicts the test rows.
        both = np.r_[train, test]
        codes, within = data.codes[both], gather(distances, both, both, distances.dtype)
        K = gauss_of_distances(within, search.best["gamma"])
        known, tested = np.arange(len(train)), np.arange(len(train), len(both))
        chosen, C = task.build_alone(settings, **search.best), [search.best["C"]]
        (fold,) = make_folds(codes, [(known, tested)])
        source = KernelSource.precomputed(K, Workspace())
        decisions, solutions = pair_decisions(source, fold, chosen, C)
        predicted = vote(decisions[:, 0], fold.pairs, data.n_classes, ties=TIES)
        result.accuracy_pct.append(100.0 * float(np.mean(predicted == codes[tested])))
        refit = partial(_as_models, chosen, fold, [of_pair for (of_pair,) in solutions])
        result.refitted.append(refit)
    return result


def _as_models(
    chosen: KernelClassifier,
    fold: Fold,
    solutions: Sequence[KernelSolution],
    X: Any,
    _codes: np.ndarray,
) -> list[tuple[Any, Any, np.ndarray]]:
    """Return the solution of each pair of classes as a model; see `nested_race.Refitted`."""
    models = []
    for rows, signs, solution in zip(fold.rows, fold.signs, solutions, strict=True):
        model, part = unfitted(chosen), TrainingData(X=X[rows], y=signs)
        model.classes_, model.gamma_ = np.array([-1.0, 1.0]), chosen.gamma
        models.append((model._store(solution, part), part.X, signs))
    return models
