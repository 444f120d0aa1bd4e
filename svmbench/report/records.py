"""Reading a run folder: the plan, the newest record of every cell, the environments."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from svmbench import inert
from svmbench.errors import DamagedResultsError, ResultsError
from svmbench.record import CellRecord, PointRecord, Record, parse
from svmbench.report import shapes, wording
from svmbench.scores import SCORES
from svmbench.specs import IDENTITY, canonical

#: The records of a run as they are written, and as they are kept.
RECORDS, PACKED = "runs.jsonl", "runs.jsonl.xz"
#: The most bytes that packed records may unpack to, and the dictionary that they may ask for.
MOST_BYTES, _XZ_MEMORY = 256 << 20, 192 << 20
#: What stands before the metric of a score that is of the rows that were trained on.
TRAIN = "train_"
#: A fit of one thread whose wall time is more than so many times its CPU time did not have the
#: processor to itself (or waited for a disk): its times are marked.
OUTSIDE_LOAD = 1.15
#: What of an environment's file says nothing of the machine or of what computes. The commit is
#: such, since a cell's key holds the code that decides its result.
_PASSING = {"id", "git", "seed", "load"}


@dataclass(frozen=True)
class Cell:
    """One planned cell with what became of it.

    The identifying fields come from the plan, the outcome from the newest record of the cell's key.
    A cell without a record has status ``not run`` (or what the plan says: ``skipped``,
    ``unavailable``). `environment` is the id in its record, and `machine` the id of the first
    environment of the folder that is the same machine with the same libraries. `folds` is how many
    folds its own values are means of; 0 where they are of one fit (and its repeats).
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
    environment: str = ""
    machine: str = ""
    undefined: Mapping[str, str] = field(default_factory=dict)
    folds: int = 0
    trace: tuple[tuple[float, ...], ...] = ()

    @property
    def identity(self) -> tuple[Any, ...]:
        """Data set, kernel, dimensions and solver; cells that share them differ in their fold."""
        swept = tuple(sorted(self.dimensions.items()))
        return (self.dataset, self.kernel, swept, self.solver)

    def value(self, name: str) -> Any:
        """Return the value of a field: data set, kernel, solver or a dimension; None without."""
        return getattr(self, name) if name in IDENTITY else self.dimensions.get(name)

    @property
    def disturbed(self) -> bool:
        """Whether the timed training shared the processor with work from outside this program.

        Of a cell that ran beside others of the run nothing can be said: these may have had it.
        """
        wall, cpu = self.metrics.get("train_time_s"), self.metrics.get("cpu_time_s")
        if self.contended or not (isinstance(wall, int | float) and isinstance(cpu, int | float)):
            return False
        return wall > OUTSIDE_LOAD * cpu > 0.0


@dataclass(frozen=True)
class Run:
    """A run folder as the report sees it.

    Attributes
    ----------
    path : Path
        The folder.
    name, paper, title, profile, profile_note : str
        From the resolved config and the plan.
    scaling : str
        The config's own scaling, for blocks that name none.
    blocks : dict of str to dict
        Each block of the config by its name.
    cells : tuple of Cell
        In the plan's order, which is the order of every table.
    tables, plots : tuple of dict
        What the config asks for.
    environments : dict of str to dict
        The content of each ``environment-<id>.json``.
    notes : tuple of str
        Oddities of the records (unreadable lines …), one sentence each.
    scores : dict of str to dict
        By metric: caption, unit, better, tolerance, of each score that the plan describes; for an
        older plan, of those that this version has.
    """

    path: Path
    name: str
    paper: str
    title: str
    profile: str
    scaling: str
    blocks: Mapping[str, Mapping[str, Any]]
    cells: tuple[Cell, ...]
    tables: tuple[Mapping[str, Any], ...]
    plots: tuple[Mapping[str, Any], ...]
    environments: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    profile_note: str = ""
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def label(self, name: str) -> str:
        """Return what a metric or field is called in a header or on an axis, with its unit."""
        # A score may also be of the training rows: ``train_auc_pct``.
        plain = name.removeprefix(TRAIN)
        declared = self.scores.get(plain)
        if declared is None:
            return wording.label(name)
        return f"{'train ' if plain != name else ''}{declared['caption']}"

    def block_cells(self, block: str) -> list[Cell]:
        """Return the cells of one block, in the plan's order."""
        return [cell for cell in self.cells if cell.block == block]

    def block_scaling(self, block: str) -> str:
        """Return which rows the scaling of a block was fitted on (``outer-fold`` …), or ''."""
        return str(self.blocks.get(block, {}).get("scaling") or self.scaling)


