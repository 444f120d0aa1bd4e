"""Which solver to take: four lines, with reasons from kept races.

README, the first page of the site and the FAQ recommend the solvers of `CHOICES`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from svmbench.report.numbers.certified import RANKED_AT, Board, CertifiedStanding
from svmbench.report.numbers.ratios import Leader
from svmbench.report.reading.wording import number

#: What is trained, the solver to take, and the reference beside which it was measured.
CHOICES = (
    ("a kernel classifier", "csvc", "LIBSVM"),
    ("a linear classifier", "newton-l2", "LIBLINEAR"),
    ("a one-class SVM", "one-class", "LIBSVM"),
    ("a ν-SVM", "nu-svc", "LIBSVM"),
)
#: The head of the table.
HEAD = ("to train", "take", "why")


@dataclass(frozen=True)
class Choice:
    """A row of the table: the problem, the solver to take, and the reasons."""

    task: str
    solver: str
    why: str


def choices(boards: Iterable[Board], leaders: Mapping[str, Sequence[Leader]]) -> list[Choice]:
    """Return the table of recommended solvers, with reasons from kept races.

    Parameters
    ----------
    boards : iterable of Board
        Races at certified accuracy.
    leaders : dict of str to list of Leader
        Solvers of other races by class of problems.
    """
    boards = list(boards)
    return [
        Choice(
            task, solver, "; ".join(_reasons(solver, reference, boards, leaders)) or "not measured"
        )
        for task, solver, reference in CHOICES
    ]


def caption(boards: Sequence[Board]) -> str:
    """Return the caption of the table: what its numbers are, and how they were measured."""
    text = (
        "The reasons are CPU times of races on one thread, in which the solvers train in turn;"
        " their records are in `results`."
    )
    if boards:
        return (
            f"{text} A number is a solver's time to a relative duality gap of {RANKED_AT}, which"
            " svmbench certifies, over the time of the problem's fastest solver: the median over"
            " the problems that it solves."
        )
    return (
        f"{text} Their answers were not certified: these races are older than certificates, and"
        " nobody measured `svmbench run perf_certified --profile paper` yet."
    )


def standing_of(solver: str, boards: Iterable[Board]) -> list[str]:
    """Return a sentence for each board with a solver: its median ratio, and its place on it."""
    sentences = []
    for board in boards:
        ranked = sorted(board.standings, key=_by_ratio)
        for rank, standing in enumerate(ranked, start=1):
            if standing.solver == solver and standing.ratio is not None:
                title = board.title.partition(":")[0]
                sentences.append(
                    f"{title}: {number('ratio', standing.ratio)} times the time of each problem's"
                    f" fastest solver in the median of {standing.solved[RANKED_AT]}"
                    f" problems, to a certified gap of {RANKED_AT}; place {rank} of {len(ranked)}."
                )
    return sentences


def _load(board: Board) -> str:
    """Return in words in how many problems other programs shared the CPU; "" if in none."""
    if not board.n_disturbed:
        return ""
    return f", other programs shared the CPU in {board.n_disturbed} of {len(board.problems)}"


def _median(standing: CertifiedStanding, board: Board) -> str:
    """Return a solver's median ratio to the fastest, and how many problems it solves if not all."""
    if standing.ratio is None:
        return f"`{standing.solver}` solves none"
    n, n_solved = len(board.problems), standing.solved[RANKED_AT]
    solved = "" if n_solved == n else f" (solves {n_solved})"
    return f"`{standing.solver}` {number('ratio', standing.ratio)}{solved}"


def _by_ratio(standing: CertifiedStanding) -> float:
    return math.inf if standing.ratio is None else standing.ratio


def _reasons(
    solver: str, reference: str, boards: Iterable[Board], leaders: Mapping[str, Sequence[Leader]]
) -> list[str]:
    """Return a solver's ranks in certified races, or else its ratios in other races."""
    phrases = []
    for board in boards:
        for standing in board.standings:
            if standing.solver == solver and standing.ratio is not None:
                others = sorted(
                    (other for other in board.standings if other is not standing), key=_by_ratio
                )
                ratios = ", ".join(_median(other, board) for other in (standing, *others))
                kind = board.title.partition(":")[0]
                phrases.append(f"{kind} ({len(board.problems)} problems{_load(board)}): {ratios}")
    if phrases:
        return phrases
    for title, several in leaders.items():
        what = title.partition(",")[2].rpartition(",")[0].strip()
        for leader in several:
            if leader.solver == solver and title.endswith(reference):
                problems = [f"median of {leader.problems} problems", *([what] if what else [])]
                problems += [] if leader.is_ranked else ["too few to rank"]
                low, high = number("ratio", leader.low), number("ratio", leader.high)
                phrases.append(
                    f"{number('ratio', leader.median)} ({', '.join(problems)}; {low}–{high})"
                )
    return [f"CPU time of {reference} over its own: {', '.join(phrases)}"] if phrases else []
