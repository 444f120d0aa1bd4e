"""Checks of the references in a config: names, pairs, tasks, files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from svmbench.base import escape
from svmbench.base.errors import ConfigError, SvmbenchError, suggestion
from svmbench.base.validation_messages import sentence, shown
from svmbench.baselines.templates import is_program
from svmbench.experiment.config.capabilities import is_here
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.models import Config, Profile
from svmbench.experiment.config.partial_parse import STAND_IN, Draft
from svmbench.experiment.config.yaml_source import ConfigPlace
from svmbench.experiment.protocols import protocols
from svmbench.experiment.protocols.declare import Protocol
from svmbench.experiment.settings.blocks import DatasetSpec, RaceBlock, SolverSpec, TrainingBlock
from svmbench.experiment.settings.values import values_of
from svmbench.schema import scores


def check_names(
    draft: Draft, findings: Findings, *, trust: bool = False, programs: bool = False
) -> None:
    """Check solvers, their parameters and data sets against what there is.

    Parameters
    ----------
    draft : Draft
        Of a config that could be read.
    findings : Findings
        Gets every unknown name, with its place and the nearest known name.
    trust : bool, default=False
        Whether classes are imported that come from elsewhere than scikit-learn.
    programs : bool, default=False
        Whether programs may be named without `trust`, because none is started.
    """
    config = draft.config
    assert config is not None
    called = {spec.shown: spec.name for spec in all_solvers(config)}
    for prefix, solver_specs, dataset_specs in _lists(config):
        for i, spec in enumerate(solver_specs):
            place = draft.place((*prefix, "solvers", i))
            if not (trust or programs) and _is_refused(place, spec, findings):
                continue
            _check_solver(place, spec, findings, trust=trust)
        for i, dataset in enumerate(dataset_specs):
            place = draft.place((*prefix, "datasets", i))
            _check_params(place, dataset.params, called, draft, findings)
            _check_dataset(place, dataset, findings)
    _check_places(draft, findings)
    _check_sweeps(draft, findings)
    _check_profiles(draft, findings)


def _lists(config: Config) -> Iterator[tuple[ConfigPlace, list[SolverSpec], list[DatasetSpec]]]:
    """Yield the config's solvers and data sets and those of its blocks, with their places."""
    yield (), config.solvers, config.datasets
    for i, block in enumerate(config.blocks):
        yield ("blocks", i), getattr(block, "solvers", []), block.datasets


def _is_refused(place: ConfigPlace, spec: SolverSpec, findings: Findings) -> bool:
    """Report a program that nobody trusts; return True if the solver is one."""
    from svmbench.baselines.programs import why_not_run

    if not is_program(spec.name) or (spec.optional and not is_here(spec)):
        return False
    findings.add((*place, "program"), why_not_run(spec.name), place)
    return True


def _check_solver(place: ConfigPlace, spec: SolverSpec, findings: Findings, *, trust: bool) -> None:
    """Find a solver that there is not, and its parameters, and kernels that it has not."""
    from svmbench.baselines.catalogue import solver_class, solvers, split_problem
    from svmbench.baselines.foreign import why_not_taken

    known = solvers()
    if spec.optional and not is_here(spec):
        return
    if "." in spec.name and not is_program(spec.name):
        reason = why_not_taken(split_problem(spec.name)[0], trust=trust)
        if reason:
            findings.add((*place, "class"), reason, place)
            return
    elif spec.name not in known and not is_program(spec.name):
        findings.unknown((*place, "name"), "unknown solver", spec.name, list(known), place)
        return
    found = solver_class(spec.name)
    params = list(found._get_param_names())
    if spec.search and not spec.grid:
        said = f"solver {spec.name!r} has no grid: 'search' is for the fits of a search"
        findings.add((*place, "search"), said, place)
    for group in ("params", "grid", "search"):
        for name in getattr(spec, group):
            if name not in params:
                has_none = f"solver {spec.name!r} has no parameter"
                findings.unknown((*place, group, name), has_none, name, params, place)
    # A class of others may have kernels that nobody here knows of.
    declared = found.declaration
    kernels = list(declared.kernels)
    given = [
        *([spec.params["kernel"]] if "kernel" in spec.params else []),
        *(values_of(spec.grid["kernel"]) if "kernel" in spec.grid else []),
    ]
    for kernel in given:
        if "." not in spec.name and "kernel" in params and kernels and kernel not in kernels:
            group = "params" if "kernel" in spec.params else "grid"
            said = f"solver {spec.name!r} has no kernel {shown(kernel)}"
            has = f" (it has: {', '.join(kernels)})"
            where = (*place, group, "kernel")
            findings.add(where, f"{said}{suggestion(str(kernel), kernels)}{has}", place)
            params.remove("kernel")  # said once is enough
    _check_values(place, spec, found, params, findings)


