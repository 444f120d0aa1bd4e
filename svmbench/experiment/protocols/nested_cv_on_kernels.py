"""Protocol ``nested-cv`` of solvers that take a kernel matrix: fits of a search share it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from svmbench.core.kernels.kernels import squared_distances
from svmbench.experiment.protocols import folds, kernel_search
from svmbench.experiment.protocols.declare import variant
from svmbench.experiment.protocols.nested_cv import search_and_test
from svmbench.experiment.protocols.task import CellInputs, Outcome, Task


@variant("nested-cv", "kernel")
def nested_cv_on_kernels(task: Task) -> Outcome:
    """Search on one kernel matrix a gamma where the grid and the memory allow it."""
    return search_and_test(task, _kernel_search if _searches_kernels(task) else None)


def _searches_kernels(task: Task) -> bool:
    """Return True if the search can run on one kernel matrix per gamma."""
    from svmbench.baselines.catalogue import solver_class

    spec = task.spec
    is_shared = len(spec["grid"]) > 1 and spec["scaling"] != "every-fold"
    fits = folds.distance_bytes(spec) <= task.memory_gb * 2**30 / 2
    return (
        is_shared
        and fits
        and not task.is_one_class
        and spec["select_by"] == "accuracy"
        and kernel_search.takes_part(solver_class(spec["name"]), spec["params"], spec["grid"])
    )


def _kernel_search(
    task: Task, inputs: CellInputs, rows: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Search as `search_on_kernels` does, on distances that are computed once."""
    build = task.searching().build_alone
    kernel_search.warm_up_search(build)
    if inputs.distances is None:
        X, cpu = inputs.whole(), time.process_time()
        distances = squared_distances(X, dtype=folds.distance_type(task.spec))
        inputs.distances = distances, time.process_time() - cpu
    distances, distances_cpu_s = inputs.distances
    classes, codes = np.unique(inputs.y[rows], return_inverse=True)
    searched = kernel_search.SearchRows(distances, rows, codes, len(classes), splits)
    result = kernel_search.search_on_kernels(
        searched, build, task.spec["grid"], done=task.done, emit=task.emit
    )
    metrics = result.metrics
    metrics["distances_cpu_time_s"] = distances_cpu_s
    # Of the distances only the CPU time is kept: cells may share them.
    metrics["search_time_s"] = metrics["search_wall_time_s"] + distances_cpu_s
    metrics["search_cpu_time_s"] += distances_cpu_s
    return result.best, metrics
