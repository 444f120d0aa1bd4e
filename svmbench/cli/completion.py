"""Names for the shell's completion, found without importing what they name.

Importing every solver takes seconds; between two presses of a key there are tenths. So solvers
are read off their declarations in the source, and data sets off the keys of the registry's files.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from svmbench.base import paths

SHELLS = ("bash", "zsh", "fish")


def solver_names() -> list[str]:
    """Return the names of all declared solvers, those of ``SVMBENCH_PLUGINS`` included."""
    sources = [
        path
        for room in ("core", "baselines")
        for path in paths.PACKAGE.joinpath(room).rglob("*.py")
    ]
    sources += _plugins()
    return sorted({name for source in sources for name in _declared(source)})


def dataset_names() -> list[str]:
    """Return the names of all registered data sets, those of ``SVMBENCH_DATASETS`` included."""
    from svmbench.base.errors import ConfigError
    from svmbench.base.toml_source import read_toml

    further = filter(None, os.environ.get("SVMBENCH_DATASETS", "").split(os.pathsep))
    names: list[str] = []
    for place in (paths.asset("datasets.toml"), *map(paths.expanded, further)):
        try:
            entries = read_toml(place, place.name)
        except (OSError, ConfigError):
            continue
        names += [name for name in entries if name != "origin"]
    return names


def config_names() -> list[str]:
    """Return the names of the configs that ship with the package."""
    return sorted(path.stem for path in paths.asset("configs").glob("*.yaml"))


def _plugins() -> list[Path]:
    found = []
    for module in filter(None, os.environ.get("SVMBENCH_PLUGINS", "").split(",")):
        try:
            spec = importlib.util.find_spec(module.strip())
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin))
    return found


def _declared(source: Path) -> Iterator[str]:
    """Yield the names that a source file declares, as ``declare(name="…")`` writes them.

    A file with ``NEEDS = "package"`` declares nothing where that is not installed.
    """
    import ast

    try:
        text = source.read_text(encoding="utf-8")
        # Parsing is most of the cost, and most files declare nothing.
        tree = ast.parse(text) if "declare" in text else ast.Module([], [])
    except (OSError, SyntaxError):
        return
    for line in tree.body:
        if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "NEEDS":
            needed = ast.literal_eval(line.value)
            if importlib.util.find_spec(needed) is None:
                return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "declare":
            for keyword in node.keywords:
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
            from svmbench.papers import papers

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
