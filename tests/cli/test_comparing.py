"""The gate as a person uses it: a run, the same again, and two that became worse on purpose."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from runs import COMMAND, Ended, svmbench

from svmbench.experiment.plan.planner import prepare_plan

HERE = Path(__file__).parents[1]
CONFIG = HERE.parent / "configs" / "regress.yaml"


#: One racer beside its reference is enough, and compiles in less time than seven.
ONE_PAIR = {
    "blocks.speed.solvers": "[{name: dcd-l2, params: {tol: 0.01}},"
    " {name: liblinear-l1, params: {tol: 0.01}}]",
    "blocks.speed.pairs": "[[dcd-l2, liblinear-l1]]",
    "solvers": "[{name: dcd-l2, grid: {C: [0.1, 1]}}]",
}


def gate_run(output: Path, cache: Path, flaw: str = "") -> Path:
    """Run the gate's config in a process of its own, with the solver made worse or not."""
    environment = {**os.environ, "SVMBENCH_CACHE": str(cache), "SVMBENCH_OFFLINE": "1"}
    environment |= {"FLAW": flaw, "SVMBENCH_PLUGINS": "flawed", "PYTHONPATH": str(HERE)}
    words = ["run", str(CONFIG), "--output", str(output), "--quiet"]
    words += ["--only", "block=accuracy,block=speed"]
    for key, value in ONE_PAIR.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(
        [*COMMAND, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return output


@pytest.fixture(scope="module")
def base(shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gate_run(tmp_path_factory.mktemp("gate") / "base", shared_cache)


def compare(base: Path, new: Path) -> tuple[Ended, list[tuple[str, str, str]]]:
    ended = svmbench("compare", base, new, "--json")
    changes = json.loads(ended.out)["changes"]
    return ended, [(c["kind"], c["where"], c["what"]) for c in changes if c["verdict"] == "worse"]


@pytest.mark.slow
def test_an_unchanged_tree_passes(base: Path, shared_cache: Path, tmp_path: Path) -> None:
    ended = svmbench("compare", base, gate_run(tmp_path / "again", shared_cache))
    assert ended.code == 0, ended.out
    assert ended.out.startswith("no regression (values compared: 7 result, 2 accuracy, 8 objective")


@pytest.mark.slow
def test_twice_as_slow_is_caught(base: Path, shared_cache: Path, tmp_path: Path) -> None:
    ended, worse = compare(base, gate_run(tmp_path / "slow", shared_cache, flaw="slow"))
    assert ended.code == 4
    assert worse == [("time", "speed · synthetic-linear", "dcd-l2 vs liblinear-l1")]


@pytest.mark.slow
def test_a_point_of_accuracy_is_caught(base: Path, shared_cache: Path, tmp_path: Path) -> None:
    ended, worse = compare(base, gate_run(tmp_path / "wrong", shared_cache, flaw="wrong"))
    assert ended.code == 4
    means = {
        ("accuracy", f"accuracy · {name} · dcd-l2") for name in ("breast-cancer", "digits-even-odd")
    }
    found = {(kind, where) for kind, where, _ in worse}
    assert means <= found
    # Single folds that lost as much stand beside their mean; nothing else became worse.
    assert {(kind, where.partition(" · fold")[0]) for kind, where in found} == means


def test_the_kept_baseline_is_of_the_config_as_it_is() -> None:
    """Counters are held exactly only by a baseline of the core type, data and cells of today."""
    kept = json.loads((CONFIG.parent.parent / "results/regress/baseline.json").read_text())
    again = "run 'make baseline'"
    plan = prepare_plan(str(CONFIG), kept["profile"])
    assert (plan.config.blas_core, plan.config.threads) == ("Haswell", 1)
    assert kept["seed"] == plan.config.seed, again
    for environment in kept["environments"]:
        assert {name.split()[-1] for name in environment["blas"]} == {"Haswell"}, again

    def places(cells: list[Any]) -> set[tuple[Any, ...]]:
        names = ("block", "dataset", "solver", "fold", "data_sha256")
        return {tuple(cell[name] for name in names) for cell in cells}

    planned = [{**cell.identity, "data_sha256": cell.spec["data_sha256"]} for cell in plan.cells]
    assert places(kept["cells"]) == places(planned), again


def test_the_table_says_what_moved(tmp_path: Path) -> None:
    ended = svmbench("keep", CONFIG.parent.parent / "docs", tmp_path / "kept")
    assert ended.code == 1
    assert "is neither a run folder" in ended.err
    kept = json.loads((CONFIG.parent.parent / "results/regress/baseline.json").read_text())
    cell = next(c for c in kept["cells"] if c["counters"].get("updates"))
    cell["counters"]["updates"] //= 3
    for name, content in (("tampered", kept), ("whole", None)):
        folder = tmp_path / name
        folder.mkdir()
        text = (CONFIG.parent.parent / "results/regress/baseline.json").read_text()
        (folder / "baseline.json").write_text(json.dumps(content) if content else text)
    ended = svmbench("compare", tmp_path / "tampered", tmp_path / "whole")
    assert ended.code == 4
    header = ["verdict", "kind", "where", "what", "base", "new", "change"]
    assert ended.out.splitlines()[0].split() == header
    assert ended.out.splitlines()[1].startswith("worse    counter  accuracy · breast-cancer")
    last = ended.out.splitlines()[-1]
    assert last.startswith("1 regression: accuracy · breast-cancer · ")
    assert "updates (values compared: " in last
    raced = json.loads((tmp_path / "whole" / "baseline.json").read_text())
    for cell in raced["cells"]:
        cell["metrics"] |= {k: 4 * v for k, v in cell["metrics"].items() if k[:6] == "ratio:" and v}
    (tmp_path / "tampered" / "baseline.json").write_text(json.dumps(raced))
    ended = svmbench("compare", tmp_path / "tampered", tmp_path / "whole")
    assert ended.code == 4
    times = [line for line in ended.out.splitlines() if line.startswith("worse    time")]
    assert times
    assert all(line.endswith("4 times slower") for line in times if " vs " in line), times
