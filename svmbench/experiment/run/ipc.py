"""Messages with results of workers, through a pipe: framed, with a checksum and a size limit.

A solver can do anything to its worker's pipe: write to every descriptor, end in the middle of a
message, or leave child processes behind that keep the pipe open. So a message has its length and
a checksum, and the reader never blocks.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from typing import Any, cast

import numpy as np

from svmbench.schema.record import Reply

#: Largest number of bytes of one message of a worker.
MAX_MESSAGE_BYTES = 16 << 20

_HEAD = struct.Struct("<8sII")
_SIGN = b"svmbench"
#: Largest absolute value of an integer; many readers of JSON can't represent larger ones.
_MAX_INTEGER = 2**63


class BadAnswerError(Exception):
    """A message that is not a valid result; the text is a sentence with the reason."""


def plain(value: Any, path: str = "") -> Any:
    """Convert a value to JSON types: NaN and infinity become None, NumPy's numbers Python's.

    Parameters
    ----------
    value : object
    path : str, default=""
        Name of the value in the result, for the error.

    Raises
    ------
    BadAnswerError
        If JSON has no type for a value; the text names the value's place in the result.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < _MAX_INTEGER:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise BadAnswerError(f"{path or 'the result'} has {_shown(name)} as a name")
        return {name: plain(each, f"{path}.{name}".lstrip(".")) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, f"{path}[{i}]") for i, each in enumerate(value)]
    raise BadAnswerError(f"{path or 'the result'} can't be recorded: {_shown(value)}")


def with_nan(value: Any) -> Any:
    """Return JSON types with NaN in lists where :func:`plain` wrote None.

    Only None in a list becomes NaN, since a point's lists have only numbers; a field stays None.

    Parameters
    ----------
    value : object
    """
    if isinstance(value, dict):
        return {name: with_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [math.nan if item is None else with_nan(item) for item in value]
    return value


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= _MAX_INTEGER:
        return "a number of more than 63 bits"
    return f"an object of type {type(value).__name__}"


def encode(result: Reply) -> bytes:
    """Return a result as a message; if it can't be recorded, a result with the reason."""
    try:
        body = json.dumps(plain(result), allow_nan=False).encode()
        if len(body) > MAX_MESSAGE_BYTES:
            raise BadAnswerError(
                f"its result has {len(body):,} bytes; at most {MAX_MESSAGE_BYTES:,} are allowed"
            )
    except (BadAnswerError, UnicodeEncodeError, RecursionError) as error:
        reason = (
            "its result is nested too deep" if isinstance(error, RecursionError) else str(error)
        )
        body = json.dumps({"status": "failed", "reason": reason}).encode()
    return _HEAD.pack(_SIGN, len(body), zlib.crc32(body)) + body


def send(descriptor: int, message: bytes) -> None:
    """Write a whole message to a pipe."""
    while message:
        message = message[os.write(descriptor, message) :]


class Inbox:
    """The reading end of a worker's pipe; reading never blocks.

    Parameters
    ----------
    descriptor : int
        The file descriptor of the pipe; it is set to non-blocking mode.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_closed = False
        self._held = bytearray()
        os.set_blocking(descriptor, False)

    def take(self) -> Reply | None:
        """Return the result if it is complete, or None if more may come.

        Raises
        ------
        BadAnswerError
            If the bytes in the pipe are not the beginning of a valid result.
        """
        while not self.is_closed and not self._is_whole():
            try:
                piece = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return None
            self.is_closed = not piece
            self._held += piece
        if self._is_whole():
            return self._decoded()
        if self._held:
            raise BadAnswerError("the worker's result was cut off")
        return None

    def _is_whole(self) -> bool:
        n_bytes = len(self._held)
        if self._held[: len(_SIGN)] != _SIGN[: min(n_bytes, len(_SIGN))]:
            raise BadAnswerError("the worker's pipe held something other than a result")
        if n_bytes < _HEAD.size:
            return False
        _, length, _ = _HEAD.unpack_from(self._held)
        if length > MAX_MESSAGE_BYTES:
            raise BadAnswerError("the worker's pipe held something other than a result")
        return n_bytes >= _HEAD.size + int(length)

    def _decoded(self) -> Reply:
        _, length, checksum = _HEAD.unpack_from(self._held)
        body = bytes(self._held[_HEAD.size : _HEAD.size + length])
        if zlib.crc32(body) != checksum:
            raise BadAnswerError("the worker's result was damaged on its way")
        try:
            result = json.loads(body)
        except (ValueError, RecursionError):
            result = None
        if not isinstance(result, dict) or not isinstance(result.get("status"), str):
            raise BadAnswerError("the worker's message is not a result")
        return cast(Reply, result)