def read_run(run_dir: Path) -> Run:
    """Read a run folder.

    Parameters
    ----------
    run_dir : Path
        Folder with ``plan.json`` and, once something has run, ``runs.jsonl`` (``runs.jsonl.xz``
        where they are kept).

    Returns
    -------
    Run

    Raises
    ------
    ResultsError
        If the folder has no readable plan. Unreadable lines of ``runs.jsonl`` are no error: they
        are skipped and counted in ``notes``.
    """
    plan = _read_plan(run_dir / "plan.json")
    lines, notes = _read_lines(run_dir)
    records = _newest(lines)
    config = plan.get("config") or {}
    planned = plan.get("cells") or []
    profile = plan.get("profile") or ""
    if isinstance(profile, Mapping):
        profile = profile.get("name", "")
    paper = str(config.get("paper") or "")
    environments = _read_environments(run_dir)
    used = {record.get("environment") for record in records.values()}
    machines = _machines({name: found for name, found in environments.items() if name in used})
    races = _races(plan)
    results = _result_points(lines)
    strangers = len(records.keys() - {cell["key"] for cell in planned})
    if strangers:
        notes.append(
            f"{strangers} recorded {_plural('cell', strangers)} of an earlier plan "
            f"{'is' if strangers == 1 else 'are'} not in this one and not shown."
        )
    return Run(
        path=run_dir,
        name=str(config.get("name") or run_dir.name),
        paper=paper,
        title=str(config.get("title") or config.get("name") or run_dir.name),
        profile=str(profile),
        scaling=str(config.get("scaling") or ""),
        blocks=_blocks(config.get("blocks")),
        cells=tuple(
            one
            for cell in planned
            for one in _with_points(
                _join(cell, records.get(cell["key"]), paper, machines, races),
                results.get(cell["key"], {}).values(),
            )
        ),
        scores=read_scores(plan.get("scores")),
        tables=tuple(plan.get("tables") or ()),
        plots=tuple(plan.get("plots") or ()),
        profile_note=str(plan.get("profile_note") or ""),
        environments=environments,
        notes=tuple(notes),
    )


def result_lines(run_dir: Path) -> list[Record]:
    """Return the records that tables and plots are made of, in the plan's order.

    Of every planned cell its newest record, before it those of its points that are results of their
    own: a search's points, which are there to go on from, are not.
    """
    lines, _ = _read_lines(run_dir)
    cells, points = _newest(lines), _result_points(lines)
    planned = [cell["key"] for cell in _read_plan(run_dir / "plan.json").get("cells") or []]
    shown: list[Record] = []
    for key in dict.fromkeys(planned):
        shown += points.get(key, {}).values()
        shown += [cells[key]] if key in cells else []
    return shown


def _newest(lines: Iterable[Record]) -> dict[str, CellRecord]:
    return {line["key"]: line for line in lines if line["kind"] == "cell"}


def _result_points(lines: Iterable[Record]) -> dict[str, dict[str, PointRecord]]:
    """Return, by cell and point, what tables and plots show: no search's steps."""
    found: dict[str, dict[str, PointRecord]] = {}
    for line in lines:
        if line["kind"] == "point" and all(
            isinstance(line.get(name), dict) for name in ("dimensions", "metrics")
        ):
            found.setdefault(line["key"], {})[line["point"]] = line
    return found


def _read_lines(run_dir: Path) -> tuple[list[Record], list[str]]:
    """Return every readable record of a run folder, and notes on what could not be read.

    The file is only ever appended to, so the last line of a key is its newest.
    """
    path = run_dir / RECORDS
    try:
        if path.exists():
            content = path.read_bytes()
        elif (run_dir / PACKED).exists():
            path = run_dir / PACKED
            content = _unpacked(path.read_bytes())
        else:
            return [], []
    except OSError as error:
        raise ResultsError(f"can't read {path}: {error.strerror or error}") from error
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise DamagedResultsError(f"can't read {path}: {error}") from error
    records = []
    unreadable = 0
    torn = False
    for line, is_last in _lines(content):
        record = parse(line)
        if record is None:
            torn, unreadable = (True, unreadable) if is_last else (torn, unreadable + 1)
        else:
            records.append(record)
    notes = []
    if unreadable:
        notes.append(
            f"{unreadable} unreadable {_plural('line', unreadable)} of {path.name} skipped."
        )
    if torn:
        notes.append(f"The last line of {path.name} is torn (a killed run) and was skipped.")
    return records, notes


def _unpacked(content: bytes) -> bytes:
    """Return what a packed file holds: a few bytes must not become gigabytes in memory."""
    stream = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    unpacked = stream.decompress(content, MOST_BYTES + 1)
    if len(unpacked) > MOST_BYTES:
        raise ValueError(f"it holds more than {MOST_BYTES:,} bytes")
    if not stream.eof:
        raise EOFError("it ends before its end-of-stream marker")
    return unpacked


