"""Compare two runs of the same experiment, and find regressions.

The comparison always covers the values without noise: results, scores (each with its direction and
tolerance), objectives at equal parameters, and counters of work. Two runs have *equal arithmetic*
if BLAS (with its core type) and packages are the same. Then counters must be equal, and objectives
after equal work may differ by :data:`OBJECTIVE_ROUNDING`. With other arithmetic a solver may take
another path; ``results/perf/arithmetic.py`` measured the tolerances for this case. Times are
compared only between equal CPU models: mainly the ratios of a ``race``, whose limits come from
repeats that a baseline keeps.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from svmbench.base.errors import ResultsError
from svmbench.report.gate.alike import check_alike
from svmbench.report.gate.changes import Change, ChangeLog, Comparison
from svmbench.report.gate.race_times import MAX_CPU_GROWTH, MAX_SLOWDOWN, RatioJudge
from svmbench.report.gate.sides import (
    CPU_TIMES,
    WALL_TIMES,
    ComparedCell,
    Side,
    SideRun,
    at_fold,
    group_of,
    where_of,
)
from svmbench.report.gate.trends import Trends, kind_of_score
from svmbench.report.reading.records import MEMORY, TRAIN_PREFIX

#: Largest relative difference of two objectives with equal arithmetic and equal work.
OBJECTIVE_ROUNDING = 1e-9
#: Largest relative growth of an objective with other arithmetic or other work.
OBJECTIVE_TOLERANCE = 0.01
#: Largest relative growth of a counter, summed over the folds, with other arithmetic.
COUNTER_TOLERANCE = 1.0
#: A score may lose this many times its tolerance with other arithmetic.
SCORE_SLACK = 2.0
#: A larger relative fall of an objective means that the problem has changed.
MAX_OBJECTIVE_FALL = 0.1
#: An objective may lie below a dual value by this relative difference, due to rounding.
DUAL_ROUNDING = 1e-6
#: A counter may grow by this factor with equal arithmetic if other parameters were chosen.
OTHER_WORK_FACTOR = 5.0
#: With other arithmetic, a counter of one cell may differ by `OTHER_WORK_FACTOR` and this number: a
#: few checks or passes may become none, or several.
COUNTER_SLACK = 10
#: A score of one cell may differ by this many standard errors with other arithmetic.
MAX_STANDARD_ERRORS = 3.0
#: A score may differ by this many percentage points more if its search chose other parameters.
OTHER_PARAMS_SLACK_PCT = 10.0
#: Largest growth of the peak memory if every fold shows it, and the MiB that don't count.
MAX_MEMORY_GROWTH, MEMORY_SLACK_MB = 4.0, 4.0
#: Metrics that count work.
_COUNTED = ("n_iter", "unconverged_fits")
#: What a comparison can ignore: the option's word, and the kind of the changes.
IGNORABLE = {
    "accuracies": "accuracy",
    "counters": "counter",
    "memory": "memory",
    "objectives": "objective",
    "params": "params",
    "scores": "score",
    "times": "time",
}


def compare_folders(
    base: Side, new: Side, *, slowdown: float | None = None, ignore: Collection[str] = ()
) -> Comparison:
    """Compare every run of `new` with every run of `base`; of races, the medians over each side.

    Parameters
    ----------
    base, new : Side
    slowdown : float or None
        A solver that is slower by this factor, relative to the same reference, is a regression. By
        default the limit of each ratio comes from the spread of the repeats of `base`.
    ignore : collection of str
        Words of `IGNORABLE`; changes of these kinds are left out.

    Returns
    -------
    Comparison
        Covers the cells of both sides, and cells that `new` lost; a note counts the new cells.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the two sides have no cell in common, or `base` has no result.
    svmbench.base.errors.NotComparableError
        If their data, configs, profiles, seeds or settings differ.
    """
    base_cells, new_cells = base.cells, new.cells
    log = ChangeLog()
    check_alike(base, new, log)
    why_not_timed = ""
    if len({cpu for side in (base, new) for run in side.runs for cpu in run.cpus}) > 1:
        why_not_timed = "measured on different CPU models"
        log.leave_out(f"times ({why_not_timed})")
    if not base_cells.keys() & new_cells.keys():
        raise ResultsError(f"nothing to compare: {base.name} and {new.name} have no cell in common")
    _report_lost_results(log, base_cells, new_cells)
    if not log.compared:
        raise ResultsError("nothing to compare: no cell of BASE has a result")
    judge = _Judge(log, base.scores, base.foreign | new.foreign, slowdown, why_not_timed)
    is_exact = True
    for before in base.runs:
        for after in new.runs:
            is_exact &= judge.compare_runs(before, after)
    references = base.reference_solvers | new.reference_solvers
    RatioJudge(log, slowdown, base.repeats, references).compare(
        base_cells, new_cells, why_not_timed
    )
    added = len(new_cells.keys() - base_cells.keys())
    if added:
        log.note(f"{added} cells are new and were not compared")
        log.leave_out(f"{added} new cells")
    order = ("worse", "different", "better")
    ignored = {IGNORABLE[word] for word in ignore}
    if ignore:
        log.leave_out(f"{', '.join(sorted(ignore))} (ignored)")
    changes = sorted(
        (change for change in log.changes.values() if change.kind not in ignored),
        key=lambda change: order.index(change.verdict),
    )
    return Comparison(
        tuple(changes),
        {kind: len(where) for kind, where in log.compared.items() if kind not in ignored},
        tuple(log.notes),
        is_stale=base.is_baseline
        and is_exact
        and (added > 0 or any(change.kind not in ("time", "memory") for change in changes)),
        not_compared=tuple(log.left_out),
    )


def compare_cell(
    base: ComparedCell,
    new: ComparedCell,
    scores: Mapping[str, Mapping[str, Any]],
    *,
    is_exact: bool,
) -> tuple[list[Change], int]:
    """Compare one cell with the same cell of another run in all but its times.

    Parameters
    ----------
    base, new : ComparedCell
    scores : dict of str to dict
        By metric: direction and tolerance.
    is_exact : bool
        Whether both were computed by equal arithmetic. With other arithmetic, only a value beyond
        the gate's tolerances has moved, and a single cell has wider ones than the mean of folds:
        `MAX_STANDARD_ERRORS` of a score, `OTHER_WORK_FACTOR` and `COUNTER_SLACK` of a counter.

    Returns
    -------
    list of Change
        What moved, for the better or the worse.
    int
        How many values were compared.
    """
    where = at_fold(where_of(group_of(base)), base["fold"])
    if new["status"] != "ok":
        return [Change("worse", "result", where, "status", "ok", new["status"])], 1
    log = ChangeLog()
    judge = _Judge(log, scores)
    judge.exact = is_exact
    judge.compare_folds(where, [(None, base, new)])
    changes = [
        change
        for change in log.changes.values()
        if is_exact or _is_beyond_chance(change, base, new)
    ]
    return changes, sum(map(len, log.compared.values()))


def _is_beyond_chance(change: Change, base: ComparedCell, new: ComparedCell) -> bool:
    """Return False for a change of one cell that other arithmetic may cause."""
    if change.verdict == "different":
        return False
    if change.kind == "counter":
        low, high = sorted((change.base or 0, change.new or 0))
        return bool(high > OTHER_WORK_FACTOR * low + COUNTER_SLACK)
    metric = change.what.partition(":")[0]
    n_rows = base["metrics"].get("n_train" if metric.startswith(TRAIN_PREFIX) else "n_test")
    is_share = metric.endswith("_pct") and change.new is not None
    if is_share and n_rows:
        share = min(max(change.base / 100.0, 0.0), 1.0)
        # The second term allows one row of error beside a score of 0 or 100 %.
        standard_error = 100.0 * math.sqrt((share * (1.0 - share) + 1.0 / n_rows) / n_rows)
        allowed = MAX_STANDARD_ERRORS * standard_error
        allowed += OTHER_PARAMS_SLACK_PCT if base["params"] != new["params"] else 0.0
        return bool(abs(change.new - change.base) > allowed)
    return True


def _folds_of(run: SideRun) -> dict[tuple[Any, ...], dict[int | None, ComparedCell]]:
    """Return the folds with a result of each measurement."""
    groups: dict[tuple[Any, ...], dict[int | None, ComparedCell]] = {}
    for key, cell in run.cells.items():
        if cell["status"] == "ok":
            groups.setdefault(key[:-1], {})[key[-1]] = cell
    return groups


def _report_lost_results(
    log: ChangeLog,
    base: Mapping[Any, list[ComparedCell]],
    new: Mapping[Any, list[ComparedCell]],
) -> None:
    """Report cells that had a result and have none."""
    for (*group, fold), runs in base.items():
        if all(run["status"] != "ok" for run in runs):
            continue
        where = at_fold(where_of(tuple(group)), fold)
        log.count("result", where, "status")
        status = _worst_status(new.get((*group, fold), []))
        if status != "ok":
            log.add("worse", "result", where, "status", "ok", status)


class _Judge:
    """Finds the changes between two runs, but for the ratios of races.

    Parameters
    ----------
    log : ChangeLog
        Collects the changes.
    scores : dict of str to dict
        By metric: direction and tolerance.
    foreign : frozenset of str
        Classes and programs of others: their counters alone are no regression.
    slowdown : float or None
        The limit of ratios, for the trend of wall times.
    why_not_timed : str
        Why times can't be compared; empty if they can.
    """

    def __init__(
        self,
        log: ChangeLog,
        scores: Mapping[str, Mapping[str, Any]],
        foreign: frozenset[str] = frozenset(),
        slowdown: float | None = None,
        why_not_timed: str = "",
    ) -> None:
        self.log, self.scores, self.foreign = log, scores, foreign
        self.slowdown, self.why_not_timed = slowdown, why_not_timed
        #: Whether the two runs have equal arithmetic.
        self.exact = True
        self.trends = Trends()

    def compare_runs(self, base: SideRun, new: SideRun) -> bool:
        """Compare two runs but for ratios of races; return True if their arithmetic is equal."""
        self.exact = bool(base.arithmetic) and base.arithmetic == new.arithmetic
        self.trends = Trends()
        if not self.exact:
            self.log.note(_other_arithmetic(base.arithmetic, new.arithmetic))
            self.log.leave_out("counters and objectives exactly (other arithmetic)")
        counterparts = _folds_of(new)
        for group, folds in _folds_of(base).items():
            other = counterparts.get(group, {})
            both = [(fold, cell, other[fold]) for fold, cell in folds.items() if fold in other]
            if both:
                self.compare_folds(where_of(group), both)
        for change in self.trends.worse(self.slowdown or MAX_SLOWDOWN):
            self.log.add("worse", *change)
        grown, number, largest = self.trends.passed_growth()
        if grown and not self.exact:
            self.log.note(
                f"{grown} of {number} counters grew under other arithmetic, by up to"
                f" {largest - 1:.1%}"
            )
        return self.exact

    def compare_folds(
        self, where: str, both: list[tuple[int | None, ComparedCell, ComparedCell]]
    ) -> None:
        """Compare the folds of one measurement."""
        self._scores(where, [base for _, base, _ in both], [new for *_, new in both])
        sums: dict[str, tuple[int, int]] = {}
        solver = both[0][1]["solver"]
        for fold, base, new in both:
            at = at_fold(where, fold)
            if fold is not None and len(both) > 1:
                self._fold_scores(at, base, new)
            self.trends.add_params(are_equal=base["params"] == new["params"])
            if base["params"] != new["params"]:
                self._other_params(at, base, new)
                continue
            self._objectives(at, base, new)
            self._ends(at, base, new)
            gone = self._vanished(at, base, new)
            self._counters(at, base["counters"], new["counters"], sums, gone, solver)
            counted = _counts(base, _COUNTED)
            self._counters(at, counted, _counts(new, counted), sums, (), solver)
        self._costs(where, [(base, new) for _, base, new in both])
        for name, (total, now) in sums.items():
            if not self._is_foreign(name, solver):
                self.trends.add_counter(total, now)
            if now > (1.0 + COUNTER_TOLERANCE) * max(total, 1):
                self._add_counter("worse", where, name, solver, (total, now))
            elif total > (1.0 + COUNTER_TOLERANCE) * max(now, 1):
                self._add_counter("better", where, name, solver, (total, now))

    def _counters(
        self,
        where: str,
        base: Mapping[str, int],
        new: Mapping[str, int],
        sums: dict[str, tuple[int, int]],
        gone: Collection[str],
        solver: str | None,
    ) -> None:
        """Compare the counters of two fits; with other arithmetic, add them to `sums`."""
        for name in {**base, **new}:
            before, after = base.get(name), new.get(name)
            self.log.count("counter", where, name)
            if name.partition(":")[2] in gone and after is not None:
                continue
            if before is None or after is None:
                verdict = "worse" if after is None else "different"
                self._add_counter(verdict, where, name, solver, (before, after))
            elif self.exact and before != after:
                verdict = "worse" if after > before else "better"
                self._add_counter(verdict, where, name, solver, (before, after))
            elif not self.exact:
                total, now = sums.get(name, (0, 0))
                sums[name] = total + before, now + after

    def _is_foreign(self, name: str, solver: str | None) -> bool:
        """Return whether a metric or counter of a cell is of a class or program of others."""
        return (name.partition(":")[2] or solver) in self.foreign

    def _add_counter(
        self,
        verdict: str,
        where: str,
        name: str,
        solver: str | None,
        values: tuple[int | None, int | None],
    ) -> None:
        """Add a changed counter, which alone is no regression of a class or program of others.

        A build that stops later counts more, and is more exact. Its time, objective and accuracy
        are judged, and so is a fit that no longer converges.
        """
        if self._is_foreign(name, solver) and name != "unconverged_fits":
            verdict = "different"
        self.log.add(verdict, "counter", where, name, *values)

    def _ends(self, where: str, base: ComparedCell, new: ComparedCell) -> None:
        """Compare why two fits with the same parameters ended, and their warnings."""
        if "stop_reason" not in base or "stop_reason" not in new:
            return
        before, after = base["stop_reason"], new["stop_reason"]
        if before != after:
            self.log.add("different", "result", where, "stop reason", before, after)
        warned, warns = (sorted(side.get("warnings") or ()) for side in (base, new))
        if warned != warns:
            is_more = self.exact and len(warns) > len(warned)
            verdict = "worse" if is_more else "different"
            self.log.add(verdict, "result", where, "warnings", "; ".join(warned), "; ".join(warns))

    def _costs(self, where: str, both: list[tuple[ComparedCell, ComparedCell]]) -> None:
        """Compare the times and the memory of a measurement with folds, outside races.

        Other programs may lengthen one short measurement, so that every fold must have grown. They
        lengthen wall times much more, which are only judged over all measurements together.
        """
        alike = [pair for pair in both if pair[0]["params"] == pair[1]["params"]]
        for name in (*CPU_TIMES, *WALL_TIMES, MEMORY):
            values = [[side["metrics"].get(name) for side in pair] for pair in alike]
            is_memory = name == MEMORY
            is_known = len(values) > 1 and all(before is not None for before, _ in values)
            if not is_known or (self.why_not_timed and not is_memory):
                continue
            kind = "memory" if is_memory else "time"
            self.log.count(kind, where, name)
            known = [
                (before, after)
                for before, after in values
                if before is not None and after is not None
            ]
            if len(known) < len(values):
                self.log.add("worse", kind, where, name, values[0][0], None)
            elif name in WALL_TIMES:
                for before, after in known:
                    self.trends.add_wall_time(name, before, after)
            else:
                limit, slack = (
                    (MAX_MEMORY_GROWTH, MEMORY_SLACK_MB) if is_memory else (MAX_CPU_GROWTH, 0.0)
                )
                if all(after > limit * before + slack for before, after in known):
                    before, after = (sum(pair[i] for pair in known) for i in (0, 1))
                    how = "as much" if is_memory else "slower"
                    grown = f"{after / before:.3g} times {how}" if before else ""
                    self.log.add("worse", kind, where, name, before, after, grown)

    def _loss(self, name: str, before: float, after: float) -> tuple[float, float]:
        """Return the loss of a score, and the largest allowed loss."""
        facts = self.scores[name]
        loss = after - before if facts["better"] == "lower" else before - after
        slack = (1.0 if self.exact else SCORE_SLACK) * facts["tolerance"]
        return loss, slack * (abs(before) if facts.get("relative") else 1.0)

    def _scores(self, where: str, base: list[ComparedCell], new: list[ComparedCell]) -> None:
        for name in self.scores:
            before, after = _mean(base, name), _mean(new, name)
            if before is None:
                continue
            kind = kind_of_score(name)
            self.log.count(kind, where, name)
            if after is None:
                self.log.add("worse", kind, where, name, before, after)
                continue
            loss, allowed = self._loss(name, before, after)
            self.trends.add_score(name, before, after, loss, allowed)
            if abs(loss) > min(allowed, OBJECTIVE_ROUNDING * abs(before)):
                verdict = "different" if abs(loss) <= allowed else "worse" if loss > 0 else "better"
                self.log.add(verdict, kind, where, name, before, after)

    def _fold_scores(self, where: str, base: ComparedCell, new: ComparedCell) -> None:
        """Report a fold that lost more than a mean may lose; other folds may hide it in the mean.

        It is a regression if the arithmetic is equal. With other arithmetic, one row of a small
        fold may cause such a loss.
        """
        verdict = "worse" if self.exact else "different"
        for name in self.scores:
            before, after = base["metrics"].get(name), new["metrics"].get(name)
            if before is not None and after is not None:
                loss, allowed = self._loss(name, before, after)
                if loss > allowed:
                    self.log.add(verdict, kind_of_score(name), where, name, before, after)

    def _other_params(self, where: str, base: ComparedCell, new: ComparedCell) -> None:
        """Compare the work of two fits with different parameters, if the arithmetic is equal.

        With other arithmetic, a search may choose 16 times the C, which takes 20 times the work.
        """
        chosen = [json.dumps(side["params"]) for side in (base, new)]
        self.log.add("different", "params", where, "chosen parameters", *chosen)
        if not self.exact:
            self.log.note("objective and work are not compared where parameters differ")
            self.log.leave_out("objective and work where parameters differ")
            return
        self.log.note(
            f"where parameters differ, a counter counts as worse only above"
            f" {OTHER_WORK_FACTOR:g} times the old one"
        )
        for name, count in base["counters"].items():
            counted = new["counters"].get(name)
            if counted is None or counted > OTHER_WORK_FACTOR * max(count, 1):
                self._add_counter("worse", where, name, base["solver"], (count, counted))

    def _objectives(self, where: str, base: ComparedCell, new: ComparedCell) -> None:
        """Compare the objectives of two fits with the same parameters on the same data."""
        for name, before in base["metrics"].items():
            metric, _, racer = name.partition(":")
            after = new["metrics"].get(name)
            if metric == "dual_objective" and before is not None:
                self._dual(where, name, before, after)
            if metric != "objective" or before is None:
                continue
            self.log.count("objective", where, name)
            is_foreign = self._is_foreign(name, base["solver"])
            same_work = self.exact and base["counters"] == new["counters"] and not is_foreign
            allowed = (OBJECTIVE_ROUNDING if same_work else OBJECTIVE_TOLERANCE) * abs(before)
            if after is None:
                self.log.add("worse", "objective", where, name, before, after)
                continue
            self.trends.add_objective(before, after)
            # Both dual values are lower bounds of the same problem.
            duals = [
                side["metrics"].get(f"dual_objective:{racer}".rstrip(":")) for side in (base, new)
            ]
            dual = max((value for value in duals if value is not None), default=None)
            if dual is not None and dual - after > DUAL_ROUNDING * abs(dual):
                self.log.add(
                    "worse", "objective", where, f"{name}, below a dual value", dual, after
                )
            elif before - after > MAX_OBJECTIVE_FALL * abs(before) and not is_foreign:
                what = f"{name}, too low for the same problem"
                self.log.add("worse", "objective", where, what, before, after)
            elif after - before > allowed:
                self.log.add("worse", "objective", where, name, before, after)
            elif before - after > allowed:
                self.log.add("better", "objective", where, name, before, after)
            elif self.exact and abs(after - before) > OBJECTIVE_ROUNDING * abs(before):
                self.log.add("different", "objective", where, name, before, after)

    def _dual(self, where: str, name: str, before: float, after: float | None) -> None:
        """Report a dual value that was lost, or that differs though the arithmetic is equal."""
        if after is None:
            self.log.add("worse", "objective", where, name, before, after)
        elif self.exact and abs(after - before) > OBJECTIVE_ROUNDING * abs(before):
            self.log.add("different", "objective", where, name, before, after)

    def _vanished(self, where: str, base: ComparedCell, new: ComparedCell) -> set[str]:
        """Report a fit that counted work before and counts none now.

        Returns the names of such solvers of a race; an empty name without a race.
        """
        gone = set()
        for racer in sorted({name.partition(":")[2] for name in base["counters"]}):
            before, after = (
                sum(n for name, n in side["counters"].items() if name.partition(":")[2] == racer)
                for side in (base, new)
            )
            if before > 0 and after == 0 and (racer or base["solver"]) not in self.foreign:
                what = " of ".join(filter(None, ("all counters", racer)))
                self.log.add("worse", "counter", where, what, before, after)
                gone.add(racer)
        return gone


def _counts(cell: ComparedCell, names: Iterable[str]) -> dict[str, int]:
    """Return the metrics of a cell that count work, of those with these names."""
    counts = {name: cell["metrics"].get(name) for name in names}
    return {name: int(value) for name, value in counts.items() if value is not None}


def _other_arithmetic(base: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return a sentence about the differences in arithmetic and the wider tolerances."""
    moved = [
        f"{name} ({base.get(name)} and {new.get(name)})"
        for name in {**base, **new}
        if base.get(name) != new.get(name)
    ]
    what = f"{', '.join(moved)} differ" if base and new else "a run has several arithmetics"
    return (
        f"{what}: the counters of a measurement may grow by {COUNTER_TOLERANCE:.0%}, objectives by"
        f" {OBJECTIVE_TOLERANCE:.0%}"
    )


def _worst_status(runs: list[ComparedCell]) -> str:
    if not runs:
        return "none"
    return next((str(run["status"]) for run in runs if run["status"] != "ok"), "ok")


def _mean(cells: Iterable[ComparedCell], name: str) -> float | None:
    values = [cell["metrics"].get(name) for cell in cells]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None
