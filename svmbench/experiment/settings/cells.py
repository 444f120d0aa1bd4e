"""Cells: their identity in records, and the specification that a worker runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from svmbench.schema.record import Identity


class NoveltyChoice(TypedDict):
    """The normal classes, and the number of abnormal rows kept for each normal one."""

    normal: list[str]
    ratio: float
    seed: int


class WrittenChoice(TypedDict):
    """A file that a registered set is written to, to be read in blocks from there."""

    format: str
    copies: int
    repeats: int


class DatasetChoice(TypedDict):
    """A data set by its name, or a file of the user's own; as a config turns it into another.

    `file` is ``openml:NUMBER`` for a data set of OpenML.

    `read` is there, and ``"blocks"``, where its rows are read in blocks.
    """

    name: str
    file: str
    label_column: str
    text: NotRequired[str]
    impute: NotRequired[bool]
    novelty: NotRequired[NoveltyChoice]
    read: NotRequired[str]
    written: NotRequired[WrittenChoice]


class SolverSettings(TypedDict):
    """A solver as a config sets it up: `shown` is what it is called there.

    `search` is there where the fits of a search have other parameters than that of its best point.
    """

    name: str
    shown: str
    params: dict[str, Any]
    grid: list[dict[str, Any]]
    search: NotRequired[dict[str, Any]]


class ArraySpec(TypedDict, total=False):
    """The settings that decide a cell's scaled inputs under every protocol, as JSON values."""

    protocol: str
    dataset: DatasetChoice
    data_sha256: str
    n_rows: int
    n_features_kept: int | None
    seed: int
    subset: str
    scaling: str
    scaler: str
    inputs: str
    precision: str
    task: str
    blas_core: NotRequired[str]


class NodeSpec(ArraySpec, total=False):
    """The specification of arrays that several cells share, as JSON values.

    It also has the settings of a protocol that decide which rows are scaled (`own_settings`).
    """

    fold: int | None
    has_test_part: bool
    distances: bool


class CellSpec(NodeSpec, total=False):
    """All that a worker needs of a cell, as JSON can hold it; empty where it can't be run.

    A cell of one solver has its settings (``name`` to ``grid``), one of all solvers has ``racers``
    and ``pairs``, one of a data set alone has neither. The settings of its protocol alone stand
    among the others (`own_settings`).
    """

    threads: int
    scores: list[str]
    select_by: str
    name: str
    shown: str
    params: dict[str, Any]
    grid: list[dict[str, Any]]
    search: dict[str, Any]
    racers: list[SolverSettings]
    pairs: list[list[str]]


def while_searching(settings: SolverSettings) -> SolverSettings:
    """Return a solver as the fits of a search have it."""
    params = {**settings["params"], **settings.get("search", {})}
    return cast(SolverSettings, {**settings, "params": params})


def own_settings(spec: NodeSpec) -> Mapping[str, Any]:
    """Return a specification as a mapping, in which the settings of its protocol can be read.

    A protocol's settings are its own: a pydantic model has checked them, and no list of them stands
    anywhere else.
    """
    return cast(Mapping[str, Any], spec)


class Limits(TypedDict):
    """Limits of a worker: memory in GiB, and threads."""

    memory_gb: float
    threads: int


@dataclass(frozen=True)
class SharedArrays:
    """A node of the plan that cells depend on: scaled inputs on disk, made once.

    Attributes
    ----------
    key : str
        Names the folder; hashes data, rows, features, scaling and fold.
    spec : NodeSpec
    bytes : int
        Estimated size on disk.
    """

    key: str
    spec: NodeSpec
    bytes: int

    def folder(self, scratch: Path) -> Path:
        """Return where the arrays lie once they are made."""
        return scratch / "shared" / self.key


@dataclass(frozen=True)
class Cell:
    """One line of the plan: a data set × solver × size × outer fold.

    Attributes
    ----------
    key : str
        Hash of `spec`, of the data and of the solver's source: the same key, the same result.
    shown : Identity
        The identifying fields of its record (block, data set, solver, fold …).
    spec : CellSpec
    status : str
        ``planned``, ``skipped``, ``unavailable``, or ``not run`` where it was not asked for and
        its data set is not prepared.
    reason : str
        One sentence where it is not planned.
    shared : SharedArrays or None
        The node it depends on.
    cost : float
        Rough size of the work, to run the smallest cells first.
    """

    key: str
    shown: Identity
    spec: CellSpec
    status: str = "planned"
    reason: str = ""
    shared: SharedArrays | None = None
    cost: float = 0.0
