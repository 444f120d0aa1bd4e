"""The script that measures starts across gamma: a neighbour that is the same costs no step."""

import csv
import sys
from types import SimpleNamespace

import numpy as np
from script_loading import load_script
from small_problems import make_problem, needs_jit


@needs_jit
def test_equal_neighbours_cost_nothing_and_others_do(tmp_path, monkeypatch):
    script = load_script("gamma_starts", "results/nlsgd")
    X, y = make_problem(n=150, d=5)
    monkeypatch.setattr(script.svmbench, "load", lambda _: SimpleNamespace(X=X, y=y))
    monkeypatch.setattr(script, "FACTORS", {1.0: 2, 64.0: 2})
    monkeypatch.setattr(sys, "argv", ["x", "any", f"--output={tmp_path}"])
    script.main()
    with (tmp_path / "gamma_starts.csv").open(encoding="utf-8") as stream:
        lines = {(r["factor"], r["stop"], r["start"]): r for r in csv.DictReader(stream)}
    steps = {key: int(line["steps"]) for key, line in lines.items()}
    assert len(steps) == 12
    for stop in ("kkt", "gap"):
        assert steps["1", stop, "across gamma"] == steps["1", stop, "either"] == 0
        assert steps["1", stop, "along C"] > 0
        assert steps["64", stop, "across gamma"] > 0
    assert steps["64", "gap", "along C"] < steps["64", "kkt", "along C"]
    assert all(np.isfinite(float(line["cpu_s"])) for line in lines.values())
