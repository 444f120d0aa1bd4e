"""What a solver does to its process, and others to the run, costs that cell or nothing."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from runs import PATIENCE_S, cells_of, lines_of, start, svmbench, wait_until, write_config
from test_durability import alive, children_of, servers_among

from svmbench.base.errors import ResultsError
from svmbench.experiment.measuring import environment
from svmbench.experiment.run import ipc, processes
from svmbench.experiment.run.ipc import BadAnswerError, Inbox
from svmbench.experiment.run.record_file import RunFolder

pytestmark = [pytest.mark.usefixtures("workshop"), pytest.mark.slow]


def forked(logs: Path) -> set[int]:
    return {int(pid) for pid in (logs / "pids").read_text().split()}


# ---------------------------------------------------------------- what a solver leaves behind


def test_what_a_solver_forked_ends_with_it(tmp_path: Path, logs: Path) -> None:
    names = ["test-forks", "test-forks-and-exits", "test-forks-and-hangs", "test-works"]
    config = write_config(tmp_path, names, timeout_s=20)
    assert svmbench("run", config, "--output", tmp_path / "out", "--timeout", 4).code == 3
    cells = cells_of(tmp_path / "out")
    assert {name: cell["status"] for name, cell in cells.items()} == {
        "test-forks": "ok",
        "test-forks-and-exits": "crashed",
        "test-forks-and-hangs": "timeout",
        "test-works": "ok",
    }
    # The child kept the pipe open; the crash was told all the same, and not by the timeout.
    assert cells["test-forks-and-exits"]["reason"] == "the worker ended with exit code 3"
    assert len(forked(logs)) >= 3
    wait_until(lambda: not alive(forked(logs)))


def test_what_a_solver_forked_ends_with_a_killed_run(tmp_path: Path, logs: Path) -> None:
    config = write_config(tmp_path, ["test-forks-and-hangs"])
    process = start("run", config, "--output", tmp_path / "out")
    wait_until(lambda: (logs / "pids").exists() and len(forked(logs)) == 2)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not alive(forked(logs)))


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0])
def test_a_run_killed_while_it_loads_leaves_nothing(
    tmp_path: Path, private_cache: Path, after: float
) -> None:
    """With an empty cache of compiled loops, the server of workers loads for many seconds."""
    config = write_config(tmp_path, ["alsvm", "csvc", "dcd-l1"])
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    process = start("run", config, "--output", tmp_path / "out", env=environment)

    wait_until(lambda: bool(servers_among(children_of(process.pid))))
    time.sleep(after)
    family = children_of(process.pid)
    assert family
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not alive(family))


@pytest.mark.parametrize("victim", ["the command", "its server", "a worker", "all"])
def test_a_kill_leaves_nothing_in_the_temporary_folder(
    tmp_path: Path, logs: Path, victim: str
) -> None:
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))  # short enough for the path of a socket
    config = write_config(tmp_path, ["test-hangs"], timeout_s=3)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = start("run", config, "--output", tmp_path / "out", env=environment)
    wait_until(lambda: (logs / "pids").exists() and bool((logs / "pids").read_text().split()))
    workers = [int(pid) for pid in (logs / "pids").read_text().split()]
    family = children_of(process.pid)
    victims = {
        "the command": [process.pid],
        "its server": servers_among(family),
        "a worker": workers,
        "all": [process.pid, *servers_among(family), *workers],
    }[victim]
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not alive(family))
    left = [path.name for path in temporary.iterdir()]
    shutil.rmtree(temporary)
    assert left == []


# ---------------------------------------------------------------- results that are none

ODD_RESULTS = {
    "test-counts-an-object": ("failed", "TypeError: "),
    "test-counts-too-far": ("failed", "counters.odd can't be recorded: a number of more than 63"),
    "test-talks-at-length": ("failed", "its result has 17,82"),
    "test-counts-in-numpy": ("ok", ""),
    "test-writes-everywhere": ("failed", "the worker's pipe held something other than a result"),
    "test-says-half": ("failed", "the worker's result was cut off"),
    "test-says-half-and-hangs": ("timeout", "stopped after 15 s"),
    "test-shares-memory": ("memory", "needed more than the limit of 0.5 GiB of memory"),
    "test-forks-for-memory": ("memory", "needed more than the limit of 0.5 GiB of memory"),
    "test-works": ("ok", ""),
}


def test_a_result_that_is_none_costs_its_cell_alone(tmp_path: Path) -> None:
    config = write_config(tmp_path, list(ODD_RESULTS), timeout_s=15, memory_gb=0.5)
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 3, ended.said
    cells = cells_of(tmp_path / "out")
    assert set(cells) == set(ODD_RESULTS)
    for name, (status, reason) in ODD_RESULTS.items():
        assert cells[name]["status"] == status, (name, cells[name]["reason"])
        assert cells[name]["reason"].startswith(reason), (name, cells[name]["reason"])
    assert cells["test-counts-in-numpy"]["counters"]["odd"] == 7


def test_a_message_arrives_in_any_pieces_and_no_other_does() -> None:
    message = ipc.encode({"status": "ok", "metrics": {"a": 1.5, "b": float("nan")}})
    for piece in (1, 7, len(message)):
        reader, writer = os.pipe()
        inbox = Inbox(reader)
        for at in range(0, len(message), piece):
            assert inbox.take() is None
            os.write(writer, message[at : at + piece])
        assert inbox.take() == {"status": "ok", "metrics": {"a": 1.5, "b": None}}
        os.close(writer)
        os.close(reader)
    for wrong in (
        b"hello",
        message[:-1],
        message[:20] + b"\0" + message[21:],
        b"svmbench" + b"\xff" * 8,
        ipc._HEAD.pack(b"svmbench", 2, 0) + b"{}",
    ):
        reader, writer = os.pipe()
        os.write(writer, wrong)
        os.close(writer)
        with pytest.raises(BadAnswerError):
            Inbox(reader).take()
        os.close(reader)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, {"b": object()}]}, "a[1].b can't be recorded: an object of type object"),
        ({1: 2}, "the result has an object of type int as a name"),
        ({"a": -(2**63)}, "a can't be recorded: a number of more than 63 bits"),
    ],
)
def test_what_json_can_not_hold_is_named_with_its_place(value: object, said: str) -> None:
    with pytest.raises(BadAnswerError) as raised:
        ipc.plain(value)
    assert str(raised.value) == said
    assert b'"failed"' in ipc.encode({"status": "ok", "x": value})


# ---------------------------------------------------------------- the server of workers


def test_a_server_that_dies_is_started_again_once(tmp_path: Path, logs: Path) -> None:
    config = write_config(tmp_path, ["test-works", "test-ends-its-server", "test-slow"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--jobs", 2)
    assert ended.code == 0, ended.said
    assert "the process that starts workers died; it is started again" in ended.out
    assert "cells: 3 ok" in ended.out
    wait_until(lambda: not alive(forked(logs)))


def test_a_server_that_is_still_ending_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pipes close before it is gone, and until then it would be taken for one that runs."""
    ending = iter([True, True, True])
    monkeypatch.setattr(processes, "server_is_there", lambda: next(ending, False))
    started: list[bool] = []
    monkeypatch.setattr(
        processes, "_ensure_server", lambda **_how: started.append(next(ending, False))
    )
    monkeypatch.setenv(environment.PRELOAD_VARIABLE, "csvc")
    processes.start_server_again()
    assert started == [False]


