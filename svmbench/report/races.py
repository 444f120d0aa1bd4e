"""Split races, which compare several solvers, into ordinary cells.

A race is one cell (a data set and solvers ``a|b|c`` that run in turn). The names of its metrics
name their solvers: ``cpu_time_s:a`` belongs to a solver, ``ratio:a:b`` to a pair (the speed of a
relative to b). After the split, each solver and each pair is a cell, so that tables and plots need
no special case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from svmbench.report.records import CellResult

#: Separator of the two solvers in the name of a pair.
VERSUS = " vs "


def take_apart(cells: Sequence[CellResult]) -> list[CellResult]:
    """Replace every race by a cell for each pair and for each solver.

    An unfinished race has no metrics. Its pairs are those of finished races between the same
    solvers, or else the pairs of the first solver with each other solver.
    """
    pairs: dict[str | None, dict[tuple[str, ...], None]] = {}
    for cell in cells:
        if cell.is_race:
            found = pairs.setdefault(cell.solver, {})
            for key in cell.metrics:
                owners = tuple(key.split(":")[1:])
                if len(owners) == 2:
                    found[owners] = None
    apart: list[CellResult] = []
    for cell in cells:
        if not cell.is_race:
            apart.append(cell)
            continue
        solvers = (cell.solver or "").split("|")
        owners_of_pairs = list(pairs[cell.solver]) or [(solvers[0], name) for name in solvers[1:]]
        apart.extend(_pair(cell, owners) for owners in owners_of_pairs)
        apart.extend(_part(cell, name, (name,)) for name in solvers)
    return apart


def _pair(cell: CellResult, owners: tuple[str, ...]) -> CellResult:
    part = _part(cell, VERSUS.join(owners), owners)
    objectives = [cell.metrics.get(f"objective:{name}") for name in owners]
    if "objective_difference" in part.metrics or not all(map(_is_number, objectives)):
        return part
    first, second = (float(value) for value in objectives if value is not None)
    scale = max(abs(first), abs(second))
    difference = abs(first - second) / scale if scale else 0.0
    return replace(part, metrics={**part.metrics, "objective_difference": difference})


def _part(cell: CellResult, name: str, owners: tuple[str, ...]) -> CellResult:
    return replace(
        cell,
        solver=name,
        metrics=_owned(cell.metrics, owners),
        spread=_owned(cell.spread, owners),
        counters=_owned(cell.counters, owners),
    )


def _owned(values: Mapping[str, Any], owners: Iterable[str]) -> dict[str, Any]:
    """Return the entries whose keys end in exactly these names, with the names removed."""
    suffix = "".join(f":{name}" for name in owners)
    return {
        key.removesuffix(suffix): value
        for key, value in values.items()
        if key.endswith(suffix) and ":" not in key.removesuffix(suffix)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
