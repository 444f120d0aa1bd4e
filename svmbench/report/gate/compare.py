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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from svmbench.base.errors import NotComparableError, ResultsError
from svmbench.report.gate.sides import (
    CPU_TIMES,
    WALL_TIMES,
    ComparedCell,
    Side,
    SideRun,
    at_fold,
    group_of,
    read_side,
    where_of,
    write_baseline,
)
from svmbench.report.gate.trends import Trends, kind_of_score
from svmbench.report.reading.records import MEMORY, TRAIN_PREFIX

__all__ = [
    "Change",
    "Comparison",
    "Side",
    "SideRun",
    "compare_cell",
    "compare_folders",
    "read_side",
    "write_baseline",
]

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
#: A solver that is slower by this factor, relative to the same reference, is a regression, where no
#: repeats tell the spread of the ratio.
MAX_SLOWDOWN = 1.5
#: From so many repeats on, the limit of a ratio comes from their spread, within these bounds.
MIN_JUDGED_REPEATS, MIN_SLOWDOWN, MAX_MEASURED_SLOWDOWN = 5, 1.2, 4.0
#: Largest growth of a CPU time outside races if every fold shows it.
MAX_CPU_GROWTH = 5.0
#: Largest growth of the peak memory if every fold shows it, and the MiB that don't count.
MAX_MEMORY_GROWTH, MEMORY_SLACK_MB = 4.0, 4.0
#: A ratio of times changes because of its reference, a solver outside the catalogue, if the
#: reference explains at least this share of the change.
CLEAR_CAUSE = 0.8
#: Metrics that count work.
_COUNTED = ("n_iter", "unconverged_fits")
#: The wall time of a racer is reported if it grew this many times more than its CPU time, and by
#: this many seconds more. It isn't judged: other programs lengthen wall times as well.
WALL_GROWTH, WALL_SLACK_S = 2.0, 0.02
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


@dataclass(frozen=True)
class Change:
    """One changed value.

    Attributes
    ----------
    verdict : str
        ``"worse"`` (a regression), ``"better"`` or ``"different"``.
    kind : str
        ``"result"``, ``"accuracy"``, ``"score"``, ``"objective"``, ``"counter"``, ``"time"``,
        ``"memory"`` or ``"params"``.
    where : str
        Block, data set and solver.
    what : str
        The metric, counter or pair of solvers.
    base, new : float, str or None
        The two values; accuracies in per cent; of races, the CPU time of the reference over that
        of the solver, so that a smaller ratio is slower.
    moved : str
        For a ratio of times: the solver whose time changed, and by how much; else "".
    """

    verdict: str
    kind: str
    where: str
    what: str
    base: Any
    new: Any
    moved: str = ""

    @property
    def shown(self) -> list[str]:
        """The two values as text, with as many digits as show their difference."""
        for digits in (6, 12, 17):
            shown = [
                "-"
                if value is None
                else f"{value:.{digits}g}"
                if isinstance(value, float)
                else str(value)
                for value in (self.base, self.new)
            ]
            if shown[0] != shown[1]:
                break
        return shown


