"""Tests that take long and are not marked as slow are named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import cpu_limit
import pytest

ROOT = Path(__file__).resolve().parent.parent

TESTS = """
import subprocess, sys, time
import pytest

BUSY = "import time\\nwhile time.process_time() < 0.6: pass"

def busy():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass

def test_busy(): busy()
@pytest.mark.slow
def test_marked(): busy()
def test_waiting(): time.sleep(0.5)
def test_child(): subprocess.run([sys.executable, "-c", BUSY], check=True)
@pytest.fixture
def dear(): busy()
def test_of_a_dear_fixture(dear): raise SystemError
@pytest.mark.skip
def test_skipped(): busy()
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["-n", "1"]], ids=["one process", "xdist"])
def test_those_are_named_that_used_the_cpu_and_are_not_marked(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("import cpu_limit\ncpu_limit.TOLERANCE = 0.3\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "cpu_limit", "--rootdir=.", *words, "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "more than 0.3 CPU seconds" in done.stdout, done.stdout + done.stderr
    named = re.findall(r"^\d\.\d s test_some\.py::(\w+)$", done.stdout, re.MULTILINE)
    assert {*named} == {"test_busy", "test_child", "test_of_a_dear_fixture"}


def test_the_rule_has_the_same_limits_where_it_is_written() -> None:
    words = {1.0: "one second", 3.0: "three seconds"}
    page = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert f"more than {words[cpu_limit.SLOW_CPU_S]} of CPU time, with the" in page
    assert f"took more than {words[cpu_limit.SLOW_CPU_S * cpu_limit.TOLERANCE]}" in page