def _check_values(
    place: ConfigPlace, spec: SolverSpec, found: Any, known: list[str], findings: Findings
) -> None:
    """Find values of parameters that the solver itself would refuse, before any run does."""
    if not hasattr(found, "_check_parameters"):
        return
    fixed = {name: value for name, value in spec.params.items() if name in known}
    tried: list[tuple[ConfigPlace, dict[str, Any]]] = [((*place, "params"), fixed)]
    changed = {name: value for name, value in spec.search.items() if name in known}
    if changed:
        tried.append(((*place, "search"), {**fixed, **changed}))
    tried += [
        ((*place, "grid", name), {**fixed, name: value})
        for name, values in spec.grid.items()
        if name in known
        for value in values_of(values)
    ]
    for where, params in tried:
        refused = _refusal(found, params)
        if refused:
            findings.add(where, f"solver {spec.name!r}: {refused}", place)
            if where[-1] == "params":
                return  # else all that follows says so again


#: Why a solver refuses parameters, or '': by class and the parameters as text.
_refusals: dict[tuple[Any, str], str] = {}
_MOST_REFUSALS = 10_000


def _refusal(solver: Any, params: dict[str, Any]) -> str:
    """Return why a solver refuses parameters, or ''."""
    given = solver, repr(params)
    if given not in _refusals:
        if len(_refusals) >= _MOST_REFUSALS:
            _refusals.clear()
        try:
            solver._check_parameters(solver(**params))
            _refusals[given] = ""
        except (ValueError, TypeError) as error:
            _refusals[given] = escape.line(error, 300) or type(error).__name__
    return _refusals[given]


def _check_dataset(place: ConfigPlace, dataset: DatasetSpec, findings: Findings) -> None:
    """Find a data set that there is not."""
    from svmbench.data import parse_name

    if dataset.is_own:
        return
    if dataset.label_column:
        said = "is of a table, and this data set is no file"
        findings.add((*place, "label_column"), said, (*place, "label_column"))
    try:
        parse_name(dataset.name)
    except ConfigError as error:
        findings.add(place, str(error), place)


def check_files(draft: Draft, findings: Findings) -> None:
    """Find data files that are not there, or can't be read."""
    config = draft.config
    assert config is not None
    for prefix, _, datasets in _lists(config):
        for i, dataset in enumerate(datasets):
            place = draft.place((*prefix, "datasets", i))
            where = (*place, "file")
            try:
                is_file = os.path.isfile(dataset.file)  # noqa: PTH113 - it may be no path at all
            except ValueError:
                is_file = False
            if dataset.file and not is_file:
                findings.add(where, f"there is no file {shown(dataset.file)} here", place)
            elif dataset.file and not os.access(dataset.file, os.R_OK):
                findings.add(where, f"the file {shown(dataset.file)} can't be read", place)


def _is_there(name: str) -> bool:
    """Return True if a solver's class is loaded; a foreign class must have been imported before.

    That of a program is made of its commands alone.
    """
    from svmbench.baselines.catalogue import solver_class, split_problem

    if is_program(name):
        return True
    if "." in name and not is_imported(split_problem(name)[0]):
        return False
    try:
        solver_class(name)
    except SvmbenchError:
        return False
    return True


def is_imported(path: str) -> bool:
    """Return True if the module of a class is loaded, so that asking for the class runs no code."""
    return path.rpartition(".")[0] in sys.modules


