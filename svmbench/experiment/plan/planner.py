"""From a config to its list of cells, with a reason for each cell that can't run."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from svmbench.base.errors import CacheError, DataError, DataUnavailableError
from svmbench.base.paper_folders import FULL_PROFILE
from svmbench.baselines.templates import is_program
from svmbench.experiment.config.capabilities import (
    takes_whole_sets,
    task_of,
    why_not,
    why_not_in_row_blocks,
    why_rows_are_unsuitable,
)
from svmbench.experiment.config.checks import all_solvers
from svmbench.experiment.config.find import find_config
from svmbench.experiment.config.loader import apply_profile, check_config
from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.counts import counts_by_block
from svmbench.experiment.plan.filters import Filters
from svmbench.experiment.plan.keys import code_of, hash_of, kinds_of, manifest, modules_of
from svmbench.experiment.plan.sharing import distance_bytes_of, searches_by_distances, shared_arrays
from svmbench.experiment.protocols import protocols
from svmbench.experiment.protocols.declare import Protocol
from svmbench.experiment.protocols.folds import derive_seed
from svmbench.experiment.protocols.task import open_chosen
from svmbench.experiment.settings.blocks import Block, DatasetSpec, SolverSpec, TrainingBlock
from svmbench.experiment.settings.cells import Cell, CellSpec, DatasetChoice, SolverSettings
from svmbench.schema import scores
from svmbench.schema.record import Dimensions, Identity

if TYPE_CHECKING:
    from svmbench.data import FilesRead


@dataclass
class Plan:
    """All cells of a config, in the order of the tables.

    Attributes
    ----------
    name, profile : str
    config : Config
        Cut by the profile.
    cells : list of Cell
    full : Config or None
        The config cut by the profile ``paper``, whose counts the plan carries; None if the config
        has no such profile.
    """

    name: str
    profile: str
    config: Config
    cells: list[Cell] = field(default_factory=list)
    full: Config | None = None

    def to_json(self) -> str:
        """Return the content of ``plan.json``, which the report reads."""
        config = self.config
        content = {
            "schema": 1,
            "profile": self.profile,
            "profile_note": config.profiles[self.profile].note,
            "config": {
                "name": self.name,
                "paper": config.paper,
                "title": config.title,
                "seed": config.seed,
                "threads": config.threads,
                "blas_core": config.blas_core,
                "references": {
                    solver.shown: solver.paper for solver in all_solvers(config) if solver.paper
                },
                "baselines": [
                    solver.shown for solver in all_solvers(config) if _is_baseline(solver.name)
                ],
                "programs": [
                    solver.shown for solver in all_solvers(config) if is_program(solver.name)
                ],
                "classes": [
                    solver.shown
                    for solver in all_solvers(config)
                    if "." in solver.name and not is_program(solver.name)
                ],
                "settings": {block.name: _settings(config, block) for block in config.blocks},
                "blocks": [
                    block.model_dump(mode="json", exclude={"datasets", "solvers"})
                    for block in config.blocks
                ],
            },
            "protocols": {
                name: protocol.for_plan()
                for name, protocol in protocols().items()
                if name in {block.protocol for block in config.blocks}
            },
            "scores": scores.describe_scores(
                dict.fromkeys(
                    name
                    for block in config.blocks
                    for name in getattr(block, "scores", ["accuracy"])
                )
            ),
            "counts": {
                "own": counts_by_block(config),
                "full": counts_by_block(self.full) if self.full else {},
            },
            "tables": [table.model_dump(mode="json") for table in config.tables],
            "plots": [plot.model_dump(mode="json") for plot in config.plots],
            **self._code(),
        }
        return json.dumps(content, indent=1) + "\n"

    def _code(self) -> dict[str, Any]:
        """Return the manifest of the code, and the cells with the index of their manifest entry."""
        entries: dict[tuple[str, ...], int] = {}
        cells = []
        for cell in self.cells:
            shown = {"key": cell.key, "status": cell.status, "reason": cell.reason, **cell.identity}
            if cell.spec:
                modules = modules_of(cell.spec)
                cells.append({**shown, "code": entries.setdefault(modules, len(entries))})
            else:
                cells.append(shown)
        return {"code": manifest(entries), "cells": cells}


def prepare_plan(
    config: str,
    profile: str,
    *,
    mirror: str | None = None,
    overrides: tuple[str, ...] = (),
    trust: bool = False,
    only: Any = None,
    prepare: bool = True,
    on_event: Any = None,
) -> Plan:
    """Load and check a config, cut it by a profile, and make its plan; see :func:`make_plan`."""
    path = find_config(config)
    loaded = check_config(path, overrides, trust=trust)
    cut = apply_profile(loaded, profile)
    if on_event and prepare:
        on_event(f"{path.stem} ({profile}): planning its cells")
    plan = make_plan(
        cut, path.stem, profile, mirror=mirror, only=only, prepare=prepare, on_event=on_event
    )
    if FULL_PROFILE in loaded.profiles:
        plan.full = apply_profile(loaded, FULL_PROFILE)
    return plan


def make_plan(
    config: Config,
    name: str,
    profile: str,
    *,
    mirror: str | None = None,
    only: Filters | None = None,
    prepare: bool = True,
    on_event: Callable[[str], None] | None = None,
) -> Plan:
    """Make the plan of a config that is cut by a profile already.

    If a data set is unavailable or unsuitable for the protocol (one class, fewer samples of a class
    than folds), only its own cells are skipped.

    Parameters
    ----------
    config : Config
    name : str
        The config's name, for the results folder and the tables.
    profile : str
        The profile's name, for the tables.
    mirror : str, optional
        Folder or URL with data files.
    only : mapping of str to list of str, optional
        Filters of the command line. A data set that they exclude is not prepared; if it is not in
        the cache, its cells have the status ``not run`` and no specification.
    prepare : bool, default=True
        Whether to fetch and prepare data sets that are not in the cache. Otherwise their cells have
        the status ``not run``. The cells of a registered data set are then planned by the sizes in
        its entry, so that they can be counted; their keys differ from those of a real run.
    on_event : callable, optional
        Called with one sentence for each data set that is being prepared, is unavailable, or is
        unsuitable for the protocol.

    Raises
    ------
    svmbench.base.errors.DataError
        If a user's own file can't be read.
    """
    from svmbench import data

    plan = Plan(name=name, profile=profile, config=config)
    reported: set[str] = set()
    files_read = data.FilesRead()

    def report_once(reason: str) -> None:
        if on_event and reason not in reported:
            on_event(reason)
        reported.add(reason)

    for block in config.blocks:
        for configured in config.datasets_of(block):
            dataset = _large_file_in_row_blocks(configured, config.memory_gb)
            cell_planner = CellPlanner(config, block, dataset, profile, protocols()[block.protocol])
            wanted = prepare and _is_asked_for(only or {}, block, dataset)
            try:
                source = _open(
                    dataset, mirror, on_event if wanted else None, files_read, prepare=wanted
                )
            except CacheError:
                raise
            except DataError as error:
                # The user must correct a wrong file of their own before anything runs.
                if wanted and dataset.is_own and not isinstance(error, DataUnavailableError):
                    raise
                if wanted:
                    report_once(str(error))
                    plan.cells += cell_planner.without_data("unavailable", str(error))
                elif prepare or dataset.is_own:
                    reason = "outside --only" if prepare else "not yet here"
                    plan.cells += cell_planner.without_data("not run", reason)
                else:
                    plan.cells += _cells_by_registered_sizes(cell_planner)
                continue
            for cell in cell_planner.with_dataset(
                _large_set_in_row_blocks(dataset, source, block, config.memory_gb)
            ).cells(source):
                plan.cells.append(cell)
                if wanted and not cell.spec:
                    report_once(cell.reason)
    return plan


def _cells_by_registered_sizes(cell_planner: CellPlanner) -> Iterator[Cell]:
    """Yield the cells of a registered data set that is not here, by the sizes in its entry."""
    from svmbench import data

    novelty = cell_planner.dataset.novelty
    source = data.outline(cell_planner.dataset.name, novelty.ratio if novelty else None)
    opened = _large_set_in_row_blocks(
        cell_planner.dataset, source, cell_planner.block, cell_planner.config.memory_gb
    )
    for cell in cell_planner.with_dataset(opened).cells(source):
        is_planned = cell.status == "planned"
        yield replace(cell, status="not run", reason="not yet here") if is_planned else cell


def _large_file_in_row_blocks(dataset: DatasetSpec, memory_gb: float) -> DatasetSpec:
    """Return the data set, to be read in blocks of rows if it is a file too large for memory."""
    from svmbench import data

    if (
        dataset.file
        and dataset.read == "auto"
        and not dataset.as_frame
        and data.does_not_fit(dataset.file, memory_gb)
    ):
        return dataset.model_copy(update={"read": "blocks"})
    return dataset


def _large_set_in_row_blocks(
    dataset: DatasetSpec, source: Any, block: Block, memory_gb: float
) -> DatasetSpec:
    """Return the data set, to be read in blocks of rows if it is registered and too large."""
    from svmbench import data

    uses_all_rows = isinstance(block, TrainingBlock) and takes_whole_sets(
        block, block.swept(dataset)
    )
    is_decided = dataset.is_own or dataset.in_blocks or dataset.read != "auto"
    if is_decided or dataset.novelty is not None or not uses_all_rows:
        return dataset
    if data.ArrayBlocks(source.X, source.y).n_bytes <= memory_gb * 2**30:
        return dataset
    return dataset.model_copy(update={"read": "blocks"})


def _is_asked_for(only: Filters, block: Block, dataset: DatasetSpec) -> bool:
    """Return True if the filters allow cells of a data set in a block."""
    names = {"block": block.name, "dataset": dataset.name}
    return all(name in only.get(key, [name]) for key, name in names.items())


def _open(
    dataset: DatasetSpec,
    mirror: str | None,
    on_event: Callable[[str], None] | None,
    files_read: FilesRead,
    *,
    prepare: bool,
) -> Any:
    from svmbench import data

    if dataset.openml is not None:
        from svmbench.data import openml

        openml.cached_answers(
            openml.Reference(dataset.openml, dataset.sha256), official=None if prepare else False
        )
        return open_chosen(dataset.choice)
    if dataset.file:
        if on_event and dataset.in_blocks:
            on_event(f"reading {dataset.name} in blocks")
        source = open_chosen(dataset.choice)
        if dataset.sha256 not in ("", *source.facts["files"].values()):
            raise DataError(f"{dataset.name}: the file's sha256 is not {dataset.sha256[:12]}…")
        return source
    cached = data.status(dataset.name) == "cached"
    if not cached and not prepare:
        raise DataError(f"data set {dataset.name!r} is not prepared")
    if on_event and not cached:
        on_event(f"preparing {dataset.name}")
    data.ensure(dataset.name, mirror=mirror, files_read=files_read)
    return open_chosen(dataset.choice)


@dataclass(frozen=True)
class CellPlanner:
    """Makes the cells of one data set in one block of the config."""

    config: Config
    block: Any
    dataset: DatasetSpec
    profile: str
    protocol: Protocol

    def with_dataset(self, dataset: DatasetSpec) -> CellPlanner:
        """Return a copy with another setting of the data set."""
        return replace(self, dataset=dataset)

    def without_data(self, status: str, reason: str) -> Iterator[Cell]:
        """Yield one cell for each solver, for a data set that could not be opened."""
        for solver in self._solvers():
            identity = self._identity(solver)
            yield Cell(hash_of({status: identity}), identity, spec={}, status=status, reason=reason)

    def cells(self, source: Any) -> Iterator[Cell]:
        """Yield the cells of a data set: for each combination of swept values, solver and fold.

        Parameters
        ----------
        source : Dataset
            The opened data set.
        """
        if self.protocol.cell == "data set":
            yield self._facts(source)
            return
        y = np.asarray(source.y)
        swept = self.block.swept(self.dataset)
        reasons: dict[int | None, str] = {}
        for values in itertools.product(*swept.values()):
            dimensions = dict(zip(swept, values, strict=True))
            if "rows" in dimensions:
                dimensions["rows"] = _resolve_size(dimensions["rows"], len(y))
            n_rows = dimensions.get("rows")
            if n_rows not in reasons:
                reasons[n_rows] = why_rows_are_unsuitable(
                    *(self.protocol, self.block, self.dataset.name, y, n_rows),
                    derive_seed(self.config.seed, "rows", self._choice(source)["name"]),
                    classes=source.facts["classes"],
                )
            reason = reasons[n_rows] or self._why_not_scaled(source)
            n_features = source.X.shape[1]
            if (n_kept := dimensions.get("features")) is not None and n_kept > n_features:
                reason = reason or (
                    f"data set {self.dataset.name!r} has {n_features} features, fewer than the"
                    f" {n_kept} of the sweep"
                )
            for solver in self._solvers():
                for fold in self.protocol.folds_to_run(self.block):
                    if reason:
                        identity = self._identity(solver, dimensions, fold)
                        key = hash_of({"skipped": identity})
                        yield Cell(key, identity, {}, "skipped", reason)
                    else:
                        yield self._cell(source, solver, dimensions, fold)

    def _why_not_scaled(self, source: Any) -> str:
        """Return why scikit-learn's scalers can't scale the inputs; empty if they can."""
        if self.block.scaling == "none":
            return ""
        return str(source.facts.get("unscalable", ""))

    def _choice(self, source: Any) -> DatasetChoice:
        """Return the description from which a cell opens the data set.

        Its name decides the folds and subsets. For a user's file, the name is a hash of the
        content, so that renaming the file changes no result.
        """
        choice = self.dataset.choice
        if self.dataset.is_own:
            choice["name"] = "file " + next(iter(source.facts["files"].values()))[:16]
        return choice

    def _solvers(self) -> list[SolverSpec | None]:
        """Return the solvers that have cells of their own, or [None] if a cell has all or none."""
        if self.protocol.cell != "solver":
            return [None]
        return [solver.on(self.dataset) for solver in self.config.solvers_of(self.block)]

    @cached_property
    def _by_distances(self) -> bool:
        return searches_by_distances(self.protocol, self.config, self.block)

    def _facts(self, source: Any) -> Cell:
        spec = self._with_settings_of_protocol(
            {
                "protocol": self.protocol.name,
                "dataset": self._choice(source),
                "data_sha256": source.sha256,
            }
        )
        key = hash_of({**spec, "code": code_of(*kinds_of(spec)[0])})
        return Cell(key=key, identity=self._identity(None), spec=spec)

    def _with_settings_of_protocol(self, spec: CellSpec) -> CellSpec:
        return cast(CellSpec, {**spec, **self.protocol.settings_of(self.block)})

    def _cell(
        self, source: Any, solver: SolverSpec | None, dimensions: Dimensions, fold: int | None
    ) -> Cell:
        block, config = self.block, self.config
        n_samples, n_features = source.X.shape
        limits = (dimensions.get("rows"), block.max_samples or None, n_samples)
        spec: CellSpec = {
            "protocol": self.protocol.name,
            "dataset": self._choice(source),
            "data_sha256": source.sha256,
            "n_rows": min(x for x in limits if x is not None),
            "n_features_kept": dimensions.get("features"),
            "has_test_part": source.X_test is not None,
            "seed": config.seed,
            "threads": config.threads,
            "subset": block.subset,
            "scaling": block.scaling,
            "scaler": block.scaler,
            "task": task_of(block, source.y),
            "scores": list(block.scores),
            "select_by": block.select_by,
            "fold": fold,
        }
        if block.inputs == "dense":
            spec["inputs"] = "dense"
        # The result may depend on the core type, so the specification, and hence the key, has it.
        if config.blas_core is not None:
            spec["blas_core"] = config.blas_core
        if solver is None:
            racers = [s.on(self.dataset).at(dimensions) for s in config.solvers_of(block)]
            spec["racers"] = [_solver_settings(s) for s in racers]
            spec["pairs"] = block.pairs
        else:
            racers = [solver := solver.at(dimensions)]
            spec.update(_solver_settings(solver))
        spec = self._with_settings_of_protocol(spec)
        if solver is None and self._has_no_common_objective(racers):
            spec = cast(CellSpec, {**spec, "tolerance": None})
        code = [code_of(*kind) for kind in kinds_of(spec)]
        key = hash_of({**spec, "code": code})
        identity = self._identity(solver, dimensions, fold)
        # If one solver can't run, the whole race is skipped: without it, it would be another race.
        reasons = [why_not(racer, source, block) for racer in racers]
        if self.dataset.in_blocks:
            context = (self.protocol, block, self.dataset, dimensions, source.y)
            reasons += [why_not_in_row_blocks(racer, *context) for racer in racers]
        if reason := "; ".join(dict.fromkeys(filter(None, reasons))):
            return Cell(key=key, identity=identity, spec=spec, status="skipped", reason=reason)
        density = source.X.nnz / max(1, n_samples) if sp.issparse(source.X) else n_features
        cost = spec["n_rows"] * density * max(1, len(spec.get("grid", [])))
        n_bytes = distance_bytes_of(config, spec) if self._by_distances else 0
        shared = shared_arrays(self.protocol, spec, source, n_bytes)
        return Cell(key=key, identity=identity, spec=spec, shared=shared, cost=cost)

    def _has_no_common_objective(self, racers: list[SolverSpec]) -> bool:
        """Return True if a racer has no known objective, and the config sets no tolerance.

        Such a race has no target: the racers run at the config's settings.
        """
        from svmbench.baselines.catalogue import solver_class

        return (
            getattr(self.block, "tolerance", None) is not None
            and "tolerance" not in self.block.model_fields_set
            and any(not solver_class(racer.name).declaration.problem for racer in racers)
        )

    def _identity(
        self,
        solver: SolverSpec | None,
        dimensions: Dimensions | None = None,
        fold: int | None = None,
    ) -> Identity:
        """Return the fields that identify a cell in records and tables."""
        dimensions = dimensions or {}
        racers: list[SolverSpec] = []
        if self.protocol.cell != "data set":
            racers = [solver] if solver else self.config.solvers_of(self.block)
        return {
            "block": self.block.name,
            "protocol": self.protocol.name,
            "paper": self.config.paper,
            "profile": self.profile,
            "dataset": self.dataset.name,
            "size": dimensions.get("rows"),
            "n_features_kept": dimensions.get("features"),
            "dimensions": dimensions,
            "solver": "|".join(racer.shown for racer in racers),
            "kernel": "|".join(sorted({_kernel(racer) for racer in racers} - {""})),
            "fold": fold,
        }


def _resolve_size(size: int | str, n_samples: int) -> int:
    """Return a size, which may be a percentage such as ``"50%"``, as a number of rows."""
    return size if isinstance(size, int) else round(n_samples * int(size[:-1]) / 100)


def _kernel(solver: SolverSpec) -> str:
    """Return the kernel of a solver: the config's, the solver's default, or its only kernel.

    It is empty for a foreign class or a program whose kernel is unknown.
    """
    from svmbench.baselines.catalogue import solver_class

    if solver.kernel:
        return solver.kernel
    return str(solver.params.get("kernel", _default_kernel(solver_class(solver.name))))


@cache
def _default_kernel(cls: type) -> Any:
    default = inspect.signature(cls).parameters.get("kernel")
    kernels: tuple[str, ...] = cls.declaration.kernels  # type: ignore[attr-defined]
    return default.default if default and kernels else "".join(kernels[:1])


def _is_baseline(solver: str) -> bool:
    """Return True for a solver of another library or program that the catalogue lists."""
    from svmbench.baselines.catalogue import solver_class

    is_listed = "." not in solver and not is_program(solver)
    return is_listed and solver_class(solver).__module__.startswith("svmbench.baselines.")


def _settings(config: Config, block: Block) -> dict[str, Any]:
    """Return a block's settings of its solvers, also on single data sets."""
    solvers = config.solvers_of(block)
    return {
        "solvers": {
            solver.shown: solver.model_dump(
                mode="json", include={"kernel", "params", "grid", "search"}, exclude_defaults=True
            )
            for solver in solvers
        },
        "datasets": {
            dataset.name: dataset.params for dataset in config.datasets_of(block) if dataset.params
        },
    }


def _solver_settings(solver: SolverSpec) -> SolverSettings:
    settings: SolverSettings = {
        "name": solver.name,
        "shown": solver.shown,
        "params": dict(solver.params),
        "grid": solver.grid_points(),
    }
    return {**settings, "search": dict(solver.search)} if solver.search else settings