@dataclass(frozen=True)
class Comparison:
    """All changes between two sides, and notes on values that were not compared.

    Attributes
    ----------
    changes : tuple of Change
        Regressions first.
    compared : dict of str to int
        Number of compared values of each kind.
    notes : tuple of str
        Values that were not compared, with reasons, one sentence each.
    is_stale : bool
        True if the base is a kept baseline that the new side doesn't match: at equal arithmetic, a
        value other than a time or a memory differs, even for the better, or the new side has more
        cells.
    not_compared : tuple of str
        What was not compared, or only loosely, with reasons in brackets.
    """

    changes: tuple[Change, ...]
    compared: Mapping[str, int]
    notes: tuple[str, ...]
    is_stale: bool = False
    not_compared: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The regressions."""
        return tuple(change for change in self.changes if change.verdict == "worse")

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "regressions": len(self.regressions),
            "stale": self.is_stale,
            "compared": dict(self.compared),
            "changes": [asdict(change) for change in self.changes],
            "notes": list(self.notes),
            "not_compared": list(self.not_compared),
        }


def compare_folders(
    base: Side, new: Side, *, slowdown: float | None = None, ignore: Collection[str] = ()
) -> Comparison:
    """Compare every run of `new` with every run of `base`, and the medians of their times.

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
        If their data, configs, profiles or seeds differ.
    """
    ours, theirs = base.cells, new.cells
    judge = _Judge(
        slowdown, base.scores, base.repeats, base.reference_solvers | new.reference_solvers
    )
    judge.foreign = base.foreign | new.foreign
    judge.check_alike(base, new)
    judge.set_timed(base, new)
    if not ours.keys() & theirs.keys():
        raise ResultsError(f"nothing to compare: {base.name} and {new.name} have no cell in common")
    judge.results(ours, theirs)
    if not judge.compared:
        raise ResultsError("nothing to compare: no cell of BASE has a result")
    is_exact = True
    for before in base.runs:
        for after in new.runs:
            is_exact &= judge.pair(before, after)
    judge.times(ours, theirs)
    added = len(theirs.keys() - ours.keys())
    if added:
        judge.notes[f"{added} cells are new and were not compared"] = None
        judge.left_out[f"{added} new cells"] = None
    order = ("worse", "different", "better")
    ignored = {IGNORABLE[word] for word in ignore}
    if ignore:
        judge.left_out[f"{', '.join(sorted(ignore))} (ignored)"] = None
    changes = sorted(
        (change for change in judge.changes.values() if change.kind not in ignored),
        key=lambda change: order.index(change.verdict),
    )
    return Comparison(
        tuple(changes),
        {kind: len(where) for kind, where in judge.compared.items() if kind not in ignored},
        tuple(judge.notes),
        is_stale=base.is_baseline
        and is_exact
        and (added > 0 or any(change.kind not in ("time", "memory") for change in changes)),
        not_compared=tuple(judge.left_out),
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
    judge = _Judge(None, scores)
    judge.exact = is_exact
    judge._group(where, [(None, base, new)])
    changes = [
        change
        for change in judge.changes.values()
        if is_exact or _is_beyond_chance(change, base, new)
    ]
    return changes, sum(map(len, judge.compared.values()))


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


class _Judge:
    """Collector of changes."""

    def __init__(
        self,
        slowdown: float | None,
        scores: Mapping[str, Mapping[str, Any]],
        repeats: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
        reference_solvers: frozenset[str] = frozenset(),
    ) -> None:
        self.slowdown = slowdown
        self.scores = scores
        self.repeats = repeats or {}
        self.reference_solvers = reference_solvers
        #: Classes and programs of others: their counters alone are no regression.
        self.foreign: frozenset[str] = frozenset()
        self.why_not_timed = ""
        # Several pairs of runs may find the same change: report it once.
        self.changes: dict[tuple[str, ...], Change] = {}
        self.compared: dict[str, set[tuple[str, str]]] = {}
        self.notes: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self.exact = True
        self.trends = Trends()

    # ---------------------------------------------------------------- what must be the same

    def check_alike(self, base: Side, new: Side) -> None:
        """Raise an error for runs of different experiments or data; note missing facts."""
        sides = [(name, run) for name, side in (("BASE", base), ("NEW", new)) for run in side.runs]
        for fact in ("config", "profile", "seed"):
            self._check_fact_alike(fact, [(name, run.identity[fact]) for name, run in sides])
        contents: dict[tuple[Any, ...], list[tuple[str, Any]]] = {}
        for name, run in sides:
            for (block, dataset, *_), cell in run.cells.items():
                if cell["status"] == "ok":
                    data = (name, cell.get("data_sha256"))
                    contents.setdefault((block, dataset), []).append(data)
        for (block, dataset), digests in contents.items():
            self._check_fact_alike(
                f"content of the data set {dataset} ({block})", digests, "data sets"
            )
        self._check_settings_alike([(name, run.settings) for name, run in sides])

    def _check_settings_alike(self, sides: list[tuple[str, Mapping[str, Any]]]) -> None:
        """Raise an error if a block or one of its solvers is set otherwise on another side."""
        known = [(name, settings) for name, settings in sides if settings]
        if 0 < len(known) < len(sides):
            self._unstated(next(name for name, settings in sides if not settings), "settings")
        for other, settings in known[1:]:
            (first, ours), theirs = known[0], settings
            for block in ours.keys() & theirs.keys():
                if difference := _first_difference(ours[block], theirs[block]):
                    setting, ours_value, theirs_value = difference
                    raise NotComparableError(
                        f"nothing to compare: in the block {block}, {setting} is {ours_value} in"
                        f" {first} and {theirs_value} in {other}"
                    )

    def set_timed(self, base: Side, new: Side) -> None:
        """Find out if times can be compared."""
        models = {cpu for side in (base, new) for run in side.runs for cpu in run.cpus}
        if len(models) > 1:
            self.why_not_timed = "measured on different CPU models"
            self.left_out[f"times ({self.why_not_timed})"] = None

    def _unstated(self, side: str, fact: str, group: str = "") -> None:
        """Note that a side doesn't state a fact."""
        self.notes[f"{side} doesn't state for every run: the {fact}"] = None
        self.left_out[f"{group or fact} (not stated in {side})"] = None

    def _check_fact_alike(self, fact: str, values: list[tuple[str, Any]], group: str = "") -> None:
        known = {str(value): side for side, value in reversed(values) if value is not None}
        if len(known) > 1:
            (value, first), (other_value, second), *_ = reversed(known.items())
            raise NotComparableError(
                f"nothing to compare: the {fact} is {value} in {first} and {other_value} in"
                f" {second}"
            )
        silent = [side for side, value in values if value is None]
        if known and silent:
            self._unstated(silent[0], fact, group)

    # ---------------------------------------------------------------- one by one

    def results(
        self, base: Mapping[Any, list[ComparedCell]], new: Mapping[Any, list[ComparedCell]]
    ) -> None:
        """Report cells that had a result and have none."""
        for (*group, fold), runs in base.items():
            if all(run["status"] != "ok" for run in runs):
                continue
            where = at_fold(where_of(tuple(group)), fold)
            self._count("result", where, "status")
            status = _worst_status(new.get((*group, fold), []))
            if status != "ok":
                self._add("worse", "result", where, "status", "ok", status)

    def pair(self, base: SideRun, new: SideRun) -> bool:
        """Compare two runs except their times; return True if their arithmetic is equal."""
        self.exact = bool(base.arithmetic) and base.arithmetic == new.arithmetic
        self.trends = Trends()
        if not self.exact:
            self.notes[_other_arithmetic(base.arithmetic, new.arithmetic)] = None
            self.left_out["counters and objectives exactly (other arithmetic)"] = None
        counterparts = _folds_of(new)
        for group, folds in _folds_of(base).items():
            other = counterparts.get(group, {})
            both = [(fold, cell, other[fold]) for fold, cell in folds.items() if fold in other]
            if both:
                self._group(where_of(group), both)
        for change in self.trends.worse(self.slowdown or MAX_SLOWDOWN):
            self._add("worse", *change)
        grown, number, largest = self.trends.passed_growth()
        if grown and not self.exact:
            self.notes[
                f"{grown} of {number} counters grew under other arithmetic, by up to"
                f" {largest - 1:.1%}"
            ] = None
        return self.exact

    def _group(self, where: str, both: list[tuple[int | None, ComparedCell, ComparedCell]]) -> None:
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
            self._count("counter", where, name)
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
        self._add(verdict, "counter", where, name, *values)

    def _ends(self, where: str, base: ComparedCell, new: ComparedCell) -> None:
        """Compare why two fits with the same parameters ended, and their warnings."""
        if "stop_reason" not in base or "stop_reason" not in new:
            return
        before, after = base["stop_reason"], new["stop_reason"]
        if before != after:
            self._add("different", "result", where, "stop reason", before, after)
        warned, warns = (sorted(side.get("warnings") or ()) for side in (base, new))
        if warned != warns:
            is_more = self.exact and len(warns) > len(warned)
            verdict = "worse" if is_more else "different"
            self._add(verdict, "result", where, "warnings", "; ".join(warned), "; ".join(warns))

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
            self._count(kind, where, name)
            known = [
                (before, after)
                for before, after in values
                if before is not None and after is not None
            ]
            if len(known) < len(values):
                self._add("worse", kind, where, name, values[0][0], None)
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
                    self._add("worse", kind, where, name, before, after, grown)

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
            self._count(kind, where, name)
            if after is None:
                self._add("worse", kind, where, name, before, after)
                continue
            loss, allowed = self._loss(name, before, after)
            self.trends.add_score(name, before, after, loss, allowed)
            if abs(loss) > min(allowed, OBJECTIVE_ROUNDING * abs(before)):
                verdict = "different" if abs(loss) <= allowed else "worse" if loss > 0 else "better"
                self._add(verdict, kind, where, name, before, after)

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
                    self._add(verdict, kind_of_score(name), where, name, before, after)

    def _other_params(self, where: str, base: ComparedCell, new: ComparedCell) -> None:
        """Compare the work of two fits with different parameters, if the arithmetic is equal.

        With other arithmetic, a search may choose 16 times the C, which takes 20 times the work.
        """
        chosen = [json.dumps(side["params"]) for side in (base, new)]
        self._add("different", "params", where, "chosen parameters", *chosen)
        if not self.exact:
            self.notes["objective and work are not compared where parameters differ"] = None
            self.left_out["objective and work where parameters differ"] = None
            return
        self.notes[
            f"where parameters differ, a counter counts as worse only above"
            f" {OTHER_WORK_FACTOR:g} times the old one"
        ] = None
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
            self._count("objective", where, name)
            is_foreign = self._is_foreign(name, base["solver"])
            same_work = self.exact and base["counters"] == new["counters"] and not is_foreign
            allowed = (OBJECTIVE_ROUNDING if same_work else OBJECTIVE_TOLERANCE) * abs(before)
            if after is None:
                self._add("worse", "objective", where, name, before, after)
                continue
            self.trends.add_objective(before, after)
            # Both dual values are lower bounds of the same problem.
            duals = [
                side["metrics"].get(f"dual_objective:{racer}".rstrip(":")) for side in (base, new)
            ]
            dual = max((value for value in duals if value is not None), default=None)
            if dual is not None and dual - after > DUAL_ROUNDING * abs(dual):
                self._add("worse", "objective", where, f"{name}, below a dual value", dual, after)
            elif before - after > MAX_OBJECTIVE_FALL * abs(before) and not is_foreign:
                what = f"{name}, too low for the same problem"
                self._add("worse", "objective", where, what, before, after)
            elif after - before > allowed:
                self._add("worse", "objective", where, name, before, after)
            elif before - after > allowed:
                self._add("better", "objective", where, name, before, after)
            elif self.exact and abs(after - before) > OBJECTIVE_ROUNDING * abs(before):
                self._add("different", "objective", where, name, before, after)

    def _dual(self, where: str, name: str, before: float, after: float | None) -> None:
        """Report a dual value that was lost, or that differs though the arithmetic is equal."""
        if after is None:
            self._add("worse", "objective", where, name, before, after)
        elif self.exact and abs(after - before) > OBJECTIVE_ROUNDING * abs(before):
            self._add("different", "objective", where, name, before, after)

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
                self._add("worse", "counter", where, what, before, after)
                gone.add(racer)
        return gone

    # ---------------------------------------------------------------- times

    def times(
        self, base: Mapping[Any, list[ComparedCell]], new: Mapping[Any, list[ComparedCell]]
    ) -> None:
        """Compare the ratios of each pair: the speed of the first relative to its reference."""
        trends = Trends()
        raced = {}
        for key, runs in base.items():
            ours = [run for run in runs if run["status"] == "ok"]
            theirs = [run for run in new.get(key, []) if run["status"] == "ok"]
            ratio_names = {name for run in ours for name in run["metrics"] if name[:6] == "ratio:"}
            if ratio_names and theirs:
                raced[key] = (sorted(ratio_names), ours, theirs)
        if not raced and self.slowdown is not None:
            self.notes[
                "no race in these runs: --slowdown has no effect, and CPU times count only beyond"
                f" {MAX_CPU_GROWTH:g} times as long; for speed, race the solvers"
            ] = None
        if raced and self.why_not_timed:
            self.notes[f"times not compared: {self.why_not_timed}"] = None
            return
        moves = {key: _moves(ours, theirs) for key, (_, ours, theirs) in raced.items()}
        for (*group, fold), (_, ours, theirs) in raced.items():
            self._waits(at_fold(where_of(tuple(group)), fold), ours, theirs)
        # With several solvers the drift of the machine shows: most of them didn't change.
        each = [move for of_race in moves.values() for move in of_race.values()]
        drift = statistics.median(each) if len(each) > 2 else 0.0
        for (*group, fold), (names, before_runs, after_runs) in raced.items():
            where = at_fold(where_of(tuple(group)), fold)
            if any(run["contended"] for run in [*before_runs, *after_runs]):
                self.notes[f"{where} ran beside other cells: its ratios are less certain"] = None
            moved = {name: move - drift for name, move in moves[*group, fold].items()}
            for name in names:
                before, after = _median(before_runs, name), _median(after_runs, name)
                if before is None:
                    continue
                self._count("time", where, name)
                what = " vs ".join(name.split(":")[1:])
                if before <= 0:
                    sentence = f"{where}: {what}: BASE has the ratio {before:g}"
                    self.notes[f"times not compared: {sentence}"] = None
                    self.left_out[f"time of {what} (no ratio in BASE)"] = None
                elif after is None or after <= 0:
                    self._add("worse", "time", where, what, before, after)
                else:
                    slower, limit = math.log(before / after), math.log(self._limit(where, name))
                    if self._is_turned(name):
                        slower = -slower
                    if abs(slower) > limit:
                        verdict, sentence = self._cause(name, slower, moved)
                        self._add(verdict, "time", where, what, before, after, sentence)
                        slower = abs(slower) * (1 if verdict == "worse" else -1)
                    trends.add_ratio(slower, limit)
        for change in trends.worse(self.slowdown or MAX_SLOWDOWN):
            self._add("worse", *change)

    def _waits(self, where: str, base: list[ComparedCell], new: list[ComparedCell]) -> None:
        """Report racers whose wall time grew much more than their CPU time, as by sleeping."""
        cpu_growths = _moves(base, new)
        for racer, growth in _moves(base, new, "train_time_s").items():
            walls, cpus = (
                [_median(runs, f"{metric}:{racer}") or 0.0 for runs in (base, new)]
                for metric in ("train_time_s", "cpu_time_s")
            )
            excess = growth - cpu_growths.get(racer, growth)
            added = (walls[1] - cpus[1]) - (walls[0] - cpus[0])
            if excess > math.log(WALL_GROWTH) and added > WALL_SLACK_S:
                reason = f"{racer}: {math.exp(growth):.3g} times the wall time,"
                reason += f" {math.exp(growth - excess):.3g} times the CPU time"
                self._add(
                    "different", "time", where, f"wall time of {racer}", walls[0], walls[1], reason
                )
                self.notes[
                    "a wall time grew much more than its CPU time: the solver may sleep or wait, or"
                    " other programs ran beside it; only CPU times are judged"
                ] = None
                self.left_out[f"wall time of {racer} (it moved; judged is CPU time)"] = None

    def _limit(self, where: str, name: str) -> float:
        """Return how many times slower a ratio may become.

        It is the square of the largest factor between two of the base's repeats, within bounds.
        """
        if self.slowdown is not None:
            return self.slowdown
        repeats = self.repeats.get(where, {}).get(name, ())
        if len(repeats) < MIN_JUDGED_REPEATS or min(repeats) <= 0:
            return MAX_SLOWDOWN
        spread = (max(repeats) / min(repeats)) ** 2
        return float(min(max(spread, MIN_SLOWDOWN), MAX_MEASURED_SLOWDOWN))

    def _is_turned(self, name: str) -> bool:
        """Return True for a pair whose first solver is the reference, by the catalogue."""
        _, first, second = name.split(":")
        return first in self.reference_solvers and second not in self.reference_solvers

    def _cause(self, name: str, slower: float, moved: Mapping[str, float]) -> tuple[str, str]:
        """Return the verdict on a ratio that changed, and which solver moved by how much.

        Parameters
        ----------
        name : str
            The metric.
        slower : float
            Logarithm of how many times slower the solver became, relative to its reference.
        moved : dict of str to float
            Logarithm of the growth of each solver's CPU time, without the drift of the machine.
        """
        solver, reference = name.split(":")[1:]
        if self._is_turned(name):
            solver, reference = reference, solver
        change, change_of_reference = moved.get(solver), moved.get(reference)
        is_reference = (
            change is not None
            and change_of_reference is not None
            and abs(change_of_reference) > abs(change)
        )
        times = f"{math.exp(abs(slower)):.3g} times"
        who, is_slower = (reference, slower < 0) if is_reference else (solver, slower > 0)
        reason = f"{who} {times} {'slower' if is_slower else 'faster'}"
        verdict = "worse" if slower > 0 else "better"
        if is_reference and reference in self.reference_solvers:
            verdict = "worse" if slower > 0 else "different"
        elif is_reference and is_slower:
            verdict = "worse"
        elif (
            is_reference
            and change_of_reference is not None
            and -change_of_reference > CLEAR_CAUSE * slower
        ):
            verdict = "better"
        return verdict, reason

    def _count(self, kind: str, where: str, what: str) -> None:
        self.compared.setdefault(kind, set()).add((where, what))

    def _add(
        self, verdict: str, kind: str, where: str, what: str, base: Any, new: Any, moved: str = ""
    ) -> None:
        self.changes.setdefault(
            (verdict, kind, where, what), Change(verdict, kind, where, what, base, new, moved)
        )