def all_solvers(config: Config) -> list[SolverSpec]:
    """Return the config's solvers and those of its blocks."""
    own = [spec for block in config.blocks for spec in getattr(block, "solvers", [])]
    return [*config.solvers, *own]


def all_datasets(config: Config) -> list[DatasetSpec]:
    """Return the config's data sets and those of its blocks."""
    return [*config.datasets, *(spec for block in config.blocks for spec in block.datasets)]


def _check_params(
    place: ConfigPlace,
    given: Mapping[str, Mapping[str, Any]],
    called: Mapping[str, str],
    draft: Draft,
    findings: Findings,
) -> None:
    """Find the solvers and parameters under a key ``params`` that there are not.

    Parameters
    ----------
    place : tuple
        Of the data set or profile that has the key.
    given : mapping of str to mapping
        Parameters by what the solver is called there.
    called : mapping of str to str
        The name of each solver of the config by what it is called there.
    draft : Draft
    findings : Findings
    """
    from svmbench.baselines.catalogue import solver_class

    for name, params in given.items():
        where = (*place, "params", name)
        if name not in called:
            if not _is_lost(draft, "solvers", name):
                none = "no solver is called"
                far = f"{none} {shown(name)} here{suggestion(name, list(called))}"
                findings.add(where, far, place)
        elif _is_there(called[name]):  # else it is unknown itself, or optional and not here
            known = list(solver_class(called[name])._get_param_names())
            for param in params:
                if param not in known:
                    has_none = f"solver {name!r} has no parameter"
                    findings.unknown((*where, param), has_none, param, known, place)


def _check_places(draft: Draft, findings: Findings) -> None:
    """Find places in the commands of programs that nothing in the config fills."""
    from svmbench.baselines.catalogue import solver_class

    config = draft.config
    assert config is not None
    swept = {name.removeprefix("solver.") for name in _dimensions(config)}
    kept = [dataset.params for dataset in all_datasets(config)]
    kept += [profile.params for profile in config.profiles.values()]
    for prefix, specs, _ in _lists(config):
        for i, spec in enumerate(specs):
            if not is_program(spec.name):
                continue
            filled = {*spec.params, *spec.grid, *swept, "random_state"}
            filled |= {name for params in kept for name in params.get(spec.shown, ())}
            place = draft.place((*prefix, "solvers", i))
            for parameter in solver_class(spec.name)._get_param_names():
                if parameter not in filled:
                    said = (
                        f"nothing gives a value for {{{parameter}}} (params or grid: {parameter})"
                    )
                    findings.add((*place, "program"), said, place)


def _is_lost(draft: Draft, kind: str, name: str) -> bool:
    """Return True if a name may belong to an item that could not be read."""
    return kind in draft.nameless or name in draft.lost.get(kind, ())


def _check_sweeps(draft: Draft, findings: Findings) -> None:
    """Find dimensions that are parameters which some solver of the block does not have."""
    from svmbench.baselines.catalogue import solver_class

    config = draft.config
    assert config is not None
    for i, block in enumerate(config.blocks):
        place = draft.place(("blocks", i))
        for dimension in getattr(block, "sweep", {}):
            parameter = dimension.removeprefix("solver.")
            for spec in config.solvers_of(block) if parameter != dimension else []:
                if not _is_there(spec.name):
                    continue
                known = list(solver_class(spec.name)._get_param_names())
                if parameter not in known:
                    has_none = f"solver {spec.name!r} has no parameter"
                    named = (*place, "sweep")
                    findings.unknown((*named, dimension), has_none, parameter, known, named)


