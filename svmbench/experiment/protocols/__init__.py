"""The protocols, one file each: the work of one cell with its rows, its solver and its grid.

A protocol is declared by the decorator of ``declare.py``; this module finds all of them, with the
protocols of plug-ins (:mod:`svmbench.baselines.catalogue`).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from svmbench.experiment.protocols.declare import PROTOCOLS, Protocol
from svmbench.experiment.settings.cells import CellSpec, protocol_settings


@cache
def _declare_own() -> None:
    from svmbench.baselines.catalogue import load_plugins

    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        import_module(module.name)
    load_plugins()


def protocols() -> dict[str, Protocol]:
    """Return every protocol by its name."""
    _declare_own()
    return dict(sorted(PROTOCOLS.items()))


def solvers_in(spec: CellSpec) -> list[str]:
    """Return the names of a cell's solvers: of none, of one with the one that chooses, of all."""
    names = [racer["name"] for racer in spec.get("racers", [])]
    if "name" in spec:
        names.append(spec["name"])
        chooser = protocol_settings(spec).get("choose_with", {}).get(spec["shown"])
        names += [chooser] if chooser is not None else []
    return names


def input_form_of(spec: CellSpec) -> str:
    """Return the form of a cell's input: ``arrays``, ``blocks`` or ``kernel``.

    It is ``kernel`` if one of the cell's solvers takes a kernel matrix.
    """
    from svmbench.baselines.catalogue import solver_class

    if spec["dataset"].get("read") == "blocks":
        return "blocks"
    names = solvers_in(spec)
    has_kernel = any("kernel" in solver_class(name).declaration.reads for name in names)
    return "kernel" if has_kernel else "arrays"


def function_of(spec: CellSpec) -> Callable[[Any], Any]:
    """Return the function that runs a cell, from its `Task` to its `Outcome`."""
    return protocols()[spec["protocol"]].function(input_form_of(spec))
