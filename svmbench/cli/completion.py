"""Types of arguments that a shell completes, and the completion scripts of the shells."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

SHELLS = ("bash", "zsh", "fish")


class SolverName(click.ParamType):
    """A solver's name, which the shell completes."""

    name = "solver"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the solvers that begin with the word."""
        from svmbench.base.known_names import solver_names

        return _beginning(solver_names(), incomplete)


class DatasetName(click.ParamType):
    """A data set's name, which the shell completes; with `papers`, also ``@PAPER``."""

    name = "dataset"

    def __init__(self, papers: bool = False) -> None:
        self.papers = papers

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the data sets, and papers, that begin with the word."""
        from svmbench.base.known_names import dataset_names

        names = dataset_names()
        if self.papers and incomplete.startswith("@"):
            from svmbench.base.paper_folders import papers

            names = [f"@{paper}" for paper in papers()]
        return _beginning(names, incomplete)


class FormatName(click.ParamType):
    """The name of an output format, or one of the names `beside`."""

    name = "format"

    def __init__(self, beside: tuple[str, ...] = ()) -> None:
        self.beside = beside

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail and suggest the nearest; load plug-ins for an unknown name."""
        if value in self.beside:
            return str(value)
        from svmbench.base.errors import suggestion
        from svmbench.baselines.catalogue import load_plugins
        from svmbench.report.output.formats import FORMATS

        if value not in FORMATS.names():
            load_plugins()
        known = [*self.beside, *FORMATS.names()]
        if value not in known:
            self.fail(f"there is no format {value!r}{suggestion(value, known)}", param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the formats that begin with the word."""
        from svmbench.report.output.formats import FORMATS

        return _beginning([*self.beside, *FORMATS.names()], incomplete)


class CardName(click.ParamType):
    """The name of a solver or a data set."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the solvers and data sets that begin with the word."""
        from svmbench.base.known_names import dataset_names, solver_names

        return _beginning([*solver_names(), *dataset_names()], incomplete)


class ConfigName(click.ParamType):
    """A config: the name of one that ships with the package, or a file."""

    name = "config"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the configs that begin with the word; without any, let the shell offer files."""
        from svmbench.base.known_names import config_names

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
