"""Checks of a config's references: names, parameters, pairs, tasks, files."""

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
from svmbench.experiment.config.partial_parse import PLACEHOLDER_BLOCK, Draft
from svmbench.experiment.config.yaml_source import ConfigPlace
from svmbench.experiment.protocols import protocols
from svmbench.experiment.protocols.chosen_cv import ChosenCV
from svmbench.experiment.protocols.declare import Protocol
from svmbench.experiment.protocols.kernel_search import takes_part
from svmbench.experiment.settings.blocks import DatasetSpec, RaceBlock, SolverSpec, TrainingBlock
from svmbench.experiment.settings.values import values_of
from svmbench.schema import scores


def check_names(
    draft: Draft, findings: Findings, *, trust: bool = False, programs: bool = False
) -> None:
    """Check that solvers, their parameters and data sets exist.

    Parameters
    ----------
    draft : Draft
        The draft of a config; its `config` is not None.
    findings : Findings
        Collects every unknown name, with its place and a similar known name.
    trust : bool, default=False
        Whether to import classes of other packages than scikit-learn, which runs their code, and
        to accept programs.
    programs : bool, default=False
        Whether to accept programs without `trust`; right if none is started.
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
    _check_placeholders(draft, findings)
    _check_sweeps(draft, findings)
    _check_profiles(draft, findings)


def _lists(config: Config) -> Iterator[tuple[ConfigPlace, list[SolverSpec], list[DatasetSpec]]]:
    """Yield the place, solvers and data sets of the config, then of each block."""
    yield (), config.solvers, config.datasets
    for i, block in enumerate(config.blocks):
        yield ("blocks", i), getattr(block, "solvers", []), block.datasets


def _is_refused(place: ConfigPlace, spec: SolverSpec, findings: Findings) -> bool:
    """Report a solver that is a program, which needs ``trust``; return True if it is one."""
    from svmbench.baselines.programs import why_not_run

    if not is_program(spec.name) or (spec.optional and not is_here(spec)):
        return False
    findings.add((*place, "program"), why_not_run(spec.name), place)
    return True


def _check_solver(place: ConfigPlace, spec: SolverSpec, findings: Findings, *, trust: bool) -> None:
    """Report an unknown solver, unknown parameters and kernels, and refused values."""
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
    cls = solver_class(spec.name)
    params = list(cls._get_param_names())
    if spec.search and not spec.grid:
        message = f"solver {spec.name!r} has no grid: 'search' is for the fits of a search"
        findings.add((*place, "search"), message, place)
    for group in ("params", "grid", "search"):
        for name in getattr(spec, group):
            if name not in params:
                what = f"solver {spec.name!r} has no parameter"
                findings.unknown((*place, group, name), what, name, params, place)
    # The kernels of a foreign class may be unknown.
    declared = cls.declaration
    kernels = list(declared.kernels)
    named_kernels = [
        *([spec.params["kernel"]] if "kernel" in spec.params else []),
        *(values_of(spec.grid["kernel"]) if "kernel" in spec.grid else []),
    ]
    for kernel in named_kernels:
        if "." not in spec.name and "kernel" in params and kernels and kernel not in kernels:
            group = "params" if "kernel" in spec.params else "grid"
            message = f"solver {spec.name!r} has no kernel {shown(kernel)}"
            has = f" (it has: {', '.join(kernels)})"
            where = (*place, group, "kernel")
            findings.add(where, f"{message}{suggestion(str(kernel), kernels)}{has}", place)
            params.remove("kernel")  # don't report it a second time
    _check_values(place, spec, cls, params, findings)


def _check_values(
    place: ConfigPlace, spec: SolverSpec, cls: Any, known: list[str], findings: Findings
) -> None:
    """Report parameter values that the solver itself refuses."""
    if not hasattr(cls, "_check_parameters"):
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
        reason = _refusal(cls, params)
        if reason:
            findings.add(where, f"solver {spec.name!r}: {reason}", place)
            if where[-1] == "params":
                return  # otherwise, each value of the grid would repeat the message


#: Why a solver refuses parameters, or an empty text, by class and the parameters as text.
_refusals: dict[tuple[Any, str], str] = {}
_MAX_REFUSALS = 10_000


def _refusal(solver: Any, params: dict[str, Any]) -> str:
    """Return why a solver refuses parameters, or an empty text."""
    key = solver, repr(params)
    if key not in _refusals:
        if len(_refusals) >= _MAX_REFUSALS:
            _refusals.clear()
        try:
            solver._check_parameters(solver(**params))
            _refusals[key] = ""
        except (ValueError, TypeError) as error:
            _refusals[key] = escape.line(error, 300) or type(error).__name__
    return _refusals[key]


def _check_dataset(place: ConfigPlace, dataset: DatasetSpec, findings: Findings) -> None:
    """Report an unknown data set."""
    from svmbench.data import parse_name

    if dataset.is_own:
        return
    if dataset.label_column:
        message = "is an option for a table, and this data set is no file"
        findings.add((*place, "label_column"), message, (*place, "label_column"))
    try:
        parse_name(dataset.name)
    except ConfigError as error:
        findings.add(place, str(error), place)


def check_files(draft: Draft, findings: Findings) -> None:
    """Report data files that are missing or can't be read."""
    config = draft.config
    assert config is not None
    for prefix, _, datasets in _lists(config):
        for i, dataset in enumerate(datasets):
            place = draft.place((*prefix, "datasets", i))
            where = (*place, "file")
            try:
                is_file = os.path.isfile(dataset.file)  # noqa: PTH113 - may be no valid path
            except ValueError:
                is_file = False
            if dataset.file and not is_file:
                findings.add(where, f"there is no file {shown(dataset.file)} here", place)
            elif dataset.file and not os.access(dataset.file, os.R_OK):
                findings.add(where, f"the file {shown(dataset.file)} can't be read", place)


