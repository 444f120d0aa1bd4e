"""Kept cells are run again and compared; what was sabotaged is found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from runs import COMMAND, svmbench, write_config

from svmbench.studies import rechecking
from svmbench.studies.rechecking import KeptRun

ROOT = Path(__file__).resolve().parents[2]
#: Solvers of plain NumPy and a kernel that no compiled loop evaluates: nothing has to be compiled.
SOLVERS = [
    "alsvm",
    {"name": "lssvm-cg", "params": {"kernel": "poly", "degree": 2, "gamma": 0.03, "C": 1.0}},
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config and the run of it, whose plan names the config's file."""
    folder = tmp_path_factory.mktemp("kept")
    config = write_config(folder, list(SOLVERS), {"protocol": "cv", "folds": 3}, seed=3)
    ended = svmbench("run", config, "--output", folder / "results" / "run", "--quiet")
    assert ended.code == 0, ended.said
    path = folder / "results" / "run" / "plan.json"
    plan = json.loads(path.read_text())
    plan["config"]["name"] = "config.yaml"
    path.write_text(json.dumps(plan))
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(made, tmp_path / "here"))
    monkeypatch.chdir(folder)
    return folder / "results" / "run"


def lines(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "rechecks.jsonl").read_text().splitlines()]


def test_cells_that_agree(kept: Path) -> None:
    shown = svmbench("recheck", "--seed", "1")
    assert shown.code == 0, shown.said
    assert "2 of 2 cells of 1 runs drawn (seed 1)" in shown.out
    said = "2 of 2 cells agree (2 by equal arithmetic, 2 in every number), 0 changed"
    assert said in shown.out
    found = lines(kept)
    assert {one["solver"] for one in found} == {"alsvm", "lssvm-cg"}
    for one in found:
        assert one["differences"] == []
        assert one["arithmetic"] == "equal"
        assert one["n_compared"] >= 3
        assert one["seed"] == 1
        assert one["old"]["status"] == one["new"]["status"] == "ok"  # type: ignore[index]


def test_a_cell_that_two_runs_keep_is_run_once_and_compared_with_both(kept: Path) -> None:
    twin = Path(shutil.copytree(kept, kept.parent / "twin"))
    spoil(twin)
    shown = svmbench("recheck")
    assert shown.code == 4, shown.said
    assert "3 of 4 cells agree" in shown.out
    assert "0 of 4 drawn were not run" in shown.out
    here, there = ({one["key"]: one for one in lines(run)} for run in (kept, twin))
    assert here.keys() == there.keys()
    # Two runs of a cell never take the same time to the last digit.
    assert all(one["new"] == there[key]["new"] for key, one in here.items())
    assert not any(one["differences"] for one in here.values())
    assert [one["solver"] for one in there.values() if one["differences"]] == ["alsvm"]


def test_nothing_is_run_or_written_by_a_dry_run(kept: Path) -> None:
    shown = svmbench("recheck", kept, "--dry-run")
    assert shown.code == 0
    assert shown.out.count("breast-cancer") == 2
    assert not (kept / "rechecks.jsonl").exists()


def test_cells_are_fresh_until_their_code_changes(kept: Path) -> None:
    (run,) = rechecking.kept_runs([kept])
    assert [cell.is_fresh for cell in run.candidates] == [True, True]
    plan = json.loads((kept / "plan.json").read_text())
    plan["code"]["files"]["svmbench.core.contract.base"] = "another"
    (kept / "plan.json").write_text(json.dumps(plan))
    (run,) = rechecking.kept_runs([kept])
    assert [cell.is_fresh for cell in run.candidates] == [False, False]


