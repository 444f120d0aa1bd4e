"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the real data files where there are none, and say so."""
    if os.environ.get("SVMBENCH_MIRROR"):
        return
    skip = pytest.mark.skip(reason="needs real data files: set SVMBENCH_MIRROR")
    for item in items:
        if "mirror" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def mirror() -> str:
    """Return where the real data files lie."""
    return os.environ["SVMBENCH_MIRROR"]


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of data sets of its own."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("SVMBENCH_CACHE", str(cache))
    return cache
