"""Compare the ratios of races, whose limits come from repeats of the base."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from svmbench.report.gate.changes import ChangeLog
from svmbench.report.gate.sides import ComparedCell, at_fold, where_of
from svmbench.report.gate.trends import Trends

#: A solver that is slower by this factor, relative to the same reference, is a regression, where no
#: repeats tell the spread of the ratio.
MAX_SLOWDOWN = 1.5
#: From so many repeats on, the limit of a ratio comes from their spread, within these bounds.
MIN_JUDGED_REPEATS, MIN_SLOWDOWN, MAX_MEASURED_SLOWDOWN = 5, 1.2, 4.0
#: Largest growth of a CPU time outside races if every fold shows it.
MAX_CPU_GROWTH = 5.0
#: A ratio of times changes because of its reference, a solver outside the catalogue, if the
#: reference explains at least this share of the change.
CLEAR_CAUSE = 0.8
#: The wall time of a racer is reported if it grew this many times more than its CPU time, and by
#: this many seconds more. It isn't judged: other programs lengthen wall times as well.
WALL_GROWTH, WALL_SLACK_S = 2.0, 0.02


class RatioJudge:
    """Finds regressions of the ratios of races.

    Parameters
    ----------
    log : ChangeLog
        Collects the changes.
    slowdown : float or None
        The limit of every ratio; None for limits from `repeats`.
    repeats : mapping of str to mapping
        By `race_label` and name of a ratio: the ratio in each of several runs of one version.
    reference_solvers : frozenset of str
        The solvers of other libraries and programs that the catalogue lists.
    """

    def __init__(
        self,
        log: ChangeLog,
        slowdown: float | None,
        repeats: Mapping[str, Mapping[str, Sequence[float]]],
        reference_solvers: frozenset[str],
    ) -> None:
        self.log, self.slowdown = log, slowdown
        self.repeats, self.reference_solvers = repeats, reference_solvers

    def compare(
        self,
        base: Mapping[Any, list[ComparedCell]],
        new: Mapping[Any, list[ComparedCell]],
        why_not_timed: str,
    ) -> None:
        """Compare the ratios of each pair: the speed of the first relative to its reference.

        Parameters
        ----------
        base, new : mapping of tuple to list of ComparedCell
            The records of each cell; see `Side.cells`.
        why_not_timed : str
            Why times can't be compared; empty if they can.
        """
        trends = Trends()
        raced = {}
        for key, runs in base.items():
            before_runs = [run for run in runs if run["status"] == "ok"]
            after_runs = [run for run in new.get(key, []) if run["status"] == "ok"]
            measured = {name for run in before_runs for name in run["metrics"]}
            ratio_names = sorted(name for name in measured if name.startswith("ratio:"))
            if ratio_names and after_runs:
                raced[key] = (ratio_names, before_runs, after_runs)
        if not raced and self.slowdown is not None:
            self.log.note(
                "no race in these runs: --slowdown has no effect, and CPU times count only beyond"
                f" {MAX_CPU_GROWTH:g} times as long; for speed, race the solvers"
            )
        if raced and why_not_timed:
            self.log.note(f"times not compared: {why_not_timed}")
            return
        moves = {
            key: _moves(before_runs, after_runs)
            for key, (_, before_runs, after_runs) in raced.items()
        }
        for (*group, fold), (_, before_runs, after_runs) in raced.items():
            self._waits(at_fold(where_of(tuple(group)), fold), before_runs, after_runs)
        # With several solvers the drift of the machine shows: most of them didn't change.
        each = [move for of_race in moves.values() for move in of_race.values()]
        drift = statistics.median(each) if len(each) > 2 else 0.0
        for (*group, fold), (names, before_runs, after_runs) in raced.items():
            where = at_fold(where_of(tuple(group)), fold)
            if any(run["contended"] for run in [*before_runs, *after_runs]):
                self.log.note(f"{where} ran beside other cells: its ratios are less certain")
            moved = {name: move - drift for name, move in moves[*group, fold].items()}
            for name in names:
                before, after = _median(before_runs, name), _median(after_runs, name)
                if before is None:
                    continue
                self.log.count("time", where, name)
                what = " vs ".join(name.split(":")[1:])
                if before <= 0:
                    sentence = f"{where}: {what}: BASE has the ratio {before:g}"
                    self.log.note(f"times not compared: {sentence}")
                    self.log.leave_out(f"time of {what} (no ratio in BASE)")
                elif after is None or after <= 0:
                    self.log.add("worse", "time", where, what, before, after)
                else:
                    slower, limit = math.log(before / after), math.log(self._limit(where, name))
                    if self._is_turned(name):
                        slower = -slower
                    if abs(slower) > limit:
                        verdict, sentence = self._cause(name, slower, moved)
                        self.log.add(verdict, "time", where, what, before, after, sentence)
                        slower = abs(slower) * (1 if verdict == "worse" else -1)
                    trends.add_ratio(slower, limit)
        for change in trends.worse(self.slowdown or MAX_SLOWDOWN):
            self.log.add("worse", *change)

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
                self.log.add(
                    "different", "time", where, f"wall time of {racer}", walls[0], walls[1], reason
                )
                self.log.note(
                    "a wall time grew much more than its CPU time: the solver may sleep or wait, or"
                    " other programs ran beside it; only CPU times are judged"
                )
                self.log.leave_out(f"wall time of {racer} (it moved; judged is CPU time)")

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

        ==================== =================================== ==========================
        Changed more         Verdict if the solver lost against  Verdict if the solver
                             its reference                       gained on its reference
        ==================== =================================== ==========================
        the solver, unknown  worse                               better
        a library's solver   worse                               different
        our reference        better if its gain explains the     worse (it became slower)
                             loss (`CLEAR_CAUSE`), else worse
        ==================== =================================== ==========================

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
        reference_moved_more = (
            change is not None
            and change_of_reference is not None
            and abs(change_of_reference) > abs(change)
        )
        times = f"{math.exp(abs(slower)):.3g} times"
        who, is_slower = (reference, slower < 0) if reference_moved_more else (solver, slower > 0)
        reason = f"{who} {times} {'slower' if is_slower else 'faster'}"
        verdict = "worse" if slower > 0 else "better"
        if reference_moved_more and reference in self.reference_solvers:
            verdict = "worse" if slower > 0 else "different"
        elif reference_moved_more and is_slower:
            verdict = "worse"
        elif (
            reference_moved_more
            and change_of_reference is not None
            and -change_of_reference > CLEAR_CAUSE * slower
        ):
            verdict = "better"
        return verdict, reason


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


def _median(runs: Iterable[ComparedCell], name: str) -> float | None:
    values = [run["metrics"].get(name) for run in runs]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
