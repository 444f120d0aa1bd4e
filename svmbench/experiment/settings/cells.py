"""Cells: their identity in records, and their specification for a worker."""

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
    """The file to which a registered data set is written, to be read from there in blocks."""

    format: str
    copies: int
    repeats: int


class DatasetChoice(TypedDict):
    """A data set by its name, or a user's file, with the config's settings for reading it.

    `file` is ``openml:NUMBER`` for a data set of OpenML. `read` is ``"blocks"`` if rows are read in
    blocks, and missing otherwise.
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
    """A solver with the config's settings.

    `shown` is the solver's label, or its name without a label. `search` has the parameters with
    which the fits of a search differ from the fit of the chosen point, if any.
    """

    name: str
    shown: str
    params: dict[str, Any]
    grid: list[dict[str, Any]]
    search: NotRequired[dict[str, Any]]


class ArraySpec(TypedDict, total=False):
    """The settings that decide a cell's scaled inputs, for any protocol, as JSON values."""

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

    It also has the settings of a protocol that decide which rows are scaled (`protocol_settings`).
    """

    fold: int | None
    has_test_part: bool
    distances: bool


class CellSpec(NodeSpec, total=False):
    """The specification of a cell for a worker, as JSON values.

    It is empty if the data set is missing or its rows are unsuitable. A cell that is skipped for
    its solver keeps it.

    A cell of one solver has the solver's settings (``name`` to ``grid``), a cell of all solvers has
    ``racers`` and ``pairs``, and a cell of a data set alone has neither. Settings that only the
    cell's protocol has are additional keys (`protocol_settings`).
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
    """Return a solver's settings for the fits of a search."""
    params = {**settings["params"], **settings.get("search", {})}
    return cast(SolverSettings, {**settings, "params": params})


def protocol_settings(spec: NodeSpec) -> Mapping[str, Any]:
    """Return the whole specification as a plain mapping, to read settings that only a protocol has.

    `CellSpec` doesn't list these settings; the protocol's pydantic model has checked them.
    """
    return cast(Mapping[str, Any], spec)


class Limits(TypedDict):
    """Limits of a worker: memory in GiB, and threads."""

    memory_gb: float
    threads: int


@dataclass(frozen=True)
class SharedArrays:
    """Arrays on disk that several cells share, made once: scaled inputs, and perhaps distances.

    Attributes
    ----------
    key : str
        The folder's name: a hash of data, rows, features, scaling and fold.
    spec : NodeSpec
    bytes : int
        Estimated size on disk.
    """

    key: str
    spec: NodeSpec
    bytes: int

    def folder(self, scratch: Path) -> Path:
        """Return the folder of the arrays, which may not exist yet."""
        return scratch / "shared" / self.key


@dataclass(frozen=True)
class Cell:
    """A cell of the plan: one combination of data set, solver, swept values and outer fold.

    Attributes
    ----------
    key : str
        Hash of `spec`, data and code. Cells with the same key have the same result.
    identity : Identity
        The identifying fields of its record (block, data set, solver, fold …).
    spec : CellSpec
    status : str
        ``planned``, ``skipped``, ``unavailable``, or ``not run`` if it was not requested and its
        data set is not prepared.
    reason : str
        Why it is not planned, in one sentence; empty otherwise.
    shared : SharedArrays or None
        The arrays that it shares with other cells.
    cost : float
        A rough estimate of the work; cells with the lowest cost run first.
    """

    key: str
    identity: Identity
    spec: CellSpec
    status: str = "planned"
    reason: str = ""
    shared: SharedArrays | None = None
    cost: float = 0.0
