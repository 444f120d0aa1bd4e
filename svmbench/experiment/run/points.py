"""The points that a worker streams during a long cell, as lines of a file.

A point is a part of a cell that is finished and recorded before the cell ends, such as one grid
point on one fold, or one value along a path. A later worker of the same cell doesn't repeat it.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from svmbench.experiment.run import ipc
from svmbench.schema.record import RECORD_SCHEMA, PointRecord, parse_record


class Stream:
    """A reader of the points that a worker appends to its file.

    Parameters
    ----------
    path : Path
        The file; it may be missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def take(self) -> list[bytes]:
        """Return the whole lines that were appended since the last call."""
        try:
            new = _read_on(self.path, self._offset)
        except OSError:
            return []
        lines = new[: new.rfind(b"\n") + 1]
        self._offset += len(lines)
        return lines.splitlines()


def point_of(key: str, line: bytes) -> PointRecord | None:
    """Return the record of a cell's point, or None if the line is not a valid point."""
    try:
        fields = {"schema": RECORD_SCHEMA, "kind": "point", "key": key, **json.loads(line)}
        # `parse_record` checks records for writers and readers alike.
        point = parse_record(json.dumps(fields, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError):
        return None
    if point is None or point["kind"] != "point" or point["key"] != key:
        return None
    return point


def _read_on(path: Path, start: int) -> bytes:
    """Return the bytes of a file from an offset on; the file is untrusted."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        stream.seek(start)
        return stream.read(4 * ipc.MAX_MESSAGE_BYTES)
