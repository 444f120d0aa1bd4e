"""Read MNIST's idx format: a magic number with type and rank, big-endian sizes, then bytes."""

from __future__ import annotations

import numpy as np

from svmbench.base.errors import DataError

_UNSIGNED_BYTES = 8


def read_idx(content: bytes, name: str) -> np.ndarray:
    """Read an idx array of unsigned bytes.

    Parameters
    ----------
    content : bytes
        The uncompressed file.
    name : str
        Name of the file in errors.

    Returns
    -------
    array : ndarray of uint8
        Read-only array with the shape in the header.

    Raises
    ------
    DataError
        If it is not an idx file of bytes, or if its length disagrees with its header.
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
            f"{name} has {len(content) - start:,} bytes of data, but its header "
            f"({' × '.join(map(str, shape))}) says {size:,}"
        )
    return np.frombuffer(content, np.uint8, size, start).reshape(shape)
