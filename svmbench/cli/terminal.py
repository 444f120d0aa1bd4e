"""Standard output and standard error, whatever they are: full, closed, a pipe, or without UTF-8.

What a command does must not depend on whether anybody can read what it says: a run goes on, and
ends with its own exit code. Only a command whose product is what it prints (a list, JSON) ends with
an error where that could not be written; a reader who has gone (``| head``) has had enough.

Every sentence that may hold a name, a title or a reason goes through here, and comes out as text.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from svmbench.base import inert
from svmbench.base.errors import SvmbenchError


class Steady(io.TextIOBase):
    """A stream that takes everything: what can't be written is let go.

    Attributes
    ----------
    failure : OSError or None
        Why something could not be written, the first time.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        if stream is None:
            self.failure = OSError(errno.EBADF, "it is closed")
        elif isinstance(stream, io.TextIOWrapper) and not stream.closed:
            stream.reconfigure(errors="replace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of what is behind it."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Return whether a person reads it."""
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:
            return False

    def fileno(self) -> int:
        """Return the number of what is behind it."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write what can be written; return the length of the text."""
        self._attempt("write", text)
        return len(text)

    def flush(self) -> None:
        """Hand over what was written."""
        self._attempt("flush")

    def _attempt(self, what: str, *given: str) -> None:
        if self.failure is not None or self._stream is None:
            return
        try:
            getattr(self._stream, what)(*given)
        except ValueError as error:  # closed by somebody else
            self.failure = OSError(errno.EBADF, str(error))
        except OSError as error:
            self.failure = error


@contextmanager
def steady() -> Iterator[None]:
    """Let nothing that happens to standard output and standard error reach the commands."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file that is opened would be taken for it
            os.open(os.devnull, os.O_RDWR)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Steady(before[0]), Steady(before[1])
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            if isinstance(stream, Steady) and stream.failure is not None:
                _let_go(stream)
        sys.stdout, sys.stderr = before


def _let_go(stream: Steady) -> None:
    """Send what is still to be written nowhere: the interpreter would complain at its end."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def say(text: object = "") -> None:
    """Tell a person something in one line, on standard output, as far as it can be read there."""
    emit(inert.line(text))


def complain(text: object) -> None:
    """Tell a person what went wrong, a line a problem, on standard error."""
    _put(sys.stderr, inert.lines(text))


def emit(text: str) -> None:
    """Print what other programs read, JSON or a script, as it is."""
    _put(sys.stdout, text)


def hand_over(text: str) -> None:
    """Print what other programs read, where that is all that a command is for.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        As of :func:`check`.
    """
    emit(text)
    check()


def check() -> None:
    """See to it that all that was printed has been written, where that was the product.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If it could not be, unless who read it has gone.
    """
    sys.stdout.flush()
    failure = sys.stdout.failure if isinstance(sys.stdout, Steady) else None
    if failure is not None and failure.errno != errno.EPIPE:
        raise SvmbenchError(f"can't write to standard output: {failure.strerror or failure}")


def _put(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def tell(console: Any, text: object) -> None:
    """Print a line on rich's console, as text: no markup, no colours, no line breaks."""
    console.print(inert.line(text), markup=False, highlight=False, soft_wrap=True)


def console(*, quiet: bool = False) -> Any:
    """Return rich's console; it honours NO_COLOR and TERM=dumb by itself."""
    from rich.console import Console

    return Console(soft_wrap=True, quiet=quiet)
