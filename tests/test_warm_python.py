"""A fork of a warm process is what an interpreter started anew would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import warm_python as module
from warm_python import WarmPython

#: Prints what a process is told by the one that starts it.
LOOK = """# forked
import gc, json, os, signal, sys, tempfile
files = ["/proc/self/fd/" + one for one in os.listdir("/proc/self/fd")]
print(json.dumps({
    "words": sys.argv,
    "folder": os.getcwd(),
    "path": sys.path,
    "variables": dict(os.environ),
    "files": {one: os.path.basename(os.readlink(one)) for one in files if os.path.islink(one)},
    "handlers": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
    "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    "leads": os.getsid(0) == os.getpid(),
    "parent": os.getppid(),
    "temporary": tempfile.gettempdir(),
    "collector": [gc.isenabled(), *gc.get_threshold()],
    "package": [one for one in sys.modules if one.startswith("svmbench")],
}), flush=True)
sys.exit(int(sys.argv[1]))
"""
#: Ends when a signal tells it to.
WAIT = "# forked\nimport time; print('begun', flush=True); time.sleep(60)"


@pytest.fixture
def forks(warm_python: WarmPython, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have the statements of this file run in forks; return the forks' process ids."""
    pids: list[int] = []
    fork = warm_python.fork

    def counted(*args: Any, **told: Any) -> int:
        pids.append(fork(*args, **told))
        return pids[-1]

    monkeypatch.setattr(warm_python, "fork", counted)
    monkeypatch.setattr(module, "FORKED", ("# forked",))
    return pids


@contextmanager
def ignored(number: signal.Signals) -> Iterator[None]:
    """Ignore a signal, and block another."""
    before = signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        yield
    finally:
        signal.signal(number, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("safe", ["", "1"])
def test_a_fork_is_told_what_an_interpreter_is_told(
    forks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leads: bool, safe: str
) -> None:
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "SVMBENCH_ONE": "1"}
    variables |= {"TMPDIR": str(tmp_path), "PYTHONSAFEPATH": safe}
    found = []
    with (tmp_path / "held").open("w") as held, (tmp_path / "in").open("w+") as given:
        for forked in (("# forked",), ()):
            monkeypatch.setattr(module, "FORKED", forked)
            with ignored(signal.SIGINT if leads else signal.SIGTERM):
                process = subprocess.Popen(
                    [sys.executable, "-c", LOOK, "3", "and more"],
                    cwd=tmp_path,
                    env=variables,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[held.fileno()],
                    start_new_session=leads,
                    text=True,
                )
            said, _ = process.communicate(timeout=60)
            assert process.returncode == 3
            told = json.loads(said)
            told["files"] = {k: v.partition(":")[0] for k, v in told["files"].items()}
            found.append(told)
    assert len(forks) == 1
    assert found[0] == found[1]
    assert found[0]["leads"] == leads
    assert found[0]["parent"] == os.getpid()


def test_a_fork_ends_as_a_child_does(forks: list[int]) -> None:
    process = subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    assert forks == [process.pid]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM
    process.stdout.close()


def test_other_libraries_or_statements_are_an_interpreter(
    forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [sys.executable, "-c", "# forked"]
    subprocess.run(words, check=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
    subprocess.run(words, check=True, preexec_fn=os.getpid)
    subprocess.run([sys.executable, "-P", *words[1:]], check=True)
    subprocess.run([*words[:2], "pass"], check=True)
    assert forks == []
    subprocess.run(words, check=True)
    assert len(forks) == 1


def test_a_program_ends_with_the_code_of_its_command(
    warm_python: WarmPython, tmp_path: Path
) -> None:
    program = tmp_path / "svmbench"
    warm_python.write_program(program)
    done = subprocess.run([program, "run", "nowhere"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such config file" in done.stderr
