"""Draws fit their budget, reach every solver, and hold short and long cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svmbench.experiment.run.batch import CONFIG_OVERHEAD_S
from svmbench.experiment.run.draws import (
    MAX_BUDGET_SHARE,
    RECHECK_OVERHEAD_S,
    Candidate,
    completing_cells,
    draw,
)
from svmbench.report.reading.records import result_lines
from svmbench.schema.rechecks import KeptResult, ages
from svmbench.studies.rechecking import kept_runs

ROOT = Path(__file__).parents[3]
#: Simulated draws; the standard error of a probability of 0.95 is 0.013.
N_DRAWS = 100
MINUTES = 5


def candidates(*seconds: float, run: str = "run", solver: str = "smo") -> list[Candidate]:
    return [
        Candidate(run, f"{solver}{n}", solver, f"set-{n}", value, (solver,))
        for n, value in enumerate(seconds)
    ]


def test_a_draw_is_decided_by_its_seed() -> None:
    cells = candidates(*[1.0] * 50)
    assert draw(cells, 30, 1) == draw(cells, 30, 1) != draw(cells, 30, 2)


def test_a_draw_fits_its_budget() -> None:
    cells = candidates(*[1.0] * 50) + candidates(*[2.0] * 50, run="other", solver="csvc")
    for seed in range(20):
        drawn = draw(cells, 30, seed)
        cost = sum(one.seconds + RECHECK_OVERHEAD_S for one in drawn)
        assert cost + CONFIG_OVERHEAD_S * len({one.run for one in drawn}) <= 30
        assert len(set(drawn)) == len(drawn)


def test_a_budget_for_everything_draws_everything() -> None:
    cells = candidates(1.0, 2.0, 3.0) + candidates(0.1, run="other", solver="csvc")
    assert set(draw(cells, 600, 0)) == set(cells)


def test_a_budget_that_is_used_up_draws_everything() -> None:
    cells = candidates(2.0, 2.0, 2.0, 2.0, 2.0)
    budget = sum(one.seconds + RECHECK_OVERHEAD_S for one in cells) + CONFIG_OVERHEAD_S
    assert set(draw(cells, budget, 0)) == set(cells)
    assert len(draw(cells, budget - 0.5, 0)) == 4


def test_cells_too_long_for_the_budget_are_left_out() -> None:
    assert draw(candidates(61.0, 59.0), 60 / MAX_BUDGET_SHARE, 0) == candidates(61.0, 59.0)[1:]


def test_short_and_long_cells_both_come_up() -> None:
    cells = candidates(*[0.1] * 100, *[1.0] * 100, *[10.0] * 100)
    drawn = [one.seconds for seed in range(50) for one in draw(cells, 60, seed)]
    share = {value: value * drawn.count(value) / sum(drawn) for value in set(drawn)}
    assert share.keys() == {0.1, 1.0, 10.0}
    assert share[10.0] > 0.2


def test_data_sets_that_were_not_drawn_come_first() -> None:
    cells = [
        Candidate("run", f"{name}{n}", "smo", name, 1.0, ("smo",))
        for name in ("a", "b", "c") for n in range(20)
    ]  # fmt: skip
    for seed in range(20):
        assert {one.dataset for one in draw(cells, 3.7 + CONFIG_OVERHEAD_S, seed)} == {
            "a",
            "b",
            "c",
        }


def test_cells_that_agreed_before_come_last() -> None:
    known = [
        Candidate("run", f"k{n}", "smo", "a", 0.1, ("smo",), has_agreed=True) for n in range(50)
    ]
    new = [Candidate("run", f"n{n}", "smo", "a", 1.0, ("smo",)) for n in range(3)]
    drawn = draw(known + new, 12, 0)
    assert {one.key for one in drawn[:3]} == {"n0", "n1", "n2"}


def test_cells_as_new_as_the_code_come_last() -> None:
    fresh = [replace(one, is_fresh=True) for one in candidates(*[0.1] * 50)]
    older = candidates(1.0, 1.0, 1.0, run="older")
    assert set(draw(fresh + older, 12, 0)[:3]) == set(older)


def test_a_draw_completes_samples_of_every_solver_on_every_data_set() -> None:
    cells = [
        Candidate(run, f"{run}{solver}{name}{n}", solver, name, seconds, (solver,))
        for run, seconds in (("slow", 2.0), ("quick", 0.1))
        for solver in ("smo", "csvc") for name in ("a", "b") for n in range(100)
    ]  # fmt: skip
    n_first = 0
    for seed in range(20):
        # Both samples fit: 20 cells of 2.2 s and 20 of 0.3 s.
        drawn = draw(cells, 51 + 2 * CONFIG_OVERHEAD_S, seed)
        for run in ("quick", "slow"):
            kept = [KeptResult(one.key, one.solver, one.dataset, False) for one in cells
                    if one.run == run]  # fmt: skip
            sample: list[Any] = [{"key": one.key, "differences": []} for one in drawn
                                 if one.run == run]  # fmt: skip
            assert ages(kept, sample).is_sampled, (seed, run)
        n_first += drawn[5].run == "quick"
    assert 10 <= n_first < 20


def test_samples_draw_only_what_a_run_lacks() -> None:
    cells = [replace(one, has_agreed=one.dataset != "set-3") for one in candidates(*[1.0] * 20)]
    assert [one.dataset for one in completing_cells(cells, cells, ())] == ["set-3"]
    assert completing_cells(cells, cells, [cells[3]]) == []
    for word in ("has_agreed", "is_fresh"):
        all_alike: list[Candidate] = [replace(one, **{word: True}) for one in cells]
        assert completing_cells(all_alike, all_alike, ()) == []
    # A twentieth of the cells, beyond one of each solver on each data set.
    alike = [replace(one, dataset="a") for one in candidates(*[1.0] * 100)]
    assert completing_cells(alike, alike[50:], ()) == alike[50:55]
    # Nothing, if a part of the sample can't be drawn.
    assert completing_cells(alike, alike[:4], ()) == []
    assert completing_cells(cells, cells[:3], ()) == []


def kept() -> Iterator[tuple[Candidate, dict[str, Any]]]:
    for run in kept_runs([ROOT / "results"]):
        lines = {line["key"]: line for line in result_lines(run.folder)}
        for one in run.candidates:
            yield one, lines[one.key]


@pytest.mark.slow
def test_five_minutes_find_a_change_of_any_solver_fold_or_kernel() -> None:
    """Simulate draws from the kept records; a change is found where a drawn cell depends on it."""
    facts = dict(kept())
    cells = list(facts)
    within = [one for one in cells if one.seconds <= MAX_BUDGET_SHARE * MINUTES * 60]
    modules = {module for one in within for module in one.modules}
    found = dict.fromkeys([*modules, "folds", "kernel"], 0)
    for seed in range(N_DRAWS):
        drawn = draw(cells, MINUTES * 60, seed)
        seen = {module for one in drawn for module in one.modules}
        for module in seen:
            found[module] += 1
        found["folds"] += any("cv" in facts[one]["protocol"] for one in drawn)
        found["kernel"] += any(facts[one].get("kernel") not in (None, "linear") for one in drawn)
    rates = {name: count / N_DRAWS for name, count in found.items()}
    assert min(rates.values()) > 0.95, json.dumps(rates, indent=1)
