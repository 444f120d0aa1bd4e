"""A short run of the harness of damaged files; ``scripts/fuzz.py`` is the long one."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import fuzzing
import pytest
from fuzzing import KINDS, Kind, Reached, fuzz

from svmbench.errors import ConfigError, DataUnavailableError

#: So few that all kinds together take some twenty seconds.
CASES = 90


@pytest.fixture
def folder() -> Iterator[Path]:
    place = fuzzing.scratch()
    yield place
    fuzzing.shutil.rmtree(place)


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(name: str, folder: Path) -> None:
    tally = fuzz(KINDS[name], CASES, seed=2026, folder=folder)
    assert tally.findings == []
    assert sum(tally.outcomes.values()) == CASES
    assert sum(tally.past.values()) >= CASES / 10


@pytest.mark.parametrize("name", KINDS)
def test_the_files_that_are_damaged_are_whole_before(name: str, folder: Path) -> None:
    whole = Kind(name, KINDS[name].seeds, (lambda content, _: content,), KINDS[name].read)
    tally = fuzz(whole, len(whole.seeds()), seed=0, folder=folder)
    assert tally.findings == []
    if name != "csv":  # read with a header and without one, of which one is wrong
        assert set(tally.outcomes) == {"read"}


def test_the_harness_finds_what_it_looks_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "CPU_SECONDS", 0.1)

    def finding(what: object) -> str:
        def read(_content: bytes, _folder: Path, reached: Reached) -> None:
            reached()
            if isinstance(what, Exception):
                raise what
            if what == "holds 16 MB":
                with mmap.mmap(-1, 16 << 20) as held:  # given back to the system at once
                    held.write(bytes(16 << 20))
            while what == "hangs":
                pass

        kind = Kind("x", lambda: [b"abc"], (fuzzing.flip,), read)
        (outcome,) = fuzz(kind, 1, 0, folder).outcomes
        return outcome

    assert finding("reads") == "read"
    assert finding(ConfigError("a sentence")) == "refused"
    assert finding(ConfigError("two\n\nparagraphs")) == "garbled"
    assert finding(ConfigError("\x1b[2J")) == "garbled"
    assert finding(DataUnavailableError("exit code 1")) == "internal"
    assert finding(KeyError("x")) == "internal"
    assert finding("hangs") == "slow"
    assert finding("holds 16 MB") == "read"
    monkeypatch.setattr(fuzzing, "MEGABYTES", 8.0)
    assert finding("holds 16 MB") == "large"
    assert finding("holds 16 MB") == "large", "the first one's peak hides no second one"
    assert finding("reads") == "read"
