"""What a config's parts must find in each other, and in what there is: names, pairs, tasks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from svmbench import scores
from svmbench.errors import ConfigError, SvmbenchError, suggestion
from svmbench.experiment.blocks import DatasetSpec, SolverSpec, TrainingBlock
from svmbench.experiment.models import Config
from svmbench.experiment.protocols import protocols
from svmbench.experiment.protocols.declare import Protocol
from svmbench.experiment.yaml_source import Place, YamlSource


def check_names(config: Config, source: YamlSource, *, trust: bool = False) -> None:
    """Check solvers, their parameters and data sets against what there is.

    Parameters
    ----------
    config : Config
    source : YamlSource
    trust : bool, default=False
        Whether classes are imported that come from elsewhere than scikit-learn.

    Raises
    ------
    svmbench.errors.ConfigError
        With every unknown name at once, its place and the nearest known name.
    """
    from svmbench.catalogue import solver_class, solvers
    from svmbench.data import parse_name

    problems: list[str] = []
    known = list(solvers())
    shown = {spec.shown: spec.name for spec in all_solvers(config)}
    lists: list[tuple[Place, list[SolverSpec], list[DatasetSpec]]] = [
        ((), config.solvers, config.datasets)
    ]
    lists += [
        (("blocks", i), getattr(b, "solvers", []), b.datasets) for i, b in enumerate(config.blocks)
    ]
    for prefix, solver_specs, dataset_specs in lists:
        for i, spec in enumerate(solver_specs):
            place: Place = (*prefix, "solvers", i)
            if spec.name not in known and spec.optional:
                continue
            if "." in spec.name:
                reason = _why_no_class(spec.name, trust)
                if reason:
                    problems.append(f"{source.where((*place, 'class'))}: {dotted(place)}: {reason}")
                    continue
            elif spec.name not in known:
                problems.append(
                    f"{source.where((*place, 'name'))}: {dotted(place)}: unknown solver "
                    f"{spec.name!r}{suggestion(spec.name, known)}"
                )
                continue
            params = list(solver_class(spec.name)._get_param_names())
            for group in ("params", "grid"):
                problems += [
                    f"{source.where((*place, group, name))}: {dotted(place)}: solver "
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
                problems.append(f"{source.where(place)}: {dotted(place)}: {error}")
    problems += _unknown_in_sweeps(config, source)
    problems += _unknown_in_profiles(config, source)
    if problems:
        raise ConfigError(problems)


def _why_no_class(path: str, trust: bool) -> str:
    """Return why the class at a dotted path can't take part; empty if it can."""
    from svmbench.baselines.foreign import adapted, is_trusted

    if not (trust or is_trusted(path)):
        return (
            f"{path} does not come from scikit-learn, whose classes alone are taken without more;"
            " --trust imports it, which runs its code"
        )
    try:
        adapted(path)
    except SvmbenchError as error:
        return str(error)
    return ""


def _is_there(name: str) -> bool:
    """Return whether a solver's class is at hand; one of others must have been imported before."""
    from svmbench.catalogue import solver_class

    if "." in name and not is_imported(name):
        return False
    try:
        solver_class(name)
    except SvmbenchError:
        return False
    return True


def is_imported(path: str) -> bool:
    """Return whether the module of a class is there already, so that asking for it runs nothing."""
    return path.rpartition(".")[0] in sys.modules


def all_solvers(config: Config) -> list[SolverSpec]:
    """Return the config's solvers and those of its blocks."""
    own = [spec for block in config.blocks for spec in getattr(block, "solvers", [])]
    return [*config.solvers, *own]


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
    from svmbench.catalogue import solver_class

    problems = []
    for name, params in given.items():
        where = (*place, "params", name)
        if name not in called:
            problems.append(
                f"{source.where(where)}: {dotted(place)}: no solver is called {name!r} here"
                f"{suggestion(name, list(called))}"
            )
        elif _is_there(called[name]):  # else it is unknown itself, or optional and not here
            known = list(solver_class(called[name])._get_param_names())
            problems += [
                f"{source.where((*where, param))}: {dotted(place)}: solver {name!r} has no"
                f" parameter {param!r}{suggestion(param, known)}"
                for param in params
                if param not in known
            ]
    return problems


def _unknown_in_sweeps(config: Config, source: YamlSource) -> list[str]:
    """Find dimensions that are parameters which some solver of the block does not have."""
    from svmbench.catalogue import solver_class

    problems = []
    for i, block in enumerate(config.blocks):
        for dimension in getattr(block, "sweep", {}):
            parameter = dimension.removeprefix("solver.")
            place: Place = ("blocks", i, "sweep", dimension)
            for spec in config.solvers_of(block) if parameter != dimension else []:
                if not _is_there(spec.name):
                    continue
                known = list(solver_class(spec.name)._get_param_names())
                if parameter not in known:
                    problems.append(
                        f"{source.where(place)}: {dotted(('blocks', i, 'sweep'))}: solver"
                        f" {spec.name!r} has no parameter {parameter!r}"
                        f"{suggestion(parameter, known)}"
                    )
    return problems