def _check_profiles(draft: Draft, findings: Findings) -> None:
    """Find what profiles cut and the config does not have."""
    config = draft.config
    assert config is not None
    known = [config]
    # An override may take away what a profile cuts (--set datasets=[iris]); that is no mistake.
    if findings.source.is_overridden:
        from svmbench.experiment.config.partial_parse import read_draft

        before = read_draft(dict(findings.source.data or {}), Findings(findings.source)).config
        known += [before] if before else []
    specs = [spec for one in known for spec in all_solvers(one)]
    datasets = list(dict.fromkeys(spec.name for one in known for spec in all_datasets(one)))
    searched = list(dict.fromkeys(key for spec in specs for key in spec.grid))
    swept = list(dict.fromkeys(name for one in known for name in _dimensions(one)))
    for name, profile in config.profiles.items():
        place: ConfigPlace = ("profiles", name)
        for i, dataset in enumerate(profile.datasets or []):
            if dataset not in datasets and not _is_lost(draft, "datasets", dataset):
                what = "this config has no data set"
                findings.unknown((*place, "datasets", i), what, dataset, datasets, place)
        for key in profile.grid:
            if key not in searched and not _is_lost(draft, "grid", key):
                far = f"no solver searches {shown(key)} here{suggestion(key, searched)}"
                findings.add((*place, "grid", key), far, place)
        for key in profile.sweep:
            unsure = draft.lacks("blocks") or draft.lacks("datasets")
            if key not in swept and not (unsure or _is_lost(draft, "sweep", key)):
                far = f"no block sweeps {shown(key)} here{suggestion(key, swept)}"
                findings.add((*place, "sweep", key), far, place)
        _check_params(place, profile.params, {s.called: s.name for s in specs}, draft, findings)
        _check_cuts(place, profile, config, findings)


def _check_cuts(place: ConfigPlace, profile: Profile, config: Config, findings: Findings) -> None:
    """Find values that are right for the setting of another protocol than a block's."""
    for name, value in profile.block_cuts().items():
        for block in config.blocks:
            if name not in type(block).model_fields:
                continue
            try:
                type(block).__pydantic_validator__.validate_assignment(
                    block.model_copy(), name, value
                )
            except ValidationError as error:
                said = f"block {block.name!r}: {sentence(error.errors()[0])}"
                findings.add((*place, name), said, (*place, name))


def _dimensions(config: Config) -> Iterator[str]:
    for block in config.blocks:
        if isinstance(block, TrainingBlock):
            for dataset in config.datasets_of(block):
                yield from block.swept(dataset)


def cross_check(draft: Draft, findings: Findings) -> None:
    """Find names that refer to nothing or to two things, and blocks that would do nothing."""
    config = draft.config
    assert config is not None
    _check_repeated(draft, (), config.datasets, findings)
    _check_repeated_solvers(draft, (), config.solvers, findings)
    names = [block.name for block in config.blocks]
    for i, block in enumerate(config.blocks):
        place = draft.place(("blocks", i))
        if block.name == STAND_IN:
            continue
        if names.index(block.name) != i:
            said = f"another block is already called {shown(block.name)}"
            findings.add((*place, "name"), said, place)
        _check_repeated(draft, ("blocks", i), block.datasets, findings)
        if not config.datasets_of(block) and not draft.lacks("datasets"):
            findings.add(place, "no data sets", place)
        if not isinstance(block, TrainingBlock):
            continue
        solvers = config.solvers_of(block)
        declared = protocols()[block.protocol]
        if not solvers and not draft.lacks("solvers"):
            findings.add(place, "no solvers", place)
        if getattr(block, "solvers", []):
            _check_repeated_solvers(draft, ("blocks", i), solvers, findings)
        if isinstance(block, RaceBlock):
            _check_named(draft, place, block, [spec.shown for spec in solvers], findings)
        if place not in draft.guessed:
            _check_grids(place, solvers, declared, findings)
            _check_programs(place, solvers, declared, findings)
        _check_scores(draft, place, block, declared, findings)
    _check_run_folds(draft, findings)


def _check_run_folds(draft: Draft, findings: Findings) -> None:
    """Find blocks, as they stand and as profiles cut them, that run more folds than there are."""
    config = draft.config
    assert config is not None
    for i, block in enumerate(config.blocks):
        wanted, there = getattr(block, "run_folds", 0), getattr(block, "outer_folds", 0)
        if not there or block.name == STAND_IN:
            continue
        places = [(draft.place(("blocks", i)), wanted, there)]
        for name, profile in config.profiles.items():
            cuts = profile.block_cuts()
            run, of = cuts.get("run_folds", wanted), cuts.get("outer_folds", there)
            if (run, of) != (wanted, there):
                places.append((("profiles", name), run, of))
        for place, run, of in places:
            if run > of:
                said = (
                    f"block {block.name!r} runs {run:,} folds (run_folds) of {of:,} (outer_folds)"
                )
                findings.add((*place, "run_folds"), said, place)


