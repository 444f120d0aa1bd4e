"""Unpack compressed files piece by piece, up to a largest size.

A small archive must not fill the memory with gigabytes of unpacked data.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from svmbench.base.errors import DataError

COMPRESSION_SUFFIXES = ("", ".xz", ".bz2", ".gz")

#: Largest size of a file in bytes, compressed and unpacked, unless its entry sets another one.
MAX_UNPACKED_BYTES = 1 << 30

#: Every archive may unpack to this many bytes, whatever its own size.
BYTES_ALLOWED_AT_ANY_RATIO = 64 << 20
#: A larger result may have at most this many times the archive's size. Tables of numbers in text
#: compress to about a hundredth.
HIGHEST_UNPACKING_RATIO = 500

#: Largest dictionary of an xz file in bytes; ``xz -9`` needs 64 MiB.
_XZ_MEMORY = 192 << 20
#: Bytes that are unpacked at a time.
_PIECE_BYTES = 1 << 20


def ending_of(path: Path) -> str:
    """Return a name's ending without that of its compression, in small letters: ``".csv"``."""
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSION_SUFFIXES else path
    return stem.suffix.lower()


def decompressed(
    content: bytes, name: str, member: str | None = None, max_bytes: int | None = None
) -> bytes:
    """Return the uncompressed bytes of a file; the ending of its name gives the format.

    Parameters
    ----------
    content : bytes
        Bytes of the stored file.
    name : str
        The file's name; .xz, .bz2, .gz and .zip (with `member`) are unpacked.
    member : str, optional
        The path inside a zip archive.
    max_bytes : int, optional
        Largest unpacked size. By default `MAX_UNPACKED_BYTES`, and no more than
        `HIGHEST_UNPACKING_RATIO` times the bytes stored.

    Raises
    ------
    DataError
        If the archive is damaged, cut off, encrypted, larger than allowed, or lacks the member.
    """
    limit = max_bytes
    if limit is None:
        limit = min(
            MAX_UNPACKED_BYTES,
            max(BYTES_ALLOWED_AT_ANY_RATIO, HIGHEST_UNPACKING_RATIO * len(content)),
        )
    try:
        if member is not None:
            return _bounded(_member_pieces(content, member), name, limit)
        suffix = Path(name).suffix.lower()
        if suffix in COMPRESSION_SUFFIXES and suffix:
            return _bounded(_pieces(opened(io.BytesIO(content), suffix)), name, limit)
    except KeyError:
        raise DataError(f"{name} has no member {member!r}") from None
    except lzma.LZMAError as error:
        reason = "it needs too much memory" if "Memory usage" in str(error) else str(error)
        raise DataError(f"{name} can't be uncompressed: {reason}") from None
    except RuntimeError as error:  # zipfile raises it for passwords and unknown methods
        reason = "it is encrypted" if "encrypted" in str(error) else str(error)
        raise DataError(f"{name} can't be uncompressed: {reason}") from None
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        reason = str(error) if len(str(error)) <= 120 else f"{str(error)[:119]}…"
        raise DataError(f"{name} can't be uncompressed: {reason}") from None
    except (OverflowError, IndexError, MemoryError, zipfile.LargeZipFile) as error:
        raise DataError(f"{name} can't be uncompressed: {type(error).__name__}") from None
    return _bounded(iter([content]), name, limit)


def _bounded(pieces: Iterator[bytes], name: str, most: int) -> bytes:
    pieces_read = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise DataError(f"{name} has more than the allowed {most:,} bytes")
        pieces_read.append(piece)
    return pieces_read[0] if len(pieces_read) == 1 else b"".join(pieces_read)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _pieces(stream: _Readable) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _member_pieces(content: bytes, member: str) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(member) as stream:
        yield from _pieces(stream)


def opened(stored: BinaryIO, suffix: str) -> _Readable:
    """Return a compressed file's content as a stream; the suffix of its name gives the format.

    Reading raises an error for a damaged stream, for a file that is cut off, and for bytes after a
    stream that are neither a further stream nor zeros. Python's ``bz2.open`` and ``lzma.open`` end
    silently there, so that a wrong byte would lose all further streams.
    """
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=stored)
    return io.BufferedReader(_Streams(stored, suffix)) if suffix in (".xz", ".bz2") else stored


class _Streams(io.RawIOBase):
    """The content of the xz or bzip2 streams of a file, one after the other."""

    def __init__(self, stored: BinaryIO, suffix: str) -> None:
        self._stored, self._suffix = stored, suffix
        self._stream: lzma.LZMADecompressor | bz2.BZ2Decompressor | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes, 0 at the end of the file."""
        piece = b""
        while not piece:
            more = b""
            if self._stream is None or self._stream.eof:
                more = self._next_stream()
                if not more:
                    return 0
                is_xz = self._suffix == ".xz"
                self._stream = (
                    lzma.LZMADecompressor(memlimit=_XZ_MEMORY) if is_xz else bz2.BZ2Decompressor()
                )
            elif self._stream.needs_input:
                more = self._stored.read(_PIECE_BYTES)
                if not more:
                    raise EOFError("it ends before its end-of-stream marker")
            piece = self._stream.decompress(more, len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _next_stream(self) -> bytes:
        """Return the next stream's first bytes, or none at the end; zeros may be between them."""
        if self._stream is None:
            return self._stored.read(_PIECE_BYTES)
        more = self._stream.unused_data or self._stored.read(_PIECE_BYTES)
        while more and not (rest := more.lstrip(b"\0")):
            more = self._stored.read(_PIECE_BYTES)
        return rest if more else b""
