"""Papers as folders: their places, and the model of ``paper.toml``.

A paper is one folder, whose name is the paper's key in configs and records:

    paper.toml        title, authors, venue; the data sets; what its tables call things
    published/*.csv   the numbers that it prints
    claims.toml       what it claims, and the thresholds that decide it
    outcome.toml      what came of it in one sentence, and the verdicts that this rests on
    checks.py         the function that judges each claim
    datasets.toml     data sets that no other registry has, if it needs any

The folders that ship lie in ``svmbench/papers``. Further folders are named by the environment
variable ``SVMBENCH_PAPERS`` (separated as those of ``PATH`` are), and by installed packages, as
entry points of the group ``svmbench.papers``: the value is the folder's dotted path in the package.
All files but ``checks.py`` are data; nothing is imported here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from svmbench.base import paths
from svmbench.base.errors import ConfigError
from svmbench.base.escape import line
from svmbench.base.toml_source import read_toml

#: The profile of a config that is the paper's full protocol.
FULL_PROFILE = "paper"

#: Largest number of reported mistakes in one file.
_MOST_PROBLEMS = 50

_KEY = re.compile(r"[a-z][a-z0-9_-]{0,59}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Printed(_Strict):
    """The names that a paper uses; a name that is not listed is the same in this suite.

    Attributes
    ----------
    datasets : dict of str to tuple of str
        Printed name to the suite's names for exactly that set.
    solvers : dict of str to tuple of str
        Printed name to the suite's: one name, or several settings of one solver.
    metrics : dict of str to dict of str to str
        By table: printed metric to the suite's metric.
    subsets : dict of str to (str, int)
        A data set of the suite that is one size of a printed sweep: (printed name, printed size).
    sizes : dict of int to int
        Row counts of the suite's files that the paper prints differently.
    """

    datasets: Mapping[str, tuple[str, ...]] = {}
    solvers: Mapping[str, tuple[str, ...]] = {}
    metrics: Mapping[str, Mapping[str, str]] = {}
    subsets: Mapping[str, tuple[str, int]] = {}
    sizes: Mapping[int, int] = {}


class _PaperFile(_Strict):
    title: str
    authors: tuple[str, ...]
    venue: str = ""
    url: Annotated[str, Field(pattern=r"^(https://\S+)?$", max_length=500)] = ""
    order: int = 1000
    claimed: str = ""
    configs: tuple[str, ...] = ()
    datasets: Mapping[str, Mapping[str, Any]] = {}
    printed: Printed = Printed()


class Paper(_PaperFile):
    """One paper.

    Attributes
    ----------
    key : str
        Its name in configs and records: that of its folder.
    folder : Path
    ships : bool
        Whether it ships with this package. The code of any other paper runs with ``--trust`` alone.
    title : str
    authors : tuple of str
    venue : str, default=""
        Where and when it appeared; empty for a preprint.
    url : str, default=""
        Where it can be read; empty if that is not known.
    order : int, default=1000
        Papers are listed by this number, and then by key.
    claimed : str, default=""
        What it claims, in a sentence.
    configs : tuple of str, default=()
        Configs of its tables and figures, in its order.
    datasets : dict of str to dict
        The data sets that it uses, with what it prints of each: fields of
        :class:`svmbench.data.entries.Statement`.
    printed : Printed
    """

    key: str
    folder: Path
    ships: bool

    @property
    def citation(self) -> str:
        """Authors, title and venue in one line."""
        end = f". {self.venue}" if self.venue else " (preprint)"
        return f"{', '.join(self.authors)}: {self.title}{end}"


def papers() -> dict[str, Paper]:
    """Return every paper by its key, in the order in which they are listed.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For a folder without a ``paper.toml`` that can be read, and for two papers of one key: all
        mistakes at once.
    """
    return _read(os.environ.get(paths.FURTHER_PAPERS, ""))


@cache
def _read(further: str) -> dict[str, Paper]:
    found: dict[str, Paper] = {}
    problems: list[str] = []
    for folder, source in [*_shipped(), *_named(further), *_installed()]:
        try:
            paper = _paper(folder, source)
        except ConfigError as error:
            problems += error.problems
            continue
        if paper.key in found:
            other = found[paper.key].folder
            problems.append(f"{source}: the papers in {other} and {folder} have one key")
        else:
            found[paper.key] = paper
    if problems:
        raise ConfigError(problems)
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def _shipped() -> Iterator[tuple[Path, str]]:
    for file in sorted((paths.PACKAGE / "papers").glob("*/paper.toml")):
        yield file.parent, ""


def _named(further: str) -> Iterator[tuple[Path, str]]:
    for name in filter(None, further.split(os.pathsep)):
        yield paths.expanded(name).resolve(), paths.FURTHER_PAPERS


def _installed() -> Iterator[tuple[Path, str]]:
    for entry in sorted(entry_points(group=paths.PAPERS_ENTRY_POINTS), key=lambda one: one.name):
        package = entry.dist.name if entry.dist else "?"
        yield _place(entry), f"the package {line(package, 60)}"


def _place(entry: EntryPoint) -> Path:
    """Return the folder that an entry point names, without importing its package."""
    top, *parts = entry.value.split(".")
    try:
        found = find_spec(top)
    except (ImportError, ValueError):
        found = None
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0] if places else top).joinpath(*parts)


def _paper(folder: Path, source: str) -> Paper:
    """Read one folder; `source` says who named it, and is empty for those that ship."""
    shown = f"{source}: {line(folder, 200)}" if source else folder.name
    if not _KEY.fullmatch(folder.name):
        raise ConfigError(
            f"{shown}: a paper's folder has its key as name: small letters, digits, '-' and '_'"
        )
    try:
        content = read_toml(folder / "paper.toml", f"{shown}/paper.toml")
    except OSError as error:
        raise ConfigError(f"{shown}: can't read paper.toml: {error.strerror or error}") from None
    try:
        read = _PaperFile.model_validate(content)
    except ValidationError as error:
        from svmbench.base.validation_messages import sentence

        said = error.errors()[:_MOST_PROBLEMS]
        raise ConfigError(
            [f"{shown}/paper.toml: {_where(one['loc'])}{sentence(one)}" for one in said]
        ) from None
    return Paper(**dict(read), key=folder.name, folder=folder, ships=not source)


def _where(place: tuple[int | str, ...]) -> str:
    return f"{line('.'.join(map(str, place)), 100)}: " if place else ""
