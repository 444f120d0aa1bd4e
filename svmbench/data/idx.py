"""The idx format of MNIST: a magic number with type and rank, big-endian sizes, then the bytes."""

from __future__ import annotations

import numpy as np

from svmbench.base.errors import DataError

_UNSIGNED_BYTES = 8


def read(content: bytes, name: str) -> np.ndarray:
    """Read an idx array of unsigned bytes.

    Parameters
    ----------
    content : bytes
        The uncompressed file.
    name : str
        What to call the file in an error.

    Returns
    -------
    array : ndarray of uint8
        Of the shape that the header states, read-only.

    Raises
    ------
    DataError
        If it is no idx file of bytes, or longer or shorter than its header says.
    """
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTES:
        raise DataError(f"{name} is not an idx file of unsigned bytes")
    rank = content[3]
    start = 4 + 4 * rank
    if rank == 0 or len(content) < start:
        raise DataError(f"{name} is cut off in its header")
    shape = [int(size) for size in np.frombuffer(content, ">u4", rank, 4)]
    size = 1
    for length in shape:
        size *= length
    if len(content) - start != size:
        raise DataError(
            f"{name} has {len(content) - start:,} bytes of data where its header "
            f"({' × '.join(map(str, shape))}) says {size:,}"
        )
    return np.frombuffer(content, np.uint8, size, start).reshape(shape)
