"""Two runs of the same experiment side by side: what became worse, better or merely different.

What no noise touches is compared always: whether a cell has a result, its scores (each in its own
direction and by its own tolerance), the objective at equal parameters, and the counters of work
done. Counters are compared exactly where both sides
computed with the same CPU, BLAS and libraries, and within :data:`COUNTER_TOLERANCE` where they did
not, since another summation order may take another path. Time is compared as the ratios of a
``race`` alone, and only between equal CPU models.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from svmbench.errors import ResultsError
from svmbench.report.files import write_text
from svmbench.report.provenance import place
from svmbench.report.records import TRAIN, Cell, dimensions_of, read_run, read_scores

#: Relative growth of the objective, at equal parameters, that passes for rounding.
OBJECTIVE_TOLERANCE = 1e-3
#: Relative growth of a counter where the two sides' arithmetic differs.
COUNTER_TOLERANCE = 0.1
#: How many times slower, against the same reference solver, is a regression.
SLOWDOWN = 1.5

BASELINE = "baseline.json"
#: Where a record is of: cells that share these are the folds of one measurement.
_GROUP = ("block", "dataset", "solver", "kernel", "dimensions")
_KEPT_METRICS = ("objective", "ratio")


@dataclass(frozen=True)
class Change:
    """One measured thing that moved.

    Attributes
    ----------
    verdict : str
        ``"worse"`` (a regression), ``"better"`` or ``"different"``.
    kind : str
        ``"result"``, ``"accuracy"``, ``"score"``, ``"objective"``, ``"counter"``, ``"time"`` or
        ``"params"``.
    where : str
        Block, data set and solver.
    what : str
        The metric, counter or pair of solvers.
    base, new : float, str or None
        Its two values; accuracies in percent, times as a ratio of the reference's CPU time.
    """

    verdict: str
    kind: str
    where: str
    what: str
    base: Any
    new: Any


@dataclass(frozen=True)
class Comparison:
    """All that moved between two sides, and what could not be compared.

    Attributes
    ----------
    changes : tuple of Change
        Regressions first.
    compared : dict of str to int
        How many values of each kind were compared.
    notes : tuple of str
        What was left out and why, one sentence each.
    """

    changes: tuple[Change, ...]
    compared: Mapping[str, int]
    notes: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The changes for the worse."""
        return tuple(change for change in self.changes if change.verdict == "worse")

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "regressions": len(self.regressions),
            "compared": dict(self.compared),
            "changes": [asdict(change) for change in self.changes],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the cells of one or several runs of one config.

    Attributes
    ----------
    name : str
        The config's name.
    cells : dict of tuple to list of dict
        For each cell (group and fold) its kept record in each run.
    cpus : frozenset of str
        CPU models it was measured on.
    arithmetic : frozenset of str
        What decides rounding: CPU, BLAS and library versions.
    scores : dict of str to dict
        By metric: direction and tolerance.
    """

    name: str
    cells: Mapping[tuple[Any, ...], list[dict[str, Any]]]
    cpus: frozenset[str]
    arithmetic: frozenset[str]
    scores: Mapping[str, Mapping[str, Any]]


def read_side(path: Path) -> Side:
    """Read a run folder, a kept baseline, or a folder of repeated runs.

    Raises
    ------
    svmbench.errors.ResultsError
        If it is none of the three, or can't be read.
    """
    try:
        return _read_side(path)
    except OSError as error:
        raise ResultsError(f"can't read {path}: {error.strerror or error}") from error


def _read_side(path: Path) -> Side:
    if (path / BASELINE).exists():
        return _side([_read_baseline(path / BASELINE)])
    if (path / "plan.json").exists() or not path.is_dir():
        return _side([summarise(path)])
    repeats = sorted(part for part in path.iterdir() if (part / "plan.json").exists())
    if not repeats:
        raise ResultsError(
            f"{path} is neither a run folder (plan.json), nor a baseline ({BASELINE}), nor a folder"
            " of run folders"
        )
    return _side([summarise(part) for part in repeats])


def summarise(run_dir: Path) -> dict[str, Any]:
    """Return what a comparison needs of a run folder, as JSON values."""
    run = read_run(run_dir)
    used = {cell.environment for cell in run.cells if cell.environment}
    environments = [content for name, content in run.environments.items() if name in used]
    measured = {name for cell in run.cells for name in cell.metrics}
    judged = {name: facts for name, facts in _scores(run.scores).items() if name in measured}
    return {
        "schema": 1,
        "config": run.name,
        "profile": run.profile,
        "environments": [
            {name: found.get(name) for name in ("cpu", "blas", "python", "packages")}
            for found in environments
        ],
        "scores": judged,
        "cells": [_kept(cell, judged) for cell in run.cells],
    }


def write_baseline(run_dir: Path, target: Path) -> Path:
    """Keep a run's counters, accuracies and ratios in `target`; return the file written.

    Raises
    ------
    svmbench.errors.ResultsError
        If a cell of the run has no result (a baseline with holes would hide regressions), or
        `target` can't be written.
    """
    content = summarise(run_dir)
    holes = [cell for cell in content["cells"] if cell["status"] not in ("ok", "skipped")]
    if holes:
        raise ResultsError(
            f"{run_dir}: {len(holes)} cells have no result ({_where(_group(holes[0]))}:"
            f" {holes[0]['status']} …); a baseline needs them all"
        )
    # One line a cell: the history of a baseline reads as a diff.
    cells = ",\n".join("  " + json.dumps(cell, sort_keys=True) for cell in content.pop("cells"))
    head = json.dumps(content, indent=1, sort_keys=True).removesuffix("\n}")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
    return write_text(target / BASELINE, f'{head},\n "cells": [\n{cells}\n ]\n}}\n')


def compare(base: Side, new: Side, *, slowdown: float = SLOWDOWN) -> Comparison:
    """Compare two sides.

    Parameters
    ----------
    base, new : Side
    slowdown : float
        How many times slower, against the same reference solver, counts as a regression.

    Returns
    -------
    Comparison
        Of what both sides planned, and of what `new` lost; cells that `base` never had are a note.

    Raises
    ------
    svmbench.errors.ResultsError
        If the two sides have no cell in common, or `base` has no result.
    """
    if not base.cells.keys() & new.cells.keys():
        raise ResultsError(f"nothing to compare: {base.name} and {new.name} have no cell in common")
    judge = _Judge(
        exact=len(base.arithmetic) == 1 and base.arithmetic == new.arithmetic,
        same_cpu=len(base.cpus) == 1 and base.cpus == new.cpus,
        slowdown=slowdown,
        scores=base.scores,
    )
    groups = dict.fromkeys(key[:-1] for key in base.cells)
    for group in groups:
        judge.group(
            _where(group),
            {key[-1]: runs for key, runs in base.cells.items() if key[:-1] == group},
            {key[-1]: runs for key, runs in new.cells.items() if key[:-1] == group},
        )
    if not judge.compared:
        raise ResultsError("nothing to compare: no cell of BASE has a result")
    added = len(new.cells.keys() - base.cells.keys())
    if added:
        judge.notes[f"{added} cells are new and have nothing to be compared with"] = None
    order = ("worse", "different", "better")
    changes = sorted(judge.changes, key=lambda change: order.index(change.verdict))
    return Comparison(tuple(changes), judge.compared, tuple(judge.notes))


class _Judge:
    """Collects what moved; one call of `group` a measurement."""

    def __init__(
        self,
        *,
        exact: bool,
        same_cpu: bool,
        slowdown: float,
        scores: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.exact = exact
        self.same_cpu = same_cpu
        self.slowdown = slowdown
        self.scores = scores
        self.changes: list[Change] = []
        self.compared: dict[str, int] = {}
        self.notes: dict[str, None] = {}
        if not exact:
            self.notes[
                f"CPU, BLAS or libraries differ: counters may grow by {COUNTER_TOLERANCE:.0%}"
            ] = None

    def group(self, where: str, base: dict[Any, Any], new: dict[Any, Any]) -> None:
        """Compare the folds of one measurement."""
        finished = []
        for fold, runs in base.items():
            if runs[0]["status"] != "ok":
                continue
            self._count("result")
            status = _worst_status(new.get(fold, []))
            if status == "ok":
                finished.append(fold)
            else:
                at = where if fold is None else f"{where} · fold {fold}"
                self._add("worse", "result", at, "status", "ok", status)
        if not finished:
            return
        self._scores(where, [base[f][0] for f in finished], [new[f][0] for f in finished])
        for fold in finished:
            at = where if fold is None else f"{where} · fold {fold}"
            self._work(at, base[fold][0], new[fold][0])
            self._time(at, base[fold], new[fold])

    def _scores(self, where: str, base: list[Any], new: list[Any]) -> None:
        for name, facts in self.scores.items():
            before, after = _mean(base, name), _mean(new, name)
            if before is None:
                continue
            kind = "accuracy" if name.removeprefix(TRAIN) == "accuracy_pct" else "score"
            self._count(kind)
            allowed = facts["tolerance"] * (abs(before) if facts.get("relative") else 1.0)
            sign = -1.0 if facts["better"] == "lower" else 1.0
            if after is None or sign * (before - after) > allowed:
                self._add("worse", kind, where, name, before, after)
            elif after != before:
                verdict = "better" if sign * (after - before) > allowed else "different"
                self._add(verdict, kind, where, name, before, after)

    def _work(self, where: str, base: dict[str, Any], new: dict[str, Any]) -> None:
        """Compare objective and counters, where both fitted with the same parameters."""
        if base["params"] != new["params"]:
            chosen = [json.dumps(side["params"]) for side in (base, new)]
            self._add("different", "params", where, "chosen parameters", *chosen)
            return
        for name, before in base["metrics"].items():
            after = new["metrics"].get(name)
            if name.split(":")[0] != "objective" or before is None:
                continue
            self._count("objective")
            allowed = OBJECTIVE_TOLERANCE * abs(before)
            if after is None or after - before > allowed:
                self._add("worse", "objective", where, name, before, after)
            elif before - after > allowed:
                self._add("better", "objective", where, name, before, after)
        for name, before in base["counters"].items():
            after = new["counters"].get(name)
            self._count("counter")
            allowed = 0 if self.exact else COUNTER_TOLERANCE * abs(before)
            if after is None:
                self._add("different", "counter", where, name, before, after)
            elif after - before > allowed:
                self._add("worse", "counter", where, name, before, after)
            elif before - after > allowed:
                self._add("better", "counter", where, name, before, after)

    def _time(self, where: str, base: list[Any], new: list[Any]) -> None:
        """Compare each pair's ratio: how many times faster the first is than its reference."""
        pairs = [name for name in base[0]["metrics"] if name.startswith("ratio:")]
        if not pairs:
            return
        if not self.same_cpu:
            self.notes["times not compared: measured on different CPU models"] = None
            return
        if any(run["contended"] for run in [*base, *new]):
            self.notes[f"times not compared: {where} ran beside other cells"] = None
            return
        for name in pairs:
            before, after = _median(base, name), _median(new, name)
            if before is None:
                continue
            self._count("time")
            what = " vs ".join(name.split(":")[1:])
            if after is None or before / after > self.slowdown:
                self._add("worse", "time", where, what, before, after)
            elif after / before > self.slowdown:
                self._add("better", "time", where, what, before, after)

    def _count(self, kind: str) -> None:
        self.compared[kind] = self.compared.get(kind, 0) + 1

    def _add(self, *change: Any) -> None:
        self.changes.append(Change(*change))