def _moves(
    base: Iterable[ComparedCell], new: Iterable[ComparedCell], metric: str = "cpu_time_s"
) -> dict[str, float]:
    """Return the logarithm of the growth of each racer's time, where both sides have it."""
    before, after = list(base), list(new)
    logs = {}
    for name in before[0]["metrics"]:
        if name.startswith(f"{metric}:"):
            median_before, median_after = _median(before, name) or 0.0, _median(after, name) or 0.0
            if min(median_before, median_after) > 0:
                logs[name.partition(":")[2]] = math.log(median_after / median_before)
    return logs


def _counts(cell: ComparedCell, names: Iterable[str]) -> dict[str, int]:
    """Return the metrics of a cell that count work, of those with these names."""
    counts = {name: cell["metrics"].get(name) for name in names}
    return {name: int(value) for name, value in counts.items() if value is not None}


def _first_difference(first: Any, second: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Return the place of the first difference of two settings, and its two values.

    A setting of a block that one version doesn't know is no difference.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        names = list({**first, **second}) if path else [name for name in first if name in second]
        for name in names:
            inner = f"{path}.{name}".lstrip(".")
            if difference := _first_difference(first.get(name), second.get(name), inner):
                return difference
        return None
    return None if first == second else (path, json.dumps(first), json.dumps(second))


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


def _median(runs: Iterable[ComparedCell], name: str) -> float | None:
    values = [run["metrics"].get(name) for run in runs]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None


def outcome_line(comparison: Comparison) -> str:
    """Return the outcome in a line: what failed, what was compared, and what was not."""
    worse = comparison.regressions
    outcome = "no regression"
    if worse:
        outcome = f"{len(worse)} regression{'s' if len(worse) > 1 else ''}: {_first(worse)}"
    elif comparison.is_stale and comparison.changes:
        outcome = (
            f"stale baseline, {len(comparison.changes)} values differ: {_first(comparison.changes)}"
        )
    elif comparison.is_stale:
        outcome = "stale baseline, it lacks cells"
    counted = ", ".join(f"{n} {kind}" for kind, n in comparison.compared.items())
    left_out = (
        f"; not compared: {', '.join(comparison.not_compared)}" if comparison.not_compared else ""
    )
    return f"{outcome} (values compared: {counted}){left_out}"


def _first(changes: Sequence[Change]) -> str:
    """Name the first change, and the number of others."""
    first = changes[0]
    others = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{first.where}: {first.moved or first.what}{others}"
