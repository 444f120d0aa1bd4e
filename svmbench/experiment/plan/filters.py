"""Selection of a plan's cells by the filters of ``--only``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from svmbench.base.errors import ConfigError

if TYPE_CHECKING:
    from svmbench.experiment.config.models import Config
    from svmbench.experiment.settings.cells import Cell

#: The allowed values by key.
Filters = Mapping[str, list[str]]


#: Keys of filters other than dimensions. Of the dimensions, ``size`` is another name of ``rows``.
_CELL_FIELDS = ("solver", "dataset", "block", "fold")
DIMENSIONS = ("rows", "features")
PARAMETER = "solver."


def filters_of(words: Sequence[str]) -> dict[str, list[str]]:
    """Parse the arguments of ``--only``; return the filters.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If a key is unknown.
    """
    filters: dict[str, list[str]] = {}
    for part in ",".join(words).split(",") if words else []:
        key, separator, value = part.partition("=")
        key = "rows" if key == "size" else key
        is_parameter = key.startswith(PARAMETER) and key != PARAMETER
        if not separator or not (key in {*_CELL_FIELDS, *DIMENSIONS} or is_parameter):
            raise ConfigError(
                f"--only {part}: expected solver=…, dataset=…, block=…, fold=…, or a dimension:"
                " rows=… (or size=…), features=…, solver.<parameter>=…"
            )
        filters.setdefault(key, []).append(value)
    return filters


def only(cells: list[Cell], filters: Filters, config: Config | None = None) -> list[Cell]:
    """Return the cells that match every filter (``solver=…,dataset=…,rows=…,solver.nu=…``).

    Parameters
    ----------
    cells : list of Cell
    filters : mapping of str to list of str
    config : Config, optional
        The config of the cells, to name the key of a grid in an error message.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If a filter's value matches nothing in the plan, or no cell matches all filters.
    """
    chosen = cells
    for name, values in filters.items():
        known = dict.fromkeys(v for v in (_value(c, name) for c in cells) if v is not None)
        wanted = set()
        for value in values:
            matching = {candidate for candidate in known if _is(candidate, value)}
            if not matching:
                if not known and (advice := _within_cells(chosen, name, value, config)):
                    raise ConfigError(f"--only {name}={value}: {advice}")
                options = ", ".join(map(str, sorted(known, key=_order)))
                options = options or f"no {name!r} to choose cells by"
                raise ConfigError(f"--only {name}={value}: the plan has {options}")
            wanted |= matching
        chosen = [c for c in chosen if _value(c, name) in wanted]
    if cells and not chosen:
        words = ",".join(f"{name}={value}" for name, values in filters.items() for value in values)
        raise ConfigError(f"--only {words}: no cell of the plan matches all of these keys")
    return chosen


def _within_cells(cells: list[Cell], name: str, value: str, config: Config | None) -> str:
    """Return advice on a parameter that varies inside cells; empty for other keys.

    A cell always runs its whole grid: a path carries state from point to point, and a search
    compares points. So the values of a grid are chosen in the config, not by a filter.
    """
    parameter = name.removeprefix(PARAMETER)
    for cell in cells:
        if not any(parameter in point for point in cell.spec.get("grid", [])):
            continue
        block, solver = cell.identity["block"], cell.identity["solver"]
        has_solvers = config and any(
            getattr(b, "solvers", ()) for b in config.blocks if b.name == block
        )
        setting = f"blocks.{block}.solvers" if has_solvers else "solvers"
        return (
            f"a cell of {block} runs all values of {parameter}, one after another; to run some,"
            f" write --set {setting}.{solver}.grid.{parameter}=[{value}]"
        )
    return ""


def _value(cell: Cell, name: str) -> Any:
    """Return a cell's value for a filter's key; None if it has none."""
    if name in _CELL_FIELDS:
        value: Any = cell.identity.get(name)
        # Folds are counted from 1, as the progress of a run shows them; records count from 0.
        return value + 1 if name == "fold" and value is not None else value
    return cell.identity.get("dimensions", {}).get(name)


def _is(value: Any, text: str) -> bool:
    """Return True if a text is a value as YAML writes it, or the same number (1 is 1.0)."""
    if isinstance(value, str | bool):
        return str(value) == text or (isinstance(value, bool) and str(value).lower() == text)
    try:
        return float(value) == float(text)
    except ValueError:
        return False


def _order(value: Any) -> tuple[bool, float, str]:
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else 0, str(value)
