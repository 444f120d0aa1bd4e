"""The protocol screening-sample: drawn values, their costs, and bootstrap intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.nu.qp_solvers import LIBRARIES, QP_SOLVERS
from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.protocols import screening, screening_sample
from svmbench.experiment.protocols.task import Task

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="too slow as plain Python")

GRID = {"nu": {"start": 0.3, "stop": 0.7, "step": 0.05}}
PAIR = ["srbo-nu-svm", "nu-svm"]


def cell_of(protocol: str, **settings: Any) -> Any:
    params = {"tol": 1e-9}
    solvers = [{"name": name, "params": params, "grid": GRID} for name in PAIR[::-1]]
    solvers.append({"name": "c-svm-bounded", "grid": {"C": [1.0, 8.0]}})
    block = {
        "name": "main",
        "protocol": protocol,
        "gammas": [2.0, 0.5],
        "pairs": [PAIR],
        **settings,
    }
    config = {"title": "t", "datasets": ["breast-cancer[:90]"], "solvers": solvers}
    (cell,) = make_plan(Config.model_validate({**config, "blocks": [block]}), "t", "paper").cells
    return cell.spec


def run(spec: Any, done: Any = None) -> tuple[Any, dict[str, Any]]:
    points: dict[str, Any] = {}
    emit = lambda name, values: points.update({name: values})  # noqa: E731
    return screening_sample.screening_sample(Task(spec, done=done or {}, emit=emit)), points


@pytest.mark.slow
def test_a_drawn_value_has_the_solution_that_it_has_on_the_whole_path() -> None:
    whole: dict[str, Any] = {}
    spec = cell_of("screening", scores=["accuracy"])
    screening.screening(Task(spec, emit=lambda name, values: whole.update({name: values})))
    objectives = {
        (name, gamma, round(0.3 + 0.05 * at, 2)): value
        for name in PAIR
        for gamma in (2.0, 0.5)
        for at, value in enumerate(whole[f"{name} gamma={gamma}"]["params"]["objectives"])
    }
    outcome, points = run(cell_of("screening-sample", draws={0: 6, 91: 3}))
    assert [outcome["metrics"][f"n_values:{name}"] for name in PAIR] == [6, 6]
    # There are two values of C at two widths, fewer than were asked for.
    assert outcome["metrics"]["n_values:c-svm-bounded"] == 4
    drawn: dict[str, list[Any]] = {name: [] for name in PAIR}
    for point, one in points.items():
        name, place = point.partition(" ")[0], one["params"]
        if name in PAIR:
            drawn[name].append((place["gamma"], place["nu"]))
            expected = objectives[(name, *drawn[name][-1])]
            assert one["metrics"]["objective"] == pytest.approx(expected, rel=1e-6)
    assert sorted(drawn[PAIR[0]]) == sorted(drawn[PAIR[1]])
    assert len(set(drawn[PAIR[0]])) == 6
    assert outcome["metrics"]["objective_difference:srbo-nu-svm:nu-svm"] <= 1e-7


@pytest.mark.slow
def test_costs_are_means_and_ratios_over_the_points_which_may_be_kept() -> None:
    spec = cell_of("screening-sample", draws={0: 24, 50: 3})
    first, points = run(spec)
    cpu = {
        name: [one["metrics"]["cpu_s"] for point, one in points.items() if f"{name} p" in f"{point}"
               and point.startswith(name)]
        for name in PAIR
    }  # fmt: skip
    assert {name: len(own) for name, own in cpu.items()} == dict.fromkeys(PAIR, 3)
    ratio = sum(cpu["nu-svm"]) / sum(cpu["srbo-nu-svm"])
    assert first["metrics"]["speedup:srbo-nu-svm"] == pytest.approx(ratio)
    low, high = first["spread"]["speedup:srbo-nu-svm"]
    assert low <= ratio <= high
    assert first["metrics"]["cpu_time_s:nu-svm"] == pytest.approx(np.mean(cpu["nu-svm"]))
    again, repeated = run(spec, points)
    assert not repeated
    assert again["metrics"] == first["metrics"]
    # Where one solver's point is missing, all run again that are compared at it.
    kept = {name: one for name, one in points.items() if name != "nu-svm point=1"}
    _, repeated = run(spec, kept)
    assert {name.partition(" ")[2] for name in repeated} == {"point=1"}
    assert len(repeated) == 3


def test_the_interval_of_a_mean_covers_it_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(100):
        _, (low, high) = screening_sample._with_interval(random.normal(1.0, 0.2, size=40))
        hits += low <= 1.0 <= high
    assert 88 <= hits <= 99


def test_a_sample_says_how_many_draws_the_smallest_sets_have() -> None:
    with pytest.raises(ValidationError, match="give one for 0 rows"):
        cell_of("screening-sample", draws={100: 5})


def test_the_libraries_are_the_solvers_whose_names_begin_with_qp() -> None:
    """The protocol tells them so: importing their module would put kernel code into every key."""
    assert {name for name in QP_SOLVERS if name.startswith("qp")} == {*LIBRARIES}
