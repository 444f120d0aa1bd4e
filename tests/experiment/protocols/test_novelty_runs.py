"""Novelty detection as experiments: overridden data sets, races with scores, simulated draws."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_in_process, svmbench, write_config
from scipy.stats import hypergeom

from svmbench.baselines.catalogue import solver as svmbench_solver
from svmbench.data import load
from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.protocols import protocols
from svmbench.experiment.protocols.task import Task
from svmbench.report.plots.kinds import frequency
from svmbench.report.reading.records import read_run
from svmbench.schema import scores
from svmbench.schema.specs import PlotSpec

GAUSS = [{"name": "gauss-oneclass-c", "novelty": {"ratio": 0.1}}]
NOVELTY = {"task": "one-class", "scores": ["auc", "f1"], "select_by": "auc", "max_samples": 600}


def scored(solvers: list[dict], **block):
    block = {"protocol": "scored-race", "repeats": 1, **NOVELTY, **block}
    (cell,) = cells_in_process(solvers, block, datasets=GAUSS, seed=3)
    return cell


@pytest.mark.slow
def test_a_race_reports_costs_and_scores_of_models_that_saw_the_normal_class_alone() -> None:
    solvers = [
        {"name": "fosvm1", "params": {"gamma": 1.0}},
        {"name": "one-class", "params": {"gamma": 1.0, "nu": 0.1}},
        {
            "class": "sklearn.ensemble.IsolationForest",
            "label": "forest",
            "params": {"max_samples": 50},
        },
    ]
    cell = scored(solvers, pairs=[["fosvm1", "one-class"]])
    metrics = cell["metrics"]
    # 600 rows of 1,100, a fifth of them held out; one in eleven is abnormal.
    assert metrics["n_test"] == 120
    assert 430 <= metrics["n_train"] <= 440
    for name in ("fosvm1", "one-class", "forest"):
        assert 70.0 < metrics[f"auc_pct:{name}"] <= 100.0
        assert 0.0 < metrics[f"f1_pct:{name}"] <= 100.0
        assert metrics[f"n_iter:{name}"] >= 1
    ratio = metrics["cpu_time_s:one-class"] / metrics["cpu_time_s:fosvm1"]
    assert metrics["ratio:fosvm1:one-class"] == pytest.approx(ratio)
    assert cell["counters"]["passes:fosvm1"] == metrics["n_iter:fosvm1"]
    assert cell["stop_reason"] == ""


@pytest.mark.slow
def test_a_ladder_costs_its_first_rung_near_the_reference_or_never_gets_there() -> None:
    reference = {"name": "one-class", "params": {"gamma": 1.0, "nu": 0.1}}
    rungs = [0.9, 0.5, 0.1, 0.01]
    ladder = {"name": "fosvm1", "params": {"gamma": 1.0}, "grid": {"theta": rungs}}
    auc = []
    for theta in rungs:
        alone = scored([{"name": "fosvm1", "params": {"gamma": 1.0, "theta": theta}}])
        auc.append(alone["metrics"]["auc_pct:fosvm1"])
    target = scored([reference])["metrics"]["auc_pct:one-class"]
    pairs = [["fosvm1", "one-class"]]
    within = max(0.0, target - max(auc[1:])) + 1e-9
    assert auc[0] < target - within
    cell = scored([reference, ladder], reference="one-class", within=within, pairs=pairs)
    first = next(p for p, value in enumerate(auc) if value >= target - within)
    assert cell["params"]["theta:fosvm1"] == rungs[first]
    assert cell["metrics"]["auc_pct:fosvm1"] == auc[first]
    assert cell["metrics"]["ratio:fosvm1:one-class"] > 0.0
    assert cell["stop_reason"] == ""
    short = {**ladder, "grid": {"theta": [0.95, 0.9]}}
    never = scored([reference, short], reference="one-class", within=within, pairs=pairs)
    assert never["metrics"]["ratio:fosvm1:one-class"] is None
    assert "cpu_time_s:fosvm1" not in never["metrics"]
    assert never["stop_reason"].startswith("fosvm1 never came within")
    assert never["stop_reason"].endswith("of one-class's auc")


def test_a_setting_on_its_own_has_its_cost_near_or_not() -> None:
    solvers = [
        {"name": "one-class", "params": {"gamma": 1.0, "nu": 0.1}},
        {"name": "fosvm1", "params": {"gamma": 1.0, "theta": 0.9}},
    ]
    cell = scored(solvers, reference="one-class", within=0.0)
    assert cell["metrics"]["cpu_time_s:fosvm1"] > 0.0
    assert cell["stop_reason"] == "fosvm1 never came within 0 of one-class's auc"


def test_draws_are_simulated_for_every_m() -> None:
    solvers = [{"name": "fosvm2", "params": {"gamma": 1.0}, "grid": {"n_candidates": [3, 59]}}]
    block = {"name": "b", "protocol": "simulate", "task": "one-class", "repeats": 1500}
    top = {"title": "t", "datasets": GAUSS, "solvers": solvers, "blocks": [block]}
    (planned,) = make_plan(Config.model_validate(top), "t", "paper").cells
    points: dict[str, Any] = {}
    cell = protocols()["simulate"].run(Task(planned.spec, emit=points.__setitem__))
    assert cell["metrics"]["n_train"] == 1000
    assert list(points) == ["n_candidates=3", "n_candidates=59"]
    for m, point in zip((3, 59), points.values(), strict=True):
        found = point["metrics"]
        n = found["n_outside"]
        assert n == 1000 - point["counters"]["active"]
        exact = 1.0 - hypergeom.pmf(0, n, round(0.05 * n), m)
        assert found["expected_pct"] == pytest.approx(100.0 * exact)
        assert found["claimed_pct"] == pytest.approx(100.0 * (1.0 - np.exp(-m * 0.05)), abs=0.2)
        assert found["hit_low_pct"] <= found["hit_pct"] <= found["hit_high_pct"]
        spread = 100.0 * np.sqrt(exact * (1.0 - exact) / 1500)
        assert abs(found["hit_pct"] - 100.0 * exact) < 4.5 * spread
        assert found["hit_high_pct"] - found["hit_low_pct"] == pytest.approx(
            3.92 * spread, rel=0.25
        )
        assert point["dimensions"] == {"solver.n_candidates": m}


def test_a_solver_without_draws_says_so() -> None:
    solvers = [{"name": "fosvm1", "grid": {"theta": [0.1, 0.2]}}]
    with pytest.raises(ValueError, match="fosvm1 draws no candidates"):
        cells_in_process(solvers, {"protocol": "simulate", "task": "one-class"}, datasets=GAUSS)


@pytest.mark.slow
def test_a_race_of_detectors_trains_on_the_normal_rows() -> None:
    block = {"protocol": "race", "task": "one-class", "tolerance": 1e-2, "repeats": 1}
    solvers = [{"name": name, "params": {"gamma": 1.0, "nu": 0.1}} for name in
               ("one-class", "libsvm-oneclass")]  # fmt: skip
    block["pairs"] = [["one-class", "libsvm-oneclass"]]
    (cell,) = cells_in_process(solvers, block, datasets=GAUSS)
    assert cell["metrics"]["n_train"] == 1000
    assert cell["metrics"]["ratio:one-class:libsvm-oneclass"] > 0.0
    assert cell["metrics"]["excess_objective:one-class"] < 1e-2


@pytest.mark.parametrize("name", ["fosvm1", "one-class", "kde"])
@pytest.mark.parametrize("label", [1, -1])
def test_rows_of_one_class_have_no_auc_and_say_so(name: str, label: int) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = svmbench_solver(name).fit(X[:20])
    found, undefined = scores.evaluate(["auc", "f1", "recall"], model, X[20:], np.full(10, label))
    assert "auc_pct" not in found
    assert "all test rows belong to one class" in undefined["auc_pct"]
    assert ("recall_pct" in found) == (label == 1)
    assert all(np.isfinite(value) for value in found.values())


def test_an_unknown_normal_class_is_one_sentence(tmp_path: Path) -> None:
    datasets = [{"name": "gauss-oneclass-b", "novelty": {"normal": ["7"], "ratio": 0.1}}]
    config = write_config(
        tmp_path, ["fosvm1"], {"protocol": "fit", "task": "one-class"}, datasets=datasets
    )
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 3
    assert "gauss-oneclass-b has no class '7'; its classes are -1, 1" in ended.said
    for ratio in (0, -1, "x"):
        datasets[0]["novelty"]["ratio"] = ratio
        config = write_config(tmp_path, ["fosvm1"], datasets=datasets)
        ended = svmbench("run", config, "--output", tmp_path / "out")
        assert ended.code == 2
        assert "datasets[0].novelty.ratio" in ended.said


def test_frequencies_are_drawn_with_intervals_beside_what_is_claimed(tmp_path: Path) -> None:
    solvers = [{"name": "fosvm2", "params": {"gamma": 1.0}, "grid": {"n_candidates": [3, 59]}}]
    block = {"protocol": "simulate", "task": "one-class", "repeats": 200}
    tables = [{"name": "t", "block": "main", "rows": "solver.n_candidates", "metrics": ["hit_pct"]}]
    plots = [{"name": "p", "kind": "frequency", "block": "main"}]
    config = write_config(tmp_path, solvers, block, datasets=GAUSS, tables=tables, plots=plots)
    out = tmp_path / "out"
    ended = svmbench("run", config, "--output", out)
    assert ended.code == 0, ended.said
    run = read_run(out)
    curves = frequency.collect_frequencies(run, PlotSpec.model_validate(run.plots[0]))
    (panel,) = curves.panels
    series = {one.name: one.points for one in panel.series}
    assert [point.x for point in series["observed"]] == [3, 59]
    for observed, claimed, exact in zip(*series.values(), strict=True):
        assert observed.low <= observed.y <= observed.high
        assert claimed.y < exact.y
        assert observed.low - 3.0 <= exact.y <= observed.high + 3.0
    assert (out / "p.png").stat().st_size > 5000


@pytest.mark.slow
def test_what_a_detector_is_made_of_is_marked_among_all_rows(tmp_path: Path) -> None:
    block = {"name": "b", "protocol": "fit", "plane": True, "task": "one-class", "scaling": "none"}
    solvers = [{"name": "kde"}, {"name": "fosvm1", "params": {"gamma": 1.0}}]
    config = {"title": "t", "datasets": GAUSS, "solvers": solvers, "blocks": [block]}
    plan = make_plan(Config.model_validate(config), "t", "paper")
    held = []
    for planned in plan.cells:
        path = tmp_path / "artifacts" / f"{planned.key}.npz"
        protocols()["fit"].run(Task(planned.spec, artifact=path))
        with np.load(path) as arrays:
            held.append(dict(arrays))
    density, hard = held
    # A density is made of every normal row; the hard margin of some, on the outline.
    assert np.array_equal(density["marked"], density["y"] == 1)
    assert 0 < hard["marked"].sum() < 60
    assert np.all(hard["y"][hard["marked"]] == 1)
    assert hard["decision"].min() < 0.0 < hard["decision"].max()


def test_cross_validation_counts_the_rows_of_which_a_fit_learns() -> None:
    """Abnormal rows are tested and not trained on, and are no training samples."""
    block = {"protocol": "cv", "task": "one-class", "folds": 3, "scores": ["auc"]}
    (cell,) = cells_in_process([{"name": "one-class"}], block, datasets=["breast-cancer[:90]"])
    n_normal = int(np.sum(load("breast-cancer[:90]").y == 1))
    assert cell["metrics"]["n_train"] == pytest.approx(2 * n_normal / 3, abs=1)
    assert cell["metrics"]["n_test"] == 30