def _lines(content: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield each non-blank line and whether it is a last line without its line end."""
    *lines, rest = content.split(b"\n")
    for line in lines:
        if line.strip():
            yield line, False
    if rest.strip():
        yield rest, True


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        plan = shapes.read_json(path)
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
    for cell in cells:
        # Files are named by it.
        if not re.fullmatch(r"[\w-]{1,128}", cell["key"], re.ASCII):
            shown = inert.line(cell["key"], 60)
            raise DamagedResultsError(f"{path} is not a plan: {shown!r} is no cell's key")
    if not isinstance(plan.get("config") or {}, dict):
        raise DamagedResultsError(
            f"{path} is not a plan: its config is no mapping of keys to values"
        )
    for name in ("tables", "plots"):
        asked = plan.get(name) or []
        if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
            raise DamagedResultsError(f"{path} is not a plan: its {name} are no list of mappings")
    wrong = shapes.mismatch(plan, shapes.PLAN)
    if wrong:
        raise DamagedResultsError(f"{path} is not a plan: {wrong}")
    return dict(plan)


def _read_environments(run_dir: Path) -> dict[str, Mapping[str, Any]]:
    environments: dict[str, Mapping[str, Any]] = {}
    for path in sorted(run_dir.glob("environment-*.json")):
        try:
            content = shapes.read_json(path)
        except (OSError, DamagedResultsError):
            content = {}
        fits = isinstance(content, dict) and not shapes.mismatch(content, shapes.ENVIRONMENT)
        environments[path.stem.removeprefix("environment-")] = content if fits else {}
    return environments


def _machines(environments: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return for each environment the first that measures alike."""
    first: dict[str, str] = {}
    machines = {}
    for name, content in environments.items():
        facts = {key: value for key, value in content.items() if key not in _PASSING}
        # What an unreadable file stood for is not known to be like anything else.
        alike = json.dumps(facts, sort_keys=True) if facts else name
        machines[name] = first.setdefault(alike, name)
    return machines


def _blocks(blocks: Any) -> dict[str, Mapping[str, Any]]:
    """Blocks by name, from a list of blocks with names or from a mapping."""
    if isinstance(blocks, Mapping):
        return {name: block or {} for name, block in blocks.items()}
    return {str(block.get("name")): block for block in blocks or () if isinstance(block, Mapping)}


def _join(
    planned: Mapping[str, Any],
    record: CellRecord | None,
    paper: str,
    machines: Mapping[str, str],
    races: Collection[str],
) -> Cell:
    """One cell from its entry in the plan and its newest record."""
    identity = {
        "key": planned["key"],
        "block": str(planned.get("block") or ""),
        "protocol": str(planned.get("protocol") or ""),
        "paper": str(planned.get("paper") or paper),
        "dataset": planned.get("dataset"),
        "kernel": planned.get("kernel"),
        "solver": planned.get("solver"),
        "fold": planned.get("fold"),
        "dimensions": dimensions_of(planned),
        "is_race": planned.get("protocol") in races or "|" in str(planned.get("solver")),
    }
    if record is None:
        status = planned.get("status") or "planned"
        if status == "planned":
            return Cell(**identity, status="not run", reason="no record of it yet")
        return Cell(**identity, status=status, reason=_one_line(planned.get("reason")))
    environment = str(record.get("environment") or "")
    return Cell(
        **identity,
        status=record["status"],
        reason=_one_line(record.get("reason")),
        metrics=record.get("metrics") or {},
        spread=record.get("spread") or {},
        counters=record.get("counters") or {},
        params=record.get("params") or {},
        contended=bool(record.get("contended")),
        environment=environment,
        machine=machines.get(environment, environment),
        undefined=record.get("undefined") or {},
        folds=int(record.get("folds") or 0),
        trace=tuple(tuple(row) for row in record.get("trace") or ()),
    )


def _with_points(cell: Cell, points: Iterable[PointRecord]) -> list[Cell]:
    """Return a cell's points as cells of their own, each at its place in the cell's dimensions.

    A cell whose points are its results is shown by them alone; while it is unfinished it stays, so
    that it is seen to be.
    """
    shown = [
        replace(
            cell,
            status="ok",
            reason="",
            dimensions={**cell.dimensions, **dimensions_of(point)},
            metrics=point["metrics"],
            spread=point.get("spread") or {},
            counters=point.get("counters") or {},
            params=point.get("params") or cell.params,
            undefined=point.get("undefined") or {},
            trace=(),
        )
        for point in points
    ]
    return shown if shown and cell.status == "ok" else [*shown, cell]


def dimensions_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was swept, by present names, of a plan's entry or a record, new or old."""
    given = entry.get("dimensions")
    if not isinstance(given, Mapping):
        given = {old: entry.get(old) for old in ("size", "n_features_kept")}
    return {canonical(name): value for name, value in given.items() if value is not None}


def read_scores(given: Any) -> dict[str, Mapping[str, Any]]:
    """Return what a plan says of its scores by metric, on top of what this version knows."""
    known: dict[str, Mapping[str, Any]] = {
        score.metric: score.for_plan() for score in SCORES.values()
    }
    own = given if isinstance(given, Mapping) else {}
    for metric, declared in own.items():
        known[metric] = {**known.get(metric, {"caption": wording.label(metric)}), **declared}
    return known


def _races(plan: Mapping[str, Any]) -> set[str]:
    """Return the protocols of which a plan says that their cells are races."""
    protocols = plan.get("protocols")
    declared = protocols if isinstance(protocols, Mapping) else {}
    return {
        name for name, facts in declared.items() if isinstance(facts, Mapping) and facts.get("race")
    }


def _one_line(text: Any) -> str:
    return " ".join(str(text or "").split())


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"
