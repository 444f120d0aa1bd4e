"""Read a run folder: the plan, the newest record of every cell, the environments.

``newest.py`` reads the records as a stream. :func:`split_races` splits races, which compare several
solvers in one cell, into ordinary cells, so that tables and plots need no special case: the name of
a race's metric names its solver (``cpu_time_s:a``) or its pair (``ratio:a:b``, the speed of a
relative to b), and each solver and each pair becomes a cell.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from svmbench.base import escape
from svmbench.base.errors import DamagedResultsError, ResultsError
from svmbench.report.reading import shapes, wording
from svmbench.report.reading.newest import (
    NAMED_BY_RECORD,
    NewestRecords,
    ShownValues,
    ValueStore,
    dimensions_of,
    one_line,
    plural,
)
from svmbench.schema.record import IDENTITY, Record, is_disturbed, parse_record

#: Separator of the two solvers in the name of a pair.
VERSUS = " vs "
#: Prefix of the metrics of scores on the training rows.
TRAIN_PREFIX = "train_"
#: Metric of the memory that a solver adds to the process of its cell; of a program, all memory of
#: its own process, so that the two can't be compared.
MEMORY = "peak_memory_mb"
#: Largest number of cells and points of cells in a report.
MAX_SHOWN_CELLS = 1_000_000
#: Fields of an environment that don't identify the machine or its libraries. The commit is one of
#: them, because a cell's key covers the code that determines its result.
_PASSING = {"id", "git", "seed", "load"}


@dataclass(frozen=True, slots=True)
class CellResult:
    """One planned cell with its result.

    The identifying fields come from the plan, the result from the newest record with the cell's
    key. A cell without a record has the status ``not run``, or the status in the plan (``skipped``,
    ``unavailable``). `environment` is the id in the record. `environment_group` is the id of the
    first environment of the folder that equals this one but for commit and load: the same machine,
    Python and packages. Means over folds are taken within it. `folds` is the number of folds over
    which the values are means; 0 for one fit with its repeats. `wall_s` is how long the cell ran; 0
    if its record doesn't say it. `convergence_confirmed` is filled only in cells split from races:
    for each racer that ran at a single setting, reported convergence and has a certified bound,
    whether the bound confirms it.
    """

    key: str
    block: str
    protocol: str
    paper: str
    dataset: str | None
    kernel: str | None
    solver: str | None
    fold: int | None
    status: str
    dimensions: Mapping[str, Any] = field(default_factory=dict)
    is_race: bool = False
    reason: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    spread: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    contended: bool = False
    data_sha256: str | None = None
    environment: str = ""
    environment_group: str = ""
    undefined: Mapping[str, str] = field(default_factory=dict)
    folds: int = 0
    trace: tuple[tuple[float, ...], ...] = ()
    stop_reason: str = ""
    warnings: tuple[str, ...] = ()
    wall_s: float = 0.0
    convergence_confirmed: Mapping[str, bool] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Data set, kernel, dimensions and solver: the fields that all folds share."""
        swept = tuple(sorted(self.dimensions.items()))
        return (self.dataset, self.kernel, swept, self.solver)

    def value(self, name: str) -> Any:
        """Return the value of a field (data set, kernel, solver or a dimension), or None."""
        return getattr(self, name) if name in IDENTITY else self.dimensions.get(name)

    @property
    def has_false_convergence(self) -> bool:
        """True if a solver reported that it converged, and its certified bound shows it did not."""
        return not all(self.convergence_confirmed.values())

    @property
    def disturbed(self) -> bool:
        """True if the timed training shared the CPU with other programs."""
        return is_disturbed(self.metrics, contended=self.contended)


