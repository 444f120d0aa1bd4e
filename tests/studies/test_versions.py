"""Versions in turn: what an interrupt leaves."""

import os
import stat
import sys
from pathlib import Path

import pytest

from svmbench.studies import versions

#: Ends with SIGTERM and a trace of it; before, it interrupts who started it.
STANDIN = """#!{python} -SE
import os, signal, sys, time
def leave(*_):
    open("ended", "w").close()
    sys.exit(130)
signal.signal(signal.SIGTERM, leave)
os.kill(os.getppid(), signal.SIGINT)
time.sleep(60)
"""


def test_an_interrupt_lets_the_command_end_by_itself(tmp_path: Path) -> None:
    standin = tmp_path / "python"
    standin.write_text(STANDIN.format(python=sys.executable))
    standin.chmod(standin.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(KeyboardInterrupt):
        versions.run_config(
            tmp_path / "c.yaml", tmp_path / "out", dict(os.environ), quiet=True, python=str(standin)
        )
    assert (tmp_path / "ended").exists()
