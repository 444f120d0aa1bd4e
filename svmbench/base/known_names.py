"""Names of solvers, data sets and configs, found without importing solvers.

Importing every solver takes seconds, and a shell's completion must answer within tenths of a
second. So the names of solvers are read from the declarations in the source files, and the names of
data sets from the keys of the registries.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from svmbench.base import paths
from svmbench.base.errors import ConfigError
from svmbench.base.plugin_names import installed_plugins, named_modules
from svmbench.base.toml_source import read_toml


def solver_names() -> list[str]:
    """Return the names of all declared solvers and of installed plug-ins.

    Plug-ins of other kinds than solvers are included, since an entry point doesn't tell its kind.
    """
    sources = [
        path
        for package in ("core", "baselines")
        for path in paths.PACKAGE.joinpath(package).rglob("*.py")
    ]
    sources += _plugins()
    declared = {name for source in sources for name in _declared(source)}
    return sorted(declared | set(installed_plugins()))


def dataset_names() -> list[str]:
    """Return the names of all registered data sets, also of those in ``SVMBENCH_DATASETS``."""
    names: list[str] = []
    for registry in paths.registry_files():
        try:
            entries = read_toml(registry, registry.name)
        except (OSError, ConfigError):
            continue
        names += [name for name in entries if name != "origin"]
    return names


def config_names() -> list[str]:
    """Return the names of the configs that ship with the package."""
    return [path.stem for path in paths.shipped_configs()]


def _plugins() -> list[Path]:
    files = []
    for module in named_modules():
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            files.append(Path(spec.origin))
    return files


def solver_modules() -> dict[str, str]:
    """Return the modules of the solvers of `svmbench.core`, by the names of their classes."""
    return {
        name: ".".join(("svmbench", *source.relative_to(paths.PACKAGE).with_suffix("").parts))
        for source in paths.PACKAGE.joinpath("core").rglob("*.py")
        for name in _DECLARED_CLASS.findall(source.read_text(encoding="utf-8"))
    }


#: A declared class, also with other decorators in between.
_DECLARED_CLASS = re.compile(r"^@declare\(.*?^class (\w+)", re.MULTILINE | re.DOTALL)
#: The decorator `declare` of a class, with its arguments.
_DECLARATION = re.compile(r"^@(declare\(.*?\))\s*^(?:@|class )", re.MULTILINE | re.DOTALL)


#: A call of `declare` under an ``if``, for an optional package; with its arguments.
_CONDITIONAL_DECLARATION = re.compile(
    r"^    (declare\(.*?^    \))\(\w+\)$", re.MULTILINE | re.DOTALL
)
#: The optional package that a file's conditional declaration needs.
_REQUIREMENT = re.compile(r"""^\w+_REQUIREMENT = ["'](\w+)["']$""", re.MULTILINE)


def _declared(source: Path) -> Iterator[str]:
    """Yield the names that a source file declares.

    A declaration is ``@declare(name="…")`` above a class. In a file with ``X_REQUIREMENT =
    "package"`` it is ``declare(name="…")(Class)`` under an ``if``, and counts if that package is
    installed. Only the calls of `declare` are parsed, which takes 15 ms of CPU time for all files;
    parsing whole files would take 110 ms.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    declarations = _DECLARATION.findall(text)
    needed = _REQUIREMENT.search(text)
    if needed and importlib.util.find_spec(needed[1]) is not None:
        declarations += _CONDITIONAL_DECLARATION.findall(text)
    for declaration in declarations:
        try:
            call = ast.parse(declaration, mode="eval").body
        except SyntaxError:
            continue
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)