@dataclass(frozen=True)
class Run:
    """The contents of a run folder.

    Attributes
    ----------
    path : Path
        The folder.
    name, paper, title, profile, profile_note : str
        Fields of the resolved config and the plan.
    scaling : str
        The scaling of the config, for blocks without their own.
    blocks : dict of str to dict
        The blocks of the config by name.
    cells : tuple of CellResult
        All cells, in the order of the plan, which is the order of every table.
    tables, plots : tuple of dict
        Tables and plots in the config.
    environments : dict of str to dict
        The content of each ``environment-<id>.json``.
    notes : tuple of str
        Irregularities of the records (unreadable lines …), one sentence each.
    plan_scores : dict of str to dict
        Caption, unit, direction and tolerance by metric, for each score in the plan; empty for an
        older plan.
    seed : int or None
        The seed of the config; None for older plans.
    references : dict of str to str
        Who describes a foreign class or a program, by solver.
    reference_solvers : tuple of str
        Solvers of other libraries and programs that the catalogue lists.
    programs : tuple of str
        Solvers that are programs with processes of their own; empty for older plans.
    classes : tuple of str
        Solvers that a config names by a class's path; empty for older plans.
    settings : dict of str to dict
        What each block sets, with its solvers; empty for older plans.
    contradictions : tuple of str
        Records whose data set, solver or fold is not the one in the plan.
    counts : dict of str to dict
        The counts of each block: its settings that are whole numbers, the ``points`` of a sample by
        rows, the numbers of values in its ``sweep`` and ``grids`` (by solver), its ``datasets`` and
        the ``timeout_s`` of a cell; empty for older plans.
    full_counts : dict of str to dict
        The same counts of each block in the config's full protocol; empty if it has none.
    """

    path: Path
    name: str
    paper: str
    title: str
    profile: str
    scaling: str
    blocks: Mapping[str, Mapping[str, Any]]
    cells: tuple[CellResult, ...]
    tables: tuple[Mapping[str, Any], ...]
    plots: tuple[Mapping[str, Any], ...]
    environments: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    profile_note: str = ""
    plan_scores: Any = None
    seed: int | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    reference_solvers: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()
    counts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    full_counts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def scores(self) -> dict[str, Mapping[str, Any]]:
        """By metric: caption, unit, better, tolerance, of this version's scores and the plan's."""
        return read_scores(self.plan_scores)

    def label(self, name: str) -> str:
        """Return the label of a metric or field for headers and axes, with its unit."""
        # A score on the training rows has a prefix: ``train_auc_pct``.
        plain = name.removeprefix(TRAIN_PREFIX)
        declared = self.scores.get(plain)
        if declared is None:
            return wording.label_of(name)
        return f"{'train ' if plain != name else ''}{declared['caption']}"

    def block_cells(self, block: str) -> list[CellResult]:
        """Return the cells of one block, in the plan's order."""
        return [cell for cell in self.cells if cell.block == block]

    def block_scaling(self, block: str) -> str:
        """Return the scaling of a block (``outer-fold`` …), or ''."""
        return str(self.blocks.get(block, {}).get("scaling") or self.scaling)


def read_run(run_dir: Path) -> Run:
    """Read a run folder.

    Parameters
    ----------
    run_dir : Path
        Folder with ``plan.json`` and, after the first result, ``runs.jsonl`` (``runs.jsonl.xz`` in
        a kept folder).

    Returns
    -------
    Run

    Raises
    ------
    ResultsError
        If the folder has no readable plan. Unreadable lines of ``runs.jsonl`` are skipped, and
        ``notes`` counts them.
    """
    plan = _read_plan(run_dir / "plan.json")
    config = plan.get("config") or {}
    profile = plan.get("profile") or ""
    if isinstance(profile, Mapping):
        profile = profile.get("name", "")
    paper = str(config.get("paper") or "")
    store = ValueStore()
    # Free the entries of the plan before the records are read.
    cells = list(_planned(plan, paper, store))
    newest = NewestRecords(
        {cell.key for cell in cells}, lambda record, _: ShownValues.of(record, store)
    )
    notes = newest.read(run_dir)
    environments = _read_environments(run_dir)
    used = {*newest.unplanned.values(), *(record.environment for record in newest.cells.values())}
    counts = _without_nulls(plan.get("counts") or {})
    groups = _environment_groups(
        {name: facts for name, facts in environments.items() if name in used}
    )
    shown = sum(len(newest.points.get(cell.key, ())) + 1 for cell in cells)
    if shown > MAX_SHOWN_CELLS:  # cells may share a key, and each shows all its points
        raise DamagedResultsError(
            f"can't read {run_dir}: it has {shown:,} cells and points, but a report shows at most"
            f" {MAX_SHOWN_CELLS:,}"
        )
    contradictions = list(_contradictions(cells, newest.cells))
    notes += _disagreements(contradictions, len(newest.unplanned))
    return Run(
        path=run_dir,
        name=str(config.get("name") or run_dir.name),
        paper=paper,
        title=str(config.get("title") or config.get("name") or run_dir.name),
        profile=str(profile),
        scaling=str(config.get("scaling") or ""),
        blocks=_blocks(config.get("blocks")),
        cells=tuple(
            cell
            for planned in cells
            for cell in _with_points(
                _join(planned, newest.cells.get(planned.key), groups),
                newest.points.get(planned.key, {}).values(),
            )
        ),
        plan_scores=plan.get("scores"),
        seed=config.get("seed"),
        references=config.get("references") or {},
        reference_solvers=tuple(config.get("baselines") or ()),
        programs=tuple(config.get("programs") or ()),
        classes=tuple(config.get("classes") or ()),
        settings=_settings(config),
        contradictions=tuple(contradictions),
        counts=counts.get("own", {}),
        full_counts=counts.get("full", {}),
        tables=tuple(plan.get("tables") or ()),
        plots=tuple(plan.get("plots") or ()),
        profile_note=str(plan.get("profile_note") or ""),
        environments=environments,
        notes=tuple(notes),
    )


