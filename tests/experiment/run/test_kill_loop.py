"""SIGKILL at random moments: nothing finished is lost, repeated or left running.

Here each kind of run is killed once with one job and once with two. ``SVMBENCH_KILLS=300`` kills so
often in all, and prints how many kills there were, and when.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from killing import BLOCKS, MOMENTS, Bench, KillCounts

pytestmark = [pytest.mark.usefixtures("workshop"), pytest.mark.slow]

#: Each kind of run, how many jobs it has, and when it is killed.
SAMPLE = [
    ("nested search", 1, "work"),
    ("nested search", 2, "preload"),
    ("sweep", 1, "preload"),
    ("sweep", 2, "work"),
    ("race", 1, "work"),
    ("race", 2, "preload"),
]
MANY = int(os.environ.get("SVMBENCH_KILLS", "0"))


@pytest.fixture(scope="module")
def benches() -> dict[str, Bench]:
    """Return the undisturbed run of each kind, once it is asked for."""
    return {}


def bench(benches: dict[str, Bench], kind: str, folder: Path, logs: Path) -> Bench:
    return benches.get(kind) or benches.setdefault(kind, Bench(kind, folder, logs))


@pytest.mark.parametrize(("kind", "jobs", "moment"), SAMPLE)
def test_a_killed_run_goes_on_where_it_was(
    benches: dict[str, Bench], tmp_path: Path, logs: Path, kind: str, jobs: int, moment: str
) -> None:
    counts = KillCounts()
    chooser = random.Random(f"{kind} {jobs}")
    bench(benches, kind, tmp_path, logs).kill([moment], jobs, chooser, counts)
    assert counts.kills == 1
    assert (counts.in_preload if moment == "preload" else counts.at_work) == 1


def test_every_kind_of_run_is_killed_with_one_job_and_two() -> None:
    assert {(kind, jobs) for kind, jobs, _ in SAMPLE} == {(k, j) for k in BLOCKS for j in (1, 2)}


@pytest.mark.skipif(not MANY, reason="kills by the hundred: set SVMBENCH_KILLS")
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", BLOCKS)
def test_many_kills(
    benches: dict[str, Bench], tmp_path: Path, logs: Path, kind: str, capsys: pytest.CaptureFixture
) -> None:
    one = bench(benches, kind, tmp_path, logs)
    for jobs in (1, 2):
        chooser, counts = random.Random(f"many {kind} {jobs}"), KillCounts()
        weights = [1, 1, 3]
        one.kill(chooser.choices(MOMENTS, weights, k=-(-MANY // 6)), jobs, chooser, counts)
        with capsys.disabled():
            print(f"\n{kind}, {jobs} at a time: {counts}")
