"""A small run folder with every kind of table and plot, for files of it to be damaged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "report"))

import synthetic_runs as runs

#: A race of two, as a cell's solver.
RACERS = "alsvm-batch|liblinear-l2"


def every_kind(folder: Path) -> Path:
    """Write a run whose cells are few, and whose tables and plots are of every kind."""
    cells: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []

    def add(block: str, solver: str | None, metrics: dict[str, float], **more: Any) -> None:
        said = {name: more.pop(name) for name in ("trace", "spread", "outcome") if name in more}
        cells.append(runs.planned(block, more.pop("dataset", "a9a"), solver, **more))
        outcome = said.pop("outcome", {})
        records.append(runs.record(cells[-1], metrics, **said, **outcome))

    for fold in range(2):
        add("cv", "alsvm", {"train_time_s": 0.1, "accuracy_pct": 84.0 + fold}, fold=fold)
        failed = {"status": "failed", "reason": "NaN in the weights"}
        add("cv", "pegasos", {}, fold=fold, outcome=failed)
    cells.append(runs.planned("cv", "cod-rna", "alsvm", 0, status="unavailable", reason="no file"))
    for size in (1000, 2000, 4000):
        time = {"train_time_s": size / 1e4, "cpu_time_s": size / 1.1e4}
        add("sweep", "alsvm", time, size=size, spread={"train_time_s": 0.01})
        add("sweep", "pegasos", {"train_time_s": 0.2, "cpu_time_s": 0.2}, size=size)
    for ratio in (2.0, 0.5):
        metrics = {f"ratio:{RACERS.replace('|', ':')}": ratio, "cpu_time_s:alsvm-batch": 0.1}
        spread = {f"ratio:{RACERS.replace('|', ':')}": [ratio * 0.9, ratio * 1.1]}
        add("race", RACERS, metrics, protocol="race", kernel=None, spread=spread, size=int(ratio))
    way = [[0.1, 10, 150.0], [0.2, 20, 110.0], [0.4, 40, 101.0]]
    add("conv", "dcd-l1", {"objective": 101.0, "cpu_time_s": 0.35}, trace=way)
    add("conv", "liblinear", {"objective": 100.0, "cpu_time_s": 0.8, "n_iter": 7})
    for share in (0.1, 0.2):
        hits = {"hit_pct": 80.0, "hit_low_pct": 70.0, "hit_high_pct": 90.0, "claimed_pct": 95.0}
        add("simulate", "fosvm", {**hits, "expected_pct": 81.0}, dimensions={"solver.p": share})
    add("facts", None, {"n_samples": 32561, "n_features": 123}, kernel=None)
    tables = [
        {**runs.TABLE2, "name": "t"},
        {"name": "speed", "block": "race", "rows": "rows", "columns": "solver",
         "metrics": ["ratio", "cpu_time_s"]},
        {"name": "facts", "block": "facts", "rows": "dataset", "columns": "metric",
         "metrics": ["n_samples", "n_features"], "published": "table1"},
    ]  # fmt: skip
    plots = [
        {"name": "bars", "kind": "bars", "block": "cv", "y": "accuracy_pct", "series": "solver"},
        {"name": "curve", "kind": "curve", "block": "sweep", "x": "size", "series": "solver",
         "y": "train_time_s", "crossing": ["alsvm", "pegasos"]},
        {"name": "scaling", "kind": "scaling", "block": "sweep", "x": "rows", "series": "solver"},
        {"name": "race", "kind": "race", "block": "race", "x": "rows", "series": "solver"},
        {"name": "conv", "kind": "convergence", "block": "conv"},
        {"name": "often", "kind": "frequency", "block": "simulate"},
        {"name": "plane", "kind": "decision", "block": "cv"},
    ]  # fmt: skip
    return runs.write_run(folder, cells, records, tables, plots)
