"""The lines of ``runs.jsonl``, with one check for writers and readers.

If the run accepted a damaged record that the report refuses, its cell would neither run again nor
be shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Literal, Required, TypedDict, cast

#: Version of the records; records of other versions are not read.
RECORD_SCHEMA = 1

#: Statuses of cells that ran without a result.
FAILED = ("failed", "crashed", "memory", "timeout")

#: If the wall time of a fit on one thread exceeds its CPU time by this factor, the fit shared the
#: CPU (or waited for a disk), and its times are marked.
OUTSIDE_LOAD_RATIO = 1.15

#: Seconds of a cell outside its protocol: a new process, mapping data, writing the record.
CELL_OVERHEAD_S = 0.15

#: The fields of every cell; all other fields are dimensions, except the fold.
IDENTITY = ("dataset", "kernel", "solver")
#: Dimensions by their names in older configs and records.
FIELD_ALIASES = {"size": "rows", "n_features_kept": "features"}

#: A point of a sweep: the value (number, word or truth value) of each dimension.
Dimensions = dict[str, Any]


def canonical(name: str) -> str:
    """Return a field's present name."""
    return FIELD_ALIASES.get(name, name)


def duration_text(seconds: float) -> str:
    """Return a time in words, no more exactly than a forecast is."""
    if seconds < 60:
        return "less than a minute"
    number, unit = (seconds / 60, "minute") if seconds < 5400 else (seconds / 3600, "hour")
    shown = f"{number:.0f}" if unit == "minute" else f"{float(f'{number:.2g}'):,g}"
    return f"about {shown} {unit}{'' if shown == '1' else 's'}"


def is_disturbed(metrics: Mapping[str, Any], *, contended: bool) -> bool:
    """Return True if the timed training shared the CPU with other programs.

    For a cell that ran beside other cells of its run (`contended`) this is unknown, and False.
    """
    wall, cpu = metrics.get("train_time_s"), metrics.get("cpu_time_s")
    if contended or not (isinstance(wall, int | float) and isinstance(cpu, int | float)):
        return False
    return wall > OUTSIDE_LOAD_RATIO * cpu > 0.0


class Identity(TypedDict):
    """The fields that identify a cell in records, plans and tables.

    `size` and `n_features_kept` are older names of the dimensions ``rows`` and ``features``.
    """

    block: str
    protocol: str
    paper: str
    profile: str
    dataset: str
    size: int | None
    n_features_kept: int | None
    dimensions: Dimensions
    solver: str
    kernel: str
    fold: int | None


class Outcome(TypedDict, total=False):
    """The result of a cell; its items become fields of the record.

    A metric is a number or None. Its spread is a number, or the smallest and the largest value.
    """

    metrics: dict[str, Any]
    spread: dict[str, Any]
    counters: dict[str, int]
    params: dict[str, Any]
    stop_reason: str
    folds: int
    undefined: dict[str, str]
    trace: list[list[float]]


class Reply(Outcome, total=False):
    """The reply of a worker: the status of the cell, and its result if the cell succeeded."""

    status: Required[str]
    reason: str
    traceback: str
    warnings: list[str]
    wall_s: float


class CellRecord(Identity, Reply, total=False):
    """The line of a finished cell."""

    schema: int
    kind: Required[Literal["cell"]]
    key: Required[str]
    contended: bool
    environment: str
    data_sha256: str
    started: str


class PointRecord(TypedDict, total=False):
    """The line of a finished point of a long cell.

    A point with `dimensions` and `metrics` is a result. A point of a search has the values that
    the search needs to continue.
    """

    schema: int
    kind: Required[Literal["point"]]
    key: Required[str]
    point: Required[str]
    params: dict[str, Any]
    dimensions: Dimensions
    metrics: dict[str, Any]
    spread: dict[str, Any]
    counters: dict[str, int]
    undefined: dict[str, str]


Record = CellRecord | PointRecord

#: Largest number of bytes of a line; the reply of a worker has at most 16 MiB.
MAX_RECORD_BYTES = 20 << 20

#: Largest number of characters of a name, a label, a key or a reason.
MAX_RECORD_NAME_CHARS = 4_096
#: Largest number of characters of any other text (a traceback, a warning, a parameter).
MAX_RECORD_TEXT_CHARS = 100_000

#: The types of numbers in JSON, and the largest of them. Constants: they are read for each value.
_NUMBER, _LARGEST_NUMBER = (int, float), sys.float_info.max

_MAPPINGS = ("metrics", "spread", "counters", "params", "undefined", "dimensions")
_NUMBERS = ("metrics", "counters")
_TEXTS = (
    *("block", "protocol", "paper", "profile", "dataset", "solver", "kernel", "reason"),
    *("stop_reason", "environment", "data_sha256", "started"),
)
_WHOLE_NUMBERS = ("size", "n_features_kept", "fold", "folds")


