"""One YAML file says one experiment: reading it, cutting it, and errors that name the place.

A config holds *blocks*. A block is one protocol over data sets and solvers; a table or a plot shows
one block. What is common (data sets, solvers, seed) stands once at the top; a block may have its
own. A *profile* cuts sizes, grids and folds so that the same experiment fits another budget.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from svmbench.errors import ConfigError, suggestion
from svmbench.experiment.models import (
    Block,
    Config,
    DatasetSpec,
    Profile,
    SolverSpec,
    sentence,
)
from svmbench.experiment.yaml_source import Place, YamlSource, parse_value
from svmbench.paths import asset
from svmbench.specs import PlotSpec, TableSpec

#: Protocols that can scale each fold of their search anew.
SCALES_EVERY_FOLD = ("nested-cv", "cv")


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
    problems = _cross_check(config, source)
    if problems:
        raise ConfigError(problems)
    return config, source


def check_names(config: Config, source: YamlSource) -> None:
    """Check solvers, their parameters and data sets against what there is.

    Raises
    ------
    svmbench.errors.ConfigError
        With every unknown name at once, its place and the nearest known name.
    """
    from svmbench.catalogue import solver_class, solvers
    from svmbench.data import parse_name

    problems: list[str] = []
    known = list(solvers())
    shown = {spec.shown: spec.name for spec in _all_solvers(config)}
    lists: list[tuple[Place, list[SolverSpec], list[DatasetSpec]]] = [
        ((), config.solvers, config.datasets)
    ]
    lists += [(("blocks", i), b.solvers, b.datasets) for i, b in enumerate(config.blocks)]
    for prefix, solver_specs, dataset_specs in lists:
        for i, spec in enumerate(solver_specs):
            place: Place = (*prefix, "solvers", i)
            if spec.name not in known and spec.optional:
                continue
            if spec.name not in known:
                problems.append(
                    f"{source.where((*place, 'name'))}: {_dotted(place)}: unknown solver "
                    f"{spec.name!r}{suggestion(spec.name, known)}"
                )
                continue
            params = list(solver_class(spec.name)._get_param_names())
            for group in ("params", "grid"):
                problems += [
                    f"{source.where((*place, group, name))}: {_dotted(place)}: solver "
                    f"{spec.name!r} has no parameter {name!r}{suggestion(name, params)}"
                    for name in getattr(spec, group)
                    if name not in params
                ]
        for i, dataset in enumerate(dataset_specs):
            place = (*prefix, "datasets", i)
            problems += _unknown_params(source, place, dataset.params, shown)
            if dataset.file:
                continue
            try:
                parse_name(dataset.name)
            except ConfigError as error:
                problems.append(f"{source.where(place)}: {_dotted(place)}: {error}")
    problems += _unknown_in_profiles(config, source)
    if problems:
        raise ConfigError(problems)


def _all_solvers(config: Config) -> list[SolverSpec]:
    return [*config.solvers, *(spec for block in config.blocks for spec in block.solvers)]


def _all_datasets(config: Config) -> list[DatasetSpec]:
    return [*config.datasets, *(spec for block in config.blocks for spec in block.datasets)]


def _unknown_params(
    source: YamlSource,
    place: Place,
    given: Mapping[str, Mapping[str, Any]],
    called: dict[str, str],
) -> list[str]:
    """Find the solvers and parameters under a key ``params`` that there are not.

    Parameters
    ----------
    source : YamlSource
    place : Place
        Of the data set or profile that has the key.
    given : mapping of str to mapping
        Parameters by what the solver is called there.
    called : dict of str to str
        The name of each solver of the config by what it is called there.
    """
    from svmbench.catalogue import solver_class, solvers

    problems = []
    for name, params in given.items():
        where = (*place, "params", name)
        if name not in called:
            problems.append(
                f"{source.where(where)}: {_dotted(place)}: no solver is called {name!r} here"
                f"{suggestion(name, list(called))}"
            )
        elif called[name] in solvers():  # else it is unknown itself, or optional and not here
            known = list(solver_class(called[name])._get_param_names())
            problems += [
                f"{source.where((*where, param))}: {_dotted(place)}: solver {name!r} has no"
                f" parameter {param!r}{suggestion(param, known)}"
                for param in params
                if param not in known
            ]
    return problems


def _unknown_in_profiles(config: Config, source: YamlSource) -> list[str]:
    """Find what profiles cut and the config does not have."""
    known = [config]
    # An override may take away what a profile cuts (--set datasets=[iris]); that is no mistake.
    with suppress(ValidationError):
        known.append(Config.model_validate(source.data))
    specs = [spec for one in known for spec in _all_solvers(one)]
    datasets = list(dict.fromkeys(spec.name for one in known for spec in _all_datasets(one)))
    searched = list(dict.fromkeys(key for spec in specs for key in spec.grid))
    problems = []
    for name, profile in config.profiles.items():
        place: Place = ("profiles", name)
        problems += [
            f"{source.where((*place, 'datasets', i))}: {_dotted(place)}: this config has no data"
            f" set {dataset!r}{suggestion(dataset, datasets)}"
            for i, dataset in enumerate(profile.datasets or [])
            if dataset not in datasets
        ]
        problems += [
            f"{source.where((*place, 'grid', key))}: {_dotted(place)}: no solver searches {key!r}"
            f" here{suggestion(key, searched)}"
            for key in profile.grid
            if key not in searched
        ]
        problems += _unknown_params(source, place, profile.params, {s.name: s.name for s in specs})
    return problems


def apply_profile(config: Config, name: str) -> Config:
    """Return the config as a profile cuts it.

    Raises
    ------
    svmbench.errors.ConfigError
        For a profile that the config does not define.
    """
    if name not in config.profiles:
        known = list(config.profiles)
        raise ConfigError(
            f"unknown profile {name!r}{suggestion(name, known)}"
            f" (this config has: {', '.join(known)})"
        )
    profile = config.profiles[name]
    fields = ("max_samples", "outer_folds", "inner_folds", "run_folds", "folds", "repeats")
    cuts = {f: getattr(profile, f) for f in fields if getattr(profile, f) is not None}

    def cut_solver(spec: SolverSpec) -> SolverSpec:
        grid = {k: profile.grid.get(k, v) for k, v in spec.grid.items()}
        params = {**spec.params, **profile.params.get(spec.name, {})}
        return spec.model_copy(update={"grid": grid, "params": params})

    def cut_dataset(spec: DatasetSpec) -> DatasetSpec:
        sweeps: dict[str, Any] = {}
        if profile.sizes is not None and spec.sizes:
            sweeps["sizes"] = profile.sizes
        if profile.features is not None and spec.features:
            sweeps["features"] = profile.features
        return spec.model_copy(update=sweeps)

    def chosen(specs: list[DatasetSpec]) -> list[DatasetSpec]:
        keep = profile.datasets
        return [cut_dataset(s) for s in specs if keep is None or s.name in keep]

    def cut_block(block: Block) -> Block:
        update: dict[str, Any] = dict(cuts)
        if profile.sizes is not None and block.sizes:
            update["sizes"] = profile.sizes
        if profile.features is not None and block.features:
            update["features"] = profile.features
        update["datasets"] = chosen(block.datasets)
        update["solvers"] = [cut_solver(s) for s in block.solvers]
        return block.model_copy(update=update)

    update: dict[str, Any] = {
        "datasets": chosen(config.datasets),
        "solvers": [cut_solver(s) for s in config.solvers],
        # A block of which the profile leaves no data set falls away; its tables say "no cells".
        "blocks": [cut_block(b) for b in config.blocks if not b.datasets or chosen(b.datasets)],
    }
    if profile.timeout_s is not None:
        update["timeout_s"] = profile.timeout_s
    return _without_absent(config.model_copy(update=update))


def _without_absent(config: Config) -> Config:
    """Return the config without the optional solvers that are not installed here."""
    specs = _all_solvers(config)
    if not any(spec.optional for spec in specs):
        return config
    from svmbench.catalogue import solvers

    known = solvers()
    absent = {spec.shown for spec in specs if spec.optional and spec.name not in known}

    def there(specs: list[SolverSpec]) -> list[SolverSpec]:
        return [spec for spec in specs if spec.shown not in absent]

    blocks = [
        block.model_copy(
            update={
                "solvers": there(block.solvers),
                "pairs": [pair for pair in block.pairs if not absent.intersection(pair)],
            }
        )
        for block in config.blocks
    ]
    return config.model_copy(update={"solvers": there(config.solvers), "blocks": blocks})


def _cross_check(config: Config, source: YamlSource) -> list[str]:
    """Find names that refer to nothing or to two things, and blocks that would do nothing."""
    problems = _repeated_datasets((), config.datasets, source)
    names = [block.name for block in config.blocks]
    for i, block in enumerate(config.blocks):
        place: Place = ("blocks", i)
        if names.index(block.name) != i:
            problems.append(
                f"{source.where((*place, 'name'))}: {_dotted(place)}: "
                f"another block is already called {block.name!r}"
            )
        problems += _repeated_datasets(place, block.datasets, source)
        if not config.datasets_of(block):
            problems.append(f"{source.where(place)}: {_dotted(place)}: no data sets")
        solvers = config.solvers_of(block)
        if block.protocol != "facts" and not solvers:
            problems.append(f"{source.where(place)}: {_dotted(place)}: no solvers")
        shown = [spec.shown for spec in solvers]
        problems += [
            f"{source.where(place)}: {_dotted(place)}: solver {name!r} stands twice;"
            " give one of them a label"
            for name in sorted({n for n in shown if shown.count(n) > 1})
        ]
        problems += [
            f"{source.where((*place, 'pairs', j))}: {_dotted(place)}: no solver {name!r} to race"
            f"{suggestion(name, shown)}"
            for j, pair in enumerate(block.pairs)
            for name in pair
            if name not in shown
        ]
        if block.scaling == "every-fold" and block.protocol not in SCALES_EVERY_FOLD:
            problems.append(
                f"{source.where((*place, 'scaling'))}: {_dotted((*place, 'scaling'))}: protocol"
                f" {block.protocol!r} can't scale 'every-fold' (it can: outer-fold,"
                " all-rows, none)"
            )
        if block.precision == "double" and block.protocol != "nested-cv":
            problems.append(
                f"{source.where((*place, 'precision'))}: {_dotted((*place, 'precision'))}: protocol"
                f" {block.protocol!r} shares no kernel values; 'nested-cv' does"
            )
        if block.protocol == "fit":
            problems += [
                f"{source.where(place)}: {_dotted(place)}: protocol 'fit' searches no grid;"
                f" give solver {spec.shown!r} params instead"
                for spec in solvers
                if spec.grid
            ]
    for kind in ("tables", "plots"):
        for i, spec in enumerate(getattr(config, kind)):
            if spec.block not in names:
                problems.append(
                    f"{source.where((kind, i, 'block'))}: {kind}[{i}]: unknown block "
                    f"{spec.block!r}{suggestion(spec.block, names)}"
                )
    outputs: list[str] = ["table", "tables"]
    for kind in ("tables", "plots"):
        for i, spec in enumerate(getattr(config, kind)):
            if spec.name in outputs:
                problems.append(
                    f"{source.where((kind, i, 'name'))}: {kind}[{i}]: the name {spec.name!r} is"
                    " taken; each table and plot becomes a file of its own"
                )
            outputs.append(spec.name)
    return problems


def _repeated_datasets(prefix: Place, specs: list[DatasetSpec], source: YamlSource) -> list[str]:
    """Find data sets of one name, whose results tables could not tell apart."""
    problems = []
    first: dict[str, DatasetSpec] = {}
    for i, spec in enumerate(specs):
        place: Place = (*prefix, "datasets", i)
        earlier = first.setdefault(spec.name, spec)
        if earlier is not spec:
            # What is registered is found by its name; a file may be called anything.
            remedy = "; give one of them a name" if earlier.file or spec.file else ""
            problems.append(
                f"{source.where(place)}: {_dotted(place)}: data set {spec.name!r} stands twice"
                f"{remedy}"
            )
    return problems


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


def _dotted(place: Place) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _located(error: ValidationError, source: YamlSource, data: Any) -> list[str]:
    """Turn pydantic's errors into sentences with file, line and column; one a place.

    `data` is what was checked: the source as the overrides changed it.
    """
    problems: dict[str, str] = {}
    for item in error.errors():
        place = _real_place(item["loc"], data, item["type"] == "missing")
        message = sentence(item)
        known = _allowed_keys(place[:-1]) if item["type"] == "extra_forbidden" else []
        if item["type"] == "extra_forbidden":
            message = f"unknown key {place[-1]!r}{suggestion(str(place[-1]), known)}"
        elif item["type"] == "missing":
            message = f"the key {item['loc'][-1]!r} is missing"
        elif item["type"] == "literal_error":
            given = str(item["input"])
            options = [
                part.strip("' ")
                for part in message.partition("be ")[2].replace(" or ", ",").split(",")
            ]
            message = f"{given!r} is none of {', '.join(options)}{suggestion(given, options)}"
        where = source.where(place)
        named = _dotted(place)
        problems.setdefault(
            f"{where} {named}", f"{where}: {named}: {message}" if named else f"{where}: {message}"
        )
    return list(problems.values())


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


def _allowed_keys(place: Place) -> list[str]:
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
    return list((models[names[-1]] if names else Config).model_fields)
