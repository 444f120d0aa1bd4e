"""Plug-ins of installed packages: listed without an import, loaded when named and trusted."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from runs import COMMAND

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "SVMBENCH_PLUGINS"}
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install a package that declares a solver, a score, a protocol and a kind of plot."""
    site = tmp_path / "site"
    info = site / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    lines = [f"{name} = theirs" for name in ("lbfgs-l2", "bootstrap", "mcc", "steps", "csvc")]
    (info / "entry_points.txt").write_text("\n".join(["[svmbench.plugins]", *lines, ""]))
    modules = {
        "adding-a-solver": "lbfgs",
        "adding-a-protocol": "bootstrap",
        "adding-a-score": "mcc",
    }
    parts = ["open('imported', 'a').close()"]
    for page, module in modules.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        code = text.partition(f"```python file={module}.py\n")[2].partition("```\n")[0]
        (site / f"{module}.py").write_text(code)
        parts.append(f"import {module}")
    text = (ROOT / "docs" / "adding-a-plot-kind.md").read_text(encoding="utf-8")
    code = text.partition("```python file=steps.py\n")[2].partition("```\n")[0]
    (site / "steps.py").write_text(code)
    parts += [
        "import steps",
        "from svmbench.report.plots import kinds",
        "kinds.declare_kind('steps', steps.KIND)",
    ]
    (site / "theirs.py").write_text("\n".join([*parts, ""]))
    config = {
        "title": "t",
        "seed": 1,
        "timeout_s": 60,
        "datasets": ["breast-cancer"],
        "solvers": [{"name": "lbfgs-l2"}],
        "blocks": [
            {"name": "bags", "protocol": "bootstrap"},
            {"name": "cv", "protocol": "cv", "folds": 2, "scores": ["accuracy", "mcc"]},
            {"name": "sizes", "protocol": "fit", "sizes": [100, 200]},
        ],
        "plots": [{"name": "p", "kind": "steps", "block": "sizes", "x": "size", "y": "cpu_time_s"}],
        "profiles": {"quick": {}},
    }
    (tmp_path / "named.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


@pytest.mark.slow
def test_plugins_are_listed_without_being_imported(installed: Path) -> None:
    rows = json.loads(run(installed, "list", "plugins", "--json").stdout)
    assert {"name": "mcc", "module": "theirs", "package": "theirs 1.0"} in rows
    assert len(rows) == 5
    assert "lbfgs-l2" not in run(installed, "list", "solvers").stdout
    assert not (installed / "imported").exists()


def test_the_shell_completes_entry_points_without_importing_them(installed: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed / "site")}
    asked = {
        "_SVMBENCH_COMPLETE": "bash_complete",
        "COMP_WORDS": "svmbench describe lbf",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        COMMAND, env={**environment, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["plain,lbfgs-l2"]
    assert not (installed / "imported").exists()


@pytest.mark.slow
def test_what_a_config_names_is_told_and_not_imported_without_trust(installed: Path) -> None:
    done = run(installed, "validate", "named.yaml")
    assert done.returncode == 2
    for name in ("lbfgs-l2", "bootstrap", "mcc", "steps"):
        assert (
            f"'{name}' belongs to the package theirs; --trust allows its import" in done.stderr
        ), done.stderr
    assert not (installed / "imported").exists()


@pytest.mark.slow
def test_a_package_takes_no_name_that_this_one_has(installed: Path) -> None:
    text = (installed / "named.yaml").read_text()
    config = {**yaml.safe_load(text), "solvers": [{"name": "csvc"}], "plots": []}
    config["blocks"] = [{"name": "cv", "protocol": "cv", "folds": 2}]
    (installed / "own.yaml").write_text(yaml.safe_dump(config))
    done = run(installed, "validate", "own.yaml")
    assert done.returncode == 0, done.stderr
    assert not (installed / "imported").exists()


@pytest.mark.slow
def test_a_trusted_plugin_takes_part_in_planning_in_workers_and_in_the_report(
    installed: Path,
) -> None:
    assert run(installed, "validate", "named.yaml", "--trust").returncode == 0
    done = run(installed, "run", "named.yaml", "--trust", "--quiet")
    assert done.returncode == 0, done.stderr
    folder = installed / "results" / "named-quick"
    records = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert {record["status"] for record in records} == {"ok"}
    assert {record["solver"] for record in records} == {"lbfgs-l2"}
    assert any("mcc" in record["metrics"] for record in records)
    assert (folder / "p.svg").is_file()


@pytest.mark.slow
def test_commands_that_name_a_plugin_ask_for_trust(installed: Path) -> None:
    for words in (["describe", "lbfgs-l2"], ["warmup", "lbfgs-l2"]):
        done = run(installed, *words)
        assert done.returncode == 2
        assert "--trust allows its import" in done.stderr
    assert run(installed, "describe", "lbfgs-l2", "--trust").stdout.startswith("solver")
