"""Rank solvers over the data sets of a table, with tests of pairs and profiles of times.

Each data set counts once. Solvers are ranked on the data sets on which all of them have comparable
values (`svmbench.report.tables.best`). `svmbench.report.numbers.comparisons` has the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from svmbench.report.numbers.comparisons import (
    Friedman,
    corrected_t_test,
    friedman,
    holm,
    performance_profile,
)
from svmbench.report.numbers.estimates import Estimate, estimate, test_share
from svmbench.report.numbers.statistics import signed_rank, win_draw_loss
from svmbench.report.numbers.summary import group
from svmbench.report.reading.records import Run
from svmbench.report.reading.wording import is_timing
from svmbench.report.tables.best import Contest, contests
from svmbench.report.tables.layout import Table

#: Smallest number of data sets for tests of ranks: with five data sets, even unanimous signed ranks
#: have a two-sided p-value of 1/16.
MIN_RANKED_DATASETS = 6
#: Significance level of all tests.
TEST_LEVEL = 0.05


@dataclass(frozen=True)
class SolverPair:
    """The comparison of two solvers over the data sets.

    Attributes
    ----------
    first, second : str
    better, equal, worse : int
        Number of data sets on which the first is better, equal, and worse.
    p : float
        Two-sided p-value of Wilcoxon's signed ranks, with Holm's correction for all pairs.
    by_t_test : tuple of (int, int, int) or None
        Number of data sets on which the first is better, and worse, by the corrected resampled
        t-test over folds with Holm's correction for the data sets; and number of data sets with
        folds. None if no data set has folds.
    """

    first: str
    second: str
    better: int
    equal: int
    worse: int
    p: float
    by_t_test: tuple[int, int, int] | None

    @property
    def differs(self) -> bool:
        """True if the signed ranks differ significantly."""
        return self.p < TEST_LEVEL


@dataclass(frozen=True)
class Ranking:
    """The ranking of solvers by one metric over data sets.

    Attributes
    ----------
    metric : str
    higher : bool
        True if higher values are better.
    within : str
        The values of the other fields (kernel, size …) that all values share; else empty.
    solvers, datasets : tuple of str
        The solvers, and the data sets on which every solver has a value.
    planned : int
        Number of data sets of the table.
    results : tuple of tuple of Estimate
        One row for each data set, one column for each solver.
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
        """The direction of better values: ``higher`` or ``lower``."""
        return "higher" if self.higher else "lower"

    def values(self) -> list[list[float]]:
        """Return the values with the ten digits of tables."""
        return [[float(f"{estimated.value:.10g}") for estimated in row] for row in self.results]

    def friedman(self) -> Friedman | None:
        """Return Friedman's test with its critical difference; None for two solvers."""
        if len(self.solvers) < 3:
            return None
        return friedman(self.values(), better=self.better, level=1.0 - TEST_LEVEL)

    def pairs(self) -> list[SolverPair]:
        """Return every pair of solvers, in the order of the table."""
        columns = list(zip(*self.values(), strict=True))
        couples = list(combinations(range(len(self.solvers)), 2))
        corrected = holm([signed_rank(columns[a], columns[b]).p for a, b in couples])
        return [
            SolverPair(
                self.solvers[a],
                self.solvers[b],
                *win_draw_loss(columns[a], columns[b], better=self.better),
                p=p,
                by_t_test=self._count_significant(a, b),
            )
            for (a, b), p in zip(couples, corrected, strict=True)
        ]

    def profile(self) -> dict[str, list[tuple[float, float]]]:
        """Return Dolan and Moré's profile of a time; empty for other metrics and for times of 0."""
        rows = self.values()
        if not is_timing(self.metric) or self.higher or any(v <= 0.0 for row in rows for v in row):
            return {}
        columns: list[tuple[float | None, ...]] = list(zip(*rows, strict=True))
        return performance_profile(dict(zip(self.solvers, columns, strict=True)))

    def _count_significant(self, a: int, b: int) -> tuple[int, int, int] | None:
        """Return the number of data sets with a significant t-test in each direction."""
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
        significant = [
            sign * t for (t, _), p in zip(tested, corrected, strict=True) if p < TEST_LEVEL
        ]
        better = sum(t > 0.0 for t in significant)
        return better, len(significant) - better, len(tested)


def rankings(run: Run, table: Table) -> list[Ranking]:
    """Return the rankings of a table, for each metric and each value of the other fields."""
    contests_of: dict[tuple[str, str], dict[str, Contest]] = {}
    for contest in contests(run, table):
        (row, column, _), _ = next(iter(contest.values.values()))
        dataset = str(table.entries[row, column, contest.metric].cell.dataset)
        within = ", ".join(
            f"{run.label(name)} {value}"
            for fields, key in ((table.row_fields, row), (table.column_fields, column))
            for name, value in zip(fields, key, strict=True)
            if name not in {"solver", "dataset"} and value is not None
        )
        contests_of.setdefault((contest.metric, within), {})[dataset] = contest
    cells = group(table.cells)
    planned = len({cell.dataset for cell in table.cells})
    made = []
    for (metric, within), by_set in contests_of.items():
        solvers = _in_order(list(by_set.values()))
        whole = {
            name: contest for name, contest in by_set.items() if len(contest.values) == len(solvers)
        }
        if len(whole) < MIN_RANKED_DATASETS:
            continue
        rows = []
        for contest in whole.values():
            entries = (contest.values[solver][0] for solver in solvers)
            estimates = (estimate(cells[table.entries[p].cell.identity], metric) for p in entries)
            rows.append(tuple(estimated for estimated in estimates if estimated is not None))
        higher = next(iter(whole.values())).higher
        made.append(Ranking(metric, higher, within, solvers, tuple(whole), planned, tuple(rows)))
    return made


def _in_order(several: Sequence[Contest]) -> tuple[str, ...]:
    """Return the solvers of all contests, in the order of the first contest with most solvers."""
    largest = max(several, key=lambda contest: len(contest.values))
    return tuple(
        dict.fromkeys([*largest.values, *(name for contest in several for name in contest.values)])
    )