def record_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number; an incomplete last line has no line end.

    A line longer than `MAX_RECORD_BYTES` becomes one byte, which is not a record.
    """
    number = 0
    while line := stream.readline(MAX_RECORD_BYTES):
        number += 1
        if len(line) == MAX_RECORD_BYTES and not line.endswith(b"\n"):
            while (line := stream.readline(1 << 20)) and not line.endswith(b"\n"):
                pass
            line = b"\0" + line[-1:]
        yield number, line


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse_record(line: bytes) -> Record | None:
    """Return the record in a line, or None if it is damaged or has another version."""
    try:
        record = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):  # includes UnicodeDecodeError and JSONDecodeError
        return None
    whole = (
        isinstance(record, dict)
        and record.get("schema") == RECORD_SCHEMA
        and isinstance(record.get("key"), str)
        and (_is_cell(record) or _is_point(record))
        and _is_well_typed(record)
        # Texts are no longer than their line, and most lines are shorter than the bounds.
        and (len(line) <= MAX_RECORD_NAME_CHARS or _is_short(record))
    )
    return cast(Record, record) if whole else None


def _is_point(record: dict[str, Any]) -> bool:
    return record.get("kind") == "point" and isinstance(record.get("point"), str)


def _is_cell(record: dict[str, Any]) -> bool:
    """Return True if a record has a status and, after success, a result."""
    return (
        record.get("kind") == "cell"
        and isinstance(record.get("status"), str)
        and (record["status"] != "ok" or bool(record.get("metrics")))
    )


def _is_well_typed(record: dict[str, Any]) -> bool:
    """Return True if every field has its type or is null."""
    for name, value in record.items():
        if value is None or name not in _FIELDS:
            continue
        kind, is_sound = _FIELDS[name]
        if not isinstance(value, kind):
            return False
        if is_sound is not None and value:
            parts: Any = value.values() if isinstance(value, dict) else value
            if not all(map(is_sound, parts)):
                return False
    return _is_number(record.get("wall_s")) and all(
        _is_whole(record.get(name)) for name in _WHOLE_NUMBERS
    )


def shortened(record: Record) -> Record:
    """Return a record with reasons, traceback and warnings cut to their largest lengths."""
    held: dict[str, Any] = {**record}
    for name in ("reason", "stop_reason"):
        if held.get(name):
            held[name] = held[name][:MAX_RECORD_NAME_CHARS]
    if held.get("traceback"):
        held["traceback"] = held["traceback"][-MAX_RECORD_TEXT_CHARS:]
    if held.get("warnings"):
        held["warnings"] = [warning[:MAX_RECORD_TEXT_CHARS] for warning in held["warnings"]]
    return cast(Record, held)


def _is_short(record: dict[str, Any]) -> bool:
    """Return True if no text of a record exceeds its largest length."""
    names = [record.get(name) for name in (*_TEXTS, "key", "point", "status")]
    todo = [value for name, value in record.items() if name != "trace"]
    if any(
        isinstance(name, str) and len(name) > MAX_RECORD_NAME_CHARS for name in (*names, *record)
    ):
        return False
    while todo:
        each = todo.pop()
        if isinstance(each, str) and len(each) > MAX_RECORD_TEXT_CHARS:
            return False
        if isinstance(each, dict):
            if any(len(key) > MAX_RECORD_NAME_CHARS for key in each):
                return False
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return True


def _is_spread(value: Any) -> bool:
    """Return True for a number, null, or a range of two numbers."""
    if not isinstance(value, list):
        return _is_number(value)
    return len(value) == 2 and None not in value and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, _NUMBER) and abs(value) <= _LARGEST_NUMBER)


def _is_step(row: Any) -> bool:
    """Return True for a row of a trace, which has three numbers."""
    return isinstance(row, list) and len(row) == 3 and None not in row and all(map(_is_number, row))


def _is_whole(value: Any) -> bool:
    return value is None or (isinstance(value, int) and _is_number(value))


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


#: The type of each field, and a check of its values or rows.
_FIELDS: dict[str, tuple[type, Callable[[Any], bool] | None]] = {
    **dict.fromkeys((*_TEXTS, "traceback"), (str, None)),
    **dict.fromkeys(_MAPPINGS, (dict, None)),
    **dict.fromkeys(_NUMBERS, (dict, _is_number)),
    "spread": (dict, _is_spread),
    "undefined": (dict, lambda value: isinstance(value, str)),
    "dimensions": (dict, _is_plain),
    "trace": (list, _is_step),
    "warnings": (list, None),
}
