"""Check that two sides of a comparison measured the same: config, profile, seed, data, settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from svmbench.base.errors import NotComparableError
from svmbench.report.gate.changes import ChangeLog
from svmbench.report.gate.sides import Side


def check_alike(base: Side, new: Side, log: ChangeLog) -> None:
    """Raise an error for runs of different experiments or data; note missing facts."""
    sides = [(name, run) for name, side in (("BASE", base), ("NEW", new)) for run in side.runs]
    for fact in ("config", "profile", "seed"):
        _check_fact_alike(log, fact, [(name, run.identity[fact]) for name, run in sides])
    contents: dict[tuple[Any, ...], list[tuple[str, Any]]] = {}
    for name, run in sides:
        for (block, dataset, *_), cell in run.cells.items():
            if cell["status"] == "ok":
                data = (name, cell.get("data_sha256"))
                contents.setdefault((block, dataset), []).append(data)
    for (block, dataset), digests in contents.items():
        _check_fact_alike(log, f"content of the data set {dataset} ({block})", digests, "data sets")
    _check_settings_alike(log, [(name, run.settings) for name, run in sides])


def _check_settings_alike(log: ChangeLog, sides: list[tuple[str, Mapping[str, Any]]]) -> None:
    """Raise an error if a block or one of its solvers is set otherwise on another side."""
    known = [(name, settings) for name, settings in sides if settings]
    if 0 < len(known) < len(sides):
        _unstated(log, next(name for name, settings in sides if not settings), "settings")
    for other, settings in known[1:]:
        first, first_settings = known[0]
        for block in first_settings.keys() & settings.keys():
            if difference := _first_difference(first_settings[block], settings[block]):
                setting, value, other_value = difference
                raise NotComparableError(
                    f"nothing to compare: in the block {block}, {setting} is {value} in"
                    f" {first} and {other_value} in {other}"
                )


def _unstated(log: ChangeLog, side: str, fact: str, group: str = "") -> None:
    """Note that a side doesn't state a fact."""
    log.note(f"{side} doesn't state for every run: the {fact}")
    log.leave_out(f"{group or fact} (not stated in {side})")


def _check_fact_alike(
    log: ChangeLog, fact: str, values: list[tuple[str, Any]], group: str = ""
) -> None:
    known = {str(value): side for side, value in reversed(values) if value is not None}
    if len(known) > 1:
        (value, first), (other_value, second), *_ = reversed(known.items())
        raise NotComparableError(
            f"nothing to compare: the {fact} is {value} in {first} and {other_value} in {second}"
        )
    silent = [side for side, value in values if value is None]
    if known and silent:
        _unstated(log, silent[0], fact, group)


def _first_difference(first: Any, second: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Return the place of the first difference of two settings, and its two values.

    A setting of a block that one version doesn't know is no difference.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        names = list({**first, **second}) if path else [name for name in first if name in second]
        for name in names:
            inner = f"{path}.{name}".lstrip(".")
            if difference := _first_difference(first.get(name), second.get(name), inner):
                return difference
        return None
    return None if first == second else (path, json.dumps(first), json.dumps(second))
