"""Standard output and standard error, which may be full, closed, a pipe, or without UTF-8.

A failed write never stops a run, and never changes its exit code. Only a command whose product is
its output (a list, JSON) ends with an error if the output can't be written. If the reader closed
the pipe (``| head``), the exit code is 0.

Every sentence with a name, a title or a reason is printed by this module, which escapes control
characters and markup.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from svmbench.base import escape, interrupts
from svmbench.base.errors import DataWarning, SvmbenchError


class Steady(io.TextIOBase):
    """A stream that drops text that can't be written.

    Attributes
    ----------
    failure : OSError or None
        The first error of a write.
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
        """The encoding of the underlying stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Return True if the stream is a terminal."""
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:
            return False

    def fileno(self) -> int:
        """Return the file descriptor of the underlying stream."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write the text if possible; return its length."""
        interrupts.end_signs()
        self._attempt("write", text)
        return len(text)

    def flush(self) -> None:
        """Flush the underlying stream."""
        self._attempt("flush")

    def _attempt(self, what: str, *given: str) -> None:
        if self.failure is not None or self._stream is None:
            return
        try:
            getattr(self._stream, what)(*given)
        except ValueError as error:  # another part of the program closed it
            self.failure = OSError(errno.EBADF, str(error))
        except OSError as error:
            self.failure = error


@contextmanager
def steady() -> Iterator[None]:
    """Keep errors of standard output and standard error from the commands."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # it is closed, and the next opened file would get its number
            os.open(os.devnull, os.O_RDWR)
    before = sys.stdout, sys.stderr
    streams = Steady(before[0]), Steady(before[1])
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        for stream in streams:
            stream.flush()
            if stream.failure is not None:
                _redirect_to_null(stream)
        sys.stdout, sys.stderr = before


@contextmanager
def warnings_as_sentences() -> Iterator[None]:
    """Print warnings about files as sentences on standard error, each once; others as usual."""
    before = warnings.showwarning
    printed: set[str] = set()

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, DataWarning):
            before(message, category, *where, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            print_stderr(message)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = before


def _redirect_to_null(stream: Steady) -> None:
    """Redirect a failed stream to the null device, so that the interpreter's last flush works."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def print_line(text: object = "") -> None:
    """Print one line for people on standard output, with control characters escaped."""
    emit(escape.line(text))


def print_stderr(text: object) -> None:
    """Print problems and progress for people on standard error, a line each."""
    _put(sys.stderr, escape.lines(text))


def emit(text: str) -> None:
    """Print text for other programs, such as JSON or a script, unchanged."""
    _put(sys.stdout, text)


def write_output(text: str) -> None:
    """Print text for other programs that is the product of a command.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        As for :func:`check_written`.
    """
    emit(text)
    check_written()


def check_written() -> None:
    """Check that all printed text was written, if it is the product of a command.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If a write failed, unless the reader closed the pipe.
    """
    sys.stdout.flush()
    failure = sys.stdout.failure if isinstance(sys.stdout, Steady) else None
    if failure is not None and failure.errno != errno.EPIPE:
        raise SvmbenchError(f"can't write to standard output: {failure.strerror or failure}")


def _put(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()


COLUMN_GAP_CHARACTERS = 2
#: Columns with at most this number of characters don't wrap on a terminal; wider ones do.
UNWRAPPED_COLUMN_CHARACTERS = 24
#: Smallest width of a column that wraps; if the terminal is too narrow, no table is printed.
WRAPPED_COLUMN_CHARACTERS = 20
FIRST_CELL_STYLE = "bold cyan"


def _wraps() -> bool:
    """Return True if columns are printed for a terminal, which wraps and colours them."""
    is_plain = not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR"))
    return not is_plain and not console().is_dumb_terminal


def table_width(plain: int, n_columns: int) -> int:
    """Return the characters that cells of a row may take: the terminal's, or `plain` elsewhere.

    On a terminal, the lines of a table have one more blank at each gap and at both ends.
    """
    return int(console().width) - (n_columns + 1) if _wraps() else plain


def print_columns(
    rows: Iterable[Sequence[object]],
    header: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print rows as aligned columns, two spaces apart, on standard output.

    On a terminal, long cells wrap within their column; a table that is too wide for it has the
    first cell of each row and beside it the others, each with its column's name. Everywhere else,
    and where ``NO_COLOR`` is set, each row is one line of plain text, however long.

    Parameters
    ----------
    rows : iterable of sequences
        Cells may be of any type and of unknown origin: they are shown as text of one line, and
        nothing in them is markup. A row may have fewer cells than others.
    header : sequence of str, optional
        Names of the columns; without them there is no header line.
    styles : mapping of str to str, optional
        Colours of cells with these texts, on a terminal. First cells are bold there.
    """
    texts = [[escape.line(cell) for cell in row] for row in rows]
    lines = [list(header), *texts] if header else texts
    n_columns = max(map(len, lines), default=0)
    lines = [[*line, *[""] * (n_columns - len(line))] for line in lines]
    if lines and _wraps():
        shown = console()
        table = _rich_table(lines, bool(header), shown.width, styles or {})
        shown.print(table, soft_wrap=False)
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            cell.ljust(width + COLUMN_GAP_CHARACTERS)
            for cell, width in zip(line, widths, strict=True)
        )
        emit("".join(cells).rstrip())


def _rich_table(
    lines: list[list[str]], has_header: bool, width: int, styles: Mapping[str, str]
) -> Any:
    """Return a table of rich whose cells are plain text, for a terminal `width` characters wide."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    wraps = [w > UNWRAPPED_COLUMN_CHARACTERS for w in widths]
    least = (
        min(w, WRAPPED_COLUMN_CHARACTERS) if x else w for w, x in zip(widths, wraps, strict=True)
    )
    if has_header and sum(least) + (COLUMN_GAP_CHARACTERS + 1) * len(widths) > width:
        names, *rows = lines
        facts = (
            "; ".join(
                f"{name}: {cell}" for name, cell in list(zip(names, row, strict=True))[1:] if cell
            )
            for row in rows
        )
        beside = [[row[0], text] for row, text in zip(rows, facts, strict=True)]
        return _rich_table(beside, False, width, styles)
    table = Table(
        box=SIMPLE_HEAD if has_header else None,
        show_header=has_header,
        pad_edge=False,
        padding=(0, 1 if has_header else COLUMN_GAP_CHARACTERS, 0, 0),
    )
    for number, wrapped in enumerate(wraps):
        name = Text(lines[0][number] if has_header else "")
        table.add_column(name, overflow="fold", no_wrap=has_header and not wrapped)
    for line in lines[has_header:]:
        first, *others = line
        cells = (Text(cell, style=styles.get(cell, "")) for cell in others)
        table.add_row(Text(first, style=FIRST_CELL_STYLE), *cells)
    return table


def print_on(console: Any, text: object) -> None:
    """Print a line on rich's console, as text: no markup, no colours, no line breaks."""
    console.print(escape.line(text), markup=False, highlight=False, soft_wrap=True)


def console(*, quiet: bool = False) -> Any:
    """Return rich's console; it honours NO_COLOR and TERM=dumb by itself."""
    from rich.console import Console

    # With COLUMNS=0, rich would print in a width of 0.
    is_zero = "COLUMNS" in os.environ and not os.environ["COLUMNS"].strip("0 ")
    width = shutil.get_terminal_size().columns if is_zero else None
    return Console(soft_wrap=True, quiet=quiet, width=width)