def spoil(run: Path, by: float = 1.0) -> None:
    """Let a record of `alsvm` say another accuracy."""
    text = (run / "runs.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in text]
    for one in records:
        if one["solver"] == "alsvm":
            one["metrics"]["accuracy_pct"] -= by
    (run / "runs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))


@pytest.mark.parametrize(("by", "code"), [(1.0, 0), (30.0, 4)])
def test_another_cpu_has_the_gates_tolerances(kept: Path, by: float, code: int) -> None:
    spoil(kept, by)
    for path in kept.glob("environment-*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "cpu": "Another CPU"}))
    shown = svmbench("recheck")
    assert shown.code == code, shown.said
    assert "(0 by equal arithmetic, 1 in every number)" in shown.out
    assert {one["arithmetic"] for one in lines(kept)} == {"other"}


def test_a_pinned_core_type_is_equal_arithmetic_on_every_cpu(kept: Path) -> None:
    plan = json.loads((kept / "plan.json").read_text())
    assert not KeptRun("run", kept, ()).is_pinned
    plan["config"]["blas_core"] = "Haswell"
    (kept / "plan.json").write_text(json.dumps(plan))
    assert KeptRun("run", kept, ()).is_pinned


def test_a_cell_stopped_at_its_time_limit_decides_nothing(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rechecking, "_MIN_TIMEOUT_S", 0.01)
    monkeypatch.setattr(rechecking, "_TIMEOUT_FACTOR", 0.0)
    shown = svmbench("recheck")
    assert shown.code == 0, shown.said
    assert "0 of 0 cells agree" in shown.out
    assert "2 of 2 drawn were not run" in shown.out
    assert not (kept / "rechecks.jsonl").exists()


def test_no_cell_begins_after_the_budget(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0])
    monkeypatch.setattr(rechecking.time, "monotonic", lambda: next(clock, 301.0))
    shown = svmbench("recheck", "--budget", "5")
    assert shown.code == 0, shown.said
    assert "not run: 5 minutes are over" in shown.out
    assert "2 of 2 drawn were not run" in shown.out


def test_what_runs_at_the_end_of_the_budget_is_stopped() -> None:
    before = signal.getsignal(signal.SIGALRM)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), rechecking._interrupted_at(start + 0.05):
        time.sleep(600)
    assert time.monotonic() - start < 500
    assert signal.getsignal(signal.SIGALRM) == before


def test_a_recheck_that_is_stopped_by_its_budget_is_no_failure(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> None:
        monkeypatch.setattr(rechecking.time, "monotonic", lambda: 1e12)
        raise KeyboardInterrupt

    monkeypatch.setattr("svmbench.experiment.plan.planner.prepare_plan", late)
    shown = svmbench("recheck", "--budget", "5")
    assert shown.code == 0, shown.said
    assert "stopped: 5 minutes are over" in shown.out


def test_an_interrupt_before_the_end_of_the_budget_ends_it(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("svmbench.experiment.plan.planner.prepare_plan", interrupted)
    assert svmbench("recheck").code == 130


def test_a_record_names_a_class_that_is_not_imported(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept.parent.parent / "trap.py").write_text("open('sprung', 'w').close()\nclass Solver: ...\n")
    monkeypatch.syspath_prepend(kept.parent.parent)
    assert rechecking._solver_modules("trap.Solver|alsvm", None) == (
        "trap.Solver",
        "svmbench.core.linear.alsvm",
    )
    assert not Path("sprung").exists()


def test_ci_rechecks_each_commit() -> None:
    """The line was lost once: nothing else notices."""
    script = (ROOT / ".ci" / "run").read_text().replace("\\\n", " ")
    command = next(line for line in script.splitlines() if "svmbench recheck" in line).split()
    assert command[:4] == [".venv/bin/svmbench", "recheck", "--budget", "3"]
    assert "rev-parse" in command[command.index("--seed") + 2]
    assert command[command.index("--changelog") + 1] == "CHANGELOG.md"
    assert "--no-keep" in command
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_a_record_that_is_not_found_again(kept: Path) -> None:
    spoil(kept)
    shown = svmbench("recheck", "--no-keep")
    assert shown.code == 4
    assert "1 of 2 cells agree" in shown.out
    assert "alsvm: accuracy_pct was" in shown.out
    assert not (kept / "rechecks.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("## Unreleased\n- Results change: `alsvm`: exact sums.\n", 0),
        ("## Unreleased\n- Results change: `run`: another seed.\n", 0),
        ("## Unreleased\n- `alsvm` is faster.\n", 4),
        ("## Unreleased\n- Results change: `lssvm-cg`: exact sums.\n", 4),
        ("## Unreleased\n\n## 0.1\n- Results change: `alsvm`: long ago.\n", 4),
    ],
)
def test_a_changelog_names_results_that_changed(kept: Path, text: str, code: int) -> None:
    spoil(kept)
    Path("CHANGELOG.md").write_text(text)
    shown = svmbench("recheck", "--changelog", "CHANGELOG.md")
    assert shown.code == code, shown.said
    assert [one["solver"] for one in lines(kept) if one["differences"]] == ["alsvm"]


def test_a_run_whose_config_is_gone_is_named(kept: Path) -> None:
    Path("config.yaml").unlink()
    shown = svmbench("recheck")
    assert shown.code == 3
    assert "results/run: can't be run again: config.yaml" in shown.out
    assert "2 of 2 drawn were not run" in shown.out


@pytest.mark.parametrize("is_left", [True, False])
def test_a_data_set_that_left_the_config_costs_its_own_cells(kept: Path, is_left: bool) -> None:
    """`is_left`: whether a data set of the kept run is in the config still."""
    text = (kept / "runs.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in text]
    for record in records:
        if record["solver"] == "alsvm" or not is_left:
            record["dataset"] = "gone"
    (kept / "runs.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    shown = svmbench("recheck")
    assert shown.code == 0, shown.said
    assert "main · gone · alsvm: its config has no such cell now" in shown.out
    n_left = 1 if is_left else 0
    assert f"{n_left} of {n_left} cells agree" in shown.out
    assert f"{2 - n_left} of 2 drawn were not run" in shown.out


def test_no_folder_of_results(tmp_path: Path) -> None:
    shown = svmbench("recheck", tmp_path / "nowhere")
    assert shown.code == 1
    assert "nowhere is no folder of results" in shown.err


#: By what is sabotaged: the file, a statement, what stands in its place, and who is found.
SABOTAGE = {
    "sign of a step": (
        "core/numeric/conjugate_gradient.py",
        "self.x += length * self._p",
        "self.x -= length * self._p",
        {"lssvm-cg"},
    ),
    "name that is gone": (
        "core/numeric/conjugate_gradient.py",
        "self.x += length * self._p",
        "self.gone()",
        {"lssvm-cg"},
    ),
    "seed of the folds": (
        "experiment/protocols/folds.py",
        "shuffle=True, random_state=seed)",
        "shuffle=True, random_state=seed + 1)",
        {"alsvm", "lssvm-cg"},
    ),
    "scale of a kernel": (
        "core/kernels/kernels.py",
        "P *= P.dtype.type(self.gamma)",
        "P *= P.dtype.type(1.5 * self.gamma)",
        {"lssvm-cg"},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", SABOTAGE)
def test_five_minutes_find_sabotage(kept: Path, tmp_path: Path, what: str) -> None:
    file, before, after, expected = SABOTAGE[what]
    package = tmp_path / "code" / "svmbench"
    shutil.copytree(ROOT / "svmbench", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "datasets.toml", package.parent / "datasets.toml")
    text = (package / file).read_text()
    assert before in text
    (package / file).write_text(text.replace(before, after))
    ended = subprocess.run(
        [*COMMAND, "recheck", "--budget", "5"],
        # The copy has no compiled code, and no result here is of a compiled loop.
        env={**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 4, ended.stdout + ended.stderr
    found = lines(kept)
    assert {one["solver"] for one in found if one["differences"]} == expected
    if what == "name that is gone":
        assert "status was ok, is failed (AttributeError: " in ended.stdout
    assert {one["solver"] for one in found} == {"alsvm", "lssvm-cg"}
