"""Comparison of kept results with the present code.

A plan holds the code of its cells (`keys.manifest`): for each cell the modules of its solvers and
of its protocol, and a hash or version of every file and package that they reach. A kept plan is
compared with the present files. Who
renames a module renames it in the entries of the kept plans. The keys of a plan
without a manifest hash the code in an earlier way, so that none of its cells is fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from svmbench.base.errors import DamagedResultsError
from svmbench.base.files import read_json
from svmbench.experiment.plan.keys import (
    closure,
    code_hash,
    file_hash,
    is_known,
    not_installed,
    versions,
)
from svmbench.schema.rechecks import Recheck

#: Largest number of files named in a sentence.
_MOST_NAMED_FILES = 3

#: What identifies a cell in two plans of one config.
_IDENTITY = ("block", "protocol", "dataset", "solver", "kernel", "fold", "dimensions")

#: Sentence on the cells of a plan without a manifest.
NO_MANIFEST = "its plan doesn't name the code"


def changes(folder: Path) -> dict[str, str]:
    """Return the changes of code since each cell of a run folder was measured.

    Parameters
    ----------
    folder : Path
        A run folder with its plan.

    Returns
    -------
    dict of str to str
        By the cell's key a sentence without its full stop, empty where nothing has changed. Keys of
        cells whose code is unknown, such as those of a plug-in, are left out.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If the plan can't be read.
    """
    try:
        plan = read_json(folder / "plan.json")
        cells = list(plan["cells"])
        if plan.get("code") is not None:
            return _by_manifest(cells, plan["code"])
        return {str(cell["key"]): NO_MANIFEST for cell in cells}
    except (OSError, RecursionError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedResultsError(f"can't read {folder / 'plan.json'}: {error!r}") from error


def _by_manifest(cells: Sequence[Mapping[str, Any]], recorded: Mapping[str, Any]) -> dict[str, str]:
    said: dict[int, str | None] = {}
    for number, entry in enumerate(recorded["entries"]):
        said[number] = _change([str(module) for module in entry], recorded)
    found = {}
    for cell in cells:
        sentence = said.get(cell["code"]) if isinstance(cell.get("code"), int) else None
        if sentence is not None:
            found[str(cell["key"])] = sentence
    return found


def _change(entry: Sequence[str], recorded: Mapping[str, Any]) -> str | None:
    """Return the code changes that concern one kind of cell; None if they are unknown."""
    files, packages = set(recorded["files"].values()), recorded["packages"]
    # A plug-in's module lies elsewhere, and may not be here at all.
    if not all(map(is_known, entry)):
        return None
    try:
        now = closure(*entry)
        other = [module for module in sorted(now) if file_hash(module) not in files]
        installed = versions(now)
    except FileNotFoundError:
        return "its code is here no more"
    said = []
    if other:
        names = [module.removeprefix("svmbench.") for module in other]
        more = (
            f" and {len(names) - _MOST_NAMED_FILES} more" if len(names) > _MOST_NAMED_FILES else ""
        )
        verb = "has" if len(names) == 1 else "have"
        said.append(f"{', '.join(names[:_MOST_NAMED_FILES])}{more} {verb} changed since")
    # A package of an optional solver that isn't installed here has no other version.
    moved = [
        f"{name} {packages.get(name) or 'none'} is {version} now"
        for name, version in sorted(installed.items())
        if version and version != packages.get(name)
    ]
    return "; ".join([*said, *moved])


def is_present(recheck: Recheck) -> bool:
    """Return True if a recheck was made with the present code and packages.

    A package that isn't installed here counts with the version that the recheck had.
    """
    modules = recheck["modules"]
    if not all(map(is_known, modules)):
        return False
    try:
        had = recheck.get("environment", {}).get("packages") or {}
        absent = tuple((name, had[name]) for name in not_installed(*modules) if name in had)
        return code_hash(*modules, absent=absent) == recheck["code"]
    except FileNotFoundError:
        return False


def identity_of(cell: Mapping[str, Any]) -> str:
    """Return the identity of a cell in any plan of its config.

    Plans and records of older versions say of a sweep in other fields.
    """
    swept = cell.get("dimensions")
    if swept is None:
        old = {"rows": cell.get("size"), "features": cell.get("n_features_kept")}
        swept = {name: value for name, value in old.items() if value is not None}
    named = {name: cell.get(name) for name in _IDENTITY}
    return json.dumps({**named, "dimensions": swept}, sort_keys=True, default=str)


def race_identity_of(cell: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Return the identity of a cell without its solvers, and its solvers: of a race, all of them.

    A config's optional solvers take part in a race where they are installed, so a plan may have
    more of them than the record of the same race.
    """
    named = str(cell.get("solver"))
    return identity_of({**cell, "solver": None}), frozenset(named.split("|"))
