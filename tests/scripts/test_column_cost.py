"""The script that measures what a single kernel column costs: its table has the ratios it says."""

import csv
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from script_loading import load_script
from small_problems import needs_jit


@needs_jit
def test_a_line_a_data_set(tmp_path, monkeypatch, capsys):
    script = load_script("column_cost", "results/sgdlssvm")
    monkeypatch.setattr(script, "HEIGHT", 2)
    monkeypatch.setattr(script, "ROUNDS", 3)
    rng = np.random.default_rng(0)
    inputs = {"bits": rng.integers(0, 2, (2000, 70)), "numbers": rng.random((2000, 5))}
    monkeypatch.setattr(
        script.svmbench, "load", lambda name: SimpleNamespace(X=inputs[name].astype(float))
    )
    # A clock by which a column takes twice as long as a row, and four times a reading.
    ticks = iter(np.cumsum([0.0, *[8.0, 0.0, 4.0, 0.0, 2.0, 0.0] * 8]))
    monkeypatch.setattr(script.time, "process_time", lambda: next(ticks))
    monkeypatch.setattr(
        sys, "argv", ["x", "bits:gamma=0.1", "numbers:gamma=1", f"--output={tmp_path}"]
    )
    script.main()
    with (tmp_path / "columns.csv").open(encoding="utf-8") as stream:
        bits, numbers = csv.DictReader(stream)
    assert (bits["columns_by"], bits["rows_by"]) == ("RowColumns", "BitRows")
    assert (numbers["columns_by"], numbers["rows_by"]) == ("DifferenceColumns", "DenseRows")
    for line in (bits, numbers):
        assert float(line["ratio"]) == float(line["low"]) == float(line["high"]) == 2.0
        assert float(line["readings"]) == 4.0
        assert float(line["column_us"]) == pytest.approx(4e6)
    assert bits["bytes_read"] == str(2000 * 2 * 8)
    assert numbers["bytes_read"] == str(2000 * 5 * 4)
    assert (
        "bits: a column takes 4000000 us, 2.00 (2.00 to 2.00) rows of BitRows"
        in capsys.readouterr().out
    )
