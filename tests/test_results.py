"""What lies under results/ is what its records say."""

from __future__ import annotations

from pathlib import Path

import pytest

from svmbench.report import kept

ROOT = Path(__file__).resolve().parent.parent
KEPT = kept.folders(ROOT / "results")


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_kept_tables_and_plots_are_what_their_records_make(folder: Path) -> None:
    assert kept.differences(folder) == [], "run scripts/rebuild_results.py"


def test_there_are_kept_results() -> None:
    assert KEPT
