"""Keys of cells: hashes of settings, data, and the code that decides the result.

Cells with the same key have the same result, so that a cell is not run again, and `--reuse` may
copy its result from another run. A key therefore covers the files of the solver and of the
protocol, all files that they import from this package, and the versions of the other packages that
these files import. A protocol's file is the one with the function that runs the cell; rows in
blocks and kernel matrices may need another function (`declare.variant`). A name that is imported
from a module with a stub, such as `svmbench.plugins`, leads to the module that defines the name.

A key doesn't cover code that decides no result: comments, docstrings and layout of these files
(`statements.py` hashes the rest), the preparation of data (the key has a hash of the content), the
reading of configs (the key has the resolved settings), and everything that only shows results.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.base.paths import PACKAGE
from svmbench.experiment.plan import statements

if TYPE_CHECKING:
    from svmbench.experiment.settings.cells import CellSpec

#: Modules that solvers and protocols may import, but that decide no result.
DECIDES_NOTHING = (
    "svmbench.data",
    "svmbench.base.errors",
    "svmbench.base.escape",  # escapes text that a person reads
    "svmbench.base.paths",
    "svmbench.baselines.catalogue",
    "svmbench.baselines.certify",  # bounds the error of a result, and changes none
    "svmbench.core.contract.declaration",  # the class; declarations are in solvers' modules
    "svmbench.core.contract.docstrings",
    "svmbench.core.contract.sklearn_bases",  # types, pickles
    "svmbench.core.contract.registry",  # checks declarations, and doesn't change them
    "svmbench.experiment.protocols.declare",  # the class; declarations are in protocols' modules
    "svmbench.experiment.settings.values",
    "svmbench.experiment.settings.blocks",
    "svmbench.experiment.settings.cells",
    "svmbench.schema.record",
)
#: Modules whose code runs only in cells with more than two classes. The closure includes them only
#: if the first is one of its entries, as for all such cells (`catalogue.modules_of_solvers`).
OF_SEVERAL_CLASSES = (
    "svmbench.core.models.multiclass",
    "svmbench.core.models.ovo_model",
    "svmbench.core.csvc.pairs",
    "svmbench.core.nu.nu_pairs",
)
#: Packages that only read settings; keys don't cover their versions.
READS_SETTINGS = {"pydantic", "yaml"}
#: Distributions whose modules have other names. Looking them up would take most of a second.
INSTALLED_BY = {
    "sklearn": "scikit-learn",
    "sklearnex": "scikit-learn-intelex",
    "liblinear": "liblinear-official",
    "libsvm": "libsvm-official",
}


def hash_of(value: Any) -> str:
    """Return a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@cache
def code_hash(*modules: str, absent: tuple[tuple[str, str], ...] = ()) -> str:
    """Return a hash of the code of some modules, of all that they import, and of versions.

    Parameters
    ----------
    *modules : str
        Dotted names, such as those of a solver's and a protocol's module.
    absent : tuple of (str, str), optional
        Names and assumed versions of packages that aren't installed here. Default: none.
    """
    digest = hashlib.sha256()
    names = closure(*modules)
    # Sorted by hash, not by name: a module may be moved.
    for file_digest in sorted(_read(name).digest for name in names):
        digest.update(file_digest.encode())
    for package, number in sorted({**versions(names), **dict(absent)}.items()):
        digest.update(f"{package} {number}\n".encode())
    return digest.hexdigest()[:20]


def file_hash(module: str) -> str:
    """Return a short hash of a module's statements.

    Raises
    ------
    FileNotFoundError
        If there is no such module.
    """
    return _read(module).digest[:16]


