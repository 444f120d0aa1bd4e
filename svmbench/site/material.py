"""The inputs of a site, and the names of its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from svmbench.base.errors import ResultsError
from svmbench.papers.judging.verdict import Verdict
from svmbench.report.reading.folders import bare_folders, runs_below
from svmbench.report.reading.records import Run
from svmbench.schema.rechecks import Ages


class AgesLookup(Protocol):
    """A function from a run folder to the words of its results: fresh, rechecked, changed, older.

    A caller that has read the folder's run passes it.
    """

    def __call__(self, folder: Path, run: Run | None = None) -> Ages:
        """Return the words."""


#: The page of runs that belong to no paper.
UNASSIGNED_PAGE = "others"


@dataclass(frozen=True)
class SolverFacts:
    """Facts about a solver, besides its results.

    Attributes
    ----------
    facts : dict of str to str or list of str
        Problem, source, parameters …, by title.
    deviations : tuple of str
        Deviations from the paper, a paragraph each.
    """

    facts: Mapping[str, str | Sequence[str]]
    deviations: tuple[str, ...] = ()


@dataclass(frozen=True)
class PaperFacts:
    """Facts about a paper.

    Attributes
    ----------
    title, citation : str
    configs : tuple of str
        Configs of its tables and figures, in the paper's order. Runs of other configs stand on a
        page of their own; if it is empty, all runs stand on the paper's page.
    claimed : str
        What it claims, in a sentence; empty where nobody said it.
    url : str
        Where it can be read; empty if that is not known.
    """

    title: str
    citation: str
    configs: tuple[str, ...] = ()
    claimed: str = ""
    url: str = ""


@dataclass(frozen=True)
class Material:
    """The inputs of a site.

    Attributes
    ----------
    folders : tuple of Path
        Run folders, or folders with run folders at any depth.
    verdicts : tuple of Verdict
        Verdicts on the papers' claims.
    papers : dict of str to PaperFacts
        Facts by the keys of the papers.
    solvers : dict of str to SolverFacts
        Facts by the names of solvers.
    variants : dict of (str, str) to str
        Name of the solver by the config and the label that the config gives it.
    datasets : dict of str to dict of str to object
        Facts by the names of data sets: rows, features, licence …
    repository : str
        Address of the repository; empty if the project names none.
    ages_of_run : callable or None
        Tells how old the results of a run folder are; None if the site shows no ages.
    version : str
        Version of this suite.
    """

    folders: tuple[Path, ...]
    verdicts: tuple[Verdict, ...] = ()
    papers: Mapping[str, PaperFacts] = field(default_factory=dict)
    solvers: Mapping[str, SolverFacts] = field(default_factory=dict)
    variants: Mapping[tuple[str, str], str] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    repository: str = ""
    ages_of_run: AgesLookup | None = None
    version: str = ""

    def declared(self, config: str, label: str) -> str:
        """Return the name of the solver behind a label of a config, or the label itself."""
        return label if label in self.solvers else self.variants.get((config, label), label)


def find_runs(folders: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the run folders below some folders, and the folders with tables without records.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If a folder is missing, or no folder has runs.
    """
    searched = list(folders)
    runs = runs_below(searched)
    bare: dict[Path, Path] = {}
    for folder in searched:
        for with_tables in bare_folders(folder):
            bare.setdefault(with_tables.resolve(), with_tables)
    if not runs:
        names = ", ".join(map(str, searched)) or "no folder"
        raise ResultsError(
            f"there is no run in {names}: name folders that 'svmbench run' wrote, or their parents"
        )
    return list(runs.values()), list(bare.values())


class Names:
    """Unique file names for untrusted names, the same in every build.

    Parameters
    ----------
    *reserved : str
        File names that must not be used.
    """

    def __init__(self, *reserved: str) -> None:
        self._given: dict[str, str] = {}
        self._reserved = reserved

    def __call__(self, name: str) -> str:
        """Return a file name from the letters and digits of a name, unique among earlier ones."""
        if name not in self._given:
            stem = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:80] or "unnamed"
            taken, number, free = {*self._reserved, *self._given.values()}, 1, stem
            while free in taken:
                number += 1
                free = f"{stem}-{number}"
            self._given[name] = free
        return self._given[name]
