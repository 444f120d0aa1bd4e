"""Two versions of the program side by side, in a clone of this checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]

#: One pair is enough, and its solver has no loops to compile.
CONFIG = """
title: "A gate of one pair"
timeout_s: 120
solvers: [{name: alsvm, grid: {C: [0.1, 1]}}]
blocks:
  - {name: accuracy, protocol: nested-cv, outer_folds: 3, inner_folds: 3, datasets: [breast-cancer]}
  - name: speed
    protocol: race
    tolerance: null
    repeats: 9
    scaling: all-rows
    datasets: [synthetic-linear]
    solvers: [{name: alsvm}, {name: liblinear-l1, params: {tol: 0.01}}]
    pairs: [[alsvm, liblinear-l1]]
profiles: {quick: {}}
"""

#: So much that the noise of one round cannot hide it: twice the time once showed as 27 % only.
TRAIN_FOUR_TIMES = """

def _four_times(train):
    return lambda self, data: [train(self, data) for _ in range(4)][-1]


ALSVM.train = _four_times(ALSVM.train)
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of its own with this tree's files and a gate of one pair."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("svmbench", "scripts"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    shutil.copy(ROOT / "datasets.toml", folder)
    (folder / "configs").mkdir()
    (folder / "configs" / "regress.yaml").write_text(CONFIG)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "one")
    (folder / "note").write_text("two")
    commit(folder, "two")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "gc.auto=0"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)


def regress(clone: Path, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SVMBENCH_")}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment |= {"SVMBENCH_CACHE": str(cache), "SVMBENCH_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, "scripts/regress.py", *words],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


RACE_OF_ANOTHER_NAME = """
title: "A race under a name of its own"
timeout_s: 120
datasets: [breast-cancer]
solvers: [{name: liblinear-l1, params: {tol: 0.01}}, {name: liblinear-l1, label: again}]
blocks:
  - {name: once, protocol: fit}
  - {name: pair, protocol: race, tolerance: null, repeats: 1, pairs: [[liblinear-l1, again]]}
profiles: {quick: {}}
"""


@pytest.mark.slow
def test_any_config_may_be_named_and_its_races_are_repeated(
    clone: Path, shared_cache: Path
) -> None:
    (clone / "configs" / "other.yaml").write_text(RACE_OF_ANOTHER_NAME)
    commit(clone, "config")
    done = regress(clone, shared_cache, "HEAD", "--rounds", "2", "--config", "other")
    assert done.returncode in {0, 4}, done.stdout + done.stderr  # a race of milliseconds may err
    told = [line for line in done.stdout.splitlines() if ", round " in line]
    assert told == [
        f"other, round {number} of 2: {side}" for number in (1, 2) for side in ("base", "new")
    ]
    assert "values compared" in done.stdout


def test_a_config_that_the_base_lacks_is_a_sentence(clone: Path, shared_cache: Path) -> None:
    done = regress(clone, shared_cache, "--config", "regress", "--config", "none")
    assert done.returncode == 1
    assert done.stderr.endswith("has no configs/none.yaml to be held to\n")


@pytest.mark.slow
def test_a_slowdown_is_found_and_only_then(clone: Path, shared_cache: Path) -> None:
    same = regress(clone, shared_cache, "--rounds", "1")
    assert same.returncode == 0, same.stdout + same.stderr
    first = git(clone, "rev-parse", "--short", "HEAD~1")
    lines = same.stdout.splitlines()
    assert lines[0] == f"base: HEAD~1 ({first}); new: the working tree"
    assert lines[-1].startswith("no regression (values compared: 4 result, 1 accuracy")

    with (clone / "svmbench" / "core" / "linear" / "alsvm.py").open("a") as source:
        source.write(TRAIN_FOUR_TIMES)
    try:
        slow = regress(clone, shared_cache, "--rounds", "1")
    finally:
        git(clone, "checkout", "--quiet", "--", "svmbench")
    assert slow.returncode == 4, slow.stdout + slow.stderr
    head = git(clone, "rev-parse", "--short", "HEAD")
    assert slow.stdout.startswith(f"base: HEAD ({head}); new")  # not yet committed
    assert re.search(r"^worse +time +speed · synthetic-linear +alsvm vs", slow.stdout, re.M)
    assert git(clone, "worktree", "list").count("\n") == 0


def test_the_base_is_where_the_branch_left_main(clone: Path) -> None:
    def asked() -> str:
        code = "from scripts import regress; print(regress.default_base())"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert asked() == "HEAD~1"
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    assert asked() == git(clone, "rev-parse", "HEAD~1")
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert asked() == "HEAD~1"
    (clone / "note").write_text("changed")
    assert asked() == "HEAD"
    git(clone, "checkout", "--quiet", "--", "note")
    git(clone, "update-ref", "-d", "refs/remotes/origin/main")


def test_a_base_that_is_none_is_a_sentence(clone: Path, shared_cache: Path) -> None:
    done = regress(clone, shared_cache, "no-such-commit")
    assert done.returncode == 1
    assert done.stderr.startswith("regress: git rev-parse")
    assert "Traceback" not in done.stderr


def test_the_example_workflow_asks_for_what_there_is() -> None:
    text = (ROOT / "docs" / "ci-example.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = re.findall(r"make ([a-z-]+)", text)
    assert set(asked) <= targets
    assert {"test", "regress"} <= set(asked)
    for job in jobs.values():
        checkout = job["steps"][0]
        assert checkout["uses"].startswith("actions/checkout@")
    depths = {
        name: job["steps"][0].get("with", {}).get("fetch-depth") for name, job in jobs.items()
    }
    assert depths["regress"] == 0  # the merge base has to be there
