"""Protocol ``nested-cv``: choose parameters on inner folds, and test on the outer fold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.folds import ALL_ROWS, ITSELF, UNSCALED, Scaled
from svmbench.experiment.protocols.outcomes import TESTED, fit_and_test, sizes
from svmbench.experiment.protocols.search import SEARCHED, SplitRows, scaled_apart, search
from svmbench.experiment.protocols.task import CellInputs, Outcome, Task, inputs_of
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.experiment.settings.cells import NodeSpec, protocol_settings
from svmbench.experiment.settings.values import FoldRepeats, Folds, RunFolds

#: A search on the distances of all rows: takes a task, its inputs, the training rows and their
#: splits, and returns the best parameters and the metrics of the search.
KernelSearch = Callable[
    [Task, CellInputs, np.ndarray, list[tuple[np.ndarray, np.ndarray]]],
    tuple[dict[str, Any], dict[str, float]],
]


class NestedCV(TrainingBlock):
    """Nested cross-validation with a cell for each outer fold.

    Attributes
    ----------
    outer_folds, inner_folds : int
    outer_repeats : int
        How often outer folds are drawn: the folds of all repeats are numbered through.
    run_folds : int
        The number of outer folds that are run; 0 for all.
    precision : str
        The precision of the distances and kernel values that fits share in the search: ``single``
        (the error of a kernel value is at most about 2e-7), or ``double`` for models whose
        certificates must be more exact.
    """

    plan_only: ClassVar[tuple[str, ...]] = ("outer_repeats", "run_folds")

    outer_folds: Folds = 5
    inner_folds: Folds = 5
    outer_repeats: FoldRepeats = 1
    run_folds: RunFolds = 0
    precision: Literal["single", "double"] = "single"


def outer_split(
    y: np.ndarray, n_folds: int, fold: int, seed_of: Callable[..., int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows and the test rows of one outer fold.

    Parameters
    ----------
    y : array of shape (n_samples,)
    n_folds : int
    fold : int
        From `n_folds` on, folds are those of a repeat: each repeat draws folds of its own.
    seed_of : callable
        Takes words, and returns the seed that they have; see :func:`folds.derive_seed`.
    """
    repeat, within = divmod(fold, n_folds)
    seed = seed_of("outer", repeat) if repeat else seed_of("outer")
    return folds.outer_splits(y, n_folds, seed)[within]


def _training_rows(spec: NodeSpec, y: np.ndarray) -> np.ndarray:
    # The split must be that of the protocol, whose seeds are those of ``Task.seed``. It is drawn
    # here again, before there is a task, for arrays that several cells share.
    seed_of = partial(folds.derive_seed, spec["seed"], spec["dataset"]["name"])
    n_folds, fold = protocol_settings(spec)["outer_folds"], protocol_settings(spec)["fold"]
    return outer_split(y, n_folds, fold, seed_of)[0]


@protocol(
    "nested-cv",
    settings=NestedCV,
    caption="nested cross-validation",
    scalings={
        "outer-fold": Scaled(rows=_training_rows, by=("outer_folds", "fold")),
        "all-rows": ALL_ROWS,
        "every-fold": ITSELF,
        "none": UNSCALED,
    },
    folds_to_run=lambda block: list(
        range(block.run_folds or block.outer_folds * block.outer_repeats)
    ),
    splits=lambda block: (block.outer_folds, block.inner_folds),
    shares=("distances",),
    tasks=("binary", "multiclass", "one-class"),
    reads=("arrays", "blocks"),
    metrics=(*TESTED, *SEARCHED, "nested_cv_cpu_time_s"),
)
def nested_cv(task: Task) -> Outcome:
    """Search the grid by inner k-fold CV on one outer fold's training rows, refit, and test.

    Neither the search nor (with ``scaling: outer-fold``) the scaler sees the test rows.
    """
    return search_and_test(task)


def search_and_test(task: Task, kernel_search: KernelSearch | None = None) -> Outcome:
    """Run one cell of the protocol, with a search on kernel matrices if one is given."""
    spec, inputs = task.spec, inputs_of(task)
    settings = task.protocol_settings
    train, test = outer_split(inputs.y, settings["outer_folds"], settings["fold"], task.seed)
    y = inputs.y[train]
    scaler = spec["scaler"] if spec["scaling"] == "every-fold" else None
    inner = folds.outer_splits(y, settings["inner_folds"], task.seed("inner", spec["fold"]))
    if kernel_search is not None:
        best, search_metrics = kernel_search(task, inputs, train, inner)
    else:
        best, search_metrics = search(
            task, SplitRows(folds.take(inputs.X, train), y, inner, scaler)
        )
    fitted = task.training_rows(train, inputs.y)
    X, X_test = scaled_apart(inputs.X, fitted, test, scaler)
    outcome = fit_and_test(task, best, X, inputs.y[fitted], X_test, inputs.y[test])
    outcome["metrics"] |= search_metrics | sizes(inputs, len(fitted), len(test))
    outcome["metrics"]["nested_cv_cpu_time_s"] = whole_cpu_time(task, outcome["metrics"])
    return outcome


def whole_cpu_time(task: Task, metrics: dict[str, Any]) -> float:
    """Return the CPU time in s of all outer folds, if each took as long as this one.

    A fold records its own time times the number of folds, so that a table's mean over the folds is
    the time of the whole nested cross-validation. Distances are counted once if all folds share
    them, and once for each fold if each fold has its own scaling.
    """
    distances = metrics.get("distances_cpu_time_s", 0.0)
    n_folds = task.protocol_settings["outer_folds"]
    n_distances = 1 if task.spec["scaling"] in {"all-rows", "none"} else n_folds
    fit_time = metrics["search_cpu_time_s"] - distances + metrics["cpu_time_s"]
    return n_folds * (fit_time + metrics["predict_cpu_time_s"]) + n_distances * distances
