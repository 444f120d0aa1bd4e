"""From a config to the list of cells: what will run, what can't and why, and what cells share.

Everything that can be known before a minute is spent is checked here: data sets that can't be
had, solvers that can't take a data set, classes smaller than the folds.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.errors import CacheError, DataError
from svmbench.experiment.filters import Filters
from svmbench.experiment.folds import SharedArrays, derive_seed, distance_bytes, subset_rows
from svmbench.experiment.keys import code_hash, hash_of
from svmbench.experiment.models import Block, Config, DatasetSpec, SolverSpec
from svmbench.experiment.protocols import scales_each_fold

#: Protocols in which one cell is all solvers in turn.
RACES = ("race", "nested-race")


@dataclass(frozen=True)
class Cell:
    """One line of the plan: a data set × solver × size × outer fold.

    Attributes
    ----------
    key : str
        Hash of `spec`, of the data and of the solver's source: the same key, the same result.
    shown : dict
        The identifying fields of its record (block, data set, solver, fold …).
    spec : dict
        All that a worker needs, as JSON.
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
    shown: dict[str, Any]
    spec: dict[str, Any]
    status: str = "planned"
    reason: str = ""
    shared: SharedArrays | None = None
    cost: float = 0.0


@dataclass
class Plan:
    """All cells in table order, and the config they come from."""

    name: str
    profile: str
    config: Config
    cells: list[Cell] = field(default_factory=list)

    def to_json(self) -> str:
        """Return what the report needs to lay out tables, as JSON text."""
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
                "blocks": [
                    block.model_dump(mode="json", exclude={"datasets", "solvers"})
                    for block in config.blocks
                ],
            },
            "tables": [table.model_dump(mode="json") for table in config.tables],
            "plots": [plot.model_dump(mode="json") for plot in config.plots],
            "cells": [
                {"key": c.key, "status": c.status, "reason": c.reason, **c.shown}
                for c in self.cells
            ],
        }
        return json.dumps(content, indent=1) + "\n"


def make_plan(
    config: Config,
    name: str,
    profile: str,
    *,
    mirror: str | None = None,
    only: Filters | None = None,
    on_event: Callable[[str], None] | None = None,
) -> Plan:
    """Resolve a config (already cut by its profile) into cells.

    A data set that can't be had, or can't bear the protocol (one class, fewer samples of a class
    than folds), costs its own cells.

    Parameters
    ----------
    config : Config
    name : str
        The config's name, for the results folder and the tables.
    profile : str
        Printed on every table.
    mirror : str, optional
        Where data files are looked for.
    only : mapping of str to list of str, optional
        Filters of the command line. A data set outside them is not prepared: if it is not in the
        cache, its cells are planned without rows or keys, as ``not run``.
    on_event : callable, optional
        Told in one sentence of each data set that is being prepared, can't be had, or can't bear
        the protocol.

    Raises
    ------
    svmbench.errors.DataError
        If a user's own file can't be read.
    """
    plan = Plan(name=name, profile=profile, config=config)
    told: set[str] = set()

    def tell(reason: str) -> None:
        if on_event and reason not in told:
            on_event(reason)
        told.add(reason)

    for block in config.blocks:
        for spec in config.datasets_of(block):
            wanted = _is_asked_for(only or {}, block, spec)
            try:
                source = _open(spec, mirror, on_event if wanted else None, prepare=wanted)
            except CacheError:
                raise
            except DataError as error:
                # A file of the user's own is theirs to mend, before anything runs.
                if spec.file and wanted:
                    raise
                status, reason = "unavailable", str(error)
                if wanted:
                    tell(reason)
                else:
                    status, reason = "not run", "outside --only"
                plan.cells += _without_data(config, block, spec, profile, status, reason)
                continue
            for cell in _cells_of(config, block, spec, source, profile):
                plan.cells.append(cell)
                if wanted and cell.spec == {}:
                    tell(cell.reason)
    return plan


def _is_asked_for(only: Filters, block: Block, dataset: DatasetSpec) -> bool:
    """Return whether the filters leave anything of a data set in a block."""
    names = {"block": block.name, "dataset": dataset.name}
    return all(name in only.get(of, [name]) for of, name in names.items())