def test_a_server_that_dies_twice_ends_the_run_in_a_sentence(tmp_path: Path, logs: Path) -> None:
    config = write_config(tmp_path, ["test-works", "test-always-ends-its-server"])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 1
    assert "died a second time" in ended.err
    assert "interrupted" not in ended.said
    assert ended.err.count("\n") == 1
    assert cells_of(tmp_path / "out")["test-works"]["status"] == "ok"
    wait_until(lambda: not alive(forked(logs)))


# ---------------------------------------------------------------- a run that is stopped


@pytest.mark.parametrize("how", [signal.SIGTSTP, signal.SIGSTOP])
def test_a_stop_longer_than_the_timeout_costs_no_cell(
    tmp_path: Path, logs: Path, how: signal.Signals
) -> None:
    config = write_config(tmp_path, ["test-takes-a-second"], timeout_s=5)
    process = start("run", config, "--output", tmp_path / "out")
    wait_until(lambda: (logs / "pids").exists() and "begun" in (logs / "pids").read_text())
    worker = int((logs / "pids").read_text().split()[0])
    process.send_signal(how)

    def state(pid: int) -> str:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    # A process on another core is running for a moment after the signal was sent to it.
    wait_until(lambda: state(process.pid) == "T")
    if how == signal.SIGTSTP:
        wait_until(lambda: state(worker) == "T")
    time.sleep(7)
    process.send_signal(signal.SIGCONT)
    said, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said + complained
    record = cells_of(tmp_path / "out")["test-takes-a-second"]
    assert record["status"] == "ok"
    assert record["contended"] == (how == signal.SIGTSTP)


