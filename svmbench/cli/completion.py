"""Names for the shell's completion, found without importing what they name.

Importing every solver takes seconds, and completion must answer within tenths of a second. So the
names of solvers are read from the declarations in the source, and the names of data sets from the
keys of the registry's files.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from svmbench.base import paths

SHELLS = ("bash", "zsh", "fish")


def solver_names() -> list[str]:
    """Return the names of all declared solvers and of installed plug-ins.

    An entry point doesn't say if its name is that of a solver, so completion offers all of them.
    """
    sources = [
        path
        for room in ("core", "baselines")
        for path in paths.PACKAGE.joinpath(room).rglob("*.py")
    ]
    from svmbench.base.plugin_names import installed_plugins

    sources += _plugins()
    declared = {name for source in sources for name in _declared(source)}
    return sorted(declared | set(installed_plugins()))


def dataset_names() -> list[str]:
    """Return the names of all registered data sets, those of ``SVMBENCH_DATASETS`` included."""
    from svmbench.base.errors import ConfigError
    from svmbench.base.toml_source import read_toml

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
    from svmbench.base.plugin_names import named_modules

    found = []
    for module in named_modules():
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin))
    return found


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


class SolverName(click.ParamType):
    """A solver's name, which the shell completes."""

    name = "solver"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the solvers that begin so."""
        return _beginning(solver_names(), incomplete)


class DatasetName(click.ParamType):
    """A data set's name, which the shell completes; also ``@PAPER`` where `papers` says so."""

    name = "dataset"

    def __init__(self, papers: bool = False) -> None:
        self.papers = papers

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the data sets, and papers, that begin so."""
        names = dataset_names()
        if self.papers and incomplete.startswith("@"):
            from svmbench.base.paper_folders import papers

            names = [f"@{paper}" for paper in papers()]
        return _beginning(names, incomplete)


class CardName(click.ParamType):
    """The name of a solver or a data set."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the solvers and data sets that begin so."""
        return _beginning([*solver_names(), *dataset_names()], incomplete)


class ConfigName(click.ParamType):
    """A config: the name of one that ships with the package, or a file."""

    name = "config"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the configs that begin so; where there are none, let the shell offer files."""
        return _beginning(config_names(), incomplete) or [CompletionItem(incomplete, type="file")]


def _beginning(names: list[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def script(shell: str, command: click.Command) -> str:
    """Return the script by which a shell asks this program for completions.

    Parameters
    ----------
    shell : str
        One of `SHELLS`.
    command : click.Command
        The whole command line.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise AssertionError(f"click knows no {shell}")
    # Not `source()`: for Bash that runs Bash to complain of its version, on every start of a shell.
    asking = made(command, {}, "svmbench", "_SVMBENCH_COMPLETE")
    return asking.source_template % asking.source_vars()