def _check_repeated_solvers(
    draft: Draft, prefix: ConfigPlace, specs: list[SolverSpec], findings: Findings
) -> None:
    """Find solvers of one name, whose results tables could not tell apart."""
    first: set[str] = set()
    for i, spec in enumerate(specs):
        if spec.shown in first:
            place = draft.place((*prefix, "solvers", i))
            said = f"solver {spec.shown!r} stands twice; give one of them a label"
            findings.add(place, said, place)
        first.add(spec.shown)


def _check_named(
    draft: Draft, place: ConfigPlace, block: RaceBlock, known: list[str], findings: Findings
) -> None:
    """Find names of solvers that don't race."""
    for where, name in block.named():
        if name not in known and not _is_lost(draft, "solvers", name):
            said = f"no solver {shown(name)} to race{suggestion(name, known)}"
            findings.add((*place, *where), said, place)


def _check_grids(
    place: ConfigPlace, solvers: list[SolverSpec], declared: Protocol, findings: Findings
) -> None:
    """Find grids that nothing searches, and solvers without the one that is followed."""
    for spec in solvers:
        if declared.grid == "one parameter" and len(spec.grid) != 1:
            findings.add(
                place,
                f"protocol {declared.name!r} follows one parameter; give solver {spec.shown!r} a"
                " grid over that alone",
                place,
            )
        if declared.grid == "none" and spec.grid:
            findings.add(
                place,
                f"protocol {declared.name!r} searches no grid; give solver {spec.shown!r} params"
                " instead",
                place,
            )


def _check_programs(
    place: ConfigPlace, solvers: list[SolverSpec], declared: Protocol, findings: Findings
) -> None:
    """Find programs where the protocol can't time them."""
    for spec in solvers:
        if is_program(spec.name) and not declared.programs:
            findings.add(
                place,
                f"protocol {declared.name!r} can't time the program {spec.shown!r}; a race can, or"
                " give this block solvers of its own",
                place,
            )


def _check_scores(
    draft: Draft, place: ConfigPlace, block: TrainingBlock, declared: Protocol, findings: Findings
) -> None:
    """Find scores that there are not or that nothing reads, and a task that can't be done."""
    if not declared.scores and place not in draft.guessed:
        for key in sorted({"scores", "select_by"} & block.model_fields_set):
            said = f"protocol {declared.name!r} has no scores, and the key does nothing"
            findings.add((*place, key), said, (*place, key))
    named = [((*place, "scores", i), name) for i, name in enumerate(block.scores)]
    for where, name in [*named, ((*place, "select_by"), block.select_by)]:
        if name not in scores.SCORES:
            findings.unknown(where, "unknown score", name, list(scores.SCORES), where)
    if block.task is not None and block.task not in declared.tasks and place not in draft.guessed:
        where = (*place, "task")
        said = f"protocol {declared.name!r} can't do the task {block.task!r}"
        findings.add(where, f"{said} (it can: {', '.join(declared.tasks)})", where)


def _check_repeated(
    draft: Draft, prefix: ConfigPlace, specs: list[DatasetSpec], findings: Findings
) -> None:
    """Find data sets of one name, whose results tables could not tell apart."""
    first: dict[str, DatasetSpec] = {}
    for i, spec in enumerate(specs):
        earlier = first.setdefault(spec.name, spec)
        if earlier is not spec:
            place = draft.place((*prefix, "datasets", i))
            # What is registered is found by its name; a file may be called anything.
            remedy = "; give one of them a name" if earlier.is_own or spec.is_own else ""
            findings.add(place, f"data set {shown(spec.name)} stands twice{remedy}", place)