def _open(
    spec: DatasetSpec,
    mirror: str | None,
    on_event: Callable[[str], None] | None,
    *,
    prepare: bool,
) -> Any:
    from svmbench import data

    if spec.file:
        return data.load_file(spec.file, label_column=spec.label_column or None)
    cached = data.status(spec.name) == "cached"
    if not cached and not prepare:
        raise DataError(f"data set {spec.name!r} is not prepared")
    if on_event and not cached:
        on_event(f"preparing {spec.name}")
    data.ensure(spec.name, mirror=mirror)
    return data.load(spec.name)


def _without_data(
    config: Config, block: Block, spec: DatasetSpec, profile: str, status: str, reason: str
) -> Iterator[Cell]:
    """Yield one cell a solver for a data set that is not open."""
    for solver in _solvers_of(config, block, spec):
        shown = _shown(config, block, spec, profile, solver, None, None, None)
        yield Cell(hash_of({status: shown}), shown, spec={}, status=status, reason=reason)


def _solvers_of(config: Config, block: Block, dataset: DatasetSpec) -> list[SolverSpec | None]:
    """Return whose cells a block has: each solver's, or None for a cell of all or of none."""
    if block.protocol == "facts" or block.protocol in RACES:
        return [None]
    return [spec.on(dataset) for spec in config.solvers_of(block)]


def _cells_of(
    config: Config, block: Block, dataset: DatasetSpec, source: Any, profile: str
) -> Iterator[Cell]:
    y = np.asarray(source.y)
    if block.protocol == "facts":
        yield _cell(config, block, dataset, source, profile, None, None, None, None)
        return
    sizes: list[int | str | None] = [*(dataset.sizes or block.sizes)] or [None]
    dimensions: list[int | None] = [*(dataset.features or block.features)] or [None]
    for size in sizes:
        n_rows = _resolve_size(size, len(y))
        reason = _why_not_borne(config, block, dataset, y, n_rows)
        for kept in dimensions:
            for solver in _solvers_of(config, block, dataset):
                for fold in _folds_of(block):
                    if not reason:
                        yield _cell(
                            config, block, dataset, source, profile, solver, n_rows, kept, fold
                        )
                        continue
                    shown = _shown(config, block, dataset, profile, solver, n_rows, kept, fold)
                    yield Cell(hash_of({"skipped": shown}), shown, {}, "skipped", reason)


def _why_not_borne(
    config: Config, block: Block, dataset: DatasetSpec, y: np.ndarray, n_rows: int | None
) -> str:
    """Return why the rows of a size can't bear the protocol, in a sentence; empty if they can."""
    if len(np.unique(y)) < 2:
        return f"data set {dataset.name!r} has one class only; a classifier needs two"
    if n_rows is not None and n_rows > len(y):
        return f"data set {dataset.name!r} has {len(y)} rows, fewer than the size {n_rows}"
    limit = min(x for x in (n_rows, block.max_samples or None, len(y)) if x is not None)
    seed = derive_seed(config.seed, "rows", dataset.name)
    rows = subset_rows(y, limit, seed, block.subset)
    too_small = _smallest_class(y[rows], block)
    return f"data set {dataset.name!r}, block {block.name!r}: {too_small}" if too_small else ""


def _folds_of(block: Block) -> list[int | None]:
    if block.protocol != "nested-cv":
        return [None]
    return list(range(block.run_folds or block.outer_folds))


def _resolve_size(size: int | str | None, n_samples: int) -> int | None:
    """Return a number of rows, of which a percentage may be given."""
    if size is None or isinstance(size, int):
        return size
    return round(n_samples * int(size[:-1]) / 100)


