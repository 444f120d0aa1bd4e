"""Later processes read what one has cached, as long as nothing that decides it has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from svmbench.base import cached_entries, paths
from svmbench.base.cached_entries import CachedEntries, surroundings


@pytest.fixture
def code(private_cache: Path, tmp_path: Path) -> str:
    """Return the path of a module whose entries are cached."""
    module = tmp_path / "module.py"
    module.write_text("x = 1\n")
    return str(module)


def test_a_later_process_finds_the_entries(code: str) -> None:
    entries = CachedEntries("squares", code)
    entries.new["2"] = [4, "four"]
    entries.write()
    assert CachedEntries("squares", code).find("2") == [4, "four"]
    assert CachedEntries("squares", code).find("3") is None
    assert CachedEntries("cubes", code).find("2") is None


def test_entries_of_two_processes_are_joined(code: str) -> None:
    one, other = CachedEntries("squares", code), CachedEntries("squares", code)
    one.new["2"], other.new["3"] = 4, 9
    assert other.find("2") is None
    one.write()
    other.write()
    assert [CachedEntries("squares", code).find(key) for key in "23"] == [4, 9]


def test_nothing_is_written_without_new_entries(code: str) -> None:
    CachedEntries("squares", code).write()
    assert not CachedEntries("squares", code).place().parent.exists()


def test_other_code_has_other_entries(code: str, tmp_path: Path) -> None:
    other = tmp_path / "changed.py"
    other.write_text("x = 2\n")
    entries = CachedEntries("squares", code)
    entries.new["2"] = 4
    entries.write()
    assert CachedEntries("squares", str(other)).find("2") is None


def test_a_full_file_starts_anew(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_entries, "MAX_CACHED_ENTRIES", 2)
    for key in "123":
        entries = CachedEntries("squares", code)
        entries.new[key] = int(key) ** 2
        entries.write()
    assert [CachedEntries("squares", code).find(key) for key in "123"] == [None, None, 9]


@pytest.fixture
def installation(
    tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    """Make a package of one module, a registry, and a folder of installed packages."""
    folders = {name: tmp_path / name for name in ("package", "installed")}
    for folder in folders.values():
        folder.mkdir()
    (folders["package"] / "a.py").write_text("x = 1\n")
    registry = tmp_path / "datasets.toml"
    registry.write_text("[a]\n")
    monkeypatch.setattr(paths, "PACKAGE", folders["package"])
    monkeypatch.setattr(sys, "path", [*sys.path, str(folders["installed"])])
    for name in ("SVMBENCH_PLUGINS", "SVMBENCH_DATASETS", "SVMBENCH_PAPERS"):
        monkeypatch.delenv(name, raising=False)
    return {**folders, "registry": registry}


@pytest.mark.parametrize(
    "change",
    [
        lambda of: (of["package"] / "a.py").write_text("x = 2\n"),
        lambda of: (of["package"] / "a.py").rename(of["package"] / "b.py"),
        lambda of: (of["package"] / "claims.toml").write_text(""),
        lambda of: of["registry"].write_text("[b]\n"),
        lambda of: (of["installed"] / "solver-1.0.dist-info").mkdir(),
        lambda of: (of["installed"] / "solver.py").touch(),
    ],
)
def test_whatever_decides_changes_the_surroundings(
    installation: dict[str, Path], change: Callable[[dict[str, Path]], object]
) -> None:
    before = surroundings()
    assert before
    assert before == surroundings()
    change(installation)
    assert surroundings() not in ("", before)


def test_compiled_modules_decide_nothing(installation: dict[str, Path]) -> None:
    before = surroundings()
    for place in ("package", "installed"):
        compiled = installation[place] / "__pycache__"
        compiled.mkdir()
        (compiled / "a.pyc").touch()
    assert surroundings() == before


def test_hidden_files_beside_packages_decide_nothing(installation: dict[str, Path]) -> None:
    before = surroundings()
    (installation["installed"] / ".coverage.1").touch()
    assert surroundings() == before


@pytest.mark.parametrize("name", ["SVMBENCH_PLUGINS", "SVMBENCH_DATASETS", "SVMBENCH_PAPERS"])
def test_nothing_is_known_of_further_entries(
    installation: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "further")
    assert surroundings() == ""


@pytest.mark.parametrize("group", ["svmbench.plugins", "svmbench.papers"])
def test_nothing_is_known_of_installed_plugins(installation: dict[str, Path], group: str) -> None:
    facts = installation["installed"] / "further-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: further\nVersion: 1.0\n")
    assert surroundings()
    (facts / "entry_points.txt").write_text(f"[{group}]\nmine = further\n")
    assert surroundings() == ""


def test_a_cache_that_others_can_write_is_not_believed(
    installation: dict[str, Path], private_cache: Path
) -> None:
    private_cache.mkdir()
    assert surroundings()
    private_cache.chmod(0o777)
    assert surroundings() == ""


def test_a_package_in_an_archive_has_no_files_to_compare(
    installation: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "PACKAGE", installation["package"] / "a.py")
    assert surroundings() == ""
