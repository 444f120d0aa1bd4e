"""Options, and types of their values, that several commands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A number in a range; neither ``nan``, which no range excludes, nor ``inf``."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail with a sentence."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def jobs_option(what: str) -> Callable[[_Function], _Function]:
    """Return the option `--jobs` with this help."""
    return click.option(
        "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help=what
    )


#: For limits and tolerances of all commands.
POSITIVE_NUMBER = FiniteRange(min=0, min_open=True)
ANY_PATH = click.Path(path_type=Path)


LABEL = click.option(
    "--label",
    metavar="COLUMN",
    help="Column that has the class. A file is then a table with a header.",
)
TEXT = click.option(
    "--text",
    type=click.Choice(["one-hot", "ordinal"]),
    help="Encoding of the columns of words.  [default: one-hot]",
)
IMPUTE = click.option(
    "--impute", is_flag=True, help="Fill in missing values instead of refusing them."
)

_USUAL_FORM = {"sep": "", "encoding": "", "decimal": ".", "drop": (), "na_values": ()}
_FORM = (
    click.option(
        "--sep",
        metavar="CHAR",
        default="",
        help="Separator of a table's columns.  [default: by the file's header]",
    ),
    click.option("--encoding", default="", help="Encoding of a table's text.  [default: UTF-8]"),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="Decimal sign of a table.",
    ),
    click.option(
        "--no-header",
        is_flag=True,
        help="The first row of a table is data; columns are 1, 2, 3 …",
    ),
    click.option(
        "--drop", multiple=True, metavar="COLUMN", help="Leave out a table's column; repeatable."
    ),
    click.option(
        "--na",
        "na_values",
        multiple=True,
        metavar="MARK",
        help="A mark of missing values, such as -999; repeatable.",
    ),
)


def table_form(command: Callable[..., Any]) -> Any:
    """Add the options that say how a table is written; the command gets a `TableForm` as `form`.

    Without any of them, `form` is None.
    """

    @functools.wraps(command)
    def called(no_header: bool, **given: Any) -> Any:
        keywords = {name: given.pop(name) for name in _USUAL_FORM}
        form = None
        if no_header or keywords != _USUAL_FORM:
            from svmbench.data.frames import TableForm

            form = TableForm.of(**keywords, header=not no_header)
        return command(**given, form=form)

    for option in reversed(_FORM):
        called = option(called)
    return called


RESULTS = click.argument("results", nargs=-1, type=ANY_PATH)
CLAIMS_FILE = click.option(
    "--claims",
    "file",
    type=ANY_PATH,
    metavar="FILE",
    help="Read claims and limits from this file instead of the package's.",
)
AGES = click.option(
    "--ages/--no-ages",
    default=True,
    show_default=True,
    help="Show which results are fresh, rechecked, changed or older.",
)
#: Options of commands that run cells; other commands that import classes have TRUST, too.
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print errors and the final summary only.")
TRUST = click.option(
    "--trust",
    is_flag=True,
    help="Allow classes from outside scikit-learn to be imported, and programs to be run.",
)
TRUST_CHECKS = click.option(
    "--trust", is_flag=True, help="Run the checks of papers that don't ship with the package."
)
MIRROR = click.option(
    "--mirror",
    metavar="DIR_OR_URL",
    envvar="SVMBENCH_MIRROR",
    show_envvar=True,
    help="Folder or URL of data files, named as at their source; plain, .xz, .bz2 or .gz.",
)
#: The value of ``--jobs auto``.
AUTO = 0


class Jobs(click.IntRange):
    """A number of at least 1, or ``auto``."""

    name = "number or auto"

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, `AUTO` for the word, or fail with a sentence."""
        return AUTO if value == "auto" else int(super().convert(value, param, ctx))


JOBS = jobs_option("Number of cells run at a time. Above 1, times are marked as contended.")
CLUSTER = click.option(
    "--cluster",
    default="",
    metavar="ADDRESS",
    help="Run cells on workers of a Dask scheduler (tcp://host:8786), or on N new ones (local:N).",
)
WORKER_KIND = click.option(
    "--kind",
    default="",
    metavar="KIND",
    help="Run timed cells only on workers with this CPU model or value of SVMBENCH_KIND.",
)
RETRY = click.option(
    "--retry",
    type=click.Choice(["none", "failed", "timeout", "all", "disturbed"]),
    default="none",
    show_default=True,
    help="Retry cells that failed or timed out in an earlier run, or whose training was disturbed"
    " by other programs.",
)
