"""Results of workers through a pipe: framed, checked, and no larger than a record may be.

A solver can do anything to its worker's pipe: write to every descriptor, end in the middle of a
message, or leave child processes behind that keep the pipe open. So a message holds its length and
a checksum, and its reader never waits for the rest of it.
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
#: Largest absolute value of an integer; many readers of JSON can't hold larger ones.
_MAX_INTEGER = 2**63


class BadAnswerError(Exception):
    """A message through the pipe that is no result; the text says why, in a sentence."""


def plain(value: Any, place: str = "") -> Any:
    """Return a result as JSON values: NaN becomes null, NumPy's numbers become Python's.

    Raises
    ------
    BadAnswerError
        If it holds something that JSON can't, with its place.
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
                raise BadAnswerError(f"{place or 'the result'} has {_shown(name)} as a name")
        return {name: plain(each, f"{place}.{name}".lstrip(".")) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, f"{place}[{i}]") for i, each in enumerate(value)]
    raise BadAnswerError(f"{place or 'the result'} can't be recorded: {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= _MAX_INTEGER:
        return "a number of more than 63 bits"
    return f"an object of type {type(value).__name__}"


def encode(result: Reply) -> bytes:
    """Return a result's bytes, or those of one that says why it can't be recorded."""
    try:
        body = json.dumps(plain(result), allow_nan=False).encode()
        if len(body) > MAX_MESSAGE_BYTES:
            raise BadAnswerError(
                f"its result has {len(body):,} bytes; at most {MAX_MESSAGE_BYTES:,} are allowed"
            )
    except (BadAnswerError, UnicodeEncodeError, RecursionError) as error:
        said = "its result is nested too deep" if isinstance(error, RecursionError) else str(error)
        body = json.dumps({"status": "failed", "reason": said}).encode()
    return _HEAD.pack(_SIGN, len(body), zlib.crc32(body)) + body


def send(descriptor: int, message: bytes) -> None:
    """Write a whole message to a pipe."""
    while message:
        message = message[os.write(descriptor, message) :]


class Inbox:
    """The reading end of a worker's pipe; nothing here waits.

    Parameters
    ----------
    descriptor : int
        Of a pipe; it is set not to block.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_closed = False
        self._held = bytearray()
        os.set_blocking(descriptor, False)

    def take(self) -> Reply | None:
        """Return the result if all of it is there, or None if more may come.

        Raises
        ------
        BadAnswerError
            If what is there is no result, and never will be.
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
        held = len(self._held)
        if self._held[: len(_SIGN)] != _SIGN[: min(held, len(_SIGN))]:
            raise BadAnswerError("the worker's pipe held something other than a result")
        if held < _HEAD.size:
            return False
        _, length, _ = _HEAD.unpack_from(self._held)
        if length > MAX_MESSAGE_BYTES:
            raise BadAnswerError("the worker's pipe held something other than a result")
        return held >= _HEAD.size + int(length)

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
