"""Signals of a command: SIGTERM like Ctrl-C, and a timer that gives a sign of life.

After SIGTERM temporary folders are removed, and results so far are kept. The sign of life of a
silent command comes from a signal instead of a thread, because workers are forked.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from svmbench.base import escape

#: Seconds after a SIGTERM in which another one is ignored: ``timeout`` sends one to a process and
#: one to its group. A later one interrupts again.
SAME_SIGNAL_S = 1.0

#: Seconds without output before the first sign, counted from when the package is loaded, and
#: between two signs.
FIRST_SIGN_S, NEXT_SIGN_S = 1.5, 30.0

#: When the command began (monotonic clock); None once it has written something.
_began_s: float | None = None
_name = ""

_last_interrupt_s = -SAME_SIGNAL_S


@contextmanager
def handled(
    number: signal.Signals, handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Handle a signal in this context; only the main thread can, so others do nothing."""
    try:
        before = signal.signal(number, handler)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal by raising KeyboardInterrupt."""
    raise KeyboardInterrupt


def _raise_interrupt_once(number: int, frame: FrameType | None) -> None:
    global _last_interrupt_s
    now = time.monotonic()
    if now - _last_interrupt_s >= SAME_SIGNAL_S:
        _last_interrupt_s = now
        raise_interrupt(number, frame)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt in this context."""
    with handled(signal.SIGTERM, _raise_interrupt_once):
        yield


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let SIGINT wait until the end of this context."""
    waiting: list[tuple[int, FrameType | None]] = []
    with handled(signal.SIGINT, lambda number, frame: waiting.append((number, frame))):
        yield
    handler = signal.getsignal(signal.SIGINT)
    if waiting and callable(handler):
        handler(*waiting[0])


@contextmanager
def until_first_output(words: Sequence[str]) -> Iterator[None]:
    """Write a line to standard error whenever a command is silent for long, up to its first output.

    Nothing is written for a quiet command and for a script that a shell evaluates, nor where a
    signal can't be used (not on the main thread, in another use, or not on this system).

    Parameters
    ----------
    words : sequence of str
        The command and its options, as the user wrote them.
    """
    global _began_s, _name
    command = next((word for word in words if not word.startswith("-")), "")
    is_quiet = command in {"", "completion"} or bool({"-q", "--quiet"} & set(words))
    if is_quiet or not _is_free():
        yield
        return
    with handled(signal.SIGALRM, _write_sign):
        if signal.getsignal(signal.SIGALRM) == _write_sign:
            _began_s, _name = time.monotonic(), escape.line(f"svmbench {command}", 80)
            signal.siginterrupt(signal.SIGALRM, False)
            signal.setitimer(signal.ITIMER_REAL, FIRST_SIGN_S, NEXT_SIGN_S)
        try:
            yield
        finally:
            end_signs()


def end_signs() -> float | None:
    """Write no more signs; return when the silence began, None if there was output before."""
    global _began_s
    began, _began_s = _began_s, None
    if began is not None and signal.getsignal(signal.SIGALRM) == _write_sign:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return began


def _is_free() -> bool:
    """Return True if this system has the timer signal and nothing uses it."""
    return (
        hasattr(signal, "setitimer")
        and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    )


def _write_sign(_number: int, _frame: FrameType | None) -> None:
    if _began_s is None:
        return
    seconds = time.monotonic() - _began_s
    state = "starting" if seconds < NEXT_SIGN_S else f"still at work, {seconds:.0f} s so far"
    try:
        # The interrupted code may be in the middle of a write to the stream itself.
        os.write(2, f"{_name}: {state}\n".encode())
    except OSError:
        end_signs()
