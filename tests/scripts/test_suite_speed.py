"""The script that measures the suite's own commands: what is kept, and the table made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from script_loading import ROOT, load_script


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_script("suite_speed")
    monkeypatch.setattr(module, "TIMES", tmp_path / "suite" / "times.csv")
    monkeypatch.setattr(module, "STAGES", tmp_path / "stages.csv")
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    module.PAGE.write_text("before\n<!-- suite -->\nold\n<!-- /suite -->\nafter\n")
    return module


def lines(script: ModuleType, times: dict[str, list[float]]) -> dict[str, object]:
    taken = {name: iter(found) for name, found in times.items()}
    return {
        name: script.Line(name, 2.0, lambda _, name=name: next(taken[name]), max(len(found) - 1, 1))
        for name, found in times.items()
    }


def test_the_page_has_the_table_of_the_kept_times() -> None:
    module = load_script("suite_speed")
    page = module.PAGE.read_text(encoding="utf-8")
    assert "<!-- suite -->" in page
    assert module.page_with_table(page) == page
    assert module.read_times()


def test_a_second_call_measures_what_is_missing(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LINES", lines(script, {"a": [9.0, 1.0, 3.0, 2.5], "b": [1.5]}))
    script.main(["--only", "a"])
    assert "| a | 2 | 2.5 (1.0–3.0) | no |" in script.PAGE.read_text()
    assert "| b | 2 | not measured | |" in script.PAGE.read_text()
    script.main([])
    kept = script.read_times()
    assert kept["a"]["cpu_time_s"] == "2.5000"
    assert (kept["b"]["cpu_time_s"], kept["b"]["repeats"]) == ("1.5000", "1")
    assert "| b | 2 | 1.5 (one call) | yes |" in script.PAGE.read_text()
    assert script.PAGE.read_text().startswith("before\n")


def test_an_aim_may_be_reached_in_the_median(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LINES", lines(script, {"a": [9.0, 1.0, 1.5, 2.5]}))
    script.main([])
    assert "| in the median |" in script.PAGE.read_text()


def test_an_unknown_line_is_an_error(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        script.main(["--only", "clams"])
    assert "there is no line clams" in capsys.readouterr().err


#: Starts a process that outlives it, and works for 0.3 s of CPU time.
ORPHAN = """
import os, time
if os.fork() == 0:
    while time.process_time() < 0.3:
        pass
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process")
def test_the_time_of_a_process_that_outlives_its_command_counts() -> None:
    # In a process of its own, since it waits for every child.
    program = f"import suite_speed as s, sys; print(s.cpu_of(sys.executable, '-c', {ORPHAN!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "scripts",
    )
    assert float(done.stdout) >= 0.25


#: Works for 0.3 s of CPU time.
WORK = """
stop = time.process_time() + 0.3
while time.process_time() < stop:
    pass
"""


@pytest.mark.slow
def test_the_time_of_statements_leaves_out_those_before_them(
    script: ModuleType, tmp_path: Path
) -> None:
    assert script._cpu_of_statements(tmp_path, WORK) >= 0.3
    assert script._cpu_of_statements(tmp_path, "pass", before=WORK) < 0.2


def test_the_stages_of_the_gate_have_their_time(script: ModuleType) -> None:
    begun = "=== 0 s: set-up\n=== 24 s: tests; lint beside them\n=== 30 s: end\n"
    script.keep_stages(f"{begun}=== 3 passed in 1 s ===\n{begun}")
    kept = script.STAGES.read_text()
    assert kept == "stage,wall_time_s\nset-up,24\ntests; lint beside them,6\n"


def test_the_end_of_what_a_command_prints_is_shown_beside_its_wall_time(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = script.wall_of(sys.executable, "-c", "import time; time.sleep(0.2); print('end')")
    assert seconds >= 0.2
    assert capsys.readouterr().out == "end\n"
    with pytest.raises(subprocess.CalledProcessError):
        script.wall_of(sys.executable, "-c", "raise SystemExit(1)")
