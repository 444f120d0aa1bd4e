"""Processes for several items: every result comes, and what ends the loop ends them."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from runs import wait_until

from svmbench.side_by_side import side_by_side

SLEEPERS = """
import time
from svmbench.side_by_side import side_by_side

if __name__ == "__main__":
    for found in side_by_side(time.sleep, [0.0, 60.0, 60.0, 60.0], 2):
        print("begun", flush=True)
"""


def has_anybody(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_item_has_its_result() -> None:
    assert sorted(side_by_side(math.sqrt, [16.0, 4.0, 9.0], 2)) == [2.0, 3.0, 4.0]
    assert list(side_by_side(math.sqrt, [], 2)) == []


def test_an_error_ends_the_others() -> None:
    began = time.monotonic()
    with pytest.raises(TypeError):
        list(side_by_side(time.sleep, ["a word", 60.0, 60.0], 2))  # type: ignore[list-item]
    assert time.monotonic() - began < 30
    assert not multiprocessing.active_children()


def test_a_loop_that_is_left_ends_the_others() -> None:
    results = side_by_side(time.sleep, [0.0, 60.0, 60.0], 2)
    began = time.monotonic()
    assert next(results) is None
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 30


def test_a_process_that_dies_is_no_endless_wait() -> None:
    with pytest.raises(BrokenProcessPool):
        list(side_by_side(os._exit, [3], 1))


@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGINT), (os.killpg, signal.SIGINT), (os.kill, signal.SIGKILL)],
    ids=["the command is interrupted", "all of them are", "the command is killed"],
)
def test_the_end_of_the_command_is_everybodys(
    send: Callable[[int, int], None], number: int, tmp_path: Path
) -> None:
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    send(process.pid, number)
    began = time.monotonic()
    process.communicate(timeout=50)
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    wait_until(lambda: not has_anybody(process.pid), seconds=10)
