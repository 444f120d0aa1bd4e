"""What a line of ``runs.jsonl`` must hold: the one check of who writes them and who reads them.

Were a damaged record a result to the run and none to the report, its cell would be neither run
again nor shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal, Required, TypedDict, cast

#: The version of the records; another one's are not read.
SCHEMA = 1

#: The statuses of cells that were run and have no result.
FAILED = ("failed", "crashed", "memory", "timeout")

#: The fields that every cell has; whatever else tells cells apart is a dimension (or the fold).
IDENTITY = ("dataset", "kernel", "solver")
#: Dimensions by the names that older configs and records have for them.
ALIASES = {"size": "rows", "n_features_kept": "features"}

#: Where in a sweep something is: values by dimension (numbers, words or truth values).
Dimensions = dict[str, Any]


def canonical(name: str) -> str:
    """Return a field's present name."""
    return ALIASES.get(name, name)


class Identity(TypedDict):
    """The fields by which records, plans and tables know a cell.

    `size` and `n_features_kept` are the dimensions ``rows`` and ``features`` under the names that
    older versions read.
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
    """What one cell found: these become fields of its record.

    A metric is a number or None; its spread a number, or the smallest and the largest value.
    """

    metrics: dict[str, Any]
    spread: dict[str, Any]
    counters: dict[str, int]
    params: dict[str, Any]
    stop_reason: str
    folds: int
    undefined: dict[str, str]
    trace: list[list[float]]


class Answer(Outcome, total=False):
    """What a worker answers: how it ended, and what it found if that is well."""

    status: Required[str]
    reason: str
    traceback: str
    warnings: list[str]
    wall_s: float


class CellRecord(Identity, Answer, total=False):
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

    With `dimensions` and `metrics` it is a result; a search's points hold what their search needs
    to go on, under names of its own.
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

#: The most bytes of a line: a worker's answer has 16 MiB at most, and says no more than its record.
LONGEST_LINE_BYTES = 20 << 20

#: The most characters of a name, a label, a key or a reason, as of a text in a config; and of any
#: other text (a traceback, a warning, a parameter).
LONGEST_NAME = 4_096
LONGEST_TEXT = 100_000

_MAPPINGS = ("metrics", "spread", "counters", "params", "undefined", "dimensions")
_NUMBERS = ("metrics", "counters")
_TEXTS = (
    *("block", "protocol", "paper", "profile", "dataset", "solver", "kernel", "reason"),
    *("stop_reason", "environment", "data_sha256", "started"),
)
_WHOLE_NUMBERS = ("size", "n_features_kept", "fold", "folds")


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number; it ends with its line end, unless it is torn.

    A line longer than `LONGEST_LINE_BYTES` is cut to a byte that is no record.
    """
    number = 0
    while line := stream.readline(LONGEST_LINE_BYTES):
        number += 1
        if len(line) == LONGEST_LINE_BYTES and not line.endswith(b"\n"):
            while (line := stream.readline(1 << 20)) and not line.endswith(b"\n"):
                pass
            line = b"\0" + line[-1:]
        yield number, line


def parse(line: bytes) -> Record | None:
    """Return the record that a line holds, or None for one that is damaged or of another schema."""
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        return None
    whole = (
        isinstance(record, dict)
        and record.get("schema") == SCHEMA
        and isinstance(record.get("key"), str)
        and (_is_cell(record) or _is_point(record))
        and _is_well_typed(record)
        # No text is longer than the line that it stands in, which is mostly shorter than any bound.
        and (len(line) <= LONGEST_NAME or _is_short(record))
    )
    return cast(Record, record) if whole else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _is_point(record: dict[str, Any]) -> bool:
    return record.get("kind") == "point" and isinstance(record.get("point"), str)


def _is_cell(record: dict[str, Any]) -> bool:
    """Return whether a record says how its cell ended, and of one that went well what it found."""
    return (
        record.get("kind") == "cell"
        and isinstance(record.get("status"), str)
        and (record["status"] != "ok" or bool(record.get("metrics")))
    )


def _is_well_typed(record: dict[str, Any]) -> bool:
    """Return whether each field that is there, and not null, is of its kind."""
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
    """Return a record whose reasons, traceback and warnings are no longer than they may be."""
    held: dict[str, Any] = {**record}
    for name in ("reason", "stop_reason"):
        if held.get(name):
            held[name] = held[name][:LONGEST_NAME]
    if held.get("traceback"):
        held["traceback"] = held["traceback"][-LONGEST_TEXT:]
    if held.get("warnings"):
        held["warnings"] = [said[:LONGEST_TEXT] for said in held["warnings"]]
    return cast(Record, held)


def _is_short(record: dict[str, Any]) -> bool:
    """Return whether no text of a record is longer than it may be."""
    names = [record.get(name) for name in (*_TEXTS, "key", "point", "status")]
    todo = [value for name, value in record.items() if name != "trace"]
    if any(isinstance(name, str) and len(name) > LONGEST_NAME for name in (*names, *record)):
        return False
    while todo:
        each = todo.pop()
        if isinstance(each, str) and len(each) > LONGEST_TEXT:
            return False
        if isinstance(each, dict):
            if any(len(key) > LONGEST_NAME for key in each):
                return False
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return True


def _is_spread(value: Any) -> bool:
    """Whether something is a number, null, or a range: two numbers."""
    if not isinstance(value, list):
        return _is_number(value)
    return len(value) == 2 and None not in value and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and abs(value) <= sys.float_info.max)


def _is_step(row: Any) -> bool:
    """Return whether something is a row of a trace: three numbers."""
    return isinstance(row, list) and len(row) == 3 and None not in row and all(map(_is_number, row))


def _is_whole(value: Any) -> bool:
    return value is None or (isinstance(value, int) and _is_number(value))


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


#: Of each field: its type, and what each value, or row, in it has to be.
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
