"""Protocol ``chosen-cv``: which point is chosen, on which rows, and what a config may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from runs import cells_in_process, write_config
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from svmbench.base.errors import ConfigError
from svmbench.baselines.catalogue import solver
from svmbench.experiment.config.loader import load_config
from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.planner import make_plan, prepare_plan
from svmbench.experiment.protocols import chosen_cv_on_kernels, folds, kernel_search, solvers_in
from svmbench.experiment.protocols.task import Task
from svmbench.experiment.run.forecast import forecast
from svmbench.experiment.run.session import Request, RunPlan
from svmbench.report.reading.records import read_run
from svmbench.report.tables.captions import caption
from svmbench.report.tables.layout import lay_out, read_spec
from svmbench.report.tables.media import TERMINAL

SEED = 3
GRID = {"C": [0.0625, 1.0, 16.0, 256.0], "gamma": [0.0078125, 0.125, 2.0]}
BLOCK = {"protocol": "chosen-cv", "scaling": "outer-fold", "folds": 3}


def run(chooser: str, **settings: Any) -> dict[str, Any]:
    """Run the cell of a solver whose point another one chooses."""
    block = {**BLOCK, "choose_with": {"nystrom": chooser}, **settings}
    entry = {"name": "nystrom", "params": {"n_basis": 20}, "grid": GRID}
    (cell,) = cells_in_process([entry], block, datasets=["breast-cancer"], seed=SEED)
    return cell


def seed_of(*parts: object) -> int:
    return folds.derive_seed(SEED, "breast-cancer", *parts)


@pytest.mark.parametrize("chooser", ["csvc", "lssvm"])
def test_the_point_is_that_of_a_grid_search_with_the_choosing_solver(chooser: str) -> None:
    cell = run(chooser)
    X, y = load_breast_cancer(return_X_y=True)
    search = GridSearchCV(
        Pipeline([("scale", MinMaxScaler()), ("svm", solver(chooser))]),
        {f"svm__{name}": values for name, values in GRID.items()},
        cv=folds.outer_splits(y, 3, seed_of("outer")),
        scoring="accuracy",
    ).fit(X, y)
    expected = {name: search.best_params_[f"svm__{name}"] for name in GRID}
    assert cell["params"] == expected
    assert cell["metrics"]["chosen_C"] == expected["C"]
    assert cell["metrics"]["chosen_gamma"] == expected["gamma"]
    assert cell["metrics"]["search_fits"] == 3 * 12


def test_the_compared_solver_is_scored_at_the_point_on_all_rows_of_the_folds() -> None:
    cell = run("csvc", choose_rows=200)
    X, y = load_breast_cancer(return_X_y=True)
    scores = []
    for train, test in folds.outer_splits(y, 3, seed_of("outer")):
        scaler = MinMaxScaler().fit(X[train])
        seed = folds.derive_seed(SEED, "solver", None)
        model = solver("nystrom", n_basis=20, random_state=seed, **cell["params"])
        model.fit(scaler.transform(X[train]), y[train])
        scores.append(model.score(scaler.transform(X[test]), y[test]))
    assert cell["metrics"]["accuracy_pct"] == pytest.approx(100 * np.mean(scores))
    assert cell["metrics"]["n_train"] + cell["metrics"]["n_test"] == len(y)


def test_the_search_has_the_sampled_rows_of_the_same_folds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[kernel_search.SearchRows] = []
    real = kernel_search.search_on_kernels

    def spying(searched: kernel_search.SearchRows, *args: Any, **kwargs: Any) -> Any:
        seen.append(searched)
        return real(searched, *args, **kwargs)

    monkeypatch.setattr(chosen_cv_on_kernels.kernel_search, "warm_up_search", lambda _build: None)
    monkeypatch.setattr(chosen_cv_on_kernels.kernel_search, "search_on_kernels", spying)
    run("csvc", choose_rows=150)
    X, y = load_breast_cancer(return_X_y=True)
    sample = folds.subset_rows(y, 150, seed_of("choose"))
    splits = folds.outer_splits(y, 3, seed_of("outer"))
    assert len(seen) == len(splits)
    for searched, (train, test) in zip(seen, splits, strict=True):
        scaled = MinMaxScaler().fit(X[train]).transform(X)
        chosen = [np.intersect1d(part, sample) for part in (train, test)]
        rows = np.concatenate(chosen)
        expected = euclidean_distances(scaled[rows], squared=True)
        np.testing.assert_allclose(searched.distances, expected, atol=1e-5)
        np.testing.assert_array_equal(searched.codes, y[rows])
        ((fitted, validated),) = searched.splits
        np.testing.assert_array_equal(fitted, np.arange(len(chosen[0])))
        np.testing.assert_array_equal(validated, np.arange(len(chosen[0]), len(rows)))


def test_a_finished_part_of_the_search_is_not_run_again() -> None:
    block = {**BLOCK, "name": "main", "choose_with": {"nystrom": "csvc"}}
    entry = {"name": "nystrom", "params": {"n_basis": 20}, "grid": GRID}
    config = {"title": "t", "seed": SEED, "datasets": ["breast-cancer"]}
    made = Config.model_validate({**config, "solvers": [entry], "blocks": [block]})
    (planned,) = make_plan(made, "t", "paper").cells
    done: dict[str, Any] = {}
    first = chosen_cv_on_kernels.chosen_cv_on_kernels(Task(planned.spec, emit=done.__setitem__))
    assert len(done) == 3 * len(GRID["gamma"])
    again: dict[str, Any] = {}
    second = chosen_cv_on_kernels.chosen_cv_on_kernels(
        Task(planned.spec, done=done, emit=again.__setitem__)
    )
    assert not again
    assert second["params"] == first["params"]


def test_the_key_covers_the_choosing_solver() -> None:
    def spec_with(**settings: Any) -> Any:
        block = {**BLOCK, "name": "main", **settings}
        entry = {"name": "nystrom", "grid": GRID}
        config = {"title": "t", "datasets": ["breast-cancer"], "solvers": [entry]}
        made = Config.model_validate({**config, "blocks": [block]})
        return make_plan(made, "t", "paper").cells[0].spec

    assert solvers_in(spec_with(choose_with={"nystrom": "csvc"})) == ["nystrom", "csvc"]
    assert solvers_in(spec_with()) == ["nystrom"]


@pytest.mark.parametrize(
    ("settings", "where", "message"),
    [
        ({"choose_with": {"icf": "csvc"}}, "choose_with.icf", "no solver 'icf' to choose for"),
        ({"choose_with": {"nystrom": "csv"}}, "choose_with.nystrom", "unknown solver 'csv'"),
        (
            {"choose_with": {"nystrom": "libsvm"}},
            "choose_with.nystrom",
            "solver 'libsvm' can't choose for 'nystrom': it must take a kernel matrix",
        ),
        (
            {"choose_with": {"nystrom": "csvc"}, "choose_params": {"csvc": {"kernel": "linear"}}},
            "choose_with.nystrom",
            "solver 'csvc' can't choose for 'nystrom'",
        ),
        (
            {"choose_with": {"nystrom": "csvc"}, "select_by": "auc"},
            "select_by",
            "points are chosen by accuracy here, not by 'auc'",
        ),
        ({"choose_params": {"lssvm": {}}}, "choose_params.lssvm", "chooses for no solver"),
        ({"choose_rows": 100}, "choose_rows", "so every search has all rows"),
        (
            {"choose_with": {"nystrom": "csvc"}, "choose_params": {"csvc": {"gapp": 1.0}}},
            "choose_params.csvc.gapp",
            "solver 'csvc' has no parameter 'gapp'",
        ),
        (
            {"choose_with": {"nystrom": "csvc"}, "choose_params": {"csvc": {"stop": "never"}}},
            "choose_params.csvc",
            "solver 'csvc': ",
        ),
    ],
)
def test_a_wrong_choice_is_a_sentence_with_its_place(
    tmp_path: Path, settings: dict[str, Any], where: str, message: str
) -> None:
    entry = {"name": "nystrom", "grid": GRID}
    config = {"title": "t", "datasets": ["breast-cancer"], "solvers": [entry]}
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({**config, "blocks": [{"name": "b", **BLOCK, **settings}]}))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (problem,) = caught.value.problems
    assert f"blocks[0].{where}" in str(problem)
    assert message in str(problem)


def test_a_dry_run_and_a_table_name_the_choosing_solvers(tmp_path: Path) -> None:
    entries = [
        {"name": name, "params": {"n_basis": 20}, "grid": GRID} for name in ("nystrom", "icf")
    ]
    block = {**BLOCK, "choose_with": {"nystrom": "csvc", "icf": "lssvm"}, "choose_rows": 1200}
    config = write_config(tmp_path, entries, block)
    plan = prepare_plan(str(config), "quick")
    run_plan = RunPlan(Request(str(config)), plan, plan.cells, tmp_path / "out")
    lines = forecast(run_plan).lines
    chosen = "nystrom at the point that csvc chooses, icf at the point that lssvm chooses"
    assert f"  main · breast-cancer: 2 cells ({chosen})" in lines
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "plan.json").write_text(plan.to_json())
    run_read = read_run(tmp_path / "out")
    table = lay_out(run_read, read_spec(run_read.tables[0], "t"))
    text = " ".join(map(TERMINAL.spell, caption(run_read, table)))
    assert (
        "csvc chooses C and gamma for nystrom; lssvm chooses C and gamma for icf. Each of these"
        " searches the grid on the same folds, on at most 1,200 rows."
    ) in text
