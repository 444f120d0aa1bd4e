"""The overview at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic_runs as runs

from svmbench.cli.overview import print_overview
from svmbench.report.builder import build


def test_an_overview_has_all_rows_the_printed_numbers_and_what_was_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_overview(build(runs.alsvm_run(tmp_path)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Table II: training time and accuracy"
    rows = [line for line in lines if line.startswith(runs.ALSVM_SETS)]
    # Eighteen of 24 have values: cod-rna is missing, and two more have none.
    assert len(rows) == 18
    assert any("[82; -1.5]" in row and row.startswith("a9a ") for row in rows)
    assert sum("†2/3" in row for row in rows) == 1
    said = {line.strip() for line in lines}
    assert "best train time (s): alsvm in 4 of 4 comparisons" in said
    assert "best accuracy (%): pegasos in 3 of 5 comparisons, liblinear-l1 in 2" in said
    assert "not compared, because folds are missing: pegasos on a9a" in said
    disturbed = "alsvm on covtype; liblinear-l1 on covtype; pegasos on covtype"
    assert f"not compared, because other work disturbed them: {disturbed}" in said
