"""Where something beyond a plain installation is missing: a skip, or a failure where it may not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import beyond
import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Run pytest as if some packages weren't installed. The arguments are the packages, joined by
#: commas, and what pytest is called with.
WITHOUT = """
import sys
from importlib.machinery import PathFinder
from types import MethodType

hidden, find = sys.argv[1].split(","), PathFinder.find_spec

def find_others(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find(name, path, target)

PathFinder.find_spec = MethodType(find_others, PathFinder)

import pytest

sys.exit(pytest.main(sys.argv[2:]))
"""


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "folders"),
    [
        ({"pyspark", "distributed"}, ("tests/spark", "tests/cluster")),
        ({"pyspark", "pyarrow"}, ("tests/spark",)),
    ],
)
def test_without_the_extras_their_tests_are_skipped_each_with_a_reason(
    missing: set[str], folders: tuple[str, ...]
) -> None:
    words = ["-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist", *folders]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(missing), *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != beyond.REQUIRE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all(any(name in line for line in skipped) for name in missing)
    assert all("needs the package" in line for line in skipped)


def test_no_test_of_the_stage_is_skipped_where_all_is_required() -> None:
    """A skip of a test's own, and not of `beyond`, would pass unseen in `make test-beyond`."""
    own = re.compile(r"\b(pytest\.(mark\.)?skip|importorskip|skipif)\b")
    for folder in ("spark", "cluster", "programs"):
        for path in (ROOT / "tests" / folder).glob("*.py"):
            if path != Path(__file__):
                assert not own.search(path.read_text()), f"{path} skips by itself"


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


def test_the_gate_runs_the_tests_of_the_algorithms_once() -> None:
    """`make test`, here with the slow tests, leaves them to `make test-core-type`."""
    gate = (ROOT / ".ci" / "run").read_text().replace("\\\n", " ")
    stages = re.findall(r"^ *(?:with_nothing )?make (test\S*)(.*)$", gate, re.MULTILINE)
    leave_out = [(name, words) for name, words in stages if "--ignore=tests/core" in words]
    assert [name for name, _ in leave_out] == ["test", "test"]
    assert "-m ''" in leave_out[0][1]
    assert "-m mirror" in leave_out[1][1]
    makefile = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"^test-core-type:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe.rstrip().endswith("tests/core")
    assert re.findall(r" -m (\S+)", recipe) == ["pytest"]
    assert [name for name, _ in stages].count("test-core-type") == 1


def _all(folder: Path) -> str:
    files = folder.glob("test_*.py") if folder.is_dir() else []
    return "".join("beyond" * ("import beyond" in path.read_text()) for path in files)