def _smallest_class(y: np.ndarray, block: Block) -> str:
    """Return a sentence if the smallest class can't be split as the protocol wants."""
    nested = block.protocol in {"nested-cv", "nested-race"}
    needed = block.outer_folds if nested else block.folds if block.protocol == "cv" else 2
    labels, counts = np.unique(y, return_counts=True)
    smallest = int(np.argmin(counts))
    if nested:
        left = counts[smallest] - -(-counts[smallest] // block.outer_folds)
        if counts[smallest] >= needed and left < block.inner_folds:
            return (
                f"class {labels[smallest]} has {counts[smallest]} samples; an outer fold leaves "
                f"{left} for training, fewer than the {block.inner_folds} inner folds"
            )
    if counts[smallest] >= needed:
        return ""
    what = f"{needed} folds" if nested or block.protocol == "cv" else "2 a split needs"
    return f"class {labels[smallest]} has {counts[smallest]} samples, fewer than the {what}"


def _cell(
    config: Config,
    block: Block,
    dataset: DatasetSpec,
    source: Any,
    profile: str,
    solver: SolverSpec | None,
    n_rows: int | None,
    kept: int | None,
    fold: int | None,
) -> Cell:
    from svmbench.catalogue import solver_class

    shown = _shown(config, block, dataset, profile, solver, n_rows, kept, fold)
    n_samples, n_features = source.X.shape
    spec: dict[str, Any] = {
        "protocol": block.protocol,
        "dataset": dataset.model_dump(mode="json", include={"name", "file", "label_column"}),
        "data_sha256": source.sha256,
        "n_rows": min(x for x in (n_rows, block.max_samples or None, n_samples) if x is not None),
        "n_features_kept": kept,
        "seed": config.seed,
        "threads": config.threads,
        "subset": block.subset,
    }
    if block.protocol == "facts":
        key = hash_of({**spec, "code": [code_hash(_protocol_module(block.protocol))]})
        return Cell(key=key, shown=shown, spec=spec)
    spec |= {"scaling": block.scaling, "scaler": block.scaler}
    if block.inputs == "dense":
        # Not there otherwise: the keys of cells on inputs as they are stay what they were.
        spec["inputs"] = "dense"
    if block.precision == "double":
        spec["precision"] = "double"
    one_vs_one = block.multiclass == "one-vs-one" and len(np.unique(source.y)) > 2
    spec |= _protocol_settings(block, fold)
    if block.protocol in RACES:
        racers = [_solver_settings(s.on(dataset)) for s in config.solvers_of(block)]
        spec |= {"racers": racers, "pairs": block.pairs, "one_vs_one": one_vs_one}
        names = [racer["name"] for racer in racers]
    else:
        assert solver is not None
        spec |= _solver_settings(solver)
        spec["one_vs_one"] = one_vs_one
        names = [solver.name]
    shared = _shared_arrays(spec, source, kept, _distance_bytes(config, block, spec))
    density = source.X.nnz / max(1, n_samples) if sp.issparse(source.X) else n_features
    cost = spec["n_rows"] * density * max(1, len(spec.get("grid", [])))
    code = [
        code_hash(solver_class(name).__module__, _protocol_module(block.protocol)) for name in names
    ]
    key = hash_of({**spec, "code": code})
    if solver is not None:
        reason = _why_not(solver, source, block)
        if reason:
            return Cell(key=key, shown=shown, spec=spec, status="skipped", reason=reason)
    return Cell(key=key, shown=shown, spec=spec, shared=shared, cost=cost)


def _protocol_module(protocol: str) -> str:
    from svmbench.experiment.worker import runner

    return runner(protocol).__module__


def _shown(
    config: Config,
    block: Block,
    dataset: DatasetSpec,
    profile: str,
    solver: SolverSpec | None,
    n_rows: int | None,
    kept: int | None,
    fold: int | None,
) -> dict[str, Any]:
    """Return the fields by which records and tables know a cell."""
    solvers = [solver] if solver else config.solvers_of(block)
    kernels = {_kernel(one) for one in solvers} if block.protocol != "facts" else set()
    name = solver.shown if solver else ""
    if not solver and block.protocol in RACES:
        name = "|".join(s.shown for s in solvers)
    return {
        "block": block.name,
        "protocol": block.protocol,
        "paper": config.paper,
        "profile": profile,
        "dataset": dataset.name,
        "size": n_rows,
        "n_features_kept": kept,
        "solver": name,
        "kernel": "|".join(sorted(kernels)),
        "fold": fold,
    }


def _kernel(solver: SolverSpec) -> str:
    """Return the kernel that a solver will use: the config's, its own default, or its only one."""
    from svmbench.catalogue import solver_class

    cls = solver_class(solver.name)
    default = inspect.signature(cls).parameters.get("kernel")
    chosen = default.default if default else cls.declaration.kernels[0]
    return str(solver.params.get("kernel", chosen))


def _solver_settings(solver: SolverSpec) -> dict[str, Any]:
    return {
        "name": solver.name,
        "shown": solver.shown,
        "params": dict(solver.params),
        "grid": solver.grid_points(),
    }


def _protocol_settings(block: Block, fold: int | None) -> dict[str, Any]:
    names = {
        "nested-cv": ("outer_folds", "inner_folds"),
        "cv": ("folds",),
        "holdout": ("validation", "test"),
        "race": ("repeats", "tolerance"),
        "nested-race": ("repeats", "outer_folds", "inner_folds", "run_folds"),
    }.get(block.protocol, ())
    settings = {name: getattr(block, name) for name in names}
    return {**settings, "fold": fold}


def _why_not(solver: SolverSpec, source: Any, block: Block) -> str:
    """Return why a solver can't take a data set, in one sentence; empty if it can."""
    from svmbench.catalogue import solvers

    declared = solvers()[solver.name]
    if sp.issparse(source.X) and not declared.sparse and block.inputs != "dense":
        return f"{solver.name} takes dense inputs only"
    n_classes = len(np.unique(source.y))
    if declared.task == "binary" and n_classes > 2 and block.multiclass == "skip":
        return f"{solver.name} separates two classes; this data set has {n_classes}"
    kernel = solver.params.get("kernel")
    if kernel is not None and kernel not in declared.kernels:
        return f"{solver.name} has no {kernel} kernel (it has: {', '.join(declared.kernels)})"
    return ""


def _distance_bytes(config: Config, block: Block, spec: dict[str, Any]) -> int:
    """Return the size of the squared distances that a block's searches share; 0 without any.

    Past half of a cell's memory they are not made: there would be no room for a kernel matrix.
    """
    from svmbench.catalogue import solver_class
    from svmbench.experiment.kernel_search import takes_part

    size = distance_bytes(spec)
    wanted = (
        block.protocol == "nested-cv"
        and block.scaling != "every-fold"
        and size <= config.memory_gb * 2**30 / 2
        and any(
            takes_part(solver_class(s.name), dict(s.params), s.grid_points())
            for s in config.solvers_of(block)
        )
    )
    return size if wanted else 0


def _shared_arrays(
    spec: dict[str, Any], source: Any, kept: int | None, distance_bytes: int
) -> SharedArrays | None:
    """Return the node that holds what cells share; None where they read the data set itself."""
    whole = spec["n_rows"] == source.X.shape[0] and kept is None
    as_stored = spec["scaling"] == "none" or scales_each_fold(spec)
    if as_stored and whole and not distance_bytes:
        return None
    fields = (
        "dataset",
        "data_sha256",
        "n_rows",
        "n_features_kept",
        "seed",
        "subset",
        "scaling",
        "scaler",
        "inputs",
        "precision",
    )
    wanted: dict[str, Any] = {name: spec[name] for name in fields if name in spec}
    if spec["scaling"] == "outer-fold" and spec["protocol"] == "nested-cv":
        wanted |= {"outer_folds": spec["outer_folds"], "fold": spec["fold"]}
    elif spec["scaling"] == "outer-fold" and spec["protocol"] == "holdout":
        wanted |= {"validation": spec["validation"], "test": spec["test"]}
    wanted |= {"protocol": spec["protocol"], "distances": distance_bytes > 0}
    share = spec["n_rows"] / max(1, source.X.shape[0])
    sparse = sp.issparse(source.X) and "inputs" not in spec
    stored = source.X.nnz * 12 if sparse else source.X.shape[0] * source.X.shape[1] * 8
    return SharedArrays(
        key=hash_of(wanted), spec=wanted, bytes=int(stored * share) + distance_bytes
    )
