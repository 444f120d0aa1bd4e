"""The core type of OpenBLAS that a config asks for, and the package that workers import."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import cells_of, svmbench, write_config

from svmbench.base import loaded_libraries
from svmbench.base.errors import SvmbenchError
from svmbench.experiment.measuring import environment
from svmbench.experiment.plan.planner import prepare_plan
from svmbench.experiment.run import processes, remote

ROOT = Path(__file__).resolve().parents[3]
#: Every x86-64 processor that NumPy runs on computes as this one does.
EVERYWHERE = "Nehalem"


def environments_of(folder: Path) -> list[dict[str, Any]]:
    """Return what the results of a folder were measured on, by its newest records."""
    names = {record["environment"] for record in cells_of(folder).values()}
    return [json.loads((folder / f"environment-{name}.json").read_text()) for name in names]


@pytest.mark.slow
def test_the_core_type_is_recorded_as_workers_have_it_or_the_run_says_so(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["dcd-l2"], blas_core=EVERYWHERE)
    before = os.environ.get(loaded_libraries.CORE_VARIABLE)
    ended = svmbench("run", config, "--output", tmp_path / "pinned")
    (found,) = environments_of(tmp_path / "pinned")
    said = f"the config asks for OpenBLAS's core type {EVERYWHERE}, but" in ended.said
    assert ended.code == 0
    assert found["blas"]
    assert said != all(name.split()[-1] == EVERYWHERE for name in found["blas"])
    # Neither this process nor a run after it computes so.
    assert os.environ.get(loaded_libraries.CORE_VARIABLE) == before
    svmbench("run", write_config(tmp_path, ["dcd-l2"]), "--output", tmp_path / "own")
    assert [one["blas"] for one in environments_of(tmp_path / "own")] == [
        environment.environment_facts(1)["blas"]
    ]


@pytest.mark.slow
def test_a_core_type_that_there_is_not_is_said_and_not_recorded(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["dcd-l2"], blas_core="Abacus")
    ended = svmbench("run", config, "--output", tmp_path / "out")
    (found,) = environments_of(tmp_path / "out")
    assert ended.code == 0
    assert "asks for OpenBLAS's core type Abacus, but NumPy and SciPy compute with" in ended.said
    assert not any("abacus" in name.lower() for name in found["blas"])


@pytest.mark.parametrize(
    ("blas", "is_met"),
    [
        (["openblas 0.3.30 Haswell", "openblas 0.3.31 haswell"], True),
        (["openblas 0.3.30 Haswell", "openblas 0.3.31 Zen"], False),
        (["mkl 2024.1 Haswell"], False),
        (["openblas 0.3.30"], False),
        ([], False),
    ],
)
def test_another_blas_is_no_core_type_of_openblas(blas: list[str], is_met: bool) -> None:
    assert (environment.other_arithmetic({"blas": blas}, "Haswell") == "") == is_met


def die() -> None:
    os.kill(os.getpid(), signal.SIGILL)


@pytest.mark.slow
def test_a_cpu_without_the_instructions_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_describe", lambda _threads: None)
    start = processes.start
    monkeypatch.setattr(processes, "start", lambda _function, _args, limit: start(die, (), limit))
    with (
        processes.warm_server(1, [], EVERYWHERE),
        pytest.raises(SvmbenchError, match=rf"core type {EVERYWHERE} \(the worker died of SIGILL"),
    ):
        processes.describe_worker(1)


@pytest.mark.slow
def test_results_under_two_core_types_are_not_confused(tmp_path: Path) -> None:
    def keys(**top: Any) -> set[str]:
        plan = prepare_plan(str(write_config(tmp_path, ["dcd-l2", "csvc"], **top)), "quick")
        return {cell.key for cell in plan.cells} | {c.shared.key for c in plan.cells if c.shared}

    first = keys(blas_core=EVERYWHERE)
    assert first == keys(blas_core=EVERYWHERE)
    assert not first & keys()
    assert not first & keys(blas_core="Haswell")

    runs = {}
    for name, top in (("pinned", {"blas_core": EVERYWHERE}), ("own", {})):
        config = write_config(tmp_path, ["dcd-l2"], **top)
        words = ["--output", tmp_path / name, "--reuse", tmp_path / "pinned"]
        runs[name] = svmbench("run", config, *words[: 2 if name == "pinned" else 4])
        assert runs[name].code == 0
    assert "0 results taken over" in runs["own"].said


@pytest.mark.parametrize("value", ["3", "Has well", "''", "[Haswell]"])
def test_what_is_no_core_type_is_refused(tmp_path: Path, value: str) -> None:
    config = write_config(tmp_path, ["dcd-l2"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--set", f"blas_core={value}")
    assert ended.code == 2
    assert f"--set blas_core={value}" in ended.said


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a checkout of another version, in which everything fails that imports the package."""
    folder = tmp_path / "checkout"
    (folder / "svmbench").mkdir(parents=True)
    (folder / "svmbench" / "__init__.py").write_text('raise SystemExit("the wrong package")\n')
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "one"]):
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package that is in no repository."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "svmbench", tmp_path / "lib" / "svmbench", ignore=ignore)
    for name in ("datasets.toml", "configs"):
        (tmp_path / "lib" / name).symlink_to(ROOT / name)
    return tmp_path / "lib"


@pytest.mark.slow
def test_workers_import_the_package_of_the_command(
    trap: Path, installed: Path, tmp_path: Path
) -> None:
    config = write_config(tmp_path, ["liblinear-l1"])
    words = ["run", str(config), "--output", str(tmp_path / "out"), "--quiet"]
    start = "import sys; from svmbench.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", start, *words],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the wrong package" not in done.stdout + done.stderr
    (found,) = environments_of(tmp_path / "out")
    assert found["git"] is None


@pytest.mark.slow
def test_the_process_beside_a_dask_worker_is_of_the_package_of_that_worker(
    trap: Path, installed: Path, tmp_path: Path
) -> None:
    greet = (
        "import json\n"
        "from svmbench.experiment.run import remote\n"
        "setup = {'run': 'r', 'threads': 1, 'blas_core': None, 'solvers': [], 'kinds': []}\n"
        "host = remote._Host(setup)\n"
        "while (facts := host.read_message()) is None: pass\n"
        "host.end()\n"
        "print(json.dumps(facts))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", greet],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["environment"]["git"] is None
    assert facts["environment"]["blas"] == environment.environment_facts(1)["blas"]
    assert "the wrong package" not in done.stderr
    assert remote.PACKAGE == ROOT / "svmbench"


@pytest.mark.slow
def test_the_process_beside_a_dask_worker_computes_under_the_core_type() -> None:
    setup = {"run": "r", "threads": 1, "blas_core": EVERYWHERE, "solvers": [], "kinds": []}
    host = remote._Host(setup)
    try:
        while (facts := host.read_message()) is None:
            pass
    finally:
        host.end()
    own = environment.environment_facts(1)["blas"]
    if all(name.startswith("openblas") for name in own) and os.uname().machine == "x86_64":
        assert {name.split()[-1] for name in facts["environment"]["blas"]} == {EVERYWHERE}
