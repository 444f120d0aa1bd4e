"""Random draws of kept cells that are run again within a budget of time.

A draw has two passes. The first visits every solver once, in random order, and chooses one of its
cells with a probability proportional to 1 / seconds², so that a short budget still reaches all
solvers. The second visits strata, each a run and a solver (or the solvers of a race), in random
order, round after round, and chooses one of a stratum's cells with a probability proportional to
1 / seconds: of the time that is left, cells of 0.1 s, of 1 s and of 10 s take like shares.

A draw of samples completes one run after another: of each solver on each data set it chooses one
cell, with a probability proportional to 1 / seconds, then further ones up to the share of the
run's cells that a sample must hold.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from svmbench.experiment.run.batch import CONFIG_OVERHEAD_S
from svmbench.schema.rechecks import SAMPLE_SHARE

#: Seconds of a cell that its record doesn't contain: forking a process, mapping data.
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
    solver : str
        As the record names it; the solvers of a race are joined by ``|``.
    dataset : str
    seconds : float
        Seconds that the record says it took.
    modules : tuple of str
        The modules of its solvers: two names may stand for one module with other parameters.
    is_known : bool
        Whether it agreed before at this code: others of its stratum are drawn first.
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
        Seconds.
    seed : int
        The same candidates, budget and seed give the same draw.

    Returns
    -------
    list of Candidate
        Each at most once, in the order in which they were drawn.
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
        As :func:`draw` has them. Runs are taken by the time of their samples, the shortest first,
        each with its whole sample or not at all.

    Returns
    -------
    list of Candidate
        Each at most once, run after run.
    """
    chance = random.Random(seed)
    samples = [
        sample
        for _, cells in _grouped((one.run, one) for one in candidates)
        if (sample := _sample(cells, chance))
    ]
    chosen: list[Candidate] = []
    for cost, sample in sorted(((_sample_cost(one), one) for one in samples), key=lambda x: x[0]):
        budget_s -= cost
        if budget_s < 0:
            break
        chosen += sample
    return chosen


def _sample(cells: Sequence[Candidate], chance: random.Random) -> list[Candidate]:
    """Choose the cells of one run that its known cells lack for a sample."""
    known = [one for one in cells if one.is_known]
    seen = {(one.solver, one.dataset) for one in known}
    left = {one.key: one for one in cells if not one.is_known}
    sample = []

    def choose(among: Sequence[Candidate]) -> None:
        weights = [1.0 / (one.seconds + RECHECK_OVERHEAD_S) for one in among]
        sample.append(left.pop(chance.choices(among, weights)[0].key))

    for pair, among in _grouped(((one.solver, one.dataset), one) for one in left.values()):
        if pair not in seen:
            choose(among)
    for _ in range(math.ceil(SAMPLE_SHARE * len(cells)) - len(known) - len(sample)):
        choose(list(left.values()))
    return sample


def _sample_cost(sample: Iterable[Candidate]) -> float:
    return CONFIG_OVERHEAD_S + sum(one.seconds + RECHECK_OVERHEAD_S for one in sample)


class Draw:
    """The cells chosen so far, and the time that is left.

    Parameters
    ----------
    candidates, budget_s, seed
        As :func:`draw` has them.

    Attributes
    ----------
    chosen : list of Candidate
    """

    def __init__(self, candidates: Sequence[Candidate], budget_s: float, seed: int) -> None:
        self.chosen: list[Candidate] = []
        self._cells = [one for one in candidates if one.seconds <= MAX_BUDGET_SHARE * budget_s]
        self._left_s = budget_s
        self._chance = random.Random(seed)
        self._keys: set[tuple[str, str]] = set()
        self._runs: set[str] = set()
        self._modules: set[str] = set()
        self._pairs: set[tuple[str, str, str]] = set()
        # The modules of each run that no chosen cell has.
        self._unseen: dict[str, set[str]] = {}
        for one in self._cells:
            self._unseen.setdefault(one.run, set()).update(one.modules)

    def visit_solvers(self) -> None:
        """Choose a cell of each solver."""
        self._visit(_grouped((module, one) for one in self._cells for module in one.modules), 2)

    def visit_strata(self) -> None:
        """Choose a cell of each run and solver, round after round, until no cell fits."""
        strata = _grouped(((one.run, one.solver), one) for one in self._cells)
        while self._visit(strata, 1):
            pass

    def _visit(self, strata: Sequence[tuple[Hashable, list[Candidate]]], power: int) -> bool:
        """Choose a cell of each stratum that time is left for; return whether any was chosen."""
        before = len(self.chosen)
        for name, cells in self._chance.sample(strata, len(strata)):
            # A race has visited several solvers at once.
            if name in self._modules:
                continue
            left = [one for one in cells if self._cost(one) <= self._left_s]
            preferences = [_is_unknown]
            if power == 1:
                left = [one for one in left if (one.run, one.key) not in self._keys]
                # In the first pass all cells of a stratum are new.
                preferences.insert(0, self._is_new)
            for is_preferred in preferences:
                left = list(filter(is_preferred, left)) or left
            if left:
                weights = [self._weight(one, power) for one in left]
                self._choose(self._chance.choices(left, weights)[0])
        return len(self.chosen) > before

    def _is_new(self, one: Candidate) -> bool:
        """Return True if no cell of its run, solver and data set was chosen."""
        return (one.run, one.solver, one.dataset) not in self._pairs

    def _weight(self, one: Candidate, power: int) -> float:
        # To begin a run takes longer than most cells: the first pass prefers runs of many solvers.
        gain = len(self._unseen[one.run]) if power > 1 else 1
        return (gain / self._cost(one)) ** power

    def _cost(self, one: Candidate) -> float:
        return (
            one.seconds + RECHECK_OVERHEAD_S + (0.0 if one.run in self._runs else CONFIG_OVERHEAD_S)
        )

    def _choose(self, one: Candidate) -> None:
        self._left_s -= self._cost(one)
        self.chosen.append(one)
        self._keys.add((one.run, one.key))
        self._runs.add(one.run)
        self._modules.update(one.modules)
        for unseen in self._unseen.values():
            unseen.difference_update(one.modules)
        self._pairs.add((one.run, one.solver, one.dataset))


def _is_unknown(one: Candidate) -> bool:
    return not one.is_known


def _grouped(
    pairs: Iterable[tuple[Hashable, Candidate]],
) -> list[tuple[Hashable, list[Candidate]]]:
    groups: dict[Hashable, list[Candidate]] = {}
    for name, one in pairs:
        groups.setdefault(name, []).append(one)
    return list(groups.items())
