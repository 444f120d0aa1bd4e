"""Keeping a run as reference: all of it in one step, or nothing."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "keep_results.py"


@pytest.fixture
def keep_results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("keep_results", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a finished run folder beside what was kept of an earlier one."""
    folder = tmp_path / "one-paper"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps({"config": {"name": "one", "paper": "p"}}))
    (folder / "tables.md").write_text("measured on 4be1")
    (folder / "t.csv").write_text("new")
    (folder / "runs.jsonl").write_text("{}")
    for name in ("4be1", "0000"):
        (folder / f"environment-{name}.json").write_text("{}")
    kept = tmp_path / "p" / "one"
    kept.mkdir(parents=True)
    (kept / "t.csv").write_text("old")
    (kept / "gone.svg").write_text("old")
    return folder


def kept(run: Path) -> dict[str, str]:
    """Return what lies kept; nothing else may lie beside it."""
    (folder,) = (run.parent / "p").iterdir()
    assert folder.name == "one"
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_finished_run_replaces_what_was_kept(run: Path, keep_results: ModuleType) -> None:
    assert keep_results.keep(run) == run.parent / "p" / "one"
    assert kept(run) == {
        "tables.md": "measured on 4be1",
        "t.csv": "new",
        "environment-4be1.json": "{}",
    }


def test_an_unfinished_run_leaves_what_was_kept(run: Path, keep_results: ModuleType) -> None:
    (run / "tables.md").unlink()
    with pytest.raises(SystemExit, match="is unfinished: it has no tables"):
        keep_results.keep(run)
    assert kept(run) == {"t.csv": "old", "gone.svg": "old"}


def test_a_copy_that_fails_leaves_what_was_kept(run: Path, keep_results: ModuleType) -> None:
    (run / "broken.csv").symlink_to("nowhere")
    with pytest.raises(SystemExit, match=r"can't keep it in .*No such file"):
        keep_results.keep(run)
    assert kept(run) == {"t.csv": "old", "gone.svg": "old"}


def test_a_swap_that_fails_puts_back_what_was_kept(
    run: Path, keep_results: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.name == "made":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(KeyboardInterrupt):
        keep_results.keep(run)
    assert kept(run) == {"t.csv": "old", "gone.svg": "old"}


@pytest.mark.parametrize("plan", ["[", "[]", '{"config": []}', '{"config": {"name": "one"}}'])
def test_what_is_no_plan_is_a_sentence(run: Path, keep_results: ModuleType, plan: str) -> None:
    (run / "plan.json").write_text(plan)
    with pytest.raises(SystemExit, match="is no run folder"):
        keep_results.keep(run)