def _disagreements(contradictions: Sequence[str], n_unplanned: int) -> Iterator[str]:
    """Yield a sentence for records that contradict the plan, and one for those outside it."""
    if contradictions:
        yield f"Records and plan disagree: {contradictions[0]}."
    if n_unplanned:
        yield (
            f"{n_unplanned} recorded {plural('cell', n_unplanned)} of an earlier plan "
            f"{'is' if n_unplanned == 1 else 'are'} not in this one and not shown."
        )


def result_lines(run_dir: Path) -> Iterator[Record]:
    """Yield the records behind tables and plots, in the order of the plan.

    For each planned cell, these are the records of points that are results, and then the newest
    record of the cell. Points of searches, which only let a search continue, are left out.
    """
    planned = [cell["key"] for cell in _read_plan(run_dir / "plan.json").get("cells") or []]
    newest = NewestRecords(set(planned), lambda _, line: line)
    newest.read(run_dir)
    for key in dict.fromkeys(planned):
        for line in (*newest.points.get(key, {}).values(), newest.cells.get(key, b"")):
            record = parse_record(line)
            if record is not None:
                yield record


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        plan = shapes.read_checked_json(path)
    except FileNotFoundError:
        raise ResultsError(
            f"{path.parent} is not a run folder: it has no {path.name}; "
            "give the folder that 'svmbench run' wrote"
        ) from None
    except OSError as error:
        raise ResultsError(f"can't read {path}: {error.strerror or error}") from error
    cells = plan.get("cells") if isinstance(plan, dict) else None
    if not isinstance(cells, list) or not all(
        isinstance(cell, dict) and isinstance(cell.get("key"), str) for cell in cells
    ):
        raise DamagedResultsError(f"{path} is not a plan: it has no list of cells with keys")
    if problem := shapes.too_many_cells(cells):
        raise DamagedResultsError(f"can't read {path}: {problem}")
    for cell in cells:
        # The key is part of file names.
        if not re.fullmatch(r"[\w-]{1,128}", cell["key"], re.ASCII):
            shown = escape.line(cell["key"], 60)
            raise DamagedResultsError(f"{path} is not a plan: {shown!r} is no cell's key")
    if not isinstance(plan.get("config") or {}, dict):
        raise DamagedResultsError(
            f"{path} is not a plan: its config is no mapping of keys to values"
        )
    for name in ("tables", "plots"):
        specs = plan.get(name) or []
        if not isinstance(specs, list) or not all(isinstance(spec, dict) for spec in specs):
            raise DamagedResultsError(f"{path} is not a plan: its {name} are no list of mappings")
    wrong = shapes.mismatch(plan, shapes.PLAN_SHAPE)
    if wrong:
        raise DamagedResultsError(f"{path} is not a plan: {wrong}")
    return dict(plan)


def _read_environments(run_dir: Path) -> dict[str, Mapping[str, Any]]:
    environments: dict[str, Mapping[str, Any]] = {}
    for path in sorted(run_dir.glob("environment-*.json")):
        try:
            content = shapes.read_checked_json(path)
        except (OSError, DamagedResultsError):
            content = {}
        fits = isinstance(content, dict) and not shapes.mismatch(content, shapes.ENVIRONMENT_SHAPE)
        environments[path.stem.removeprefix("environment-")] = content if fits else {}
    return environments


