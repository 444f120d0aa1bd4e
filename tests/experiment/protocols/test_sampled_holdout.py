"""Protocol ``sampled-holdout``: what its search sees, and what the chosen point is trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import cells_in_process, write_config
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import MinMaxScaler

from svmbench.baselines.catalogue import solver
from svmbench.experiment.plan.planner import prepare_plan
from svmbench.experiment.protocols import folds, sampled_holdout, search
from svmbench.report.reading.records import read_run
from svmbench.report.tables.captions import caption
from svmbench.report.tables.layout import lay_out, read_spec
from svmbench.report.tables.media import TERMINAL

SEED, N_SAMPLED = 3, 150
GRID = {"C": [0.0625, 1.0, 16.0], "gamma": [0.0078125, 0.125, 8.0]}
BLOCK = {"protocol": "sampled-holdout", "scaling": "outer-fold", "validation": 0.25, "test": 0.3}
ENTRY = {"name": "nystrom", "params": {"n_basis": 20}, "grid": GRID}


def run(**settings: Any) -> dict[str, Any]:
    (cell,) = cells_in_process(
        [ENTRY], {**BLOCK, **settings}, datasets=["breast-cancer"], seed=SEED
    )
    return cell


def seed_of(*parts: object) -> int:
    return folds.derive_seed(SEED, "breast-cancer", *parts)


def test_the_point_is_that_of_a_search_on_the_sample_alone() -> None:
    cell = run(choose_rows=N_SAMPLED)
    X, y = load_breast_cancer(return_X_y=True)
    kept, test = folds.holdout_split(y, 0.3, seed_of("test"))
    sample = folds.subset_rows(y[kept], N_SAMPLED, seed_of("choose"))
    split = folds.holdout_split(y[kept], 0.25, seed_of("validation"))
    scaler = MinMaxScaler().fit(X[kept])
    train, validation = (np.flatnonzero(np.isin(sample, part)) for part in split)
    assert len(train) + len(validation) == N_SAMPLED
    seed = folds.derive_seed(SEED, "solver", None)
    found = GridSearchCV(
        solver("nystrom", n_basis=20, random_state=seed),
        GRID,
        cv=[(train, validation)],
        refit=False,
    ).fit(scaler.transform(X[kept][sample]), y[kept][sample])
    assert cell["params"] == found.best_params_
    model = solver("nystrom", n_basis=20, random_state=seed, **found.best_params_)
    model.fit(scaler.transform(X[kept]), y[kept])
    score = 100 * model.score(scaler.transform(X[test]), y[test])
    assert cell["metrics"]["accuracy_pct"] == pytest.approx(score)
    assert cell["metrics"]["n_train"] == len(kept)
    assert cell["metrics"]["search_cpu_time_s"] > 0


def test_a_search_on_all_rows_is_that_of_a_holdout() -> None:
    whole, sampled = run(protocol="holdout"), run()
    assert sampled["params"] == whole["params"]
    for name in ("accuracy_pct", "objective", "n_train", "n_test"):
        assert sampled["metrics"][name] == whole["metrics"][name]


def test_the_sampled_rows_are_on_the_same_side_of_the_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[search.SplitRows] = []
    real = search.search

    def spying(task: Any, rows: search.SplitRows) -> Any:
        seen.append(rows)
        return real(task, rows)

    monkeypatch.setattr(sampled_holdout, "search", spying)
    run(choose_rows=N_SAMPLED)
    run()
    few, many = ({False: set(), True: set()} for _ in range(2))
    for sides, rows in zip((few, many), seen, strict=True):
        ((train, validation),) = rows.splits
        for side, part in ((False, train), (True, validation)):
            sides[side] = {tuple(row) for row in np.asarray(rows.X)[part]}
    assert few[False] < many[False]
    assert few[True] < many[True]


def test_a_table_says_how_many_rows_the_search_had(tmp_path: Path) -> None:
    config = write_config(tmp_path, [ENTRY], {**BLOCK, "choose_rows": 1200})
    plan = prepare_plan(str(config), "quick")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "plan.json").write_text(plan.to_json())
    run_read = read_run(tmp_path / "out")
    table = lay_out(run_read, read_spec(run_read.tables[0], "t"))
    text = " ".join(map(TERMINAL.spell, caption(run_read, table)))
    assert "Each solver searches its grid on at most 1,200 rows." in text
