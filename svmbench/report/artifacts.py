"""Arrays that a cell has left in ``artifacts/<key>.npz``, for plots."""

from __future__ import annotations

import io
import lzma
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from svmbench.base.errors import DamagedResultsError
from svmbench.base.escape import line
from svmbench.base.files import read_bytes

#: The most bytes that a file of arrays may have, as stored and unpacked; a grid of 1,000 × 1,000
#: values has 8 MB.
MOST_BYTES = 256 << 20


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name; nothing in it is ever executed.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If it can't be read, is no archive of arrays of numbers, words or truth values, or unpacks
        to more than `MOST_BYTES`.
    """
    try:
        content = read_bytes(path, MOST_BYTES, within=path.parent.parent)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # A member never yields more than the size that stands here, whatever it holds.
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > MOST_BYTES:
            raise ValueError(f"it holds more than {MOST_BYTES:,} bytes")
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = {name: np.asarray(found[name]) for name in found.files}
    except OSError as error:
        raise unusable(path, error.strerror or str(error)) from error
    except (
        *(ValueError, KeyError, EOFError, TypeError, IndexError, OverflowError, MemoryError),
        # An array's header is read as Python's text; the last error is zipfile's for a password
        # and for a way of packing that it doesn't know.
        *(SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
        RuntimeError,
    ) as error:
        raise unusable(path, str(error) or type(error).__name__) from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biufU":
            raise unusable(path, f"its array {name!r} is not of numbers, words or truth values")
    return arrays


def unusable(path: Path, why: str) -> DamagedResultsError:
    """Return the error that a file of arrays can't be drawn."""
    return DamagedResultsError(f"can't draw {line(str(path), 400)}: {line(why, 200)}")