def _is_available(name: str) -> bool:
    """Return True if a solver exists and is installed.

    A foreign class counts only if its module was imported before. A program always counts.
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
    """Return True if the module of a class is imported, so that loading the class runs no code."""
    return path.rpartition(".")[0] in sys.modules


def all_solvers(config: Config) -> list[SolverSpec]:
    """Return the config's solvers and the solvers of its blocks."""
    of_blocks = [spec for block in config.blocks for spec in getattr(block, "solvers", [])]
    return [*config.solvers, *of_blocks]


def all_datasets(config: Config) -> list[DatasetSpec]:
    """Return the config's data sets and the data sets of its blocks."""
    return [*config.datasets, *(spec for block in config.blocks for spec in block.datasets)]


def _check_params(
    place: ConfigPlace,
    params_of: Mapping[str, Mapping[str, Any]],
    called: Mapping[str, str],
    draft: Draft,
    findings: Findings,
) -> None:
    """Report unknown solvers and parameters under a key ``params``.

    Parameters
    ----------
    place : tuple
        The place of the data set or profile that has the key.
    params_of : mapping of str to mapping
        Parameters by a solver's `shown` (for a data set) or `called` (for a profile).
    called : mapping of str to str
        The names of all solvers of the config, by the same key.
    draft : Draft
    findings : Findings
    """
    from svmbench.baselines.catalogue import solver_class

    for name, params in params_of.items():
        where = (*place, "params", name)
        if name not in called:
            if not _is_lost(draft, "solvers", name):
                what = "no solver is called"
                message = f"{what} {shown(name)} here{suggestion(name, list(called))}"
                findings.add(where, message, place)
        elif _is_available(called[name]):  # otherwise it is unknown, or optional and not installed
            known = list(solver_class(called[name])._get_param_names())
            for param in params:
                if param not in known:
                    complaint = f"solver {name!r} has no parameter"
                    findings.unknown((*where, param), complaint, param, known, place)


