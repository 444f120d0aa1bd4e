"""Compare solvers at certified accuracy: who solves what, in which time, and whose claims are true.

A race whose block asks for `accuracies` (relative gaps of the objective, not shares of correct
predictions) has for each solver the least CPU time in which one of its settings certainly comes
within such a gap of the optimum. Races between the same solvers in one
config make a board. Its tables rank solvers at one accuracy, so that none leads by stopping early.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from svmbench.report.numbers.comparisons import holm, performance_profile
from svmbench.report.numbers.statistics import signed_rank
from svmbench.report.numbers.summary import value_of
from svmbench.report.reading.records import CellResult, Run, split_races

#: Relative gaps of a board, as metrics name them, and the one that ranks its solvers.
ACCURACIES = ("1e-2", "1e-3", "1e-5")
RANKED_AT = "1e-3"
#: A ranking of solvers needs at least this number of problems.
MIN_RANKED_PROBLEMS = 5
#: Level of significance that separates two tiers.
TIER_LEVEL = 0.05
#: Metrics of the least time to an accuracy.
TIME_TO = "cpu_time_to_{}_s"


@dataclass(frozen=True)
class RacedProblem:
    """One problem of a board: a data set in a block, with the times of its solvers.

    Attributes
    ----------
    name, slug : str
        Data set with its swept dimensions; slug of its run.
    times : dict of str to dict of str to (float or None)
        By solver and accuracy the CPU time in seconds; None if no setting reaches the accuracy.
    is_disturbed : bool
        True if other programs shared the CPU.
    """

    name: str
    slug: str
    times: Mapping[str, Mapping[str, float | None]]
    is_disturbed: bool

    def ratio(self, solver: str, accuracy: str = RANKED_AT) -> float | None:
        """Return a solver's time over the shortest one; None if it doesn't reach the accuracy."""
        time = self.times[solver][accuracy]
        known = [times[accuracy] for times in self.times.values()]
        best = min((time for time in known if time is not None), default=None)
        return None if time is None or best is None else time / best


@dataclass(frozen=True)
class CertifiedStanding:
    """A solver on a board.

    Attributes
    ----------
    solver : str
    solved : dict of str to int
        Number of problems that a setting of the solver certainly solves, by accuracy.
    claims, true_claims : int
        Fits at single settings that ended as if they had converged, and those of them that are
        certified to a gap of 1e-2.
    false_on : tuple of str
        Problems with a false claim.
    ratio, low, high : float or None
        CPU time over that of the fastest solver, to the gap that ranks: median and range over the
        problems that it solves; None if it solves none.
    tier : int or None
        1 for the fastest solver and those that are not significantly slower; None if the solver
        solves no problem or the board has fewer than `MIN_RANKED_PROBLEMS`.
    """

    solver: str
    solved: Mapping[str, int]
    claims: int
    true_claims: int
    false_on: tuple[str, ...]
    ratio: float | None
    low: float | None
    high: float | None
    tier: int | None


@dataclass(frozen=True)
class Board:
    """The solvers of races with certified times, the fastest first.

    Attributes
    ----------
    title, config : str
        Title of the first block; config of the races.
    problems : tuple of RacedProblem
    standings : tuple of CertifiedStanding
    """

    title: str
    config: str
    problems: tuple[RacedProblem, ...]
    standings: tuple[CertifiedStanding, ...]

    def profiles(self, accuracy: str) -> dict[str, list[tuple[float, float]]]:
        """Return the performance profile of each solver over the problems of the board."""
        return performance_profile(
            {
                standing.solver: [
                    problem.times[standing.solver][accuracy] for problem in self.problems
                ]
                for standing in self.standings
            }
        )

    @property
    def n_disturbed(self) -> int:
        """Number of problems that were measured beside other programs."""
        return sum(problem.is_disturbed for problem in self.problems)


def boards(runs: Iterable[tuple[str, Run]]) -> list[Board]:
    """Return the boards of all races with certified times.

    Parameters
    ----------
    runs : iterable of (str, Run)
        Runs with their slugs. Of a problem that several runs repeat, the last one counts.
    """
    titles: dict[tuple[str, str], str] = {}
    problems: dict[tuple[str, str], dict[tuple[str, str], RacedProblem]] = {}
    claims: dict[tuple[str, str], dict[tuple[str, str], list[CellResult]]] = {}
    for slug, run in runs:
        for cell in run.cells:
            if not cell.is_race or cell.status != "ok":
                continue
            board, problem_id = (run.name, str(cell.solver)), (cell.block, _problem_name(cell))
            parts = [part for part in split_races([cell]) if part.solver in board[1].split("|")]
            claims.setdefault(board, {})[problem_id] = parts
            times = {str(part.solver): _times(part) for part in parts}
            if all(times.values()):
                disturbed = any(part.disturbed for part in parts)
                problem = RacedProblem(problem_id[1], slug, times, disturbed)
                problems.setdefault(board, {})[problem_id] = problem
                title = run.blocks.get(cell.block, {}).get("title") or cell.block
                titles.setdefault(board, str(title))
    made = []
    for board, by_id in problems.items():
        problems_of_board = tuple(by_id.values())
        standings = _standings(board[1].split("|"), problems_of_board, claims[board])
        made.append(Board(titles[board], board[0], problems_of_board, standings))
    return made


def _problem_name(cell: CellResult) -> str:
    return ", ".join(
        [str(cell.dataset), *(f"{value} {name}" for name, value in cell.dimensions.items())]
    )


def _times(part: CellResult) -> dict[str, float | None]:
    """Return the times of a solver by accuracy; nothing if the race has none."""
    names = {each: TIME_TO.format(each) for each in ACCURACIES}
    if not any(name in part.metrics for name in names.values()):
        return {}
    return {each: value_of(part, name) for each, name in names.items()}


def _standings(
    solvers: Sequence[str],
    problems: Sequence[RacedProblem],
    claims: Mapping[tuple[str, str], Sequence[CellResult]],
) -> tuple[CertifiedStanding, ...]:
    ordered = sorted(solvers, key=lambda name: _median_ratio(name, problems))
    tiers = _tiers(ordered, problems)
    made = []
    for solver in ordered:
        cells = {
            problem_id: part
            for problem_id, parts in claims.items()
            for part in parts
            if part.solver == solver
        }
        claimed = {
            problem_id[1]: cell.convergence_confirmed[solver]
            for problem_id, cell in cells.items()
            if cell.convergence_confirmed
        }
        ratios = [ratio for problem in problems if (ratio := problem.ratio(solver)) is not None]
        made.append(
            CertifiedStanding(
                solver=solver,
                solved={
                    each: sum(problem.times[solver][each] is not None for problem in problems)
                    for each in ACCURACIES
                },
                claims=len(claimed),
                true_claims=sum(claimed.values()),
                false_on=tuple(name for name, is_true in claimed.items() if not is_true),
                ratio=median(ratios) if ratios else None,
                low=min(ratios, default=None),
                high=max(ratios, default=None),
                tier=tiers.get(solver),
            )
        )
    return tuple(made)


def _median_ratio(solver: str, problems: Sequence[RacedProblem]) -> float:
    """Return the median of a solver's ratios to the fastest; an unsolved problem is infinite."""
    return median(math.inf if (ratio := p.ratio(solver)) is None else ratio for p in problems)


