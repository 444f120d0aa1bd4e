"""Read the sides of a comparison: run folders, repeated runs, kept baselines."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from svmbench.base.errors import DamagedResultsError, ResultsError
from svmbench.base.escape import line
from svmbench.base.files import write_text
from svmbench.report.reading import shapes
from svmbench.report.reading.newest import dimensions_of
from svmbench.report.reading.provenance import dimension_text
from svmbench.report.reading.records import MEMORY, TRAIN_PREFIX, CellResult, read_run, read_scores

BASELINE_FILE_NAME = "baseline.json"
#: The fields of a measurement; cells that share them are its folds.
_GROUP = ("block", "dataset", "solver", "kernel", "dimensions")
_KEPT_METRICS = ("objective", "dual_objective", "ratio", "n_iter", "unconverged_fits")
#: CPU times of a cell, and wall times of what has no CPU time or is read beside it.
CPU_TIMES = ("cpu_time_s", "predict_cpu_time_s", "search_cpu_time_s")
WALL_TIMES = ("train_time_s", "predict_time_s", "search_time_s", "conversion_time_s")
#: Required fields of an environment: times depend on the CPU model; rounding depends on the BLAS
#: (with its core type) and on the versions of packages.
_ENVIRONMENT = ("cpu", "blas", "packages")


class ComparedCell(TypedDict):
    """The fields of a cell that a comparison needs and a baseline keeps.

    Older baselines have ``size`` and ``n_features_kept`` instead of `dimensions`, and no checksums
    of data, stop reasons, warnings and times.
    """

    block: str
    dataset: str | None
    solver: str | None
    kernel: str | None
    fold: int | None
    status: str
    contended: bool
    data_sha256: NotRequired[str | None]
    dimensions: NotRequired[Mapping[str, Any]]
    params: Mapping[str, Any]
    counters: Mapping[str, int]
    metrics: dict[str, float | None]
    stop_reason: NotRequired[str]
    warnings: NotRequired[Sequence[str]]


class BaselineRun(TypedDict):
    """The fields of a run that a comparison needs: the content of a baseline.

    `baselines` are solvers of other libraries and programs, not the content of other baselines.
    """

    schema: int
    config: str
    profile: str
    seed: NotRequired[int | None]
    environments: list[dict[str, Any]]
    scores: NotRequired[Mapping[str, Mapping[str, Any]]]
    baselines: NotRequired[Sequence[str]]
    foreign: NotRequired[Sequence[str]]
    settings: NotRequired[Mapping[str, Mapping[str, Any]]]
    repeats: NotRequired[Mapping[str, Mapping[str, Sequence[float]]]]
    cells: list[ComparedCell]


@dataclass(frozen=True)
class SideRun:
    """One run of a side.

    Attributes
    ----------
    identity : dict of str to object
        Name of the config, profile and seed.
    settings : dict of str to dict
        What each block sets, with its solvers; empty for older runs.
    cells : dict of tuple to ComparedCell
        Cells by group and fold.
    cpus : frozenset of str
        CPU models of the run.
    arithmetic : dict of str to str
        The libraries that determine rounding: the BLAS with its core type, and the version of each
        package. Empty if the cells differ in them.
    """

    identity: Mapping[str, Any]
    cells: Mapping[tuple[Any, ...], ComparedCell]
    cpus: frozenset[str]
    arithmetic: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: one or several runs of one config.

    Attributes
    ----------
    name : str
        Name of its folder.
    runs : tuple of SideRun
    scores : dict of str to dict
        Direction and tolerance by metric.
    is_baseline : bool
        True for a kept baseline; no other side can be stale.
    reference_solvers : frozenset of str
        The solvers of other libraries and programs that the catalogue lists.
    foreign : frozenset of str
        The classes and programs that a config named by their path or command.
    repeats : dict of str to dict
        By `race_label` and name of a ratio: the ratio in each of several runs of one version.
    """

    name: str
    runs: tuple[SideRun, ...]
    scores: Mapping[str, Mapping[str, Any]]
    is_baseline: bool = False
    reference_solvers: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    repeats: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def cells(self) -> dict[tuple[Any, ...], list[ComparedCell]]:
        """The records of each cell, one for each run that has the cell."""
        by_group: dict[tuple[Any, ...], list[ComparedCell]] = {}
        for run in self.runs:
            for key, cell in run.cells.items():
                by_group.setdefault(key, []).append(cell)
        return by_group


