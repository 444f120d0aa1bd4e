"""What a user gets who installs the wheel and has no checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel without a network: the build backend is among the development tools."""
    target = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, ROOT],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = target.glob("*.whl")
    return built


def test_configs_registry_and_published_numbers_are_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    configs = {path.name for path in (ROOT / "configs").glob("*.yaml")}
    package = ROOT / "svmbench"
    papers = {
        str(path.relative_to(ROOT))
        for paper in (package / "papers").glob("*/paper.toml")
        for ending in ("paper.toml", "claims.toml", "checks.py", "published/*.csv")
        for path in paper.parent.glob(ending)
    }
    pages = {str(path.relative_to(ROOT)) for path in (package / "site").glob("*s/*.*")}
    modules = {
        path.relative_to(ROOT)
        for path in (ROOT / "svmbench").rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }
    assert configs
    assert len(papers) >= 7 * 3 + 5
    assert {"svmbench/site/templates/index.html", "svmbench/site/assets/site.css"} <= pages
    assert {f"svmbench/_assets/configs/{name}" for name in configs} <= names
    assert papers | pages <= names
    assert {str(module) for module in modules} <= names
    assert "svmbench/_assets/datasets.toml" in names
    assert "svmbench/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "results/"))]


@pytest.mark.slow
def test_the_wheel_works_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    away = tmp_path / "away"
    away.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site), "SVMBENCH_CACHE": str(tmp_path / "cache")}

    def svmbench(*words: str) -> str:
        code = (
            "import svmbench, svmbench.cli, sys;"
            f"assert svmbench.__file__.startswith({str(site)!r}), svmbench.__file__;"
            "svmbench.cli.main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=away,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "quickstart" in svmbench("list", "configs")
    assert svmbench("validate", "quickstart").startswith("quickstart: ok (")
    assert "a9a" in svmbench("describe", "a9a")
    assert "SMO" in svmbench("claims", str(ROOT / "results" / "smo"), "--paper", "smo")


def test_the_version_is_the_same_everywhere_and_all_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    archived = json.loads((ROOT / ".zenodo.json").read_text())
    assert project["version"] == cited["version"] == archived["version"]
    assert project["license"] == cited["license"] == archived["license"]
    assert cited["title"] == archived["title"]
    extras = dict(project["optional-dependencies"])
    (everything,) = extras.pop("all")
    assert everything == f"svmbench[{','.join(extras)}]"
    page = (ROOT / "docs" / "releasing.md").read_text()
    assert all(f"| `'.[{name}]'` |" in page for name in (*extras, "all"))


def test_the_repository_passes_its_review_and_says_why_a_check_is_left_out() -> None:
    reviewed = subprocess.run(
        [sys.executable, "-m", "repo_review", "--show", "err"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert reviewed.returncode == 0, reviewed.stdout
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    reasons = tools["repo-review"]["ignore"]
    assert all(len(reason.split()) > 3 for reason in reasons.values()), reasons
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert "$(BIN)/repo-review --show err" in lint


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bounds = project["dependencies"] + extras["blocks"] + extras["qp"]
    assert all(re.fullmatch(r"[\w-]+>=[\d.]+", one) for one in bounds), bounds
    kept = (ROOT / ".ci" / "oldest.txt").read_text().splitlines()
    pins = [line for line in kept if not line.startswith("#")]
    assert pins == [one.replace(">=", "==") for one in bounds]
    # The Python of `make test-oldest`, too.
    named = re.search(r"^OLDEST_PYTHON \?= python(\S+)", (ROOT / "Makefile").read_text(), re.M)
    assert named is not None
    assert project["requires-python"] == f">={named[1]}"


def test_the_workflow_has_each_stage_of_ci_as_a_step() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    commands = [step.get("run", "") for step in workflow["jobs"]["all"]["steps"]]
    steps = [one.removeprefix("bash .ci/run ") for one in commands if one]
    assert sorted(steps) == sorted(re.findall(r"^stage_(\S+)\(\)", script, re.M))
    # Without arguments the script calls each of them once.
    calls = re.findall(r"^(?:run|start) (.+)$", script.partition("\nstart programs\n")[2], re.M)
    called = ["programs", *(stage for line in calls for stage in line.split())]
    assert sorted(called) == sorted(steps)
