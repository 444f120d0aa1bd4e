"""Commands that make pages of results. Each imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from svmbench import __version__, terminal
from svmbench.commands import FOLDER, changes_since, kept_results

#: What of a solver's card the head of its page says anyway.
_SAID_ELSEWHERE = ("solver", "deviations")


@click.command()
@click.argument("results", nargs=-1, type=FOLDER)
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    metavar="DIR",
    default=Path("site"),
    show_default=True,
    help="Where the pages go: a new or empty folder, or a former site, which they replace.",
)
@click.option(
    "--claims", "file", type=FOLDER, metavar="FILE", help="Other thresholds than the package's."
)
@click.option(
    "--freshness/--no-freshness",
    default=True,
    show_default=True,
    help="Whether to say which results are older than the code that made them.",
)
def site(results: tuple[Path, ...], output: Path, file: Path | None, freshness: bool) -> None:
    r"""Make a site of results: verdicts, a page a paper, a page a solver; static, without network.

    RESULTS are run folders, or folders that hold some: the folder results unless others are named.
    Everything is made from the records, and the pages link them.

    \b
    Examples:
      svmbench site
      svmbench site results/alsvm results/smo_adult_rbf-quick -o pages
    """
    index = make_site(results, output, file=file, freshness=freshness)
    terminal.say(index)


def make_site(
    results: tuple[Path, ...], output: Path, *, file: Path | None = None, freshness: bool = True
) -> Path:
    """Make a site of some results; return its first page.

    Parameters
    ----------
    results : tuple of Path
        Folders; none for those that are kept.
    output : Path
    file : Path, optional
        The claims; those that ship with the package by default.
    freshness : bool, default=True
        Whether to look for results that are older than the code.
    """
    from svmbench.papers import PAPERS
    from svmbench.report import claims as judging
    from svmbench.report.site import Material, SolverFacts, build_site, check_place

    folders = results or (kept_results(),)
    check_place(output)
    known = judging.read(file, list(PAPERS))
    looked: dict[Path, Mapping[str, str]] = {}

    def age(folder: Path) -> Mapping[str, str]:
        place = folder.resolve()
        if place not in looked:
            looked[place] = changes_since(folder)
        return looked[place]

    verdicts = judging.judge(
        known,
        judging.gather(list(folders)),
        (lambda source: age(source.run.path)) if freshness else None,
    )
    made = build_site(
        Material(
            folders=tuple(folders),
            verdicts=tuple(verdicts),
            papers={key: paper.citation for key, paper in PAPERS.items()},
            solvers={
                name: SolverFacts(facts, tuple(deviations))
                for name, facts, deviations in _solver_cards()
            },
            freshness=age if freshness else None,
            version=__version__,
        ),
        output,
    )
    return made.index


def _solver_cards() -> list[tuple[str, dict[str, Any], list[str]]]:
    """Return name, facts and deviations of every declared solver."""
    from svmbench import listing
    from svmbench.catalogue import solvers

    cards = []
    for name in solvers():
        card = listing.describe(name)
        facts = {key: value for key, value in card.items() if key not in _SAID_ELSEWHERE and value}
        cards.append((name, facts, card["deviations"]))
    return cards


def register(group: click.Group) -> None:
    """Add the commands of this module to the command line."""
    group.add_command(site)
