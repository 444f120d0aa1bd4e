"""The task that a protocol's function is given: a cell's settings, its solver, its points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.settings.cells import (
    CellSpec,
    SolverSettings,
    own_settings,
    while_searching,
)
from svmbench.schema.record import Outcome

__all__ = ["NORMAL", "Outcome", "Task"]

#: The label of the normal class where the task is to tell it from everything else.
NORMAL = 1


@dataclass
class Task:
    """What a worker hands to a protocol.

    Attributes
    ----------
    spec : CellSpec
    shared : Path or None
        Folder of the scaled inputs, if the plan has made them.
    memory_gb : float
        What the cell may hold, GiB.
    done : dict
        Points recorded by an earlier, interrupted run, by their id.
    emit : callable
        Streams a finished point: ``emit(id, values)``.
    artifact : Path or None
        The file for arrays that a plot needs; see `keep`.
    """

    spec: CellSpec
    shared: Path | None = None
    memory_gb: float = 4.0
    done: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    emit: Callable[[str, Mapping[str, Any]], None] = lambda _id, _values: None
    artifact: Path | None = None

    def keep(self, **arrays: np.ndarray) -> None:
        """Keep arrays that a plot needs beside the records; their file appears whole or not."""
        if self.artifact is None:
            return
        self.artifact.parent.mkdir(exist_ok=True)
        partial = self.artifact.with_suffix(".partial")
        with partial.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        partial.replace(self.artifact)

    def searching(self) -> Task:
        """Return the task with its solver as the fits of a search have it."""
        changed = while_searching(cast(SolverSettings, self.spec))
        return replace(self, spec=cast(CellSpec, changed))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the cell's protocol alone, by their names in a block."""
        return own_settings(self.spec)

    @property
    def in_blocks(self) -> bool:
        """Whether the rows are read in blocks."""
        return self.spec["dataset"].get("read") == "blocks"

    @property
    def is_one_class(self) -> bool:
        """Whether solvers are trained on the normal class alone, without labels."""
        return self.spec.get("task") == "one-class"

    def build(self, settings: SolverSettings | None = None, **params: Any) -> Any:
        """Return the cell's solver with its fixed parameters, a seed of its own, and `params`.

        One that separates two classes is wrapped in `OneVsOne` where the data have more.
        """
        built = self.build_alone(settings, **params)
        if self.spec.get("task") == "multiclass" and built.declaration.task == "binary":
            from svmbench.baselines.catalogue import one_vs_one

            return one_vs_one(built)
        return built

    def build_alone(self, settings: SolverSettings | None = None, **params: Any) -> Any:
        """Return the solver itself."""
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
        """Return those of some rows that a solver may be fitted on."""
        return rows[y[rows] == NORMAL] if self.is_one_class else rows

    def labels(self, y: np.ndarray) -> np.ndarray | None:
        """Return the labels that a solver may see of its training rows."""
        return None if self.is_one_class else y
