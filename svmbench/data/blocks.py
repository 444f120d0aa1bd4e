"""Files that are read in blocks of rows, of which one at a time is in memory.

::

    from svmbench import ALSVMBatch, data

    blocks = data.open_blocks("clicks.libsvm.xz", n_features=300)
    ALSVMBatch(C=1.0).fit_blocks(blocks)

LIBSVM text and tables may be compressed; Parquet needs ``pip install svmbench[blocks]``.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from svmbench.base.errors import DataError
from svmbench.data import libsvm, store, text_blocks
from svmbench.data.entries import Reading
from svmbench.data.userfile import ending_of, reading_of

#: Bytes of text that are read at once.
PIECE = 4 << 20

#: Told the bytes read so far, as they are stored, and how many there are.
Progress = Callable[[int, int], None]

Block = tuple[Any, np.ndarray]

_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
}


@dataclass(frozen=True)
class Blocks:
    """A file as an iterable of blocks; it can be gone over again.

    Each block is ``(X, y)``: X of shape (n_rows, n_features), float64, dense or CSR; y the labels
    of shape (n_rows,) as written, float64 where all of the block are numbers, else words.

    Attributes
    ----------
    path : Path
    reading : Reading or None
        How the bytes become rows; None of a Parquet file.
    label_column : int or str or None
        Of a Parquet file.
    n_features : int or None
        As stated; None for as many as are found.
    on_progress : callable or None
    """

    path: Path
    reading: Reading | None
    label_column: int | str | None = None
    n_features: int | None = None
    on_progress: Progress | None = None

    def __iter__(self) -> Iterator[Block]:
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
            yield from text_blocks.table_blocks(self._pieces(), name, self.n_features, self.reading)

    def _pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces of whole lines, each with a newline at its end."""
        rest = b""
        for piece in self._read():
            text = rest + piece
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            if max(len(rest), text.find(b"\n")) > libsvm.LONGEST_LINE:
                libsvm.refuse_long_line(self.path.name)
            if cut:
                yield text[:cut]
        if rest:
            yield rest + b"\n"

    def _read(self) -> Iterator[bytes]:
        """Yield the file's bytes, uncompressed, as they come."""
        total = self.path.stat().st_size
        try:
            with self.path.open("rb") as raw:
                stream = _OPENERS.get(self.path.suffix, lambda plain: plain)(raw)
                while piece := stream.read(PIECE):
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
    """Arrays as an iterable of blocks, of which one at a time is in memory where they are mapped.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    """

    X: Any
    y: np.ndarray

    @property
    def n_bytes(self) -> int:
        """What the inputs take in memory as they are."""
        if isinstance(self.X, np.ndarray):
            return int(self.X.nbytes)
        return sum(int(part.nbytes) for part in (self.X.data, self.X.indices, self.X.indptr))

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks from the beginning."""
        n = len(self.y)
        height = max(1, PIECE * n // max(1, self.n_bytes))
        for start in range(0, n, height):
            stop = min(n, start + height)
            yield store.rows_of(self.X, start, stop), self.y[start:stop]


def open_blocks(
    path: str | Path,
    *,
    label_column: int | str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    sort_indices: bool = False,
    n_features: int | None = None,
    on_progress: Progress | None = None,
) -> Blocks:
    """Return a file as blocks of rows, for what it would take too much memory to load.

    A name ending in .parquet is a Parquet file; else it is read as :func:`svmbench.data.load_file`
    does. Nothing but the file's existence is checked before the blocks are gone over.

    Parameters
    ----------
    path : str or Path
        LIBSVM text or a table (plain, .xz, .bz2 or .gz), or Parquet.
    label_column : int or str, optional
        A table's label: ``"first"``, ``"last"``, a number from 1 or a name. Default: last.
    separator : str, optional
        Of a table: a character or ``"whitespace"``.
    header : bool, optional
        Whether a table's first row names its columns.
    sort_indices : bool, default=False
        Whether a LIBSVM row's indices may be out of order.
    n_features : int, optional
        How many features there are, where that is known: more are an error then. Default: found.
    on_progress : callable, optional
        Called now and then as ``on_progress(bytes_read, bytes_of_the_file)``.

    Raises
    ------
    DataError
        If there is no such file. While the blocks are gone over: for what is wrong in it, with its
        line and column.
    MissingPackageError
        For Parquet without pyarrow.
    """
    place = Path(path)
    if not place.is_file():
        raise DataError(
            f"{place} can't be read: {'no regular' if place.exists() else 'no such'} file"
        )
    if ending_of(place) == ".parquet":
        from svmbench.data import parquet

        parquet.require()
        return Blocks(place, None, label_column, n_features, on_progress)
    reading = reading_of(
        place, label_column, separator=separator, header=header, sort_indices=sort_indices
    )
    return Blocks(place, reading, None, n_features, on_progress)
