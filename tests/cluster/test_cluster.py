"""Runs on the workers of a Dask scheduler: the same results, records and promises as at home."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import beyond
import numpy as np
import pytest
from runs import cells_of, lines_of, results_of, start, svmbench, wait_until, write_config

import svmbench as package
from svmbench.base.errors import EXIT_INTERRUPTED, ConfigError, MissingPackageError, SvmbenchError
from svmbench.experiment.config.models import Config
from svmbench.experiment.measuring import environment
from svmbench.experiment.run import cluster, host, scheduler
from svmbench.experiment.settings.cells import Cell

beyond.need(package="distributed", install="pip install '.[dask]'")

HERE = Path(__file__).parent
WITHOUT_PAGE = "--no-dashboard"


@dataclass
class Dask:
    """A scheduler and workers, each a process of its own."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: dict[str, subprocess.Popen[bytes]]
    folder: Path

    def add(self, name: str, *more: str, **environ: str) -> None:
        words = ["dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--name", name]
        self.workers[name] = _dask(*words, *more, WITHOUT_PAGE, folder=self.folder, **environ)

    def holder_of(self, pid: int) -> str:
        """Return the worker that a process descends from: by way of the process beside it."""
        while pid > 1:
            for name, worker in self.workers.items():
                if worker.pid == pid:
                    return name
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        raise AssertionError("no worker of ours")

    def hosts_beside(self, name: str) -> list[int]:
        """Return the processes beside a worker that run its cells."""
        pid = self.workers[name].pid
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        children = [int(word) for task in tasks for word in task.read_text().split()]
        commands = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
        return [child for child, command in commands.items() if b"experiment.run.host" in command]

    def end(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
            process.wait()


def _dask(program: str, *words: str, folder: Path, **environ: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{program}", *words],
        env={**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        | {"SVMBENCH_PLUGINS": "slow_solver", "SLOW_FOLDER": str(folder), "SLOW_AT": "4"}
        | environ,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=(folder / f"{program}-{time.monotonic_ns()}.log").open("w"),
    )


@contextmanager
def dask(folder: Path, *names: str, **environ: str) -> Iterator[Dask]:
    """Have a scheduler with workers of some names."""
    folder.mkdir(parents=True)
    told = folder / "scheduler.json"
    words = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told), WITHOUT_PAGE]
    made = _dask("dask_scheduler", *words, folder=folder)
    try:
        wait_until(lambda: told.exists() and told.read_text().rstrip().endswith("}"))
        found = Dask(json.loads(told.read_text())["address"], made, {}, folder)
    except BaseException:
        made.kill()
        raise
    try:
        for name in names:
            found.add(name, **environ)
        yield found
    finally:
        found.end()


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the slow solver here, as it is beside the workers; return its folder."""
    folder = tmp_path / "dask"
    monkeypatch.setenv("SVMBENCH_PLUGINS", "slow_solver")
    monkeypatch.setenv("SLOW_FOLDER", str(folder))
    monkeypatch.setenv("SLOW_AT", "4")
    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return folder


PATH = {"protocol": "path", "scaling": "all-rows"}
ALONG_C = {"name": "test-slow", "grid": {"C": [1, 2, 4, 8]}}
ENTRIES = ["alsvm-batch", "liblinear-l2", {"name": "libsvm", "params": {"gamma": 0.5}}]


def at_home(config: Path, out: Path) -> list[dict[str, Any]]:
    """Return the results of a run on this machine, in a process that knows the plug-in."""
    run = start("run", config, "--output", out)
    assert run.wait(timeout=120) == 0, run.communicate()
    return results_of(out)


def points_of(out: Path) -> list[dict[str, Any]]:
    if not (out / "runs.jsonl").exists():
        return []
    return [line for line in lines_of(out) if line["kind"] == "point"]


def values_of(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what must be the same in every run of the points that are results."""
    found = [point for point in points_of(out) if "metrics" in point]
    return {
        (p["key"], p["point"]): {
            name: value for name, value in p["metrics"].items() if not name.endswith(("_s", "_mb"))
        }
        for p in found
    }


