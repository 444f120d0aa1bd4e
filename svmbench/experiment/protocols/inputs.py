"""A cell's inputs: its data set opened, its rows chosen, scaled as its protocol declares."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import REGISTRY
from svmbench.experiment.protocols.task import NORMAL, Task
from svmbench.experiment.settings.cells import DatasetChoice, NodeSpec


@dataclass
class Inputs:
    """The rows of a cell: inputs scaled as the block says, and their labels.

    `distances` are the squared distances of all rows with the CPU seconds that they took, where
    the plan has made them.
    """

    X: Any
    y: np.ndarray
    scaling_s: float
    X_test: Any = None
    y_test: np.ndarray | None = None
    distances: tuple[np.ndarray, float] | None = None

    def whole(self) -> Any:
        """Return all inputs in memory."""
        return folds.take(self.X, np.arange(len(self.y)))


def open_dataset(spec: NodeSpec) -> Any:
    """Open the prepared data set of a cell."""
    return open_chosen(spec["dataset"])


def open_chosen(wanted: DatasetChoice) -> Any:
    """Open a prepared data set, or a file of the user's own, as a config wants it."""
    from svmbench import data

    if wanted["file"]:
        column = wanted["label_column"] or None
        in_blocks = wanted.get("read") == "blocks"
        open_file = data.scan if in_blocks else data.load_file
        source = open_file(wanted["file"], label_column=column)
    else:
        source = data.load(wanted["name"])
    if "novelty" not in wanted:
        return source
    return data.as_novelty(source, **wanted["novelty"])


def make_inputs(spec: NodeSpec) -> Inputs:
    """Compute the inputs of a cell (or of the node that several cells share) from the data set."""
    source = open_dataset(spec)
    y = np.asarray(source.y)
    rows = _kept_rows(spec, y)
    X, X_test = folds.take(source.X, rows), source.X_test
    if spec.get("inputs") == "dense":
        X, X_test = folds.dense(X), None if X_test is None else folds.dense(X_test)
    columns = folds.subset_features(X, spec["n_features_kept"])
    if columns is not None:
        X = X[:, columns]
        X_test = None if X_test is None else X_test[:, columns]
    y = y[rows]
    start = time.perf_counter()
    scaled = REGISTRY[spec["protocol"]].scalings[spec["scaling"]]
    if scaled.before:
        fitted_on = scaled.rows(spec, y)
        if spec.get("task") == "one-class" and spec["scaling"] != "all-rows":
            fitted_on = np.arange(len(y)) if fitted_on is None else fitted_on
            fitted_on = fitted_on[y[fitted_on] == NORMAL]
        scaler = folds.make_scaler(spec["scaler"], not isinstance(X, np.ndarray))
        scaler.fit(X if fitted_on is None else X[fitted_on])
        X = scaler.transform(X)
        if X_test is not None:
            X_test = scaler.transform(folds.take(X_test, np.arange(X_test.shape[0])))
    seconds = time.perf_counter() - start
    return Inputs(X=X, y=y, scaling_s=seconds, X_test=X_test, y_test=source.y_test)


def inputs_of(task: Task) -> Inputs:
    """Return a cell's inputs: mapped if they are shared, else computed here."""
    if task.shared is None or not (task.shared / "meta.json").exists():
        return make_inputs(task.spec)
    spec = task.spec
    source = open_dataset(spec)
    y = np.asarray(source.y)
    rows = _kept_rows(spec, y)
    X, seconds = folds.open_arrays(task.shared)
    test = task.shared.with_name(task.shared.name + "-test")
    X_test = folds.open_arrays(test)[0] if test.exists() else None
    return Inputs(
        X=X,
        y=y[rows],
        scaling_s=seconds,
        X_test=X_test,
        y_test=source.y_test,
        distances=folds.open_distances(task.shared),
    )


def _kept_rows(spec: NodeSpec, y: np.ndarray) -> np.ndarray:
    seed = folds.derive_seed(spec["seed"], "rows", spec["dataset"]["name"])
    return folds.subset_rows(y, spec["n_rows"], seed, spec["subset"])
