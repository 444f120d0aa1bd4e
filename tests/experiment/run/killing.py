"""Runs that are killed at random moments, of sweeps, races and nested searches: what must hold.

Nothing that was recorded is lost or recorded twice, only what was under way is done again, what a
killed run goes on to is what an undisturbed one comes to, and no process outlives a run by five
seconds. ``scripts/kill.py`` kills by the hundred; the tests take a sample.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs import lines_of, results_of, start, svmbench, wait_until, write_config
from test_durability import alive, children_of, servers_among, table_without_times

GRID = [0.25, 0.5, 1.0, 2.0]
#: Breast-cancer has 569 rows: an inner training set has about 253 of them, an outer one 379.
INNER_AT_MOST = 300
#: A process may outlive its run by so many seconds.
GONE_S = 5.0

#: Blocks by what is killed, each with its solvers. ``test-counts`` waits a little in each fit.
BLOCKS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "nested search": (
        [{"name": "test-counts", "grid": {"C": GRID}}, "test-works"],
        {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3},
    ),
    "sweep": (
        ["test-counts", "test-works"],
        {"protocol": "fit", "sweep": {"rows": [100, 200, 300], "solver.C": [0.5, 1.0]}},
    ),
    "race": (
        ["test-counts", "test-works"],
        {"protocol": "race", "tolerance": None, "sizes": [100, 200, 300, 400]},
    ),
}
#: Fits of the nested search: outer folds × inner folds × points of the grid.
SEARCH_FITS = 3 * 3 * len(GRID)


@dataclass
class KillCounts:
    """What came of the kills: how many, and of them after a new record, and in the preload."""

    kills: int = 0
    at_work: int = 0
    in_preload: int = 0


class Bench:
    """A config of one kind, what an undisturbed run of it comes to, and where to run it."""

    def __init__(self, kind: str, folder: Path, logs: Path) -> None:
        solvers, block = BLOCKS[kind]
        self.kind, self.folder, self.logs = kind, folder, logs
        self.rounds = 0
        self.config = write_config(folder, solvers, block)
        whole = folder / "whole"
        ended = svmbench("run", self.config, "--output", whole)
        assert ended.code == 0, ended.said
        self.expected = outcomes_of(whole)
        self.table = rows_of(whole)

    def kill(
        self, moments: list[str], jobs: int, chooser: random.Random, counts: KillCounts
    ) -> None:
        """Kill runs at these moments, going on with each until it is whole; check as it goes."""
        todo = deque(moments)
        while todo:
            self.rounds += 1
            out = self.folder / f"out-{self.rounds}"
            (self.logs / "fits").unlink(missing_ok=True)
            before, kills = b"", 0
            while todo:
                process = start("run", self.config, "--output", out, "--jobs", jobs)
                killed, said = kill_at(process, out, todo[0], chooser, counts)
                now = whole_lines(out)
                assert now.startswith(before), "what was recorded is lost"
                counts.at_work += killed and len(now) > len(before)
                before = now
                if not killed:
                    assert process.returncode == 0, said
                    break
                todo.popleft()
                kills += 1
                counts.kills += 1
            self.check(out, kills, jobs)

    def check(self, out: Path, kills: int, jobs: int) -> None:
        """Let a run go on to its end and hold it to the undisturbed one."""
        ended = svmbench("run", self.config, "--output", out)
        assert ended.code == 0, ended.said
        keys = Counter((r["key"], r.get("point")) for r in lines_of(out))
        assert set(keys.values()) == {1}, "something is recorded twice"
        assert sum(point is None for _, point in keys) == len(self.expected)
        assert outcomes_of(out) == self.expected
        differing = [
            pair
            for pair in zip(rows_of(out), self.table, strict=True)
            if len({*map(str, pair)}) > 1
        ]
        assert not differing, differing[0]
        assert json.loads((out / "plan.json").read_text())["schema"] == 1
        if self.kind == "nested search":
            # Only the fits that were under way may have been done in vain: one a worker and kill.
            assert SEARCH_FITS <= search_fits(self.logs) <= SEARCH_FITS + jobs * kills


#: When a run is killed: anywhere in its first seconds; while the server of its workers loads what
#: they need; at or somewhat after the next record.
MOMENTS = ("start", "preload", "work")


def kill_at(
    process: subprocess.Popen[str], out: Path, when: str, chooser: random.Random, counts: KillCounts
) -> tuple[bool, str]:
    """Kill a run and wait until its family is gone.

    Returns whether it had not ended before, and what it printed.
    """
    family: set[int] = set()

    def watched() -> bool:
        nonlocal family
        family |= children_of(process.pid)
        return process.poll() is None

    if when == "preload":
        while watched() and not servers_among(family):
            time.sleep(0.01)
        delay = chooser.uniform(0, 0.2)
    elif when == "work":
        already = len(whole_lines(out))
        while watched() and len(whole_lines(out)) == already:
            time.sleep(0.01)
        delay = chooser.uniform(0, 0.7)
    else:
        delay = chooser.uniform(0, 3.0)
    deadline = time.monotonic() + delay
    while watched() and time.monotonic() < deadline:
        time.sleep(0.01)
    if when == "preload" and process.poll() is None and not whole_lines(out):
        counts.in_preload += 1
    process.kill()
    said = "".join(process.communicate(timeout=60))
    wait_until(lambda: not alive(family), seconds=GONE_S)
    return process.returncode == -signal.SIGKILL, said


def whole_lines(folder: Path) -> bytes:
    """Return what the records hold up to the last whole line."""
    path = folder / "runs.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return content[: content.rfind(b"\n") + 1]


def search_fits(logs: Path) -> int:
    """Return how many fits of inner searches have been begun."""
    lines = (logs / "fits").read_text().splitlines() if (logs / "fits").exists() else []
    return sum(int(line.split()[2]) < INNER_AT_MOST for line in lines)


def is_measured(metric: str) -> bool:
    """Return whether a metric is another each time: a time, a memory, a ratio of times."""
    return metric.partition(":")[0].endswith(("_s", "_mb", "ratio"))


def outcomes_of(folder: Path) -> list[dict[str, Any]]:
    """Return what each cell came to, but for what is measured."""
    return [
        {
            **result,
            "metrics": {k: v for k, v in result["metrics"].items() if not is_measured(k)},
        }
        for result in results_of(folder)
    ]


def rows_of(folder: Path) -> list[dict[str, str]]:
    """Return the table, but for what is measured and for the state of the checkout."""
    return [
        {**row, "environment": ""}
        for row in table_without_times(folder)
        if not is_measured(row["metric"])
    ]
