"""Where something beyond a plain installation is missing: a skip, or a failure where it may not."""

from __future__ import annotations

import re
from pathlib import Path

import beyond
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_missing_is_a_skip_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(beyond.REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs the program no-such-program: get it"):
        beyond.need(program="no-such-program", install="get it")
    with pytest.raises(pytest.skip.Exception, match="needs the package no_such_package"):
        beyond.need(package="no_such_package", program="sh")


def test_it_is_a_failure_where_all_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(beyond.REQUIRE, "1")
    with pytest.raises(pytest.fail.Exception, match="needs the program no-such-program"):
        beyond.need(program="no-such-program")
    beyond.need(package="numpy", program="sh")


def test_the_stage_runs_each_of_its_folders_once() -> None:
    """`make test-beyond` runs them, and the gate's `make test` leaves them to it."""
    makefile = (ROOT / "Makefile").read_text()
    listed = re.search(r"^BEYOND := (.*)$", makefile, re.MULTILINE)
    assert listed is not None
    folders = {f"tests/{name}" for name in listed[1].split()}
    here = {str(f.relative_to(ROOT)) for f in (ROOT / "tests").iterdir() if "beyond" in _all(f)}
    assert here <= folders, "a folder whose tests need more is not in BEYOND"
    gate = (ROOT / ".ci" / "run").read_text()
    assert "make test APART=1" in gate
    assert "make test-beyond" in gate


def _all(folder: Path) -> str:
    files = folder.glob("test_*.py") if folder.is_dir() else []
    return "".join("beyond" * ("import beyond" in path.read_text()) for path in files)
