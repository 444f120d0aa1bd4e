"""Outer folds that are drawn again, and the cost of a whole run from one of its folds."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runs import cells_of, svmbench, write_config
from sklearn.datasets import load_iris
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from svmbench.experiment.protocols.folds import derive_seed, outer_splits
from svmbench.experiment.protocols.nested_cv import outer_split, whole_cpu_time


def test_outer_folds_of_repeats_are_drawn_anew_and_numbered_through() -> None:
    y = np.repeat([-1, 1], [70, 30])
    seed_of = partial(derive_seed, 3, "set")
    first, *again = (
        [outer_split(y, 5, 5 * repeat + fold, seed_of) for fold in range(5)] for repeat in range(3)
    )
    plain = outer_splits(y, 5, derive_seed(3, "set", "outer"))
    for (train, test), (train_again, test_again) in zip(first, plain, strict=True):
        assert np.array_equal(train, train_again)
        assert np.array_equal(test, test_again)
    for repeat in again:
        assert np.array_equal(np.sort(np.concatenate([test for _, test in repeat])), np.arange(100))
    tests = [{tuple(test) for _, test in repeat} for repeat in (first, *again)]
    assert len(set.union(*tests)) == 15


@pytest.mark.parametrize(
    ("scaling", "seconds"),
    [
        # Five times the search without distances (6), the training (3) and the test (1).
        ("outer-fold", 5 * (6 + 3 + 1) + 5 * 4),
        ("every-fold", 5 * (6 + 3 + 1) + 5 * 4),
        ("all-rows", 5 * (6 + 3 + 1) + 4),
        ("none", 5 * (6 + 3 + 1) + 4),
    ],
)
def test_each_fold_pays_its_own_work_and_distances_are_paid_once_where_they_are_shared(
    scaling: str, seconds: float
) -> None:
    task: Any = SimpleNamespace(protocol_settings={"outer_folds": 5}, spec={"scaling": scaling})
    metrics = {
        "search_cpu_time_s": 10.0,
        "distances_cpu_time_s": 4.0,
        "cpu_time_s": 3.0,
        "predict_cpu_time_s": 1.0,
    }
    assert whole_cpu_time(task, metrics) == pytest.approx(seconds)
    del metrics["distances_cpu_time_s"]
    assert whole_cpu_time(task, metrics) == pytest.approx(5 * (10 + 3 + 1))


@pytest.mark.slow
@pytest.mark.usefixtures("workshop")
@pytest.mark.parametrize("scaling", ["outer-fold", "every-fold", "all-rows"])
def test_each_repeat_draws_outer_folds_of_its_own(tmp_path: Path, scaling: str) -> None:
    X, y = (part[50:] for part in load_iris(return_X_y=True))
    np.savetxt(tmp_path / "two.csv", np.column_stack([X, y]), delimiter=",", fmt="%g")
    name = "file " + hashlib.sha256((tmp_path / "two.csv").read_bytes()).hexdigest()[:16]
    # A single point, so that each fold's score is that of one model.
    solver = {"name": "csvc", "grid": {"C": [4.0], "gamma": [0.0625]}, "params": {"tol": 1e-6}}

    def run(name: str, **settings: Any) -> dict[str, dict[str, Any]]:
        block = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3, "scaling": scaling}
        files = [{"file": str(tmp_path / "two.csv")}]
        config = write_config(tmp_path, [solver], {**block, **settings}, datasets=files)
        ended = svmbench("run", config, "--output", tmp_path / name)
        assert ended.code == 0, ended.said
        return cells_of(tmp_path / name)

    once, cells = run("once"), run("again", outer_repeats=3)
    assert len(cells) == 9
    # The first repeat has the cells of a block without repeats.
    assert {name: cells[name]["key"] for name in once} == {
        name: cell["key"] for name, cell in once.items()
    }
    for fold in range(9):
        repeat = [fold // 3] if fold >= 3 else []
        train, test = outer_splits(y, 3, derive_seed(0, name, "outer", *repeat))[fold % 3]
        scaler = MinMaxScaler().fit(X if scaling == "all-rows" else X[train])
        model = SVC(C=4.0, gamma=0.0625, tol=1e-6).fit(scaler.transform(X[train]), y[train])
        metrics = cells[f"csvc/{fold}"]["metrics"]
        score = 100.0 * model.score(scaler.transform(X[test]), y[test])
        assert metrics["accuracy_pct"] == pytest.approx(score)
        assert (metrics["n_train"], metrics["n_test"]) == (len(train), len(test))