def read_side(path: Path) -> Side:
    """Read a run folder, a kept baseline, or a folder of repeated runs.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If it is none of the three, or can't be read.
    """
    try:
        return _read_side(path)
    except OSError as error:
        raise ResultsError(f"can't read {path}: {error.strerror or error}") from error


def _read_side(path: Path) -> Side:
    if (path / BASELINE_FILE_NAME).exists():
        return _side(path, [_read_baseline(path / BASELINE_FILE_NAME)], is_baseline=True)
    return _side(path, [summarise_run(part) for part in _runs_in(path)])


def _runs_in(path: Path) -> list[Path]:
    """Return a run folder alone, or the run folders in a folder of repeated runs, by name."""
    if (path / "plan.json").exists() or not path.is_dir():
        return [path]
    repeats = sorted(
        part for part in path.iterdir() if not part.is_symlink() and (part / "plan.json").exists()
    )
    if not repeats:
        raise ResultsError(
            f"{path} is neither a run folder (plan.json), nor a baseline"
            f" ({BASELINE_FILE_NAME}), nor a folder of run folders"
        )
    return repeats


def summarise_run(run_dir: Path) -> BaselineRun:
    """Return the fields of a run folder that a comparison needs.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If the environment of its results is unknown, or a record contradicts the plan.
    """
    run = read_run(run_dir)
    if run.contradictions:
        raise DamagedResultsError(f"{run_dir}: {run.contradictions[0]}")
    used = sorted({cell.environment for cell in run.cells if cell.status == "ok"})
    environments = [run.environments.get(name, {}) for name in used]
    for name, content in zip(used, environments, strict=True):
        if lacking := [fact for fact in _ENVIRONMENT if content.get(fact) is None]:
            raise DamagedResultsError(
                f"{run_dir / f'environment-{name}.json'} is missing or lacks"
                f" {' and '.join(lacking)}: results can only be compared if their environment is"
                " known"
            )
        seed = content.get("seed")
        if None not in (seed, run.seed) and seed != run.seed:
            raise DamagedResultsError(
                f"{run_dir / f'environment-{name}.json'} has the seed {line(str(seed), 60)}, the"
                f" plan {run.seed}"
            )
    foreign = frozenset((*run.programs, *run.classes))
    measured = {name for cell in run.cells for name in cell.metrics}
    judged = {name: facts for name, facts in judged_scores(run.scores).items() if name in measured}
    return {
        "schema": 1,
        "config": run.name,
        "profile": run.profile,
        "seed": run.seed,
        "environments": [
            {name: environment.get(name) for name in (*_ENVIRONMENT, "python")}
            for environment in environments
        ],
        "scores": judged,
        "baselines": sorted(run.reference_solvers),
        "settings": run.settings,
        "foreign": sorted(foreign),
        "cells": [_compared(cell, judged, foreign) for cell in run.cells],
    }


