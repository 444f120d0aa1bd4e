"""Keys of cells: hashes of settings, data, and the code that decides the result.

The same key means the same result, so that a cell is not run again and `--reuse` may take it over
from another run. A key therefore covers the files of the solver and of the protocol with all that
they import from this package, and the versions of the other packages that those files call. Of a
protocol it is the file of the function that runs the cell: where rows come in blocks, or a solver
takes a kernel matrix, that may be another one (`declare.variant`). A name that is taken from a
module with a stub, as a plug-in takes it from `svmbench.plugins`, leads to the module that defines
the name.

A key leaves out what decides nothing: comments, docstrings and layout of those files
(`statements.py` hashes the rest), how data come to be (the content's hash stands for them), how a
config is read (its resolved settings stand for it), and everything that only shows results.
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
from typing import Any

from svmbench.base.paths import PACKAGE
from svmbench.experiment.plan import statements

#: Modules that a solver or a protocol may import and that decide none of its results.
DECIDES_NOTHING = (
    "svmbench.data",
    "svmbench.base.errors",
    "svmbench.base.escape",  # escapes text that a person reads
    "svmbench.base.paths",
    "svmbench.baselines.catalogue",
    "svmbench.baselines.certify",  # says how good a result is, and changes none
    "svmbench.core.contract.declaration",  # the form; what they say is in solvers' modules
    "svmbench.core.contract.docstrings",
    "svmbench.core.contract.sklearn_bases",  # types, pickles
    "svmbench.core.contract.registry",  # checks declarations, and leaves what they say as it is
    "svmbench.experiment.protocols.declare",  # the form; what they say is in protocols' modules
    "svmbench.experiment.settings.values",
    "svmbench.experiment.settings.blocks",
    "svmbench.experiment.settings.cells",
    "svmbench.schema.record",
)
#: Modules whose code runs in cells of more than two classes alone. They are followed where one of
#: the entries is the first, as it is of all such cells (`catalogue.modules_of`).
OF_SEVERAL_CLASSES = (
    "svmbench.core.models.multiclass",
    "svmbench.core.models.ovo_model",
    "svmbench.core.csvc.pairs",
)
#: Other people's packages that read settings.
READS_SETTINGS = {"pydantic", "yaml"}
#: Packages whose modules have another name; to look it up takes most of a second.
INSTALLED_BY = {
    "sklearn": "scikit-learn",
    "sklearnex": "scikit-learn-intelex",
    "liblinear": "liblinear-official",
    "libsvm": "libsvm-official",
}


def hash_of(value: Any) -> str:
    """Return a short hash of what JSON can hold."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@cache
def code_hash(*modules: str, absent: tuple[tuple[str, str], ...] = ()) -> str:
    """Return a hash of what some modules do: their statements, what they import, and versions.

    Parameters
    ----------
    *modules : str
        Dotted names: the module of a solver's class, that of a protocol's function.
    absent : tuple of (str, str), optional
        Versions to take for packages that aren't installed here. Default: none.
    """
    digest = hashlib.sha256()
    names = closure(*modules)
    # Sorted by what they do, not by name: a module may be moved.
    for one in sorted(_read(name).digest for name in names):
        digest.update(one.encode())
    for package, number in sorted({**versions(names), **dict(absent)}.items()):
        digest.update(f"{package} {number}\n".encode())
    return digest.hexdigest()[:20]


def file_hash(module: str) -> str:
    """Return a short hash of what a module's file decides.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    return _read(module).digest[:16]


def manifest(entries: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return the code of some cells: their modules, files and packages.

    Parameters
    ----------
    entries : iterable of sequences of str
        For each kind of cell the modules that decide it: those of its solvers and its protocol.

    Returns
    -------
    dict
        ``entries``, as they were given; ``files``, a hash of each module that they reach;
        ``packages``, the versions of the other packages that these call.
    """
    listed = [list(entry) for entry in entries]
    reached = closure(*sorted({module for entry in listed for module in entry}))
    return {
        "entries": listed,
        "files": {module: file_hash(module) for module in sorted(reached)},
        "packages": dict(sorted(versions(reached).items())),
    }


def closure(*modules: str) -> set[str]:
    """Return the modules and all those of this package that they reach by imports.

    Modules of one-vs-one are reached where it is one of the given modules.
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
    named = {*modules, *(name for module in modules for name in _imports(module))}
    called = {name.partition(".")[0] for name in named}
    outside = called - {"svmbench", "__future__"} - READS_SETTINGS - sys.stdlib_module_names
    return {package: _version(package) for name in outside for package in _distributions(name)}


@cache
def not_installed(*modules: str) -> tuple[str, ...]:
    """Return the packages outside this one that some modules reach and that are not installed."""
    return tuple(sorted(name for name, number in versions(closure(*modules)).items() if not number))


@cache
def _distributions(name: str) -> list[str]:
    """Return the distributions that install a top-level module; cached, for it takes 0.3 s.

    A module that isn't installed stands for its own distribution.
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
    """Return True for a module of this package that keys cover."""
    left_out = any(module == name or module.startswith(f"{name}.") for name in DECIDES_NOTHING)
    return _is_own(module) and not left_out


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return the modules that a module's file imports, wherever in it."""
    found: list[str] = []
    is_package = source_path(module).name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    for told, names in _read(module).imports:
        if told.startswith(".") and not names_own_module(module):
            continue
        imported = resolve_name(told, package) if told.startswith(".") else told
        face = _face(imported)
        if not names:
            # Which of a face's names are read is not known: all of them.
            found += [imported, *face.values()]
        for name in names:
            inside = f"{imported}.{name}"
            found.append(inside if _is_own(inside) else face.get(name, imported))
    return tuple(found)


@cache
def _face(module: str) -> dict[str, str]:
    """Return the modules that define the names that a stub beside a module's file lists.

    A module with a stub imports a name when it is first asked for: its own file doesn't say where
    from.
    """
    if module != PACKAGE.name and not names_own_module(module):
        return {}
    stub = source_path(module).with_suffix(".pyi")
    if not stub.exists():
        return {}
    package = module if stub.name == "__init__.pyi" else module.rpartition(".")[0]
    defined: dict[str, str] = {}
    for told, names in statements.kept_source(stub.read_bytes()).imports:
        origin = resolve_name(told, package)
        for name in names:
            inside = f"{origin}.{name}"
            defined[name] = inside if _is_own(inside) else origin
    return defined


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
    """Return True for a dotted name of this package, or of one in `INSTALLED_BY`.

    Where the modules of other packages lie is not known until they are imported.
    """
    return names_own_module(name) or name.partition(".")[0] in INSTALLED_BY


def forget() -> None:
    """Read files anew: they have changed while this process ran."""
    for cached in (code_hash, reaches, decides, _imports, _face, _read, _is_own, source_path):
        cached.cache_clear()
    _distributions.cache_clear()
    _version.cache_clear()


@cache
def source_path(module: str) -> Path:
    """Return a module's file, whether it is there or not."""
    package, *parts = module.split(".")
    if package == PACKAGE.name:
        path = PACKAGE.joinpath(*parts)
    elif module in sys.modules:
        # A plug-in lies wherever it was imported from.
        return Path(str(sys.modules[module].__file__))
    else:
        # Nothing is imported: to import scikit-learn takes longer than to judge all claims.
        spec = find_spec(package) if package in INSTALLED_BY else None
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"the module {module} is not here")
        path = Path(spec.origin).parent.joinpath(*parts)
    file = path.with_suffix(".py")
    return file if file.exists() else path / "__init__.py"
