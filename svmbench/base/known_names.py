"""Names of solvers, data sets and configs, found without importing what they name.

Importing every solver takes seconds, and a shell's completion must answer within tenths of a
second. So the names of solvers are read from the declarations in the source, and the names of data
sets from the keys of the registry's files.
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

    An entry point doesn't say if its name is that of a solver, so completion offers all of them.
    """
    sources = [
        path
        for room in ("core", "baselines")
        for path in paths.PACKAGE.joinpath(room).rglob("*.py")
    ]
    sources += _plugins()
    declared = {name for source in sources for name in _declared(source)}
    return sorted(declared | set(installed_plugins()))


def dataset_names() -> list[str]:
    """Return the names of all registered data sets, those of ``SVMBENCH_DATASETS`` included."""
    names: list[str] = []
    for place in paths.registry_files():
        try:
            entries = read_toml(place, place.name)
        except (OSError, ConfigError):
            continue
        names += [name for name in entries if name != "origin"]
    return names


def config_names() -> list[str]:
    """Return the names of the configs that ship with the package."""
    return [path.stem for path in paths.shipped_configs()]


def _plugins() -> list[Path]:
    found = []
    for module in named_modules():
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin))
    return found


def solver_modules() -> dict[str, str]:
    """Return the modules of the solvers of `svmbench.core`, by the names of their classes."""
    return {
        name: ".".join(("svmbench", *source.relative_to(paths.PACKAGE).with_suffix("").parts))
        for source in paths.PACKAGE.joinpath("core").rglob("*.py")
        for name in _DECLARED_CLASS.findall(source.read_text(encoding="utf-8"))
    }


#: A declared class, with its other decorators between.
_DECLARED_CLASS = re.compile(r"^@declare\(.*?^class (\w+)", re.MULTILINE | re.DOTALL)
#: A decorator of a class; and the package without which a file declares nothing.
_DECLARATION = re.compile(r"^@(declare\(.*?\))\s*^(?:@|class )", re.MULTILINE | re.DOTALL)


_NEEDS = re.compile(r"""^NEEDS = ["'](\w+)["']""", re.MULTILINE)


def _declared(source: Path) -> Iterator[str]:
    """Yield the names that a source file declares, as ``@declare(name="…")`` above a class.

    A file with ``NEEDS = "package"`` declares nothing where that is not installed. The decorators
    alone are parsed: all files together take 15 ms of CPU time so, and 110 ms parsed whole.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    needed = _NEEDS.search(text)
    if needed and importlib.util.find_spec(needed[1]) is None:
        return
    for decorator in _DECLARATION.findall(text):
        try:
            call = ast.parse(decorator, mode="eval").body
        except SyntaxError:
            continue
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)
