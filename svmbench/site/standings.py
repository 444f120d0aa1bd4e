"""List the results of each solver in every table, relative to its competitors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, median

from svmbench.report.numbers.ratios import DeclaredName
from svmbench.report.output.builder import Content
from svmbench.report.reading.folders import is_contributed
from svmbench.report.reading.records import VERSUS
from svmbench.report.reading.wording import number, quantity
from svmbench.report.tables.best import contests
from svmbench.report.tables.layout import Table


@dataclass(frozen=True)
class Standing:
    """The results of a solver in one table.

    Attributes
    ----------
    run, table : str
        Slug of the run, and name of the table.
    label : str
        Label of the solver in the config, if it is another than its name; else empty.
    title : str
        Title of the table, with the profile of the run.
    sentences : list of str
        Sentence about its rank for each metric with a direction.
    """

    run: str
    table: str
    label: str
    title: str
    sentences: list[str]


def standings(
    contents: Iterable[tuple[str, Content]], declared: DeclaredName
) -> dict[str, list[Standing]]:
    """Return the results of each solver in every table, in the order of the runs.

    Parameters
    ----------
    contents : iterable of (str, Content)
        Runs with their slugs.
    declared : callable
        From a config and a label to the name of a declared solver.
    """
    by_solver: dict[str, list[Standing]] = {}
    for slug, content in contents:
        run = content.run
        for table in content.tables:
            sentences_of: dict[str, list[str]] = {name: [] for name in _solvers(table)}
            for metric, solver, sentence in _by_metric(content, table):
                sentences_of.setdefault(solver, []).append(
                    f"{quantity_of(content, metric)}: {sentence}"
                )
            for solver, sentences in _races(table):
                sentences_of.setdefault(solver, []).extend(sentences)
            origin = ", contributed" if is_contributed(run.path) else ""
            title = f"{run.title}: {table.spec.heading} (profile {run.profile or 'none'}{origin})"
            for label, sentences in sentences_of.items():
                solver = declared(run.name, label)
                shown = "" if label == solver else label
                standing = Standing(slug, table.spec.name, shown, title, sentences)
                by_solver.setdefault(solver, []).append(standing)
    return by_solver


def quantity_of(content: Content, metric: str) -> str:
    """Return the label of a metric for sentences."""
    declared = content.run.scores.get(metric)
    return str(declared["caption"]).partition(" (")[0] if declared else quantity(metric)


def _solvers(table: Table) -> list[str]:
    names = dict.fromkeys(
        part for cell in table.cells if cell.solver for part in cell.solver.split(VERSUS)
    )
    return list(names)


def _by_metric(content: Content, table: Table) -> Iterator[tuple[str, str, str]]:
    """Yield metric, solver, and a sentence about its rank among its competitors."""
    ranks_by_metric: dict[str, dict[str, list[tuple[float, int, bool]]]] = {}
    for contest in contests(content.run, table):
        ranks, best = contest.ranks(), contest.best()
        for solver, rank in ranks.items():
            entries = ranks_by_metric.setdefault(contest.metric, {}).setdefault(solver, [])
            entries.append((rank, len(ranks), solver in best))
    for metric, solvers in ranks_by_metric.items():
        for solver, ranked in solvers.items():
            won = sum(is_first for _, _, is_first in ranked)
            rivals = {count for _, count, _ in ranked}
            of = str(max(rivals)) if len(rivals) == 1 else f"{min(rivals)} to {max(rivals)}"
            rank = fmean(rank for rank, _, _ in ranked)
            yield metric, solver, (f"best in {won} of {len(ranked)}, mean rank {rank:.1f} of {of}")


def _races(table: Table) -> Iterator[tuple[str, list[str]]]:
    """Yield each solver of a race with sentences about its ratios to the others."""
    ratios: dict[str, list[float]] = {}
    for (_, _, metric), entry in table.entries.items():
        solver, value = entry.cell.solver or "", entry.summary.value
        if metric == "ratio" and VERSUS in solver and value and not entry.summary.busy:
            ratios.setdefault(solver, []).append(value)
    for pair, values in ratios.items():
        first, second = pair.split(VERSUS, 1)
        for solver, other, times in (
            (first, second, values),
            (second, first, [1.0 / value for value in values]),
        ):
            ends = [number("ratio", end) for end in (min(times), max(times))]
            among = f" ({ends[0]} to {ends[1]} in {len(times)} races)" if len(times) > 1 else ""
            middle = number("ratio", median(times))
            yield solver, [f"{middle} times as fast as {other}{among}"]
