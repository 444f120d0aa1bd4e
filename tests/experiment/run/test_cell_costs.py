"""The counters of a cell's costs: processes, fsyncs, imports and searches for thread pools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cell_probe import probed
from runs import svmbench
from workshop_setup import stop_server

from svmbench.experiment.run import processes, worker

N_CELLS = 4


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config of trivial cells."""
    content = {
        "title": "Trivial cells",
        "datasets": ["breast-cancer[:60]"],
        "solvers": [{"name": "alsvm"}],
        "blocks": [
            {
                "name": "main",
                "protocol": "fit",
                "sweep": {"solver.C": [0.5 * (place + 1) for place in range(N_CELLS)]},
            }
        ],
        "tables": [{"name": "t", "block": "main", "rows": "solver.C"}],
        "profiles": {"quick": {}},
    }
    path = tmp_path / "cells.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_cell_is_one_process_one_fsync_and_no_import(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_server()  # that of another test has not loaded this solver
    folder = tmp_path / "facts"
    folder.mkdir()
    start, fsync = processes.start, os.fsync
    started: list[str] = []
    synced: list[int] = []

    def probing(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
        started.append(function.__name__)
        return start(probed, (function, args, str(folder)), timeout_s)

    def counted(descriptor: int) -> None:
        synced.append(descriptor)
        fsync(descriptor)

    monkeypatch.setattr(processes, "start", probing)
    monkeypatch.setattr(os, "fsync", counted)
    ended = svmbench("run", config, "--quiet", "--output", tmp_path / "run")
    assert ended.code == 0, ended.said
    # One more describes the machine, and one makes the inputs that all cells share.
    assert sorted(started) == sorted(["_describe", "make_shared_arrays", *["run_cell"] * N_CELLS])
    assert len(synced) == N_CELLS
    facts = [json.loads(path.read_text()) for path in folder.iterdir()]
    cells = [one for one in facts if one["function"] == "run_cell"]
    assert [one["imported"] for one in cells] == [[]] * N_CELLS
    assert [one["looks"] for one in cells] == [0] * N_CELLS


#: The installed script, which also says whether a worker already has the module that it imports.
SCRIPT = """
import sys
if __name__ == "__mp_main__":
    with open({log!r}, "a") as stream:
        stream.write(f"{{'svmbench.cli' in sys.modules}} ")
from svmbench.cli import main
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "runs_again"), [("1", False), ("2", True)])
def test_a_worker_finds_the_imports_of_the_installed_script(
    config: Path, tmp_path: Path, threads: str, runs_again: bool
) -> None:
    """The server is a fork of the command where that has as many threads as the config asks for."""
    log, script = tmp_path / "log", tmp_path / "svmbench-script"
    script.write_text(SCRIPT.format(log=str(log)))
    words = ["run", config, "--quiet", "--output", tmp_path / "run"]
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, script, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert log.exists() == runs_again
    if runs_again:
        said = log.read_text().split()
        assert len(said) >= N_CELLS
        assert set(said) == {"True"}


def test_a_library_that_is_loaded_later_has_its_threads_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_mapped = iter([10, 10, 12, None, None])
    monkeypatch.setattr(worker.proc, "mapped_libraries", lambda: next(n_mapped))
    monkeypatch.setattr(worker, "_pools", (None, None))
    first, again, later, unknown, still = (worker.thread_pools() for _ in range(5))
    assert again is first
    assert len({id(one) for one in (first, later, unknown, still)}) == 4
