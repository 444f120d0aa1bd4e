"""Random draws of kept cells to repeat within a time budget.

All cells are put in one random order, in which a quick cell is more likely to come early (with a
probability proportional to 1 / seconds), and cells that need no check come last: those that are as
new as the code, and those that agreed before. :func:`draw` goes through this order for one purpose
after the other, and takes the cells that serve it and fit into the budget:

1. cells that reach every solver's module (two solvers may share one), even on a short budget;
2. run by run, quick ones more likely early, the cells that a run lacks to count as rechecked;
3. any other cell.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from svmbench.experiment.run.batch import CONFIG_OVERHEAD_S
from svmbench.schema.rechecks import SAMPLE_SHARE

#: Seconds of a cell that its record doesn't include: forking a process, mapping data.
RECHECK_OVERHEAD_S = 0.2
#: Cells that take more than this share of the budget are not drawn.
MAX_BUDGET_SHARE = 0.2


@dataclass(frozen=True)
class Candidate:
    """A kept cell that may be drawn.

    Attributes
    ----------
    run : str
        The folder of its run.
    key : str
        The key of the cell.
    solver : str
        The solver's name; the solvers of a race are joined by ``|``.
    dataset : str
    seconds : float
        Recorded seconds of the cell.
    modules : tuple of str
        The modules of its solvers. Two solvers may share a module.
    has_agreed : bool
        Whether the cell was repeated at the present code and agreed.
    is_fresh : bool
        Whether its result is as new as the code.
    """

    run: str
    key: str
    solver: str
    dataset: str
    seconds: float
    modules: tuple[str, ...]
    has_agreed: bool = False
    is_fresh: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        """The solver and the data set; a sample has each such pair of its run."""
        return self.solver, self.dataset

    @property
    def cost_s(self) -> float:
        """Expected seconds of the cell with its process, in a run that has begun."""
        return self.seconds + RECHECK_OVERHEAD_S


def draw(candidates: Iterable[Candidate], budget_s: float, seed: int) -> list[Candidate]:
    """Draw cells that are expected to fit into a budget.

    Parameters
    ----------
    candidates : iterable of Candidate
    budget_s : float
        The budget in seconds.
    seed : int
        Seed of the random generator. The same arguments give the same draw.

    Returns
    -------
    list of Candidate
        The cells in the order in which they were drawn, each at most once.
    """
    cells, rng = list(candidates), random.Random(seed)
    # Exponential waiting times with rates 1 / cost: the next cell is each of those that are left
    # with a probability proportional to its rate.
    waits = {cell: rng.expovariate(1.0 / cell.cost_s) for cell in cells}
    order = sorted(cells, key=lambda cell: (cell.has_agreed or cell.is_fresh, waits[cell]))
    affordable = [cell for cell in order if cell.seconds <= MAX_BUDGET_SHARE * budget_s]
    runs: dict[str, list[Candidate]] = {}
    for cell in affordable:
        runs.setdefault(cell.run, []).append(cell)
    drawn = BudgetedSample(budget_s)
    modules: set[str] = set()
    for first in affordable:
        if not modules.issuperset(first.modules):
            # Starting a run takes longer than most cells: also draw the run's other solvers now.
            for cell in (first, *runs[first.run]):
                if not modules.issuperset(cell.modules) and drawn.take([cell]):
                    modules.update(cell.modules)
    to_complete = [
        completing_cells([cell for cell in cells if cell.run == run], of_run, drawn.chosen)
        for run, of_run in runs.items()
    ]
    costs = [CONFIG_OVERHEAD_S + sum(cell.cost_s for cell in of_run) for of_run in to_complete]
    waits_of_runs = [rng.expovariate(1.0 / cost) for cost in costs]
    in_turn = sorted(zip(waits_of_runs, to_complete, strict=True), key=lambda pair: pair[0])
    for _, of_run in in_turn:
        drawn.take(of_run)
    for cell in affordable:
        drawn.take([cell])
    return list(drawn.chosen)


class BudgetedSample:
    """The cells drawn so far, and the rest of the budget.

    Parameters
    ----------
    budget_s : float

    Attributes
    ----------
    chosen : dict of Candidate to None
        The cells in the order in which they were drawn.
    """

    def __init__(self, budget_s: float) -> None:
        self.chosen: dict[Candidate, None] = {}
        self._left_s = budget_s
        self._runs: set[str] = set()

    def take(self, cells: Sequence[Candidate]) -> bool:
        """Choose all of some cells, or none if they don't fit; return True if they are chosen."""
        new = [cell for cell in cells if cell not in self.chosen]
        begun = {cell.run for cell in new} - self._runs
        cost_s = CONFIG_OVERHEAD_S * len(begun) + sum(cell.cost_s for cell in new)
        if cost_s > self._left_s:
            return False
        self._left_s -= cost_s
        self._runs |= begun
        self.chosen.update(dict.fromkeys(new))
        return True


def completing_cells(
    cells: Sequence[Candidate], affordable: Sequence[Candidate], chosen: Collection[Candidate]
) -> list[Candidate]:
    """Return the cells that complete the sample of one run; none if `affordable` ones can't.

    A sample has every solver on every data set and `SAMPLE_SHARE` of the cells. The cells that
    agreed before and the chosen ones count. A run that is as new as the code lacks none.

    Parameters
    ----------
    cells : sequence of Candidate
        All cells of the run.
    affordable : sequence of Candidate
        Those that may be drawn; of several with one solver and data set the first is taken.
    chosen : collection of Candidate
    """
    if all(cell.is_fresh for cell in cells):
        return []
    counted = [cell for cell in cells if cell.has_agreed or cell in chosen]
    others = [cell for cell in affordable if not cell.has_agreed and cell not in chosen]
    wanted = {cell.pair for cell in cells} - {cell.pair for cell in counted}
    firsts = {cell.pair: cell for cell in reversed(others) if cell.pair in wanted}
    of_pairs = list(firsts.values())
    n_more = max(math.ceil(SAMPLE_SHARE * len(cells)) - len(counted) - len(of_pairs), 0)
    more = [cell for cell in others if cell not in of_pairs][:n_more]
    return of_pairs + more if len(firsts) == len(wanted) and len(more) == n_more else []