def _tiers(ordered: Sequence[str], problems: Sequence[RacedProblem]) -> dict[str, int]:
    """Return the tier of each solver.

    The first tier has the first solver and all that are not significantly slower by Wilcoxon's
    signed ranks of the logarithms of their times, with Holm's correction for the comparisons with
    the tier's first solver. The next tier begins with the first solver that is left. An unsolved
    problem counts as a time longer than any.
    """
    remaining = [solver for solver in ordered if any(p.ratio(solver) is not None for p in problems)]
    if len(problems) < MIN_RANKED_PROBLEMS:
        return {}
    worst = 1.0 + max(
        (
            math.log(ratio)
            for p in problems
            for solver in remaining
            if (ratio := p.ratio(solver)) is not None
        ),
        default=0.0,
    )

    def costs(solver: str) -> list[float]:
        ratios = [p.ratio(solver) for p in problems]
        return [worst if ratio is None else math.log(ratio) for ratio in ratios]

    tiers: dict[str, int] = {}
    number = 1
    while remaining:
        first, *others = remaining
        tiers[first] = number
        tests = [signed_rank(costs(other), costs(first)) for other in others]
        corrected = holm([test.p for test in tests])
        slower = [
            other
            for other, test, p in zip(others, tests, corrected, strict=True)
            if p < TIER_LEVEL and sum(costs(other)) > sum(costs(first))
        ]
        tiers |= {other: number for other in others if other not in slower}
        remaining, number = slower, number + 1
    return tiers
