"""The task that a protocol's function is given, the cell's inputs, and the rows held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import PROTOCOLS
from svmbench.experiment.protocols.folds import ALL_ROWS, UNSCALED, Scaled
from svmbench.experiment.settings.cells import (
    CellSpec,
    DatasetChoice,
    NodeSpec,
    SolverSettings,
    protocol_settings,
    while_searching,
)
from svmbench.schema.record import Outcome

__all__ = [
    "NORMAL_LABEL",
    "SCALINGS",
    "CellInputs",
    "Outcome",
    "Share",
    "Task",
    "inputs_of",
    "testing_part",
]

#: Label of the normal class in novelty detection.
NORMAL_LABEL = 1

#: A share of the rows, neither none nor all of them.
Share = Annotated[float, Field(gt=0, lt=1)]


@dataclass
class Task:
    """The argument of a protocol: a cell's settings, data and services.

    Attributes
    ----------
    spec : CellSpec
    shared : Path or None
        Folder of the scaled inputs, if the plan has made them.
    memory_gb : float
        The memory limit of the cell in GiB.
    done : dict
        Points recorded by an earlier, interrupted run, by their id.
    emit : callable
        Streams a finished point: ``emit(id, values)``.
    artifact : Path or None
        The file for arrays that a plot needs; see `save_arrays`.
    """

    spec: CellSpec
    shared: Path | None = None
    memory_gb: float = 4.0
    done: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    emit: Callable[[str, Mapping[str, Any]], None] = lambda _id, _values: None
    artifact: Path | None = None

    def save_arrays(self, **arrays: np.ndarray) -> None:
        """Save arrays that a plot needs beside the records; the file is complete or absent."""
        if self.artifact is None:
            return
        self.artifact.parent.mkdir(exist_ok=True)
        partial = self.artifact.with_suffix(".partial")
        with partial.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        partial.replace(self.artifact)

    def searching(self) -> Task:
        """Return the task with its solver's settings during a search; see `while_searching`."""
        changed = while_searching(cast(SolverSettings, self.spec))
        return replace(self, spec=cast(CellSpec, changed))

    @property
    def protocol_settings(self) -> Mapping[str, Any]:
        """The whole `spec` as a plain mapping, to read settings that only the protocol has."""
        return protocol_settings(self.spec)

    @property
    def in_blocks(self) -> bool:
        """True if the rows are read in blocks."""
        return self.spec["dataset"].get("read") == "blocks"

    @property
    def is_one_class(self) -> bool:
        """True if solvers are trained on the normal class alone, without labels."""
        return self.spec.get("task") == "one-class"

    def build(self, settings: SolverSettings | None = None, **params: Any) -> Any:
        """Return the cell's solver with its fixed parameters, a seed of its own, and `params`.

        A solver of two-class problems is wrapped in `OneVsOne` if the data have more classes.
        """
        built = self.build_alone(settings, **params)
        if self.spec.get("task") == "multiclass" and built.declaration.task == "binary":
            from svmbench.baselines.catalogue import one_vs_one

            return one_vs_one(built)
        return built

    def build_alone(self, settings: SolverSettings | None = None, **params: Any) -> Any:
        """Return the solver, without `OneVsOne` even if the data have more classes."""
        from svmbench.baselines.catalogue import solver, solver_class

        chosen = settings or cast(SolverSettings, self.spec)
        wanted = {**chosen["params"], **params}
        if "random_state" in solver_class(chosen["name"])._get_param_names():
            wanted.setdefault(
                "random_state",
                folds.derive_seed(self.spec["seed"], "solver", self.spec.get("fold")),
            )
        return solver(chosen["name"], **wanted)

    def seed(self, *parts: object) -> int:
        """Return a seed that depends on the data set and `parts`, not on the solver."""
        return folds.derive_seed(self.spec["seed"], self.spec["dataset"]["name"], *parts)

    def training_rows(self, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the `rows` that a solver is fitted on: the normal ones in a one-class task."""
        return rows[y[rows] == NORMAL_LABEL] if self.is_one_class else rows

    def labels(self, y: np.ndarray) -> np.ndarray | None:
        """Return the labels that a solver may see of its training rows."""
        return None if self.is_one_class else y


@dataclass
class CellInputs:
    """The rows of a cell: inputs scaled as the block says, and their labels.

    `distances` are the squared distances of all rows, and the CPU seconds of computing them; None
    unless cells share them.
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
        if "text" in wanted or "impute" in wanted:
            how: Any = {"text": wanted.get("text"), "impute": wanted.get("impute", False)}
            source: Any = data.load(Path(wanted["file"]), label_column=column, **how)
        else:
            open_file: Any = data.scan if in_blocks else data.load_file
            source = open_file(wanted["file"], label_column=column)
    else:
        source = data.load(wanted["name"])
    if "novelty" not in wanted:
        return source
    return data.as_novelty(source, **wanted["novelty"])


def make_inputs(spec: NodeSpec) -> CellInputs:
    """Compute the inputs of a cell (or of the node that several cells share) from the data set."""
    source = open_dataset(spec)
    y = np.asarray(source.y)
    rows = _subset(spec, y)
    X, X_test = folds.take(source.X, rows), source.X_test
    if spec.get("inputs") == "dense":
        X, X_test = folds.dense(X), None if X_test is None else folds.dense(X_test)
    columns = folds.subset_features(X, spec["n_features_kept"])
    if columns is not None:
        X = X[:, columns]
        X_test = None if X_test is None else X_test[:, columns]
    y = y[rows]
    start = time.perf_counter()
    scaled = PROTOCOLS[spec["protocol"]].scalings[spec["scaling"]]
    if scaled.before:
        fitted_on = scaled.rows(spec, y)
        if spec.get("task") == "one-class" and spec["scaling"] != "all-rows":
            fitted_on = np.arange(len(y)) if fitted_on is None else fitted_on
            fitted_on = fitted_on[y[fitted_on] == NORMAL_LABEL]
        scaler = folds.make_scaler(spec["scaler"], not isinstance(X, np.ndarray))
        scaler.fit(X if fitted_on is None else X[fitted_on])
        X = scaler.transform(X)
        if X_test is not None:
            X_test = scaler.transform(folds.take(X_test, np.arange(X_test.shape[0])))
    seconds = time.perf_counter() - start
    return CellInputs(X=X, y=y, scaling_s=seconds, X_test=X_test, y_test=source.y_test)


def inputs_of(task: Task) -> CellInputs:
    """Return a cell's inputs: mapped if they are shared, else computed here."""
    if task.shared is None or not (task.shared / "meta.json").exists():
        return make_inputs(task.spec)
    spec = task.spec
    source = open_dataset(spec)
    y = np.asarray(source.y)
    rows = _subset(spec, y)
    X, seconds = folds.open_arrays(task.shared)
    test = task.shared.with_name(task.shared.name + "-test")
    X_test = folds.open_arrays(test)[0] if test.exists() else None
    return CellInputs(
        X=X,
        y=y[rows],
        scaling_s=seconds,
        X_test=X_test,
        y_test=source.y_test,
        distances=folds.open_distances(task.shared),
    )


def _subset(spec: NodeSpec, y: np.ndarray) -> np.ndarray:
    seed = folds.derive_seed(spec["seed"], "rows", spec["dataset"]["name"])
    return folds.subset_rows(y, spec["n_rows"], seed, spec["subset"])


def kept_rows(spec: NodeSpec, y: np.ndarray) -> np.ndarray | None:
    """Return the rows that are not held out for the test; all where the set has a test part."""
    if spec["has_test_part"]:
        return None
    seed = folds.derive_seed(spec["seed"], spec["dataset"]["name"], "test")
    return folds.holdout_split(y, protocol_settings(spec)["test"], seed)[0]


#: The scalings of a protocol that trains on the kept rows.
SCALINGS = {
    "outer-fold": Scaled(rows=kept_rows, by=("test", "has_test_part")),
    "all-rows": ALL_ROWS,
    "none": UNSCALED,
}


def testing_part(task: Task, inputs: CellInputs) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return the rows that are kept for training, and the inputs and labels of the test."""
    if inputs.X_test is not None and inputs.y_test is not None:
        X_test = folds.take(inputs.X_test, np.arange(len(inputs.y_test)))
        return np.arange(len(inputs.y)), X_test, inputs.y_test
    kept, test = folds.holdout_split(inputs.y, task.protocol_settings["test"], task.seed("test"))
    return kept, folds.take(inputs.X, test), inputs.y[test]


def training_and_test(task: Task) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return X and y of a cell's training rows, and of its test rows."""
    inputs = inputs_of(task)
    kept, X_test, y_test = testing_part(task, inputs)
    rows = task.training_rows(kept, inputs.y)
    return folds.take(inputs.X, rows), inputs.y[rows], X_test, np.asarray(y_test)
