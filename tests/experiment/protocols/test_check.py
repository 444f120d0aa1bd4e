"""Experiments of other kinds, each from its config: a path, novelty detection, convergence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_in_process, svmbench
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, NuSVC

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.path import path
from svmbench.experiment.protocols.task import Task
from svmbench.report.plots.plot_data import read_plot, read_plot_data
from svmbench.report.reading.records import read_run


def lines_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]


def test_each_point_of_a_path_is_a_row(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = svmbench("run", "nu_svc_path", "--output", out)
    assert ended.code == 0, ended.said
    points = [line for line in lines_of(out) if line["kind"] == "point"]
    assert [point["dimensions"]["solver.nu"] for point in points][:3] == [0.05, 0.1, 0.15]
    rows = [line for line in (out / "nu.md").read_text().splitlines() if line.startswith("| 0.")]
    assert len(rows) == len(points) == 9
    # The class is scikit-learn's own, on rows and scaling that can be had without the suite.
    X, y = load_breast_cancer(return_X_y=True)
    seed = folds.derive_seed(1, "breast-cancer", "test")
    kept, test = folds.holdout_split(y, 0.2, seed)
    scaler = MinMaxScaler().fit(X[kept])
    model = NuSVC(nu=0.2, gamma=1.0).fit(scaler.transform(X[kept]), y[kept])
    expected = 100.0 * model.score(scaler.transform(X[test]), y[test])
    (point,) = [p for p in points if p["dimensions"] == {"solver.nu": 0.2}]
    assert point["metrics"]["accuracy_pct"] == pytest.approx(expected)


def test_values_of_a_path_are_chosen_in_its_grid_and_only_says_so(tmp_path: Path) -> None:
    words = ["run", "nu_svc_path", "--output", tmp_path / "out"]
    ended = svmbench(*words, "--only", "solver.nu=0.2")
    assert ended.code != 0
    instead = "--set blocks.path.solvers.nu-svc-sklearn.grid.nu=[0.2]"
    assert "a cell of path runs all values of nu, one after another" in ended.err
    assert instead in ended.err
    assert not (tmp_path / "out").exists()
    ended = svmbench(*words, *instead.split())
    assert ended.code == 0, ended.said
    points = [line for line in lines_of(tmp_path / "out") if line["kind"] == "point"]
    assert [point["dimensions"] for point in points] == [{"solver.nu": 0.2}]


@pytest.mark.slow
def test_novelty_is_scored_by_auc_on_rows_of_both_classes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = svmbench("run", "novelty", "--output", out)
    assert ended.code == 0, ended.said
    cells = [line for line in lines_of(out) if line["kind"] == "cell"]
    assert len(cells) == 15
    for cell in cells:
        assert 50.0 < cell["metrics"]["auc_pct"] < 100.0
        # 1,000 normal rows and 200 others: two thirds of the former train, a third of both tests.
        assert 660 <= cell["metrics"]["n_train"] <= 670
        assert cell["metrics"]["n_test"] == 400
    assert "AUC" in (out / "novelty.md").read_text()


@pytest.mark.slow
def test_convergence_is_followed_outside_what_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = svmbench("run", "convergence", "--output", out)
    assert ended.code == 0, ended.said
    cells = [line for line in lines_of(out) if line["kind"] == "cell"]
    followed = [cell for cell in cells if cell["solver"] == "dcd-l1"]
    assert len(followed) == 5
    assert all("trace" not in cell for cell in cells if cell["solver"] == "liblinear-l1")
    for cell in followed:
        trace = cell["trace"]
        assert len(trace) >= 20
        seconds, work, objective = zip(*trace, strict=True)
        assert list(seconds) == sorted(seconds)
        assert work[-1] == cell["metrics"]["n_iter"]
        assert objective[-1] == pytest.approx(cell["metrics"]["objective"])
    assert (out / "suboptimality.png").exists()


SOLVER = {"name": "csvc", "params": {"gamma": 0.1}, "grid": {"C": [0.25, 0.5, 1.0, 2.0]}}


@pytest.mark.slow
def test_planes_are_kept_for_the_plot_and_drawn_with_their_support_vectors(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = svmbench("run", "decision", "--output", out)
    assert ended.code == 0, ended.said
    plot = read_plot_data(run := read_run(out), read_plot(run.plots[0], "plan.json"))
    assert [panel.title for panel in plot.panels] == ["csvc", "mn-svm", "lssvm", "nl-sgd"]
    assert not plot.gaps
    # Beside scikit-learn alone, on the same rows: the same line, and the same support vectors.
    panel = plot.panels[0]
    points = {one.name: [(p.x, p.y) for p in one.points] for one in panel.series}
    X = np.array([*points["class -1"], *points["class 1"]])
    y = np.repeat([-1, 1], [len(points["class -1"]), len(points["class 1"])])
    model = SVC(C=10.0, gamma=20.0, tol=1e-6).fit(X, y)
    assert {tuple(row) for row in model.support_vectors_} <= set(points["marked"])
    assert panel.grid is not None
    nodes = np.column_stack([a.ravel() for a in np.meshgrid(panel.grid.x, panel.grid.y)])
    theirs = model.decision_function(nodes).reshape(panel.grid.values.shape)
    assert np.abs(panel.grid.values - theirs).max() < 0.02
    assert (out / "regions.png").exists()
    # Taken over by another run, the planes come with their cells.
    ended = svmbench("run", "decision", "--output", other := tmp_path / "other", "--reuse", out)
    assert "4 results taken over" in ended.out
    assert "0 to run" in ended.out
    assert planes_of(other) == planes_of(out)
    assert len(planes_of(other)) == 4


def planes_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "artifacts").iterdir()}


def test_a_plane_of_other_than_two_features_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="the data must have 2 features, but have 30"):
        cells_in_process(
            [{"name": "alsvm"}], {"protocol": "fit", "plane": True}, datasets=["breast-cancer"]
        )


@pytest.mark.slow
def test_an_interrupted_path_goes_on_where_it_was() -> None:
    from svmbench.experiment.config.models import Config
    from svmbench.experiment.plan.planner import make_plan

    top = {"datasets": ["breast-cancer"], "title": "t", "solvers": [SOLVER]}
    config = Config.model_validate({**top, "blocks": [{"name": "p", "protocol": "path"}]})
    (cell,) = make_plan(config, "t", "paper").cells
    found: dict[str, dict[str, Any]] = {}
    whole = path(Task(cell.spec, emit=lambda name, values: found.update({name: values})))
    assert list(found) == ["C=0.25", "C=0.5", "C=1.0", "C=2.0"]
    done = {name: found[name] for name in ("C=0.25", "C=0.5")}
    again: dict[str, dict[str, Any]] = {}
    rest = path(Task(cell.spec, done=done, emit=lambda name, values: again.update({name: values})))
    assert list(again) == ["C=1.0", "C=2.0"]
    for name in again:
        assert again[name]["metrics"]["accuracy_pct"] == found[name]["metrics"]["accuracy_pct"]
        assert again[name]["metrics"]["objective"] == pytest.approx(
            found[name]["metrics"]["objective"], rel=1e-3
        )
    assert rest["metrics"]["n_points"] == whole["metrics"]["n_points"] == 4


def test_a_score_without_a_value_is_said_and_costs_nothing() -> None:
    block = {"protocol": "fit", "scores": ["accuracy", "auc"], "multiclass": "one-vs-one"}
    (cell,) = cells_in_process([{"name": "alsvm"}], block, datasets=["digits"])
    assert "train_accuracy_pct" in cell["metrics"]
    assert cell["undefined"] == {"train_auc_pct": "none of 10 classes is the positive one"}
