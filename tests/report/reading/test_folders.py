"""Run folders are found once, wherever a search begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from svmbench.base.errors import ResultsError
from svmbench.report.reading.folders import runs_below


def test_runs_are_found_once(tmp_path: Path) -> None:
    for name in ("one", "two/inner", ".unfinished"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "plan.json").touch()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    found = runs_below([tmp_path / "two", tmp_path, tmp_path / "link"])
    assert list(found) == [tmp_path / "two" / "inner", tmp_path / "one"]
    assert all(place.resolve() == resolved for resolved, place in found.items())


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="nowhere is no folder of results"):
        runs_below([tmp_path, tmp_path / "nowhere"])
