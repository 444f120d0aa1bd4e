"""The script that measures how fast models are evaluated: all ways are of one model."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from script_loading import load_script
from small_problems import make_problem, needs_jit

from svmbench.core.csvc import CSVC


@needs_jit
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_ratios_and_equal_models(form, monkeypatch, capsys):
    script = load_script("prediction_speed", "results/perf")
    X, y = make_problem(n=120, d=5)
    data = SimpleNamespace(X=form(X), y=y, X_test=None)
    monkeypatch.setattr(script.svmbench, "load", lambda name: data)
    monkeypatch.setattr(script, "ROUNDS", 3)
    # The clock is not real: what this test doesn't call needs no compiling.
    warmed: list[type] = []
    monkeypatch.setattr(script, "warm_up", warmed.append)
    # A fit takes 3 of a clock's ticks, a training 2; LIBSVM 8, SVC 6, double 2 and single 1.
    ticks = iter(np.cumsum([0.0, *[3.0, 0.0, 2.0, 0.0] * 4, *[8.0, 0, 6.0, 0, 2.0, 0, 1.0, 0] * 4]))
    monkeypatch.setattr(script.time, "process_time", lambda: next(ticks))
    made = []
    ways = script.evaluations
    monkeypatch.setattr(script, "evaluations", lambda *given: made.append(ways(*given)) or made[-1])
    monkeypatch.setattr(sys, "argv", ["x", "some:C=2:gamma=0.5", "--rows=50"])
    script.main()
    assert warmed == [CSVC]
    said = capsys.readouterr().out
    assert "fit over training: 1.50 (1.50 to 1.50)" in said
    assert "double: 3.00 (3.00 to 3.00) times as fast, off by 0.0e+00" in said
    assert "single: 6.00 (6.00 to 6.00) times as fast" in said
    found = {kind: way() for kind, way in made[0].items()}
    for values in found.values():
        assert len(values) == 50
        assert np.max(np.abs(values - found["double"])) < 0.02