def _unknown_in_profiles(config: Config, source: YamlSource) -> list[str]:
    """Find what profiles cut and the config does not have."""
    known = [config]
    # An override may take away what a profile cuts (--set datasets=[iris]); that is no mistake.
    with suppress(ValidationError):
        known.append(Config.model_validate(source.data))
    specs = [spec for one in known for spec in all_solvers(one)]
    datasets = list(dict.fromkeys(spec.name for one in known for spec in _all_datasets(one)))
    searched = list(dict.fromkeys(key for spec in specs for key in spec.grid))
    problems = []
    for name, profile in config.profiles.items():
        place: Place = ("profiles", name)
        problems += [
            f"{source.where((*place, 'datasets', i))}: {dotted(place)}: this config has no data"
            f" set {dataset!r}{suggestion(dataset, datasets)}"
            for i, dataset in enumerate(profile.datasets or [])
            if dataset not in datasets
        ]
        problems += [
            f"{source.where((*place, 'grid', key))}: {dotted(place)}: no solver searches {key!r}"
            f" here{suggestion(key, searched)}"
            for key in profile.grid
            if key not in searched
        ]
        problems += _unknown_params(source, place, profile.params, {s.name: s.name for s in specs})
    return problems


def cross_check(config: Config, source: YamlSource) -> list[str]:
    """Find names that refer to nothing or to two things, and blocks that would do nothing."""
    problems = _repeated_datasets((), config.datasets, source)
    names = [block.name for block in config.blocks]
    for i, block in enumerate(config.blocks):
        place: Place = ("blocks", i)
        if names.index(block.name) != i:
            problems.append(
                f"{source.where((*place, 'name'))}: {dotted(place)}: "
                f"another block is already called {block.name!r}"
            )
        problems += _repeated_datasets(place, block.datasets, source)
        if not config.datasets_of(block):
            problems.append(f"{source.where(place)}: {dotted(place)}: no data sets")
        solvers = config.solvers_of(block)
        declared = protocols()[block.protocol]
        if isinstance(block, TrainingBlock):
            if not solvers:
                problems.append(f"{source.where(place)}: {dotted(place)}: no solvers")
            problems += _cross_check_solvers(block, solvers, declared, source, place)
            problems += _cross_check_scores(block, declared, source, place)
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


def _cross_check_solvers(
    block: TrainingBlock,
    solvers: list[SolverSpec],
    declared: Protocol,
    source: YamlSource,
    place: Place,
) -> list[str]:
    """Find solvers of one name, pairs of none, and grids that nothing searches."""
    shown = [spec.shown for spec in solvers]
    problems = [
        f"{source.where(place)}: {dotted(place)}: solver {name!r} stands twice;"
        " give one of them a label"
        for name in sorted({n for n in shown if shown.count(n) > 1})
    ]
    problems += [
        f"{source.where((*place, 'pairs', j))}: {dotted(place)}: no solver {name!r} to race"
        f"{suggestion(name, shown)}"
        for j, pair in enumerate(getattr(block, "pairs", []))
        for name in pair
        if name not in shown
    ]
    if declared.grid == "one parameter":
        problems += [
            f"{source.where(place)}: {dotted(place)}: protocol {declared.name!r} follows one"
            f" parameter; give solver {spec.shown!r} a grid over that alone"
            for spec in solvers
            if len(spec.grid) != 1
        ]
    if declared.grid == "none":
        problems += [
            f"{source.where(place)}: {dotted(place)}: protocol {declared.name!r} searches no grid;"
            f" give solver {spec.shown!r} params instead"
            for spec in solvers
            if spec.grid
        ]
    return problems


def _cross_check_scores(
    block: TrainingBlock, declared: Protocol, source: YamlSource, place: Place
) -> list[str]:
    """Find scores that there are not, and a task that the protocol can't do."""
    named = [((*place, "scores", i), name) for i, name in enumerate(block.scores)]
    problems = [
        f"{source.where(where)}: {dotted(where)}: unknown score {name!r}"
        f"{suggestion(name, list(scores.SCORES))}"
        for where, name in [*named, ((*place, "select_by"), block.select_by)]
        if name not in scores.SCORES
    ]
    if block.task is not None and block.task not in declared.tasks:
        where = (*place, "task")
        problems.append(
            f"{source.where(where)}: {dotted(where)}: protocol {declared.name!r} can't do the task"
            f" {block.task!r} (it can: {', '.join(declared.tasks)})"
        )
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
                f"{source.where(place)}: {dotted(place)}: data set {spec.name!r} stands twice"
                f"{remedy}"
            )
    return problems


def dotted(place: Place) -> str:
    """Return a place as a person writes it: ``blocks[0].scaling``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
