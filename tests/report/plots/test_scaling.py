"""The numbers of docs/scaling.md: costs by hand, waiting by its laws, the page as it is made."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from script_loading import load_script

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    return load_script("scaling", "results/perf")


@pytest.mark.slow
def test_the_page_is_what_the_script_makes_of_what_was_measured(scaling: ModuleType) -> None:
    page = scaling.PAGE.read_text(encoding="utf-8")
    assert page == scaling.filled(page, scaling.tables(json.loads(scaling.MEASURED.read_text())))
    assert page.count("| --- |") == 5


def test_costs_by_hand(scaling: ModuleType) -> None:
    counters = json.loads(scaling.MEASURED.read_text())["counters"]
    found = scaling.costs(counters, d=4, n=1000)
    sums = found["alsvm-batch"]
    # Ten products of the triangle of a row with three features and a constant, as many numbers.
    assert (sums.passes, sums.flops, sums.sent, sums.messages) == (1, 10, 80, 1)
    newton = found["newton-l2"]
    assert (newton.flops, newton.sent) == (8, 32)
    assert newton.passes == newton.messages == counters["newton-l2"]["passes"]
    assert found["pegasos"].passes == counters["pegasos"]["steps"] / 1000
    assert found["alsvm"].messages == 1000
    wide = scaling.costs(counters, d=8, n=1000)
    assert wide["alsvm-batch"].sent / sums.sent == 3.6
    assert wide["newton-l2"].sent / newton.sent == 2


def test_every_linear_solver_of_ours_is_there(scaling: ModuleType) -> None:
    from svmbench.baselines.catalogue import solver_class, solvers

    counters = json.loads(scaling.MEASURED.read_text())["counters"]
    own = {
        name
        for name in solvers()
        if solver_class(name).__module__.startswith("svmbench.core.linear.")
    }
    assert set(scaling.costs(counters, 301, 1e9)) == own


def undisturbed(scaling: ModuleType, monkeypatch: pytest.MonkeyPatch, **but: float) -> None:
    for name, value in {"SLOW_MACHINES": 0.0, "SLOW_TASKS": 0.0, "SPREAD": 0.0, **but}.items():
        monkeypatch.setattr(scaling, name, value)


def test_equal_machines_wait_for_nobody(
    scaling: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed(scaling, monkeypatch)
    for way in scaling.WAYS:
        for machines in (1, 7):
            found = scaling.slowdown(machines, way, 3, np.random.default_rng(0))
            assert found == pytest.approx(1.0)


def test_one_slow_task_in_a_pass_is_waited_for_with_its_probability(
    scaling: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed(scaling, monkeypatch, SLOW_TASKS=0.01)
    found = scaling.slowdown(50, scaling.WAYS[0], 4000, np.random.default_rng(1))
    expected = 1.0 + 4.0 * (1.0 - 0.99**50)
    assert found == pytest.approx(expected, rel=0.05)


def test_a_slow_machine_is_worked_around_by_a_queue(
    scaling: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed(scaling, monkeypatch)
    speeds = np.array([1 / 3, *np.ones(9)])
    rng = np.random.default_rng(0)
    alone, queue = (scaling._one_pass(speeds, tasks, copies=False, rng=rng) for tasks in (1, 20))
    assert alone == pytest.approx(3.0)
    # 200 tasks of 1/20 at a rate of 9 1/3 a machine's share, and at most one slow task more.
    assert 10 / (9 + 1 / 3) <= queue <= 10 / (9 + 1 / 3) + 3 / 20


def test_copies_of_late_tasks_never_take_longer(scaling: ModuleType) -> None:
    for seed in range(20):
        speeds = np.where(np.arange(30) == 4, 1 / 3, 1.0)
        plain, copied = (
            scaling._one_pass(speeds, 20, copies=copies, rng=np.random.default_rng(seed))
            for copies in (False, True)
        )
        assert copied <= plain
    sure = scaling.simulated(sizes=(100,))
    assert sure == scaling.simulated(sizes=(100,))
    static, queue, copies = sure[100].values()
    assert static > queue > copies > 1.0


@pytest.mark.slow
def test_check_says_what_differs(
    scaling: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "scaling.md"
    page.write_text(scaling.PAGE.read_text().replace("| 1 |", "| 2 |"))
    monkeypatch.setattr(scaling, "PAGE", page)
    assert scaling.main(["--check"]) == 1
    assert scaling.main([]) == 0
    assert scaling.main(["--check"]) == 0