def manifest(entries: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return a manifest of the code of some cells.

    Parameters
    ----------
    entries : iterable of sequences of str
        For each kind of cell, the modules of its solvers and its protocol.

    Returns
    -------
    dict
        ``entries``, as lists; ``files``, the hash of each module that they reach by imports;
        ``packages``, the versions of the other packages that these modules import.
    """
    listed = [list(entry) for entry in entries]
    reached = closure(*sorted({module for entry in listed for module in entry}))
    return {
        "entries": listed,
        "files": {module: file_hash(module) for module in sorted(reached)},
        "packages": dict(sorted(versions(reached).items())),
    }


def closure(*modules: str) -> set[str]:
    """Return the modules and all modules of this package that they reach by imports.

    The modules in `OF_SEVERAL_CLASSES` are included only if the first is one of the given modules.
    """
    has_several = OF_SEVERAL_CLASSES[0] in modules
    seen = set() if has_several else set(OF_SEVERAL_CLASSES)
    todo = list(modules)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += filter(decides, _imports(name))
    return seen if has_several else seen - set(OF_SEVERAL_CLASSES)


@cache
def reaches(module: str, other: str) -> bool:
    """Return True if a module imports another one, directly or through others."""
    return other in closure(module)


def versions(modules: set[str]) -> dict[str, str]:
    """Return the versions of the packages outside this one that some modules import."""
    names = {*modules, *(name for module in modules for name in _imports(module))}
    called = {name.partition(".")[0] for name in names}
    outside = called - {"svmbench", "__future__"} - READS_SETTINGS - sys.stdlib_module_names
    return {package: _version(package) for name in outside for package in _distributions(name)}


@cache
def not_installed(*modules: str) -> tuple[str, ...]:
    """Return the packages outside this one that some modules reach and that are not installed."""
    return tuple(sorted(name for name, number in versions(closure(*modules)).items() if not number))


@cache
def _distributions(name: str) -> list[str]:
    """Return the distributions that install a top-level module; cached, since it takes 0.3 s.

    The distribution of a module that isn't installed is assumed to have the module's name.
    """
    if name in INSTALLED_BY:
        return [INSTALLED_BY[name]]
    if _version(name) or find_spec(name) is None:
        return [name]
    return sorted(set(packages_distributions().get(name, []))) or [name]


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def decides(module: str) -> bool:
    """Return True if a module belongs to this package and keys cover it."""
    left_out = any(module == name or module.startswith(f"{name}.") for name in DECIDES_NOTHING)
    return _is_own(module) and not left_out


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return the modules that a module's file imports, also inside functions."""
    modules: list[str] = []
    is_package = source_path(module).name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    for stated, names in _read(module).imports:
        if stated.startswith(".") and not names_own_module(module):
            continue
        imported = resolve_name(stated, package) if stated.startswith(".") else stated
        stub = _stub_names(imported)
        if not names:
            # All names of the stub, since any of them may be used.
            modules += [imported, *stub.values()]
        for name in names:
            inside = f"{imported}.{name}"
            modules.append(inside if _is_own(inside) else stub.get(name, imported))
    return tuple(modules)


@cache
def _stub_names(module: str) -> dict[str, str]:
    """Return the names in a module's stub, each with the module that defines it.

    A module with a stub imports a name when it is first used, and only the stub says from where.
    """
    if module != PACKAGE.name and not names_own_module(module):
        return {}
    stub_file = source_path(module).with_suffix(".pyi")
    if not stub_file.exists():
        return {}
    package = module if stub_file.name == "__init__.pyi" else module.rpartition(".")[0]
    defined_in: dict[str, str] = {}
    for stated, names in statements.kept_source(stub_file.read_bytes()).imports:
        origin = resolve_name(stated, package)
        for name in names:
            inside = f"{origin}.{name}"
            defined_in[name] = inside if _is_own(inside) else origin
    return defined_in


@cache
def _read(module: str) -> statements.ParsedSource:
    return statements.kept_source(source_path(module).read_bytes())


@cache
def _is_own(module: str) -> bool:
    return names_own_module(module) and source_path(module).exists()


def names_own_module(name: str) -> bool:
    """Return True for a dotted name of this package."""
    package, *parts = name.split(".")
    return package == "svmbench" and bool(parts) and all(map(str.isidentifier, parts))


def is_known(name: str) -> bool:
    """Return True for a module of this package or of a package in `INSTALLED_BY`.

    The files of modules of other packages are unknown until they are imported.
    """
    return names_own_module(name) or name.partition(".")[0] in INSTALLED_BY


def forget() -> None:
    """Clear the caches, after files have changed while this process ran."""
    of_files = (code_hash, reaches, decides, _imports, _stub_names, _read, _is_own, source_path)
    for cached in (*of_files, not_installed, _distributions, _version):
        cached.cache_clear()


@cache
def source_path(module: str) -> Path:
    """Return the path of a module's file, which may be missing."""
    package, *parts = module.split(".")
    if package == PACKAGE.name:
        path = PACKAGE.joinpath(*parts)
    elif module in sys.modules:
        # A plug-in, which has been imported.
        return Path(str(sys.modules[module].__file__))
    else:
        # Don't import the module: importing scikit-learn takes longer than judging all claims.
        spec = find_spec(package) if package in INSTALLED_BY else None
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"the module {module} is not here")
        path = Path(spec.origin).parent.joinpath(*parts)
    file = path.with_suffix(".py")
    return file if file.exists() else path / "__init__.py"


def modules_of(spec: CellSpec) -> tuple[str, ...]:
    """Return the modules whose code decides a cell: its solvers', its protocol's, its scores'."""
    modules = [module for kind in kinds_of(spec) for module in modules_of_kind(*kind)]
    return tuple(dict.fromkeys(modules))


def kinds_of(spec: CellSpec) -> list[tuple[str, ...]]:
    """Return the arguments of :func:`code_of` for each solver of a cell; one tuple without any."""
    from svmbench.experiment.protocols import input_form_of, solvers_in

    context = spec["protocol"], spec.get("task", "binary"), input_form_of(spec)
    score_names = [*spec.get("scores", []), *([spec["select_by"]] if "select_by" in spec else [])]
    return [(name, *context, *dict.fromkeys(score_names)) for name in solvers_in(spec) or [""]]


def modules_of_kind(
    solver: str, protocol: str, task: str, input_form: str, *score_names: str
) -> tuple[str, ...]:
    """Return the modules whose code decides one kind of cell; see :func:`code_of`."""
    from svmbench.baselines.catalogue import modules_of_solvers
    from svmbench.experiment.protocols import protocols
    from svmbench.schema import scores

    modules = [protocols()[protocol].function(input_form).__module__]
    # Some protocols have no scores.
    if reaches(modules[0], scores.contract.__name__):
        modules += [scores.find(name).function.__module__ for name in score_names]
    return tuple(dict.fromkeys([*(modules_of_solvers(solver, task) if solver else ()), *modules]))


def code_of(solver: str, protocol: str, task: str, input_form: str, *score_names: str) -> str:
    """Return a hash of the code of one kind of cell; for a program, with a hash of its files.

    Parameters
    ----------
    solver : str
        The solver's name; empty if nothing is trained.
    protocol : str
        The protocol's name.
    task : str
        ``"binary"``, ``"multiclass"`` or ``"one-class"``.
    input_form : str
        See `input_form_of`.
    *score_names : str
        The names of the cell's scores.
    """
    from svmbench.baselines.catalogue import solver_class
    from svmbench.baselines.templates import is_program

    code = code_hash(*modules_of_kind(solver, protocol, task, input_form, *score_names))
    return f"{code} {solver_class(solver).commands.fingerprint()}" if is_program(solver) else code
