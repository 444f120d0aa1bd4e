"""What a line of ``runs.jsonl`` must hold: the one check of who writes them and who reads them.

Were a damaged record a result to the run and none to the report, its cell would be neither run
again nor shown.
"""

from __future__ import annotations

import json
import sys
from typing import Any

#: The version of the records; another one's are not read.
SCHEMA = 1

_MAPPINGS = ("metrics", "spread", "counters", "params", "undefined")

_NUMBERS = ("metrics", "spread", "counters")


def parse(line: bytes) -> dict[str, Any] | None:
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
    )
    return record if whole else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _is_point(record: dict[str, Any]) -> bool:
    return record.get("kind") == "point" and isinstance(record.get("point"), str)


def _is_cell(record: dict[str, Any]) -> bool:
    """Return whether a record has an outcome of which tables can be made."""
    mappings = [record[name] for name in _MAPPINGS if record.get(name) is not None]
    return (
        record.get("kind") == "cell"
        and isinstance(record.get("status"), str)
        and all(isinstance(mapping, dict) for mapping in mappings)
        and all(_are_numbers(record.get(name)) for name in _NUMBERS)
        and (record["status"] != "ok" or bool(record.get("metrics")))
    )


def _are_numbers(mapping: dict[str, Any] | None) -> bool:
    """Whether all values are numbers that a float holds, null, or lists of such."""
    return all(
        _is_number(value)
        or (isinstance(value, list) and all(map(_is_number, value)))  # a range, in a race's spread
        for value in (mapping or {}).values()
    )


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and abs(value) <= sys.float_info.max)


def shown(text: str, most: int) -> str:
    """Return a text of unknown origin as one line that a terminal shows and does not obey."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(character if character.isprintable() else "�" for character in cut)
