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
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from svmbench.errors import ResultsError
from svmbench.report.records import TRAIN
from svmbench.report.sides import KeptCell, Side, read_side, summarise, where_of, write_baseline
from svmbench.report.trends import Trends

__all__ = ["Change", "Comparison", "Side", "compare", "read_side", "summarise", "write_baseline"]

#: Relative growth of the objective, at equal parameters, that passes for rounding.
OBJECTIVE_TOLERANCE = 1e-3
#: Relative growth of a counter where the two sides' arithmetic differs.
COUNTER_TOLERANCE = 0.1
#: How many times a counter may grow where other parameters were chosen.
OTHER_WORK = 5.0
#: How many times slower, against the same reference solver, is a regression.
SLOWDOWN = 1.5


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
        why_not_timed=_why_not_timed(base, new),
        slowdown=slowdown,
        scores=base.scores,
    )
    groups, counterparts = _by_group(base), _by_group(new)
    for group, folds in groups.items():
        judge.group(where_of(group), folds, counterparts.get(group, {}))
    if not judge.compared:
        raise ResultsError("nothing to compare: no cell of BASE has a result")
    judge.together()
    added = len(new.cells.keys() - base.cells.keys())
    if added:
        judge.notes[f"{added} cells are new and have nothing to be compared with"] = None
    order = ("worse", "different", "better")
    changes = sorted(judge.changes, key=lambda change: order.index(change.verdict))
    return Comparison(tuple(changes), judge.compared, tuple(judge.notes))


def _by_group(side: Side) -> dict[tuple[Any, ...], dict[int | None, list[KeptCell]]]:
    """Return the folds of each measurement, in one pass over the cells."""
    groups: dict[tuple[Any, ...], dict[int | None, list[KeptCell]]] = {}
    for key, runs in side.cells.items():
        groups.setdefault(key[:-1], {})[key[-1]] = runs
    return groups


def _why_not_timed(base: Side, new: Side) -> str:
    """Return why the two sides' times can't be set against each other; empty if they can."""
    if not all(side.cpus and "None" not in side.cpus for side in (base, new)):
        return "what a side was measured on is not known (its environment file is missing)"
    if len(base.cpus) == 1 and base.cpus == new.cpus:
        return ""
    return "measured on different CPU models"


