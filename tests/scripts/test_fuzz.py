"""A short run of the harness of damaged files; ``scripts/fuzz.py`` is the long one."""

from __future__ import annotations

import bz2
import json
import lzma
import mmap
import random
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fuzzing
import growing
import hostile_places
import mutators
import numpy as np
import pandas as pd
import pytest
from foreign_folders import make_run
from fuzzing import GROWN, KINDS, Kind, Reached, fuzz
from hostile_places import PLACED
from small_disk import mounted

from svmbench.base.errors import ConfigError, DataUnavailableError
from svmbench.experiment.config.yaml_source import YamlSource

#: So few that all kinds together take some twenty seconds.
CASES = 72
GROWN_CASES = 24
PLACED_CASES = 4


@pytest.fixture
def folder() -> Iterator[Path]:
    place = fuzzing.scratch()
    yield place
    fuzzing.shutil.rmtree(place)


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(name: str, folder: Path) -> None:
    result = fuzz(KINDS[name], CASES, seed=2026, folder=folder)
    assert result.findings == []
    assert sum(result.outcomes.values()) == CASES
    assert sum(result.past.values()) >= CASES / 10


@pytest.mark.parametrize("name", KINDS)
def test_the_files_that_are_damaged_are_whole_before(name: str, folder: Path) -> None:
    whole = Kind(name, KINDS[name].seeds, (lambda content, _: content,), KINDS[name].read)
    result = fuzz(whole, len(whole.seeds()), seed=0, folder=folder)
    assert result.findings == []
    if name != "csv":  # read with a header and without one, of which one is wrong
        assert set(result.outcomes) == {"read"}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWN)
def test_a_grown_file_is_read_or_refused_in_a_sentence(name: str, folder: Path) -> None:
    result = fuzz(GROWN[name], GROWN_CASES, seed=2026, folder=folder)
    assert result.findings == []
    assert sum(result.past.values()) >= GROWN_CASES / 10


@pytest.fixture
def made(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the kinds of places use a run of this test's session."""
    run = make_run(tmp_path)
    monkeypatch.setattr(hostile_places, "whole_run", lambda: run)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACED)
def test_nothing_in_a_place_is_followed_and_no_disk_fills_in_silence(
    name: str, folder: Path, made: Path
) -> None:
    try:
        with mounted(folder / "disk"):
            pass
    except PermissionError:
        if name == "full-disk":
            pytest.skip("only root may mount a file system")
    result = fuzz(PLACED[name], PLACED_CASES, seed=2026, folder=folder)
    assert result.findings == []
    assert result.outcomes == {"read": PLACED_CASES}


