"""The folders of papers, the model of ``paper.toml``, and the shipped configs as they are written.

A paper is a folder, whose name is the paper's key in configs and records:

    paper.toml        title, authors, venue; data sets; the names that its tables print
    published/*.csv   the numbers that it prints
    claims.toml       its claims, and the thresholds that decide them
    outcome.toml      the outcome in one sentence, and the verdicts that support it
    checks.py         the function that judges each claim
    datasets.toml     data sets that no other registry has, if any

The shipped folders are in ``svmbench/papers``. The environment variable ``SVMBENCH_PAPERS`` names
further folders, separated as in ``PATH``. Installed packages name further folders by entry points
of the group ``svmbench.papers``; the value is the folder's dotted path in the package. All files
except ``checks.py`` are data. This module imports no paper's code.
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
from svmbench.base.files import read_bytes
from svmbench.base.toml_source import read_toml

#: The profile of a config that is the paper's full protocol.
FULL_PROFILE = "paper"

#: Largest number of reported mistakes in one file.
_MAX_PROBLEMS = 50

_KEY = re.compile(r"[a-z][a-z0-9_-]{0,59}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Printed(_Strict):
    """The names that a paper uses; a name that is not listed is the same in this suite.

    Attributes
    ----------
    datasets : dict of str to tuple of str
        Printed name to the suite's names of exactly that data set.
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
        The paper's name in configs and records, which is the folder's name.
    folder : Path
    ships : bool
        Whether it ships with this package. The code of other papers runs only with ``--trust``.
    title : str
    authors : tuple of str
    venue : str, default=""
        Journal or conference, and year; empty for a preprint.
    url : str, default=""
        The address of the paper; empty if unknown.
    order : int, default=1000
        Papers are listed in the order of this number, then of their keys.
    claimed : str, default=""
        The paper's claims in one sentence.
    configs : tuple of str, default=()
        Names of the configs of its tables and figures, in the paper's order.
    datasets : dict of str to dict
        Its data sets by name, with printed facts: the fields of
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
    """Return all papers by key, in the order in which they are listed.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If a folder has no valid ``paper.toml``, or two papers have the same key; with all mistakes.
    """
    return _read(os.environ.get(paths.FURTHER_PAPERS, ""))


@cache
def _read(further: str) -> dict[str, Paper]:
    papers_by_key: dict[str, Paper] = {}
    problems: list[str] = []
    for folder, source in [*_shipped(), *_named(further), *_installed()]:
        try:
            paper = _paper(folder, source)
        except ConfigError as error:
            problems += error.problems
            continue
        if paper.key in papers_by_key:
            other = papers_by_key[paper.key].folder
            problems.append(f"{source}: the papers in {other} and {folder} have one key")
        else:
            papers_by_key[paper.key] = paper
    if problems:
        raise ConfigError(problems)
    return dict(sorted(papers_by_key.items(), key=lambda item: (item[1].order, item[0])))


def _shipped() -> Iterator[tuple[Path, str]]:
    for file in sorted((paths.PACKAGE / "papers").glob("*/paper.toml")):
        yield file.parent, ""


def _named(further: str) -> Iterator[tuple[Path, str]]:
    for name in filter(None, further.split(os.pathsep)):
        yield paths.expanded(name).resolve(), paths.FURTHER_PAPERS


def _installed() -> Iterator[tuple[Path, str]]:
    for entry in sorted(
        entry_points(group=paths.PAPERS_ENTRY_POINTS), key=lambda entry_point: entry_point.name
    ):
        package = entry.dist.name if entry.dist else "?"
        yield _folder_of(entry), f"the package {line(package, 60)}"


def _folder_of(entry: EntryPoint) -> Path:
    """Return the folder that an entry point names, without importing its package."""
    top, *parts = entry.value.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        spec = None
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0] if locations else top).joinpath(*parts)


def _paper(folder: Path, source: str) -> Paper:
    """Read a paper's folder; `source` says who named it, and is empty for a shipped folder."""
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
        paper_file = _PaperFile.model_validate(content)
    except ValidationError as error:
        from svmbench.base.validation_messages import sentence

        errors = error.errors()[:_MAX_PROBLEMS]
        raise ConfigError(
            [
                f"{shown}/paper.toml: {_prefix(mistake['loc'])}{sentence(mistake)}"
                for mistake in errors
            ]
        ) from None
    return Paper(**dict(paper_file), key=folder.name, folder=folder, ships=not source)


def _prefix(place: tuple[int | str, ...]) -> str:
    return f"{line('.'.join(map(str, place)), 100)}: " if place else ""


@cache
def shipped_config(name: str) -> Mapping[str, Any]:
    """Return a config that ships, as its file has it; empty for any other name.

    For readers that need a config's title, tables, data sets and profiles when no run of it may be
    kept. A block that names no data sets has those of the config.

    Parameters
    ----------
    name : str
    """
    import yaml

    path = paths.asset("configs") / f"{name}.yaml"
    if path.name != f"{name}.yaml" or not path.is_file():
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(read_bytes(path), loader)
    if not isinstance(content, Mapping):
        return {}
    shared = content.get("datasets")
    blocks = [
        {**block, "datasets": block.get("datasets") or shared}
        for block in content.get("blocks", [])
    ]
    return {**content, "blocks": blocks}


def dataset_names_of(block: Mapping[str, Any]) -> list[str]:
    """Return the names of the data sets of a block of `shipped_config`."""
    datasets = block.get("datasets") or []
    return [str(spec.get("name") if isinstance(spec, Mapping) else spec) for spec in datasets]