class _Judge:
    """Collects what moved; one call of `group` a measurement."""

    def __init__(
        self,
        *,
        exact: bool,
        why_not_timed: str,
        slowdown: float,
        scores: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.exact = exact
        self.why_not_timed = why_not_timed
        self.trends = Trends()
        self.slowdown = slowdown
        self.scores = scores
        self.changes: list[Change] = []
        self.compared: dict[str, int] = {}
        self.notes: dict[str, None] = {}
        if not exact:
            self.notes[
                f"CPU, BLAS or libraries differ: counters may grow by {COUNTER_TOLERANCE:.0%}"
            ] = None

    def group(
        self,
        where: str,
        base: Mapping[int | None, list[KeptCell]],
        new: Mapping[int | None, list[KeptCell]],
    ) -> None:
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
            if fold is not None and len(finished) > 1:
                self._fold_scores(at, base[fold][0], new[fold][0])
            self._work(at, base[fold][0], new[fold][0])
            self._time(at, base[fold], new[fold])

    def _scores(self, where: str, base: list[KeptCell], new: list[KeptCell]) -> None:
        for name, facts in self.scores.items():
            before, after = _mean(base, name), _mean(new, name)
            if before is None:
                continue
            kind = "accuracy" if name.removeprefix(TRAIN) == "accuracy_pct" else "score"
            self._count(kind)
            allowed = facts["tolerance"] * (abs(before) if facts.get("relative") else 1.0)
            sign = -1.0 if facts["better"] == "lower" else 1.0
            if after is not None:
                self.trends.score(name, before, after, sign * (before - after), allowed)
            if after is None or sign * (before - after) > allowed:
                self._add("worse", kind, where, name, before, after)
            elif after != before:
                verdict = "better" if sign * (after - before) > allowed else "different"
                self._add(verdict, kind, where, name, before, after)

    def _fold_scores(self, where: str, base: KeptCell, new: KeptCell) -> None:
        """Name a fold that lost more than a mean may: others can make up for it in the mean.

        It is a regression where both sides computed alike; elsewhere a row of a small fold that
        falls the other way is as much.
        """
        for name, facts in self.scores.items():
            before, after = base["metrics"].get(name), new["metrics"].get(name)
            if before is None or after is None:
                continue
            allowed = facts["tolerance"] * (abs(before) if facts.get("relative") else 1.0)
            sign = -1.0 if facts["better"] == "lower" else 1.0
            if sign * (before - after) > allowed:
                kind = "accuracy" if name.removeprefix(TRAIN) == "accuracy_pct" else "score"
                verdict = "worse" if self.exact else "different"
                self._add(verdict, kind, where, name, before, after)

    def _work(self, where: str, base: KeptCell, new: KeptCell) -> None:
        """Compare objective and counters, where both fitted with the same parameters."""
        if base["params"] != new["params"]:
            chosen = [json.dumps(side["params"]) for side in (base, new)]
            self._add("different", "params", where, "chosen parameters", *chosen)
            self.notes[
                f"objective and work at other parameters: a counter is worse there only past"
                f" {OTHER_WORK:g} times"
            ] = None
            for name, count in base["counters"].items():
                counted = new["counters"].get(name)
                if counted is None or counted > OTHER_WORK * max(count, 1):
                    self._add("worse", "counter", where, name, count, counted)
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
        for name, count in base["counters"].items():
            counted = new["counters"].get(name)
            self._count("counter")
            allowed = 0.0 if self.exact else COUNTER_TOLERANCE * abs(count)
            if counted is not None and not self.exact:
                self.trends.counter(name, count, counted)
            if counted is None or counted - count > allowed:
                self._add("worse", "counter", where, name, count, counted)
            elif count - counted > allowed:
                self._add("better", "counter", where, name, count, counted)

    def together(self) -> None:
        """Compare what moved a little everywhere."""
        for name, where, before, after in self.trends.scores():
            kind = "accuracy" if name.removeprefix(TRAIN) == "accuracy_pct" else "score"
            self._add("worse", kind, where, name, before, after)
        for name, where, factor in self.trends.counters():
            self._add("worse", "counter", where, f"{name}, as a share of base", 1.0, factor)
        grown, number, largest = self.trends.passed_growth()
        if grown:
            self.notes[
                f"{grown} of {number} counters grew under other arithmetic, by up to"
                f" {largest - 1:.1%}"
            ] = None

    def _time(self, where: str, base: list[KeptCell], new: list[KeptCell]) -> None:
        """Compare each pair's ratio: how many times faster the first is than its reference."""
        pairs = [name for name in base[0]["metrics"] if name.startswith("ratio:")]
        if not pairs:
            return
        if self.why_not_timed:
            self.notes[f"times not compared: {self.why_not_timed}"] = None
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
            if before <= 0:
                self.notes[
                    f"times not compared: {where}: {what}: BASE has the ratio {before:g}"
                ] = None
            elif after is None or after <= 0 or before / after > self.slowdown:
                self._add("worse", "time", where, what, before, after)
            elif after / before > self.slowdown:
                self._add("better", "time", where, what, before, after)

    def _count(self, kind: str) -> None:
        self.compared[kind] = self.compared.get(kind, 0) + 1

    def _add(self, *change: Any) -> None:
        self.changes.append(Change(*change))


def _worst_status(runs: list[KeptCell]) -> str:
    if not runs:
        return "none"
    return next((str(run["status"]) for run in runs if run["status"] != "ok"), "ok")


def _mean(cells: Iterable[KeptCell], name: str) -> float | None:
    values = [cell["metrics"].get(name) for cell in cells]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _median(runs: Iterable[KeptCell], name: str) -> float | None:
    values = [run["metrics"].get(name) for run in runs]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
