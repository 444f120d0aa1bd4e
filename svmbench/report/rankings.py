"""What a table over many data sets decides: ranks, tests of pairs, and profiles of times.

Each data set counts once. Solvers are ranked on those on which all of them have a value that
competes (`svmbench.report.best`), and the tests are those of `svmbench.report.comparisons`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from svmbench.report.best import Contest, contests
from svmbench.report.comparisons import (
    Friedman,
    corrected_t_test,
    friedman,
    holm,
    performance_profile,
)
from svmbench.report.estimates import Estimate, estimate, test_share
from svmbench.report.records import Run
from svmbench.report.statistics import signed_rank, win_draw_loss
from svmbench.report.summary import group
from svmbench.report.tables import Table
from svmbench.report.wording import is_timing

#: Data sets below which ranks over data sets decide nothing: the signed ranks of five that all say
#: the same still have a two-sided p-value of 1/16.
FEWEST_SETS = 6
#: Tests are at this level.
LEVEL = 0.05


@dataclass(frozen=True)
class Pair:
    """Two solvers over the data sets.

    Attributes
    ----------
    first, second : str
    better, equal, worse : int
        Data sets on which the first is better than the second, as good, and worse.
    p : float
        Of Wilcoxon's signed ranks, two-sided, with Holm's correction for all pairs of the ranking.
    apart : tuple of (int, int, int) or None
        Data sets on which the first is better, and worse, by the corrected resampled t-test over
        folds with Holm's correction for the data sets; and data sets that have folds. None where
        no set has.
    """

    first: str
    second: str
    better: int
    equal: int
    worse: int
    p: float
    apart: tuple[int, int, int] | None

    @property
    def differs(self) -> bool:
        """Whether the signed ranks tell the two apart."""
        return self.p < LEVEL


@dataclass(frozen=True)
class Ranking:
    """Solvers by one metric over data sets.

    Attributes
    ----------
    metric : str
    higher : bool
        Whether more is better.
    within : str
        What all its values share that others of the table do not; empty where they are all.
    solvers, datasets : tuple of str
        The sets are those on which every solver has a value.
    planned : int
        Data sets of the table.
    results : tuple of tuple of Estimate
        One row a data set, one column a solver.
    """

    metric: str
    higher: bool
    within: str
    solvers: tuple[str, ...]
    datasets: tuple[str, ...]
    planned: int
    results: tuple[tuple[Estimate, ...], ...]

    @property
    def better(self) -> str:
        """Which values are better: ``higher`` or ``lower``."""
        return "higher" if self.higher else "lower"

    def values(self) -> list[list[float]]:
        """Return the values, to the ten digits that tables keep."""
        return [[float(f"{one.value:.10g}") for one in row] for row in self.results]

    def friedman(self) -> Friedman | None:
        """Return Friedman's test with its critical difference; None for two solvers."""
        if len(self.solvers) < 3:
            return None
        return friedman(self.values(), better=self.better, level=1.0 - LEVEL)

    def pairs(self) -> list[Pair]:
        """Return every pair of solvers, in the order of the table."""
        columns = list(zip(*self.values(), strict=True))
        couples = list(combinations(range(len(self.solvers)), 2))
        corrected = holm([signed_rank(columns[a], columns[b]).p for a, b in couples])
        return [
            Pair(
                self.solvers[a],
                self.solvers[b],
                *win_draw_loss(columns[a], columns[b], better=self.better),
                p=p,
                apart=self._apart(a, b),
            )
            for (a, b), p in zip(couples, corrected, strict=True)
        ]

    def profile(self) -> dict[str, list[tuple[float, float]]]:
        """Return Dolan and Moré's profile of a time; empty for what is none, or not positive."""
        rows = self.values()
        if not is_timing(self.metric) or self.higher or any(v <= 0.0 for row in rows for v in row):
            return {}
        columns: list[tuple[float | None, ...]] = list(zip(*rows, strict=True))
        return performance_profile(dict(zip(self.solvers, columns, strict=True)))

    def _apart(self, a: int, b: int) -> tuple[int, int, int] | None:
        """Return on how many sets the corrected t-test tells two solvers apart, each way."""
        tested = []
        for row in self.results:
            first, second = row[a], row[b]
            folds = sorted(first.by_fold.keys() & second.by_fold.keys())
            if len(folds) > 1:
                share = 0.0 if is_timing(self.metric) else test_share(first)
                differences = [first.by_fold[fold] - second.by_fold[fold] for fold in folds]
                tested.append(corrected_t_test(differences, share))
        if not tested:
            return None
        sign = 1.0 if self.higher else -1.0
        corrected = holm([p for _, p in tested])
        found = [sign * t for (t, _), p in zip(tested, corrected, strict=True) if p < LEVEL]
        better = sum(t > 0.0 for t in found)
        return better, len(found) - better, len(tested)


def rankings(run: Run, table: Table) -> list[Ranking]:
    """Return what a table ranks over data sets, by metric and by whatever else is varied."""
    found: dict[tuple[str, str], dict[str, Contest]] = {}
    for contest in contests(run, table):
        (row, column, _), _ = next(iter(contest.values.values()))
        dataset = str(table.entries[row, column, contest.metric].cell.dataset)
        within = ", ".join(
            f"{run.label(name)} {value}"
            for fields, key in ((table.row_fields, row), (table.column_fields, column))
            for name, value in zip(fields, key, strict=True)
            if name not in {"solver", "dataset"} and value is not None
        )
        found.setdefault((contest.metric, within), {})[dataset] = contest
    cells = group(table.cells)
    planned = len({cell.dataset for cell in table.cells})
    made = []
    for (metric, within), by_set in found.items():
        solvers = _in_order(list(by_set.values()))
        whole = {name: one for name, one in by_set.items() if len(one.values) == len(solvers)}
        if len(whole) < FEWEST_SETS:
            continue
        rows = []
        for one in whole.values():
            places = (one.values[solver][0] for solver in solvers)
            estimates = (estimate(cells[table.entries[p].cell.identity], metric) for p in places)
            rows.append(tuple(one for one in estimates if one is not None))
        higher = next(iter(whole.values())).higher
        made.append(Ranking(metric, higher, within, solvers, tuple(whole), planned, tuple(rows)))
    return made


def _in_order(several: Sequence[Contest]) -> tuple[str, ...]:
    """Return the solvers of all contests, in the order of the first that has most of them."""
    largest = max(several, key=lambda one: len(one.values))
    return tuple(
        dict.fromkeys([*largest.values, *(name for one in several for name in one.values)])
    )