def _check_placeholders(draft: Draft, findings: Findings) -> None:
    """Report placeholders in the commands of programs for which the config has no value."""
    from svmbench.baselines.catalogue import solver_class

    config = draft.config
    assert config is not None
    swept = {name.removeprefix("solver.") for name in _dimensions(config)}
    overriding = [dataset.params for dataset in all_datasets(config)]
    overriding += [profile.params for profile in config.profiles.values()]
    for prefix, specs, _ in _lists(config):
        for i, spec in enumerate(specs):
            if not is_program(spec.name):
                continue
            filled = {*spec.params, *spec.grid, *swept, "random_state"}
            filled |= {name for params in overriding for name in params.get(spec.shown, ())}
            place = draft.place((*prefix, "solvers", i))
            for parameter in solver_class(spec.name)._get_param_names():
                if parameter not in filled:
                    message = (
                        f"nothing gives a value for {{{parameter}}} (params or grid: {parameter})"
                    )
                    findings.add((*place, "program"), message, place)


def _chosen_datasets(profile: Profile) -> Iterator[tuple[ConfigPlace, str]]:
    """Yield the place and name of each data set that a profile keeps."""
    if isinstance(profile.datasets, dict):
        for block, names in profile.datasets.items():
            yield from (((block, i), name) for i, name in enumerate(names))
    else:
        yield from (((i,), name) for i, name in enumerate(profile.datasets or []))


def _is_lost(draft: Draft, kind: str, name: str) -> bool:
    """Return True if an item that could not be read may have this name."""
    return kind in draft.nameless or name in draft.lost.get(kind, ())


def _check_sweeps(draft: Draft, findings: Findings) -> None:
    """Report swept parameters that a solver of the block does not have."""
    from svmbench.baselines.catalogue import solver_class

    config = draft.config
    assert config is not None
    for i, block in enumerate(config.blocks):
        place = draft.place(("blocks", i))
        for dimension in getattr(block, "sweep", {}):
            parameter = dimension.removeprefix("solver.")
            for spec in config.solvers_of(block) if parameter != dimension else []:
                if not _is_available(spec.name):
                    continue
                known = list(solver_class(spec.name)._get_param_names())
                if parameter not in known:
                    what = f"solver {spec.name!r} has no parameter"
                    sweep_place = (*place, "sweep")
                    findings.unknown((*sweep_place, dimension), what, parameter, known, sweep_place)


def _check_profiles(draft: Draft, findings: Findings) -> None:
    """Report cuts of profiles that match nothing in the config."""
    config = draft.config
    assert config is not None
    versions = [config]
    # If an override removes a value that a profile cuts (--set datasets=[iris]), the profile is
    # still right: compare it with the config before the overrides, too.
    if findings.source.is_overridden:
        from svmbench.experiment.config.partial_parse import read_draft

        before = read_draft(dict(findings.source.data or {}), Findings(findings.source)).config
        versions += [before] if before else []
    specs = [spec for version in versions for spec in all_solvers(version)]
    datasets = list(
        dict.fromkeys(spec.name for version in versions for spec in all_datasets(version))
    )
    searched = list(dict.fromkeys(key for spec in specs for key in spec.grid))
    swept = list(dict.fromkeys(name for version in versions for name in _dimensions(version)))
    for name, profile in config.profiles.items():
        place: ConfigPlace = ("profiles", name)
        for where, dataset in _chosen_datasets(profile):
            if dataset not in datasets and not _is_lost(draft, "datasets", dataset):
                what = "this config has no data set"
                findings.unknown((*place, "datasets", *where), what, dataset, datasets, place)
        if isinstance(profile.datasets, dict) and not draft.lacks("blocks"):
            blocks = [block.name for version in versions for block in version.blocks]
            for block in (name for name in profile.datasets if name not in blocks):
                what = "this config has no block"
                findings.unknown((*place, "datasets", block), what, block, blocks, place)
        for key in profile.grid:
            if key not in searched and not _is_lost(draft, "grid", key):
                message = f"no solver searches {shown(key)} here{suggestion(key, searched)}"
                findings.add((*place, "grid", key), message, place)
        for key in profile.sweep:
            unsure = draft.lacks("blocks") or draft.lacks("datasets")
            if key not in swept and not (unsure or _is_lost(draft, "sweep", key)):
                message = f"no block sweeps {shown(key)} here{suggestion(key, swept)}"
                findings.add((*place, "sweep", key), message, place)
        _check_params(place, profile.params, {s.called: s.name for s in specs}, draft, findings)
        _check_cuts(place, profile, config, findings)


