"""Show the rankings of a table over its data sets: sentences, pairs and diagrams."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from svmbench.report.numbers.comparisons import Friedman
from svmbench.report.reading.records import Run
from svmbench.report.tables.layout import Table
from svmbench.report.tables.rankings import TEST_LEVEL, Ranking, SolverPair, rankings
from svmbench.site.diagrams import critical_difference, profile


@dataclass(frozen=True)
class Diagram:
    """A diagram: its file, its alternative text, its caption, and whether it fits a telephone."""

    file: str
    alt: str
    caption: str
    is_narrow: bool = False


@dataclass(frozen=True)
class RankingView:
    """A ranking for a page.

    Attributes
    ----------
    name : str
        Name within its table, usable as an id.
    title : str
        Metric, and number of data sets.
    sentences : list of str
        Results of the tests, a sentence each.
    decides : bool
        True if a test finds a difference.
    pairs : list of Pair
    has_folds : bool
        True if some data sets have folds, so that there is a test within each.
    diagrams : list of Diagram
    """

    name: str
    title: str
    sentences: list[str]
    decides: bool
    pairs: list[SolverPair]
    has_folds: bool
    diagrams: list[Diagram]


def show_rankings(run: Run, table: Table, slug: str, site: Path) -> list[RankingView]:
    """Return the rankings of a table; write their diagrams into the folder of the run.

    Parameters
    ----------
    run : Run
    table : Table
    slug : str
        The name of the run's folder below ``data/``.
    site : Path
        Folder of the new site.
    """
    return [
        _show(run, ranking, f"{table.spec.name}-ranks{number}", Path("data", slug), site)
        for number, ranking in enumerate(rankings(run, table), start=1)
    ]


def _show(run: Run, ranking: Ranking, name: str, folder: Path, site: Path) -> RankingView:
    what = run.label(ranking.metric).partition(" (")[0]
    title = f"{what}, {ranking.within}" if ranking.within else what
    pairs, test = ranking.pairs(), ranking.friedman()
    sets = f"{len(ranking.datasets)} data sets"
    made = []
    if test is not None:
        ranks = dict(zip(ranking.solvers, test.ranks, strict=True))
        file = folder / f"{name}.svg"
        (site / file).write_text(
            critical_difference(ranks, test.critical_difference), encoding="utf-8"
        )
        alt = f"Critical-difference diagram of average ranks by {title}: {_listed(ranks)}"
        caption = f"Average ranks over {sets}, 1 for the best; bars join solvers that don't differ."
        made.append(Diagram(file.as_posix(), alt, caption))
    if steps := ranking.profile():
        file = folder / f"{name}-profile.svg"
        (site / file).write_text(profile(steps), encoding="utf-8")
        alt = f"Performance profiles by {title} of {', '.join(steps)}"
        caption = (
            f"Performance profiles (Dolan and Moré) over {sets}: the share on which a solver needs "
            "at most this many times the time of the fastest."
        )
        made.append(Diagram(file.as_posix(), alt, caption, is_narrow=True))
    return RankingView(
        name=name,
        title=f"{title}, over {sets}",
        sentences=_sentences(ranking, test, pairs),
        decides=bool(test and test.p < TEST_LEVEL) or any(pair.differs for pair in pairs),
        pairs=pairs,
        has_folds=any(pair.by_t_test for pair in pairs),
        diagrams=made,
    )


def _sentences(ranking: Ranking, test: Friedman | None, pairs: list[SolverPair]) -> list[str]:
    """Return sentences about the compared data sets and the results of the tests."""
    of = (
        f"{len(ranking.datasets)} of {ranking.planned} data sets"
        if (len(ranking.datasets) < ranking.planned)
        else f"all {ranking.planned} data sets"
    )
    sentences = [f"Compared on {of}: those with values of all {len(ranking.solvers)} solvers."]
    if test is not None:
        verdict = "the ranks differ" if test.p < TEST_LEVEL else "no difference is found"
        sentences.append(
            f"Friedman's test: χ² = {test.chi_square:.2f}, p {p_text(test.p)}: {verdict}."
            f" Nemenyi's critical difference at {100 * TEST_LEVEL:.0f} %:"
            f" {test.critical_difference:.2f} ranks."
        )
    apart = [
        f"{pair.first} before {pair.second}"
        if pair.better > pair.worse
        else f"{pair.second} before {pair.first}"
        for pair in pairs
        if pair.differs
    ]
    corrected = f", with Holm's correction for {len(pairs)} pairs" if len(pairs) > 1 else ""
    sentences.append(
        f"Wilcoxon's signed ranks{corrected}: {'; '.join(apart) or 'no pair differs'}."
    )
    return sentences


def p_text(p: float) -> str:
    """Return a p-value for a sentence: ``= 0.012``, or ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def _listed(ranks: dict[str, float]) -> str:
    ordered = sorted(ranks.items(), key=lambda pair: pair[1])
    return ", ".join(f"{name} {rank:.2f}" for name, rank in ordered)
