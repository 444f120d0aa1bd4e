"""The cards of all solvers are read once, and again after a change of what decides them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svmbench.base import parallel_map
from svmbench.base.cached_entries import CachedEntries
from svmbench.studies import solver_cards

CARDS = [["alsvm", {"task": "binary"}, ["one", "two"]], ["csvc", {}, []]]


@pytest.fixture
def reads(private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return a list that each reading of all cards makes longer; none are kept yet."""
    found: list[int] = []

    def read(*_: Any) -> Iterator[Any]:
        found.append(1)
        yield CARDS

    monkeypatch.setattr(parallel_map, "parallel_map", read)
    monkeypatch.setattr(solver_cards, "surroundings", lambda: "these")
    forget(monkeypatch)
    yield found
    solver_cards.solver_cards.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process has read, as another process would not know it."""
    solver_cards.solver_cards.cache_clear()
    monkeypatch.setattr(solver_cards, "_cards", CachedEntries("cards", solver_cards.__file__))


def test_a_later_process_finds_the_cards(reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    first = solver_cards.solver_cards()
    assert first == [tuple(card) for card in CARDS]
    forget(monkeypatch)
    assert solver_cards.solver_cards() == first
    assert len(reads) == 1


@pytest.mark.parametrize("others", ["other", ""])
def test_other_surroundings_have_other_cards(
    reads: list[int], others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solver_cards.solver_cards()
    forget(monkeypatch)
    monkeypatch.setattr(solver_cards, "surroundings", lambda: others)
    solver_cards.solver_cards()
    assert len(reads) == 2


@pytest.mark.parametrize("damage", ["7", "[7]", '[["alsvm", {}]]', '[["alsvm", [], {}]]'])
def test_damaged_cards_are_read_again(
    reads: list[int], damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = CachedEntries("cards", solver_cards.__file__).place()
    place.parent.mkdir(parents=True)
    place.write_text(f'{{"these": {damage}}}')
    assert solver_cards.solver_cards() == [tuple(card) for card in CARDS]
    assert len(reads) == 1


@pytest.mark.slow
def test_kept_cards_are_those_of_the_solvers(
    private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SVMBENCH_PLUGINS", raising=False)
    forget(monkeypatch)
    read = solver_cards.solver_cards()
    assert CachedEntries("cards", solver_cards.__file__).place().exists()
    forget(monkeypatch)
    assert solver_cards.solver_cards() == read
    facts = {name: (card, deviations) for name, card, deviations in read}
    assert facts["alsvm"][0]["parameters"][0].startswith("C = ")
    assert facts["alsvm"][1]
    solver_cards.solver_cards.cache_clear()