def _check_cuts(place: ConfigPlace, profile: Profile, config: Config, findings: Findings) -> None:
    """Report values of a profile that a block's protocol refuses, though another accepts them."""
    for name, value in profile.block_cuts().items():
        for block in config.blocks:
            if name not in type(block).model_fields:
                continue
            try:
                type(block).__pydantic_validator__.validate_assignment(
                    block.model_copy(), name, value
                )
            except ValidationError as error:
                message = f"block {block.name!r}: {sentence(error.errors()[0])}"
                findings.add((*place, name), message, (*place, name))


def _dimensions(config: Config) -> Iterator[str]:
    for block in config.blocks:
        if isinstance(block, TrainingBlock):
            for dataset in config.datasets_of(block):
                yield from block.swept(dataset)


def cross_check(draft: Draft, findings: Findings) -> None:
    """Report ambiguous names, broken references, and blocks without data sets or solvers."""
    config = draft.config
    assert config is not None
    _check_repeated(draft, (), config.datasets, findings)
    _check_repeated_solvers(draft, (), config.solvers, findings)
    names = [block.name for block in config.blocks]
    for i, block in enumerate(config.blocks):
        place = draft.place(("blocks", i))
        if block.name == PLACEHOLDER_BLOCK:
            continue
        if names.index(block.name) != i:
            message = f"another block is already called {shown(block.name)}"
            findings.add((*place, "name"), message, place)
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
            if isinstance(block, ChosenCV):
                _check_choosers(draft, place, block, solvers, findings)
        _check_scores(draft, place, block, declared, findings)
    _check_run_folds(draft, findings)


def _check_run_folds(draft: Draft, findings: Findings) -> None:
    """Report blocks, before and after profiles, that run more folds than they have."""
    config = draft.config
    assert config is not None
    for i, block in enumerate(config.blocks):
        wanted, folds = getattr(block, "run_folds", 0), getattr(block, "outer_folds", 0)
        repeats = getattr(block, "outer_repeats", 1)
        if not folds or block.name == PLACEHOLDER_BLOCK:
            continue
        places = [(draft.place(("blocks", i)), wanted, folds * repeats)]
        for name, profile in config.profiles.items():
            cuts = profile.block_cuts()
            run = cuts.get("run_folds", wanted)
            of_folds = cuts.get("outer_folds", folds) * cuts.get("outer_repeats", repeats)
            if (run, of_folds) != (wanted, folds * repeats):
                places.append((("profiles", name), run, of_folds))
        what = "outer_folds × outer_repeats" if repeats > 1 else "outer_folds"
        for place, run, of_folds in places:
            if run > of_folds:
                message = (
                    f"block {block.name!r} runs {run:,} folds (run_folds) of {of_folds:,} ({what})"
                )
                findings.add((*place, "run_folds"), message, place)


def _check_repeated_solvers(
    draft: Draft, prefix: ConfigPlace, specs: list[SolverSpec], findings: Findings
) -> None:
    """Report solvers of the same name, since tables couldn't distinguish their results."""
    names: set[str] = set()
    for i, spec in enumerate(specs):
        if spec.shown in names:
            place = draft.place((*prefix, "solvers", i))
            message = f"solver {spec.shown!r} stands twice; give one of them a label"
            findings.add(place, message, place)
        names.add(spec.shown)


def _check_named(
    draft: Draft, place: ConfigPlace, block: RaceBlock, known: list[str], findings: Findings
) -> None:
    """Report solvers in the settings of a race that don't take part in it."""
    for where, name in block.named():
        if name not in known and not _is_lost(draft, "solvers", name):
            message = f"no solver {shown(name)} to race{suggestion(name, known)}"
            findings.add((*place, *where), message, place)


def _check_grids(
    place: ConfigPlace, solvers: list[SolverSpec], declared: Protocol, findings: Findings
) -> None:
    """Report grids that the protocol can't use, and solvers without the grid that it needs."""
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