def test_a_reader_that_follows_links_is_found(
    folder: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = {"command": "keep_results", "things": [("private", "artifacts/KEY.npz")]}
    kind = replace(PLACED["links"], mutators=(lambda *_: json.dumps(case).encode(),))
    assert fuzz(kind, 1, 0, folder).outcomes == {"read": 1}
    monkeypatch.setattr("svmbench.base.files.os.O_NOFOLLOW", 0)
    (finding,) = fuzz(kind, 1, 0, folder).findings
    assert "copied a private file" in finding


def test_what_grows_has_a_greatest_size() -> None:
    """Lists in lists, each of which may be repeated 3,000 times, end at the size that is given."""
    most, schema = 100_000, {"type": "number"}
    for _ in range(6):
        schema = {"type": "array", "items": schema, "minItems": 1}
    found = [
        growing.bytes_of(growing.grown(schema, random.Random(seed), most), 100 * most)
        for seed in range(300)
    ]
    assert most / 2 < max(found) < 2 * most
    one = [[1.5] * 10, {"key": "x" * 100}]
    assert growing.bytes_of(one, most) == 4 * 15 + 3 + 100
    assert 50 < growing.bytes_of(one, 50) < 200


def test_what_is_wrong_with_a_baseline_is_short(folder: Path) -> None:
    content = json.loads(KINDS["baseline"].seeds()[0])
    cell = content["cells"][0]
    for wrong in (
        {**content, "schema": "x" * 3000},
        {**content, "cells": [{**cell, "counters": {"n_iter": "x" * 3000}}]},
        {**content, "cells": [{**cell, "counters": {"x" * 3000: "x"}}]},
    ):
        seeds = [json.dumps(wrong).encode()]
        kind = Kind("x", lambda seeds=seeds: seeds, (lambda c, _: c,), KINDS["baseline"].read)
        assert fuzz(kind, 1, 0, folder).outcomes == {"refused": 1}


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

        kind = Kind("x", lambda: [b"abc"], (mutators.flip,), read)
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


def read_as_is(content: bytes, _name: str) -> np.ndarray:
    """Read an idx array as if every file were one."""
    shape = np.frombuffer(content, ">u4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def backtracking(content: bytes, _name: str) -> bytes:
    """Look at a text again for each of its bytes, as a pattern that goes back does."""
    for start in range(64 * len(content)):
        content.find(b"never", start % len(content))
    return content


def trusting(parts: list[pd.Series], *_rest: object) -> list[np.ndarray]:
    """Take the words of a column for numbers."""
    return [part.to_numpy().astype(float) for part in parts]


def unending(self: Any, buffer: Any) -> int:
    """Unpack until the end comes, whether any input is left or not."""
    if self._stream is None:
        is_xz = self._suffix == ".xz"
        self._stream = lzma.LZMADecompressor() if is_xz else bz2.BZ2Decompressor()
    piece = b""
    while not piece and not self._stream.eof:
        piece = self._stream.decompress(self._stored.read(1 << 16), len(buffer))
    buffer[: len(piece)] = piece
    return len(piece)


def unguarded_text(path: Path) -> YamlSource:
    """Read a config as if every file were text."""
    return YamlSource(path.read_text("utf-8"), str(path))


def unguarded_toml(path: Path) -> dict[str, Any]:
    """Read a registry as if every file were one."""
    return tomllib.loads(path.read_text("utf-8"))


def unguarded_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read arrays as if every file held some."""
    with np.load(path) as found:
        return dict(found)


def unguarded_json(path: Path) -> Any:
    """Read JSON as if every file were some."""
    return json.loads(path.read_bytes())


#: By kind: a check, and what there may be in its place. Each is a mistake that has been made.
BROKEN: dict[str, tuple[str, Any, str]] = {
    "libsvm": ("svmbench.data.libsvm._number", float, "internal"),
    "csv": ("svmbench.data.tables._numbers", trusting, "internal"),
    "archive": ("svmbench.data.archives._Streams.readinto", unending, "slow"),
    "yaml": ("svmbench.experiment.config.yaml_source.YamlSource.read", unguarded_text, "internal"),
    "toml": ("svmbench.data.registry._parsed", unguarded_toml, "internal"),
    "artifact": ("svmbench.report.plots.kinds.decision.read_arrays", unguarded_arrays, "internal"),
    "pack": ("svmbench.report.reading.shapes.read_checked_json", unguarded_json, "internal"),
    "baseline": ("svmbench.report.gate.sides._check_compared", lambda *_: None, "internal"),
    "environment": ("svmbench.report.reading.shapes.read_checked_json", unguarded_json, "internal"),
    "idx": ("svmbench.data.idx.read_idx", read_as_is, "internal"),
    "records": ("svmbench.schema.record._is_well_typed", lambda _: True, "internal"),
    "plan": ("svmbench.report.reading.shapes.mismatch", lambda *_: "", "internal"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_reader_that_lacks_a_check_is_found(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    KINDS[name].seeds()  # by the whole reader
    place, instead, outcome = BROKEN[name]
    monkeypatch.setattr(place, instead)
    monkeypatch.setattr(fuzzing, "CPU_SECONDS", 0.5)
    for seed in range(10):
        result = fuzz(KINDS[name], CASES, seed=seed, folder=folder)
        if result.outcomes[outcome]:
            return
    pytest.fail(f"{10 * CASES} damaged files, and none showed that {place} is broken")


@pytest.mark.slow
def test_a_reader_without_measure_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "CPU_SECONDS", 0.2)
    monkeypatch.setattr("svmbench.data.libsvm.check_text", backtracking)
    assert fuzz(KINDS["libsvm"], 12, seed=0, folder=folder).outcomes["slow"]