# ---------------------------------------------------------------- a folder that goes away


def test_a_results_folder_that_is_renamed_is_noticed_at_once(tmp_path: Path, logs: Path) -> None:
    out = tmp_path / "out"
    (logs / "place").write_text(str(out))
    (logs / "fits").unlink(missing_ok=True)
    config = write_config(
        tmp_path, ["test-moves-results", {"name": "test-counts", "params": {"C": 2.0}}]
    )
    ended = svmbench("run", config, "--output", out)
    assert ended.code == 1
    assert "is not there any more: the results folder was removed, renamed or replaced" in ended.err
    assert not (logs / "fits").exists()


@pytest.mark.parametrize("how", ["removed", "replaced", "records removed"])
def test_records_are_written_where_they_can_be_found(tmp_path: Path, how: str) -> None:
    out = tmp_path / "out"
    with RunFolder(out) as folder:
        folder.append({"kind": "point", "key": "a", "point": "1"})
        if how == "records removed":
            (out / "runs.jsonl").unlink()
        else:
            shutil.rmtree(out)
        if how == "replaced":
            out.mkdir()
            (out / "runs.jsonl").touch()
        with pytest.raises(ResultsError, match="removed, renamed or replaced"):
            folder.append({"kind": "point", "key": "a", "point": "2"})


def test_a_scratch_folder_that_goes_away_is_not_the_solvers_failure(
    tmp_path: Path, logs: Path
) -> None:
    out = tmp_path / "out"
    (logs / "place").write_text(str(out))
    block = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3}
    config = write_config(
        tmp_path, [{"name": "test-removes-scratch", "grid": {"C": [1.0, 2.0]}}, "test-works"], block
    )
    ended = svmbench("run", config, "--output", out)
    assert ended.code == 0, ended.said
    assert {cell["status"] for cell in cells_of(out).values()} == {"ok"}
    assert len([line for line in lines_of(out) if line["kind"] == "cell"]) == 6


def test_a_lock_file_that_is_removed_lets_no_second_run_in(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works"])
    with RunFolder(tmp_path / "out"):
        (tmp_path / "out" / ".lock").unlink()
        ended = svmbench("run", config, "--output", tmp_path / "out")
        assert ended.code == 1
        assert "another run is writing to" in ended.err
    assert svmbench("run", config, "--output", tmp_path / "out").code == 0


def test_the_folder_of_another_config_is_refused(tmp_path: Path) -> None:
    config, out = write_config(tmp_path, ["test-works"]), tmp_path / "out"
    assert svmbench("run", config, "--output", out).code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    other = tmp_path / "other.yaml"
    other.write_text(config.read_text())
    ended = svmbench("run", other, "--output", out, "--fresh")
    assert ended.code == 2
    assert ended.err == (
        f"svmbench: {out} has the results of the config 'config', not of 'other';"
        " name another --output\n"
    )
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
