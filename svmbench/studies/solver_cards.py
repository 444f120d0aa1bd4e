"""The cards of all solvers, as the pages of a site show them."""

from __future__ import annotations

from functools import cache
from typing import Any

from svmbench.base.cached_entries import CachedEntries, surroundings

#: The keys of a card that the head of a solver's page shows.
_IN_PAGE_HEAD = ("solver", "deviations")

#: The kept cards of all solvers, by a hash of the code and packages that decide them.
_cards = CachedEntries("cards", __file__)


@cache
def solver_cards() -> list[tuple[str, dict[str, Any], list[str]]]:
    """Return name, facts and deviations of every solver of the package.

    If no cards are kept, another process makes them, because importing the classes of all solvers
    takes 150 MiB and 2 s of CPU time.
    """
    from svmbench.base.parallel_map import parallel_map

    key = surroundings()
    cards: Any = _cards.find(key) if key else None
    if not _are_cards(cards):
        (cards,) = parallel_map(_read_cards, [_IN_PAGE_HEAD], 1)
        if key:
            _cards.new[key] = cards
            _cards.write()
    return [(name, facts, deviations) for name, facts, deviations in cards]


def _read_cards(left_out: tuple[str, ...]) -> list[list[Any]]:
    """Return name, facts (without those left out) and deviations of every declared solver."""
    from svmbench.baselines.catalogue import solvers
    from svmbench.studies import listing

    cards = []
    for name in solvers():
        card = listing.card_of(name)
        facts = {key: value for key, value in card.items() if key not in left_out and value}
        cards.append([name, facts, card["deviations"]])
    return cards


def _are_cards(content: Any) -> bool:
    """Return True for valid cards; the file with the kept ones may be damaged."""
    return isinstance(content, list) and all(
        isinstance(card, list) and [type(part) for part in card] == [str, dict, list]
        for card in content
    )
