"""Solvers and data that go wrong: each costs its own cell, says why, and nothing else."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from runs import COMMAND, Ended, cells_of, lines_of, svmbench, write_config

from svmbench.experiment.run import loop, worker
from svmbench.experiment.run.session import Request, execute_run, plan_run

pytestmark = pytest.mark.usefixtures("workshop")

TIMEOUT_S = 10.0
MEMORY_GB = 0.25


@dataclass
class GoneWrong:
    """A run of every solver that goes wrong: its cells, its workers, the MiB that one hoarded."""

    ended: Ended
    cells: dict[str, dict[str, Any]]
    pids: set[int]
    hoard_mb: int


@pytest.fixture(scope="module")
def gone_wrong(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> GoneWrong:
    """Run every solver that goes wrong, and one that works, once."""
    # Tests of this module that ran before this one wrote into the same files.
    for name in ("pids", "hoard"):
        (workshop / name).unlink(missing_ok=True)
    folder = tmp_path_factory.mktemp("wrong")
    names = ["hangs", "holds-the-gil", "segfaults", "is-killed", "allocates", "raises", "nan"]
    names += ["raises-in-c", "aborts"]
    solvers: list[Any] = [f"test-{name}" for name in [*names, "nan-objective", "works"]]
    solvers += [
        {"name": "test-exits", "label": "exits-5", "params": {"C": 5}},
        {"name": "test-exits", "label": "exits-77", "params": {"C": 77}},
    ]
    config = write_config(folder, solvers, timeout_s=TIMEOUT_S, memory_gb=MEMORY_GB)
    ended = svmbench("run", config, "--output", folder / "out")
    pids = {int(line) for line in (workshop / "pids").read_text().split()}
    hoard = int((workshop / "hoard").read_text())
    return GoneWrong(ended, cells_of(folder / "out"), pids, hoard)


@pytest.mark.slow
def test_tracebacks_that_are_recorded_name_no_folder_of_this_machine(gone_wrong: GoneWrong) -> None:
    found = [cell["traceback"] for cell in gone_wrong.cells.values() if "traceback" in cell]
    assert len(found) >= 2
    for text in found:
        assert 'File "svmbench/experiment/run/worker.py", line' in text
        assert 'File "/' not in text
        assert str(Path.home()) not in text


def test_text_without_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/somebody")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert (
        worker.without_folders(f"no {Path('/srv/somebody/data/x.csv')} here")
        == "no data/x.csv here"
    )
    assert worker.without_folders(f"no {tmp_path}/y") == "no y"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "theirs.py").write_text("import json\njson.loads('{')\n")
    monkeypatch.setattr(tempfile, "tempdir", None)
    try:
        runpy.run_path(str(tmp_path / "deep" / "theirs.py"))
    except ValueError:
        text = worker.without_folders(traceback.format_exc())
    named = set(re.findall(r'File "([^"]+)"', text))
    assert {"theirs.py", "json/decoder.py"} <= named
    assert not [name for name in named if name.startswith("/")]


@pytest.mark.parametrize(
    ("solver", "status", "reason"),
    [
        ("test-hangs", "timeout", "stopped after 10 s"),
        ("test-holds-the-gil", "timeout", "stopped after 10 s"),
        ("test-segfaults", "crashed", "the worker died of SIGSEGV"),
        ("test-is-killed", "crashed", "the worker died of SIGKILL"),
        ("exits-5", "crashed", "the worker ended with exit code 5"),
        ("exits-77", "crashed", "the worker ended with exit code 77"),
        ("test-allocates", "memory", "needed more than the limit of 0.25 GiB of memory"),
        ("test-raises", "failed", "RuntimeError: the matrix is not what it was"),
        ("test-raises-in-c", "failed", "ValueError: said by C code"),
        ("test-aborts", "crashed", "the worker died of SIGABRT"),
        ("test-nan-objective", "failed", "the solver returned NaN or infinity: objective"),
        (
            "test-nan",
            "failed",
            "FloatingPointError: NotANumber produced a solution with NaN or infinite weights",
        ),
        ("test-works", "ok", ""),
    ],
)
def test_each_ends_as_itself(gone_wrong: GoneWrong, solver: str, status: str, reason: str) -> None:
    record = gone_wrong.cells[solver]
    assert (record["status"], record["reason"]) == (status, reason)
    if status != "ok":
        line = f"{status}: breast-cancer · {solver} · main: {reason}\n"
        assert line in gone_wrong.ended.out


def test_the_run_ends_with_code_3_and_a_table(gone_wrong: GoneWrong) -> None:
    assert gone_wrong.ended.code == 3
    assert "cells: 5 crashed, 4 failed, 1 memory, 1 ok, 2 timeout" in gone_wrong.ended.out
    assert "Traceback" not in gone_wrong.ended.said


def test_nothing_is_left_behind(gone_wrong: GoneWrong) -> None:
    assert len(gone_wrong.pids) == 13
    assert [pid for pid in gone_wrong.pids if Path(f"/proc/{pid}").exists()] == []


def test_memory_is_fenced(gone_wrong: GoneWrong) -> None:
    assert gone_wrong.hoard_mb <= MEMORY_GB * 1024 + 16


def test_a_hang_costs_its_timeout_and_no_more(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-hangs"], timeout_s=0.5)
    svmbench("run", config, "--output", tmp_path / "warm")  # the server is up after this
    took = []
    for attempt in range(5):  # on a loaded machine the first may be slow, not all
        out = tmp_path / f"out-{attempt}"
        start = time.monotonic()
        svmbench("run", config, "--output", out, "--timeout", 1)
        took.append(time.monotonic() - start)
        assert cells_of(out)["test-hangs"]["reason"] == "stopped after 1 s"
        if took[-1] < 3.0:
            break
    assert min(took) > 1.0
    assert min(took) < 3.0


@pytest.mark.slow
def test_a_worker_over_its_memory_ends_itself() -> None:
    code = "from svmbench.experiment.run import worker; worker._watch_memory(0.0, 1.0)"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 77


SPARSE = "".join(f"{'+1' if i % 2 else '-1'} {i % 7 + 1}:{i / 40} {i + 40}:1\n" for i in range(40))


def test_what_a_solver_cannot_do_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "s.svm").write_text(SPARSE)
    config = write_config(
        tmp_path, ["test-dense-only", "test-works"], datasets=[{"file": str(tmp_path / "s.svm")}]
    )
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 0
    assert "cells: 1 ok, 1 skipped" in ended.out
    assert "test-dense-only takes dense inputs only" in (tmp_path / "out" / "t.md").read_text()


@pytest.mark.parametrize("scaling", ["none", "all-rows"])
def test_dense_inputs_are_for_every_solver(tmp_path: Path, scaling: str) -> None:
    (tmp_path / "s.svm").write_text(SPARSE)
    block = {"protocol": "fit", "scaling": scaling, "inputs": "dense"}
    config = write_config(
        tmp_path,
        ["test-dense-only", "liblinear-l2"],
        block,
        datasets=[{"file": str(tmp_path / "s.svm")}],
    )
    out = tmp_path / "out"
    assert "cells: 2 ok" in svmbench("run", config, "--output", out).out
    before = {r["solver"]: r for r in lines_of(out)}
    ended = svmbench("run", config, "--output", out, "--set", "blocks.main.inputs=as-stored")
    assert "cells: 1 ok, 1 skipped" in ended.out
    after = {r["solver"]: r for r in lines_of(out)}
    assert before["liblinear-l2"]["key"] != after["liblinear-l2"]["key"]
    objectives = [r["liblinear-l2"]["metrics"]["objective"] for r in (before, after)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "code", "sentence"),
    [
        ("one.csv", "1,2,a\n3,4,a\n5,6,a\n", None, "one class"),
        ("nan.csv", "1,2,a\n3,nan,b\n5,6,a\n", 2, "nan.csv, line 2"),
        (
            "inf.svm",
            "+1 1:2 3:1\n-1 1:inf\n",
            2,
            "inf.svm, line 2, column 4: the value 'inf' is not",
        ),
        (
            "bad.svm",
            "+1 1:2 3:1\n-1 1:x\n",
            2,
            "bad.svm, line 2, column 4: the value 'x' is not",
        ),
        ("empty.csv", "", 2, "empty.csv"),
    ],
)
def test_a_bad_file_is_one_sentence_before_anything_runs(
    tmp_path: Path,
    logs: Path,
    name: str,
    content: str,
    code: int | None,
    sentence: str,
) -> None:
    (tmp_path / name).write_text(content)
    config = write_config(tmp_path, ["test-works"], datasets=[{"file": str(tmp_path / name)}])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == code if code else ended.code in (1, 2)
    assert sentence in ended.err, ended.err
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.said
    assert not (logs / "pids").exists()


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works"], datasets=[{"file": str(tmp_path / "no.csv")}])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 2
    assert "no.csv can't be read: No such file or directory" in ended.err


@pytest.mark.slow
def test_retry_runs_just_what_it_names(tmp_path: Path, logs: Path) -> None:
    config = write_config(tmp_path, ["test-fails-once", "test-hangs", "test-works"], timeout_s=4)
    out = tmp_path / "out"

    def ran(*options: str) -> list[str]:
        before = len(lines_of(out)) if out.exists() else 0
        svmbench("run", config, "--output", out, *options)
        return [record["solver"] for record in lines_of(out)[before:]]

    assert sorted(ran()) == ["test-fails-once", "test-hangs", "test-works"]
    assert ran() == []
    assert ran("--retry", "failed") == ["test-fails-once"]
    assert ran("--retry", "timeout") == ["test-hangs"]
    (logs / "mended").touch()
    assert sorted(ran("--retry", "all")) == ["test-fails-once", "test-hangs"]
    assert cells_of(out)["test-fails-once"]["status"] == "ok"
    assert ran("--retry", "failed") == []


def test_only_set_and_fresh(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, ["test-works", "test-random"], {"protocol": "nested-cv", "outer_folds": 3}
    )
    out = tmp_path / "out"
    ended = svmbench("run", config, "--output", out, "--only", "solver=test-works,fold=2")
    assert ended.code == 0
    assert list(cells_of(out)) == ["test-works/1"]
    assert "cells: 5 not run, 1 ok (--only leaves 5 out)" in ended.out

    wrong = svmbench("run", config, "--output", out, "--only", "solver=test-wroks")
    assert wrong.code != 0
    assert "--only solver=test-wroks: the plan has test-random, test-works" in wrong.err

    first = (out / "runs.jsonl").read_text()
    svmbench("run", config, "--output", out, "--fresh", "--set", "blocks.main.outer_folds=2")
    assert sorted(cells_of(out)) == [f"test-{s}/{f}" for s in ("random", "works") for f in (0, 1)]
    assert (out / "runs-1.jsonl").read_text() == first


def test_a_budget_leaves_the_rest_for_later(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works", "test-random"])
    out = tmp_path / "out"
    ended = svmbench("run", config, "--output", out, "--budget", 1e-9)
    assert ended.code == 0
    assert "the budget of 1e-09 minutes is spent: 2 cells not run" in ended.out
    assert {c["status"] for c in cells_of(out).values()} == {"not run"}
    assert "not run (budget of 1e-09 minutes)" in (out / "t.md").read_text()
    assert svmbench("run", config, "--output", out).code == 0
    assert {c["status"] for c in cells_of(out).values()} == {"ok"}


@pytest.mark.slow
def test_a_budget_ends_a_cell_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_config(tmp_path, ["test-works", "test-hangs", "test-random"])
    out = tmp_path / "out"
    # The hour is over once two cells have ended.
    monkeypatch.setattr(loop, "monotonic", lambda: 0.0 if len(cells_of(out)) < 2 else 3601.0)
    ended = svmbench("run", config, "--output", out, "--budget", 60, "--jobs", 2)
    assert ended.code == 0
    assert "the budget of 60 minutes is spent: 1 cell not run" in ended.out
    status = {name: cell["status"] for name, cell in cells_of(out).items()}
    assert status == {"test-works": "ok", "test-random": "ok", "test-hangs": "not run"}
    monkeypatch.undo()
    svmbench("run", config, "--output", out, "--timeout", 1)  # it is run again
    assert cells_of(out)["test-hangs"]["status"] == "timeout"


def test_no_cell_starts_after_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop before the end of the budget ends the waiting cells, too."""
    config = write_config(tmp_path, ["test-works", "test-random"])
    started: list[Any] = []
    start_cell = loop.RunLoop._start
    monkeypatch.setattr(
        loop.RunLoop, "_start", lambda run, *cell: started.append(cell) or start_cell(run, *cell)
    )
    request = Request(config=str(config), output=tmp_path / "out", stop_s=1e-9)
    records = execute_run(plan_run(request)).records
    assert not started
    assert {record["status"] for record in records.values()} == {"not run"}
    assert {record["reason"] for record in records.values()} == {"budget of 1.67e-11 minutes"}


def test_times_of_cells_that_ran_together_are_marked(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-slow", "test-works"], {"protocol": "cv", "folds": 3})
    svmbench("run", config, "--output", tmp_path / "two", "--jobs", 2)
    svmbench("run", config, "--output", tmp_path / "one")
    assert [c["contended"] for c in cells_of(tmp_path / "two").values()] == [True, True]
    assert [c["contended"] for c in cells_of(tmp_path / "one").values()] == [False, False]


@pytest.mark.slow
def test_the_plugin_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    environment = {**os.environ, "SVMBENCH_PLUGINS": "no_such_module"}
    done = subprocess.run(
        [*COMMAND, "list", "solvers"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("svmbench: SVMBENCH_PLUGINS: can't import 'no_such_module'")
    assert done.stderr.count("\n") == 1
