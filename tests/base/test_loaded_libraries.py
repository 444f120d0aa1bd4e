"""What a command sets before it loads its libraries: threads, and the collector of cycles."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = """
import atexit, gc, sys
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase == "start"))
atexit.register(lambda: print(sum(seen), gc.get_freeze_count()))  # the first is called last
from svmbench.cli import main
sys.argv = ["svmbench", "describe", "alsvm", "--json"]
main()
"""


@pytest.mark.slow
def test_a_command_collects_no_cycles_among_what_it_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True
    )
    n_collections, n_frozen = map(int, done.stdout.splitlines()[-1].split())
    assert n_collections < 100  # with the usual thresholds there are several hundred
    assert n_frozen > 100_000
