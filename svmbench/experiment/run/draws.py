"""Random draws of kept cells to repeat within a time budget.

`draw` makes two passes. The first visits every solver once, in random order, and chooses one of
its cells with probability proportional to 1 / seconds², so that a short budget still reaches all
solvers. The second visits strata in random order, round after round; a stratum is the cells of one
run and one solver (or of the solvers of a race). It chooses one cell of each with probability
proportional to 1 / seconds, so that cells of 0.1 s, 1 s and 10 s take similar shares of the time.

`draw_samples` completes one run after another. It chooses a cell for each solver on each data set,
with probability proportional to 1 / seconds, then further cells of the run until `SAMPLE_SHARE` of
them are chosen.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
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
    is_known : bool
        Whether the cell was repeated at the present code and agreed. Cells that were not are drawn
        first.
    """

    run: str
    key: str
    solver: str
    dataset: str
    seconds: float
    modules: tuple[str, ...]
    is_known: bool = False


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
    cells = list(candidates)
    draws = Draw(cells, budget_s, seed)
    draws.visit_solvers()
    draws.visit_strata()
    return draws.chosen


def draw_samples(candidates: Iterable[Candidate], budget_s: float, seed: int) -> list[Candidate]:
    """Draw the cells that each run still needs to count as rechecked.

    Parameters
    ----------
    candidates, budget_s, seed
        See :func:`draw`. The run with the shortest sample comes first; a sample that does not fit
        into the rest of the budget ends the draw.

    Returns
    -------
    list of Candidate
        The cells, run after run, each at most once.
    """
    chance = random.Random(seed)
    samples = [
        sample
        for _, cells in _grouped((cell.run, cell) for cell in candidates)
        if (sample := _sample(cells, chance))
    ]
    chosen: list[Candidate] = []
    for cost, sample in sorted(((_sample_cost(s), s) for s in samples), key=lambda pair: pair[0]):
        budget_s -= cost
        if budget_s < 0:
            break
        chosen += sample
    return chosen


def _sample(cells: Sequence[Candidate], chance: random.Random) -> list[Candidate]:
    """Choose the cells of one run that complete a sample, together with its known cells."""
    known = [cell for cell in cells if cell.is_known]
    seen = {(cell.solver, cell.dataset) for cell in known}
    others = {cell.key: cell for cell in cells if not cell.is_known}
    sample = []

    def choose(among: Sequence[Candidate]) -> None:
        weights = [1.0 / (cell.seconds + RECHECK_OVERHEAD_S) for cell in among]
        sample.append(others.pop(chance.choices(among, weights)[0].key))

    for pair, among in _grouped(((cell.solver, cell.dataset), cell) for cell in others.values()):
        if pair not in seen:
            choose(among)
    for _ in range(math.ceil(SAMPLE_SHARE * len(cells)) - len(known) - len(sample)):
        choose(list(others.values()))
    return sample


def _sample_cost(sample: Iterable[Candidate]) -> float:
    return CONFIG_OVERHEAD_S + sum(cell.seconds + RECHECK_OVERHEAD_S for cell in sample)


class Draw:
    """The cells chosen so far, and the rest of the budget.

    Parameters
    ----------
    candidates, budget_s, seed
        See :func:`draw`.

    Attributes
    ----------
    chosen : list of Candidate
    """

    def __init__(self, candidates: Sequence[Candidate], budget_s: float, seed: int) -> None:
        self.chosen: list[Candidate] = []
        self._cells = [cell for cell in candidates if cell.seconds <= MAX_BUDGET_SHARE * budget_s]
        self._left_s = budget_s
        self._chance = random.Random(seed)
        self._keys: set[tuple[str, str]] = set()
        self._runs: set[str] = set()
        self._modules: set[str] = set()
        self._pairs: set[tuple[str, str, str]] = set()
        # For each run, the modules that no chosen cell has.
        self._unseen: dict[str, set[str]] = {}
        for cell in self._cells:
            self._unseen.setdefault(cell.run, set()).update(cell.modules)

    def visit_solvers(self) -> None:
        """Choose a cell for each solver."""
        self._visit(_grouped((module, cell) for cell in self._cells for module in cell.modules), 2)

    def visit_strata(self) -> None:
        """Choose a cell for each run and solver, round after round, until no cell fits."""
        strata = _grouped(((cell.run, cell.solver), cell) for cell in self._cells)
        while self._visit(strata, 1):
            pass

    def _visit(self, strata: Sequence[tuple[Hashable, list[Candidate]]], power: int) -> bool:
        """Choose a cell of each stratum, if one fits; return True if any cell was chosen."""
        before = len(self.chosen)
        for name, cells in self._chance.sample(strata, len(strata)):
            # A race covers several solvers with one cell.
            if name in self._modules:
                continue
            fitting = [cell for cell in cells if self._cost(cell) <= self._left_s]
            preferences = [_is_unknown]
            if power == 1:
                fitting = [cell for cell in fitting if (cell.run, cell.key) not in self._keys]
                # In the first pass all cells of a stratum are new.
                preferences.insert(0, self._is_new)
            for is_preferred in preferences:
                fitting = list(filter(is_preferred, fitting)) or fitting
            if fitting:
                weights = [self._weight(cell, power) for cell in fitting]
                self._choose(self._chance.choices(fitting, weights)[0])
        return len(self.chosen) > before

    def _is_new(self, cell: Candidate) -> bool:
        """Return True if no cell of the same run, solver and data set was chosen."""
        return (cell.run, cell.solver, cell.dataset) not in self._pairs

    def _weight(self, cell: Candidate, power: int) -> float:
        # Starting a run takes longer than most cells, so the first pass prefers runs with many
        # solvers.
        gain = len(self._unseen[cell.run]) if power > 1 else 1
        return (gain / self._cost(cell)) ** power

    def _cost(self, cell: Candidate) -> float:
        return (
            cell.seconds
            + RECHECK_OVERHEAD_S
            + (0.0 if cell.run in self._runs else CONFIG_OVERHEAD_S)
        )

    def _choose(self, cell: Candidate) -> None:
        self._left_s -= self._cost(cell)
        self.chosen.append(cell)
        self._keys.add((cell.run, cell.key))
        self._runs.add(cell.run)
        self._modules.update(cell.modules)
        for unseen in self._unseen.values():
            unseen.difference_update(cell.modules)
        self._pairs.add((cell.run, cell.solver, cell.dataset))


def _is_unknown(cell: Candidate) -> bool:
    return not cell.is_known


def _grouped(
    pairs: Iterable[tuple[Hashable, Candidate]],
) -> list[tuple[Hashable, list[Candidate]]]:
    groups: dict[Hashable, list[Candidate]] = {}
    for name, cell in pairs:
        groups.setdefault(name, []).append(cell)
    return list(groups.items())
