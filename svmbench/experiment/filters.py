"""Which of a plan's cells were asked for: ``--only``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from svmbench.errors import ConfigError, SvmbenchError

if TYPE_CHECKING:
    from svmbench.experiment.plan import Cell

#: Values by key.
Filters = Mapping[str, list[str]]


def filters_of(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the filters that ``--only`` was given: values by key.

    Raises
    ------
    svmbench.errors.ConfigError
        For a key that is none.
    """
    filters: dict[str, list[str]] = {}
    for part in ",".join(words).split(",") if words else []:
        key, separator, value = part.partition("=")
        if not separator or key not in {"solver", "dataset", "block", "fold", "size"}:
            raise ConfigError(
                f"--only {part}: expected solver=…, dataset=…, block=…, size=… or fold=…"
            )
        filters.setdefault(key, []).append(value)
    return filters


def only(cells: list[Cell], filters: Filters) -> list[Cell]:
    """Return the cells that match every filter (``solver=…,dataset=…,block=…,fold=…``).

    Raises
    ------
    svmbench.errors.SvmbenchError
        If a filter's value matches nothing in the plan.
    """
    chosen = cells
    for name, values in filters.items():
        known = sorted({str(c.shown.get(name)) for c in cells})
        for value in values:
            if value not in known:
                raise SvmbenchError(f"--only {name}={value}: the plan has {', '.join(known)}")
        chosen = [c for c in chosen if str(c.shown.get(name)) in values]
    return chosen
