"""What lies under results/ is what its records say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from svmbench.report import kept

ROOT = Path(__file__).resolve().parent.parent
KEPT = kept.folders(ROOT / "results")


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_kept_tables_and_plots_are_what_their_records_make(folder: Path) -> None:
    assert kept.rebuild_differences(folder) == [], "run scripts/rebuild_results.py"


def test_there_are_kept_results() -> None:
    assert KEPT


def test_scripts_that_pages_quote_are_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.yaml", "Makefile"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pages = [ROOT / name for name in listed.stdout.split() if name != "CHANGELOG.md"]
    quoted = {
        (page.name, script)
        for page in pages
        for script in re.findall(
            r"\b(?:scripts|results/\w+)/\w+\.py\b", page.read_text(encoding="utf-8")
        )
    }
    assert ("README.md", "results/smo/cold_start.py") in quoted
    assert [one for one in sorted(quoted) if not (ROOT / one[1]).is_file()] == []