def arrays_of(out: Path) -> dict[str, dict[str, list[Any]]]:
    """Return the arrays that were kept for plots, by their file's name and their own."""
    found = {path.name: np.load(path) for path in (out / "artifacts").iterdir()}
    return {file: {name: kept[name].tolist() for name in kept} for file, kept in found.items()}


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


# Without a cluster.


def test_nothing_of_dask_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, svmbench, svmbench.cli, svmbench.experiment.run.session\n"
        "assert not {'dask', 'distributed', 'tornado'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("address", ["local:0", "local:x", "host:8786", "tcp://", "local"])
def test_what_is_no_address_is_a_sentence(tmp_path: Path, address: str) -> None:
    config = write_config(tmp_path, ["alsvm-batch"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--cluster", address)
    assert ended.code == 2
    assert "--cluster takes a scheduler's address" in ended.err
    assert not (tmp_path / "out").exists()


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    words = ["run", write_config(tmp_path, ["alsvm-batch"]), "--output", tmp_path / "out"]
    ended = svmbench(*words, "--cluster", "local:2", "--jobs", 2)
    assert (ended.code, "--jobs is for this machine" in ended.err) == (2, True)
    ended = svmbench(*words, "--kind", "fast")
    assert (ended.code, "--kind chooses among the workers" in ended.err) == (2, True)
    with pytest.raises(ConfigError, match="--kind chooses among the workers"):
        package.run(words[1], output=tmp_path / "out", kind="fast")
    with pytest.raises(TypeError, match="'sort'"):
        package.run(words[1], output=tmp_path / "out", sort="fast")  # type: ignore[call-arg]


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match=r"pip install '.\[dask\]'"):
        scheduler.check_address("tcp://somewhere:8786")


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "SCHEDULER_TIMEOUT_S", 1.0)
    config = write_config(tmp_path, ["alsvm-batch"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--cluster", "tcp://127.0.0.1:9")
    assert ended.code == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in ended.err
    assert "Traceback" not in ended.err


def test_which_blocks_ask_for_times() -> None:
    blocks = [{"name": name, "protocol": "fit"} for name in "abcd"]
    tables = [
        {"name": "t1", "block": "a", "metrics": ["accuracy_pct"]},
        {"name": "t2", "block": "b", "metrics": ["accuracy_pct", "train_time_s"]},
        {"name": "t3", "block": "c"},
    ]
    plots = [{"name": "p", "block": "d", "kind": "bars", "title": "t", "y": "objective", "x": "C"}]
    config = Config.model_validate(
        {"title": "t", "blocks": blocks, "tables": tables, "plots": plots}
    )
    assert cluster.timed_blocks(config) == {"b", "c"}


# With one.


def test_the_same_results_as_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells, points of a path, arrays for a plot, records of one machine, resume, and reuse."""
    monkeypatch.setenv("SLOW_FOLDER", str(tmp_path))
    content = {
        "blocks": [
            {"name": "fit", "protocol": "fit", "scaling": "all-rows"},
            {"name": "path", "protocol": "path", "solvers": [
                {"name": "alsvm-batch", "grid": {"C": [0.5, 1, 2]}}]},
            {"name": "cv", "protocol": "nested-cv", "outer_folds": 2, "inner_folds": 2, "solvers": [
                {"name": "csvc", "grid": {"C": [1, 2], "gamma": [0.1, 1]}}]},
            {"name": "plane", "protocol": "fit", "plane": True, "sizes": [60],
             "datasets": ["spiral"], "solvers": [{"name": "csvc", "params": {"gamma": 20.0}}]},
        ],
        "tables": [{"name": "t", "block": "fit"}],
    }  # fmt: skip
    config = write_config(tmp_path, ENTRIES, **content)
    ended = svmbench("run", config, "--output", tmp_path / "there", "--cluster", "local:2")
    assert ended.code == 0, ended.said
    assert svmbench("run", config, "--output", tmp_path / "here").code == 0
    assert results_of(tmp_path / "there") == results_of(tmp_path / "here")
    points = [values_of(tmp_path / place) for place in ("there", "here")]
    assert points[0] == points[1] != {}
    arrays = [arrays_of(tmp_path / place) for place in ("there", "here")]
    assert arrays[0] == arrays[1] != {}
    for record in cells_of(tmp_path / "there").values():
        assert (tmp_path / "there" / f"environment-{record['environment']}.json").exists()
    # Nothing of it is run again, here or there, and no address has to answer for that.
    before = len(lines_of(tmp_path / "there"))
    for more in ([], ["--cluster", "tcp://127.0.0.1:9"]):
        assert svmbench("run", config, "--output", tmp_path / "there", *more).code == 0
    assert len(lines_of(tmp_path / "there")) == before


def test_a_worker_that_is_killed_costs_a_repetition(slow: Path, tmp_path: Path) -> None:
    """Its cell goes on at another worker, from the points that were recorded."""
    config = write_config(tmp_path, [ALONG_C, "alsvm-batch"], PATH | {"solvers": [ALONG_C]})
    out = tmp_path / "out"
    with dask(slow, "first", "second") as there:
        run = start("run", config, "--output", out, "--cluster", there.address)
        try:
            wait_until(lambda: (slow / "waits").exists(), 120)
            wait_until(lambda: len(points_of(out)) == 2)
            assert [p["dimensions"] for p in points_of(out)] == [{"solver.C": 1}, {"solver.C": 2}]
            cell = int((slow / "waits").read_text())
            victim = there.holder_of(cell)
            there.workers[victim].kill()
            wait_until(lambda: not is_running(cell), 10)
            (slow / "waits").unlink()
            wait_until(lambda: (slow / "waits").exists(), 120)
            assert there.holder_of(int((slow / "waits").read_text())) != victim
            (slow / "go").touch()
            said = "".join(run.communicate(timeout=120))
        finally:
            run.kill()
            run.wait()
    assert run.returncode == 0, said
    assert [p["dimensions"]["solver.C"] for p in points_of(out)] == [1, 2, 4, 8]
    # What was recorded was not done again; what was not, was.
    assert (slow / "fits").read_text().split() == ["1", "2", "4", "4", "8"]
    assert results_of(out) == at_home(config, tmp_path / "home")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_a_run_ends_its_cells_on_the_cluster(
    slow: Path, tmp_path: Path, number: signal.Signals
) -> None:
    config = write_config(tmp_path, [ALONG_C], PATH)
    out = tmp_path / "out"
    with dask(slow, "only") as there:
        words = ("run", config, "--output", out, "--cluster", there.address)
        run = start(*words)
        try:
            wait_until(lambda: (slow / "waits").exists() and len(points_of(out)) == 2, 120)
            assert len(there.hosts_beside("only")) == 1
            os.kill(run.pid, number)
            said = "".join(run.communicate(timeout=60))
        finally:
            run.kill()
            run.wait()
        if number == signal.SIGINT:
            assert run.returncode == EXIT_INTERRUPTED, said
        cell = int((slow / "waits").read_text())
        wait_until(lambda: not is_running(cell), 30)
        # The same command goes on from there, on the same worker.
        (slow / "go").touch()
        again = start(*words)
        said = "".join(again.communicate(timeout=120))
        assert again.returncode == 0, said
        wait_until(lambda: not there.hosts_beside("only"), 20)
    assert (slow / "fits").read_text().split() == ["1", "2", "4", "4", "8"]


def test_a_scheduler_that_goes_away_is_a_sentence(slow: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, [ALONG_C], PATH)
    out = tmp_path / "out"
    with dask(slow, "only") as there:
        run = start("run", config, "--output", out, "--cluster", there.address)
        try:
            wait_until(lambda: (slow / "waits").exists() and len(points_of(out)) == 2, 120)
            there.scheduler.kill()
            said = "".join(run.communicate(timeout=120))
        finally:
            run.kill()
            run.wait()
        assert run.returncode == 1, said
        assert f"the Dask scheduler at {there.address} is gone; all records so far are safe" in said
        assert "Traceback" not in said
        assert len(points_of(out)) == 2
    (slow / "go").touch()
    assert len(at_home(config, out)) == 1
    assert [p["dimensions"]["solver.C"] for p in points_of(out)] == [1, 2, 4, 8]


def test_times_belong_to_one_kind_of_worker(slow: Path, tmp_path: Path) -> None:
    block = {"solvers": ["alsvm-batch", "liblinear-l2", "liblinear-l1"]}
    block["solvers"] = [{"name": name} for name in block["solvers"]]
    config = write_config(tmp_path, ["alsvm-batch"], block)
    with dask(slow) as there:
        there.add("a", SVMBENCH_KIND="fast")
        there.add("b", SVMBENCH_KIND="slow")
        words = ["run", config, "--cluster", there.address, "--output"]
        out = tmp_path / "slow"
        ended = svmbench(*words, out, "--kind", "slow")
        assert ended.code == 0, ended.said
        found = package.run(
            str(config), output=tmp_path / "py", cluster=there.address, kind="slow", profile="quick"
        )
        assert list(found.status) == ["ok"] * 3
        for folder in (out, tmp_path / "py"):
            for record in cells_of(folder).values():
                facts = folder / f"environment-{record['environment']}.json"
                assert json.loads(facts.read_text())["kind"] == "slow"
                assert record["contended"] is False  # there is one of that kind
        ended = svmbench(*words, tmp_path / "any")
        assert ended.code == 2, ended.said
        said = "workers of 2 kinds (fast, slow); choose one for timed cells with --kind"
        assert said in ended.err


def test_what_asks_for_no_times_goes_anywhere() -> None:
    run = object.__new__(cluster.ClusterRun)
    facts = {"machine": "m", "environment": {"cpu": "c"}}
    one, other = (
        cluster.ClusterWorker(f"tcp://{kind}", None, {**facts, "environment": {"kind": kind}})
        for kind in ("fast", "slow")
    )
    run.workers = {place.address: place for place in (one, other)}
    run.timed, run.kind = {"timed"}, "fast"

    timed, free = (
        Cell(name, {"block": name}, {})  # type: ignore[typeddict-item]
        for name in ("timed", "scores")
    )
    assert run._may_run(one, timed)
    assert not run._may_run(other, timed)
    assert run._may_run(other, free)
    # Where nobody has said which, all have to be of one kind, and all have to be known.
    run.kind = ""
    with pytest.raises(ConfigError, match="2 kinds"):
        run._may_run(one, timed)
    other.facts = {}
    assert not run._may_run(one, timed)
    other.is_gone = True
    assert run._may_run(one, timed)


def test_a_wait_for_workers_is_told_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    run, said, clock = object.__new__(cluster.ClusterRun), [], [1000.0]
    monkeypatch.setattr(cluster, "monotonic", lambda: clock[-1])
    run.listener = SimpleNamespace(note=said.append)  # type: ignore[assignment]
    run.options = SimpleNamespace(cluster="tcp://x:1")  # type: ignore[assignment]
    run.workers, run.running, run.kind, run.warned = {}, {}, "", clock[0]
    for seconds, n_told in ((1059.0, 0), (1060.0, 1), (1119.0, 1), (1121.0, 2)):
        clock.append(seconds)
        run._warn_if_none_is_usable()
        assert len(said) == n_told
    assert said[0] == "no worker at tcp://x:1 yet; waiting"


def test_a_worker_has_one_cell_at_a_time() -> None:
    run = object.__new__(cluster.ClusterRun)
    facts = {"machine": "m", "environment": {"cpu": "c"}}
    one, other = (cluster.ClusterWorker(f"tcp://{name}", None, facts) for name in "ab")
    run.workers = {place.address: place for place in (one, other)}
    run.timed, run.kind = set(), ""
    cells = [Cell(name, {"block": "b"}, {}) for name in "123"]  # type: ignore[typeddict-item]
    run.running = {cluster.RemoteWork(one, None): (cells[0], 0.0)}
    run.waiting = cells[1:]
    run._update_workers = lambda: None  # type: ignore[method-assign]
    run._send = lambda _cell, place: cluster.RemoteWork(place, None)  # type: ignore[method-assign]
    for _ in range(2):
        run._start_processes({})
        held = [(work.worker.address, cell.key) for work, (cell, _) in run.running.items()]
        assert held == [("tcp://a", "1"), ("tcp://b", "2")]
    assert [cell.key for cell in run.waiting] == ["3"]


def test_two_runs_share_a_worker_and_not_a_folder(slow: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, [ALONG_C], PATH)
    with dask(slow, "only") as there:
        words = ("run", config, "--cluster", there.address, "--output")
        first = start(*words, tmp_path / "first")
        wait_until(lambda: (slow / "waits").exists(), 120)
        refused = start(*words, tmp_path / "first")
        said = "".join(refused.communicate(timeout=60))
        assert refused.returncode == 1, said
        assert "in use" in said or "another" in said
        second = start(*words, tmp_path / "second")
        wait_until(lambda: (tmp_path / "second" / "runs.jsonl").exists(), 60)
        (slow / "go").touch()
        for run, name in ((first, "first"), (second, "second")):
            said = "".join(run.communicate(timeout=120))
            assert run.returncode == 0, said
            assert len(points_of(tmp_path / name)) == 4


def test_a_worker_of_other_code_is_left_alone(
    slow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(tmp_path, ["alsvm-batch"])
    with dask(slow, "only") as there:
        monkeypatch.delenv("SVMBENCH_PLUGINS")
        monkeypatch.setattr(cluster, "code_of", lambda *_pair: "other")
        with pytest.raises(SvmbenchError, match="has other code than this process"):
            package.run(str(config), output=tmp_path / "out", cluster=there.address)


def test_a_cell_that_ends_what_runs_it_is_tried_thrice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "result_of", lambda future: future.told)
    place = cluster.ClusterWorker("tcp://x", None, {"machine": "m", "environment": {"cpu": "c"}})
    assert place.kind == "c"

    class Done:
        status = "finished"
        told: Any = ""

        def done(self) -> bool:
            return True

    done = Done()
    work = cluster.RemoteWork(place, done)
    done.told = json.dumps({"error": "ValueError: gone\x1b[31m"})
    answer = work.reply(1.0)
    assert answer["status"] == "again"
    assert "ValueError: gone" in answer["reason"]
    assert "\x1b" not in answer["reason"]
    nothing = [None, 7, "", "x", "[]", "7", b"\xff", [], {"answer": {"status": "ok"}}, "[" * 10**5]
    nothing += ["null", "{}", '{"answer": 3}', '{"answer": {"status": 4}}', '{"answer": null}']
    for done.told in nothing:
        work = cluster.RemoteWork(place, done)
        said = "the reply of its Dask worker is not valid"
        assert work.reply(1.0) == {"status": "again", "reason": said}
    done.status = "error"
    assert work.reply(1.0)["status"] == "again"
    place.is_gone = True
    assert work.reply(1.0) == {"status": "again", "reason": "its Dask worker went away"}


def test_a_worker_that_introduces_itself_wrongly_is_none() -> None:
    about = environment.environment_facts(1)
    facts = {"environment": {**about, "load": [1.0]}, "machine": "m", "code_hashes": []}
    assert cluster._is_full_description(json.loads(json.dumps(facts)))
    for name in facts:
        for wrong in (None, 7, {}, "../../x"):
            if name != "machine" or not isinstance(wrong, str):
                assert not cluster._is_full_description({**facts, name: wrong})
    # The id names a file of the results folder.
    assert not cluster._is_full_description({**facts, "environment": {**about, "id": "../../x"}})


# What a hostile worker may do.

HOSTILE = """
import functools, os, pickle
from distributed import get_worker
from svmbench.experiment.run import remote

class Evil(Exception):
    def __reduce__(self):
        return os.system, ("echo $PPID >> " + os.environ["EVIL"],)

how = os.environ["HOW"]

def run_evil(setup, asked):
    if how == "raises":
        raise Evil
    if how == "answers what can't be sent":
        return functools.reduce(lambda held, _: [held], range(100_000), [])
    if how == "tells":
        get_worker().log_event("warn", {"message": pickle.dumps(Evil())})
        return run(setup, asked)
    return None

def greet_evil(setup):
    return None if how == "is silent" else greet(setup)

if not hasattr(remote, "is_evil"):  # Dask loads this twice
    run, greet = remote.run_in_host, remote.start_host
    remote.run_in_host, remote.start_host, remote.is_evil = run_evil, greet_evil, True
"""


#: What a worker may answer that is no answer.
ANSWERS = ("raises", "answers none", "answers what can't be sent")


@pytest.mark.parametrize("how", [*ANSWERS, "tells", "is silent"])
def test_a_hostile_worker_runs_no_code_in_the_client(tmp_path: Path, how: str) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    config, out = write_config(tmp_path, ["alsvm-batch"]), tmp_path / "out"
    evil = tmp_path / "evil"
    with dask(tmp_path / "dask") as there:
        preload = ("--preload", str(tmp_path / "hostile.py"))
        there.add("hostile", *preload, HOW=how, EVIL=str(evil), SVMBENCH_PLUGINS="")
        run = start("run", config, "--output", out, "--cluster", there.address)
        said = "".join(run.communicate(timeout=200))
    assert "Traceback" not in said
    if how == "is silent":
        assert (run.returncode, "it does not say what it is" in said) == (1, True), said
    elif how == "tells":
        assert run.returncode == 0, said
    else:
        assert run.returncode == 3, said
        (cell,) = cells_of(out).values()
        assert cell["status"] == "crashed"
        assert cell["reason"] == "the reply of its Dask worker is not valid"
    who = evil.read_text().split() if evil.exists() else []
    assert str(run.pid) not in who


def test_another_client_of_the_process_still_reads_pickles() -> None:
    from distributed.protocol import pickle

    content = pickle.dumps({1, 2})
    with scheduler._without_pickles():
        assert pickle.loads(content) is None
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(pickle.loads, content).result() == {1, 2}
    assert pickle.loads(content) == {1, 2}


def test_workers_of_this_machine_open_no_port() -> None:
    def listening() -> set[str]:
        tables = [Path(f"/proc/self/net/{name}").read_text() for name in ("tcp", "tcp6")]
        rows = [row.split() for table in tables for row in table.splitlines()[1:]]
        sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
        own = set()
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                own.add(str(descriptor.readlink()))
        return sockets & own

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        before = listening()
        assert len(before) >= 1
        with scheduler.connected("local:2") as client:
            assert len(client.nthreads()) == 2
            assert client.submit(abs, -7).result(timeout=60) == 7
            assert listening() == before
            assert not multiprocessing.active_children()


def test_bad_request_has_a_place() -> None:
    with pytest.raises(ConfigError, match="local:4 for four workers"):
        scheduler.check_address("\x1b[31m")


def test_a_data_set_with_other_content_is_refused() -> None:
    chosen = {"name": "breast-cancer", "file": "", "label_column": ""}
    with pytest.raises(SvmbenchError, match="'breast-cancer' has other content on"):
        host._check_data({"dataset": chosen, "data_sha256": "0" * 64}, None)
