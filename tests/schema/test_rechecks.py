"""The file of rechecks survives kills and other writers, and the four words follow their rules."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from svmbench.schema import rechecks
from svmbench.schema.rechecks import KeptResult, ages, append_recheck, read_rechecks, worst

DIFFERENCE = {"kind": "objective", "what": "objective", "base": 1.0, "new": 2.0}


def line(key: str, *differences: dict[str, Any], fill: str = "") -> Any:
    return {
        "schema": 1, "key": key, "cell": f"main · iris · {key}", "solver": "smo",
        "dataset": "iris", "modules": ["svmbench.core.x"], "code": "c0de",
        "differences": list(differences), "fill": fill,
    }  # fmt: skip


def results(number: int, *, fresh: int = 0, datasets: int = 1) -> list[KeptResult]:
    return [
        KeptResult(f"k{n}", "smo", f"set-{n % datasets}", is_fresh=n < fresh) for n in range(number)
    ]


def words(found: rechecks.Ages) -> set[str]:
    return set(found.words.values())


def test_without_rechecks_a_result_is_fresh_or_older() -> None:
    assert words(ages(results(3, fresh=3), [])) == {"fresh"}
    mixed = ages(results(3, fresh=1), [])
    assert mixed.words == {"k0": "fresh", "k1": "older", "k2": "older"}
    assert mixed.word == "older"
    assert mixed.sentence() == "older (2 of 3 cells)"


def test_rechecked_needs_every_data_set() -> None:
    runs = results(40, datasets=2)
    assert ages(runs, [line("k0"), line("k2")]).word == "older"
    both = ages(runs, [line("k0"), line("k1")])
    assert both.word == "rechecked"
    assert both.sentence() == "rechecked (2 of 40 cells)"


def test_rechecked_needs_every_solver() -> None:
    runs = [*results(2), KeptResult("other", "csvc", "set-0", is_fresh=False)]
    assert ages(runs, [line("k0")]).word == "older"
    assert ages(runs, [line("k0"), line("other")]).word == "rechecked"


def test_rechecked_needs_a_twentieth_of_the_cells() -> None:
    two = [line("k0"), line("k1")]
    assert ages(results(40), two).word == "rechecked"
    assert ages(results(41), two).word == "older"
    # The same cell twice is one cell, and cells of another plan are none.
    assert ages(results(40), [line("k0"), line("k0"), line("gone")]).word == "older"


def test_one_cell_that_disagrees_makes_a_run_changed() -> None:
    found = ages(results(4, fresh=1), [line("k1"), line("k2", DIFFERENCE)])
    assert found.words == {"k0": "fresh", "k1": "older", "k2": "changed", "k3": "older"}
    assert found.word == "changed"
    assert found.changed == {"k2": "main · iris · k2: objective was 1.0, is 2.0"}
    # A fresh key doesn't outweigh a result that was seen to differ.
    assert ages(results(1, fresh=1), [line("k0", DIFFERENCE)]).word == "changed"


def test_the_newest_recheck_of_a_cell_counts() -> None:
    assert ages(results(1), [line("k0", DIFFERENCE), line("k0")]).word == "rechecked"
    assert ages(results(1), [line("k0"), line("k0", DIFFERENCE)]).word == "changed"


def test_the_word_of_several_results_is_the_least_certain() -> None:
    assert worst(["fresh", "rechecked"]) == "rechecked"
    assert worst(["rechecked", "older"]) == "older"
    assert worst(["older", "changed", "fresh"]) == "changed"
    assert worst([]) == ""


def test_only_rechecks_of_the_present_code_are_read(tmp_path: Path) -> None:
    assert read_rechecks(tmp_path, lambda _: True) == []
    append_recheck(tmp_path, line("old"))
    append_recheck(tmp_path, line("new"))
    assert [one["key"] for one in read_rechecks(tmp_path, lambda one: one["key"] == "new")] == [
        "new"
    ]


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"schema": 2}', '{"schema": 1, "key": 3}', "[" * 100_000,
     json.dumps({**line("x"), "modules": [3]}),
     json.dumps({**line("x"), "differences": [{}]})],
)  # fmt: skip
def test_damaged_lines_are_passed_over(tmp_path: Path, damage: str) -> None:
    append_recheck(tmp_path, line("one"))
    with (tmp_path / rechecks.RECHECKS).open("a") as stream:
        stream.write(f"{damage}\n")
    append_recheck(tmp_path, line("two"))
    assert [one["key"] for one in read_rechecks(tmp_path, lambda _: True)] == ["one", "two"]


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    append_recheck(tmp_path, line("one"))
    with (tmp_path / rechecks.RECHECKS).open("a") as stream:
        stream.write('{"schema": 1, "key"')
    append_recheck(tmp_path, line("two"))
    assert [one["key"] for one in read_rechecks(tmp_path, lambda _: True)] == ["one", "two"]


def write(folder: Path, name: str, number: int) -> None:
    for count in range(number):
        append_recheck(folder, line(f"{name}{count}", fill="x" * 20_000))


def test_two_that_write_at_once_lose_no_line(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=write, args=(tmp_path, name, 20)) for name in "ab"]
    for one in both:
        one.start()
    for one in both:
        one.join()
    keys = [one["key"] for one in read_rechecks(tmp_path, lambda _: True)]
    assert sorted(keys) == sorted(f"{name}{n}" for name in "ab" for n in range(20))


def test_a_killed_writer_leaves_whole_lines(tmp_path: Path) -> None:
    writer = multiprocessing.get_context("fork").Process(target=write, args=(tmp_path, "a", 10**6))
    writer.start()
    path = tmp_path / rechecks.RECHECKS
    while not path.exists() or path.stat().st_size < 50_000:
        time.sleep(0.01)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    append_recheck(tmp_path, line("last"))
    keys = [one["key"] for one in read_rechecks(tmp_path, lambda _: True)]
    assert keys == [*(f"a{n}" for n in range(len(keys) - 1)), "last"]
    assert path.read_text().count("\n") == len(keys)
