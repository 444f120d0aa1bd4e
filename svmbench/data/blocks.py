"""Read files in blocks of rows, with one block in memory at a time.

::

    from svmbench import ALSVMBatch, data

    blocks = data.open_blocks("clicks.libsvm.xz", n_features=300)
    ALSVMBatch(C=1.0).fit_blocks(blocks)

LIBSVM text and tables may be compressed; Parquet needs ``pip install '.[blocks]'``.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from svmbench.base.errors import DataError
from svmbench.data import archives, libsvm, store, text_blocks
from svmbench.data.archives import ending_of
from svmbench.data.entries import Reading
from svmbench.data.userfile import reading_of

#: Bytes of text that make one block.
TEXT_PIECE_BYTES = 4 << 20

#: Called with the stored bytes read so far, and the stored bytes of the whole file.
ReadProgress = Callable[[int, int], None]

RowBlock = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class FileBlocks:
    """A file as an iterable of blocks; each iteration reads the file again.

    Each block is ``(X, y)``: X of shape (n_rows, n_features), float64, dense or CSR; y has shape
    (n_rows,) and holds the labels: float64 if all labels of the block are plain numbers (no 007 or
    1e3), else words.

    Attributes
    ----------
    path : Path
    reading : Reading or None
        The text format of the file; None for a Parquet file.
    label_column : int or str or None
        The label's column in a Parquet file.
    n_features : int or None
        Number of features; None to use the number found in the file.
    on_progress : callable or None
    as_words : bool
        True to leave the labels of a table as they are written.
    """

    path: Path
    reading: Reading | None
    label_column: int | str | None = None
    n_features: int | None = None
    on_progress: ReadProgress | None = None
    as_words: bool = False

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks from the beginning."""
        name = self.path.name
        if self.reading is None:
            from svmbench.data import parquet

            yield from parquet.blocks(
                self.path, self.label_column, self.n_features, self.on_progress
            )
        elif self.reading.format == "libsvm":
            yield from text_blocks.libsvm_blocks(
                self._pieces(), name, self.n_features, sort_indices=self.reading.sort_indices
            )
        else:
            yield from text_blocks.table_blocks(
                self._pieces(), name, self.n_features, self.reading, as_words=self.as_words
            )

    def _pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces of whole lines, each with a newline at its end."""
        rest = b""
        for piece in self._read():
            text = rest + piece
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            if max(len(rest), text.find(b"\n")) > libsvm.MAX_LIBSVM_LINE_BYTES:
                libsvm.refuse_long_line(self.path.name)
            if cut:
                yield text[:cut]
        if rest:
            yield rest + b"\n"

    def _read(self) -> Iterator[bytes]:
        """Yield the uncompressed bytes of the file."""
        total = self.path.stat().st_size
        try:
            with self.path.open("rb") as raw:
                stream = archives.opened(raw, self.path.suffix.lower())
                while piece := stream.read(TEXT_PIECE_BYTES):
                    yield piece
                    if self.on_progress is not None:
                        self.on_progress(raw.tell(), total)
        except EOFError:
            raise DataError(
                f"{self.path.name} is cut off: its compressed stream ends early"
            ) from None
        except (OSError, lzma.LZMAError, zlib.error) as error:
            raise DataError(f"{self.path.name} can't be read: {error}") from None


@dataclass(frozen=True)
class ArrayBlocks:
    """Arrays as an iterable of blocks; of mapped arrays, one block is in memory at a time.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    """

    X: Any
    y: np.ndarray

    @property
    def n_bytes(self) -> int:
        """Memory of the inputs in bytes."""
        if isinstance(self.X, np.ndarray):
            return int(self.X.nbytes)
        return sum(int(part.nbytes) for part in (self.X.data, self.X.indices, self.X.indptr))

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks from the beginning."""
        n = len(self.y)
        height = max(1, TEXT_PIECE_BYTES * n // max(1, self.n_bytes))
        for start in range(0, n, height):
            stop = min(n, start + height)
            yield store.row_range(self.X, start, stop), self.y[start:stop]


def open_blocks(
    path: str | Path,
    *,
    label_column: int | str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    sort_indices: bool = False,
    n_features: int | None = None,
    on_progress: ReadProgress | None = None,
) -> FileBlocks:
    """Open a file that is too large for memory as blocks of rows.

    A name ending in .parquet is a Parquet file; :func:`svmbench.data.load_file` describes the other
    formats. Before the first iteration, only the file's existence is checked.

    Parameters
    ----------
    path : str or Path
        LIBSVM text or a table (plain, .xz, .bz2 or .gz), or Parquet.
    label_column : int or str, optional
        A table's label: ``"first"``, ``"last"``, a number from 1 or a name. Default: last.
    separator : str, optional
        Separator of a table: a character or ``"whitespace"``.
    header : bool, optional
        True if the first row of a table names the columns.
    sort_indices : bool, default=False
        True to accept and sort indices of a LIBSVM row that are out of order.
    n_features : int, optional
        Number of features, if known; a higher index is an error. By default, the number found.
    on_progress : callable, optional
        Called repeatedly as ``on_progress(bytes_read, bytes_of_the_file)``.

    Raises
    ------
    DataError
        If there is no such file. During the iteration: if the file is malformed, with line and
        column.
    MissingPackageError
        For Parquet without pyarrow.
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(
            f"{file} can't be read: {'no regular' if file.exists() else 'no such'} file"
        )
    if ending_of(file) == ".parquet":
        from svmbench.data import parquet

        parquet.require_pyarrow()
        return FileBlocks(file, None, label_column, n_features, on_progress)
    reading = reading_of(
        file, label_column, separator=separator, header=header, sort_indices=sort_indices
    )
    return FileBlocks(file, reading, None, n_features, on_progress)