def write_baseline(run_dir: Path, target: Path) -> Path:
    """Write the counters, accuracies and ratios of a run to `target`; return the file.

    Of a folder of repeated runs the first run by name is kept, with the medians of all ratios and,
    for their spread, the ratios of each run. A single run keeps the repeats of a baseline of the
    same CPU model that it replaces.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If a cell of the run has no result (an incomplete baseline would hide regressions), or
        `target` can't be written.
    """
    content, *others = [summarise_run(part) for part in _runs_in(run_dir)]
    if others:
        content["repeats"] = _repeats([content, *others])
        for cell in content["cells"]:
            for name, ratios in content["repeats"].get(race_label(cell), {}).items():
                cell["metrics"][name] = statistics.median(ratios)
    else:
        content["repeats"] = _repeats_of_earlier(target, content)
    holes = [cell for cell in content["cells"] if cell["status"] not in ("ok", "skipped")]
    if holes:
        raise ResultsError(
            f"{run_dir}: {len(holes)} cells have no result ({where_of(group_of(holes[0]))}:"
            f" {holes[0]['status']} …); a baseline needs them all"
        )
    # One line for each cell, so that diffs of baselines are readable.
    cells = ",\n".join("  " + json.dumps(cell, sort_keys=True) for cell in content["cells"])
    rest = {name: value for name, value in content.items() if name != "cells"}
    head = json.dumps(rest, indent=1, sort_keys=True).removesuffix("\n}")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
    return write_text(target / BASELINE_FILE_NAME, f'{head},\n "cells": [\n{cells}\n ]\n}}\n')


def _repeats_of_earlier(target: Path, new: BaselineRun) -> Mapping[str, Any]:
    """Return the repeats of the baseline in `target`, if it has some of the same CPU model."""
    try:
        old = _read_baseline(target / BASELINE_FILE_NAME)
    except (OSError, ResultsError):
        return {}
    models = {environment["cpu"] for run in (old, new) for environment in run["environments"]}
    return old.get("repeats") or {} if len(models) == 1 else {}


def race_label(cell: ComparedCell) -> str:
    """Return the name of a race in changes, and in the repeats of a baseline."""
    return at_fold(where_of(group_of(cell)), cell["fold"])


def _repeats(runs: Sequence[BaselineRun]) -> dict[str, dict[str, list[float]]]:
    """Return the ratios of all races in several runs of one version."""
    by_race: dict[str, dict[str, list[float]]] = {}
    for cell in (cell for run in runs for cell in run["cells"] if cell["status"] == "ok"):
        for name, value in cell["metrics"].items():
            if name.startswith("ratio:") and value:
                by_race.setdefault(race_label(cell), {}).setdefault(name, []).append(value)
    return by_race


