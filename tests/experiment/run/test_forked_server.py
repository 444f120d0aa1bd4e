"""The server of workers as a fork of the command: when it is one, and what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from svmbench.base import loaded_libraries, paths
from svmbench.base.errors import SvmbenchError
from svmbench.experiment.measuring import proc
from svmbench.experiment.run import forked_server, processes, remote

#: A command that holds a file, a handler of a signal and a log, and asks a worker for its own.
COMMAND = """
import gc, json, logging, mmap, os, resource, signal, sys
from pathlib import Path
from svmbench.base import loaded_libraries, paths
{first}
from svmbench.experiment.run import processes, worker

def room():
    # how many KiB a cell with a quarter of a GiB can take at once
    worker._set_limits({{"memory_gb": 0.25, "threads": 1}})
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        try:
            mmap.mmap(-1, middle << 10, mmap.MAP_PRIVATE).close()
        except OSError:
            high = middle
        else:
            low = middle
    return low

def look():
    files = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return {{
        "status": "ok",
        "server": Path(f"/proc/{{os.getppid()}}/comm").read_text().strip(),
        "files": [one for one in files if one.endswith("held")],
        "is_default": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "log": [type(one).__name__ for one in logging.getLogger("svmbench").handlers],
        "threads": os.environ["OMP_NUM_THREADS"],
        "limits": [resource.getrlimit(resource.RLIMIT_NOFILE)[0],
                   resource.getrlimit(resource.RLIMIT_CORE)[0]],
        "room": room(),
        "collector": [gc.isenabled(), *gc.get_threshold()],
    }}

if __name__ == "__main__":
    held = open("held", "w")
    signal.signal(signal.SIGTERM, lambda *_: None)
    logging.getLogger("svmbench").addHandler(logging.StreamHandler())
    sys.stdout.write("said once, ")
    loaded_libraries.collect_rarely()
    with processes.warm_server({threads}, [], None):
        work = processes.start(look, (), 60.0)
        while not processes.wait_for([work], 60.0, processes.SuspensionClock()):
            pass
        print(json.dumps(work.result()))
"""


def looked(folder: Path, threads: int, *, first: str = "") -> dict[str, Any]:
    """Return what a worker of so many threads finds, whose command did `first` before NumPy."""
    environment = {
        k: v for k, v in os.environ.items() if k not in loaded_libraries.THREAD_VARIABLES
    }
    script = folder / "command.py"
    script.write_text(COMMAND.format(threads=threads, first=first))
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("said once, {")
    found: dict[str, Any] = json.loads(done.stdout.removeprefix("said once, "))
    return found


@pytest.mark.parametrize(("n_threads", "can_be"), [(1, True), (2, False)])
def test_a_process_of_several_threads_is_not_forked(
    monkeypatch: pytest.MonkeyPatch, n_threads: int, can_be: bool
) -> None:
    monkeypatch.setattr(loaded_libraries, "_loaded_under", {"OMP_NUM_THREADS": "1"})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(threading, "active_count", lambda: n_threads)
    assert forked_server.can_be_forked() == can_be
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert not forked_server.can_be_forked()
    # With these threads they are loaded, but a fork of the process wouldn't have them.
    monkeypatch.setattr(loaded_libraries, "_loaded_under", {"OMP_NUM_THREADS": "3"})
    assert not forked_server.can_be_forked()


def test_a_thread_that_holds_a_lock_or_a_system_that_lists_no_files_asks_for_an_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loaded_libraries, "_loaded_under", {"OMP_NUM_THREADS": "1"})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(threading, "active_count", lambda: len(threading.enumerate()) - others)
    others = len(threading.enumerate()) - 1
    assert forked_server.can_be_forked()
    lock, holds, may_end = threading.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            may_end.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    holds.wait()
    assert not forked_server.can_be_forked()
    may_end.set()
    holder.join()
    assert forked_server.can_be_forked()
    monkeypatch.setattr(forked_server.proc, "open_descriptors", lambda: None)
    assert not forked_server.can_be_forked()


LOADED = "loaded_libraries.load_with_one_thread()"


@pytest.mark.slow
def test_a_forked_server_holds_no_file_handler_or_log_of_the_command(tmp_path: Path) -> None:
    found = looked(tmp_path, 1, first=LOADED)
    assert found["server"] == "forkserver"
    assert (found["files"], found["is_default"]) == ([], True)
    assert set(found["log"]) == {"NullHandler"}
    usual = subprocess.run(
        [sys.executable, "-c", "import gc; print([True, *gc.get_threshold()])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(found["collector"]) == usual.stdout.strip()
    assert found["threads"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "first"), [(2, LOADED), (1, "")])
def test_where_threads_differ_or_are_unknown_an_interpreter_is_started(
    tmp_path: Path, threads: int, first: str
) -> None:
    found = looked(tmp_path, threads, first=first)
    assert found["server"] != "forkserver"
    assert found["threads"] == str(threads)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_worker_has_the_limits_of_its_command(tmp_path: Path, threads: int) -> None:
    limited = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""
    found = looked(tmp_path, threads, first=LOADED + limited)
    assert (found["server"] == "forkserver", found["limits"]) == (threads == 1, [64, 0])


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_the_process_beside_a_dask_worker_follows_the_same_rules(threads: int) -> None:
    setup = {"threads": threads, "solvers": [], "blas_core": None, "kinds": []}
    environment = {
        k: v for k, v in os.environ.items() if k not in loaded_libraries.THREAD_VARIABLES
    }
    with subprocess.Popen(
        [sys.executable, "-P", "-c", remote._MAIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        host.stdin.write(json.dumps(setup) + "\n")
        host.stdin.flush()
        assert "environment" in json.loads(host.stdout.readline())
        servers = [
            Path(f"/proc/{pid}/comm").read_text().strip() for pid in proc.descendants(host.pid)
        ]
        host.stdin.close()
        assert host.wait(60) == 0
    assert ("forkserver" in servers) == (threads == 1)


@pytest.mark.slow
def test_a_cell_may_take_as_much_memory_by_either_server(tmp_path: Path) -> None:
    for threads in (1, 2):
        assert 262_000 <= looked(tmp_path, threads, first=LOADED)["room"] <= 262_144


def _cache_of_a_worker() -> dict[str, str]:
    return {"status": "ok", "cache": str(paths.cache_dir())}


def test_a_worker_has_the_cache_that_its_command_has_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may be that of an earlier run, which had another cache."""
    found = []
    with processes.warm_server(1, [], None):
        for name in ("first", "second"):
            monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / name))
            work = processes.start(_cache_of_a_worker, (), 60.0)
            while not processes.wait_for([work], 60.0, processes.SuspensionClock()):
                pass
            found.append(Path(work.result()["cache"]).name)
    assert found == ["first", "second"]


def test_a_worker_that_never_describes_its_machine_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is above the gap that the command takes for a stop of its own."""
    monkeypatch.setattr(processes, "_DESCRIBE_TIMEOUT_S", 1.25 * processes._MAX_POLL_GAP_S)
    monkeypatch.setattr(processes, "_describe", time.sleep)
    too_long = pytest.raises(SvmbenchError, match="it takes too long")
    with processes.warm_server(1, [], None), too_long:
        processes.describe_worker(60)  # it sleeps for a minute, and then ends without an answer