def _environment_groups(environments: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the first equal environment for each environment."""
    first: dict[str, str] = {}
    groups = {}
    for name, content in environments.items():
        facts = {key: value for key, value in content.items() if key not in _PASSING}
        # An unreadable environment is equal to no other.
        alike = json.dumps(facts, sort_keys=True) if facts else name
        groups[name] = first.setdefault(alike, name)
    return groups


def _blocks(blocks: Any) -> dict[str, Mapping[str, Any]]:
    """Return blocks by name, from a list of named blocks or from a mapping."""
    if isinstance(blocks, Mapping):
        return {name: block or {} for name, block in blocks.items()}
    return {str(block.get("name")): block for block in blocks or () if isinstance(block, Mapping)}


def _settings(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each block and its solvers; none of a plan without the solvers'."""
    solvers = config.get("settings") or {}
    blocks = _blocks(config.get("blocks"))
    passing = ("name", "title", "pairs")
    return {
        name: {**{k: v for k, v in blocks.get(name, {}).items() if k not in passing}, **of_solver}
        for name, of_solver in solvers.items()
    }


def _without_nulls(content: Any) -> Any:
    """Return nested mappings without the keys whose value is null."""
    if not isinstance(content, Mapping):
        return content
    return {key: _without_nulls(value) for key, value in content.items() if value is not None}


def _contradictions(cells: Iterable[CellResult], shown: Mapping[str, ShownValues]) -> Iterator[str]:
    """Yield a sentence for each record that names another cell than the plan's entry of its key."""
    for cell in cells:
        record = shown.get(cell.key)
        if record is not None:
            for name, recorded in zip(NAMED_BY_RECORD, record.named, strict=True):
                planned = getattr(cell, name)
                if recorded is not None and planned is not None and recorded != planned:
                    yield (
                        f"the record of {cell.key} has the {name} {escape.line(str(recorded), 60)},"
                        f" the plan {escape.line(str(planned), 60)}"
                    )


def _planned(plan: dict[str, Any], paper: str, store: ValueStore) -> Iterator[CellResult]:
    """Yield the cells of a plan, without records."""
    races = _races(plan)
    entries = plan.pop("cells")
    entries.reverse()
    while entries:
        planned = entries.pop()
        status = planned.get("status") or "planned"
        is_planned = status == "planned"
        yield CellResult(
            key=planned["key"],
            block=sys.intern(planned.get("block") or ""),
            protocol=sys.intern(planned.get("protocol") or ""),
            paper=sys.intern(planned.get("paper") or paper),
            dataset=_interned(planned.get("dataset")),
            kernel=_interned(planned.get("kernel")),
            solver=_interned(planned.get("solver")),
            fold=planned.get("fold"),
            status="not run" if is_planned else sys.intern(status),
            reason="no record of it yet" if is_planned else one_line(planned.get("reason")),
            dimensions=store(dimensions_of(planned)),
            is_race=planned.get("protocol") in races or "|" in str(planned.get("solver")),
            metrics=store({}),
            spread=store({}),
            counters=store({}),
            params=store({}),
            undefined=store({}),
        )


def _join(cell: CellResult, shown: ShownValues | None, groups: Mapping[str, str]) -> CellResult:
    """Return a planned cell with the values of its newest record."""
    if shown is None:
        return cell
    return replace(
        cell,
        status=shown.status,
        reason=shown.reason,
        metrics=shown.metrics,
        spread=shown.spread,
        counters=shown.counters,
        params=shown.params,
        undefined=shown.undefined,
        contended=shown.contended,
        data_sha256=shown.data_sha256,
        environment=shown.environment,
        environment_group=groups.get(shown.environment, shown.environment),
        folds=shown.folds,
        trace=shown.trace,
        stop_reason=shown.stop_reason,
        warnings=shown.warnings,
        wall_s=shown.wall_s,
    )


def _with_points(cell: CellResult, points: Iterable[ShownValues]) -> list[CellResult]:
    """Return the points of a cell as cells with their own dimensions.

    A finished cell with points is replaced by its points. An unfinished cell is kept beside its
    points, so that the report shows that it is unfinished.
    """
    shown = [
        replace(
            cell,
            status="ok",
            reason="",
            dimensions={**cell.dimensions, **point.dimensions},
            metrics=point.metrics,
            spread=point.spread,
            counters=point.counters,
            params=point.params or cell.params,
            undefined=point.undefined,
            trace=(),
        )
        for point in points
    ]
    return shown if shown and cell.status == "ok" else [*shown, cell]


def read_scores(given: Any) -> dict[str, Mapping[str, Any]]:
    """Return the scores of this version, updated by the scores of a plan, by metric."""
    from svmbench.schema.scores import SCORES  # imported when the caption of a score is needed

    known: dict[str, Mapping[str, Any]] = {
        score.metric: score.for_plan() for score in SCORES.values()
    }
    declarations = given if isinstance(given, Mapping) else {}
    for metric, declared in declarations.items():
        known[metric] = {
            **known.get(metric, {"caption": wording.label_of(metric)}),
            **(declared or {}),
        }
    return known


def _races(plan: Mapping[str, Any]) -> set[str]:
    """Return the protocols whose cells are races according to a plan."""
    protocols = plan.get("protocols")
    declared = protocols if isinstance(protocols, Mapping) else {}
    return {
        name for name, facts in declared.items() if isinstance(facts, Mapping) and facts.get("race")
    }


def _interned(text: str | None) -> str | None:
    return None if text is None else sys.intern(text)


def used_environments(cells: Iterable[CellResult]) -> list[str]:
    """Return the ids of the environments of cells, in order of first use."""
    return list(dict.fromkeys(cell.environment for cell in cells if cell.environment))


def split_races(cells: Sequence[CellResult]) -> list[CellResult]:
    """Replace every race by a cell for each pair and for each solver.

    An unfinished race has no metrics. Its pairs are those of finished races between the same
    solvers, or else the pairs of the first solver with each other solver.
    """
    pairs: dict[str | None, dict[tuple[str, ...], None]] = {}
    for cell in cells:
        if cell.is_race:
            racers = pairs.setdefault(cell.solver, {})
            for key in cell.metrics:
                owners = tuple(key.split(":")[1:])
                if len(owners) == 2:
                    racers[owners] = None
    apart: list[CellResult] = []
    for cell in cells:
        if not cell.is_race:
            apart.append(cell)
            continue
        solvers = (cell.solver or "").split("|")
        owners_of_pairs = list(pairs[cell.solver]) or [(solvers[0], name) for name in solvers[1:]]
        apart.extend(_cell_of_pair(cell, owners) for owners in owners_of_pairs)
        apart.extend(_cell_of_racer(cell, name, (name,)) for name in solvers)
    return apart


def _cell_of_pair(cell: CellResult, owners: tuple[str, ...]) -> CellResult:
    part = _cell_of_racer(cell, VERSUS.join(owners), owners)
    objectives = [cell.metrics.get(f"objective:{name}") for name in owners]
    if "objective_difference" in part.metrics or not all(map(_is_number, objectives)):
        return part
    first, second = (float(value) for value in objectives if value is not None)
    scale = max(abs(first), abs(second))
    difference = abs(first - second) / scale if scale else 0.0
    return replace(part, metrics={**part.metrics, "objective_difference": difference})


def _cell_of_racer(cell: CellResult, name: str, owners: tuple[str, ...]) -> CellResult:
    return replace(
        cell,
        solver=name,
        convergence_confirmed={
            owner: float(cell.metrics[f"claims_true_pct:{owner}"] or 0.0) >= 100.0
            for owner in owners
            if _is_number(cell.metrics.get(f"claims_true_pct:{owner}"))
            and _is_number(cell.metrics.get(f"certified_bound:{owner}"))
        },
        metrics=_owned(cell.metrics, owners),
        spread=_owned(cell.spread, owners),
        counters=_owned(cell.counters, owners),
        undefined=_undefined(cell, owners) if cell.status == "ok" else cell.undefined,
    )


def _undefined(cell: CellResult, owners: tuple[str, ...]) -> dict[str, str]:
    """Return why metrics of a solver or a pair have no value, by metric."""
    notes = [note for name in owners for note in cell.reason.split("; ") if _is_about(note, name)]
    without = [name for name in owners if not _has_objective(cell, name)]
    if not any(name.startswith("objective:") for name in cell.metrics):
        without = []
    unknown = [f"{' and '.join(without)}: the problem is not known"] if without else []
    measured = _owned(cell.metrics, owners)
    reasons = {"ratio": notes, "objective_difference": unknown}
    if len(owners) == 1:
        reasons = {"cpu_time_s": notes, "train_time_s": notes, "objective": unknown}
    return {
        name: "; ".join(warnings)
        for name, warnings in reasons.items()
        if warnings and measured.get(name) is None
    }


def _is_about(note: str, solver: str) -> bool:
    """Return True for a note of the protocol about a solver."""
    return note.startswith((f"{solver} has ", f"{solver} did "))


def _has_objective(cell: CellResult, solver: str) -> bool:
    return any(f"{name}:{solver}" in cell.metrics for name in ("objective", "excess_objective"))


def _owned(values: Mapping[str, Any], owners: Iterable[str]) -> dict[str, Any]:
    """Return the entries whose keys end in exactly these names, with the names removed."""
    suffix = "".join(f":{name}" for name in owners)
    return {
        key.removesuffix(suffix): value
        for key, value in values.items()
        if key.endswith(suffix) and ":" not in key.removesuffix(suffix)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