def judged_scores(known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the direction and the tolerance of the judged scores, by metric.

    Scores on training rows are judged in the same way.
    """
    judged = {
        name: {key: facts.get(key) for key in ("better", "tolerance", "relative")}
        for name, facts in known.items()
        if isinstance(facts.get("tolerance"), int | float) and not name.startswith(TRAIN_PREFIX)
    }
    return {**judged, **{f"{TRAIN_PREFIX}{name}": facts for name, facts in judged.items()}}


def _compared(cell: CellResult, judged: Collection[str], foreign: Collection[str]) -> ComparedCell:
    names = {*_KEPT_METRICS, *CPU_TIMES, *WALL_TIMES, MEMORY, *judged}
    # The certificate has the objective of a class or program of others in a race.
    certified = {
        f"objective:{solver}": cell.metrics[f"certified_objective:{solver}"]
        for solver in foreign
        if f"certified_objective:{solver}" in cell.metrics
    }
    metrics = certified | dict(cell.metrics)
    return {
        "block": cell.block,
        "dataset": cell.dataset,
        "solver": cell.solver,
        "kernel": cell.kernel,
        "fold": cell.fold,
        "status": cell.status,
        "contended": cell.contended,
        "data_sha256": cell.data_sha256,
        # Not copied: many cells share one mapping.
        "dimensions": cell.dimensions,
        "params": cell.params,
        "counters": cell.counters,
        "metrics": {k: v for k, v in metrics.items() if k.split(":")[0] in names},
        "stop_reason": cell.stop_reason,
        "warnings": cell.warnings,
    }


def _side(path: Path, runs: list[BaselineRun], *, is_baseline: bool = False) -> Side:
    scores = {name: facts for run in runs for name, facts in (run.get("scores") or {}).items()}
    return Side(
        name=str(path),
        # Repeated runs may leave out cells that give the same result each time.
        runs=tuple(_side_run(run, leave_out="not run" if len(runs) > 1 else "") for run in runs),
        scores=judged_scores(read_scores(scores or None)),
        is_baseline=is_baseline,
        reference_solvers=frozenset(name for run in runs for name in run.get("baselines") or ()),
        foreign=frozenset(name for run in runs for name in run.get("foreign") or ()),
        repeats=runs[0].get("repeats") or (_repeats(runs) if len(runs) > 1 else {}),
    )


def _side_run(run: BaselineRun, leave_out: str) -> SideRun:
    arithmetics = [arithmetic_of(environment) for environment in run["environments"]]
    return SideRun(
        identity={name: run.get(name) for name in ("config", "profile", "seed")},
        cells={
            (*group_of(cell), cell["fold"]): cell
            for cell in run["cells"]
            if cell["status"] != leave_out
        },
        cpus=frozenset(str(environment["cpu"]) for environment in run["environments"]),
        arithmetic=arithmetics[0] if arithmetics and arithmetics[1:] == arithmetics[:-1] else {},
        settings=run.get("settings") or {},
    )


def arithmetic_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the libraries that determine rounding; two CPU models may agree in all of them."""
    return {"BLAS": ", ".join(environment["blas"]), **environment["packages"]}


def _read_baseline(path: Path) -> BaselineRun:
    try:
        content = shapes.read_checked_json(path)
        if content["schema"] != 1:
            raise DamagedResultsError(
                f"{path}: schema {line(repr(content['schema']), 60)} is unknown;"
                " only schema 1 can be read"
            )
        if problem := shapes.mismatch(content, shapes.BASELINE_SHAPE):
            raise DamagedResultsError(f"can't read the baseline {path}: {problem}")
        if problem := shapes.too_many_cells(content["cells"]):
            raise DamagedResultsError(f"can't read the baseline {path}: {problem}")
        for number, cell in enumerate(content["cells"], start=1):
            _check_compared(cell, f"{path}: cell {number}")
        _side(path, [content])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = line(repr(error), 200)
        raise DamagedResultsError(f"can't read the baseline {path}: {problem}") from error
    return cast(BaselineRun, content)


def _check_compared(cell: Mapping[str, Any], where: str) -> None:
    """Raise an error if a cell of a baseline lacks a field of :func:`_compared`."""
    for name in ("status", "contended"):
        if name not in cell:
            raise DamagedResultsError(f"{where} has no {name!r}")
    if not isinstance(cell.get("params"), dict):
        raise DamagedResultsError(f"{where} has no mapping 'params'")
    for name in ("counters", "metrics"):
        values = cell.get(name)
        if not isinstance(values, dict):
            raise DamagedResultsError(f"{where} has no mapping {name!r}")
        for key, value in values.items():
            if not (isinstance(value, int | float) or (value is None and name == "metrics")):
                problem = (
                    f"{line(repr(key), 60)} of its {name} is not a number: {line(repr(value), 60)}"
                )
                raise DamagedResultsError(f"{where}: {problem}")


def group_of(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the identity of the measurement of a cell, also for cells of older baselines."""
    *plain, _ = _GROUP
    return (*(cell[name] for name in plain), tuple(sorted(dimensions_of(cell).items())))


def where_of(group: tuple[Any, ...]) -> str:
    """Describe a measurement: block, data set, dimensions, solver."""
    by_field = dict(zip(_GROUP, group, strict=True))
    parts = [by_field["block"], by_field["dataset"]]
    parts += [dimension_text(name, value) for name, value in by_field["dimensions"]]
    # A race names all its solvers; the change itself names the solver that moved.
    parts += [by_field["solver"]] if "|" not in str(by_field["solver"]) else []
    return " · ".join(str(part) for part in parts if part)


def at_fold(where: str, fold: int | None) -> str:
    """Name a fold of a measurement; screens count folds from 1, records from 0."""
    return where if fold is None else f"{where} · fold {fold + 1}"
