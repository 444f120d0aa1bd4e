"""Read the arrays that a cell has kept in ``artifacts/<key>.npz`` for plots."""

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

#: Largest size of a file of arrays in bytes, stored and unpacked; a grid of 1,000 × 1,000 values
#: has 8 MB.
MAX_ARTIFACT_BYTES = 256 << 20


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name, without executing anything in the file.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If it can't be read, isn't an archive of arrays of numbers, words or truth values, or
        unpacks to more than `MAX_ARTIFACT_BYTES`.
    """
    try:
        content = read_bytes(path, MAX_ARTIFACT_BYTES, within=path.parent.parent)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # zipfile never yields more bytes than this stated size.
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > MAX_ARTIFACT_BYTES:
            raise ValueError(f"it has more than {MAX_ARTIFACT_BYTES:,} bytes")
        with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
            arrays = {name: np.asarray(loaded[name]) for name in loaded.files}
    except OSError as error:
        raise unusable(path, error.strerror or str(error)) from error
    except (
        *(ValueError, KeyError, EOFError, TypeError, IndexError, OverflowError, MemoryError),
        # NumPy parses the header of an array as Python text. zipfile raises the last error for a
        # password and for an unknown compression method.
        *(SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
        RuntimeError,
    ) as error:
        raise unusable(path, str(error) or type(error).__name__) from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biufU":
            raise unusable(path, f"its array {name!r} is not of numbers, words or truth values")
    return arrays


def unusable(path: Path, why: str) -> DamagedResultsError:
    """Return the error for a file of arrays that can't be drawn."""
    return DamagedResultsError(f"can't draw {line(str(path), 400)}: {line(why, 200)}")
