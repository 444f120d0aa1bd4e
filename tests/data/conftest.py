"""Every test of this room has a cache of its own; a small registry stands beside the real one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svmbench.base import paths

MIRROR = os.environ.get("SVMBENCH_MIRROR")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SVMBENCH_MIRROR", raising=False)
    monkeypatch.delenv("SVMBENCH_OFFLINE", raising=False)


@pytest.fixture
def mirror(monkeypatch):
    """The folder of real files; the test is skipped, and says so, where there is none."""
    if not MIRROR:
        pytest.skip("SVMBENCH_MIRROR is not set: the real data files are not here")
    monkeypatch.setenv("SVMBENCH_MIRROR", MIRROR)
    return Path(MIRROR)


HEADER = """
[origin.here]
licence = "none"
homepage = "https://example.org/"
citation = "Nobody (2000)."
"""


@pytest.fixture
def use_registry(tmp_path, monkeypatch):
    """Put TOML text in the registry's place; `origin.here` is defined already."""

    def put(text: str) -> None:
        place = tmp_path / "registry" / f"{abs(hash(text))}" / "datasets.toml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(HEADER + text, encoding="utf-8")
        monkeypatch.setattr(paths, "asset", lambda name: place)

    return put
