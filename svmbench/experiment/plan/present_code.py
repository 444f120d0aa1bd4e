"""Comparison of kept results with the present code.

A plan contains a manifest of its cells' code (`keys.manifest`): for each cell the modules of its
solvers and its protocol, and a hash or version of every file and package that they reach. The
manifest is compared with the present files. If a module is renamed, the kept plans must be changed
to name it by its new name. The keys of a plan without a manifest hash the code in an earlier way,
so that none of its cells is fresh.
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
_MAX_NAMED_FILES = 3

#: The fields that identify a cell in all plans of a config.
_IDENTITY_FIELDS = ("block", "protocol", "dataset", "solver", "kernel", "fold", "dimensions")

#: The change of all cells of a plan without a manifest.
NO_MANIFEST = "its plan doesn't name the code"


def code_changes(folder: Path) -> dict[str, str]:
    """Return how the code of each cell of a run folder has changed since the run.

    Parameters
    ----------
    folder : Path
        A run folder with its plan.

    Returns
    -------
    dict of str to str
        By the cell's key, a sentence without full stop, empty if nothing has changed. Cells whose
        code is unknown, such as those of a plug-in, are left out.

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
    sentences: dict[int, str | None] = {}
    for number, entry in enumerate(recorded["entries"]):
        sentences[number] = _change([str(module) for module in entry], recorded)
    changes_by_key = {}
    for cell in cells:
        sentence = sentences.get(cell["code"]) if isinstance(cell.get("code"), int) else None
        if sentence is not None:
            changes_by_key[str(cell["key"])] = sentence
    return changes_by_key


def _change(entry: Sequence[str], recorded: Mapping[str, Any]) -> str | None:
    """Return how the code of one kind of cell has changed; None if its code is unknown."""
    files, packages = set(recorded["files"].values()), recorded["packages"]
    # The module of a plug-in is outside this package, and may not be installed.
    if not all(map(is_known, entry)):
        return None
    try:
        reached = closure(*entry)
        changed = [module for module in sorted(reached) if file_hash(module) not in files]
        installed = versions(reached)
    except FileNotFoundError:
        return "its code no longer exists here"
    clauses = []
    if changed:
        names = [module.removeprefix("svmbench.") for module in changed]
        more = f" and {len(names) - _MAX_NAMED_FILES} more" if len(names) > _MAX_NAMED_FILES else ""
        verb = "has" if len(names) == 1 else "have"
        clauses.append(f"{', '.join(names[:_MAX_NAMED_FILES])}{more} {verb} changed since")
    # Packages of optional solvers that aren't installed here don't count.
    updated = [
        f"{name} {packages.get(name) or 'none'} is {version} now"
        for name, version in sorted(installed.items())
        if version and version != packages.get(name)
    ]
    return "; ".join([*clauses, *updated])


def has_present_code(recheck: Recheck) -> bool:
    """Return True if a recheck was made with the present code and packages.

    For a package that isn't installed here, the recheck's version is assumed.
    """
    modules = recheck["modules"]
    if not all(map(is_known, modules)):
        return False
    try:
        recorded_versions = recheck.get("environment", {}).get("packages") or {}
        absent = tuple(
            (name, recorded_versions[name])
            for name in not_installed(*modules)
            if name in recorded_versions
        )
        return code_hash(*modules, absent=absent) == recheck["code"]
    except FileNotFoundError:
        return False


def identity_of(cell: Mapping[str, Any]) -> str:
    """Return the identity of a cell, the same in all plans of its config.

    Plans and records of older versions have the swept values in other fields.
    """
    swept = cell.get("dimensions")
    if swept is None:
        former_fields = {"rows": cell.get("size"), "features": cell.get("n_features_kept")}
        swept = {name: value for name, value in former_fields.items() if value is not None}
    identity = {name: cell.get(name) for name in _IDENTITY_FIELDS}
    return json.dumps({**identity, "dimensions": swept}, sort_keys=True, default=str)


def race_identity_of(cell: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Return the identity of a cell without its solvers, and the set of its solvers.

    Optional solvers of a config take part in a race if they are installed, so a plan may have more
    solvers than the record of the same race.
    """
    solvers = str(cell.get("solver"))
    return identity_of({**cell, "solver": None}), frozenset(solvers.split("|"))
