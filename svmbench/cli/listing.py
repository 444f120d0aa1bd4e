"""Output of ``svmbench list`` and ``svmbench describe``: rows as a table, a card as lines."""

from __future__ import annotations

from typing import Any

from svmbench.cli import terminal


def print_card(facts: dict[str, Any]) -> None:
    """Print a card: a line for each fact; a fact with several parts has a line for each part."""
    facts = {key: value for key, value in facts.items() if value not in ("", None, [], {})}
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        first, *others = _lines(value)
        rows += [(key, first), *(("", line) for line in others)]
    terminal.print_columns(rows)


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {part}" for key, part in value.items()]
    if isinstance(value, list | tuple):
        if all(isinstance(part, int | float) for part in value):
            return [", ".join(_number(part) for part in value)]
        return [str(part) for part in value]
    return [_number(value)]


def _number(value: Any) -> str:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_count else str(value)


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table, whose header are the keys of the first one."""
    terminal.print_columns((list(row.values()) for row in rows), list(rows[0]) if rows else ())
