"""Protocol ``chosen-cv`` where a solver that takes a kernel matrix chooses the grid point.

The search trains along C on one kernel matrix a gamma (`kernel_search`), and may use a sample of
the rows: each fold of the search has the sampled rows of the same part of the same fold, scaled as
there. C is not changed for the smaller number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from svmbench.core.kernels.kernels import squared_distances
from svmbench.experiment.protocols import folds, kernel_search
from svmbench.experiment.protocols.cv import cv
from svmbench.experiment.protocols.declare import variant
from svmbench.experiment.protocols.search import SplitRows
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of
from svmbench.experiment.settings.cells import CellSpec, SolverSettings

#: The parameters of a grid that is searched by another solver.
_SEARCHED_PARAMETERS = ("C", "gamma")


@variant("chosen-cv", "kernel")
def chosen_cv_on_kernels(task: Task) -> Outcome:
    """Let the choosing solver search the grid; train and score the cell's solver at that point."""
    chooser = task.protocol_settings["choose_with"].get(task.spec["shown"])
    if chooser is None or len(task.spec["grid"]) == 1:
        return cv(task)
    best, search_metrics = _choose(task, chooser)
    outcome = cv(replace(task, spec=cast(CellSpec, {**task.spec, "grid": [best]})))
    outcome["metrics"] |= search_metrics
    outcome["metrics"] |= {"chosen_C": best["C"], "chosen_gamma": best["gamma"]}
    return outcome


def _choose(task: Task, chooser: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the point whose mean accuracy is best, and the costs of its search.

    The smallest C, then the smallest gamma, wins among equals.
    """
    spec, inputs = task.spec, inputs_of(task)
    params = task.protocol_settings["choose_params"].get(chooser, {})
    settings = cast(SolverSettings, {**spec, "name": chooser, "params": params})

    def build(**point: Any) -> Any:
        return task.build_alone(settings, **point)

    kernel_search.warm_up_search(build)
    splits = folds.outer_splits(inputs.y, task.protocol_settings["folds"], task.seed("outer"))
    scaler = spec["scaler"] if spec["scaling"] in {"outer-fold", "every-fold"} else None
    rows = SplitRows(inputs.X, inputs.y, splits, scaler)
    classes, codes = np.unique(inputs.y, return_inverse=True)
    n_rows = task.protocol_settings["choose_rows"] or None
    sample = folds.subset_rows(inputs.y, n_rows, task.seed("choose"))
    results = []
    distances_cpu_s = 0.0
    for f, split in enumerate(splits):
        of_fold = f"fold={f} "
        parts = [part[np.isin(part, sample)] for part in split]
        X = _sampled_inputs(task, rows, split, parts)
        start = time.process_time()
        distances = squared_distances(X, dtype=np.dtype(np.float32))
        distances_cpu_s += time.process_time() - start
        n_train, n_used = len(parts[0]), X.shape[0]
        searched = kernel_search.SearchRows(
            distances=distances,
            rows=np.arange(n_used),
            codes=codes[np.concatenate(parts)],
            n_classes=len(classes),
            splits=[(np.arange(n_train), np.arange(n_train, n_used))],
        )
        results.append(
            kernel_search.search_on_kernels(
                searched,
                build,
                spec["grid"],
                done={
                    name.removeprefix(of_fold): point
                    for name, point in task.done.items()
                    if name.startswith(of_fold)
                },
                emit=partial(_emit, task, of_fold),
            )
        )
    # The folds' own best points differ; the chosen one is the best of their means.
    means = np.round(np.mean([result.accuracy_pct[:, :, 0] for result in results], axis=0), 9)
    values, gammas = (
        sorted({float(point[name]) for point in spec["grid"]}) for name in _SEARCHED_PARAMETERS
    )
    c, g = divmod(int(np.argmax(means)), len(gammas))
    metrics = {name: sum(result.metrics[name] for result in results) for name in results[0].metrics}
    metrics["distances_cpu_time_s"] = distances_cpu_s
    metrics["search_time_s"] = metrics["search_wall_time_s"] + distances_cpu_s
    metrics["search_cpu_time_s"] += distances_cpu_s
    return {"C": values[c], "gamma": gammas[g]}, metrics


def _emit(task: Task, of_fold: str, name: str, point: Mapping[str, Any]) -> None:
    task.emit(of_fold + name, point)


def _sampled_inputs(
    task: Task, rows: SplitRows, split: tuple[np.ndarray, np.ndarray], parts: list[np.ndarray]
) -> Any:
    """Return the inputs of the sampled training rows, then of the sampled validation rows.

    They are scaled by a scaler fitted on all training rows of the fold, as where the compared
    solver is scored.
    """
    inputs = [
        folds.take(X, np.flatnonzero(np.isin(whole, part)))
        for X, whole, part in zip(rows.arrays(task, *split), split, parts, strict=True)
    ]
    return sp.csr_array(sp.vstack(inputs)) if sp.issparse(inputs[0]) else np.concatenate(inputs)
