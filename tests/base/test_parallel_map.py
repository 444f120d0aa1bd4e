"""Processes for several items: every result comes, and what ends the loop ends them."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import wait_until, write_config

from svmbench.base.errors import SvmbenchError
from svmbench.base.parallel_map import parallel_map

SLEEPERS = """
import time
from svmbench.base.parallel_map import parallel_map

if __name__ == "__main__":
    for found in parallel_map(time.sleep, [0.0, 60.0, 60.0, 60.0], 2):
        print("begun", flush=True)
"""


GREEDY = """
import ctypes, os
from svmbench.base.parallel_map import parallel_map

def hold(number):
    if number:
        ctypes.PyDLL(None).sleep(60)  # keeps the GIL: no thread of this process runs
    return os.getpid()

if __name__ == "__main__":
    for found in parallel_map(hold, [0, 1, 1], 2):
        print("begun", flush=True)
"""


#: A script that writes a line each time it is run, and whether it looks at its name.
SCRIPT = """
import math, sys
from pathlib import Path
import svmbench
from svmbench.base.parallel_map import parallel_map

with Path("runs").open("a") as file:
    file.write("run\\n")
{guard}
    print(sorted(parallel_map(math.sqrt, [16.0, 4.0], 2)), flush=True)
    frame = svmbench.run("config.yaml", output="out")
    print(list(frame["status"]), flush=True)
"""


def has_anybody(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_item_has_its_result() -> None:
    assert sorted(parallel_map(math.sqrt, [16.0, 4.0, 9.0], 2)) == [2.0, 3.0, 4.0]
    assert list(parallel_map(math.sqrt, [], 2)) == []


def test_an_error_ends_the_others() -> None:
    began = time.monotonic()
    with pytest.raises(TypeError):
        list(parallel_map(time.sleep, ["a word", 60.0, 60.0], 2))  # type: ignore[list-item]
    assert time.monotonic() - began < 30
    assert not multiprocessing.active_children()


def test_a_loop_that_is_left_ends_the_others() -> None:
    results = parallel_map(time.sleep, [0.0, 60.0, 60.0], 2)
    began = time.monotonic()
    assert next(results) is None
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 30


def test_a_process_that_dies_is_no_endless_wait() -> None:
    with pytest.raises(SvmbenchError, match="a process of this command died"):
        list(parallel_map(os._exit, [3], 1))


def test_an_error_tells_where_it_was_raised() -> None:
    with pytest.raises(ValueError, match="math domain error") as caught:
        list(parallel_map(math.sqrt, [-1.0], 1))
    assert "Traceback" in caught.value.__notes__[0]


def semaphores_of(group: int) -> set[str]:
    """Return the files of named semaphores that processes of a group hold."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                words = (process / "maps").read_text().split()
                found |= {word for word in words if word.startswith("/dev/shm/sem.")}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("script", [SLEEPERS, GREEDY], ids=["sleepers", "holders of the GIL"])
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["the command", "all of them"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_end_of_the_command_is_everybodys(
    send: Callable[[int, int], None], number: int, script: str, tmp_path: Path
) -> None:
    """Neither a process nor a semaphore is left, whatever signal ends one or all of them."""
    content, script = script, str(tmp_path / "script.py")
    Path(script).write_text(content)
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    semaphores = semaphores_of(process.pid)
    send(process.pid, number)
    began = time.monotonic()
    process.communicate(timeout=50)
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    wait_until(lambda: not has_anybody(process.pid), seconds=10)
    wait_until(lambda: not any(map(os.path.exists, semaphores)), seconds=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guard", "runs"),
    [("if True:", 1), ("name = __name__\nif name:", 1), ('if __name__ == "__main__":', 4)],
)
def test_a_script_without_a_guard_is_not_run_by_its_workers(
    tmp_path: Path, workshop: object, guard: str, runs: int
) -> None:
    write_config(tmp_path, ["liblinear-l2"])
    (tmp_path / "script.py").write_text(SCRIPT.format(guard=guard))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 4.0]\n['ok']\n"
    given = (tmp_path / "script.py").read_text()
    shutil.rmtree(tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-"],
        input=given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[2.0, 4.0]\n['ok']\n", done.stderr
    (tmp_path / "runs").write_text((tmp_path / "runs").read_text().removesuffix("run\n"))
    # Workers of a guarded script need what it defines: two of the map, one or more of the run.
    found = (tmp_path / "runs").read_text().count("run")
    assert found == 1 if runs == 1 else found >= runs