def _check_choosers(
    draft: Draft,
    place: ConfigPlace,
    block: ChosenCV,
    compared: list[SolverSpec],
    findings: Findings,
) -> None:
    """Report solvers that can't choose the point of another one, and their wrong parameters."""
    from svmbench.baselines.catalogue import solver_class, solvers

    grids = {spec.shown: spec.grid_points() for spec in compared}
    for name, chooser in block.choose_with.items():
        where = (*place, "choose_with", name)
        if name not in grids:
            if not _is_lost(draft, "solvers", name):
                message = f"no solver {shown(name)} to choose for{suggestion(name, list(grids))}"
                findings.add(where, message, where)
        elif chooser not in solvers():
            findings.unknown(where, "unknown solver", chooser, list(solvers()), where)
        elif not takes_part(
            solver_class(chooser), dict(block.choose_params.get(chooser, {})), grids[name]
        ):
            message = (
                f"solver {chooser!r} can't choose for {name!r}: it must take a kernel matrix (as"
                " csvc and lssvm do), with the RBF kernel and a grid over C and gamma"
            )
            findings.add(where, message, where)
    by_default = type(block).model_fields["select_by"].default
    if block.choose_with and block.select_by != by_default:
        message = f"points are chosen by {by_default} here, not by {shown(block.select_by)}"
        findings.add((*place, "select_by"), message, (*place, "select_by"))
    if block.choose_rows and not block.choose_with:
        message = "no solver chooses for another one here, so every search has all rows"
        findings.add((*place, "choose_rows"), message, (*place, "choose_rows"))
    for chooser, params in block.choose_params.items():
        where = (*place, "choose_params", chooser)
        if chooser not in block.choose_with.values():
            findings.add(where, f"solver {shown(chooser)} chooses for no solver", where)
        elif chooser in solvers():
            known = list(solver_class(chooser)._get_param_names())
            for name in params:
                if name not in known:
                    what = f"solver {chooser!r} has no parameter"
                    findings.unknown((*where, name), what, name, known, (*where, name))
            if reason := _refusal(
                solver_class(chooser), {k: v for k, v in params.items() if k in known}
            ):
                findings.add(where, f"solver {chooser!r}: {reason}", where)


def _check_programs(
    place: ConfigPlace, solvers: list[SolverSpec], declared: Protocol, findings: Findings
) -> None:
    """Report programs if the protocol can't time them."""
    for spec in solvers:
        if is_program(spec.name) and not declared.programs:
            findings.add(
                place,
                f"protocol {declared.name!r} can't time the program {spec.shown!r}; use a race, or"
                " give this block solvers of its own",
                place,
            )


def _check_scores(
    draft: Draft, place: ConfigPlace, block: TrainingBlock, declared: Protocol, findings: Findings
) -> None:
    """Report unknown scores, scores that the protocol ignores, and a task that it can't do."""
    if not declared.scores and place not in draft.guessed:
        for key in sorted({"scores", "select_by"} & block.model_fields_set):
            message = f"protocol {declared.name!r} has no scores, and the key does nothing"
            findings.add((*place, key), message, (*place, key))
    names = [((*place, "scores", i), name) for i, name in enumerate(block.scores)]
    for where, name in [*names, ((*place, "select_by"), block.select_by)]:
        if name not in scores.SCORES:
            findings.unknown(where, "unknown score", name, list(scores.SCORES), where)
    if block.task is not None and block.task not in declared.tasks and place not in draft.guessed:
        where = (*place, "task")
        message = f"protocol {declared.name!r} can't do the task {block.task!r}"
        findings.add(where, f"{message} (it can: {', '.join(declared.tasks)})", where)


def _check_repeated(
    draft: Draft, prefix: ConfigPlace, specs: list[DatasetSpec], findings: Findings
) -> None:
    """Report data sets of the same name, since tables couldn't distinguish their results."""
    first: dict[str, DatasetSpec] = {}
    for i, spec in enumerate(specs):
        earlier = first.setdefault(spec.name, spec)
        if earlier is not spec:
            place = draft.place((*prefix, "datasets", i))
            # A registered data set is found by its name; only a user's file can be renamed.
            remedy = "; give one of them a name" if earlier.is_own or spec.is_own else ""
            findings.add(place, f"data set {shown(spec.name)} stands twice{remedy}", place)
