"""Points of a long cell as a worker streams them: lines of a file that grows."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from svmbench.experiment.run import ipc
from svmbench.schema.record import RECORD_SCHEMA, PointRecord, parse_record


class Stream:
    """Points that a worker appends to its file, read as they come.

    Parameters
    ----------
    path : Path
        It may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def take(self) -> list[bytes]:
        """Return the whole lines that have come since the last look."""
        try:
            new = _read_on(self.path, self._offset)
        except OSError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.splitlines()


def point_of(key: str, line: bytes) -> PointRecord | None:
    """Return the record of a cell's point; None of a line that holds none."""
    try:
        said = {"schema": RECORD_SCHEMA, "kind": "point", "key": key, **json.loads(line)}
        # What a record may hold is checked in one place, for who writes and who reads it.
        point = parse_record(json.dumps(said, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError):
        return None
    if point is None or point["kind"] != "point" or point["key"] != key:
        return None
    return point


def _read_on(path: Path, start: int) -> bytes:
    """Return the bytes appended to a file since the last call; the content is untrusted."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        stream.seek(start)
        return stream.read(4 * ipc.MAX_MESSAGE_BYTES)
