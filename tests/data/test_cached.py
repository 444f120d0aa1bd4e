"""The cache is shown by kind and data set, and cleaned of nothing but its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from filelock import FileLock
from runs import svmbench

MIB = 2**20


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with folders of each kind, and files that no cache makes."""
    root = tmp_path / "cache"
    monkeypatch.setenv("SVMBENCH_CACHE", str(root))
    for place, size, days in (
        (f"prepared/a9a-{'0' * 16}/X.npy", 3 * MIB, 40),
        (f"prepared/a9a+test-{'1' * 16}/X.npy", MIB, 1),
        (f"prepared/iris-{'2' * 16}/X.npy", MIB, 1),
        (f"prepared/file-{'3' * 24}/X.npy", MIB, 50),
        (f"downloads/official-{'4' * 12}/a9a.bz2", 2 * MIB, 60),
        (f"numba/{'5' * 16}/loop.nbi", MIB, 0),
        (f"parsed/{'6' * 16}/statements.json", MIB, 0),
        ("prepared/my-own-folder/thesis.tex", 1, 90),
        ("downloads/holiday.jpg", 1, 90),
    ):
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
        then = time.time() - days * 86_400
        os.utime(path, (then, then))
    (root / "prepared" / f"link-{'6' * 16}").symlink_to(tmp_path)
    return root


def held(cache: Path) -> set[str]:
    return {path.name for kind in ("prepared", "downloads", "numba") if (cache / kind).is_dir()
            for path in (cache / kind).iterdir()}  # fmt: skip


def test_sizes_by_kind_and_data_set(cache: Path) -> None:
    shown = svmbench("cache")
    assert shown.code == 0, shown.said
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["prepared", "a9a", "3.0", "MiB"] in rows
    assert ["prepared", "a9a+test", "1.0", "MiB"] in rows
    assert ["downloads", "a9a.bz2", "2.0", "MiB"] in rows
    assert ["numba", "compiled", "loops", "1.0", "MiB"] in rows
    assert ["parsed", "facts", "about", "code", "and", "configs", "1.0", "MiB"] in rows
    assert f"10.0 MiB in {cache}" in shown.out
    assert "thesis" not in shown.out


def test_a_dry_run_removes_nothing(cache: Path) -> None:
    before = held(cache)
    shown = svmbench("cache", "--older-than", "30", "--dry-run")
    assert "6.0 MiB would be removed" in shown.out
    assert "iris" not in shown.out
    assert held(cache) == before


def test_what_was_not_used_for_days_is_removed(cache: Path) -> None:
    shown = svmbench("cache", "--older-than", "30")
    assert "6.0 MiB removed" in shown.out
    left = {name.split("-")[0] for name in held(cache)}
    assert left == {"a9a+test", "iris", "5" * 16, "my", "holiday.jpg", "link"}


def test_prepared_sets_alone_are_removed(cache: Path) -> None:
    assert svmbench("cache", "--prepared", "--older-than", "45").code == 0
    assert f"file-{'3' * 24}" not in held(cache)
    assert f"official-{'4' * 12}" in held(cache)
    assert "6.0" not in svmbench("cache", "--prepared").out
    assert {name.split("-")[0] for name in held(cache)} == {
        "official", "5" * 16, "my", "holiday.jpg", "link"
    }  # fmt: skip


def test_a_data_set_that_is_being_written_is_left(cache: Path) -> None:
    (cache / "locks").mkdir()
    with FileLock(cache / "locks" / "a9a.lock"):
        shown = svmbench("cache", "--prepared")
    assert "left, since another process writes them: a9a+test-" in shown.out
    assert f"a9a-{'0' * 16}" in held(cache)
    assert f"iris-{'2' * 16}" not in held(cache)


def test_a_dry_run_of_nothing(cache: Path) -> None:
    shown = svmbench("cache", "--dry-run")
    assert (shown.code, "needs --older-than or --prepared" in shown.err) == (2, True)


def test_an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "none"))
    assert "0.0 MiB in" in svmbench("cache").out
