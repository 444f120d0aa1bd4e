"""One YAML file says one experiment: reading it, cutting it, and errors that name the place.

A config holds *blocks*. A block is one protocol over data sets and solvers; a table or a plot shows
one block. What is common (data sets, solvers, seed) stands once at the top; a block may have its
own. A *profile* cuts sizes, grids and folds so that the same experiment fits another budget.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from svmbench.errors import ConfigError, suggestion
from svmbench.experiment.blocks import Block, DatasetSpec, SolverSpec
from svmbench.experiment.checks import check_names, cross_check, dotted
from svmbench.experiment.models import Config, Profile
from svmbench.experiment.profiles import apply_profile
from svmbench.experiment.protocols import protocols
from svmbench.experiment.values import sentence
from svmbench.experiment.yaml_source import Place, YamlSource, parse_value
from svmbench.paths import asset
from svmbench.specs import PlotSpec, TableSpec

__all__ = ["apply_profile", "check_names", "find_config", "load_config", "shipped_configs"]


def find_config(name: str) -> Path:
    """Return the path of a config: a file, or the name of one that ships with the package.

    Raises
    ------
    svmbench.errors.ConfigError
        If there is neither, with the nearest shipped name.
    """
    path = Path(name)
    try:
        if path.is_file():
            return path
    except OSError as error:  # a name too long for a file, say
        raise ConfigError(f"{name}: {error.strerror or error}") from error
    shipped = {p.stem: p for p in shipped_configs()}
    if path.stem in shipped and path.parent.name in {"", "configs"}:
        return shipped[path.stem]
    raise ConfigError(
        f"{name}: no such config file{suggestion(path.stem, list(shipped))}"
        " ('svmbench list configs' shows those that ship with svmbench)"
    )


def shipped_configs() -> list[Path]:
    """Return the paths of the configs that ship with the package, by name."""
    return sorted(asset("configs").glob("*.yaml"))


def load_config(path: Path, overrides: tuple[str, ...] = ()) -> tuple[Config, YamlSource]:
    """Read, override and validate a config.

    Parameters
    ----------
    path : Path
    overrides : tuple of str
        ``key=value`` pairs of the command line; a dotted key descends, list items by index or,
        where they have one, by name (``blocks.cv.folds=3``).

    Raises
    ------
    svmbench.errors.ConfigError
        With every problem at once, each with file, line and column.
    """
    source = YamlSource.read(path)
    data = copy.deepcopy(source.data)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}:1:1: a config is a mapping of keys to values")
    for override in overrides:
        _override(data, override)
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_located(error, source, data)) from error
    problems = cross_check(config, source)
    if problems:
        raise ConfigError(problems)
    return config, source


def _override(data: Any, text: str) -> None:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ConfigError(f"--set {text}: expected key=value")
    target: Any = data
    *parents, last = key.split(".")
    for part in parents:
        target = (
            target.setdefault(part, {}) if isinstance(target, dict) else _item(target, part, key)
        )
    if isinstance(target, dict):
        target[last] = parse_value(value)
    else:
        items = _items(target, last, key)
        items[items.index(_item(items, last, key))] = parse_value(value)


def _items(target: Any, part: str, key: str) -> list[Any]:
    if not isinstance(target, list):
        raise ConfigError(f"--set {key}: {part!r} can't be looked up inside a plain value")
    return target


def _item(target: Any, part: str, key: str) -> Any:
    """Return an item of a list by its index or, where it has one, its name."""
    items = _items(target, part, key)
    for i, item in enumerate(items):
        if part == str(i) or (isinstance(item, dict) and item.get("name") == part):
            return item
    raise ConfigError(f"--set {key}: there is no item {part!r}")


def _located(error: ValidationError, source: YamlSource, data: Any) -> list[str]:
    """Turn pydantic's errors into sentences with file, line and column; one a place.

    `data` is what was checked: the source as the overrides changed it.
    """
    problems: dict[str, str] = {}
    for item in error.errors():
        place = _real_place(item["loc"], data, item["type"] == "missing")
        message = sentence(item)
        known = _allowed_keys(place[:-1], data) if item["type"] == "extra_forbidden" else []
        if item["type"] == "extra_forbidden":
            message = f"unknown key {place[-1]!r}{suggestion(str(place[-1]), known)}"
        elif item["type"] == "missing":
            message = f"the key {item['loc'][-1]!r} is missing"
        elif item["type"] == "union_tag_not_found":
            message = "the key 'protocol' is missing"
        elif item["type"] == "union_tag_invalid":
            place = (*place, "protocol")
            message = _none_of(str(item["ctx"]["tag"]), list(protocols()))
        elif item["type"] == "literal_error":
            given = str(item["input"])
            options = [
                part.strip("' ")
                for part in message.partition("be ")[2].replace(" or ", ",").split(",")
            ]
            message = _none_of(given, options)
            if place[-1] == "scaling":
                does = _item_at(data, place[:-1])["protocol"]
                message = f"protocol {does!r} can't scale so: {message}"
        where = source.where(place)
        named = dotted(place)
        problems.setdefault(
            f"{where} {named}", f"{where}: {named}: {message}" if named else f"{where}: {message}"
        )
    return list(problems.values())


def _none_of(given: str, options: list[str]) -> str:
    return f"{given!r} is none of {', '.join(options)}{suggestion(given, options)}"


def _item_at(data: Any, place: Place) -> Any:
    for part in place:
        data = data[part]
    return data


def _real_place(loc: tuple[int | str, ...], data: Any, is_missing: bool) -> Place:
    """Drop the parts of a pydantic location that name a union's branch, not a place in the file.

    Of a key that `is_missing` the last part is not there, and is kept.
    """
    place: list[str | int] = []
    for part in loc[:-1] if is_missing else loc:
        is_index = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if is_index or (isinstance(data, dict) and part in data):
            data = data[part]
            place.append(part)
    return (*place, loc[-1]) if is_missing else tuple(place)


def _allowed_keys(place: Place, data: Any) -> list[str]:
    """Return the keys that the model at a place in the file knows."""
    models: dict[str, type[BaseModel]] = {
        "datasets": DatasetSpec,
        "solvers": SolverSpec,
        "blocks": Block,
        "tables": TableSpec,
        "plots": PlotSpec,
        "profiles": Profile,
    }
    names = [part for part in place if isinstance(part, str) and part in models]
    model = models[names[-1]] if names else Config
    if model is Block:
        model = protocols()[_item_at(data, place)["protocol"]].settings
    return list(model.model_fields)
