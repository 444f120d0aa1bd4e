"""SIGTERM ends a command as Ctrl-C does: temporary folders are removed, results so far are kept."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds in which a second SIGTERM is taken for the first: ``timeout`` sends it to a process, then
#: to its group. Later ones interrupt again.
SAME_SIGNAL_S = 1.0

_last_interrupt_s = -SAME_SIGNAL_S


@contextmanager
def handled(
    number: signal.Signals, handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Handle a signal meanwhile; do nothing outside the main thread, which alone may do so."""
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
    """Raise KeyboardInterrupt: the handler of a signal."""
    raise KeyboardInterrupt


def _raise_interrupt_once(number: int, frame: FrameType | None) -> None:
    global _last_interrupt_s
    now = time.monotonic()
    if now - _last_interrupt_s >= SAME_SIGNAL_S:
        _last_interrupt_s = now
        raise_interrupt(number, frame)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt meanwhile."""
    with handled(signal.SIGTERM, _raise_interrupt_once):
        yield
