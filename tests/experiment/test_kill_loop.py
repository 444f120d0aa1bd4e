"""Fifty times SIGKILL, at random moments: nothing finished is lost, repeated or left running."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from runs import lines_of, results_of, start, svmbench, wait_until, write_config
from test_durability import alive, children_of, table_without_times

pytestmark = [pytest.mark.usefixtures("workshop"), pytest.mark.slow]

#: For each of two sequences, so that two processes can share the work.
KILLS = 25
GRID = [0.25, 0.5, 1.0, 2.0]
#: Outer folds × (inner folds × grid points in the search, and one fit for each fold).
CELLS, POINTS = 3, 3 * 3 * len(GRID)
#: Roughly what a run takes to its first cell, and from there to its end, in seconds.
TO_THE_FIRST_CELL_S, AT_WORK_S = 2.0, 1.5
#: Breast-cancer has 569 rows: an inner training set has about 253 of them, an outer one 379.
INNER_AT_MOST = 300


def small_config(folder: Path) -> Path:
    """Write a config with two solvers on the same scaled folds, so that arrays are shared."""
    solvers = [{"name": "test-counts", "grid": {"C": GRID}}, "test-works"]
    block = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3}
    return write_config(folder, solvers, block)


def whole_lines(folder: Path) -> bytes:
    """Return what the records hold up to the last whole line."""
    path = folder / "runs.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return content[: content.rfind(b"\n") + 1]


def search_fits(logs: Path) -> int:
    lines = (logs / "fits").read_text().splitlines() if (logs / "fits").exists() else []
    return sum(int(line.split()[2]) < INNER_AT_MOST for line in lines)


def kill_at(process: subprocess.Popen[str], out: Path, chooser: random.Random) -> tuple[bool, str]:
    """Kill a run at a random moment and wait until its family is gone.

    Returns whether it had not ended before, and what it printed.
    Two moments in five lie anywhere after the start (imports, plan, the server that workers are
    forked from), the others after the first new record.
    """
    family: set[int] = set()

    def watched() -> bool:
        nonlocal family
        family |= children_of(process.pid)
        return process.poll() is None

    if chooser.random() < 0.6:
        already = len(whole_lines(out))
        while watched() and len(whole_lines(out)) == already:
            time.sleep(0.02)
        deadline = time.monotonic() + chooser.uniform(0, AT_WORK_S)
    else:
        deadline = time.monotonic() + chooser.uniform(0, TO_THE_FIRST_CELL_S)
    while watched() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    said = "".join(process.communicate(timeout=30))
    wait_until(lambda: not alive(family), seconds=5)
    return process.returncode == -signal.SIGKILL, said


def rows_of(folder: Path) -> list[dict[str, str]]:
    """Return the table but for times, and for the state of the checkout it was made in."""
    return [{**row, "environment": ""} for row in table_without_times(folder)]


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments(tmp_path: Path, logs: Path, seed: int) -> None:
    config = small_config(tmp_path)
    assert svmbench("run", config, "--output", tmp_path / "whole").code == 0
    expected = results_of(tmp_path / "whole")
    table = rows_of(tmp_path / "whole")

    chooser = random.Random(seed)
    kills, rounds, while_it_worked = 0, 0, 0
    while kills < KILLS:
        rounds += 1
        out = tmp_path / f"out-{rounds}"
        (logs / "fits").unlink(missing_ok=True)
        before, kills_here = b"", 0
        while True:
            jobs = chooser.choice([1, 2])
            process = start("run", config, "--output", out, "--jobs", jobs)
            was_killed, said = kill_at(process, out, chooser)
            now = whole_lines(out)
            # Nothing that was recorded is lost; the same bytes, and perhaps more.
            assert now.startswith(before)
            while_it_worked += was_killed and len(now) > len(before)
            before = now
            if not was_killed:
                assert process.returncode == 0, said
                break
            kills, kills_here = kills + 1, kills_here + 1
            if kills == KILLS:
                assert svmbench("run", config, "--output", out).code == 0
                break
        keys = Counter((r["key"], r.get("point")) for r in lines_of(out))
        assert set(keys.values()) == {1}
        assert sum(point is None for _, point in keys) == 2 * CELLS
        # Only the fits that were under way may have been done in vain: one a worker and kill.
        assert POINTS <= search_fits(logs) <= POINTS + 2 * kills_here
        assert results_of(out) == expected
        assert rows_of(out) == table
        assert json.loads((out / "plan.json").read_text())["schema"] == 1
    print(f"{kills} kills in {rounds} rounds, {while_it_worked} of them while it worked")
    assert while_it_worked >= KILLS // 3