def _scores(known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return direction and tolerance of the scores that are judged, by their metrics.

    On the rows that were trained on each is judged as on others.
    """
    judged = {
        name: {key: facts.get(key) for key in ("better", "tolerance", "relative")}
        for name, facts in known.items()
        if isinstance(facts.get("tolerance"), int | float) and not name.startswith(TRAIN)
    }
    return {**judged, **{f"{TRAIN}{name}": facts for name, facts in judged.items()}}


def _kept(cell: Cell, judged: Collection[str]) -> dict[str, Any]:
    kept = (*_KEPT_METRICS, *judged)
    return {
        **{name: getattr(cell, name) for name in (*_GROUP, "fold", "status", "contended")},
        "dimensions": dict(cell.dimensions),
        "params": dict(cell.params),
        "counters": dict(cell.counters),
        "metrics": {k: v for k, v in cell.metrics.items() if k.split(":")[0] in kept},
    }


def _side(runs: list[dict[str, Any]]) -> Side:
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        for cell in run["cells"]:
            # A repeated run may leave out what is the same each time.
            if len(runs) > 1 and cell["status"] == "not run":
                continue
            cells.setdefault((*_group(cell), cell["fold"]), []).append(cell)
    environments = [found for run in runs for found in run["environments"]]
    return Side(
        name=runs[0]["config"],
        cells=cells,
        cpus=frozenset(str(found.get("cpu")) for found in environments),
        arithmetic=frozenset(json.dumps(found, sort_keys=True) for found in environments),
        scores=_scores(read_scores(runs[0].get("scores"))),
    )


def _read_baseline(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != 1:
            raise ResultsError(f"{path}: schema {content['schema']!r} is not the 1 that is read")
        _side([content])
        for number, cell in enumerate(content["cells"], start=1):
            _check_kept(cell, f"{path}: cell {number}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"can't read the baseline {path}: {error!r}") from error
    return dict(content)


def _check_kept(cell: Mapping[str, Any], where: str) -> None:
    """Make sure that a cell of a baseline has all that :func:`_kept` gives it."""
    for name in ("status", "contended"):
        if name not in cell:
            raise ResultsError(f"{where} has no {name!r}")
    if not isinstance(cell.get("params"), dict):
        raise ResultsError(f"{where} has no mapping 'params'")
    for name in ("counters", "metrics"):
        values = cell.get(name)
        if not isinstance(values, dict):
            raise ResultsError(f"{where} has no mapping {name!r}")
        for key, value in values.items():
            if not (isinstance(value, int | float) or (value is None and name == "metrics")):
                raise ResultsError(f"{where}: {key!r} of its {name} is no number: {value!r}")


def _group(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells measurements apart; a cell of an older baseline names its own sizes."""
    *plain, _ = _GROUP
    return (*(cell[name] for name in plain), tuple(sorted(dimensions_of(cell).items())))


def _where(group: tuple[Any, ...]) -> str:
    named = dict(zip(_GROUP, group, strict=True))
    parts = [named["block"], named["dataset"]]
    parts += [place(name, value) for name, value in named["dimensions"]]
    # A race names all its solvers; which of them moved stands beside it.
    parts += [named["solver"]] if "|" not in str(named["solver"]) else []
    return " · ".join(str(part) for part in parts if part)


def _worst_status(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return "none"
    return next((str(run["status"]) for run in runs if run["status"] != "ok"), "ok")


def _mean(cells: Iterable[Mapping[str, Any]], name: str) -> float | None:
    values = [cell["metrics"].get(name) for cell in cells]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _median(runs: Iterable[Mapping[str, Any]], name: str) -> float | None:
    values = [run["metrics"].get(name) for run in runs]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
