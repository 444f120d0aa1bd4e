"""A silent command gives a sign of life on standard error; one that printed gives none.

The tests run in processes of their own, since pytest-timeout uses the timer signal.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

BEFORE = """
import signal, sys, time
from svmbench import cli
from svmbench.base import interrupts
interrupts.FIRST_SIGN_S = 0.01
"""


def said(code: str) -> tuple[str, str]:
    """Run Python code; return what it wrote to standard output and to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "is_said"),
    [(["list", "papers"], True), (["run", "x", "-q"], False), (["completion", "bash"], False)],
)
def test_a_silent_command_says_that_it_starts(words: list[str], is_said: bool) -> None:
    out, err = said(
        f"""
sys.argv = ["svmbench", *{words!r}]
cli._main = lambda *_: time.sleep(0.2) or print("a line") or time.sleep(0.2) or 0
before = signal.getsignal(signal.SIGALRM)
try:
    cli.main()
finally:
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
"""
    )
    assert err == (f"svmbench {words[0]}: starting\n" if is_said else "")
    assert out == "a line\n"


def test_a_waiting_step_takes_the_signs_over() -> None:
    _, err = said(
        """
from svmbench.cli.progress import Waiting
with interrupts.until_first_output(["run"]):
    with Waiting("reading"):
        time.sleep(0.1)
"""
    )
    assert err == ""


def test_a_timer_of_somebody_else_is_left_alone() -> None:
    out, err = said(
        """
def theirs(*_):
    print("theirs")
signal.signal(signal.SIGALRM, theirs)
signal.setitimer(signal.ITIMER_REAL, 0.1)
with interrupts.until_first_output(["run"]):
    assert interrupts.end_signs() is None
    time.sleep(0.3)
"""
    )
    assert (out, err) == ("theirs\n", "")
