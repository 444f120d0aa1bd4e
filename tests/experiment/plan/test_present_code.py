"""Results that are older than the code that made them are told from those that aren't."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from svmbench.base.errors import DamagedResultsError
from svmbench.experiment.plan import keys
from svmbench.experiment.plan.keys import code_hash, manifest
from svmbench.experiment.plan.present_code import NO_MANIFEST, code_changes, has_present_code

ROOT = Path(__file__).resolve().parents[3]
ALSVM, CV = "svmbench.core.linear.alsvm", "svmbench.experiment.protocols.cv"
ENTRIES = [(ALSVM, CV), ("svmbench.core.linear.pegasos", CV), ("a_plug_in", CV)]


def plan(folder: Path, code: Any, cells: list[dict[str, Any]] | None = None) -> Path:
    given = [{"key": f"k{n}", "code": n} for n in range(3)] if cells is None else cells
    content = {
        "config": {"name": "quickstart"}, "profile": "quick",
        "cells": [*given, {"key": "skipped"}], "code": code,
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def code() -> dict[str, Any]:
    found = manifest(ENTRIES[:2])
    return {**found, "entries": [*found["entries"], list(ENTRIES[2])]}


def test_a_manifest_holds_files_and_packages(code: dict[str, Any]) -> None:
    assert "svmbench.core.contract.base" in code["files"]
    assert "svmbench.experiment.protocols.folds" in code["files"]
    assert not any(name.startswith("svmbench.report") for name in code["files"])
    assert code["packages"]["numpy"]


def test_what_has_not_changed_is_fresh(code: dict[str, Any], tmp_path: Path) -> None:
    # Nothing can be told of a plug-in, or of a cell that was never run.
    assert code_changes(plan(tmp_path, code)) == {"k0": "", "k1": ""}


#: A cell with a class of scikit-learn, in a process that has not imported it.
FOREIGN = """
import sys
from pathlib import Path
from svmbench.experiment.plan.present_code import code_changes, has_present_code
from svmbench.experiment.plan.keys import code_hash
modules = ["sklearn.svm._classes", "svmbench.experiment.protocols.cv"]
print(code_changes(Path(sys.argv[1])))
print(has_present_code({"modules": modules, "code": code_hash(*modules)}))
print(has_present_code({"modules": modules, "code": "0123"}), "sklearn" in sys.modules)
"""


@pytest.mark.parametrize("package", ["as it is", "another"])
def test_classes_of_scikit_learn_are_known_by_file_and_version(
    package: str, tmp_path: Path
) -> None:
    code = manifest([("sklearn.svm._classes", CV)])
    if package == "another":
        code["packages"]["scikit-learn"] = "1.0"
    words = [sys.executable, "-c", FOREIGN, str(plan(tmp_path, code, [{"key": "k", "code": 0}]))]
    done = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    here = version("scikit-learn")
    said = f"scikit-learn 1.0 is {here} now" if package == "another" else ""
    assert done == [str({"k": said}), "True", "False False"]


def test_files_that_moved_are_fresh(code: dict[str, Any], tmp_path: Path) -> None:
    named = {f"svmbench.once.{name}": content for name, content in code["files"].items()}
    assert code_changes(plan(tmp_path, {**code, "files": named})) == {"k0": "", "k1": ""}


def test_a_module_that_is_gone_is_not_fresh(tmp_path: Path) -> None:
    gone = {**manifest([(ALSVM, CV)]), "entries": [["svmbench.core.linear.gone", CV]]}
    assert code_changes(plan(tmp_path, gone)) == {"k0": "its code no longer exists here"}


def test_kept_plans_name_modules_that_are_here() -> None:
    """Who renames a module renames it in the entries of the kept plans."""
    names: set[str] = set()
    for path in (ROOT / "results").rglob("plan.json"):
        code = json.loads(path.read_text(encoding="utf-8")).get("code") or {}
        names |= {name for entry in code.get("entries", []) for name in entry}
    own = {name for name in names if name.startswith("svmbench.")}
    assert len(own) > 50
    gone = [
        name for name in own if not (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()
    ]
    assert gone == []


def test_a_file_that_one_solver_reaches_is_named(code: dict[str, Any], tmp_path: Path) -> None:
    changed = {**code, "files": {**code["files"], ALSVM: "0123"}}
    found = code_changes(plan(tmp_path, changed))
    assert found == {"k0": "core.linear.alsvm has changed since", "k1": ""}


def test_many_files_are_counted(code: dict[str, Any], tmp_path: Path) -> None:
    found = code_changes(plan(tmp_path, {**code, "files": {}}))
    assert "more have changed since" in found["k0"]


def test_another_version_is_named(code: dict[str, Any], tmp_path: Path) -> None:
    changed = {**code, "packages": {**code["packages"], "numpy": "1.0"}}
    assert code_changes(plan(tmp_path, changed))["k0"].startswith("numpy 1.0 is ")


@pytest.fixture
def without_scipy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have SciPy appear not to be installed."""

    def here(package: str) -> str:
        return "" if package == "scipy" else version(package)

    asked = (code_hash, keys.not_installed)
    for function in asked:
        function.cache_clear()
    monkeypatch.setattr(keys, "_version", here)
    yield
    for function in asked:
        function.cache_clear()


def test_a_package_that_is_not_here_has_not_changed(
    code: dict[str, Any], tmp_path: Path, without_scipy: None
) -> None:
    """The package of an optional solver may be on the machine of the record alone."""
    assert code_changes(plan(tmp_path, code)) == {"k0": "", "k1": ""}


def test_a_recheck_counts_where_a_package_of_it_is_not_here(without_scipy: None) -> None:
    modules, had = [ALSVM, CV], {"scipy": "1.0", "numpy": "0.1"}
    there = code_hash(*modules, absent=(("scipy", "1.0"),))
    assert there != code_hash(*modules)

    def counts(packages: dict[str, str]) -> bool:
        recheck: Any = {"modules": modules, "code": there, "environment": {"packages": packages}}
        return has_present_code(recheck)

    assert counts(had)
    assert not counts({**had, "scipy": "2.0"})
    assert not counts({"numpy": "0.1"})


def test_code_that_is_gone_is_said(code: dict[str, Any], tmp_path: Path) -> None:
    gone = {**code, "entries": [["svmbench.core.linear.gone", CV]]}
    found = code_changes(plan(tmp_path, gone, [{"key": "k0", "code": 0}]))
    assert found == {"k0": "its code no longer exists here"}


def test_no_cell_of_a_plan_without_a_manifest_is_fresh(tmp_path: Path) -> None:
    assert code_changes(plan(tmp_path, None, [{"key": "a"}])) == dict.fromkeys(
        ("a", "skipped"), NO_MANIFEST
    )


@pytest.mark.parametrize("text", ["{", "{}", '{"cells": 3}', "\xff"])
def test_a_damaged_plan_is_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedResultsError, match=r"can't read .*plan\.json"):
        code_changes(tmp_path)
