"""Theorem 6(2) of SGD-LSSVM: the optimum is the solver's; the kept table contradicts it."""

import csv
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from script_loading import load_script

import svmbench

KEPT = Path(__file__).parents[2] / "results/sgdlssvm/margin.csv"


def test_the_optimum_of_the_primal_problem_is_that_of_the_dual(tmp_path, monkeypatch, capsys):
    script = load_script("margin", "results/sgdlssvm")
    make, fitted = svmbench.solver, []

    def solver(*args, **settings):
        fitted.append(make(*args, **settings | {"tol": 1e-5}))
        return fitted[-1]

    monkeypatch.setattr(script.svmbench, "solver", solver)
    monkeypatch.setattr(sys, "argv", ["x", "20", "40", f"--output={tmp_path}"])
    script.main()
    with (tmp_path / "margin.csv").open(encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    for line, model in zip(lines, fitted, strict=True):
        assert line["stop_reason"] == "converged"
        assert float(line["objective"]) == pytest.approx(model.dual_objective_, abs=0.0051)
        assert line["iterations"] == str(model.n_iter_)
        # The second features are between -1 and 1, the first between 1 and 2, the third is 1.
        assert 0.5 * 2 * 2.5 / 1e-4 < float(line["iterations_bound"]) < 0.5 * 2 * 6.5 / 1e-4
    assert "N = 40: " in capsys.readouterr().out


def test_the_kept_table_contradicts_the_theorem():
    with KEPT.open(encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    assert all(float(line["objective"]) > float(line["objective_bound"]) for line in lines)
    assert any(int(line["iterations"]) > int(line["iterations_bound"]) for line in lines)
    for one, double in pairwise(lines):
        assert int(double["iterations"]) > 1.5 * int(one["iterations"])
