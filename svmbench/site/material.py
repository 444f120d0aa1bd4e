"""What a site is made of, and how its files are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.papers.judging.verdict import Ages, Verdict
from svmbench.report.folders import bare_folders, run_folders

#: From a run folder to the words of its results: fresh, rechecked, changed, older.
Freshness = Callable[[Path], Ages]

#: The page of runs that belong to no paper.
OTHERS = "others"


@dataclass(frozen=True)
class SolverFacts:
    """What is known of a solver apart from what was measured.

    Attributes
    ----------
    facts : dict of str to str or list of str
        What it minimises, its source, its parameters …, by what each is called.
    deviations : tuple of str
        Where it departs from what is printed, a paragraph each.
    """

    facts: Mapping[str, str | Sequence[str]]
    deviations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Material:
    """What a site shows.

    Attributes
    ----------
    folders : tuple of Path
        Run folders, or folders that hold some at any depth.
    verdicts : tuple of Verdict
        On the papers' claims.
    papers : dict of str to str
        Citations, by the papers' keys.
    solvers : dict of str to SolverFacts
        By name.
    freshness : callable or None
        What says how results stand to the present code; None where nobody shall look.
    version : str
        Of this suite.
    """

    folders: tuple[Path, ...]
    verdicts: tuple[Verdict, ...] = ()
    papers: Mapping[str, str] = field(default_factory=dict)
    solvers: Mapping[str, SolverFacts] = field(default_factory=dict)
    freshness: Freshness | None = None
    version: str = ""


def find_runs(folders: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the run folders below some folders, and those that hold tables without records.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If a folder is not there, or there is nothing in any.
    """
    runs: dict[Path, Path] = {}
    bare: dict[Path, Path] = {}
    looked = list(folders)
    for folder in looked:
        if not folder.is_dir():
            raise ResultsError(f"{folder} is no folder of results")
        for run in run_folders(folder):
            runs.setdefault(run.resolve(), run)
        for place in bare_folders(folder):
            bare.setdefault(place.resolve(), place)
    if not runs:
        named = ", ".join(map(str, looked)) or "no folder"
        raise ResultsError(
            f"there is no run in {named}: give folders that 'svmbench run' wrote, or that hold some"
        )
    return list(runs.values()), list(bare.values())


class Names:
    """File names for names of unknown origin, each its own, the same in every build.

    Parameters
    ----------
    *reserved : str
        File names that no name gets.
    """

    def __init__(self, *reserved: str) -> None:
        self._given: dict[str, str] = {}
        self._reserved = reserved

    def __call__(self, name: str) -> str:
        """Return the file name of a name: its letters and digits, told from those before it."""
        if name not in self._given:
            stem = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:80] or "unnamed"
            taken, number, free = {*self._reserved, *self._given.values()}, 1, stem
            while free in taken:
                number += 1
                free = f"{stem}-{number}"
            self._given[name] = free
        return self._given[name]
