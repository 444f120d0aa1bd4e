"""Handling of SIGTERM like Ctrl-C: temporary folders are removed, results so far are kept."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds after a SIGTERM in which another one is ignored: ``timeout`` sends one to a process and
#: one to its group. A later one interrupts again.
SAME_SIGNAL_S = 1.0

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
